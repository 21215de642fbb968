//! The effects of policies between processes: this test binary starts itself as the other side.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use thalweg::filter::Filter;
use thalweg::qos::{
    AccessScope, DestinationOrder, Liveliness, LivelinessKind, Ownership, Presentation, ReaderLifecycle, ReaderQos,
    ReaderTiming, ResourceLimits, WriterOwnership, WriterQos, WriterTiming,
};
use thalweg::types::Timestamp;
use thalweg::{
    DataReader, DataWriter, Delivery, DomainParticipant, ErrorKind, InstanceState, Publisher, PublisherQos, Subscriber,
    SubscriberQos,
};

use crate::fixture::*;

const ROLE: &str = "THALWEG_TEST_POLICY";
const SPAN: Duration = Duration::from_millis(500);

/// Ends the other side also when the test fails.
pub struct Other(Child);

impl Other {
    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.0.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "{signal}");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn start(role: &str, domain: u32, topic: &str) -> Other {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "policies::other_side", "--nocapture"])
        .env(ROLE, role)
        .env("THALWEG_TEST_DOMAIN", domain.to_string())
        .env("THALWEG_TEST_TOPIC", topic)
        .stdout(Stdio::null())
        .spawn();
    Other(child.unwrap())
}

fn expiring() -> WriterTiming {
    WriterTiming { lifespan: SPAN, ..WriterTiming::default() }
}

fn lease(kind: LivelinessKind) -> Liveliness {
    Liveliness { kind, lease: SPAN }
}

/// What a started process does until it is killed; without a role, in the test run itself, nothing.
#[test]
fn other_side() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let domain = std::env::var("THALWEG_TEST_DOMAIN").unwrap().parse().unwrap();
    let topic_name = std::env::var("THALWEG_TEST_TOPIC").unwrap();
    let participant = participant(domain);
    let topic = participant.create_topic::<Shape>(&topic_name);
    let create = |qos: WriterQos| participant.create_writer(&topic, qos).unwrap();
    match role.as_str() {
        "lifespan" => write_on(&create(WriterQos { timing: expiring(), ..late_writer() })),
        "deadline" => {
            let timing = WriterTiming { deadline: SPAN, ..WriterTiming::default() };
            let writer = create(WriterQos { timing, ..late_writer() });
            writer.write(&Shape::new("A", 1)).unwrap();
            eventually("its own writer tells of it", || writer.offered_deadline_missed().total > 0);
            writer.write(&Shape::new("MISSED", 1)).unwrap();
            std::thread::sleep(PATIENCE);
        }
        "weak" | "strong" => {
            let strength = if role == "weak" { 1 } else { 4 };
            let (ownership, liveliness) = (WriterOwnership::Exclusive { strength }, lease(LivelinessKind::Automatic));
            let writer = create(WriterQos { ownership, liveliness, ..reliable_writer() });
            loop {
                writer.write(&Shape::new("A", strength)).unwrap();
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        "fast" => {
            let writer = create(reliable_writer());
            for x in 0.. {
                writer.write(&Shape::new("A", x)).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        "automatic" => {
            let writer = create(WriterQos { liveliness: lease(LivelinessKind::Automatic), ..late_writer() });
            writer.write(&Shape::new("A", 1)).unwrap();
            std::thread::sleep(PATIENCE * 3);
        }
        "by topic" | "by participant" => {
            let by_topic = role == "by topic";
            let kind = if by_topic { LivelinessKind::ManualByTopic } else { LivelinessKind::ManualByParticipant };
            let writer = create(WriterQos { liveliness: lease(kind), ..late_writer() });
            writer.wait_for_matched(1, PATIENCE).unwrap();
            let end = Instant::now() + SPAN * 4;
            while Instant::now() < end {
                if by_topic {
                    writer.assert_liveliness()
                } else {
                    participant.assert_liveliness()
                }
                std::thread::sleep(SPAN / 5);
            }
            eventually("its own writer tells of it", || writer.liveliness_lost().total > 0);
            // The reader's lease ends somewhat later.
            std::thread::sleep(SPAN);
            writer.write(&Shape::new("LOST", 1)).unwrap();
            std::thread::sleep(PATIENCE);
        }
        "coherent" => {
            let presentation = Presentation { access_scope: AccessScope::Topic, coherent: true, ordered: true };
            let writer = create(WriterQos { presentation, ..late_writer() });
            for x in 0.. {
                writer.begin_coherent_changes().unwrap();
                for color in ["A", "B", "C", "D", "E"] {
                    writer.write(&Shape::new(color, x)).unwrap();
                    std::thread::sleep(Duration::from_millis(4));
                }
                writer.end_coherent_changes().unwrap();
            }
        }
        "group coherent" => {
            let (publisher, writers) = group(&participant, &topic_name, COHERENT, &["a", "b"]);
            for x in 0.. {
                publisher.begin_coherent_changes().unwrap();
                for round in 0..3 {
                    writers[0].write(&Shape::new("A", x)).unwrap();
                    // The second writer has nothing in some sets.
                    if x % 4 != 3 && round < 2 {
                        writers[1].write(&Shape::new("B", x)).unwrap();
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
                publisher.end_coherent_changes().unwrap();
            }
        }
        "group ordered" => {
            // Nobody reads the third, and the second is silent for long.
            let (_publisher, writers) = group(&participant, &topic_name, ORDERED, &["a", "b", "c"]);
            for x in 0.. {
                let at = if x % 100 < 50 { [0, 1, 2, 1][x % 4] } else { [0, 2][x % 2] };
                writers[at].write(&Shape::new("A", x as i32)).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        "filtering" => {
            let filter = Filter::parse("x BETWEEN 20 AND 29", &[""; 0]).unwrap();
            let reader = participant.reader_builder(&topic).qos(reliable_reader()).filter(filter).unwrap().create();
            let reader = reader.unwrap();
            let taken = take(&reader, 10);
            assert!(taken.iter().all(|sample| (20..30).contains(&sample.data().unwrap().x)));
            std::thread::sleep(PATIENCE);
        }
        "digits" => {
            let writer = create(reliable_writer());
            for x in 0.. {
                writer.write(&Shape::new("A", x % 10)).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        "disposing" => {
            let liveliness = lease(LivelinessKind::Automatic);
            let writer = create(WriterQos { liveliness, ..late_writer() });
            writer.wait_for_matched(1, PATIENCE).unwrap();
            writer.write(&Shape::new("A", 1)).unwrap();
            writer.write(&Shape::new("B", 1)).unwrap();
            writer.dispose(&Shape::new("B", 1)).unwrap();
            std::thread::sleep(PATIENCE * 3);
        }
        "steady" => write_on(&create(late_writer())),
        "stamped" => {
            let writer = create(WriterQos { destination_order: DestinationOrder::BySource, ..late_writer() });
            for second in [20, 10, 30, 30, 29] {
                let stamp = Timestamp::from_unix(Duration::from_secs(1_800_000_000 + second));
                writer.write_at(&Shape::new("A", second as i32), stamp).unwrap();
            }
            std::thread::sleep(PATIENCE);
        }
        other => panic!("no such role: {other}"),
    }
}

const COHERENT: Presentation = Presentation { access_scope: AccessScope::Group, coherent: true, ordered: false };
const ORDERED: Presentation = Presentation { access_scope: AccessScope::Group, coherent: false, ordered: true };

/// A publisher with a writer for each topic whose name ends in one of `ends`.
fn group(
    participant: &DomainParticipant,
    name: &str,
    presentation: Presentation,
    ends: &[&str],
) -> (Publisher, Vec<DataWriter<Shape>>) {
    let publisher = participant.create_publisher(PublisherQos { presentation, ..PublisherQos::default() });
    let topics = ends.iter().map(|end| participant.create_topic::<Shape>(&format!("{name} {end}")));
    let writers = topics.map(|topic| publisher.create_writer(&topic, late_writer()).unwrap()).collect();
    (publisher, writers)
}

/// A subscriber to the first two topics of a [`group`] in another process.
fn group_of(role: &str, presentation: Presentation) -> (Other, Subscriber, Vec<DataReader<Shape>>, DomainParticipant) {
    let (domain, name) = (domain(), unique(&role.replace(' ', "_")));
    let participant = participant(domain);
    let subscriber = participant.create_subscriber(SubscriberQos { presentation, ..SubscriberQos::default() });
    let topics = ["a", "b"].map(|end| participant.create_topic::<Shape>(&format!("{name} {end}")));
    let readers = topics.map(|topic| subscriber.create_reader(&topic, late_reader()).unwrap()).into();
    (start(role, domain, &name), subscriber, readers, participant)
}

/// Writes one instance every 10 ms, with ascending values.
fn write_on(writer: &DataWriter<Shape>) {
    for x in 0.. {
        writer.write(&Shape::new("A", x)).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts `role` and a reader of its topic.
pub fn reader_of(role: &str, qos: ReaderQos) -> (Other, DataReader<Shape>, thalweg::DomainParticipant) {
    let (domain, name) = (domain(), unique(&role.replace(' ', "_")));
    let participant = participant(domain);
    let reader = participant.create_reader(&participant.create_topic::<Shape>(&name), qos).unwrap();
    let other = start(role, domain, &name);
    reader.wait_for_matched(1, PATIENCE).unwrap();
    (other, reader, participant)
}

#[test]
fn samples_are_worth_nothing_after_their_lifespan_at_either_end() {
    let (other, reader, participant) = reader_of("lifespan", late_reader());
    take(&reader, 1);
    std::thread::sleep(SPAN * 2);
    let late =
        participant.create_reader(&participant.create_topic::<Shape>(reader.topic_name()), late_reader()).unwrap();
    let first = take(&late, 1)[0].data().unwrap().x;
    assert!(first >= 20, "a late reader got sample {first}, which was older than its lifespan");
    other.signal("-STOP");
    eventually("what nobody took is gone", || reader.available() == 0 && late.available() == 0);
    assert!(reader.counters().expired > 0);
    assert_eq!((reader.sample_lost().total, late.sample_lost().total), (0, 0));
}

#[test]
fn both_ends_tell_of_an_instance_that_is_not_written_in_time() {
    let timing = ReaderTiming { deadline: SPAN, ..ReaderTiming::default() };
    let (_other, reader, _alive) = reader_of("deadline", ReaderQos { timing, ..late_reader() });
    let first = take(&reader, 1)[0].info().instance;
    let mut missed = reader.requested_deadline_missed();
    eventually("the reader tells of it", || {
        missed = reader.requested_deadline_missed();
        missed.total > 0
    });
    assert_eq!((missed.total_change > 0, missed.last_instance), (true, Some(first)));
    assert_eq!(take(&reader, 1)[0].data().unwrap().color, "MISSED", "the writer tells of it");
}

#[test]
fn the_strongest_writer_owns_an_instance_until_its_process_dies() {
    let (domain, name) = (domain(), unique("ownership"));
    let participant = participant(domain);
    let qos = ReaderQos { ownership: Ownership::Exclusive, ..reliable_reader() };
    let reader = participant.create_reader(&participant.create_topic::<Shape>(&name), qos).unwrap();
    let _weak = start("weak", domain, &name);
    assert_eq!(take(&reader, 1)[0].data().unwrap().x, 1);
    let strong = start("strong", domain, &name);
    let next = |wanted: i32| {
        eventually("ownership changes hands", || {
            reader.take(usize::MAX).iter().any(|sample| sample.is_valid() && sample.data().unwrap().x == wanted)
        });
    };
    next(4);
    for sample in take(&reader, 50) {
        assert_eq!(sample.data().unwrap().x, 4, "the weaker writer is not heard");
    }
    let died = Instant::now();
    strong.signal("-KILL");
    next(1);
    assert!(died.elapsed() < SPAN * 6, "{:?} for a lease of {SPAN:?}", died.elapsed());
    assert!(take(&reader, 50).iter().all(|sample| sample.data().unwrap().x == 1));
}

#[test]
fn a_stopped_process_is_noticed_within_its_writers_lease() {
    let qos = ReaderQos { liveliness: lease(LivelinessKind::Automatic), ..late_reader() };
    let (other, reader, _alive) = reader_of("automatic", qos);
    let sample = &take(&reader, 1)[0];
    let instance = sample.info().instance;
    std::thread::sleep(SPAN * 3);
    let status = reader.liveliness_changed();
    assert_eq!((status.alive, status.not_alive), (1, 0), "its process keeps it alive");
    other.signal("-STOP");
    let stopped = Instant::now();
    eventually("it is not alive", || reader.liveliness_changed().not_alive == 1);
    assert!(stopped.elapsed() < SPAN * 3, "{:?} for a lease of {SPAN:?}", stopped.elapsed());
    assert_eq!(reader.instance_state(instance), Some(InstanceState::NotAliveNoWriters));
    other.signal("-CONT");
    eventually("it is alive again", || reader.liveliness_changed().alive == 1);
    assert_eq!(reader.subscription_matched().total, 1, "it was matched all the time");
}

#[test]
fn a_participant_that_always_has_something_to_read_hears_signs_of_life() {
    let (domain, name) = (domain(), unique("busy"));
    let participant = participant(domain);
    let qos = ReaderQos { liveliness: lease(LivelinessKind::Automatic), ..late_reader() };
    let idle = participant.create_reader(&participant.create_topic::<Shape>(&name), qos).unwrap();
    let flooded = participant.create_topic::<Shape>(&format!("{name} flood"));
    let busy = participant.create_reader(&flooded, ReaderQos::default()).unwrap();
    let _automatic = start("automatic", domain, &name);
    take(&idle, 1);
    // Ten more samples come meanwhile.
    let slow = |reader: &DataReader<Shape>| {
        drop(reader.take(usize::MAX));
        std::thread::sleep(Duration::from_millis(10));
    };
    busy.on_data(Delivery::Inline, slow).unwrap();
    let _fast = start("fast", domain, flooded.name());
    busy.wait_for_matched(1, PATIENCE).unwrap();
    std::thread::sleep(SPAN * 5);
    let status = idle.liveliness_changed();
    assert_eq!((status.alive, status.not_alive), (1, 0), "its process keeps it alive");
}

#[test]
fn an_application_that_no_longer_asserts_its_writer_is_noticed_at_both_ends() {
    for (role, kind) in
        [("by topic", LivelinessKind::ManualByTopic), ("by participant", LivelinessKind::ManualByParticipant)]
    {
        let (_other, reader, _alive) = reader_of(role, ReaderQos { liveliness: lease(kind), ..late_reader() });
        let matched = Instant::now();
        std::thread::sleep(SPAN * 2);
        let alive = reader.liveliness_changed();
        assert!(matched.elapsed() > SPAN * 3 || alive.alive == 1, "{role}: it is asserted: {alive:?}");
        eventually("it is not alive", || reader.liveliness_changed().not_alive == 1);
        assert_eq!(take(&reader, 1)[0].data().unwrap().color, "LOST", "{role}: the writer tells of it");
        eventually("a sample is a sign of life", || reader.liveliness_changed().alive == 1);
    }
}

#[test]
fn a_reader_that_wants_fewer_samples_gets_them_apart() {
    let timing = ReaderTiming { minimum_separation: SPAN / 5, ..ReaderTiming::default() };
    let (_other, reader, _alive) = reader_of("steady", ReaderQos { timing, ..late_reader() });
    let samples = take(&reader, 10);
    for two in samples.windows(2) {
        let apart = two[1].info().received.since(two[0].info().received);
        // The newest of those that came too early is handed over at the end of the period, and came before.
        let ahead = two[1].data().unwrap().x - two[0].data().unwrap().x;
        assert!(ahead >= 2 && apart >= SPAN / 10, "{ahead} samples and {apart:?} apart");
    }
    assert!(reader.counters().withheld >= 10);
}

#[test]
fn the_last_value_that_came_too_early_follows_when_there_is_room() {
    let qos = ReaderQos {
        timing: ReaderTiming { minimum_separation: SPAN / 5, ..ReaderTiming::default() },
        resource_limits: ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() },
        ..reliable_reader()
    };
    let ends = pair::<Shape>("last", reliable_writer(), qos);
    (0..10).for_each(|x| _ = ends.writer.write(&Shape::new("A", x)).unwrap());
    ends.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    eventually("its time comes while the reader is full", || ends.reader.counters().rejected == 1);
    let values: Vec<i32> = take(&ends.reader, 2).iter().map(|sample| sample.data().unwrap().x).collect();
    assert_eq!(values, [0, 9]);
}

#[test]
fn a_filter_lets_only_its_samples_through() {
    let (domain, name) = (domain(), unique("filter"));
    let participant = participant(domain);
    let topic = participant.create_topic::<Shape>(&name);
    let filter = Filter::parse("x BETWEEN %0 AND 29 AND color LIKE 'A%'", &["20"]).unwrap();
    let builder = participant.reader_builder(&topic).qos(late_reader());
    let reader = builder.filter(filter).unwrap().create().unwrap();
    let _other = start("steady", domain, &name);
    let all: Vec<i32> = take(&reader, 10).iter().map(|sample| sample.data().unwrap().x).collect();
    assert_eq!(all, (20..30).collect::<Vec<i32>>());
    std::thread::sleep(SPAN);
    assert_eq!((reader.available(), reader.sample_lost().total), (0, 0));
    let unfit = Filter::parse("weight = 1", &[""; 0]).unwrap();
    let error = participant.reader_builder(&topic).filter(unfit).map(drop).unwrap_err();
    assert!(error.to_string().contains("no member \"weight\""), "{error}");
}

#[test]
fn a_writer_sends_nothing_that_all_its_readers_refuse() {
    let (domain, name) = (domain(), unique("unwanted"));
    let participant = participant(domain);
    let writer = participant.create_writer(&participant.create_topic::<Shape>(&name), reliable_writer()).unwrap();
    let other = start("filtering", domain, &name);
    writer.wait_for_matched(1, PATIENCE).unwrap();
    (0..1_000).for_each(|x| _ = writer.write(&Shape::new("A", x)).unwrap());
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    let counters = writer.counters();
    assert_eq!((counters.unwanted, counters.transmitted), (990, 10));
    let related = writer.identity_of(
        writer.write_related(&Shape::new("A", 1), writer.identity_of(thalweg::types::SequenceNumber(1))).unwrap(),
    );
    assert_eq!(crate::asynchronous::block_on(writer.send(&Shape::new("A", 1))).unwrap(), related.sequence);
    assert_eq!((writer.counters().unwanted, writer.counters().transmitted), (992, 10));
    // Somebody else wants everything.
    let all = participant.create_reader(&participant.create_topic::<Shape>(&name), reliable_reader()).unwrap();
    writer.wait_for_matched(2, PATIENCE).unwrap();
    all.wait_for_matched(1, PATIENCE).unwrap();
    (0..100).for_each(|x| _ = writer.write(&Shape::new("A", x)).unwrap());
    assert_eq!(take(&all, 100).len(), 100);
    assert_eq!(writer.counters().unwanted, 992);
    drop(other);
}

#[test]
fn a_coherent_set_of_another_process_appears_at_once() {
    let presentation = Presentation { access_scope: AccessScope::Topic, coherent: true, ordered: true };
    let (_other, reader, _alive) = reader_of("coherent", ReaderQos { presentation, ..late_reader() });
    let (mut sets, start) = (0, Instant::now());
    while sets < 20 {
        assert!(start.elapsed() < PATIENCE, "{sets} sets came");
        reader.wait(Duration::from_millis(100));
        let samples = reader.take(usize::MAX);
        assert_eq!(samples.len() % 5, 0, "parts of sets");
        for set in samples.chunks(5) {
            let values: Vec<i32> = set.iter().map(|sample| sample.data().unwrap().x).collect();
            assert!(values.iter().all(|x| *x == values[0]), "{values:?}");
            sets += 1;
        }
    }
    assert_eq!(reader.sample_lost().total, 0);
}

#[test]
fn a_coherent_set_of_two_writers_appears_in_both_readers_at_once() {
    let (_other, subscriber, readers, _alive) = group_of("group coherent", COHERENT);
    let (mut sets, start) = (0, Instant::now());
    while sets < 40 {
        assert!(start.elapsed() < PATIENCE, "{sets} sets came");
        readers[0].wait(Duration::from_millis(100));
        subscriber.begin_access();
        let mut values = [Vec::new(), Vec::new()];
        for (reader, values) in readers.iter().zip(&mut values) {
            values.extend(reader.take(usize::MAX).iter().map(|sample| sample.data().unwrap().x));
            // What comes while the application looks does not appear.
            std::thread::sleep(Duration::from_millis(3));
            assert_eq!(reader.available(), 0);
        }
        subscriber.end_access().unwrap();
        let count = |values: &[i32], x: i32| values.iter().filter(|value| **value == x).count();
        for x in values[0].iter().copied().collect::<std::collections::BTreeSet<i32>>() {
            let expect = (3, if x % 4 == 3 { 0 } else { 2 });
            assert_eq!((count(&values[0], x), count(&values[1], x)), expect, "set {x}: {values:?}");
            sets += 1;
        }
        assert!(values[1].iter().all(|x| values[0].contains(x)), "{values:?}");
    }
    assert_eq!((readers[0].sample_lost().total, readers[1].sample_lost().total), (0, 0));
    assert_eq!(subscriber.end_access().unwrap_err().kind(), ErrorKind::PreconditionNotMet);
}

#[test]
fn a_writer_that_is_created_within_a_set_takes_part_in_it() {
    let (domain, name) = (domain(), unique("within"));
    let (here, there) = (participant(domain), participant(domain));
    let presentation = COHERENT;
    let publisher = here.create_publisher(PublisherQos { presentation, ..PublisherQos::default() });
    let subscriber = there.create_subscriber(SubscriberQos { presentation, ..SubscriberQos::default() });
    let names = [format!("{name}-a"), format!("{name}-b")];
    let reader = |name: &str| subscriber.create_reader(&there.create_topic::<Shape>(name), reliable_reader()).unwrap();
    let writer = |name: &str| publisher.create_writer(&here.create_topic::<Shape>(name), reliable_writer()).unwrap();
    let readers = [reader(&names[0]), reader(&names[1])];
    let first = writer(&names[0]);
    first.wait_for_matched(1, PATIENCE).unwrap();
    publisher.begin_coherent_changes().unwrap();
    first.write(&Shape::new("RED", 1)).unwrap();
    let second = writer(&names[1]);
    second.wait_for_matched(1, PATIENCE).unwrap();
    second.write(&Shape::new("RED", 2)).unwrap();
    publisher.end_coherent_changes().unwrap();
    for (reader, x) in readers.iter().zip([1, 2]) {
        assert_eq!(take(reader, 1)[0].data().unwrap().x, x);
        assert_eq!(reader.sample_lost().total, 0);
    }
}

#[test]
fn samples_of_two_writers_are_read_in_the_order_in_which_their_publisher_wrote_them() {
    let (_other, subscriber, readers, _alive) = group_of("group ordered", ORDERED);
    let (mut last, mut taken, start) = (-1, [0, 0], Instant::now());
    while taken[0] + taken[1] < 600 {
        assert!(start.elapsed() < PATIENCE, "{taken:?} samples came");
        readers[0].wait(Duration::from_millis(20));
        subscriber.begin_access();
        for guid in subscriber.readers_in_order() {
            let at = readers.iter().position(|reader| reader.guid() == guid).unwrap();
            let x = readers[at].take_one().unwrap().data().unwrap().x;
            let expect = (last + 1..).find(|x| if x % 100 < 50 { x % 4 != 2 } else { x % 2 == 0 });
            assert_eq!(Some(x), expect, "after {last}");
            (last, taken[at]) = (x, taken[at] + 1);
        }
        assert_eq!(readers.iter().map(|reader| reader.available()).sum::<usize>(), 0);
        subscriber.end_access().unwrap();
    }
    assert!(taken[0] > 0 && taken[1] > 0, "{taken:?}");
}

#[test]
fn a_sample_does_not_wait_for_a_writer_that_has_nothing_to_say() {
    let (domain, name) = (domain(), unique("idle"));
    let (here, there) = (participant(domain), participant(domain));
    let (_publisher, writers) = group(&here, &name, ORDERED, &["a", "b", "c"]);
    let subscriber = there.create_subscriber(SubscriberQos { presentation: ORDERED, ..SubscriberQos::default() });
    let topics = ["a", "b"].map(|end| there.create_topic::<Shape>(&format!("{name} {end}")));
    let readers = topics.map(|topic| subscriber.create_reader(&topic, late_reader()).unwrap());
    readers.iter().for_each(|reader| reader.wait_for_matched(1, PATIENCE).unwrap());
    for x in 0..20 {
        // Its number is missing at the subscriber.
        writers[2].write(&Shape::new("C", x)).unwrap();
        let written = Instant::now();
        writers[0].write(&Shape::new("A", x)).unwrap();
        assert_eq!(take(&readers[0], 1)[0].data().unwrap().x, x);
        assert!(written.elapsed() < Duration::from_secs(2), "{:?}", written.elapsed());
    }
}

#[test]
fn a_filter_can_be_given_other_parameters() {
    let (domain, name) = (domain(), unique("parameters"));
    let participant = participant(domain);
    let topic = participant.create_topic::<Shape>(&name);
    let filter = Filter::parse("x BETWEEN %0 AND %1", &["5", "6"]).unwrap();
    let reader = participant.reader_builder(&topic).qos(reliable_reader()).filter(filter).unwrap().create().unwrap();
    let _other = start("digits", domain, &name);
    let values = |count| take(&reader, count).iter().map(|sample| sample.data().unwrap().x).collect::<Vec<i32>>();
    assert!(values(20).iter().all(|x| [5, 6].contains(x)));
    reader.set_expression_parameters(&["7", "8"]).unwrap();
    eventually("others come", || values(1) == [7]);
    assert!(values(20).iter().all(|x| [7, 8].contains(x)));
    for wrong in [&["7"][..], &["'seven'", "8"]] {
        assert!(reader.set_expression_parameters(wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(reader.expression_parameters(), Some(vec!["7".to_owned(), "8".to_owned()]));
    assert!(values(20).iter().all(|x| [7, 8].contains(x)));
    let without = participant.create_reader(&topic, reliable_reader()).unwrap();
    assert!(without.set_expression_parameters(&["1"]).unwrap_err().to_string().contains("without one"));
    assert_eq!(without.expression_parameters(), None);
}

#[test]
fn a_writer_is_told_of_the_other_parameters() {
    let (domain, name) = (domain(), unique("told"));
    let (here, there) = (participant(domain), participant(domain));
    let writer = here.create_writer(&here.create_topic::<Shape>(&name), reliable_writer()).unwrap();
    let filter = Filter::parse("x = %0", &["1"]).unwrap();
    let builder = there.reader_builder(&there.create_topic::<Shape>(&name)).qos(reliable_reader());
    let reader = builder.filter(filter).unwrap().create().unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    let sends = |x| {
        let before = writer.counters();
        writer.write(&Shape::new("A", x)).unwrap();
        writer.counters().unwanted == before.unwanted
    };
    eventually("its filter is known", || !sends(2));
    assert!(sends(1));
    assert_eq!(take(&reader, 1)[0].data().unwrap().x, 1);
    reader.set_expression_parameters(&["2"]).unwrap();
    eventually("it sends what is wanted now", || sends(2));
    assert!(!sends(1), "and not what was wanted before");
    assert_eq!(take(&reader, 1)[0].data().unwrap().x, 2);
}

#[test]
fn what_nobody_writes_any_more_goes_when_the_reader_says_so() {
    let lifecycle = ReaderLifecycle { autopurge_nowriter_samples_delay: SPAN, autopurge_disposed_samples_delay: SPAN };
    let (other, reader, _alive) = reader_of("disposing", ReaderQos { lifecycle, ..late_reader() });
    eventually("both instances have come", || reader.available() >= 3);
    let ended = Instant::now();
    eventually("the samples of the disposed instance go", || reader.available() == 1);
    assert!(ended.elapsed() >= SPAN / 2, "{:?} after the dispose", ended.elapsed());
    other.signal("-KILL");
    eventually("the samples of a dead writer go", || reader.available() == 0);
    assert_eq!((reader.next_instance(None), reader.counters().expired), (None, 2));
}

#[test]
fn samples_that_are_older_at_their_source_are_not_handed_over() {
    let qos = ReaderQos { destination_order: DestinationOrder::BySource, ..late_reader() };
    let (_other, reader, _alive) = reader_of("stamped", qos);
    let seconds: Vec<i32> = take(&reader, 3).iter().map(|sample| sample.data().unwrap().x).collect();
    assert_eq!(seconds, [20, 30, 30]);
    eventually("the others have come as well", || reader.counters().withheld == 2);
    assert_eq!(reader.available(), 0);
}
