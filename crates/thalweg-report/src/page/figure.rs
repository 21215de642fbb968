//! A figure: pictures, what to see in them, what they rest on and the numbers behind them.

use crate::plot::escape;
use crate::table::Table;

/// One figure of a section.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// What to see, in one sentence.
    pub seen: String,
    /// How many values it shows and what its intervals are; may be empty.
    pub basis: String,
    /// SVG pictures.
    pub pictures: Vec<String>,
    /// How several of them stand.
    pub layout: FigureLayout,
    /// The numbers behind the pictures; shown on demand.
    pub table: Option<Table>,
}

/// How the pictures of a figure stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FigureLayout {
    /// One below the other, each as wide as the page.
    #[default]
    Column,
    /// Side by side where there is room: small pictures of the same kind.
    Grid,
}

impl Figure {
    /// A figure with one picture.
    pub fn new(seen: impl Into<String>, picture: String) -> Figure {
        Figure { seen: seen.into(), pictures: vec![picture], ..Figure::default() }
    }

    /// A figure with several pictures.
    pub fn of_many(seen: impl Into<String>, layout: FigureLayout, pictures: Vec<String>) -> Figure {
        Figure { seen: seen.into(), pictures, layout, ..Figure::default() }
    }

    /// A figure with these pictures, where there are any.
    pub fn of_any(seen: impl Into<String>, layout: FigureLayout, pictures: Vec<String>) -> Option<Figure> {
        (!pictures.is_empty()).then(|| Figure::of_many(seen, layout, pictures))
    }

    /// The same figure with what it rests on.
    pub fn resting_on(self, basis: impl Into<String>) -> Figure {
        Figure { basis: basis.into(), ..self }
    }

    /// The same figure with the numbers behind it.
    pub fn with_table(self, table: Table) -> Figure {
        Figure { table: Some(table), ..self }
    }

    pub(super) fn to_html(&self) -> String {
        let kind = if self.layout == FigureLayout::Grid { "many" } else { "plot" };
        let basis = match self.basis.as_str() {
            "" => String::new(),
            basis => format!(" <small>{}</small>", escape(basis)),
        };
        let table = self.table.as_ref().map_or_else(String::new, |table| {
            format!("<details><summary>Table</summary>\n{}</details>\n", table.to_html())
        });
        format!(
            "<figure>\n<figcaption>{}{basis}</figcaption>\n<div class=\"{kind}\">\n{}</div>\n{table}</figure>\n",
            escape(&self.seen),
            self.pictures.concat()
        )
    }
}
