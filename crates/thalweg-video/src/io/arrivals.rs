//! What arrives, given to the receiver of the picture and measured on the way.

use std::net::SocketAddr;
use std::time::Duration;

use hdrhistogram::Histogram;
use thalweg_base::time::{Instant, nanos};

use super::receive::ReceiveTimes;
use super::send::CLOCK_HZ;
use super::socket::{MediaArrival, Protocol};
use crate::jitter::{FrameIntervals, IntervalFigures, JitterMeter};
use crate::receiver::{
    NackItem, NetworkPath, PacketArrival, PathCounters, ReceivedPicture, ReceiverConfig, ReceiverCounters,
    ReceiverError, VideoReceiver,
};
use crate::rtcp::ReceivedStream;

/// The receiver of a picture with meters of its times.
pub(super) struct Arrivals {
    receiver: VideoReceiver,
    jitter: JitterMeter,
    intervals: FrameIntervals,
    latency: Histogram<u64>,
    /// The latest arrival of a packet: those of two paths need not be read in order.
    now: Instant,
    /// The same by path.
    read_until: [Instant; 2],
}

impl Arrivals {
    pub(super) fn new(config: ReceiverConfig) -> Result<Arrivals, ReceiverError> {
        let format = config.format;
        // Each octet of the picture has its time, so that packets of any size can be judged.
        let spacing = nanos(format.frame_time()) as f64 * ACTIVE / format.frame_octets() as f64;
        Ok(Arrivals {
            receiver: VideoReceiver::new(config)?,
            jitter: JitterMeter::new(CLOCK_HZ, spacing),
            intervals: FrameIntervals::default(),
            latency: Histogram::new_with_bounds(1, LATENCY_MAX_NANOS, 3).expect("bounds in order, three digits"),
            now: Instant::ZERO,
            read_until: [Instant::ZERO; 2],
        })
    }

    /// Takes a message; datagrams of RTCP go to `control`, with path, source and time, which tells who has
    /// left by them. Returns whether there was a packet of the
    /// stream.
    pub(super) fn handle_message(
        &mut self,
        arrival: &MediaArrival<'_>,
        mut control: impl FnMut(usize, SocketAddr, Instant, &[u8]) -> Option<u32>,
    ) -> bool {
        let arrived = arrival.message.arrived;
        // RTCP may be read long before packets that came with it.
        if arrival.protocol != Some(Protocol::Control) {
            self.now = self.now.max(arrived);
            self.read_until.get_mut(arrival.path).into_iter().for_each(|until| *until = arrived.max(*until));
        }
        let path = if arrival.path == 0 { NetworkPath::First } else { NetworkPath::Second };
        let mut is_stream = false;
        for (protocol, datagram) in arrival.datagrams() {
            if protocol == Protocol::Control {
                // Reports are read now and then: round trips are reckoned from when they came.
                let departed = control(arrival.path, arrival.message.source, arrived, datagram);
                departed.into_iter().for_each(|ssrc| self.receiver.handle_departure(ssrc));
                continue;
            }
            let taken = self.receiver.handle_datagram_from(self.now, path, datagram);
            is_stream |= taken != PacketArrival::Refused;
            // Those that were sent again come when they are asked for.
            if let PacketArrival::Placed(place) = taken {
                // A frame has at most FRAME_OCTETS_MAX octets.
                self.jitter.handle_packet(self.now, place.timestamp, place.octets_before as u32);
            }
        }
        is_stream
    }

    /// When the latest packet of a path that was taken came.
    pub(super) fn read_until(&self, path: usize) -> Instant {
        self.read_until.get(path).copied().unwrap_or(Instant::NEVER)
    }

    pub(super) fn handle_round_trip(&mut self, round_trip: Duration) {
        self.receiver.handle_round_trip(round_trip);
    }

    pub(super) fn poll_timeout(&mut self) -> Instant {
        self.receiver.poll_timeout()
    }

    pub(super) fn frame_timeout(&self) -> Instant {
        self.receiver.frame_timeout()
    }

    pub(super) fn poll_frame(&mut self, now: Instant) -> Option<ReceivedPicture> {
        let picture = self.receiver.poll_frame(now)?;
        match (picture.completed, picture.latency()) {
            (Some(completed), Some(latency)) => {
                self.intervals.handle_frame(completed);
                self.latency.saturating_record(nanos(latency).max(1));
            }
            // The time between its neighbours is not that of two frames.
            _ => self.intervals.clear_last(),
        }
        Some(picture)
    }

    /// Gives all lists of missing packets that are to be asked for to `each`.
    pub(super) fn poll_nacks(&mut self, now: Instant, mut each: impl FnMut(&[NackItem])) {
        while let Some(items) = self.receiver.poll_nack(now) {
            each(items);
        }
    }

    pub(super) fn finish(&mut self) {
        self.receiver.finish();
    }

    pub(super) fn stop(&mut self, now: Instant) {
        self.receiver.stop(now);
    }

    pub(super) fn ssrc(&self) -> Option<u32> {
        self.receiver.ssrc()
    }

    pub(super) fn counters(&self) -> ReceiverCounters {
        self.receiver.counters()
    }

    pub(super) fn path_counters(&self) -> Vec<PathCounters> {
        [NetworkPath::First, NetworkPath::Second]
            .into_iter()
            .filter_map(|path| self.receiver.path_counters(path))
            .collect()
    }

    /// What reports say: what was sent again in a stream of its own counts as lost (RFC 4588 §5).
    pub(super) fn received(&self) -> Option<ReceivedStream> {
        let (expected, received) = self.receiver.source_packets();
        Some(ReceivedStream {
            ssrc: self.receiver.ssrc()?,
            expected,
            highest_sequence: self.receiver.highest_sequence()?,
            received,
            jitter: self.jitter.rfc3550_ticks(),
        })
    }

    pub(super) fn times(&self) -> ReceiveTimes {
        let nanos = |nanos: f64| Duration::from_nanos(nanos as u64);
        ReceiveTimes {
            latency: figures(&self.latency),
            intervals: self.intervals.figures(),
            jitter_rfc3550: nanos(self.jitter.rfc3550_nanos()),
            jitter_schedule: nanos(self.jitter.schedule_nanos()),
            drift_ppm: self.receiver.drift_ppm(),
            ..ReceiveTimes::default()
        }
    }
}

fn figures(histogram: &Histogram<u64>) -> IntervalFigures {
    if histogram.is_empty() {
        return IntervalFigures::default();
    }
    let at = |quantile| Duration::from_nanos(histogram.value_at_quantile(quantile));
    IntervalFigures { count: histogram.len(), p50: at(0.5), p99: at(0.99), max: at(1.0) }
}

/// The part of a frame time in which a sender by ST 2110-21 sends packets: 1080 of 1125 lines.
const ACTIVE: f64 = 0.96;
/// The longest latency that is told apart: longer than eight frames at one a second.
const LATENCY_MAX_NANOS: u64 = 10_000_000_000;

#[cfg(test)]
mod tests {
    use thalweg_transport::stream::StreamArrival;

    use super::*;
    use crate::format::{Field, FrameRate, PixelFormat, Scan, VideoFormat};
    use crate::receiver::Repair;
    use crate::rfc4175::{Continuation, LINE_HEADER_OCTETS, LineHeader};
    use crate::rtp::RtpHeader;

    /// The time of a packet: 48 in 96 % of a frame time of 40 ms.
    const SPACING: Duration = Duration::from_micros(800);
    /// The packet that does not come.
    const LOST: u16 = 100;

    fn hear(arrivals: &mut Arrivals, arrived: Instant, bytes: &[u8]) {
        let source = "192.0.2.1:5004".parse().unwrap();
        let segment_bytes = bytes.len();
        let message = StreamArrival { bytes, segment_bytes, source, destination: None, kernel_drops: 0, arrived };
        let arrival = MediaArrival { path: 0, protocol: Some(Protocol::Media), message };
        assert!(arrivals.handle_message(&arrival, |_, _, _, _| None));
    }

    /// What is told after four frames of 24 lines a field came as they are planned, a line in each packet, but for one line that
    /// came again later if `is_repaired`. The second fields have time stamps later by `field_ticks`.
    fn hear_frames(field_ticks: u32, is_repaired: bool) -> ReceiveTimes {
        let format = VideoFormat::new(PixelFormat::Yuv422Bits8, (8, 48), FrameRate::PAL, Scan::Interlaced).unwrap();
        let config = ReceiverConfig { repair: Repair::by_retransmission(97), ..ReceiverConfig::new(format) };
        let mut arrivals = Arrivals::new(config).unwrap();
        let mut again = Vec::new();
        for sequence in 0..4 * 48 {
            let (frame, place) = (sequence / 48, sequence % 48);
            let (field, line) = if place < 24 { (Field::First, place) } else { (Field::Second, place - 24) };
            let mut header = [0; LINE_HEADER_OCTETS];
            LineHeader { length: 16, field, line, offset: 0 }.write(Continuation::Last, &mut header);
            let payload = [&[0; 2][..], &header, &[7; 16]].concat();
            let field_ticks = u32::from(field.bit()) * field_ticks;
            let timestamp = 3600 * u32::from(frame) + field_ticks;
            let header = RtpHeader { marker: false, payload_type: 96, sequence, timestamp, ssrc: 1 };
            let before = if field_ticks == 0 { place } else { line };
            let sampled = Duration::from_secs(1) * timestamp / CLOCK_HZ;
            let at = Instant::from_nanos(1 << 40) + sampled + SPACING * u32::from(before);
            if sequence == LOST {
                let header = RtpHeader { payload_type: 97, sequence: 9, ssrc: 2, ..header };
                again = [&header.to_octets()[..], &sequence.to_be_bytes(), &payload].concat();
                continue;
            }
            // The packet before has shown what is missing.
            if is_repaired && sequence == LOST + 2 {
                hear(&mut arrivals, at - SPACING / 2, &again);
            }
            hear(&mut arrivals, at, &[&header.to_octets()[..], &payload].concat());
        }
        assert_eq!(arrivals.counters().packets.recovered, u64::from(is_repaired));
        arrivals.times()
    }

    #[test]
    fn fields_that_come_as_planned_show_no_jitter() {
        for field_ticks in [0, 1800] {
            let jitter = hear_frames(field_ticks, false).jitter_schedule;
            assert!(jitter < Duration::from_micros(1), "{jitter:?} with fields {field_ticks} ticks apart");
        }
    }

    #[test]
    fn reports_that_are_read_late_have_come_at_their_time() {
        let format = VideoFormat::new(PixelFormat::Yuv422Bits8, (8, 48), FrameRate::PAL, Scan::Progressive).unwrap();
        let mut arrivals = Arrivals::new(ReceiverConfig::new(format)).unwrap();
        let source = "192.0.2.1:5005".parse().unwrap();
        let mut told = Vec::new();
        for (protocol, millis) in [(Protocol::Media, 30), (Protocol::Control, 14)] {
            let bytes = &[0_u8; 8];
            let arrived = Instant::from_nanos(millis * 1_000_000);
            let message =
                StreamArrival { bytes, segment_bytes: 8, source, destination: None, kernel_drops: 0, arrived };
            let arrival = MediaArrival { path: 0, protocol: Some(protocol), message };
            arrivals.handle_message(&arrival, |_, _, at, _| {
                told.push(at.as_nanos() / 1_000_000);
                None
            });
        }
        assert_eq!(told, [14]);
    }

    #[test]
    fn packets_that_are_sent_again_show_no_jitter() {
        let (calm, repaired) = (hear_frames(0, false), hear_frames(0, true));
        assert_eq!(repaired.jitter_schedule, calm.jitter_schedule);
        assert_eq!(repaired.jitter_rfc3550, calm.jitter_rfc3550);
    }
}
