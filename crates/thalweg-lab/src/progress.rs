//! What goes on, on standard error: one line for each part, redrawn in place on a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::figures::about;

/// Progress of one part of a scenario.
pub(crate) struct Progress {
    title: String,
    part: String,
    is_terminal: bool,
    rest: String,
}

impl Progress {
    /// Nothing is shown before the first part.
    pub(crate) fn new(title: &str) -> Progress {
        Progress {
            title: title.to_owned(),
            part: String::new(),
            is_terminal: io::stderr().is_terminal(),
            rest: String::new(),
        }
    }

    /// Shows from now on how long the rest of the experiment takes.
    pub(crate) fn rest(&mut self, rest: Duration) {
        self.rest = format!("  {} left", about(rest));
    }

    /// Part `part` is `done` of `total` through. Away from a terminal a part is told once, when it begins.
    pub(crate) fn show(&mut self, part: &str, done: u64, total: u64) {
        let is_new = self.part != part;
        if self.is_terminal {
            if is_new {
                self.finish();
            }
            let filled = (done * BAR_WIDTH / total.max(1)).min(BAR_WIDTH) as usize;
            let bar = format!("{}{}", "█".repeat(filled), "░".repeat(BAR_WIDTH as usize - filled));
            write(format_args!("\r  {:<15} {part:<22} {bar} {done:>3}/{total}{}\x1b[K", self.title, self.rest));
        } else if is_new {
            write(format_args!("  {:<15} {part}{}\n", self.title, self.rest));
        }
        self.part = part.to_owned();
    }

    /// Leaves the line.
    pub(crate) fn finish(&mut self) {
        if self.is_terminal && !self.part.is_empty() {
            write(format_args!("\n"));
        }
        self.part.clear();
    }
}

/// How far a whole experiment is, in expected seconds of work.
#[derive(Debug)]
pub(crate) struct Pace {
    started: Instant,
    done: f64,
    total: f64,
}

impl Pace {
    /// Nothing of `total` expected seconds is done.
    pub(crate) fn new(total: f64) -> Pace {
        Pace { started: Instant::now(), done: 0.0, total }
    }

    /// Work that was expected to take so many seconds is done.
    pub(crate) fn advance(&mut self, seconds: f64) {
        self.done = (self.done + seconds).min(self.total);
    }

    /// How long the rest takes if it goes on as it did so far.
    pub(crate) fn rest(&self) -> Duration {
        rest(self.started.elapsed(), self.done, self.total)
    }
}

fn rest(elapsed: Duration, done: f64, total: f64) -> Duration {
    // Before anything is known the expectation itself counts; it fades out over the first tenth.
    let trust = (done / (0.1 * total).max(1e-9)).min(1.0);
    let slowness = if done > 0.0 { elapsed.as_secs_f64() / done } else { 1.0 };
    let factor = trust * slowness + (1.0 - trust);
    Duration::try_from_secs_f64((total - done).max(0.0) * factor).unwrap_or(Duration::ZERO)
}

fn write(text: std::fmt::Arguments<'_>) {
    let mut out = io::stderr().lock();
    // Progress that nobody can read is nothing to fail of.
    let _ = out.write_fmt(text).and_then(|()| out.flush());
}

const BAR_WIDTH: u64 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_follows_the_pace_so_far() {
        let seconds = |elapsed, done, total| rest(Duration::from_secs(elapsed), done, total).as_secs();
        assert_eq!(seconds(0, 0.0, 100.0), 100, "nothing is known but the expectation");
        assert_eq!(seconds(100, 50.0, 100.0), 100, "twice as slow as expected");
        assert_eq!(seconds(10, 5.0, 100.0), 142, "half known, half expected");
        assert_eq!(seconds(300, 100.0, 100.0), 0);
    }
}
