use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use thalweg::qos::{Durability, ReaderQos, WriterQos};
use thalweg::types::Keyed;
use thalweg::{DomainParticipant, Raw, Topic};

use super::*;

fn participant() -> DomainParticipant {
    let tag = format!("metrics-{}-{:?}", std::process::id(), std::thread::current().id());
    DomainParticipant::builder(0).loopback_only().domain_tag(tag).create().expect("a participant")
}

fn topic(participant: &DomainParticipant, name: &str) -> Topic<Raw> {
    participant.create_raw_topic(name, "T", Keyed::No, None)
}

fn scrape(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    answer
}

#[test]
fn what_an_endpoint_did_is_told_by_topic_while_the_participant_lives() {
    let participant = participant();
    let one = topic(&participant, "one");
    let reader = participant.create_reader(&one, ReaderQos::default()).expect("a reader");
    let writer = participant.create_writer(&one, WriterQos::default()).expect("a writer");
    writer.wait_for_matched(1, Duration::from_secs(20)).expect("matched");
    writer.write_serialized(&[0, 1, 0, 0, 7]).expect("written");
    assert!(reader.wait(Duration::from_secs(20)));
    let source = participant.figure_source();
    let read = source.clone();
    let text = move || read.read().map(|figures| participant_metrics(&figures));
    let server = MetricsServer::start(([127, 0, 0, 1], 0).into(), text, MetricsServer::spawn).expect("started");
    let answer = scrape(server.address());
    for line in [
        "# TYPE thalweg_samples_sent counter",
        "thalweg_samples_sent_total{topic=\"one\"} 1",
        "thalweg_samples_received_total{topic=\"one\"} 1",
        "thalweg_samples_lost_total{topic=\"one\",reason=\"never_arrived\"} 0",
        "thalweg_reader_waiting{topic=\"one\"} 1.0",
        "thalweg_endpoints{kind=\"writer\"} 1.0",
        "thalweg_datagrams_lost_total{where=\"kernel\"} ",
        "# EOF",
    ] {
        assert!(answer.contains(line), "{line} is not in\n{answer}");
    }
    drop((reader, writer, participant));
    assert!(source.read().is_none());
    let until = Instant::now() + Duration::from_secs(20);
    while !scrape(server.address()).starts_with("HTTP/1.1 503") {
        assert!(Instant::now() < until, "it tells of a participant that is gone");
    }
}

/// The value of a series now.
#[track_caller]
fn value(participant: &DomainParticipant, series: &str) -> f64 {
    let text = participant_metrics(&participant.figure_source().read().expect("it lives"));
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{series} is not in\n{text}")).parse().expect("a number")
}

const SENT: &str = "thalweg_samples_sent_total{topic=\"one\"}";
const RECEIVED: &str = "thalweg_samples_received_total{topic=\"one\"}";

/// Sends a sample from a new writer to a new reader, and deletes both.
fn exchange_one(participant: &DomainParticipant, qos: WriterQos) {
    let one = topic(participant, "one");
    let reader = participant.create_reader(&one, ReaderQos::default()).expect("a reader");
    let writer = participant.create_writer(&one, qos).expect("a writer");
    writer.wait_for_matched(1, Duration::from_secs(20)).expect("matched");
    let before = value(participant, SENT);
    writer.write_serialized(&[0, 1, 0, 0, 7]).expect("written");
    assert!(reader.wait(Duration::from_secs(20)));
    assert!(value(participant, SENT) >= before + 1.0);
}

#[test]
fn counts_of_a_topic_never_go_back_when_its_endpoints_are_deleted() {
    let participant = participant();
    for count in 1..=3 {
        exchange_one(&participant, WriterQos::default());
        assert_eq!([SENT, RECEIVED].map(|series| value(&participant, series)), [f64::from(count); 2]);
        assert_eq!(value(&participant, "thalweg_writer_held{topic=\"one\"}"), 0.0, "levels are those of today");
    }
}

#[test]
fn a_writer_that_goes_on_with_a_history_does_not_count_again_what_the_last_one_did() {
    let participant = participant();
    let qos = WriterQos::default().durability(Durability::Transient).keep_last(1);
    for count in 1..=3 {
        exchange_one(&participant, qos.clone());
        let received = value(&participant, RECEIVED);
        assert_eq!((value(&participant, SENT), received), (f64::from(count), f64::from(count)));
    }
}

#[test]
fn a_topic_with_a_name_of_its_own_keeps_it_whatever_comes() {
    let participant = participant();
    let write =
        |name: &str| participant.create_writer(&topic(&participant, name), WriterQos::default()).expect("a writer");
    let mut writers: Vec<_> = (0..256).map(|number| write(&format!("t{number:03}"))).collect();
    let told = || {
        let text = participant_metrics(&participant.figure_source().read().expect("it lives"));
        ["t255", "a", "(others)"].map(|name| text.contains(&format!("thalweg_writer_held{{topic=\"{name}\"}}")))
    };
    assert_eq!(told(), [true, false, false]);
    writers.push(write("a"));
    assert_eq!(told(), [true, false, true], "it would be the first by name");
    writers.remove(0);
    assert_eq!(told(), [true, false, true], "nobody takes the place of a deleted one");
}

#[test]
fn topics_beyond_the_bound_are_summed() {
    let participant = participant();
    let writers: Vec<_> = (0..260)
        .map(|number| participant.create_writer(&topic(&participant, &format!("t{number:03}")), WriterQos::default()))
        .collect();
    assert!(writers.iter().all(Result::is_ok));
    let text = participant_metrics(&participant.figure_source().read().expect("it lives"));
    let lines = text.lines().filter(|line| line.starts_with("thalweg_writer_held{")).collect::<Vec<_>>();
    assert_eq!((lines.len(), *lines.last().expect("lines")), (257, "thalweg_writer_held{topic=\"(others)\"} 0.0"));
}

fn server(text: &str) -> MetricsServer {
    let text = text.to_owned();
    let read = move || Some(text.clone());
    MetricsServer::start(([127, 0, 0, 1], 0).into(), read, MetricsServer::spawn).expect("started")
}

#[test]
fn clients_that_say_or_read_nothing_keep_no_scraper_waiting() {
    let server = server(&"x".repeat(8 << 20));
    let silent: Vec<TcpStream> = (0..500).map(|_| TcpStream::connect(server.address()).expect("connected")).collect();
    let deaf: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address()).expect("connected");
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("written");
            stream
        })
        .collect();
    let begun = Instant::now();
    let answer = scrape(server.address());
    assert!(answer.starts_with("HTTP/1.1 200") && answer.len() > 8 << 20);
    assert!(begun.elapsed() < Duration::from_millis(1_900), "{:?}", begun.elapsed());
    drop((silent, deaf));
}

#[test]
fn a_client_that_drips_is_ended_in_two_seconds() {
    let server = server("x");
    let mut slow = TcpStream::connect(server.address()).expect("connected");
    slow.set_read_timeout(Some(Duration::from_millis(100))).expect("set");
    let begun = Instant::now();
    let ended = loop {
        if slow.write_all(b"G").is_err() || matches!(slow.read(&mut [0; 16]), Ok(0)) {
            break begun.elapsed();
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "it is still there");
    };
    assert!(ended > Duration::from_secs(1), "{ended:?}");
}

#[test]
fn a_request_that_is_too_long_is_told_so() {
    let server = server("x");
    let mut stream = TcpStream::connect(server.address()).expect("connected");
    stream.write_all(format!("GET /{} HTTP/1.1\r\n", "y".repeat(60_000)).as_bytes()).expect("written");
    stream.shutdown(Shutdown::Write).expect("shut down");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer, and not its loss");
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[test]
fn a_flood_of_requests_asks_for_the_figures_ten_times_a_second_at_most() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let read = move || Some(count.fetch_add(1, Ordering::Relaxed).to_string());
    let server = MetricsServer::start(([127, 0, 0, 1], 0).into(), read, MetricsServer::spawn).expect("started");
    let begun = Instant::now();
    (0..200).for_each(|_| assert!(scrape(server.address()).starts_with("HTTP/1.1 200")));
    let most = 1 + usize::try_from(begun.elapsed().as_millis() / 100).expect("a number");
    assert!(asked.load(Ordering::Relaxed) <= most, "{asked:?} of {most}");
}
