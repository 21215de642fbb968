//! Figures as inline SVG: deterministic bytes, no script, colours from the page's style sheet so that they follow light and dark.

mod ecdf;
mod lines;
mod scale;
mod stacks;
mod strips;
mod svg;
mod timeline;

pub use ecdf::ecdf;
pub use lines::{Axis, lines};
pub use stacks::stacks;
pub use strips::strips;
pub use svg::escape;
pub use timeline::{Band, Trace, timeline};

/// A named set of values that shares one colour (`index` of the palette, below [`COLOURS`]) in every figure of a section.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name in legends and row labels.
    pub name: String,
    /// Position in the palette.
    pub colour: usize,
    /// Values in the unit of the axis, in the order they were measured.
    pub values: Vec<f64>,
}

/// Colours of the palette; further ones repeat.
pub const COLOURS: usize = 6;

/// A figure as a file of its own: with the colours that the page's style sheet gives it, light and dark.
pub fn standalone(figure: &str) -> String {
    let style = "<style>:root{--ink:#17222b;--soft:#576875;--grid:#e6ecf0;--warn-wash:#fff3dd;--warn:#8a4b00;--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#b0568a;--c4:#7a6a00;--c5:#5b4fb0}\
        @media(prefers-color-scheme:dark){:root{--ink:#e4ecf1;--soft:#93a5b1;--grid:#25313a;--warn-wash:#3a2a10;--warn:#ffc978;--c0:#5cb8e4;--c1:#f58f4e;--c2:#3ecb9f;--c3:#e29ac6;--c4:#d9c64a;--c5:#a99cf0}}\
        text{fill:var(--ink);font:12px system-ui,sans-serif}.tick,.label{fill:var(--soft)}.row{font-weight:600}.grid{stroke:var(--grid)}.axis{stroke:var(--soft)}\
        .band{fill:var(--warn-wash)}.curve{fill:none;stroke-width:2.2;stroke-linejoin:round}.dot{fill-opacity:.72}.spread,.mean{stroke:var(--ink);stroke-width:2.2}";
    let colours: String = (0..COLOURS)
        .map(|i| format!(".curve.c{i}{{stroke:var(--c{i})}}.dot.c{i},.swatch.c{i}{{fill:var(--c{i})}}"))
        .collect();
    match figure.split_once('>') {
        Some((head, body)) => {
            let head = head.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1);
            format!("{head}>{style}{colours}</style>{body}")
        }
        None => figure.to_owned(),
    }
}

/// Width of every figure in its own units; the page scales it to the column.
const WIDTH: f64 = 760.0;

#[cfg(test)]
mod tests;
