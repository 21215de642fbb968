//! Defaults that members have by their definition, which go before those of their types (DDS-XTypes 1.3 §7.2.2.4.4.4.7).

use thalweg_cdr::description::{Annotations, Type};
use thalweg_cdr::{ByteOrder, Decoder, EncodeError, Encoder, Representation};

use super::read::default_value;
use super::{read, write};
use crate::document::Document;

/// The value of a member where none is given, as one that is read: that of its definition, else that of its type.
pub(crate) fn member_default(of: &Type, annotations: &Annotations) -> Document {
    let given = annotations.default.as_deref().and_then(|text| Document::from_json(text.as_bytes()).ok());
    let value = given.and_then(|given| as_read(of, &given).ok());
    value.unwrap_or_else(|| default_value(of))
}

/// What [`Annotations::default`] has of a value for a member of this type.
///
/// # Errors
/// When the value does not fit, or the type is one for which IDL and ROS 2 have no defaults: a structure, union, bit set or map.
pub(crate) fn default_text(of: &Type, given: &Document) -> Result<String, EncodeError> {
    as_read(of, given)?;
    let json = given.to_json().map_err(|error| EncodeError::new(error.to_string()))?;
    Ok(String::from_utf8_lossy(&json).into_owned())
}

/// The value as it comes out of a sample: each number in the type of its member.
fn as_read(of: &Type, given: &Document) -> Result<Document, EncodeError> {
    if !has_literals(of) {
        return Err(EncodeError::new(
            "only numbers, booleans, texts, enumerations, bit masks and rows of them have one",
        ));
    }
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, Representation::Xcdr2, ByteOrder::Little);
    write::write_value(of, given, &mut encoder, write::Part::All)?;
    let mut decoder = Decoder::new(&bytes, Representation::Xcdr2, ByteOrder::Little);
    read::read_value(of, &mut decoder, read::Part::ALL).map_err(|error| EncodeError::new(error.to_string()))
}

fn has_literals(of: &Type) -> bool {
    match of.resolved() {
        Type::Primitive(_) | Type::String { .. } | Type::WString { .. } | Type::Enumeration(_) | Type::Bitmask(_) => {
            true
        }
        Type::Sequence { element, .. } | Type::Array { element, .. } => has_literals(element),
        _ => false,
    }
}
