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
}

impl Svg {
    pub(super) fn new(width: f64, height: f64, description: &str) -> Svg {
        Svg { body: String::new(), width, height, description: escape(description) }
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x1, y1, x2, y2) = (from.0, from.1, to.0, to.1);
        self.push(format_args!(r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#));
    }

    pub(super) fn rectangle(&mut self, class: &str, corner: (f64, f64), size: (f64, f64), radius: f64) {
        let (x, y, w, h) = (corner.0, corner.1, size.0.max(0.0), size.1.max(0.0));
        self.push(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{w:.1}" height="{h:.1}" rx="{radius}"/>"#
        ));
    }

    pub(super) fn dot(&mut self, class: &str, centre: (f64, f64), radius: f64) {
        self.push(format_args!(r#"<circle class="{class}" cx="{:.1}" cy="{:.1}" r="{radius}"/>"#, centre.0, centre.1));
    }

    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.push(format_args!(
            r#"<text class="{class}" x="{:.1}" y="{:.1}" text-anchor="{anchor}">{}</text>"#,
            at.0,
            at.1,
            escape(text)
        ));
    }

    pub(super) fn polyline(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let mut path = String::new();
        for (x, y) in points {
            let command = if path.is_empty() { 'M' } else { 'L' };
            write_to(&mut path, format_args!("{command}{x:.1} {y:.1}"));
        }
        self.push(format_args!(r#"<path class="{class}" d="{path}"/>"#));
    }

    pub(super) fn finish(self) -> String {
        let Svg { body, width, height, description } = self;
        format!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{description}\"><title>{description}</title>\n{body}</svg>\n"
        )
    }

    fn push(&mut self, piece: std::fmt::Arguments<'_>) {
        write_to(&mut self.body, piece);
        self.body.push('\n');
    }
}

fn write_to(out: &mut String, piece: std::fmt::Arguments<'_>) {
    out.write_fmt(piece).expect("writing to a string does not fail");
}
