//! What links cost: goodput, repairs, fairness, and what others who share a link feel of a bulk transfer.

use std::time::Duration;

use thalweg_sim::lane::HostLink;
use thalweg_sim::network::Weather;
use thalweg_sim::plan::{Plan, WriterPlan};
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
        ..10 => (2, 500_000),
        ..200 => (4, 2_000_000),
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

/// Least thousandths that payload must fill of links of so many Mbit/s, behind queues of so many bytes.
const LEAST: [(u64, usize, u64); 6] = [
    (20, 10_000, 700),
    (20, 100_000, 850),
    (20, 1_000_000, 850),
    (100, 100_000, 850),
    (100, 1_000_000, 850),
    (1_000, 1_000_000, 650),
];

#[test]
fn payload_fills_links_behind_short_and_long_queues() {
    for (megabits, queue_bytes, least) in LEAST {
        let (thousandths, words) = goodput(megabits, queue_bytes, Weather::CLEAR);
        assert!(thousandths >= least, "{thousandths} thousandths of {words}");
    }
}

#[test]
fn what_a_path_loses_of_its_own_is_repaired_about_once() {
    for (loss, bound) in [(0.01, 500), (0.05, 2_000), (0.2, 15_000)] {
        let weather = Weather { loss, ..Weather::CLEAR };
        let outcome = arrive(bulk(HostLink::UNLIMITED, weather, 10, 2_000_000));
        let record = outcome.record();
        let took = took(&record.readers[0]);
        let counters = record.writers[0].counters;
        let lost = counters.transmitted as f64 * loss / (1.0 - loss);
        let ratio = counters.repaired as f64 / lost;
        assert!(took < Duration::from_millis(bound), "{took:?} at {loss}");
        assert!(ratio < 1.3, "{ratio} repairs for each lost fragment at {loss}");
    }
}
