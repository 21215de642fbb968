//! The commands of documents, pasted into a shell as a reader does, and the sentences that a document quotes from another one.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::program::{PATIENCE, Running, tag};

/// Stands before the blocks that are pasted.
const MARK: &str = "<!-- pasted by a test -->";

/// A marked block of commands.
struct Block {
    place: String,
    text: String,
}

impl Block {
    /// What its comments promise: each `prints "…"`.
    fn promised(&self) -> impl Iterator<Item = &str> {
        self.text.lines().filter_map(|line| line.split_once("prints \"")?.1.strip_suffix('"'))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(document: &str) -> String {
    fs::read_to_string(root().join(document)).unwrap_or_else(|error| panic!("{document}: {error}"))
}

#[track_caller]
fn blocks(document: &str) -> Vec<Block> {
    let text = read(document);
    let mut rest = text.as_str();
    let mut found = Vec::new();
    while let Some((_, after)) = rest.split_once(MARK) {
        let line = text[..text.len() - after.len()].lines().count();
        let block = after.strip_prefix("\n```sh\n").and_then(|block| block.split_once("\n```"));
        let (block, after) = block.unwrap_or_else(|| panic!("{document}:{line}: no block of sh follows the mark"));
        found.push(Block { place: format!("{document}:{line}"), text: block.to_owned() });
        rest = after;
    }
    found
}

/// A folder with a `thalweg` that finds only the participants of this test, by the loopback interface.
fn folder_with_program(tag: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(tag);
    fs::create_dir_all(folder.join("empty")).expect("a folder for temporary files");
    let program = folder.join("thalweg");
    let script = format!(
        "#!/bin/sh\ncase \"$1 $2\" in\n  pub*|sub*|ls*|why*|doctor*|'coap bridge')\n    \
         exec '{0}' \"$@\" --domain-tag {tag} --interface lo ;;\nesac\nexec '{0}' \"$@\"\n",
        env!("CARGO_BIN_EXE_thalweg"),
    );
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    folder
}

/// The processes of a shell; dropping it kills those that are left.
struct ShellGroup(u32);

impl ShellGroup {
    /// Whether a process got the signal.
    fn signal(&self, name: &str) -> bool {
        let mut kill = Command::new("kill");
        kill.args([&format!("-{name}"), "--", &format!("-{}", self.0)]).stderr(Stdio::null());
        kill.status().expect("kill").success()
    }

    /// Whether all ended by themselves, after a while.
    fn ended(&self) -> bool {
        let end = Instant::now() + PATIENCE;
        while self.signal("0") {
            if Instant::now() > end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    }
}

impl Drop for ShellGroup {
    fn drop(&mut self) {
        self.signal("KILL");
    }
}

/// Pastes each block into a shell of its own in an empty folder: no command fails, the output has what the comments promise, and
/// nothing goes on in the background.
#[track_caller]
fn check(document: &str, count: usize) {
    let blocks = blocks(document);
    assert_eq!(blocks.len(), count, "{document} has this many marked blocks");
    for block in blocks {
        let folder = folder_with_program(&tag());
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
        let file = |name: &str| File::create(folder.join(name)).expect("a temporary file");
        let mut shell = Command::new("bash");
        shell.args(["-e", "-c", &block.text]).current_dir(folder.join("empty")).env("PATH", path).process_group(0);
        shell.stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr"));
        let shell = Running::start(shell);
        let group = ShellGroup(shell.id());
        let code = shell.finish().code;
        let ended = group.ended();
        let said = |name: &str| fs::read_to_string(folder.join(name)).expect("text");
        let (stdout, stderr) = (said("stdout"), said("stderr"));
        fs::remove_dir_all(&folder).expect("removed");
        let (place, told) = (&block.place, format!("{}\n{stdout}\n{stderr}", block.text));
        assert_eq!(code, Some(0), "{place}:\n{told}");
        assert!(ended, "{place}: leaves processes behind");
        for promised in block.promised() {
            assert!(
                stdout.contains(promised) || stderr.contains(promised),
                "{place}: does not print {promised:?}:\n{told}"
            );
        }
    }
}

#[test]
fn the_commands_of_the_readme_run_when_pasted() {
    check("README.md", 1);
}

#[test]
fn the_commands_of_the_guide_run_when_pasted() {
    check("docs/guide.md", 10);
}

#[test]
fn quoted_sentences_stand_in_the_pages_that_they_are_quoted_from() {
    let mut page = String::new();
    let mut quotes = 0;
    for line in read("docs/results/README.md").lines() {
        if let Some((name, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once("](")) {
            page = read(&format!("docs/results/{name}"));
        } else if let Some(quote) = line.strip_prefix("> ") {
            assert!(page.contains(quote), "no longer on its page: {quote}");
            quotes += 1;
        }
    }
    assert!(quotes > 10, "only {quotes} quotes were found: the page is read wrongly");
}
