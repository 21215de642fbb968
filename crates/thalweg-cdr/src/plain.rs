//! Structs whose memory is their encoding: copied whole, not member by member.
//!
//! `#[topic(plain)]` asks for it and checks that it holds: the struct is `#[repr(C)]`, has no padding and no invalid
//! bit patterns (`zerocopy`'s traits prove both), and all its members are numbers, arrays of them or plain structs.
//! Then every member sits at a multiple of its size, and so it does in both encodings whenever the struct itself
//! starts aligned; where it does not, members go one by one.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{Decoder, Encoder, Layout};

/// Copies the values to the encoder if wire and memory agree at this place; otherwise writes at most padding.
#[inline]
pub fn encode<T: Layout + IntoBytes + Immutable>(values: &[T], encoder: &mut Encoder<'_>) -> bool {
    let copied = !values.is_empty() && encoder.begins_plain(T::START_ALIGNMENT, align_of::<T>());
    if copied {
        encoder.bytes(values.as_bytes());
    }
    copied
}

/// Copies one value from the decoder if wire and memory agree at this place; `None` if they do not, or if the bytes do
/// not suffice, so that member by member it shows which one is missing.
#[inline]
pub fn decode<T: Layout + FromBytes>(decoder: &mut Decoder<'_>) -> Option<T> {
    if !decoder.begins_plain(T::START_ALIGNMENT, align_of::<T>()) || decoder.remaining() < size_of::<T>() {
        return None;
    }
    decoder.bytes(size_of::<T>(), "a plain struct").ok().and_then(|bytes| T::read_from_bytes(bytes).ok())
}

/// Copies several values from the decoder, under the same conditions as [`decode`].
#[inline]
pub fn decode_elements<T: Layout + FromBytes + IntoBytes>(decoder: &mut Decoder<'_>, count: usize) -> Option<Vec<T>> {
    let mut values = Vec::new();
    decode_elements_into(&mut values, decoder, count).then_some(values)
}

/// As [`decode_elements`], in place of the values that are there; false where it returns `None`.
#[inline]
pub fn decode_elements_into<T: Layout + FromBytes + IntoBytes>(
    values: &mut Vec<T>,
    decoder: &mut Decoder<'_>,
    count: usize,
) -> bool {
    let Some(bytes) = count.checked_mul(size_of::<T>()) else { return false };
    if count == 0 || !decoder.begins_plain(T::START_ALIGNMENT, align_of::<T>()) || decoder.remaining() < bytes {
        return false;
    }
    let Ok(bytes) = decoder.bytes(bytes, "plain structs") else { return false };
    values.truncate(count);
    let has_room = T::extend_vec_zeroed(values, count - values.len()).is_ok();
    if has_room {
        values.as_mut_slice().as_mut_bytes().copy_from_slice(bytes);
    }
    has_room
}
