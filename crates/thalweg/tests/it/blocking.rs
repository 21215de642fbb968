//! Writers that wait for room, and calls that wait for answers.

use std::time::{Duration, Instant};

use thalweg::qos::{Durability, History, ReaderQos, Reliability, ResourceLimits, WriterQos};
use thalweg::{Delivery, ErrorKind, ReadFilter};

use crate::fixture::*;

fn limits(samples: u32) -> ResourceLimits {
    ResourceLimits { max_samples: Some(samples), ..ResourceLimits::default() }
}

#[test]
fn a_full_keep_all_history_blocks_and_loses_nothing() {
    let writer_qos = WriterQos { resource_limits: limits(10), ..reliable_writer() };
    let reader_qos = ReaderQos { resource_limits: limits(10), ..reliable_reader() };
    let Pair { writer, reader, participants: _alive } = pair::<Count>("full", writer_qos, reader_qos);
    std::thread::scope(|scope| {
        scope.spawn(|| (0..2000).for_each(|value| _ = writer.write(&Count { value }).unwrap()));
        for (value, sample) in take(&reader, 2000).iter().enumerate() {
            assert_eq!(sample.data().unwrap(), Count { value: value as u64 });
        }
    });
    assert!(writer.counters().refused > 0, "the history was full at times");
}

#[test]
fn a_write_without_room_times_out_and_says_what_to_raise() {
    let max_blocking_time = Duration::from_millis(50);
    let reliability = Reliability::Reliable { max_blocking_time };
    let writer_qos = WriterQos { reliability, resource_limits: limits(5), ..reliable_writer() };
    let reader_qos = ReaderQos { resource_limits: limits(5), ..reliable_reader() };
    let Pair { writer, reader, participants: _alive } = pair::<Count>("stuck", writer_qos, reader_qos);
    // Nobody takes: five samples wait in the reader, five in the writer, and then there is no room.
    let (start, error) = {
        let mut written = 0;
        loop {
            let start = Instant::now();
            match writer.write(&Count { value: written }) {
                Ok(_) => written += 1,
                Err(error) => break (start, error),
            }
            assert!(written <= 10, "at most ten fit");
        }
    };
    assert!(start.elapsed() >= max_blocking_time, "{:?}", start.elapsed());
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let text = error.to_string();
    assert!(text.starts_with("write on topic \"stuck "), "{text}");
    assert!(text.contains("timed out after 50ms: 1 of 1 readers owe an acknowledgement"), "{text}");
    assert!(text.ends_with("raise max_blocking_time or resource_limits.max_samples"), "{text}");
    reader.take(5);
    writer.write(&Count { value: 99 }).expect("room again as soon as the reader has taken");
}

#[test]
fn a_reader_that_is_given_up_is_told_to_the_writer() {
    let reader_qos = ReaderQos { resource_limits: limits(1), ..reliable_reader() };
    let writer_qos = WriterQos { reader_patience: Duration::from_millis(200), ..reliable_writer() };
    let Pair { writer, reader, participants: _alive } = pair::<Count>("patience", writer_qos, reader_qos);
    (0..10).for_each(|value| _ = writer.write(&Count { value }).unwrap());
    let error = writer.wait_for_acknowledgments(PATIENCE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Error);
    assert!(error.to_string().contains("1 reader has made no progress for 200ms"), "{error}");
    let status = writer.readers_given_up();
    assert_eq!((status.total, status.total_change, status.current), (1, 1, 1));
    assert_eq!(writer.held(), 0, "nothing is kept for it any more");
    let start = Instant::now();
    let mut taken = 0;
    while taken + reader.counters().lost < 10 {
        taken += reader.take(5).len() as u64;
        assert!(start.elapsed() < PATIENCE, "{taken} taken, {} lost", reader.counters().lost);
        std::thread::sleep(Duration::from_millis(5));
    }
    while writer.wait_for_acknowledgments(PATIENCE).is_err() {
        assert!(start.elapsed() < PATIENCE, "it has caught up: {:?}", writer.counters());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(writer.readers_given_up().current, 0);
}

#[test]
fn a_writer_that_goes_on_with_a_history_has_failed_nobody() {
    let reader_qos = ReaderQos { resource_limits: limits(1), ..reliable_reader() };
    let patience = Duration::from_millis(200);
    let qos = WriterQos { durability: Durability::Transient, reader_patience: patience, ..reliable_writer() };
    let Pair { writer, reader, participants } = pair::<Count>("successor", qos.clone(), reader_qos);
    (0..10).for_each(|value| _ = writer.write(&Count { value }).unwrap());
    assert!(writer.wait_for_acknowledgments(PATIENCE).is_err());
    let name = writer.topic_name().to_owned();
    drop((reader, writer));
    let topic = participants.0.create_topic::<Count>(&name);
    let next = participants.0.create_writer(&topic, qos).unwrap();
    assert_eq!(next.write(&Count { value: 10 }).unwrap().0, 11, "it goes on");
    next.wait_for_acknowledgments(PATIENCE).expect("nobody was given up since");
}

#[test]
fn acknowledgments_are_waited_for_and_missing_ones_named() {
    let reader_qos = ReaderQos { resource_limits: limits(1), ..reliable_reader() };
    let Pair { writer, reader, participants: _alive } = pair::<Count>("acks", reliable_writer(), reader_qos);
    writer.write(&Count { value: 1 }).unwrap();
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    writer.write(&Count { value: 2 }).unwrap();
    let error = writer.wait_for_acknowledgments(Duration::from_millis(50)).unwrap_err();
    assert!(error.to_string().contains("1 of 1 readers owe an acknowledgement"), "{error}");
    assert_eq!(take(&reader, 2).len(), 2);
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
}

#[test]
fn an_inline_listener_that_finds_no_room_is_told_at_once_instead_of_waiting_for_itself() {
    let participant = participant(domain());
    let source = participant.create_topic::<Count>(&unique("source"));
    let echo = participant.create_topic::<Count>(&unique("echo"));
    let reader = participant.create_reader(&source, reliable_reader()).unwrap();
    let writer = participant.create_writer(&source, reliable_writer()).unwrap();
    let small = WriterQos { resource_limits: limits(3), ..reliable_writer() };
    let echo_writer = participant.create_writer(&echo, small).unwrap();
    let echo_qos = ReaderQos { resource_limits: limits(1), ..reliable_reader() };
    let echo_reader = participant.create_reader(&echo, echo_qos).unwrap();
    echo_writer.wait_for_matched(1, PATIENCE).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    let (results, outcomes) = std::sync::mpsc::channel();
    let on_data = move |reader: &thalweg::DataReader<Count>| {
        for sample in reader.take(100) {
            let start = Instant::now();
            let result = echo_writer.write(&sample.data().unwrap());
            results.send((result.map(|_| ()), start.elapsed())).unwrap();
        }
    };
    reader.on_data(Delivery::Inline, on_data).unwrap();
    for value in 0..20 {
        writer.write(&Count { value }).unwrap();
    }
    let outcomes: Vec<_> = (0..20).map(|_| outcomes.recv_timeout(PATIENCE).unwrap()).collect();
    let refused: Vec<_> = outcomes.iter().filter_map(|(result, took)| Some((result.as_ref().err()?, took))).collect();
    assert!(!refused.is_empty());
    for (error, took) in refused {
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(error.to_string().contains("inline on the I/O thread"), "{error}");
        assert!(*took < PATIENCE / 4, "it did not wait: {took:?}");
    }
    drop(echo_reader);
}

#[test]
fn a_listener_on_the_listener_thread_may_write_and_wait() {
    let small = WriterQos { resource_limits: limits(4), ..reliable_writer() };
    let there = pair::<Count>("request", reliable_writer(), reliable_reader());
    let back = pair::<Count>("reply", small, reliable_reader());
    let echo = back.writer;
    let mut samples = Vec::new();
    let on_data = move |reader: &thalweg::DataReader<Count>| {
        reader.take_into(usize::MAX, &ReadFilter::ALL, &mut samples);
        samples.drain(..).for_each(|sample| _ = echo.write(&sample.data().unwrap()).unwrap());
    };
    there.reader.on_data(Delivery::Thread, on_data).unwrap();
    for value in 0..300 {
        there.writer.write(&Count { value }).unwrap();
    }
    for (value, sample) in take(&back.reader, 300).iter().enumerate() {
        assert_eq!(sample.data().unwrap().value, value as u64);
    }
}

#[test]
fn keep_last_never_blocks_and_counts_what_it_overwrote() {
    let writer_qos = WriterQos { history: History::KeepLast(3), ..reliable_writer() };
    let reader_qos = ReaderQos { resource_limits: limits(1), ..reliable_reader() };
    let Pair { writer, reader, participants: _alive } = pair::<Count>("last", writer_qos, reader_qos);
    let start = Instant::now();
    for value in 0..50 {
        writer.write(&Count { value }).unwrap();
    }
    assert!(start.elapsed() < PATIENCE / 2);
    assert!(writer.counters().overwritten_unacknowledged > 0);
    let mut newest = 0;
    while newest < 49 {
        newest = take(&reader, 1)[0].data().unwrap().value;
    }
}
