//! Whether values without parts of their own fit: texts, collections by their bounds, enumerations, bit masks.

use std::collections::BTreeMap;

use thalweg_cdr::Extensibility;
use thalweg_cdr::description::{Bitmask, Enumeration, Literal, Primitive};

use super::places::hash_of;
use super::{Fits, Keys, differ, same_extensibility};

pub(super) fn bounds(writer: Option<usize>, reader: Option<usize>, is_permitted: bool, what: &str) -> Fits {
    let most = |bound: Option<usize>| bound.unwrap_or(usize::MAX);
    if is_permitted || most(reader) >= most(writer) {
        return Ok(());
    }
    let text = |bound: Option<usize>| bound.map_or("no bound".to_owned(), |bound| format!("a bound of {bound}"));
    differ(format!("{what} with {} does not fit into one with {}", text(writer), text(reader)))
}

pub(super) fn enumerations(writer: &Enumeration, reader: &Enumeration, keys: Keys) -> Fits {
    if writer.bit_bound != reader.bit_bound {
        return differ(format!("an enumeration of {} bits is not one of {}", writer.bit_bound, reader.bit_bound));
    }
    if let (Some(one), Some(other)) = (writer.extensibility, reader.extensibility) {
        same_extensibility(one, other)?;
    }
    // Of one that does not tell, the other one's is taken.
    let is_final = writer.extensibility.or(reader.extensibility) == Some(Extensibility::Final);
    let mut common = 0;
    let places = |key: &dyn Fn(&Literal) -> i64| -> BTreeMap<i64, usize> {
        reader.literals.iter().enumerate().rev().map(|(place, literal)| (key(literal), place)).collect()
    };
    let hash = |literal: &Literal| i64::from(u32::from_be_bytes(hash_of(&literal.name)));
    let (values, names) = (places(&|literal| literal.value.into()), places(&hash));
    for literal in &writer.literals {
        match (values.get(&literal.value.into()), names.get(&hash(literal))) {
            (Some(one), Some(other)) if one == other => common += 1,
            (None, None) if !is_final && keys != Keys::Alone => {}
            (None, None) => return differ(format!("the reader lacks the literal {}", literal.name)),
            _ => return differ(format!("the literal {} has another value or name at the reader", literal.name)),
        }
    }
    if is_final && common != reader.literals.len() {
        return differ("the writer lacks a literal of the reader");
    }
    if common == 0 { differ("they have no literal in common") } else { Ok(()) }
}

pub(super) fn holds(number: Primitive, mask: &Bitmask) -> bool {
    matches!(
        (number, mask.holder_bytes()),
        (Primitive::UInt8, 1) | (Primitive::UInt16, 2) | (Primitive::UInt32, 4) | (Primitive::UInt64, 8)
    )
}
