//! Pacing and jitter of a stream whose frames have a known number of packets.

use thalweg_base::time::Instant;

use super::StreamTimes;
use super::frames::PacketPlace;
use crate::conformance::{Alignment, FramePacing, PacingKind, PacingMeter, PacingRefusal};
use crate::format::VideoFormat;
use crate::jitter::{FrameIntervals, JitterMeter};

/// The meters of one stream.
#[derive(Debug)]
pub(super) struct Timing {
    pacing: PacingMeter,
    jitter: JitterMeter,
    intervals: FrameIntervals,
    packets: u32,
    /// The frame that comes in, and its latest packet.
    current: Option<(u64, Instant)>,
}

impl Timing {
    /// Meters of frames of `packets` packets in datagrams of at most `datagram_octets`.
    pub(super) fn new(format: VideoFormat, packets: u32, datagram_octets: usize) -> Result<Timing, PacingRefusal> {
        let pacing = FramePacing::of(format, packets, datagram_octets)?;
        let spacing = pacing.packet_nanos(PacingKind::Narrow);
        Ok(Timing {
            pacing: PacingMeter::new(pacing, Alignment::USUAL),
            jitter: JitterMeter::new(90_000, spacing),
            intervals: FrameIntervals::default(),
            packets,
            current: None,
        })
    }

    pub(super) fn handle_packet(&mut self, at: Instant, timestamp: u32, place: PacketPlace) {
        let is_new = self.current.is_none_or(|(frame, _)| place.frame > frame);
        let finished = self.pacing.handle_packet(place.frame, place.packet, at);
        if let (Some(figures), Some((_, last))) = (finished, self.current) {
            if figures.packets == self.packets {
                self.intervals.handle_frame(last);
            } else {
                // The time between its neighbours is not that of two frames.
                self.intervals.clear_last();
            }
        }
        if is_new {
            self.current = Some((place.frame, at));
        } else if let Some((_, last)) = &mut self.current {
            *last = at.max(*last);
        }
        self.jitter.handle_packet(at, timestamp, place.stamped);
    }

    pub(super) fn finish(&mut self) {
        let finished = self.pacing.finish_frame();
        if let (Some(figures), Some((_, last))) = (finished, self.current)
            && figures.packets == self.packets
        {
            self.intervals.handle_frame(last);
        }
    }

    pub(super) fn figures(&self) -> StreamTimes {
        StreamTimes {
            pacing: self.pacing.summary(),
            jitter_rfc3550_nanos: self.jitter.rfc3550_nanos(),
            jitter_schedule_nanos: self.jitter.schedule_nanos(),
            intervals: self.intervals.figures(),
        }
    }
}
