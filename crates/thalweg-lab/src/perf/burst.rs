//! Bursts asked for on standard input, by the words that every peer program understands (`peers/README.md`).

use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::LabError;
use crate::paper1::pair::{self, BurstRequest, Burster, PairOrder};
use crate::process::Stop;
use crate::station::{Sending, StationNetwork, TokenBucket};

/// Options of both ends of a series of bursts.
#[derive(Clone, Debug, PartialEq)]
pub struct BurstOptions {
    /// The network of both ends.
    pub network: StationNetwork,
    /// By what way the samples travel.
    pub sending: Sending,
    /// A flow controller to create for it.
    pub flow_controller: Option<TokenBucket>,
    /// Logical CPU of this end.
    pub cpu: Option<usize>,
}

impl BurstOptions {
    fn order(&self) -> PairOrder {
        let BurstOptions { network, sending, flow_controller, cpu } = self.clone();
        PairOrder { network, sending, flow_controller, cpu }
    }
}

/// The writing end: says `{"ready":true,…}` once both have met, then answers each line `{"n":…,"size":…,"runs":…}` of `input` on
/// `output` with `{"runs_ms":[…]}` or `{"error":"…"}` until `input` ends or `stop` is requested.
///
/// # Errors
/// No reader appears, or `output` is closed.
pub fn burst(
    options: &BurstOptions,
    input: impl BufRead + Send + 'static,
    mut output: impl Write,
    stop: &Stop,
) -> Result<(), LabError> {
    let mut burster = Burster::open(&options.order(), stop)?;
    let mut say = |value: Value| writeln!(output, "{value}").and_then(|()| output.flush()).map_err(LabError::here);
    let (version, method) = (env!("CARGO_PKG_VERSION"), burster.method());
    say(json!({"ready": true, "peer": "Thalweg", "version": version, "profile": method}))?;
    let lines = lines(input);
    while !stop.is_requested() {
        let line = match lines.recv_timeout(LOOK_PERIOD) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        let request = serde_json::from_str::<BurstRequest>(&line);
        let made = request.map_err(|error| format!("{line}: {error}"));
        say(match made.and_then(|request| burster.runs(&request).map_err(|error| error.to_string())) {
            Ok(runs) => json!({ "runs_ms": runs }),
            Err(error) => json!({ "error": error }),
        })?;
    }
    Err(LabError::Interrupted)
}

/// The reading end: checks every sample and answers the last of each run until `input` ends or `stop` is requested.
///
/// # Errors
/// A sample is not the one that was due.
pub fn echo_bursts(options: &BurstOptions, input: impl BufRead + Send + 'static, stop: &Stop) -> Result<(), LabError> {
    let lines = lines(input);
    let ended = || matches!(lines.try_recv(), Err(TryRecvError::Disconnected));
    pair::echo(&options.order(), &|| stop.is_requested() || ended())
}

/// The lines of `input`, read in a thread so that nobody waits for them for long; blank ones are left out.
fn lines(input: impl BufRead + Send + 'static) -> Receiver<String> {
    let (sender, lines) = sync_channel(LINES_MAX);
    std::thread::spawn(move || {
        for line in input.lines().map_while(Result::ok).filter(|line| !line.trim().is_empty()) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Requests that may wait; who asks more waits as well.
const LINES_MAX: usize = 64;
const LOOK_PERIOD: Duration = Duration::from_millis(50);
