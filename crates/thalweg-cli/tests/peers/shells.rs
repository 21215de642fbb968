//! Topics of the domain in the completions of zsh and fish. Bash, which every host has, is tried beside the program's other tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use thalweg::qos::WriterQos;
use thalweg::types::Keyed;
use thalweg::{DataWriter, DomainParticipant, Raw};

use crate::thalweg::domain;

const PROGRAM: &str = env!("CARGO_BIN_EXE_thalweg");

/// A domain with topics, one of which has a name that is a command in a shell.
struct Topics {
    domain: u32,
    folder: PathBuf,
    _writers: [DataWriter<Raw>; 3],
}

impl Topics {
    fn new(shell: &str) -> Topics {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("completions-{shell}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the test's folder is writable");
        let domain = domain();
        let participant = DomainParticipant::builder(domain).create().expect("a participant");
        let forged = format!("$(touch {})", folder.join("ran").display());
        let writers = [&forged[..], "notes", "rt/scan"].map(|name| {
            let topic = participant.create_raw_topic(name, "Note", Keyed::No, None);
            participant.create_writer(&topic, WriterQos::default()).expect("a writer")
        });
        let script = Command::new(PROGRAM).args(["completions", shell]).output().expect("started").stdout;
        std::fs::write(folder.join("script"), script).expect("the test's folder is writable");
        Topics { domain, folder, _writers: writers }
    }

    /// Checks that a shell completes with `asking`, in which words are replaced, names of topics that are these and the forged one.
    #[track_caller]
    fn check(&self, shell: &[&str], asking: &str, wanted: &[&str]) {
        let script = self.folder.join("script").display().to_string();
        let text = asking.replace("SCRIPT", &script).replace("DOMAIN", &self.domain.to_string());
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", Path::new(PROGRAM).parent().expect("a folder").display());
        let mut said = String::new();
        // A busy machine may find them late.
        for _ in 0..20 {
            let output = Command::new(shell[0]).args(&shell[1..]).arg(&text).env("PATH", &path).output();
            let output = output.unwrap_or_else(|error| panic!("{}: {error}", shell[0]));
            said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            if wanted.iter().all(|name| said.lines().any(|line| line == *name)) {
                assert!(!self.folder.join("ran").exists(), "a name ran as a command");
                return;
            }
        }
        panic!("{asking}: {said:?}, not {wanted:?}");
    }
}

#[test]
fn fish_completes_topics_of_the_domain() {
    let topics = Topics::new("fish");
    let check = |words: &str, wanted: &[&str]| {
        topics.check(
            &["fish", "--no-config", "-c"],
            &format!("source SCRIPT; complete -C \"thalweg {words}\""),
            wanted,
        );
    };
    check("topic echo --domain DOMAIN no", &["notes"]);
    check("sub --domain DOMAIN ", &["notes", "/scan"]);
    check("record --domain DOMAIN /", &["/scan"]);
}

#[test]
fn zsh_completes_topics_of_the_domain() {
    let topics = Topics::new("zsh");
    // What a completion is given goes to standard output; the rest of its system is for terminals.
    let setting = "compdef() { }; source SCRIPT; compadd() { local name=\"${@[-1]}\"; print -rl -- \"${(@P)name}\" }";
    let ask = "words=(echo --domain DOMAIN ''); CURRENT=4; _thalweg_topics";
    topics.check(&["zsh", "-f", "-c"], &format!("{setting}; {ask}"), &["notes", "/scan"]);
    let script = std::fs::read_to_string(topics.folder.join("script")).expect("readable");
    let arguments =
        |line: &&str| ["':topic -- ", "'*::topics -- ", "'::topic -- "].iter().any(|head| line.starts_with(head));
    let (complete, other): (Vec<&str>, Vec<&str>) =
        script.lines().filter(arguments).partition(|line| line.contains(":_thalweg_topics'"));
    assert!(complete.len() >= 8 && other.is_empty(), "{} complete topics, these do not: {other:?}", complete.len());
}
