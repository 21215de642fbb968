//! Properties of a type's wire form that do not depend on the value.

use crate::Representation;
use crate::description::Type;

/// Properties of a type's wire form that are the same for all its values.
///
/// A supertrait of [`Encode`](crate::Encode) and [`Decode`](crate::Decode). Its defaults describe a type about which
/// nothing is known, so that a hand-written implementation starts as `impl Layout for MyType {}`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type that DDS knows",
    label = "has no CDR encoding",
    note = "derive `Topic` for your own types; `Option` is for members of a struct only; there is no `usize`, `u128` or `&str` on the wire"
)]
pub trait Layout {
    /// Whether the type is one of IDL's primitive types: collections of those have no length header in XCDR2.
    const PRIMITIVE: bool = false;
    /// Whether the type is an array: arrays within arrays are the dimensions of one, as in IDL.
    const ARRAY: bool = false;
    /// Whether the innermost element is primitive, arrays looked through: that of `[[i32; 4]; 3]` is.
    const ELEMENT_PRIMITIVE: bool = Self::PRIMITIVE;
    /// The key size of the type as one dimension of an array, which has no frame of its own.
    const DIMENSION_KEY_SIZE: KeySize = Self::KEY_SIZE;
    /// Whether memory and wire agree byte for byte on a machine of the wire's byte order (numbers and plain structs).
    const PLAIN: bool = false;
    /// The alignment of the first number in the type, which decides the padding in front of it.
    const START_ALIGNMENT: usize = 1;
    /// Encoding of a member's length in the header of a mutable type's member.
    const LENGTH_CODE: LengthCode = LengthCode::Stated;
    /// The largest size of the type as a key: it decides whether a key hash is the key itself or its MD5.
    const KEY_SIZE: KeySize = KeySize::OVER;
    /// Whether an optional member is within the type where it is part of a key: no key may have one (DDS-XTypes 1.3 §7.2.2.4.4.4.8).
    const KEY_HAS_OPTIONAL: bool = false;
    /// The fewest bytes a value takes: a claimed count of elements is checked against the remaining input.
    const MIN_BYTES: usize = 0;

    /// The type as data, which others are told of; `None` for a type that cannot be described.
    fn description() -> Option<Type> {
        None
    }
}

/// Encoding of a member's length in an XCDR2 member header (DDS-XTypes 1.3 §7.4.3.4.2). The values are the codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum LengthCode {
    /// One byte.
    One = 0,
    /// Two bytes.
    Two = 1,
    /// Four bytes.
    Four = 2,
    /// Eight bytes.
    Eight = 3,
    /// As many bytes as a number between the header and the member says.
    Stated = 4,
    /// The member starts with the count of the bytes that follow it.
    OwnBytes = 5,
    /// The member starts with the count of the 4-byte elements that follow it.
    OwnFours = 6,
    /// The member starts with the count of the 8-byte elements that follow it.
    OwnEights = 7,
}

impl LengthCode {
    /// The code of a number of 1, 2, 4 or 8 bytes.
    pub const fn of_number(size_bytes: usize) -> Self {
        match size_bytes {
            1 => LengthCode::One,
            2 => LengthCode::Two,
            4 => LengthCode::Four,
            8 => LengthCode::Eight,
            _ => LengthCode::Stated,
        }
    }
}

/// The largest size of a type in the encoding that key hashes are made of (PLAIN_CDR2), counted up to 16 bytes.
///
/// A key that can never exceed 16 bytes is its own hash, padded with zeros; any other is hashed with MD5, also when the
/// key at hand is short (RTPS 2.5 §9.6.4.8). The size depends on where the value starts, hence one for each offset
/// modulo 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySize([u8; 4]);

const OVER_BYTES: u8 = 17;
const MAX_ALIGNMENT: usize = Representation::Xcdr2.max_alignment();

impl KeySize {
    /// No bytes.
    pub const ZERO: KeySize = KeySize([0; 4]);
    /// More than 16 bytes, or without a bound.
    pub const OVER: KeySize = KeySize([OVER_BYTES; 4]);

    /// A number of 1, 2, 4 or 8 bytes.
    pub const fn number(size_bytes: usize) -> Self {
        let alignment = if size_bytes < MAX_ALIGNMENT { size_bytes } else { MAX_ALIGNMENT };
        let mut sizes = [0; 4];
        let mut start = 0;
        while start < 4 {
            let padding = (alignment - start % alignment) % alignment;
            sizes[start] = cap(padding + size_bytes);
            start += 1;
        }
        KeySize(sizes)
    }

    /// This, and then the other.
    pub const fn then(self, next: KeySize) -> Self {
        let mut sizes = [0; 4];
        let mut start = 0;
        while start < 4 {
            let first = self.0[start] as usize;
            sizes[start] = cap(first + next.0[(start + first) % 4] as usize);
            start += 1;
        }
        KeySize(sizes)
    }

    /// As many of this in a row.
    pub const fn times(self, count: usize) -> Self {
        let mut total = KeySize::ZERO;
        let mut done = 0;
        while done < count && !total.is_over() && !self.is_zero() {
            total = total.then(self);
            done += 1;
        }
        total
    }

    /// The larger of the two at each start: one of several branches.
    pub const fn or(self, other: KeySize) -> Self {
        let mut sizes = self.0;
        let mut start = 0;
        while start < 4 {
            if other.0[start] > sizes[start] {
                sizes[start] = other.0[start];
            }
            start += 1;
        }
        KeySize(sizes)
    }

    /// Whether a key of this size always fits into the 16 bytes of a key hash.
    pub const fn fits_key_hash(self) -> bool {
        self.0[0] < OVER_BYTES
    }

    const fn is_over(self) -> bool {
        self.0[0] == OVER_BYTES && self.0[1] == OVER_BYTES && self.0[2] == OVER_BYTES && self.0[3] == OVER_BYTES
    }

    const fn is_zero(self) -> bool {
        self.0[0] == 0 && self.0[1] == 0 && self.0[2] == 0 && self.0[3] == 0
    }
}

const fn cap(size: usize) -> u8 {
    if size < OVER_BYTES as usize { size as u8 } else { OVER_BYTES }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_padded_from_where_it_starts() {
        assert_eq!(KeySize::number(1), KeySize([1, 1, 1, 1]));
        assert_eq!(KeySize::number(4), KeySize([4, 7, 6, 5]));
        assert_eq!(KeySize::number(8), KeySize([8, 11, 10, 9]), "8-byte numbers align to 4");
    }

    #[test]
    fn sixteen_bytes_fit_and_seventeen_do_not() {
        let string_of = |bound: usize| KeySize::number(4).then(KeySize::number(1).times(bound + 1));
        assert!(string_of(11).fits_key_hash());
        assert!(!string_of(12).fits_key_hash());
        assert!(KeySize::number(1).then(KeySize::number(4)).then(KeySize::number(8)).fits_key_hash());
        assert!(!KeySize::number(4).times(4).then(KeySize::number(1)).fits_key_hash());
    }

    #[test]
    fn huge_counts_end_early() {
        assert_eq!(KeySize::ZERO.times(usize::MAX), KeySize::ZERO);
        assert_eq!(KeySize::number(1).times(usize::MAX), KeySize::OVER);
    }

    #[test]
    fn the_largest_branch_counts() {
        assert_eq!(KeySize::number(1).or(KeySize::number(8)), KeySize::number(8));
    }
}
