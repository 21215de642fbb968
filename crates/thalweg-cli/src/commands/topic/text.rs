//! Samples as text for people.

use std::fmt::Write;

use thalweg_types::document::{Document, MapKey};

use crate::outcome::InLine;

/// One member a line, indented, as `ros2 topic echo` prints them.
pub fn lines(sample: &Document) -> String {
    let mut out = String::new();
    match sample {
        Document::Map(members) if !members.is_empty() => write_members(members, 0, &mut out),
        other => out.push_str(&flow(other)),
    }
    out.trim_end().to_owned()
}

fn write_members(members: &[(MapKey, Document)], depth: usize, out: &mut String) {
    for (key, value) in members {
        indent(depth, out);
        write_name(key, out);
        out.push(':');
        match value {
            Document::Map(inner) if !inner.is_empty() => {
                out.push('\n');
                write_members(inner, depth + 1, out);
            }
            Document::Array(elements) if elements.iter().any(|element| matches!(element, Document::Map(_))) => {
                out.push('\n');
                elements.iter().for_each(|element| write_element(element, depth, out));
            }
            other => {
                out.push(' ');
                write_flow(other, out);
                out.push('\n');
            }
        }
    }
}

/// The first member of an element stands behind its dash.
fn write_element(element: &Document, depth: usize, out: &mut String) {
    indent(depth, out);
    out.push_str("- ");
    match element {
        Document::Map(members) if !members.is_empty() => {
            let mut inner = String::new();
            write_members(members, depth + 1, &mut inner);
            out.push_str(inner.trim_start());
        }
        other => {
            write_flow(other, out);
            out.push('\n');
        }
    }
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// All in one line.
pub fn flow(value: &Document) -> String {
    let mut out = String::new();
    write_flow(value, &mut out);
    out
}

fn write_flow(value: &Document, out: &mut String) {
    let between = |index: usize, out: &mut String| {
        if index > 0 {
            out.push_str(", ");
        }
    };
    // Writing into a string does not fail.
    let _ = match value {
        Document::Null => out.write_str("null"),
        Document::Boolean(value) => write!(out, "{value}"),
        Document::Integer(number) => write!(out, "{number}"),
        Document::Real(number) => write!(out, "{number:?}"),
        Document::Text(text) => write!(out, "{text:?}"),
        Document::Bytes(bytes) => out.write_str(&thalweg_types::document::hexadecimal(bytes)),
        Document::Array(_) | Document::Numbers(_) => {
            out.push('[');
            for (index, element) in value.items().into_iter().flatten().enumerate() {
                between(index, out);
                write_flow(&element, out);
            }
            out.write_char(']')
        }
        Document::Map(members) => {
            out.push('{');
            for (index, (key, value)) in members.iter().enumerate() {
                between(index, out);
                write_name(key, out);
                out.push_str(": ");
                write_flow(value, out);
            }
            out.write_char('}')
        }
    };
}

fn write_name(key: &MapKey, out: &mut String) {
    let _ = match key {
        // Names of a stranger's type.
        MapKey::Text(name) => write!(out, "{}", InLine(name)),
        MapKey::Label(label) => write!(out, "{label}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_indented_and_rows_stay_in_a_line() {
        let json = br#"{"a":{"b":[1,2]},"c":[{"d":1,"e":2}],"f":"0x01","g":[]}"#;
        let sample = Document::from_json(json).expect("JSON");
        assert_eq!(lines(&sample), "a:\n  b: [1, 2]\nc:\n- d: 1\n  e: 2\nf: \"0x01\"\ng: []");
        assert_eq!(flow(&sample), r#"{a: {b: [1, 2]}, c: [{d: 1, e: 2}], f: "0x01", g: []}"#);
        let forged = Document::from_json(br#"{"a: 1\n---\nb":"c\nd"}"#).expect("JSON");
        assert_eq!(lines(&forged), r#"a: 1\u000a---\u000ab: "c\nd""#);
    }
}
