//! A process that is killed at any step leaves a host that can be put back.
//!
//! The killed process is this test program again; it runs the one test that does nothing otherwise.

use std::cell::Cell;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;

use rustix::process::{Signal, getpid, kill_process};
use thalweg_advisor::{
    AppliedFiles, FileStore, ForeignChanges, HostPlaces, RevertEnding, SettingPlace, SettingPlaces, UndoLog, UndoStore,
    apply,
};

use crate::tree::{Tree, advise, identity, recorded_probes};

/// Steps until the end of this process.
#[derive(Clone)]
struct Fate(Rc<Cell<u32>>);

impl Fate {
    fn step(&self) {
        if self.0.get() == 0 {
            kill_process(getpid(), Signal::KILL).expect("killed");
        }
        self.0.set(self.0.get() - 1);
    }
}

struct FatedPlaces(HostPlaces, Fate);

impl SettingPlaces for FatedPlaces {
    fn read(&self, place: &SettingPlace) -> io::Result<Option<String>> {
        self.0.read(place)
    }

    fn write(&mut self, place: &SettingPlace, value: Option<&str>) -> io::Result<()> {
        self.1.step();
        self.0.write(place, value)?;
        self.1.step();
        Ok(())
    }
}

struct FatedStore(FileStore, Fate);

impl UndoStore for FatedStore {
    fn load(&mut self) -> io::Result<Vec<u8>> {
        self.0.load()
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.1.step();
        let (first, second) = bytes.split_at(bytes.len() / 2);
        self.0.append(first)?;
        self.1.step();
        self.0.append(second)?;
        self.1.step();
        Ok(())
    }

    fn truncate(&mut self, bytes: usize) -> io::Result<()> {
        self.1.step();
        self.0.truncate(bytes)?;
        self.1.step();
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.1.step();
        self.0.clear()?;
        self.1.step();
        Ok(())
    }
}

fn files() -> AppliedFiles {
    AppliedFiles { profile: Some("/srv/stream.toml".into()), fragment: Some("/etc/sysctl.d/60-thalweg.conf".into()) }
}

#[test]
fn a_process_that_may_be_killed() {
    let Some(root) = std::env::var_os("THALWEG_KILLED_ROOT") else { return };
    let (root, steps) = (Path::new(&root), std::env::var("THALWEG_KILLED_STEPS").expect("steps"));
    let fate = Fate(Rc::new(Cell::new(steps.parse().expect("a number"))));
    let mut places = FatedPlaces(HostPlaces::recorded(root), fate.clone());
    let store = FatedStore(FileStore::at(root.join("undo.jsonl")), fate);
    let mut log = UndoLog::open(store, identity()).expect("read");
    if std::env::var_os("THALWEG_KILLED_REVERTS").is_some() {
        log.revert(&mut places, ForeignChanges::Respect).expect("reverted");
        return;
    }
    let mut probes = recorded_probes(root);
    let advice = advise(root, &places.0, &mut probes);
    let applied = apply(&advice, &files(), (&mut places, &mut probes), &mut log).expect("applied");
    assert!(applied.changes.iter().all(|change| change.is_kept()), "{applied:?}");
}

/// Runs the process above; whether it was killed.
fn run(root: &Path, steps: u32, reverts: bool) -> bool {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "killed::a_process_that_may_be_killed"]).stdout(Stdio::null()).stderr(Stdio::piped());
    command.env("THALWEG_KILLED_ROOT", root).env("THALWEG_KILLED_STEPS", steps.to_string());
    if reverts {
        command.env("THALWEG_KILLED_REVERTS", "1");
    }
    let output = command.output().expect("started");
    let was_killed = output.status.signal() == Some(9);
    assert!(was_killed || output.status.success(), "step {steps}: {}", String::from_utf8_lossy(&output.stderr));
    was_killed
}

/// Puts everything back, twice: the second time has nothing to do.
fn revert(root: &Path, steps: u32) {
    for round in 0..2 {
        let log = UndoLog::open(FileStore::at(root.join("undo.jsonl")), identity()).expect("read");
        let endings = log.revert(&mut HostPlaces::recorded(root), ForeignChanges::Respect).expect("reverted");
        assert!(endings.iter().all(|one| one.ending.is_final()), "step {steps}: {endings:?}");
        let is_restored = endings.iter().any(|one| one.ending == RevertEnding::Restored);
        assert!(round == 0 || !is_restored, "step {steps}: {endings:?}");
    }
}

#[test]
fn a_host_comes_back_from_an_application_that_was_killed_at_any_step() {
    let mut killed = 0;
    loop {
        let tree = Tree::of("server-10g");
        let before = tree.contents();
        let was_killed = run(tree.path(), killed, false);
        if !was_killed {
            assert_ne!(tree.contents(), before, "a whole application changes something");
        }
        revert(tree.path(), killed);
        assert_eq!(tree.contents(), before, "killed at step {killed}");
        if !was_killed {
            break;
        }
        killed += 1;
    }
    // Fifteen places, of each two lines of three steps and a write of two, and the line before all.
    assert!(killed > 80, "{killed} steps only");
}

#[test]
fn a_second_application_after_a_killed_one_goes_back_to_before_the_first() {
    for steps in (0..100).step_by(7) {
        let tree = Tree::of("server-10g");
        let before = tree.contents();
        run(tree.path(), steps, false);
        assert!(!run(tree.path(), u32::MAX, false), "the second is left alone");
        revert(tree.path(), steps);
        assert_eq!(tree.contents(), before, "the first was killed at step {steps}");
    }
}

#[test]
fn a_way_back_that_was_killed_is_gone_again() {
    let mut killed = 0;
    loop {
        let tree = Tree::of("server-10g");
        let before = tree.contents();
        assert!(!run(tree.path(), u32::MAX, false), "applied");
        let was_killed = run(tree.path(), killed, true);
        revert(tree.path(), killed);
        assert_eq!(tree.contents(), before, "killed at step {killed}");
        if !was_killed {
            break;
        }
        killed += 1;
    }
    assert!(killed > 20, "{killed} steps only");
}
