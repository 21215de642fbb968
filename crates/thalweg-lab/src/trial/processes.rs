//! Starting the processes of a run: our own program, or a peer's.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use thalweg_lab_station::{
    ClosedLoop, Onward, Order, PeerDestination, PeerProfile, PeerSetup, PublisherPlace, Qos, SubscriberPlace,
    TimetablePace,
};

use super::controller::RunContext;
use super::places::{Share, flow_folder, topic_endpoints};
use super::site::host_of_publisher;
use super::timetable::timetable;
use crate::agent::WorkerOrder;
use crate::error::LabError;
use crate::peers::{CellMiddleware, PeerProgram};
use crate::process::Supervised;
use crate::scenario::{Build, Cell};
use crate::station::{Addressing, PackingMethod, Sending, Setup, StationNetwork, Wait, serialized_bytes};

/// Settings common to all processes of a run.
pub(super) struct Processes<'a> {
    context: RunContext<'a>,
    /// All flows of the run.
    cells: &'a [Cell],
    folder: &'a Path,
    setups: Setups,
    /// The address of each host.
    addresses: Vec<Ipv4Addr>,
}

/// Settings of the middleware for each flow.
enum Setups {
    Ours(Vec<Setup>),
    Peer(PeerProgram, Vec<PeerSetup>),
}

impl<'a> Processes<'a> {
    /// Decides how the processes of `cells`, all flows of a run, are started.
    pub(super) fn new(context: RunContext<'a>, cells: &'a [Cell], folder: &'a Path) -> Result<Processes<'a>, LabError> {
        let addresses = context.ground.addresses()?;
        let setups = match cells.first().map(|cell| cell.middleware) {
            Some(CellMiddleware::Peer(peer, profile)) => {
                let plan = context.scenario.hosts.as_ref();
                let setup = |(flow, cell): (usize, &Cell)| {
                    let hosts = (0..cell.publishers).map(|index| host_of_publisher(plan, cells, cell, index));
                    let publishers = hosts.map(|host| address_of(&addresses, host)).collect::<Result<_, _>>()?;
                    let setup = peers(context, cell, (profile, publishers))?;
                    // Its ports follow from the domain and the publisher's number, which flows have in common.
                    let apart = if peer == PeerProgram::Zenoh { flow as u32 } else { 0 };
                    Ok(PeerSetup { domain: setup.domain + apart, ..setup })
                };
                Setups::Peer(peer, cells.iter().enumerate().map(setup).collect::<Result<_, LabError>>()?)
            }
            Some(CellMiddleware::Thalweg) | None => {
                let receive_buffer_bytes = context.scenario.process.receive_buffer_bytes;
                let network = StationNetwork { receive_buffer_bytes, ..StationNetwork::apart(0) };
                Setups::Ours(cells.iter().map(|cell| ours(context, cell, network.clone())).collect())
            }
        };
        Ok(Processes { context, cells, folder, setups, addresses })
    }

    /// Starts the process that holds `share` on the host `host`.
    pub(super) fn start(&self, host: u32, share: &Share) -> Result<Supervised, LabError> {
        let order = match &self.setups {
            Setups::Ours(setups) => WorkerOrder::Thalweg(self.order(share, setups)),
            Setups::Peer(peer, setups) => {
                let address = address_of(&self.addresses, host)?;
                let setups: Vec<PeerSetup> =
                    setups.iter().map(|setup| PeerSetup { address, ..setup.clone() }).collect();
                WorkerOrder::Peer(*peer, self.order(share, &setups))
            }
        };
        let place = self.context.ground.places().get(host as usize).ok_or_else(|| no_host(host))?;
        let is_other = self.cells[share.flow].build == Build::Other;
        let build = self.context.scenario.against.as_deref().filter(|_| is_other);
        place.start(&share.name, order, (self.folder, build))
    }

    fn order<S: Clone>(&self, share: &Share, setups: &[S]) -> Order<S> {
        let endpoints = (share.publishers.clone(), share.subscribers.clone());
        let onward = share.onward.as_ref().map(|(flow, place)| {
            let order = self.order_of(*flow, setups[*flow].clone(), (vec![place.clone()], Vec::new()));
            let stage = self.cells[*flow].flow.as_ref().and_then(|flow| flow.after.as_ref());
            Box::new(Onward { order, work: stage.map_or(Duration::ZERO, |stage| stage.work) })
        });
        Order { onward, ..self.order_of(share.flow, setups[share.flow].clone(), endpoints) }
    }

    /// The order of endpoints of a flow.
    fn order_of<S>(
        &self,
        flow: usize,
        setup: S,
        (publishers, subscribers): (Vec<PublisherPlace>, Vec<SubscriberPlace>),
    ) -> Order<S> {
        let cell = &self.cells[flow];
        let scenario = self.context.scenario;
        let schedule = &scenario.schedule;
        let history = cell.flow.as_ref().and_then(|flow| flow.history).unwrap_or(scenario.qos.history);
        let reliability = cell.reliability.unwrap_or(scenario.qos.reliability);
        Order {
            setup,
            qos: Qos { reliability, history, ..scenario.qos },
            timetable: timetable(cell, schedule),
            pace: TimetablePace {
                behind_max: schedule.behind_max,
                wake: schedule.wake,
                drain: schedule.drain,
                matching: schedule.matching,
            },
            closed_loop: cell
                .latency_count
                .map(|count| ClosedLoop { latency_count: u64::from(count), subscribers: cell.subscribers }),
            publishers,
            subscribers,
            folder: flow_folder(Path::new(""), cell),
            onward: None,
        }
    }
}

fn ours(context: RunContext<'_>, cell: &Cell, network: StationNetwork) -> Setup {
    let flow = cell.flow.as_ref();
    let flow_controller = flow.and_then(|flow| flow.flow_controller.clone());
    let method = flow_controller
        .as_ref()
        .map_or(PackingMethod::Auto, |bucket| PackingMethod::Asynchronous { flow_controller: bucket.name.clone() });
    let priority = flow.map_or(0, |flow| flow.transport_priority);
    let sending = Sending { method, destination: cell.destination, priority, ..Sending::default() };
    let (wait, trace) = (context.scenario.process.wait, context.scenario.trace);
    Setup { load: Some(cell.load), sending, flow_controller, wait, trace, ..Setup::within(network) }
}

fn peers(
    context: RunContext<'_>,
    cell: &Cell,
    (profile, publishers): (PeerProfile, Vec<Ipv4Addr>),
) -> Result<PeerSetup, LabError> {
    let (topic_writers, topic_readers) = topic_endpoints(cell);
    let wait = context.scenario.process.wait;
    Ok(PeerSetup {
        domain: PEER_DOMAIN_FIRST + std::process::id() % PEER_DOMAINS,
        address: Ipv4Addr::LOCALHOST,
        publishers,
        profile,
        // Hardly any of them can poll.
        wait: if wait == Wait::Busy { Wait::Listener } else { wait },
        sample_bytes: serialized_bytes(cell.load)?,
        destination: match cell.destination {
            Addressing::Auto => None,
            Addressing::Unicast => Some(PeerDestination::Unicast),
            Addressing::Multicast => Some(PeerDestination::Multicast),
        },
        topic_writers,
        topic_readers,
    })
}

fn address_of(addresses: &[Ipv4Addr], host: u32) -> Result<Ipv4Addr, LabError> {
    addresses.get(host as usize).copied().ok_or_else(|| no_host(host))
}

fn no_host(host: u32) -> LabError {
    LabError::Here(format!("the scenario has no host {host}"))
}

/// Below the domains whose ports systems hand out, above those that people use first; runs at the same time keep apart.
const PEER_DOMAIN_FIRST: u32 = 20;
const PEER_DOMAINS: u32 = 80;
