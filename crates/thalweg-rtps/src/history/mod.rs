//! The history of endpoints: the writer's changes and the reader's samples, within HISTORY and RESOURCE_LIMITS.
//!
//! Both caches cost O(1) a sample (amortised) and allocate nothing in steady state. Instances are found in an ordered
//! map with the last one remembered: key hashes come from the network, and an ordered map has no collisions to provoke.

mod bounds;
mod chain;
mod change;
mod deadlines;
mod departures;
mod ends_of_sets;
mod expiry;
mod frame;
mod frame_stock;
mod instance;
mod kept;
mod key_table;
mod pack_ring;
mod period_watch;
mod purges;
mod sample_access;
mod sample_cache;
mod sample_choice;
mod sample_info;
mod sample_queue;
mod sample_store;
mod set_room;
#[cfg(test)]
mod tests;
mod writer_expiry;
mod writer_history;
mod writer_instances;

pub use bounds::RejectReason;
pub use change::{Change, FrameLimit, HeldSample, PushResult, SmallSample};
pub use deadlines::{DeadlineMissed, Deadlines};
pub use frame::{Frame, FrameAt};
pub use kept::{RECORD_BYTES_MAX, Records, StoredChange};
pub use period_watch::PeriodWatch;
pub use sample_access::CacheEntry;
pub use sample_cache::{BYTES_DEFAULT, INSTANCES_DEFAULT, Insert, SampleCache};
pub use sample_choice::Choice;
pub use sample_info::{
    CachedSample, InstanceState, InstanceStates, ReadFilter, SampleInfo, SampleState, TakenSample, ViewState,
};
pub(crate) use set_room::SetRefusal;
pub use writer_history::{HistoryPlaces, WriterHistory};

/// The effect of a change on its instance (RTPS 2.5 §8.2.1.2, DDS 1.4 §2.2.2.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// A new value; brings the instance to life.
    Write,
    /// The instance is deleted: `NOT_ALIVE_DISPOSED`.
    Dispose,
    /// This writer will say no more about the instance; without other writers it is `NOT_ALIVE_NO_WRITERS`.
    Unregister,
    /// Both at once, as `autodispose_unregistered_instances` makes it.
    DisposeUnregister,
}

const STATUS_DISPOSED: u32 = 1;
const STATUS_UNREGISTERED: u32 = 2;

impl ChangeKind {
    /// The kind that the flags of PID_STATUS_INFO tell (RTPS 2.5 §9.6.4.9); flags it does not define are ignored.
    pub fn from_status_info(flags: u32) -> ChangeKind {
        match (flags & STATUS_DISPOSED != 0, flags & STATUS_UNREGISTERED != 0) {
            (false, false) => ChangeKind::Write,
            (true, false) => ChangeKind::Dispose,
            (false, true) => ChangeKind::Unregister,
            (true, true) => ChangeKind::DisposeUnregister,
        }
    }

    /// The flags of PID_STATUS_INFO to send, or `None` for a plain value, which needs no such parameter.
    pub fn status_info(self) -> Option<u32> {
        match self {
            ChangeKind::Write => None,
            ChangeKind::Dispose => Some(STATUS_DISPOSED),
            ChangeKind::Unregister => Some(STATUS_UNREGISTERED),
            ChangeKind::DisposeUnregister => Some(STATUS_DISPOSED | STATUS_UNREGISTERED),
        }
    }

    /// True when the change ends the instance's life by deletion.
    pub fn disposes(self) -> bool {
        matches!(self, ChangeKind::Dispose | ChangeKind::DisposeUnregister)
    }

    /// True when the writer gives the instance up.
    pub fn unregisters(self) -> bool {
        matches!(self, ChangeKind::Unregister | ChangeKind::DisposeUnregister)
    }
}

/// The kind of a payload's bytes behind their encapsulation header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PayloadKind {
    /// A whole sample.
    Data,
    /// The key members only.
    Key,
}
