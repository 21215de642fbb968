//! Where samples come from: the command line, or standard input.

use std::io::{BufRead, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

use thalweg_types::document::Document;

use super::LOOK_PERIOD;
use crate::interrupt::Interrupt;
use crate::outcome::Failure;

/// The values to write.
pub enum SampleSource {
    /// One, over and over.
    Given(Document),
    /// A line of standard input each, read by a thread so that Ctrl-C is heard meanwhile.
    Lines {
        /// What the thread has read.
        lines: Receiver<Result<String, String>>,
        /// Lines taken so far, empty ones among them.
        taken: u64,
    },
}

/// The next value of [`SampleSource`].
pub enum Next {
    /// A value, and the line that it stands in.
    Value(Document, Option<u64>),
    End,
    Interrupted,
}

impl SampleSource {
    /// The value of this text, or those of standard input for `-`.
    ///
    /// # Errors
    /// The text is no JSON.
    pub fn new(text: &str) -> Result<SampleSource, Failure> {
        if text != "-" {
            let value = Document::from_json(text.as_bytes());
            return value.map(SampleSource::Given).map_err(|error| Failure::Usage(format!("the sample is {error}")));
        }
        let (sender, lines) = sync_channel(LINES_AHEAD);
        std::thread::spawn(move || {
            let mut input = std::io::stdin().lock();
            while let Some(line) = read_line(&mut input).transpose() {
                let is_last = line.is_err();
                if sender.send(line).is_err() || is_last {
                    return;
                }
            }
        });
        Ok(SampleSource::Lines { lines, taken: 0 })
    }

    /// Whether they end by themselves.
    pub fn are_lines(&self) -> bool {
        matches!(self, SampleSource::Lines { .. })
    }

    /// Waits for the next value.
    ///
    /// # Errors
    /// Standard input cannot be read, or a line is no JSON.
    pub fn next(&mut self, interrupt: &Interrupt) -> Result<Next, Failure> {
        let (lines, taken) = match self {
            SampleSource::Given(value) => return Ok(Next::Value(value.clone(), None)),
            SampleSource::Lines { lines, taken } => (lines, taken),
        };
        loop {
            match lines.recv_timeout(LOOK_PERIOD) {
                Ok(line) => {
                    *taken += 1;
                    let line = line.map_err(|error| Failure::Failed(format!("line {taken}: {error}")))?;
                    if line.trim().is_empty() {
                        continue;
                    }
                    let value = Document::from_json(line.as_bytes());
                    let value = value.map_err(|error| Failure::Failed(format!("line {taken} is {error}")))?;
                    return Ok(Next::Value(value, Some(*taken)));
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(Next::End),
                Err(RecvTimeoutError::Timeout) if interrupt.came() => return Ok(Next::Interrupted),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// The next line without its end; `None` at the end of the input.
fn read_line(input: &mut impl BufRead) -> Result<Option<String>, String> {
    let mut line = Vec::new();
    let read = input.take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
    match read.map_err(|error| format!("standard input cannot be read: {error}"))? {
        0 => return Ok(None),
        read if read as u64 == LINE_BYTES_MAX => return Err(format!("more than {} MiB", LINE_BYTES_MAX >> 20)),
        _ => {}
    }
    String::from_utf8(line).map(Some).map_err(|_| "it is no text in UTF-8".to_owned())
}

/// Lines that are read before they are written.
const LINES_AHEAD: usize = 64;
/// Longest line; chosen by us: a sample of a hundred MiB as JSON.
const LINE_BYTES_MAX: u64 = 256 << 20;
