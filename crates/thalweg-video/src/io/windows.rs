//! Figures of one-second windows.

use std::time::Duration;

use thalweg_base::time::Instant;

/// Mean and deviation of a figure over windows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Windows {
    /// Windows.
    pub count: u64,
    /// The mean; 0 without windows.
    pub mean: f64,
    squares: f64,
}

impl Windows {
    /// Adds the figure of one window.
    pub fn add(&mut self, figure: f64) {
        self.count += 1;
        let before = figure - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (figure - self.mean);
    }

    /// The standard deviation of a sample; `None` for fewer than two windows.
    pub fn deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }
}

/// Cuts the time into windows of a second, with what a running count grew in each.
#[derive(Debug)]
pub(super) struct Seconds {
    begun: Instant,
    count: u64,
    cpu: Duration,
}

impl Seconds {
    pub(super) fn new(now: Instant) -> Seconds {
        Seconds::counting(now, 0)
    }

    /// Windows from `now` on, when the count is `count` already.
    pub(super) fn counting(now: Instant, count: u64) -> Seconds {
        Seconds { begun: now, count, cpu: thalweg_host::cpu_time() }
    }

    /// When the window ends.
    pub(super) fn end(&self) -> Instant {
        self.begun + SECOND
    }

    /// Ends the window, in which `count` grew; returns its growth a second and the processor time of this process in it, in
    /// processors.
    pub(super) fn finish(&mut self, now: Instant, count: u64) -> (f64, f64) {
        let (cpu, length) = (thalweg_host::cpu_time(), now.since(self.begun).as_secs_f64());
        let grown = count.saturating_sub(self.count) as f64 / length;
        let used = cpu.saturating_sub(self.cpu).as_secs_f64() / length;
        *self = Seconds { begun: now, count, cpu };
        (grown, used)
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation_are_those_of_the_definition() {
        let mut windows = Windows::default();
        assert_eq!((windows.mean, windows.deviation()), (0.0, None));
        [30.0, 29.0, 31.0, 30.0].into_iter().for_each(|figure| windows.add(figure));
        assert!((windows.mean - 30.0).abs() < 1e-9);
        assert!((windows.deviation().unwrap() - (2.0_f64 / 3.0).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn a_late_window_is_as_long_as_it_was() {
        let start = Instant::from_nanos(5_000_000_000);
        let mut seconds = Seconds::new(start);
        assert_eq!(seconds.end(), start + SECOND);
        assert!((seconds.finish(start + SECOND * 2, 60).0 - 30.0).abs() < 1e-9);
        assert!((seconds.finish(start + SECOND * 3, 90).0 - 30.0).abs() < 1e-9);
    }
}
