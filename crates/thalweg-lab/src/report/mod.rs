//! What an experiment amounts to: one HTML file that shows it without a network or a second file, and without a script where scripts are
//! off; or a document in Markdown.

mod figure;
mod markdown;
mod page;
mod policy;
mod section;

pub use figure::{Figure, FigureLayout};
pub use markdown::Markdown;
pub use page::{Card, Page, Standing, Tile};
pub use section::{PageLink, Section};

#[cfg(test)]
pub(crate) mod tests;
