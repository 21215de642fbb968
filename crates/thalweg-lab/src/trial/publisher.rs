//! A publisher: writes each sample when it is due, or as soon after as it can.

use std::time::Duration;

use super::order::{Placement, PublisherReport, TrialOrder};
use super::records::Written;
use super::timetable::Timetable;
use super::worker::Course;
use crate::error::LabError;
use crate::host::{monotonic_nanos, pin_to_cpu, request_exact_timers};
use crate::scenario::{Reliability, Wake};
use crate::station::{Publication, Station, Wait, wait_until};

/// A publisher that is through, and alive: readers may still need repairs.
pub(super) struct Published {
    pub(super) report: PublisherReport,
    pub(super) samples: Vec<Written>,
    _alive: (Box<dyn Publication>, Station),
}

/// Joins, finds its readers, tells so by `matched`, and follows the timetable once the course has started.
pub(super) fn run(
    order: &TrialOrder,
    placement: Placement,
    course: &Course,
    matched: impl FnOnce(),
) -> Result<Published, LabError> {
    if let Some(cpu) = placement.cpu {
        pin_to_cpu(cpu).map_err(|error| LabError::Here(format!("CPU {cpu} cannot be used: {error}")))?;
    }
    request_exact_timers();
    let station = Station::open(&order.network, Wait::Listener)?;
    let topic = order.topic(placement.index);
    let mut publication = station.publication(&topic, order.cell.load, &order.qos, order.cell.destination)?;
    let readers = order.cell.pairs().filter(|(writer, _)| *writer == placement.index).count();
    if !wait_until(MATCH_PATIENCE, course.stop(), || publication.matched() >= readers)? {
        let found = publication.matched();
        let index = placement.index;
        return Err(LabError::Here(format!("publisher {index} found {found} of {readers} subscribers within 30 s")));
    }
    matched();
    let origin_ns = course.wait_for_start()?;
    let mut publisher = Publisher { order, index: placement.index, origin_ns, course, samples: Vec::new(), refused: 0 };
    publisher.follow(publication.as_mut())?;
    let acknowledged = order.qos.reliability == Reliability::BestEffort
        || publication.wait_for_acknowledgements(ACKNOWLEDGEMENT_PATIENCE)?;
    let report = PublisherReport {
        index: placement.index,
        written: publisher.samples.len() as u64,
        refused: publisher.refused,
        acknowledged,
        effort: publication.effort(),
    };
    Ok(Published { report, samples: publisher.samples, _alive: (publication, station) })
}

struct Publisher<'a> {
    order: &'a TrialOrder,
    index: u32,
    origin_ns: u64,
    course: &'a Course,
    samples: Vec<Written>,
    refused: u64,
}

impl Publisher<'_> {
    fn follow(&mut self, publication: &mut dyn Publication) -> Result<(), LabError> {
        let timetable = Timetable::new(&self.order.cell, &self.order.schedule);
        let behind_max = self.order.schedule.behind_max.as_nanos() as u64;
        let numbers = timetable.measured().end;
        self.samples.reserve(numbers as usize);
        for number in 0..numbers {
            let due = self.origin_ns + timetable.due_ns(self.index, number);
            self.wait_for(due)?;
            let written = monotonic_nanos();
            if written - due > behind_max {
                continue;
            }
            match publication.write(written, id(self.index, number))? {
                true => self.samples.push(Written {
                    number,
                    written_ns: written - self.origin_ns,
                    returned_ns: monotonic_nanos() - self.origin_ns,
                }),
                false => self.refused += 1,
            }
        }
        Ok(())
    }

    /// Returns at `due`, or at once where that is past.
    fn wait_for(&self, due: u64) -> Result<(), LabError> {
        let early = match self.order.schedule.wake {
            Wake::Sleep => 0,
            Wake::Spin => SPIN_NANOS,
        };
        loop {
            if self.course.stop().is_requested() {
                return Err(LabError::Interrupted);
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
pub(super) fn id(writer: u32, number: u64) -> u64 {
    u64::from(writer) << NUMBER_BITS | number
}

/// Publisher and place of a sample.
pub(super) fn parts(id: u64) -> (u32, u64) {
    ((id >> NUMBER_BITS) as u32, id & ((1 << NUMBER_BITS) - 1))
}

/// More samples than a run may have; the rest is enough for any number of publishers.
const NUMBER_BITS: u32 = 40;
/// How late Linux wakes a sleeper on an idle machine.
const SPIN_NANOS: u64 = 200_000;
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// How long endpoints look for each other; some hundred participants on two cores need seconds.
pub(super) const MATCH_PATIENCE: Duration = Duration::from_secs(30);
pub(super) const ACKNOWLEDGEMENT_PATIENCE: Duration = Duration::from_secs(10);
