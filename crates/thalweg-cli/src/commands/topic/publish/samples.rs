//! Where samples come from: the command line, or standard input.

use thalweg_types::document::Document;

use crate::input_lines::{InputLines, NextLine};
use crate::interrupt::Interrupt;
use crate::outcome::Failure;

/// The values to write.
pub enum SampleSource {
    /// One, over and over.
    Given(Document),
    /// A line of standard input each.
    Lines(InputLines),
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
        Ok(SampleSource::Lines(InputLines::start()))
    }

    /// Whether they end by themselves.
    pub fn are_lines(&self) -> bool {
        matches!(self, SampleSource::Lines(_))
    }

    /// Waits for the next value.
    ///
    /// # Errors
    /// Standard input cannot be read, or a line is no JSON.
    pub fn next(&mut self, interrupt: &Interrupt) -> Result<Next, Failure> {
        let lines = match self {
            SampleSource::Given(value) => return Ok(Next::Value(value.clone(), None)),
            SampleSource::Lines(lines) => lines,
        };
        loop {
            match lines.next(interrupt)? {
                NextLine::Line(line, _) if line.trim().is_empty() => {}
                NextLine::Line(line, number) => {
                    let value = Document::from_json(line.as_bytes());
                    let value = value.map_err(|error| Failure::Failed(format!("line {number} is {error}")))?;
                    return Ok(Next::Value(value, Some(number)));
                }
                NextLine::End => return Ok(Next::End),
                NextLine::Interrupted => return Ok(Next::Interrupted),
            }
        }
    }
}
