//! `octet` and `uint8`, which are both `u8` in Rust: an attribute tells which.

use thalweg_cdr::description::{Primitive, Type};

/// What the attribute of a value says of its type: the bound, and whether each `u8` of it is an `octet`.
///
/// # Errors
/// When some of them are, and others are not.
pub(super) fn value_words(of: &Type, bound: Option<usize>) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = bound.map(|bound| format!("max_len = {bound}")).into_iter().collect();
    words.extend(has_octets(of)?.then(|| "octet".to_owned()));
    Ok(words)
}

/// The same as an attribute with a space behind it; nothing where nothing is to be said.
///
/// # Errors
/// As [`value_words`].
pub(super) fn value_attribute(of: &Type, bound: Option<usize>) -> Result<String, String> {
    let words = value_words(of, bound)?;
    Ok(if words.is_empty() { String::new() } else { format!("#[topic({})] ", words.join(", ")) })
}

/// Whether each `u8` of a type is an `octet`.
///
/// # Errors
/// When some of them are, and others are not.
pub(super) fn has_octets(of: &Type) -> Result<bool, String> {
    let has_octets = holds(of, Primitive::Byte);
    if has_octets && holds(of, Primitive::UInt8) {
        return Err("octet and uint8 in one map have no counterpart in Rust".to_owned());
    }
    Ok(has_octets)
}

/// Whether a type is this primitive one, or has elements of it that do not get a type of their own.
fn holds(of: &Type, primitive: Primitive) -> bool {
    let in_element = |element: &Type| !is_bounded(element) && holds(element, primitive);
    match of {
        Type::Primitive(found) => *found == primitive,
        Type::Sequence { element, .. } | Type::Array { element, .. } => in_element(element),
        Type::Map { key, element, .. } => in_element(key.resolved()) || in_element(element),
        _ => false,
    }
}

fn is_bounded(of: &Type) -> bool {
    matches!(of, Type::Sequence { bound: Some(_), .. } | Type::Map { bound: Some(_), .. })
}
