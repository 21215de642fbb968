//! The key of a sample alone: what names an instance (RTPS 2.5 §9.6.4.8, §9.6.4.9).

use thalweg_cdr::{ByteOrder, DecodeError, EncodeError, Encoder, Representation};

use super::{SampleType, payload, read, read_outermost, write};
use crate::document::Document;

/// Writes the key members of a sample, of one without key all, as the payload of a change that ends its instance.
///
/// # Errors
/// As [`encode`](super::encode), and when one of them is optional, as none of a key is (DDS-XTypes 1.3 §7.2.2.4.4.4.8).
pub fn encode_key<'a>(
    of: impl Into<SampleType<'a>>,
    value: &Document,
    representation: Representation,
) -> Result<Vec<u8>, EncodeError> {
    let of = of.into();
    payload(of.extensibility(), representation, ByteOrder::Little, |encoder| match of {
        SampleType::Structure(structure) => write::structure(structure, value, encoder, write::Part::Key),
        SampleType::Union(union) => write::union(union, value, encoder, write::Part::Key),
    })
}

/// Reads a payload that holds the key members only.
///
/// # Errors
/// As [`decode`](super::decode), and as [`encode_key`].
pub fn decode_key<'a>(of: impl Into<SampleType<'a>>, payload: &[u8]) -> Result<Document, DecodeError> {
    read_outermost(of.into(), payload, read::Part::KEY)
}

/// The instance of a sample: its key in big-endian PLAIN_CDR2, or the MD5 of that when it can exceed 16 bytes (RTPS 2.5
/// §9.6.4.8); zero for a type without key.
///
/// # Errors
/// When key members are missing, do not fit their types, or have optional members within that would be part of the key.
pub fn key_hash<'a>(of: impl Into<SampleType<'a>>, value: &Document) -> Result<[u8; 16], EncodeError> {
    let of = of.into();
    if !of.is_keyed() {
        return Ok([0; 16]);
    }
    let mut key = Vec::new();
    let encoder = &mut Encoder::new(&mut key, Representation::Xcdr2, ByteOrder::Big);
    let fits = match of {
        SampleType::Structure(structure) => {
            write::structure(structure, value, encoder, write::Part::KeyHash)?;
            structure.key_fits_hash()
        }
        SampleType::Union(union) => {
            write::union(union, value, encoder, write::Part::KeyHash)?;
            union.discriminator.key_fits_hash()
        }
    };
    if !fits {
        return Ok(md5::compute(&key).0);
    }
    let mut hash = [0; 16];
    let room = hash.get_mut(..key.len()).ok_or_else(|| EncodeError::new("the key is longer than its bounds allow"))?;
    room.copy_from_slice(&key);
    Ok(hash)
}
