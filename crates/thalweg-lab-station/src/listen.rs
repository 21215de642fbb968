//! Readers on demand: one for each line of the input; what they get goes to standard output.

use std::io::{BufRead, Write};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::channel::{ProcessEnd, SampleChannel};
use crate::fault::Fault;
use crate::middleware::{ArrivedSample, Middleware, SampleSink};

/// One line of the input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListenRequest {
    /// The topic of the reader.
    reader: String,
    /// TRANSIENT_LOCAL instead of VOLATILE.
    #[serde(default)]
    durable: bool,
    /// BEST_EFFORT instead of RELIABLE.
    #[serde(default)]
    best_effort: bool,
}

/// Says which sample a reader got.
struct Voice {
    topic: String,
}

impl<M: Middleware> SampleSink<M> for Voice {
    fn take(&mut self, arrival: M::Arrival<'_>) {
        // The one who listened has ended; so does this process, soon.
        let _ = say(&json!({ "topic": self.topic, "number": arrival.number(), "bytes": arrival.bytes().len() }));
    }
}

/// Creates readers until `input` ends.
///
/// # Errors
/// A line is not understood, or the middleware refuses a reader.
pub fn listen<M: Middleware>(setup: &M::Setup, input: impl BufRead) -> Result<(), Fault> {
    let middleware = M::open(setup, &ProcessEnd::subscriber())?;
    say(&json!({ "ready": true, "peer": M::NAME, "version": M::VERSION }))?;
    let mut readers = Vec::new();
    for line in input.lines() {
        let line = line.map_err(Fault::here)?;
        let asked: ListenRequest =
            serde_json::from_str(&line).map_err(|error| Fault::Here(format!("{line}: {error}")))?;
        if asked.durable && !M::DURABLE {
            return Err(Fault::Here(format!("no durable reader of {} is set up", M::NAME)));
        }
        let (durable, best_effort) = (asked.durable, asked.best_effort);
        let channel = SampleChannel { durable, best_effort, ..SampleChannel::reliable(asked.reader.as_str()) };
        readers.push(middleware.reader(&channel, Voice { topic: asked.reader.clone() })?);
        say(&json!({ "reader": asked.reader }))?;
    }
    Ok(())
}

/// Prints a line that is never mixed with another thread's.
fn say(line: &Value) -> Result<(), Fault> {
    let mut output = std::io::stdout().lock();
    let written = writeln!(output, "{line}").and_then(|()| output.flush());
    written.map_err(|error| Fault::Here(format!("standard output: {error}")))
}
