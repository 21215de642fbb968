//! Draws worlds whose publishers write coherent sets over several topics, and whose endpoints change policies.

use std::time::Duration;

use thalweg_rtps::qos::{Durability, DurabilityService, History, Presentation, Reliability};
use thalweg_rtps::rng::Rng;
use thalweg_rtps::time::Instant;

use crate::draw::{draw_households, draw_sends, milliseconds, pick};
use crate::draw_policies::{draw_any_topics, draw_frame, draw_group, draw_topic, draw_trouble};
use crate::draw_wide::{draw_links, draw_pause};
use crate::plan::{
    EarlierPolicies, Ending, Habits, InstanceSharing, Plan, ProcessPlan, SetTimes, StoreTimes, TopicPlan, WriterPlan,
};

/// Worlds of this seed and higher ones have coherent sets of publishers and partitions that change.
pub const CHANGING_SEEDS_FROM: u64 = 2_000_000_000_000;

pub(crate) fn draw_changing(seed: u64) -> Plan {
    let rng = &mut Rng::new(seed ^ 0x6368_616e);
    let mut plan = draw_frame(rng, seed);
    let subject =
        pick(rng, [Subject::Sets, Subject::Moves, Subject::Both, Subject::Store, Subject::Store, Subject::Policy]);
    if matches!(subject, Subject::Sets | Subject::Both) {
        let topic = draw_topic(rng, 0, plan.processes.len());
        draw_group(rng, topic, &mut plan);
        draw_sets(rng, &mut plan);
    }
    match subject {
        Subject::Sets => {}
        Subject::Moves | Subject::Both => draw_moves(rng, &mut plan),
        Subject::Store => draw_stored(rng, &mut plan),
        Subject::Policy => draw_any_topics(rng, &mut plan),
    }
    if subject != Subject::Store {
        draw_trouble(rng, &mut plan);
    }
    draw_households(rng, &mut plan);
    draw_sends(rng, &mut plan);
    if subject != Subject::Policy && rng.chance(0.15) {
        let lease = plan.processes[0].lease_duration;
        draw_pause(rng, &mut plan, lease);
    }
    if rng.chance(0.1) {
        draw_links(rng, &mut plan, false);
    }
    plan
}

/// What a world is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Sets,
    Moves,
    Both,
    Store,
    /// A policy as in worlds of lower seeds, where send calls last and links are narrow.
    Policy,
}

/// A topic whose history the process of its writer stores, until it ends; the one that starts in its place goes on with it, mostly.
fn draw_stored(rng: &mut Rng, plan: &mut Plan) {
    let mut topic = draw_topic(rng, 0, plan.processes.len());
    topic.instances = InstanceSharing::Shared;
    topic.writers.truncate(1);
    let writer = &mut topic.writers[0];
    let process = writer.process;
    let depth = History::KeepLast(1 + rng.below(5) as u32);
    let history = if rng.chance(0.5) { History::KeepAll } else { depth };
    writer.endings = if rng.chance(0.3) { 0.05 } else { 0.0 };
    writer.qos.durability = Durability::Persistent;
    writer.qos.reliability = Reliability::RELIABLE;
    writer.qos.durability_service = DurabilityService { history, ..DurabilityService::default() };
    let deleted = milliseconds(900 + rng.below(1_500));
    writer.deleted = rng.chance(0.3).then_some(deleted);
    writer.habits.returns = writer.deleted.map(|deleted| deleted + Duration::from_millis(1 + rng.below(500)));
    for reader in &mut topic.readers {
        reader.qos.durability = pick(
            rng,
            [Durability::Persistent, Durability::Transient, Durability::TransientLocal, Durability::Volatile],
        );
        reader.qos.reliability = Reliability::RELIABLE;
        if reader.process == process {
            reader.process = (process + 1) % plan.processes.len();
        }
    }
    let (pause, commit) = (pick(rng, [1, 20]), pick(rng, [1, 10, 60]));
    let times = StoreTimes { pause: Duration::from_millis(pause), commit: Duration::from_millis(commit) };
    let at = milliseconds(800 + rng.below(2_500));
    let ending = if rng.chance(0.3) { Ending::Leaves } else { Ending::Vanishes };
    plan.processes[process].store = Some(times);
    plan.processes[process].ends = Some((at, ending));
    let starts = at + Duration::from_millis(pick(rng, [10, 100, 2_000]) + rng.below(200));
    let before = plan.processes[process].clone();
    plan.processes.push(ProcessPlan { starts, ends: None, succeeds: Some(process), ..before });
    let created = starts + Duration::from_millis(rng.below(800));
    let again = WriterPlan {
        process: plan.processes.len() - 1,
        created,
        deleted: None,
        first_write: created + Duration::from_millis(rng.below(500)),
        habits: Habits::default(),
        ..topic.writers[0].clone()
    };
    topic.writers.push(again);
    plan.topics.push(topic);
}

fn draw_sets(rng: &mut Rng, plan: &mut Plan) {
    let ordered = rng.chance(0.6);
    let durability = if rng.chance(0.25) { Durability::TransientLocal } else { Durability::Volatile };
    for topic in &mut plan.topics {
        for writer in &mut topic.writers {
            (writer.qos.presentation.coherent, writer.qos.presentation.ordered) = (true, ordered);
            writer.qos.durability = durability;
        }
        for reader in &mut topic.readers {
            (reader.qos.presentation.coherent, reader.qos.presentation.ordered) = (true, ordered);
            if rng.chance(0.1) {
                reader.qos.presentation = Presentation::default();
            }
            reader.qos.durability = durability;
            if rng.chance(0.2) {
                reader.created = milliseconds(rng.below(3_000));
            }
        }
    }
    for process in 0..plan.processes.len() {
        let writers = || plan.writers().map(|(_, writer)| writer).filter(|writer| writer.process == process);
        let Some(created) = writers().map(|writer| writer.created).max() else { continue };
        let last = writers().map(WriterPlan::last_write).max().unwrap_or(Instant::ZERO);
        let from = created.max(milliseconds(400)) + Duration::from_millis(1 + rng.below(600));
        plan.processes[process].sets = Some(SetTimes {
            from,
            lasts: Duration::from_millis(pick(rng, [0, 4, 30, 150])),
            pause: Duration::from_millis(pick(rng, [1, 20, 100])),
            until: last.min(from + Duration::from_secs(3)),
        });
    }
}

/// A topic whose endpoints are in partitions, and change them.
fn draw_moves(rng: &mut Rng, plan: &mut Plan) {
    let mut topic = draw_topic(rng, plan.topics.len() as u64, plan.processes.len());
    for writer in &mut topic.writers {
        (writer.qos.partition, writer.earlier) = draw_partitions(rng);
    }
    for reader in &mut topic.readers {
        (reader.qos.partition, reader.earlier) = draw_partitions(rng);
    }
    draw_budgets(&mut Rng::new(plan.seed ^ 0x6275_6467), &mut topic);
    plan.topics.push(topic);
}

/// LATENCY_BUDGETs that change with the partitions, in half of the worlds: what a reader requests is often less than a writer offers.
fn draw_budgets(rng: &mut Rng, topic: &mut TopicPlan) {
    if rng.chance(0.5) {
        return;
    }
    let offered = |rng: &mut Rng| Duration::from_millis(pick(rng, [0, 0, 10, 40]));
    let requested = |rng: &mut Rng| Duration::from_millis(pick(rng, [0, 10, 20, 80]));
    for writer in &mut topic.writers {
        writer.qos.timing.latency_budget = offered(rng);
        writer.earlier.iter_mut().for_each(|earlier| earlier.latency_budget = offered(rng));
    }
    for reader in &mut topic.readers {
        reader.qos.timing.latency_budget = requested(rng);
        reader.earlier.iter_mut().for_each(|earlier| earlier.latency_budget = requested(rng));
    }
}

/// The last partitions of an endpoint, and earlier ones.
fn draw_partitions(rng: &mut Rng) -> (Vec<String>, Option<EarlierPolicies>) {
    let mut names = || {
        let names: &[&str] = pick(rng, [&[][..], &["a"], &["a"], &["b"], &["a", "b"], &["*"]]);
        names.iter().map(ToString::to_string).collect::<Vec<String>>()
    };
    let (last, first) = (names(), names());
    let until = milliseconds(500 + rng.below(3_000));
    let changes = rng.chance(0.7);
    let latency_budget = Duration::ZERO;
    (last, changes.then_some(EarlierPolicies { partition: first, latency_budget, until }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_and_changes_come_about() {
        let plans: Vec<Plan> = (0..100).map(|seed| draw_changing(CHANGING_SEEDS_FROM + seed)).collect();
        let sets = plans.iter().filter(|plan| plan.processes.iter().any(|process| process.sets.is_some())).count();
        let moves = |plan: &&Plan| plan.writers().any(|(_, writer)| writer.earlier.is_some());
        let moves = plans.iter().filter(moves).count();
        let refuses = |plan: &&Plan| {
            let budget = |writer: &WriterPlan| writer.qos.timing.latency_budget;
            let pairs = plan.topics.iter().flat_map(|topic| {
                let budgets = topic.readers.iter().map(|reader| reader.qos.timing.latency_budget);
                topic.writers.iter().flat_map(move |writer| budgets.clone().map(move |asked| budget(writer) > asked))
            });
            pairs.into_iter().any(|refuses| refuses)
        };
        let refused = plans.iter().filter(refuses).count();
        assert!(refused >= 5, "{refused} with a LATENCY_BUDGET that is not met");
        let stores = plans.iter().filter(|plan| plan.processes.iter().any(|process| process.store.is_some())).count();
        let counts = [sets, moves, stores];
        assert!(counts.iter().all(|count| (25..70).contains(count)), "{counts:?} with sets, changes and stores");
    }
}
