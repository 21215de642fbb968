//! A line of a limited rate with a queue before it.

use std::time::Duration;

/// One way of a link: frames follow one another at its rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    nanos_per_byte: f64,
    queue_ns: u64,
    /// When the last frame has left.
    free_ns: u64,
}

impl Line {
    /// A line of so many megabits a second, or without a limit.
    pub(super) fn new(rate_mbit: Option<f64>, queue: Duration) -> Line {
        let nanos_per_byte = rate_mbit.map_or(0.0, |rate_mbit| 8_000.0 / rate_mbit);
        Line { nanos_per_byte, queue_ns: queue.as_nanos() as u64, free_ns: 0 }
    }

    /// When a frame has left the line, or `None` where it would have to wait longer than the queue is.
    pub(super) fn handle_frame(&mut self, now_ns: u64, bytes: usize) -> Option<u64> {
        if self.nanos_per_byte == 0.0 {
            return Some(now_ns);
        }
        let start_ns = self.free_ns.max(now_ns);
        if start_ns - now_ns > self.queue_ns {
            return None;
        }
        self.free_ns = start_ns + (bytes as f64 * self.nanos_per_byte) as u64;
        Some(self.free_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_leave_at_the_rate_and_a_full_queue_refuses() {
        let mut line = Line::new(Some(8.0), Duration::from_millis(2));
        let left: Vec<Option<u64>> = (0..4).map(|_| line.handle_frame(500, 1_000)).collect();
        // A byte a microsecond; the fourth would wait three milliseconds.
        assert_eq!(left, [Some(1_000_500), Some(2_000_500), Some(3_000_500), None]);
        assert_eq!(line.handle_frame(10_000_000, 1), Some(10_001_000), "an idle line is free at once");
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let mut line = Line::new(None, Duration::ZERO);
        assert!((0..100).all(|_| line.handle_frame(7, 1_500) == Some(7)));
    }
}
