//! From what both ends saw to the fate of each sample.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use thalweg_lab_station::{
    ArrivalBitmap, ClosedRecords, PublisherReport, RawRecords, ReceivedSample, Timetable, WrittenSample,
};

use super::closed_loop;
use super::result::{ClosedLoopFigures, Fairness, LatencyFigures, PairResult, PublisherResult, Totals};
use super::timetable::timetable;
use crate::error::LabError;
use crate::scenario::{Cell, Schedule, Settle};
use crate::statistics::{Buckets, jain, unsettled};

/// The raw data of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Joined {
    /// Seconds at the beginning of the measurement that do not count.
    pub(crate) unsettled_s: f64,
    pub(crate) totals: Totals,
    pub(crate) fairness: Fairness,
    pub(crate) publishers: Vec<PublisherResult>,
    pub(crate) pairs: Vec<PairResult>,
    /// Response and service latencies by publisher, subscriber and second.
    pub(crate) seconds: BTreeMap<(u32, u32, u64), (Buckets, Buckets)>,
    pub(crate) closed_loop: Option<ClosedLoopFigures>,
    /// Arrivals within the measured time, where there is a schedule.
    pub(crate) arrivals: Option<u64>,
    /// Round trips of a closed loop by subscriber and second.
    pub(crate) round_trips: BTreeMap<(u32, u64), Buckets>,
}

/// Reads the raw data of a run and joins them.
///
/// # Errors
/// A file is missing or damaged.
pub(crate) fn evaluate(
    folder: &Path,
    cell: &Cell,
    schedule: &Schedule,
    reports: &[PublisherReport],
) -> Result<Joined, LabError> {
    if cell.is_closed_loop() {
        let records = ClosedRecords::read(folder, cell.publishers, cell.subscribers)?;
        return Ok(closed_loop::join(cell, schedule, &records, reports));
    }
    let raw = RawRecords::read(folder, cell.publishers, cell.subscribers)?;
    Ok(join(cell, schedule, &raw, reports))
}

/// Joins what both ends saw of the measured samples.
pub(crate) fn join(cell: &Cell, schedule: &Schedule, raw: &RawRecords, reports: &[PublisherReport]) -> Joined {
    let mut timetable = timetable(cell, schedule);
    let unsettled = match schedule.settle {
        Settle::No => 0,
        Settle::Mser => unsettled_samples(&timetable, raw),
    };
    timetable.skip(unsettled);
    let join = Join { cell, timetable, in_time_ns: in_time_ns(cell, schedule) };
    let writers: Vec<HashMap<u64, WrittenSample>> = raw.written.iter().map(|samples| join.measured(samples)).collect();
    let mut joined = Joined { unsettled_s: unsettled as f64 / cell.rate_hz, ..Joined::default() };
    for (writer, samples) in writers.iter().enumerate() {
        let report = reports.iter().find(|report| report.index as usize == writer).cloned().unwrap_or_default();
        joined.publishers.push(join.publisher(writer as u32, samples, report));
    }
    let mut skew: HashMap<(u32, u64), (u64, u64, u32)> = HashMap::new();
    let (mut response, mut service) = (Buckets::default(), Buckets::default());
    let mut by_pair: Vec<Buckets> = Vec::new();
    let silent = HashMap::new();
    for (writer, reader) in cell.pairs() {
        let arrivals = raw.received.get(reader as usize).map_or(&[][..], Vec::as_slice);
        let fates = join.pair(writer, arrivals, writers.get(writer as usize).unwrap_or(&silent));
        for (number, received_ns) in fates.first_arrivals {
            let entry = skew.entry((writer, number)).or_insert((received_ns, received_ns, 0));
            *entry = (entry.0.min(received_ns), entry.1.max(received_ns), entry.2 + 1);
        }
        let mut totals = fates.totals;
        let (mut own_response, mut own_service) = (Buckets::default(), Buckets::default());
        for (second, (one, other)) in fates.seconds {
            own_response.add(&one);
            own_service.add(&other);
            joined.seconds.insert((writer, reader, second), (one, other));
        }
        (totals.response, totals.service) = (LatencyFigures::of(&own_response), LatencyFigures::of(&own_service));
        response.add(&own_response);
        service.add(&own_service);
        by_pair.push(own_response);
        joined.pairs.push(PairResult { writer, reader, totals });
    }
    joined.totals = sum(&joined.pairs, &response, &service);
    joined.arrivals = Some(join.arrivals(&raw.received));
    joined.fairness = fairness(&joined.pairs, &by_pair, skew.into_values());
    joined
}

/// How many samples of each publisher were due before latencies settled, by the mean of their logarithms in each 100 ms.
fn unsettled_samples(timetable: &Timetable, raw: &RawRecords) -> u64 {
    let mut bins: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    let range = timetable.measured();
    for sample in raw.received.iter().flatten().filter(|sample| range.contains(&sample.number)) {
        let due = timetable.due_ns(sample.writer, sample.number);
        let bin = bins.entry(due.saturating_sub(timetable.start_ns()) / BIN_NS).or_default();
        *bin = (bin.0 + (sample.received_ns.saturating_sub(due).max(1) as f64).ln(), bin.1 + 1.0);
    }
    let means: Vec<f64> = bins.values().map(|(sum, count)| sum / count).collect();
    let dropped = unsettled(&means);
    // Bins without an arrival are not among them: the place is that of a bin, not its number.
    let Some(bin) = bins.keys().nth(dropped).filter(|_| dropped > 0) else { return 0 };
    let settled_ns = timetable.start_ns() + bin * BIN_NS;
    range.take_while(|number| timetable.due_ns(0, *number) < settled_ns).count() as u64
}

/// How long after it was due a sample is in time; in a closed loop, where nothing is due, for ever.
pub(crate) fn in_time_ns(cell: &Cell, schedule: &Schedule) -> u64 {
    if cell.is_closed_loop() {
        return u64::MAX;
    }
    let period = timetable(cell, schedule).period_ns();
    let own = cell.flow.as_ref().and_then(|flow| flow.in_time);
    own.or(schedule.in_time).map_or(period, |limit| limit.as_nanos() as u64)
}

struct Join<'a> {
    cell: &'a Cell,
    timetable: Timetable,
    in_time_ns: u64,
}

/// Fates of one publisher's samples at one subscriber.
#[derive(Default)]
struct Fates {
    totals: Totals,
    seconds: BTreeMap<u64, (Buckets, Buckets)>,
    first_arrivals: Vec<(u64, u64)>,
}

impl Join<'_> {
    fn measured(&self, samples: &[WrittenSample]) -> HashMap<u64, WrittenSample> {
        let range = self.timetable.measured();
        samples.iter().filter(|sample| range.contains(&sample.number)).map(|sample| (sample.number, *sample)).collect()
    }

    fn publisher(
        &self,
        writer: u32,
        samples: &HashMap<u64, WrittenSample>,
        report: PublisherReport,
    ) -> PublisherResult {
        let due = self.timetable.measured().count() as u64;
        let (mut lag, mut write, mut in_time) = (Buckets::default(), Buckets::default(), 0);
        for sample in samples.values() {
            let due = self.timetable.due_ns(writer, sample.number);
            lag.record(sample.written_ns.saturating_sub(due));
            write.record(sample.returned_ns.saturating_sub(sample.written_ns));
            in_time += u64::from(sample.returned_ns.saturating_sub(due) <= self.in_time_ns);
        }
        let written = samples.len() as u64;
        PublisherResult {
            writer,
            due,
            in_time,
            late: written - in_time,
            not_sent: due.saturating_sub(written),
            lag: LatencyFigures::of(&lag),
            write: LatencyFigures::of(&write),
            report,
        }
    }

    /// Samples that arrived within the measured time, whenever they were due: what the drain brings is no throughput.
    fn arrivals(&self, received: &[Vec<ReceivedSample>]) -> u64 {
        let span = self.timetable.start_ns()..self.timetable.end_ns();
        let of_pair = |(writer, reader): (u32, u32)| {
            let mut seen = ArrivalBitmap::default();
            let own = received.get(reader as usize).into_iter().flatten().filter(|sample| sample.writer == writer);
            let is_first = |sample: &&ReceivedSample| {
                let before = seen.received();
                seen.note(sample.number);
                seen.received() > before
            };
            own.filter(is_first).filter(|sample| span.contains(&sample.received_ns)).count() as u64
        };
        self.cell.pairs().map(of_pair).sum()
    }

    fn pair(&self, writer: u32, arrivals: &[ReceivedSample], written: &HashMap<u64, WrittenSample>) -> Fates {
        let range = self.timetable.measured();
        let mut fates = Fates::default();
        let mut seen = ArrivalBitmap::with_room_for(range.end);
        let mut missing: HashSet<u64> = range.clone().collect();
        for sample in arrivals.iter().filter(|sample| sample.writer == writer && range.contains(&sample.number)) {
            let before = seen.received();
            seen.note(sample.number);
            if seen.received() == before {
                continue;
            }
            missing.remove(&sample.number);
            let due = self.timetable.due_ns(writer, sample.number);
            let response = sample.received_ns.saturating_sub(due);
            if response <= self.in_time_ns {
                fates.totals.in_time += 1;
            } else {
                fates.totals.late += 1;
            }
            let entry = fates.seconds.entry(self.timetable.second(writer, sample.number)).or_default();
            entry.0.record(response);
            entry.1.record(sample.received_ns.saturating_sub(sample.written_ns));
            if self.cell.subscribers > 1 {
                fates.first_arrivals.push((sample.number, sample.received_ns));
            }
        }
        for number in missing {
            let entry = fates.seconds.entry(self.timetable.second(writer, number)).or_default();
            entry.0.record_never(1);
            entry.1.record_never(u64::from(written.contains_key(&number)));
        }
        fates.totals.due = range.count() as u64;
        fates.totals.not_sent = fates.totals.due.saturating_sub(written.len() as u64);
        fates.totals.lost = (written.len() as u64).saturating_sub(seen.received());
        (fates.totals.duplicates, fates.totals.reordered) = (seen.duplicates(), seen.out_of_order());
        fates
    }
}

pub(super) fn sum(pairs: &[PairResult], response: &Buckets, service: &Buckets) -> Totals {
    let sum = |of: fn(&Totals) -> u64| pairs.iter().map(|pair| of(&pair.totals)).sum();
    Totals {
        due: sum(|totals| totals.due),
        in_time: sum(|totals| totals.in_time),
        late: sum(|totals| totals.late),
        lost: sum(|totals| totals.lost),
        not_sent: sum(|totals| totals.not_sent),
        duplicates: sum(|totals| totals.duplicates),
        reordered: sum(|totals| totals.reordered),
        response: LatencyFigures::of(response),
        service: LatencyFigures::of(service),
    }
}

pub(super) fn fairness(
    pairs: &[PairResult],
    responses: &[Buckets],
    skew: impl Iterator<Item = (u64, u64, u32)>,
) -> Fairness {
    let p99: Option<Vec<f64>> = responses.iter().map(|buckets| buckets.quantile(0.99)).collect();
    let ratio = p99.filter(|all| all.len() > 1).map(|all| {
        let best = all.iter().copied().fold(f64::INFINITY, f64::min);
        all.iter().copied().fold(0.0, f64::max) / best
    });
    let mut last_minus_first = Buckets::default();
    skew.filter(|(.., readers)| *readers > 1).for_each(|(first, last, _)| last_minus_first.record(last - first));
    Fairness {
        jain_received: jain(pairs.iter().map(|pair| pair.totals.received() as f64)),
        jain_in_time: jain(pairs.iter().map(|pair| pair.totals.in_time as f64)),
        p99_worst_by_best: ratio.filter(|ratio| !ratio.is_nan()),
        last_minus_first: LatencyFigures::of(&last_minus_first),
    }
}

const BIN_NS: u64 = 100_000_000;
