//! Samples as text for people.

use std::fmt::Write;

use thalweg_types::document::{Document, MapKey};

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
        let indent = "  ".repeat(depth);
        let _ = match value {
            Document::Map(inner) if !inner.is_empty() => {
                let _ = writeln!(out, "{indent}{}:", name(key));
                write_members(inner, depth + 1, out);
                continue;
            }
            Document::Array(elements) if elements.iter().any(|element| matches!(element, Document::Map(_))) => {
                let _ = writeln!(out, "{indent}{}:", name(key));
                for element in elements {
                    let mut inner = String::new();
                    match element {
                        Document::Map(members) => write_members(members, depth + 1, &mut inner),
                        other => inner.push_str(&flow(other)),
                    }
                    let _ = writeln!(out, "{indent}- {}", inner.trim());
                }
                continue;
            }
            other => writeln!(out, "{indent}{}: {}", name(key), flow(other)),
        };
    }
}

/// All in one line.
pub fn flow(value: &Document) -> String {
    match value {
        Document::Null => "null".to_owned(),
        Document::Boolean(value) => value.to_string(),
        Document::Integer(number) => number.to_string(),
        Document::Real(number) => format!("{number:?}"),
        Document::Text(text) => format!("{text:?}"),
        Document::Bytes(bytes) => thalweg_types::document::hexadecimal(bytes),
        Document::Array(_) | Document::Numbers(_) => {
            let elements: Vec<String> = value.items().into_iter().flatten().map(|element| flow(&element)).collect();
            format!("[{}]", elements.join(", "))
        }
        Document::Map(members) => {
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("{}: {}", name(key), flow(value))).collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

fn name(key: &MapKey) -> String {
    match key {
        MapKey::Text(name) => name.to_string(),
        MapKey::Label(label) => label.to_string(),
    }
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
    }
}
