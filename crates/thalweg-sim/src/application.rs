//! The applications of a world: their use of writers and readers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use thalweg_rtps::history::ChangeKind;
use thalweg_rtps::payload::Payload;
use thalweg_rtps::reader::Reader;
use thalweg_rtps::rng::Rng;
use thalweg_rtps::shared::Shared;
use thalweg_rtps::time::{Instant, Timestamp};
use thalweg_rtps::types::{Guid, KeyHash, Keyed, SequenceNumber};
use thalweg_rtps::writer::{NewChange, Writer};

use crate::calls::Call;
use crate::plan::{InstanceSharing, Stamps, TopicPlan, WriterPlan};
use crate::record::{ReaderRecord, WriterRecord, WrittenRecord};
use crate::sample::SimulatedSample;

/// An application that writes.
pub(crate) struct WriterApplication {
    /// Number over all topics.
    pub(crate) number: usize,
    pub(crate) handle: Option<Shared<Writer>>,
    /// Its protocol writer, which serves readers after the application deleted it (DURABILITY).
    pub(crate) retained: Option<Shared<Writer>>,
    /// The send call that one of its threads is in.
    pub(crate) call: Option<Call>,
    pub(crate) record: WriterRecord,
    /// The change that is to be written next, and that may have been refused already.
    pub(crate) pending: Option<Pending>,
    /// Distinguishes its waits for room: a timeout that was planned for an earlier one is void.
    pub(crate) waits: u32,
    pub(crate) left_in_burst: u32,
    /// It was told of room since a write was refused.
    pub(crate) told_of_room: bool,
    /// The open set of its publisher.
    pub(crate) publishers_set: Option<u32>,
    /// The last number that the writer reported as acknowledged by all readers.
    pub(crate) promised: SequenceNumber,
    /// Number of written changes that each reader was seen to have.
    pub(crate) kept: BTreeMap<usize, usize>,
    rng: Rng,
}

/// A change until it is accepted.
pub(crate) struct Pending {
    pub(crate) sample: SimulatedSample,
    pub(crate) kind: ChangeKind,
    /// When it was refused for the first time.
    pub(crate) refused_at: Option<Instant>,
}

impl WriterApplication {
    pub(crate) fn new(number: usize, record: WriterRecord, seed: u64) -> WriterApplication {
        let rng = Rng::new(seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9));
        WriterApplication {
            number,
            handle: None,
            retained: None,
            call: None,
            record,
            pending: None,
            waits: 0,
            left_in_burst: 0,
            told_of_room: false,
            publishers_set: None,
            promised: SequenceNumber::ZERO,
            kept: BTreeMap::new(),
            rng,
        }
    }

    /// Drops the writer; its counters stay in the record.
    pub(crate) fn close(&mut self, now: Instant) -> Option<Shared<Writer>> {
        let handle = self.handle.take();
        self.call = None;
        if let Some(handle) = &handle {
            self.record.counters = handle.lock().counters();
            self.record.told.missed_at_end = handle.lock().deadline_missed().total;
            self.record.told.closed = Some(now);
        }
        handle
    }

    /// True when everything planned was accepted.
    pub(crate) fn is_done(&self, plan: &WriterPlan) -> bool {
        self.record.written.len() >= plan.samples as usize
    }

    /// Makes up the next change unless one is pending.
    pub(crate) fn prepare(&mut self, topic: &TopicPlan, plan: &WriterPlan) {
        if self.pending.is_some() {
            return;
        }
        let keyed = topic.keyed == Keyed::Yes;
        let kinds = [ChangeKind::Dispose, ChangeKind::Unregister, ChangeKind::DisposeUnregister];
        let kind = match keyed && self.rng.chance(plan.endings) {
            true => kinds[self.rng.below(3) as usize],
            false => ChangeKind::Write,
        };
        let owner = match topic.instances {
            InstanceSharing::Own => self.number as u32 + 1,
            InstanceSharing::Shared => 0,
        };
        let instance = self.rng.below(u64::from(plan.instances.max(1))) as u8;
        let sample = SimulatedSample { owner, instance, index: self.record.written.len() as u32 };
        self.pending = Some(Pending { sample, kind, refused_at: None });
    }

    /// Opens the coherent set that the next change begins. Returns the set that the change belongs to, and whether it is its last.
    pub(crate) fn begin_set(&self, plan: &WriterPlan, writer: &mut Writer) -> (Option<u32>, bool) {
        let written = self.record.written.len() as u32;
        let Some(set) = plan.set_of(written) else { return (None, false) };
        if written == 0 || plan.set_of(written - 1) != Some(set) {
            writer.begin_coherent_changes();
        }
        (Some(set), plan.set_of(written + 1) != Some(set))
    }

    /// The pending change as the writer wants it.
    pub(crate) fn change(&self, topic: &TopicPlan, plan: &WriterPlan, now: Instant) -> Option<NewChange> {
        let pending = self.pending.as_ref()?;
        let payload: Payload = match pending.kind {
            ChangeKind::Write => pending.sample.encode(plan.payload_bytes),
            _ => pending.sample.encode_key(),
        };
        let instance = if topic.keyed == Keyed::Yes { pending.sample.key() } else { KeyHash::default() };
        let timestamp = match plan.stamps {
            Stamps::Absent => None,
            Stamps::HostClock => Some(stamp(now)),
        };
        Some(NewChange { kind: pending.kind, instance, timestamp, payload })
    }

    /// Takes note that the pending change was accepted.
    pub(crate) fn accept(&mut self, now: Instant, written: WrittenRecord) {
        let refused_at = self.pending.take().and_then(|pending| pending.refused_at);
        if let Some(refused_at) = refused_at {
            self.record.longest_wait = self.record.longest_wait.max(now.since(refused_at));
        }
        self.record.written.push(written);
        self.left_in_burst = self.left_in_burst.saturating_sub(1);
    }
}

/// A time stamp of the wall clock that shows a fixed day at the zero of the host's clock.
pub(crate) fn stamp(now: Instant) -> Timestamp {
    Timestamp::from_unix(Duration::from_secs(DAY_SECONDS) + Duration::from_nanos(now.as_nanos()))
}

/// 2026-01-01 in seconds since 1970.
const DAY_SECONDS: u64 = 1_767_225_600;

/// An application that reads.
pub(crate) struct ReaderApplication {
    pub(crate) number: usize,
    pub(crate) handle: Option<Shared<Reader>>,
    pub(crate) record: ReaderRecord,
    /// The values among the samples that it took.
    pub(crate) values: BTreeSet<(Guid, SequenceNumber)>,
    /// An eager take is planned already.
    pub(crate) take_planned: bool,
}

impl ReaderApplication {
    /// Drops the reader; what it told stays in the record.
    pub(crate) fn close(&mut self, now: Instant) -> Option<Shared<Reader>> {
        let handle = self.handle.take();
        if let Some(handle) = &handle {
            self.record.told.missed_at_end = handle.lock().deadline_missed().total;
            self.record.told.closed = Some(now);
        }
        handle
    }
}
