//! Carries out a plan: virtual time, datagrams between participants, applications that write and take.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use thalweg_rtps::history::TakenSample;
use thalweg_rtps::outbox::Outbox;
use thalweg_rtps::participant::Household;
use thalweg_rtps::rng::Rng;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{EntityId, Guid};

use crate::application::{ReaderApplication, WriterApplication};
use crate::inbox::DatagramInTransit;
use crate::intruder::Intruder;
use crate::laws::liveness::settling_bound;
use crate::network::{Fate, Network};
use crate::plan::{Ending, Plan};
use crate::process::Process;
use crate::queue::EventQueue;
use crate::record::{ReaderRecord, Record, WriterRecord};
use crate::store::Stores;
use crate::toll::Tolls;
use crate::trace::{Detail, Step, Trace};

/// Something that is going to happen.
pub(crate) enum Happening {
    Start(usize),
    End(usize),
    CreateWriter(usize),
    CreateReader(usize),
    DeleteWriter(usize),
    DeleteReader(usize),
    /// A datagram reaches the lane into a host.
    Enter {
        host: usize,
        to: SocketAddr,
        datagram: DatagramInTransit,
    },
    /// A datagram reaches a process's receive buffer.
    Arrive(usize, DatagramInTransit),
    /// A process's processor is free for the next datagram.
    Receive(usize),
    Timeout(usize),
    /// A process looks at what its housemates have told.
    HearHousemates(usize),
    /// The next burst of a writer.
    Burst(usize),
    /// An application asserts its writer's liveliness.
    Assert(usize),
    /// An application begins a coherent set of its publisher, or ends it.
    BeginSet(usize),
    EndSet(usize),
    /// A process's store looks for something to commit, or has committed it.
    Commit(usize),
    Committed(usize),
    /// An application changes the partitions of an endpoint.
    SetWriterQos(usize),
    SetReaderQos(usize),
    /// An application's send call for a writer is over.
    CallEnds(usize),
    /// A refused write is tried again.
    Retry(usize),
    /// A refused write has waited for its max_blocking_time.
    GiveUp {
        writer: usize,
        waits: u32,
    },
    Take(usize),
    Split(usize),
    Heal,
    Pause(usize),
    /// A host gets another address.
    Move(usize),
    /// The processes of a host that has moved learn of it.
    TellMove(usize),
    /// The paths between hosts change.
    Path(usize),
    /// A host learns how wide the paths are.
    TellPath(usize),
    /// An intruder does something.
    Intrude(usize),
    /// Checks the memory of all participants.
    Look,
    /// Is everything done?
    Check,
}

/// Timeouts that a participant may ask for without time passing.
const TIMEOUTS_AT_ONCE_MAX: u32 = 1_000;
/// Steps that the busiest world may take; a quiet one takes some thousand.
const STEPS_MAX: u64 = 4_000_000;
/// Breaches after which the world need not go on.
const BREACHES_MAX: usize = 20;
/// Time for which the world goes on after it has settled, to check that it becomes quiet.
pub(crate) const QUIET: Duration = Duration::from_secs(5);
/// Time for which the settled world may still be busy with crossing messages.
pub(crate) const CALMING_DOWN: Duration = Duration::from_secs(2);

pub(crate) struct Simulation {
    pub(crate) plan: Plan,
    pub(crate) now: Instant,
    pub(crate) queue: EventQueue<Happening>,
    pub(crate) network: Network,
    pub(crate) processes: Vec<Process>,
    pub(crate) writers: Vec<WriterApplication>,
    pub(crate) readers: Vec<ReaderApplication>,
    /// Which application has which endpoint of which process.
    pub(crate) endpoints: BTreeMap<(usize, EntityId), usize>,
    pub(crate) settled_at: Option<Instant>,
    /// When a participant last received a datagram of an intruder; a long queue hands them out for seconds after the last was sent.
    pub(crate) intruded_at: Option<Instant>,
    pub(crate) breaches: Vec<String>,
    /// Acknowledgements that were not true.
    pub(crate) unkept: Vec<String>,
    /// Memory beyond its bounds.
    pub(crate) exceeded: Vec<String>,
    /// Readers with more values than KEEP_LAST allows.
    pub(crate) overfull: Vec<String>,
    /// Missing samples by writer.
    pub(crate) tolls: Tolls,
    /// Which reader has which GUID.
    pub(crate) reader_numbers: BTreeMap<Guid, usize>,
    pub(crate) stores: Stores,
    pub(crate) trace: Trace,
    pub(crate) outbox: Outbox,
    pub(crate) fates: Vec<Fate>,
    pub(crate) taken: Vec<TakenSample>,
    pub(crate) intruders: Vec<Intruder>,
    /// Decides which datagrams are damaged, and how.
    pub(crate) damage: Rng,
    /// Decides how long send calls last.
    pub(crate) interruptions: Rng,
}

impl Simulation {
    pub(crate) fn new(plan: Plan, detail: Detail) -> Simulation {
        let mut network = Network::new(plan.seed, plan.hosts.len(), plan.weather, plan.family, plan.group_filter);
        plan.links.iter().enumerate().for_each(|(host, link)| network.set_link(host, *link));
        let mut households: BTreeMap<usize, Household> = BTreeMap::new();
        let processes = plan.processes.iter().enumerate().map(|(number, process)| {
            let shared = process.household.map(|household| households.entry(household).or_default().clone());
            Process::new(&plan, number, shared.unwrap_or_default())
        });
        let processes = processes.collect();
        let writers = plan.writers().enumerate().map(|(number, (index, writer))| {
            let record = WriterRecord::new(index, writer.process);
            WriterApplication::new(number, record, plan.seed)
        });
        let readers = plan.readers().enumerate().map(|(number, (index, reader))| {
            let record = ReaderRecord::new(index, reader.process);
            ReaderApplication { number, handle: None, record, values: BTreeSet::new(), take_planned: false }
        });
        let (writers, readers) = (writers.collect(), readers.collect());
        let mut simulation = Simulation {
            now: Instant::ZERO,
            queue: EventQueue::default(),
            network,
            processes,
            writers,
            readers,
            endpoints: BTreeMap::new(),
            settled_at: None,
            intruded_at: None,
            breaches: Vec::new(),
            unkept: Vec::new(),
            exceeded: Vec::new(),
            overfull: Vec::new(),
            tolls: Tolls::new(),
            reader_numbers: BTreeMap::new(),
            stores: Stores::default(),
            trace: Trace::new(detail),
            outbox: Outbox::new(),
            fates: Vec::new(),
            taken: Vec::new(),
            damage: Rng::new(plan.seed ^ 0x6461_6d61),
            interruptions: Rng::new(plan.seed ^ 0x6361_6c6c),
            intruders: plan.intruders.iter().enumerate().map(|(number, _)| Intruder::new(plan.seed, number)).collect(),
            plan,
        };
        simulation.schedule_plan();
        simulation
    }

    fn schedule_plan(&mut self) {
        for (number, process) in self.plan.processes.iter().enumerate() {
            self.queue.plan(process.starts, Happening::Start(number));
            if let Some((at, _)) = process.ends {
                self.queue.plan(at, Happening::End(number));
            }
            if let Some(sets) = process.sets {
                self.queue.plan(sets.from, Happening::BeginSet(number));
            }
        }
        for (number, (_, writer)) in self.plan.writers().enumerate() {
            let starts = self.plan.processes[writer.process].starts;
            let created = writer.created.max(starts);
            self.queue.plan(created, Happening::CreateWriter(number));
            self.queue.plan(writer.first_write.max(created), Happening::Burst(number));
            if let Some(at) = writer.deleted {
                self.queue.plan(at.max(created), Happening::DeleteWriter(number));
            }
            if let Some(at) = writer.habits.returns {
                self.queue.plan(at.max(created), Happening::CreateWriter(number));
                self.queue.plan(at.max(created), Happening::Burst(number));
            }
            if let Some(earlier) = &writer.earlier {
                self.queue.plan(earlier.until.max(created), Happening::SetWriterQos(number));
            }
            if let Some(assertions) = writer.habits.asserts {
                self.queue.plan(created + assertions.period, Happening::Assert(number));
            }
        }
        for (number, (_, reader)) in self.plan.readers().enumerate() {
            let starts = self.plan.processes[reader.process].starts;
            self.queue.plan(reader.created.max(starts), Happening::CreateReader(number));
            if let Some(at) = reader.deleted {
                self.queue.plan(at.max(starts), Happening::DeleteReader(number));
            }
            if let Some(earlier) = &reader.earlier {
                self.queue.plan(earlier.until.max(starts), Happening::SetReaderQos(number));
            }
        }
        for (number, split) in self.plan.splits.iter().enumerate() {
            self.queue.plan(split.from, Happening::Split(number));
            self.queue.plan(split.until, Happening::Heal);
        }
        for (number, pause) in self.plan.pauses.iter().enumerate() {
            self.queue.plan(pause.from, Happening::Pause(number));
        }
        for (number, one) in self.plan.moves.iter().enumerate() {
            self.queue.plan(one.at, Happening::Move(number));
            self.queue.plan(one.at + one.told_after, Happening::TellMove(one.host));
        }
        for (number, path) in self.plan.paths.iter().enumerate() {
            self.queue.plan(path.at, Happening::Path(number));
        }
        for (number, intruder) in self.plan.intruders.iter().enumerate() {
            self.queue.plan(intruder.from, Happening::Intrude(number));
        }
        self.queue.plan(self.plan.last_activity(), Happening::Check);
        self.queue.plan(Instant::ZERO, Happening::Look);
    }

    /// Runs until everything is settled and quiet, or patience ends.
    pub(crate) fn run(mut self) -> Record {
        let patience = self.plan.patience.max(settling_bound(&self.plan));
        let patience_ends = self.plan.last_activity() + patience;
        while let Some(at) = self.queue.next_at() {
            let end = self.settled_at.map_or(patience_ends, |settled| settled + QUIET);
            // A lease may have ended since.
            if at > end && self.settled_at.is_some() && !self.unsettled().is_empty() {
                self.now = end;
                self.settled_at = None;
                self.check_settled();
                continue;
            }
            if at > end || self.breaches.len() >= BREACHES_MAX {
                break;
            }
            if self.trace.steps() > STEPS_MAX {
                self.breach(format!("more than {STEPS_MAX} steps: a participant does not stop sending"));
                break;
            }
            let Some((at, turn, happening)) = self.queue.pop() else { break };
            self.now = at;
            match self.postpone(&happening) {
                Some(resumes) => self.queue.postpone(resumes, turn, happening),
                None => self.happen(happening),
            }
        }
        self.into_record()
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Start(process) => self.start(process),
            Happening::End(process) => self.end(process),
            Happening::CreateWriter(writer) => self.create_writer(writer),
            Happening::CreateReader(reader) => self.create_reader(reader),
            Happening::DeleteWriter(writer) => self.delete_writer(writer),
            Happening::DeleteReader(reader) => self.delete_reader(reader),
            Happening::Enter { host, to, datagram } => self.enter(host, to, &datagram),
            Happening::Arrive(process, datagram) => self.arrive(process, datagram),
            Happening::Receive(process) => self.receive(process),
            Happening::Timeout(process) => self.time_out(process),
            Happening::HearHousemates(process) => self.hear_housemates(process),
            Happening::Burst(writer) => self.burst(writer),
            Happening::Assert(writer) => self.assert_liveliness(writer),
            Happening::BeginSet(process) => self.begin_set(process),
            Happening::EndSet(process) => self.end_set(process),
            Happening::Commit(process) => self.commit(process),
            Happening::Committed(process) => self.committed(process),
            Happening::SetWriterQos(writer) => self.set_writer_qos(writer),
            Happening::SetReaderQos(reader) => self.set_reader_qos(reader),
            Happening::CallEnds(writer) => self.end_call(writer),
            Happening::Retry(writer) => self.write(writer),
            Happening::GiveUp { writer, waits } => self.give_up_write(writer, waits),
            Happening::Take(reader) => self.take(reader),
            Happening::Split(number) => {
                let split = self.plan.splits[number];
                self.network.split(split.cut, |host| split.side(host));
                self.note(0, format!("the network splits: {:?}", split));
            }
            Happening::Heal => {
                self.network.heal();
                self.note(0, "the network heals".to_string());
            }
            Happening::Pause(number) => self.pause(number),
            Happening::Move(number) => self.move_host(number),
            Happening::TellMove(host) => self.tell_move(host),
            Happening::Path(number) => self.change_paths(number),
            Happening::TellPath(host) => self.tell_path(host),
            Happening::Intrude(number) => self.intrude(number),
            Happening::Look => self.look(),
            Happening::Check => self.check_settled(),
        }
    }

    pub(crate) fn note(&mut self, process: usize, words: String) {
        self.trace.record(self.now, process, Step::Note(words));
    }

    pub(crate) fn breach(&mut self, words: String) {
        self.breaches.push(format!("{:.6}: {words}", self.now.as_nanos() as f64 / 1e9));
    }

    fn start(&mut self, number: usize) {
        let host = self.processes[number].host;
        self.note(number, format!("starts on host {host}"));
        self.processes[number].start(self.now, &self.plan, number, &mut self.network);
        self.create_controller(number);
        self.open_store(number);
        self.drive(number);
    }

    fn end(&mut self, number: usize) {
        let ending = self.plan.processes[number].ends.map(|(_, ending)| ending);
        self.note(number, format!("{ending:?}"));
        if ending == Some(Ending::Leaves) {
            let now = self.processes[number].local(self.now);
            if let Some(participant) = self.processes[number].participant.as_mut() {
                participant.shutdown(now);
            }
            self.drive(number);
        }
        self.close_store(number, ending);
        self.network.close(number);
        self.processes[number].participant = None;
        for writer in self.writers.iter_mut().filter(|writer| writer.record.process == number) {
            writer.close(self.now);
        }
        for reader in self.readers.iter_mut().filter(|reader| reader.record.process == number) {
            reader.close(self.now);
        }
    }

    fn time_out(&mut self, number: usize) {
        let process = &mut self.processes[number];
        if process.timer_at != self.now {
            return; // Planned for a time that has changed since.
        }
        process.timer_at = Instant::NEVER;
        let (last, count) = process.timeouts_at_once;
        process.timeouts_at_once = if last == self.now { (last, count + 1) } else { (self.now, 0) };
        let now = process.local(self.now);
        let Some(participant) = process.participant.as_mut() else { return };
        participant.handle_timeout(now);
        if process.timeouts_at_once.1 == TIMEOUTS_AT_ONCE_MAX {
            self.breach(format!("p{number} asks for a timeout again and again without time passing"));
            return;
        }
        self.trace.record(self.now, number, Step::TimedOut);
        self.drive(number);
    }
}
