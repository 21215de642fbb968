//! Links that carry so much and not more.

use std::time::Duration;

use thalweg_rtps::qos::{Reliability, WriterQos};
use thalweg_sim::lane::{HostLink, Lane};
use thalweg_sim::plan::{Pace, Plan, ReaderPlan, WriterPlan};
use thalweg_sim::trace::Detail;
use thalweg_sim::{World, WorldOutcome, run};

use super::scenario::{check, keep_all, plan, reader, reads_all, writer};

/// Two samples of 4 MB from host 0 to host 1.
fn bulk(link: HostLink) -> Plan {
    let large = WriterPlan { samples: 2, payload_bytes: 4_000_000, ..writer(0, keep_all(None)) };
    let plan = plan(2, vec![large], vec![reader(1, reads_all(None))]);
    Plan { links: vec![link], ..plan }
}

/// How long the world took from the first write to the last take.
fn took(outcome: &WorldOutcome) -> Duration {
    let record = outcome.record();
    assert_eq!(record.readers[0].values(), 2);
    record.readers[0].taken[1].at.since(record.writers[0].written[0].at)
}

#[test]
fn a_large_sample_takes_the_time_of_its_link() {
    let outcome = run(bulk(HostLink::new(100_000_000, 100_000)), Detail::Tail);
    let took = took(&outcome);
    assert!(took >= Duration::from_millis(640), "8 MB in {took:?} over 100 Mbit/s");
    let outbound = outcome.record().lanes[0].outbound;
    assert!(outbound.bytes >= 8_000_000, "{outbound:?}");
}

#[test]
fn a_lane_into_a_host_limits_as_one_out_of_it() {
    let lane = Lane { bits_per_second: 100_000_000, queue_bytes: 100_000 };
    let mut plan = bulk(HostLink::UNLIMITED);
    plan.links = vec![HostLink::UNLIMITED, HostLink { inbound: lane, ..HostLink::UNLIMITED }];
    let outcome = run(plan, Detail::Tail);
    assert!(took(&outcome) >= Duration::from_millis(640));
    assert_eq!(outcome.record().lanes[0].outbound.dropped, 0);
    assert!(outcome.record().lanes[1].inbound.bytes >= 8_000_000);
}

#[test]
fn an_unlimited_link_drops_nothing() {
    let outcome = run(bulk(HostLink::UNLIMITED), Detail::Tail);
    assert!(took(&outcome) < Duration::from_millis(640));
    assert!(outcome.record().lanes.iter().all(|lanes| lanes.outbound.dropped + lanes.inbound.dropped == 0));
}

#[test]
fn nobody_tells_a_best_effort_writer_that_a_queue_is_full() {
    let mut plan = bulk(HostLink::new(20_000_000, 4_000));
    let qos = WriterQos { reliability: Reliability::BestEffort, ..keep_all(None) };
    plan.topics[0].writers[0] = WriterPlan { qos, ..plan.topics[0].writers[0].clone() };
    plan.topics[0].readers[0] = ReaderPlan::new(1);
    let outcome = check(plan);
    let outbound = outcome.record().lanes[0].outbound;
    assert!(outbound.dropped > outbound.datagrams, "{outbound:?}");
}

#[test]
fn a_world_gets_the_time_that_its_bytes_need() {
    let slow = Pace::Polling { period: Duration::from_millis(100), samples_max: 1 };
    let reading = ReaderPlan { pace: slow, ..reader(1, reads_all(Some(1))) };
    check(Plan { patience: Duration::ZERO, ..plan(2, vec![writer(0, keep_all(None))], vec![reading]) });
}

/// Participants vanish within large samples. When their leases end, only readers are left that came later.
#[test]
fn the_rest_of_what_a_vanished_reader_was_owed_reaches_no_link() {
    [1_200_006_756, 446_504_944].into_iter().for_each(|seed| World::new(seed).run().check_all());
}
