//! Which policies may change while an endpoint lives (DDS 1.4 §2.2.3, column "Changeable").

use super::check::immutable;
use super::{PolicyId, QosError, ReaderQos, WriterOwnership, WriterQos};

/// A policy of which both values are compared.
struct Fixed {
    policy: PolicyId,
    differs: bool,
    value: String,
}

fn fixed<T: PartialEq + std::fmt::Debug>(policy: PolicyId, before: &T, after: &T) -> Fixed {
    Fixed { policy, differs: before != after, value: format!("{before:?} to {after:?}") }
}

fn refuse_first(fixed: impl IntoIterator<Item = Fixed>) -> Result<(), QosError> {
    match fixed.into_iter().find(|one| one.differs) {
        Some(one) => Err(immutable(one.policy, one.value)),
        None => Ok(()),
    }
}

/// The policies that writers and readers have alike and may not change.
macro_rules! fixed_of_both {
    ($before:expr, $after:expr) => {
        [
            fixed(PolicyId::DURABILITY, &$before.durability, &$after.durability),
            fixed(PolicyId::PRESENTATION, &$before.presentation, &$after.presentation),
            fixed(PolicyId::LIVELINESS, &$before.liveliness, &$after.liveliness),
            fixed(PolicyId::RELIABILITY, &$before.reliability, &$after.reliability),
            fixed(PolicyId::DESTINATION_ORDER, &$before.destination_order, &$after.destination_order),
            fixed(PolicyId::HISTORY, &$before.history, &$after.history),
            fixed(PolicyId::RESOURCE_LIMITS, &$before.resource_limits, &$after.resource_limits),
            fixed(PolicyId::DATA_REPRESENTATION, &$before.data_representation, &$after.data_representation),
        ]
    };
}

impl WriterQos {
    /// Tells whether an existing writer's QoS may become `next`. What may change: DEADLINE, LATENCY_BUDGET, LIFESPAN, the strength of
    /// OWNERSHIP, TRANSPORT_PRIORITY, `autodispose`, PARTITION, USER_DATA, TOPIC_DATA, GROUP_DATA and `reader_patience`.
    ///
    /// # Errors
    /// The first policy that is inconsistent, not effective, or [immutable](super::QosErrorKind::Immutable).
    pub fn check_change(&self, next: &WriterQos) -> Result<(), QosError> {
        next.check()?;
        let kind = |ownership: WriterOwnership| ownership.kind();
        let of_writers = [
            fixed(PolicyId::DURABILITY_SERVICE, &self.durability_service, &next.durability_service),
            fixed(PolicyId::OWNERSHIP, &kind(self.ownership), &kind(next.ownership)),
            fixed(PolicyId::TRANSMISSION, &self.transmission, &next.transmission),
        ];
        refuse_first(fixed_of_both!(self, next).into_iter().chain(of_writers))
    }
}

impl ReaderQos {
    /// Tells whether an existing reader's QoS may become `next`. What may change: DEADLINE, LATENCY_BUDGET, TIME_BASED_FILTER,
    /// PARTITION, USER_DATA, TOPIC_DATA and GROUP_DATA. READER_DATA_LIFECYCLE is fixed, unlike in DDS: its delays run from when instances
    /// ended.
    ///
    /// # Errors
    /// As [`WriterQos::check_change`].
    pub fn check_change(&self, next: &ReaderQos) -> Result<(), QosError> {
        next.check()?;
        let of_readers = [
            fixed(PolicyId::OWNERSHIP, &self.ownership, &next.ownership),
            fixed(PolicyId::READER_DATA_LIFECYCLE, &self.lifecycle, &next.lifecycle),
            fixed(PolicyId::TYPE_CONSISTENCY, &self.type_consistency, &next.type_consistency),
        ];
        refuse_first(fixed_of_both!(self, next).into_iter().chain(of_readers))
    }
}
