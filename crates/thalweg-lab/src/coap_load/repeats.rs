//! Confirmable requests: which message ID is whose, and when to send again (RFC 7252 §4.2).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use thalweg_base::rng::Rng;

/// Requests that wait for a sign of their server. Times are nanoseconds since the start of the run.
pub(super) struct Repeats {
    /// Number of the request by client and message ID.
    numbers: HashMap<(u32, u16), u64>,
    timers: BinaryHeap<Reverse<Timer>>,
    random: Rng,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    due: u64,
    pause: u64,
    number: u64,
    attempts: u8,
}

impl Repeats {
    pub(super) fn new(seed: u64) -> Repeats {
        Repeats { numbers: HashMap::new(), timers: BinaryHeap::new(), random: Rng::new(seed) }
    }

    /// A request was sent for the first time.
    pub(super) fn handle_sent(&mut self, now: u64, number: u64, client: u32, id: u16) {
        let pause = ACK_TIMEOUT + (ACK_TIMEOUT as f64 * (ACK_RANDOM_FACTOR - 1.0) * self.random.share()) as u64;
        self.numbers.insert((client, id), number);
        self.timers.push(Reverse(Timer { due: now + pause, pause, number, attempts: 0 }));
    }

    /// Forgets the message ID of a request; gives its number, if it was known.
    pub(super) fn take(&mut self, client: u32, id: u16) -> Option<u64> {
        self.numbers.remove(&(client, id))
    }

    /// The number of the next request to repeat if nothing has come from its server.
    pub(super) fn fire(&mut self, now: u64) -> Option<u64> {
        let Reverse(timer) = *self.timers.peek().filter(|timer| timer.0.due <= now)?;
        self.timers.pop();
        let attempts = timer.attempts + 1;
        if attempts < MAX_RETRANSMIT {
            let pause = timer.pause * 2;
            self.timers.push(Reverse(Timer { due: timer.due + pause, pause, attempts, ..timer }));
        }
        Some(timer.number)
    }
}

const ACK_TIMEOUT: u64 = 2_000_000_000;
const ACK_RANDOM_FACTOR: f64 = 1.5;
const MAX_RETRANSMIT: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_repeated_four_times_after_doubled_pauses() {
        let mut repeats = Repeats::new(1);
        repeats.handle_sent(0, 7, 1, 2);
        let second = 1_000_000_000;
        let times: Vec<u64> = (0..200).filter(|tenth| repeats.fire(tenth * second / 10) == Some(7)).collect();
        assert!((20..=30).contains(&times[0]), "{times:?}");
        let rest = (200..2000).filter(|tenth| repeats.fire(tenth * second / 10) == Some(7));
        let times: Vec<u64> = times.iter().copied().chain(rest).collect();
        assert_eq!(times.len(), 4);
        for (time, factor) in times.iter().zip([1, 3, 7, 15]) {
            assert!((20 * factor..=30 * factor + 1).contains(time), "{times:?}");
        }
        assert_eq!((repeats.take(1, 3), repeats.take(1, 2), repeats.take(1, 2)), (None, Some(7), None));
    }
}
