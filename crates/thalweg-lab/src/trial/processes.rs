//! How the processes of a run are started: our own program, or a peer's.

use std::path::Path;

use serde::Serialize;
use thalweg_lab_station::{Order, Pace, PeerSetup, Qos, Wait as PeerWait};

use super::controller::RunContext;
use super::ours::Setup;
use super::places::{Share, topic_endpoints};
use super::timetable::timetable;
use crate::error::LabError;
use crate::peers::Middleware;
use crate::process::{Launcher, Supervised};
use crate::scenario::Cell;
use crate::station::{Network, Wait, serialized_bytes};
use crate::worker;

/// What all processes of a run have in common.
pub(super) struct Processes<'a> {
    context: RunContext<'a>,
    cell: &'a Cell,
    folder: &'a Path,
    kind: Kind,
}

enum Kind {
    Ours(Setup),
    Peer(Launcher, PeerSetup),
}

impl<'a> Processes<'a> {
    /// Decides how the processes of `cell` are started.
    pub(super) fn new(context: RunContext<'a>, cell: &'a Cell, folder: &'a Path) -> Result<Processes<'a>, LabError> {
        let (wait, trace) = (context.scenario.process.wait, context.scenario.trace);
        let kind = match cell.middleware {
            Middleware::Thalweg => {
                let receive_buffer_bytes = context.scenario.process.receive_buffer_bytes;
                let network = Network { receive_buffer_bytes, ..Network::apart(0) };
                Kind::Ours(Setup { network, load: cell.load, destination: cell.destination, wait, trace })
            }
            Middleware::Peer(peer, profile) => {
                let (topic_writers, topic_readers) = topic_endpoints(cell);
                let setup = PeerSetup {
                    domain: PEER_DOMAIN_FIRST + std::process::id() % PEER_DOMAINS,
                    interface: "lo".to_owned(),
                    profile,
                    wait: if wait == Wait::Block { PeerWait::Block } else { PeerWait::Listener },
                    sample_bytes: serialized_bytes(cell.load)?,
                    topic_writers,
                    topic_readers,
                };
                Kind::Peer(context.launcher.station_of(peer)?, setup)
            }
        };
        Ok(Processes { context, cell, folder, kind })
    }

    /// Starts the process that holds `share`; one of ours by `launcher`.
    pub(super) fn start(&self, launcher: &Launcher, share: &Share) -> Result<Supervised, LabError> {
        match &self.kind {
            Kind::Ours(setup) => {
                let order = worker::Order::Trial(self.order(setup.clone(), share));
                Supervised::start(launcher, &share.name, &order)
            }
            Kind::Peer(launcher, setup) => Supervised::start(launcher, &share.name, &self.order(setup.clone(), share)),
        }
    }

    fn order<S: Serialize>(&self, setup: S, share: &Share) -> Order<S> {
        let scenario = self.context.scenario;
        let schedule = &scenario.schedule;
        Order {
            setup,
            qos: Qos { reliability: self.cell.reliability.unwrap_or(scenario.qos.reliability), ..scenario.qos },
            timetable: timetable(self.cell, schedule),
            pace: Pace {
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

/// Below the domains whose ports systems hand out, above those that people use first; runs at the same time keep apart.
const PEER_DOMAIN_FIRST: u32 = 20;
const PEER_DOMAINS: u32 = 80;
