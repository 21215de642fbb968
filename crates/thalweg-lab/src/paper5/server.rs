//! The process of a CoAP server: started on a processor of its own, heard, and in every case ended.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

use thalweg_coap::scheduler::controller::ControlLaw;
use thalweg_host::CpuQuota;

use super::cell::Contender;
use super::observed::ServerLine;
use super::peer::Deduplication;
use crate::error::LabError;
use crate::process::{HeardLine, Launcher, Stop, Supervised};

/// A server that runs; dropping it ends the process and waits until it is gone.
pub(super) struct Server {
    process: Supervised,
    /// Can be given up only after the process.
    quota: Option<CpuQuota>,
    address: SocketAddr,
    lines: Vec<(u64, ServerLine)>,
}

impl Server {
    /// Starts a server on a free port of an address and waits until it serves. Ours says what it does every `statistics`.
    ///
    /// # Errors
    /// It cannot be started, ends, or does not serve in time; or `stop` was requested.
    pub(super) fn start(
        (contender, at): (Contender, IpAddr),
        launcher: &Launcher,
        statistics: Option<Duration>,
        cpus: &[usize],
        stop: &Stop,
    ) -> Result<Server, LabError> {
        let address = free_address(at).map_err(LabError::here)?;
        let command = command_of(contender, launcher, statistics, address)?;
        let mut process = Supervised::spawn(command, cpus, &format!("CoAP server ({contender})"))?;
        while !process.hear_line(START_PATIENCE, stop)?.text.starts_with("serving coap://") {}
        Ok(Server { process, quota: None, address, lines: Vec::new() })
    }

    /// Its address.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The system's number of the process.
    pub(super) fn id(&self) -> u32 {
        // It always has one, as a child of this process.
        self.process.id().unwrap_or_default()
    }

    /// Leaves it so many percent of one CPU's time from now on.
    ///
    /// # Errors
    /// The system does not limit it.
    pub(super) fn limit(&mut self, percent: u32) -> Result<(), LabError> {
        let quota = CpuQuota::new(percent).and_then(|quota| quota.add(self.id()).map(|()| quota));
        self.quota = Some(quota.map_err(LabError::here)?);
        Ok(())
    }

    /// Takes its output.
    ///
    /// # Errors
    /// It ended.
    pub(super) fn listen(&mut self) -> Result<(), LabError> {
        while let Some(line) = self.process.try_line() {
            self.keep(&line);
        }
        self.process.check_alive()
    }

    /// Keeps a line of statistics; what else a server prints is its own affair.
    fn keep(&mut self, line: &HeardLine) {
        self.lines.extend(serde_json::from_str(&line.text).ok().map(|said: ServerLine| (line.at_ns, said)));
    }

    /// Ends it in peace, or by force where it does not end, and returns what it said, with the times of the host's monotonic clock.
    pub(super) fn finish(mut self) -> Vec<(u64, ServerLine)> {
        self.process.close();
        while let Ok(line) = self.process.hear_line(LAST_PATIENCE, &Stop::default()) {
            self.keep(&line);
        }
        self.lines
    }
}

fn command_of(
    contender: Contender,
    launcher: &Launcher,
    statistics: Option<Duration>,
    address: SocketAddr,
) -> Result<Command, LabError> {
    let mut command = program_of(contender, launcher)?;
    match contender {
        Contender::Thalweg(law) => {
            command.args(["coap", "serve", "--end-with-input", "--law", &law.to_string()]);
            if matches!(law, ControlLaw::VtaPrinted | ControlLaw::VtaAuthors) {
                command.args(["--period", PAPER_PERIOD]);
            }
            if let Some(period) = statistics {
                command.args(["--json", "--statistics", &period.as_secs_f64().to_string()]);
            }
        }
        Contender::Peer(_, Deduplication::Off) => {
            command.arg("--no-deduplication");
        }
        Contender::Peer(_, Deduplication::Shipped) => {}
    }
    command.args(["--bind", &address.to_string()]);
    Ok(command)
}

fn program_of(contender: Contender, launcher: &Launcher) -> Result<Command, LabError> {
    match contender {
        Contender::Thalweg(_) => Ok(launcher.program_alone()),
        Contender::Peer(peer, _) => {
            let not_there = || LabError::NoPeer { peer: peer.to_string(), why: "its program is not there".to_owned() };
            peer.find(launcher.peer_folder()).map(Command::new).ok_or_else(not_there)
        }
    }
}

/// A free port at this address.
fn free_address(at: IpAddr) -> std::io::Result<SocketAddr> {
    UdpSocket::bind((at, 0))?.local_addr()
}

/// A virtual machine or an interpreter starts within a second on an idle processor.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// For what an ended process said last.
const LAST_PATIENCE: Duration = Duration::from_millis(20);
/// How often the paper's laws decide; ours do so at the server's default.
const PAPER_PERIOD: &str = "1s";
