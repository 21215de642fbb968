use std::time::Duration;

use thalweg_lab_station::{
    ArrivalCount, ClosedRecords, LatencySample, PublisherReport, RawRecords, ReceivedSample, Timetable, WrittenSample,
    write_arrivals, write_received, write_round_trips, write_written,
};

use super::LatencyKind;
use super::closed_loop;
use super::fates::{Joined, join};
use super::timetable::timetable as timetable_of;
use crate::fixtures::{LabFolder, scenario_with};
use crate::scenario::{Cell, Schedule, Settle};

const MS: u64 = 1_000_000;

fn scenario(matrix: &str, schedule: &str) -> (Cell, Schedule) {
    let scenario = scenario_with(&format!("payload_bytes = 8\n{matrix}"), &format!("runs = 1\n{schedule}"));
    (scenario.cells[0].clone(), scenario.schedule)
}

/// Sample `number` written `after` ms after it was due, the write returning 1 ms later.
fn written(timetable: &Timetable, writer: u32, number: u64, after: u64) -> WrittenSample {
    let written_ns = timetable.due_ns(writer, number) + after * MS;
    WrittenSample { number, written_ns, returned_ns: written_ns + MS }
}

fn received(timetable: &Timetable, writer: u32, number: u64, after: u64) -> ReceivedSample {
    let due = timetable.due_ns(writer, number);
    ReceivedSample { writer, number, written_ns: due + MS, received_ns: due + after * MS }
}

#[test]
fn samples_are_due_on_an_absolute_schedule() {
    let (cell, schedule) = scenario("rate_hz = 8\npublishers = 4", "seconds = 3\nwarm_up_s = 0.5");
    let timetable = timetable_of(&cell, &schedule);
    assert_eq!((timetable.due_ns(0, 0), timetable.due_ns(0, 8), timetable.due_ns(2, 0)), (0, 1_000 * MS, 62_500_000));
    assert_eq!(timetable.measured(), 4..28);
    assert_eq!((timetable.start_ns(), timetable.end_ns(), timetable.period_ns()), (500 * MS, 3_500 * MS, 125 * MS));
    assert_eq!((timetable.second(0, 4), timetable.second(0, 11), timetable.second(0, 12)), (0, 0, 1));
    let (cell, schedule) = scenario("rate_hz = 8\npublishers = 4", "seconds = 3\nphase = \"together\"");
    assert_eq!(timetable_of(&cell, &schedule).due_ns(3, 0), 0);
}

#[test]
fn a_long_schedule_does_not_drift() {
    let (cell, schedule) = scenario("rate_hz = 3000", "seconds = 3600\nwarm_up_s = 0");
    let timetable = timetable_of(&cell, &schedule);
    assert_eq!(timetable.due_ns(0, 3_000 * 3_600), 3_600_000 * MS);
    assert_eq!(timetable.measured().end, 3_000 * 3_600);
}

/// 100 Hz for one second, one publisher, two subscribers: all fates at once.
fn all_fates() -> Joined {
    let (cell, schedule) = scenario("rate_hz = 100\nsubscribers = 2", "seconds = 1\nwarm_up_s = 0.05");
    let timetable = timetable_of(&cell, &schedule);
    let numbers = timetable.measured();
    assert_eq!(numbers, 5..105);
    // The warm-up counts nowhere. 7 is never written, 8 is written late.
    let samples = (0..105).filter(|number| *number != 7);
    let samples: Vec<WrittenSample> =
        samples.map(|number| written(&timetable, 0, number, if number == 8 { 15 } else { 0 })).collect();
    // The first subscriber gets all that was sent, 8 and 20 late, 30 twice, 41 before 40.
    let mut first: Vec<u64> = samples.iter().map(|sample| sample.number).collect();
    let place = first.iter().position(|number| *number == 40).expect("there");
    first.swap(place, place + 1);
    first.push(30);
    let after = |number: u64| if number == 8 || number == 20 { 20 } else { 2 };
    let first: Vec<ReceivedSample> =
        first.into_iter().map(|number| received(&timetable, 0, number, after(number))).collect();
    // The second loses 50 and 51 and everything else takes 5 ms.
    let second: Vec<ReceivedSample> = samples
        .iter()
        .filter(|sample| !(50..52).contains(&sample.number) && sample.number != 8)
        .map(|sample| received(&timetable, 0, sample.number, 5))
        .chain([received(&timetable, 0, 8, 20)])
        .collect();
    let reports = [PublisherReport { index: 0, written: 104, acknowledged: true, ..PublisherReport::default() }];
    join(&cell, &schedule, &RawRecords { written: vec![samples], received: vec![first, second] }, &reports)
}

#[test]
fn every_fate_is_counted_at_both_ends() {
    let joined = all_fates();
    let [first, second] = &joined.pairs[..] else { panic!("{:?}", joined.pairs) };
    let fates = |totals: &super::Totals| (totals.due, totals.in_time, totals.late, totals.lost, totals.not_sent);
    assert_eq!(fates(&first.totals), (100, 97, 2, 0, 1));
    assert_eq!((first.totals.duplicates, first.totals.reordered), (1, 1));
    assert_eq!(fates(&second.totals), (100, 96, 1, 2, 1));
    // What came at the end after being passed by later ones is reordered, not lost.
    assert_eq!((second.totals.duplicates, second.totals.reordered), (0, 1));
    assert_eq!(fates(&joined.totals), (200, 193, 3, 2, 2));
    let publisher = &joined.publishers[0];
    assert_eq!((publisher.due, publisher.in_time, publisher.late, publisher.not_sent), (100, 98, 1, 1));
    assert_eq!((publisher.lag.max_us, publisher.write.max_us), (15_000.0, 1_000.0));
}

#[test]
fn response_counts_from_due_and_service_from_written() {
    let joined = all_fates();
    let first = &joined.pairs[0].totals;
    assert_eq!((first.response.count, first.response.min_us, first.response.max_us), (99, 2_000.0, 20_000.0));
    assert_eq!((first.service.min_us, first.service.max_us), (1_000.0, 19_000.0));
    assert_eq!(
        (first.response.p50_us.map(f64::round), first.response.p90_us.map(f64::round), first.response.p99_us),
        (Some(2_001.0), Some(2_001.0), None),
        "100 were due, of which 99 arrived"
    );
    let by_second: u64 = joined.seconds.values().map(|(response, _)| response.count()).sum();
    assert_eq!(by_second, joined.totals.response.count);
    let never = joined.seconds.values().fold((0, 0), |sum, (one, other)| (sum.0 + one.never(), sum.1 + other.never()));
    assert_eq!(never, (4, 2), "two were not sent to either, two were lost");
    assert!(joined.seconds.contains_key(&(0, 1, 0)));
}

#[test]
fn what_arrives_after_the_measured_time_is_no_throughput() {
    let (cell, schedule) = scenario("rate_hz = 100", "seconds = 1\nwarm_up_s = 0.05");
    let timetable = timetable_of(&cell, &schedule);
    let arrivals = |after: u64| {
        // One sample comes twice.
        let numbers = (0..105).chain([60]);
        let received = vec![numbers.map(|number| received(&timetable, 0, number, after)).collect()];
        let written = vec![(0..105).map(|number| written(&timetable, 0, number, 0)).collect()];
        let joined = join(&cell, &schedule, &RawRecords { written, received }, &[]);
        assert_eq!(joined.totals.received(), 100);
        joined.arrivals
    };
    assert_eq!(arrivals(2), Some(100));
    assert_eq!(arrivals(40), Some(100), "late ones of the warm-up stand for those that come after the end");
    assert_eq!(arrivals(400), Some(65), "of 35 that come after the end the warm-up has too few");
}

#[test]
fn fairness_compares_the_subscribers() {
    let fairness = all_fates().fairness;
    assert_eq!((fairness.last_minus_first.count, fairness.last_minus_first.max_us), (97, 15_000.0));
    assert!(fairness.jain_received < 1.0 && fairness.jain_received > 0.99);
    assert_eq!(fairness.p99_worst_by_best, None, "100 samples carry no 99th percentile");
}

#[test]
fn a_subscriber_that_hears_nothing_has_lost_what_was_sent() {
    let (cell, schedule) =
        scenario("rate_hz = 10\nendpoints = \"2-2\"\ntopics = \"per-pair\"", "seconds = 1\nwarm_up_s = 0");
    let timetable = timetable_of(&cell, &schedule);
    let samples: Vec<WrittenSample> = (0..10).map(|number| written(&timetable, 0, number, 0)).collect();
    let raw = RawRecords { written: vec![samples, Vec::new()], received: vec![Vec::new(), Vec::new()] };
    let joined = join(&cell, &schedule, &raw, &[]);
    assert_eq!(joined.pairs.len(), 2);
    assert_eq!((joined.pairs[0].totals.lost, joined.pairs[0].totals.not_sent), (10, 0));
    assert_eq!((joined.pairs[1].totals.lost, joined.pairs[1].totals.not_sent), (0, 10));
    assert_eq!((joined.totals.due, joined.fairness.jain_received), (20, 1.0));
    assert_eq!(joined.totals.response.p50_us, Some(f64::INFINITY), "what never arrives is infinitely late");
    let text = serde_json::to_string(&joined.totals).expect("json");
    assert!(text.contains(r#""p50_us":"never""#), "{text}");
    assert_eq!(serde_json::from_str::<super::Totals>(&text).expect("json"), joined.totals);
    let folder = LabFolder::new("never");
    super::write_histograms(&folder, &joined).expect("written");
    let second = super::load_histograms(&folder, LatencyKind::Response).expect("read").remove(&0).expect("a second");
    assert_eq!((second.count(), second.never()), (0, 20));
}

#[test]
fn the_limit_of_a_sample_in_time_can_be_given() {
    let (cell, mut schedule) = scenario("rate_hz = 10", "seconds = 1\nwarm_up_s = 0");
    assert_eq!(super::fates::in_time_ns(&cell, &schedule), 100 * MS);
    schedule.in_time = Some(Duration::from_millis(3));
    assert_eq!(super::fates::in_time_ns(&cell, &schedule), 3 * MS);
}

#[test]
fn what_has_not_settled_does_not_count() {
    let (cell, mut schedule) = scenario("rate_hz = 100", "seconds = 10\nwarm_up_s = 0\nsettle = \"mser\"");
    let timetable = timetable_of(&cell, &schedule);
    // Two seconds take ten times as long as the rest.
    let after = |number: u64| if number < 200 { 50 } else { 5 + number % 3 };
    let raw = RawRecords {
        written: vec![(0..1_000).map(|number| written(&timetable, 0, number, 0)).collect()],
        received: vec![(0..1_000).map(|number| received(&timetable, 0, number, after(number))).collect()],
    };
    let joined = join(&cell, &schedule, &raw, &[]);
    assert_eq!((joined.unsettled_s, joined.totals.due, joined.publishers[0].due), (2.0, 800, 800));
    assert_eq!((joined.totals.response.max_us, joined.seconds.len()), (7_000.0, 8));
    schedule.settle = Settle::No;
    let joined = join(&cell, &schedule, &raw, &[]);
    assert_eq!((joined.unsettled_s, joined.totals.due, joined.totals.response.max_us), (0.0, 1_000, 50_000.0));
}

#[test]
fn raw_data_survive_their_files_and_damage_is_told_with_its_line() {
    let (cell, schedule) = scenario("rate_hz = 10", "seconds = 1\nwarm_up_s = 0");
    let timetable = timetable_of(&cell, &schedule);
    let raw = RawRecords {
        written: vec![(0..10).map(|number| written(&timetable, 0, number, 0)).collect()],
        received: vec![(0..10).map(|number| received(&timetable, 0, number, 2)).collect()],
    };
    let folder = LabFolder::new("raw");
    write_written(&folder, 0, &raw.written[0]).expect("written");
    write_received(&folder, 0, &raw.received[0]).expect("written");
    assert_eq!(RawRecords::read(&folder, cell.publishers, cell.subscribers).expect("read"), raw);
    let check = |file: &str, text: &str, expect: &str| {
        let path = folder.join(file);
        let before = std::fs::read_to_string(&path).expect("there");
        std::fs::write(&path, text).expect("changed");
        let error = RawRecords::read(&folder, cell.publishers, cell.subscribers).expect_err(text).to_string();
        assert!(error.contains(file) && error.contains(expect), "{error}");
        std::fs::write(&path, before).expect("restored");
    };
    check("publisher-000.csv", "number,written_ns,returned_ns\n1,2,3\n4,5\n", ":3: expected 3 numbers");
    check("publisher-000.csv", "", ":1: expected");
    check("subscriber-000.csv", "x\n", ":1: expected");
    check("subscriber-000.csv", "writer,number,written_ns,received_ns\n7,1,2,3\n", "unknown publisher");
}

/// Two publishers, two subscribers, two seconds after one of warm-up.
fn closed_records() -> ClosedRecords {
    let count = |writer, second, received| ArrivalCount { writer, second, received, ..ArrivalCount::default() };
    let faulty = ArrivalCount { writer: 1, second: 3, received: 1, duplicates: 2, reordered: 1 };
    let round_trip = |number, reader, sent_ns, answered_ns| LatencySample { number, reader, sent_ns, answered_ns };
    ClosedRecords {
        round_trips: vec![
            round_trip(50, 0, 1_000 * MS, Some(1_003 * MS)),
            round_trip(60, 1, 2_999 * MS, Some(3_005 * MS)),
            round_trip(70, 0, 2_999 * MS, None),
        ],
        arrivals: vec![
            vec![count(0, 0, 40), count(0, 1, 30), count(0, 2, 20), count(0, 3, 10), count(1, 1, 5)],
            vec![count(0, 1, 100), faulty],
        ],
    }
}

#[test]
fn a_closed_loop_counts_seconds_losses_and_round_trips() {
    let (cell, schedule) = scenario("latency_count = 10\nendpoints = \"2-2\"", "seconds = 2\nwarm_up_s = 1");
    let report = |index, written| PublisherReport { index, written, acknowledged: true, ..PublisherReport::default() };
    let joined = closed_loop::join(&cell, &schedule, &closed_records(), &[report(0, 100), report(1, 5)]);
    let closed = joined.closed_loop.as_ref().expect("a closed loop");
    assert_eq!((&closed.received_by_second, closed.received_per_s()), (&vec![135, 20], 77.5));
    let fates: Vec<(u64, u64, u64)> =
        joined.pairs.iter().map(|pair| (pair.totals.due, pair.totals.in_time, pair.totals.lost)).collect();
    assert_eq!(fates, [(100, 100, 0), (100, 100, 0), (5, 5, 0), (5, 1, 4)]);
    assert_eq!((joined.totals.lost, joined.totals.duplicates, joined.totals.reordered), (4, 2, 1));
    assert_eq!((closed.round_trip.count, closed.round_trip.max_us), (2, 6_000.0));
    assert_eq!(closed.round_trip.p50_us, Some(6_000.0), "of three, one of which was never answered");
    assert_eq!(joined.totals.response, super::LatencyFigures::default(), "nothing was due");
    let folder = LabFolder::new("closed");
    super::write_histograms(&folder, &joined).expect("written");
    let load = |kind| super::load_histograms(&folder, kind).expect("read");
    assert!(load(LatencyKind::Response).is_empty());
    let counts: Vec<(u64, u64, u64)> =
        load(LatencyKind::RoundTrip).iter().map(|(second, all)| (*second, all.count(), all.never())).collect();
    assert_eq!(counts, [(0, 1, 0), (1, 1, 1)]);
}

#[test]
fn counts_of_a_closed_loop_survive_their_files() {
    let (records, folder) = (closed_records(), LabFolder::new("closed-raw"));
    write_round_trips(&folder, &records.round_trips).expect("written");
    records
        .arrivals
        .iter()
        .zip(0..)
        .for_each(|(counts, index)| write_arrivals(&folder, index, counts).expect("written"));
    assert_eq!(ClosedRecords::read(&folder, 2, 2).expect("read"), records);
    let error = ClosedRecords::read(&folder, 1, 2).expect_err("of two").to_string();
    assert!(error.contains("arrivals-000.csv: unknown publisher"), "{error}");
    let error = ClosedRecords::read(&folder, 2, 1).expect_err("of two").to_string();
    assert!(error.contains("round-trips.csv: unknown subscriber"), "{error}");
}

#[test]
fn a_full_disk_is_told_with_the_file() {
    let folder = LabFolder::new("full");
    std::os::unix::fs::symlink("/dev/full", folder.join("publisher-000.csv")).expect("linked");
    let samples = [WrittenSample { number: 0, written_ns: 0, returned_ns: 1 }];
    let error = write_written(&folder, 0, &samples).expect_err("full").to_string();
    assert!(error.contains("publisher-000.csv cannot be written") && error.contains("No space left"), "{error}");
}
