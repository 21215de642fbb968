//! Round-trip time between a writer and one of its readers, measured from HEARTBEAT to ACKNACK.

use std::time::Duration;

/// Smoothed round-trip time and its variation, as TCP keeps them (RFC 6298 §2).
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrip {
    smoothed: Option<Duration>,
    variation: Duration,
}

/// Assumed before the first measurement: a local network.
const ASSUMED: Duration = Duration::from_millis(2);

impl RoundTrip {
    /// Takes one measurement into account.
    pub fn measured(&mut self, sample: Duration) {
        match self.smoothed {
            None => {
                self.smoothed = Some(sample);
                self.variation = sample / 2;
            }
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(sample)) / 4;
                self.smoothed = Some((smoothed * 7 + sample) / 8);
            }
        }
    }

    /// The smoothed round-trip time; 2 ms before the first measurement.
    pub fn smoothed(&self) -> Duration {
        self.smoothed.unwrap_or(ASSUMED)
    }

    /// A time within which nearly every answer comes: the smoothed time plus four variations.
    pub fn bound(&self) -> Duration {
        self.smoothed() + self.variation * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_measurements() {
        let mut rtt = RoundTrip::default();
        assert_eq!(rtt.smoothed(), ASSUMED);
        for _ in 0..50 {
            rtt.measured(Duration::from_micros(100));
        }
        assert_eq!(rtt.smoothed(), Duration::from_micros(100));
        assert!(rtt.bound() < Duration::from_micros(110), "{:?}", rtt.bound());
        rtt.measured(Duration::from_millis(1));
        assert!(rtt.bound() > Duration::from_micros(500), "a straggler widens the bound");
    }
}
