//! Source timestamps that do not go back where the wall clock only seems to.

use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_rtps::time::Timestamp;

/// The newest source timestamp that a writer has given by itself, in units of 2⁻³² s.
#[derive(Debug, Default)]
pub(super) struct NewestStamp(AtomicU64);

/// A time up to 10 ms before the newest one comes from a thread that was interrupted while it measured the clock; the clock itself was
/// set where it is further back. Chosen by Thalweg.
const SLIP_MAX_TICKS: u64 = (1 << 32) / 100;

impl NewestStamp {
    /// The source timestamp of what is written now, where the clock tells `told`. The caller has the writer locked.
    pub(super) fn follow(&self, told: Timestamp) -> Timestamp {
        let stamp = next_stamp(self.0.load(Ordering::Relaxed), ticks(told));
        self.0.store(stamp, Ordering::Relaxed);
        Timestamp { seconds: (stamp >> 32) as u32, fraction: stamp as u32 }
    }
}

fn ticks(at: Timestamp) -> u64 {
    u64::from(at.seconds) << 32 | u64::from(at.fraction)
}

/// What is not earlier than `newest`, unless the clock, which tells `told`, was set back.
fn next_stamp(newest: u64, told: u64) -> u64 {
    if newest.saturating_sub(told) <= SLIP_MAX_TICKS { newest.max(told) } else { told }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_source_timestamp_goes_back_only_where_the_clock_was_set_back() {
        let newest = NewestStamp::default();
        let at = |millis: u64| Timestamp::from_unix(Duration::from_millis(1_700_000_000_000 + millis));
        for (told, expected) in [(5_000, 5_000), (4_997, 5_000), (5_001, 5_001), (4_001, 4_001), (9_000, 9_000)] {
            assert_eq!(newest.follow(at(told)), at(expected), "{told} ms");
        }
    }
}
