//! Parameter lists: (id, length, value) triples that end with a sentinel (RTPS 2.5 §9.4.2.11).
//!
//! Inline QoS is a bare list in the submessage's byte order. A discovery payload puts an encapsulation header in front of it
//! that tells the byte order.

mod inline_qos;
mod writer;

use std::time::Duration;

use super::cursor::Cursor;
use super::{Endianness, WireError, pid};
use crate::time::duration_from_wire;
use crate::types::{Guid, KeyHash, Locator, SampleIdentity, SequenceNumber, VendorId};

pub use inline_qos::{BELONGING_MAX_BYTES, Belonging, GroupPlace, inline_qos, inline_qos_with};
pub use writer::{ParameterWriter, VALUE_MAX_BYTES, ValueWriter};

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
        self.find_status_info().unwrap_or(0)
    }

    /// As [`ParameterList::status_info`], but `None` when the list has no valid one.
    pub(crate) fn find_status_info(&self) -> Option<u32> {
        self.find(pid::STATUS_INFO)?.value.first_chunk().copied().map(u32::from_be_bytes)
    }

    /// The readers that a sample is for (RTPS 2.5 §8.7.7), in ascending order; none where it is for all.
    pub(crate) fn directed_to(&self) -> Vec<Guid> {
        let parameters = self.iter().map_while(Result::ok).filter(|parameter| parameter.id == pid::DIRECTED_WRITE);
        let mut readers: Vec<Guid> = parameters.flat_map(|parameter| guids_in(&parameter)).collect();
        readers.sort_unstable();
        readers
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

/// The GUIDs in a parameter: editions and vendors have one for each of them, or a sequence of all in one.
fn guids_in<'a>(parameter: &Parameter<'a>) -> impl Iterator<Item = Guid> + use<'a> {
    let mut value = parameter.reader();
    let count = if value.remaining() == GUID_LEN { 1 } else { value.u32().unwrap_or(0) };
    (0..count).map_while(move |_| value.guid().ok())
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

/// Bytes of a GUID.
const GUID_LEN: usize = 16;
/// Bytes of the encapsulation header of a payload.
const ENCAPSULATION_LEN: usize = 4;
