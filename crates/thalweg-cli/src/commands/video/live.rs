//! The line of a running stream.

use std::fmt::Display;
use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

/// One line that is written over the one before; nothing where standard error is no terminal.
pub struct LiveLine(bool);

impl LiveLine {
    pub fn open() -> LiveLine {
        LiveLine(stderr().is_terminal())
    }

    /// Shows `text` instead of what was shown before; the terminal cuts what is too long.
    pub fn show(&self, text: impl Display) {
        if self.0 {
            // Failing to print progress does not fail the stream.
            let _ = write!(stderr(), "\r\x1b[?7l{text}\x1b[K\x1b[?7h");
        }
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        if self.0 {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

/// Microseconds with a digit behind the point.
pub fn micros(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e7).round() / 10.0
}

/// A time of a report as text, or a dash while nobody has told it.
pub fn micros_or_dash(time: Option<Duration>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| format!("{:.0} µs", micros(time)))
}
