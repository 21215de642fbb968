//! What goes on, on standard error: one line for each part, redrawn in place on a terminal.

use std::io::{self, IsTerminal, Write};

/// Progress of one part of a scenario.
pub(super) struct Progress {
    title: String,
    part: String,
    is_terminal: bool,
}

impl Progress {
    /// Nothing is shown before the first part.
    pub(super) fn new(title: &str) -> Progress {
        Progress { title: title.to_owned(), part: String::new(), is_terminal: io::stderr().is_terminal() }
    }

    /// Part `part` is `done` of `total` through. Away from a terminal a part is told once, when it begins.
    pub(super) fn show(&mut self, part: &str, done: u64, total: u64) {
        let is_new = self.part != part;
        if self.is_terminal {
            if is_new {
                self.finish();
            }
            let filled = (done * BAR_WIDTH / total.max(1)).min(BAR_WIDTH) as usize;
            let bar = format!("{}{}", "█".repeat(filled), "░".repeat(BAR_WIDTH as usize - filled));
            write(format_args!("\r  {:<15} {part:<22} {bar} {done:>3}/{total}", self.title));
        } else if is_new {
            write(format_args!("  {:<15} {part}\n", self.title));
        }
        self.part = part.to_owned();
    }

    /// Leaves the line.
    pub(super) fn finish(&mut self) {
        if self.is_terminal && !self.part.is_empty() {
            write(format_args!("\n"));
        }
        self.part.clear();
    }
}

fn write(text: std::fmt::Arguments<'_>) {
    let mut out = io::stderr().lock();
    // Progress that nobody can read is nothing to fail of.
    let _ = out.write_fmt(text).and_then(|()| out.flush());
}

const BAR_WIDTH: u64 = 24;
