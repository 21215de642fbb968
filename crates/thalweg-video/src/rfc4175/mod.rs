//! The payload of uncompressed video: an extended sequence number and pieces of lines (RFC 4175 §4.2, the same in
//! ST 2110-20).

mod planner;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::format::{Field, PixelFormat};

pub use planner::{
    EQUAL_DATAGRAM_OCTETS_MAX, IpHeader, PACKETS_MAX, PacketPlan, PacketShape, Packing, PlanError, PlannedPiece,
    STANDARD_DATAGRAM_OCTETS,
};

/// Octets of the upper half of the sequence number, with which a payload begins.
pub const EXTENDED_SEQUENCE_OCTETS: usize = 2;
/// Octets of the header of one piece.
pub const LINE_HEADER_OCTETS: usize = 6;
/// Pieces of lines in a packet at most: ST 2110-20 allows 3 and FFmpeg 5.1 sends 4; small pictures in jumbo
/// frames may have more.
pub const PIECES_MAX: usize = 16;

/// Where a piece of a line lies ("sample row data").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineHeader {
    /// Octets of the piece; a multiple of the pixel group's.
    pub length: u16,
    /// The F bit.
    pub field: Field,
    /// The line, 0 to 32,767; counted in the field by ST 2110-20, in the frame by GStreamer.
    pub line: u16,
    /// The first pixel in its line, 0 to 32,767.
    pub offset: u16,
}

impl LineHeader {
    /// Writes the header; `continues` tells that another one follows (the C bit).
    pub fn write(&self, continues: Continuation, out: &mut [u8; LINE_HEADER_OCTETS]) {
        out[..2].copy_from_slice(&self.length.to_be_bytes());
        out[2..4].copy_from_slice(&(self.field.bit() << 15 | self.line & LINE_BITS).to_be_bytes());
        let more = u16::from(continues == Continuation::More) << 15;
        out[4..].copy_from_slice(&(more | self.offset & LINE_BITS).to_be_bytes());
    }

    fn read(octets: &[u8; LINE_HEADER_OCTETS]) -> (LineHeader, Continuation) {
        let word = |at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
        let flag = |word: u16| word >> 15 != 0;
        let field = if flag(word(2)) { Field::Second } else { Field::First };
        let header = LineHeader { length: word(0), field, line: word(2) & LINE_BITS, offset: word(4) & LINE_BITS };
        (header, if flag(word(4)) { Continuation::More } else { Continuation::Last })
    }
}

/// Whether another line header follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// Another one follows.
    More,
    /// The data follow.
    Last,
}

/// A payload whose lengths fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoPayload<'a> {
    /// The upper half of the sequence number. GStreamer and FFmpeg send 0 always: never trust it alone.
    pub extended_sequence: u16,
    headers: &'a [[u8; LINE_HEADER_OCTETS]],
    data: &'a [u8],
}

impl<'a> VideoPayload<'a> {
    /// Reads a payload; octets after the last piece are ignored.
    ///
    /// # Errors
    ///
    /// It ends too early, or has more than [`PIECES_MAX`] pieces.
    pub fn parse(payload: &'a [u8]) -> Result<VideoPayload<'a>, PayloadError> {
        let ([high, low], rest) = payload.split_first_chunk().ok_or(PayloadError::Short)?;
        let (headers, _) = rest.as_chunks::<LINE_HEADER_OCTETS>();
        let is_last = |header: &[u8; LINE_HEADER_OCTETS]| header[4] & 0x80 == 0;
        let last = headers.iter().take(PIECES_MAX).position(is_last);
        let Some(last) = last else {
            return Err(if headers.len() >= PIECES_MAX { PayloadError::Pieces } else { PayloadError::Short });
        };
        let (headers, data) = (&headers[..=last], &rest[(last + 1) * LINE_HEADER_OCTETS..]);
        let needed = headers.iter().map(|header| usize::from(u16::from_be_bytes([header[0], header[1]]))).sum();
        if data.len() < needed {
            return Err(PayloadError::Data { needed, found: data.len() });
        }
        Ok(VideoPayload { extended_sequence: u16::from_be_bytes([*high, *low]), headers, data })
    }

    /// The pieces with their octets, in their order.
    pub fn pieces(&self) -> impl Iterator<Item = (LineHeader, &'a [u8])> + use<'a> {
        let mut rest = self.data;
        self.headers.iter().map(move |octets| {
            let (header, _) = LineHeader::read(octets);
            let (piece, after) = rest.split_at(usize::from(header.length));
            rest = after;
            (header, piece)
        })
    }

    /// The number of pieces, at least 1.
    pub fn piece_count(&self) -> usize {
        self.headers.len()
    }
}

/// The pixels of a piece of `length` octets; `None` when it cuts a pixel group or begins within one.
pub fn pixels_of(header: &LineHeader, pixels: PixelFormat) -> Option<u16> {
    let group = pixels.group();
    let is_whole = header.length.is_multiple_of(group.octets) && header.offset.is_multiple_of(group.pixels);
    is_whole.then(|| header.length / group.octets * group.pixels)
}

/// Why a payload cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadError {
    /// It ends within the headers.
    Short,
    /// It has more than [`PIECES_MAX`] pieces.
    Pieces,
    /// The pieces are longer than the data.
    Data {
        /// The sum of the pieces' lengths in octets.
        needed: usize,
        /// Octets after the headers.
        found: usize,
    },
}

impl fmt::Display for PayloadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PayloadError::Short => formatter.write_str("the payload ends within its line headers"),
            PayloadError::Pieces => write!(formatter, "the payload has more than {PIECES_MAX} pieces of lines"),
            PayloadError::Data { needed, found } => {
                write!(formatter, "the line headers tell of {needed} octets and {found} follow")
            }
        }
    }
}

impl std::error::Error for PayloadError {}

/// Line numbers and offsets have 15 bits.
const LINE_BITS: u16 = 0x7fff;
