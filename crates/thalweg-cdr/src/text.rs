//! Strings.

use std::fmt;

use crate::codec::{Bounded, BoundedKeySize};
use crate::description::Type;
use crate::{Decode, DecodeError, Decoder, Encode, EncodeError, Encoder, KeySize, Layout, LengthCode};

const UNBOUNDED: usize = u32::MAX as usize;

impl Layout for String {
    const LENGTH_CODE: LengthCode = LengthCode::OwnBytes;
    // Some send the empty string as length 0, without the terminator.
    const MIN_BYTES: usize = 4;

    fn description() -> Option<Type> {
        Some(Type::String { bound: None })
    }
}

/// IDL's `string`: UTF-8 behind its length in bytes and before a NUL, which the length counts.
///
/// A NUL within the text is refused in both directions: IDL has none in strings, and other languages would stop there.
impl Encode for String {
    #[inline]
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encode_str(self, encoder)
    }

    #[inline]
    fn size_hint(&self) -> usize {
        4 + self.len() + 1
    }

    fn field(&self, path: &[crate::FieldStep]) -> Option<crate::FieldValue<'_>> {
        path.is_empty().then_some(crate::FieldValue::Text(self))
    }

    fn field_kind(path: &[crate::FieldStep]) -> Option<crate::FieldKind> {
        path.is_empty().then_some(crate::FieldKind::Text)
    }
}

impl Decode for String {
    #[inline]
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decode_str(decoder, UNBOUNDED).map(str::to_owned)
    }

    #[inline]
    fn decode_into(&mut self, decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.decode_bounded_into(decoder, UNBOUNDED)
    }

    fn default_value() -> Self {
        String::new()
    }

    #[inline]
    fn skip(decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
        let length = decoder.length(1)?;
        decoder.bytes(length, "string").map(drop)
    }

    #[inline]
    fn transfer_key(decoder: &mut Decoder<'_>, encoder: &mut Encoder<'_>) -> Result<(), DecodeError> {
        Self::transfer_key_bounded(decoder, encoder, UNBOUNDED)
    }
}

impl Bounded for String {
    const BOUNDED_KEY_SIZE: BoundedKeySize =
        BoundedKeySize { prefix: KeySize::number(4), element: KeySize::number(1), extra: 1 };

    #[inline]
    fn length(&self) -> usize {
        self.len()
    }

    #[inline]
    fn decode_bounded(decoder: &mut Decoder<'_>, max_len: usize) -> Result<Self, DecodeError> {
        decode_str(decoder, max_len).map(str::to_owned)
    }

    #[inline]
    fn decode_bounded_into(&mut self, decoder: &mut Decoder<'_>, max_len: usize) -> Result<(), DecodeError> {
        let text = decode_str(decoder, max_len)?;
        self.clear();
        self.push_str(text);
        Ok(())
    }

    #[inline]
    fn transfer_key_bounded(
        decoder: &mut Decoder<'_>,
        encoder: &mut Encoder<'_>,
        max_len: usize,
    ) -> Result<(), DecodeError> {
        let text = decode_str(decoder, max_len)?;
        encode_str(text, encoder).map_err(|error| decoder.error(format!("a key that can be written, but {error}")))
    }
}

fn encode_str(text: &str, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
    if text.as_bytes().contains(&0) {
        return Err(EncodeError::new("the string contains a NUL, which ends strings on the wire"));
    }
    encoder.length(text.len() + 1)?;
    encoder.reserve(text.len() + 1);
    encoder.bytes(text.as_bytes());
    encoder.bytes(&[0]);
    Ok(())
}

fn decode_str<'a>(decoder: &mut Decoder<'a>, max_len: usize) -> Result<&'a str, DecodeError> {
    decoder.align(4);
    let at = decoder.offset();
    let length = decoder.length(1)?;
    let start = decoder.offset();
    let text = match decoder.bytes(length, "string")? {
        [] => return Ok(""),
        [text @ .., 0] => text,
        _ => return Err(DecodeError::new(start + length - 1, "NUL at the end of the string")),
    };
    if text.len() > max_len {
        return Err(DecodeError::new(at, format!("a string of at most {max_len} bytes, not {}", text.len())));
    }
    if let Some(nul) = text.iter().position(|byte| *byte == 0) {
        return Err(DecodeError::new(start + nul, "no NUL within the string"));
    }
    std::str::from_utf8(text).map_err(|error| DecodeError::new(start + error.valid_up_to(), "UTF-8"))
}

/// IDL's `wstring`: UTF-16 behind its length in bytes, without terminator (DDS-XTypes 1.3 §7.4.4.2).
///
/// Rust has no use for it; it exists to exchange data with types that have a `wstring` in their IDL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WString(pub String);

impl fmt::Display for WString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Layout for WString {
    const LENGTH_CODE: LengthCode = LengthCode::OwnBytes;
    const MIN_BYTES: usize = 4;

    fn description() -> Option<Type> {
        Some(Type::WString { bound: None })
    }
}

impl Encode for WString {
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encoder.length(self.length() * 2)?;
        self.0.encode_utf16().for_each(|unit| encoder.number(unit.to_ne_bytes()));
        Ok(())
    }

    fn size_hint(&self) -> usize {
        4 + self.0.len() * 2
    }
}

impl Decode for WString {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Self::decode_bounded(decoder, UNBOUNDED)
    }

    fn default_value() -> Self {
        Self::default()
    }

    fn skip(decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
        let length = decoder.length(1)?;
        decoder.bytes(length, "wstring").map(drop)
    }
}

impl Bounded for WString {
    const BOUNDED_KEY_SIZE: BoundedKeySize =
        BoundedKeySize { prefix: KeySize::number(4), element: KeySize::number(2), extra: 0 };

    /// Counts UTF-16 units, as the bound does.
    fn length(&self) -> usize {
        self.0.encode_utf16().count()
    }

    fn decode_bounded(decoder: &mut Decoder<'_>, max_len: usize) -> Result<Self, DecodeError> {
        decoder.align(4);
        let at = decoder.offset();
        let length = decoder.length(1)?;
        if length % 2 != 0 || length / 2 > max_len {
            return Err(DecodeError::new(at, format!("an even number of bytes for at most {max_len} UTF-16 units")));
        }
        let start = decoder.offset();
        let units = u16::decode_elements(decoder, length / 2)?;
        String::from_utf16(&units).map(WString).map_err(|_| DecodeError::new(start, "UTF-16"))
    }
}
