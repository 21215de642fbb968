//! What is wrong with the files of a recording is found, and nothing else.

use std::path::PathBuf;

use thalweg::qos::{Durability, WriterQos};

use super::files::{Folder, options, writer};
use crate::channel::RecordedWriter;
use crate::files::{Compression, RecordedMessage, RecordingFiles};
use crate::qos::RecordedQos;
use crate::read::InstanceEnd;
use crate::summary::{ChannelSummary, RecordingSummary};
use crate::verify::{RecordingVerification, verify};

const NAME: &str = "rt/one g1";

fn durable() -> RecordedWriter {
    let qos = WriterQos { durability: Durability::TransientLocal, ..WriterQos::default() };
    RecordedWriter { qos: RecordedQos::of(&qos), ..writer("rt/one", "g1") }
}

fn counts(first: i64, last: i64, recorded: u64, dropped_memory: u64) -> RecordingSummary {
    let topic = "rt/one".to_owned();
    let channel = ChannelSummary { topic, first, last, arrived: recorded, recorded, dropped_memory, dropped_disk: 0 };
    RecordingSummary { channels: [(NAME.to_owned(), channel)].into(), ..RecordingSummary::default() }
}

/// Numbers with their time stamps, and the counts behind them.
type StampedFile = (Vec<(i64, u64)>, RecordingSummary);

/// A file for each list of numbers, with the counts behind it.
fn record(folder: &Folder, of: &RecordedWriter, files: &[(&[i64], RecordingSummary)]) -> Vec<PathBuf> {
    let stamped = |(numbers, counts): &(&[i64], RecordingSummary)| -> StampedFile {
        (numbers.iter().map(|number| (*number, 5)).collect(), counts.clone())
    };
    record_stamped(folder, of, &files.iter().map(stamped).collect::<Vec<_>>())
}

fn record_stamped(folder: &Folder, of: &RecordedWriter, files: &[StampedFile]) -> Vec<PathBuf> {
    let file = |(index, (numbers, counts)): (usize, &StampedFile)| {
        let path = folder.0.join(format!("run_{index}.mcap"));
        let mut files = RecordingFiles::create(options(path.clone(), Compression::None, None)).expect("created");
        let number = files.add_writer(of.clone());
        for (sequence, publish_time_ns) in numbers.iter().copied() {
            let (sequence, data) = (sequence as u32, &[7; 100]);
            let message = RecordedMessage { sequence, log_time_ns: 5, publish_time_ns, data };
            files.write(number, &message).expect("written");
        }
        files.finish(counts).expect("finished");
        path
    };
    files.iter().enumerate().map(file).collect()
}

#[track_caller]
fn check_whole(found: &RecordingVerification) {
    assert!(found.is_whole(), "{:#?}", found.faults);
}

#[track_caller]
fn check_fault(found: &RecordingVerification, wanted: &str) {
    let [fault] = &found.faults[..] else { panic!("one fault is wanted: {:#?}", found.faults) };
    assert!(fault.contains(wanted), "{fault}");
}

#[test]
fn what_is_absent_is_told_and_is_no_fault_where_the_counts_know_of_it() {
    let folder = Folder::new("absent");
    let files = record(&folder, &writer("rt/one", "g1"), &[(&[1, 2, 5, 6, 9], counts(1, 10, 5, 3))]);
    let found = verify(&files);
    check_whole(&found);
    let one = &found.writers[NAME];
    assert_eq!((one.found, one.absent, &one.ranges[..]), (5, 4, &[(3, 4), (7, 8)][..]));
    assert_eq!(one.counts.as_ref().map(ChannelSummary::missing), Some(2), "10 − 5 − 3");
}

#[test]
fn files_that_lack_what_was_counted_are_faulty() {
    let folder = Folder::new("lacking");
    let check = |numbers: &[i64], counts: RecordingSummary, wanted: &str| {
        let files = record(&folder, &writer("rt/one", "g1"), &[(numbers, counts)]);
        check_fault(&verify(&files), wanted);
        files.iter().for_each(|file| std::fs::remove_file(file).expect("removed"));
    };
    check(
        &[1, 2, 3],
        counts(1, 4, 4, 0),
        "4 samples were recorded since the beginning, and the files up to here have 3",
    );
    check(&[1, 2, 4, 3], counts(1, 4, 4, 0), "1 samples are not in the order of their numbers");
    check(&[1, 2, 3], counts(2, 4, 3, 0), "its numbers in the files are 1 to 3, and 2 to 4 arrived");
    check(&[1, 2, 3], counts(1, 2, 3, 0), "3 samples are accounted for, and its numbers are 1 to 2");
    check(&[1, 2, 3], RecordingSummary::default(), "its counts are missing");
}

#[test]
fn what_a_durable_writer_kept_may_stand_behind_a_later_sample() {
    let folder = Folder::new("behind");
    let files = record(&folder, &durable(), &[(&[4, 1, 2, 3, 5], counts(1, 5, 5, 0))]);
    let found = verify(&files);
    check_whole(&found);
    let one = &found.writers[NAME];
    assert_eq!((one.found, one.unordered, one.absent, (one.first, one.last)), (5, 3, 0, (1, 5)));
    let folder = Folder::new("behind-twice");
    let files = record(&folder, &durable(), &[(&[4, 1, 2, 3, 3], counts(1, 4, 4, 0))]);
    check_fault(&verify(&files), "4 samples were recorded since the beginning, and the files up to here have 5");
}

#[test]
fn samples_that_later_files_repeat_count_once() {
    let folder = Folder::new("repeated");
    let parts: [(&[i64], RecordingSummary); 3] =
        [(&[1, 2, 3], counts(1, 3, 3, 0)), (&[3, 4, 5], counts(1, 5, 5, 0)), (&[5, 6], counts(1, 6, 6, 0))];
    let files = record(&folder, &durable(), &parts);
    let found = verify(&files);
    check_whole(&found);
    assert_eq!((found.writers[NAME].found, found.writers[NAME].repeated), (6, 2));
    check_fault(&verify(&[&files[..1], &files[2..]].concat()), "(give all files of a recording, in their order)");
    let folder = Folder::new("not-repeated");
    let files = record(&folder, &writer("rt/one", "g1"), &parts[..2]);
    assert!(!verify(&files).is_whole(), "nobody repeats what a volatile writer wrote");
}

#[test]
fn a_writer_that_begins_anew_under_its_guid_is_no_fault() {
    let folder = Folder::new("anew");
    let first = vec![(1, 1), (2, 2), (3, 3), (1, 4), (2, 5)];
    // What it has kept in both lives is repeated.
    let second = vec![(2, 5), (3, 3), (3, 6)];
    let files = [(first, counts(1, 3, 5, 0)), (second, counts(1, 3, 6, 0))];
    let found = verify(&record_stamped(&folder, &durable(), &files));
    check_whole(&found);
    let one = &found.writers[NAME];
    assert_eq!((one.found, one.repeated, one.unordered, one.begun_anew, (one.first, one.last)), (6, 2, 0, 1, (1, 3)));
    let folder = Folder::new("anew-lacking");
    let files = [(vec![(1, 1), (2, 2), (1, 4)], counts(1, 2, 4, 0))];
    check_fault(&verify(&record_stamped(&folder, &durable(), &files)), "4 samples were recorded since the beginning");
}

#[test]
fn numbers_go_on_beyond_32_bits_and_ends_of_instances_are_among_them() {
    let folder = Folder::new("wide");
    let base = 3_i64 << 32;
    let path = folder.0.join("run.mcap");
    let mut files = RecordingFiles::create(options(path.clone(), Compression::Zstd, None)).expect("created");
    let number = files.add_writer(writer("rt/one", "g1"));
    let of =
        |sequence: i64, data| RecordedMessage { sequence: sequence as u32, log_time_ns: 5, publish_time_ns: 5, data };
    for sequence in [base - 2, base - 1, base] {
        files.write(number, &of(sequence, &[7; 100])).expect("written");
    }
    let (topic, writer, key) = ("rt/one".to_owned(), "g1".to_owned(), String::new());
    let end = InstanceEnd { topic, writer, sequence: base + 2, disposed: true, key };
    files.write_end(&of(base + 2, &serde_json::to_vec(&end).expect("JSON"))).expect("written");
    files.finish(&counts(base - 2, base + 2, 4, 0)).expect("finished");
    let found = verify(&[path]);
    check_whole(&found);
    let one = &found.writers[NAME];
    assert_eq!((one.first, one.last, &one.ranges[..]), (base - 2, base + 2, &[(base + 1, base + 1)][..]));
}

#[test]
fn whatever_octet_of_a_file_changes_is_noticed() {
    let folder = Folder::new("octets");
    let numbers: Vec<i64> = (1..=40).collect();
    let files = record(&folder, &writer("rt/one", "g1"), &[(&numbers, counts(1, 40, 40, 0))]);
    check_whole(&verify(&files));
    let bytes = std::fs::read(&files[0]).expect("a file");
    let changed = folder.0.join("changed.mcap");
    let fault_at = |place: usize, bit: u32| {
        let mut bytes = bytes.clone();
        bytes[place] ^= 1 << bit;
        std::fs::write(&changed, bytes).expect("written");
        verify(std::slice::from_ref(&changed)).faults
    };
    // The end of the data and that of the file say how the rest is checked.
    let data_end = [15, 4, 0, 0, 0, 0, 0, 0, 0];
    let data_end = bytes.windows(data_end.len()).position(|found| found == data_end).expect("the data end");
    let whole = (data_end..data_end + 13).chain(bytes.len() - 37..bytes.len());
    let places = (0..bytes.len()).step_by(5).map(|place| (place, place as u32 % 8));
    let places = places.chain(whole.flat_map(|place| (0..8).map(move |bit| (place, bit))));
    for (place, bit) in places {
        assert!(!fault_at(place, bit).is_empty(), "bit {bit} of octet {place} of {}", bytes.len());
    }
    for end in (0..bytes.len()).step_by(61) {
        std::fs::write(&changed, &bytes[..end]).expect("written");
        assert!(!verify(std::slice::from_ref(&changed)).is_whole(), "cut at {end} of {}", bytes.len());
    }
}

#[test]
fn files_of_others_are_whole_without_counts() {
    let folder = Folder::new("others");
    let files = record(&folder, &writer("rt/one", ""), &[(&[0, 0, 0], RecordingSummary::default())]);
    let found = verify(&files);
    check_whole(&found);
    assert_eq!((found.files[0].messages, found.writers.len()), (3, 0));
    check_fault(&verify(&[folder.0.join("none.mcap")]), "none.mcap: ");
}
