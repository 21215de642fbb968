//! Parameter lists as they are written.

use std::time::Duration;

use crate::time::{Rounding, duration_to_wire};
use crate::types::{Guid, Locator, SequenceNumber};

/// Appends a parameter list to a buffer, little endian.
#[derive(Debug)]
pub struct ParameterWriter<'b> {
    out: &'b mut Vec<u8>,
}

impl<'b> ParameterWriter<'b> {
    /// Starts a bare list, as inline QoS has it.
    pub fn new(out: &'b mut Vec<u8>) -> ParameterWriter<'b> {
        ParameterWriter { out }
    }

    /// Starts a list behind the encapsulation header of a discovery payload (PL_CDR_LE).
    pub fn encapsulated(out: &'b mut Vec<u8>) -> ParameterWriter<'b> {
        out.extend_from_slice(&[0, 3, 0, 0]);
        ParameterWriter::new(out)
    }

    /// Appends a parameter whose value is what `fill` writes, padded to 4 bytes.
    ///
    /// A value above [`VALUE_MAX_BYTES`] cannot be expressed: the parameter is left out. Callers check what users give them.
    pub fn put(&mut self, id: u16, fill: impl FnOnce(&mut ValueWriter<'_>)) {
        let head = self.out.len();
        self.out.extend_from_slice(&id.to_le_bytes());
        self.out.extend_from_slice(&[0, 0]);
        let start = self.out.len();
        let mut value = ValueWriter { out: self.out, start };
        fill(&mut value);
        value.align();
        match u16::try_from(self.out.len() - start) {
            Ok(length) => self.out[head + 2..start].copy_from_slice(&length.to_le_bytes()),
            Err(_) => self.out.truncate(head),
        }
    }

    /// Appends a parameter that is a duration.
    pub fn put_duration(&mut self, id: u16, duration: Duration) {
        self.put(id, |value| value.duration(duration));
    }

    /// Appends one parameter for each locator.
    pub fn put_locators(&mut self, id: u16, locators: &[Locator]) {
        for locator in locators {
            self.put(id, |value| value.locator(locator));
        }
    }

    /// Appends a parameter of raw bytes behind their count, unless there are none.
    pub fn put_octets(&mut self, id: u16, octets: &[u8]) {
        if !octets.is_empty() {
            self.put(id, |value| value.octets(octets));
        }
    }

    /// Appends a parameter that is a string, even an empty one.
    pub fn put_string(&mut self, id: u16, text: &str) {
        self.put(id, |value| value.string(text));
    }

    /// Appends the sentinel.
    pub fn finish(self) {
        self.out.extend_from_slice(&[1, 0, 0, 0]);
    }
}

/// Appends the fields of one parameter's value, little endian, with the alignment of XCDR1.
#[derive(Debug)]
pub struct ValueWriter<'b> {
    out: &'b mut Vec<u8>,
    start: usize,
}

impl ValueWriter<'_> {
    fn align(&mut self) {
        let length = (self.out.len() - self.start).next_multiple_of(4);
        self.out.resize(self.start + length, 0);
    }

    /// Appends bytes as they are.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Appends one byte, 0 or 1.
    pub fn boolean(&mut self, value: bool) {
        self.out.push(u8::from(value));
    }

    /// Appends 16 bits, without padding in front.
    pub fn u16(&mut self, value: u16) {
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends 32 bits.
    pub fn u32(&mut self, value: u32) {
        self.align();
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends 32 bits.
    pub fn i32(&mut self, value: i32) {
        self.u32(value.cast_unsigned());
    }

    /// Appends bytes behind their count.
    pub fn octets(&mut self, octets: &[u8]) {
        self.u32(octets.len() as u32);
        self.out.extend_from_slice(octets);
    }

    /// Appends a string with its length and final NUL; cut off at a NUL within, which the format cannot carry.
    pub fn string(&mut self, text: &str) {
        let text = text.split('\0').next().unwrap_or_default();
        self.u32(text.len() as u32 + 1);
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(0);
    }

    /// Appends seconds and fraction, rounded down where there is no such fraction.
    pub fn duration(&mut self, duration: Duration) {
        self.rounded_duration(duration, Rounding::Down);
    }

    /// Appends seconds and fraction.
    pub fn rounded_duration(&mut self, duration: Duration, rounding: Rounding) {
        let (seconds, fraction) = duration_to_wire(duration, rounding);
        self.i32(seconds);
        self.u32(fraction);
    }

    /// Appends kind, port and address.
    pub fn locator(&mut self, locator: &Locator) {
        self.i32(locator.kind);
        self.u32(locator.port);
        self.out.extend_from_slice(&locator.address);
    }

    /// Appends the high and the low half of a number.
    pub fn sequence_number(&mut self, SequenceNumber(number): SequenceNumber) {
        self.i32((number >> 32) as i32);
        self.u32(number as u32);
    }

    /// Appends the sixteen bytes of a GUID.
    pub fn guid(&mut self, guid: Guid) {
        self.out.extend_from_slice(&guid.to_bytes());
    }
}

/// Longest value of a parameter, in bytes: the largest multiple of four that its 16-bit length can tell.
pub const VALUE_MAX_BYTES: usize = 65_532;
