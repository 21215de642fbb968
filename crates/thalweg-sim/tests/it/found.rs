//! Worlds that once broke a law, each named by what went wrong.

use std::time::Duration;

use thalweg_rtps::flow_control::FlowControllerSettings;
use thalweg_rtps::qos::{
    History, Limits, Liveliness, LivelinessKind, Method, ReaderQos, Reliability, Transmission, WriterQos,
};
use thalweg_sim::lane::HostLink;
use thalweg_sim::laws::{delivery, liveness, settles};
use thalweg_sim::network::{GroupFilter, Weather};
use thalweg_sim::plan::{
    Assertions, Cut, Ending, Pace, PathPlan, PausePlan, Plan, ProcessPlan, ReaderPlan, SendTimes, SplitPlan, Stamps,
    WriterPlan,
};
use thalweg_sim::trace::Detail;
use thalweg_sim::{World, run};

use super::scenario::{at_ms, check, cut_off, durable, keep_all, plan, reader, reads_all, writer};

#[test]
fn samples_that_waited_for_room_are_announced_after_the_take_that_made_it() {
    let (writing, reading) = durable(keep_all(None), reads_all(Some(5)));
    let late = ReaderPlan { created: at_ms(4_000), ..reader(1, reading) };
    let outcome = check(plan(2, vec![writer(0, writing)], vec![late]));
    assert_eq!(outcome.record().readers[0].values(), 100);
    assert_eq!(outcome.record().writers[0].counters.repaired, 100, "a take asks for nothing that is on its way");
}

#[test]
fn a_participant_that_was_out_of_reach_learns_of_endpoints_created_meanwhile() {
    let created = WriterPlan { created: at_ms(1_000), ..writer(0, keep_all(None)) };
    let other = WriterPlan { created: at_ms(2_000), ..writer(2, keep_all(None)) };
    let mut plan = plan(3, vec![created, other], vec![reader(1, reads_all(None)), reader(2, reads_all(None))]);
    plan.splits.push(cut_off(1, 500, 8_000));
    check(plan);
}

#[test]
fn a_participant_that_was_out_of_reach_learns_of_endpoints_deleted_meanwhile() {
    let deleted = Some(at_ms(2_000));
    let gone_writer = WriterPlan { deleted, ..writer(0, keep_all(None)) };
    let gone_reader = ReaderPlan { deleted, ..reader(2, reads_all(None)) };
    let mut plan = plan(3, vec![gone_writer, writer(1, keep_all(None))], vec![reader(1, reads_all(None)), gone_reader]);
    plan.splits.push(cut_off(1, 1_500, 9_000));
    check(plan);
}

/// Host 1 hears the others all the time and is not heard: they lose it, and it does not lose them.
#[test]
fn a_participant_that_was_not_heard_learns_of_endpoints_deleted_meanwhile() {
    for deleted_ms in [1_700, 2_000, 4_000, 7_000] {
        let deleted = Some(at_ms(deleted_ms));
        let gone_writer = WriterPlan { deleted, ..writer(0, keep_all(None)) };
        let gone_reader = ReaderPlan { deleted, ..reader(2, reads_all(None)) };
        let readers = vec![reader(1, reads_all(None)), gone_reader];
        let mut plan = plan(3, vec![gone_writer, writer(1, keep_all(None)), writer(2, keep_all(None))], readers);
        plan.processes.iter_mut().for_each(|process| process.lease_duration = Duration::from_secs(3));
        plan.splits.push(SplitPlan { cut: Cut::FromHosts, ..cut_off(1, 1_500, 9_000) });
        check(plan);
    }
}

#[test]
fn the_rest_of_a_large_sample_goes_with_the_last_reader() {
    let large = WriterPlan { samples: 7, payload_bytes: 500_000, ..writer(0, keep_all(None)) };
    let mut plan = plan(2, vec![large], vec![reader(1, reads_all(None))]);
    plan.processes[1].receive_buffer_bytes = 65_536;
    plan.processes[1].ends = Some((at_ms(1_030), Ending::Vanishes));
    let outcome = check(plan);
    assert!(outcome.record().writers[0].written.len() == 7);
}

#[test]
fn a_late_reliable_reader_of_a_writer_with_best_effort_readers_gets_everything() {
    let many = WriterPlan { samples: 1_000, period: Duration::from_millis(1), ..writer(0, keep_all(None)) };
    let late = ReaderPlan { created: at_ms(1_800), ..reader(1, reads_all(None)) };
    let mut plan = plan(2, vec![many], vec![ReaderPlan::new(1), late]);
    plan.processes[1].receive_buffer_bytes = 65_536;
    let outcome = check(plan);
    assert!(outcome.record().readers[1].values() > 100);
}

#[test]
fn the_rest_of_a_large_best_effort_sample_leaves_although_nothing_is_written_after_it() {
    let best_effort = WriterQos { reliability: Reliability::BestEffort, ..keep_all(None) };
    let large = WriterPlan { samples: 3, payload_bytes: 150_000, ..writer(0, best_effort) };
    let mut plan = plan(2, vec![large], vec![ReaderPlan::new(1)]);
    plan.processes[1].receive_buffer_bytes = 65_536;
    let outcome = check(plan);
    assert_eq!(outcome.record().readers[0].values(), 3);
}

#[test]
fn everything_arrives_where_the_network_filters_multicast() {
    let large = WriterPlan { samples: 5, payload_bytes: 100_000, ..writer(0, keep_all(None)) };
    let readers = (1..=4).map(|process| reader(process, reads_all(None))).collect();
    let plan =
        Plan { group_filter: GroupFilter::Everything, ..plan(5, vec![writer(0, keep_all(None)), large], readers) };
    let outcome = check(plan);
    assert!(outcome.record().readers.iter().all(|reader| reader.values() == 105));
}

/// Fragments that were asked for again and again were no evidence against the group, and its losses slowed all paths down: what
/// takes a tenth of a second took five minutes.
#[test]
fn a_group_that_reaches_nobody_is_soon_left() {
    let took = |group_filter, payload_bytes| {
        let large = WriterPlan { samples: 10, payload_bytes, ..writer(0, keep_all(None)) };
        let readers = (1..=6).map(|process| reader(process, reads_all(None))).collect();
        let outcome = check(Plan { group_filter, ..plan(7, vec![large], readers) });
        let readers = &outcome.record().readers;
        assert!(readers.iter().all(|reader| reader.values() == 10));
        let last = readers.iter().filter_map(|reader| reader.taken.last()).map(|sample| sample.at).max();
        last.expect("something arrived").since(at_ms(1_000))
    };
    for bytes in [30_000, 80_000, 1_000_000] {
        let (unicast, filtered) = (took(GroupFilter::Everything, bytes), took(GroupFilter::UserData, bytes));
        assert!(filtered < unicast + Duration::from_millis(100), "{bytes} B: {filtered:?} instead of {unicast:?}");
    }
}

/// Each of them dropped more at a queue of a few datagrams than the queue carried: what was lost as a whole counted as one datagram, a
/// round went on although nothing got through, or a writer that had given its reader up sent what was left.
#[test]
fn queues_that_swallow_whole_windows_are_not_flooded() {
    for seed in [
        446_500_246,
        446_505_662,
        446_511_046,
        446_511_933,
        446_519_000,
        40_003_128,
        800_006_440,
        1_200_009_725,
        1_200_011_074,
        1_200_011_350,
    ] {
        World::new(seed).run().check_all();
    }
}

/// A reader that is back after a long silence asks, its repair is lost, and its writer went on counting it as silent; so did discovery.
#[test]
fn readers_that_are_back_are_asked_as_soon_as_others() {
    for seed in [233_377, 403_347, 446_519_320] {
        World::new(seed).run().check_all();
    }
}

#[test]
fn a_writer_that_waits_for_room_does_not_ask_a_filtered_group_for_ever() {
    let readers = (1..=4).map(|process| reader(process, reads_all(None))).collect();
    let fast = WriterPlan { period: Duration::from_millis(1), ..writer(0, keep_all(Some(14))) };
    let mut plan = Plan { group_filter: GroupFilter::Everything, ..plan(5, vec![fast], readers) };
    plan.weather.latency = Duration::from_millis(20);
    let outcome = check(plan);
    let wait = outcome.record().writers[0].longest_wait;
    assert!(wait < Duration::from_secs(1), "waited {wait:?}");
    assert_eq!(outcome.record().writers[0].given_up, []);
}

#[test]
fn calling_a_reader_that_was_given_up_does_not_keep_others_from_being_asked() {
    let (writing, reading) = durable(keep_all(None), reads_all(None));
    for seed in 0..20 {
        let large = WriterPlan { samples: 3, payload_bytes: 70_000, ..writer(0, writing.clone()) };
        let late = ReaderPlan { created: at_ms(2_500), ..reader(2, reading.clone()) };
        let readers = vec![reader(1, reading.clone()), reader(3, reading.clone()), late];
        let weather = Weather { loss: 0.2, latency: Duration::from_millis(2), ..Weather::CLEAR };
        let mut plan = Plan { seed, weather, ..plan(4, vec![large], readers) };
        plan.processes.iter_mut().for_each(|process| process.receive_buffer_bytes = 65_536);
        plan.splits.push(cut_off(1, 1_010, 6_000));
        check(plan);
    }
}

#[test]
fn what_was_written_for_readers_on_the_host_fits_a_packet_once_others_have_come() {
    let (writing, reading) = durable(keep_all(None), reads_all(None));
    let large = WriterPlan { samples: 10, burst: 10, payload_bytes: 60_000, ..writer(0, writing) };
    let remote = ReaderPlan { created: at_ms(1_050), ..reader(2, reading) };
    let mut plan = plan(3, vec![large], vec![reader(1, reads_all(None)), remote]);
    plan.processes[1].host = 0;
    plan.processes[1].receive_buffer_bytes = 65_536;
    plan.processes[1].datagram_cost = Duration::from_millis(20);
    let outcome = check(plan);
    assert_eq!(outcome.record().readers[0].values(), 10);
}

#[test]
fn keep_last_delivers_the_newest_value_of_each_instance_to_a_slow_reader() {
    let history = History::KeepLast(2);
    let slow = Pace::Polling { period: Duration::from_millis(40), samples_max: 3 };
    let reading = ReaderQos { history, ..reads_all(None) };
    let writing = WriterPlan { instances: 5, ..writer(0, WriterQos { history, ..WriterQos::default() }) };
    let mut plan = plan(2, vec![writing], vec![ReaderPlan { pace: slow, ..reader(1, reading) }]);
    plan.topics[0].keyed = thalweg_rtps::types::Keyed::Yes;
    plan.weather.loss = 0.2;
    check(plan);
}

#[test]
fn the_rest_of_a_large_best_effort_sample_leaves_without_another_write() {
    let qos = WriterQos { reliability: Reliability::BestEffort, ..keep_all(None) };
    for samples in 1..=8 {
        let large = WriterPlan { samples, payload_bytes: 110_000, ..writer(0, qos.clone()) };
        let mut plan = plan(2, vec![large], vec![ReaderPlan::new(1)]);
        plan.processes[1].host = 0;
        plan.processes[1].receive_buffer_bytes = 65_536;
        check(plan);
    }
}

#[test]
fn a_writer_that_is_created_when_a_pause_ends_writes_everything() {
    let created = WriterPlan { created: at_ms(700), first_write: at_ms(1_000), ..writer(0, keep_all(None)) };
    let mut plan = plan(2, vec![created], vec![reader(1, reads_all(None))]);
    plan.pauses.push(PausePlan { process: 0, from: at_ms(500), until: at_ms(1_000) });
    let outcome = check(plan);
    assert_eq!(outcome.record().readers[0].values(), 100);
}

#[test]
fn an_asynchronous_writer_keeps_nothing_for_readers_that_have_left() {
    let qos = keep_all(None);
    let transmission = Transmission::by(Method::asynchronous(Plan::CONTROLLER));
    let many = WriterPlan { samples: 300, payload_bytes: 10_000, ..writer(0, WriterQos { transmission, ..qos }) };
    let leaves = ReaderPlan { deleted: Some(at_ms(3_000)), ..reader(1, reads_all(None)) };
    let late = ReaderPlan { created: at_ms(4_500), ..reader(1, reads_all(None)) };
    let mut plan = plan(2, vec![many], vec![leaves, late]);
    plan.processes[0].controller = Some(FlowControllerSettings::bytes_per_second(100_000));
    check(plan);
}

#[test]
fn overwritten_samples_that_wait_for_company_are_within_bounds() {
    let limits = Limits { max_flush_delay: Duration::from_millis(50), ..Limits::default() };
    let qos = WriterQos { transmission: Transmission::by(Method::Batch(limits)), ..WriterQos::default() };
    let fast = WriterPlan { burst: 10, period: Duration::from_millis(2), ..writer(0, qos) };
    let mut plan = plan(2, vec![fast], vec![ReaderPlan::new(1)]);
    plan.weather.latency = Duration::from_millis(20);
    check(plan);
}

#[test]
fn a_large_sample_under_way_arrives_over_a_path_that_has_become_narrower() {
    for seed in [3, 12, 14] {
        let period = Duration::from_millis(491);
        let large = WriterPlan { samples: 2, payload_bytes: 1_722_370, period, ..writer(0, keep_all(None)) };
        let mut plan = Plan { seed, ..plan(2, vec![large], vec![reader(1, reads_all(None))]) };
        plan.weather.loss = 0.1;
        plan.processes[1].receive_buffer_bytes = 212_992;
        plan.paths.push(PathPlan { at: at_ms(1_100), mtu_bytes: 900 });
        check(plan);
    }
}

/// Repairs that became larger again were numbered otherwise than the reader counted.
#[test]
fn a_large_sample_under_way_arrives_over_a_path_that_was_narrow_for_a_while() {
    for seed in 0..10 {
        let large = WriterPlan { samples: 2, payload_bytes: 1_000_000, ..writer(0, keep_all(None)) };
        let mut plan = Plan { seed, ..plan(2, vec![large], vec![reader(1, reads_all(None))]) };
        plan.weather = Weather { loss: 0.02, latency: Duration::from_millis(10), ..Weather::CLEAR };
        plan.processes[1].receive_buffer_bytes = 65_536;
        plan.paths.push(PathPlan { at: at_ms(1_100), mtu_bytes: 900 });
        plan.paths.push(PathPlan { at: at_ms(1_300), mtu_bytes: 1_400 });
        check(plan);
    }
}

#[test]
fn history_goes_once_over_a_long_path_also_where_other_peers_are_near() {
    let (writing, reading) = durable(keep_all(None), reads_all(None));
    let steady = WriterPlan { samples: 150, payload_bytes: 600, ..writer(0, writing) };
    let late = ReaderPlan { created: at_ms(2_000), ..reader(1, reading) };
    let mut plan = plan(2, vec![steady], vec![late]);
    plan.weather.latency = Duration::from_millis(20);
    let beside = ProcessPlan { host: 0, ..plan.processes[0].clone() };
    plan.processes.push(beside);
    let outcome = check(plan);
    let repaired = outcome.record().writers[0].counters.repaired;
    assert!((100..150).contains(&repaired), "{repaired} repairs for 100 samples");
}

/// What was written before a volatile reader came and left after that reaches it as well: where a part was lost, nobody repeated it or said
/// that it was not owed.
#[test]
fn a_volatile_reader_keeps_no_part_of_what_it_is_not_owed() {
    for seed in 0..100 {
        let transmission = Transmission::by(Method::asynchronous(Plan::CONTROLLER));
        let slow = WriterQos { transmission, ..keep_all(None) };
        let halves = WriterPlan { samples: 40, burst: 40, payload_bytes: 2_000, ..writer(0, slow) };
        let late = ReaderPlan { created: at_ms(1_300), ..reader(2, reads_all(None)) };
        let mut plan = Plan { seed, ..plan(3, vec![halves], vec![ReaderPlan::new(1), late]) };
        plan.weather = Weather { loss: 0.1, latency: Duration::from_millis(2), ..Weather::CLEAR };
        plan.processes[0].controller = Some(FlowControllerSettings::bytes_per_second(50_000));
        check(plan);
    }
}

/// Samples that were collected for readers on the host, and did not fit the path of one that came before they left, were cut in halves at
/// first and by the width of its path when they were repeated: the reader asked for its half for ever.
#[test]
fn samples_collected_for_readers_on_the_host_arrive_where_they_are_cut() {
    for seed in 0..20 {
        let transmission = Transmission::by(Method::asynchronous(Plan::CONTROLLER));
        let (slow, reading) = durable(WriterQos { transmission, ..keep_all(None) }, reads_all(None));
        let stamps = Stamps::HostClock;
        let collected = WriterPlan { samples: 60, burst: 60, payload_bytes: 1_975, stamps, ..writer(0, slow) };
        let late = ReaderPlan { created: at_ms(1_300), ..reader(2, reading.clone()) };
        let mut plan = Plan { seed, ..plan(3, vec![collected], vec![reader(1, reading), late]) };
        plan.processes[1].host = 0;
        plan.weather = Weather { loss: 0.2, latency: Duration::from_millis(2), ..Weather::CLEAR };
        plan.processes[0].controller = Some(FlowControllerSettings::bytes_per_second(50_000));
        let outcome = check(plan);
        assert_eq!(outcome.record().readers[1].values(), 60);
    }
}

#[test]
fn a_world_with_an_application_that_hangs_waits_for_the_other_readers() {
    let large = WriterPlan { samples: 20, payload_bytes: 100_000, ..writer(0, keep_all(None)) };
    let hangs = ReaderPlan { pace: Pace::Never, ..reader(1, reads_all(None)) };
    let mut plan = plan(3, vec![large], vec![hangs, reader(2, reads_all(None))]);
    plan.links = vec![HostLink::UNLIMITED, HostLink::UNLIMITED, HostLink::new(2_000_000, 100_000)];
    let outcome = run(plan, Detail::Tail);
    outcome.check(settles).check(delivery::exactly_once);
    assert_eq!(outcome.record().readers[1].values(), 20);
}

/// HEARTBEATs that a later one had overtaken took a reader back to what it had given up, and it handed that over too late.
#[test]
fn heartbeats_in_another_order_take_no_reader_back() {
    for seed in [41_004_714, 50_007_272, 446_514_799, 446_515_468, 446_516_230] {
        World::new(seed).run().check_all();
    }
}

/// KEEP_LAST had overwritten what followed the last batch sent, and the readers' answers to that batch counted as made up.
#[test]
fn a_writer_of_batches_goes_on_after_it_has_overwritten_what_was_to_be_sent_next() {
    World::new(41_006_298).run().check_all();
}

/// Readers with small sockets behind a short queue lost most of each burst, for ever; nothing slowed down, since so little was sent.
#[test]
fn large_samples_arrive_through_queues_that_hold_two_datagrams() {
    World::new(41_002_306).run().check_all();
    // It drops 2,363 datagrams where 2,172 are allowed: docs/decisions/0015-congestion.md.
    World::new(40_003_128).run().check(delivery::exactly_once).check(liveness::settles_within_its_bound);
}

/// Repairs of a long history grew by half in each round, before anybody could tell that they filled the link many times over.
#[test]
fn history_does_not_flood_a_link_from_which_no_round_trip_is_known() {
    World::new(40_003_822).run().check_all();
}

/// What was not known to be lost counted as what a path carries, so that the first rate was many times that of the link.
#[test]
fn the_first_rate_is_that_of_what_has_arrived() {
    for seed in [50_003_431, 800_016_078, 2_310_000_637] {
        World::new(seed).run().check_all();
    }
}

/// Lost repairs of samples counted only while their numbers were under way for the first time, so that history filled a short queue
/// again and again.
#[test]
fn history_slows_down_for_a_short_queue() {
    for seed in [41_000_849, 41_002_105, 446_511_479, 446_515_820, 900_003_914] {
        World::new(seed).run().check_all();
    }
}

/// A first HEARTBEAT that was forged led a reader far ahead; after its lease had ended it went on there, and forgot that it was a claim.
#[test]
fn a_forged_first_contact_does_not_outlast_the_forger() {
    World::new(800_034_231).run().check_all();
}

/// A challenge is repeated ever more rarely, and with a loss of 30 % one in some thousand worlds took longer than two leases. Who
/// sends HEARTBEATs, or asks for participant messages, knows us and is asked again at once.
#[test]
fn participants_that_wait_for_each_other_meet_through_heavy_loss() {
    for seed in [7_713, 19_428, 36_197, 99_939, 67_398, 886_502, 446_515_306] {
        World::new(seed).run().check_all();
    }
}

/// Announcements to one address after the other overflowed a short queue at the same address each time, so that those at the end of
/// each other's lists never heard of each other.
#[test]
fn participants_meet_behind_queues_that_hold_half_of_the_announcements() {
    let hosts = 13;
    let readers = (1..hosts).map(|process| reader(process, reads_all(None))).collect();
    let group_filter = GroupFilter::Everything;
    let mut plan = Plan { group_filter, ..plan(hosts, vec![writer(0, keep_all(None))], readers) };
    plan.links = vec![HostLink::new(50_000_000, 3_000); hosts];
    plan.processes.iter_mut().for_each(|process| process.lease_duration = Duration::from_secs(5));
    let outcome = check(plan);
    assert!(outcome.record().processes.iter().all(|process| process.discovered.len() == hosts - 1));
    World::new(900_005_851).run().check_all();
}

/// A host had moved, had answered at its new address, and was taken for gone: two seconds of silence at the old one were not over when
/// its lease ended.
#[test]
fn a_host_that_has_answered_where_it_moved_to_is_not_lost() {
    World::new(41_002_560).run().check_all();
}

/// A reader with a full cache had parts of samples that its writer had given up. It went on asking for the rest, and was answered at
/// once with a HEARTBEAT, 45,000 times a second.
#[test]
fn what_is_gone_while_a_reader_has_no_room_is_not_asked_for() {
    World::new(446_507_287).run().check_all();
}

/// The I/O thread's timer ran out while the application's thread was in a send call: it left the HEARTBEAT to that thread, which sends what
/// is new, and told the timer of nothing. Where the last datagrams were lost, nobody asked before the next write.
#[test]
fn a_timer_that_runs_out_during_a_send_call_is_set_again() {
    for seed in 0..40 {
        let mut plan = plan(2, vec![writer(0, keep_all(None))], vec![reader(1, reads_all(None))]);
        plan.seed = seed;
        plan.weather.loss = 0.2;
        let interruption = Duration::from_millis(100);
        plan.processes[0].sends = SendTimes { datagram: Duration::from_micros(50), interrupted: 0.5, interruption };
        check(plan);
    }
}

/// Collected samples were due while another thread was in a send call: the participant asked for its timer again and again until that
/// was over.
#[test]
fn a_timer_that_can_do_nothing_does_not_run_out_again_and_again() {
    let mut plan = plan(2, vec![writer(0, keep_all(None))], vec![reader(1, reads_all(None))]);
    let liveliness = Liveliness { kind: LivelinessKind::ManualByTopic, lease: Duration::from_millis(100) };
    let topic = &mut plan.topics[0];
    topic.readers[0].qos.liveliness = liveliness;
    (topic.writers[0].qos.liveliness, topic.writers[0].qos.transmission.method) = (liveliness, Method::batch());
    topic.writers[0].habits.asserts = Some(Assertions { period: Duration::from_millis(7), until: at_ms(2_000) });
    let (datagram, interruption) = (Duration::from_micros(50), Duration::from_millis(20));
    plan.processes[0].sends = SendTimes { datagram, interrupted: 0.5, interruption };
    check(plan);
}

/// The world counted as settled while a deleted writer's history was still being repaired.
#[test]
fn a_history_whose_writer_is_gone_is_repaired_to_its_end() {
    World::new(2_000_000_665_428).run().check_all();
}
