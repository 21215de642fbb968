//! When a loop leaves the processor to the pools.

use std::time::Duration;

/// Lets a loop rest while pools refuse requests. A loop that is woken for each datagram takes from the handlers, on the
/// same processor, the time that they lack; datagrams that come during a pause are received by one system call after it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pause {
    has_refused: bool,
}

impl Pause {
    /// Takes a turn of the loop into account: whether a pool had no room for what it brought, and whether there is more to
    /// receive. How long the loop shall not look at its socket, if at all: it first takes all that waits there, so that
    /// nothing is lost in the receive buffer.
    pub(super) fn handle_turn(&mut self, has_refused: bool, is_full: bool) -> Option<Duration> {
        self.has_refused |= has_refused;
        let is_due = self.has_refused && !is_full;
        self.has_refused &= is_full;
        is_due.then_some(PAUSE)
    }
}

/// Short beside the 25 ms that requests wait in a queue that refuses some, so that the threads do not run out of work. In
/// it 170,000 datagrams a second fill half of the smallest receive buffer.
const PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use thalweg_base::time::Instant;

    use super::*;
    use crate::scheduler::admission::{AdmissionRank, Forecast, Patience};
    use crate::scheduler::queue::{JobOffer, Queue, Taken};

    #[test]
    fn a_loop_rests_when_a_pool_refused_and_nothing_more_is_to_be_received() {
        let mut pause = Pause::default();
        assert_eq!(pause.handle_turn(false, false), None);
        assert_eq!(pause.handle_turn(true, true), None, "more waits in the socket");
        assert_eq!(pause.handle_turn(false, false), Some(PAUSE), "a batch before was refused");
        assert_eq!(pause.handle_turn(false, false), None, "once for each refusal");
    }

    /// A loop and a handler that computes, on one processor. Times in nanoseconds.
    struct Model {
        now: u64,
        received: u64,
        served: u64,
        /// Of those who were served after the first half second, in which the queue learns that its backlog stands.
        waited_max: Duration,
        queue: Queue<()>,
        /// Of the job in hand.
        remaining: u64,
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Rests {
        AsDecided,
        Never,
    }

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    impl Model {
        /// Two seconds under `rate` requests a second.
        fn run(rests: Rests, rate: u64) -> Model {
            let mut queue = Queue::new(Patience::default());
            queue.set_forecast(Forecast { rate: Some(0.9 * SECOND as f64 / JOB as f64), can_grow: false });
            let mut model = Model { now: 0, received: 0, served: 0, waited_max: Duration::ZERO, queue, remaining: 0 };
            let (mut pause, mut rest_until) = (Pause::default(), 0);
            while model.now < 2 * SECOND {
                let waiting = (model.now * rate / SECOND - model.received).min(BATCH);
                if model.now < rest_until || waiting == 0 {
                    let next = (model.received + 1) * SECOND / rate + 1;
                    model.work_until(next.max(rest_until));
                    continue;
                }
                let has_refused = model.receive(waiting);
                let rest = pause.handle_turn(has_refused, waiting == BATCH).filter(|_| rests == Rests::AsDecided);
                rest_until = model.now + rest.map_or(0, |rest| rest.as_nanos() as u64);
            }
            model
        }

        /// Takes a batch; true when some of it was refused.
        fn receive(&mut self, count: u64) -> bool {
            self.now += WAKE + count * DATAGRAM;
            self.received += count;
            let offer = || JobOffer { rank: AdmissionRank::Droppable, bytes: 1, job: () };
            (0..count).filter(|_| self.queue.push(at(self.now), offer()).is_err()).count() > 0
        }

        fn work_until(&mut self, end: u64) {
            while self.now < end {
                if self.remaining == 0 {
                    self.take();
                }
                let step = if self.remaining == 0 { end - self.now } else { self.remaining.min(end - self.now) };
                self.now += step;
                if self.remaining > 0 {
                    self.remaining -= step;
                    self.served += u64::from(self.remaining == 0);
                }
            }
        }

        fn take(&mut self) {
            let mut taken = Taken::default();
            self.queue.take(at(self.now), 1, &mut taken);
            self.remaining = if taken.jobs.is_empty() { 0 } else { JOB };
            if self.now > SECOND / 2 && taken.expired.is_empty() {
                self.waited_max = self.waited_max.max(taken.waited_max);
            }
        }
    }

    /// About what a server needs to be woken and to ask its socket, for a datagram that is dropped, and for a handler that
    /// computes for 20 µs with its answer.
    const WAKE: u64 = 4_000;
    const DATAGRAM: u64 = 600;
    const JOB: u64 = 25_000;
    const BATCH: u64 = 64;
    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn under_twice_its_load_a_processor_serves_nearly_as_much_as_it_can() {
        let peak = 2 * SECOND / JOB;
        let model = Model::run(Rests::AsDecided, 80_000);
        assert!(model.served * 100 >= peak * 90, "{} of {peak}", model.served);
        assert!(model.waited_max < Duration::from_millis(50), "{:?}", model.waited_max);
        let restless = Model::run(Rests::Never, 80_000).served;
        assert!(restless * 100 < peak * 75, "{restless} of {peak}: the model does not show the harm");
    }

    #[test]
    fn a_light_load_meets_no_pause() {
        let model = Model::run(Rests::AsDecided, 20_000);
        assert!(model.served + 5 >= 40_000, "{}", model.served);
        assert!(model.waited_max < Duration::from_micros(100), "{:?}", model.waited_max);
    }
}
