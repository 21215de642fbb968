//! Copies of recorded machines that tests may change.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use thalweg_advisor::{
    HostAdvice, HostIdentity, HostPlaces, NetworkFacts, NicQueue, NicSettings, PlantedProbes, Probes, StreamProfile,
};

/// A copy of a machine; gone when dropped.
pub struct Tree(PathBuf);

impl Tree {
    pub fn of(machine: &str) -> Tree {
        static COPIES: AtomicU32 = AtomicU32::new(0);
        let number = COPIES.fetch_add(1, Ordering::Relaxed);
        // In memory where there is such a folder: a thousand synchronised writes say nothing about a disk.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let to = folder.join(format!("thalweg-advisor-{}-{number}", std::process::id()));
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(machine), &to);
        Tree(to)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file of the machine, with the folders around it.
    pub fn set(&self, path: &str, text: &str) {
        let file = self.0.join(path);
        fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        fs::write(file, format!("{text}\n")).expect("written");
    }

    /// Everything that a machine is set to: without the undo file, and without what no setting decides.
    pub fn contents(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        collect(&self.0, &mut found);
        found.retain(|path, _| !path.ends_with("undo.jsonl"));
        found
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Advice for the copy of the server, whose every kind of setting needs a change.
pub fn advise(root: &Path, places: &HostPlaces, probes: &mut dyn Probes) -> HostAdvice {
    let surroundings = NetworkFacts {
        device: Some("eno1"),
        peer: Some("192.0.2.1".parse().expect("an address")),
        link_bits_per_second: None,
    };
    let mut stream = StreamProfile::Video.stream();
    // Late for this, so that governors change as well.
    stream.deadline = std::time::Duration::from_micros(500);
    assert!(root.join("proc").exists());
    HostAdvice::make(&stream, &surroundings, (places.files(), places.nics()), probes).expect("advice")
}

pub fn recorded_probes(root: &Path) -> PlantedProbes {
    PlantedProbes::parse(&fs::read_to_string(root.join("probes.json")).expect("recorded")).expect("answers")
}

pub fn identity() -> HostIdentity {
    HostIdentity { boot: Some("boot".to_owned()), namespace: Some("net:[1]".to_owned()) }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("told").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

fn collect(folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, found);
            continue;
        }
        let text = String::from_utf8_lossy(&fs::read(&path).expect("read")).into_owned();
        let text = if folder.ends_with("nic") {
            let mut nic: NicSettings = serde_json::from_str(&text).expect("answers");
            // A removed discipline leaves the kernel's own choice, whatever that is.
            let is_default = |queue: &NicQueue| queue.is_default;
            nic.root_queue = nic.root_queue.filter(|queue| !is_default(queue));
            format!("{nic:?}")
        } else {
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        found.insert(path, text);
    }
}
