//! Limits of a peer: known before the run, refused with the reason.

use super::{CellMiddleware, PeerProgram};
use crate::scenario::{Cell, HostPlan, Process, ProcessModel, Qos, ReliabilitySetting, Topics};
use crate::station::Addressing;

/// Why a cell cannot be measured; `None` when it can.
pub(crate) fn refusal(cell: &Cell, qos: &Qos, process: &Process, hosts: Option<&HostPlan>) -> Option<String> {
    let CellMiddleware::Peer(peer, _) = cell.middleware else { return None };
    let reason = if hosts.is_some() && peer == PeerProgram::Iceoryx2 {
        "its data lie in memory that hosts do not share, and nothing would cross a link: leave `hosts` out".to_owned()
    } else if cell.destination != Addressing::Auto && !peer.is_told_destinations() {
        "nothing tells it where to send to: leave `destination` to \"auto\" in its cells, in a [[matrix]] of their own"
            .to_owned()
    } else if process.model != ProcessModel::PerEndpoint {
        "its processes hold one endpoint each: use model = \"per-endpoint\"".to_owned()
    } else if process.receive_buffer_bytes.is_some() {
        "it decides on its sockets' receive buffers itself: leave `receive_buffer_bytes` out, or measure Thalweg alone"
            .to_owned()
    } else {
        of_peer(peer, cell, cell.reliability.unwrap_or(qos.reliability))?
    };
    Some(format!("{} cannot measure {cell}: {reason}", cell.middleware))
}

fn of_peer(peer: PeerProgram, cell: &Cell, reliability: ReliabilitySetting) -> Option<String> {
    match peer {
        PeerProgram::Raw if reliability == ReliabilitySetting::Reliable => Some(
            "plain sockets send nothing again: it is the floor of best-effort, say reliability = \"best-effort\""
                .to_owned(),
        ),
        PeerProgram::Raw if cell.is_closed_loop() => {
            Some("its readers read from one writer, and all subscribers answer".to_owned())
        }
        PeerProgram::Raw if cell.flow.is_some() => {
            Some("plain sockets have ports for the topics of one flow: leave [[flow]] or raw out".to_owned())
        }
        PeerProgram::Raw if cell.topics == Topics::One && cell.publishers > 1 => {
            Some("its readers read from one writer each: use topics = \"per-pair\" or \"per-publisher\"".to_owned())
        }
        _ => None,
    }
}
