//! Values as texts, and rows of them: `[1, 2]` of ROS 2's `.msg` files, `(1, 2)` and `('a',)` of the IDL that is made of them, and those of
//! JSON.

use thalweg_cdr::description::{Primitive, Type};

use crate::document::Document;

/// The values of a row; `None` where a text is none.
pub(crate) fn row(text: &str) -> Option<Vec<Document>> {
    if let Ok(Document::Array(items)) = Document::from_json(text.as_bytes()) {
        return Some(items);
    }
    let text = text.trim();
    let within = |open: char, close: char| text.strip_prefix(open)?.strip_suffix(close);
    let mut rest = within('[', ']').or_else(|| within('(', ')'))?.trim();
    let mut items = Vec::new();
    while !rest.is_empty() {
        let quote = rest.chars().next().filter(|first| matches!(first, '"' | '\''));
        let (item, behind) = match quote {
            Some(quote) => quoted(rest, quote)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (scalar(rest[..end].trim())?, &rest[end..])
            }
        };
        items.push(item);
        rest = behind.trim_start();
        if !rest.is_empty() {
            rest = rest.strip_prefix(',')?.trim_start();
        }
    }
    Some(items)
}

/// The value that stands behind a member of this type in a `.msg` file; what is none of its values stays a text.
pub(crate) fn ros_default(of: &Type, given: &str) -> Document {
    let text = || Document::Text(given.to_owned());
    match of.resolved() {
        Type::String { .. } | Type::WString { .. } => Document::Text(without_quotes(given)),
        Type::Primitive(Primitive::Boolean) => as_boolean(scalar(&given.to_ascii_lowercase()).unwrap_or_else(text)),
        Type::Sequence { element, .. } | Type::Array { element, .. } => match row(given) {
            Some(items) if **element == Type::Primitive(Primitive::Boolean) => {
                Document::Array(items.into_iter().map(as_boolean).collect())
            }
            Some(items) => Document::Array(items),
            None => text(),
        },
        _ => scalar(given).unwrap_or_else(text),
    }
}

/// 0 and 1 are booleans as well.
fn as_boolean(value: Document) -> Document {
    match value {
        Document::Integer(number @ 0..=1) => Document::Boolean(number == 1),
        other => other,
    }
}

/// A text without the quotes around it, of either kind.
fn without_quotes(text: &str) -> String {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner.replace(&format!("\\{quote}"), &quote.to_string());
        }
    }
    text.to_owned()
}

/// A number or a boolean; `None` for what is neither.
fn scalar(word: &str) -> Option<Document> {
    match word {
        "true" | "True" => Some(Document::Boolean(true)),
        "false" | "False" => Some(Document::Boolean(false)),
        _ => word.parse().ok().map(Document::Integer).or_else(|| word.parse().ok().map(Document::Real)),
    }
}

/// The text that stands in quotes at the beginning, and what is behind it.
fn quoted(rest: &str, quote: char) -> Option<(Document, &str)> {
    let (mut text, mut is_escaped) = (String::new(), false);
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if is_escaped => {
                if letter != quote && letter != '\\' {
                    text.push('\\');
                }
                text.push(letter);
                is_escaped = false;
            }
            '\\' => is_escaped = true,
            _ if letter == quote => return Some((Document::Text(text), &rest[at + letter.len_utf8()..])),
            _ => text.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, json: Option<&str>) {
        let found = row(text).map(|items| Document::Array(items).to_json().expect("JSON"));
        assert_eq!(found.map(|json| String::from_utf8(json).expect("text")).as_deref(), json, "{text}");
    }

    #[test]
    fn rows_of_ros_and_of_json_are_read() {
        check("[1, -2,3 ]", Some("[1,-2,3]"));
        check("(1.5, 1e-05)", Some("[1.5,0.00001]"));
        check("(7,)", Some("[7]"));
        check("[]", Some("[]"));
        check("()", Some("[]"));
        check("[true, False]", Some("[true,false]"));
        check(r#"["a, b", 'it\'s', 'c\n']"#, Some(r#"["a, b","it's","c\\n"]"#));
        check("[[1,2],[3,4]]", Some("[[1,2],[3,4]]"));
        for text in ["", "1", "[1, 2", "[1 2]", "[1,,2]", "['a]", "[,1]", "[a]", "(1]"] {
            check(text, None);
        }
    }
}
