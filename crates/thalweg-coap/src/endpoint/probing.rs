//! The rate of data to a silent peer (RFC 7252 §4.7, PROBING_RATE).

use std::time::Duration;

use thalweg_base::time::Instant;

use super::Config;

/// Bytes of non-confirmable requests that a peer was sent since it was heard last. Confirmable messages have their own
/// brake: NSTART and growing pauses.
#[derive(Debug, Default)]
pub struct Silence {
    bytes: u64,
    /// When the first of them left.
    since: Instant,
}

impl Silence {
    /// When the next request may leave: the burst is free, each byte above it takes its time at the probing rate.
    pub fn blocked_until(&self, config: &Config) -> Instant {
        let over = self.bytes.saturating_sub(u64::from(config.probing_burst));
        if over == 0 {
            return Instant::ZERO;
        }
        self.since + Duration::from_secs_f64(over as f64 / f64::from(config.probing_rate.max(1)))
    }

    /// Counts a request.
    pub fn note_sent(&mut self, now: Instant, len: usize) {
        if self.bytes == 0 {
            self.since = now;
        }
        self.bytes += len as u64;
    }

    /// The peer was heard.
    pub fn end(&mut self) {
        self.bytes = 0;
    }
}
