//! Data of the panels of a report, read from the runs once and kept small.

use std::collections::BTreeMap;
use std::path::Path;

use super::waterfall::{self, Layers as Traces};
use crate::error::LabError;
use crate::host::{Layers, SecondConditions};
use crate::scenario::Scenario;
use crate::statistics::{Buckets, DistributionPoint, distribution, median};
use crate::study::cells::CellResult;
use crate::study::directory::{RunName, load_experiment, load_json};
use crate::study::ledger::counted_runs;
use crate::study::results::{StudyResult, load_seconds};
use crate::study::trials::folders;
use crate::trial::{RESULT, TrialResult};

/// A study with what its runs hold.
pub(super) struct Source<'a> {
    pub(super) result: &'a StudyResult,
    pub(super) scenario: Scenario,
    pub(super) detail: Detail,
    /// Every run that counts, by round and cell.
    pub(super) names: Vec<RunName>,
    /// One for each cell of the result.
    pub(super) cells: Vec<CellData>,
    /// Each second of every run that counts, in the order of time.
    pub(super) seconds: Vec<SecondConditions>,
}

/// What the runs of a cell hold together.
#[derive(Debug, Default)]
pub(crate) struct CellData {
    /// All response latencies, or all round trips of a closed loop.
    pub(crate) all: Buckets,
    pub(super) distribution: Vec<DistributionPoint>,
    /// By second of the measurement: all latencies of that second, all runs together.
    pub(crate) course: BTreeMap<u64, Buckets>,
    pub(crate) pairs: Vec<PairData>,
    pub(super) tally: Tally,
    pub(crate) traces: Traces,
}

/// A publisher with a subscriber, all runs together.
#[derive(Debug)]
pub(crate) struct PairData {
    pub(super) name: String,
    /// Median over the runs of its median response latency in microseconds.
    pub(super) p50_us: Option<f64>,
    /// Median over the runs of its mean response latency in microseconds, of the samples that arrived.
    pub(crate) mean_us: Option<f64>,
}

/// What was counted on the way, all runs together.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Samples due, written, overwritten in the writers' histories before they were acknowledged; once for each publisher.
    pub(super) due: u64,
    pub(super) written: u64,
    pub(super) overwritten_by_writers: u64,
    /// Submessages with samples or fragments, for the first time and again.
    pub(super) transmitted: u64,
    pub(super) repaired: u64,
    /// Samples that newer ones took the place of before the application took them.
    pub(super) overwritten_at_readers: u64,
    /// Best-effort samples that found a reader's history full.
    pub(super) rejected_at_readers: u64,
    /// Datagrams that found a full receive buffer at a socket of a worker.
    pub(super) socket_drops: u64,
    pub(super) layers: BTreeMap<String, u64>,
}

/// How finely things are drawn: the more cells, the coarser, so that a page of 100 cells stays below 1 MB.
#[derive(Clone, Copy)]
pub(super) struct Detail {
    /// Points of a curve.
    pub(super) curve_points: usize,
    /// Points along the time of a measurement.
    pub(super) course_points: usize,
    /// Cells whose distribution is drawn: the first ones.
    pub(super) distributions: usize,
    /// Cells whose latency is drawn over time: those whose latency varies most.
    pub(super) courses: usize,
    /// Cells whose layers are drawn: the first ones.
    pub(super) waterfalls: usize,
}

impl<'a> Source<'a> {
    pub(super) fn read(directory: &Path, result: &'a StudyResult) -> Result<Source<'a>, LabError> {
        let (scenario, _) = load_experiment::<Scenario>(directory, result.seed)?;
        let detail = Detail::of(result.cells.len());
        let names = counted_runs(directory);
        let mut cells = Vec::new();
        let mut seconds: Vec<(u64, RunName, Vec<SecondConditions>)> = Vec::new();
        for index in result.places() {
            let own = folders(directory, &scenario, &names, index);
            let mut cell = CellData::default();
            cell.read_latencies(load_seconds(&own, result.latency_kind())?, detail);
            cell.traces = waterfall::read(&own)?;
            let mut runs = Vec::new();
            // What was counted on whole machines is the same for all flows of a run.
            let is_leader = scenario.leader_of(index) == index;
            for (name, folder) in own {
                let run: TrialResult = load_json(&folder.join(RESULT))?;
                cell.tally.add(&run);
                if is_leader {
                    seconds.push((run.started_unix_s, name, run.conditions.seconds.clone()));
                    cell.tally.add_layers(run.layers.iter());
                }
                runs.push(run);
            }
            cell.pairs = pairs(&runs);
            cells.push(cell);
        }
        seconds.sort_by_key(|(started, name, _)| (*started, *name));
        let seconds = seconds.into_iter().flat_map(|(.., seconds)| seconds).collect();
        Ok(Source { result, scenario, detail, names, cells, seconds })
    }

    /// Each cell's result with its data.
    pub(super) fn each(&self) -> impl DoubleEndedIterator<Item = (&CellResult, &CellData)> + Clone {
        self.result.cells.iter().zip(&self.cells)
    }

    /// How many samples and runs there are, as a part of a sentence.
    pub(super) fn amount(&self) -> String {
        let samples: u64 = self.cells.iter().map(|cell| cell.all.count()).sum();
        let runs = self.result.runs_made().count();
        format!("n = {} samples in {} runs", crate::figures::grouped(samples), crate::figures::grouped(runs as u64))
    }
}

impl CellData {
    fn read_latencies(&mut self, runs: Vec<BTreeMap<u64, Buckets>>, detail: Detail) {
        for (second, buckets) in runs.iter().flatten() {
            self.all.add(buckets);
            self.course.entry(*second).or_default().add(buckets);
        }
        let whole = |seconds: BTreeMap<u64, Buckets>| {
            let mut run = Buckets::default();
            seconds.values().for_each(|second| run.add(second));
            run
        };
        self.distribution = distribution(&runs.into_iter().map(whole).collect::<Vec<_>>(), detail.curve_points);
        thin(&mut self.course, detail.course_points);
    }

    /// A quantile in microseconds with its interval, where the runs carry them.
    pub(super) fn quantile(&self, cell: &CellResult, q: f64) -> Option<(f64, Option<(f64, f64)>)> {
        let known = cell.intervals.iter().find(|interval| interval.quantile == q).map(|interval| interval.us);
        match known {
            Some(us) => Some((us.estimate, Some((us.low, us.high)))),
            None => self.all.quantile(q).map(|latency| (latency, None)),
        }
    }
}

impl Tally {
    fn add(&mut self, run: &TrialResult) {
        for publisher in &run.publishers {
            self.due += publisher.due;
            self.written += publisher.due - publisher.not_sent;
            self.overwritten_by_writers += publisher.report.effort.overwritten;
            self.transmitted += publisher.report.effort.transmitted;
            self.repaired += publisher.report.effort.repaired;
        }
        self.overwritten_at_readers += run.subscribers.iter().map(|subscriber| subscriber.overwritten).sum::<u64>();
        self.rejected_at_readers += run.subscribers.iter().map(|subscriber| subscriber.rejected).sum::<u64>();
        self.socket_drops += run.processes.iter().map(|process| process.usage.socket_drops).sum::<u64>();
    }

    fn add_layers<'a>(&mut self, counters: impl Iterator<Item = (&'a str, u64)>) {
        counters.for_each(|(name, count)| *self.layers.entry(name.to_owned()).or_default() += count);
    }

    /// Everything of another one as well.
    pub(super) fn join(&mut self, other: &Tally) {
        self.due += other.due;
        self.written += other.written;
        self.overwritten_by_writers += other.overwritten_by_writers;
        self.transmitted += other.transmitted;
        self.repaired += other.repaired;
        self.overwritten_at_readers += other.overwritten_at_readers;
        self.rejected_at_readers += other.rejected_at_readers;
        self.socket_drops += other.socket_drops;
        self.add_layers(other.layers.iter().map(|(name, count)| (name.as_str(), *count)));
    }

    /// The sum of the counters whose layer begins with `layer` and whose last word is one of `words`.
    pub(super) fn count(&self, layer: &str, words: &[&str]) -> u64 {
        let is_meant = |name: &str| name.starts_with(layer) && words.contains(&Layers::last_word(name));
        self.layers.iter().filter(|(name, _)| is_meant(name)).map(|(_, count)| count).sum()
    }
}

impl Detail {
    fn of(cells: usize) -> Detail {
        let share = |all: usize, least: usize, most: usize| (all / cells.max(1)).clamp(least, most);
        Detail {
            curve_points: share(2_400, 12, 90),
            course_points: share(1_800, 10, 90),
            distributions: 90,
            courses: 30,
            waterfalls: share(600, 6, 24),
        }
    }
}

/// The latencies of each pair over the runs.
fn pairs(runs: &[TrialResult]) -> Vec<PairData> {
    let mut all: BTreeMap<(u32, u32), (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for pair in runs.iter().flat_map(|run| &run.pairs) {
        let (medians, means) = all.entry((pair.writer, pair.reader)).or_default();
        let response = &pair.totals.response;
        medians.extend(response.p50_us);
        means.extend((response.count > 0).then_some(response.mean_us));
    }
    let pair = |((writer, reader), (medians, means)): ((u32, u32), (Vec<f64>, Vec<f64>))| PairData {
        name: format!("{writer} → {reader}"),
        p50_us: median(medians),
        mean_us: median(means),
    };
    all.into_iter().map(pair).collect()
}

/// Joins neighbouring seconds until at most `points` are left.
fn thin(course: &mut BTreeMap<u64, Buckets>, points: usize) {
    let length = course.keys().next_back().map_or(0, |last| last + 1);
    let step = length.div_ceil(points.max(1) as u64).max(1);
    if step > 1 {
        let all = std::mem::take(course);
        all.into_iter().for_each(|(second, buckets)| course.entry(second / step * step).or_default().add(&buckets));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_course_is_thinned_without_losing_a_value() {
        let mut course: BTreeMap<u64, Buckets> = BTreeMap::new();
        (0..1_000).filter(|second| *second != 500).for_each(|second| course.entry(second).or_default().record(second));
        thin(&mut course, 90);
        assert_eq!(course.len(), 84);
        assert_eq!(course.values().map(Buckets::count).sum::<u64>(), 999);
        assert!(course.keys().all(|second| second % 12 == 0));
    }

    #[test]
    fn more_cells_are_drawn_more_coarsely() {
        let (few, many) = (Detail::of(1), Detail::of(100));
        assert_eq!((few.curve_points, few.course_points), (90, 90));
        assert_eq!((many.curve_points, many.course_points), (24, 18));
        assert_eq!((Detail::of(150).curve_points, Detail::of(1_000).curve_points), (16, 12));
    }
}
