//! Starting the processes of a run: our own program, or a peer's.

use std::net::Ipv4Addr;
use std::path::Path;

use serde::Serialize;
use thalweg_lab_station::{Order, PeerSetup, Qos, TimetablePace};

use super::controller::RunContext;
use super::places::{Share, topic_endpoints};
use super::run_process::RunProcess;
use super::site::Site;
use super::timetable::timetable;
use crate::agent::{Place, RemoteWorker, WorkerOrder};
use crate::error::LabError;
use crate::peers::{CellMiddleware, PeerProgram};
use crate::scenario::{Build, Cell};
use crate::station::{Sending, Setup, StationNetwork, Wait, serialized_bytes};

/// Settings common to all processes of a run.
pub(super) struct Processes<'a> {
    context: RunContext<'a>,
    cell: &'a Cell,
    folder: &'a Path,
    kind: Kind,
}

enum Kind {
    Ours(Setup),
    Peer {
        peer: PeerProgram,
        setup: PeerSetup,
        /// The address of each host.
        addresses: Vec<Ipv4Addr>,
    },
}

impl<'a> Processes<'a> {
    /// Decides how the processes of `cell` are started at `site`.
    pub(super) fn new(
        context: RunContext<'a>,
        cell: &'a Cell,
        folder: &'a Path,
        site: &Site<'_>,
    ) -> Result<Processes<'a>, LabError> {
        let (wait, trace) = (context.scenario.process.wait, context.scenario.trace);
        let kind = match cell.middleware {
            CellMiddleware::Thalweg => {
                let receive_buffer_bytes = context.scenario.process.receive_buffer_bytes;
                let network = StationNetwork { receive_buffer_bytes, ..StationNetwork::apart(0) };
                let sending = Sending { destination: cell.destination, ..Sending::default() };
                Kind::Ours(Setup { load: Some(cell.load), sending, wait, trace, ..Setup::within(network) })
            }
            CellMiddleware::Peer(peer, profile) => {
                let (topic_writers, topic_readers) = topic_endpoints(cell);
                let addresses = site.addresses()?;
                let host = |publisher| context.scenario.hosts.as_ref().map_or(0, |plan| plan.of_publisher(publisher));
                let publishers =
                    (0..cell.publishers).map(|index| address_of(&addresses, host(index))).collect::<Result<_, _>>()?;
                let setup = PeerSetup {
                    domain: PEER_DOMAIN_FIRST + std::process::id() % PEER_DOMAINS,
                    address: Ipv4Addr::LOCALHOST,
                    publishers,
                    profile,
                    // Hardly any of them can poll.
                    wait: if wait == Wait::Busy { Wait::Listener } else { wait },
                    sample_bytes: serialized_bytes(cell.load)?,
                    topic_writers,
                    topic_readers,
                };
                Kind::Peer { peer, setup, addresses }
            }
        };
        Ok(Processes { context, cell, folder, kind })
    }

    /// Starts process `number`, which holds `share`, at its place on the host `host`.
    pub(super) fn start(
        &self,
        (host, place): (u32, &Place),
        number: u32,
        share: &Share,
    ) -> Result<RunProcess, LabError> {
        let order = match &self.kind {
            Kind::Ours(setup) => WorkerOrder::Thalweg(self.order(setup.clone(), share)),
            Kind::Peer { peer, setup, addresses } => {
                let setup = PeerSetup { address: address_of(addresses, host)?, ..setup.clone() };
                WorkerOrder::Peer(*peer, self.order(setup, share))
            }
        };
        match place {
            Place::Here(launcher) => {
                let other = self.context.scenario.against.as_deref().filter(|_| self.cell.build == Build::Other);
                let launcher = other.map_or_else(|| launcher.clone(), |program| launcher.of_other_build(program));
                order.start(&launcher, &share.name).map(RunProcess::Here)
            }
            Place::There(connection) => {
                RemoteWorker::start(connection, number, &share.name, order).map(RunProcess::There)
            }
        }
    }

    fn order<S: Serialize>(&self, setup: S, share: &Share) -> Order<S> {
        let scenario = self.context.scenario;
        let schedule = &scenario.schedule;
        Order {
            setup,
            qos: Qos { reliability: self.cell.reliability.unwrap_or(scenario.qos.reliability), ..scenario.qos },
            timetable: timetable(self.cell, schedule),
            pace: TimetablePace {
                behind_max: schedule.behind_max,
                wake: schedule.wake,
                drain: schedule.drain,
                matching: schedule.matching,
            },
            publishers: share.publishers.clone(),
            subscribers: share.subscribers.clone(),
            folder: self.folder.to_path_buf(),
        }
    }
}

fn address_of(addresses: &[Ipv4Addr], host: u32) -> Result<Ipv4Addr, LabError> {
    let address = addresses.get(host as usize).copied();
    address.ok_or_else(|| LabError::Here(format!("the scenario has no host {host}")))
}

/// Below the domains whose ports systems hand out, above those that people use first; runs at the same time keep apart.
const PEER_DOMAIN_FIRST: u32 = 20;
const PEER_DOMAINS: u32 = 80;
