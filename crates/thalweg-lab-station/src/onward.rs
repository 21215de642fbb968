//! What a process publishes for the samples that it takes: a link of a chain.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use thalweg_host::{monotonic_nanos, thread_cpu_time};

use crate::fault::Fault;
use crate::middleware::{Middleware, SampleWriter, ScheduledSample};
use crate::order::{Onward, PublisherReport};
use crate::publisher::{Published, PublisherRecords, find_readers, id};
use crate::records::WrittenSample;
use crate::station::Course;

/// Joins, finds its readers, tells so by `matched`, and publishes a sample for each number that came from all of `writers` publishers,
/// until `taken` ends.
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
    matched();
    let tally = course.tally_onward();
    let origin_ns = course.wait_for_start()?;
    // How many publishers have sent a number that not all have sent; those of lost samples stay to the end.
    let mut incomplete: BTreeMap<u64, usize> = BTreeMap::new();
    let (mut samples, mut refused) = (Vec::new(), 0);
    while let Some((_, number)) = next(&taken, course)? {
        let sent = incomplete.entry(number).or_default();
        *sent += 1;
        if *sent < writers {
            continue;
        }
        incomplete.remove(&number);
        work(onward.work);
        let written = monotonic_nanos();
        sample.stamp(written, id(place.index, number));
        let is_written = writer.write_in_time(&sample)?;
        if is_written {
            let (written_ns, returned_ns) = (written - origin_ns, monotonic_nanos() - origin_ns);
            samples.push(WrittenSample { number, written_ns, returned_ns });
        } else {
            refused += 1;
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

/// Computes until this thread has used so much CPU time.
fn work(time: Duration) {
    let until = thread_cpu_time() + time;
    while thread_cpu_time() < until {
        std::hint::spin_loop();
    }
}

const LOOK_PERIOD: Duration = Duration::from_millis(50);
