//! `@min`, `@max` and `@range` of members (IDL 4.2 §8.3.3), which a value has to keep when it is written.
//!
//! A value that was received is delivered as it is: the annotations are no part of its type on the wire, other vendors do not look at
//! them, and a reader that hid such a value would hide the fault of its writer.

use thalweg_cdr::EncodeError;
use thalweg_cdr::description::{Annotations, Primitive, Type};

use super::number::real;
use crate::document::Document;

/// Holds a number against the range of its member; what is no number has none.
pub(super) fn check(of: &Type, annotations: &Annotations, value: &Document) -> Result<(), EncodeError> {
    let Type::Primitive(primitive) = of.resolved() else { return Ok(()) };
    let Some(number) = Number::of(value) else { return Ok(()) };
    // As the member holds it: a bound of 0.1 is no less than the `float` that was read from its own bytes.
    let held = |number: Number| match primitive {
        Primitive::Float32 => Number::Real(f64::from(number.real() as f32)),
        _ => number,
    };
    let (min, max) = (bound(annotations.min.as_deref()), bound(annotations.max.as_deref()));
    let is_within = min.is_none_or(|min| held(number).is_at_least(held(min)))
        && max.is_none_or(|max| held(max).is_at_least(held(number)));
    if is_within {
        return Ok(());
    }
    let (min, max) = (annotations.min.as_deref(), annotations.max.as_deref());
    let rule = match (min, max) {
        (Some(min), Some(max)) => format!("is outside of the range from {min} to {max}"),
        (Some(min), None) => format!("is less than the least value, {min}"),
        (None, max) => format!("is more than the greatest value, {}", max.unwrap_or_default()),
    };
    Err(EncodeError::new(format!("{number} {rule}")))
}

/// A number of a value or of IDL.
#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    fn of(value: &Document) -> Option<Number> {
        match value {
            Document::Integer(number) => Some(Number::Whole(*number)),
            Document::Real(number) => Some(Number::Real(*number)),
            // What is no number is not written, which says so.
            _ => real(value).ok().map(Number::Real),
        }
    }

    /// False also where one of them is no number.
    fn is_at_least(self, other: Number) -> bool {
        match (self, other) {
            (Number::Whole(one), Number::Whole(other)) => one >= other,
            _ => self.real() >= other.real(),
        }
    }

    fn real(self) -> f64 {
        match self {
            Number::Whole(number) => number as f64,
            Number::Real(number) => number,
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Whole(number) => write!(f, "{number}"),
            Number::Real(number) => write!(f, "{number:?}"),
        }
    }
}

/// The number of an annotation; a text that is none is a remark for people.
fn bound(text: Option<&str>) -> Option<Number> {
    let text = text?;
    let real = || text.parse().ok().filter(|number: &f64| !number.is_nan()).map(Number::Real);
    text.parse().ok().map(Number::Whole).or_else(real)
}
