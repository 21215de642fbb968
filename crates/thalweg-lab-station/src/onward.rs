//! What a process publishes for the samples that it takes: a link of a chain.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use thalweg_host::monotonic_nanos;

use crate::executor::work;
use crate::fault::Fault;
use crate::middleware::{Middleware, SampleWriter, ScheduledSample};
use crate::order::{Onward, PublisherReport};
use crate::publisher::{Published, PublisherRecords, find_readers, id};
use crate::records::WrittenSample;
use crate::station::Course;

/// Joins, finds its readers, tells so by `matched`, and publishes a sample for each number that came from all of `writers` publishers,
/// until `taken` ends. What is too late already is not sent: a process that cannot keep up drops samples as a publisher does.
pub(crate) fn run<M: Middleware>(
    onward: &Onward<M::Setup>,
    (taken, writers): (Receiver<(u32, u64)>, usize),
    course: &Course,
    matched: impl FnOnce(),
) -> Result<Published<M>, Fault> {
    let order = &onward.order;
    let [place] = order.publishers.as_slice() else {
        return Err(Fault::Here("a process publishes by one publisher what it takes".to_owned()));
    };
    let (middleware, mut writer, _) = find_readers::<M>(order, place, course)?;
    let mut sample = middleware.scheduled_sample()?;
    order.fill(place.index, &mut sample);
    matched();
    let tally = course.tally_onward();
    let origin_ns = course.wait_for_start()?;
    // How many publishers have sent a number that not all have sent; those of lost samples stay to the end.
    let mut incomplete: BTreeMap<u64, usize> = BTreeMap::new();
    let (mut samples, mut refused) = (Vec::new(), 0);
    let behind_max = order.pace.behind_max.as_nanos() as u64;
    while let Some((_, number)) = next(&taken, course)? {
        let sent = incomplete.entry(number).or_default();
        *sent += 1;
        if *sent < writers {
            continue;
        }
        incomplete.remove(&number);
        let due = origin_ns + order.timetable.due_ns(place.index, number);
        let is_in_time = monotonic_nanos().saturating_sub(due) <= behind_max;
        let mut is_written = false;
        if is_in_time {
            work(onward.work);
            let written = monotonic_nanos();
            sample.stamp(written, id(place.index, number));
            is_written = writer.write_in_time(&sample)?;
            if is_written {
                let (written_ns, returned_ns) = (written - origin_ns, monotonic_nanos() - origin_ns);
                samples.push(WrittenSample { number, written_ns, returned_ns });
            } else {
                refused += 1;
            }
        }
        match is_written {
            _ if number < order.timetable.first => {}
            true => tally.add_written(),
            false => tally.add_not_sent(),
        }
    }
    // The rest of the laboratory takes records in the order of the numbers.
    samples.sort_unstable_by_key(|sample| sample.number);
    let written = samples.len() as u64;
    let report = PublisherReport { index: place.index, written, refused, ..PublisherReport::default() };
    Published::end(order, (report, PublisherRecords::Samples(samples)), (writer, middleware))
}

/// The next sample that was taken; `None` at the end.
fn next(taken: &Receiver<(u32, u64)>, course: &Course) -> Result<Option<(u32, u64)>, Fault> {
    loop {
        match taken.recv_timeout(LOOK_PERIOD) {
            Ok(sample) => return Ok(Some(sample)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) if course.stop().is_requested() => return Err(Fault::Interrupted),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

const LOOK_PERIOD: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::link::Stop;
    use crate::order::{HistorySetting, Order, PublisherPlace, Qos, ReliabilitySetting, TimetablePace, Wake};
    use crate::stub::Stub;
    use crate::timetable::{PublisherPhase, Timetable};

    /// The order of a process that publishes a hundred samples a second, a second late at most.
    fn order() -> Order<()> {
        Order {
            setup: (),
            qos: Qos {
                reliability: ReliabilitySetting::BestEffort,
                history: HistorySetting::KeepAll(1),
                max_blocking: Duration::ZERO,
            },
            timetable: Timetable {
                rate_hz: 100.0,
                publishers: 1,
                phase: PublisherPhase::Spread,
                first: 0,
                count: 2_000,
            },
            pace: TimetablePace {
                behind_max: Duration::from_secs(1),
                wake: Wake::Sleep,
                drain: Duration::ZERO,
                matching: Duration::ZERO,
            },
            payload_seed: 0,
            executor: None,
            closed_loop: None,
            publishers: vec![PublisherPlace { index: 0, cpu: None, topic: "next".to_owned(), readers: 0 }],
            subscribers: Vec::new(),
            folder: PathBuf::new(),
            onward: None,
        }
    }

    /// Samples written of those with these numbers, of which number 1,100 is due now.
    fn written(numbers: impl Iterator<Item = u64>, work: Duration) -> u64 {
        let (take, taken) = channel();
        numbers.for_each(|number| take.send((0, number)).expect("there is a receiver"));
        drop(take);
        let course = Course::new(Stop::default());
        course.start(monotonic_nanos() - 11_000_000_000);
        let published = run::<Stub>(&Onward { order: order(), work }, (taken, 1), &course, || ());
        published.expect("nothing fails").report.written
    }

    #[test]
    fn a_stage_that_is_too_late_sends_nothing_and_does_no_work() {
        assert_eq!(written(0..100, Duration::from_secs(1)), 0);
        assert_eq!(written((0..100).chain([1_100, 1_101]), Duration::from_micros(1)), 2);
    }
}
