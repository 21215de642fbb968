use thalweg::DataWriter;
use thalweg::qos::{WriterOwnership, WriterQos};

use super::*;

fn participants(name: &str) -> [DomainParticipant; 2] {
    let tag = format!("topic-readers-{name}-{}", std::process::id());
    [(); 2].map(|()| DomainParticipant::builder(0).loopback_only().domain_tag(&tag).create().expect("a participant"))
}

fn notes(participant: &DomainParticipant) -> Topic<Raw> {
    participant.create_raw_topic("notes", "Note", Keyed::No, None)
}

fn reading(takes_history: bool) -> ReadingOptions {
    ReadingOptions { takes_history, depth: 1_000, may_gather: false }
}

fn write(writer: &DataWriter<Raw>, id: u8) {
    writer.write_serialized(&[0, 1, 0, 0, id, 0, 0, 0]).expect("written");
}

#[track_caller]
fn follow_until(readers: &mut TopicReaders<'_>, what: &str, mut is_so: impl FnMut(&mut TopicReaders<'_>) -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !is_so(readers) {
        assert!(Instant::now() < until, "{what}");
        readers.follow();
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Follows the topic until each of the writers has a reader.
#[track_caller]
fn match_all(readers: &mut TopicReaders<'_>, writers: &[&DataWriter<Raw>]) {
    let are_matched = |_: &mut TopicReaders<'_>| writers.iter().all(|writer| !writer.matched_readers().is_empty());
    follow_until(readers, "a writer has no reader", are_matched);
}

/// The ids of the next samples, in their order, with what comes too often.
#[track_caller]
fn take(readers: &mut TopicReaders<'_>, count: usize) -> Vec<u8> {
    let mut ids = Vec::new();
    let mut take = |readers: &mut TopicReaders<'_>| {
        let taken = readers.take(usize::MAX).samples;
        ids.extend(taken.iter().filter(|sample| sample.is_valid()).map(|sample| sample.bytes()[4]));
        ids.len()
    };
    follow_until(readers, "a sample is missing", |readers| take(readers) >= count);
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(20));
        readers.follow();
        take(readers);
    }
    ids.sort_unstable();
    ids
}

#[test]
fn all_writers_are_heard_whatever_they_offer_and_each_sample_once() {
    let [here, there] = participants("all");
    let create = |qos: WriterQos| there.create_writer(&notes(&there), qos).expect("a writer");
    let durable = create(WriterQos::default().transient_local().keep_all());
    write(&durable, 1);
    let volatile = create(WriterQos::default().best_effort());
    let apart = create(WriterQos::default().best_effort().partition(["a"]));
    let pattern = create(WriterQos::default().partition(["x*"]));
    let exclusive = create(WriterQos::default().ownership(WriterOwnership::Exclusive { strength: 3 }));
    let late = create(WriterQos::default().latency_budget(Duration::from_secs(1)));
    let mut readers = TopicReaders::new(&here, &notes(&here), None, reading(true)).expect("readers");
    let writers = [&durable, &volatile, &apart, &pattern, &exclusive, &late];
    match_all(&mut readers, &writers);
    (2..).zip(writers).for_each(|(id, writer)| write(writer, id));
    assert_eq!(take(&mut readers, 7), [1, 2, 3, 4, 5, 6, 7]);
    let next = create(WriterQos::default().transient_local().keep_all().partition(["b"]));
    write(&next, 8);
    assert_eq!(take(&mut readers, 1), [8], "one that comes later");
    volatile.set_qos(WriterQos::default().best_effort().partition(["c"])).expect("it may change");
    follow_until(&mut readers, "it has no reader there", |readers| {
        let own = readers.readers.iter().find(|own| own.demand.partition == ["c"]);
        own.is_some_and(|own| volatile.matched_readers().contains(&own.reader.guid()))
    });
    write(&volatile, 9);
    assert_eq!(take(&mut readers, 1), [9], "one that has moved");
}

#[test]
fn what_comes_first_after_a_wait_for_writers_is_heard() {
    let [here, there] = participants("wait");
    let mut readers = TopicReaders::new(&here, &notes(&here), None, reading(true)).expect("readers");
    assert_eq!(readers.readers.iter().map(|own| own.demand.clone()).collect::<Vec<_>>(), [waiting_demand()]);
    let writer = there.create_writer(&notes(&there), WriterQos::default().partition(["a"])).expect("a writer");
    writer.wait_for_matched(1, Duration::from_secs(30)).expect("matched before anybody looks");
    let until = Instant::now() + Duration::from_secs(30);
    while !here.publications().iter().any(|known| known.data.guid == writer.guid()) {
        assert!(Instant::now() < until, "it is not discovered");
        std::thread::sleep(Duration::from_millis(5));
    }
    write(&writer, 1);
    assert_eq!(take(&mut readers, 1), [1]);
}

#[test]
fn what_writers_have_kept_is_left_out_where_it_is_not_asked_for() {
    let [here, there] = participants("kept");
    let qos = WriterQos::default().transient_local().keep_all();
    let writer = there.create_writer(&notes(&there), qos).expect("a writer");
    (1..=20).for_each(|id| write(&writer, id));
    let mut readers = TopicReaders::new(&here, &notes(&here), None, reading(false)).expect("readers");
    match_all(&mut readers, &[&writer]);
    // A writer has its reader before the reader has the writer: what is written in between counts as kept.
    let (mut id, mut taken) = (20, Vec::new());
    follow_until(&mut readers, "a sample is missing", |readers| {
        id = u8::saturating_add(id, 1);
        write(&writer, id);
        taken.extend(readers.take(usize::MAX).samples.iter().map(|sample| sample.bytes()[4]));
        !taken.is_empty()
    });
    assert!(taken.iter().all(|id| *id > 20), "{taken:?}");
}

#[test]
fn exclusive_writers_are_heard_of_all_instances_that_they_own() {
    let [here, there] = participants("owned");
    let types = thalweg_types::idl::parse("@final struct Robot { @key long id; };").expect("IDL");
    let of = types.find("Robot").expect("Robot");
    let topic = |participant: &DomainParticipant| {
        let of = of.clone();
        let key_of: KeyOf = Arc::new(move |bytes, kind| instance_of(&of, bytes, kind));
        participant.create_raw_topic("robots", "Robot", Keyed::Yes, Some(key_of))
    };
    let [strong, weak] = [9, 1].map(|strength| {
        let qos = WriterQos::default().ownership(WriterOwnership::Exclusive { strength });
        there.create_writer(&topic(&there), qos).expect("a writer")
    });
    let mut readers = TopicReaders::new(&here, &topic(&here), Some(of), reading(true)).expect("readers");
    match_all(&mut readers, &[&strong, &weak]);
    write(&strong, 1);
    assert_eq!(take(&mut readers, 1), [1]);
    write(&weak, 2);
    assert_eq!(take(&mut readers, 1), [2]);
}

#[test]
fn writers_of_another_type_are_told_of_once() {
    let [here, there] = participants("types");
    let other = there.create_raw_topic("notes", "Other", Keyed::No, None);
    let _other = there.create_writer(&other, WriterQos::default()).expect("a writer");
    let mut readers = TopicReaders::new(&here, &notes(&here), None, reading(true)).expect("readers");
    follow_until(&mut readers, "it is not told of", |readers| readers.told.iter().any(|text| text.contains("Other")));
    readers.look();
    assert_eq!((readers.told.len(), readers.writers.len()), (1, 0), "{:?}", readers.told);
}

#[test]
fn readers_that_no_writer_has_asked_for_in_a_while_are_let_go() {
    let [here, _] = participants("idle");
    let mut readers = TopicReaders::new(&here, &notes(&here), None, reading(true)).expect("readers");
    let demand = Demand { is_reliable: true, ..waiting_demand() };
    assert!(readers.open(&demand).is_some());
    let now = Instant::now();
    let after = |readers: &mut TopicReaders<'_>, time: Duration| {
        readers.end_idle(now + time);
        readers.readers.len()
    };
    assert_eq!([Duration::ZERO, KEPT_TIME / 2, KEPT_TIME].map(|time| after(&mut readers, time)), [2, 2, 1]);
}

#[test]
fn samples_that_are_replaced_before_they_are_taken_are_counted_also_of_readers_that_are_let_go() {
    let [here, there] = participants("replaced");
    let qos = WriterQos::default().transient_local().keep_all();
    let writer = there.create_writer(&notes(&there), qos).expect("a writer");
    let until = Instant::now() + Duration::from_secs(30);
    while !here.publications().iter().any(|known| known.data.guid == writer.guid()) {
        assert!(Instant::now() < until, "it is not discovered");
        std::thread::sleep(Duration::from_millis(5));
    }
    let reading = ReadingOptions { depth: 2, ..reading(true) };
    let mut readers = TopicReaders::new(&here, &notes(&here), None, reading).expect("readers");
    (1..=5).for_each(|id| write(&writer, id));
    follow_until(&mut readers, "nothing is replaced", |readers| readers.overwritten() >= 3);
    assert_eq!(take(&mut readers, 2), [4, 5]);
    assert_eq!(readers.overwritten(), 3);
    let now = Instant::now();
    readers.writers.clear();
    readers.end_idle(now);
    readers.end_idle(now + KEPT_TIME);
    assert_eq!((readers.readers.len(), readers.overwritten()), (0, 3));
}

#[test]
fn a_sample_counts_once_and_the_writers_own_reader_comes_before_others() {
    let own = Demand { is_reliable: true, ..waiting_demand() };
    let lesser = waiting_demand();
    let mut writer = HeardWriter::default();
    let mut admits = |demand: &Demand, number: i64| writer.admit(demand, SequenceNumber(number));
    assert!(admits(&lesser, 1) && !admits(&own, 1), "nobody has looked at it");
    writer.demand = Some(own.clone());
    let mut admits = |demand: &Demand, number: i64| writer.admit(demand, SequenceNumber(number));
    assert!(admits(&lesser, 3), "its own reader has got nothing");
    assert_eq!([1, 2, 3, 4].map(|number| admits(&own, number)), [false, true, false, true]);
    assert!(!admits(&lesser, 5) && admits(&own, 5), "its own reader has some");
}

#[test]
fn what_a_writer_writes_that_begins_anew_counts_and_what_is_repeated_does_not() {
    let own = Demand { is_reliable: true, ..waiting_demand() };
    let lesser = waiting_demand();
    let mut writer = HeardWriter { demand: Some(own.clone()), ..HeardWriter::default() };
    let mut admits = |demand: &Demand, number: i64| writer.admit(demand, SequenceNumber(number));
    assert_eq!([1, 2, 3, 1, 2].map(|number| admits(&own, number)), [true; 5]);
    assert!(!admits(&lesser, 1), "its own reader has brought it");
    // It offers something else, and its new reader gets what it kept.
    let other = Demand { is_durable: true, ..own };
    (writer.demand, writer.latest_own) = (Some(other.clone()), None);
    let mut admits = |demand: &Demand, number: i64| writer.admit(demand, SequenceNumber(number));
    assert_eq!([1, 2, 3, 1].map(|number| admits(&other, number)), [false, false, true, true]);
}
