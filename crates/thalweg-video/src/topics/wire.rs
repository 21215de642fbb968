//! Frames and slices as bytes, without a copy of their octets in between: for the publisher and the subscriber here, and for
//! programs that read and write samples by themselves.

use std::ops::Range;

use thalweg::cdr::{ByteOrder, ENCAPSULATION_BYTES, Encapsulation, Extensibility, Representation};

use super::FormatWords;
use crate::format::Field;

/// Bit of the flags: there is a checksum.
const HAS_CHECKSUM: u8 = 1;
/// Bit of the flags: the last slice of its field.
const IS_LAST: u8 = 2;

/// The members of a [`VideoFrame`](super::VideoFrame) before its octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameWords {
    /// The stream.
    pub stream: u32,
    /// Drawn by each publisher when it starts.
    pub source: u32,
    /// Counts the frames of the source from 0.
    pub frame: u64,
    /// When the frame was taken: nanoseconds since 1970 of the sender's clock.
    pub captured: u64,
    /// The time stamp of 90 kHz.
    pub timestamp: u32,
    /// CRC-32C of the octets, where there is one.
    pub checksum: Option<u32>,
    /// The format, unchecked.
    pub format: FormatWords,
}

/// The members of a [`VideoSlice`](super::VideoSlice) before its octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceWords {
    /// What frames have as well.
    pub frame: FrameWords,
    /// Counts the slices of the source from 0.
    pub number: u64,
    /// The lines that it is of.
    pub field: SliceField,
    /// Whether it ends its field.
    pub is_last: bool,
    /// The first line, counted in its field from 0.
    pub first_line: u16,
    /// The number of lines.
    pub lines: u16,
}

/// The lines that a slice is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceField {
    /// Of a progressive frame.
    Frame,
    /// Of the first field.
    First,
    /// Of the second field.
    Second,
}

impl SliceField {
    /// The field; the first one of a progressive frame.
    pub fn field(self) -> Field {
        match self {
            SliceField::Frame | SliceField::First => Field::First,
            SliceField::Second => Field::Second,
        }
    }

    fn word(self) -> u8 {
        match self {
            SliceField::Frame => 0,
            SliceField::First => 1,
            SliceField::Second => 2,
        }
    }

    fn from_word(word: u8) -> Option<SliceField> {
        [SliceField::Frame, SliceField::First, SliceField::Second].into_iter().find(|field| field.word() == word)
    }
}

/// Bytes before the octets of a frame: encapsulation header, members, length of the sequence.
pub(super) const FRAME_HEAD_BYTES: usize = ENCAPSULATION_BYTES + 52;
/// Where the checksum of a frame lies.
pub(super) const FRAME_CHECKSUM_AT: usize = ENCAPSULATION_BYTES + 28;
/// Where the checksum of a slice lies.
pub(super) const SLICE_CHECKSUM_AT: usize = ENCAPSULATION_BYTES + 36;
/// Bytes before the octets of a slice.
pub(super) const SLICE_HEAD_BYTES: usize = ENCAPSULATION_BYTES + 64;

impl FrameWords {
    /// Appends the head of a sample of so many octets, at most `u32::MAX`; the caller appends them. The encoding is XCDR1,
    /// little endian.
    pub fn append_head(&self, octets: usize, out: &mut Vec<u8>) {
        let start = out.len();
        append_encapsulation(out);
        out.extend_from_slice(&self.stream.to_le_bytes());
        out.extend_from_slice(&self.source.to_le_bytes());
        out.extend_from_slice(&self.frame.to_le_bytes());
        self.append_times(out);
        out.extend_from_slice(&[0, if self.checksum.is_some() { HAS_CHECKSUM } else { 0 }]);
        append_length(octets, out);
        debug_assert_eq!(out.len() - start, FRAME_HEAD_BYTES);
    }

    fn append_times(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.captured.to_le_bytes());
        out.extend_from_slice(&self.timestamp.to_le_bytes());
        out.extend_from_slice(&self.checksum.unwrap_or(0).to_le_bytes());
        let FormatWords { rate_numerator, rate_denominator, width, height, pixels, scan } = self.format;
        out.extend_from_slice(&rate_numerator.to_le_bytes());
        out.extend_from_slice(&rate_denominator.to_le_bytes());
        out.extend_from_slice(&width.to_le_bytes());
        out.extend_from_slice(&height.to_le_bytes());
        out.extend_from_slice(&[pixels, scan]);
    }

    /// Reads a sample in place, with its encapsulation header: its head and where its octets lie. `None` for bytes that are
    /// no frame.
    pub fn parse(payload: &[u8]) -> Option<(FrameWords, Range<usize>)> {
        let mut reader = Reader::begin(payload)?;
        let mut words = reader.identity()?;
        reader.times(&mut words)?;
        let [field, flags] = reader.take()?;
        if field != 0 {
            return None;
        }
        words.checksum = words.checksum.filter(|_| flags & HAS_CHECKSUM != 0);
        Some((words, reader.sequence()?))
    }
}

impl SliceWords {
    /// As [`FrameWords::append_head`] for a slice.
    pub fn append_head(&self, octets: usize, out: &mut Vec<u8>) {
        let start = out.len();
        append_encapsulation(out);
        out.extend_from_slice(&self.frame.stream.to_le_bytes());
        out.extend_from_slice(&self.frame.source.to_le_bytes());
        out.extend_from_slice(&self.frame.frame.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        self.frame.append_times(out);
        let flags = [(self.frame.checksum.is_some(), HAS_CHECKSUM), (self.is_last, IS_LAST)];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set).fold(0, |word, (_, bit)| word | bit);
        out.extend_from_slice(&[self.field.word(), flags]);
        out.extend_from_slice(&self.first_line.to_le_bytes());
        out.extend_from_slice(&self.lines.to_le_bytes());
        append_length(octets, out);
        debug_assert_eq!(out.len() - start, SLICE_HEAD_BYTES);
    }

    /// As [`FrameWords::parse`] for a slice.
    pub fn parse(payload: &[u8]) -> Option<(SliceWords, Range<usize>)> {
        let mut reader = Reader::begin(payload)?;
        let mut frame = reader.identity()?;
        let number = reader.u64()?;
        reader.times(&mut frame)?;
        let [field, flags] = reader.take()?;
        let field = SliceField::from_word(field)?;
        frame.checksum = frame.checksum.filter(|_| flags & HAS_CHECKSUM != 0);
        let (first_line, lines) = (reader.u16()?, reader.u16()?);
        let is_last = flags & IS_LAST != 0;
        Some((SliceWords { frame, number, field, is_last, first_line, lines }, reader.sequence()?))
    }
}

/// XCDR1: every reader takes it, and nothing follows the octets.
fn append_encapsulation(out: &mut Vec<u8>) {
    let id = Encapsulation::new(Representation::Xcdr1, Extensibility::Final, ByteOrder::Little).id();
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
}

fn append_length(octets: usize, out: &mut Vec<u8>) {
    // A frame has 128 MiB at most.
    out.extend_from_slice(&(octets as u32).to_le_bytes());
}

/// Reads members that are aligned as they stand, of either byte order.
struct Reader<'a> {
    payload: &'a [u8],
    at: usize,
    is_little: bool,
}

impl<'a> Reader<'a> {
    /// Reads the encapsulation header.
    fn begin(payload: &'a [u8]) -> Option<Reader<'a>> {
        let header = payload.first_chunk::<ENCAPSULATION_BYTES>()?;
        let encapsulation = Encapsulation::from_id(u16::from_be_bytes([header[0], header[1]]))?;
        let is_final = encapsulation.extensibility == Extensibility::Final;
        let is_little = encapsulation.byte_order == ByteOrder::Little;
        is_final.then_some(Reader { payload, at: ENCAPSULATION_BYTES, is_little })
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let found = *self.payload.get(self.at..)?.first_chunk::<N>()?;
        self.at += N;
        Some(found)
    }

    fn u16(&mut self) -> Option<u16> {
        let bytes = self.take()?;
        Some(if self.is_little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    }

    fn u32(&mut self) -> Option<u32> {
        let bytes = self.take()?;
        Some(if self.is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    fn u64(&mut self) -> Option<u64> {
        let bytes = self.take()?;
        Some(if self.is_little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) })
    }

    /// Stream, source and frame; the rest is zero.
    fn identity(&mut self) -> Option<FrameWords> {
        Some(FrameWords {
            stream: self.u32()?,
            source: self.u32()?,
            frame: self.u64()?,
            captured: 0,
            timestamp: 0,
            checksum: None,
            format: FormatWords::default(),
        })
    }

    /// Times, checksum and format.
    fn times(&mut self, words: &mut FrameWords) -> Option<()> {
        (words.captured, words.timestamp, words.checksum) = (self.u64()?, self.u32()?, Some(self.u32()?));
        words.format = FormatWords {
            rate_numerator: self.u32()?,
            rate_denominator: self.u32()?,
            width: self.u16()?,
            height: self.u16()?,
            pixels: 0,
            scan: 0,
        };
        [words.format.pixels, words.format.scan] = self.take()?;
        Some(())
    }

    /// Where the octets lie.
    fn sequence(mut self) -> Option<Range<usize>> {
        let length = usize::try_from(self.u32()?).ok()?;
        let end = self.at.checked_add(length)?;
        (end <= self.payload.len()).then_some(self.at..end)
    }
}
