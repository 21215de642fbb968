//! What is known of a world when it is over: who wrote, who took, who knew whom.

use std::collections::BTreeMap;
use std::time::Duration;

use thalweg_rtps::history::{ChangeKind, InstanceState};
use thalweg_rtps::time::{Instant, Timestamp};
use thalweg_rtps::types::{Guid, GuidPrefix, KeyHash, SequenceNumber};
use thalweg_rtps::writer::WriterCounters;

use crate::lane::LaneCounters;
use crate::plan::{EndpointIndex, Plan};
use crate::toll::Toll;
use crate::trace::Trace;

/// The whole of it.
#[derive(Debug)]
pub struct Record {
    /// The plan.
    pub plan: Plan,
    /// Records of the writers, in the order of [`Plan::writers`].
    pub writers: Vec<WriterRecord>,
    /// Records of the readers, in the order of [`Plan::readers`].
    pub readers: Vec<ReaderRecord>,
    /// Records of the processes.
    pub processes: Vec<ProcessRecord>,
    /// Counts of the link of each host.
    pub lanes: Vec<HostLanes>,
    /// When everything was delivered, acknowledged and taken; `None`: it never was.
    pub settled_at: Option<Instant>,
    /// When the world ended.
    pub ended_at: Instant,
    /// Unsettled state at the end.
    pub unsettled: Vec<String>,
    /// Laws that were seen broken while the world ran.
    pub breaches: Vec<String>,
    /// Acknowledgements that were not true when the writer gave them.
    pub unkept: Vec<String>,
    /// Memory that was seen beyond its bounds.
    pub exceeded: Vec<String>,
    /// Readers that held more values of an instance than KEEP_LAST allows.
    pub overfull: Vec<String>,
    /// The course of events.
    pub trace: Trace,
}

/// Counts of one host's link with the network: carried and dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostLanes {
    /// From the host to the network.
    pub outbound: LaneCounters,
    /// From the network to the host.
    pub inbound: LaneCounters,
}

/// Record of one writer.
#[derive(Debug)]
pub struct WriterRecord {
    /// Which of the plan.
    pub index: EndpointIndex,
    /// Its process.
    pub process: usize,
    /// Its GUID; `None` when it was never created.
    pub guid: Option<Guid>,
    /// Its written samples, in order.
    pub written: Vec<WrittenRecord>,
    /// The changes that a store brought back, in order.
    pub restored: Vec<WrittenRecord>,
    /// Writers that had its history in that store before, by their places among all.
    pub former: Vec<usize>,
    /// Readers it was matched with, in order of the events.
    pub matches: Vec<MatchRecord>,
    /// Readers it gave up waiting for.
    pub given_up: Vec<Guid>,
    /// The longest time that one write had to wait.
    pub longest_wait: Duration,
    /// The writer's own counters at its end or at that of the world.
    pub counters: WriterCounters,
    /// Its datagrams that the network dropped.
    pub toll: Toll,
    /// What its policies told and its application did for them.
    pub told: ToldRecord,
}

/// What an endpoint told of its policies.
#[derive(Clone, Debug, Default)]
pub struct ToldRecord {
    /// How often a reader's application took.
    pub calls: u32,
    /// When it was created, and created again.
    pub created: Vec<Instant>,
    /// When it was deleted, by itself or with its process.
    pub closed: Option<Instant>,
    /// DEADLINE: when missed periods were told, and how many there were by then.
    pub missed: Vec<(Instant, u64)>,
    /// How many there were at its end.
    pub missed_at_end: u64,
    /// LIVELINESS of a writer: when its application asserted it without writing.
    pub asserted: Vec<Instant>,
    /// When a writer was told that it had lost its liveliness.
    pub lost: Vec<Instant>,
    /// When a reader was told that a writer is alive, or not.
    pub alive: Vec<(Instant, Guid, bool)>,
}

/// One change that a writer accepted.
#[derive(Clone, Copy, Debug)]
pub struct WrittenRecord {
    /// Its number.
    pub sequence: SequenceNumber,
    /// Write or end of an instance.
    pub kind: ChangeKind,
    /// Its instance.
    pub instance: KeyHash,
    /// The source time stamp that the application gave it.
    pub timestamp: Option<Timestamp>,
    /// When it was accepted.
    pub at: Instant,
    /// The coherent set that it belongs to: of its writer, or of its publisher.
    pub set: Option<u32>,
}

/// A coherent set of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetRecord {
    /// When it began.
    pub began: Instant,
    /// When it ended.
    pub ended: Option<Instant>,
}

/// A match as one side saw it.
#[derive(Clone, Copy, Debug)]
pub struct MatchRecord {
    /// The other side.
    pub peer: Guid,
    /// From when.
    pub from: Instant,
    /// Until when; `None`: to the end.
    pub until: Option<Instant>,
    /// On the writer's side, the last number written before.
    pub after: SequenceNumber,
    /// The writer's last number at that time, ends of coherent sets included.
    pub last: SequenceNumber,
}

/// Record of one reader.
#[derive(Debug)]
pub struct ReaderRecord {
    /// Which of the plan.
    pub index: EndpointIndex,
    /// Its process.
    pub process: usize,
    /// Its GUID; `None` when it was never created.
    pub guid: Option<Guid>,
    /// Samples that its application took, in order.
    pub taken: Vec<TakenRecord>,
    /// Writers it was matched with, in order of the events.
    pub matches: Vec<MatchRecord>,
    /// What its policies told.
    pub told: ToldRecord,
}

/// One sample that an application took.
#[derive(Clone, Copy, Debug)]
pub struct TakenRecord {
    /// Its writer.
    pub writer: Guid,
    /// Its number.
    pub sequence: SequenceNumber,
    /// Its instance.
    pub instance: KeyHash,
    /// Whether it has a value.
    pub valid: bool,
    /// State of the instance when it was taken.
    pub instance_state: InstanceState,
    /// The source time stamp that it came with.
    pub timestamp: Option<Timestamp>,
    /// When.
    pub at: Instant,
    /// The take that gave it, counted over those of its reader.
    pub call: u32,
}

/// Record of one process: known participants, and costs.
#[derive(Clone, Debug, Default)]
pub struct ProcessRecord {
    /// First half of its GUIDs.
    pub prefix: GuidPrefix,
    /// When it learned of each other participant for the first time.
    pub discovered: BTreeMap<GuidPrefix, Instant>,
    /// Participants that it took for gone, and when.
    pub lost: Vec<(GuidPrefix, Instant)>,
    /// Writers and readers of the whole domain that it knew at the end, its own included.
    pub endpoints_known: (usize, usize),
    /// The coherent sets of its publisher.
    pub sets: Vec<SetRecord>,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams sent in the last three seconds, when everything had been settled for two.
    pub sent_when_quiet: u64,
    /// Datagrams handled.
    pub received: u64,
    /// Datagrams that met a full receive buffer.
    pub dropped: u64,
}

impl WriterRecord {
    pub(crate) fn new(index: EndpointIndex, process: usize) -> WriterRecord {
        WriterRecord {
            index,
            process,
            guid: None,
            written: Vec::new(),
            restored: Vec::new(),
            former: Vec::new(),
            matches: Vec::new(),
            given_up: Vec::new(),
            longest_wait: Duration::ZERO,
            counters: WriterCounters::default(),
            toll: Toll::default(),
            told: ToldRecord::default(),
        }
    }
}

impl ReaderRecord {
    pub(crate) fn new(index: EndpointIndex, process: usize) -> ReaderRecord {
        let (taken, matches) = (Vec::new(), Vec::new());
        ReaderRecord { index, process, guid: None, taken, matches, told: ToldRecord::default() }
    }
}

impl Record {
    /// True when the process was there from its start to the end of the world.
    pub fn is_there_at_end(&self, process: usize) -> bool {
        self.plan.processes[process].ends.is_none()
    }

    /// All pairs of a writer and a reader of the same topic that were both created.
    pub fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        self.writers.iter().flat_map(move |writer| {
            let readers = self.readers.iter().filter(move |reader| reader.index.topic == writer.index.topic);
            readers.filter_map(move |reader| Pair::new(self, writer, reader))
        })
    }
}

/// A writer and a reader of the same topic.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The place.
    pub record: &'a Record,
    /// The writer.
    pub writer: &'a WriterRecord,
    /// The reader.
    pub reader: &'a ReaderRecord,
    /// The writer's name.
    pub writer_guid: Guid,
    /// The reader's name.
    pub reader_guid: Guid,
}

impl<'a> Pair<'a> {
    fn new(record: &'a Record, writer: &'a WriterRecord, reader: &'a ReaderRecord) -> Option<Pair<'a>> {
        let (writer_guid, reader_guid) = (writer.guid?, reader.guid?);
        Some(Pair { record, writer, reader, writer_guid, reader_guid })
    }

    /// The writer's part of the plan.
    pub fn writer_plan(&self) -> &'a crate::plan::WriterPlan {
        &self.topic().writers[self.writer.index.place]
    }

    /// The reader's part of the plan.
    pub fn reader_plan(&self) -> &'a crate::plan::ReaderPlan {
        &self.topic().readers[self.reader.index.place]
    }

    /// The topic's part of the plan.
    pub fn topic(&self) -> &'a crate::plan::TopicPlan {
        &self.record.plan.topics[self.writer.index.topic]
    }

    /// Whether they match by the rules of DDS in the end.
    pub fn should_match(&self) -> bool {
        self.record.plan.should_match(self.writer_plan(), self.reader_plan())
    }

    /// Whether they match by the rules of DDS at some time.
    pub fn may_match(&self) -> bool {
        self.record.plan.may_match(self.writer_plan(), self.reader_plan())
    }

    /// Whether samples between them are repaired.
    pub fn is_reliable(&self) -> bool {
        self.writer_plan().qos.reliability.is_reliable() && self.reader_plan().qos.reliability.is_reliable()
    }

    /// Whether both want earlier samples to reach late readers.
    pub fn is_durable(&self) -> bool {
        let volatile = thalweg_rtps::qos::Durability::Volatile;
        self.writer_plan().qos.durability != volatile && self.reader_plan().qos.durability != volatile
    }

    /// Whether the reader's application gets every sample of this writer that comes, but for those that HISTORY replaces.
    pub fn hands_over_everything(&self) -> bool {
        self.reader_plan().hands_over_everything_of(self.writer_plan())
    }

    /// Whether both were there to the end, and not in partitions that keep them apart.
    pub fn is_there_at_end(&self) -> bool {
        let writer_deleted = self.writer_plan().deleted.is_some() && !self.writer_plan().outlives_itself();
        let deleted = writer_deleted || self.reader_plan().deleted.is_some();
        let ended = |process| !self.record.is_there_at_end(process);
        !deleted && !ended(self.writer.process) && !ended(self.reader.process) && self.should_match()
    }

    /// The one match of the writer with this reader. `None` when there was none, or more than one: then the reader may
    /// have missed samples or have got them twice, and only the network is the cause.
    pub fn only_match(&self) -> Option<&'a MatchRecord> {
        let mut of_writer = self.writer.matches.iter().filter(|one| one.peer == self.reader_guid);
        let mut of_reader = self.reader.matches.iter().filter(|one| one.peer == self.writer_guid);
        let found = of_writer.next()?;
        of_reader.next()?;
        (of_writer.next().is_none() && of_reader.next().is_none()).then_some(found)
    }

    /// The number after which the reader is owed everything: from the first on with durability, else from its writer's latest
    /// match with it on, if that lasts or was the only one. A reader that took its writer for gone while the writer never
    /// noticed is owed what it missed meanwhile.
    pub fn owed_after(&self) -> Option<SequenceNumber> {
        let lasting = self.writer.matches.iter().rev().find(|one| one.peer == self.reader_guid);
        let lasting = lasting.filter(|one| one.until.is_none() && self.is_there_at_end());
        let matched = lasting.or_else(|| self.only_match())?;
        Some(if self.is_durable() { SequenceNumber::ZERO } else { matched.after })
    }

    /// From when on both sides knew of each other, if they did.
    pub fn matched_on_both_sides(&self) -> Option<Instant> {
        self.only_match()?;
        let at_writer = self.writer.matches.iter().find(|one| one.peer == self.reader_guid)?;
        let at_reader = self.reader.matches.iter().find(|one| one.peer == self.writer_guid)?;
        Some(at_writer.from.max(at_reader.from))
    }

    /// Whether the writer once stopped waiting for this reader.
    pub fn was_given_up(&self) -> bool {
        self.writer.given_up.contains(&self.reader_guid)
    }

    /// Samples of this writer that the reader's application took.
    pub fn taken(&self) -> impl Iterator<Item = &'a TakenRecord> {
        let writer = self.writer_guid;
        self.reader.taken.iter().filter(move |taken| taken.writer == writer)
    }

    /// The pair in words.
    pub fn name(&self) -> String {
        format!(
            "topic {} writer {} in p{} -> reader {} in p{}",
            self.writer.index.topic,
            self.writer.index.place,
            self.writer.process,
            self.reader.index.place,
            self.reader.process
        )
    }
}
