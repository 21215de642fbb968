//! Messages between a controller and an agent.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use thalweg_lab_station::{Order, PeerSetup, WorkerMessage};

use super::probes::ClockSecret;
use crate::error::LabError;
use crate::host::Environment;
use crate::paper5::LoadOrder;
use crate::peers::PeerProgram;
use crate::process::{Launcher, Supervised};
use crate::trial::TrialOrder;
use crate::worker;

/// Requests of a controller to an agent. Questions are answered by [`Event::Answer`] in their order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Starts a worker with this order, whose folders lie within the agent's own. Not answered.
    Start { worker: u32, name: String, order: Box<WorkerOrder> },
    /// Asks for the checksum of the program of a peer, if there is one.
    Find { peer: PeerProgram },
    /// Hands a worker one more line. Not answered.
    Tell { worker: u32, line: serde_json::Value },
    /// Ends a worker in peace; [`Event::Ended`] follows.
    Finish { worker: u32 },
    /// Kills a worker. Not answered.
    Kill { worker: u32 },
    /// Kills all workers and empties the folder; answered when it is done.
    Clear,
    /// Asks for the counters of the layers below, [`Layers`](crate::host::Layers).
    Count,
    /// Lets questions to the clock be asked at this address in the place of any before; answered by their port.
    OpenClock { at: IpAddr, secret: ClockSecret },
    /// Begins to watch how quiet the host is. Not answered.
    Watch,
    /// Asks what happened since the last look, [`SecondConditions`](crate::host::SecondConditions).
    Look,
    /// Asks for the names of the files that workers wrote.
    Files,
    /// Asks for the text of one of them from an offset on; empty at its end.
    Read { file: String, offset: u64 },
    /// The controller lives.
    Alive,
}

/// The order of a worker; its folders lie within that of its run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkerOrder {
    /// The agent's own program.
    Thalweg(TrialOrder),
    /// The program of a peer, which has to be there.
    Peer(PeerProgram, Order<PeerSetup>),
    /// The clients of a CoAP server.
    CoapLoad(LoadOrder),
}

impl WorkerOrder {
    /// Starts a worker, called `name` in messages to the user, that writes into `folder`.
    ///
    /// # Errors
    /// The program of a peer is not there, or the process cannot be started.
    pub(crate) fn start(self, launcher: &Launcher, name: &str, folder: &Path) -> Result<Supervised, LabError> {
        match self {
            WorkerOrder::Thalweg(order) => {
                Supervised::start(launcher, name, &worker::Order::Trial(order.within(folder)))
            }
            WorkerOrder::Peer(peer, order) => {
                Supervised::start(&launcher.station_of(peer)?, name, &order.within(folder))
            }
            WorkerOrder::CoapLoad(order) => Supervised::start(launcher, name, &worker::Order::CoapLoad(order)),
        }
    }
}

/// Messages of an agent to a controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
    /// The agent works from now on; the first message.
    Ready {
        facts: Box<HostFacts>,
        /// The address at which `ssh` reached this machine.
        address: Option<IpAddr>,
    },
    /// A worker said something.
    Said { worker: u32, message: WorkerMessage },
    /// A worker ended: in peace, or died, went silent or was not started, and why.
    Ended { worker: u32, outcome: Result<(), String> },
    /// The answer to a question, or why there is none.
    Answer(Result<serde_json::Value, String>),
    /// The agent lives.
    Alive,
}

/// An agent's host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HostFacts {
    pub(crate) environment: Environment,
    /// Parts of that machine's environment that results depend on, by name.
    pub(crate) fingerprint: BTreeMap<String, String>,
}
