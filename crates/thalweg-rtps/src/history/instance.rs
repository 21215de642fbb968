//! One instance as a reader sees it: its state, its writers, its generations and its key (DDS 1.4 §2.2.2.5.1).

use super::bounds::Load;
use super::chain::{Ends, Link, Links};
use super::key_table::KeyTable;
use super::{CachedSample, ChangeKind, InstanceState, PayloadKind, ViewState};
use crate::payload::Payload;
use crate::types::{Guid, KeyHash};

/// State of one instance. [`Instance::reset`] before use: places are reused.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) key: KeyHash,
    pub(super) state: InstanceState,
    pub(super) view: ViewState,
    pub(super) disposed_generations: u32,
    pub(super) no_writers_generations: u32,
    pub(super) samples: Ends,
    pub(super) held: Load,
    pub(super) ranking: Ranking,
    /// The last call of read or take that has picked from it, where samples are given out instance by instance.
    pub(super) picked_by: u64,
    pub(super) is_idle: bool,
    remembered: Option<(Payload, PayloadKind)>,
    /// Those that registered the instance by writing or disposing it, sorted.
    writers: Vec<Guid>,
    idle: Link,
}

/// Scratch for the ranks of one result.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ranking {
    /// Which result the rest is about.
    pub(super) result: u64,
    pub(super) following: u32,
    pub(super) newest_generation: u32,
}

/// Writers that one instance keeps track of; more of them can write it, but their leaving goes unnoticed.
const WRITERS_MAX: usize = 4096;
/// Remembered keys up to this size are copied out of a receive buffer that is much larger.
const COPY_MAX_BYTES: usize = 4096;

impl Default for Instance {
    fn default() -> Instance {
        Instance {
            key: KeyHash::default(),
            state: InstanceState::Alive,
            view: ViewState::New,
            disposed_generations: 0,
            no_writers_generations: 0,
            samples: Ends::default(),
            held: Load::default(),
            ranking: Ranking::default(),
            picked_by: 0,
            is_idle: false,
            remembered: None,
            writers: Vec::new(),
            idle: Link::default(),
        }
    }
}

impl Instance {
    /// Makes the place a new instance; keeps the memory of the last one's writer list.
    pub(super) fn reset(&mut self, key: KeyHash) {
        let mut writers = std::mem::take(&mut self.writers);
        writers.clear();
        *self = Instance { key, writers, ..Instance::default() };
    }

    /// Frees the parts that a forgotten instance need not keep.
    pub(super) fn release(&mut self) {
        self.remembered = None;
    }

    /// The place of the idle instance behind this one; [`NOWHERE`](super::chain::NOWHERE) for none.
    pub(super) fn next_idle(&self) -> usize {
        self.idle.next()
    }

    /// Rebirths so far.
    pub(super) fn generation(&self) -> u32 {
        self.disposed_generations.saturating_add(self.no_writers_generations)
    }

    pub(super) fn has_writers(&self) -> bool {
        !self.writers.is_empty()
    }

    /// A value of `writer` arrived.
    pub(super) fn handle_value(&mut self, writer: Guid) {
        match self.state {
            InstanceState::Alive => {}
            InstanceState::NotAliveDisposed => {
                self.disposed_generations = self.disposed_generations.saturating_add(1);
                self.view = ViewState::New;
            }
            InstanceState::NotAliveNoWriters => {
                self.no_writers_generations = self.no_writers_generations.saturating_add(1);
                self.view = ViewState::New;
            }
        }
        self.state = InstanceState::Alive;
        self.add_writer(writer);
    }

    /// A value of `writer` arrived that nobody gets.
    pub(super) fn note_writer(&mut self, writer: Guid) {
        if self.state == InstanceState::Alive {
            self.add_writer(writer);
        }
    }

    /// Whether a dispose or unregister of `writer` would change the state, and so deserves a notice.
    pub(super) fn is_ended_by(&self, change: ChangeKind, writer: Guid) -> bool {
        match change {
            ChangeKind::Write => false,
            ChangeKind::Unregister => self.state == InstanceState::Alive && self.writers == [writer],
            ChangeKind::Dispose | ChangeKind::DisposeUnregister => self.state != InstanceState::NotAliveDisposed,
        }
    }

    /// A dispose or unregister of `writer` arrived, or the writer is gone (an unregister of its own kind). What nobody writes is not alive.
    pub(super) fn handle_end(&mut self, change: ChangeKind, writer: Guid) {
        if change.disposes() {
            self.state = InstanceState::NotAliveDisposed;
            self.add_writer(writer);
        }
        if change.unregisters() {
            self.remove_writer(writer);
            if !self.has_writers() {
                self.handle_no_writers();
            }
        }
    }

    /// Those that write it, in the order of their GUIDs.
    pub(super) fn writers(&self) -> &[Guid] {
        &self.writers
    }

    pub(super) fn is_written_by(&self, writer: Guid) -> bool {
        self.writers.binary_search(&writer).is_ok()
    }

    /// Keeps what tells the key. Every payload of the instance does; the one that pins least memory is kept.
    pub(super) fn remember(&mut self, sample: &CachedSample) {
        if sample.payload.is_empty() {
            return;
        }
        let pinned = self.remembered.as_ref().map_or(usize::MAX, |(payload, _)| payload.pinned_bytes());
        if pinned <= COPY_MAX_BYTES || sample.payload.pinned_bytes() >= pinned {
            return;
        }
        let wasteful = sample.payload.pinned_bytes() / 2 > sample.payload.len();
        let payload = match wasteful && sample.payload.len() <= COPY_MAX_BYTES {
            true => Payload::from(&*sample.payload),
            false => sample.payload.clone(),
        };
        self.remembered = Some((payload, sample.payload_kind));
    }

    /// The bytes that give the key, if any came.
    pub(super) fn remembered(&self) -> Option<(Payload, PayloadKind)> {
        self.remembered.clone()
    }

    /// Disposed instances stay disposed: the stronger word.
    fn handle_no_writers(&mut self) {
        if self.state == InstanceState::Alive {
            self.state = InstanceState::NotAliveNoWriters;
        }
    }

    fn add_writer(&mut self, writer: Guid) {
        if self.writers == [writer] {
            return; // The usual case, without a search.
        }
        if let Err(place) = self.writers.binary_search(&writer)
            && self.writers.len() < WRITERS_MAX
        {
            self.writers.insert(place, writer);
        }
    }

    fn remove_writer(&mut self, writer: Guid) {
        if let Ok(place) = self.writers.binary_search(&writer) {
            self.writers.remove(place);
        }
    }
}

impl Links for KeyTable<Instance> {
    fn link(&mut self, index: usize) -> &mut Link {
        &mut self[index].idle
    }
}
