//! Worlds whose topics have policies that decide what is handed over and what applications are told.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg_rtps::history::ChangeKind;
use thalweg_rtps::qos::{DestinationOrder, Ownership};
use thalweg_rtps::time::{INFINITE, Instant};
use thalweg_sim::record::{Pair, Record};
use thalweg_sim::{CHANGING_SEEDS_FROM, POLICY_SEEDS_FROM, World};

/// A debug build is slow: fewer worlds have to do there.
const SEEDS: u64 = if cfg!(debug_assertions) { 60 } else { 400 };

/// How often something happened without which a law would say nothing.
type Counts = BTreeMap<&'static str, usize>;

/// Checks all laws in the worlds from `first` on, in which each of `all` is to happen.
fn check_worlds(first: u64, all: &[&str], count: fn(&Record, &mut Counts)) {
    let (next, seen) = (AtomicU64::new(0), Mutex::new(Counts::new()));
    let run = || {
        while let Some(number) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < SEEDS) {
            let outcome = World::new(first + number).run();
            outcome.check_all();
            let mut seen = seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            count(outcome.record(), &mut seen);
        }
    };
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..jobs).for_each(|_| _ = scope.spawn(run)));
    let seen = seen.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let seldom: Vec<_> = all.iter().filter(|what| seen.get(*what).is_none_or(|count| *count < 10)).collect();
    assert!(seldom.is_empty(), "{seldom:?} of {seen:?}");
}

#[test]
fn every_law_holds_in_worlds_with_policies() {
    check_worlds(POLICY_SEEDS_FROM, &ALL, count);
}

#[test]
fn every_law_holds_where_publishers_write_sets_partitions_change_and_stores_outlive_processes() {
    let all = [
        "values in sets of publishers",
        "values of sets that nobody took",
        "matches that a partition ended",
        "matches that a partition began",
        "changes that a store brought back",
        "values of a history taken before and after its process ended",
    ];
    check_worlds(CHANGING_SEEDS_FROM, &all, count_changes);
}

fn count_changes(record: &Record, seen: &mut Counts) {
    let mut add = |what, count| *seen.entry(what).or_default() += count;
    for pair in record.pairs() {
        let joint = [pair.writer_plan().qos.presentation, pair.reader_plan().qos.presentation];
        if joint.iter().all(|one| one.coherent && one.spans_group()) {
            let sets = pair.writer.written.iter().filter(|written| written.set.is_some());
            let came = |sequence| pair.taken().any(|taken| taken.valid && taken.sequence == sequence);
            let (all, taken) = (sets.clone().count(), sets.filter(|written| came(written.sequence)).count());
            add("values in sets of publishers", taken);
            add("values of sets that nobody took", all - taken);
        }
        let earlier = [&pair.writer_plan().earlier, &pair.reader_plan().earlier];
        for one in pair.reader.matches.iter().filter(|one| one.peer == pair.writer_guid) {
            let soon = |at: Instant, from: Instant| at >= from && at.since(from) < Duration::from_millis(100);
            let changes = || earlier.iter().filter_map(|earlier| earlier.as_ref()).map(|earlier| earlier.until);
            let ended = changes().any(|until| one.until.is_some_and(|end| soon(end, until)));
            add("matches that a partition ended", usize::from(ended));
            add("matches that a partition began", usize::from(changes().any(|until| soon(one.from, until))));
        }
        if let Some(former) = pair.writer.former.first().and_then(|former| record.writers[*former].guid) {
            let before = pair.reader.taken.iter().filter(|taken| taken.writer == former).count();
            let after = pair.taken().count();
            add("values of a history taken before and after its process ended", before.min(after));
        }
    }
    add("changes that a store brought back", record.writers.iter().map(|writer| writer.restored.len()).sum());
}

const ALL: [&str; 11] = [
    "periods missed at writers",
    "periods missed at readers",
    "writers silent to readers",
    "writers told to be silent",
    "values of short life that are not taken",
    "values of weaker writers that are not taken",
    "values older at their source that are not taken",
    "values too near to another one that are not taken",
    "values that a filter refuses",
    "values in coherent sets",
    "old values of writers that are gone",
];

fn count(record: &Record, seen: &mut Counts) {
    let mut add = |what, count| *seen.entry(what).or_default() += count;
    for writer in &record.writers {
        add("periods missed at writers", writer.told.missed.len());
        add("writers told to be silent", writer.told.lost.len());
    }
    for reader in &record.readers {
        add("periods missed at readers", reader.told.missed.len());
        add("writers silent to readers", reader.told.alive.iter().filter(|(_, _, is_alive)| !is_alive).count());
    }
    for pair in record.pairs().filter(Pair::should_match) {
        let taken = pair.taken().filter(|taken| taken.valid).count();
        let Some(after) = pair.owed_after().filter(|_| pair.is_reliable()) else { continue };
        let owed = pair.writer.written.iter().filter(|one| one.sequence > after && one.kind == ChangeKind::Write);
        let untaken = owed.count().saturating_sub(taken);
        let (offered, asked) = (&pair.writer_plan().qos, &pair.reader_plan().qos);
        match pair.reader_plan() {
            plan if plan.filter.is_some() => add("values that a filter refuses", untaken),
            _ if offered.timing.lifespan != INFINITE => add("values of short life that are not taken", untaken),
            _ if asked.ownership == Ownership::Exclusive => {
                add("values of weaker writers that are not taken", untaken);
            }
            _ if asked.destination_order == DestinationOrder::BySource => {
                add("values older at their source that are not taken", untaken);
            }
            _ if !asked.timing.minimum_separation.is_zero() => {
                add("values too near to another one that are not taken", untaken);
            }
            _ if offered.presentation.coherent && asked.presentation.coherent => add("values in coherent sets", taken),
            plan if pair.writer_plan().deleted.is_some_and(|at| at < plan.created) => {
                add("old values of writers that are gone", taken);
            }
            _ => {}
        }
    }
}

/// A best-effort set without its last samples; a period that an unregistration met; an order that one of two readers of a topic had not
/// got; a volatile reader that a new writer of a history forgot; an asynchronous writer whose last sample expired while it left; a disposed instance
/// that outlives its writer's delay.
#[test]
fn worlds_that_went_wrong_once_keep_all_laws() {
    for seed in [58, 85, 20, 215, 511, 667] {
        World::new(POLICY_SEEDS_FROM + seed).run().check_all();
    }
}

#[test]
fn the_same_seed_leads_to_the_same_policies_and_events() {
    for seed in (POLICY_SEEDS_FROM..POLICY_SEEDS_FROM + 5).chain(CHANGING_SEEDS_FROM..CHANGING_SEEDS_FROM + 8) {
        assert_eq!(World::new(seed).run().trace_hash(), World::new(seed).run().trace_hash(), "seed {seed}");
    }
}
