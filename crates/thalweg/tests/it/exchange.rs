//! Samples from writer to reader.

use thalweg::qos::{ReaderQos, Representation, WriterQos};
use thalweg::types::Timestamp;
use thalweg::{ReadFilter, SampleState};

use crate::fixture::*;

#[test]
fn reliable_samples_arrive_once_in_order_with_their_source_time() {
    let Pair { writer, reader, participants: _alive } = pair::<Shape>("order", reliable_writer(), reliable_reader());
    for x in 0..500 {
        writer.write(&Shape::new("RED", x)).unwrap();
    }
    let samples = take(&reader, 500);
    for (x, sample) in samples.iter().enumerate() {
        assert_eq!(sample.data().unwrap(), Shape::new("RED", x as i32));
        assert_eq!(sample.info().sequence.0, x as i64 + 1);
        assert_eq!(sample.info().writer, writer.guid());
    }
    let now = thalweg::clock::wall_clock().to_unix();
    let stamped = samples[0].info().source_timestamp.expect("a source timestamp").to_unix();
    assert!(now.abs_diff(stamped) < PATIENCE, "{stamped:?} is not about {now:?}");
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    assert!(reader.take(1).is_empty());
}

#[test]
fn the_application_may_choose_the_source_time() {
    let Pair { writer, reader, participants: _alive } = pair::<Count>("time", reliable_writer(), reliable_reader());
    let timestamp = Timestamp { seconds: 1_000_000, fraction: 1 << 31 };
    writer.write_at(&Count { value: 1 }, timestamp).unwrap();
    assert_eq!(take(&reader, 1)[0].info().source_timestamp, Some(timestamp));
}

#[test]
fn best_effort_samples_arrive_on_a_quiet_host() {
    let qos = WriterQos { reliability: thalweg::qos::Reliability::BestEffort, ..reliable_writer() };
    let Pair { writer, reader, participants: _alive } = pair::<Count>("best effort", qos, ReaderQos::default());
    // Before the reader knows the writer its samples are strangers; matched on both sides they are not.
    writer.write(&Count { value: 7 }).unwrap();
    assert_eq!(take(&reader, 1)[0].data().unwrap(), Count { value: 7 });
}

#[test]
fn both_encodings_are_understood() {
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let qos = WriterQos { data_representation: vec![representation], ..reliable_writer() };
        let Pair { writer, reader, participants: _alive } = pair::<Shape>("encoding", qos, reliable_reader());
        let sample = Shape { payload: vec![1, 2, 3], ..Shape::new("BLUE", -5) };
        writer.write(&sample).unwrap();
        let received = take(&reader, 1);
        assert_eq!(received[0].data().unwrap(), sample);
        let expect = if representation == Representation::Xcdr1 { 0x01 } else { 0x09 };
        assert_eq!(received[0].bytes()[1], expect, "encapsulation of {representation}");
    }
}

#[test]
fn read_leaves_samples_and_take_removes_them() {
    let Pair { writer, reader, participants: _alive } = pair::<Count>("read", reliable_writer(), reliable_reader());
    writer.write(&Count { value: 1 }).unwrap();
    assert!(reader.wait(PATIENCE));
    let first = reader.read(10);
    assert_eq!((first.len(), first[0].info().sample_state), (1, SampleState::NotRead));
    assert!(!reader.wait(std::time::Duration::ZERO), "nothing is unread");
    assert_eq!(reader.read(10)[0].info().sample_state, SampleState::Read);
    let mut unread = Vec::new();
    let filter = ReadFilter { sample_state: Some(SampleState::NotRead), ..ReadFilter::ALL };
    assert_eq!(reader.take_into(10, &filter, &mut unread), 0);
    assert_eq!(reader.take(10).len(), 1);
    assert_eq!(reader.available(), 0);
}

#[test]
fn a_writer_and_a_reader_of_one_participant_meet() {
    let participant = participant(domain());
    let topic = participant.create_topic::<Count>(&unique("self"));
    let reader = participant.create_reader(&topic, reliable_reader()).unwrap();
    let writer = participant.create_writer(&topic, reliable_writer()).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    writer.write(&Count { value: 9 }).unwrap();
    assert_eq!(take(&reader, 1)[0].data().unwrap(), Count { value: 9 });
}

#[test]
fn a_late_reader_gets_transient_local_samples_and_a_volatile_one_does_not() {
    let (domain, name) = (domain(), unique("late"));
    let (here, there) = (participant(domain), participant(domain));
    let writer = here.create_writer(&here.create_topic::<Count>(&name), late_writer()).unwrap();
    for value in 0..20 {
        writer.write(&Count { value }).unwrap();
    }
    let topic = there.create_topic::<Count>(&name);
    let volatile = there.create_reader(&topic, reliable_reader()).unwrap();
    let late = there.create_reader(&topic, late_reader()).unwrap();
    for (value, sample) in take(&late, 20).iter().enumerate() {
        assert_eq!(sample.data().unwrap(), Count { value: value as u64 });
    }
    writer.wait_for_matched(2, PATIENCE).unwrap();
    volatile.wait_for_matched(1, PATIENCE).unwrap();
    writer.write(&Count { value: 20 }).unwrap();
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    assert_eq!(take(&late, 1)[0].data().unwrap(), Count { value: 20 });
    assert_eq!(take(&volatile, 1)[0].data().unwrap(), Count { value: 20 });
}

#[test]
fn many_threads_write_through_one_writer() {
    let Pair { writer, reader, participants: _alive } = pair::<Shape>("threads", reliable_writer(), reliable_reader());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let writer = &writer;
            scope.spawn(move || {
                for x in 0..500 {
                    writer.write(&Shape::new(&format!("thread {thread}"), x)).unwrap();
                }
            });
        }
        let mut next = std::collections::HashMap::new();
        for sample in take(&reader, 2000) {
            let Shape { color, x, .. } = sample.data().unwrap();
            let expected = next.entry(color).or_insert(0);
            assert_eq!(x, *expected, "in the order in which its thread wrote them");
            *expected += 1;
        }
    });
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
}

#[test]
fn handles_and_samples_go_from_thread_to_thread() {
    fn assert_shareable<T: Send + Sync>() {}
    assert_shareable::<thalweg::DomainParticipant>();
    assert_shareable::<thalweg::Publisher>();
    assert_shareable::<thalweg::Subscriber>();
    assert_shareable::<thalweg::DataWriter<std::rc::Rc<()>>>();
    assert_shareable::<thalweg::DataReader<std::rc::Rc<()>>>();
    assert_shareable::<thalweg::Sample<std::rc::Rc<()>>>();
    assert_shareable::<thalweg::Error>();
}
