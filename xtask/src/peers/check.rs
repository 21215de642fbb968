//! A short run of a peer program: shows that it works, not how fast.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::workspace::output;
use crate::{Outcome, netns};

/// Runs `burst` and `throughput` briefly, on a host of their own where we may make one.
pub fn check(program: &Path) -> Outcome<String> {
    let host = netns::available().and_then(|()| netns::Host::new("peers")).ok();
    let command = |arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments);
        match &host {
            Some(host) => host.command(&command),
            None => command,
        }
    };
    let subscriber = Running::start(command(&["burst", "--role", "sub", "--max-size", "64"]))?;
    let burst = Running::start(command(&["burst", "--role", "pub", "--max-size", "64"]))?.burst()?;
    drop(subscriber);
    let throughput = ["throughput", "--role", "both", "--size", "64", "--seconds", "0.5", "--json"];
    let text = output(&mut command(&throughput))?;
    let line = text.lines().rev().find(|line| line.starts_with('{')).unwrap_or_default();
    let figures: Value = serde_json::from_str(line).map_err(|error| format!("throughput printed {text:?}: {error}"))?;
    let rate = figures["received_per_s"].as_f64().filter(|rate| *rate > 0.0).ok_or("throughput received nothing")?;
    let lost = figures["lost"].as_u64().unwrap_or_default();
    Ok(format!("100 x 64 B to the echo: {burst} ms; throughput of 64 B: {rate:.0}/s, {lost} lost"))
}

/// A process that ends with its standard input; killed if it does not.
struct Running {
    child: Child,
}

impl Running {
    fn start(mut command: Command) -> Outcome<Running> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
        Ok(Running { child })
    }

    /// Asks for two runs; returns their times.
    fn burst(mut self) -> Outcome<Value> {
        let pipe = self.child.stdout.take().ok_or("no standard output")?;
        let mut lines = BufReader::new(pipe).lines().map_while(Result::ok);
        let mut next = || -> Outcome<Value> {
            let line = lines.next().ok_or("burst ended early")?;
            serde_json::from_str(&line).map_err(|error| format!("{line}: {error}"))
        };
        if next()?["ready"] != true {
            return Err("burst did not say that it is ready".to_owned());
        }
        let input = self.child.stdin.as_mut().ok_or("no standard input")?;
        writeln!(input, r#"{{"n":100,"size":64,"runs":2}}"#).map_err(|error| error.to_string())?;
        let answer = next()?;
        match answer["runs_ms"].as_array().map(Vec::len) {
            Some(2) => Ok(answer["runs_ms"].clone()),
            _ => Err(format!("burst answered {answer}")),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // Gone already, or about to be; both calls then fail harmlessly.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
