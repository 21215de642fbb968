//! Californium's checker of ETSI's CoAP plugtests against the resources of `examples/plugtest.rs`.

use std::process::Command;
use std::time::Duration;

use super::{capture, check_packets, free_address, setting};
use crate::program::Program;

/// Those of protected requests: its client begins each with a context that is derived anew (RFC 8613 Appendix B.2), which is
/// optional and not built here.
const NOT_RUN: [&str; 3] = ["OC01", "OC02", "OC03"];
/// Those in which it does not look whether the notifications end that it rejects.
const CONDITIONAL: [&str; 2] = ["CO02_05", "CO06"];
/// All others that version 3.14.0 has.
const CASES: usize = 46;

#[test]
fn all_its_cases_pass_in_one_run_but_those_that_derive_contexts_anew() {
    let address = free_address();
    let mut command = Command::new(setting("THALWEG_PLUGTEST"));
    let server = Program::start_with_input("plugtest", command.arg(address.to_string()));
    let capture = capture("californium-checker", address);
    let mut command = Command::new("java");
    command.args(["-XX:TieredStopAtLevel=1", "-cp", &setting("THALWEG_CALIFORNIUM_CHECKER"), CHECKER]);
    let folder = std::env::temp_dir();
    // It writes its properties into the folder that it runs in.
    let mut checker = Command::new("env");
    checker.arg("-C").arg(&folder).arg(command.get_program()).args(command.get_args());
    checker.args(["--no-oscore", &format!("coap://{address}")]);
    let mut checker = Program::start("Californium's checker", &checker);
    let (mut dropped, mut results, mut said) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(line) = checker.next_line(SILENCE_MAX) {
        if let Some(name) = line.strip_prefix("Drop OSCORE test ") {
            dropped.push(name.to_owned());
        }
        results.extend(
            line.split_once(": ")
                .filter(|(name, _)| is_case(name))
                .map(|(name, outcome)| (name.to_owned(), outcome.to_owned())),
        );
        said.push(line);
    }
    let said = said.join("\n");
    assert_eq!(dropped, NOT_RUN, "{said}");
    let is_passed = |name: &str, outcome: &str| match outcome {
        "PASSED (conditionally)" => CONDITIONAL.contains(&name),
        _ => outcome == "PASSED",
    };
    let failed: Vec<_> = results.iter().filter(|(name, outcome)| !is_passed(name, outcome)).collect();
    assert!(failed.is_empty() && results.len() == CASES, "{failed:?} of {}\n{said}", results.len());
    assert!(said.contains("responds to ping"), "{said}");
    checker.finish().well();
    check_packets(&capture.stop(), 4 * CASES);
    server.finish();
}

/// Whether a line of the summary is about a case, such as `CO01_12`.
fn is_case(name: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    name.len() >= 4
        && name.starts_with(['C', 'O'])
        && name[1..2].chars().all(|one| one.is_ascii_uppercase())
        && name.chars().all(is_part)
}

const CHECKER: &str = "org.eclipse.californium.plugtests.PlugtestChecker";
/// It waits for notifications and for the end of Max-Age.
const SILENCE_MAX: Duration = Duration::from_secs(120);
