//! When the messages of an open loop are due.

use std::time::Duration;

use thalweg_base::time::Instant;

use crate::order::{ProbeOrder, ProbeProtocol, Shape};

/// The due times of one stream's messages: t₀ + k/f, the streams spread evenly over the period. A late sender catches up, so that
/// the offered load is what was asked for; how late it was is told apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendSchedule {
    start: Instant,
    period_ns: f64,
    /// What the stream is behind the first one.
    phase_ns: f64,
    count: u64,
    burst: u64,
}

impl SendSchedule {
    /// That of stream `stream` of an order whose measurement begins at `start`; `None` of one without a rate.
    pub fn of(order: &ProbeOrder, stream: u32, start: Instant) -> Option<SendSchedule> {
        let Shape::Stream { rate_bit_per_s: Some(rate), .. } = order.shape else { return None };
        let period_ns = f64::from(order.size_bytes) * 8.0 * f64::from(order.streams) / rate * 1e9;
        // One that is due at the end itself is not part of the time; a rate that divides it evenly must not lose one by rounding.
        let count = (order.duration().as_nanos() as f64 / period_ns + 1e-6) as u64;
        let burst_max = if order.protocol == ProbeProtocol::Udp { MESSAGES_MAX } else { 1 };
        Some(SendSchedule {
            start,
            period_ns,
            phase_ns: period_ns * f64::from(stream) / f64::from(order.streams),
            count,
            burst: ((BURST_TIME.as_nanos() as f64 / period_ns) as u64).clamp(1, burst_max),
        })
    }

    /// Messages in all.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// When message `number` is due.
    pub fn due(&self, number: u64) -> Instant {
        self.start + Duration::from_nanos((number as f64 * self.period_ns + self.phase_ns) as u64)
    }

    /// How many messages from `number` on leave together at `now`: none before the first is due, then as many as are due within
    /// [`BURST_TIME`], and for a late sender as many as one call takes.
    pub fn ready(&self, now: Instant, number: u64) -> u64 {
        let due = self.due(number);
        if now < due || number >= self.count {
            return 0;
        }
        let behind = (now.since(due).as_nanos() as f64 / self.period_ns) as u64;
        // Those that are due, and those that a punctual burst sends with the first.
        (behind + 1).max(self.burst).min(MESSAGES_MAX).min(self.count - number)
    }
}

/// How much of a schedule leaves as one burst: longer saves calls, shorter fills queues less. Chosen here: a fifth of the millisecond
/// that iperf3 waits between its bursts.
pub const BURST_TIME: Duration = Duration::from_micros(200);
/// The most messages of one burst: what the kernel cuts a message into (UDP_SEGMENT before Linux 6.9).
pub const MESSAGES_MAX: u64 = 64;
