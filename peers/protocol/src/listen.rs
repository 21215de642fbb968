//! Readers on demand: one for each line on standard input; what they get goes to standard output.

use std::io::{BufRead, Write};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::middleware::{Channel, Keep, Middleware, Sink};
use crate::options::ListenOptions;

/// One line on standard input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
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

impl Sink for Voice {
    fn take(&mut self, number: u64, bytes: &[u8]) {
        // The one who listened has ended; so does this process, soon.
        let _ = say(&json!({ "topic": self.topic, "number": number, "bytes": bytes.len() }));
    }
}

/// Creates readers until standard input ends.
pub fn run<M: Middleware>(options: &ListenOptions) -> Result<(), String> {
    let middleware = M::open(&options.setup::<M>()?)?;
    say(&json!({ "ready": true, "peer": M::PEER, "version": M::VERSION }))?;
    let mut readers = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let asked: Request = serde_json::from_str(&line).map_err(|error| format!("{line}: {error}"))?;
        if asked.durable && !M::DURABLE {
            return Err(format!("no durable reader of {} is set up", M::PEER));
        }
        let channel = Channel {
            topic: asked.reader.clone(),
            type_name: "ThalwegBurst",
            keep: Keep::All,
            best_effort: asked.best_effort,
            durable: asked.durable,
            samples_max: None,
            max_blocking: Channel::MAX_BLOCKING,
        };
        readers.push(middleware.reader(&channel, Voice { topic: asked.reader.clone() })?);
        say(&json!({ "reader": asked.reader }))?;
    }
    Ok(())
}

/// Prints a line that is never mixed with another thread's.
fn say(line: &Value) -> Result<(), String> {
    let mut output = std::io::stdout().lock();
    let written = writeln!(output, "{line}").and_then(|()| output.flush());
    written.map_err(|error| format!("standard output: {error}"))
}
