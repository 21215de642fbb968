//! A screen is text that is written over the one before: it needs no library, and the same text goes into files and pipes.

use std::io::{Write, stdout};

use crate::outcome::{Failure, Shown};

/// The terminal's second screen; the first one comes back when this is dropped.
pub struct Screen;

impl Screen {
    /// Goes to it.
    pub fn open() -> Screen {
        let _ = write!(stdout(), "\x1b[?1049h\x1b[?25l");
        Screen
    }

    /// Overwrites the earlier lines; the terminal cuts lines that are too long. Of more lines than it has, the first ones stay.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn show(&self, text: &str) -> Result<(), Failure> {
        let mut out = stdout().lock();
        let lines = drawn(text);
        write!(out, "\x1b[?7l\x1b[H{lines}\x1b[J\x1b[?7h").and_then(|()| out.flush()).map_err(Failure::from_cause)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut out = stdout();
        let _ = write!(out, "\x1b[?25h\x1b[?1049l").and_then(|()| out.flush());
    }
}

/// The lines of a text, each over what stood in its place. Names of strangers command neither the terminal nor the place of what follows.
/// No line ends with a line feed, which would scroll the first ones away: those below the screen come to its last line.
fn drawn(text: &str) -> String {
    let draw = |(row, line): (usize, &str)| format!("\x1b[{row};1H{}\x1b[K", Shown(line.replace('\r', "\\r")));
    (1..).zip(text.lines()).map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_on_a_screen_do_not_command_the_terminal() {
        let text = "/a\u{1b}]0;title\u{7} \u{9b}2J\n/b\r0 Hz\n";
        assert_eq!(drawn(text), "\x1b[1;1H/a\\u001b]0;title\\u0007 \\u009b2J\x1b[K\x1b[2;1H/b\\r0 Hz\x1b[K");
    }
}
