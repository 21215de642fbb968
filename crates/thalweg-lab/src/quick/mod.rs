//! The quick scenario: the three kinds of data of paper 1 between separate processes on this host, in about a minute.

mod observations;
mod presentation;
mod result;

pub use presentation::{to_html, to_text};
pub use result::{Background, BurstCell, Foreground, Point, QuickResult};

#[cfg(test)]
mod tests;
