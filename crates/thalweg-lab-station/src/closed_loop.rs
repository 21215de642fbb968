//! A closed loop, the procedure of RTI Perftest: publishers write as fast as the middleware lets them, and publisher 0 waits for the
//! answer to one sample in so many.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thalweg_host::monotonic_nanos;

use crate::fault::Fault;
use crate::middleware::{ArrivedSample, Middleware, SampleReader, SampleSink, SampleWriter, ScheduledSample};
use crate::order::{Order, ReliabilitySetting};
use crate::publisher::{id, parts};
use crate::records::LatencySample;
use crate::so_far::Tally;
use crate::station::{Course, receive, sleep_until, wait_until};

/// Publishers that write as fast as they may, whatever the rate of the timetable; it only says when they begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedLoop {
    /// The first of each so many samples of publisher 0 is answered, and the publisher waits for the answer.
    pub latency_count: u64,
    /// Subscribers, which answer in turns.
    pub subscribers: u32,
}

impl ClosedLoop {
    /// The subscriber that answers a sample, where one does.
    pub fn answerer(&self, writer: u32, number: u64) -> Option<u32> {
        let latency_count = self.latency_count.max(1);
        let is_answered = writer == 0 && number.is_multiple_of(latency_count);
        is_answered.then(|| (number / latency_count % u64::from(self.subscribers.max(1))) as u32)
    }
}

/// Publisher 0's ear for answers.
pub(crate) struct Answers<M: Middleware> {
    reader: M::Reader,
    heard: Receiver<Result<(u64, u64), Fault>>,
}

impl<M: Middleware> Answers<M> {
    pub(crate) fn open(middleware: &M, order: &Order<M::Setup>) -> Result<Answers<M>, Fault> {
        let (sender, heard) = channel();
        Ok(Answers { reader: middleware.reader(&order.channel(ANSWERS), AnswerSink(sender))?, heard })
    }

    /// Subscribers that it hears.
    pub(crate) fn matched(&self) -> usize {
        self.reader.matched()
    }

    /// The time at which the answer to the sample `id` arrived; `None` where none came before `until_ns`.
    fn wait(&self, id: u64, until_ns: u64, course: &Course) -> Result<Option<u64>, Fault> {
        let until = Instant::now() + Duration::from_nanos(until_ns.saturating_sub(monotonic_nanos()));
        while let Some(answer) = receive(&self.heard, until, course.stop())? {
            match answer? {
                (answered, at_ns) if answered == id => return Ok(Some(at_ns)),
                // It comes after it was given up.
                _ => {}
            }
        }
        Ok(None)
    }
}

/// Notes when an answer arrives, in the thread that brings it.
struct AnswerSink(Sender<Result<(u64, u64), Fault>>);

impl<M: Middleware> SampleSink<M> for AnswerSink {
    fn take(&mut self, arrival: M::Arrival<'_>) {
        // Nobody listens any more at the end of a run.
        let _ = self.0.send(Ok((arrival.number(), monotonic_nanos())));
    }

    fn fail(&mut self, fault: Fault) {
        let _ = self.0.send(Err(fault));
    }
}

/// A subscriber's way to answer.
pub(crate) struct Answerer<M: Middleware> {
    closed: ClosedLoop,
    index: u32,
    writer: M::Writer,
}

impl<M: Middleware> Answerer<M> {
    /// Returns it once publisher 0 hears it.
    pub(crate) fn open(
        middleware: &M,
        (order, closed): (&Order<M::Setup>, ClosedLoop),
        index: u32,
        course: &Course,
    ) -> Result<Answerer<M>, Fault> {
        let writer = middleware.writer(&order.channel(ANSWERS))?;
        let matching = order.pace.matching;
        if !wait_until(matching, course.stop(), || writer.matched() > 0)? {
            return Err(Fault::Here(format!(
                "subscriber {index} did not find the publisher that its answers go to within {matching:?}"
            )));
        }
        Ok(Answerer { closed, index, writer })
    }

    /// Sends back a sample that this subscriber answers.
    pub(crate) fn handle(&mut self, arrival: M::Arrival<'_>) -> Result<(), Fault> {
        let (writer, number) = parts(arrival.number());
        if self.closed.answerer(writer, number) != Some(self.index) {
            return Ok(());
        }
        self.writer.send_back(arrival)?;
        self.writer.flush()
    }
}

/// A publisher's part of the loop.
pub(crate) struct Pump<'a, M: Middleware> {
    pub(crate) order: &'a Order<M::Setup>,
    pub(crate) closed: ClosedLoop,
    pub(crate) index: u32,
    pub(crate) origin_ns: u64,
    pub(crate) course: &'a Course,
    pub(crate) tally: Arc<Tally>,
    /// Publisher 0 has them.
    pub(crate) answers: Option<Answers<M>>,
}

/// What a publisher did in a loop.
#[derive(Debug, Default)]
pub(crate) struct Pumped {
    pub(crate) written: u64,
    pub(crate) refused: u64,
    /// Those of the measured time.
    pub(crate) round_trips: Vec<LatencySample>,
}

impl<M: Middleware> Pump<'_, M> {
    /// Writes until the time is over; whatever found no room is written again.
    pub(crate) fn run(&self, writer: &mut M::Writer, mut sample: M::Sample) -> Result<Pumped, Fault> {
        let timetable = &self.order.timetable;
        let [begin, end] = [timetable.start_ns(), timetable.end_ns()].map(|at_ns| self.origin_ns + at_ns);
        let mut out = Pumped::default();
        sleep_until(self.origin_ns, self.course.stop())?;
        loop {
            let now = monotonic_nanos();
            if now >= end {
                break;
            }
            if self.course.stop().is_requested() {
                return Err(Fault::Interrupted);
            }
            let number = out.written;
            let id = id(self.index, number);
            sample.stamp(now, id);
            if !writer.write_in_time(&sample)? {
                out.refused += 1;
                continue;
            }
            out.written += 1;
            if now >= begin {
                self.tally.add_written();
            }
            if let (Some(answers), Some(reader)) = (&self.answers, self.closed.answerer(self.index, number)) {
                writer.flush()?;
                let answered_ns = answers.wait(id, self.patience_ends(now, end), self.course)?;
                if now >= begin {
                    let since = |at_ns: u64| at_ns - self.origin_ns;
                    let answered_ns = answered_ns.map(since);
                    out.round_trips.push(LatencySample { number, reader, sent_ns: since(now), answered_ns });
                }
            }
        }
        writer.flush()?;
        Ok(out)
    }

    /// When an answer to a sample of `now` is given up: where nothing is sent again it may be lost, else it comes when the others have
    /// ended at the latest.
    fn patience_ends(&self, now: u64, end: u64) -> u64 {
        match self.order.qos.reliability {
            ReliabilitySetting::BestEffort => now + LOSS_PATIENCE.as_nanos() as u64,
            ReliabilitySetting::Reliable => end + END_PATIENCE.as_nanos() as u64,
        }
    }
}

/// The topic of the answers.
const ANSWERS: &str = "thalweg_lab_answers";
/// As in round trips alone.
const LOSS_PATIENCE: Duration = Duration::from_millis(500);
const END_PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::ClosedLoop;

    #[test]
    fn one_sample_in_so_many_of_the_first_publisher_is_answered_by_all_in_turns() {
        let closed = ClosedLoop { latency_count: 1_000, subscribers: 3 };
        let answered: Vec<(u64, u32)> =
            (0..4_000).filter_map(|number| Some((number, closed.answerer(0, number)?))).collect();
        assert_eq!(answered, [(0, 0), (1_000, 1), (2_000, 2), (3_000, 0)]);
        assert_eq!(closed.answerer(1, 0), None);
    }
}
