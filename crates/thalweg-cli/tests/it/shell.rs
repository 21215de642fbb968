//! Completions and manual pages.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::program::run;

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

#[test]
fn bash_understands_the_script_and_completes_with_it() {
    let script = run(&["completions", "bash"]).expect_code(0).stdout;
    let asking = "COMP_WORDS=(thalweg topic e); COMP_CWORD=2; _thalweg thalweg e topic; echo \"${COMPREPLY[@]}\"";
    let mut bash =
        Command::new("bash").arg("--norc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("bash");
    let mut stdin = bash.stdin.take().expect("piped");
    stdin.write_all(format!("{script}\n{asking}\n").as_bytes()).expect("written");
    drop(stdin);
    let output = bash.wait_with_output().expect("ended");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "echo");
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
