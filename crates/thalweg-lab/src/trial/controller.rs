//! The course of a run: start the processes, let them meet, start the schedule, watch the machine, collect.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use thalweg_lab_station::{ACKNOWLEDGEMENT_PATIENCE, PublisherReport, StationCommand, Word, WorkerReport, not_written};

use super::clocks::{RunClocks, align};
use super::diary::Diary;
use super::fates::evaluate;
use super::ground::Ground;
use super::histograms;
use super::places::shares;
use super::processes::Processes;
use super::result::{ProcessReport, TrialConditions, TrialResult};
use super::run_process::RunProcess;
use super::site::{Site, SiteCounters, by_host};
use super::timetable::timetable;
use super::traces;
use crate::error::LabError;
use crate::host::{SecondConditions, monotonic_nanos};
use crate::process::{Launcher, Stop, WorkerMessage};
use crate::scenario::{Cell, Gate, Scenario};

/// Settings of a run.
#[derive(Clone, Copy)]
pub(crate) struct RunContext<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) launcher: &'a Launcher,
    pub(crate) stop: &'a Stop,
    /// Hosts of the endpoints, unless all are here.
    pub(crate) ground: Option<&'a Ground>,
    /// What decides the fate of frames between the hosts.
    pub(crate) chance: u64,
}

/// Makes one run of `cell`; `folder` gets the raw data, the histograms and the result.
pub(crate) fn run(context: RunContext<'_>, cell: &Cell, folder: &Path) -> Result<TrialResult, LabError> {
    let mut ensemble = Ensemble::start(context, cell, folder)?;
    let timetable = timetable(cell, &context.scenario.schedule);
    ensemble.hear_all(context.scenario.schedule.matching + MARGIN, matched)?;
    ensemble.site.begin(context.stop)?;
    // Time for every process to hear of it.
    let delay = ensemble.site.start_delay() + START_DELAY_EACH * ensemble.workers.len() as u32;
    let origin_ns = monotonic_nanos() + delay.as_nanos() as u64;
    ensemble.start_schedule(origin_ns)?;
    let at = |relative_ns: u64| origin_ns + relative_ns;
    // Before the first measured sample, so that every loss among them has its place.
    ensemble.wait_until(at(timetable.start_ns()).saturating_sub(COUNTERS_EARLY.as_nanos() as u64))?;
    let before = ensemble.counters()?;
    let is_counted_late = monotonic_nanos() > at(timetable.start_ns());
    ensemble.wait_until(at(timetable.start_ns()))?;
    let started_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut diary = Diary::create(folder)?;
    let until = at(timetable.end_ns());
    let machines = ensemble.watch(at(timetable.start_ns()), until, &context.scenario.gate, &mut diary)?;
    let schedule = &context.scenario.schedule;
    let patience = schedule.behind_max + context.scenario.qos.max_blocking + ACKNOWLEDGEMENT_PATIENCE + MARGIN;
    let reports: Vec<PublisherReport> = ensemble.hear_all(patience, published)?.into_iter().flatten().collect();
    ensemble.tell_all(&StationCommand::Drain { written: written(cell, &reports) })?;
    ensemble.hear_all(DRAIN_PATIENCE, drained)?;
    let (layers, hosts) = ensemble.counters()?.since(&before);
    let clocks = ensemble.site.end(&crossings(context.scenario, cell), context.stop)?;
    ensemble.tell_all(&StationCommand::Finish)?;
    let (workers, processes) = ensemble.finish(folder)?;
    if let (Some(clocks), Some(plan)) = (&clocks, &context.scenario.hosts) {
        align(folder, (cell, schedule), plan, clocks)?;
    }
    let joined = evaluate(folder, cell, schedule, &reports)?;
    histograms::write(folder, &joined)?;
    traces::export(folder)?;
    let result = TrialResult {
        schema: TrialResult::SCHEMA.to_owned(),
        cell: cell.clone(),
        started_unix_s,
        seconds: (timetable.end_ns() - timetable.start_ns()) as f64 / 1e9,
        unsettled_s: joined.unsettled_s,
        totals: joined.totals,
        fairness: joined.fairness,
        closed_loop: joined.closed_loop,
        publishers: joined.publishers,
        pairs: joined.pairs,
        subscribers: workers.into_iter().flat_map(|report| report.subscribers).collect(),
        processes,
        layers,
        hosts,
        conditions: judge(machines, clocks.as_ref(), &context.scenario.gate).counted_late(is_counted_late),
        clocks,
    };
    diary.close()?;
    let text = serde_json::to_string_pretty(&result).map_err(LabError::here)?;
    let path = folder.join(RESULT);
    std::fs::write(&path, text).map_err(|error| LabError::from(not_written(&path, &error)))?;
    Ok(result)
}

fn written(cell: &Cell, reports: &[PublisherReport]) -> Vec<u64> {
    let of = |index| reports.iter().find(|report| report.index == index).map_or(0, |report| report.written);
    (0..cell.publishers).map(of).collect()
}

/// The hosts of each pair of a publisher and a subscriber.
fn crossings(scenario: &Scenario, cell: &Cell) -> Vec<(u32, u32)> {
    let Some(plan) = &scenario.hosts else { return Vec::new() };
    let hosts = |(writer, reader)| (plan.of_publisher(writer), plan.of_subscriber(cell.publishers, reader));
    cell.pairs().map(hosts).collect()
}

/// Puts the seconds of each machine together, and says whether too many of them are bad.
fn judge(machines: Vec<Vec<SecondConditions>>, clocks: Option<&RunClocks>, gate: &Gate) -> TrialConditions {
    let length = machines.iter().map(Vec::len).min().unwrap_or(0);
    let worst = |index: usize| machines.iter().map(|seconds| seconds[index]).reduce(SecondConditions::worst);
    let seconds: Vec<SecondConditions> = (0..length).filter_map(worst).collect();
    let bad_seconds = seconds.iter().filter(|second| second.bad).count() as u64;
    let is_stepped = clocks.is_some_and(|clocks| clocks.is_stepped);
    let contaminated = is_stepped || bad_seconds as f64 > gate.bad_seconds * seconds.len() as f64;
    let machines = if machines.len() > 1 { machines } else { Vec::new() };
    TrialConditions { seconds, machines, bad_seconds, counted_late: false, contaminated }
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
    /// Names and processes, in the order in which they were started.
    workers: Vec<(String, RunProcess)>,
    /// The host of each process.
    places: Vec<u32>,
    // Dropped after the processes, whose last datagrams it forwards.
    site: Site<'a>,
}

impl<'a> Ensemble<'a> {
    fn start(context: RunContext<'a>, cell: &Cell, folder: &Path) -> Result<Ensemble<'a>, LabError> {
        let site = Site::start(context)?;
        let mut ensemble = Ensemble { stop: context.stop, workers: Vec::new(), places: Vec::new(), site };
        let processes = Processes::new(context, cell, folder, &ensemble.site)?;
        let plan = context.scenario.hosts.as_ref();
        let shares = shares(&context.scenario.process, cell).into_iter();
        for (host, share) in shares.flat_map(|share| by_host(share, cell, plan)) {
            let number = ensemble.workers.len() as u32;
            let worker = processes.start((host, &ensemble.site.place(host)), number, &share)?;
            ensemble.workers.push((share.name, worker));
            ensemble.places.push(host);
        }
        Ok(ensemble)
    }

    /// Waits until each process said what `read` accepts.
    fn hear_all<T>(&mut self, patience: Duration, read: fn(WorkerMessage) -> Option<T>) -> Result<Vec<T>, LabError> {
        let deadline = Instant::now() + patience;
        let mut heard: Vec<Option<T>> = self.workers.iter().map(|_| None).collect();
        while heard.iter().any(Option::is_none) {
            self.check_stop()?;
            self.site.check_alive()?;
            for ((name, worker), slot) in self.workers.iter_mut().zip(&mut heard) {
                let message = match slot {
                    Some(_) => worker.check_alive().map(|()| None)?,
                    None => worker.try_hear()?,
                };
                let Some(message) = message else { continue };
                let read = read(message);
                *slot = Some(read.ok_or_else(|| LabError::Here(format!("{name} said something unexpected")))?);
            }
            if Instant::now() >= deadline {
                let silent = self.workers.iter().zip(&heard).find(|(_, heard)| heard.is_none());
                let process = silent.map_or_else(String::new, |((name, _), _)| name.clone());
                return Err(LabError::Silent { process, patience, last_words: String::new() });
            }
            std::thread::sleep(LOOK_PERIOD);
        }
        Ok(heard.into_iter().flatten().collect())
    }

    fn tell_all(&mut self, command: &StationCommand) -> Result<(), LabError> {
        self.workers.iter_mut().try_for_each(|(_, worker)| worker.send(command))
    }

    /// Tells each process when the schedule begins by the clock of its host.
    fn start_schedule(&mut self, origin_ns: u64) -> Result<(), LabError> {
        self.site.begin_clocks(origin_ns)?;
        for ((_, worker), host) in self.workers.iter_mut().zip(&self.places) {
            worker.send(&StationCommand::Start { origin_ns: self.site.origin(*host).unwrap_or(origin_ns) })?;
        }
        Ok(())
    }

    fn counters(&mut self) -> Result<SiteCounters, LabError> {
        let number = |(host, (_, worker)): (&u32, &(String, RunProcess))| Some((*host, worker.id()?));
        let workers: Vec<(u32, u32)> = self.places.iter().zip(&self.workers).filter_map(number).collect();
        self.site.counters(&workers)
    }

    fn check_stop(&self) -> Result<(), LabError> {
        if self.stop.is_requested() { Err(LabError::Interrupted) } else { Ok(()) }
    }

    fn wait_until(&mut self, at_ns: u64) -> Result<(), LabError> {
        loop {
            self.check_stop()?;
            self.site.check_alive()?;
            for (_, worker) in &mut self.workers {
                worker.check_alive()?;
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
        let workers = self.workers.iter().filter_map(|(_, worker)| worker.id());
        let mut lookout = self.site.lookout(&workers.chain(self.site.processes()).collect::<Vec<_>>())?;
        let mut out: Vec<Vec<SecondConditions>> = Vec::new();
        let mut next = start_ns;
        while next < end_ns {
            next = (next + 1_000_000_000).min(end_ns);
            self.wait_until(next)?;
            let mut seconds = lookout.look()?;
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
    fn finish(mut self, folder: &Path) -> Result<(Vec<WorkerReport>, Vec<ProcessReport>), LabError> {
        let reports = self.hear_all(WRITE_PATIENCE, report)?;
        self.site.collect(folder)?;
        let usage = |((name, _), report): (&(String, RunProcess), &WorkerReport)| ProcessReport {
            name: name.clone(),
            usage: report.usage.clone(),
        };
        let processes = self.workers.iter().zip(&reports).map(usage).collect();
        self.workers.into_iter().try_for_each(|(_, worker)| worker.finish())?;
        Ok((reports, processes))
    }
}

fn is_bad(second: &SecondConditions, gate: &Gate) -> bool {
    second.lasted_s > STANDSTILL_S
        || second.foreign_cpu.is_some_and(|share| share > gate.foreign_cpu)
        || second.steal.is_some_and(|share| share > gate.steal)
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

    #[track_caller]
    fn check(second: SecondConditions, pressure: Option<f64>, expect: bool) {
        let gate = Gate { foreign_cpu: 0.05, steal: 0.005, pressure, bad_seconds: 0.02, attempts: 3 };
        let second = SecondConditions { lasted_s: second.lasted_s.max(1.0), ..second };
        assert_eq!(is_bad(&second, &gate), expect, "{second:?}");
        let conditions = judge(vec![vec![SecondConditions { bad: expect, ..second }]], None, &gate);
        assert_eq!(conditions.contaminated, expect);
    }

    #[test]
    fn each_disturbance_makes_a_second_bad_by_itself() {
        let quiet =
            SecondConditions { foreign_cpu: Some(0.05), steal: Some(0.0), pressure: Some(0.4), ..Default::default() };
        check(quiet, None, false);
        check(quiet, Some(0.3), true);
        check(SecondConditions { foreign_cpu: Some(0.06), ..quiet }, None, true);
        check(SecondConditions { steal: Some(0.01), ..quiet }, None, true);
        check(SecondConditions { lasted_s: 3.4, foreign_cpu: None, ..quiet }, None, true);
    }

    #[test]
    fn a_few_bad_seconds_of_many_are_allowed() {
        let gate = Gate { foreign_cpu: 0.05, steal: 0.005, pressure: None, bad_seconds: 0.02, attempts: 3 };
        let seconds = |bad: usize| -> Vec<SecondConditions> {
            (0..100).map(|index| SecondConditions { bad: index < bad, ..Default::default() }).collect()
        };
        assert!(
            !judge(vec![seconds(2)], None, &gate).contaminated && judge(vec![seconds(3)], None, &gate).contaminated
        );
        let two = judge(vec![seconds(1), seconds(3)], None, &gate);
        assert!(two.contaminated && two.bad_seconds == 3 && two.machines.len() == 2, "bad on one machine is bad");
    }

    #[test]
    fn a_clock_that_jumps_disturbs_a_run() {
        let gate = Gate { foreign_cpu: 0.05, steal: 0.005, pressure: None, bad_seconds: 0.02, attempts: 3 };
        let clocks = |is_stepped| RunClocks { hosts: Vec::new(), bound_us: 1.0, is_stepped };
        assert!(judge(Vec::new(), Some(&clocks(true)), &gate).contaminated);
        assert!(!judge(Vec::new(), Some(&clocks(false)), &gate).contaminated);
    }

    #[test]
    fn counters_that_begin_late_mark_a_run() {
        let late = TrialConditions::default().counted_late(true);
        assert!(late.contaminated && serde_json::to_string(&late).expect("JSON").contains("counted_late"));
        assert_eq!(TrialConditions::default().counted_late(false), TrialConditions::default());
    }
}
