//! What busy processors cost a stream: answers are late, and no link is full.

use std::time::Duration;

use thalweg_rtps::rng::Rng;
use thalweg_sim::lane::HostLink;
use thalweg_sim::plan::{PausePlan, Plan, WriterPlan};
use thalweg_sim::run;
use thalweg_sim::trace::Detail;

use super::scenario::{at_ms, keep_all, plan, reader, reads_all, writer};

/// Samples of a kilobyte, as fast as they can be written, between hosts that run 2 to 6 ms at a time and then wait for as long as this.
fn stream(seed: u64, waits_ms: std::ops::Range<u64>) -> Plan {
    let stream = WriterPlan {
        samples: SAMPLES,
        payload_bytes: 1_024,
        period: Duration::from_micros(10),
        ..writer(0, keep_all(Some(4_096)))
    };
    let mut plan = plan(2, vec![stream], vec![reader(1, reads_all(None))]);
    let mut rng = Rng::new(seed);
    for process in 0..2 {
        let mut now = 1_000;
        while now < 30_000 {
            let from = now + 2 + rng.below(5);
            now = from + waits_ms.start + rng.below(waits_ms.end - waits_ms.start);
            plan.pauses.push(PausePlan { process, from: at_ms(from), until: at_ms(now) });
        }
    }
    plan.processes.iter_mut().for_each(|process| process.receive_buffer_bytes = 4 << 20);
    Plan { links: vec![HostLink::new(1_000_000_000, 1 << 20)], ..plan }
}

const SAMPLES: u32 = 20_000;

#[test]
fn a_stream_between_busy_processors_is_not_slowed_down_as_if_a_link_were_full() {
    let mut slow = Vec::new();
    for waits_ms in [5..20, 10..60, 30..120] {
        for seed in 1..=3 {
            let outcome = run(stream(seed, waits_ms.clone()), Detail::Tail);
            let reader = &outcome.record().readers[0];
            let took = reader.taken.last().map_or(Duration::MAX, |last| last.at.since(at_ms(1_000)));
            let words = format!("waits of {waits_ms:?} ms, seed {seed}: {} samples in {took:?}", reader.values());
            println!("{words}");
            if reader.values() < SAMPLES as usize || took > Duration::from_secs(20) {
                slow.push(words);
            }
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}
