//! Datagrams that leave together: headers in a buffer that is used again, and slices of the frame.

use super::history::SentFrame;
use super::{Resend, SenderConfig};
use crate::format::Field;
use crate::rfc4175::{Continuation, LINE_HEADER_OCTETS, LineHeader, PacketPlan};
use crate::rtp::RtpHeader;

/// Slices of the frame in a packet at most: each lies in another line of a field.
const SLICES_MAX: usize = 3;

/// The headers of a batch, and where its pieces of the frame lie.
#[derive(Debug, Default)]
pub(super) struct Headers {
    octets: Vec<u8>,
    parts: Vec<Parts>,
}

/// One packet of a batch.
#[derive(Clone, Copy, Debug)]
struct Parts {
    header_start: usize,
    header_end: usize,
    /// Start and end of each slice in the frame.
    slices: [(usize, usize); SLICES_MAX],
    slice_count: usize,
}

impl Parts {
    fn octets(&self) -> usize {
        let slices = &self.slices[..self.slice_count];
        self.header_end - self.header_start + slices.iter().map(|(start, end)| end - start).sum::<usize>()
    }

    /// Adds a piece of the frame, to the slice before where it continues it.
    fn add(&mut self, start: usize, end: usize) {
        if let Some((_, previous)) = self.slices[..self.slice_count].last_mut()
            && *previous == start
        {
            *previous = end;
        } else {
            self.slices[self.slice_count] = (start, end);
            self.slice_count += 1;
        }
    }
}

impl Headers {
    pub(super) fn clear(&mut self) {
        self.octets.clear();
        self.parts.clear();
    }

    pub(super) fn count(&self) -> u64 {
        self.parts.len() as u64
    }

    /// Octets after the RTP headers.
    pub(super) fn payload_octets(&self) -> u64 {
        let octets = self.parts.iter().map(|parts| parts.octets() - crate::rtp::HEADER_OCTETS);
        octets.sum::<usize>() as u64
    }

    /// Adds packet `packet` of a field.
    pub(super) fn push(
        &mut self,
        plan: &PacketPlan,
        config: &SenderConfig,
        frame: &SentFrame,
        (field, packet): (Field, usize),
    ) {
        let place = packet + usize::from(field.bit()) * plan.field_packets();
        self.push_header(plan, config, frame, place);
        self.push_payload(plan, frame, place);
    }

    /// Adds the packet at `place` of a frame once more.
    pub(super) fn push_again(
        &mut self,
        plan: &PacketPlan,
        config: &SenderConfig,
        frame: &SentFrame,
        place: usize,
        resend_sequence: u16,
    ) {
        self.push_header(plan, config, frame, place);
        if let Resend::Retransmission { payload_type, ssrc, .. } = config.resend {
            let start = self.parts.last().expect("just added").header_start;
            let original = [self.octets[start + 2], self.octets[start + 3]];
            self.octets[start + 1] = self.octets[start + 1] & 0x80 | payload_type;
            self.octets[start + 2..start + 4].copy_from_slice(&resend_sequence.to_be_bytes());
            self.octets[start + 8..start + 12].copy_from_slice(&ssrc.to_be_bytes());
            self.octets.extend(original);
        }
        self.push_payload(plan, frame, place);
    }

    fn push_header(&mut self, plan: &PacketPlan, config: &SenderConfig, frame: &SentFrame, place: usize) {
        let is_second = place >= plan.field_packets();
        let header = RtpHeader {
            marker: (place + 1).is_multiple_of(plan.field_packets()),
            payload_type: config.payload_type,
            // The upper half follows in the payload.
            sequence: frame.sequence(place) as u16,
            timestamp: frame.timestamps[usize::from(is_second)],
            ssrc: config.ssrc,
        };
        let header_start = self.octets.len();
        self.octets.extend(header.to_octets());
        self.parts.push(Parts { header_start, header_end: 0, slices: [(0, 0); SLICES_MAX], slice_count: 0 });
    }

    fn push_payload(&mut self, plan: &PacketPlan, frame: &SentFrame, place: usize) {
        let field = if place >= plan.field_packets() { Field::Second } else { Field::First };
        let (_, pieces) = plan.packet(place % plan.field_packets());
        let parts = self.parts.last_mut().expect("the header was added");
        let extended = (frame.sequence(place) >> 16) as u16;
        self.octets.extend(extended.to_be_bytes());
        let format = plan.format();
        for (index, piece) in pieces.iter().enumerate() {
            let header = LineHeader { length: piece.length, field, line: piece.line, offset: piece.offset };
            let continues = if index + 1 < pieces.len() { Continuation::More } else { Continuation::Last };
            let mut octets = [0; LINE_HEADER_OCTETS];
            header.write(continues, &mut octets);
            self.octets.extend(octets);
            let line = usize::from(format.frame_line(field, piece.line));
            let start = line * format.line_octets() + piece.at as usize;
            parts.add(start, start + usize::from(piece.length));
        }
        parts.header_end = self.octets.len();
    }

    pub(super) fn batch<'a>(&'a self, frame: &'a [u8], place: Option<BatchPlace>) -> PacketBatch<'a> {
        PacketBatch { headers: self, frame, place }
    }
}

/// Where a batch lies in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchPlace {
    /// The frame, counted from the first one; frame times without a frame count, too.
    pub frame: u64,
    /// The first packet, counted from 0 in its frame.
    pub packet: u32,
}

/// Datagrams that leave together. All have [`PacketBatch::segment_octets`] octets, but the last may have fewer: what
/// UDP segmentation offload needs.
#[derive(Clone, Copy, Debug)]
pub struct PacketBatch<'a> {
    headers: &'a Headers,
    frame: &'a [u8],
    place: Option<BatchPlace>,
}

impl<'a> PacketBatch<'a> {
    /// Where it lies in the stream; `None` for repetitions.
    pub fn place(&self) -> Option<BatchPlace> {
        self.place
    }

    /// The number of datagrams, at least 1.
    pub fn count(&self) -> usize {
        self.headers.parts.len()
    }

    /// Octets of each datagram but the last, which may be smaller.
    pub fn segment_octets(&self) -> usize {
        self.headers.parts.first().map_or(0, Parts::octets)
    }

    /// Octets of all datagrams.
    pub fn octets(&self) -> usize {
        self.headers.parts.iter().map(Parts::octets).sum()
    }

    /// The datagrams in their order.
    pub fn packets(&self) -> impl ExactSizeIterator<Item = PacketParts<'a>> + use<'a> {
        let PacketBatch { headers, frame, .. } = *self;
        headers.parts.iter().map(move |parts| PacketParts { headers: &headers.octets, parts, frame })
    }

    /// The slices that the datagrams consist of, header and picture in turn: a scatter list for one message.
    pub fn slices(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.packets().flat_map(|packet| packet.slices())
    }
}

/// The parts of one datagram.
#[derive(Clone, Copy, Debug)]
pub struct PacketParts<'a> {
    headers: &'a [u8],
    parts: &'a Parts,
    frame: &'a [u8],
}

impl<'a> PacketParts<'a> {
    /// The headers: RTP, extended sequence number and lines.
    pub fn header(&self) -> &'a [u8] {
        &self.headers[self.parts.header_start..self.parts.header_end]
    }

    /// The pieces of the frame, 1 to 3.
    pub fn picture(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let PacketParts { parts, frame, .. } = *self;
        parts.slices[..parts.slice_count].iter().map(move |(start, end)| &frame[*start..*end])
    }

    /// The headers, then the pieces of the frame.
    pub fn slices(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        [self.header()].into_iter().chain(self.picture())
    }

    /// Octets of the datagram.
    pub fn octets(&self) -> usize {
        self.parts.octets()
    }

    /// Copies the datagram to the end of `out`.
    pub fn copy_to(&self, out: &mut Vec<u8>) {
        self.slices().for_each(|slice| out.extend_from_slice(slice));
    }
}
