//! The course of a run: start the processes, let them meet, start the schedule, watch the machine, collect.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use thalweg_lab_station::{ACKNOWLEDGEMENT_PATIENCE, Command, PublisherReport, Raw, Word, WorkerReport, not_written};

use super::diary::Diary;
use super::fates::join;
use super::histograms;
use super::places::shares;
use super::processes::Processes;
use super::result::{ProcessReport, TrialConditions, TrialResult};
use super::site::{Site, SiteCounters, by_host};
use super::timetable::timetable;
use super::traces;
use crate::error::LabError;
use crate::host::{SecondConditions, SecondWatch, monotonic_nanos};
use crate::network::Hosts;
use crate::process::{Launcher, Message, Stop, Supervised};
use crate::scenario::{Cell, Gate, Scenario};

/// What a run is made with.
#[derive(Clone, Copy)]
pub(crate) struct RunContext<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) launcher: &'a Launcher,
    pub(crate) stop: &'a Stop,
    /// Where endpoints live, unless all live here.
    pub(crate) hosts: Option<&'a Hosts>,
    /// What decides the fate of frames between the hosts.
    pub(crate) chance: u64,
}

/// Makes one run of `cell`; `folder` gets the raw data, the histograms and the result.
pub(crate) fn run(context: RunContext<'_>, cell: &Cell, folder: &Path) -> Result<TrialResult, LabError> {
    let mut ensemble = Ensemble::start(context, cell, folder)?;
    let timetable = timetable(cell, &context.scenario.schedule);
    ensemble.hear_all(context.scenario.schedule.matching + MARGIN, matched)?;
    ensemble.site.begin()?;
    // Time for every process to hear of it.
    let origin_ns =
        monotonic_nanos() + (START_DELAY + START_DELAY_EACH * ensemble.workers.len() as u32).as_nanos() as u64;
    ensemble.tell_all(&Command::Start { origin_ns })?;
    let at = |relative_ns: u64| origin_ns + relative_ns;
    // Before the first measured sample, so that every loss among them has its place.
    ensemble.wait_until(at(timetable.start_ns()).saturating_sub(COUNTERS_EARLY.as_nanos() as u64))?;
    let before = ensemble.counters()?;
    ensemble.wait_until(at(timetable.start_ns()))?;
    let started_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut diary = Diary::create(folder)?;
    let until = at(timetable.end_ns());
    let seconds = ensemble.watch(at(timetable.start_ns()), until, &context.scenario.gate, &mut diary)?;
    let schedule = &context.scenario.schedule;
    let patience = schedule.behind_max + context.scenario.qos.max_blocking + ACKNOWLEDGEMENT_PATIENCE + MARGIN;
    let reports: Vec<PublisherReport> = ensemble.hear_all(patience, published)?.into_iter().flatten().collect();
    ensemble.tell_all(&Command::Drain { written: written(cell, &reports) })?;
    ensemble.hear_all(DRAIN_PATIENCE, drained)?;
    let (layers, hosts) = ensemble.counters()?.since(&before);
    ensemble.tell_all(&Command::Finish)?;
    let (workers, processes) = ensemble.finish()?;
    let raw = Raw::read(folder, cell.publishers, cell.subscribers)?;
    let joined = join(cell, schedule, &raw, &reports);
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
        publishers: joined.publishers,
        pairs: joined.pairs,
        subscribers: workers.into_iter().flat_map(|report| report.subscribers).collect(),
        processes,
        layers,
        hosts,
        conditions: judge(seconds, &context.scenario.gate),
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

fn judge(seconds: Vec<SecondConditions>, gate: &Gate) -> TrialConditions {
    let bad_seconds = seconds.iter().filter(|second| second.bad).count() as u64;
    let contaminated = bad_seconds as f64 > gate.bad_seconds * seconds.len() as f64;
    TrialConditions { seconds, bad_seconds, contaminated }
}

fn matched(message: Message) -> Option<()> {
    matches!(word(message)?, Word::Matched).then_some(())
}

fn published(message: Message) -> Option<Vec<PublisherReport>> {
    if let Word::Published(reports) = word(message)? { Some(reports) } else { None }
}

fn drained(message: Message) -> Option<()> {
    matches!(word(message)?, Word::Drained).then_some(())
}

fn word(message: Message) -> Option<Word> {
    if let Message::Progress(value) = message { parse(value) } else { None }
}

fn report(message: Message) -> Option<WorkerReport> {
    if let Message::Done(value) = message { parse(value) } else { None }
}

fn parse<T: DeserializeOwned>(value: serde_json::Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

/// The processes of a run.
struct Ensemble<'a> {
    stop: &'a Stop,
    /// Names and processes, in the order in which they were started.
    workers: Vec<(String, Supervised)>,
    /// The host of each process.
    places: Vec<u32>,
    // Dropped after the processes, whose last datagrams it forwards.
    site: Site<'a>,
}

impl<'a> Ensemble<'a> {
    fn start(context: RunContext<'a>, cell: &Cell, folder: &Path) -> Result<Ensemble<'a>, LabError> {
        let site = Site::start(context)?;
        let mut ensemble = Ensemble { stop: context.stop, workers: Vec::new(), places: Vec::new(), site };
        let processes = Processes::new(context, cell, folder)?;
        let plan = context.scenario.hosts.as_ref();
        let shares = shares(&context.scenario.process, cell).into_iter();
        for (host, share) in shares.flat_map(|share| by_host(share, cell, plan)) {
            let worker = processes.start(&ensemble.site.launcher(host), &share)?;
            ensemble.workers.push((share.name, worker));
            ensemble.places.push(host);
        }
        Ok(ensemble)
    }

    /// Waits until each process said what `read` accepts.
    fn hear_all<T>(&mut self, patience: Duration, read: fn(Message) -> Option<T>) -> Result<Vec<T>, LabError> {
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

    fn tell_all(&mut self, command: &Command) -> Result<(), LabError> {
        self.workers.iter_mut().try_for_each(|(_, worker)| worker.send(command))
    }

    fn counters(&mut self) -> Result<SiteCounters, LabError> {
        let workers = self.places.iter().copied().zip(self.workers.iter().map(|(_, worker)| worker.id()));
        self.site.counters(&workers.collect::<Vec<_>>())
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

    /// Looks at the machine once a second from `start_ns` to `end_ns`.
    fn watch(
        &mut self,
        start_ns: u64,
        end_ns: u64,
        gate: &Gate,
        diary: &mut Diary,
    ) -> Result<Vec<SecondConditions>, LabError> {
        let workers = self.workers.iter().map(|(_, worker)| worker.id());
        let mut watch = SecondWatch::start(workers.chain(self.site.processes()).collect());
        let mut out = Vec::new();
        let mut next = start_ns;
        while next < end_ns {
            next = (next + 1_000_000_000).min(end_ns);
            self.wait_until(next)?;
            let mut second = watch.look();
            second.bad = is_bad(&second, gate);
            diary.note(&second)?;
            out.push(second);
        }
        Ok(out)
    }

    fn finish(mut self) -> Result<(Vec<WorkerReport>, Vec<ProcessReport>), LabError> {
        let reports = self.hear_all(WRITE_PATIENCE, report)?;
        let usage = |((name, _), report): (&(String, Supervised), &WorkerReport)| ProcessReport {
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
const START_DELAY: Duration = Duration::from_millis(200);
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
        let conditions = judge(vec![SecondConditions { bad: expect, ..second }], &gate);
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
        let seconds =
            |bad: usize| (0..100).map(|index| SecondConditions { bad: index < bad, ..Default::default() }).collect();
        assert!(!judge(seconds(2), &gate).contaminated && judge(seconds(3), &gate).contaminated);
    }
}
