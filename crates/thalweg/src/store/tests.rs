use std::path::PathBuf;

use thalweg_rtps::history::{ChangeKind, StoredChange};
use thalweg_rtps::payload::Payload;
use thalweg_rtps::qos::{Durability, DurabilityService, History};
use thalweg_rtps::time::Timestamp;
use thalweg_rtps::types::{KeyHash, Keyed};

use super::*;

/// A file of this test alone; it goes with this.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        Place(std::env::temp_dir().join(format!("thalweg-store-{}-{name}", std::process::id())))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

fn description(name: &str) -> Description {
    let durability_service = DurabilityService { history: History::KeepLast(7), ..DurabilityService::default() };
    let qos = WriterQos {
        durability: Durability::Persistent,
        durability_service,
        partition: vec!["b".into(), "a".into()],
        ..WriterQos::default()
    };
    let options = WriterOptions { history_name: name.into(), ..WriterOptions::default() };
    let (topic_name, type_name) = ("topic".into(), "type".into());
    let config = WriterConfig { topic_name, type_name, keyed: Keyed::Yes, qos: qos.into(), options };
    Description::new(HistoryIdentity([3; 16]), 9, &config)
}

fn change(sequence: i64, kind: ChangeKind) -> StoredChange {
    let timestamp = (sequence % 2 == 0).then_some(Timestamp { seconds: 7, fraction: 9 });
    let payload = Payload::from(vec![sequence as u8; 40]);
    StoredChange { sequence: SequenceNumber(sequence), kind, instance: KeyHash([5; 16]), timestamp, payload }
}

fn first_group() -> HistoryChange {
    let kinds = [ChangeKind::Write, ChangeKind::Dispose, ChangeKind::Unregister, ChangeKind::DisposeUnregister];
    let added = (1..=400).map(|number| change(number, kinds[number as usize % 4])).collect();
    let records = Records { added, removed: Vec::new(), up_to: SequenceNumber(400) };
    let reserved = Some(SequenceNumber(1_000));
    HistoryChange { number: HistoryNumber(4), description: Some(description("n")), records, reserved }
}

#[test]
fn a_store_gives_back_what_it_was_given() {
    let place = Place::new("round-trip");
    let (mut file, _) = StoreFile::open(&place.0).unwrap();
    file.commit(&[first_group()]).unwrap();
    let records = Records { removed: vec![SequenceNumber(1), SequenceNumber(3)], ..Records::default() };
    let gone = HistoryChange { number: HistoryNumber(4), description: None, records, reserved: None };
    file.commit(&[gone]).unwrap();
    drop(file);
    let (_, found) = StoreFile::open(&place.0).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].number, found[0].reserved), (HistoryNumber(4), SequenceNumber(1_000)));
    assert_eq!(found[0].description, description("n"));
    let given = first_group().records.added;
    let expect: Vec<_> = given.into_iter().filter(|change| ![1, 3].contains(&change.sequence.0)).collect();
    assert_eq!(found[0].changes, expect);
}

#[test]
fn a_store_has_one_user_at_a_time() {
    let place = Place::new("twice");
    let (_first, _) = Store::open(&place.0, 0).unwrap();
    let error = Store::open(&place.0, 0).err().expect("it is in use");
    assert_eq!(error.kind(), ErrorKind::PreconditionNotMet);
    assert!(error.to_string().contains("another participant has it open"), "{error}");
}

#[test]
fn a_damaged_store_is_refused_or_whole() {
    let place = Place::new("damaged");
    let (mut file, _) = StoreFile::open(&place.0).unwrap();
    file.commit(&[first_group()]).unwrap();
    drop(file);
    let whole = std::fs::read(&place.0).unwrap();
    let mut refused = 0;
    for step in 0..60 {
        let mut bytes = whole.clone();
        let at = step * whole.len() / 60;
        bytes[at..(at + 64).min(whole.len())].fill(0xa5);
        std::fs::write(&place.0, &bytes).unwrap();
        match StoreFile::open(&place.0) {
            Ok((_, found)) => {
                assert_eq!(found[0].changes, first_group().records.added, "damage at {at} is not noticed")
            }
            Err(StoreError::Damaged(_)) => refused += 1,
            Err(other) => panic!("damage at {at}: {other}"),
        }
    }
    assert!(refused > 0);
    for other in [&b"[participant]\nname = \"no store\"\n"[..], &whole[..whole.len() / 2], &[0; 4096]] {
        std::fs::write(&place.0, other).unwrap();
        let error = Store::open(&place.0, 0).err().expect("it is no store");
        assert_eq!(error.kind(), ErrorKind::Error, "{error}");
    }
}

#[test]
fn records_that_are_cut_short_are_no_records() {
    let (mut whole, mut described) = (Vec::new(), Vec::new());
    record::write_change(&change(2, ChangeKind::Write), &mut whole);
    record::write_description(&description("name"), &mut described);
    assert_eq!(record::read_change(SequenceNumber(2), &whole), Some(change(2, ChangeKind::Write)));
    assert!((0..25).all(|length| record::read_change(SequenceNumber(2), &whole[..length]).is_none()));
    assert_eq!(record::read_description(&described), Some(description("name")));
    assert!((0..described.len() - 4).all(|length| record::read_description(&described[..length]).is_none()));
}
