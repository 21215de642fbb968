//! The reader's samples in one table, chained by reception, by instance, and those not read yet.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use super::chain::{Ends, Link, Links, NOWHERE};
use super::sample_queue::Queued;
use super::{ChangeKind, PayloadKind};
use crate::payload::Payload;
use crate::time::{Instant, Timestamp};
use crate::types::{Guid, SampleIdentity, SequenceNumber};

/// The origin of a sample, and the generation of its instance.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) writer: Guid,
    pub(super) sequence: SequenceNumber,
    pub(super) related: Option<Arc<SampleIdentity>>,
    pub(super) source_timestamp: Option<Timestamp>,
    pub(super) received: Instant,
    pub(super) disposed_generations: u32,
    pub(super) no_writers_generations: u32,
}

impl Origin {
    /// Rebirths of the instance before the sample.
    pub(super) fn generation(&self) -> u32 {
        self.disposed_generations.saturating_add(self.no_writers_generations)
    }
}

/// One stored sample or notice.
#[derive(Debug)]
pub(super) struct Stored {
    /// `None` for notices that have no bytes of their own: their payload is the key that the instance keeps.
    pub(super) payload: Option<Payload>,
    /// The kind of these bytes.
    pub(super) payload_kind: PayloadKind,
    pub(super) bytes: usize,
    pub(super) valid: bool,
    pub(super) change: ChangeKind,
    pub(super) read: bool,
    pub(super) expires: Instant,
    pub(super) origin: Origin,
    pub(super) instance: usize,
    links: [Link; 3],
}

impl Stored {
    pub(super) fn new(sample: Queued, instance: usize) -> Stored {
        let Queued { payload, payload_kind, bytes, valid, change, expires, origin, .. } = sample;
        let links = [Link::default(); 3];
        Stored { payload, payload_kind, bytes, valid, change, read: false, expires, origin, instance, links }
    }

    /// False for notices.
    pub(super) fn is_value(&self) -> bool {
        self.change == ChangeKind::Write
    }

    pub(super) fn next(&self, order: Order) -> usize {
        self.links[order as usize].next()
    }
}

/// The chains a sample is in. All are in order of reception.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// All samples.
    Reception,
    /// Samples that no `read` has returned.
    Unread,
    /// Samples of one instance.
    Instance,
}

/// A table of samples; freed places are reused.
#[derive(Debug, Default)]
pub(super) struct SampleStore {
    places: Vec<Stored>,
    /// Freed places, chained by their reception link.
    free: Ends,
    pub(super) reception: Ends,
    pub(super) unread: Ends,
    len: usize,
}

/// Size of one sample's place; charged to the byte budget.
pub(super) const PLACE_BYTES: usize = size_of::<Stored>();
/// Places that an empty table keeps for the next burst (about 10 MB).
const PLACES_KEPT: usize = 1 << 16;

struct Chained<'a>(&'a mut [Stored], Order);

impl Links for Chained<'_> {
    fn link(&mut self, index: usize) -> &mut Link {
        &mut self.0[index].links[self.1 as usize]
    }
}

impl SampleStore {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Stores `sample` behind all others; `instance` are the ends of its instance's chain.
    pub(super) fn append(&mut self, sample: Stored, instance: &mut Ends) {
        let index = match self.free.last {
            NOWHERE => {
                self.places.push(sample);
                self.places.len() - 1
            }
            index => {
                self.free.remove(&mut Chained(&mut self.places, Order::Reception), index);
                self.places[index] = sample;
                index
            }
        };
        self.reception.append(&mut Chained(&mut self.places, Order::Reception), index);
        self.unread.append(&mut Chained(&mut self.places, Order::Unread), index);
        instance.append(&mut Chained(&mut self.places, Order::Instance), index);
        self.len += 1;
    }

    /// Marks a sample as returned by `read`.
    pub(super) fn mark_read(&mut self, index: usize) {
        if !self.places[index].read {
            self.places[index].read = true;
            self.unread.remove(&mut Chained(&mut self.places, Order::Unread), index);
        }
    }

    /// Frees a sample's place.
    pub(super) fn remove(&mut self, index: usize, instance: &mut Ends) {
        self.mark_read(index);
        self.places[index].payload = None;
        self.places[index].origin.related = None;
        instance.remove(&mut Chained(&mut self.places, Order::Instance), index);
        let mut by_reception = Chained(&mut self.places, Order::Reception);
        self.reception.remove(&mut by_reception, index);
        self.free.append(&mut by_reception, index);
        self.len -= 1;
        if self.len == 0 && self.places.len() > PLACES_KEPT {
            self.places = Vec::with_capacity(PLACES_KEPT);
            self.free = Ends::default();
        }
    }
}

impl Index<usize> for SampleStore {
    type Output = Stored;

    fn index(&self, index: usize) -> &Stored {
        &self.places[index]
    }
}

impl IndexMut<usize> for SampleStore {
    fn index_mut(&mut self, index: usize) -> &mut Stored {
        &mut self.places[index]
    }
}
