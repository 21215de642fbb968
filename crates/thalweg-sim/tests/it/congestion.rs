//! What links cost a bulk transfer: goodput and repairs.

use std::time::Duration;

use thalweg_sim::lane::HostLink;
use thalweg_sim::network::Weather;
use thalweg_sim::plan::{Plan, WriterPlan};
use thalweg_sim::record::ReaderRecord;
use thalweg_sim::trace::Detail;
use thalweg_sim::{WorldOutcome, run};

use super::scenario::{at_ms, keep_all, plan, reader, reads_all, writer};

/// Bytes that pass a link for each byte of a large sample's payload, times a thousand: headers of packets and fragments.
pub const OVERHEAD: u64 = 1_090;

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

fn arrive(plan: Plan) -> WorldOutcome {
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
            let least = if queue_bytes == 10_000 { 850 } else { 900 };
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
