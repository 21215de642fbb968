//! One reader follows beside the writer, while the link to another carries less than is written.

use std::time::Duration;

use thalweg_sim::lane::{HostLink, Lane};
use thalweg_sim::network::Weather;
use thalweg_sim::plan::{Plan, WriterPlan};
use thalweg_sim::run;
use thalweg_sim::trace::Detail;

use super::congestion::OVERHEAD;
use super::scenario::{at_ms, keep_all, plan, reader, reads_all, writer};

const BITS_PER_SECOND: u64 = 20_000_000;
const FIRST_WRITE_MS: u64 = 1_000;

/// What a reader behind a link got.
#[derive(Debug)]
struct Course {
    /// How long it took, in times what the link needs for everything.
    slowness: f64,
    /// What its queue dropped, as a part of what it carried.
    dropped: f64,
}

fn course(samples: u32, payload_bytes: usize, period: Duration, queue_bytes: usize) -> Course {
    let stream =
        WriterPlan { samples, payload_bytes, period, first_write: at_ms(FIRST_WRITE_MS), ..writer(0, keep_all(None)) };
    let readers = vec![reader(1, reads_all(None)), reader(2, reads_all(None))];
    let mut plan = plan(3, vec![stream], readers);
    (plan.processes[1].host, plan.processes[2].host) = (0, 1);
    plan.processes.iter_mut().for_each(|process| process.receive_buffer_bytes = 8 << 20);
    plan.patience = Duration::from_secs(600);
    let inbound = Lane { bits_per_second: BITS_PER_SECOND, queue_bytes };
    let links = vec![HostLink::UNLIMITED, HostLink { inbound, ..HostLink::UNLIMITED }];
    let weather = Weather { latency: Duration::from_millis(20), ..Weather::CLEAR };
    let outcome = run(Plan { links, weather, ..plan }, Detail::Tail);
    outcome.check_all();
    let record = outcome.record();
    let [follower, laggard] = [0, 1].map(|number| record.readers[number].taken.last().expect("it arrives").at);
    assert!(follower < laggard, "one follows");
    let bits = u64::from(samples) * payload_bytes as u64 * 8 * OVERHEAD / 1_000;
    let took = laggard.since(at_ms(FIRST_WRITE_MS)).as_secs_f64();
    let lane = record.lanes[1].inbound;
    Course {
        slowness: took * BITS_PER_SECOND as f64 / bits as f64,
        dropped: lane.dropped_bytes as f64 / lane.bytes as f64,
    }
}

/// What is new must not take the link that the reader behind it needs for what it lacks: it was dropped for the most part, and the rest
/// of the repairs with it. Large samples crawled at the lowest rate, 50 times slower, since those that were only to be repaired counted as
/// repaired and lost.
#[test]
fn a_reader_that_cannot_follow_gets_what_it_lacks_as_fast_as_its_link_carries() {
    let mut poor = Vec::new();
    for (samples, bytes, period_us, queue_bytes) in
        [(120, 100_000, 33_000, 10_000), (120, 100_000, 33_000, 30_000), (8_000, 1_000, 200, 30_000)]
    {
        let course = course(samples, bytes, Duration::from_micros(period_us), queue_bytes);
        let words = format!("{samples} x {bytes} B behind {queue_bytes} B: {course:.2?}");
        println!("{words}");
        if course.slowness > 2.0 || course.dropped > 0.4 {
            poor.push(words);
        }
    }
    assert!(poor.is_empty(), "{poor:#?}");
}
