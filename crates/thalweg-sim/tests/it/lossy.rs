//! Paths that lose a large part by themselves, as radio links do, however little is sent.

use std::time::Duration;

use thalweg_sim::World;
use thalweg_sim::lane::HostLink;
use thalweg_sim::network::Weather;
use thalweg_sim::plan::{Plan, WriterPlan};
use thalweg_sim::run;
use thalweg_sim::trace::Detail;

use super::congestion::OVERHEAD;
use super::scenario::{at_ms, keep_all, plan, reader, reads_all, writer};

const SAMPLES: u32 = 6;
const SAMPLE_BYTES: usize = 1_000_000;
/// What the link carries, and before it becomes full a queue of 40 ms.
const BITS_PER_SECOND: u64 = 20_000_000;
const QUEUE_BYTES: usize = 100_000;
/// When discovery is over even where a third is lost.
const FIRST_WRITE_MS: u64 = 20_000;

/// How long a few large samples take over a link that loses so much by itself, in times what they would take if the rate were right
/// from the first datagram on.
fn slowness(seed: u64, loss: f64, latency_ms: u64) -> f64 {
    let large = WriterPlan {
        samples: SAMPLES,
        payload_bytes: SAMPLE_BYTES,
        period: Duration::from_micros(10),
        first_write: at_ms(FIRST_WRITE_MS),
        ..writer(0, keep_all(None))
    };
    let mut plan = plan(2, vec![large], vec![reader(1, reads_all(None))]);
    plan.processes.iter_mut().for_each(|process| process.receive_buffer_bytes = 8 << 20);
    plan.patience = Duration::from_secs(600);
    let weather = Weather { loss, latency: Duration::from_millis(latency_ms), ..Weather::CLEAR };
    let links = vec![HostLink::new(BITS_PER_SECOND, QUEUE_BYTES)];
    let outcome = run(Plan { seed, links, weather, ..plan }, Detail::Tail);
    outcome.check_all();
    let reader = &outcome.record().readers[0];
    assert_eq!(reader.values(), SAMPLES as usize);
    let took = reader.taken.last().expect("something arrives").at.since(at_ms(FIRST_WRITE_MS));
    let bits = u64::from(SAMPLES) * SAMPLE_BYTES as u64 * 8 * OVERHEAD / 1_000;
    took.as_secs_f64() * (1.0 - loss) * BITS_PER_SECOND as f64 / bits as f64
}

/// Losses are told late, those of repairs still later. Where they counted against what was sent meanwhile, good and bad rounds took
/// turns, the loss never counted as the path's own, and the rate fell to its lowest.
#[test]
fn a_path_that_loses_a_quarter_by_itself_is_filled_all_the_same() {
    let mut slow = Vec::new();
    for loss in [0.2, 0.25, 0.3] {
        for latency_ms in [1, 5, 20] {
            let mut times: Vec<f64> = (1..=3).map(|seed| slowness(seed, loss, latency_ms)).collect();
            times.sort_by(f64::total_cmp);
            let words = format!("{loss:.2} lost, {latency_ms} ms: {times:.1?} times the ideal");
            println!("{words}");
            if times[2] > 4.0 {
                slow.push(words);
            }
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}

#[test]
fn large_samples_do_not_crawl_over_a_lossy_path() {
    for seed in [118_083, 429_451, 446_519_514, 457_836_504, 800_001_889, 800_016_591, 1_200_004_734, 3_000_002_801] {
        World::new(seed).run().check_all();
    }
}
