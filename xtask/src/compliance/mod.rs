//! Which of DDS 1.4 and DDS-XTypes 1.3 is here and shown: operations, policies and types with the tests that show them, and the cases of
//! `thalweg shapes` against itself. Makes `docs/compliance.md`.

mod cases;
mod clauses;
mod ends;
mod types;
mod vendors;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::Outcome;
use crate::workspace::{cargo, root, run as run_command, target};
use cases::{CASES, Case};
use clauses::{Clause, STANDARDS};
use ends::{End, Running, ShapesProgram};

/// The page that is made.
const PAGE: &str = "docs/compliance.md";
/// Cases that run at once: each has two or three processes that mostly wait.
const AT_ONCE: usize = 6;
/// Domains of the cases, beyond those that people use.
const FIRST_DOMAIN: u32 = 180;
/// Longest wait for what a case expects; nothing waits for it when all is well.
const PATIENCE: Duration = Duration::from_secs(40);
/// Samples of a case that are shown where its rule does not hold.
const SHOWN_MAX: usize = 20;
/// What must not happen is waited for so long.
const SILENCE: Duration = Duration::from_secs(5);

/// What a case came to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Passed,
    NotOffered,
    Failed(String),
}

/// Checks that every clause names a test that exists, runs the cases, and writes the page; with `--check`, compares what it would write with
/// the page that is there. `vendors` runs them with the shapes programs below `peers/` and writes their page, `--with PROGRAM` with
/// another one; each is publisher once, and subscriber once.
pub fn run(arguments: &[String]) -> Outcome {
    let (mut check, mut program, mut vendors, mut rest) = (false, None, None, arguments.iter());
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--check" => check = true,
            "--with" if vendors.is_none() => program = Some(rest.next().ok_or("--with names a program")?),
            "vendors" => vendors = Some(Vec::new()),
            name if !name.starts_with('-') && vendors.is_some() => {
                vendors.iter_mut().for_each(|names| names.push(name))
            }
            other => {
                let words = "--check, --with PROGRAM and vendors [NAME…]";
                return Err(format!("compliance does not know {other:?}; it takes {words}"));
            }
        }
    }
    clauses::check_tests(&root())?;
    let own = own_program()?;
    if let Some(names) = vendors {
        return vendors::run(own, &names, check).map(drop);
    }
    let own = ShapesProgram::here(own).ours();
    if let Some(other) = program {
        return run_with(&own, &ShapesProgram::here(vec![other.into()]));
    }
    let verdicts = run_all(&own, &own);
    let page = page(&verdicts)?;
    let failed = report(&verdicts);
    let path = root().join(PAGE);
    if check {
        let there = std::fs::read_to_string(&path).map_err(|error| format!("{PAGE}: {error}"))?;
        if there != page {
            return Err(format!("{PAGE} is not what the cases came to; run `cargo xtask compliance`"));
        }
    } else {
        std::fs::write(&path, page).map_err(|error| format!("{PAGE}: {error}"))?;
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} cases failed")) }
}

/// Runs the cases against the vendors' programs; returns how many came to what their page says.
///
/// # Errors
/// A program is not to be had, or some case comes to something else.
pub fn check_vendors() -> Outcome<usize> {
    vendors::run(own_program()?, &[], true)
}

/// What starts our own program.
fn own_program() -> Outcome<Vec<OsString>> {
    run_command(&mut cargo(&["build", "--package", "thalweg-cli"]))?;
    // What persistent shapes an earlier run left behind would be those of this one.
    let state = ends::state_folder();
    if state.exists() {
        std::fs::remove_dir_all(&state).map_err(|error| format!("{}: {error}", state.display()))?;
    }
    Ok(vec![target().join("debug/thalweg").into(), "shapes".into()])
}

/// Runs the cases against another program, both ways; prints what they come to.
fn run_with(own: &ShapesProgram<'_>, other: &ShapesProgram<'_>) -> Outcome {
    let mut failed = 0;
    for (publisher, subscriber) in [(own, other), (other, own)] {
        println!("\n=== {} to {} ===", publisher.name(), subscriber.name());
        failed += report(&run_all(publisher, subscriber));
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} cases failed")) }
}

/// Prints the cases that did not pass; returns the number of those that failed.
fn report(verdicts: &[Verdict]) -> usize {
    for (case, verdict) in CASES.iter().zip(verdicts) {
        match verdict {
            Verdict::Passed => {}
            Verdict::NotOffered => println!("not offered: {}", case.name),
            Verdict::Failed(why) => println!("failed: {}: {why}", case.name),
        }
    }
    let passed = verdicts.iter().filter(|verdict| **verdict == Verdict::Passed).count();
    println!("{passed} of {} cases passed", CASES.len());
    verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Failed(_))).count()
}

fn run_all(publisher: &ShapesProgram<'_>, subscriber: &ShapesProgram<'_>) -> Vec<Verdict> {
    let next = AtomicUsize::new(0);
    let verdicts: Vec<Mutex<Option<Verdict>>> = CASES.iter().map(|_| Mutex::new(None)).collect();
    thread::scope(|scope| {
        for worker in 0..AT_ONCE as u32 {
            let (next, verdicts) = (&next, &verdicts);
            scope.spawn(move || {
                while let Some(case) = CASES.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let place = CASES.iter().position(|other| std::ptr::eq(other, case)).unwrap_or_default();
                    let verdict = run_case(case, FIRST_DOMAIN + worker, publisher, subscriber);
                    if let Ok(mut cell) = verdicts[place].lock() {
                        *cell = Some(verdict.unwrap_or_else(Verdict::Failed));
                    }
                }
            });
        }
    });
    let unknown = || Verdict::Failed("it was not run".to_owned());
    verdicts.into_iter().map(|cell| cell.into_inner().ok().flatten().unwrap_or_else(unknown)).collect()
}

/// Runs the programs of a case until they have come to what is expected, or surely will not.
fn run_case(
    case: &Case,
    domain: u32,
    publisher: &ShapesProgram<'_>,
    subscriber: &ShapesProgram<'_>,
) -> Outcome<Verdict> {
    let patience = |expected: End| if expected == End::Alone { SILENCE } else { PATIENCE };
    // A late subscriber comes when some samples were written.
    let is_late = case.publishers[0].starts_with("late ");
    let start_subscriber = || Running::start(subscriber, domain, "-S", case.subscriber);
    let early = if is_late { None } else { Some(start_subscriber()?) };
    let mut publishers = Vec::new();
    for options in case.publishers {
        let options = options.strip_prefix("late ").unwrap_or(options);
        publishers.push(Running::start(publisher, domain, "-P", &format!("-c RED -w {options}"))?);
    }
    if is_late {
        publishers[0].come_to(End::Fine, 6, PATIENCE, None);
    }
    let reader = early.map_or_else(start_subscriber, Ok)?;
    let count = case.rule.as_ref().map_or(0, |rule| rule.samples);
    let (heard, samples) = reader.come_to(case.expect.1, count.max(1), patience(case.expect.1), Some(&publishers[0]));
    if heard == End::NotOffered {
        return Ok(not_offered(subscriber));
    }
    let (said, _) = publishers[0].come_to(case.expect.0, 0, patience(case.expect.0), None);
    if said == End::NotOffered {
        return Ok(not_offered(publisher));
    }
    if (said, heard) == (End::Alone, End::Alone) && !(publishers[0].is_there() && reader.is_there()) {
        return Ok(Verdict::Failed("a program has ended, or made no endpoint".to_owned()));
    }
    if (said, heard) != case.expect {
        return Ok(Verdict::Failed(format!("came to {said:?} and {heard:?} instead of {:?}", case.expect)));
    }
    if let Some(policy) = case.refused_policy() {
        let named = [publishers[0].policy(), reader.policy()];
        if named != [Some(policy); 2] {
            return Ok(Verdict::Failed(format!("the policies {named:?} were named instead of {policy}")));
        }
    }
    match &case.rule {
        Some(rule) if samples.len() < rule.samples => {
            Ok(Verdict::Failed(format!("{} of {} samples came", samples.len(), rule.samples)))
        }
        Some(rule) if !(rule.holds)(&samples) => {
            let some: Vec<String> =
                samples.iter().take(SHOWN_MAX).map(|sample| format!("{} [{}]", sample.color, sample.size)).collect();
            Ok(Verdict::Failed(format!("{} does not hold: {}", rule.words, some.join(", "))))
        }
        _ => Ok(Verdict::Passed),
    }
}

/// What it comes to that `program` lacks what it was asked for.
fn not_offered(program: &ShapesProgram<'_>) -> Verdict {
    match program.is_ours() {
        true => Verdict::Failed("our own program does not offer it".to_owned()),
        false => Verdict::NotOffered,
    }
}

fn page(verdicts: &[Verdict]) -> Outcome<String> {
    let mut page = String::from(
        "# Compliance\n\nMade by `cargo xtask compliance`, which checks that each test exists and runs each case; do not edit.\n\n",
    );
    let mut write = |line: std::fmt::Arguments<'_>| page.write_fmt(line).map_err(|error| error.to_string());
    for (standard, areas) in STANDARDS {
        write(format_args!("## {standard}\n\n"))?;
        for (area, clauses) in *areas {
            write(format_args!("### {area}\n\n| clause | what | here | test |\n|---|---|---|---|\n"))?;
            for Clause { clause, what, here, test } in *clauses {
                let test = if test.is_empty() { "–".to_owned() } else { format!("`{test}`") };
                write(format_args!("| {clause} | {what} | {here} | {test} |\n"))?;
            }
            write(format_args!("\n"))?;
        }
    }
    write(format_args!(
        "## Cases of `thalweg shapes` with itself\n\n| case | clause | publisher | subscriber | expected | what holds of the samples | result |\n\
         |---|---|---|---|---|---|---|\n"
    ))?;
    for (case, verdict) in CASES.iter().zip(verdicts) {
        let rule = case.rule.as_ref().map_or("", |rule| rule.words);
        let result = match verdict {
            Verdict::Passed => "passed",
            Verdict::NotOffered => "not offered",
            Verdict::Failed(_) => "**failed**",
        };
        let publishers: Vec<String> = case.publishers.iter().map(|options| format!("`{options}`")).collect();
        let (publisher, subscriber) = (publishers.join(" and "), case.subscriber);
        let (name, clause, (said, heard)) = (case.name, case.clause, case.expect);
        let (said, heard) = (said.words(), heard.words());
        let expected = if said == heard { said.to_owned() } else { format!("{said}, {heard}") };
        write(format_args!("| {name} | {clause} | {publisher} | `{subscriber}` | {expected} | {rule} | {result} |\n"))?;
    }
    Ok(page)
}
