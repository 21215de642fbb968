//! `@default` of members (IDL 4.2 §8.3.2).

use thalweg_cdr::description::{Primitive, Type};

use super::annotations::Applied;
use super::constants::Constant;
use super::text::{escaped, quoted};
use super::{IdlError, Names};
use crate::codec::default_text;
use crate::document::Document;
use crate::row::row;

/// The default of a member of this type, as the model has it.
pub(super) fn default_of(applied: &Applied, of: &Type, names: &Names) -> Result<Option<String>, IdlError> {
    if !applied.is_given("default") {
        return Ok(None);
    }
    let literal = match of.resolved() {
        // Literals are looked for in their enumeration, whatever scope the member is in.
        Type::Enumeration(_) => applied.last_name("default"),
        _ => None,
    };
    let given = match literal {
        Some(literal) => Document::Text(literal),
        None => match applied.value("default", "value", names)? {
            Some(constant) => document(constant, of),
            None => return Err(applied.error("default", "@default needs a value".to_owned())),
        },
    };
    let text = default_text(of, &given);
    text.map(Some).map_err(|error| applied.error("default", format!("@default does not fit its member: {error}")))
}

fn document(constant: Constant, of: &Type) -> Document {
    match (of.resolved(), constant) {
        (Type::Primitive(Primitive::Boolean), Constant::Integer(value @ 0..=1)) => Document::Boolean(value == 1),
        (Type::Primitive(Primitive::Char8 | Primitive::Char16), Constant::Integer(code)) => {
            let character = u32::try_from(code).ok().and_then(char::from_u32);
            character.map_or(Document::Integer(code), |character| Document::Text(character.to_string()))
        }
        (Type::Sequence { .. } | Type::Array { .. }, Constant::Text(text)) => match row(&text) {
            Some(items) => Document::Array(items),
            None => Document::Text(text),
        },
        (_, Constant::Integer(number)) => Document::Integer(number),
        (_, Constant::Real(number)) => Document::Real(number),
        (_, Constant::Text(text)) => Document::Text(text),
    }
}

/// The annotation that gives a member of this type this default.
pub(super) fn annotation(of: &Type, text: &str) -> String {
    let literal = match (of.resolved(), Document::from_json(text.as_bytes())) {
        (_, Ok(Document::Boolean(value))) => if value { "TRUE" } else { "FALSE" }.to_owned(),
        (_, Ok(Document::Integer(number))) => number.to_string(),
        (_, Ok(Document::Real(number))) => format!("{number:?}"),
        (Type::Enumeration(_), Ok(Document::Text(literal))) => escaped(&literal),
        (Type::Primitive(Primitive::Char8 | Primitive::Char16), Ok(Document::Text(character))) => {
            character.chars().next().map(u32::from).unwrap_or_default().to_string()
        }
        (_, Ok(Document::Text(text))) => quoted(&text),
        _ => quoted(text),
    };
    format!("@default(value={literal}) ")
}
