//! A short run of a peer program: shows that it works, not how fast.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::Burst;
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
    let subscriber = Burst::start(command(&["burst", "--role", "sub", "--max-size", "64"]))?;
    let mut publisher = Burst::start(command(&["burst", "--role", "pub", "--max-size", "64"]))?;
    publisher.wait_until_ready()?;
    let times = publisher.ask(100, 64, 2)?;
    drop((publisher, subscriber));
    let throughput = ["throughput", "--role", "both", "--size", "64", "--seconds", "0.5", "--json"];
    let text = output(&mut command(&throughput))?;
    let line = text.lines().rev().find(|line| line.starts_with('{')).unwrap_or_default();
    let figures: Value = serde_json::from_str(line).map_err(|error| format!("throughput printed {text:?}: {error}"))?;
    let rate = figures["received_per_s"].as_f64().filter(|rate| *rate > 0.0).ok_or("throughput received nothing")?;
    let lost = figures["lost"].as_u64().unwrap_or_default();
    Ok(format!("100 x 64 B to the echo: {times:.3?} ms; throughput of 64 B: {rate:.0}/s, {lost} lost"))
}
