//! The table at the end of a test run.

use crate::workspace::in_ci;

/// The outcome of one suite.
pub struct SuiteRow {
    pub suite: &'static str,
    pub passed: usize,
    pub failed: usize,
    pub ignored: usize,
    /// Why it failed or could not run; empty if it passed.
    pub reason: String,
    pub seconds: f64,
}

impl SuiteRow {
    /// A suite that could not run.
    pub fn skipped(suite: &'static str, reason: String) -> SuiteRow {
        SuiteRow { suite, passed: 0, failed: usize::from(in_ci()), ignored: 0, reason, seconds: 0.0 }
    }

    fn verdict(&self) -> &'static str {
        match (self.failed, self.passed) {
            (0, 0) => "SKIPPED",
            (0, _) => "passed",
            _ => "FAILED",
        }
    }
}

/// What closing lines count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClosingCounts {
    pub passed: usize,
    pub failed: usize,
    pub ignored: usize,
}

/// Adds up the closing lines that cargo's test runner prints.
pub fn closing_lines(text: &str) -> ClosingCounts {
    let mut total = ClosingCounts::default();
    for line in text.lines().filter_map(closing_line) {
        for part in line.split([';', '.']).map(str::trim) {
            let Some((number, word)) = part.split_once(' ') else { continue };
            let Ok(number) = number.parse::<usize>() else { continue };
            match word {
                "passed" => total.passed += number,
                "failed" => total.failed += number,
                "ignored" => total.ignored += number,
                _ => {}
            }
        }
    }
    total
}

fn closing_line(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("test result: ")
}

/// How many test binaries began and did not come to their closing line.
pub fn unfinished_binaries(text: &str) -> usize {
    let begins = |line: &&str| {
        let number = line.strip_prefix("running ").and_then(|rest| rest.split_once(" test"));
        number.is_some_and(|(number, s)| number.parse::<usize>().is_ok() && matches!(s, "" | "s"))
    };
    let ended = text.lines().filter_map(closing_line).count();
    text.lines().filter(begins).count().saturating_sub(ended)
}

/// Prints the rows and whether all of them are good; in CI a skipped suite is not.
pub fn print(rows: &[SuiteRow]) -> bool {
    println!("\n{:<14} {:>8} {:>7} {:>7} {:>8} {:>8}  why", "suite", "", "passed", "failed", "ignored", "seconds");
    for row in rows {
        let (suite, verdict) = (row.suite, row.verdict());
        let first_line = row.reason.lines().next().unwrap_or_default();
        println!(
            "{suite:<14} {verdict:>8} {:>7} {:>7} {:>8} {:>8.0}  {first_line}",
            row.passed, row.failed, row.ignored, row.seconds
        );
    }
    let skipped = rows.iter().filter(|row| row.verdict() == "SKIPPED").count();
    if skipped > 0 {
        println!("\n*** {skipped} of {} suites did NOT run; see above ***", rows.len());
    }
    println!(
        "\n{} passed, {} failed, {} skipped",
        rows.iter().map(|row| row.passed).sum::<usize>(),
        rows.iter().map(|row| row.failed).sum::<usize>(),
        rows.iter().map(|row| row.ignored).sum::<usize>() + skipped
    );
    rows.iter().all(|row| row.failed == 0)
}

#[cfg(test)]
mod tests {
    use super::{ClosingCounts, closing_lines, unfinished_binaries};

    #[test]
    fn the_closing_lines_of_several_binaries_are_added_up() {
        let text = "test a ... ok\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.1s\n\
            noise\ntest result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s\n";
        assert_eq!(closing_lines(text), ClosingCounts { passed: 4, failed: 2, ignored: 1 });
    }

    #[test]
    fn what_tests_print_of_themselves_begins_no_binary() {
        let text = "running 1 test\nrunning 2 tests of mine\nrunning tests\ntest result: ok. 1 passed; 0 failed\n";
        assert_eq!(unfinished_binaries(text), 0);
        assert_eq!(unfinished_binaries("running 2 tests\n"), 1);
    }
}
