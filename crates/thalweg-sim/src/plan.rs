//! What a simulated world consists of and what happens in it, apart from chance on the network.

use std::time::Duration;

use thalweg_rtps::discovery::groups::Groups;
use thalweg_rtps::flow_control::FlowControllerSettings;
use thalweg_rtps::qos::{DestinationOrder, Durability, History, Ownership, ReaderLifecycle, ReaderQos, WriterQos};
use thalweg_rtps::time::{INFINITE, Instant};
use thalweg_rtps::types::{Keyed, SequenceNumber};

pub use crate::calls::SendTimes;
use crate::clock::HostClock;
pub use crate::earlier::EarlierPolicies;
use crate::lane::HostLink;
use crate::network::{GroupFilter, IpVersion, Weather};
pub use crate::publisher::SetTimes;
use crate::rules::fit;
pub use crate::store::StoreTimes;
pub use crate::trouble::{Cut, IntruderPlan, MovePlan, PathPlan, PausePlan, SplitPlan};

/// A whole scenario. The same plan always leads to the same course of events.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Seed of the network's chance and of everything else that is random while the plan is carried out.
    pub seed: u64,
    /// The clock of each host.
    pub hosts: Vec<HostClock>,
    /// The link of each host with the network; hosts beyond the end have [`HostLink::UNLIMITED`].
    pub links: Vec<HostLink>,
    /// One participant each.
    pub processes: Vec<ProcessPlan>,
    /// What is written and read.
    pub topics: Vec<TopicPlan>,
    /// Which internet protocol the hosts speak.
    pub family: IpVersion,
    /// How the network between hosts behaves.
    pub weather: Weather,
    /// Times in which some hosts cannot reach the others.
    pub splits: Vec<SplitPlan>,
    /// Times in which processes do not run.
    pub pauses: Vec<PausePlan>,
    /// Hosts whose address changes.
    pub moves: Vec<MovePlan>,
    /// How wide the paths are, in order of time; 1500 bytes before the first.
    pub paths: Vec<PathPlan>,
    /// Who forges and repeats datagrams.
    pub intruders: Vec<IntruderPlan>,
    /// Which multicast the network does not carry; where it carries none, participants know each other's addresses.
    pub group_filter: GroupFilter,
    /// How long after everything planned the world may take to settle.
    pub patience: Duration,
}

/// One process with one participant.
#[derive(Clone, Debug)]
pub struct ProcessPlan {
    /// Where it runs.
    pub host: usize,
    /// When it starts.
    pub starts: Instant,
    /// When and how it ends before the world does.
    pub ends: Option<(Instant, Ending)>,
    /// Size of its receive buffer, which it announces.
    pub receive_buffer_bytes: u32,
    /// Processor time that receiving a datagram takes.
    pub datagram_cost: Duration,
    /// The lease it announces.
    pub lease_duration: Duration,
    /// A process of the same host, ended by then, whose ports this one takes over: the same program, started again.
    pub succeeds: Option<usize>,
    /// Its communication groups; none is the default group.
    pub groups: Vec<String>,
    /// Where the counts of HEARTBEATs, ACKNACKs and their like begin.
    pub first_count: u32,
    /// The household that its participant belongs to with those of the same number, all on one host; `None` is a household of its own.
    pub household: Option<usize>,
    /// The flow controller [`Plan::CONTROLLER`], if its writers need one.
    pub controller: Option<FlowControllerSettings>,
    /// How long the send calls of its applications last.
    pub sends: SendTimes,
    /// When its publisher writes coherent sets.
    pub sets: Option<SetTimes>,
    /// The store of its PERSISTENT writers, one in each topic; a process that succeeds it goes on with it.
    pub store: Option<StoreTimes>,
}

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It says so.
    Leaves,
    /// From one moment to the next, without a word.
    Vanishes,
}

/// A topic with its endpoints.
#[derive(Clone, Debug)]
pub struct TopicPlan {
    /// Its name.
    pub name: String,
    /// Whether it has instances.
    pub keyed: Keyed,
    /// Whether writers of a keyed topic write the same instances or each its own.
    pub instances: InstanceSharing,
    /// Who writes.
    pub writers: Vec<WriterPlan>,
    /// Who reads.
    pub readers: Vec<ReaderPlan>,
}

/// Who writes the instances of a keyed topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceSharing {
    /// Each writer has its own.
    Own,
    /// All writers write the same ones.
    Shared,
}

/// One writer and what its application does.
#[derive(Clone, Debug)]
pub struct WriterPlan {
    /// In which process.
    pub process: usize,
    /// When it is created, if the process is there by then.
    pub created: Instant,
    /// When it is deleted before its process ends.
    pub deleted: Option<Instant>,
    /// Its QoS.
    pub qos: WriterQos,
    /// The policies that it has before.
    pub earlier: Option<EarlierPolicies>,
    /// When it writes the first sample.
    pub first_write: Instant,
    /// How many samples it writes.
    pub samples: u32,
    /// Time between bursts.
    pub period: Duration,
    /// Samples written one directly after the other.
    pub burst: u32,
    /// Bytes of a sample, at least 16.
    pub payload_bytes: usize,
    /// How many instances it writes on a keyed topic.
    pub instances: u8,
    /// Probability that a write is a dispose or unregister instead.
    pub endings: f64,
    /// Who gives the samples their source time stamps.
    pub stamps: Stamps,
    /// Number of the first sample.
    pub first: SequenceNumber,
    /// What it does beside writing.
    pub habits: Habits,
}

/// What a writer's application does for policies beside writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habits {
    /// So many samples make a coherent set; after two sets, as many belong to none. Zero: there are no sets.
    pub set_samples: u32,
    /// It asserts its writer's liveliness.
    pub asserts: Option<Assertions>,
    /// After it was deleted, the writer is created again: a TRANSIENT one goes on with its history.
    pub returns: Option<Instant>,
}

/// When an application asserts its writer's liveliness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assertions {
    /// Time between two assertions, from the writer's creation on.
    pub period: Duration,
    /// None comes later.
    pub until: Instant,
}

/// Where source time stamps come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stamps {
    /// Samples have none.
    #[default]
    Absent,
    /// The clock of the writer's host.
    HostClock,
}

/// One reader and what its application does.
#[derive(Clone, Debug)]
pub struct ReaderPlan {
    /// In which process.
    pub process: usize,
    /// When it is created, if the process is there by then.
    pub created: Instant,
    /// When it is deleted before its process ends.
    pub deleted: Option<Instant>,
    /// Its QoS.
    pub qos: ReaderQos,
    /// The policies that it has before.
    pub earlier: Option<EarlierPolicies>,
    /// When it takes what has arrived.
    pub pace: Pace,
    /// Its content filter.
    pub filter: Option<Selection>,
}

/// A content filter: every `modulus`-th sample of a writer, beginning with its sample `remainder`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Not zero.
    pub modulus: u32,
    /// Less than the modulus.
    pub remainder: u32,
}

impl Selection {
    /// Whether the sample is wanted that its writer wrote after `index` others.
    pub fn accepts(self, index: u32) -> bool {
        index % self.modulus == self.remainder
    }
}

/// When an application takes samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Everything, so long after it is told that there is something.
    Eager(Duration),
    /// At most so many samples in each period.
    Polling {
        /// Time between two takes.
        period: Duration,
        /// Most samples of one take.
        samples_max: usize,
    },
    /// Never: an application that hangs.
    Never,
}

/// A writer or reader of the plan: topic and place in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointIndex {
    /// Which topic.
    pub topic: usize,
    /// Which of its writers, or readers.
    pub place: usize,
}

impl Plan {
    /// A plan to build on: a host with an exact clock and one process for each of `processes`, all there from the start, a
    /// clear network with multicast, nothing to write or read.
    pub fn new(seed: u64, processes: usize) -> Plan {
        let process = |host| ProcessPlan {
            host,
            starts: Instant::ZERO,
            ends: None,
            receive_buffer_bytes: 1 << 20,
            datagram_cost: Duration::from_micros(3),
            lease_duration: Duration::from_secs(20),
            succeeds: None,
            groups: Vec::new(),
            first_count: 1,
            household: None,
            controller: None,
            sends: SendTimes::NONE,
            sets: None,
            store: None,
        };
        Plan {
            seed,
            hosts: vec![HostClock::EXACT; processes],
            links: Vec::new(),
            processes: (0..processes).map(process).collect(),
            topics: Vec::new(),
            family: IpVersion::V4,
            weather: Weather::CLEAR,
            splits: Vec::new(),
            pauses: Vec::new(),
            moves: Vec::new(),
            paths: Vec::new(),
            intruders: Vec::new(),
            group_filter: GroupFilter::Nothing,
            patience: Duration::from_secs(60),
        }
    }

    /// Name of the type of all topics.
    pub const TYPE_NAME: &'static str = "Sample";

    /// All writers, topic by topic.
    pub fn writers(&self) -> impl Iterator<Item = (EndpointIndex, &WriterPlan)> {
        self.topics.iter().enumerate().flat_map(|(topic, plan)| {
            plan.writers.iter().enumerate().map(move |(place, writer)| (EndpointIndex { topic, place }, writer))
        })
    }

    /// All readers, topic by topic.
    pub fn readers(&self) -> impl Iterator<Item = (EndpointIndex, &ReaderPlan)> {
        self.topics.iter().enumerate().flat_map(|(topic, plan)| {
            plan.readers.iter().enumerate().map(move |(place, reader)| (EndpointIndex { topic, place }, reader))
        })
    }

    /// Name of the flow controller that a process may have.
    pub const CONTROLLER: &'static str = "narrow";

    /// Whether two processes have a communication group in common.
    pub fn meet(&self, process: usize, other: usize) -> bool {
        let groups = |number: usize| Groups::new(self.processes[number].groups.iter().cloned()).unwrap_or_default();
        groups(process).meet(&groups(other))
    }

    /// Whether a writer and a reader of one topic are to find each other in the end.
    pub fn should_match(&self, writer: &WriterPlan, reader: &ReaderPlan) -> bool {
        self.meet(writer.process, reader.process) && fit(&writer.qos, &reader.qos)
    }

    /// Whether they are to do so at some time: before or after they change their policies.
    pub fn may_match(&self, writer: &WriterPlan, reader: &ReaderPlan) -> bool {
        let readers: Vec<ReaderPlan> = [Some(reader.clone()), reader.before()].into_iter().flatten().collect();
        let mut writers = [Some(writer.clone()), writer.before()].into_iter().flatten();
        writers.any(|writer| readers.iter().any(|reader| self.should_match(&writer, reader)))
    }

    /// Whether the participants of two processes share a household.
    pub fn are_housemates(&self, process: usize, other: usize) -> bool {
        let household = |number: usize| self.processes[number].household;
        process != other && household(process).is_some() && household(process) == household(other)
    }

    /// When the last planned thing happens, if no write has to wait.
    pub fn last_activity(&self) -> Instant {
        let writes = self.writers().map(|(_, writer)| writer.last_write());
        let created = self.readers().map(|(_, reader)| reader.created);
        writes.chain(created).max().unwrap_or_default().max(self.last_disturbance())
    }

    /// When the last thing happens that keeps applications and participants from doing their work: from then on everything
    /// is in order.
    pub fn last_disturbance(&self) -> Instant {
        let deleted = self.writers().filter_map(|(_, writer)| writer.habits.returns.or(writer.deleted));
        let deleted = deleted.chain(self.readers().filter_map(|(_, reader)| reader.deleted));
        let earlier = self.writers().map(|(_, writer)| &writer.earlier);
        let earlier = earlier.chain(self.readers().map(|(_, reader)| &reader.earlier));
        let changed = earlier.flatten().map(|earlier| earlier.until);
        let sets = self.processes.iter().filter_map(|process| process.sets);
        let sets = sets.map(|sets| sets.until + sets.lasts);
        let splits = self.splits.iter().map(|split| split.until);
        let pauses = self.pauses.iter().map(|pause| pause.until);
        let moves = self.moves.iter().map(|one| one.at + one.told_after);
        let paths = self.paths.iter().map(|path| path.at);
        let intruders = self.intruders.iter().map(|intruder| intruder.until);
        let processes =
            self.processes.iter().flat_map(|process| [Some(process.starts), process.ends.map(|(at, _)| at)]);
        let network = splits.chain(pauses).chain(moves).chain(paths).chain(intruders);
        deleted.chain(changed).chain(sets).chain(network).chain(processes.flatten()).max().unwrap_or_default()
    }

    /// Whether participants are told the time of day: some sample dies of old age.
    pub fn has_wall_clocks(&self) -> bool {
        self.writers().any(|(_, writer)| writer.qos.timing.lifespan != INFINITE)
    }

    /// Whether anything happens to processes or the network beside its weather.
    pub fn is_disturbed(&self) -> bool {
        let succeeds = self.processes.iter().any(|process| process.succeeds.is_some());
        let network = self.links.iter().any(|link| *link != HostLink::UNLIMITED) || !self.paths.is_empty();
        let who = !self.pauses.is_empty() || !self.moves.is_empty() || !self.intruders.is_empty();
        !self.splits.is_empty() || succeeds || network || who
    }

    /// Time in which any hosts were separated, in sum.
    pub fn separated(&self) -> Duration {
        self.splits.iter().map(|split| split.until.since(split.from)).sum()
    }
}

impl TopicPlan {
    /// A keyless topic without endpoints.
    pub fn new(name: &str) -> TopicPlan {
        TopicPlan {
            name: name.to_string(),
            keyed: Keyed::No,
            instances: InstanceSharing::Own,
            writers: Vec::new(),
            readers: Vec::new(),
        }
    }
}

impl TopicPlan {
    /// True when a PARTITION keeps some of its endpoints apart, or could.
    pub fn has_partitions(&self) -> bool {
        self.writers.iter().any(|writer| !writer.qos.partition.is_empty())
            || self.readers.iter().any(|reader| !reader.qos.partition.is_empty())
    }
}

impl WriterPlan {
    /// A writer with the default QoS that is there from the start and writes 100 samples of 100 bytes, one each 10 ms from
    /// second 1 on.
    pub fn new(process: usize) -> WriterPlan {
        WriterPlan {
            process,
            created: Instant::ZERO,
            deleted: None,
            qos: WriterQos::default(),
            earlier: None,
            first_write: Instant::ZERO + Duration::from_secs(1),
            samples: 100,
            period: Duration::from_millis(10),
            burst: 1,
            payload_bytes: 100,
            instances: 1,
            endings: 0.0,
            stamps: Stamps::Absent,
            first: SequenceNumber::FIRST,
            habits: Habits::default(),
        }
    }

    /// Whether the sample after `written` others belongs to a coherent set, which is the one of this number.
    pub fn set_of(&self, written: u32) -> Option<u32> {
        let set = written.checked_div(self.habits.set_samples)?;
        (set % 3 < 2).then_some(set)
    }

    /// Whether late readers get what the writer kept even if it is deleted.
    pub fn outlives_itself(&self) -> bool {
        self.qos.durability >= Durability::Transient
    }

    /// When the last sample is written, if no write has to wait.
    pub fn last_write(&self) -> Instant {
        let bursts = self.samples.div_ceil(self.burst.max(1));
        self.first_write + self.period * bursts
    }

    /// KEEP_LAST depth, or `None`.
    pub fn depth(&self) -> Option<u32> {
        depth_of(self.qos.history)
    }
}

impl ReaderPlan {
    /// A reader with the default QoS that is there from the start and takes everything at once.
    pub fn new(process: usize) -> ReaderPlan {
        let qos = ReaderQos::default();
        let pace = Pace::Eager(Duration::ZERO);
        ReaderPlan { process, created: Instant::ZERO, deleted: None, qos, earlier: None, pace, filter: None }
    }

    /// Whether the application gets every sample of a writer that comes, but for those that HISTORY replaces.
    pub fn hands_over_everything_of(&self, writer: &WriterPlan) -> bool {
        let (writer, reader) = (&writer.qos, &self.qos);
        let all = reader.ownership == Ownership::Shared && reader.destination_order == DestinationOrder::ByReception;
        let wants_all = reader.timing.minimum_separation.is_zero() && self.filter.is_none();
        let whole_sets = writer.presentation.coherent && reader.presentation.coherent;
        let is_purged = reader.lifecycle != ReaderLifecycle::default() && self.pace != Pace::Eager(Duration::ZERO);
        all && wants_all && writer.timing.lifespan >= LONG_LIFE && !whole_sets && !is_purged
    }

    /// KEEP_LAST depth, or `None`.
    pub fn depth(&self) -> Option<u32> {
        depth_of(self.qos.history)
    }
}

/// A LIFESPAN that no sample of a world outlives.
const LONG_LIFE: Duration = Duration::from_secs(1_800);

fn depth_of(history: History) -> Option<u32> {
    match history {
        History::KeepLast(depth) => Some(depth),
        History::KeepAll => None,
    }
}
