//! When entries of a recording are due.

use std::time::{Duration, Instant};

/// The due times of entries that are given in the order of their times.
#[derive(Debug)]
pub struct ReplayPace {
    /// How many times as fast as recorded.
    rate: f64,
    /// A recorded time, and when it is due.
    anchor: Option<(u64, Instant)>,
    /// The latest time so far.
    latest_ns: u64,
    skipped: Duration,
}

impl ReplayPace {
    /// One that begins with its first entry.
    pub fn new(rate: f64) -> ReplayPace {
        ReplayPace { rate, anchor: None, latest_ns: 0, skipped: Duration::ZERO }
    }

    /// When an entry of this recorded time is due; the first one is `now`. A silence of more than an hour lasts a second: most likely the
    /// recorder's clock was set forward, its host slept, or another recording begins.
    pub fn due(&mut self, time_ns: u64, now: Instant) -> Instant {
        let (from_ns, at) = match self.anchor {
            None => (time_ns, now),
            Some(anchor) if time_ns.saturating_sub(self.latest_ns) > SILENCE_MAX_NS => {
                let resumed_ns = self.latest_ns + SILENCE_NS;
                self.skipped += Duration::from_nanos(time_ns - resumed_ns);
                (time_ns, self.after(anchor, resumed_ns))
            }
            Some(anchor) => anchor,
        };
        self.anchor = Some((from_ns, at));
        self.latest_ns = self.latest_ns.max(time_ns);
        self.after((from_ns, at), time_ns)
    }

    /// Recorded time that was left out.
    pub fn skipped(&self) -> Duration {
        self.skipped
    }

    fn after(&self, (from_ns, at): (u64, Instant), time_ns: u64) -> Instant {
        let after_s = time_ns.saturating_sub(from_ns) as f64 / 1e9 / self.rate;
        at + Duration::try_from_secs_f64(after_s).unwrap_or(LONGEST).min(LONGEST)
    }
}

/// Longest silence that is waited for, chosen by us: whoever records what is rarer wants no replay in real time.
const SILENCE_MAX_NS: u64 = 3_600_000_000_000;
/// What is left of a longer one.
const SILENCE_NS: u64 = 1_000_000_000;
/// Longest distance from an entry that is waited for: a year.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// When entries of these recorded seconds are due, in milliseconds, and the seconds that are left out.
    #[track_caller]
    fn check(rate: f64, recorded_s: &[u64], due_ms: &[u128], skipped_s: u64) {
        let begun = Instant::now();
        let mut pace = ReplayPace::new(rate);
        let due = recorded_s.iter().map(|second| pace.due(second * SECOND, begun).duration_since(begun).as_millis());
        assert_eq!(due.collect::<Vec<_>>(), due_ms);
        assert_eq!(pace.skipped(), Duration::from_secs(skipped_s));
    }

    #[test]
    fn entries_are_due_at_their_distances_and_late_ones_at_once() {
        check(1.0, &[1_000, 1_002, 1_001, 4_601], &[0, 2_000, 1_000, 3_601_000], 0);
        check(4.0, &[1_000, 1_002, 1_004], &[0, 500, 1_000], 0);
    }

    #[test]
    fn nobody_waits_for_hours_in_which_a_clock_was_set_forward() {
        // From 1970 to today, and from one recording to the next.
        let today = 20_000 * 86_400;
        check(1.0, &[5, 6, today, today + 1], &[0, 1_000, 2_000, 3_000], today - 7);
        check(2.0, &[5, 5 + 7_200, 5 + 14_400, 5 + 14_402], &[0, 500, 1_000, 2_000], 2 * 7_199);
        check(1.0, &[5, 5 + 3_600], &[0, 3_600_000], 0);
    }
}
