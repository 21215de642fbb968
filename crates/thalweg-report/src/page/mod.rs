//! What an experiment amounts to: one HTML file that shows it without a network or a second file, and without a script where scripts are
//! off; or a document in Markdown.

mod figure;
mod markdown;
mod policy;
mod section;
mod whole;

pub use figure::{Figure, FigureLayout};
pub use markdown::Markdown;
pub use section::{PageLink, Section};
pub use whole::{Card, Page, Standing, Tile};

#[cfg(test)]
mod tests;
