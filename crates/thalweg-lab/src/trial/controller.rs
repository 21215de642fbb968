//! The course of a run: start the processes, let them meet, start the schedule, watch the machine, collect.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use thalweg_lab_station::{
    ACKNOWLEDGEMENT_PATIENCE, PublisherReport, StationCommand, SubscriberReport, Timetable, Word, WorkerReport,
    not_written,
};

use super::clocks::{RunClocks, align};
use super::diary::Diary;
use super::fates::evaluate;
use super::ground::{Ground, Watch};
use super::histograms;
use super::places::{flow_folder, shares};
use super::processes::Processes;
use super::result::{ProcessReport, TrialConditions, TrialResult};
use super::site::{Site, SiteCounters, by_host, host_of_publisher};
use super::timetable::timetable;
use super::traces;
use crate::error::LabError;
use crate::host::{Layers, SecondConditions, monotonic_nanos};
use crate::process::{Launcher, Stop, Supervised, WorkerMessage};
use crate::scenario::{Cell, ChainStage, Gate, Scenario};

/// Settings of a run.
#[derive(Clone, Copy)]
pub(crate) struct RunContext<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) launcher: &'a Launcher,
    pub(crate) stop: &'a Stop,
    /// Hosts of the endpoints.
    pub(crate) ground: &'a Ground,
    /// What decides the fate of frames between the hosts.
    pub(crate) chance: u64,
}

/// Makes one run of `cells`, which are all flows of it; `folder` gets the raw data, the histograms and the result of each.
pub(crate) fn run(context: RunContext<'_>, cells: &[Cell], folder: &Path) -> Result<(), LabError> {
    for own in cells.iter().map(|cell| flow_folder(folder, cell)) {
        std::fs::create_dir_all(&own).map_err(|error| LabError::from(not_written(&own, &error)))?;
    }
    let schedule = &context.scenario.schedule;
    let mut ensemble = Ensemble::start(context, cells, folder)?;
    let timetables: Vec<Timetable> = cells.iter().map(|cell| timetable(cell, schedule)).collect();
    let start_ns = timetables.iter().map(Timetable::start_ns).min().unwrap_or(0);
    let end_ns = timetables.iter().map(Timetable::end_ns).max().unwrap_or(0);
    ensemble.hear_all(schedule.matching + MARGIN, matched)?;
    ensemble.site.begin(context.stop)?;
    // Time for every process to hear of it.
    let delay = ensemble.site.start_delay() + START_DELAY_EACH * ensemble.workers.len() as u32;
    let origin_ns = monotonic_nanos() + delay.as_nanos() as u64;
    ensemble.start_schedule(origin_ns)?;
    let at = |relative_ns: u64| origin_ns + relative_ns;
    // Before the first measured sample, so that every loss among them has its place.
    ensemble.wait_until(at(start_ns).saturating_sub(COUNTERS_EARLY.as_nanos() as u64))?;
    let before_reading_ns = monotonic_nanos();
    let before = ensemble.counters()?;
    let after_reading_ns = monotonic_nanos();
    let counted_s = counted_s((before_reading_ns, after_reading_ns), at(end_ns));
    let is_counted_late = after_reading_ns > at(start_ns);
    ensemble.wait_until(at(start_ns))?;
    let started_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut diary = Diary::create(folder)?;
    let machines = ensemble.watch(at(start_ns), at(end_ns), &context.scenario.gate, &mut diary)?;
    // A process of a chain may have begun its work on a sample just before it was too late.
    let work = cells.iter().filter_map(|cell| Some(stage(cell)?.work)).max().unwrap_or_default();
    let waits = schedule.behind_max + context.scenario.qos.max_blocking + ACKNOWLEDGEMENT_PATIENCE;
    let patience = waits + work + MARGIN;
    let reports = ensemble.drain(cells, patience)?;
    let (layers, hosts) = ensemble.counters()?.since(&before);
    let clocks = ensemble.site.end(&crossings(context.scenario, cells), context.stop)?;
    ensemble.tell_all(&StationCommand::Finish)?;
    let finished = ensemble.finish(folder)?;
    let conditions = judge(machines, clocks.as_ref(), &context.scenario.gate).counted_late(is_counted_late);
    for (flow, (cell, timetable)) in cells.iter().zip(&timetables).enumerate() {
        let own = flow_folder(folder, cell);
        if let (Some(clocks), Some(plan)) = (&clocks, &context.scenario.hosts) {
            align(&own, (cells, flow, schedule), plan, clocks)?;
        }
        let joined = evaluate(&own, cell, schedule, &reports[flow])?;
        histograms::write(&own, &joined)?;
        traces::export(&own)?;
        let result = TrialResult {
            schema: TrialResult::SCHEMA.to_owned(),
            cell: cell.clone(),
            started_unix_s,
            seconds: (timetable.end_ns() - timetable.start_ns()) as f64 / 1e9,
            unsettled_s: joined.unsettled_s,
            totals: joined.totals,
            fairness: joined.fairness,
            closed_loop: joined.closed_loop,
            arrivals: joined.arrivals,
            publishers: joined.publishers,
            pairs: joined.pairs,
            subscribers: finished
                .iter()
                .filter(|one| one.flow == flow)
                .flat_map(|one| one.subscribers.clone())
                .collect(),
            processes: finished.iter().filter(|one| one.publishes == flow).map(|one| one.process.clone()).collect(),
            // They count all flows together.
            layers: if flow == 0 { layers.clone() } else { Layers::default() },
            hosts: if flow == 0 { hosts.clone() } else { Vec::new() },
            counted_s: Some(counted_s),
            conditions: conditions.clone(),
            clocks: clocks.clone(),
        };
        let text = serde_json::to_string_pretty(&result).map_err(LabError::here)?;
        let path = own.join(RESULT);
        std::fs::write(&path, text).map_err(|error| LabError::from(not_written(&path, &error)))?;
    }
    diary.close()
}

/// From the middle of the reading of all counters to the end of the schedule, in seconds.
fn counted_s((before_ns, after_ns): (u64, u64), end_ns: u64) -> f64 {
    end_ns.saturating_sub(before_ns + after_ns.saturating_sub(before_ns) / 2) as f64 / 1e9
}

fn written(cell: &Cell, reports: &[PublisherReport]) -> Vec<u64> {
    let of = |index| reports.iter().find(|report| report.index == index).map_or(0, |report| report.written);
    (0..cell.publishers).map(of).collect()
}

/// The process that makes the samples of this flow from those of another one.
fn stage(cell: &Cell) -> Option<&ChainStage> {
    cell.flow.as_ref()?.after.as_ref()
}

/// How many flows lie before this one in its chain.
fn depth(cells: &[Cell], flow: usize) -> usize {
    stage(&cells[flow]).map_or(0, |stage| 1 + depth(cells, stage.source as usize))
}

/// The flow with which this one's chain begins.
fn first_flow<'a>(cells: &'a [Cell], cell: &'a Cell) -> &'a Cell {
    stage(cell).map_or(cell, |stage| first_flow(cells, &cells[stage.source as usize]))
}

/// The hosts of each pair of a publisher and a subscriber, and of each publisher of a chain's first flow and each subscriber behind it:
/// the latency of a chain counts from when its first flow was due.
fn crossings(scenario: &Scenario, cells: &[Cell]) -> Vec<(u32, u32)> {
    let Some(plan) = &scenario.hosts else { return Vec::new() };
    let of_cell = |cell: &Cell| {
        let to = |reader| plan.of_subscriber(cell.publishers, reader);
        let hosts = |(writer, reader)| (host_of_publisher(Some(plan), cells, cell, writer), to(reader));
        let mut out: Vec<(u32, u32)> = cell.pairs().map(hosts).collect();
        if stage(cell).is_some() {
            let writers = 0..first_flow(cells, cell).publishers;
            let to_all = |writer| (0..cell.subscribers).map(move |reader| (plan.of_publisher(writer), to(reader)));
            out.extend(writers.flat_map(to_all));
        }
        out
    };
    cells.iter().flat_map(of_cell).collect()
}

/// Puts the seconds of each machine together, and says whether too many of them are bad.
fn judge(machines: Vec<Vec<SecondConditions>>, clocks: Option<&RunClocks>, gate: &Gate) -> TrialConditions {
    let length = machines.iter().map(Vec::len).min().unwrap_or(0);
    let worst = |index: usize| machines.iter().map(|seconds| seconds[index]).reduce(SecondConditions::worst);
    let seconds: Vec<SecondConditions> = (0..length).filter_map(worst).collect();
    let is_shared = machines.iter().any(|seconds| others(seconds) > gate.others);
    let bad_seconds = seconds.iter().filter(|second| second.bad).count() as u64;
    let is_stepped = clocks.is_some_and(|clocks| clocks.is_stepped);
    let contaminated = is_stepped || is_shared || bad_seconds as f64 > gate.bad_seconds * seconds.len() as f64;
    let machines = if machines.len() > 1 { machines } else { Vec::new() };
    TrialConditions { seconds, machines, bad_seconds, counted_late: false, contaminated }
}

/// Share of the CPU time of a whole run that others took of a machine.
fn others(seconds: &[SecondConditions]) -> f64 {
    let lasted: f64 = seconds.iter().map(|second| second.lasted_s).sum();
    let taken: f64 = seconds.iter().map(|second| second.others() * second.lasted_s).sum();
    if lasted > 0.0 { taken / lasted } else { 0.0 }
}

fn matched(message: WorkerMessage) -> Option<()> {
    matches!(word(message)?, Word::Matched).then_some(())
}

fn published(message: WorkerMessage) -> Option<Vec<PublisherReport>> {
    if let Word::Published(reports) = word(message)? { Some(reports) } else { None }
}

fn drained(message: WorkerMessage) -> Option<()> {
    matches!(word(message)?, Word::Drained).then_some(())
}

fn word(message: WorkerMessage) -> Option<Word> {
    if let WorkerMessage::Progress(value) = message { parse(value) } else { None }
}

fn report(message: WorkerMessage) -> Option<WorkerReport> {
    if let WorkerMessage::Done(value) = message { parse(value) } else { None }
}

fn parse<T: DeserializeOwned>(value: serde_json::Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

/// The processes of a run.
struct Ensemble<'a> {
    stop: &'a Stop,
    /// In the order in which they were started.
    workers: Vec<RunWorker>,
    // Dropped after the processes, whose last datagrams it forwards.
    site: Site<'a>,
}

/// A process of a run.
struct RunWorker {
    name: String,
    process: Supervised,
    host: u32,
    /// The flow whose order it got.
    flow: usize,
    /// The flow that it publishes for what it takes.
    onward: Option<usize>,
}

/// What a process left behind.
struct Finished {
    flow: usize,
    /// The flow that its work belongs to.
    publishes: usize,
    subscribers: Vec<SubscriberReport>,
    process: ProcessReport,
}

impl<'a> Ensemble<'a> {
    fn start(context: RunContext<'a>, cells: &[Cell], folder: &Path) -> Result<Ensemble<'a>, LabError> {
        let site = Site::start(context)?;
        let mut ensemble = Ensemble { stop: context.stop, workers: Vec::new(), site };
        let processes = Processes::new(context, cells, folder)?;
        let plan = context.scenario.hosts.as_ref();
        for whole in shares(&context.scenario.process, cells) {
            for (host, share) in by_host(whole.clone(), &cells[whole.flow], plan) {
                let process = processes.start(host, &share)?;
                let (name, flow, onward) = (share.name, share.flow, share.onward.map(|(flow, _)| flow));
                ensemble.workers.push(RunWorker { name, process, host, flow, onward });
            }
        }
        Ok(ensemble)
    }

    /// Waits until each process said what `read` accepts.
    fn hear_all<T>(&mut self, patience: Duration, read: fn(WorkerMessage) -> Option<T>) -> Result<Vec<T>, LabError> {
        let heard = self.hear(&|_| true, patience, read)?;
        Ok(heard.into_iter().map(|(_, heard)| heard).collect())
    }

    /// Waits until each process for which `is_meant` holds said what `read` accepts, while all others live.
    fn hear<T>(
        &mut self,
        is_meant: &dyn Fn(&RunWorker) -> bool,
        patience: Duration,
        read: fn(WorkerMessage) -> Option<T>,
    ) -> Result<Vec<(usize, T)>, LabError> {
        let deadline = Instant::now() + patience;
        let mut heard: Vec<Option<T>> = self.workers.iter().map(|_| None).collect();
        let mut missing = self.workers.iter().filter(|worker| is_meant(worker)).count();
        while missing > 0 {
            self.check_stop()?;
            self.site.check_alive()?;
            for (worker, slot) in self.workers.iter_mut().zip(&mut heard) {
                let message = match slot {
                    None if is_meant(worker) => worker.process.try_hear()?,
                    _ => worker.process.check_alive().map(|()| None)?,
                };
                let Some(message) = message else { continue };
                let read = read(message);
                let unexpected = || LabError::Unexpected { process: worker.name.clone() };
                *slot = Some(read.ok_or_else(unexpected)?);
                missing -= 1;
            }
            if missing > 0 && Instant::now() >= deadline {
                let mut silent =
                    self.workers.iter().zip(&heard).filter(|(worker, heard)| heard.is_none() && is_meant(worker));
                let process = silent.next().map_or_else(String::new, |(worker, _)| worker.name.clone());
                return Err(LabError::Silent { process, patience, last_words: String::new() });
            }
            if missing > 0 {
                std::thread::sleep(LOOK_PERIOD);
            }
        }
        Ok(heard.into_iter().enumerate().filter_map(|(index, heard)| Some((index, heard?))).collect())
    }

    /// Lets the subscribers of each flow wait for the rest, those of the first flows of chains first; returns the reports of the publishers
    /// of each flow.
    fn drain(&mut self, cells: &[Cell], patience: Duration) -> Result<Vec<Vec<PublisherReport>>, LabError> {
        let mut reports: Vec<Vec<PublisherReport>> = cells.iter().map(|_| Vec::new()).collect();
        for (worker, more) in self.hear(&|_| true, patience, published)? {
            reports[self.workers[worker].flow].extend(more);
        }
        let deepest = (0..cells.len()).map(|flow| depth(cells, flow)).max().unwrap_or(0);
        for level in 0..=deepest {
            let is_own = |worker: &RunWorker| depth(cells, worker.flow) == level;
            for worker in self.workers.iter_mut().filter(|worker| is_own(worker)) {
                let written = written(&cells[worker.flow], &reports[worker.flow]);
                worker.process.send(&StationCommand::Drain { written })?;
            }
            self.hear(&is_own, DRAIN_PATIENCE, drained)?;
            let passes_on = |worker: &RunWorker| is_own(worker) && worker.onward.is_some();
            for (worker, more) in self.hear(&passes_on, patience, published)? {
                let flow = self.workers[worker].onward.unwrap_or_default();
                reports[flow].extend(more);
            }
        }
        Ok(reports)
    }

    fn tell_all(&mut self, command: &StationCommand) -> Result<(), LabError> {
        self.workers.iter_mut().try_for_each(|worker| worker.process.send(command))
    }

    /// Tells each process when the schedule begins by the clock of its host.
    fn start_schedule(&mut self, origin_ns: u64) -> Result<(), LabError> {
        self.site.begin_clocks(origin_ns)?;
        for worker in &mut self.workers {
            let origin_ns = self.site.origin(worker.host).unwrap_or(origin_ns);
            worker.process.send(&StationCommand::Start { origin_ns })?;
        }
        Ok(())
    }

    fn counters(&mut self) -> Result<SiteCounters, LabError> {
        let number = |worker: &RunWorker| Some((worker.host, worker.process.id()?));
        let workers: Vec<(u32, u32)> = self.workers.iter().filter_map(number).collect();
        self.site.counters(&workers)
    }

    fn check_stop(&self) -> Result<(), LabError> {
        if self.stop.is_requested() { Err(LabError::Interrupted) } else { Ok(()) }
    }

    fn wait_until(&mut self, at_ns: u64) -> Result<(), LabError> {
        loop {
            self.check_stop()?;
            self.site.check_alive()?;
            for worker in &mut self.workers {
                worker.process.check_alive()?;
            }
            match at_ns.saturating_sub(monotonic_nanos()) {
                0 => return Ok(()),
                left => std::thread::sleep(Duration::from_nanos(left).min(WATCH_PERIOD)),
            }
        }
    }

    /// Looks at the machines once a second from `start_ns` to `end_ns`; returns the seconds of each.
    fn watch(
        &mut self,
        start_ns: u64,
        end_ns: u64,
        gate: &Gate,
        diary: &mut Diary,
    ) -> Result<Vec<Vec<SecondConditions>>, LabError> {
        let mut machines = self.site.watch()?;
        let mut out: Vec<Vec<SecondConditions>> = Vec::new();
        let mut next = start_ns;
        while next < end_ns {
            next = (next + 1_000_000_000).min(end_ns);
            self.wait_until(next)?;
            let mut seconds = machines.iter_mut().map(Watch::look).collect::<Result<Vec<_>, _>>()?;
            seconds.iter_mut().for_each(|second| second.bad = is_bad(second, gate));
            if let Some(worst) = seconds.iter().copied().reduce(SecondConditions::worst) {
                diary.note(&worst)?;
            }
            out.resize_with(seconds.len(), Vec::new);
            out.iter_mut().zip(seconds).for_each(|(machine, second)| machine.push(second));
        }
        Ok(out)
    }

    /// Ends the processes in peace; `folder` gets what those on other machines wrote.
    fn finish(mut self, folder: &Path) -> Result<Vec<Finished>, LabError> {
        let reports = self.hear_all(WRITE_PATIENCE, report)?;
        self.site.collect(folder)?;
        let finished = |(worker, report): (&RunWorker, WorkerReport)| Finished {
            flow: worker.flow,
            publishes: worker.onward.unwrap_or(worker.flow),
            subscribers: report.subscribers,
            process: ProcessReport { name: worker.name.clone(), usage: report.usage },
        };
        let finished = self.workers.iter().zip(reports).map(finished).collect();
        self.workers.into_iter().try_for_each(|worker| worker.process.finish())?;
        Ok(finished)
    }
}

fn is_bad(second: &SecondConditions, gate: &Gate) -> bool {
    second.lasted_s > STANDSTILL_S
        || second.others() > gate.others * Gate::SECOND_FACTOR
        || second.pressure.zip(gate.pressure).is_some_and(|(share, limit)| share > limit)
}

/// A look at the machine that comes so late was made after a standstill, which a hypervisor need not tell as stolen time.
const STANDSTILL_S: f64 = 1.3;
pub(crate) const RESULT: &str = "result.json";
/// Longer than any wait inside the processes, so that their own reason is heard first.
const MARGIN: Duration = Duration::from_secs(5);
const DRAIN_PATIENCE: Duration = Duration::from_secs(90);
/// Millions of samples take their time to be written as text.
const WRITE_PATIENCE: Duration = Duration::from_secs(120);
const START_DELAY_EACH: Duration = Duration::from_millis(5);
/// Longer than reading the counters of several hosts takes, shorter than the time between the order to start and the first sample.
const COUNTERS_EARLY: Duration = Duration::from_millis(150);
const LOOK_PERIOD: Duration = Duration::from_millis(5);
const WATCH_PERIOD: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::HostPlan;

    const GATE: Gate = Gate { others: 0.01, pressure: None, bad_seconds: 0.02, attempts: 3 };

    #[track_caller]
    fn check(second: SecondConditions, pressure: Option<f64>, expect: bool) {
        let gate = Gate { pressure, ..GATE };
        let second = SecondConditions { lasted_s: second.lasted_s.max(1.0), ..second };
        assert_eq!(is_bad(&second, &gate), expect, "{second:?}");
        let conditions = judge(vec![vec![SecondConditions { bad: expect, ..second }]], None, &gate);
        assert_eq!(conditions.contaminated, expect);
    }

    #[test]
    fn each_disturbance_makes_a_second_bad_by_itself() {
        let quiet =
            SecondConditions { foreign_cpu: Some(0.01), steal: Some(0.0), pressure: Some(0.4), ..Default::default() };
        check(quiet, None, false);
        check(quiet, Some(0.3), true);
        check(SecondConditions { foreign_cpu: Some(0.06), ..quiet }, None, true);
        check(SecondConditions { steal: Some(0.045), ..quiet }, None, true);
        check(SecondConditions { lasted_s: 3.4, foreign_cpu: None, ..quiet }, None, true);
    }

    #[test]
    fn a_few_bad_seconds_of_many_are_allowed() {
        let seconds = |bad: usize| -> Vec<SecondConditions> {
            (0..100).map(|index| SecondConditions { bad: index < bad, ..Default::default() }).collect()
        };
        assert!(
            !judge(vec![seconds(2)], None, &GATE).contaminated && judge(vec![seconds(3)], None, &GATE).contaminated
        );
        let two = judge(vec![seconds(1), seconds(3)], None, &GATE);
        assert!(two.contaminated && two.bad_seconds == 3 && two.machines.len() == 2, "bad on one machine is bad");
    }

    #[test]
    fn a_run_is_shared_with_others_although_no_second_is_bad() {
        let run = |foreign, steal| {
            let second = SecondConditions {
                lasted_s: 1.0,
                foreign_cpu: Some(foreign),
                steal: Some(steal),
                ..Default::default()
            };
            assert!(!is_bad(&second, &GATE));
            judge(vec![vec![second; 10]], None, &GATE).contaminated
        };
        assert_eq!([run(0.004, 0.005), run(0.006, 0.005), run(0.0, 0.02)], [false, true, true]);
    }

    #[test]
    fn a_clock_that_jumps_disturbs_a_run() {
        let clocks = |is_stepped| RunClocks { hosts: Vec::new(), bound_us: 1.0, is_stepped };
        assert!(judge(Vec::new(), Some(&clocks(true)), &GATE).contaminated);
        assert!(!judge(Vec::new(), Some(&clocks(false)), &GATE).contaminated);
    }

    #[test]
    fn the_clocks_of_a_chain_are_those_of_its_first_publishers_and_its_last_subscribers() {
        let text = "schema = \"thalweg.scenario/1\"\nname = \"x\"\n[[flow]]\nname = \"a\"\npayload_bytes = 1\nrate_hz = 1\nsubscribers = 0\n\
                    [[flow]]\nname = \"b\"\nafter = \"a\"\npayload_bytes = 1\nsubscribers = 2\n[schedule]\nseconds = 1\nruns = 1\n";
        let mut scenario = Scenario::parse("x", text).unwrap_or_else(|error| panic!("{error}"));
        scenario.hosts = Some(HostPlan::namespaces(3));
        // The process of the chain lives on the second host, its subscribers on the second and the third one.
        let crossings = crossings(&scenario, &scenario.cells);
        assert_eq!(crossings[..3], [(0, 1), (1, 1), (1, 2)]);
        assert!(crossings.contains(&(0, 2)), "{crossings:?}");
    }

    #[test]
    fn counters_count_from_their_reading_to_the_end_of_the_schedule() {
        assert_eq!(counted_s((1_900_000_000, 1_950_000_000), 4_000_000_000), 2.075);
    }

    #[test]
    fn counters_that_begin_late_mark_a_run() {
        let late = TrialConditions::default().counted_late(true);
        assert!(late.contaminated && serde_json::to_string(&late).expect("JSON").contains("counted_late"));
        assert_eq!(TrialConditions::default().counted_late(false), TrialConditions::default());
    }
}
