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
    /// The latest arrival: the kernel's times of two sockets need not be in order.
    now: Instant,
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
        self.now = self.now.max(arrival.message.arrived);
        let path = if arrival.path == 0 { NetworkPath::First } else { NetworkPath::Second };
        let mut is_stream = false;
        for (protocol, datagram) in arrival.datagrams() {
            if protocol == Protocol::Control {
                let departed = control(arrival.path, arrival.message.source, self.now, datagram);
                departed.into_iter().for_each(|ssrc| self.receiver.handle_departure(ssrc));
                continue;
            }
            let taken = self.receiver.handle_datagram_from(self.now, path, datagram);
            is_stream |= taken != PacketArrival::Refused;
            if let PacketArrival::Placed(place) = taken {
                // A frame has at most FRAME_OCTETS_MAX octets.
                self.jitter.handle_packet(self.now, place.timestamp, place.octets_before as u32);
            }
        }
        is_stream
    }

    pub(super) fn handle_round_trip(&mut self, round_trip: Duration) {
        self.receiver.handle_round_trip(round_trip);
    }

    pub(super) fn poll_timeout(&mut self) -> Instant {
        self.receiver.poll_timeout()
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

    /// What reports say: what was sent again counts as lost, since it came in another stream (RFC 4588 §5).
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
