//! What the applications of a world do with their writers and readers.

use thalweg_rtps::history::ChangeKind;
use thalweg_rtps::payload::Payload;
use thalweg_rtps::reader::Reader;
use thalweg_rtps::rng::Rng;
use thalweg_rtps::shared::Shared;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{KeyHash, Keyed};
use thalweg_rtps::writer::{NewChange, Writer};

use crate::plan::{InstanceSharing, TopicPlan, WriterPlan};
use crate::record::{ReaderRecord, WriterRecord, WrittenRecord};
use crate::sample::Sample;

/// An application that writes.
pub(crate) struct WriterApplication {
    /// Number over all topics.
    pub(crate) number: usize,
    pub(crate) handle: Option<Shared<Writer>>,
    pub(crate) record: WriterRecord,
    /// The change that is to be written next, and that may have been refused already.
    pub(crate) pending: Option<Pending>,
    pub(crate) left_in_burst: u32,
    rng: Rng,
}

/// A change until it is accepted.
pub(crate) struct Pending {
    pub(crate) sample: Sample,
    pub(crate) kind: ChangeKind,
    /// When it was refused for the first time.
    pub(crate) refused_at: Option<Instant>,
    /// Distinguishes its waits: a timeout that was planned for an earlier one is void.
    pub(crate) waits: u32,
}

impl WriterApplication {
    pub(crate) fn new(number: usize, record: WriterRecord, seed: u64) -> WriterApplication {
        let rng = Rng::new(seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9));
        WriterApplication { number, handle: None, record, pending: None, left_in_burst: 0, rng }
    }

    /// Lets go of the writer; what it counted stays in the record.
    pub(crate) fn close(&mut self) -> Option<Shared<Writer>> {
        let handle = self.handle.take();
        if let Some(handle) = &handle {
            self.record.counters = handle.lock().counters();
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
        let sample = Sample { owner, instance, index: self.record.written.len() as u32 };
        self.pending = Some(Pending { sample, kind, refused_at: None, waits: 0 });
    }

    /// The pending change as the writer wants it.
    pub(crate) fn change(&self, topic: &TopicPlan, plan: &WriterPlan) -> Option<NewChange> {
        let pending = self.pending.as_ref()?;
        let payload: Payload = match pending.kind {
            ChangeKind::Write => pending.sample.encode(plan.payload_bytes),
            _ => pending.sample.encode_key(),
        };
        let instance = if topic.keyed == Keyed::Yes { pending.sample.key() } else { KeyHash::default() };
        Some(NewChange { kind: pending.kind, instance, timestamp: None, payload })
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

/// An application that reads.
pub(crate) struct ReaderApplication {
    pub(crate) number: usize,
    pub(crate) handle: Option<Shared<Reader>>,
    pub(crate) record: ReaderRecord,
    /// An eager take is planned already.
    pub(crate) take_planned: bool,
}
