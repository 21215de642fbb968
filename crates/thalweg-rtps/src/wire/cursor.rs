//! A checked position in a byte slice.

use super::{Endianness, WireError};
use crate::types::{EntityId, GuidPrefix, Locator, SequenceNumber};

/// Reads fixed-size values one after the other; each read checks the length and advances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
    /// Name of position 0 of `bytes` in errors.
    base: usize,
    endianness: Endianness,
}

impl<'a> Cursor<'a> {
    /// Starts at the first of `bytes`; errors count from `base`.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], base: usize, endianness: Endianness) -> Cursor<'a> {
        Cursor { bytes, position: 0, base, endianness }
    }

    #[inline]
    pub(crate) fn endianness(&self) -> Endianness {
        self.endianness
    }

    /// Position within the slice.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Position as errors tell it.
    #[inline]
    pub(crate) fn offset(&self) -> usize {
        self.base + self.position
    }

    #[inline]
    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// All bytes from here to the end.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    #[inline]
    pub(crate) fn error(&self, expected: &'static str) -> WireError {
        WireError { offset: self.offset(), expected }
    }

    #[inline]
    pub(crate) fn bytes(&mut self, count: usize, expected: &'static str) -> Result<&'a [u8], WireError> {
        let taken = self.rest().get(..count).ok_or(self.error(expected))?;
        self.position += count;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], WireError> {
        let taken = self.rest().first_chunk::<N>().ok_or(self.error(expected))?;
        self.position += N;
        Ok(*taken)
    }

    #[inline]
    pub(crate) fn u16(&mut self, expected: &'static str) -> Result<u16, WireError> {
        let bytes = self.array(expected)?;
        Ok(match self.endianness {
            Endianness::Big => u16::from_be_bytes(bytes),
            Endianness::Little => u16::from_le_bytes(bytes),
        })
    }

    #[inline]
    pub(crate) fn u32(&mut self, expected: &'static str) -> Result<u32, WireError> {
        let bytes = self.array(expected)?;
        Ok(match self.endianness {
            Endianness::Big => u32::from_be_bytes(bytes),
            Endianness::Little => u32::from_le_bytes(bytes),
        })
    }

    #[inline]
    pub(crate) fn i32(&mut self, expected: &'static str) -> Result<i32, WireError> {
        self.u32(expected).map(u32::cast_signed)
    }

    #[inline]
    pub(crate) fn entity_id(&mut self, expected: &'static str) -> Result<EntityId, WireError> {
        self.array(expected).map(EntityId)
    }

    #[inline]
    pub(crate) fn guid_prefix(&mut self) -> Result<GuidPrefix, WireError> {
        self.array("guid prefix").map(GuidPrefix)
    }

    /// Any 64-bit number: high word first, whatever the byte order (RTPS 2.5 §9.3.2).
    #[inline]
    pub(crate) fn sequence_number(&mut self) -> Result<SequenceNumber, WireError> {
        let high = self.i32("sequence number")?;
        let low = self.u32("sequence number")?;
        Ok(SequenceNumber((i64::from(high) << 32) | i64::from(low)))
    }

    /// A number that names a sample: at least 1.
    #[inline]
    pub(crate) fn positive_sequence_number(&mut self) -> Result<SequenceNumber, WireError> {
        let error = self.error("sequence number of at least 1");
        let number = self.sequence_number()?;
        if number < SequenceNumber::FIRST { Err(error) } else { Ok(number) }
    }

    pub(crate) fn locator(&mut self) -> Result<Locator, WireError> {
        let kind = self.i32("locator kind")?;
        let port = self.u32("locator port")?;
        let address = self.array("locator address")?;
        Ok(Locator { kind, port, address })
    }
}
