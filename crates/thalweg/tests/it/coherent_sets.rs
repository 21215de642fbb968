//! Coherent sets for readers that come late, and for those that take slowly.

use std::time::{Duration, Instant};

use thalweg::qos::{AccessScope, History, Presentation, ReaderQos, ResourceLimits, WriterQos};
use thalweg::{
    DataReader, DataWriter, DomainParticipant, ErrorKind, Publisher, PublisherQos, Subscriber, SubscriberQos,
};

use crate::fixture::*;

const COHERENT: Presentation = Presentation { access_scope: AccessScope::Topic, coherent: true, ordered: true };

fn write_set(writer: &DataWriter<Shape>, colors: &[&str], x: i32) {
    writer.begin_coherent_changes().unwrap();
    colors.iter().for_each(|color| _ = writer.write(&Shape::new(color, x)).unwrap());
    writer.end_coherent_changes().unwrap();
}

/// What a reader that comes now takes.
fn taken_late(domain: u32, name: &str, count: usize) -> Vec<(String, i32)> {
    let there = participant(domain);
    let qos = ReaderQos { presentation: COHERENT, ..late_reader() };
    let reader = there.create_reader(&there.create_topic::<Shape>(name), qos).unwrap();
    let mut samples = take(&reader, count);
    std::thread::sleep(Duration::from_millis(200));
    samples.extend(reader.take(usize::MAX));
    samples.iter().map(|sample| sample.data().unwrap()).map(|shape| (shape.color.clone(), shape.x)).collect()
}

#[test]
fn a_late_reader_gets_each_set_of_which_everything_is_there() {
    let (domain, name) = (domain(), unique("late_sets"));
    let here = participant(domain);
    let qos = WriterQos { presentation: COHERENT, history: History::KeepLast(1), ..late_writer() };
    let writer = here.create_writer(&here.create_topic::<Shape>(&name), qos).unwrap();
    write_set(&writer, &["A", "B"], 1);
    write_set(&writer, &["C", "D"], 2);
    write_set(&writer, &["E"], 3);
    write_set(&writer, &["B"], 4);
    let expected = [("C", 2), ("D", 2), ("E", 3), ("B", 4)].map(|(color, x)| (color.to_owned(), x));
    assert_eq!(taken_late(domain, &name, 4), expected, "A lacks its B");
}

/// A publisher with two writers, and a subscriber with their readers.
struct Group {
    publisher: Publisher,
    writers: [DataWriter<Shape>; 2],
    subscriber: Subscriber,
    readers: [DataReader<Shape>; 2],
    _participants: [DomainParticipant; 2],
}

/// The writers have room for 20 samples each, and the first reader for three.
fn narrow_group(name: &str, presentation: Presentation) -> Group {
    group(name, presentation, [Some(20), Some(3)])
}

fn group(name: &str, presentation: Presentation, [of_writers, of_reader]: [Option<u32>; 2]) -> Group {
    let (domain, name) = (domain(), unique(name));
    let participants = [participant(domain), participant(domain)];
    let limited = |max_samples| ResourceLimits { max_samples, ..ResourceLimits::default() };
    let publisher = participants[0].create_publisher(PublisherQos { presentation, ..PublisherQos::default() });
    let subscriber = participants[1].create_subscriber(SubscriberQos { presentation, ..SubscriberQos::default() });
    let names = ["a", "b"].map(|end| format!("{name}_{end}"));
    let writers = names.each_ref().map(|name| {
        let qos = WriterQos { resource_limits: limited(of_writers), ..reliable_writer() };
        publisher.create_writer(&participants[0].create_topic::<Shape>(name), qos).unwrap()
    });
    let [first, second] = names.each_ref().map(|name| participants[1].create_topic::<Shape>(name));
    let small = ReaderQos { resource_limits: limited(of_reader), ..reliable_reader() };
    let readers = [
        subscriber.create_reader(&first, small).unwrap(),
        subscriber.create_reader(&second, reliable_reader()).unwrap(),
    ];
    writers.iter().for_each(|writer| writer.wait_for_matched(1, PATIENCE).unwrap());
    readers.iter().for_each(|reader| reader.wait_for_matched(1, PATIENCE).unwrap());
    Group { publisher, writers, subscriber, readers, _participants: participants }
}

#[test]
fn sets_of_a_group_wait_for_room_as_wholes() {
    const SETS: i32 = 300;
    let presentation = Presentation { access_scope: AccessScope::Group, coherent: true, ordered: false };
    let Group { publisher, writers, subscriber, readers, _participants } = narrow_group("group_room", presentation);
    let writing = std::thread::spawn(move || {
        for x in 0..SETS {
            publisher.begin_coherent_changes().unwrap();
            writers[0].write(&Shape::new("A", x)).unwrap();
            writers[0].write(&Shape::new("B", x)).unwrap();
            writers[1].write(&Shape::new("C", x)).unwrap();
            publisher.end_coherent_changes().unwrap();
        }
        writers.iter().for_each(|writer| writer.wait_for_acknowledgments(PATIENCE).unwrap());
        (publisher, writers)
    });
    readers[0].wait(PATIENCE);
    std::thread::sleep(Duration::from_millis(300));
    assert!(!writing.is_finished(), "writers wait for applications that do not take");
    let (mut next, start) = (0, Instant::now());
    while next < SETS {
        assert!(start.elapsed() < PATIENCE, "{next} sets came");
        readers[1].wait(Duration::from_millis(100));
        subscriber.begin_access();
        let [first, second] = readers.each_ref().map(|reader| {
            let taken = reader.take(usize::MAX);
            taken.iter().map(|sample| sample.data().unwrap().x).collect::<Vec<i32>>()
        });
        subscriber.end_access().unwrap();
        let sets = next..next + second.len() as i32;
        assert_eq!(second, sets.clone().collect::<Vec<i32>>());
        assert_eq!(first, sets.clone().flat_map(|x| [x, x]).collect::<Vec<i32>>(), "whole sets");
        next = sets.end;
    }
    let _alive = writing.join().unwrap();
    for reader in &readers {
        assert_eq!((reader.sample_lost().total, reader.available()), (0, 0));
    }
}

#[test]
fn a_group_keeps_its_order_where_a_reader_has_no_room() {
    const SAMPLES: i32 = 400;
    let presentation = Presentation { access_scope: AccessScope::Group, coherent: false, ordered: true };
    let Group { publisher, writers, subscriber, readers, _participants } = narrow_group("order_room", presentation);
    let writing = std::thread::spawn(move || {
        for x in 0..SAMPLES {
            // The second reader has much room, and waits for the first one all the same.
            writers[usize::from(x % 3 == 0)].write(&Shape::new("A", x)).unwrap();
        }
        writers.iter().for_each(|writer| writer.wait_for_acknowledgments(PATIENCE).unwrap());
        (publisher, writers)
    });
    let (mut next, start) = (0, Instant::now());
    while next < SAMPLES {
        assert!(start.elapsed() < PATIENCE, "{next} samples came");
        subscriber.begin_access();
        for guid in subscriber.readers_in_order() {
            let reader = readers.iter().find(|reader| reader.guid() == guid).unwrap();
            assert_eq!(reader.take_one().unwrap().data().unwrap().x, next);
            next += 1;
        }
        subscriber.end_access().unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    let _alive = writing.join().unwrap();
    assert_eq!(readers.each_ref().map(|reader| reader.sample_lost().total), [0, 0]);
}

#[test]
fn an_access_may_begin_before_there_are_readers() {
    let domain = domain();
    let (here, there) = (participant(domain), participant(domain));
    let presentation = Presentation { access_scope: AccessScope::Group, coherent: false, ordered: true };
    let publisher = here.create_publisher(PublisherQos { presentation, ..PublisherQos::default() });
    let subscriber = there.create_subscriber(SubscriberQos { presentation, ..SubscriberQos::default() });
    assert_eq!(subscriber.end_access().unwrap_err().kind(), ErrorKind::PreconditionNotMet, "nothing has begun");
    there.create_subscriber(SubscriberQos::default()).end_access().expect("no effect without GROUP access");
    subscriber.begin_access();
    let name = unique("early");
    let reader = subscriber.create_reader(&there.create_topic::<Shape>(&name), reliable_reader()).unwrap();
    let writer = publisher.create_writer(&here.create_topic::<Shape>(&name), reliable_writer()).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    writer.write(&Shape::new("A", 1)).unwrap();
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    assert_eq!(reader.available(), 0, "the view stands still");
    subscriber.end_access().unwrap();
    assert_eq!(take(&reader, 1).len(), 1);
    assert!(subscriber.end_access().is_err(), "nothing has begun");
}

/// Two threads that begin and end sets of one publisher, and write in them.
#[test]
fn sets_of_two_threads_end_at_every_writer() {
    let presentation = Presentation { access_scope: AccessScope::Group, coherent: true, ordered: false };
    let Group { publisher, writers, readers, _participants, .. } = group("two_threads", presentation, [None; 2]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for x in 0..400 {
                    publisher.begin_coherent_changes().unwrap();
                    writers.iter().for_each(|writer| _ = writer.write(&Shape::new("A", x)).unwrap());
                    publisher.end_coherent_changes().unwrap();
                }
            });
        }
        let start = Instant::now();
        let mut counts = [0, 0];
        while counts != [800, 800] {
            assert!(start.elapsed() < PATIENCE, "{counts:?}");
            readers[1].wait(Duration::from_millis(10));
            for (reader, count) in readers.iter().zip(&mut counts) {
                *count += reader.take(usize::MAX).len();
            }
        }
    });
    assert_eq!(readers.each_ref().map(|reader| reader.sample_lost().total), [0, 0]);
}

#[test]
fn no_writer_ends_a_set_of_its_publisher_alone() {
    let presentation = Presentation { access_scope: AccessScope::Group, coherent: true, ordered: false };
    let Group { publisher, writers, readers, _participants, .. } = group("alone", presentation, [None; 2]);
    for x in [1, 3] {
        publisher.begin_coherent_changes().unwrap();
        writers[0].write(&Shape::new("A", x)).unwrap();
        let error = writers[0].end_coherent_changes().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PreconditionNotMet, "{error}");
        writers[0].write(&Shape::new("B", x + 1)).unwrap();
        publisher.end_coherent_changes().unwrap();
        let taken = take(&readers[0], 2);
        assert_eq!(taken.iter().map(|sample| sample.data().unwrap().x).collect::<Vec<_>>(), [x, x + 1]);
    }
}

#[test]
fn what_waits_for_room_outlives_its_writers_and_the_other_readers() {
    let presentation = Presentation { access_scope: AccessScope::Group, coherent: false, ordered: true };
    let Group { publisher, writers, readers: [first, second], _participants, .. } =
        group("outlives", presentation, [None, Some(1)]);
    (1..=2).for_each(|x| _ = writers[0].write(&Shape::new("A", x)).unwrap());
    eventually("the second one has come, and waits", || first.counters().rejected == 1);
    drop((writers, publisher));
    eventually("its writers are gone", || second.matched_writers().is_empty() && first.matched_writers().is_empty());
    drop(second);
    for x in [1, 2] {
        let taken = take(&first, 1);
        assert_eq!(taken[0].data().unwrap().x, x);
        // What says that its writer is gone has a place of its own.
        first.take(usize::MAX);
    }
    assert_eq!(first.sample_lost().total, 0);
}

#[test]
fn a_reader_that_is_deleted_holds_nothing_up() {
    let presentation = Presentation { access_scope: AccessScope::Group, coherent: true, ordered: false };
    let Group { publisher, writers, readers: [first, second], _participants, .. } =
        group("deleted", presentation, [None, Some(1)]);
    let set = |written: &[&DataWriter<Shape>]| {
        publisher.begin_coherent_changes().unwrap();
        written.iter().for_each(|writer| _ = writer.write(&Shape::new("A", 1)).unwrap());
        publisher.end_coherent_changes().unwrap();
    };
    set(&[&writers[0]]);
    set(&[&writers[0], &writers[1]]);
    eventually("the second set has come, and waits", || first.counters().rejected == 1);
    assert_eq!(second.available(), 0);
    let deleted = Instant::now();
    drop(first);
    assert_eq!(take(&second, 1).len(), 1);
    assert!(deleted.elapsed() < Duration::from_secs(3), "{:?}", deleted.elapsed());
}

#[test]
fn a_writer_that_joins_while_others_wait_leaves_none_of_them_behind() {
    let presentation = Presentation { access_scope: AccessScope::Group, coherent: false, ordered: true };
    let Group { publisher, writers, subscriber, readers: [first, second], _participants } =
        group("joins", presentation, [None, Some(1)]);
    (1..=2).for_each(|x| _ = writers[0].write(&Shape::new("A", x)).unwrap());
    eventually("the second one has come, and waits", || first.counters().rejected == 1);
    _ = writers[0].write(&Shape::new("A", 3)).unwrap();
    subscriber.begin_access();
    let topic = _participants[0].create_topic::<Shape>(second.topic_name());
    let _joined = publisher.create_writer(&topic, reliable_writer()).unwrap();
    eventually("the other writer is there", || second.matched_writers().len() == 2);
    assert_eq!(first.take(usize::MAX)[0].data().unwrap().x, 1);
    subscriber.end_access().unwrap();
    for x in [2, 3] {
        assert_eq!(take(&first, 1)[0].data().unwrap().x, x);
    }
}
