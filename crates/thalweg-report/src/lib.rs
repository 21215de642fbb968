//! Results for people, whatever was measured.
//!
//! * [`figures`] writes numbers, sizes and times as people read them;
//! * [`table`] holds tables that read the same in a terminal, in Markdown and in a browser;
//! * [`plot`] draws figures as SVG;
//! * [`page`] puts them together: one HTML file that needs nothing else, a document in Markdown, or text for a terminal.
#![forbid(unsafe_code)]

pub mod figures;
pub mod page;
pub mod plot;
pub mod table;
