//! Completions and manual pages.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use thalweg::DomainParticipant;
use thalweg::qos::WriterQos;
use thalweg::types::Keyed;

use crate::program::{TestFolder, run, tag};

#[test]
fn every_shell_completes_commands_and_options() {
    for (shell, part) in
        [("bash", "complete -F _thalweg"), ("zsh", "#compdef thalweg"), ("fish", "complete -c thalweg")]
    {
        let script = run(&["completions", shell]).expect_code(0).stdout;
        for part in [part, "replay", "remap", "exclude"] {
            assert!(script.contains(part), "{shell}: {part}");
        }
        assert!(!script.contains("worker"), "{shell} shows what the help hides");
    }
    let said = run(&["completions", "cmd"]).expect_code(2);
    assert!(said.stderr.contains("bash"), "{}", said.stderr);
}

/// What bash completes with the script: the words before the cursor, the last one unfinished.
fn completed(words: &[&str]) -> Vec<String> {
    let script = run(&["completions", "bash"]).expect_code(0).stdout;
    let program = env!("CARGO_BIN_EXE_thalweg");
    let (last, before) = (words[words.len() - 1], words.get(words.len().wrapping_sub(2)).copied().unwrap_or(program));
    let (line, at) = (words.join(" "), words.len());
    let asking = format!(
        "COMP_WORDS=({program} {line}); COMP_CWORD={at}; _thalweg_and_topics {program} {last} {before}; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let mut bash =
        Command::new("bash").arg("--norc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("bash");
    let mut stdin = bash.stdin.take().expect("piped");
    stdin.write_all(format!("{script}\n{asking}\n").as_bytes()).expect("written");
    drop(stdin);
    let output = bash.wait_with_output().expect("ended");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn bash_understands_the_script_and_completes_with_it() {
    assert_eq!(completed(&["topic", "e"]), ["echo"]);
    assert_eq!(completed(&["topic", "echo", "--fi"]), ["--field", "--filter"]);
}

#[test]
fn bash_completes_topics_of_the_domain_as_words_that_run_nothing() {
    let (tag, folder) = (tag(), TestFolder::new());
    let ran = folder.path("ran");
    let participant = DomainParticipant::builder(0).domain_tag(&tag).create().expect("a participant");
    let forged = format!("not$(touch {ran})");
    let writers = [&forged[..], "notes", "rt/scan"].map(|name| {
        let topic = participant.create_raw_topic(name, "Note", Keyed::No, None);
        participant.create_writer(&topic, WriterQos::default()).expect("a writer")
    });
    // A busy machine may find them late.
    let check = |words: &[&str], wanted: &[&str]| {
        let mut found = Vec::new();
        let is_found = (0..20).any(|_| {
            found = completed(words);
            found == wanted
        });
        assert!(is_found, "{words:?}: {found:?}, not {wanted:?}");
    };
    let quoted = format!("not\\$\\(touch\\ {ran}\\)");
    check(&["topic", "echo", "--domain-tag", &tag, "no"], &[&*quoted, "notes"]);
    check(&["topic", "type", "--domain-tag", &tag, "/s"], &["/scan"]);
    check(&["sub", "--domain-tag", &tag, "note"], &["notes"]);
    check(&["record", "--domain-tag", &tag, "/"], &["/scan"]);
    assert!(!Path::new(&ran).exists(), "a name ran as a command");
    drop(writers);
}

#[test]
fn every_command_has_a_manual_page() {
    let page = run(&["man", "topic", "echo"]).expect_code(0).stdout;
    for part in [".TH thalweg-topic-echo 1", "\\-\\-filter", "Exit codes: 0"] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    let folder = std::env::temp_dir().join(format!("thalweg-man-{}", std::process::id()));
    run(&["man", "--all", &folder.display().to_string()]).expect_code(0);
    let pages: Vec<String> = std::fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    std::fs::remove_dir_all(&folder).expect("removed");
    for page in ["thalweg.1", "thalweg-record.1", "thalweg-topic-echo.1", "thalweg-coap-get.1"] {
        assert!(pages.iter().any(|name| name == page), "{page} is not among {pages:?}");
    }
    assert!(!pages.iter().any(|name| name.contains("worker")));
    let said = run(&["man", "topic", "eco"]).expect_code(2);
    assert!(said.stderr.contains("it has list, type, echo"), "{}", said.stderr);
}
