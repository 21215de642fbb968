//! What links cost: goodput, repairs, fairness, and what others who share a link feel of a bulk transfer.

use std::time::Duration;

use thalweg_sim::lane::HostLink;
use thalweg_sim::network::Weather;
use thalweg_sim::plan::{Plan, TopicPlan, WriterPlan};
use thalweg_sim::record::ReaderRecord;
use thalweg_sim::trace::Detail;
use thalweg_sim::{Outcome, run};

use super::scenario::{at_ms, keep_all, plan, reader, reads_all, writer};

/// Bytes that pass a link for each byte of a large sample's payload, times a thousand: headers of packets and fragments.
const OVERHEAD: u64 = 1_090;

/// As many samples of `bytes` from host 0 to host 1 over a link, as fast as they can be written.
fn bulk(link: HostLink, weather: Weather, samples: u32, bytes: usize) -> Plan {
    let large =
        WriterPlan { samples, payload_bytes: bytes, period: Duration::from_micros(10), ..writer(0, keep_all(None)) };
    let mut plan = plan(2, vec![large], vec![reader(1, reads_all(None))]);
    plan.processes.iter_mut().for_each(|process| process.receive_buffer_bytes = 8 << 20);
    plan.patience = Duration::from_secs(600);
    Plan { links: vec![link], weather, ..plan }
}

/// Time from the first write to the last take.
fn took(reader: &ReaderRecord) -> Duration {
    let last = reader.taken.last().expect("something arrives");
    last.at.since(at_ms(1_000))
}

fn arrive(plan: Plan) -> Outcome {
    let samples = plan.topics[0].writers[0].samples as usize;
    let outcome = run(plan, Detail::Tail);
    outcome.check_all();
    assert_eq!(outcome.record().readers[0].values(), samples);
    outcome
}

/// Thousandths of a link that payload fills, headers included.
fn goodput(megabits: u64, queue_bytes: usize, weather: Weather) -> (u64, String) {
    let (samples, bytes) = match megabits {
        1 => (6, 500_000),
        20 => (4, 2_000_000),
        100 => (12, 2_000_000),
        _ => (20, 4_000_000),
    };
    let outcome = arrive(bulk(HostLink::new(megabits * 1_000_000, queue_bytes), weather, samples, bytes));
    let record = outcome.record();
    let took = took(&record.readers[0]);
    let ideal = u64::from(samples) * bytes as u64 * OVERHEAD * 8 / megabits / 1_000;
    let lanes = record.lanes[0].outbound;
    let counters = record.writers[0].counters;
    let words = format!(
        "{megabits} Mbit/s, {queue_bytes} B: took {took:?}, ideal {ideal} us, {} of {} datagrams dropped, {} repaired",
        lanes.dropped, lanes.datagrams, counters.repaired
    );
    (ideal * 1_000 / took.as_micros() as u64, words)
}

#[test]
fn payload_fills_links_of_any_rate_behind_queues_of_any_length() {
    let mut poor = Vec::new();
    for megabits in [1, 20, 100, 1_000] {
        for queue_bytes in [10_000, 100_000, 1_000_000] {
            let (thousandths, words) = goodput(megabits, queue_bytes, Weather::CLEAR);
            println!("{thousandths} thousandths: {words}");
            // A queue of 10 KB holds seven packets: less than leaves at a time on a link of a gigabit.
            let least = match (megabits, queue_bytes) {
                (1_000, 10_000) => 150,
                (_, 10_000) => 750,
                _ => 800,
            };
            if thousandths < least {
                poor.push(format!("{thousandths} thousandths: {words}"));
            }
        }
    }
    assert!(poor.is_empty(), "{poor:#?}");
}

#[test]
fn what_is_lost_is_repaired_about_once() {
    for loss in [0.01, 0.05, 0.2] {
        let weather = Weather { loss, latency: Duration::from_millis(2), ..Weather::CLEAR };
        let outcome = arrive(bulk(HostLink::new(100_000_000, 200_000), weather, 5, 2_000_000));
        let counters = outcome.record().writers[0].counters;
        // A repair may be lost as well.
        let lost =
            counters.transmitted as f64 * loss / (1.0 - loss) + outcome.record().lanes[0].outbound.dropped as f64;
        let share = counters.repaired as f64 / lost;
        assert!(share <= 1.3, "{loss}: {} repaired, {lost:.0} lost", counters.repaired);
    }
}

#[test]
fn two_flows_share_a_link_and_neither_starves() {
    let large = WriterPlan {
        samples: 30,
        payload_bytes: 500_000,
        period: Duration::from_micros(10),
        ..writer(0, keep_all(None))
    };
    let topic = |name: &str| TopicPlan { name: name.to_owned(), ..two(large.clone()).topics.remove(0) };
    let mut plan = two(large.clone());
    plan.topics = vec![topic("one"), topic("other")];
    plan.links = vec![HostLink::new(20_000_000, 50_000)];
    plan.patience = Duration::from_secs(600);
    let outcome = run(plan, Detail::Tail);
    outcome.check_all();
    // While both send, each gets its part: when the first is through, the other has nearly all as well.
    let readers = &outcome.record().readers;
    let (one, other) = (took(&readers[0]), took(&readers[1]));
    let ratio = one.max(other).as_secs_f64() / one.min(other).as_secs_f64();
    assert!(ratio <= 1.5, "{one:?} and {other:?}");
}

#[test]
fn a_control_topic_waits_for_a_bulk_transfer_on_its_link_for_a_tenth_of_what_the_queue_holds() {
    let control = WriterPlan {
        samples: 1_000,
        payload_bytes: 100,
        period: Duration::from_millis(20),
        ..writer(0, keep_all(None))
    };
    let bulk = WriterPlan {
        samples: 40,
        payload_bytes: 1_000_000,
        period: Duration::from_micros(10),
        first_write: at_ms(1_500),
        ..writer(0, keep_all(None))
    };
    let weather = Weather { latency: Duration::from_millis(2), ..Weather::CLEAR };
    let mut plan = two(control);
    let bulk_topic = TopicPlan { name: "bulk".to_owned(), ..two(bulk).topics.remove(0) };
    plan.topics.push(bulk_topic);
    (plan.links, plan.weather) = (vec![HostLink::new(20_000_000, 1_000_000)], weather);
    plan.patience = Duration::from_secs(600);
    let outcome = run(plan, Detail::Tail);
    outcome.check_all();
    let record = outcome.record();
    let written = &record.writers[0].written;
    let late = record.readers[0].taken.iter().map(|taken| {
        let sent = written.iter().find(|one| one.sequence == taken.sequence).expect("it was written");
        taken.at.since(sent.at)
    });
    let mut late: Vec<Duration> = late.collect();
    late.sort();
    let (half, most) = (late[late.len() / 2], late[late.len() * 99 / 100]);
    assert!(most < Duration::from_millis(40), "half within {half:?}, 99 % within {most:?}");
}

/// A host that writes and one that reads.
fn two(writer: WriterPlan) -> Plan {
    let mut plan = plan(2, vec![writer], vec![reader(1, reads_all(None))]);
    plan.processes.iter_mut().for_each(|process| process.receive_buffer_bytes = 8 << 20);
    plan
}
