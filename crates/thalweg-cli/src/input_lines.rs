//! Lines of standard input, read by a thread of their own so that Ctrl-C is heard meanwhile.

use std::io::{BufRead, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use crate::interrupt::Interrupt;
use crate::outcome::Failure;

/// What is read of standard input.
pub struct InputLines {
    lines: Receiver<Result<String, String>>,
    /// Lines taken so far.
    taken: u64,
}

/// The next of [`InputLines`].
pub enum NextLine {
    /// A line without its end, and its number, counted from 1.
    Line(String, u64),
    End,
    Interrupted,
}

impl InputLines {
    /// Begins to read.
    pub fn start() -> InputLines {
        let (sender, lines) = sync_channel(LINES_AHEAD);
        std::thread::spawn(move || {
            let mut input = std::io::stdin().lock();
            while let Some(line) = read_line(&mut input, LINE_BYTES_MAX).transpose() {
                let is_last = line.is_err();
                if sender.send(line).is_err() || is_last {
                    return;
                }
            }
        });
        InputLines { lines, taken: 0 }
    }

    /// Waits for the next line.
    ///
    /// # Errors
    /// Standard input cannot be read, or the line is too long or no text.
    pub fn next(&mut self, interrupt: &Interrupt) -> Result<NextLine, Failure> {
        loop {
            match self.lines.recv_timeout(LOOK_PERIOD) {
                Ok(line) => {
                    self.taken += 1;
                    let number = self.taken;
                    let line = line.map_err(|error| Failure::Failed(format!("line {number}: {error}")))?;
                    return Ok(NextLine::Line(line, number));
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(NextLine::End),
                Err(RecvTimeoutError::Timeout) if interrupt.came() => return Ok(NextLine::Interrupted),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// The next line, of at most so many bytes with its end, which is left out; `None` at the end of the input.
fn read_line(input: &mut impl BufRead, bytes_max: u64) -> Result<Option<String>, String> {
    let mut line = Vec::new();
    let read = input.take(bytes_max + 1).read_until(b'\n', &mut line);
    match read.map_err(|error| format!("standard input cannot be read: {error}"))? {
        0 => return Ok(None),
        read if read as u64 > bytes_max => return Err(format!("it is longer than {bytes_max} bytes")),
        _ => {}
    }
    if line.pop_if(|last| *last == b'\n').is_some() {
        line.pop_if(|last| *last == b'\r');
    }
    String::from_utf8(line).map(Some).map_err(|_| "it is no text in UTF-8".to_owned())
}

/// How often a wait looks whether Ctrl-C came.
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// Lines that are read before they are written.
const LINES_AHEAD: usize = 64;
/// Longest line; chosen by us: a sample of a hundred MiB as JSON.
const LINE_BYTES_MAX: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(mut input: &[u8]) -> Vec<Result<String, String>> {
        std::iter::from_fn(|| read_line(&mut input, 8).transpose()).take(9).collect()
    }

    #[test]
    fn lines_lose_their_ends_and_nothing_else() {
        let text = |text: &str| Ok(text.to_owned());
        assert_eq!(lines(b"a\n\n b \r\nc\rd"), [text("a"), text(""), text(" b "), text("c\rd")]);
        assert_eq!(lines(b""), []);
        assert_eq!(lines(b"1234567\n1234567"), [text("1234567"), text("1234567")]);
    }

    #[test]
    fn a_line_without_an_end_is_refused_and_not_gathered() {
        assert_eq!(lines(&[b'x'; 40])[0], Err("it is longer than 8 bytes".to_owned()));
        assert_eq!(lines(b"\xff\n")[0], Err("it is no text in UTF-8".to_owned()));
    }
}
