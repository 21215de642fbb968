//! Conditions of changed statuses.

use std::fmt;
use std::ops::BitOr;
use std::sync::{Arc, Weak};
use std::task::Waker;

use thalweg_rtps::status::{Status, Told};

use super::Condition;
use super::sealed::{Sealed, Source};
use crate::publication::WriterCell;
use crate::runtime::{Waiters, WatchId};
use crate::subscription::ReaderCell;
use crate::until::Watched;
use crate::{DataReader, DataWriter};

/// A set of kinds of statuses (DDS 1.4 §2.2.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StatusKinds(u32);

impl StatusKinds {
    /// No status.
    pub const NONE: StatusKinds = StatusKinds(0);
    /// Every status.
    pub const ANY: StatusKinds = StatusKinds(u32::MAX);
    /// DATA_AVAILABLE of a reader: there is a sample that was not read yet.
    pub const DATA_AVAILABLE: StatusKinds = StatusKinds(1);
    /// SUBSCRIPTION_MATCHED of a reader.
    pub const SUBSCRIPTION_MATCHED: StatusKinds = StatusKinds(1 << 1);
    /// REQUESTED_INCOMPATIBLE_QOS of a reader.
    pub const REQUESTED_INCOMPATIBLE_QOS: StatusKinds = StatusKinds(1 << 2);
    /// SAMPLE_LOST of a reader.
    pub const SAMPLE_LOST: StatusKinds = StatusKinds(1 << 3);
    /// SAMPLE_REJECTED of a reader.
    pub const SAMPLE_REJECTED: StatusKinds = StatusKinds(1 << 4);
    /// REQUESTED_DEADLINE_MISSED of a reader.
    pub const REQUESTED_DEADLINE_MISSED: StatusKinds = StatusKinds(1 << 5);
    /// LIVELINESS_CHANGED of a reader.
    pub const LIVELINESS_CHANGED: StatusKinds = StatusKinds(1 << 6);
    /// PUBLICATION_MATCHED of a writer.
    pub const PUBLICATION_MATCHED: StatusKinds = StatusKinds(1 << 8);
    /// OFFERED_INCOMPATIBLE_QOS of a writer.
    pub const OFFERED_INCOMPATIBLE_QOS: StatusKinds = StatusKinds(1 << 9);
    /// READERS_GIVEN_UP of a writer.
    pub const READERS_GIVEN_UP: StatusKinds = StatusKinds(1 << 10);
    /// OFFERED_DEADLINE_MISSED of a writer.
    pub const OFFERED_DEADLINE_MISSED: StatusKinds = StatusKinds(1 << 11);
    /// LIVELINESS_LOST of a writer.
    pub const LIVELINESS_LOST: StatusKinds = StatusKinds(1 << 12);

    /// Whether all of `other` are among these.
    pub fn contains(self, other: StatusKinds) -> bool {
        self.0 & other.0 == other.0
    }

    /// Those that are in both sets.
    #[must_use]
    pub fn intersection(self, other: StatusKinds) -> StatusKinds {
        StatusKinds(self.0 & other.0)
    }

    /// The news of a status of kind `kind`, which count as told then; `None` without news, and where the kind is none of these.
    pub(crate) fn tell<T: Told>(self, kind: StatusKinds, status: &mut Status<T>) -> Option<T> {
        self.contains(kind).then(|| status.tell_changed()).flatten()
    }

    /// Those of `pairs` whose flag is true.
    pub(crate) fn of<const N: usize>(pairs: [(StatusKinds, bool); N]) -> StatusKinds {
        let chosen = pairs.into_iter().filter(|(_, holds)| *holds);
        chosen.fold(StatusKinds::NONE, |all, (kind, _)| all | kind)
    }
}

impl BitOr for StatusKinds {
    type Output = StatusKinds;

    fn bitor(self, other: StatusKinds) -> StatusKinds {
        StatusKinds(self.0 | other.0)
    }
}

/// Is true while a status of the given kinds has changed since it was read or told (DDS 1.4 §2.2.2.1.9). Reading the status makes
/// it false; a status listener of the endpoint is told first and leaves it false. It may outlive its reader or writer, of which it
/// keeps nothing, and is false from then on.
#[derive(Clone)]
pub struct StatusCondition(Arc<dyn Source>);

/// The statuses of one endpoint, and the kinds that count.
struct Statuses<C> {
    of: Weak<C>,
    waiters: Arc<Waiters>,
    kinds: StatusKinds,
}

impl<C: Changing> Statuses<C> {
    fn new(of: &Arc<C>, kinds: StatusKinds) -> Statuses<C> {
        Statuses { of: Arc::downgrade(of), waiters: Arc::clone((**of).waiters()), kinds }
    }
}

/// An endpoint whose statuses change.
pub(crate) trait Changing: Watched {
    /// The kinds of the statuses that have changed since they were last read or told.
    fn changed(&self) -> StatusKinds;
}

impl<T> DataReader<T> {
    /// A condition that is true while a status of `kinds` has changed.
    pub fn status_condition(&self, kinds: StatusKinds) -> StatusCondition {
        StatusCondition(Arc::new(Statuses::<ReaderCell>::new(self.cell(), kinds)))
    }

    /// The kinds of statuses that have changed since they were last read or told (DDS 1.4 §2.2.2.1.1.4).
    pub fn status_changes(&self) -> StatusKinds {
        self.cell().changed()
    }
}

impl<T> DataWriter<T> {
    /// A condition that is true while a status of `kinds` has changed.
    pub fn status_condition(&self, kinds: StatusKinds) -> StatusCondition {
        StatusCondition(Arc::new(Statuses::<WriterCell>::new(self.cell(), kinds)))
    }

    /// The kinds of statuses that have changed since they were last read or told (DDS 1.4 §2.2.2.1.1.4).
    pub fn status_changes(&self) -> StatusKinds {
        self.cell().changed()
    }
}

impl Condition for StatusCondition {}

impl Sealed for StatusCondition {
    fn source(&self) -> Arc<dyn Source> {
        Arc::clone(&self.0)
    }
}

impl<C: Changing + Send + Sync> Source for Statuses<C> {
    fn is_triggered(&self) -> bool {
        let changed = self.of.upgrade().map_or(StatusKinds::NONE, |endpoint| endpoint.changed());
        changed.intersection(self.kinds) != StatusKinds::NONE
    }

    fn arm(&self, watch: &mut Option<WatchId>, waker: &Waker) {
        self.waiters.arm(watch, waker);
    }

    fn disarm(&self, watch: &mut Option<WatchId>) {
        self.waiters.disarm(watch);
    }
}

impl fmt::Debug for StatusCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatusCondition({})", if self.0.is_triggered() { "true" } else { "false" })
    }
}
