//! Source timestamps that need only one clock reading for a sample.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use thalweg_rtps::time::{Instant, Timestamp};
use thalweg_transport::clock;

/// The difference between wall-clock and monotonic time, measured anew when it is older than [`VALID`]: a step of the wall clock is
/// followed quickly, and yet most samples need only the monotonic time that is read anyway.
#[derive(Default)]
pub(super) struct WallClock {
    offset_nanos: AtomicI64,
    measured_at: AtomicU64,
}

/// Time for which a measured difference is used.
const VALID: Duration = Duration::from_millis(10);

impl WallClock {
    pub(super) fn at(&self, now: Instant) -> Timestamp {
        let measured_at = Instant::from_nanos(self.measured_at.load(Ordering::Relaxed));
        if measured_at == Instant::ZERO || now.since(measured_at) > VALID {
            let wall = clock::wall_clock().to_unix().as_nanos();
            let offset = i64::try_from(wall).unwrap_or(i64::MAX).wrapping_sub_unsigned(clock::now().as_nanos());
            self.offset_nanos.store(offset, Ordering::Relaxed);
            self.measured_at.store(now.as_nanos(), Ordering::Relaxed);
        }
        let nanos = now.as_nanos().saturating_add_signed(self.offset_nanos.load(Ordering::Relaxed));
        Timestamp::from_unix(Duration::from_nanos(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_time_agrees_with_the_wall_clock() {
        let derived = WallClock::default();
        for _ in 0..3 {
            let (before, told, after) = (clock::wall_clock(), derived.at(clock::now()), clock::wall_clock());
            let slack = Duration::from_millis(5);
            assert!(told.to_unix() + slack >= before.to_unix() && told.to_unix() <= after.to_unix() + slack);
        }
    }
}
