//! What is written is read, whole or cut off anywhere.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use thalweg::types::Keyed;

use crate::channel::RecordedWriter;
use crate::contents::read_contents;
use crate::error::RecordingError;
use crate::files::{Compression, FileOptions, RecordedMessage, RecordingFiles};
use crate::qos::RecordedQos;
use crate::read::{Entry, InstanceEnd, RecordingReader, channels_of};
use crate::schema::TypeSchema;
use crate::summary::RecordingSummary;

/// A folder of this test's own, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("thalweg-recording-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn writer(topic: &str, guid: &str) -> RecordedWriter {
    RecordedWriter {
        topic: topic.to_owned(),
        type_name: "a::T".to_owned(),
        keyed: Keyed::No,
        qos: RecordedQos::default(),
        writer: guid.to_owned(),
        schema: Some(Arc::new(TypeSchema {
            name: "a::T".to_owned(),
            encoding: "omgidl".to_owned(),
            text: "module a { struct T { long x; }; };".to_owned(),
        })),
    }
}

pub fn options(path: PathBuf, compression: Compression, split_bytes: Option<u64>) -> FileOptions {
    FileOptions { path, split_bytes, compression, chunk_bytes: 1_000 }
}

/// A file with samples of two writers, in chunks that are flushed every ten samples.
fn write(path: PathBuf, compression: Compression, split: Option<u64>, count: u32) -> Vec<PathBuf> {
    let mut files = RecordingFiles::create(options(path, compression, split)).expect("created");
    let numbers = [files.add_writer(writer("rt/one", "g1")), files.add_writer(writer("two", "g2"))];
    for sequence in 0..count {
        let data = [sequence as u8; 100];
        let time = 1_000 + u64::from(sequence);
        let message = RecordedMessage { sequence, log_time_ns: time, publish_time_ns: time - 500, data: &data };
        files.begin_if_due(RecordingSummary::default).expect("split");
        files.write(numbers[sequence as usize % 2], &message).expect("written");
        if sequence % 10 == 9 {
            files.flush().expect("flushed");
        }
    }
    files.finish(&RecordingSummary::default()).expect("finished");
    files.paths().to_vec()
}

/// The sequence numbers in a file up to its end, and whether it is cut off.
fn read(bytes: &[u8]) -> Result<(Vec<u32>, bool), String> {
    let mut reader = RecordingReader::new(bytes);
    let mut numbers = Vec::new();
    while let Some(entry) = reader.read_entry().map_err(|error| error.to_string())? {
        if let Entry::Message { sequence, data, channel, log_time_ns, publish_time_ns } = entry {
            assert_eq!(data, [sequence as u8; 100]);
            assert_eq!((log_time_ns, publish_time_ns), (1_000 + u64::from(sequence), 500 + u64::from(sequence)));
            let expected = if sequence % 2 == 0 { writer("rt/one", "g1") } else { writer("two", "g2") };
            assert_eq!(channel.writer, Ok(expected));
            numbers.push(sequence);
        }
    }
    Ok((numbers, reader.cut_off().is_some()))
}

#[test]
fn what_is_written_is_read_in_every_compression() {
    let folder = Folder::new("compression");
    for (number, compression) in [Compression::None, Compression::Lz4, Compression::Zstd].into_iter().enumerate() {
        let path = folder.0.join(format!("{number}.mcap"));
        write(path.clone(), compression, None, 95);
        let bytes = std::fs::read(&path).expect("a file");
        assert_eq!(read(&bytes), Ok(((0..95).collect(), false)), "{compression:?}");
        let channels = channels_of(&path).expect("channels");
        let names: Vec<&str> = channels.iter().map(|channel| channel.name.as_str()).collect();
        assert_eq!(names, ["/one", "two"]);
    }
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_read_up_to_its_last_whole_chunk() {
    let folder = Folder::new("cut");
    let path = folder.0.join("run.mcap");
    write(path.clone(), Compression::Zstd, None, 50);
    let bytes = std::fs::read(&path).expect("a file");
    let mut most = 0;
    for length in 0..bytes.len() {
        match read(&bytes[..length]) {
            // The magic, the profile and the program's name.
            Err(error) => assert!(length < 45 && error.contains("no MCAP file"), "{length}: {error}"),
            Ok((numbers, is_cut)) => {
                assert!(is_cut, "{length} of {}", bytes.len());
                assert_eq!(numbers, (0..numbers.len() as u32).collect::<Vec<_>>());
                assert!(numbers.len() >= most, "a longer file has no fewer samples");
                most = numbers.len();
            }
        }
    }
    assert_eq!(most, 50);
    let cut = folder.0.join("cut.mcap");
    std::fs::write(&cut, &bytes[..bytes.len() - 1]).expect("written");
    assert_eq!(channels_of(&cut).expect("channels").len(), 2, "without an index, they are found in the chunks");
}

#[test]
fn a_broken_byte_in_a_chunk_is_told_and_not_taken_for_data() {
    let folder = Folder::new("broken");
    let path = folder.0.join("run.mcap");
    write(path.clone(), Compression::None, None, 50);
    let mut bytes = std::fs::read(&path).expect("a file");
    let sample = bytes.windows(100).position(|window| window == [33; 100]).expect("sample 33");
    bytes[sample + 50] ^= 1;
    let error = read(&bytes).expect_err("the checksum differs");
    assert!(error.contains("CRC"), "{error}");
}

#[test]
fn files_that_are_split_are_whole_each_and_have_each_sample_once() {
    let folder = Folder::new("split");
    let paths = write(folder.0.join("run.mcap"), Compression::None, Some(3_000), 200);
    assert!(paths.len() > 3, "{paths:?}");
    assert!(paths[1].ends_with("run_1.mcap"));
    let mut numbers = Vec::new();
    for path in &paths {
        let (some, is_cut) = read(&std::fs::read(path).expect("a file")).expect("understood");
        assert!(!is_cut && !some.is_empty());
        numbers.extend(some);
    }
    assert_eq!(numbers, (0..200).collect::<Vec<_>>());
}

#[test]
fn an_existing_file_is_never_written_over() {
    let folder = Folder::new("exists");
    let path = folder.0.join("run.mcap");
    std::fs::write(&path, "mine").expect("written");
    let error = RecordingFiles::create(options(path.clone(), Compression::None, None)).err().expect("refused");
    assert!(error.to_string().contains("not written over"), "{error}");
    assert_eq!(std::fs::read(&path).expect("still there"), b"mine");
}

#[test]
fn ends_of_instances_and_counts_are_read_again() {
    let folder = Folder::new("ends");
    let path = folder.0.join("run.mcap");
    let mut files = RecordingFiles::create(options(path.clone(), Compression::None, None)).expect("created");
    let end = InstanceEnd {
        topic: "t".to_owned(),
        writer: "g".to_owned(),
        sequence: 1 << 40,
        disposed: true,
        key: "00010000ff".to_owned(),
    };
    let json = serde_json::to_vec(&end).expect("JSON");
    let message = RecordedMessage { sequence: 0, log_time_ns: 2, publish_time_ns: 1, data: &json };
    files.write_end(&message).expect("written");
    let mut summary = RecordingSummary::default();
    summary.overwritten.insert("t".to_owned(), 3);
    files.finish(&summary).expect("finished");
    let mut reader = RecordingReader::new(std::fs::File::open(&path).expect("a file"));
    let first = reader.read_entry().expect("understood").expect("an entry");
    assert_eq!(end.key_bytes(), Some(vec![0, 1, 0, 0, 255]));
    assert_eq!(first, Entry::InstanceEnd { end, log_time_ns: 2, publish_time_ns: 1 });
    assert_eq!(reader.read_entry().expect("understood"), Some(Entry::Summary(summary)));
    assert_eq!(reader.read_entry().expect("understood"), None);
}

/// An end of an instance, and what is written of it.
fn end_of(sequence: i64) -> (InstanceEnd, Vec<u8>) {
    let (topic, writer, key) = ("t".to_owned(), "g".to_owned(), "00010000ff".to_owned());
    let end = InstanceEnd { topic, writer, sequence, disposed: true, key };
    let json = serde_json::to_vec(&end).expect("JSON");
    (end, json)
}

#[test]
fn a_file_with_a_type_that_nobody_describes_and_an_end_of_an_instance_is_read_by_ros() {
    let folder = Folder::new("ros");
    let path = folder.0.join("run.mcap");
    let mut files = RecordingFiles::create(options(path.clone(), Compression::Zstd, None)).expect("created");
    let undescribed = |topic: &str, type_name: &str| RecordedWriter {
        type_name: type_name.to_owned(),
        schema: None,
        ..writer(topic, topic)
    };
    let wanted =
        [writer("rt/one", "g1"), undescribed("rt/two", "std_msgs::msg::dds_::String_"), undescribed("three", "Three")];
    let message = RecordedMessage { sequence: 1, log_time_ns: 2, publish_time_ns: 1, data: &[0, 1, 0, 0, 9] };
    for one in &wanted {
        let number = files.add_writer(one.clone());
        files.write(number, &message).expect("written");
        files.write_end(&RecordedMessage { data: &end_of(7).1, ..message }).expect("written");
    }
    files.finish(&RecordingSummary::default()).expect("finished");
    // What rosbag2_storage_mcap and rosbag2_cpp refuse: a channel without a schema, and channels that are not encoded alike.
    let bytes = std::fs::read(&path).expect("a file");
    let summary = mcap::Summary::read(&bytes).expect("an index").expect("a summary");
    let mut channels: Vec<_> = summary.channels.values().collect();
    channels.sort_by_key(|channel| channel.id);
    let told: Vec<(&str, &str, &str, &str)> = channels
        .iter()
        .map(|channel| {
            let schema = channel.schema.as_ref().expect("a schema");
            (channel.topic.as_str(), channel.message_encoding.as_str(), schema.name.as_str(), schema.encoding.as_str())
        })
        .collect();
    let expected =
        [("/one", "cdr", "a::T", "omgidl"), ("/two", "cdr", "std_msgs/msg/String", ""), ("three", "cdr", "Three", "")];
    assert_eq!(told, expected);
    // Whoever knows nothing of ends reads the samples.
    assert_eq!(mcap::MessageStream::new(&bytes).expect("an MCAP file").filter_map(Result::ok).count(), 3);
    let read = channels_of(&path).expect("channels");
    let read: Vec<RecordedWriter> = read.iter().map(|channel| channel.writer.clone().expect("a writer")).collect();
    assert_eq!(read, wanted);
    let found = crate::verify::verify(&[path]);
    assert_eq!((found.files[0].messages, found.writers["t g"].found), (6, 3));
}

#[test]
fn ends_of_instances_stand_where_they_came_and_are_on_the_disk_within_a_chunk() {
    let folder = Folder::new("private");
    let path = folder.0.join("run.mcap");
    let mut files = RecordingFiles::create(options(path.clone(), Compression::None, None)).expect("created");
    let number = files.add_writer(writer("rt/one", "g1"));
    for sequence in 1..=40_u32 {
        let (log_time_ns, publish_time_ns) = (u64::from(sequence) + 100, u64::from(sequence));
        let message = RecordedMessage { sequence, log_time_ns, publish_time_ns, data: &[0, 1, 0, 0] };
        if sequence % 2 == 0 {
            files.write(number, &message).expect("written");
        }
        files.write_end(&RecordedMessage { data: &end_of(i64::from(sequence)).1, ..message }).expect("written");
    }
    let whole = (1..=40).flat_map(|number| [(number % 2 == 0).then_some((number, false)), Some((number, true))]);
    let whole: Vec<(u64, bool)> = whole.flatten().collect();
    let read = || {
        let bytes = std::fs::read(&path).expect("a file");
        let mut reader = RecordingReader::new(&bytes[..]);
        let mut order = Vec::new();
        while let Some(entry) = reader.read_entry().expect("understood") {
            match entry {
                Entry::Message { sequence, .. } => order.push((u64::from(sequence), false)),
                Entry::InstanceEnd { end, log_time_ns, publish_time_ns } => {
                    assert_eq!((end, log_time_ns), (end_of(publish_time_ns.cast_signed()).0, publish_time_ns + 100));
                    order.push((publish_time_ns, true));
                }
                Entry::Summary(_) => {}
            }
        }
        order
    };
    // Nobody has flushed it, and a chunk has a thousand bytes here.
    let order = read();
    assert!(order.len() > 40, "{} entries", order.len());
    assert_eq!(order, whole[..order.len()]);
    files.finish(&RecordingSummary::default()).expect("finished");
    assert_eq!(read(), whole);
    // A chunk without messages would begin in 1970.
    let summary = mcap::Summary::read(&std::fs::read(&path).expect("a file")).expect("an index").expect("a summary");
    assert!(summary.chunk_indexes.len() > 2, "{:?}", summary.chunk_indexes);
    assert!(summary.chunk_indexes.iter().all(|chunk| chunk.message_start_time > 100), "{:?}", summary.chunk_indexes);
}

#[test]
fn ends_in_a_channel_of_their_own_and_private_records_of_others_are_read_as_well() {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut writer = mcap::WriteOptions::new().profile("ros2").create(&mut bytes).expect("a writer");
    let channel_id = writer.add_channel(0, "thalweg/instances", "json", &BTreeMap::new()).expect("a channel");
    let header = mcap::records::MessageHeader { channel_id, sequence: 5, log_time: 2, publish_time: 1 };
    let (end, json) = end_of(5);
    writer.write_to_known_channel(&header, &json).expect("written");
    for record in [&b""[..], b"\x03\0\0\0abcdefghijklmnopqrstuvwxyz", b"\xff\xff\xff\xff", b"\0\0\0\0"] {
        let in_chunks = mcap::write::PrivateRecordOptions::IncludeInChunks.into();
        writer.write_private_record(0x80, record, in_chunks).expect("written");
    }
    writer.finish().expect("finished");
    drop(writer);
    let bytes = bytes.into_inner();
    let mut reader = RecordingReader::new(&bytes[..]);
    let read = reader.read_entry().expect("understood");
    assert_eq!(read, Some(Entry::InstanceEnd { end, log_time_ns: 2, publish_time_ns: 1 }));
    assert_eq!(reader.read_entry().expect("understood"), None);
}

#[test]
fn a_length_that_the_file_has_not_takes_no_memory() {
    // A record that says that it has 200 MiB.
    let mut bytes = mcap::MAGIC.to_vec();
    bytes.push(0x05);
    bytes.extend_from_slice(&(200_u64 << 20).to_le_bytes());
    bytes.extend_from_slice(&[0; 100]);
    assert_eq!(read(&bytes).map(|(numbers, _)| numbers.len()).unwrap_or(0), 0);
    // One that says more than is believed.
    let mut bytes = mcap::MAGIC.to_vec();
    bytes.push(0x05);
    bytes.extend_from_slice(&u64::MAX.to_le_bytes());
    assert!(read(&bytes).is_err());
}

#[test]
fn definitions_that_compress_well_take_no_more_memory_than_is_allowed() {
    let folder = Folder::new("bomb");
    let path = folder.0.join("bomb.mcap");
    let file = std::fs::File::create(&path).expect("a file");
    let options = mcap::WriteOptions::new().compression(Some(mcap::Compression::Zstd)).emit_summary_records(false);
    let mut writer = options.create(std::io::BufWriter::new(file)).expect("a writer");
    for number in 0..3 {
        let text = vec![b' '; (30 << 20) + number];
        let schema = writer.add_schema(&format!("a::T{number}"), "omgidl", &text).expect("a schema");
        writer.add_channel(schema, &format!("t{number}"), "cdr", &BTreeMap::new()).expect("a channel");
    }
    writer.finish().expect("finished");
    drop(writer);
    assert!(std::fs::metadata(&path).expect("a file").len() < 1 << 20);
    let error = read_contents(&path).expect_err("90 MiB of definitions").to_string();
    assert!(error.contains("schemas and channels"), "{error}");
    assert_eq!(channels_of(&path).expect("those within the bound").len(), 2);
}

#[test]
fn channels_share_their_schema() {
    let folder = Folder::new("shared");
    let path = folder.0.join("run.mcap");
    write(path.clone(), Compression::None, None, 20);
    let whole = std::fs::read(&path).expect("a file");
    let mut reader = RecordingReader::new(&whole[..]);
    while reader.read_entry().expect("understood").is_some() {}
    let read: Vec<_> = reader.channels().cloned().collect();
    for channels in [read, channels_of(&path).expect("an index")] {
        let schemas: Vec<_> =
            channels.iter().filter_map(|channel| channel.writer.as_ref().ok()?.schema.clone()).collect();
        assert!(schemas.len() == 2 && Arc::ptr_eq(&schemas[0], &schemas[1]));
    }
}

#[test]
fn a_disk_that_is_full_is_told_in_the_words_of_the_system() {
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let error = RecordingError::of_content(std::path::Path::new("run.mcap"), mcap::McapError::Io(full));
    assert_eq!(error.to_string(), "run.mcap: no storage space");
}

#[test]
fn a_topic_that_has_the_name_of_the_channel_of_ends_spoils_no_file() {
    let folder = Folder::new("named");
    let path = folder.0.join("run.mcap");
    let mut files = RecordingFiles::create(options(path.clone(), Compression::None, None)).expect("created");
    let number = files.add_writer(writer("thalweg/instances", "g"));
    let message = RecordedMessage { sequence: 1, log_time_ns: 2, publish_time_ns: 1, data: &[0, 1, 0, 0, 9] };
    files.write(number, &message).expect("written");
    let end =
        InstanceEnd { topic: "t".to_owned(), writer: "g".to_owned(), sequence: 2, disposed: true, key: String::new() };
    let json = serde_json::to_vec(&end).expect("JSON");
    files.write_end(&RecordedMessage { data: &json, ..message }).expect("written");
    files.finish(&RecordingSummary::default()).expect("finished");
    let mut reader = RecordingReader::new(std::fs::File::open(&path).expect("a file"));
    let sample = reader.read_entry().expect("understood");
    assert!(matches!(sample, Some(Entry::Message { data, .. }) if data == [0, 1, 0, 0, 9]));
    assert!(
        matches!(reader.read_entry().expect("understood"), Some(Entry::InstanceEnd { end: read, .. }) if read == end)
    );
}

/// A file of one record.
fn file_of(opcode: u8, record: &[u8]) -> Vec<u8> {
    let mut bytes = mcap::MAGIC.to_vec();
    bytes.push(opcode);
    bytes.extend_from_slice(&(record.len() as u64).to_le_bytes());
    bytes.extend_from_slice(record);
    bytes
}

#[test]
fn records_that_lie_about_what_is_in_them_cost_neither_memory_nor_the_process() {
    let long = u32::MAX.to_le_bytes();
    let text = [1, 0, 0, 0, b'x'];
    let schema = [&[1, 0], &text[..], &long[..], &text[..]].concat();
    let channel = [&[1, 0, 0, 0], &text[..], &text[..], &[9, 0, 0, 0], &text[..], &long[..]].concat();
    for (opcode, record) in [(3, schema), (4, channel), (12, [&text[..], &long].concat()), (12, long.to_vec())] {
        let error = read(&file_of(opcode, &record)).expect_err("a lie");
        assert!(error.contains("longer than its record"), "{opcode}: {error}");
    }
    // An attachment without its checksum, and a header: nothing of them is needed.
    for (opcode, record) in [(9, vec![0; 32]), (1, long.to_vec())] {
        assert_eq!(read(&file_of(opcode, &record)), Ok((Vec::new(), true)), "{opcode}");
    }
}

/// The content of a chunk that is not packed.
fn plain_chunk(records: &[u8]) -> Vec<u8> {
    let size = (records.len() as u64).to_le_bytes();
    [&[0; 16][..], &size, &[0; 4], &[0; 4], &size, records].concat()
}

#[test]
fn records_of_a_chunk_end_within_it() {
    let metadata = [&1_u32.to_le_bytes()[..], b"x", &[0; 4]].concat();
    let record = |bytes: u64| [&[12][..], &bytes.to_le_bytes(), &metadata].concat();
    let whole = plain_chunk(&[record(9), record(9)].concat());
    assert_eq!(read(&file_of(6, &whole)), Ok((Vec::new(), true)));
    for chunk in [plain_chunk(&record(10)), plain_chunk(&record(u64::MAX)), plain_chunk(&record(9)[..8])] {
        let error = read(&file_of(6, &chunk)).expect_err("a lie");
        assert!(error.contains("longer than its chunk"), "{error}");
    }
    // A chunk that lies about its own length.
    let short = [&whole[..32], &u64::MAX.to_le_bytes(), &whole[40..]].concat();
    assert!(read(&file_of(6, &short)).is_err());
}
