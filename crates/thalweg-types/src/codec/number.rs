//! Numbers that Rust has no type for, and the documents of numbers.

use std::ops::RangeInclusive;

use thalweg_cdr::EncodeError;

use super::leaf::needed;
use crate::document::{Document, hexadecimal, octets};

/// A whole number within this range.
pub(super) fn whole(value: &Document, range: RangeInclusive<i128>) -> Result<i128, EncodeError> {
    let number = match value {
        Document::Integer(number) => Some(*number),
        // JSON writers may put a fraction of zero behind whole numbers.
        Document::Real(number) if number.fract() == 0.0 && number.abs() < WHOLE_IN_REAL => Some(*number as i128),
        _ => None,
    };
    let fits = number.filter(|number| range.contains(number));
    fits.ok_or_else(|| needed(&format!("a whole number from {} to {}", range.start(), range.end()), value))
}

/// Any number.
pub(super) fn real(value: &Document) -> Result<f64, EncodeError> {
    match value {
        Document::Real(number) => Ok(*number),
        Document::Integer(number) => Ok(*number as f64),
        Document::Text(text) if ["NaN", "Infinity", "-Infinity"].contains(&text.as_str()) => {
            text.parse().map_err(|_| needed("a number", value))
        }
        _ => Err(needed("a number", value)),
    }
}

/// A `long double` as its bits: of a number, or of their 16 octets as `"0x…"` where no number of 64 bits equals it.
pub(super) fn quadruple(value: &Document) -> Result<u128, EncodeError> {
    let bits = match value {
        Document::Text(text) => octets(text),
        _ => None,
    };
    match bits.map(<[u8; 16]>::try_from) {
        Some(Ok(bytes)) => Ok(u128::from_be_bytes(bytes)),
        _ => real(value).map(widened),
    }
}

/// The document of a `long double`.
pub(super) fn of_quadruple(bits: u128) -> Document {
    let number = narrowed(bits);
    match number {
        Some(number) => Document::Real(number),
        None => Document::Text(hexadecimal(&bits.to_be_bytes())),
    }
}

/// The binary128 that equals a number of 64 bits.
fn widened(number: f64) -> u128 {
    let bits = number.to_bits();
    let sign = u128::from(bits >> 63) << 127;
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & FRACTION_64);
    let of = |exponent: i32, fraction: u64| sign | (exponent as u128) << 112 | u128::from(fraction) << 60;
    match (exponent, fraction) {
        (0, 0) => sign,
        (0x7ff, fraction) => of(0x7fff, fraction),
        (0, fraction) => {
            // A number with leading zeros in 64 bits has none in 128.
            let shift = fraction.leading_zeros() as i32 - 11;
            of(1 - shift + BIAS_DIFFERENCE, fraction << shift & FRACTION_64)
        }
        (exponent, fraction) => of(exponent + BIAS_DIFFERENCE, fraction),
    }
}

/// The number of 64 bits that equals a binary128; `None` if none does.
fn narrowed(bits: u128) -> Option<f64> {
    let sign = ((bits >> 127) as u64) << 63;
    let (exponent, fraction) = ((bits >> 112 & 0x7fff) as i32, bits & FRACTION_128);
    let number = match exponent {
        0x7fff if fraction == 0 => f64::from_bits(sign | 0x7ff << 52),
        0x7fff => f64::NAN,
        0 if fraction == 0 => f64::from_bits(sign),
        _ => {
            let exponent = exponent - BIAS_DIFFERENCE;
            let kept = (fraction >> 60) as u64;
            match exponent {
                1..0x7ff => f64::from_bits(sign | (exponent as u64) << 52 | kept),
                -51..=0 => f64::from_bits(sign | (kept | 1 << 52) >> (1 - exponent)),
                _ => return None,
            }
        }
    };
    (number.is_nan() || widened(number) == bits).then_some(number)
}

const FRACTION_64: u64 = (1 << 52) - 1;
const FRACTION_128: u128 = (1 << 112) - 1;
const BIAS_DIFFERENCE: i32 = 16_383 - 1_023;
/// Real numbers below it that have no fraction are exact.
const WHOLE_IN_REAL: f64 = 9_007_199_254_740_992.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_double_is_the_number_that_it_equals() {
        for number in [0.0, -0.0, 1.0, -2.5, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1e-310, f64::INFINITY, 0.1] {
            let bits = widened(number);
            assert_eq!(narrowed(bits).map(f64::to_bits), Some(number.to_bits()), "{number:e}");
            assert_eq!(quadruple(&of_quadruple(bits)).expect("a number"), bits);
        }
        assert_eq!(widened(1.0), 0x3fff << 112);
    }

    #[test]
    fn a_long_double_that_no_double_equals_keeps_its_bits() {
        for bits in [0x3fff << 112 | 1, 1, 0x7ffe << 112, 0x3c00 << 112 | 1 << 59] {
            let document = of_quadruple(bits);
            assert!(matches!(document, Document::Text(_)), "{document:?}");
            assert_eq!(quadruple(&document).expect("octets"), bits);
        }
    }
}
