//! Asynchronous writers under flow controllers, and payloads in segments, over real sockets.

use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use thalweg::flow_controller::{Amount, FlowControllerSettings};
use thalweg::qos::{
    BACKGROUND, Durability, History, Method, ReaderQos, Reliability, ResourceLimits, Transmission, WriterQos,
};
use thalweg::segment::{KeyedSegment, Segment, SegmentReader, SegmentWriter};
use thalweg::{DataReader, Delivery, ErrorKind};

use crate::fixture::*;

const ROLE: &str = "THALWEG_TEST_SINK";
const SAMPLES: usize = 640;
const SAMPLE_BYTES: usize = 32 * 1024;

struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn start_sink(domain: u32, topic: &str) -> Other {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "background::sink", "--nocapture"])
        .env(ROLE, topic)
        .env("THALWEG_TEST_DOMAIN", domain.to_string())
        .stdout(Stdio::null())
        .spawn();
    Other(child.unwrap())
}

/// The other process: tells when each batch of samples has arrived. Without a role, in the test run itself, nothing.
#[test]
fn sink() {
    let Ok(name) = std::env::var(ROLE) else { return };
    let participant = participant(std::env::var("THALWEG_TEST_DOMAIN").unwrap().parse().unwrap());
    let back = participant.create_topic::<Count>(&format!("{name} back"));
    let writer = participant.create_writer(&back, reliable_writer()).unwrap();
    let reader = participant.create_reader(&participant.create_topic::<Shape>(&name), reliable_reader()).unwrap();
    reader.wait_for_matched(1, PATIENCE).unwrap();
    let mut received = 0u64;
    while !reader.matched_writers().is_empty() {
        reader.wait(Duration::from_millis(100));
        for sample in reader.take(usize::MAX).iter().filter(|sample| sample.is_valid()) {
            assert_eq!(sample.data().unwrap().x as u64, received % SAMPLES as u64, "in order");
            received += 1;
            if received.is_multiple_of(SAMPLES as u64) {
                writer.write(&Count { value: received }).unwrap();
            }
        }
    }
}

fn asynchronous(controller: &str) -> WriterQos {
    WriterQos { transmission: Transmission::by(Method::asynchronous(controller)), ..reliable_writer() }
}

#[test]
fn a_background_transfer_takes_the_time_that_its_tokens_say() {
    let (domain, name) = (domain(), unique("background"));
    let _other = start_sink(domain, &name);
    let participant = participant(domain);
    let back = participant.create_topic::<Count>(&format!("{name} back"));
    let echo = participant.create_reader(&back, reliable_reader()).unwrap();
    // 500 tokens of 1,024 bytes in 50 ms are 10.24 MB/s; 40 ms without the processor lose none.
    let settings = FlowControllerSettings {
        max_tokens: Amount::Limited(400),
        tokens_added_per_period: Amount::Limited(500),
        period: Duration::from_millis(50),
        bytes_per_token: Amount::Limited(1_024),
        ..FlowControllerSettings::default()
    };
    let controller = participant.create_flow_controller("link", settings).unwrap();
    let topic = participant.create_topic::<Shape>(&name);
    let writer = participant.create_writer(&topic, asynchronous("link")).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    echo.wait_for_matched(1, PATIENCE).unwrap();
    let shapes: Vec<Shape> =
        (0..SAMPLES).map(|x| Shape { payload: vec![x as u8; SAMPLE_BYTES], ..Shape::new("BULK", x as i32) }).collect();
    // What disturbs this machine can only make a transfer slower: one of a few is undisturbed.
    let mut ratios = Vec::new();
    for _ in 0..4 {
        let before = controller.counters().unwrap().bytes_sent;
        let start = Instant::now();
        shapes.iter().for_each(|shape| _ = writer.write(shape).unwrap());
        let written = start.elapsed();
        assert!(controller.counters().unwrap().bytes_waiting > 10_000_000, "it waits for its tokens");
        assert_eq!(take(&echo, 1)[0].data().unwrap().value % SAMPLES as u64, 0);
        let took = start.elapsed().as_secs_f64();
        let sent = (controller.counters().unwrap().bytes_sent - before) as f64;
        assert!(sent > (SAMPLES * SAMPLE_BYTES) as f64 && sent < 1.2 * (SAMPLES * SAMPLE_BYTES) as f64);
        let expect = (sent - 400.0 * 1_024.0) / 10_240_000.0;
        assert!(took > 0.9 * expect, "{took} s instead of {expect} s");
        assert!(written.as_secs_f64() < took / 2.0, "write() returned after {written:?} of {took} s");
        ratios.push(took / expect);
        if took < 1.1 * expect {
            return;
        }
    }
    panic!("no transfer took the time that its tokens say: {ratios:.2?}");
}

#[test]
fn new_settings_hurry_a_transfer_that_runs() {
    let domain = domain();
    let (here, there) = (participant(domain), participant(domain));
    let slow = FlowControllerSettings::bytes_per_second(10_000);
    let controller = here.create_flow_controller("slow", slow).unwrap();
    let name = unique("hurry");
    let writer = here.create_writer(&here.create_topic::<Shape>(&name), asynchronous("slow")).unwrap();
    let reader = there.create_reader(&there.create_topic::<Shape>(&name), reliable_reader()).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    reader.wait_for_matched(1, PATIENCE).unwrap();
    for x in 0..20 {
        writer.write(&Shape { payload: vec![0; 100_000], ..Shape::new("BULK", x) }).unwrap();
    }
    assert!(!writer.wait_for_acknowledgments(Duration::from_millis(300)).is_ok_and(|()| true), "200 s at this rate");
    assert_eq!(controller.counters().unwrap().writers_waiting, 1);
    controller.set(FlowControllerSettings::default()).unwrap();
    assert_eq!(take(&reader, 20).len(), 20);
    assert_eq!(controller.counters().unwrap().tokens, None);
}

#[test]
fn controllers_have_names_and_errors_that_tell_them() {
    let participant = participant(domain());
    let background = participant.flow_controller(BACKGROUND).unwrap();
    assert_eq!(background.settings().unwrap(), FlowControllerSettings::background());
    assert_eq!(background.delete().unwrap_err().kind(), ErrorKind::PreconditionNotMet);
    let topic = participant.create_topic::<Count>(&unique("named"));
    let error = participant.create_writer(&topic, asynchronous("bulk")).unwrap_err();
    assert!(error.to_string().contains("\"background\""), "{error}");
    let nothing = FlowControllerSettings { max_tokens: Amount::Limited(0), ..FlowControllerSettings::default() };
    let error = participant.create_flow_controller("bulk", nothing).unwrap_err();
    assert_eq!(error.to_string(), "create_flow_controller failed: max_tokens 0: nothing fits; hold at least 1 token");
    assert_eq!(error.kind(), ErrorKind::InconsistentPolicy);
    let bulk = participant.create_flow_controller("bulk", FlowControllerSettings::bytes_per_second(1_000)).unwrap();
    assert_eq!(participant.flow_controllers(), ["background", "bulk"]);
    let writer = participant.create_writer(&topic, asynchronous("bulk")).unwrap();
    assert_eq!(bulk.delete().unwrap_err().kind(), ErrorKind::PreconditionNotMet);
    drop(writer);
    bulk.delete().unwrap();
    let gone = participant.flow_controller("bulk").unwrap_err().to_string();
    assert!(gone.contains("[\"background\"]"), "{gone}");
    assert_eq!(bulk.counters().unwrap_err().kind(), ErrorKind::BadParameter);
}

#[test]
fn a_full_history_holds_back_asynchronous_writes_until_samples_are_acknowledged() {
    let domain = domain();
    let (here, there) = (participant(domain), participant(domain));
    let name = unique("full");
    let mut qos = asynchronous(BACKGROUND);
    qos.resource_limits.max_samples = Some(4);
    let writer = here.create_writer(&here.create_topic::<Shape>(&name), qos).unwrap();
    let reader = there.create_reader(&there.create_topic::<Shape>(&name), reliable_reader()).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    reader.wait_for_matched(1, PATIENCE).unwrap();
    for x in 0..40 {
        writer.write(&Shape { payload: vec![0; 30_000], ..Shape::new("BULK", x) }).unwrap();
    }
    let samples = take(&reader, 40);
    assert!(samples.iter().enumerate().all(|(x, sample)| sample.data().unwrap().x == x as i32));
}

fn bytes_of(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index.wrapping_mul(2_654_435_761) >> 11) as u8).collect()
}

#[test]
fn payloads_in_segments_of_several_writers_arrive_whole_and_in_order() {
    let domain = domain();
    let (here, there) = (participant(domain), participant(domain));
    let name = unique("segments");
    let topic = here.create_topic::<Segment>(&name);
    let mut reader =
        SegmentReader::new(there.create_reader(&there.create_topic::<Segment>(&name), reliable_reader()).unwrap());
    let writers: Vec<_> = [1_000, 32_768, 1 << 20]
        .map(|bytes| SegmentWriter::new(here.create_writer(&topic, reliable_writer()).unwrap(), bytes).unwrap())
        .into();
    reader.reader().wait_for_matched(3, PATIENCE).unwrap();
    writers.iter().for_each(|writer| writer.writer().wait_for_matched(1, PATIENCE).unwrap());
    let sizes = [0, 1, 999, 1_000, 1_001, 300_000, 3_000_000];
    std::thread::scope(|scope| {
        for writer in &writers {
            scope.spawn(|| sizes.iter().for_each(|size| _ = writer.write(&bytes_of(*size)).unwrap()));
        }
        let mut next = std::collections::HashMap::new();
        for _ in 0..3 * sizes.len() {
            let transfer = reader.wait(PATIENCE).expect("a payload");
            let number = next.entry(transfer.source).or_insert(1);
            assert_eq!(transfer.number, *number);
            assert!(transfer.bytes == bytes_of(sizes[*number as usize - 1]), "payload {number}");
            *number += 1;
        }
    });
    assert_eq!((reader.counters().incomplete, reader.unfinished_bytes()), (0, 0));
}

/// Readers took the payloads of its second life for those of the first, repeated.
#[test]
fn a_writer_whose_history_goes_on_sends_payloads_of_its_own() {
    let participant = participant(domain());
    let topic = participant.create_topic::<Segment>(&unique("segments again"));
    let mut reader = SegmentReader::new(participant.create_reader(&topic, reliable_reader()).unwrap());
    let mut numbers = Vec::new();
    for life in 1..=3 {
        let qos = WriterQos { durability: Durability::Transient, ..reliable_writer() };
        let writer = SegmentWriter::new(participant.create_writer(&topic, qos).unwrap(), 1_000).unwrap();
        writer.writer().wait_for_matched(1, PATIENCE).unwrap();
        let number = writer.write(&bytes_of(2_500 + life)).unwrap();
        let transfer = reader.wait(PATIENCE).expect("a payload");
        assert_eq!((transfer.bytes.len(), transfer.number), (2_500 + life, number));
        numbers.push(number);
    }
    assert_eq!(numbers, [1, 4, 7], "three segments each");
}

#[test]
fn samples_travel_in_segments_of_a_keyed_topic_in_the_background() {
    let domain = domain();
    let (here, there) = (participant(domain), participant(domain));
    let name = unique("keyed segments");
    let data_reader = there.create_reader(&there.create_topic::<KeyedSegment>(&name), reliable_reader()).unwrap();
    let mut reader = SegmentReader::new(data_reader);
    let writer = here.create_writer(&here.create_topic::<KeyedSegment>(&name), asynchronous(BACKGROUND)).unwrap();
    let writer = SegmentWriter::new(writer, 10_000).unwrap();
    reader.reader().wait_for_matched(1, PATIENCE).unwrap();
    writer.writer().wait_for_matched(1, PATIENCE).unwrap();
    let shape = Shape { payload: bytes_of(200_000), ..Shape::new("RED", 5) };
    writer.write_sample(&shape).unwrap();
    let transfer = reader.wait(PATIENCE).unwrap();
    assert_eq!(transfer.source, writer.source());
    assert!(transfer.decode::<Shape>().unwrap() == shape);
}

#[test]
fn best_effort_payloads_that_lose_segments_are_dropped_and_counted() {
    let domain = domain();
    let (here, there) = (participant(domain), participant(domain));
    let name = unique("lossy segments");
    // A reader that keeps two segments and is not asked in between loses most.
    let qos = ReaderQos { history: History::KeepLast(2), ..ReaderQos::default() };
    let mut reader = SegmentReader::new(there.create_reader(&there.create_topic::<Segment>(&name), qos).unwrap());
    let qos = WriterQos { reliability: Reliability::BestEffort, history: History::KeepAll, ..WriterQos::default() };
    let writer = here.create_writer(&here.create_topic::<Segment>(&name), qos).unwrap();
    let writer = SegmentWriter::new(writer, 1_000).unwrap();
    reader.reader().wait_for_matched(1, PATIENCE).unwrap();
    writer.writer().wait_for_matched(1, PATIENCE).unwrap();
    writer.write(&bytes_of(20_000)).unwrap();
    eventually("the segments arrived", || reader.reader().overwritten() >= 18);
    writer.write(&bytes_of(1_500)).unwrap();
    let transfer = reader.wait(PATIENCE).unwrap();
    assert!(transfer.number == 2 && transfer.bytes == bytes_of(1_500));
    assert!(
        SegmentWriter::new(here.create_writer(&here.create_topic::<Segment>("x"), WriterQos::default()).unwrap(), 0)
            .is_err()
    );
}

#[test]
fn an_inline_listener_does_not_wait_for_a_payload_of_another_thread() {
    let resource_limits = ResourceLimits { max_samples: Some(4), ..ResourceLimits::default() };
    let limited = WriterQos { resource_limits, ..reliable_writer() };
    let narrow = ReaderQos { resource_limits, ..reliable_reader() };
    let Pair { writer, reader, participants: (here, there) } = pair::<Segment>("turns", limited, narrow);
    let writer = Arc::new(SegmentWriter::new(writer, 1_000).unwrap());
    let (sender, heard) = mpsc::channel();
    let (other, back) = (Arc::clone(&writer), unique("back"));
    let asked = here.create_reader(&here.create_topic::<Shape>(&back), reliable_reader()).unwrap();
    let listener =
        move |_: &DataReader<Shape>| sender.send(other.write(&[1; 10]).map_err(|error| error.kind())).unwrap();
    asked.on_data(Delivery::Inline, listener).unwrap();
    let asks = there.create_writer(&there.create_topic::<Shape>(&back), reliable_writer()).unwrap();
    asks.wait_for_matched(1, PATIENCE).unwrap();
    std::thread::scope(|scope| {
        let long = scope.spawn(|| writer.write(&[2; 500_000]));
        eventually("its turn lasts", || writer.writer().counters().refused > 0);
        asks.write(&Shape::new("A", 1)).unwrap();
        assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), Err(ErrorKind::Timeout));
        while !long.is_finished() {
            reader.wait(Duration::from_millis(10));
            reader.take(usize::MAX);
        }
        long.join().unwrap().unwrap();
    });
}
