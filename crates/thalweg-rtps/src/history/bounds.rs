//! HISTORY and RESOURCE_LIMITS as numbers, and the one rule by which KEEP_LAST overwrites.

use std::fmt;

use crate::qos::{History, ResourceLimits};

/// Why a sample found no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RejectReason {
    /// RESOURCE_LIMITS' max_samples.
    Samples,
    /// RESOURCE_LIMITS' max_instances, or as many instances as a reader without a limit of its own knows.
    Instances,
    /// RESOURCE_LIMITS' max_samples_per_instance.
    SamplesPerInstance,
    /// The reader's byte budget.
    Memory,
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RejectReason::Samples => "max_samples",
            RejectReason::Instances => "max_instances",
            RejectReason::SamplesPerInstance => "max_samples_per_instance",
            RejectReason::Memory => "the reader's memory",
        })
    }
}

/// Limits of one cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// KEEP_LAST depth; `None` is KEEP_ALL.
    pub(super) depth: Option<usize>,
    pub(super) samples_max: usize,
    pub(super) samples_per_instance_max: usize,
    pub(super) instances_max: usize,
    pub(super) bytes_max: usize,
}

/// Samples and bytes held, by a cache or for one instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// All changes, dispose and unregister notices included.
    pub(super) changes: usize,
    /// Changes that carry a value.
    pub(super) values: usize,
    /// Charged bytes.
    pub(super) bytes: usize,
}

impl Load {
    pub(super) fn add(&mut self, is_value: bool, bytes: usize) {
        self.changes += 1;
        self.values += usize::from(is_value);
        self.bytes += bytes;
    }

    /// Takes several values out of account at once.
    pub(super) fn remove_many(&mut self, values: usize, bytes: usize) {
        self.changes -= values;
        self.values -= values;
        self.bytes -= bytes;
    }

    pub(super) fn remove(&mut self, is_value: bool, bytes: usize) {
        self.changes -= 1;
        self.values -= usize::from(is_value);
        self.bytes -= bytes;
    }

    /// Subtracts several changes.
    pub(super) fn subtract(&mut self, other: Load) {
        self.changes -= other.changes;
        self.values -= other.values;
        self.bytes -= other.bytes;
    }
}

impl Bounds {
    pub(super) fn new(history: History, limits: ResourceLimits, bytes_max: usize, instances_default: usize) -> Bounds {
        let limit = |value: Option<u32>| value.map_or(usize::MAX, |limit| limit.max(1) as usize);
        Bounds {
            depth: match history {
                History::KeepLast(depth) => Some(depth.max(1) as usize),
                History::KeepAll => None,
            },
            samples_max: limit(limits.max_samples),
            samples_per_instance_max: limit(limits.max_samples_per_instance),
            instances_max: limits.max_instances.map_or(instances_default, |limit| limit.max(1) as usize),
            bytes_max,
        }
    }

    /// Whether one more change of `bytes` fits, where KEEP_LAST may overwrite all samples of its `own` instance.
    ///
    /// A change larger than the whole budget fits into an otherwise empty cache: refusing it for ever would be useless.
    #[inline]
    pub(super) fn admit(&self, all: Load, own: Load, bytes: usize) -> bool {
        self.refusal(all, own, bytes).is_none()
    }

    /// Why one more change does not fit; `None` when it does.
    #[inline]
    pub(super) fn refusal(&self, all: Load, own: Load, bytes: usize) -> Option<RejectReason> {
        if self.depth.is_some() {
            // An instance may hold ends of coherent sets as well, which are not among all that counts.
            let changes = all.changes.saturating_sub(own.changes);
            let others = Load { changes, values: 0, bytes: all.bytes.saturating_sub(own.bytes) };
            return self.lack_of_space(others, bytes);
        }
        if own.changes >= self.samples_per_instance_max {
            return Some(RejectReason::SamplesPerInstance);
        }
        self.lack_of_space(all, bytes)
    }

    /// Whether the oldest change of `own` must go before one more of `bytes` enters. False for KEEP_ALL.
    ///
    /// `depth` counts values: a dispose or unregister notice never pushes out the value that it follows, but notices
    /// alone cannot grow without end either.
    pub(super) fn must_overwrite(&self, all: Load, own: Load, is_value: bool, bytes: usize) -> bool {
        let Some(depth) = self.depth else { return false };
        let changes_max = depth.saturating_mul(2).saturating_add(1).min(self.samples_per_instance_max);
        own.changes > 0
            && (own.values + usize::from(is_value) > depth
                || own.changes + 1 > changes_max
                || !self.has_space(all, bytes))
    }

    fn has_space(&self, held: Load, bytes: usize) -> bool {
        self.lack_of_space(held, bytes).is_none()
    }

    #[inline]
    fn lack_of_space(&self, held: Load, bytes: usize) -> Option<RejectReason> {
        if held.changes >= self.samples_max {
            return Some(RejectReason::Samples);
        }
        let fits = held.changes == 0 || held.bytes.saturating_add(bytes) <= self.bytes_max;
        (!fits).then_some(RejectReason::Memory)
    }
}
