//! A switch in a process of its own, which delays, loses, duplicates and reorders frames, and counts them.
//!
//! The links' rate holds from the beginning. The impairment begins with the schedule of a run, so that endpoints find each other
//! whatever it is; so do the counters.

mod bundle;
mod direction;
mod frames;
mod line;
mod switch;

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::host::{Layers, request_exact_timers};
use crate::process::{Launcher, ParentPipe, Stop, Supervised, WorkerMessage};
use crate::scenario::Impairment;
use crate::worker::Order;
use switch::RelaySwitch;

/// The first message to the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RelayOrder {
    /// The interface towards each host.
    pub(crate) ports: Vec<String>,
    pub(crate) impairment: Impairment,
    pub(crate) rate_mbit: Option<f64>,
    pub(crate) queue: Duration,
    /// Seed of all its decisions.
    pub(crate) chance: u64,
    /// Whose packets count apart.
    pub(crate) stream: Option<RelayedStream>,
}

/// A stream of RTP. The farewell of its sender is delayed and never lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RelayedStream {
    /// The port of UDP that its datagrams go to.
    pub(crate) port: u16,
    /// The payload type of its packets. Repetitions have another one.
    pub(crate) payload_type: u8,
}

/// Later messages to it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum RelayCommand {
    /// Impair and count from now on.
    Begin,
    /// Tell the counters.
    Count,
}

/// The process, as its controller sees it; ended when dropped.
#[derive(Debug)]
pub(crate) struct Relay {
    worker: Supervised,
}

impl Relay {
    /// Starts it with `launcher` and waits until it forwards.
    pub(super) fn start(launcher: &Launcher, order: RelayOrder) -> Result<Relay, LabError> {
        let mut relay = Relay { worker: Supervised::start(launcher, "relay", &Order::Relay(order))? };
        relay.hear()?;
        Ok(relay)
    }

    /// Lets the impairment begin.
    pub(crate) fn begin(&mut self) -> Result<(), LabError> {
        self.worker.send(&RelayCommand::Begin)?;
        self.hear().map(drop)
    }

    /// Its counters since the beginning: `relay.hostA-hostB.dropped` and so on; `stream_seen`, `stream_dropped` and `stream_gaps` (lost
    /// between two that passed) count packets of the stream alone.
    pub(crate) fn counters(&mut self) -> Result<Layers, LabError> {
        self.worker.send(&RelayCommand::Count)?;
        self.hear()
    }

    /// Whether it still forwards.
    pub(crate) fn check_alive(&mut self) -> Result<(), LabError> {
        self.worker.check_alive()
    }

    fn hear(&mut self) -> Result<Layers, LabError> {
        match self.worker.hear(PATIENCE, &Stop::default())? {
            WorkerMessage::Progress(counters) => serde_json::from_value(counters).map_err(LabError::here),
            other => Err(LabError::Here(format!("the relay said {other:?}"))),
        }
    }
}

/// Forwards frames until the controller closes the process's input; answers each command with the counters.
pub(crate) fn work(order: &RelayOrder, link: &ParentPipe) -> Result<(), LabError> {
    request_exact_timers();
    let mut switch = RelaySwitch::open(order)?;
    link.progress(&switch.counters()?)?;
    let (told, commands) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // The loop ends with the last command's sender; an error of the link is the end of the controller as well.
            let told = told;
            while let Ok(Some(command)) = link.next::<RelayCommand>() {
                if told.send(command).is_err() {
                    return;
                }
            }
        });
        let outcome = forward(&mut switch, &commands, link);
        // Whatever ended it ends the wait for commands.
        link.stop().request();
        outcome
    })
}

fn forward(switch: &mut RelaySwitch, commands: &Receiver<RelayCommand>, link: &ParentPipe) -> Result<(), LabError> {
    loop {
        match commands.try_recv() {
            Ok(RelayCommand::Begin) => {
                switch.begin()?;
                link.progress(&switch.counters()?)?;
            }
            Ok(RelayCommand::Count) => link.progress(&switch.counters()?)?,
            Err(TryRecvError::Empty) => switch.turn()?,
            Err(TryRecvError::Disconnected) => return Ok(()),
        }
    }
}

/// It answers at once unless the machine stands still.
const PATIENCE: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests;
