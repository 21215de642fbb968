//! Counts that wrap and sequence numbers that outgrow 32 bits.

use std::time::Duration;

use thalweg_rtps::time::Instant;
use thalweg_rtps::types::SequenceNumber;
use thalweg_sim::network::Weather;
use thalweg_sim::plan::{Plan, WriterPlan};

use super::scenario::{check, cut_off, durable, keep_all, plan, reader, reads_all, writer};

/// A world with loss, and two writers whose sequence numbers cross 2^32. A lease that ends in between has both sides begin anew with
/// each other.
fn world(seed: u64, first_count: u32) -> Plan {
    let first = SequenceNumber((1 << 32) - 20);
    let (writing, reading) = durable(keep_all(None), reads_all(None));
    let small = WriterPlan { first, ..writer(0, writing.clone()) };
    let large = WriterPlan { first, samples: 30, payload_bytes: 20_000, ..writer(1, writing) };
    let mut plan = plan(3, vec![small, large], vec![reader(1, reading.clone()), reader(2, reading)]);
    plan.seed = seed;
    plan.weather = Weather { loss: 0.2, ..Weather::CLEAR };
    plan.splits.push(cut_off(1, 1_300, 5_000));
    for process in &mut plan.processes {
        process.first_count = first_count;
        process.lease_duration = Duration::from_secs(2);
    }
    plan
}

/// Datagrams that each process sent and received, and when the world was quiet.
fn course(plan: Plan) -> (Vec<(u64, u64)>, Option<Instant>) {
    let outcome = check(plan);
    let record = outcome.record();
    assert!(record.readers.iter().all(|reader| reader.values() == 130));
    (record.processes.iter().map(|process| (process.sent, process.received)).collect(), record.settled_at)
}

/// One message that is taken for a repeated one, where counts wrap, would be repeated later, and the world would take another course.
#[test]
fn counts_that_wrap_change_nothing() {
    for seed in 0..4 {
        let usual = course(world(seed, 1));
        for last in [u32::MAX, i32::MAX as u32] {
            assert_eq!(course(world(seed, last - 8)), usual, "seed {seed}, counts that begin before {last}");
        }
    }
}
