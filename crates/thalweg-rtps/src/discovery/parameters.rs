//! Policies and addresses as parameters of discovery data (RTPS 2.5 §9.6).

use std::time::Duration;

use crate::qos::{
    AccessScope, DestinationOrder, Durability, DurabilityService, History, Liveliness, LivelinessKind, Ownership,
    PARTITION_NAME_MAX_BYTES, PARTITIONS_MAX, Presentation, ReaderQos, ReaderTiming, Reliability, Representation,
    ResourceLimits, WriterOwnership, WriterQos, WriterTiming,
};
use crate::time::Rounding;
use crate::types::{Guid, Locator};
use crate::wire::WireError;
use crate::wire::parameters::{Parameter, ParameterList, ParameterReader, ParameterWriter};
use crate::wire::pid;

/// Most locators of one list that are kept; the rest is skipped. Chosen by Thalweg: hosts with more addresses are rare, and
/// each one costs a datagram.
pub const LOCATORS_MAX: usize = 32;

/// Adds a locator that datagrams can be sent to, unless it is there already.
pub(super) fn add_locator(list: &mut Vec<Locator>, locator: Locator) {
    // Fast DDS announces shared memory as further kinds, others the "invalid" one.
    if locator.socket_address().is_some() && list.len() < LOCATORS_MAX && !list.contains(&locator) {
        list.push(locator);
    }
}

/// Refuses an unknown parameter with the must-understand flag.
pub(super) fn ignore_unknown(parameter: &Parameter<'_>) -> Result<(), WireError> {
    if parameter.id & (pid::VENDOR | pid::MUST_UNDERSTAND) == pid::MUST_UNDERSTAND {
        return Err(WireError { offset: parameter.offset, expected: "a parameter that need not be understood" });
    }
    Ok(())
}

/// The GUID that parameter `id` of a discovery payload carries, and its offset.
pub(super) fn key_in(payload: &[u8], id: u16, expected: &'static str) -> Result<(Guid, usize), WireError> {
    let list = ParameterList::from_payload(payload)?;
    for parameter in list.iter() {
        let parameter = parameter?;
        if parameter.id == id {
            return Ok((parameter.reader().guid()?, parameter.offset));
        }
    }
    Err(list.missing(expected))
}

/// QoS that is read from parameters.
pub(super) trait ReadPolicy {
    /// Reads the policy in `parameter`; false when it is none of this kind of endpoint.
    fn read_policy(&mut self, parameter: &Parameter<'_>) -> Result<bool, WireError>;
}

impl ReadPolicy for WriterQos {
    fn read_policy(&mut self, parameter: &Parameter<'_>) -> Result<bool, WireError> {
        let mut value = parameter.reader();
        match parameter.id {
            pid::RELIABILITY => self.reliability = reliability(&mut value)?,
            pid::DURABILITY => self.durability = durability(&mut value)?,
            pid::DURABILITY_SERVICE => self.durability_service = durability_service(&mut value)?,
            pid::HISTORY => self.history = history(&mut value)?,
            pid::RESOURCE_LIMITS => self.resource_limits = resource_limits(&mut value)?,
            pid::DEADLINE => self.timing.deadline = value.duration()?,
            pid::LATENCY_BUDGET => self.timing.latency_budget = value.duration()?,
            pid::LIFESPAN => self.timing.lifespan = value.duration()?,
            pid::LIVELINESS => self.liveliness = liveliness(&mut value)?,
            pid::OWNERSHIP => self.ownership = writer_ownership(ownership(&mut value)?),
            pid::DESTINATION_ORDER => self.destination_order = destination_order(&mut value)?,
            pid::TRANSPORT_PRIORITY => self.transport_priority = value.i32()?,
            pid::DATA_REPRESENTATION => self.data_representation = representations(&mut value)?,
            pid::PRESENTATION => self.presentation = presentation(&mut value)?,
            pid::PARTITION => self.partition = partition(&mut value)?,
            pid::USER_DATA => self.attached.user = value.octets()?.to_vec(),
            pid::TOPIC_DATA => self.attached.topic = value.octets()?.to_vec(),
            pid::GROUP_DATA => self.attached.group = value.octets()?.to_vec(),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl ReadPolicy for ReaderQos {
    fn read_policy(&mut self, parameter: &Parameter<'_>) -> Result<bool, WireError> {
        let mut value = parameter.reader();
        match parameter.id {
            pid::RELIABILITY => self.reliability = reliability(&mut value)?,
            pid::DURABILITY => self.durability = durability(&mut value)?,
            pid::HISTORY => self.history = history(&mut value)?,
            pid::RESOURCE_LIMITS => self.resource_limits = resource_limits(&mut value)?,
            pid::DEADLINE => self.timing.deadline = value.duration()?,
            pid::LATENCY_BUDGET => self.timing.latency_budget = value.duration()?,
            pid::TIME_BASED_FILTER => self.timing.minimum_separation = value.duration()?,
            pid::LIVELINESS => self.liveliness = liveliness(&mut value)?,
            pid::OWNERSHIP => self.ownership = ownership(&mut value)?,
            pid::DESTINATION_ORDER => self.destination_order = destination_order(&mut value)?,
            pid::DATA_REPRESENTATION => self.data_representation = representations(&mut value)?,
            pid::PRESENTATION => self.presentation = presentation(&mut value)?,
            pid::PARTITION => self.partition = partition(&mut value)?,
            pid::USER_DATA => self.attached.user = value.octets()?.to_vec(),
            pid::TOPIC_DATA => self.attached.topic = value.octets()?.to_vec(),
            pid::GROUP_DATA => self.attached.group = value.octets()?.to_vec(),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn reliability(value: &mut ParameterReader<'_>) -> Result<Reliability, WireError> {
    let error = value.error("reliability kind 1 or 2");
    let kind = value.u32()?;
    match kind {
        1 => Ok(Reliability::BestEffort),
        2 => Ok(Reliability::Reliable { max_blocking_time: value.duration()? }),
        _ => Err(error),
    }
}

fn durability(value: &mut ParameterReader<'_>) -> Result<Durability, WireError> {
    let error = value.error("durability kind 0 to 3");
    match value.u32()? {
        0 => Ok(Durability::Volatile),
        1 => Ok(Durability::TransientLocal),
        2 => Ok(Durability::Transient),
        3 => Ok(Durability::Persistent),
        _ => Err(error),
    }
}

fn durability_service(value: &mut ParameterReader<'_>) -> Result<DurabilityService, WireError> {
    let cleanup_delay = value.duration()?;
    let (history, resource_limits) = (history(value)?, resource_limits(value)?);
    Ok(DurabilityService { cleanup_delay, history, resource_limits })
}

/// Matching does not depend on the depth: one below 1 reads as 1.
fn history(value: &mut ParameterReader<'_>) -> Result<History, WireError> {
    let error = value.error("history kind 0 or 1");
    let kind = value.u32()?;
    let depth = value.i32()?;
    match kind {
        0 => Ok(History::KeepLast(depth.max(1).cast_unsigned())),
        1 => Ok(History::KeepAll),
        _ => Err(error),
    }
}

fn resource_limits(value: &mut ParameterReader<'_>) -> Result<ResourceLimits, WireError> {
    let mut limit = || Ok(u32::try_from(value.i32()?).ok().filter(|limit| *limit > 0));
    Ok(ResourceLimits { max_samples: limit()?, max_instances: limit()?, max_samples_per_instance: limit()? })
}

fn liveliness(value: &mut ParameterReader<'_>) -> Result<Liveliness, WireError> {
    let error = value.error("liveliness kind 0 to 2");
    let kind = match value.u32()? {
        0 => LivelinessKind::Automatic,
        1 => LivelinessKind::ManualByParticipant,
        2 => LivelinessKind::ManualByTopic,
        _ => return Err(error),
    };
    Ok(Liveliness { kind, lease: value.duration()? })
}

fn ownership(value: &mut ParameterReader<'_>) -> Result<Ownership, WireError> {
    let error = value.error("ownership kind 0 or 1");
    match value.u32()? {
        0 => Ok(Ownership::Shared),
        1 => Ok(Ownership::Exclusive),
        _ => Err(error),
    }
}

/// The strength is another parameter, which may come before or after.
fn writer_ownership(kind: Ownership) -> WriterOwnership {
    match kind {
        Ownership::Shared => WriterOwnership::Shared,
        Ownership::Exclusive => WriterOwnership::Exclusive { strength: 0 },
    }
}

/// The OWNERSHIP_STRENGTH in `list`; 0 when it has none.
pub(super) fn ownership_strength(list: &ParameterList<'_>) -> Result<i32, WireError> {
    list.find(pid::OWNERSHIP_STRENGTH).map_or(Ok(0), |parameter| parameter.reader().i32())
}

fn destination_order(value: &mut ParameterReader<'_>) -> Result<DestinationOrder, WireError> {
    let error = value.error("destination order kind 0 or 1");
    match value.u32()? {
        0 => Ok(DestinationOrder::ByReception),
        1 => Ok(DestinationOrder::BySource),
        _ => Err(error),
    }
}

fn presentation(value: &mut ParameterReader<'_>) -> Result<Presentation, WireError> {
    let error = value.error("access scope 0 to 2");
    let access_scope = match value.u32()? {
        0 => AccessScope::Instance,
        1 => AccessScope::Topic,
        2 => AccessScope::Group,
        _ => return Err(error),
    };
    Ok(Presentation { access_scope, coherent: value.boolean()?, ordered: value.boolean()? })
}

/// Reads all ids: with a shortened list, matches would differ from the sender's.
fn representations(value: &mut ParameterReader<'_>) -> Result<Vec<Representation>, WireError> {
    let error = value.error("as many representations as are announced");
    let count = value.u32()? as usize;
    if count > value.remaining() / 2 {
        return Err(error);
    }
    (0..count).map(|_| value.u16().map(|id| Representation::from_id(id.cast_signed()))).collect()
}

fn partition(value: &mut ParameterReader<'_>) -> Result<Vec<String>, WireError> {
    let count_error = value.error("at most 64 partitions");
    let count = value.u32()? as usize;
    if count > PARTITIONS_MAX {
        return Err(count_error);
    }
    let mut names = Vec::new();
    for _ in 0..count {
        let name_error = value.error("partition name of at most 256 bytes");
        let name = value.string()?;
        if name.len() > PARTITION_NAME_MAX_BYTES {
            return Err(name_error);
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

/// Appends the QoS that a writer offers: RELIABILITY and DURABILITY always, the rest where it differs from the default.
pub(super) fn put_writer_qos(list: &mut ParameterWriter<'_>, qos: &WriterQos) {
    put_reliability(list, qos.reliability);
    put_kind(list, pid::DURABILITY, qos.durability as u32);
    put_durability_service(list, &qos.durability_service);
    put_history(list, qos.history);
    put_resource_limits(list, &qos.resource_limits);
    let default = WriterTiming::default();
    put_changed(list, pid::DEADLINE, qos.timing.deadline, default.deadline, Rounding::Down);
    put_changed(list, pid::LATENCY_BUDGET, qos.timing.latency_budget, default.latency_budget, Rounding::Down);
    put_changed(list, pid::LIFESPAN, qos.timing.lifespan, default.lifespan, Rounding::Down);
    put_liveliness(list, qos.liveliness, Rounding::Down);
    if let WriterOwnership::Exclusive { strength } = qos.ownership {
        put_kind(list, pid::OWNERSHIP, EXCLUSIVE);
        list.put(pid::OWNERSHIP_STRENGTH, |value| value.i32(strength));
    }
    put_destination_order(list, qos.destination_order);
    if qos.transport_priority != 0 {
        list.put(pid::TRANSPORT_PRIORITY, |value| value.i32(qos.transport_priority));
    }
    put_representations(list, &qos.data_representation);
    put_presentation(list, qos.presentation);
    put_partition(list, &qos.partition);
    list.put_octets(pid::USER_DATA, &qos.attached.user);
    list.put_octets(pid::TOPIC_DATA, &qos.attached.topic);
    list.put_octets(pid::GROUP_DATA, &qos.attached.group);
}

/// Appends the QoS that a reader requests: RELIABILITY and DURABILITY always, the rest where it differs from the default.
pub(super) fn put_reader_qos(list: &mut ParameterWriter<'_>, qos: &ReaderQos) {
    put_reliability(list, qos.reliability);
    put_kind(list, pid::DURABILITY, qos.durability as u32);
    put_history(list, qos.history);
    put_resource_limits(list, &qos.resource_limits);
    let default = ReaderTiming::default();
    put_changed(list, pid::DEADLINE, qos.timing.deadline, default.deadline, Rounding::Up);
    put_changed(list, pid::LATENCY_BUDGET, qos.timing.latency_budget, default.latency_budget, Rounding::Up);
    put_changed(
        list,
        pid::TIME_BASED_FILTER,
        qos.timing.minimum_separation,
        default.minimum_separation,
        Rounding::Down,
    );
    put_liveliness(list, qos.liveliness, Rounding::Up);
    if qos.ownership == Ownership::Exclusive {
        put_kind(list, pid::OWNERSHIP, EXCLUSIVE);
    }
    put_destination_order(list, qos.destination_order);
    put_representations(list, &qos.data_representation);
    put_presentation(list, qos.presentation);
    put_partition(list, &qos.partition);
    list.put_octets(pid::USER_DATA, &qos.attached.user);
    list.put_octets(pid::TOPIC_DATA, &qos.attached.topic);
    list.put_octets(pid::GROUP_DATA, &qos.attached.group);
}

fn put_kind(list: &mut ParameterWriter<'_>, id: u16, kind: u32) {
    list.put(id, |value| value.u32(kind));
}

fn put_changed(list: &mut ParameterWriter<'_>, id: u16, period: Duration, default: Duration, rounding: Rounding) {
    if period != default {
        list.put(id, |value| value.rounded_duration(period, rounding));
    }
}

fn put_reliability(list: &mut ParameterWriter<'_>, reliability: Reliability) {
    let (kind, max_blocking_time) = match reliability {
        Reliability::BestEffort => (1, crate::qos::MAX_BLOCKING_TIME),
        Reliability::Reliable { max_blocking_time } => (2, max_blocking_time),
    };
    list.put(pid::RELIABILITY, |value| {
        value.u32(kind);
        value.duration(max_blocking_time);
    });
}

fn put_durability_service(list: &mut ParameterWriter<'_>, service: &DurabilityService) {
    if *service == DurabilityService::default() {
        return;
    }
    list.put(pid::DURABILITY_SERVICE, |value| {
        value.duration(service.cleanup_delay);
        let (kind, depth) = history_on_wire(service.history);
        value.u32(kind);
        value.u32(depth);
        limits_on_wire(&service.resource_limits).into_iter().for_each(|limit| value.i32(limit));
    });
}

fn put_history(list: &mut ParameterWriter<'_>, history: History) {
    if history == History::KeepLast(1) {
        return;
    }
    let (kind, depth) = history_on_wire(history);
    list.put(pid::HISTORY, |value| {
        value.u32(kind);
        value.u32(depth);
    });
}

/// The depth of KEEP_ALL has no meaning, but peers that check it accept the default.
fn history_on_wire(history: History) -> (u32, u32) {
    match history {
        History::KeepLast(depth) => (0, depth),
        History::KeepAll => (1, 1),
    }
}

fn put_resource_limits(list: &mut ParameterWriter<'_>, limits: &ResourceLimits) {
    if *limits != ResourceLimits::default() {
        let limits = limits_on_wire(limits);
        list.put(pid::RESOURCE_LIMITS, |value| limits.into_iter().for_each(|limit| value.i32(limit)));
    }
}

fn limits_on_wire(limits: &ResourceLimits) -> [i32; 3] {
    [limits.max_samples, limits.max_instances, limits.max_samples_per_instance]
        .map(|limit| limit.and_then(|limit| i32::try_from(limit).ok()).unwrap_or(UNLIMITED))
}

fn put_liveliness(list: &mut ParameterWriter<'_>, liveliness: Liveliness, rounding: Rounding) {
    if liveliness != Liveliness::default() {
        list.put(pid::LIVELINESS, |value| {
            value.u32(liveliness.kind as u32);
            value.rounded_duration(liveliness.lease, rounding);
        });
    }
}

fn put_destination_order(list: &mut ParameterWriter<'_>, order: DestinationOrder) {
    if order != DestinationOrder::ByReception {
        put_kind(list, pid::DESTINATION_ORDER, order as u32);
    }
}

fn put_representations(list: &mut ParameterWriter<'_>, representations: &[Representation]) {
    if representations.is_empty() {
        return;
    }
    list.put(pid::DATA_REPRESENTATION, |value| {
        value.u32(representations.len() as u32);
        representations.iter().for_each(|one| value.u16(one.id().cast_unsigned()));
    });
}

fn put_presentation(list: &mut ParameterWriter<'_>, presentation: Presentation) {
    if presentation != Presentation::default() {
        list.put(pid::PRESENTATION, |value| {
            value.u32(presentation.access_scope as u32);
            value.boolean(presentation.coherent);
            value.boolean(presentation.ordered);
        });
    }
}

fn put_partition(list: &mut ParameterWriter<'_>, names: &[String]) {
    if names.is_empty() {
        return;
    }
    list.put(pid::PARTITION, |value| {
        value.u32(names.len() as u32);
        names.iter().for_each(|name| value.string(name));
    });
}

/// OWNERSHIP kind on the wire.
const EXCLUSIVE: u32 = 1;
/// An unlimited resource on the wire.
const UNLIMITED: i32 = -1;
