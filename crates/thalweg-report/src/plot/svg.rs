//! The text of an SVG picture, piece by piece.

use std::fmt::Write;

/// Replaces the characters that HTML, SVG and their attributes reserve.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// Which end of a text lies at its position.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture under construction; y grows downwards.
pub(super) struct Svg {
    body: String,
    width: f64,
    height: f64,
    description: String,
    attributes: String,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64, description: &str) -> Svg {
        Svg { body: String::new(), width, height, description: escape(description), attributes: String::new() }
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(place);
        self.push(format_args!(r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#));
    }

    pub(super) fn rectangle(&mut self, class: &str, corner: (f64, f64), size: (f64, f64), radius: f64) {
        let [x, y, w, h] = [corner.0, corner.1, size.0.max(0.0), size.1.max(0.0)].map(place);
        let radius = if radius > 0.0 { format!(r#" rx="{radius}""#) } else { String::new() };
        self.push(format_args!(r#"<rect class="{class}" x="{x}" y="{y}" width="{w}" height="{h}"{radius}/>"#));
    }

    pub(super) fn dot(&mut self, class: &str, centre: (f64, f64), radius: f64) {
        let [x, y] = [centre.0, centre.1].map(place);
        self.push(format_args!(r#"<circle class="{class}" cx="{x}" cy="{y}" r="{radius}"/>"#));
    }

    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " m",
            Anchor::End => " e",
        };
        let ([x, y], text) = ([at.0, at.1].map(place), escape(text));
        self.push(format_args!(r#"<text class="{class}{anchor}" x="{x}" y="{y}">{text}</text>"#));
    }

    pub(super) fn polyline(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let path = path(points);
        self.path(class, &path);
    }

    /// An area within a closed line.
    pub(super) fn polygon(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let path = path(points);
        self.path(class, &format!("{path}z"));
    }

    /// Straight pieces that do not hang together.
    pub(super) fn segments(&mut self, class: &str, pieces: impl IntoIterator<Item = [(f64, f64); 2]>) {
        let pieces: String = pieces.into_iter().map(path).collect();
        self.path(class, &pieces);
    }

    /// Round points, as wide as the class's stroke.
    pub(super) fn dots(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let dots: String = points.into_iter().map(|at| path([at]) + "h0").collect();
        self.path(class, &dots);
    }

    /// One marker at each point, in the shape of the palette's colour `shape`.
    pub(super) fn marks(&mut self, class: &str, shape: usize, points: impl IntoIterator<Item = (f64, f64)>) {
        let corners = MARKERS[shape % MARKERS.len()];
        let mark = |(x, y): (f64, f64)| path(corners.iter().map(|(dx, dy)| (x + dx, y + dy))) + "z";
        let marks: String = points.into_iter().map(mark).collect();
        self.path(class, &marks);
    }

    fn path(&mut self, class: &str, commands: &str) {
        if !commands.is_empty() && commands != "z" {
            self.push(format_args!(r#"<path class="{class}" d="{commands}"/>"#));
        }
    }

    /// What follows up to [`Svg::end_group`] belongs together; scripts can hide it, and `title` says what it is.
    pub(super) fn begin_group(&mut self, class: &str, title: &str) {
        let title = if title.is_empty() { String::new() } else { format!("<title>{}</title>", escape(title)) };
        self.push(format_args!(r#"<g class="{class}">{title}"#));
    }

    pub(super) fn end_group(&mut self) {
        self.push(format_args!("</g>"));
    }

    /// Adds an attribute to the picture.
    pub(super) fn attribute(&mut self, name: &str, value: &str) {
        write_to(&mut self.attributes, format_args!(r#" {name}="{}""#, escape(value)));
    }

    pub(super) fn finish(self) -> String {
        let Svg { body, width, height, description, attributes } = self;
        format!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{description}\"{attributes}>\n{body}</svg>\n"
        )
    }

    fn push(&mut self, piece: std::fmt::Arguments<'_>) {
        write_to(&mut self.body, piece);
        self.body.push('\n');
    }
}

/// The commands of a line through `points`, in tenths of a unit and relative to each other, which takes half the bytes of absolute places.
fn path(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut out = String::new();
    let mut last = None;
    for (x, y) in points {
        let (x, y) = ((x * 10.0).round() as i64, (y * 10.0).round() as i64);
        match last {
            None => write_to(&mut out, format_args!("M{}{}", tenths(x, ""), tenths(y, " "))),
            Some((from_x, from_y)) => {
                // One letter stands for all further points.
                let first = if out.contains('l') { " " } else { "l" };
                let x = if first == "l" { format!("l{}", tenths(x - from_x, "")) } else { tenths(x - from_x, first) };
                out.push_str(&x);
                out.push_str(&tenths(y - from_y, " "));
            }
        }
        last = Some((x, y));
    }
    out
}

/// A coordinate in tenths of a unit.
fn place(value: f64) -> String {
    tenths((value * 10.0).round() as i64, "")
}

/// A number of tenths without what a reader of paths does not need; `gap` stands before it unless a minus does.
fn tenths(value: i64, gap: &str) -> String {
    let (sign, gap) = if value < 0 { ("-", "") } else { ("", gap) };
    let (whole, rest) = (value.abs() / 10, value.abs() % 10);
    match (whole, rest) {
        (whole, 0) => format!("{gap}{sign}{whole}"),
        (0, rest) => format!("{gap}{sign}.{rest}"),
        (whole, rest) => format!("{gap}{sign}{whole}.{rest}"),
    }
}

fn write_to(out: &mut String, piece: std::fmt::Arguments<'_>) {
    out.write_fmt(piece).expect("writing to a string does not fail");
}

/// Corners of the markers around their middle: circle, square, triangle, diamond, cross, hourglass, small square.
const MARKERS: [&[(f64, f64)]; 7] = [
    &[(3.4, 0.0), (2.4, 2.4), (0.0, 3.4), (-2.4, 2.4), (-3.4, 0.0), (-2.4, -2.4), (0.0, -3.4), (2.4, -2.4)],
    &[(-3.0, -3.0), (3.0, -3.0), (3.0, 3.0), (-3.0, 3.0)],
    &[(0.0, -4.0), (3.8, 3.0), (-3.8, 3.0)],
    &[(0.0, -4.4), (3.6, 0.0), (0.0, 4.4), (-3.6, 0.0)],
    &[
        (-4.0, -2.2),
        (-2.2, -4.0),
        (0.0, -1.8),
        (2.2, -4.0),
        (4.0, -2.2),
        (1.8, 0.0),
        (4.0, 2.2),
        (2.2, 4.0),
        (0.0, 1.8),
        (-2.2, 4.0),
        (-4.0, 2.2),
        (-1.8, 0.0),
    ],
    &[(-3.6, -3.6), (3.6, -3.6), (-3.6, 3.6), (3.6, 3.6)],
    &[(-2.0, -2.0), (2.0, -2.0), (2.0, 2.0), (-2.0, 2.0)],
];
