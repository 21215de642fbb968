//! Documents as samples of types that are known at run time only, and back (DDS-XTypes 1.3 §7.4, §7.6.8).

mod complete;
mod defaults;
mod key;
mod leaf;
mod number;
mod range;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::sync::Arc;

use thalweg_cdr::description::{Structure, Type, Union};
use thalweg_cdr::{
    ByteOrder, DecodeError, Decoder, Encapsulation, EncodeError, Encoder, Extensibility, Representation,
};

use crate::document::Document;
pub use complete::completed;
pub(crate) use complete::default_leaves;
pub(crate) use defaults::{default_text, member_default};
pub use key::{decode_key, encode_key, key_hash};
pub use write::DISCRIMINATOR;

/// A type that samples can have.
#[derive(Clone, Copy, Debug)]
pub enum SampleType<'a> {
    /// A structure.
    Structure(&'a Structure),
    /// A union.
    Union(&'a Union),
}

impl<'a> SampleType<'a> {
    /// The structure or union that a type is or names.
    pub fn of(found: &'a Type) -> Option<SampleType<'a>> {
        match found.resolved() {
            Type::Structure(structure) => Some(SampleType::Structure(structure)),
            Type::Union(union) => Some(SampleType::Union(union)),
            _ => None,
        }
    }

    /// Whether samples of it belong to instances.
    pub fn is_keyed(self) -> bool {
        match self {
            SampleType::Structure(structure) => structure.is_keyed(),
            SampleType::Union(union) => union.is_keyed,
        }
    }

    /// Permitted differences of its versions.
    pub fn extensibility(self) -> Extensibility {
        match self {
            SampleType::Structure(structure) => structure.extensibility,
            SampleType::Union(union) => union.extensibility,
        }
    }

    /// Its name with its modules.
    pub fn name(self) -> &'a str {
        match self {
            SampleType::Structure(structure) => &structure.name,
            SampleType::Union(union) => &union.name,
        }
    }
}

impl<'a> From<&'a Structure> for SampleType<'a> {
    fn from(structure: &'a Structure) -> SampleType<'a> {
        SampleType::Structure(structure)
    }
}

impl<'a> From<&'a Arc<Structure>> for SampleType<'a> {
    fn from(structure: &'a Arc<Structure>) -> SampleType<'a> {
        SampleType::Structure(structure)
    }
}

/// Writes a sample with its encapsulation header, little-endian.
///
/// Members that are missing in `value` are an error unless they are optional, and so are members that the type has not;
/// [`completed`] fills them in.
///
/// # Errors
/// The first member that does not fit its type, and why.
pub fn encode<'a>(
    of: impl Into<SampleType<'a>>,
    value: &Document,
    representation: Representation,
) -> Result<Vec<u8>, EncodeError> {
    encode_in(of, value, representation, ByteOrder::Little)
}

/// As [`encode`], in this byte order.
///
/// # Errors
/// As [`encode`].
pub fn encode_in<'a>(
    of: impl Into<SampleType<'a>>,
    value: &Document,
    representation: Representation,
    byte_order: ByteOrder,
) -> Result<Vec<u8>, EncodeError> {
    let of = of.into();
    payload(of.extensibility(), representation, byte_order, |encoder| match of {
        SampleType::Structure(structure) => write::structure(structure, value, encoder, write::Part::All),
        SampleType::Union(union) => write::union(union, value, encoder, write::Part::All),
    })
}

/// Reads a sample: XCDR1 or XCDR2, in either byte order.
///
/// # Errors
/// The place at which the payload is not a sample of the type, and the expected content.
pub fn decode<'a>(of: impl Into<SampleType<'a>>, payload: &[u8]) -> Result<Document, DecodeError> {
    read_outermost(of.into(), payload, read::Part::ALL)
}

/// A payload with its encapsulation header, padded as XCDR2 wants it.
fn payload(
    extensibility: Extensibility,
    representation: Representation,
    byte_order: ByteOrder,
    write: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    let id = Encapsulation::new(representation, extensibility, byte_order).id();
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    write(&mut Encoder::new(&mut out, representation, byte_order))?;
    if representation == Representation::Xcdr2 {
        let padding = out.len().wrapping_neg() & 3;
        out.resize(out.len() + padding, 0);
        out[3] = padding as u8;
    }
    Ok(out)
}

fn read_outermost(of: SampleType<'_>, payload: &[u8], part: read::Part) -> Result<Document, DecodeError> {
    use Extensibility::{Appendable, Final, Mutable};
    let (mut decoder, encapsulation) = Decoder::of_payload(payload)?;
    let members = |decoder: &mut Decoder<'_>| match of {
        SampleType::Structure(structure) => read::members(structure, decoder, part),
        SampleType::Union(union) => read::label_and_case(union, decoder, part),
    };
    // The encapsulation gives the framing of the outermost type, which may differ from that of its own extensibility.
    match (of.extensibility(), encapsulation.extensibility) {
        (Mutable, Mutable) => match of {
            SampleType::Structure(structure) => read::structure(structure, &mut decoder, part),
            SampleType::Union(union) => read::union(union, &mut decoder, part),
        },
        (Mutable, _) => Err(DecodeError::new(0, "an encapsulation with parameter list, for a mutable type")),
        (_, Mutable) => Err(DecodeError::new(0, "an encapsulation without parameter list, for this type")),
        (_, Final) => members(&mut decoder),
        (_, Appendable) => decoder.appendable_type(members),
    }
}
