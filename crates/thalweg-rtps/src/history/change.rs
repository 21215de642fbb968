//! A writer's changes: as they are written, as they are held and as they are found again.

use std::ops::Range;

use super::ChangeKind;
use super::frame::Frame;
use crate::payload::Payload;
use crate::time::Timestamp;
use crate::types::{KeyHash, SequenceNumber};

/// One sample, dispose or unregister of a writer (`CacheChange`, RTPS 2.5 §8.2.1.2).
#[derive(Clone, Debug)]
pub struct Change {
    /// Number within the writer; assigned by [`WriterHistory::push`](super::WriterHistory::push), whatever it was before.
    pub sequence: SequenceNumber,
    /// The effect of the change on its instance.
    pub kind: ChangeKind,
    /// The instance; zero for keyless topics.
    pub instance: KeyHash,
    /// When the application says it happened; `None` sends no time.
    pub timestamp: Option<Timestamp>,
    /// Serialized sample, or key for dispose and unregister, with its encapsulation header.
    pub payload: Payload,
    /// Bytes of each fragment but the last when the change travels in fragments; fixed when it is written.
    pub fragment_bytes: Option<u16>,
}

/// The outcome of [`WriterHistory::push`](super::WriterHistory::push).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushResult {
    /// Number of the new change.
    pub sequence: SequenceNumber,
    /// The newest change that had to make room, under KEEP_LAST; older ones of the same instance may have gone with it.
    pub overwrote: Option<SequenceNumber>,
}

/// One sample as the history holds it, by itself or within a frame.
#[derive(Clone, Debug)]
pub struct HeldSample<'a> {
    /// Its number.
    pub sequence: SequenceNumber,
    /// Its effect on its instance.
    pub kind: ChangeKind,
    /// The instance, of a change by itself; frames do not keep it.
    pub instance: KeyHash,
    /// When the application says it happened.
    pub timestamp: Option<Timestamp>,
    /// Bytes of each fragment but the last when it travels in fragments.
    pub fragment_bytes: Option<u16>,
    /// Encapsulation header, where it is not part of the bytes.
    pub encapsulation: Option<[u8; 4]>,
    /// The place of its bytes.
    pub payload: &'a Payload,
    /// Which of them.
    pub range: Range<usize>,
}

/// The instance of a change that ends a coherent set. A topic may have one of that key, whose values are not empty.
pub(crate) const END_OF_SET: KeyHash = KeyHash([0xc5; 16]);

impl Change {
    pub(super) fn is_value(&self) -> bool {
        self.kind == ChangeKind::Write && !(self.instance == END_OF_SET && self.payload.is_empty())
    }
}

impl HeldSample<'_> {
    /// False for what ends an instance or a coherent set.
    pub(super) fn is_value(&self) -> bool {
        self.kind == ChangeKind::Write && !self.ends_set()
    }

    /// Whether it ends a coherent set.
    pub(super) fn ends_set(&self) -> bool {
        self.instance == END_OF_SET && self.is_empty()
    }

    /// Bytes of the serialized sample with its encapsulation header.
    pub fn len(&self) -> usize {
        self.encapsulation.map_or(0, |header| header.len()) + self.range.len()
    }

    /// True for a change without content.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A small sample to be collected.
#[derive(Clone, Copy, Debug)]
pub struct SmallSample<'a> {
    /// Its instance; zero for keyless topics.
    pub instance: KeyHash,
    /// When it was written.
    pub timestamp: Timestamp,
    /// The encapsulation header.
    pub encapsulation: [u8; 4],
    /// The following change.
    pub body: &'a [u8],
}

/// Limits of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimit {
    /// Bytes of a datagram that samples and what stands around each may fill.
    pub bytes: usize,
    /// Bytes around each sample.
    pub overhead: usize,
}

/// One pack of a writer's history.
#[derive(Debug)]
pub(super) struct Slot {
    pub first: SequenceNumber,
    pub pack: SequenceNumber,
    pub content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Empty,
    One(Held),
    Frame(Box<Frame>),
}

#[derive(Debug)]
pub(super) struct Held {
    pub change: Change,
    /// The place of its instance in the table of instances.
    pub instance: usize,
    /// The next change of the instance that is held; zero for none.
    pub next_of_instance: SequenceNumber,
    /// False once KEEP_LAST has overwritten it, although it is still to be sent.
    pub is_live: bool,
}

impl Slot {
    /// Number after the slot's last one.
    pub(super) fn end(&self) -> SequenceNumber {
        match &self.content {
            Content::Frame(frame) => self.first + frame.len() as i64,
            _ => self.first.next(),
        }
    }

    /// True when nothing in here is needed for repairs and late readers any more.
    pub(super) fn is_dead(&self) -> bool {
        match &self.content {
            Content::Empty => false,
            Content::One(held) => !held.is_live,
            Content::Frame(frame) => frame.live() == 0,
        }
    }

    /// The oldest sample of at least number `from` that is held here; `dead`: or that was, and still lies here.
    pub(super) fn sample_from(&self, from: SequenceNumber, dead: bool) -> Option<HeldSample<'_>> {
        match &self.content {
            Content::Empty => None,
            Content::One(held) => (self.first >= from && (dead || held.is_live)).then(|| sample_of(&held.change)),
            Content::Frame(frame) => {
                let start = (from - self.first).max(0) as usize;
                let index = (start..frame.len()).find(|index| dead || frame.is_live(*index))?;
                Some(frame.sample(self.first, index))
            }
        }
    }
}

fn sample_of(change: &Change) -> HeldSample<'_> {
    HeldSample {
        sequence: change.sequence,
        kind: change.kind,
        instance: change.instance,
        timestamp: change.timestamp,
        fragment_bytes: change.fragment_bytes,
        encapsulation: None,
        payload: &change.payload,
        range: 0..change.payload.len(),
    }
}
