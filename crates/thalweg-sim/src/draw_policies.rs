//! Draws worlds whose topics have policies that decide what a reader hands over, and when its application is told of something.

use std::time::Duration;

use thalweg_rtps::qos::{
    AccessScope, DestinationOrder, Durability, DurabilityService, History, Liveliness, LivelinessKind, Method,
    Ownership, Presentation, ReaderQos, Reliability, WriterOwnership, WriterQos,
};
use thalweg_rtps::rng::Rng;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::Keyed;

use crate::clock::HostClock;
use crate::draw::{Fixed, draw_method, draw_weather, milliseconds, pick};
use crate::network::{IpVersion, Weather};
use crate::plan::{
    Assertions, Cut, Ending, InstanceSharing, Pace, Plan, ReaderPlan, Selection, SplitPlan, Stamps, TopicPlan,
    WriterPlan,
};

/// Worlds of this seed and higher ones have the policies that those of lower seeds leave at their defaults.
pub const POLICY_SEEDS_FROM: u64 = 1_000_000_000_000;

/// What all host clocks show at the world's zero, but for their disagreement: so much that nothing underflows.
const CLOCKS_FROM_NANOS: u64 = 1_000_000_000_000;
/// Longer than any world.
const AN_HOUR: Duration = Duration::from_secs(3_600);
/// Time in which participants find each other, mostly.
const MEETING: Instant = Instant::from_nanos(500_000_000);

/// The policy that a topic is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Lifespan,
    Deadline,
    Liveliness,
    Ownership,
    BySource,
    Separation,
    Coherent,
    Ordered,
    Group,
    Outliving,
    Filter,
    Lifecycle,
}

const POLICIES: [Policy; 12] = [
    Policy::Lifespan,
    Policy::Deadline,
    Policy::Liveliness,
    Policy::Ownership,
    Policy::BySource,
    Policy::Separation,
    Policy::Coherent,
    Policy::Ordered,
    Policy::Group,
    Policy::Outliving,
    Policy::Filter,
    Policy::Lifecycle,
];

pub(crate) fn draw_with_policies(seed: u64) -> Plan {
    let rng = &mut Rng::new(seed ^ 0x706f_6c69);
    let mut plan = draw_frame(rng, seed);
    draw_any_topics(rng, &mut plan);
    draw_trouble(rng, &mut plan);
    plan
}

/// One or two topics, or groups of them, about a policy each.
pub(crate) fn draw_any_topics(rng: &mut Rng, plan: &mut Plan) {
    for number in 0..1 + rng.below(2) {
        let policy = POLICIES[rng.below(POLICIES.len() as u64) as usize];
        draw_topics(rng, policy, number, plan);
    }
}

/// Hosts, processes and weather.
pub(crate) fn draw_frame(rng: &mut Rng, seed: u64) -> Plan {
    let processes = 3 + rng.below(3) as usize;
    let hosts = 2 + rng.below(processes as u64 - 1) as usize;
    let mut plan = Plan::new(seed, processes);
    plan.hosts = (0..hosts).map(|_| draw_clock(rng)).collect();
    let lease_duration = Duration::from_secs(3 + rng.below(4));
    for (number, process) in plan.processes.iter_mut().enumerate() {
        (process.host, process.lease_duration) = (number % hosts, lease_duration);
    }
    plan.family = if rng.chance(0.2) { IpVersion::V6 } else { IpVersion::V4 };
    let fair = Weather { loss: 0.0, ..draw_weather(rng, &Fixed::default()) };
    plan.weather = if rng.chance(0.5) { fair } else { draw_weather(rng, &Fixed::default()) };
    plan
}

/// The clocks of hosts disagree by a tenth of a second at most.
fn draw_clock(rng: &mut Rng) -> HostClock {
    let ahead = if rng.chance(0.5) { 0 } else { rng.below(100_000_000) };
    HostClock { offset_nanos: CLOCKS_FROM_NANOS + ahead, drift_ppm: 200 - rng.below(401) as i32 }
}

pub(crate) fn draw_trouble(rng: &mut Rng, plan: &mut Plan) {
    if rng.chance(0.3) {
        let process = rng.below(plan.processes.len() as u64) as usize;
        let ending = if rng.chance(0.4) { Ending::Leaves } else { Ending::Vanishes };
        plan.processes[process].ends = Some((milliseconds(1_000 + rng.below(2_000)), ending));
    } else if rng.chance(0.2) {
        let from = 800 + rng.below(2_000);
        let hosts = 1 + rng.below((1 << plan.hosts.len()) - 2);
        let until = milliseconds(from + 100 + rng.below(1_500));
        plan.splits.push(SplitPlan { from: milliseconds(from), until, hosts, cut: Cut::BothWays });
    }
}

/// A topic about a policy, or several that belong together.
fn draw_topics(rng: &mut Rng, policy: Policy, number: u64, plan: &mut Plan) {
    let mut topic = draw_topic(rng, number, plan.processes.len());
    match policy {
        Policy::Lifespan => draw_lifespan(rng, &mut topic),
        Policy::Deadline => draw_deadline(rng, &mut topic),
        Policy::Liveliness => draw_liveliness(rng, &mut topic),
        Policy::Ownership => draw_ownership(rng, &mut topic),
        Policy::BySource => draw_by_source(rng, &mut topic),
        Policy::Separation => draw_separation(rng, &mut topic),
        Policy::Coherent => draw_coherent(rng, &mut topic),
        Policy::Ordered => draw_ordered(rng, &mut topic),
        Policy::Group => return draw_group(rng, topic, plan),
        Policy::Outliving => draw_outliving(rng, &mut topic),
        Policy::Filter => draw_filter(rng, &mut topic),
        Policy::Lifecycle => draw_lifecycle(rng, &mut topic),
    }
    let asks_for_more = rng.chance(0.05);
    match policy {
        Policy::Deadline | Policy::Separation => {}
        _ if rng.chance(0.15) => draw_deadline(rng, &mut topic),
        _ => {}
    }
    if asks_for_more {
        // A reader that its writers do not satisfy.
        let reader = &mut topic.readers[0];
        (reader.qos.timing.deadline, reader.qos.durability) =
            (Duration::from_micros(1_500), Durability::TransientLocal);
        reader.qos.timing.minimum_separation = Duration::ZERO;
    }
    plan.topics.push(topic);
}

/// A reliable topic mostly, with writers that give their samples time stamps and readers that take them at once.
pub(crate) fn draw_topic(rng: &mut Rng, number: u64, processes: usize) -> TopicPlan {
    let reliable = rng.chance(0.8);
    let durable = rng.chance(0.3);
    let history = if rng.chance(0.7) { History::KeepAll } else { History::KeepLast(1 + rng.below(4) as u32) };
    let process = |rng: &mut Rng| rng.below(processes as u64) as usize;
    let durability = if durable { Durability::TransientLocal } else { Durability::Volatile };
    let mut topic = TopicPlan::new(&format!("topic{number}"));
    topic.keyed = if rng.chance(0.8) { Keyed::Yes } else { Keyed::No };
    topic.instances = if rng.chance(0.5) { InstanceSharing::Shared } else { InstanceSharing::Own };
    let most = if rng.chance(0.1) { 20_000 } else { 500 };
    let payload_bytes = 16 + rng.below(most) as usize;
    for _ in 0..1 + rng.below(3) {
        let first_write = 400 + rng.below(800);
        let mut qos = WriterQos { durability, history, ..WriterQos::default() };
        qos.reliability = if reliable { Reliability::RELIABLE } else { Reliability::BestEffort };
        qos.transmission.method = draw_method(rng);
        let burst = if rng.chance(0.3) { 1 + rng.below(8) as u32 } else { 1 };
        topic.writers.push(WriterPlan {
            created: milliseconds(rng.below(first_write)),
            deleted: rng.chance(0.15).then(|| milliseconds(1_200 + rng.below(2_500))),
            qos,
            first_write: milliseconds(first_write),
            samples: 20 + rng.below(150) as u32,
            period: Duration::from_micros(500 + rng.below(30_000)) * burst,
            burst,
            payload_bytes,
            instances: 1 + rng.below(4) as u8,
            stamps: Stamps::HostClock,
            ..WriterPlan::new(process(rng))
        });
    }
    for _ in 0..1 + rng.below(3) {
        let mut qos = ReaderQos { durability, history, ..ReaderQos::default() };
        if reliable && rng.chance(0.9) {
            qos.reliability = Reliability::RELIABLE;
        }
        topic.readers.push(ReaderPlan {
            created: milliseconds(if rng.chance(0.7) { rng.below(400) } else { rng.below(4_000) }),
            deleted: rng.chance(0.1).then(|| milliseconds(1_500 + rng.below(2_500))),
            qos,
            ..ReaderPlan::new(process(rng))
        });
    }
    topic
}

fn draw_endings(rng: &mut Rng, topic: &mut TopicPlan) {
    let endings = if rng.chance(0.3) { 0.05 } else { 0.0 };
    topic.writers.iter_mut().for_each(|writer| writer.endings = endings);
}

fn milliseconds_of<const N: usize>(rng: &mut Rng, from: [u64; N]) -> Duration {
    Duration::from_millis(pick(rng, from))
}

fn draw_lifespan(rng: &mut Rng, topic: &mut TopicPlan) {
    for writer in &mut topic.writers {
        let short = milliseconds_of(rng, [5, 20, 100, 500]);
        writer.qos.timing.lifespan = if rng.chance(0.3) { AN_HOUR } else { short };
    }
    for reader in &mut topic.readers {
        if rng.chance(0.5) {
            reader.pace = Pace::Polling { period: milliseconds_of(rng, [3, 30, 200]), samples_max: usize::MAX };
        }
    }
}

fn draw_deadline(rng: &mut Rng, topic: &mut TopicPlan) {
    let deadline = milliseconds_of(rng, [7, 40, 250]);
    topic.writers.iter_mut().for_each(|writer| writer.qos.timing.deadline = deadline);
    for reader in topic.readers.iter_mut().filter(|reader| reader.qos.timing.minimum_separation.is_zero()) {
        reader.qos.timing.deadline = deadline * pick(rng, [1, 1, 3]);
    }
}

fn draw_liveliness(rng: &mut Rng, topic: &mut TopicPlan) {
    let kinds = [LivelinessKind::Automatic, LivelinessKind::ManualByParticipant, LivelinessKind::ManualByTopic];
    let kind = pick(rng, kinds);
    let lease = milliseconds_of(rng, [60, 300, 1_500]);
    for writer in &mut topic.writers {
        writer.qos.liveliness = Liveliness { kind, lease };
        writer.qos.transmission.method = if rng.chance(0.5) { Method::Immediate } else { Method::Auto };
        // Some applications write too seldom for their lease and have to assert, and some do not.
        if rng.chance(0.5) {
            writer.period = lease.mul_f64(0.3 + rng.below(150) as f64 / 100.0);
            writer.samples = writer.samples.min(2 + (4_000 / lease.as_millis()) as u32);
            writer.burst = 1;
        }
        if rng.chance(0.5) {
            let period = lease.mul_f64(0.2 + rng.below(60) as f64 / 100.0);
            writer.habits.asserts = Some(Assertions { period, until: milliseconds(3_000 + rng.below(3_000)) });
        }
    }
    topic.readers.iter_mut().for_each(|reader| reader.qos.liveliness = Liveliness { kind, lease });
}

fn draw_ownership(rng: &mut Rng, topic: &mut TopicPlan) {
    (topic.keyed, topic.instances) = (Keyed::Yes, InstanceSharing::Shared);
    draw_endings(rng, topic);
    for writer in &mut topic.writers {
        writer.qos.ownership = WriterOwnership::Exclusive { strength: rng.below(4) as i32 };
    }
    topic.readers.iter_mut().for_each(|reader| reader.qos.ownership = Ownership::Exclusive);
}

fn draw_by_source(rng: &mut Rng, topic: &mut TopicPlan) {
    topic.instances = InstanceSharing::Shared;
    draw_endings(rng, topic);
    let order = DestinationOrder::BySource;
    topic.writers.iter_mut().for_each(|writer| writer.qos.destination_order = order);
    topic.readers.iter_mut().for_each(|reader| reader.qos.destination_order = order);
}

fn draw_separation(rng: &mut Rng, topic: &mut TopicPlan) {
    draw_endings(rng, topic);
    for reader in &mut topic.readers {
        reader.qos.timing.minimum_separation = milliseconds_of(rng, [0, 5, 50, 400]);
    }
}

fn draw_coherent(rng: &mut Rng, topic: &mut TopicPlan) {
    let access_scope = if rng.chance(0.5) { AccessScope::Topic } else { AccessScope::Instance };
    let presentation = Presentation { access_scope, coherent: true, ordered: rng.chance(0.5) };
    for writer in &mut topic.writers {
        (writer.qos.history, writer.qos.presentation) = (History::KeepAll, presentation);
        writer.habits.set_samples = 1 + rng.below(8) as u32;
    }
    for reader in &mut topic.readers {
        reader.qos.history = History::KeepAll;
        reader.qos.presentation = if rng.chance(0.8) { presentation } else { Presentation::default() };
    }
}

fn draw_ordered(rng: &mut Rng, topic: &mut TopicPlan) {
    topic.keyed = Keyed::Yes;
    let access_scope = if rng.chance(0.5) { AccessScope::Topic } else { AccessScope::Instance };
    let presentation = Presentation { access_scope, coherent: false, ordered: true };
    topic.writers.iter_mut().for_each(|writer| writer.qos.presentation = presentation);
    for reader in &mut topic.readers {
        reader.qos.presentation = presentation;
        let samples_max = pick(rng, [4, usize::MAX]);
        reader.pace = Pace::Polling { period: milliseconds_of(rng, [5, 60]), samples_max };
    }
}

/// Two or three topics that the writers of a publisher and the readers of a subscriber share.
pub(crate) fn draw_group(rng: &mut Rng, topic: TopicPlan, plan: &mut Plan) {
    let presentation = Presentation { access_scope: AccessScope::Group, coherent: false, ordered: true };
    let subscriber = rng.below(plan.processes.len() as u64) as usize;
    for number in 0..2 + rng.below(2) {
        let mut one = topic.clone();
        one.name = format!("{}{}", topic.name, ["a", "b", "c"][number as usize]);
        for writer in &mut one.writers {
            writer.qos = WriterQos { presentation, history: History::KeepAll, ..WriterQos::default() };
            writer.first_write += Duration::from_millis(rng.below(60));
            writer.period += Duration::from_micros(rng.below(5_000));
            writer.deleted = None;
        }
        for reader in &mut one.readers {
            reader.qos = ReaderQos { presentation, history: History::KeepAll, ..ReaderQos::default() };
            reader.qos.reliability = Reliability::RELIABLE;
            (reader.created, reader.deleted) = (Instant::ZERO, None);
        }
        one.readers[0].process = subscriber;
        plan.topics.push(one);
    }
}

fn draw_outliving(rng: &mut Rng, topic: &mut TopicPlan) {
    // Writers of one history must not live at once.
    topic.writers.truncate(1);
    let depth = 1 + rng.below(5) as u32;
    for writer in &mut topic.writers {
        let history = if rng.chance(0.3) { History::KeepAll } else { History::KeepLast(depth) };
        writer.qos.durability = Durability::Transient;
        writer.qos.reliability = Reliability::RELIABLE;
        writer.qos.durability_service = DurabilityService { history, ..DurabilityService::default() };
        let deleted = MEETING + Duration::from_millis(500 + rng.below(2_500));
        writer.deleted = Some(deleted);
        writer.habits.returns = rng.chance(0.5).then(|| deleted + Duration::from_millis(1 + rng.below(1_500)));
    }
    for reader in &mut topic.readers {
        reader.qos.durability = if rng.chance(0.8) { Durability::Transient } else { Durability::Volatile };
        reader.qos.reliability = Reliability::RELIABLE;
    }
    // One comes when the writer has gone.
    if let Some(last) = topic.readers.last_mut() {
        (last.created, last.deleted) = (milliseconds(2_000 + rng.below(4_000)), None);
    }
}

fn draw_filter(rng: &mut Rng, topic: &mut TopicPlan) {
    for reader in &mut topic.readers {
        let modulus = 2 + rng.below(4) as u32;
        let remainder = rng.below(u64::from(modulus)) as u32;
        reader.filter = rng.chance(0.8).then_some(Selection { modulus, remainder });
    }
}

fn draw_lifecycle(rng: &mut Rng, topic: &mut TopicPlan) {
    (topic.keyed, topic.instances) = (Keyed::Yes, InstanceSharing::Own);
    for writer in &mut topic.writers {
        writer.deleted = rng.chance(0.7).then(|| milliseconds(900 + rng.below(1_500)));
        writer.endings = if rng.chance(0.3) { 0.05 } else { 0.0 };
    }
    for reader in &mut topic.readers {
        let lifecycle = &mut reader.qos.lifecycle;
        lifecycle.autopurge_nowriter_samples_delay = milliseconds_of(rng, [10, 100, 700]);
        if rng.chance(0.5) {
            lifecycle.autopurge_disposed_samples_delay = milliseconds_of(rng, [10, 100, 700]);
        }
        reader.pace = Pace::Polling { period: milliseconds_of(rng, [20, 150, 900]), samples_max: usize::MAX };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether some endpoint of a plan has a policy.
    type Has<'a> = &'a dyn Fn(&Plan) -> bool;

    #[test]
    fn every_policy_comes_about() {
        let plans: Vec<Plan> = (0..300).map(|seed| draw_with_policies(POLICY_SEEDS_FROM + seed)).collect();
        let of_writers = |has: &dyn Fn(&WriterPlan) -> bool, plan: &Plan| plan.writers().any(|(_, writer)| has(writer));
        let of_readers = |has: &dyn Fn(&ReaderPlan) -> bool, plan: &Plan| plan.readers().any(|(_, reader)| has(reader));
        let manual = |kind| move |plan: &Plan| of_writers(&|writer| writer.qos.liveliness.kind == kind, plan);
        let policies: [(&str, Has<'_>); 14] = [
            ("LIFESPAN", &|plan| of_writers(&|writer| writer.qos.timing.lifespan < AN_HOUR, plan)),
            ("DEADLINE", &|plan| of_readers(&|reader| reader.qos.timing.deadline < AN_HOUR, plan)),
            ("MANUAL_BY_PARTICIPANT", &manual(LivelinessKind::ManualByParticipant)),
            ("MANUAL_BY_TOPIC", &manual(LivelinessKind::ManualByTopic)),
            ("assertions", &|plan| of_writers(&|writer| writer.habits.asserts.is_some(), plan)),
            ("OWNERSHIP", &|plan| of_readers(&|reader| reader.qos.ownership == Ownership::Exclusive, plan)),
            ("DESTINATION_ORDER", &|plan| {
                of_readers(&|reader| reader.qos.destination_order == DestinationOrder::BySource, plan)
            }),
            ("TIME_BASED_FILTER", &|plan| of_readers(&|reader| !reader.qos.timing.minimum_separation.is_zero(), plan)),
            ("coherent sets", &|plan| of_writers(&|writer| writer.habits.set_samples > 0, plan)),
            ("GROUP access", &|plan| of_readers(&|reader| reader.qos.presentation.spans_group(), plan)),
            ("TRANSIENT", &|plan| of_writers(&WriterPlan::outlives_itself, plan)),
            ("writers that are back", &|plan| of_writers(&|writer| writer.habits.returns.is_some(), plan)),
            ("filters", &|plan| of_readers(&|reader| reader.filter.is_some(), plan)),
            ("READER_DATA_LIFECYCLE", &|plan| {
                of_readers(&|reader| reader.qos.lifecycle.autopurge_nowriter_samples_delay < AN_HOUR, plan)
            }),
        ];
        for (name, has) in policies {
            let count = plans.iter().filter(|plan| has(plan)).count();
            assert!((10..150).contains(&count), "{count} of 300 worlds have {name}");
        }
    }
}
