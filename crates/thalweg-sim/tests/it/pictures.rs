//! Uncompressed pictures as samples: 5.2 MB thirty times a second, of which only the newest few are kept.

use std::time::Duration;

use thalweg_rtps::flow_control::{Amount, FlowControllerSettings};
use thalweg_rtps::qos::{History, Method, ReaderQos, Reliability, Transmission, WriterQos};
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::SequenceNumber;
use thalweg_sim::lane::HostLink;
use thalweg_sim::network::Weather;
use thalweg_sim::plan::{Plan, WriterPlan};
use thalweg_sim::run;
use thalweg_sim::trace::Detail;

use super::scenario::{plan, reader, writer};

/// 1920 by 1080 pixels of 10 bits, and the head of a sample.
const FRAME_BYTES: usize = 1920 * 1080 / 2 * 5 + 56;
/// 30000/1001 a second.
const PERIOD: Duration = Duration::from_nanos(33_366_667);
const FRAMES: u32 = 12;
/// A frame is of use for two frame times.
const LIFESPAN: Duration = Duration::from_nanos(66_733_333);

/// The way that pictures take.
#[derive(Clone, Copy, Debug)]
struct Way {
    loss: f64,
    /// Datagrams that are lost together.
    run: u32,
    latency: Duration,
    /// The share of a frame time in which a frame leaves; none for at once.
    spread: Option<f64>,
    queue_bytes: usize,
}

/// Ten gigabits a second behind the queue of a network card.
const WAY: Way =
    Way { loss: 0.01, run: 1, latency: Duration::from_micros(50), spread: Some(0.8), queue_bytes: 1_000_000 };

/// The settings of the flow controller that spreads a frame.
fn settings(share: f64) -> FlowControllerSettings {
    // A datagram of 1,472 bytes has 1,304 of a fragment.
    let rate = FRAME_BYTES as f64 / PERIOD.as_secs_f64() * 1.13 / share;
    FlowControllerSettings {
        max_tokens: Amount::Limited((rate / 500.0) as u32 + 65_536),
        tokens_added_per_period: Amount::Limited(rate as u32),
        bytes_per_token: Amount::Limited(1),
        ..FlowControllerSettings::default()
    }
}

/// Sends pictures by a way; each comes while it is of use.
#[track_caller]
fn check(seed: u64, way: Way) {
    let history = History::KeepLast(3);
    let method = way.spread.map_or(Method::Auto, |_| Method::asynchronous(Plan::CONTROLLER));
    let frames = WriterPlan {
        samples: FRAMES,
        payload_bytes: FRAME_BYTES,
        period: PERIOD,
        ..writer(0, WriterQos { history, transmission: Transmission::by(method), ..WriterQos::default() })
    };
    let wanted = ReaderQos { reliability: Reliability::RELIABLE, history, ..ReaderQos::default() };
    let mut plan = plan(2, vec![frames], vec![reader(1, wanted)]);
    plan.processes.iter_mut().for_each(|process| process.receive_buffer_bytes = 8 << 20);
    plan.processes[0].controller = way.spread.map(settings);
    let links = vec![HostLink::new(10_000_000_000, way.queue_bytes)];
    let weather = Weather { loss: way.loss, loss_run: way.run, latency: way.latency, ..Weather::CLEAR };
    let outcome = run(Plan { seed, links, weather, ..plan }, Detail::Tail);
    let record = outcome.record();
    let late = |sequence: SequenceNumber, at: Instant| {
        at.since(record.writers[0].written[usize::try_from(sequence.0 - 1).expect("one of them")].at)
    };
    let taken = &record.readers[0].taken;
    // Nothing follows the last frame: when its end is lost with the HEARTBEAT, a timer has to notice it.
    let last = SequenceNumber(i64::from(FRAMES));
    let valid = || taken.iter().filter(|sample| sample.valid);
    let latest = valid().filter(|sample| sample.sequence < last).map(|sample| late(sample.sequence, sample.at)).max();
    let end = valid().find(|sample| sample.sequence == last).map(|sample| late(sample.sequence, sample.at));
    let counters = record.writers[0].counters;
    assert_eq!(record.readers[0].values(), FRAMES as usize, "seed {seed}, {way:?}: {counters:?}");
    assert!(latest <= Some(LIFESPAN), "seed {seed}, {way:?}: the latest after {latest:?}, {counters:?}");
    assert!(end <= Some(LIFESPAN * 2), "seed {seed}, {way:?}: the last after {end:?}, {counters:?}");
    assert!(way.loss == 0.0 || counters.repaired > 0, "nothing was lost: {counters:?}");
}

#[test]
fn a_reliable_stream_of_pictures_stays_complete_where_a_hundredth_is_lost() {
    check(1, WAY);
    check(2, Way { latency: Duration::from_millis(1), ..WAY });
}

#[test]
fn a_reliable_stream_of_pictures_stays_complete_where_whole_messages_are_lost() {
    // Of 1,472 bytes 44 datagrams are in a message of 64 KB that the kernel hands to its device.
    for seed in 1..=6 {
        check(seed, Way { run: 44, ..WAY });
        check(seed, Way { run: 44, latency: Duration::from_millis(1), ..WAY });
    }
}

#[test]
fn pictures_leave_at_once_where_a_queue_holds_one() {
    check(1, Way { loss: 0.0, spread: None, queue_bytes: 16 << 20, ..WAY });
}
