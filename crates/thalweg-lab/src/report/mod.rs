//! One HTML file that shows an experiment without a network, a script or a second file.

mod page;

pub use page::{Page, Section, Tile};

#[cfg(test)]
pub(crate) mod tests;
