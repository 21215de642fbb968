//! Key hashes: sixteen bytes that name an instance (RTPS 2.5 §9.6.4.8).

use std::cell::Cell;

use crate::{DecodeError, Decoder, EncodeError, Encoder, Topic};

/// The key hash of a sample: its key members in big-endian PLAIN_CDR2, or the MD5 of those when they can exceed 16
/// bytes; zero for a type without key.
///
/// The same whatever encoding the sample travels in. Takes no memory once a thread has made a hash.
///
/// # Errors
/// When the key cannot be written: a string over its bound, say.
pub fn key_hash<T: Topic>(value: &T) -> Result<[u8; 16], EncodeError> {
    if !T::KEYED {
        return Ok([0; 16]);
    }
    with_scratch(|scratch| {
        value.encode_key(&mut Encoder::for_key_hash(scratch))?;
        hash(scratch, T::KEY_FITS_HASH).ok_or_else(|| EncodeError::new(format!("expected {OVER_BOUND}")))
    })
}

/// The key hash of an encoded sample (`key_only` false) or key (true), read from its key members alone.
///
/// Bytes behind the last key member are ignored. Takes no memory for keys of numbers, enums, strings and structs
/// of those, once a thread has made a hash.
///
/// # Errors
/// When the key members are not where the type has them, or make a key that should fit into 16 bytes longer.
pub fn key_hash_of_payload<T: Topic>(payload: &[u8], key_only: bool) -> Result<[u8; 16], DecodeError> {
    if !T::KEYED {
        return Ok([0; 16]);
    }
    let (mut decoder, encapsulation) = Decoder::of_payload(payload)?;
    if key_only {
        decoder.set_key_only();
    }
    with_scratch(|scratch| {
        let mut encoder = Encoder::for_key_hash(scratch);
        decoder.outermost(T::EXTENSIBILITY, encapsulation, |decoder| T::transfer_key(decoder, &mut encoder))?;
        hash(scratch, T::KEY_FITS_HASH).ok_or_else(|| decoder.error(OVER_BOUND))
    })
}

/// What stands where a key has a string or sequence over its bound.
const OVER_BOUND: &str = "a key of at most 16 bytes, as the bounds of its members allow";

/// `None` for a key that would fit if its members kept their bounds.
fn hash(key: &[u8], fits: bool) -> Option<[u8; 16]> {
    if !fits {
        return Some(md5::compute(key).0);
    }
    let mut hash = [0; 16];
    hash.get_mut(..key.len())?.copy_from_slice(key);
    Some(hash)
}

fn with_scratch<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    // A thread that is ending has none to give, and none to keep.
    let mut scratch = SCRATCH.try_with(Cell::take).unwrap_or_default();
    scratch.clear();
    let result = work(&mut scratch);
    if scratch.capacity() <= SCRATCH_BYTES_MAX {
        let _ = SCRATCH.try_with(|cell| cell.set(scratch));
    }
    result
}

/// Bytes that a thread keeps for its next key hash; chosen by us, to be larger than any sensible key.
const SCRATCH_BYTES_MAX: usize = 4096;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}
