//! From what both ends of a closed loop counted to its figures.

use std::collections::BTreeMap;

use thalweg_lab_station::{ArrivalCount, ClosedRecords, PublisherReport};

use super::fates::{Joined, fairness, sum};
use super::result::{ClosedLoopFigures, LatencyFigures, PairResult, PublisherResult, Totals};
use super::timetable::timetable;
use crate::scenario::{Cell, Schedule};
use crate::statistics::Buckets;

/// Joins what both ends counted.
pub(super) fn join(cell: &Cell, schedule: &Schedule, records: &ClosedRecords, reports: &[PublisherReport]) -> Joined {
    let timetable = timetable(cell, schedule);
    let report = |writer: u32| reports.iter().find(|report| report.index == writer).cloned().unwrap_or_default();
    let publisher = |writer: u32| {
        let report = report(writer);
        PublisherResult { writer, due: report.written, in_time: report.written, report, ..PublisherResult::default() }
    };
    let pair = |(writer, reader): (u32, u32)| {
        let own = || arrivals(records, reader).iter().filter(|count| count.writer == writer);
        let sum = |of: fn(&ArrivalCount) -> u64| own().map(of).sum::<u64>();
        let (due, received) = (report(writer).written, sum(|count| count.received));
        let totals = Totals {
            due,
            in_time: received,
            lost: due.saturating_sub(received),
            duplicates: sum(|count| count.duplicates),
            reordered: sum(|count| count.reordered),
            ..Totals::default()
        };
        PairResult { writer, reader, totals }
    };
    let pairs: Vec<PairResult> = cell.pairs().map(pair).collect();
    let mut received_by_second = vec![0; timetable.seconds() as usize];
    for count in records.arrivals.iter().flatten() {
        // The time before the measurement and the time after it have no place.
        let place = count.second.checked_sub(1).and_then(|second| received_by_second.get_mut(second as usize));
        place.into_iter().for_each(|sum| *sum += count.received);
    }
    let (mut all, mut round_trips) = (Buckets::default(), BTreeMap::<(u32, u64), Buckets>::new());
    for one in &records.round_trips {
        let second = timetable.second_of(one.sent_ns).saturating_sub(1);
        let own = round_trips.entry((one.reader, second)).or_default();
        for buckets in [own, &mut all] {
            match one.answered_ns {
                Some(answered_ns) => buckets.record(answered_ns.saturating_sub(one.sent_ns)),
                None => buckets.record_never(1),
            }
        }
    }
    Joined {
        totals: sum(&pairs, &Buckets::default(), &Buckets::default()),
        fairness: fairness(&pairs, &[], std::iter::empty()),
        publishers: (0..cell.publishers).map(publisher).collect(),
        pairs,
        closed_loop: Some(ClosedLoopFigures { received_by_second, round_trip: LatencyFigures::of(&all) }),
        round_trips,
        ..Joined::default()
    }
}

fn arrivals(records: &ClosedRecords, reader: u32) -> &[ArrivalCount] {
    records.arrivals.get(reader as usize).map_or(&[], Vec::as_slice)
}
