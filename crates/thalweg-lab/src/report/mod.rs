//! One HTML file that shows an experiment without a network or a second file, and without a script where scripts are off.

mod figure;
mod page;
mod policy;
mod section;

pub use figure::{Figure, Layout};
pub use page::{Card, Page, Standing, Tile};
pub use section::{Link, Section};

#[cfg(test)]
pub(crate) mod tests;
