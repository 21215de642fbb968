//! `cargo xtask`: tasks of contributors and of the continuous integration.

mod api;
mod browser;
mod compliance;
mod count;
mod fuzz;
mod licences;
mod miri;
mod mutants;
mod netns;
mod peers;
mod report;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

/// The error of a step, in words for the person who started it.
pub type Outcome<T = ()> = Result<T, String>;

const USAGE: &str = "\
usage: cargo xtask <command>

  test [suite…]       set up what the tests need and run them all; with names, only those suites
  tidy                check dependency directions, unsafe code, file lengths, texts, links and the items that documents name
  fuzz [seconds]      run each fuzz target for so many seconds (default 15), as many at a time as there are CPUs
  mutants [--sample N] [--seed S]
                      change the core in N places (default 20), one at a time, and name the changes that no test notices
                      (needs cargo-mutants)
  licences            check licences, sources and duplicates of the dependencies
  miri                run tests of code that handles memory by itself in an interpreter (needs a nightly toolchain with miri)
  count [method…]     count locks, clock reads, allocations and system calls a sample and side (needs valgrind)
  count pairs|participants N
                      measure processor time and memory of N writers and N readers on as many topics, or of N participants in one
                      process: until they have met, and idle
  count instructions [REVISION]
                      count the instructions of a sample that uses no policy, and at an earlier revision beside them (needs valgrind)
  count types [N] [ROUNDS]
                      measure what described types add to the discovery of N participants (default 50) in processes of their own,
                      each with ten endpoints: time, processor time, datagrams and bytes
  count instances     measure what an instance costs among a thousand others and among a million
  count readers       measure the cost of a write, an ACKNACK and a match for a writer with 1 to 4,000 readers
  count codec         measure reading and writing samples of types that are known at run time only, beside the derived codec
  api [--write]       compare the public API of thalweg, and what it exports of our other crates, with docs/api/thalweg.txt; with
                      --write, record it there
  compliance [vendors [vendor…]] [--check] [--with PROGRAM]
                      check that the tests of each clause of DDS and DDS-XTypes exist, run the cases of `thalweg shapes` with
                      itself and write docs/compliance.md; with vendors, run them against other vendors' middleware and write
                      docs/interoperability.md; with --check, compare the page; with --with, run them against another shape_main
  peers [peer…] [--check]
                      build the programs of the other vendors' middleware and say which are ready; with names, only
                      those; with --check, run each of them briefly

Each set-up step is skipped when it was done before; all of it lives below target/.
Where CI=true, a test that cannot run for want of a program or a privilege is a failure.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest = arguments.get(1..).unwrap_or_default();
    let outcome = match arguments.first().map(String::as_str) {
        Some("test") => test::run(rest),
        Some("tidy") => tidy::run(),
        Some("fuzz") => fuzz::run(rest),
        Some("licences") => licences::run(),
        Some("miri") => miri::run(),
        Some("api") => api::run(rest),
        Some("compliance") => compliance::run(rest),
        Some("mutants") => mutants::run(rest),
        Some("count") => count::run(rest),
        Some("peers") => peers::run(rest),
        Some("help" | "--help" | "-h") => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}
