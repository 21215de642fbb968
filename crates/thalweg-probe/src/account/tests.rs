use std::time::Duration;

use thalweg_base::time::Instant;

use super::*;
use crate::order::{Fragments, Joining, ProbeOrder, ProbeProtocol, Shape, StreamDirection, VERSION};

const TOKEN: u32 = 7;

fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1_000)
}

fn datagram(number: u64, sent_us: u32) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes[..HEADER_BYTES].copy_from_slice(&DatagramHeader { number, token: TOKEN, sent_us }.to_wire());
    bytes
}

fn arrivals(numbers: impl IntoIterator<Item = u64>) -> ArrivalCounts {
    let mut arrivals = Arrivals::new(TOKEN, 20);
    numbers.into_iter().for_each(|number| arrivals.handle_datagram(at(number % 1_000), &datagram(number, 0)));
    arrivals.counts()
}

#[test]
fn a_head_survives_the_wire_and_a_short_datagram_has_none() {
    let header = DatagramHeader { number: 0x0102_0304_0506_0708, token: 0x090a_0b0c, sent_us: 0x0d0e_0f10 };
    assert_eq!(DatagramHeader::from_wire(&header.to_wire()), Some(header));
    assert_eq!(DatagramHeader::from_wire(&header.to_wire()[..15]), None);
}

/// Received, duplicates, reordered, outdated and the next number after these arrivals.
#[track_caller]
fn check(numbers: impl IntoIterator<Item = u64>, expect: [u64; 5]) {
    let counts = arrivals(numbers);
    assert_eq!([counts.received, counts.duplicates, counts.reordered, counts.outdated, counts.next], expect);
    assert_eq!(counts.bytes, 20 * counts.received);
}

#[test]
fn every_fate_is_told_apart() {
    check([], [0; 5]);
    check([0, 1, 2], [3, 0, 0, 0, 3]);
    check([2, 0, 0, 1, 2], [3, 2, 2, 0, 3]);
    check((0..1000).filter(|number| number % 100 != 99), [990, 0, 0, 0, 999]);
}

#[test]
fn the_window_moves_and_what_left_it_is_not_believed() {
    check((0..3 * WINDOW).chain(2 * WINDOW..3 * WINDOW), [3 * WINDOW, WINDOW, 0, 0, 3 * WINDOW]);
    check([0, WINDOW, 0], [2, 0, 0, 1, WINDOW + 1]);
    check([0, WINDOW - 1, 0], [2, 1, 0, 0, WINDOW]);
    check([5, 5 + WINDOW, 6], [3, 0, 1, 0, 6 + WINDOW]);
    // The places of what is skipped are free again.
    check(
        (0..WINDOW).chain([2 * WINDOW - 1]).chain(WINDOW..2 * WINDOW - 1),
        [2 * WINDOW, 0, WINDOW - 1, 0, 2 * WINDOW],
    );
    check([u64::MAX - 1, 0], [1, 0, 0, 1, u64::MAX]);
}

#[test]
fn what_is_not_of_the_stream_counts_nothing() {
    let mut arrivals = Arrivals::new(TOKEN, 20);
    let mut strange = datagram(0, 0);
    strange[8] = 8;
    arrivals.handle_datagram(at(1), &strange);
    arrivals.handle_datagram(at(1), &datagram(0, 0)[..19]);
    arrivals.handle_datagram(at(1), &[]);
    arrivals.handle_datagram(at(1), &datagram(u64::MAX, 0));
    assert_eq!(arrivals.counts(), ArrivalCounts { foreign: 4, ..ArrivalCounts::default() });
    assert_eq!(arrivals.span(), None);
}

#[test]
fn jitter_is_that_of_rfc_3550_and_needs_no_common_clock() {
    let mut steady = Arrivals::new(TOKEN, 20);
    // The sender's clock is about to wrap and is elsewhere.
    let sent = |number: u64| (u32::MAX - 50).wrapping_add(number as u32 * 100);
    (0..10).for_each(|number| steady.handle_datagram(at(1_000 + number * 100), &datagram(number, sent(number))));
    assert_eq!(steady.jitter_us(), 0.0);
    steady.handle_datagram(at(2_160), &datagram(10, sent(10)));
    assert_eq!(steady.jitter_us(), 160.0 / 16.0);
    assert_eq!(steady.duration(), Duration::from_micros(1_160));
}

fn order(protocol: ProbeProtocol, size_bytes: u32, streams: u32, rate: f64) -> ProbeOrder {
    ProbeOrder {
        version: VERSION,
        protocol,
        shape: Shape::Stream { direction: StreamDirection::ToServer, rate_bit_per_s: Some(rate) },
        size_bytes,
        streams,
        duration_ms: 1_000,
        joining: Joining::Both,
        fragments: Fragments::Refused,
        receive_buffer_bytes: None,
        segment_mtu_bytes: None,
    }
}

#[test]
fn a_schedule_offers_the_rate_over_all_streams() {
    for (streams, rate, size, each) in [(1, 8e6, 1_000, 1_000), (4, 8e6, 1_000, 250), (3, 1.2e9, 1_000, 50_000)] {
        for stream in 0..streams {
            let schedule = SendSchedule::of(&order(ProbeProtocol::Udp, size, streams, rate), stream, at(0)).unwrap();
            assert_eq!(schedule.count(), each, "{streams} streams");
            assert!(schedule.due(schedule.count() - 1) < at(1_000_000));
        }
    }
    let spread: Vec<_> = (0..4)
        .map(|stream| SendSchedule::of(&order(ProbeProtocol::Udp, 1_000, 4, 8e6), stream, at(0)).unwrap().due(1))
        .collect();
    assert_eq!(spread, [4_000, 5_000, 6_000, 7_000].map(at));
}

#[test]
fn messages_leave_when_they_are_due_in_bursts_of_a_bounded_time() {
    // One each 8 µs, 25 in a burst time.
    let fast = SendSchedule::of(&order(ProbeProtocol::Udp, 1_000, 1, 1e9), 0, at(100)).unwrap();
    assert_eq!([fast.ready(at(99), 0), fast.ready(at(100), 0), fast.ready(at(100), 1)], [0, 25, 0]);
    assert_eq!(
        [fast.ready(at(100 + 400), 0), fast.ready(at(500_000), 0)],
        [51, 64],
        "a late one catches up by the call"
    );
    assert_eq!([fast.ready(at(2_000_000), 124_990), fast.ready(at(2_000_000), 125_000)], [10, 0]);
    let slow = SendSchedule::of(&order(ProbeProtocol::Udp, 1_000, 1, 8e6), 0, at(0)).unwrap();
    assert_eq!([slow.ready(at(0), 0), slow.ready(at(999), 1), slow.ready(at(1_000), 1)], [1, 0, 1]);
    let stream = SendSchedule::of(&order(ProbeProtocol::Tcp, 1_000, 1, 1e9), 0, at(0)).unwrap();
    assert_eq!(stream.ready(at(0), 0), 1);
}
