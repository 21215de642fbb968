use std::time::Duration;

use thalweg_lab_station::Latencies;

use super::*;
use crate::order::{Fragments, Joining, VERSION};
use crate::reports::{ReceivedReport, SentReport};

fn order(protocol: ProbeProtocol, shape: Shape) -> ProbeOrder {
    ProbeOrder {
        version: VERSION,
        protocol,
        shape,
        size_bytes: 1_000,
        streams: 2,
        duration_ms: 2_000,
        joining: Joining::Both,
        fragments: Fragments::Refused,
        receive_buffer_bytes: None,
        segment_mtu_bytes: None,
    }
}

/// The figures of two streams, by datagrams offered and received of each.
fn figures(protocol: ProbeProtocol, offered: [u64; 2], received: [u64; 2]) -> Result<ProbeFigures, ProbeError> {
    let bytes = |counts: [u64; 2]| counts[0].wrapping_add(counts[1]).wrapping_mul(1_000);
    let sent = SentReport {
        offered: offered.to_vec(),
        bytes: bytes(offered),
        seconds: 2.0,
        not_sent: 1,
        ..SentReport::default()
    };
    let got = ReceivedReport {
        received: received.to_vec(),
        bytes: bytes(received),
        seconds: 2.0,
        ..ReceivedReport::default()
    };
    let second = |start_s, bytes| ProbeSecond { start_s, seconds: 1.0, bytes, ..ProbeSecond::default() };
    ProbeFigures::of_stream(
        &order(protocol, Shape::Stream { direction: StreamDirection::ToServer, rate_bit_per_s: Some(8e6) }),
        EndReport { sent: Some(sent), ..EndReport::default() },
        EndReport { received: Some(got), socket_drops: 3, ..EndReport::default() },
        vec![second(0.0, 1_000_000), second(1.0, 1_500_000), second(2.0, 5)],
    )
}

#[test]
fn what_was_received_and_what_was_lost_are_what_was_offered() {
    let ProbeFigures::Stream(stream) = figures(ProbeProtocol::Udp, [1_000, 1_000], [1_000, 980]).unwrap() else {
        panic!()
    };
    let expect = DatagramFigures { offered: 2_000, received: 1_980, lost: 20, lost_percent: 1.0, lost_at_sender: 1 };
    assert_eq!(stream.datagrams, Some(expect));
    assert_eq!((stream.sent_mbit_per_s, stream.goodput_mbit_per_s), (8.0, 7.92));
    // Windows of 8 and 12 Mbit/s; the third is the tail's.
    assert!((stream.goodput_mbit_per_s_sd.unwrap() - 8_f64.sqrt()).abs() < 1e-9);
}

#[test]
fn ends_that_contradict_each_other_give_no_figures() {
    let told = figures(ProbeProtocol::Udp, [1_000, 1_000], [1_001, 0]).unwrap_err().to_string();
    assert_eq!(told, "stream 0 sent 1000 datagrams and 1001 arrived");
    let told = figures(ProbeProtocol::Tcp, [10, 10], [10, 9]).unwrap_err().to_string();
    assert_eq!(told, "20000 B were sent by TCP and 19000 B arrived");
    assert!(figures(ProbeProtocol::Udp, [u64::MAX, 5], [0, 0]).is_ok(), "a peer's counts overflow nothing");
}

#[test]
fn names_of_numbers_end_with_their_unit() {
    let stream = serde_json::to_value(figures(ProbeProtocol::Udp, [10, 10], [10, 10]).unwrap()).unwrap();
    let trips = ProbeFigures::of_round_trips(
        &order(ProbeProtocol::Udp, Shape::RoundTrips),
        &RoundTripTotals::default(),
        EndReport::default(),
        EndReport::default(),
    );
    // What counts things bears their name.
    let counts = [
        "streams",
        "offered",
        "received",
        "lost",
        "lost_at_sender",
        "not_sent",
        "calls",
        "segmented_messages",
        "duplicates",
        "reordered",
        "outdated",
        "foreign",
        "joined_messages",
        "overflow_drops",
        "socket_drops",
        "datagrams",
        "missing",
        "round_trips",
    ];
    let units = [
        "_bytes",
        "bytes",
        "seconds",
        "_seconds",
        "_s",
        "_us",
        "_us_max",
        "_percent",
        "_share",
        "_s_sd",
        "seconds_asked",
    ];
    let mut numbers = 0;
    for figures in [stream, serde_json::to_value(trips).unwrap()] {
        visit("", &figures, &mut |name| {
            numbers += 1;
            assert!(counts.contains(&name) || units.iter().any(|unit| name.ends_with(unit)), "{name} has no unit");
        });
    }
    assert!(numbers > 40, "{numbers}");
}

fn visit(name: &str, value: &serde_json::Value, number: &mut impl FnMut(&str)) {
    match value {
        serde_json::Value::Object(fields) => fields.iter().for_each(|(name, value)| visit(name, value, number)),
        serde_json::Value::Array(values) => values.iter().for_each(|value| visit(name, value, number)),
        serde_json::Value::Number(_) => number(name),
        _ => {}
    }
}

#[test]
fn round_trips_of_all_streams_are_one_distribution() {
    let of = |micros: std::ops::Range<u64>| {
        let mut latencies = Latencies::new();
        micros.for_each(|micros| latencies.record(Duration::from_micros(micros)));
        latencies
    };
    let mut totals = RoundTripTotals::default();
    totals.add(&of(1..51), 1, Duration::from_secs(1));
    totals.add(&of(51..101), 0, Duration::from_secs(2));
    let order = order(ProbeProtocol::Tcp, Shape::RoundTrips);
    let figures = ProbeFigures::of_round_trips(&order, &totals, EndReport::default(), EndReport::default());
    let ProbeFigures::RoundTrips(figures) = figures else { panic!() };
    assert_eq!((figures.round_trips, figures.lost, figures.round_trips_per_s), (100, 1, 75.0));
    assert_eq!((figures.min_us, figures.mean_us, figures.max_us), (1.0, 50.5, 100.0));
    assert!((figures.p90_us.unwrap() - 90.0).abs() < 0.1 && figures.p99_us.is_none());
}

#[test]
fn people_are_told_what_was_lost_and_where() {
    let text = figures(ProbeProtocol::Udp, [1_000, 1_000], [1_000, 980]).unwrap().to_text();
    for part in [
        "UDP to the server, 1000 B, 2 streams: 7.9 Mbit/s arrived",
        "20 lost (1.0000 %), of these 1 at the sender",
        "sockets were full 3 times: raise --receive-buffer",
        "no layer counted a loss",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}
