//! The conversation with `burst`, one process of it at each end.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::Outcome;

/// One end; killed when dropped.
pub struct Burst {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Burst {
    pub fn start(mut command: Command) -> Outcome<Burst> {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let input = child.stdin.take().ok_or("no standard input")?;
        let output = child.stdout.take().ok_or("no standard output")?;
        Ok(Burst { child, input, lines: BufReader::new(output).lines() })
    }

    /// Waits until the publisher has met the subscriber.
    pub fn wait_until_ready(&mut self) -> Outcome {
        let said = self.hear()?;
        if said["ready"] == true { Ok(()) } else { Err(format!("burst said {said} before it was ready")) }
    }

    /// Asks the publisher for so many runs; the milliseconds of each.
    pub fn ask(&mut self, count: usize, size: usize, runs: usize) -> Outcome<Vec<f64>> {
        let request = json!({"n": count, "size": size, "runs": runs});
        writeln!(self.input, "{request}").map_err(|error| format!("burst does not listen: {error}"))?;
        let answer = self.hear()?;
        let times =
            answer["runs_ms"].as_array().map(|times| times.iter().filter_map(Value::as_f64).collect::<Vec<_>>());
        times.filter(|times| times.len() == runs).ok_or_else(|| format!("burst answered {answer}"))
    }

    fn hear(&mut self) -> Outcome<Value> {
        let line = self.lines.by_ref().map_while(Result::ok).find(|line| line.starts_with('{'));
        let line = line.ok_or("burst ended early")?;
        serde_json::from_str(&line).map_err(|error| format!("{line}: {error}"))
    }
}

impl Drop for Burst {
    fn drop(&mut self) {
        // Gone already, or not worth waiting for; both calls then fail harmlessly.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
