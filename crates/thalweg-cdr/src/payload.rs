//! Whole payloads: the encapsulation header and a sample or key behind it.

use crate::representation::ENCAPSULATION_BYTES;
use crate::{
    ByteOrder, DecodeError, Decoder, Encapsulation, EncodeError, Encoder, Extensibility, Representation, Topic,
};

/// Appends a sample to `out`: encapsulation header and body, little-endian; with XCDR2 padded to a multiple of four
/// bytes, which the header's options tell.
///
/// # Errors
/// When the value exceeds a bound or cannot be held by its wire type; `out` is then as it was.
pub fn encode<T: Topic>(value: &T, representation: Representation, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    append(T::EXTENSIBILITY, representation, out, |encoder| value.encode(encoder))
}

/// Appends the key members of a sample to `out`, as dispose and unregister carry them.
///
/// # Errors
/// As [`encode`]; and when the type has no key.
pub fn encode_key<T: Topic>(value: &T, representation: Representation, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if !T::KEYED {
        return Err(EncodeError::new(format!("{} has no key member", T::TYPE_NAME)));
    }
    append(T::EXTENSIBILITY, representation, out, |encoder| value.encode_key(encoder))
}

/// About how many bytes [`encode`] will append, to choose a buffer: exact for plain types, without the padding between
/// members otherwise. The first elements of a long collection stand for all.
pub fn encoded_size_hint<T: Topic>(value: &T) -> usize {
    value.size_hint().saturating_add(ENCAPSULATION_BYTES)
}

/// Reads a sample: XCDR1 or XCDR2, in either byte order.
///
/// The encapsulation tells whether the outermost type is framed, so that a final type is read from a sender that
/// calls it appendable, and the other way round.
///
/// # Errors
/// When the payload is not a sample of the type; the error names the offset and what should have stood there.
pub fn decode<T: Topic>(payload: &[u8]) -> Result<T, DecodeError> {
    let (mut decoder, encapsulation) = Decoder::of_payload(payload)?;
    decoder.outermost(T::EXTENSIBILITY, encapsulation, T::decode)
}

/// As [`decode`], in place of a sample that is there, whose memory is used again: no allocation where strings and sequences
/// need no more than they had.
///
/// # Errors
/// As [`decode`]; the value is then some value of its type.
pub fn decode_into<T: Topic>(value: &mut T, payload: &[u8]) -> Result<(), DecodeError> {
    let (mut decoder, encapsulation) = Decoder::of_payload(payload)?;
    decoder.outermost(T::EXTENSIBILITY, encapsulation, |decoder| value.decode_into(decoder))
}

/// Reads a payload that holds the key members only; the others take their default.
///
/// # Errors
/// As [`decode`]; and when the type has no key.
pub fn decode_key<T: Topic>(payload: &[u8]) -> Result<T, DecodeError> {
    if !T::KEYED {
        return Err(DecodeError::new(0, format!("no key: {} has no key member", T::TYPE_NAME)));
    }
    let (mut decoder, encapsulation) = Decoder::of_payload(payload)?;
    decoder.set_key_only();
    decoder.outermost(T::EXTENSIBILITY, encapsulation, T::decode_key)
}

fn append(
    extensibility: Extensibility,
    representation: Representation,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = out.len();
    let id = Encapsulation::new(representation, extensibility, ByteOrder::Little).id();
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    if let Err(error) = write(&mut Encoder::new(out, representation, ByteOrder::Little)) {
        out.truncate(start);
        return Err(error);
    }
    if representation == Representation::Xcdr2 {
        let padding = (out.len() - start).wrapping_neg() & 3;
        out.extend_from_slice(&[0; 3][..padding]);
        out[start + ENCAPSULATION_BYTES - 1] = padding as u8;
    }
    Ok(())
}
