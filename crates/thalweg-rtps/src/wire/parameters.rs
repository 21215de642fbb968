//! Parameter lists: (id, length, value) triples that end with a sentinel (RTPS 2.5 §9.4.2.11).
//!
//! Inline QoS is a bare list in the submessage's byte order. A discovery payload puts an encapsulation header in front of it
//! that tells the byte order.

use std::time::Duration;

use super::cursor::Cursor;
use super::{Endianness, WireError, pid};
use crate::time::{duration_from_wire, duration_to_wire};
use crate::types::{Guid, KeyHash, Locator, SampleIdentity, SequenceNumber, VendorId};

/// Flag of [`pid::STATUS_INFO`]: the instance is disposed.
pub const STATUS_DISPOSED: u32 = 1;
/// Flag of [`pid::STATUS_INFO`]: the writer unregisters the instance.
pub const STATUS_UNREGISTERED: u32 = 2;

/// A list of parameters, read while it is iterated over.
#[derive(Clone, Copy, Debug)]
pub struct ParameterList<'a> {
    cursor: Cursor<'a>,
}

impl<'a> ParameterList<'a> {
    /// The list at the start of `bytes`. Errors count from the first of them.
    pub fn new(bytes: &'a [u8], endianness: Endianness) -> ParameterList<'a> {
        ParameterList { cursor: Cursor::new(bytes, 0, endianness) }
    }

    /// The list in a discovery payload, whose encapsulation header must be PL_CDR_BE or PL_CDR_LE (RTPS 2.5 §10.2).
    ///
    /// # Errors
    /// When the header is missing or names another encapsulation.
    pub fn from_payload(payload: &'a [u8]) -> Result<ParameterList<'a>, WireError> {
        let error = WireError { offset: 0, expected: "encapsulation PL_CDR_BE or PL_CDR_LE" };
        let (header, list) = payload.split_first_chunk::<ENCAPSULATION_LEN>().ok_or(error)?;
        let endianness = match header {
            [0, 2, _, _] => Endianness::Big,
            [0, 3, _, _] => Endianness::Little,
            _ => return Err(error),
        };
        Ok(ParameterList { cursor: Cursor::new(list, ENCAPSULATION_LEN, endianness) })
    }

    /// Takes a list off `cursor` up to and including its sentinel.
    pub(super) fn split(cursor: &mut Cursor<'a>) -> Result<ParameterList<'a>, WireError> {
        let mut parameters = Parameters { cursor: *cursor, ended: false };
        for parameter in &mut parameters {
            parameter?;
        }
        let length = parameters.cursor.position() - cursor.position();
        let (offset, endianness) = (cursor.offset(), cursor.endianness());
        let bytes = cursor.bytes(length, "parameter list")?;
        Ok(ParameterList { cursor: Cursor::new(bytes, offset, endianness) })
    }

    /// The parameters in order, without padding; ends behind the sentinel or after the first error. A list without sentinel
    /// ends with an error.
    pub fn iter(&self) -> Parameters<'a> {
        Parameters { cursor: self.cursor, ended: false }
    }

    /// The first parameter with this id, in front of any malformed one.
    pub fn find(&self, id: u16) -> Option<Parameter<'a>> {
        self.iter().map_while(Result::ok).find(|parameter| parameter.id == id)
    }

    /// The error for a list that lacks a parameter it must have; points to its start.
    pub fn missing(&self, expected: &'static str) -> WireError {
        self.cursor.error(expected)
    }

    /// Flags [`STATUS_DISPOSED`] and [`STATUS_UNREGISTERED`]; 0 when the list has no valid status info. Big endian in every
    /// list (RTPS 2.5 §9.6.4.9).
    pub fn status_info(&self) -> u32 {
        self.find(pid::STATUS_INFO)
            .and_then(|parameter| parameter.value.first_chunk().copied())
            .map_or(0, u32::from_be_bytes)
    }

    /// The coherent set that a sample is part of: the number of its first sample, [`SequenceNumber::UNKNOWN`] at its end (RTPS 2.5
    /// §8.7.5, §9.6.4.2); zero for none.
    pub fn coherent_set(&self) -> SequenceNumber {
        let sequence = self.find(pid::COHERENT_SET).and_then(|parameter| parameter.reader().sequence_number().ok());
        sequence
            .filter(|sequence| *sequence > SequenceNumber::ZERO || *sequence == SequenceNumber::UNKNOWN)
            .unwrap_or_default()
    }

    /// The sample that a sample of a writer of `vendor` is related to (DDS-RPC 1.0). Fast DDS tells it under a number of its own
    /// as well, and older versions under that alone.
    pub fn related_sample(&self, vendor: VendorId) -> Option<SampleIdentity> {
        let own = || self.find(pid::FAST_DDS_RELATED_SAMPLE_IDENTITY).filter(|_| vendor == VendorId::FAST_DDS);
        let mut value = self.find(pid::RELATED_SAMPLE_IDENTITY).or_else(own)?.reader();
        let identity = SampleIdentity { writer: value.guid().ok()?, sequence: value.sequence_number().ok()? };
        (identity.sequence > SequenceNumber::ZERO).then_some(identity)
    }

    /// The place of a sample among those of its publisher (RTPS 2.5 §8.7.6); `None` where the writer does not tell.
    pub fn group_place(&self) -> Option<GroupPlace> {
        let number = |id| self.find(id).and_then(|parameter| parameter.reader().sequence_number().ok());
        let of_sample = number(pid::GROUP_SEQUENCE_NUMBER).filter(|number| *number > SequenceNumber::ZERO)?;
        let set = number(pid::GROUP_COHERENT_SET);
        let set = set.filter(|set| *set > SequenceNumber::ZERO || *set == SequenceNumber::UNKNOWN);
        Some(GroupPlace { number: of_sample, set: set.unwrap_or_default() })
    }

    /// The key hash, if a valid one is there.
    pub fn key_hash(&self) -> Option<KeyHash> {
        self.find(pid::KEY_HASH)?.value.first_chunk().copied().map(KeyHash)
    }
}

impl PartialEq for ParameterList<'_> {
    /// Lists are equal when their bytes and byte order are, wherever they lie.
    fn eq(&self, other: &ParameterList<'_>) -> bool {
        self.cursor.rest() == other.cursor.rest() && self.cursor.endianness() == other.cursor.endianness()
    }
}

/// One parameter of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter<'a> {
    /// Its id; see [`pid`].
    pub id: u16,
    /// Its bytes, a multiple of four.
    pub value: &'a [u8],
    /// Offset of the value, for errors.
    pub offset: usize,
    /// Byte order of the list.
    pub endianness: Endianness,
}

impl<'a> Parameter<'a> {
    /// A reader at the start of the value.
    pub fn reader(&self) -> ParameterReader<'a> {
        ParameterReader { cursor: Cursor::new(self.value, self.offset, self.endianness) }
    }
}

/// Iterator over the parameters of a [`ParameterList`].
#[derive(Clone, Debug)]
pub struct Parameters<'a> {
    cursor: Cursor<'a>,
    ended: bool,
}

impl<'a> Iterator for Parameters<'a> {
    type Item = Result<Parameter<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.parse() {
                Ok(parameter) if parameter.id == pid::SENTINEL => self.ended = true,
                Ok(parameter) if parameter.id == pid::PAD => {}
                Ok(parameter) => return Some(Ok(parameter)),
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

impl<'a> Parameters<'a> {
    fn parse(&mut self) -> Result<Parameter<'a>, WireError> {
        let id = self.cursor.u16("parameter or sentinel")?;
        let length_error = self.cursor.error("parameter length that is a multiple of 4 and within the list");
        let length = self.cursor.u16("parameter length")?;
        // The sentinel's length says nothing; peers leave garbage there.
        let length = if id == pid::SENTINEL { 0 } else { usize::from(length) };
        let offset = self.cursor.offset();
        if !length.is_multiple_of(4) {
            return Err(length_error);
        }
        let value = self.cursor.bytes(length, length_error.expected).map_err(|_| length_error)?;
        Ok(Parameter { id, value, offset, endianness: self.cursor.endianness() })
    }
}

/// Reads the fields of one parameter's value in order, with the alignment of XCDR1.
#[derive(Clone, Copy, Debug)]
pub struct ParameterReader<'a> {
    cursor: Cursor<'a>,
}

impl<'a> ParameterReader<'a> {
    fn align(&mut self) -> Result<(), WireError> {
        let missing = self.cursor.position().next_multiple_of(4) - self.cursor.position();
        self.cursor.bytes(missing, "padding to 4 bytes").map(|_| ())
    }

    /// An error at the current position.
    pub fn error(&self, expected: &'static str) -> WireError {
        self.cursor.error(expected)
    }

    /// Bytes that were not read yet.
    pub fn remaining(&self) -> usize {
        self.cursor.remaining()
    }

    /// The next `count` bytes as they are.
    ///
    /// # Errors
    /// When fewer are left. So do all the methods below fail.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        self.cursor.bytes(count, "more bytes in the parameter")
    }

    /// The next `N` bytes as they are.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        self.cursor.array("more bytes in the parameter")
    }

    /// A boolean, one byte.
    ///
    /// # Errors
    /// Also when it is neither 0 nor 1.
    pub fn boolean(&mut self) -> Result<bool, WireError> {
        let error = self.error("boolean 0 or 1");
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(error),
        }
    }

    /// An unsigned number of 16 bits; the caller reads pairs, so no padding is looked for.
    pub fn u16(&mut self) -> Result<u16, WireError> {
        self.cursor.u16("16-bit number")
    }

    /// An unsigned number of 32 bits.
    pub fn u32(&mut self) -> Result<u32, WireError> {
        self.align()?;
        self.cursor.u32("32-bit number")
    }

    /// A signed number of 32 bits.
    pub fn i32(&mut self) -> Result<i32, WireError> {
        self.u32().map(u32::cast_signed)
    }

    /// A 64-bit sequence number, high word first.
    pub fn sequence_number(&mut self) -> Result<SequenceNumber, WireError> {
        self.align()?;
        self.cursor.sequence_number()
    }

    /// Bytes behind their 32-bit count.
    pub fn octets(&mut self) -> Result<&'a [u8], WireError> {
        self.align()?;
        let error = self.error("length within the parameter");
        let length = self.u32()? as usize;
        self.cursor.bytes(length, error.expected).map_err(|_| error)
    }

    /// The bytes of a string without its final NUL, whatever their encoding. Length 0 reads as the empty string.
    ///
    /// # Errors
    /// Also when it does not end with its only NUL.
    pub fn string_bytes(&mut self) -> Result<&'a [u8], WireError> {
        let error = self.error("string that ends with its only NUL");
        match self.octets()? {
            [] => Ok(&[]),
            [text @ .., 0] if !text.contains(&0) => Ok(text),
            _ => Err(error),
        }
    }

    /// A string.
    ///
    /// # Errors
    /// Also when it is not UTF-8 or does not end with its only NUL.
    pub fn string(&mut self) -> Result<&'a str, WireError> {
        let error = self.error("string in UTF-8");
        std::str::from_utf8(self.string_bytes()?).map_err(|_| error)
    }

    /// A duration; negative ones read as zero, `0x7fffffff` seconds as infinite.
    pub fn duration(&mut self) -> Result<Duration, WireError> {
        let seconds = self.i32()?;
        let fraction = self.u32()?;
        Ok(duration_from_wire(seconds, fraction))
    }

    /// A locator of any kind.
    pub fn locator(&mut self) -> Result<Locator, WireError> {
        self.align()?;
        self.cursor.locator()
    }

    /// A GUID.
    pub fn guid(&mut self) -> Result<Guid, WireError> {
        self.cursor.array("GUID of 16 bytes").map(Guid::from_bytes)
    }
}

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

    /// Appends seconds and fraction.
    pub fn duration(&mut self, duration: Duration) {
        let (seconds, fraction) = duration_to_wire(duration);
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

/// Appends the list that goes with a sample, as [`super::write::DataHead`] wants it; nothing at all when there is nothing to
/// say. `status` has the flags [`STATUS_DISPOSED`] and [`STATUS_UNREGISTERED`].
pub fn inline_qos(status: Option<u32>, key: Option<KeyHash>, out: &mut Vec<u8>) {
    inline_qos_with(status, key, Belonging::default(), out);
}

/// What a sample belongs to besides its writer and its instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Belonging {
    /// The coherent set, as [`ParameterList::coherent_set`] tells it.
    pub coherent_set: Option<SequenceNumber>,
    /// The sample that it is related to.
    pub related: Option<SampleIdentity>,
    /// Its place among the samples of its publisher.
    pub group: Option<GroupPlace>,
}

/// The place of a sample among those of all writers of its publisher (RTPS 2.5 §8.7.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupPlace {
    /// Its number within the publisher, at least 1.
    pub number: SequenceNumber,
    /// The publisher's coherent set: the number with which that began. Zero for none, [`SequenceNumber::UNKNOWN`] for one that the
    /// writer's other samples tell.
    pub set: SequenceNumber,
}

/// As [`inline_qos`], with what the sample belongs to.
pub fn inline_qos_with(status: Option<u32>, key: Option<KeyHash>, belonging: Belonging, out: &mut Vec<u8>) {
    if status.is_none() && key.is_none() && belonging == Belonging::default() {
        return;
    }
    let mut list = ParameterWriter::new(out);
    if let Some(key) = key {
        list.put(pid::KEY_HASH, |value| value.extend_from_slice(&key.0));
    }
    if let Some(status) = status {
        list.put(pid::STATUS_INFO, |value| value.extend_from_slice(&status.to_be_bytes()));
    }
    if let Some(set) = belonging.coherent_set {
        put_number(&mut list, pid::COHERENT_SET, set);
    }
    if let Some(SampleIdentity { writer, sequence }) = belonging.related {
        list.put(pid::RELATED_SAMPLE_IDENTITY, |value| {
            value.guid(writer);
            value.sequence_number(sequence);
        });
    }
    if let Some(GroupPlace { number, set }) = belonging.group {
        if set != SequenceNumber::ZERO {
            put_number(&mut list, pid::GROUP_COHERENT_SET, set);
        }
        put_number(&mut list, pid::GROUP_SEQUENCE_NUMBER, number);
    }
    list.finish();
}

fn put_number(list: &mut ParameterWriter<'_>, id: u16, SequenceNumber(number): SequenceNumber) {
    list.put(id, |value| {
        value.i32((number >> 32) as i32);
        value.u32(number as u32);
    });
}

/// Bytes of the parameters of a [`Belonging`], with the sentinel of their list.
pub const BELONGING_MAX_BYTES: usize = 3 * 12 + 28 + 4;

/// Longest value of a parameter, in bytes: the largest multiple of four that its 16-bit length can tell.
pub const VALUE_MAX_BYTES: usize = 65_532;

/// Bytes of the encapsulation header of a payload.
const ENCAPSULATION_LEN: usize = 4;
