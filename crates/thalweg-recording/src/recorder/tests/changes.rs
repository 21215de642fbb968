//! Writers that change while they are recorded: their partition, their life, and what they keep for late readers.

use thalweg::PayloadKind;
use thalweg::qos::WriterQos;

use super::*;
use crate::read::{Entry, RecordingReader};

/// The partitions of the channels in their order with their messages, of ten samples that a writer writes in the partition a, and ten more
/// in the partition b.
fn recorded_of_a_writer_that_moves(durability: Durability) -> Vec<(Vec<String>, u64)> {
    let folder = Folder::new(&format!("partition-{durability:?}"));
    let path = folder.0.join("run.mcap");
    let tag = format!("recorded-{durability:?}-{}", std::process::id());
    let create = || DomainParticipant::builder(0).loopback_only().domain_tag(&tag).create().expect("a participant");
    let (here, there) = (create(), create());
    let options = RecorderOptions {
        topics: TopicSelection::new(vec!["moved".to_owned()], Vec::new()),
        memory_bytes_max: 1 << 20,
        files: options(path.clone(), Compression::None, None),
    };
    let types = |_: &str| Ok(None);
    let mut recorder = Recorder::start(&here, options, &types).expect("started");
    let qos = |partition: &str| WriterQos {
        reliability: thalweg::qos::Reliability::RELIABLE,
        partition: vec![partition.to_owned()],
        durability,
        history: History::KeepAll,
        ..WriterQos::default()
    };
    let topic = there.create_raw_topic("moved", "Moved", Keyed::No, None);
    let writer = there.create_writer(&topic, qos("a")).expect("a legal QoS");
    let write = |recorder: &mut Recorder<'_>| {
        let start = Instant::now();
        while writer.matched_readers().is_empty() {
            recorder.look();
            assert!(start.elapsed() < Duration::from_secs(30), "nobody records it");
            std::thread::sleep(Duration::from_millis(20));
        }
        let payload = Payload::from(vec![0, 1, 0, 0, 0, 0, 0, 0]);
        (0..10).for_each(|_| _ = writer.write_payload(&payload, None, None).expect("written"));
        writer.wait_for_acknowledgments(Duration::from_secs(30)).expect("acknowledged");
    };
    write(&mut recorder);
    writer.set_qos(qos("b")).expect("it may change");
    while !writer.matched_readers().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    write(&mut recorder);
    recorder.finish().expect("written");
    let contents = read_contents(&path).expect("understood");
    let told = contents.channels.into_values().map(|counted| {
        let channel = counted.channel.expect("a channel");
        let writer = channel.writer.as_ref().expect("a writer");
        (writer.qos.to_writer_qos(1.0).partition, counted.messages)
    });
    told.collect()
}

#[test]
fn a_writer_that_changes_its_partition_is_recorded_on_in_another_channel() {
    let wanted = ["a", "b"].map(|partition| (vec![partition.to_owned()], 10));
    for durability in [Durability::Volatile, Durability::TransientLocal] {
        assert_eq!(recorded_of_a_writer_that_moves(durability), wanted, "{durability}");
    }
}

#[test]
fn what_waits_for_the_disk_has_the_qos_with_which_it_was_written() {
    let qos = |partition: &str| RecordedQos::of(&WriterQos::default().partition([partition]));
    let mut writer = AnnouncedWriter::new(demand(true, false), None, qos("a"), NumberSet::default());
    assert!((1..=3).all(|number| writer.take_number(SequenceNumber(number))));
    // Nothing is written in b.
    for partition in ["b", "c"] {
        writer.change(demand(true, false), None, qos(partition));
    }
    assert!(!writer.take_number(SequenceNumber(3)) && writer.take_number(SequenceNumber(4)));
    // The last one is of a writer that has begun anew.
    for (number, partition) in [(1, "a"), (3, "a"), (4, "c"), (1, "c")] {
        assert_eq!(*writer.take_qos(SequenceNumber(number)), qos(partition), "{number}");
    }
}

#[test]
fn a_writer_that_begins_anew_is_recorded_from_its_first_number_on() {
    let (recording, about) = (recording(), about(None));
    let (lesser, own) = (demand(false, false), demand(true, false));
    let takes = |demand: &Demand, sequence| recording.is_for(&about, demand, guid(1), SequenceNumber(sequence));
    assert!(takes(&lesser, 1) && takes(&lesser, 2));
    look_at(&recording, &about, guid(1), &own);
    assert_eq!([1, 2, 3, 1, 2, 3].map(|sequence| takes(&own, sequence)), [false, false, true, true, true, true]);
}

/// Records samples of a durable writer, by their numbers and seconds, and then what begins another file at this second. Returns what that
/// one repeats.
fn repeated(durable: &WriterQos, samples: &[(i64, u64)], second: u64) -> Vec<u32> {
    let folder = Folder::new(&format!("repeated-{second}"));
    let (recording, about) = (recording(), about(Some(None)));
    announce(&recording, guid(1), durable);
    announce(&recording, guid(2), &WriterQos::default());
    for (sequence, second) in samples {
        offer_at(&recording, &about, guid(1), (*sequence, second * 1_000_000_000), 100);
    }
    (1..=200).for_each(|sequence| offer_at(&recording, &about, guid(2), (sequence, second * 1_000_000_000), 100));
    let paths = write(&recording, folder.0.join("run.mcap"), Some(10_000));
    numbers_of_the_writer(&paths[1])
}

/// The numbers of the first writer's samples in a file.
fn numbers_of_the_writer(path: &std::path::Path) -> Vec<u32> {
    let mut reader = RecordingReader::new(std::fs::File::open(path).expect("a second file"));
    let mut numbers = Vec::new();
    while let Some(entry) = reader.read_entry().expect("understood") {
        let Entry::Message { channel, sequence, .. } = entry else { continue };
        if channel.writer.as_ref().is_ok_and(|writer| writer.writer == guid(1).to_string()) {
            numbers.push(sequence);
        }
    }
    numbers
}

#[test]
fn samples_whose_lifespan_is_over_are_not_repeated() {
    let qos = WriterQos::default().transient_local().keep_last(2).lifespan(Duration::from_secs(5));
    assert_eq!(repeated(&qos, &[(1, 1), (2, 3)], 4), [1, 2]);
    assert_eq!(repeated(&qos, &[(1, 1), (2, 3)], 7), [2]);
    assert_eq!(repeated(&qos, &[(1, 1), (2, 3)], 9), Vec::<u32>::new());
}

/// The numbers of what a second file repeats of a durable writer of a keyed topic, of which an instance has ended.
fn repeated_after_an_end(found: Option<(Type, Arc<TypeSchema>)>) -> Vec<u32> {
    let folder = Folder::new(&format!("ended-{}", found.is_some()));
    let (recording, cell) = (recording(), OnceLock::new());
    assert!(cell.set(found).is_ok());
    let (name, type_name, has_others) = ("t".to_owned(), "T".to_owned(), AtomicBool::new(false));
    let keyed = Arc::new(AboutTopic { name, type_name, keyed: Keyed::Yes, found: cell, has_others });
    let key_of = Arc::clone(&keyed).key_of();
    announce(&recording, guid(1), &WriterQos::default().transient_local().keep_last(9));
    announce(&recording, guid(2), &WriterQos::default());
    let sample = |key: u8| vec![0, 1, 0, 0, key, 0, 0, 0, 1, 0, 0, 0];
    let arrival = |sequence: i64, instance: KeyHash, content: QueuedContent| QueuedSample {
        about: Arc::clone(&keyed),
        writer: guid(1),
        sequence: SequenceNumber(sequence),
        instance,
        arrived: Instant::now(),
        log_time_ns: 1_000,
        publish_time_ns: 1_000,
        content,
    };
    for (sequence, key) in [(1, 7), (2, 8)] {
        let instance = key_of(&sample(key)[..], PayloadKind::Data).expect("a key");
        let value = arrival(sequence, instance, QueuedContent::Value(Payload::from(sample(key))));
        assert_eq!(recording.queue.offer(value, 12), Ok(()));
    }
    let instance = key_of(&sample(7)[..8], PayloadKind::Key).expect("a key");
    let (bytes, kind) = (Payload::from(sample(7)[..8].to_vec()), PayloadKind::Key);
    let end = arrival(3, instance, QueuedContent::End { disposed: true, bytes, kind });
    assert_eq!(recording.queue.offer(end, 8), Ok(()));
    let other = about(Some(None));
    (1..=200).for_each(|sequence| offer(&recording, &other, guid(2), sequence, 100));
    numbers_of_the_writer(&write(&recording, folder.0.join("run.mcap"), Some(10_000))[1])
}

#[test]
fn the_end_of_an_instance_ends_no_other_one_though_nobody_describes_the_type() {
    let found = (type_of(LONG), Arc::new(TypeSchema::of("T", &type_of(LONG))));
    assert_eq!(repeated_after_an_end(Some(found)), [2]);
    // Nobody knows which of them has ended.
    assert_eq!(repeated_after_an_end(None), [1, 2]);
}

#[test]
fn what_a_writer_kept_before_it_began_anew_is_not_repeated() {
    let qos = WriterQos::default().transient_local().keep_last(2);
    assert_eq!(repeated(&qos, &[(7, 1), (8, 2), (1, 3)], 10), [1]);
}
