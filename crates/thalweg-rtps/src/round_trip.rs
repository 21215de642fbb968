//! Round-trip time between a writer and one of its readers, measured from HEARTBEAT to ACKNACK.

use std::time::Duration;

use crate::time::nanos;

/// The shortest of the latest measurements.
///
/// Only exchanges are measured of which it is known which request was answered (Karn's rule), since the answer names it or could be to no
/// other: a lost HEARTBEAT would make the answer to its repetition look late, and an answer that is slow would make its repetition look
/// answered quickly.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    latest_nanos: [u64; MEASUREMENTS],
    next: usize,
    /// Of the latest: it is asked for far more often than measured.
    shortest_nanos: u64,
    assumed_nanos: u64,
}

const MEASUREMENTS: usize = 8;

/// Stands for no measurement.
const UNKNOWN: u64 = u64::MAX;

/// Within one turn of the I/O thread the clock stands still.
const SHORTEST_NANOS: u64 = 1_000;

/// What to assume before the first measurement: a local network.
pub const ASSUMED: Duration = Duration::from_millis(2);

impl RoundTrip {
    /// Nothing was measured yet.
    pub fn assuming(assumed: Duration) -> RoundTrip {
        let assumed_nanos = nanos(assumed);
        RoundTrip { latest_nanos: [UNKNOWN; MEASUREMENTS], next: 0, shortest_nanos: UNKNOWN, assumed_nanos }
    }

    /// Takes one measurement into account; none is shorter than a microsecond.
    pub fn measured(&mut self, sample: Duration) {
        self.latest_nanos[self.next] = nanos(sample).clamp(SHORTEST_NANOS, UNKNOWN - 1);
        self.next = (self.next + 1) % MEASUREMENTS;
        self.shortest_nanos = self.latest_nanos.iter().copied().fold(UNKNOWN, u64::min);
    }

    /// The round-trip time; what is assumed before the first measurement.
    #[inline]
    pub fn estimate(&self) -> Duration {
        self.measurement().unwrap_or(Duration::from_nanos(self.assumed_nanos))
    }

    /// The round-trip time; `None` before the first measurement.
    #[inline]
    pub fn measurement(&self) -> Option<Duration> {
        (self.shortest_nanos != UNKNOWN).then_some(Duration::from_nanos(self.shortest_nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stragglers_do_not_count_but_a_longer_path_does() {
        let mut rtt = RoundTrip::assuming(ASSUMED);
        assert_eq!(rtt.estimate(), ASSUMED);
        rtt.measured(Duration::from_micros(100));
        rtt.measured(Duration::from_millis(500));
        assert_eq!(rtt.estimate(), Duration::from_micros(100));
        for _ in 0..MEASUREMENTS {
            rtt.measured(Duration::from_millis(30));
        }
        assert_eq!(rtt.estimate(), Duration::from_millis(30));
    }
}
