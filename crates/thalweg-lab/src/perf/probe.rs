//! The other end of a probe of plain UDP and TCP as a process of this host.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg_probe::{ProbeServer, ProbeServerOptions, Repeat};

use crate::error::LabError;
use crate::process::{Launcher, ParentPipe, Stop, Supervised};
use crate::worker::Order;

/// The order of such a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProbeEndOrder {
    bind: SocketAddr,
    cpu: Option<usize>,
}

/// A process that serves probes; dropping it ends it.
#[derive(Debug)]
pub struct ProbeEnd {
    process: Supervised,
    address: SocketAddr,
}

impl ProbeEnd {
    /// Starts it by `launcher`, on a logical CPU of its own where one is given; it serves at `bind`, whose port may be 0.
    ///
    /// # Errors
    /// The process cannot be started, the address cannot be bound, or `stop` was requested.
    pub fn start(launcher: &Launcher, bind: SocketAddr, cpu: Option<usize>, stop: &Stop) -> Result<ProbeEnd, LabError> {
        let order = Order::ProbeEnd(ProbeEndOrder { bind, cpu });
        let mut process = Supervised::start(launcher, "serving process", &order)?;
        let address = process.hear_word(START_PATIENCE, stop)?;
        Ok(ProbeEnd { process, address })
    }

    /// Where clients find it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it in peace.
    ///
    /// # Errors
    /// It failed or died before.
    pub fn finish(self) -> Result<(), LabError> {
        self.process.finish()
    }
}

/// Serves probes until the parent ends this process.
pub(crate) fn serve(order: &ProbeEndOrder, link: &ParentPipe) -> Result<(), LabError> {
    if let Some(cpu) = order.cpu {
        thalweg_host::pin_to_cpu(cpu).map_err(|error| LabError::Here(format!("CPU {cpu} cannot be used: {error}")))?;
    }
    let options = ProbeServerOptions { bind: order.bind, data_port: 0, repeat: Repeat::Always };
    let server = ProbeServer::bind(options).map_err(LabError::here)?;
    link.progress(&server.local_address().map_err(LabError::here)?)?;
    server.serve(link.stop(), |_| ()).map_err(LabError::here)
}

const START_PATIENCE: Duration = Duration::from_secs(10);
