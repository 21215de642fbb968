//! The bound on datagrams that wait in a socket's receive buffer.

use std::time::Duration;

use thalweg_base::time::Instant;

/// Bounds the wait in the receive buffer in time: it holds the datagrams that a busy loop works off in 25 ms. The kernel drops the
/// rest, which costs less than to receive it in order to drop it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backlog {
    /// When the batch before this one was taken, and how large it was, if it was full: then the loop has been busy since.
    busy_since: Option<(Instant, usize)>,
    /// Time a datagram, averaged over batches; zero before anything is known.
    datagram_nanos: f64,
    /// Bytes that the buffer was given, and when.
    given: Option<(usize, Instant)>,
}

impl Backlog {
    /// Notes that the buffer has the size again with which sockets are opened, for what a burst brings.
    pub(super) fn handle_growth(&mut self, now: Instant) -> usize {
        self.given = Some((BYTES_MAX, now));
        BYTES_MAX
    }

    /// How many datagrams a buffer of so many bytes, as they are asked for, holds with a quarter to spare.
    pub(super) fn datagrams_in(bytes: usize) -> usize {
        (2.0 * bytes as f64 * 0.75 / CHARGED_BYTES) as usize
    }

    /// Takes a batch into account; how many bytes the buffer shall have from now on, if that changes by a quarter or more.
    pub(super) fn handle_batch(&mut self, now: Instant, count: usize, is_full: bool) -> Option<usize> {
        let busy_since = std::mem::replace(&mut self.busy_since, is_full.then_some((now, count)));
        let (start, count) = busy_since?;
        let nanos = now.since(start).as_nanos() as f64 / count as f64;
        let is_first = self.datagram_nanos == 0.0;
        self.datagram_nanos += (nanos - self.datagram_nanos) * if is_first { 1.0 } else { SMOOTHING };
        let (given, given_at) = self.given.unwrap_or((BYTES_MAX, now));
        self.given = Some((given, given_at));
        if now.since(given_at) < PAUSE {
            return None;
        }
        let datagrams = WAIT_MAX.as_nanos() as f64 / self.datagram_nanos.max(1.0);
        // Linux grants twice what it is asked for.
        let bytes = ((datagrams * CHARGED_BYTES / 2.0) as usize).clamp(BYTES_MIN, BYTES_MAX);
        self.given = Some((given, now));
        let is_news = bytes * 4 <= given * 3 || bytes * 3 >= given * 4;
        if is_news {
            self.given = Some((bytes, now));
        }
        is_news.then_some(bytes)
    }
}

const WAIT_MAX: Duration = Duration::from_millis(25);
/// Bytes that Linux charges for a datagram of up to some 200 bytes.
const CHARGED_BYTES: f64 = 768.0;
/// Room for a burst of 340 such datagrams, however slow the handlers are.
const BYTES_MIN: usize = 128 << 10;
/// Receive buffer with which the sockets are opened.
const BYTES_MAX: usize = 2 << 20;
/// Between changes.
const PAUSE: Duration = Duration::from_millis(500);
const SMOOTHING: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    /// Full batches of 64 for a second, each datagram taking `nanos`; the last change.
    fn run(backlog: &mut Backlog, start: u64, nanos: u64) -> Option<usize> {
        let batch = 64 * nanos;
        let times = (0..1_000_000_000 / batch).map(|step| Instant::from_nanos(start * 1_000_000_000 + step * batch));
        times.filter_map(|now| backlog.handle_batch(now, 64, true)).last()
    }

    #[test]
    fn a_slow_loop_gets_a_small_buffer_and_a_fast_one_a_large_one() {
        let mut backlog = Backlog::default();
        assert_eq!(run(&mut backlog, 1, 2000), None, "12,500 datagrams and more fit into what it has");
        let slow = run(&mut backlog, 2, 50_000).expect("a change");
        assert!((150_000..250_000).contains(&slow), "500 datagrams of 768 bytes, halved: {slow}");
        assert_eq!(run(&mut backlog, 3, 500_000), Some(BYTES_MIN));
        assert_eq!(run(&mut backlog, 4, 2000), Some(BYTES_MAX));
    }

    #[test]
    fn a_loop_that_waits_between_batches_is_not_slow() {
        let mut backlog = Backlog::default();
        for second in 1..100 {
            assert_eq!(backlog.handle_batch(Instant::from_nanos(second * 1_000_000_000), 1, false), None);
        }
    }
}
