use std::collections::BTreeMap;
use std::path::PathBuf;

use redb::{Database, TableDefinition};
use thalweg_rtps::discovery::LocalAddresses;
use thalweg_rtps::history::{ChangeKind, StoredChange};
use thalweg_rtps::participant::ParticipantConfig;
use thalweg_rtps::payload::Payload;
use thalweg_rtps::qos::{Durability, DurabilityService, History};
use thalweg_rtps::rng::Rng;
use thalweg_rtps::time::Timestamp;
use thalweg_rtps::types::{KeyHash, Keyed};

use super::file::Found;
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
    HistoryChange { number: HistoryNumber(4), description: Some(description("n")), records, reserved, is_whole: false }
}

#[test]
fn a_store_gives_back_what_it_was_given() {
    let place = Place::new("round-trip");
    let (mut file, _) = StoreFile::open(&place.0).unwrap();
    file.commit(&[first_group()]).unwrap();
    let records = Records { removed: vec![SequenceNumber(1), SequenceNumber(3)], ..Records::default() };
    let gone = HistoryChange { number: HistoryNumber(4), description: None, records, reserved: None, is_whole: false };
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

/// What a file should hold: the changes of each history.
pub(super) type Model = BTreeMap<u32, BTreeMap<SequenceNumber, StoredChange>>;

/// A commit of a history: changes of all sizes, and some that go, the oldest or any.
pub(super) fn random_group(
    rng: &mut Rng,
    number: u32,
    next: &mut i64,
    held: &BTreeMap<SequenceNumber, StoredChange>,
) -> HistoryChange {
    let mut added = Vec::new();
    let most = if rng.chance(0.5) { 4 } else { 300 };
    for _ in 0..rng.below(most) {
        *next += 1 + if rng.chance(0.1) { rng.below(1 << 33) as i64 } else { 0 };
        let bytes = [20, 300, 5_000, 90_000][(rng.below(40) as usize).saturating_sub(36)];
        let payload = Payload::from(vec![rng.below(256) as u8; rng.below(bytes) as usize]);
        let instance = KeyHash([rng.below(2) as u8; 16]);
        added.push(StoredChange { payload, instance, ..change(*next, ChangeKind::Write) });
    }
    let share = [0.0, 0.02, 0.5, 0.9, 1.0][rng.below(5) as usize];
    let oldest = rng.chance(0.5);
    let some = held.len() as f64 * share;
    let goes = |(place, _): &(usize, &SequenceNumber)| if oldest { (*place as f64) < some } else { rng.chance(share) };
    let mut removed: Vec<_> = held.keys().enumerate().filter(goes).map(|(_, number)| *number).collect();
    if rng.chance(0.3) {
        removed.reverse();
    }
    let records = Records { added, removed, up_to: SequenceNumber(*next) };
    let (description, reserved) = (Some(description("n")), Some(SequenceNumber(*next)));
    HistoryChange { number: HistoryNumber(number), description, records, reserved, is_whole: false }
}

/// What was found in a file.
pub(super) fn model_of(found: Vec<Found>) -> Model {
    let changes = |found: Found| found.changes.into_iter().map(|change| (change.sequence, change)).collect();
    found.into_iter().map(|found| (found.number.0, changes(found))).collect()
}

/// What becomes of a file by a commit.
pub(super) fn follow(model: &mut Model, group: &HistoryChange) {
    let held = model.entry(group.number.0).or_default();
    held.extend(group.records.added.iter().map(|change| (change.sequence, change.clone())));
    group.records.removed.iter().for_each(|gone| _ = held.remove(gone));
}

fn assert_holds(found: Vec<Found>, model: &Model, seed: u64) {
    assert!(model_of(found) == *model, "seed {seed}: the file holds something else");
}

#[test]
fn a_store_follows_what_it_is_told_through_crashes_and_repetitions() {
    for seed in 0..5 {
        let place = Place::new(&format!("model-{seed}"));
        let (mut rng, mut model, mut next) = (Rng::new(seed), Model::new(), [0; 3]);
        let (mut file, _) = StoreFile::open(&place.0).unwrap();
        for step in 1..=24 {
            let number = rng.below(3) as u32;
            let held = model.entry(number).or_default();
            let group = random_group(&mut rng, number, &mut next[number as usize], held);
            file.fails_late = rng.chance(0.3);
            if file.commit(std::slice::from_ref(&group)).is_err() {
                file.commit(std::slice::from_ref(&group)).unwrap();
            }
            follow(&mut model, &group);
            if rng.chance(0.05) {
                file.remove(HistoryNumber(number)).unwrap();
                model.remove(&number);
            }
            if step % 6 == 0 {
                let found;
                (file, found) = reopen(file, &place);
                assert_holds(found, &model, seed);
            }
        }
    }
}

fn reopen(file: StoreFile, place: &Place) -> (StoreFile, Vec<Found>) {
    let pages = file.pages().clone();
    drop(file);
    let (file, found) = StoreFile::open(&place.0).unwrap();
    assert!(*file.pages() == pages, "what is known of the file is not what is in it");
    (file, found)
}

#[test]
fn changes_that_stay_behind_keep_at_most_as_many_bytes_of_others() {
    let place = Place::new("survivors");
    let (mut file, _) = StoreFile::open(&place.0).unwrap();
    let every = 250;
    for round in 0..20 {
        let numbers = round * 10_000 + 1..=(round + 1) * 10_000;
        let added = numbers.clone().map(|number| change(number, ChangeKind::Write)).collect();
        let up_to = SequenceNumber(*numbers.end());
        let removed = numbers.filter(|number| number % every != 0).map(SequenceNumber).collect();
        let [first, second] = [(added, Vec::new()), (Vec::new(), removed)].map(|(added, removed)| {
            let records = Records { added, removed, up_to };
            HistoryChange { records, reserved: Some(up_to), ..first_group() }
        });
        file.commit(&[first]).unwrap();
        file.commit(&[second]).unwrap();
    }
    let held: usize = file.pages().values().map(page::Page::bytes).sum();
    let (_, found) = reopen(file, &place);
    assert_eq!(found[0].changes.len(), 20 * 10_000 / every as usize);
    let needed: usize = found[0].changes.iter().map(record::change_bytes).sum();
    assert!(held <= 2 * needed, "{held} bytes for {needed}");
}

#[test]
fn pages_that_contradict_themselves_are_no_pages() {
    let mut bytes = Vec::new();
    let changes: Vec<StoredChange> = (1..=9).map(|number| change(3 * number, ChangeKind::Write)).collect();
    let (page, count) = page::pack(&changes, &mut bytes).unwrap();
    assert_eq!((count, page::Page::read(SequenceNumber(3), &bytes).as_ref()), (9, Some(&page)));
    assert!((0..bytes.len()).all(|length| page::Page::read(SequenceNumber(3), &bytes[..length]).is_none()));
    let mut rng = Rng::new(1);
    for _ in 0..20_000 {
        let mut other = bytes.clone();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(bytes.len() as u64) as usize;
            other[at] = rng.below(256) as u8;
        }
        let first = SequenceNumber([3, i64::MIN, i64::MAX - 1][rng.below(3) as usize]);
        if let Some(mut page) = page::Page::read(first, &other) {
            page.changes(&other).for_each(drop);
            page.read_gone(&[rng.below(256) as u8, rng.below(256) as u8]);
            page.rewrite(&other, &mut Vec::new());
        }
    }
    let mut page = page;
    assert!(!page.read_gone(&[1]) && !page.read_gone(&[1, 2]), "marks of other changes");
}

#[test]
fn a_store_of_another_layout_is_refused_and_stays_as_it_is() {
    let place = Place::new("layout");
    let mark: TableDefinition<'_, &str, u32> = TableDefinition::new("thalweg");
    let changes: TableDefinition<'_, (u32, i64), &[u8]> = TableDefinition::new("changes");
    {
        let transaction = Database::create(&place.0).unwrap().begin_write().unwrap();
        transaction.open_table(mark).unwrap().insert("layout", 1).unwrap();
        transaction.open_table(changes).unwrap().insert((0, 1), &[0; 30][..]).unwrap();
        transaction.commit().unwrap();
    }
    for _ in 0..2 {
        let error = Store::open(&place.0, 0).err().expect("its layout is another one");
        assert_eq!(error.kind(), ErrorKind::Error);
        assert!(error.to_string().contains("its layout is 1, and this version reads 2"), "{error}");
    }
    let transaction = Database::create(&place.0).unwrap().begin_write().unwrap();
    let kept = transaction.open_table(changes).unwrap();
    assert_eq!(redb::ReadableTable::get(&kept, (0, 1)).unwrap().unwrap().value(), &[0; 30]);
}

/// A store with the history of [`first_group`], whose writer is restored.
fn restored(place: &Place) -> (Arc<Store>, Participant) {
    restored_from(place, first_group())
}

/// A store with one history, whose writer is restored.
fn restored_from(place: &Place, group: HistoryChange) -> (Arc<Store>, Participant) {
    let (mut file, _) = StoreFile::open(&place.0).unwrap();
    file.commit(&[group]).unwrap();
    drop(file);
    let (store, found) = Store::open(&place.0, 9).unwrap();
    let config = ParticipantConfig::new(9, GuidPrefix([1; 12]), LocalAddresses::default());
    let mut participant = Participant::new(clock::now(), config);
    store.restore(found, &mut participant).unwrap();
    (store, participant)
}

#[test]
fn a_history_comes_back_whole_however_large_it_is() {
    let payload = Payload::from(vec![0u8; 1 << 20]);
    let two_of_each = (1..=140).map(|number| {
        let instance = KeyHash([(number % 70) as u8; 16]);
        StoredChange { instance, payload: payload.clone(), ..change(number, ChangeKind::Write) }
    });
    let (identity, changes) = (description("n").identity, two_of_each.collect());
    let stored = StoredHistory { identity, changes, last: SequenceNumber(140), reserved: SequenceNumber(1_000) };
    let config = ParticipantConfig::new(9, GuidPrefix([1; 12]), LocalAddresses::default());
    let mut participant = Participant::new(clock::now(), config);
    let writer = participant.restore_writer(clock::now(), description("n").config(), stored).unwrap();
    assert_eq!(writer.lock().held(), 140, "KEEP_LAST 7 keeps both");
}

#[test]
fn a_history_that_is_removed_while_a_commit_is_under_way_stays_removed() {
    let place = Place::new("under-way");
    let (store, participant) = restored(&place);
    lock(&store.histories)[0].is_changed = true;
    let under_way = store.gather();
    assert!(under_way.len() == 1 && !under_way[0].records.removed.is_empty(), "KEEP_LAST 7");
    let entity = participant.histories()[0].writer.entity;
    let refused = store.remove_history(|| Err(store.error("delete_history", "no")), || Ok(()));
    assert!(refused.is_err() && lock(&store.histories).len() == 1);
    store.remove_history(|| Ok(entity), || Ok(())).unwrap();
    let notify: Notify = Box::new(|_| panic!("it has no writer"));
    store.commit_until_stored(under_way, &notify);
    assert!(!store.is_failing.load(Ordering::Relaxed) && lock(&store.histories).is_empty());
    drop(store);
    let (file, found) = StoreFile::open(&place.0).unwrap();
    assert!(found.is_empty() && file.pages().is_empty());
}

/// Lets the only writer of [`restored`] move to the partition `to`; `set` stands for its participant.
fn change_partition(
    store: &Store,
    participant: &Participant,
    to: &str,
    set: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let config = description("n").config();
    let qos = WriterQos { partition: vec![to.into()], ..WriterQos::clone(&config.qos) };
    store.change_qos(participant.histories()[0].writer.entity, &qos.into(), || Ok(()), set)
}

#[test]
fn a_commit_under_way_brings_no_policies_back_that_have_changed() {
    let place = Place::new("policies-under-way");
    let (store, participant) = restored(&place);
    lock(&store.histories)[0].is_changed = true;
    let under_way = store.gather();
    change_partition(&store, &participant, "c", || Ok(())).unwrap();
    store.commit_until_stored(under_way, &(Box::new(|_| {}) as Notify));
    assert!(store.gather().is_empty(), "the file has them already");
    drop(store);
    let (_, found) = StoreFile::open(&place.0).unwrap();
    assert_eq!(found[0].description.publication.qos.partition, ["c"]);
}

#[test]
fn a_writer_is_only_in_partitions_that_its_store_has() {
    let place = Place::new("other-partitions");
    let (store, participant) = restored(&place);
    change_partition(&store, &participant, "c", || Ok(())).unwrap();
    lock(&store.file).as_mut().unwrap().fails_late = true;
    let error = change_partition(&store, &participant, "d", || panic!("it is not stored")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfResources, "{error}");
    store.commit_until_stored(store.gather(), &(Box::new(|_| {}) as Notify));
    change_partition(&store, &participant, "e", || Err(Error::new(ErrorKind::Error, "set_qos", "no"))).unwrap_err();
    let identity_in = |partition: &str| {
        let config = description("n").config();
        let qos = WriterQos { partition: vec![partition.into()], ..WriterQos::clone(&config.qos) };
        store.prepare(&WriterConfig { qos: qos.into(), ..config }).unwrap().identity
    };
    let identity = description("n").identity;
    assert_eq!(["c", "d", "e"].map(|partition| identity_in(partition) == identity), [true, false, false]);
    let error = change_partition(&store, &participant, "d", || panic!("another history is there")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfResources, "{error}");
    drop(store);
    let (_, found) = StoreFile::open(&place.0).unwrap();
    let told = found.iter().find(|found| found.description.identity == identity).unwrap();
    assert_eq!((found.len(), told.description.publication.qos.partition.join(",").as_str()), (3, "c"));
}

#[test]
fn a_store_that_failed_is_not_given_to_another_process() {
    let place = Place::new("locks");
    let (mut file, _) = StoreFile::open(&place.0).unwrap();
    file.fails_late = true;
    file.commit(&[first_group()]).unwrap_err();
    assert!(matches!(StoreFile::open(&place.0), Err(StoreError::InUse)));
    file.commit(&[first_group()]).unwrap();
    assert!(matches!(StoreFile::open(&place.0), Err(StoreError::InUse)));
    drop(file);
    StoreFile::open(&place.0).unwrap();
}

#[test]
fn a_history_that_fails_after_it_reached_the_disk_is_stored_once() {
    let place = Place::new("once");
    let config = description("n").config();
    let create = |store: &Store| store.prepare(&config).map(|stored| stored.identity);
    let (store, _) = Store::open(&place.0, 9).unwrap();
    lock(&store.file).as_mut().unwrap().fails_late = true;
    create(&store).unwrap_err();
    let identity = create(&store).unwrap();
    lock(&store.file).as_mut().unwrap().fails_late = true;
    store.give_up(identity);
    assert_eq!(create(&store).unwrap(), identity);
    drop(store);
    let (_, found) = StoreFile::open(&place.0).unwrap();
    assert_eq!(found.iter().map(|found| found.description.identity).collect::<Vec<_>>(), [identity]);
}

/// Lets the removal of the only history fail: on the disk it has happened, or not.
fn fail_to_remove(store: &Store, participant: &Participant, is_on_disk: bool) {
    let entity = participant.histories()[0].writer.entity;
    let kept = if is_on_disk { None } else { lock(&store.file).take() };
    if let Some(file) = lock(&store.file).as_mut() {
        file.fails_late = true;
    }
    store.remove_history(|| Ok(entity), || Ok(())).unwrap_err();
    if kept.is_some() {
        *lock(&store.file) = kept;
    }
}

#[test]
fn a_history_whose_removal_failed_late_is_written_on() {
    for is_on_disk in [true, false] {
        let place = Place::new(&format!("written-on-{is_on_disk}"));
        let (store, participant) = restored(&place);
        let notify: Notify = Box::new(|_| {});
        // A commit of before is still tried when the removal fails.
        lock(&store.histories)[0].is_changed = true;
        let under_way = store.gather();
        fail_to_remove(&store, &participant, is_on_disk);
        let is_stored = || lock(&store.histories)[0].writer.as_ref().unwrap().lock().is_stored();
        store.commit_until_stored(under_way, &notify);
        assert!(!is_stored(), "nobody knows");
        store.commit_until_stored(store.gather(), &notify);
        assert!(is_stored());
        drop(store);
        let (_, found) = StoreFile::open(&place.0).unwrap();
        assert!(found.len() == 1 && found[0].description.name == "n" && found[0].reserved > SequenceNumber(1_000));
        let held = participant.histories()[0].samples;
        assert!(held > 0 && found[0].changes.len() == held, "{} of {held} are stored", found[0].changes.len());
    }
}

#[test]
fn a_writer_of_a_history_whose_removal_failed_has_numbers_of_its_own() {
    let place = Place::new("numbers-of-its-own");
    let last = SequenceNumber(5_000_000);
    let (store, participant) = restored_from(&place, HistoryChange { reserved: Some(last), ..first_group() });
    fail_to_remove(&store, &participant, true);
    let stored = store.prepare(&description("n").config()).unwrap();
    assert_eq!(stored.reserved, last + RESERVED_AHEAD);
    drop(store);
    let (_, found) = StoreFile::open(&place.0).unwrap();
    assert_eq!(found[0].reserved, last + RESERVED_AHEAD);
}
