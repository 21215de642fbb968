//! One row for each thing that is compared, with its marks on a common axis.

use super::WIDTH;
use super::axis::Axis;
use super::scale::Scale;
use super::svg::{Anchor, Svg};

/// One row.
#[derive(Clone, Debug)]
pub struct PlotRow {
    /// Stands at the left.
    pub name: String,
    /// Stands at the right; may be empty.
    pub note: String,
    /// What is marked.
    pub marks: Vec<RowMark>,
}

/// One mark of a row.
#[derive(Clone, Copy, Debug)]
pub struct RowMark {
    /// Position in the palette, which also decides the shape.
    pub colour: usize,
    /// Where it stands.
    pub value: f64,
    /// Its interval, where it has one.
    pub interval: Option<(f64, f64)>,
}

/// Draws the rows; `kinds` names the colours that occur.
pub fn rows(axis: &Axis, kinds: &[(&str, usize)], rows: &[PlotRow]) -> String {
    let notes = rows.iter().map(|row| row.note.chars().count()).max().unwrap_or(0);
    let left = label_width(rows.iter().map(|row| row.name.as_str()));
    let (right, top) = (WIDTH - 20.0 - 6.6 * notes as f64, if kinds.is_empty() { 8.0 } else { 28.0 });
    let bottom = top + ROW_HEIGHT * rows.len() as f64;
    let all = || rows.iter().flat_map(|row| &row.marks);
    let ends = |mark: &RowMark| mark.interval.into_iter().flat_map(|(low, high)| [low, high]).chain([mark.value]);
    let axis = axis.settled(all().flat_map(ends));
    let mut svg = Svg::new(WIDTH, bottom + 44.0, &axis.title);
    let x = axis.scale(all().flat_map(ends), left, right);
    draw_axis(&mut svg, &axis, &x, (left, right), (top, bottom));
    let middle = |index: usize| top + ROW_HEIGHT * (index as f64 + 0.5);
    for (index, row) in rows.iter().enumerate() {
        svg.text("row", (left - 10.0, middle(index) + 4.0), Anchor::End, &row.name);
        if !row.note.is_empty() {
            svg.text("tick", (right + 12.0, middle(index) + 4.0), Anchor::Start, &row.note);
        }
    }
    let mut colours: Vec<usize> = rows.iter().flat_map(|row| &row.marks).map(|mark| mark.colour).collect();
    colours.sort_unstable();
    colours.dedup();
    for colour in colours {
        let name = kinds.iter().find(|(_, kind)| *kind == colour).map_or("", |(name, _)| name);
        let marks = rows.iter().enumerate().flat_map(|(index, row)| row.marks.iter().map(move |mark| (index, mark)));
        let own: Vec<(f64, &RowMark)> =
            marks.filter(|(_, mark)| mark.colour == colour).map(|(index, mark)| (middle(index), mark)).collect();
        draw_marks(&mut svg, (name, colour), &own, &x);
    }
    let mut at = left;
    for (name, colour) in kinds {
        svg.begin_group(&format!("key k{colour}"), "");
        svg.marks(&format!("mark c{colour}"), *colour, [(at + 5.0, 11.0)]);
        svg.text("legend", (at + 14.0, 15.0), Anchor::Start, name);
        svg.end_group();
        at += 34.0 + 7.0 * name.chars().count() as f64;
    }
    svg.finish()
}

/// Draws the marks of one colour with their rows' heights.
fn draw_marks(svg: &mut Svg, (name, colour): (&str, usize), marks: &[(f64, &RowMark)], x: &Scale) {
    svg.begin_group(&format!("s s{colour}"), name);
    let piece =
        |(y, mark): &(f64, &RowMark)| mark.interval.map(|(low, high)| [(x.position(low), *y), (x.position(high), *y)]);
    svg.segments(&format!("whisker c{colour}"), marks.iter().filter_map(piece));
    svg.marks(&format!("mark c{colour}"), colour, marks.iter().map(|(y, mark)| (x.position(mark.value), *y)));
    svg.end_group();
}

/// Draws a horizontal axis below rows.
pub(super) fn draw_axis(svg: &mut Svg, axis: &Axis, x: &Scale, across: (f64, f64), down: (f64, f64)) {
    svg.attribute("data-x", &axis.description(x));
    let ticks = axis.ticks(x);
    svg.segments("grid", ticks.iter().map(|(tick, _)| [(x.position(*tick), down.0), (x.position(*tick), down.1)]));
    svg.line("axis", (across.0, down.1), (across.1, down.1));
    for (tick, label) in &ticks {
        svg.text("tick", (x.position(*tick), down.1 + 15.0), Anchor::Middle, label);
    }
    svg.text("label", ((across.0 + across.1) / 2.0, down.1 + 34.0), Anchor::Middle, &axis.title);
}

/// Room for the names of rows.
pub(super) fn label_width<'a>(names: impl Iterator<Item = &'a str>) -> f64 {
    20.0 + 6.9 * names.map(|name| name.chars().count()).max().unwrap_or(0) as f64
}

const ROW_HEIGHT: f64 = 22.0;
