//! Round-trip time between a writer and one of its readers, measured from HEARTBEAT to ACKNACK.

use std::time::Duration;

/// The shortest of the latest measurements.
///
/// Only exchanges are measured of which it is known which request was answered (Karn's rule): a lost HEARTBEAT would make the
/// answer to its repetition look late, and an answer that is slow would make its repetition look answered quickly.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    latest: [Duration; MEASUREMENTS],
    next: usize,
    /// Of `latest`: it is asked for far more often than measured.
    shortest: Duration,
    assumed: Duration,
}

const MEASUREMENTS: usize = 8;

/// Within one turn of the I/O thread the clock stands still.
const SHORTEST: Duration = Duration::from_micros(1);

/// What to assume before the first measurement: a local network.
pub const ASSUMED: Duration = Duration::from_millis(2);

impl RoundTrip {
    /// Nothing was measured yet.
    pub fn assuming(assumed: Duration) -> RoundTrip {
        RoundTrip { latest: [Duration::MAX; MEASUREMENTS], next: 0, shortest: Duration::MAX, assumed }
    }

    /// Takes one measurement into account; none is shorter than a microsecond.
    pub fn measured(&mut self, sample: Duration) {
        self.latest[self.next] = sample.max(SHORTEST);
        self.next = (self.next + 1) % MEASUREMENTS;
        self.shortest = self.latest.iter().copied().fold(Duration::MAX, Duration::min);
    }

    /// The round-trip time; what is assumed before the first measurement.
    #[inline]
    pub fn estimate(&self) -> Duration {
        self.measurement().unwrap_or(self.assumed)
    }

    /// The round-trip time; `None` before the first measurement.
    #[inline]
    pub fn measurement(&self) -> Option<Duration> {
        Some(self.shortest).filter(|shortest| *shortest != Duration::MAX)
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
