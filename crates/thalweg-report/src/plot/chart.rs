//! Curves, marks and dots on common axes, with the intervals around them.

use super::WIDTH;
use super::axis::Axis;
use super::scale::Scale;
use super::svg::{Anchor, Svg};

/// A figure with two axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Stands above; may be empty.
    pub title: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// What is drawn, the first one at the bottom.
    pub layers: Vec<Layer>,
    /// How much room it takes.
    pub size: Size,
}

/// One thing that is drawn.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Name in the legend; empty for none.
    pub name: String,
    /// Position in the palette, which also decides dashes and marker.
    pub colour: usize,
    /// How its points are drawn.
    pub form: Form,
    /// Places `(x, y)` in the order of x.
    pub points: Vec<(f64, f64)>,
    /// Intervals `(x, low, high)`: an area around a line, whiskers at marks.
    pub band: Vec<(f64, f64, f64)>,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Joined by a line.
    Line,
    /// Joined by a line, with a marker at each.
    Marked,
    /// A dot for each.
    Dots,
}

/// How much room a figure takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The whole column.
    Wide,
    /// The whole column, a third of the height.
    Strip,
    /// One of several that stand side by side.
    Small,
}

/// Where the inner rectangle lies.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Chart {
    /// The picture.
    pub fn to_svg(&self) -> String {
        let (across, up) = self.values();
        Chart { x: self.x.settled(across.into_iter()), y: self.y.settled(up.into_iter()), ..self.clone() }.draw()
    }

    fn draw(&self) -> String {
        let (width, height) = match self.size {
            Size::Wide => (WIDTH, 260.0),
            Size::Strip => (WIDTH, 84.0),
            Size::Small => (300.0, 132.0),
        };
        let legend = self.legend(width);
        let head = if self.title.is_empty() { 0.0 } else { 18.0 };
        let top = head + LEGEND_ROW * legend.len() as f64 + 24.0;
        let frame = Frame { left: 58.0, right: width - 12.0, top, bottom: top + height };
        let name =
            if self.title.is_empty() { self.y.title.clone() } else { format!("{}: {}", self.title, self.y.title) };
        let mut svg = Svg::new(width, frame.bottom + 42.0, &format!("{name} over {}", self.x.title));
        let (x, y) = self.scales(&frame);
        svg.attribute("data-x", &self.x.description(&x));
        svg.attribute("data-y", &self.y.description(&y));
        if !self.title.is_empty() {
            svg.text("head", (4.0, 14.0), Anchor::Start, &self.title);
        }
        svg.text("label", (4.0, top - 9.0), Anchor::Start, &self.y.title);
        self.draw_axes(&mut svg, &frame, &x, &y);
        for layer in &self.layers {
            layer.draw(&mut svg, &x, &y);
        }
        for (index, row) in legend.iter().enumerate() {
            let down = head + LEGEND_ROW * index as f64;
            row.iter().for_each(|(layer, at)| layer.draw_key(&mut svg, *at, down));
        }
        svg.finish()
    }

    /// All that is drawn, from left to right and from bottom to top.
    fn values(&self) -> (Vec<f64>, Vec<f64>) {
        let points = || self.layers.iter().flat_map(|layer| layer.points.iter());
        let bands = || self.layers.iter().flat_map(|layer| layer.band.iter());
        let across = points().map(|(x, _)| *x).chain(bands().map(|(x, ..)| *x));
        let up = points().map(|(_, y)| *y).chain(bands().flat_map(|(_, low, high)| [*low, *high]));
        (across.collect(), up.collect())
    }

    fn scales(&self, frame: &Frame) -> (Scale, Scale) {
        let (across, up) = self.values();
        (
            self.x.scale(across.into_iter(), frame.left, frame.right),
            self.y.scale(up.into_iter(), frame.bottom, frame.top),
        )
    }

    fn draw_axes(&self, svg: &mut Svg, frame: &Frame, x: &Scale, y: &Scale) {
        let (across, mut up) = (self.x.ticks(x), self.y.ticks(y));
        if self.size == Size::Small && up.len() > 5 {
            // Ends and every other one between them are enough for a small picture.
            let last = up.len() - 1;
            up = up
                .into_iter()
                .enumerate()
                .filter(|(index, _)| (last - index).is_multiple_of(2))
                .map(|(_, tick)| tick)
                .collect();
        }
        let vertical = across.iter().map(|(tick, _)| x.position(*tick)).map(|at| [(at, frame.top), (at, frame.bottom)]);
        let horizontal = up.iter().map(|(tick, _)| y.position(*tick)).map(|at| [(frame.left, at), (frame.right, at)]);
        svg.segments("grid", vertical.chain(horizontal));
        svg.line("axis", (frame.left, frame.bottom), (frame.right, frame.bottom));
        let mut free_from = f64::NEG_INFINITY;
        for (tick, label) in across {
            let at = x.position(tick);
            let half = 3.4 * label.chars().count() as f64 + LABEL_AIR;
            // A label that would run out of the picture is moved, one that would run into the one before left out; its line stays.
            let (place, anchor) = match at + half - LABEL_AIR > frame.right + 12.0 {
                true => (frame.right + 12.0, Anchor::End),
                false => (at, Anchor::Middle),
            };
            if at.min(place) - half >= free_from {
                svg.text("tick", (place, frame.bottom + 15.0), anchor, &label);
                free_from = at + half;
            }
        }
        let mut free_to = f64::INFINITY;
        for (tick, label) in up {
            let at = y.position(tick);
            if at + 6.0 <= free_to {
                svg.text("tick", (frame.left - 6.0, at + 4.0), Anchor::End, &label);
                free_to = at - 6.0;
            }
        }
        svg.text("label", ((frame.left + frame.right) / 2.0, frame.bottom + 34.0), Anchor::Middle, &self.x.title);
    }

    /// The named layers with their places from the left, in as many lines as they need.
    fn legend(&self, width: f64) -> Vec<Vec<(&Layer, f64)>> {
        let mut out: Vec<Vec<(&Layer, f64)>> = Vec::new();
        let mut at = f64::INFINITY;
        for layer in self.layers.iter().filter(|layer| !layer.name.is_empty()) {
            let entry = 40.0 + 6.6 * layer.name.chars().count() as f64;
            if at + entry > width {
                out.push(Vec::new());
                at = 4.0;
            }
            out.iter_mut().last().into_iter().for_each(|row| row.push((layer, at)));
            at += entry;
        }
        out
    }
}

impl Layer {
    /// Points without intervals, and without a name where that is empty.
    pub fn new(name: impl Into<String>, colour: usize, form: Form, points: Vec<(f64, f64)>) -> Layer {
        Layer { name: name.into(), colour, form, points, band: Vec::new() }
    }

    fn draw(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        let colour = self.colour;
        let points = || self.points.iter().map(|(across, up)| (x.position(*across), y.position(*up)));
        svg.begin_group(&format!("s s{colour}"), &self.name);
        if self.form == Form::Line {
            let low = self.band.iter().map(|(across, low, _)| (x.position(*across), y.position(*low)));
            let high = self.band.iter().rev().map(|(across, _, high)| (x.position(*across), y.position(*high)));
            svg.polygon(&format!("area c{colour}"), low.chain(high));
        } else {
            let whisker = |(across, low, high): &(f64, f64, f64)| {
                let at = x.position(*across);
                [(at, y.position(*low)), (at, y.position(*high))]
            };
            svg.segments(&format!("whisker c{colour}"), self.band.iter().map(whisker));
        }
        if self.form != Form::Dots {
            svg.polyline(&format!("curve c{colour}"), points());
        }
        match self.form {
            Form::Line => {}
            Form::Marked => svg.marks(&format!("mark c{colour}"), colour, points()),
            Form::Dots => svg.dots(&format!("dots c{colour}"), points()),
        }
        svg.end_group();
    }

    fn draw_key(&self, svg: &mut Svg, at: f64, down: f64) {
        let colour = self.colour;
        let middle = down + 11.0;
        svg.begin_group(&format!("key k{colour}"), "");
        match self.form {
            Form::Dots => svg.dots(&format!("dots c{colour}"), [(at + 11.0, middle)]),
            Form::Line | Form::Marked => svg.polyline(&format!("curve c{colour}"), [(at, middle), (at + 22.0, middle)]),
        }
        if self.form == Form::Marked {
            svg.marks(&format!("mark c{colour}"), colour, [(at + 11.0, middle)]);
        }
        svg.text("legend", (at + 27.0, middle + 4.0), Anchor::Start, &self.name);
        svg.end_group();
    }
}

const LEGEND_ROW: f64 = 18.0;
/// Between two labels of an axis.
const LABEL_AIR: f64 = 3.0;
