use std::collections::BTreeMap;

use super::store::MemoryStore;
use super::*;

/// Places in memory; one of them takes multiples of 8 only.
#[derive(Default)]
struct Board(BTreeMap<SettingPlace, String>);

impl SettingPlaces for Board {
    fn read(&self, place: &SettingPlace) -> io::Result<Option<String>> {
        Ok(self.0.get(place).cloned())
    }

    fn write(&mut self, place: &SettingPlace, value: Option<&str>) -> io::Result<()> {
        match value {
            Some("refused") => return Err(io::ErrorKind::PermissionDenied.into()),
            Some(value) if place.to_string() == "rounds" => {
                let rounded = value.parse::<u64>().map_err(io::Error::other)? / 8 * 8;
                self.0.insert(place.clone(), rounded.to_string())
            }
            Some(value) => self.0.insert(place.clone(), value.to_owned()),
            None => self.0.remove(place),
        };
        Ok(())
    }
}

fn place(name: &str) -> SettingPlace {
    SettingPlace::Sysctl { name: name.to_owned() }
}

fn file(path: &str) -> SettingPlace {
    SettingPlace::File { path: path.into() }
}

fn host(boot: &str, namespace: &str) -> HostIdentity {
    HostIdentity { boot: Some(boot.to_owned()), namespace: Some(namespace.to_owned()) }
}

fn board(values: &[(&str, &str)]) -> Board {
    Board(values.iter().map(|(name, value)| (place(name), (*value).to_owned())).collect())
}

fn open(store: &mut MemoryStore) -> UndoLog<&mut MemoryStore> {
    UndoLog::open(store, host("boot", "net")).expect("read")
}

fn revert(store: &mut MemoryStore, board: &mut Board, strangers: ForeignChanges) -> Vec<RevertEnding> {
    let reverted = open(store).revert(board, strangers).expect("reverted");
    reverted.into_iter().map(|one| one.ending).collect()
}

#[test]
fn two_applications_go_back_to_before_the_first() {
    let (mut store, mut board) = (MemoryStore(Vec::new()), board(&[("a", "1"), ("b", "x")]));
    open(&mut store).change(&mut board, &place("a"), Some("2")).expect("changed");
    let mut second = open(&mut store);
    second.change(&mut board, &place("b"), Some("y")).expect("changed");
    second.change(&mut board, &place("a"), Some("3")).expect("changed");
    assert_eq!(
        revert(&mut store, &mut board, ForeignChanges::Respect),
        [RevertEnding::Restored, RevertEnding::Restored]
    );
    assert_eq!(board.0, self::board(&[("a", "1"), ("b", "x")]).0);
    assert!(store.0.is_empty(), "nothing is left to do");
    assert_eq!(revert(&mut store, &mut board, ForeignChanges::Respect), []);
}

#[test]
fn a_value_of_somebody_else_stays_unless_it_is_to_be_overridden() {
    let (mut store, mut board) = (MemoryStore(Vec::new()), board(&[("a", "1")]));
    open(&mut store).change(&mut board, &place("a"), Some("2")).expect("changed");
    board.write(&place("a"), Some("7")).expect("written");
    let theirs = RevertEnding::ChangedByOthers(Some("7".to_owned()));
    assert_eq!(revert(&mut store, &mut board, ForeignChanges::Respect), std::slice::from_ref(&theirs));
    assert_eq!(revert(&mut store, &mut board, ForeignChanges::Respect), [theirs], "still known");
    assert_eq!(revert(&mut store, &mut board, ForeignChanges::Override), [RevertEnding::Restored]);
    assert_eq!(board.0[&place("a")], "1");
}

#[test]
fn what_a_revert_has_put_back_is_not_ours_while_other_places_are_left() {
    let (mut store, mut board) = (MemoryStore(Vec::new()), board(&[("a", "1"), ("b", "1"), ("c", "1")]));
    let mut log = open(&mut store);
    for name in ["c", "b", "a"] {
        log.change(&mut board, &place(name), Some("2")).expect("changed");
    }
    board.write(&place("b"), Some("7")).expect("written");
    let theirs = |value: &str| RevertEnding::ChangedByOthers(Some(value.to_owned()));
    let first = revert(&mut store, &mut board, ForeignChanges::Respect);
    assert_eq!(first, [RevertEnding::Restored, theirs("7"), RevertEnding::Restored]);
    // The administrator wants of one of them what was once ours.
    board.write(&place("a"), Some("2")).expect("written");
    let second = revert(&mut store, &mut board, ForeignChanges::Respect);
    assert_eq!(second.iter().filter(|ending| **ending == theirs("2")).count(), 1, "{second:?}");
    assert_eq!(board.0.values().collect::<Vec<_>>(), ["2", "7", "1"]);
}

#[test]
fn a_value_that_was_overridden_does_not_come_back_while_other_places_are_left() {
    let (mut store, mut board) = (MemoryStore(Vec::new()), board(&[("a", "1")]));
    let there = HostIdentity { namespace: Some("other".to_owned()), ..host("boot", "net") };
    let mut elsewhere = self::board(&[("a", "1")]);
    let mut log = UndoLog::open(&mut store, there).expect("read");
    log.change(&mut elsewhere, &place("a"), Some("2")).expect("changed");
    open(&mut store).change(&mut board, &place("a"), Some("2")).expect("changed");
    board.write(&place("a"), Some("7")).expect("written");
    let endings = revert(&mut store, &mut board, ForeignChanges::Override);
    assert_eq!(endings, [RevertEnding::Restored, RevertEnding::Elsewhere("other".to_owned())]);
    let endings = revert(&mut store, &mut board, ForeignChanges::Override);
    assert_eq!(endings, [RevertEnding::AlreadySo, RevertEnding::Elsewhere("other".to_owned())]);
    assert_eq!(board.0[&place("a")], "1");
}

#[test]
fn a_file_that_a_revert_was_about_to_remove_is_ours_after_a_restart() {
    let (mut store, mut board) = (MemoryStore(Vec::new()), Board::default());
    let mut log = open(&mut store);
    log.change(&mut board, &file("/etc/x"), Some("text\n")).expect("changed");
    let about = Line::Intent { number: 1, place: file("/etc/x"), before: Some("text\n".to_owned()), asked: None };
    log.append(&about).expect("written");
    let later = UndoLog::open(&mut store, host("later", "net")).expect("read");
    let endings = later.revert(&mut board, ForeignChanges::Respect).expect("reverted");
    assert_eq!(endings.into_iter().map(|one| one.ending).collect::<Vec<_>>(), [RevertEnding::Restored]);
    assert!(board.0.is_empty());
}

#[test]
fn a_stranger_between_two_applications_is_gone_back_to() {
    let (mut store, mut board) = (MemoryStore(Vec::new()), board(&[("a", "1")]));
    open(&mut store).change(&mut board, &place("a"), Some("2")).expect("changed");
    board.write(&place("a"), Some("7")).expect("written");
    open(&mut store).change(&mut board, &place("a"), Some("9")).expect("changed");
    assert_eq!(revert(&mut store, &mut board, ForeignChanges::Respect), [RevertEnding::Restored]);
    assert_eq!(board.0[&place("a")], "7");
}

#[test]
fn a_value_that_the_system_rounds_is_ours_all_the_same() {
    let (mut store, mut board) = (MemoryStore(Vec::new()), board(&[("rounds", "16")]));
    let taken = open(&mut store).change(&mut board, &place("rounds"), Some("45")).expect("changed");
    assert_eq!(taken.as_deref(), Some("40"));
    assert_eq!(revert(&mut store, &mut board, ForeignChanges::Respect), [RevertEnding::Restored]);
    assert_eq!(board.0[&place("rounds")], "16");
}

#[test]
fn a_refused_change_leaves_nothing_to_undo() {
    let (mut store, mut board) = (MemoryStore(Vec::new()), board(&[("a", "1")]));
    let refusal = open(&mut store).change(&mut board, &place("a"), Some("refused")).expect_err("refused").to_string();
    assert!(refusal.contains("a needs root"), "{refusal}");
    assert_eq!(revert(&mut store, &mut board, ForeignChanges::Respect), [RevertEnding::AlreadySo]);
}

#[test]
fn a_file_that_was_not_there_is_removed() {
    let (mut store, mut board) = (MemoryStore(Vec::new()), Board::default());
    open(&mut store).change(&mut board, &file("/etc/x"), Some("text\n")).expect("changed");
    assert_eq!(revert(&mut store, &mut board, ForeignChanges::Respect), [RevertEnding::Restored]);
    assert!(board.0.is_empty());
}

#[test]
fn another_namespace_is_left_alone_and_a_restart_undoes_by_itself() {
    let (mut store, mut board) = (MemoryStore(Vec::new()), board(&[("a", "1"), ("b", "1")]));
    let mut log = open(&mut store);
    log.change(&mut board, &place("a"), Some("2")).expect("changed");
    log.change(&mut board, &file("/etc/x"), Some("text\n")).expect("changed");
    let there = UndoLog::open(&mut store, host("boot", "other")).expect("read");
    let endings = there.revert(&mut board, ForeignChanges::Override).expect("reverted");
    let endings: Vec<RevertEnding> = endings.into_iter().map(|one| one.ending).collect();
    assert_eq!(endings, [RevertEnding::Restored, RevertEnding::Elsewhere("net".to_owned())]);
    // The kernel's default, which is neither value.
    board.write(&place("a"), Some("0")).expect("written");
    let later = UndoLog::open(&mut store, host("later", "other")).expect("read");
    let endings = later.revert(&mut board, ForeignChanges::Respect).expect("reverted");
    assert!(endings.iter().all(|one| one.ending.is_final()), "{endings:?}");
    assert_eq!(board.0[&place("a")], "0");
}

#[test]
fn the_same_place_of_two_namespaces_goes_back_in_each_to_what_it_was_there() {
    let (mut store, mut here, mut there) = (MemoryStore(Vec::new()), board(&[("a", "1")]), board(&[("a", "2")]));
    open(&mut store).change(&mut here, &place("a"), Some("2")).expect("changed");
    let mut log = UndoLog::open(&mut store, host("boot", "other")).expect("read");
    log.change(&mut there, &place("a"), Some("3")).expect("changed");
    assert_eq!(log.past_here().count(), 1, "what was changed elsewhere cannot drift here");
    let endings = log.revert(&mut there, ForeignChanges::Respect).expect("reverted");
    let endings: Vec<RevertEnding> = endings.into_iter().map(|one| one.ending).collect();
    assert_eq!(endings, [RevertEnding::Restored, RevertEnding::Elsewhere("net".to_owned())]);
    assert_eq!(there.0[&place("a")], "2");
    assert_eq!(
        revert(&mut store, &mut here, ForeignChanges::Respect),
        [RevertEnding::Elsewhere("other".to_owned()), RevertEnding::Restored]
    );
    assert_eq!(here.0[&place("a")], "1");
}

#[test]
fn a_torn_last_line_stands_for_nothing_and_any_other_is_told() {
    let (mut store, mut board) = (MemoryStore(Vec::new()), board(&[("a", "1")]));
    let mut log = open(&mut store);
    log.change(&mut board, &place("a"), Some("2")).expect("changed");
    log.change(&mut board, &place("a"), Some("3")).expect("changed");
    let whole = store.0.clone();
    let ends: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] == b'\n').map(|at| at + 1).collect();
    for cut in 0..=whole.len() {
        let mut torn = MemoryStore(whole[..cut].to_vec());
        let count = open(&mut torn).past().count();
        let complete = ends.iter().filter(|end| **end <= cut).count();
        assert_eq!(count, usize::from(complete >= 2), "cut at {cut}");
        assert_eq!(torn.0.len(), ends.iter().rev().find(|end| **end <= cut).copied().unwrap_or(0), "cut at {cut}");
    }
    let mut damaged = whole;
    damaged[ends[0] + 3] = 0xff;
    let mut damaged = MemoryStore(damaged);
    let refusal = UndoLog::open(&mut damaged, host("boot", "net")).err().expect("damaged");
    assert!(matches!(refusal, UndoError::Damaged { line: 2 }), "{refusal}");
}

#[test]
fn arbitrary_changes_of_the_file_never_panic_and_what_stays_is_read_the_same() {
    let (mut store, mut board) = (MemoryStore(Vec::new()), board(&[("a", "1"), ("b", "1")]));
    let mut log = open(&mut store);
    for (name, value) in [("a", "2"), ("b", "3"), ("a", "4")] {
        log.change(&mut board, &place(name), Some(value)).expect("changed");
    }
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let mut readable = 0;
    for _ in 0..3000 {
        let mut bytes = store.0.clone();
        for _ in 0..random(4) {
            let at = random(bytes.len());
            bytes[at] = random(256) as u8;
        }
        bytes.truncate(random(bytes.len() + 1));
        if let Some((places, kept)) = read_any(&bytes) {
            readable += 1;
            assert_eq!(read_any(&kept), Some((places, kept.clone())));
        }
    }
    assert!(readable > 500, "{readable} were readable");
}

#[test]
fn a_file_has_one_user_at_a_time() {
    let folder = std::env::temp_dir().join(format!("thalweg-undo-{}", std::process::id()));
    let path = folder.join("undo.jsonl");
    let mut board = board(&[("a", "1")]);
    let mut log = UndoLog::open(FileStore::at(&path), host("boot", "net")).expect("none yet");
    log.change(&mut board, &place("a"), Some("2")).expect("changed");
    let busy = UndoLog::open(FileStore::at(&path), host("boot", "net")).err().expect("locked");
    assert!(matches!(busy, UndoError::Busy), "{busy}");
    log.revert(&mut board, ForeignChanges::Respect).expect("reverted");
    assert!(!path.exists() && board.0[&place("a")] == "1");
    std::fs::remove_dir_all(folder).expect("removed");
}

/// A store of which the next append stops after some bytes, as on a full disk.
struct FullDisk<'a>(&'a mut MemoryStore, Option<usize>);

impl UndoStore for FullDisk<'_> {
    fn load(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.0.0.clone())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.1.take().unwrap_or(bytes.len());
        self.0.0.extend(&bytes[..written]);
        if written == bytes.len() { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
    }

    fn truncate(&mut self, bytes: usize) -> io::Result<()> {
        self.0.0.truncate(bytes);
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.0.0.clear();
        Ok(())
    }
}

#[test]
fn a_disk_that_was_full_leaves_a_file_that_can_be_read() {
    let (mut store, mut board) = (MemoryStore(Vec::new()), board(&[("a", "1"), ("b", "1")]));
    let mut log = UndoLog::open(FullDisk(&mut store, None), host("boot", "net")).expect("read");
    log.change(&mut board, &place("a"), Some("2")).expect("changed");
    log.store.1 = Some(7);
    assert!(matches!(log.change(&mut board, &place("b"), Some("2")), Err(UndoError::Io(_))));
    assert_eq!(board.0[&place("b")], "1", "nothing is changed without its way back");
    // Somebody has made room.
    log.change(&mut board, &place("b"), Some("3")).expect("changed");
    assert_eq!(
        revert(&mut store, &mut board, ForeignChanges::Respect),
        [RevertEnding::Restored, RevertEnding::Restored]
    );
    assert_eq!(board.0.values().collect::<Vec<_>>(), ["1", "1"]);
}

#[test]
fn a_full_disk_is_no_reason_to_leave_the_host_changed() {
    let (mut store, mut board) = (MemoryStore(Vec::new()), board(&[("a", "1")]));
    let mut log = UndoLog::open(FullDisk(&mut store, None), host("boot", "net")).expect("read");
    log.change(&mut board, &place("a"), Some("2")).expect("changed");
    log.store.1 = Some(7);
    let endings = log.revert(&mut board, ForeignChanges::Respect).expect("reverted");
    assert_eq!(endings.into_iter().map(|one| one.ending).collect::<Vec<_>>(), [RevertEnding::Restored]);
    assert_eq!((board.0[&place("a")].as_str(), store.0.is_empty()), ("1", true));
}
