//! What a stream of pictures looks like on the wire, without putting a frame together: how it is cut, how its lines are counted, how
//! evenly it is sent, and how regularly it arrives.
//!
//! [`StreamAnalyser`] takes the datagrams of one stream with their times. It learns from the first frames how many packets a frame
//! has, and then measures pacing and jitter with the meters of [`conformance`](crate::conformance) and [`jitter`](crate::jitter).
//! Arrivals must have been stamped one by one, as [`PacingMeter`](crate::conformance::PacingMeter) says.

mod frames;
#[cfg(test)]
mod tests;
mod timing;

use thalweg_base::time::Instant;

use crate::conformance::{PacingRefusal, PacingSummary};
use crate::format::{Field, Scan, VideoFormat};
use crate::jitter::IntervalFigures;
use crate::receiver::{LineDialect, LineNumbering};
use crate::rfc4175::{LineHeader, VideoPayload, pixels_of};
use crate::rtp::{RtpHeader, RtpPacket};
use frames::{FrameStarts, PacketPlace};
use timing::Timing;

/// Analyses one stream: that of the first synchronization source, and of another one once it alone has sent for a while.
#[derive(Debug)]
pub struct StreamAnalyser {
    format: VideoFormat,
    payload_type: Option<u8>,
    /// Packets of other sources since the last one of ours.
    others: u32,
    restarts: u64,
    ssrc: Option<u32>,
    numbers: SequenceCount,
    numbering: LineNumbering,
    starts: FrameStarts,
    timing: Option<Result<Box<Timing>, PacingRefusal>>,
    shape: StreamShape,
}

/// What was found until now.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamAnalysis {
    /// The synchronization source; `None` before the first packet.
    pub ssrc: Option<u32>,
    /// Times that another source took the place of the one before, or that its clock was set back; everything but `shape` tells of what
    /// came then.
    pub restarts: u64,
    /// Forms of packets and lines.
    pub shape: StreamShape,
    /// How lines of fields are counted.
    pub dialect: LineDialect,
    /// Numbers from the first packet to the highest.
    pub packets_expected: u64,
    /// Those of them that did not come; repetitions in the same stream hide some.
    pub packets_missing: u64,
    /// Packets that came after later ones.
    pub packets_reordered: u64,
    /// Frames that began, from the first whole one.
    pub frames: u64,
    /// The number of packets that most of the last frames had; `None` before there were [`LEARNED_FRAMES`].
    pub frame_packets: Option<u32>,
    /// Frames with another number of packets.
    pub frames_irregular: u64,
    /// Ticks of 90 kHz between two frames, as most of the last ones had; `None` as before.
    pub frame_ticks: Option<u32>,
    /// Times; `None` before the packets of a frame are known, and the reason where the models of ST 2110-21 do not fit them.
    pub times: Option<Result<StreamTimes, PacingRefusal>>,
}

/// Forms of packets and lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamShape {
    /// Datagrams that are no RTP, or whose lengths do not fit.
    pub malformed: u64,
    /// Packets of other synchronization sources, such as repetitions.
    pub foreign: u64,
    /// Pieces outside the format, or that cut a pixel group.
    pub outside: u64,
    /// The payload type of the first packet.
    pub payload_type: u8,
    /// Octets of the smallest datagram; 0 without any.
    pub datagram_octets_min: usize,
    /// Octets of the largest one.
    pub datagram_octets_max: usize,
    /// The most pieces of lines in a packet.
    pub pieces_max: usize,
    /// The highest number of a line.
    pub line_max: u16,
    /// Packets of the second field.
    pub second_field_packets: u64,
    /// The highest upper half of a sequence number; GStreamer and FFmpeg send 0 always.
    pub extended_max: u16,
    /// Packets with the marker bit, which ends a frame or field.
    pub markers: u64,
}

/// How evenly the stream is sent and how regularly it arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamTimes {
    /// Against the models of ST 2110-21.
    pub pacing: PacingSummary,
    /// The estimate of RFC 3550 in nanoseconds: the spacing of packets rather than jitter.
    pub jitter_rfc3550_nanos: f64,
    /// That of deviations from an even schedule, in nanoseconds.
    pub jitter_schedule_nanos: f64,
    /// Times between the last packets of complete frames.
    pub intervals: IntervalFigures,
}

impl StreamAnalyser {
    /// Analyses a stream of pictures of `format`, whose rate and scan tell when packets should come; `payload_type` is the only one
    /// that counts, where it is known.
    pub fn new(format: VideoFormat, payload_type: Option<u8>) -> StreamAnalyser {
        StreamAnalyser {
            format,
            payload_type,
            others: 0,
            restarts: 0,
            ssrc: None,
            numbers: SequenceCount::default(),
            numbering: LineNumbering::new(),
            starts: FrameStarts::new(format),
            timing: None,
            shape: StreamShape::default(),
        }
    }

    /// Takes a datagram of RTP, in the order of arrival. Whatever it holds is counted or ignored.
    pub fn handle_datagram(&mut self, at: Instant, datagram: &[u8]) {
        let parsed = RtpPacket::parse(datagram).ok();
        let parsed = parsed.and_then(|packet| Some((packet, VideoPayload::parse(packet.payload).ok()?)));
        let Some((packet, payload)) = parsed else {
            self.shape.malformed += 1;
            return;
        };
        let header = packet.header;
        if !self.follow_source(header) {
            self.shape.foreign += 1;
            return;
        }
        if self.numbers.received == 0 {
            self.shape.payload_type = header.payload_type;
        }
        self.note_shape(datagram.len(), &payload, header.marker);
        let Some(number) = self.numbers.handle_packet(header.sequence) else { return };
        let field = payload.pieces().next().map_or(Field::First, |(piece, _)| piece.field);
        let Some(place) = self.starts.handle_packet(number, header.timestamp, field) else {
            if self.starts.are_lost() {
                self.restart();
            }
            return;
        };
        self.time_packet(at, header.timestamp, place);
    }

    /// Begins anew with all but the counts of forms.
    fn restart(&mut self) {
        let fresh = StreamAnalyser::new(self.format, self.payload_type);
        *self = StreamAnalyser { shape: self.shape, restarts: self.restarts + 1, ..fresh };
    }

    /// Whether a packet is of our stream. A sender that starts again has another source; then all but the counts begins anew.
    fn follow_source(&mut self, header: RtpHeader) -> bool {
        if self.payload_type.is_some_and(|expected| expected != header.payload_type) {
            return false;
        }
        match self.ssrc {
            Some(ours) if ours != header.ssrc => {
                self.others += 1;
                if self.others >= RESTART_PACKETS {
                    self.restart();
                }
                false
            }
            _ => {
                self.ssrc = Some(header.ssrc);
                self.others = 0;
                true
            }
        }
    }

    fn note_shape(&mut self, octets: usize, payload: &VideoPayload<'_>, marker: bool) {
        let shape = &mut self.shape;
        shape.datagram_octets_max = shape.datagram_octets_max.max(octets);
        let is_first = shape.datagram_octets_min == 0;
        shape.datagram_octets_min = if is_first { octets } else { shape.datagram_octets_min.min(octets) };
        shape.pieces_max = shape.pieces_max.max(payload.piece_count());
        shape.extended_max = shape.extended_max.max(payload.extended_sequence);
        shape.markers += u64::from(marker);
        let pieces = || payload.pieces().map(|(piece, _)| piece);
        for piece in pieces() {
            shape.line_max = shape.line_max.max(piece.line);
            shape.outside += u64::from(!is_inside(self.format, &piece));
        }
        shape.second_field_packets += u64::from(pieces().any(|piece| piece.field == Field::Second));
        self.numbering.handle_packet(self.format, pieces());
    }

    fn time_packet(&mut self, at: Instant, timestamp: u32, place: PacketPlace) {
        if self.timing.is_none()
            && let Some(packets) = self.starts.frame_packets()
        {
            let timing = Timing::new(self.format, packets, self.shape.datagram_octets_max);
            self.timing = Some(timing.map(Box::new));
        }
        if let Some(Ok(timing)) = &mut self.timing {
            timing.handle_packet(at, timestamp, place);
        }
    }

    /// Frames that began, from the first whole one.
    pub fn frames(&self) -> u64 {
        self.starts.frames()
    }

    /// Ends the frame that comes in: nothing follows.
    pub fn finish(&mut self) {
        if let Some(Ok(timing)) = &mut self.timing {
            timing.finish();
        }
    }

    /// What was found until now.
    pub fn analysis(&self) -> StreamAnalysis {
        let numbers = self.numbers;
        StreamAnalysis {
            ssrc: self.ssrc,
            restarts: self.restarts,
            shape: self.shape,
            dialect: self.numbering.dialect(),
            packets_expected: numbers.expected(),
            packets_missing: numbers.expected().saturating_sub(numbers.received),
            packets_reordered: numbers.reordered,
            frames: self.starts.frames(),
            frame_packets: self.starts.frame_packets(),
            frames_irregular: self.starts.frames_irregular(),
            frame_ticks: self.starts.frame_ticks(),
            times: self.timing.as_ref().map(|timing| timing.as_ref().map(|timing| timing.figures()).map_err(|e| *e)),
        }
    }
}

/// Whether a piece lies in the picture, in either way of counting lines.
fn is_inside(format: VideoFormat, piece: &LineHeader) -> bool {
    let is_field = piece.field == Field::First || format.scan() != Scan::Progressive;
    let end = pixels_of(piece, format.pixels()).map(|pixels| u32::from(piece.offset) + u32::from(pixels));
    is_field && piece.line < format.height() && end.is_some_and(|end| end <= u32::from(format.width()))
}

/// The numbers of packets, extended from 16 bits.
#[derive(Clone, Copy, Debug, Default)]
struct SequenceCount {
    /// The highest number so far, counted from [`NUMBERS_BEFORE`].
    highest: Option<u64>,
    received: u64,
    reordered: u64,
    /// The lowest number.
    first: u64,
}

impl SequenceCount {
    /// The number of a packet in 64 bits; `None` for one from before the first.
    fn handle_packet(&mut self, sequence: u16) -> Option<u64> {
        let Some(highest) = self.highest else {
            let number = NUMBERS_BEFORE + u64::from(sequence);
            (self.highest, self.first, self.received) = (Some(number), number, 1);
            return Some(number);
        };
        // The nearer direction counts: a gap of 32,768 packets is more than a second of HD.
        let step = i64::from(sequence.wrapping_sub(highest as u16) as i16);
        let number = highest.checked_add_signed(step)?;
        if number < self.first {
            return None;
        }
        self.received += 1;
        if step > 0 {
            self.highest = Some(number);
        } else {
            self.reordered += 1;
        }
        Some(number)
    }

    fn expected(&self) -> u64 {
        self.highest.map_or(0, |highest| highest - self.first + 1)
    }
}

/// More than a number moves back from the first one.
const NUMBERS_BEFORE: u64 = 1 << 16;
/// Packets of another source, and none of ours, after which it is the stream: more than are sent again at a time.
const RESTART_PACKETS: u32 = 512;
/// Frames that tell how many packets a frame has: enough that one in which some are lost does not count.
pub const LEARNED_FRAMES: usize = 5;
