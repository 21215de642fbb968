//! The clocks of a run's machines: asked often before and after it, once a second meanwhile.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thalweg_lab_station::{RawRecords, WrittenSample, write_received};

use super::ground::Place;
use super::site::host_of_publisher;
use super::timetable::timetable;
use super::traces;
use crate::agent::{AgentError, ClockFit, ClockProbes};
use crate::error::LabError;
use crate::process::Stop;
use crate::scenario::{Cell, HostPlan, Schedule};

/// How the clocks of a run's machines ran against the controller's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunClocks {
    /// Each machine, in the order of the scenario.
    pub hosts: Vec<MachineClock>,
    /// What a latency between two machines may be wrong by, for the worst pair, in microseconds; 0 where no pair crosses.
    pub bound_us: f64,
    /// Whether a clock jumped or was slewed meanwhile; such a run counts as disturbed.
    pub is_stepped: bool,
}

/// The clock of one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineClock {
    /// The machine, as the scenario names it.
    pub host: String,
    /// When the schedule began there, by its own clock, in nanoseconds.
    pub origin_ns: u64,
    /// How its clock ran against the controller's; missing for the controller's own machine.
    pub fit: Option<ClockFit>,
}

impl MachineClock {
    /// What its times may be wrong by, by the controller's clock.
    fn bound(&self) -> Duration {
        self.fit.map_or(Duration::ZERO, |fit| fit.bound())
    }

    /// The controller's time of a time since the beginning of the schedule here.
    fn reference(&self, since_ns: u64) -> u64 {
        let own = self.origin_ns + since_ns;
        self.fit.map_or(own, |fit| fit.here(own))
    }

    /// The other way round. A time before the beginning, which only an error of the clocks can give, is the beginning.
    fn since(&self, reference_ns: u64) -> u64 {
        self.fit.map_or(reference_ns, |fit| fit.there(reference_ns)).saturating_sub(self.origin_ns)
    }
}

/// Asks the clocks of a run's machines.
pub(super) struct Clocks {
    names: Vec<String>,
    /// Length of the time before and after in which they are asked often.
    span: Duration,
    hosts: Vec<Option<ClockProbes>>,
    origins: Vec<u64>,
    meanwhile: Option<Meanwhile>,
}

/// A thread that asks now and then.
struct Meanwhile {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Option<ClockProbes>>>,
}

impl Clocks {
    pub(super) fn open(places: &[Place], span: Duration) -> Result<Clocks, LabError> {
        let names = places.iter().map(|place| place.name().to_owned()).collect();
        let open = |place: &Place| place.agent().map(|agent| agent.open_clock()).transpose();
        let hosts = places.iter().map(open).collect::<Result<_, LabError>>()?;
        Ok(Clocks { names, span, hosts, origins: Vec::new(), meanwhile: None })
    }

    /// Asks often for a while, all at the same time.
    ///
    /// # Errors
    /// A clock does not answer, or `stop` was requested.
    pub(super) fn ask_often(&mut self, stop: &Stop) -> Result<(), LabError> {
        let span = self.span;
        let asked: Vec<std::io::Result<()>> = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .hosts
                .iter_mut()
                .flatten()
                .map(|probes| scope.spawn(move || probes.ask_often(span, stop)))
                .collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, std::io::Result<()>>| {
                thread.join().unwrap_or_else(|_| Err(std::io::Error::other("a thread failed")))
            };
            threads.into_iter().map(join).collect()
        });
        if stop.is_requested() {
            return Err(LabError::Interrupted);
        }
        asked.into_iter().collect::<Result<(), _>>().map_err(LabError::here)
    }

    /// Decides when the schedule begins by each clock, if it begins at `origin_ns` by this machine's, and asks now and then from now on.
    ///
    /// # Errors
    /// A clock did not answer.
    pub(super) fn begin(&mut self, origin_ns: u64) -> Result<(), LabError> {
        self.origins = self.fits()?.iter().map(|fit| fit.map_or(origin_ns, |fit| fit.there(origin_ns))).collect();
        let is_over = Arc::new(AtomicBool::new(false));
        let (flag, mut hosts) = (Arc::clone(&is_over), std::mem::take(&mut self.hosts));
        let thread = std::thread::spawn(move || {
            let mut next = Instant::now();
            while !flag.load(Ordering::Relaxed) {
                if Instant::now() >= next {
                    next += NOW_AND_THEN;
                    // What cannot be asked once is asked again, and in the end.
                    hosts.iter_mut().flatten().for_each(|probes| drop(probes.ask()));
                }
                std::thread::sleep(LOOK_PERIOD);
            }
            hosts
        });
        self.meanwhile = Some(Meanwhile { is_over, thread });
        Ok(())
    }

    /// When the schedule begins by the clock of the machine `host`.
    pub(super) fn origin(&self, host: u32) -> Option<u64> {
        self.origins.get(host as usize).copied()
    }

    /// Asks often once more, and tells how the clocks ran; `crossings` are the machines of each pair of endpoints
    /// between which a latency is told.
    ///
    /// # Errors
    /// A clock did not answer, or `stop` was requested.
    pub(super) fn end(&mut self, crossings: &[(u32, u32)], stop: &Stop) -> Result<RunClocks, LabError> {
        self.take_back();
        self.ask_often(stop)?;
        let clock = |((host, origin_ns), fit): ((&String, &u64), Option<ClockFit>)| MachineClock {
            host: host.clone(),
            origin_ns: *origin_ns,
            fit,
        };
        let hosts: Vec<MachineClock> = self.names.iter().zip(&self.origins).zip(self.fits()?).map(clock).collect();
        let bound = |host: u32| hosts.get(host as usize).map_or(Duration::ZERO, MachineClock::bound);
        let crossing = crossings.iter().filter(|(from, to)| from != to);
        let worst = crossing.map(|(from, to)| bound(*from) + bound(*to)).max().unwrap_or_default();
        let is_stepped = hosts.iter().any(|host| host.fit.is_some_and(|fit| fit.is_stepped));
        Ok(RunClocks { bound_us: crate::figures::micros(worst), is_stepped, hosts })
    }

    fn fits(&self) -> Result<Vec<Option<ClockFit>>, LabError> {
        let fit = |(name, probes): (&String, &Option<ClockProbes>)| {
            let Some(probes) = probes else { return Ok(None) };
            let fit = ClockFit::of(probes.answered());
            let unknown = || {
                let (answered, asked) = (probes.answered().len(), probes.asked());
                AgentError::ClockUnknown { machine: name.clone(), answered, asked }.into()
            };
            fit.map(Some).ok_or_else(unknown)
        };
        self.names.iter().zip(&self.hosts).map(fit).collect()
    }

    fn take_back(&mut self) {
        if let Some(Meanwhile { is_over, thread }) = self.meanwhile.take() {
            is_over.store(true, Ordering::Relaxed);
            self.hosts = thread.join().unwrap_or_default();
        }
    }
}

impl Drop for Clocks {
    fn drop(&mut self) {
        self.take_back();
    }
}

/// Rewrites what subscribers and traces of a flow of a run hold, each by the clock of its own machine: arrivals by the clock of the machine on which
/// their publisher kept its schedule, traces by the controller's.
///
/// # Errors
/// A file is missing or damaged, or cannot be written.
pub(super) fn align(
    folder: &Path,
    (cells, flow, schedule): (&[Cell], usize, &Schedule),
    plan: &HostPlan,
    clocks: &RunClocks,
) -> Result<(), LabError> {
    let cell = &cells[flow];
    let of_publisher = |index| host_of_publisher(Some(plan), cells, cell, index);
    let timetable = timetable(cell, schedule);
    // A closed loop tells seconds and the times of one clock.
    let mut raw = match cell.is_closed_loop() {
        true => RawRecords::default(),
        false => RawRecords::read(folder, cell.publishers, cell.subscribers)?,
    };
    for (index, samples) in (0..).zip(&mut raw.received) {
        let there = plan.of_subscriber(cell.publishers, index);
        for sample in samples.iter_mut() {
            let origin = of_publisher(sample.writer);
            let (Some(from), Some(to)) = (clocks.hosts.get(origin as usize), clocks.hosts.get(there as usize)) else {
                continue;
            };
            if origin == there {
                continue;
            }
            sample.received_ns = from.since(to.reference(sample.received_ns));
            // What the sample says of its write is by a clock that its subscriber does not know.
            let known = raw.written.get(sample.writer as usize).and_then(|written| find(written, sample.number));
            sample.written_ns = known.unwrap_or_else(|| timetable.due_ns(sample.writer, sample.number));
        }
        write_received(folder, index, samples)?;
    }
    let Some(start) = clocks.hosts.first().map(|host| host.reference(0)) else { return Ok(()) };
    traces::shift(folder, |process, at_ns| {
        // Named after the first of its endpoints, all of which live on one machine.
        let index = |prefix: &str| process.strip_prefix(prefix).and_then(|index| index.parse().ok());
        let publisher = index("publisher-").map(of_publisher);
        let host = publisher.or_else(|| index("subscriber-").map(|index| plan.of_subscriber(cell.publishers, index)));
        let clock = host.and_then(|host| clocks.hosts.get(host as usize));
        clock.map_or(at_ns, |clock| clock.reference(at_ns).saturating_sub(start))
    })
}

/// When a sample was written; publishers write in the order of the numbers.
fn find(written: &[WrittenSample], number: u64) -> Option<u64> {
    let place = written.binary_search_by_key(&number, |sample| sample.number).ok()?;
    Some(written[place].written_ns)
}

const NOW_AND_THEN: Duration = Duration::from_secs(1);
const LOOK_PERIOD: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use thalweg_lab_station::{ReceivedSample, write_written};

    use super::*;
    use crate::fixtures::{self, LabFolder};
    use crate::scenario::{HostKind, Machine, SshMachine};

    fn clock(ahead_ns: i64, drift_ppm: f64) -> MachineClock {
        let (round_trip_ns, residual_ns, at_ns) = (30_000, 5_000, 1_000_000_000_000);
        let fit = ClockFit { at_ns, ahead_ns, drift_ppm, round_trip_ns, residual_ns, probes: 300, is_stepped: false };
        MachineClock { host: "x".to_owned(), origin_ns: fit.there(at_ns), fit: Some(fit) }
    }

    #[test]
    fn arrivals_are_told_by_the_clock_of_their_publishers_machine() {
        let schedule = "seconds = 20\nruns = 1\nwarm_up_s = 0";
        let scenario = fixtures::scenario_with("payload_bytes = 1\nrate_hz = 1\nendpoints = \"2-1\"", schedule);
        let (cells, schedule) = (&scenario.cells, &scenario.schedule);
        let machines = ["a", "b"].map(|name| Machine::Ssh(SshMachine::new(name))).to_vec();
        // Publisher 0 lives on the first machine, publisher 1 and the subscriber on the second.
        let plan = HostPlan {
            kind: HostKind::Machines(machines),
            publishers: Some(vec![0, 1]),
            subscribers: Some(vec![1]),
            ..HostPlan::namespaces(2)
        };
        let hosts = vec![clock(7_000_000_000, 100.0), clock(-500_000_000_000, -50.0)];
        let folder = LabFolder::new("align");
        let written = |number: u64| {
            let written_ns = number * 1_000_000_000;
            WrittenSample { number, written_ns, returned_ns: written_ns + 5_000 }
        };
        let all: Vec<WrittenSample> = (0..20).map(written).collect();
        (0..2).for_each(|index| write_written(&folder, index, &all).expect("written"));
        // What the first publisher wrote takes a millisecond; the subscriber notes it by its own clock, and a time that means nothing to it.
        let across = |sample: &WrittenSample| ReceivedSample {
            writer: 0,
            number: sample.number,
            written_ns: 77,
            received_ns: hosts[1].since(hosts[0].reference(sample.written_ns) + 1_000_000),
        };
        let beside = |sample: &WrittenSample| ReceivedSample {
            writer: 1,
            number: sample.number,
            written_ns: 40,
            received_ns: 90,
        };
        let received: Vec<ReceivedSample> = all.iter().map(across).chain(all.iter().map(beside)).collect();
        write_received(&folder, 0, &received).expect("written");
        let clocks = RunClocks { hosts: hosts.clone(), bound_us: 1.0, is_stepped: false };
        align(&folder, (cells, 0, schedule), &plan, &clocks).expect("aligned");
        let raw = RawRecords::read(&folder, 2, 1).expect("read");
        assert_eq!(raw.written[0], all, "the publisher's own times stay");
        for (sample, written) in raw.received[0].iter().zip(&all) {
            assert_eq!(sample.written_ns, written.written_ns);
            let latency_ns = sample.received_ns - written.written_ns;
            assert!(latency_ns.abs_diff(1_000_100) <= 3, "{latency_ns} ns by a clock that is 100 ppm too fast");
        }
        assert_eq!(raw.received[0][20..], received[20..], "on one machine nothing has to be changed");
        assert_eq!(hosts[0].bound(), Duration::from_micros(20));
    }
}
