//! A publisher: writes each sample when it is due, or as soon after as it can.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use thalweg_host::{monotonic_nanos, request_exact_timers};

use crate::channel::ProcessEnd;
use crate::closed_loop::{Answers, Pump};
use crate::fault::Fault;
use crate::middleware::{Middleware, SampleWriter, ScheduledSample};
use crate::order::{Order, PublisherPlace, PublisherReport, ReliabilitySetting, Wake};
use crate::records::{LatencySample, WrittenSample, write_round_trips, write_written};
use crate::so_far::Tally;
use crate::station::{Course, pin, wait_until};

/// A publisher that is through, and alive: readers may still need repairs.
pub(crate) struct Published<M: Middleware> {
    pub(crate) report: PublisherReport,
    pub(crate) records: PublisherRecords,
    _writer: M::Writer,
    // Goes after its writer.
    _middleware: M,
}

/// What a publisher noted.
pub(crate) enum PublisherRecords {
    /// Every sample of an open schedule.
    Samples(Vec<WrittenSample>),
    /// The round trips of a closed loop, which publisher 0 alone makes.
    RoundTrips(Vec<LatencySample>),
}

impl PublisherRecords {
    pub(crate) fn write(&self, folder: &Path, index: u32) -> Result<(), Fault> {
        match self {
            PublisherRecords::Samples(samples) => write_written(folder, index, samples),
            PublisherRecords::RoundTrips(round_trips) if index == 0 => write_round_trips(folder, round_trips),
            PublisherRecords::RoundTrips(_) => Ok(()),
        }
    }
}

/// Joins, finds its readers, tells so by `matched`, and follows the timetable once the course has started.
pub(crate) fn run<M: Middleware>(
    order: &Order<M::Setup>,
    place: &PublisherPlace,
    course: &Course,
    matched: impl FnOnce(),
) -> Result<Published<M>, Fault> {
    let (middleware, mut writer, answers) = find_readers::<M>(order, place, course)?;
    matched();
    let tally = course.tally();
    let origin_ns = course.wait_for_start()?;
    let (sample, index) = (middleware.scheduled_sample()?, place.index);
    let (written, refused, records) = match order.closed_loop {
        Some(closed) => {
            let pumped = Pump { order, closed, index, origin_ns, course, tally, answers }.run(&mut writer, sample)?;
            (pumped.written, pumped.refused, PublisherRecords::RoundTrips(pumped.round_trips))
        }
        None => {
            let (samples, writer) = (Vec::new(), &mut writer);
            let mut publisher =
                Publisher::<M> { order, index, origin_ns, course, tally, writer, sample, samples, refused: 0 };
            publisher.follow()?;
            let Publisher::<M> { samples, refused, .. } = publisher;
            (samples.len() as u64, refused, PublisherRecords::Samples(samples))
        }
    };
    let report = PublisherReport { index, written, refused, ..PublisherReport::default() };
    Published::end(order, (report, records), (writer, middleware))
}

/// A publisher's participant, its writer, and its ear for answers where it has one.
type Joined<M> = (M, <M as Middleware>::Writer, Option<Answers<M>>);

/// Joins as a publisher and finds its readers.
pub(crate) fn find_readers<M: Middleware>(
    order: &Order<M::Setup>,
    place: &PublisherPlace,
    course: &Course,
) -> Result<Joined<M>, Fault> {
    pin(place.cpu)?;
    request_exact_timers();
    let middleware = M::open(&order.setup, &ProcessEnd::Publisher(place.index))?;
    let writer = middleware.writer(&order.channel(&place.topic))?;
    let closed = order.closed_loop.filter(|_| place.index == 0);
    let answers = closed.map(|_| Answers::open(&middleware, order)).transpose()?;
    let answerers = closed.map_or(0, |closed| closed.subscribers as usize);
    let is_met =
        || writer.matched() >= place.readers && answers.as_ref().is_none_or(|answers| answers.matched() >= answerers);
    let matching = order.pace.matching;
    if !wait_until(matching, course.stop(), is_met)? {
        let (index, found, all) = (place.index, writer.matched(), place.readers);
        let heard = answers.map(|answers| format!(" and heard {} of {answerers}", answers.matched()));
        let heard = heard.unwrap_or_default();
        return Err(Fault::Here(format!(
            "publisher {index} found {found} of {all} subscribers{heard} within {matching:?}"
        )));
    }
    Ok((middleware, writer, answers))
}

impl<M: Middleware> Published<M> {
    /// Waits for the readers of what was written; `report` has the counts.
    pub(crate) fn end(
        order: &Order<M::Setup>,
        (report, records): (PublisherReport, PublisherRecords),
        (mut writer, middleware): (M::Writer, M),
    ) -> Result<Published<M>, Fault> {
        let acknowledged = order.qos.reliability == ReliabilitySetting::BestEffort
            || writer.wait_for_acknowledgements(ACKNOWLEDGEMENT_PATIENCE)?;
        let (effort, link_costs) = (writer.effort(), writer.link_costs());
        let report = PublisherReport { acknowledged, effort, link_costs, ..report };
        Ok(Published { report, records, _writer: writer, _middleware: middleware })
    }
}

struct Publisher<'a, M: Middleware> {
    order: &'a Order<M::Setup>,
    index: u32,
    origin_ns: u64,
    course: &'a Course,
    tally: Arc<Tally>,
    writer: &'a mut M::Writer,
    sample: M::Sample,
    samples: Vec<WrittenSample>,
    refused: u64,
}

impl<M: Middleware> Publisher<'_, M> {
    fn follow(&mut self) -> Result<(), Fault> {
        let timetable = &self.order.timetable;
        let behind_max = self.order.pace.behind_max.as_nanos() as u64;
        let numbers = timetable.measured().end;
        self.samples.reserve(numbers as usize);
        for number in 0..numbers {
            let due = self.origin_ns + timetable.due_ns(self.index, number);
            self.wait_for(due)?;
            let written = monotonic_nanos();
            let is_written = written - due <= behind_max && self.write(written, number)?;
            match is_written {
                _ if number < timetable.first => {}
                true => self.tally.add_written(),
                false => self.tally.add_not_sent(),
            }
        }
        Ok(())
    }

    /// Writes a sample; `false` when it found no room in time.
    fn write(&mut self, now: u64, number: u64) -> Result<bool, Fault> {
        self.sample.stamp(now, id(self.index, number));
        if !self.writer.write_in_time(&self.sample)? {
            self.refused += 1;
            return Ok(false);
        }
        self.samples.push(WrittenSample {
            number,
            written_ns: now - self.origin_ns,
            returned_ns: monotonic_nanos() - self.origin_ns,
        });
        Ok(true)
    }

    /// Returns at `due`, or at once where that is past.
    fn wait_for(&self, due: u64) -> Result<(), Fault> {
        let early = match self.order.pace.wake {
            Wake::Sleep => 0,
            Wake::Spin => SPIN_NANOS,
        };
        loop {
            if self.course.stop().is_requested() {
                return Err(Fault::Interrupted);
            }
            let left = due.saturating_sub(monotonic_nanos() + early);
            if left == 0 {
                break;
            }
            std::thread::sleep(Duration::from_nanos(left).min(LOOK_PERIOD));
        }
        while monotonic_nanos() < due {
            std::hint::spin_loop();
        }
        Ok(())
    }
}

/// The number that a sample carries: its publisher in the upper bits, its place in the lower ones.
pub(crate) fn id(writer: u32, number: u64) -> u64 {
    u64::from(writer) << NUMBER_BITS | number
}

/// Publisher and place of a sample.
pub(crate) fn parts(id: u64) -> (u32, u64) {
    ((id >> NUMBER_BITS) as u32, id & ((1 << NUMBER_BITS) - 1))
}

/// More samples than a run may have; the rest is enough for any number of publishers.
const NUMBER_BITS: u32 = 40;
/// Delay with which Linux wakes a sleeping thread on an idle machine.
const SPIN_NANOS: u64 = 200_000;
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// Time for which a publisher waits for acknowledgements at its end.
pub const ACKNOWLEDGEMENT_PATIENCE: Duration = Duration::from_secs(10);
