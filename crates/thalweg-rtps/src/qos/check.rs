//! Which QoS Thalweg's own endpoints may have: consistent, and effective. A policy that would be announced and then ignored is
//! refused.

use std::fmt;

use super::policy::{Listed, Period};
use super::transmission::{FLUSH_DELAY_MAX, HEARTBEAT_PERIOD_RANGE};
use super::{
    AttachedData, DurabilityService, History, Liveliness, Method, PolicyId, Presentation, READER_PATIENCE_MIN,
    ReaderQos, ReaderTiming, Reliability, Representation, ResourceLimits, TrafficClass, Transmission, WriterQos,
};
use crate::types::{DATAGRAM_MIN_BYTES, ON_HOST_DATAGRAM_BYTES};

/// Most partitions of an endpoint, ours or a peer's. Chosen by Thalweg; RTI's default is 64 as well.
pub const PARTITIONS_MAX: usize = 64;
/// Longest partition name, ours or a peer's, in bytes: keeps the work of matching patterns small. Chosen by Thalweg.
pub const PARTITION_NAME_MAX_BYTES: usize = 256;
/// Most bytes of USER_DATA, TOPIC_DATA and GROUP_DATA each: the room in a parameter of discovery data.
pub const OCTETS_MAX: usize = 65_000;
/// Shortest lease of LIVELINESS. Chosen by Thalweg: timers and a busy network delay signs of life by some milliseconds.
pub const LEASE_MIN: std::time::Duration = std::time::Duration::from_millis(10);
/// Highest depth or limit that discovery data can carry.
pub const RESOURCE_LIMIT_MAX: u32 = i32::MAX as u32;

/// Why an endpoint cannot be created with a QoS; displays as a sentence with the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QosError {
    /// Whether the value is invalid or only unsupported.
    pub kind: QosErrorKind,
    /// The policy.
    pub policy: PolicyId,
    /// Its value.
    pub value: String,
    /// The reason of the refusal, and the possible values.
    pub reason: &'static str,
}

/// Which of DDS's return codes a [`QosError`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QosErrorKind {
    /// INCONSISTENT_POLICY: contradicts itself or another policy.
    Inconsistent,
    /// UNSUPPORTED: legal, but not effective here.
    Unsupported,
    /// IMMUTABLE_POLICY: fixed when the endpoint was created.
    Immutable,
    /// OUT_OF_RESOURCES: the participant has no room for one more endpoint.
    Exhausted,
}

impl fmt::Display for QosError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            QosErrorKind::Inconsistent => "inconsistent",
            QosErrorKind::Unsupported => "not effective yet",
            QosErrorKind::Immutable => "a change that is not possible",
            QosErrorKind::Exhausted => "exhausted",
        };
        write!(f, "{} {} is {kind}: {}", self.policy, self.value, self.reason)
    }
}

impl std::error::Error for QosError {}

impl WriterQos {
    /// Tells whether a writer may be created with this.
    ///
    /// # Errors
    /// The first policy that is inconsistent or not effective.
    pub fn check(&self) -> Result<(), QosError> {
        check_history(self.history, &self.resource_limits)?;
        self.check_durability()?;
        check_deadline(self.timing.deadline)?;
        if self.timing.lifespan.is_zero() {
            let reason = "a sample would be gone before it is sent; use a longer one, or leave it infinite";
            return Err(inconsistent(PolicyId::LIFESPAN, Period(self.timing.lifespan), reason));
        }
        check_liveliness(self.liveliness)?;
        if self.transport_priority > i32::from(TrafficClass::CODE_POINT_MAX) {
            let reason =
                "the network ranks datagrams by code points from 0 to 63; use one of them, or less than 0 for bulk";
            return Err(unsupported(PolicyId::TRANSPORT_PRIORITY, self.transport_priority, reason));
        }
        if self.data_representation.len() > 1 {
            let reason = "a writer uses one representation; name only that one";
            return Err(inconsistent(PolicyId::DATA_REPRESENTATION, Listed(&self.data_representation), reason));
        }
        check_representations(&self.data_representation)?;
        check_presentation(self.presentation, self.reliability)?;
        check_partition(&self.partition)?;
        check_attached(&self.attached)?;
        if self.reader_patience < READER_PATIENCE_MIN {
            let reason = "a reader needs at least 100 ms to be asked and to answer; wait longer, or leave it infinite";
            return Err(inconsistent(PolicyId::READER_PATIENCE, Period(self.reader_patience), reason));
        }
        check_transmission(&self.transmission)
    }

    fn check_durability(&self) -> Result<(), QosError> {
        let DurabilityService { history, resource_limits, .. } = self.durability_service;
        check_kept((PolicyId::DURABILITY_SERVICE, PolicyId::DURABILITY_SERVICE), history, &resource_limits)?;
        if self.outlives_writer() && !self.reliability.is_reliable() {
            let reason = "a history that outlives its writer is read by repairs; use RELIABLE";
            return Err(unsupported(PolicyId::DURABILITY, self.durability, reason));
        }
        if self.outlives_writer() && self.presentation.spans_group() {
            let reason = "the order of a publisher ends with it; use TRANSIENT_LOCAL, or TOPIC access";
            return Err(unsupported(PolicyId::DURABILITY, self.durability, reason));
        }
        if self.outlives_writer() && self.presentation.coherent {
            let reason = "coherent sets end with their writer; use TRANSIENT_LOCAL, or access that is not coherent";
            return Err(unsupported(PolicyId::DURABILITY, self.durability, reason));
        }
        Ok(())
    }
}

impl ReaderQos {
    /// Tells whether a reader may be created with this.
    ///
    /// # Errors
    /// The first policy that is inconsistent or not effective.
    pub fn check(&self) -> Result<(), QosError> {
        check_history(self.history, &self.resource_limits)?;
        check_deadline(self.timing.deadline)?;
        let ReaderTiming { minimum_separation, deadline, .. } = self.timing;
        if minimum_separation > deadline {
            let reason = "samples that are kept apart for longer than the deadline would always miss it; lower it";
            return Err(inconsistent(PolicyId::TIME_BASED_FILTER, Period(minimum_separation), reason));
        }
        check_liveliness(self.liveliness)?;
        check_representations(&self.data_representation)?;
        check_presentation(self.presentation, self.reliability)?;
        check_partition(&self.partition)?;
        check_attached(&self.attached)
    }
}

/// Tells whether a participant may be created with this USER_DATA.
///
/// # Errors
/// When it is longer than [`OCTETS_MAX`].
pub fn check_participant_data(user_data: &[u8]) -> Result<(), QosError> {
    check_octets(PolicyId::USER_DATA, user_data)
}

fn check_transmission(transmission: &Transmission) -> Result<(), QosError> {
    let Transmission { method, max_datagram_bytes, heartbeat_period, .. } = transmission;
    let datagrams = DATAGRAM_MIN_BYTES..=ON_HOST_DATAGRAM_BYTES;
    if !datagrams.contains(max_datagram_bytes) {
        let value = format_args!("max_datagram_bytes {max_datagram_bytes}");
        let reason =
            "a datagram has 548 to 65000 bytes: less leaves no room beside the headers, more is no UDP datagram";
        return Err(inconsistent(PolicyId::TRANSMISSION, value, reason));
    }
    if !HEARTBEAT_PERIOD_RANGE.contains(heartbeat_period) {
        let value = format_args!("heartbeat_period {heartbeat_period:?}");
        let reason = "readers are asked again after 1 ms to 3 s";
        return Err(inconsistent(PolicyId::TRANSMISSION, value, reason));
    }
    check_method(method)
}

fn check_method(method: &Method) -> Result<(), QosError> {
    if matches!(method, Method::Asynchronous { flow_controller } if flow_controller.is_empty()) {
        let reason = "a flow controller has a name; \"background\" is always there";
        return Err(inconsistent(PolicyId::TRANSMISSION, method, reason));
    }
    let (Method::Coalesce(limits) | Method::Batch(limits)) = method else { return Ok(()) };
    if limits.max_bytes == 0 || limits.max_samples == 0 {
        return Err(inconsistent(PolicyId::TRANSMISSION, method, "nothing fits; every limit is at least 1"));
    }
    if limits.max_flush_delay > FLUSH_DELAY_MAX {
        let reason = "samples would wait longer than readers do; at most 10 s";
        return Err(inconsistent(PolicyId::TRANSMISSION, method, reason));
    }
    Ok(())
}

fn check_history(history: History, limits: &ResourceLimits) -> Result<(), QosError> {
    check_kept((PolicyId::HISTORY, PolicyId::RESOURCE_LIMITS), history, limits)
}

/// Checks a depth and limits, which are these policies.
fn check_kept(
    (depth_of, limits_of): (PolicyId, PolicyId),
    history: History,
    limits: &ResourceLimits,
) -> Result<(), QosError> {
    let bounds = [
        ("max_samples", limits.max_samples),
        ("max_instances", limits.max_instances),
        ("max_samples_per_instance", limits.max_samples_per_instance),
    ];
    for (name, bound) in bounds {
        let Some(bound) = bound else { continue };
        if bound == 0 || bound > RESOURCE_LIMIT_MAX {
            let reason = "a limit is between 1 and 2147483647, or left out";
            return Err(inconsistent(limits_of, format_args!("{name} {bound}"), reason));
        }
    }
    if let (Some(samples), Some(per_instance)) = (limits.max_samples, limits.max_samples_per_instance)
        && samples < per_instance
    {
        let value = format_args!("max_samples {samples}, max_samples_per_instance {per_instance}");
        let reason = "one instance cannot have more samples than all together; raise max_samples";
        return Err(inconsistent(limits_of, value, reason));
    }
    let History::KeepLast(depth) = history else { return Ok(()) };
    if depth == 0 || depth > RESOURCE_LIMIT_MAX {
        let reason = "the depth is between 1 and 2147483647; use KEEP_ALL for no bound";
        return Err(inconsistent(depth_of, history, reason));
    }
    let per_instance = limits.max_samples_per_instance.or(limits.max_samples);
    if per_instance.is_some_and(|bound| depth > bound) {
        let reason = "the depth is above max_samples_per_instance or max_samples; lower it or raise the limit";
        return Err(inconsistent(depth_of, history, reason));
    }
    Ok(())
}

fn check_deadline(deadline: std::time::Duration) -> Result<(), QosError> {
    if deadline.is_zero() {
        let reason = "nobody can write that often; use a longer period, or leave it infinite";
        return Err(inconsistent(PolicyId::DEADLINE, Period(deadline), reason));
    }
    Ok(())
}

fn check_liveliness(liveliness: Liveliness) -> Result<(), QosError> {
    if liveliness.lease < LEASE_MIN {
        let reason = "signs of life leave three times in a lease and need time to arrive; use at least 10 ms";
        return Err(inconsistent(PolicyId::LIVELINESS, liveliness, reason));
    }
    Ok(())
}

fn check_representations(list: &[Representation]) -> Result<(), QosError> {
    match list.iter().find(|one| !matches!(one, Representation::Xcdr1 | Representation::Xcdr2)) {
        Some(other) => {
            let reason = "samples are encoded as XCDR1 or XCDR2";
            Err(unsupported(PolicyId::DATA_REPRESENTATION, other, reason))
        }
        None => Ok(()),
    }
}

fn check_presentation(presentation: Presentation, reliability: Reliability) -> Result<(), QosError> {
    if presentation.spans_group() && !reliability.is_reliable() {
        let reason = "what belongs together with samples of other endpoints must arrive; use RELIABLE, or TOPIC";
        return Err(unsupported(PolicyId::PRESENTATION, presentation, reason));
    }
    Ok(())
}

fn check_partition(names: &[String]) -> Result<(), QosError> {
    if names.len() > PARTITIONS_MAX {
        let value = format_args!("with {} names", names.len());
        return Err(inconsistent(PolicyId::PARTITION, value, "at most 64 names can be announced"));
    }
    match names.iter().find(|name| name.len() > PARTITION_NAME_MAX_BYTES || name.contains('\0')) {
        Some(name) => {
            let value = format_args!("{:?}", name.chars().take(40).collect::<String>());
            Err(inconsistent(PolicyId::PARTITION, value, "a name has at most 256 bytes and no NUL"))
        }
        None => Ok(()),
    }
}

fn check_attached(attached: &AttachedData) -> Result<(), QosError> {
    check_octets(PolicyId::USER_DATA, &attached.user)?;
    check_octets(PolicyId::TOPIC_DATA, &attached.topic)?;
    check_octets(PolicyId::GROUP_DATA, &attached.group)
}

fn check_octets(policy: PolicyId, octets: &[u8]) -> Result<(), QosError> {
    if octets.len() > OCTETS_MAX {
        let value = format_args!("of {} bytes", octets.len());
        return Err(inconsistent(policy, value, "discovery data carry at most 65000 bytes"));
    }
    Ok(())
}

fn inconsistent(policy: PolicyId, value: impl fmt::Display, reason: &'static str) -> QosError {
    QosError { kind: QosErrorKind::Inconsistent, policy, value: value.to_string(), reason }
}

pub(super) fn immutable(policy: PolicyId, value: String) -> QosError {
    let reason = "it is fixed when an endpoint is created; create another one";
    QosError { kind: QosErrorKind::Immutable, policy, value, reason }
}

fn unsupported(policy: PolicyId, value: impl fmt::Display, reason: &'static str) -> QosError {
    QosError { kind: QosErrorKind::Unsupported, policy, value: value.to_string(), reason }
}
