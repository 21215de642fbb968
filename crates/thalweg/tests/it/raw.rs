//! Endpoints for bytes that the application serializes itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg::types::{KeyHash, Keyed};
use thalweg::{DataReader, Delivery, DomainParticipant, ErrorKind, InstanceState, KeyOf, PayloadKind, Raw, Topic, cdr};

use crate::fixture::*;

fn encoded(shape: &Shape) -> Vec<u8> {
    let mut bytes = Vec::new();
    cdr::encode(shape, cdr::Representation::Xcdr1, &mut bytes).unwrap();
    bytes
}

#[test]
fn raw_and_typed_endpoints_of_a_topic_understand_each_other() {
    let (domain, name) = (domain(), unique("raw"));
    let (here, there) = (participant(domain), participant(domain));
    let key_of: KeyOf = Arc::new(|bytes: &[u8], kind| {
        cdr::key_hash_of_payload::<Shape>(bytes, kind == PayloadKind::Key).ok().map(KeyHash)
    });
    let raw_topic = here.create_raw_topic(&name, "Shape", Keyed::Yes, Some(key_of));
    let raw_writer = here.create_writer(&raw_topic, reliable_writer()).unwrap();
    let raw_reader = here.create_reader(&raw_topic, reliable_reader()).unwrap();
    let topic = there.create_topic::<Shape>(&name);
    let reader = there.create_reader(&topic, reliable_reader()).unwrap();
    let writer = there.create_writer(&topic, reliable_writer()).unwrap();
    raw_writer.wait_for_matched(2, PATIENCE).unwrap();
    writer.wait_for_matched(2, PATIENCE).unwrap();
    let shape = Shape::new("ORANGE", 11);
    raw_writer.write_serialized(&encoded(&shape)).unwrap();
    assert_eq!(take(&reader, 1)[0].data().unwrap(), shape);
    let looped = take(&raw_reader, 1);
    assert_eq!(looped[0].bytes(), encoded(&shape));
    // What was received is passed on without a copy.
    raw_writer.write_payload(looped[0].payload(), Some(looped[0].info().instance), None).unwrap();
    assert_eq!(take(&reader, 1)[0].data().unwrap(), shape);
    let mut key = Vec::new();
    cdr::encode_key(&shape, cdr::Representation::Xcdr1, &mut key).unwrap();
    raw_writer.dispose_serialized(&key, None).unwrap();
    assert_eq!(take(&reader, 1)[0].info().instance_state, InstanceState::NotAliveDisposed);
}

#[test]
fn a_reader_without_instances_takes_all_samples_as_of_one() {
    let (domain, name) = (domain(), unique("together"));
    let (here, there) = (participant(domain), participant(domain));
    let topic = here.create_raw_topic(&name, "Shape", Keyed::Yes, None).without_instances();
    let reader = here.create_reader(&topic, reliable_reader()).unwrap();
    let writer = there.create_writer(&there.create_topic::<Shape>(&name), reliable_writer()).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    for color in ["RED", "BLUE"] {
        writer.write(&Shape::new(color, 1)).unwrap();
    }
    let taken = take(&reader, 2);
    assert_eq!(taken[0].info().instance, taken[1].info().instance);
    assert_eq!(cdr::decode::<Shape>(taken[1].bytes()).unwrap().color, "BLUE");
}

#[test]
fn bytes_without_encapsulation_or_instance_are_refused() {
    let participant = participant(domain());
    let keyless = participant.create_raw_topic("keyless", "Bytes", Keyed::No, None);
    let writer = participant.create_writer::<Raw>(&keyless, reliable_writer()).unwrap();
    assert_eq!(writer.write_serialized(&[0, 1]).unwrap_err().kind(), ErrorKind::BadParameter);
    let keyed = participant.create_raw_topic("keyed", "Bytes", Keyed::Yes, None);
    let writer = participant.create_writer::<Raw>(&keyed, reliable_writer()).unwrap();
    let error = writer.write_serialized(&[0, 1, 0, 0, 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadParameter);
    assert!(error.to_string().contains("pass its key hash"), "{error}");
}

/// A raw topic of shapes with this function for its keys.
fn shapes(participant: &DomainParticipant, name: &str, key_of: impl Fn(&Shape) + Send + Sync + 'static) -> Topic<Raw> {
    let key_of: KeyOf = Arc::new(move |bytes: &[u8], kind| {
        let hash = cdr::key_hash_of_payload::<Shape>(bytes, kind == PayloadKind::Key).ok()?;
        key_of(&cdr::decode(bytes).ok()?);
        Some(KeyHash(hash))
    });
    participant.create_raw_topic(name, "Shape", Keyed::Yes, Some(key_of))
}

/// Reads x of the next sample.
fn next_x(reader: &DataReader<Raw>) -> i32 {
    cdr::decode::<Shape>(take(reader, 1)[0].bytes()).unwrap().x
}

#[test]
fn a_slow_key_function_holds_up_its_own_topic_and_nothing_else() {
    const SLOW: Duration = Duration::from_secs(1);
    let (domain, name) = (domain(), unique("slow key"));
    let (here, there) = (participant(domain), participant(domain));
    let (calls, called) = std::sync::mpsc::channel();
    let slow = shapes(&here, &name, move |_| {
        calls.send(()).unwrap();
        std::thread::sleep(SLOW);
    });
    let reader = here.create_reader(&slow, reliable_reader()).unwrap();
    let writer = there.create_writer(&there.create_topic::<Shape>(&name), reliable_writer()).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    let beside = unique("beside");
    let count_reader = here.create_reader(&here.create_topic::<Count>(&beside), reliable_reader()).unwrap();
    let count_writer = there.create_writer(&there.create_topic::<Count>(&beside), reliable_writer()).unwrap();
    count_writer.wait_for_matched(1, PATIENCE).unwrap();
    for x in 0..2 {
        writer.write(&Shape::new("RED", x)).unwrap();
    }
    called.recv_timeout(PATIENCE).unwrap();
    let start = Instant::now();
    for value in 0..20 {
        count_writer.write(&Count { value }).unwrap();
        count_writer.wait_for_acknowledgments(PATIENCE).unwrap();
    }
    assert_eq!(take(&count_reader, 20).len(), 20);
    let exchanged = start.elapsed();
    // Discovery goes on, too: a new endpoint is announced, met and used.
    let another = there.create_reader(&there.create_topic::<Count>(&beside), reliable_reader()).unwrap();
    another.wait_for_matched(1, PATIENCE).unwrap();
    here.create_writer(&here.create_topic::<Count>(&beside), reliable_writer())
        .unwrap()
        .wait_for_matched(2, PATIENCE)
        .unwrap();
    let met = start.elapsed();
    println!("20 exchanges took {exchanged:?}, with two meetings {met:?}");
    assert!(met < SLOW * 3 / 4, "{exchanged:?} for 20 exchanges, {met:?} with two meetings");
    assert_eq!(reader.available(), 0, "the first key is still being computed");
    assert_eq!([next_x(&reader), next_x(&reader)], [0, 1]);
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
}

#[test]
fn a_key_function_that_panics_loses_its_sample_and_nothing_else() {
    let (domain, name) = (domain(), unique("panicking key"));
    let (here, there) = (participant(domain), participant(domain));
    let topic = shapes(&here, &name, |shape| assert_ne!(shape.color, "PANIC", "as the test wants it"));
    let reader = here.create_reader(&topic, reliable_reader()).unwrap();
    let writer = there.create_writer(&there.create_topic::<Shape>(&name), reliable_writer()).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    for (x, color) in ["RED", "PANIC", "BLUE", "PANIC", "RED"].iter().enumerate() {
        writer.write(&Shape::new(color, x as i32)).unwrap();
    }
    assert_eq!([next_x(&reader), next_x(&reader), next_x(&reader)], [0, 2, 4]);
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    assert_eq!(reader.counters().lost, 2);
}

#[test]
fn raw_samples_come_once_and_in_order_however_long_their_keys_take() {
    const SAMPLES: i32 = 600;
    let (domain, name) = (domain(), unique("uneven keys"));
    let (here, there) = (participant(domain), participant(domain));
    let topic = shapes(&here, &name, |shape| {
        if shape.x % 97 == 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let reader = here.create_reader(&topic, reliable_reader()).unwrap();
    let (sender, heard) = std::sync::mpsc::channel();
    reader
        .on_data(Delivery::Inline, move |reader: &DataReader<Raw>| {
            for sample in reader.take(usize::MAX) {
                sender.send(cdr::decode::<Shape>(sample.bytes()).unwrap().x).unwrap();
            }
        })
        .unwrap();
    let writer = there.create_writer(&there.create_topic::<Shape>(&name), reliable_writer()).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    for x in 0..SAMPLES {
        let payload = vec![7; if x % 50 == 0 { 100_000 } else { 20 }];
        writer.write(&Shape { payload, ..Shape::new(["RED", "BLUE", "GREEN"][x as usize % 3], x) }).unwrap();
    }
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    let came: Vec<i32> = (0..SAMPLES).map(|_| heard.recv_timeout(PATIENCE).unwrap()).collect();
    assert_eq!(came, (0..SAMPLES).collect::<Vec<i32>>());
    assert!(heard.recv_timeout(Duration::from_millis(50)).is_err(), "each came once");
}

#[test]
fn a_reader_may_be_dropped_while_its_key_function_lasts() {
    let (domain, name) = (domain(), unique("stuck key"));
    let (here, there) = (participant(domain), participant(domain));
    let (calls, called) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    let topic = shapes(&here, &name, move |_| {
        calls.send(Arc::strong_count(&held)).unwrap();
        let _ = released.lock().unwrap().recv();
    });
    let reader = here.create_reader(&topic, reliable_reader()).unwrap();
    drop(topic);
    let writer = there.create_writer(&there.create_topic::<Shape>(&name), reliable_writer()).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    writer.write(&Shape::new("RED", 1)).unwrap();
    called.recv_timeout(PATIENCE).unwrap();
    let start = Instant::now();
    drop((reader, here));
    assert!(start.elapsed() < PATIENCE / 4, "it did not wait for the function");
    drop(release);
    let end = Instant::now() + PATIENCE;
    while Arc::strong_count(&alive) > 1 {
        assert!(Instant::now() < end, "the thread has not ended");
        std::thread::sleep(Duration::from_millis(5));
    }
}
