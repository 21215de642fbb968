//! A screen is text that is written over the one before: it needs no library, and the same text goes into files and pipes.

use std::io::{Write, stdout};

use crate::outcome::Failure;

/// The terminal's second screen; the first one comes back when this is dropped.
pub struct Screen;

impl Screen {
    /// Goes to it.
    pub fn open() -> Screen {
        let _ = write!(stdout(), "\x1b[?1049h\x1b[?25l");
        Screen
    }

    /// Overwrites the earlier lines; the terminal cuts lines that are too long.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn show(&self, text: &str) -> Result<(), Failure> {
        let lines: String = text.lines().map(|line| format!("{line}\x1b[K\r\n")).collect();
        let mut out = stdout().lock();
        write!(out, "\x1b[?7l\x1b[H{lines}\x1b[J\x1b[?7h").and_then(|()| out.flush()).map_err(Failure::from_cause)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut out = stdout();
        let _ = write!(out, "\x1b[?25h\x1b[?1049l").and_then(|()| out.flush());
    }
}
