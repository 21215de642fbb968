//! Three figures of how regularly video arrives, because the usual one does not tell it.
//!
//! The estimate of RFC 3550 compares the time stamps of neighbouring packets. All packets of a frame have one time stamp, so
//! that a perfectly regular stream shows the spacing of its packets: 57.8 µs for the HD stream of 580 packets a frame, whatever
//! the network does. It is reported to peers all the same. What a user asks for is the deviation from the schedule of the
//! packets within the frame, and the time between complete frames.

#[cfg(test)]
mod tests;

use std::time::Duration;

use hdrhistogram::Histogram;
use thalweg_base::time::Instant;

/// The longest time between frames that is told apart; longer ones count as this.
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// The estimate of RFC 3550 §6.4.1 over any times: a mean of the steps between neighbours with a weight of 1/16 for the newest.
#[derive(Clone, Copy, Debug, Default)]
struct Estimate {
    nanos: f64,
    before: Option<f64>,
}

impl Estimate {
    fn add(&mut self, transit_nanos: f64) {
        if let Some(before) = self.before.replace(transit_nanos) {
            self.nanos += ((transit_nanos - before).abs() - self.nanos) / 16.0;
        }
    }
}

/// Measures the packets of one stream.
#[derive(Clone, Debug)]
pub struct JitterMeter {
    rate_hz: u32,
    spacing_nanos: f64,
    packets: Estimate,
    schedule: Estimate,
    /// Time of the first packet, and the last time stamp with its wraps.
    start: Option<Instant>,
    timestamp: Ticks,
}

impl JitterMeter {
    /// A meter of a stream whose time stamps count `rate_hz`, and whose packets follow within a frame after `spacing_nanos`: the
    /// T_RS of [`FramePacing::packet_nanos`](crate::conformance::FramePacing::packet_nanos), or 0 for packets that each have a
    /// time stamp of their own, as audio. A rate of 0 counts as 1.
    pub fn new(rate_hz: u32, spacing_nanos: f64) -> JitterMeter {
        JitterMeter {
            rate_hz: rate_hz.max(1),
            spacing_nanos,
            packets: Estimate::default(),
            schedule: Estimate::default(),
            start: None,
            timestamp: Ticks::default(),
        }
    }

    /// Takes a packet, in the order of arrival: its time stamp, and its place among the packets with this time stamp, counted from
    /// 0. For fields with a time stamp in common, the place is that in the frame.
    pub fn handle_packet(&mut self, at: Instant, timestamp: u32, place: u32) {
        let start = *self.start.get_or_insert(at);
        let arrival = (i128::from(at.as_nanos()) - i128::from(start.as_nanos())) as f64;
        let sampled = self.timestamp.extend(timestamp) as f64 * 1e9 / f64::from(self.rate_hz);
        self.packets.add(arrival - sampled);
        self.schedule.add(arrival - sampled - f64::from(place) * self.spacing_nanos);
    }

    /// The estimate of RFC 3550 in nanoseconds: for video, the spacing of packets rather than jitter.
    pub fn rfc3550_nanos(&self) -> f64 {
        self.packets.nanos
    }

    /// The estimate of RFC 3550 in ticks of the time stamp, as a report block carries it.
    pub fn rfc3550_ticks(&self) -> u32 {
        (self.packets.nanos * f64::from(self.rate_hz) / 1e9) as u32
    }

    /// The same estimate of the deviations from the schedule: arrival − (time stamp + place · spacing); 0 for a stream that
    /// arrives as it was planned.
    pub fn schedule_nanos(&self) -> f64 {
        self.schedule.nanos
    }
}

/// Time stamps of 32 bits, extended by their wraps from the first one.
#[derive(Clone, Copy, Debug, Default)]
struct Ticks {
    last: Option<u32>,
    since_first: i64,
}

impl Ticks {
    fn extend(&mut self, timestamp: u32) -> i64 {
        let step = self.last.map_or(0, |last| timestamp.wrapping_sub(last) as i32);
        self.last = Some(timestamp);
        self.since_first = self.since_first.saturating_add(step.into());
        self.since_first
    }
}

/// The times between frames, in three significant digits.
#[derive(Clone, Debug)]
pub struct FrameIntervals {
    histogram: Histogram<u64>,
    before: Option<Instant>,
}

/// What [`FrameIntervals`] tells; zero without two frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntervalFigures {
    /// Intervals counted.
    pub count: u64,
    /// The median.
    pub p50: Duration,
    /// Exceeded by one interval in a hundred.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

impl Default for FrameIntervals {
    fn default() -> FrameIntervals {
        let max = INTERVAL_MAX.as_nanos() as u64;
        let histogram =
            Histogram::new_with_bounds(1, max, 3).expect("the bounds are in order and three digits are allowed");
        FrameIntervals { histogram, before: None }
    }
}

impl FrameIntervals {
    /// Takes the time at which a frame was complete, or presented.
    pub fn handle_frame(&mut self, at: Instant) {
        if let Some(before) = self.before.replace(at) {
            // Saturates at the upper bound.
            self.histogram.saturating_record(thalweg_base::time::nanos(at.since(before)).max(1));
        }
    }

    /// Leaves out the time until the next frame, as after a pause that was meant.
    pub fn clear_last(&mut self) {
        self.before = None;
    }

    /// The figures until now.
    pub fn figures(&self) -> IntervalFigures {
        if self.histogram.is_empty() {
            return IntervalFigures::default();
        }
        let at = |quantile| Duration::from_nanos(self.histogram.value_at_quantile(quantile));
        IntervalFigures { count: self.histogram.len(), p50: at(0.5), p99: at(0.99), max: at(1.0) }
    }
}
