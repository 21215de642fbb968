//! DEADLINE: frame times in which no frame came.

use std::time::Duration;

use thalweg_base::time::Instant;

/// Counts periods without a frame. Half a period is tolerated, since frames of an exact rate come a little earlier or
/// later than a period after the one before.
#[derive(Debug)]
pub(super) struct DeadlineMeter {
    period: Duration,
    last: Option<Instant>,
    missed: u64,
}

impl DeadlineMeter {
    pub(super) fn new(period: Duration) -> DeadlineMeter {
        DeadlineMeter { period, last: None, missed: 0 }
    }

    /// Notes that a frame began to come.
    pub(super) fn handle_frame(&mut self, now: Instant) {
        if let Some(last) = self.last.replace(now) {
            self.missed += self.periods_missed(now.since(last));
        }
    }

    /// Periods without a frame so far, those since the last one included.
    pub(super) fn missed(&self, now: Instant) -> u64 {
        self.missed + self.last.map_or(0, |last| self.periods_missed(now.since(last)))
    }

    fn periods_missed(&self, gap: Duration) -> u64 {
        let period = self.period.as_nanos().max(1);
        let periods = (gap.as_nanos() + period / 2) / period;
        u64::try_from(periods.saturating_sub(1)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_period_without_a_frame_is_missed_once() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut meter = DeadlineMeter::new(Duration::from_millis(40));
        assert_eq!(meter.missed(at(1000)), 0, "nothing is promised before the first frame");
        for (frame, expect) in [(1000, 0), (1040, 0), (1095, 0), (1160, 1), (1200, 1), (1400, 5)] {
            meter.handle_frame(at(frame));
            assert_eq!(meter.missed(at(frame)), expect, "after the frame at {frame} ms");
        }
        assert_eq!(meter.missed(at(1480)), 6, "and those since the last one");
    }
}
