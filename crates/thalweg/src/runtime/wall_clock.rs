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
            self.offset_nanos.store(offset_nanos(), Ordering::Relaxed);
            self.measured_at.store(now.as_nanos(), Ordering::Relaxed);
        }
        let nanos = now.as_nanos().saturating_add_signed(self.offset_nanos.load(Ordering::Relaxed));
        Timestamp::from_unix(Duration::from_nanos(nanos))
    }
}

/// What the wall clock shows more than the monotonic one.
fn offset_nanos() -> i64 {
    let measure = || {
        let (before, wall) = (clock::now(), clock::wall_clock());
        let after = clock::now();
        let wall = i64::try_from(wall.to_unix().as_nanos()).unwrap_or(i64::MAX);
        (after.since(before), wall.wrapping_sub_unsigned(after.as_nanos()))
    };
    // Whoever is interrupted in between measures again.
    let (mut took, mut offset) = measure();
    for _ in 0..3 {
        if took < INTERRUPTED {
            break;
        }
        (took, offset) = measure();
    }
    offset
}

/// Two readings of a clock that lie so far apart were interrupted.
const INTERRUPTED: Duration = Duration::from_micros(100);

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
