mod changes;

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use thalweg::qos::{Durability, History, Ownership};
use thalweg::types::{EntityId, GuidPrefix, KeyHash, SequenceNumber};
use thalweg::{DataWriter, Payload, Topic, Type};

use super::intake::QueuedContent;
use super::*;
use crate::contents::read_contents;
use crate::files::Compression;
use crate::tests::files::{Folder, options};
use crate::type_identity::TypeIdentity;
use crate::type_search::TypeSearch;

fn recording() -> Arc<Recording> {
    Arc::new(Recording {
        queue: ByteQueue::new(1 << 30),
        ledger: Ledger::default(),
        clock: ReceptionClock::default(),
        writers: Mutex::default(),
        early: Mutex::default(),
    })
}

fn about(found: Option<Option<(Type, Arc<TypeSchema>)>>) -> Arc<AboutTopic> {
    let cell = OnceLock::new();
    found.into_iter().for_each(|found| drop(cell.set(found)));
    let (name, type_name, has_others) = ("t".to_owned(), "T".to_owned(), AtomicBool::new(false));
    Arc::new(AboutTopic { name, type_name, keyed: Keyed::No, found: cell, has_others })
}

fn guid(number: u32) -> Guid {
    let mut prefix = [1; 12];
    prefix[..4].copy_from_slice(&number.to_be_bytes());
    Guid { prefix: GuidPrefix(prefix), entity: EntityId([0, 0, 1, 3]) }
}

fn announce(recording: &Recording, writer: Guid, qos: &thalweg::qos::WriterQos) {
    let announced = AnnouncedWriter::new(demand(true, true), None, RecordedQos::of(qos), NumberSet::default());
    recording.writers().insert(writer, announced);
}

fn offer(recording: &Recording, about: &Arc<AboutTopic>, writer: Guid, sequence: i64, bytes: usize) {
    offer_at(recording, about, writer, (sequence, 1_000), bytes);
}

/// A sample of this number, with this time of reception.
fn offer_at(recording: &Recording, about: &Arc<AboutTopic>, writer: Guid, (sequence, at): (i64, u64), bytes: usize) {
    let sample = QueuedSample {
        about: Arc::clone(about),
        writer,
        sequence: SequenceNumber(sequence),
        instance: KeyHash::default(),
        arrived: Instant::now(),
        log_time_ns: at,
        publish_time_ns: at,
        content: QueuedContent::Value(Payload::from(vec![7; bytes])),
    };
    assert_eq!(recording.queue.offer(sample, bytes), Ok(()));
    recording.ledger.note(writer, "t", SequenceNumber(sequence), crate::ledger::RecordingFate::Arrived);
}

/// Writes what waits, and gives the files.
fn write(recording: &Arc<Recording>, path: PathBuf, split: Option<u64>) -> Vec<PathBuf> {
    let files = RecordingFiles::create(options(path, Compression::None, split)).expect("created");
    recording.queue.close();
    Disk::new(files, Arc::clone(recording)).run().expect("written")
}

#[test]
fn what_is_repeated_in_each_file_begins_no_further_files() {
    let folder = Folder::new("latched-split");
    let (recording, about) = (recording(), about(Some(None)));
    let qos = thalweg::qos::WriterQos {
        durability: Durability::TransientLocal,
        history: History::KeepLast(1),
        ..thalweg::qos::WriterQos::default()
    };
    announce(&recording, guid(1), &qos);
    announce(&recording, guid(2), &thalweg::qos::WriterQos::default());
    // A map that is longer than a file, and small samples beside it.
    offer(&recording, &about, guid(1), 1, 50_000);
    (1..=200).for_each(|sequence| offer(&recording, &about, guid(2), sequence, 100));
    let paths = write(&recording, folder.0.join("run.mcap"), Some(10_000));
    // 200 samples have some 30 kB with what stands around them.
    assert!((2..10).contains(&paths.len()), "{} files", paths.len());
    assert_eq!(recording.ledger.summary().recorded(), 201);
}

#[test]
fn what_writers_kept_that_have_gone_is_not_repeated() {
    let counts = [false, true].map(|goes| {
        let folder = Folder::new(&format!("gone-{goes}"));
        let (recording, about) = (recording(), about(Some(None)));
        let durability = Durability::TransientLocal;
        announce(&recording, guid(1), &thalweg::qos::WriterQos { durability, ..thalweg::qos::WriterQos::default() });
        announce(&recording, guid(2), &thalweg::qos::WriterQos::default());
        offer(&recording, &about, guid(1), 1, 100);
        (1..=200).for_each(|sequence| offer(&recording, &about, guid(2), sequence, 100));
        recording.writers().get_mut(&guid(1)).expect("announced").is_gone = goes;
        let paths = write(&recording, folder.0.join("run.mcap"), Some(10_000));
        assert!(paths.len() > 1);
        let messages = |path: &PathBuf| {
            let bytes = std::fs::read(path).expect("written");
            mcap::MessageStream::new(&bytes).expect("an MCAP file").count()
        };
        paths.iter().map(messages).sum::<usize>() - 201 == paths.len() - 1
    });
    assert_eq!(counts, [true, false]);
}

#[test]
fn files_of_an_earlier_recording_are_told_of_before_anything_is_recorded() {
    let folder = Folder::new("left-over");
    std::fs::write(folder.0.join("run_7.mcap"), b"old").expect("written");
    std::fs::write(folder.0.join("run_x.mcap"), b"other").expect("written");
    let create = |name: &str, split| RecordingFiles::create(options(folder.0.join(name), Compression::None, split));
    let refused = create("run.mcap", Some(10_000)).err().expect("it would end at its eighth file").to_string();
    assert!(refused.contains("run_7.mcap: exists already"), "{refused}");
    assert!(create("run.mcap", None).is_ok() && create("ru.mcap", Some(10_000)).is_ok());
}

#[test]
fn more_writers_than_a_file_has_channels_are_counted_and_end_no_recording() {
    let folder = Folder::new("channels");
    let (recording, about) = (recording(), about(Some(None)));
    let count = u32::from(u16::MAX) + 10;
    for number in 0..count {
        if number < WRITERS_MAX as u32 {
            announce(&recording, guid(number), &thalweg::qos::WriterQos::default());
        }
        offer(&recording, &about, guid(number), 1, 8);
    }
    offer(&recording, &about, guid(0), 2, 8);
    let begun = Instant::now();
    write(&recording, folder.0.join("run.mcap"), None);
    let summary = recording.ledger.summary();
    assert_eq!(summary.recorded(), WRITERS_MAX as u64 + 1);
    assert_eq!(summary.dropped(), u64::from(count) - WRITERS_MAX as u64);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
fn writers_whose_type_never_comes_hold_up_the_others_no_longer_than_one_does() {
    let folder = Folder::new("untyped");
    let (recording, known, unknown) = (recording(), about(Some(None)), about(None));
    (0..20).for_each(|number| offer(&recording, &unknown, guid(number), 1, 8));
    announce(&recording, guid(99), &thalweg::qos::WriterQos::default());
    offer(&recording, &known, guid(99), 1, 8);
    let begun = Instant::now();
    write(&recording, folder.0.join("run.mcap"), None);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(recording.ledger.summary().recorded(), 21);
}

#[test]
fn the_search_for_a_type_waits_for_no_silent_participant() {
    let alone = |name: &str| {
        let tag = format!("type-search-{name}-{}", std::process::id());
        DomainParticipant::builder(0).loopback_only().domain_tag(tag).create().expect("a participant")
    };
    let (participant, far) = (alone("here"), alone("there"));
    let types = thalweg_types::idl::parse("struct Far { long x; };").expect("IDL");
    let described: Topic<Raw> = far.create_raw_topic("far", "Far", Keyed::No, None);
    let described = described.described_as(types.find("Far").expect("Far")).expect("described");
    let writer = far.create_writer(&described, thalweg::qos::WriterQos::default()).expect("a writer");
    let own = far.publications().into_iter().find(|known| known.data.guid == writer.guid());
    let information = own.and_then(|known| known.data.type_information.clone()).expect("information");
    let mut search = TypeSearch::new(Instant::now());
    for number in 0..100 {
        search.add_description(guid(number).prefix, &information);
    }
    let begun = Instant::now();
    let nowhere = |_: &str| Ok(None);
    let asked = search.look(begun, &participant, &nowhere, "Far", Duration::ZERO);
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    if let Some(found) = asked {
        panic!("over at once: {:?}", found.map(|(_, origin)| origin));
    }
    let later = search.look(begun + Duration::from_secs(2), &participant, &nowhere, "Far", Duration::ZERO);
    assert!(later.is_some_and(|found| found.is_err()));
}

fn demand(is_reliable: bool, is_durable: bool) -> Demand {
    Demand { is_reliable, is_durable, ownership: Ownership::Shared, partition: Vec::new() }
}

/// Makes a writer of a topic known that asks for a reader of its own.
fn look_at(recording: &Recording, about: &Arc<AboutTopic>, writer: Guid, demand: &Demand) {
    let taken = recording.taken_early(writer);
    let qos = RecordedQos::of(&thalweg::qos::WriterQos::default());
    let announced = AnnouncedWriter::new(demand.clone(), Some(Arc::clone(about)), qos, taken);
    recording.writers().insert(writer, announced);
}

#[test]
fn samples_of_a_writer_that_nobody_has_looked_at_are_taken_once_from_whoever_brings_them() {
    let (recording, about) = (recording(), about(None));
    let (lesser, own) = (demand(false, false), demand(true, false));
    let takes = |demand: &Demand, sequence| recording.is_for(&about, demand, guid(1), SequenceNumber(sequence));
    assert!(takes(&lesser, 1) && !takes(&own, 1) && takes(&own, 2) && !takes(&lesser, 2));
    // It is looked at: the reader for it goes on where both were.
    look_at(&recording, &about, guid(1), &own);
    assert!(!takes(&lesser, 3) && !takes(&own, 1) && !takes(&own, 2) && takes(&own, 3));
    assert!(recording.early().is_empty());
}

#[test]
fn what_a_new_writer_kept_is_recorded_though_another_reader_has_got_a_later_sample() {
    let (volatile, durable) = (demand(true, false), demand(true, true));
    for is_looked_at_before in [true, false] {
        let (recording, about) = (recording(), about(None));
        let takes = |demand: &Demand, sequence| recording.is_for(&about, demand, guid(1), SequenceNumber(sequence));
        assert!(takes(&volatile, 101));
        if is_looked_at_before {
            look_at(&recording, &about, guid(1), &durable);
        }
        assert!((1..=100).all(|sequence| takes(&durable, sequence)), "looked at before: {is_looked_at_before}");
        if !is_looked_at_before {
            look_at(&recording, &about, guid(1), &durable);
        }
        assert!(!takes(&durable, 101) && takes(&durable, 102) && !takes(&volatile, 103));
    }
}

#[test]
fn what_one_reader_missed_of_a_new_writer_is_recorded_from_another_one() {
    let (recording, about) = (recording(), about(None));
    let (lesser, own) = (demand(false, false), demand(true, false));
    let takes = |demand: &Demand, sequence| recording.is_for(&about, demand, guid(1), SequenceNumber(sequence));
    assert!([1, 2, 4, 5].into_iter().all(|sequence| takes(&lesser, sequence)));
    look_at(&recording, &about, guid(1), &own);
    assert_eq!([1, 2, 3, 4, 5, 6].map(|sequence| takes(&own, sequence)), [false, false, true, false, false, true]);
}

#[test]
fn what_came_of_a_writer_during_a_look_is_known_to_the_next_one() {
    let (recording, about) = (recording(), about(None));
    let (lesser, own) = (demand(false, false), demand(true, true));
    let takes = |demand: &Demand, sequence| recording.is_for(&about, demand, guid(1), SequenceNumber(sequence));
    // The look began before anybody knew of the writer.
    assert!(takes(&lesser, 1));
    recording.forget_early(&HashSet::new());
    look_at(&recording, &about, guid(1), &own);
    assert!(!takes(&own, 1) && takes(&own, 2));
    // One that is seen in between is not gone.
    assert!(recording.is_for(&about, &lesser, guid(2), SequenceNumber(1)));
    for present in [HashSet::new(), HashSet::from([guid(2)]), HashSet::new()] {
        recording.forget_early(&present);
        assert!(!recording.is_for(&about, &lesser, guid(2), SequenceNumber(1)));
    }
    recording.forget_early(&HashSet::new());
    assert!(recording.early().is_empty());
}

#[test]
fn no_sample_is_stamped_before_an_earlier_one_of_its_writer() {
    let folder = Folder::new("stamps");
    let (recording, about) = (recording(), about(Some(None)));
    for (writer, sequence, at) in [(1, 1, 1_000), (1, 2, 900), (2, 1, 950), (1, 3, 1_100), (2, 2, 940)] {
        announce(&recording, guid(writer), &thalweg::qos::WriterQos::default());
        offer_at(&recording, &about, guid(writer), (sequence, at), 8);
    }
    let paths = write(&recording, folder.0.join("run.mcap"), None);
    let mut reader = crate::read::RecordingReader::new(std::fs::File::open(&paths[0]).expect("a file"));
    let mut stamps = Vec::new();
    while let Some(entry) = reader.read_entry().expect("understood") {
        if let crate::read::Entry::Message { log_time_ns, .. } = entry {
            stamps.push(log_time_ns);
        }
    }
    assert_eq!(stamps, [1_000, 1_000, 950, 1_100, 950]);
}

const LONG: &str = "@final struct T { @key long id; long x; };";
const TEXT: &str = "@final struct T { @key string id; double x; };";

fn type_of(text: &str) -> Type {
    thalweg_types::idl::parse(text).expect("IDL").find("T").expect("T").clone()
}

#[test]
fn a_writer_has_the_definition_that_it_announces_and_else_the_first_one() {
    let announced = |number, text: Option<&str>| {
        let information = text.map(|text| {
            let described = thalweg_types::type_object::describe(&type_of(text)).expect("described");
            Arc::from(described.information.to_bytes().expect("bytes"))
        });
        let data = PublicationData::new(guid(number), "t", "T", thalweg::qos::WriterQos::default());
        data.with_type_information(information)
    };
    let found = |text: &str| Some((type_of(text), Arc::new(TypeSchema::of("T", &type_of(text)))));
    // What files have under the name of a type that its first writer does not tell, if that was looked for.
    for (of_files, numbers) in [
        (None, [0, 0, 1, 0, 0]),
        (Some(None), [0, 1, 2, 0, 1]),
        (Some(found(LONG)), [0, 0, 1, 0, 0]),
        (Some(found(TEXT)), [0, 1, 0, 0, 1]),
    ] {
        let mut topics = RecordedTopics::default();
        let mut known: Vec<Arc<AboutTopic>> = Vec::new();
        let got = [None, Some(LONG), Some(TEXT), None, Some(LONG)].map(|text| {
            let about = topics.define(&announced(1, text), Instant::now()).expect("recorded");
            if let (true, Some(found)) = (known.is_empty(), &of_files) {
                assert!(about.found.set(found.clone()).is_ok());
            }
            known.iter().position(|one| Arc::ptr_eq(one, &about)).unwrap_or_else(|| {
                known.push(about);
                known.len() - 1
            })
        });
        assert_eq!(got, numbers);
    }
    let mut topics = RecordedTopics::default();
    let text = |number: usize| format!("@final struct T {{ @key long id; long x[{}]; }};", number + 1);
    let mut define = |number: usize| topics.define(&announced(1, Some(&text(number))), Instant::now());
    assert!((0..16).all(|number| define(number).is_ok()));
    assert!(matches!(define(16), Err(RecorderNews::Refused { reason, .. }) if reason.contains("16 definitions")));
}

#[test]
fn a_definition_that_a_writer_announces_counts_before_another_one_of_its_name_in_files() {
    let alone = |name: &str| {
        let tag = format!("definition-search-{name}-{}", std::process::id());
        DomainParticipant::builder(0).loopback_only().domain_tag(tag).create().expect("a participant")
    };
    let (here, far) = (alone("here"), alone("there"));
    let writer = described_writer(&far, LONG, Keyed::Yes);
    let own = far.publications().into_iter().find(|known| known.data.guid == writer.guid());
    let information = own.and_then(|known| known.data.type_information.clone()).expect("information");
    let begun = Instant::now();
    let look = |participant: &DomainParticipant, of_files: &str, after_s: u64| {
        let files = |_: &str| Ok(Some(type_of(of_files)));
        let mut search = TypeSearch::new(begun);
        search.add_description(far.guid_prefix(), &information);
        let found = search
            .look(begun, participant, &files, "T", Duration::ZERO)
            .or_else(|| search.look(begun + Duration::from_secs(after_s), participant, &files, "T", Duration::ZERO));
        let found = found.map(|found| found.expect("found"));
        found.map(|(of, origin)| (TypeIdentity::of(&of), origin == "files", search.found().is_some()))
    };
    let [long, text] = [LONG, TEXT].map(|text| TypeIdentity::of(&type_of(text)));
    // The participant knows its own types.
    assert_eq!(look(&far, TEXT, 0), Some((long.clone(), false, true)));
    assert_eq!(look(&far, LONG, 0), Some((long.clone(), true, true)));
    // Nobody answers to the other one.
    assert_eq!(look(&here, LONG, 0), Some((long, true, true)));
    assert_eq!(look(&here, TEXT, 0), None);
    assert_eq!(look(&here, TEXT, 2), Some((text, true, false)));
}

/// A writer of the topic `shape`, which tells this definition of its type.
fn described_writer(participant: &DomainParticipant, text: &str, keyed: Keyed) -> DataWriter<Raw> {
    let of = type_of(text);
    let own = of.clone();
    let key_of: thalweg::KeyOf = Arc::new(move |bytes, kind| crate::instance::instance_of(&own, bytes, kind));
    let topic = participant.create_raw_topic("shape", "T", keyed, (keyed == Keyed::Yes).then_some(key_of));
    let qos = thalweg::qos::WriterQos {
        reliability: thalweg::qos::Reliability::RELIABLE,
        history: History::KeepAll,
        ..thalweg::qos::WriterQos::default()
    };
    participant.create_writer(&topic.described_as(&of).expect("described"), qos).expect("a legal QoS")
}

/// Records a sample each of two writers with different definitions of one type name, whose readers are this many.
#[track_caller]
fn check_definitions(keyed: Keyed, texts: [&str; 2], readers: usize) {
    let folder = Folder::new(&format!("definitions-{keyed:?}"));
    let tag = format!("definitions-{keyed:?}-{}", std::process::id());
    let create = || DomainParticipant::builder(0).loopback_only().domain_tag(&tag).create().expect("a participant");
    let (here, there) = (create(), [create(), create()]);
    let path = folder.0.join("run.mcap");
    let options = RecorderOptions {
        topics: TopicSelection::default(),
        memory_bytes_max: 1 << 20,
        files: options(path.clone(), Compression::None, None),
    };
    let types = |_: &str| Ok(None);
    let mut recorder = Recorder::start(&here, options, &types).expect("started");
    let writers = [0, 1].map(|number| described_writer(&there[number], texts[number], keyed));
    let (begun, mut news) = (Instant::now(), Vec::new());
    while news.len() < 2 || writers.iter().any(|writer| writer.matched_readers().len() < readers) {
        news.extend(recorder.look());
        assert!(begun.elapsed() < Duration::from_secs(30), "{news:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let is_known = |news: &RecorderNews| matches!(news, RecorderNews::Topic { origin: Ok(_), .. });
    let is_other = |news: &RecorderNews| matches!(news, RecorderNews::Definition { origin: Ok(_), .. });
    assert!(news.iter().any(is_known) && news.iter().any(is_other), "{news:?}");
    let samples: [&[u8]; 2] =
        [&[0, 1, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0], &[0, 1, 0, 0, 2, 0, 0, 0, b'a', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]];
    for (writer, sample) in writers.iter().zip(samples) {
        writer.write_payload(&Payload::from(sample.to_vec()), None, None).expect("written");
        if keyed == Keyed::Yes {
            // The key comes first.
            let key = if sample.len() == 12 { &sample[..8] } else { &sample[..10] };
            writer.dispose_serialized(key, None).expect("disposed");
        }
        writer.wait_for_acknowledgments(Duration::from_secs(30)).expect("acknowledged");
    }
    let (summary, _) = recorder.finish().expect("written");
    let ends = if keyed == Keyed::Yes { 2 } else { 0 };
    assert_eq!((summary.recorded(), summary.dropped(), &summary.lost), (2 + ends, 0, &BTreeMap::new()));
    let contents = read_contents(&path).expect("understood");
    assert_eq!((contents.channels.len(), contents.instance_ends), (2, ends));
    for (writer, text) in writers.iter().zip(texts) {
        let channels = contents.channels.values().filter_map(|counted| counted.channel.as_ref()?.writer.as_ref().ok());
        let own = channels.filter(|recorded| recorded.writer == writer.guid().to_string()).collect::<Vec<_>>();
        let [own] = &own[..] else { panic!("one channel is wanted: {own:?}") };
        let schema = own.schema.as_ref().expect("a schema");
        let of = schema.to_type().expect("understood").expect("a type");
        assert_eq!(TypeIdentity::of(&of), TypeIdentity::of(&type_of(text)), "{}", schema.text);
    }
}

#[test]
fn writers_with_different_definitions_of_one_type_name_are_recorded_each_with_its_own() {
    check_definitions(Keyed::Yes, [LONG, TEXT], 2);
    check_definitions(
        Keyed::No,
        ["@final struct T { long id; long x; };", "@final struct T { string id; double x; };"],
        1,
    );
}
