//! A plan in lines that a person reads before a trace.

use std::fmt;

use thalweg_rtps::qos::{Durability, History, ReaderQos, Reliability, ResourceLimits, WriterQos};
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{Keyed, SequenceNumber};

use crate::earlier::told;
use crate::lane::{HostLink, Lane};
use crate::network::GroupFilter;
use crate::plan::{EarlierPolicies, Ending, Habits, Plan, ProcessPlan, ReaderPlan, SendTimes, TopicPlan, WriterPlan};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weather = &self.weather;
        let slowest = weather.latency + weather.jitter;
        write!(f, "seed {}, {} hosts ({:?})", self.seed, self.hosts.len(), self.family)?;
        write!(f, ", {:?} to {slowest:?}, loss {:.1} %", weather.latency, weather.loss * 100.0)?;
        write!(f, ", repeated {:.1} %, held up {:.1} %", weather.duplication * 100.0, weather.reordering * 100.0)?;
        if weather.corruption > 0.0 {
            write!(f, ", damaged {:.1} %", weather.corruption * 100.0)?;
        }
        let multicast = match self.group_filter {
            GroupFilter::Nothing => "passes",
            GroupFilter::Everything => "is filtered",
            GroupFilter::UserData => "is filtered for user data",
        };
        writeln!(f, ", multicast {multicast}")?;
        for (number, process) in self.processes.iter().enumerate() {
            write_process(f, number, process)?;
        }
        for (host, link) in self.links.iter().enumerate().filter(|(_, link)| **link != HostLink::UNLIMITED) {
            writeln!(f, "host {host}: {} out, {} in", lane(link.outbound), lane(link.inbound))?;
        }
        for split in &self.splits {
            let (from, until) = (seconds(split.from), seconds(split.until));
            writeln!(f, "split {:b} from {from} to {until}, cut {:?}", split.hosts, split.cut)?;
        }
        write_troubles(f, self)?;
        for (number, (index, writer)) in self.writers().enumerate() {
            write_writer(f, number, &self.topics[index.topic], writer)?;
        }
        for (number, (index, reader)) in self.readers().enumerate() {
            write_reader(f, number, &self.topics[index.topic], reader)?;
        }
        Ok(())
    }
}

fn write_troubles(f: &mut fmt::Formatter<'_>, plan: &Plan) -> fmt::Result {
    for pause in &plan.pauses {
        writeln!(f, "p{} does not run from {} to {}", pause.process, seconds(pause.from), seconds(pause.until))?;
    }
    for one in &plan.moves {
        writeln!(f, "host {} moves at {} and is told after {:?}", one.host, seconds(one.at), one.told_after)?;
    }
    for path in &plan.paths {
        writeln!(f, "paths carry packets of {} bytes from {}", path.mtu_bytes, seconds(path.at))?;
    }
    for one in &plan.intruders {
        let (from, until) = (seconds(one.from), seconds(one.until));
        writeln!(f, "intruder on host {} from {from} to {until}, each {:?}", one.host, one.period)?;
    }
    Ok(())
}

fn write_process(f: &mut fmt::Formatter<'_>, number: usize, process: &ProcessPlan) -> fmt::Result {
    write!(f, "p{number} on host {} from {}", process.host, seconds(process.starts))?;
    match process.ends {
        Some((at, Ending::Leaves)) => write!(f, ", leaves at {}", seconds(at))?,
        Some((at, Ending::Vanishes)) => write!(f, ", vanishes at {}", seconds(at))?,
        None => {}
    }
    if let Some(before) = process.succeeds {
        write!(f, ", succeeds p{before}")?;
    }
    if !process.groups.is_empty() {
        write!(f, ", groups {:?}", process.groups)?;
    }
    if let Some(household) = process.household {
        write!(f, ", household {household}")?;
    }
    if let Some(controller) = process.controller {
        write!(f, ", controller of {:?} B/s", controller.tokens_added_per_period)?;
    }
    if process.sends != SendTimes::NONE {
        let SendTimes { datagram, interrupted, interruption } = process.sends;
        let interrupted = interrupted * 100.0;
        write!(
            f,
            ", sends each datagram for {datagram:?}, {interrupted:.0} % of the calls up to {interruption:?} more"
        )?;
    }
    if let Some(sets) = process.sets {
        let (from, until) = (seconds(sets.from), seconds(sets.until));
        write!(f, ", sets of {:?} with {:?} between from {from} to {until}", sets.lasts, sets.pause)?;
    }
    if let Some(store) = process.store {
        write!(f, ", a store that commits for {:?} each {:?}", store.commit, store.pause)?;
    }
    if process.first_count > 1 {
        write!(f, ", counts from {}", process.first_count)?;
    }
    let buffer = process.receive_buffer_bytes >> 10;
    writeln!(f, ", buffer {buffer} KiB, {:?} a datagram, lease {:?}", process.datagram_cost, process.lease_duration)
}

fn write_writer(f: &mut fmt::Formatter<'_>, number: usize, topic: &TopicPlan, writer: &WriterPlan) -> fmt::Result {
    let keyed = if topic.keyed == Keyed::Yes { "keyed" } else { "keyless" };
    write!(f, "{} ({keyed}, {:?}) writer {number} in p{}", topic.name, topic.instances, writer.process)?;
    write!(f, " from {}{}", seconds(writer.created), until(writer.deleted))?;
    write!(f, ", writes {} x {} B from {}", writer.samples, writer.payload_bytes, seconds(writer.first_write))?;
    write!(f, ", {} every {:?}, {} instances", writer.burst, writer.period, writer.instances)?;
    let qos = &writer.qos;
    let summary = summary(qos.reliability, qos.durability, qos.history, qos.resource_limits);
    let summary = format!("{summary}, {}", qos.transmission.method);
    if writer.first > SequenceNumber::FIRST {
        write!(f, ", numbers from {}", writer.first)?;
    }
    write!(f, ", ends {:.0} %; {summary}{}", writer.endings * 100.0, partition(&qos.partition))?;
    write_earlier(f, writer.earlier.as_ref())?;
    write_policies_of_writer(f, writer)
}

fn write_reader(f: &mut fmt::Formatter<'_>, number: usize, topic: &TopicPlan, reader: &ReaderPlan) -> fmt::Result {
    write!(f, "{} reader {number} in p{}", topic.name, reader.process)?;
    write!(f, " from {}{}, {:?}", seconds(reader.created), until(reader.deleted), reader.pace)?;
    let qos = &reader.qos;
    let summary = summary(qos.reliability, qos.durability, qos.history, qos.resource_limits);
    write!(f, "; {summary}{}", partition(&qos.partition))?;
    write_earlier(f, reader.earlier.as_ref())?;
    write_policies_of_reader(f, reader)
}

fn write_earlier(f: &mut fmt::Formatter<'_>, earlier: Option<&EarlierPolicies>) -> fmt::Result {
    earlier.map_or(Ok(()), |earlier| {
        write!(f, ", until {} {}", seconds(earlier.until), told(&earlier.partition, earlier.latency_budget))
    })
}

/// The policies that differ from their defaults.
fn write_policies_of_writer(f: &mut fmt::Formatter<'_>, writer: &WriterPlan) -> fmt::Result {
    let (qos, default) = (&writer.qos, WriterQos::default());
    write_policies(
        f,
        [
            (qos.timing != default.timing, &qos.timing),
            (qos.liveliness != default.liveliness, &qos.liveliness),
            (qos.ownership != default.ownership, &qos.ownership),
            (qos.destination_order != default.destination_order, &qos.destination_order),
            (qos.presentation != default.presentation, &qos.presentation),
            (qos.durability_service != default.durability_service, &qos.durability_service),
            (writer.habits != Habits::default(), &writer.habits),
        ],
    )
}

fn write_policies_of_reader(f: &mut fmt::Formatter<'_>, reader: &ReaderPlan) -> fmt::Result {
    let (qos, default) = (&reader.qos, ReaderQos::default());
    write_policies(
        f,
        [
            (qos.timing != default.timing, &qos.timing),
            (qos.liveliness != default.liveliness, &qos.liveliness),
            (qos.ownership != default.ownership, &qos.ownership),
            (qos.destination_order != default.destination_order, &qos.destination_order),
            (qos.presentation != default.presentation, &qos.presentation),
            (qos.lifecycle != default.lifecycle, &qos.lifecycle),
            (reader.filter.is_some(), &reader.filter),
        ],
    )
}

fn write_policies<const N: usize>(f: &mut fmt::Formatter<'_>, policies: [(bool, &dyn fmt::Debug); N]) -> fmt::Result {
    for (_, policy) in policies.into_iter().filter(|(is_set, _)| *is_set) {
        write!(f, ", {policy:?}")?;
    }
    writeln!(f)
}

fn lane(lane: Lane) -> String {
    if lane.is_unlimited() {
        return "anything".to_string();
    }
    format!("{:.3} Mbit/s behind {} KiB", lane.bits_per_second as f64 / 1e6, lane.queue_bytes >> 10)
}

fn seconds(at: Instant) -> String {
    format!("{:.3} s", at.as_nanos() as f64 / 1e9)
}

fn until(at: Option<Instant>) -> String {
    at.map_or(String::new(), |at| format!(" to {}", seconds(at)))
}

fn partition(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(", partition {names:?}") }
}

fn summary(reliability: Reliability, durability: Durability, history: History, limits: ResourceLimits) -> String {
    let reliability = if reliability.is_reliable() { "reliable" } else { "best effort" };
    let limit = limits.max_samples.map_or(String::new(), |max| format!(", at most {max} samples"));
    format!("{reliability}, {durability:?}, {history:?}{limit}")
}
