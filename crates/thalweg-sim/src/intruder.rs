//! An intruder on a host of its own, which overhears the network and sends forged and repeated datagrams from its own address.

use std::net::SocketAddr;

use thalweg_rtps::payload::Payload;
use thalweg_rtps::rng::Rng;
use thalweg_rtps::types::{EntityId, GuidPrefix, SequenceNumber, VendorId};
use thalweg_rtps::wire::{AckNack, Gap, Heartbeat, Message, SequenceSet, Submessage, write};

use crate::simulation::{Happening, Simulation};
use crate::trace::Step;

/// Datagrams that he remembers.
const OVERHEARD_MAX: usize = 64;
/// Participants that he pretends to be.
pub(crate) const GHOSTS: u64 = 64;
/// Its address.
pub(crate) const INTRUDER_PORT: u16 = 7999;
/// A number that no writer of a world reaches.
const FAR: SequenceNumber = SequenceNumber(1 << 40);
/// The writer of participant announcements (RTPS 2.5 §9.3.1.5).
const ANNOUNCER: EntityId = EntityId([0, 1, 0, 0xc2]);

/// State of one intruder.
#[derive(Debug)]
pub(crate) struct Intruder {
    rng: Rng,
    overheard: Vec<(SocketAddr, Payload)>,
}

impl Intruder {
    pub(crate) fn new(seed: u64, number: usize) -> Intruder {
        Intruder { rng: Rng::new(seed ^ 0x6972_7564 ^ number as u64), overheard: Vec::new() }
    }

    fn overhear(&mut self, to: SocketAddr, bytes: &Payload) {
        if self.overheard.len() < OVERHEARD_MAX {
            self.overheard.push((to, bytes.clone()));
        } else {
            let place = self.rng.below(OVERHEARD_MAX as u64 * 4) as usize;
            if let Some(kept) = self.overheard.get_mut(place) {
                *kept = (to, bytes.clone());
            }
        }
    }

    /// The next datagram, and its destination.
    fn next(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        let place = self.rng.below(self.overheard.len().max(1) as u64) as usize;
        let (to, bytes) = self.overheard.get(place)?;
        let (to, bytes) = (*to, bytes.clone());
        let forged = match self.rng.below(3) {
            0 => None,
            _ => self.forge(&bytes),
        };
        Some((to, forged.unwrap_or_else(|| bytes.to_vec())))
    }

    /// A datagram in the name of the sender of `bytes`, with forged content.
    fn forge(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let message = Message::parse(bytes).ok()?;
        let prefix = bytes.get(8..20)?;
        let prefix = GuidPrefix(prefix.try_into().ok()?);
        let trick = self.rng.below(3);
        let mut forged = Vec::new();
        write::header(&mut forged, prefix);
        for submessage in message.submessages().flatten() {
            match submessage {
                Submessage::Data(data) if data.writer == ANNOUNCER => return Some(self.ghost(bytes, prefix)),
                Submessage::InfoDestination(to) => write::info_destination(&mut forged, to),
                Submessage::Data(data) => lie_about(&mut forged, data.writer, data.reader, trick),
                Submessage::DataFrag(data) => lie_about(&mut forged, data.writer, data.reader, trick),
                Submessage::Heartbeat(one) | Submessage::GroupHeartbeat(one, _) => {
                    lie_about(&mut forged, one.writer, one.reader, trick)
                }
                Submessage::AckNack(one) => {
                    let base = if trick == 0 { FAR } else { one.state.base() + 1_000 };
                    let count = one.count.wrapping_add(if trick == 2 { 1 << 30 } else { 1 });
                    let state = SequenceSet::new(base);
                    write::acknack(&mut forged, &AckNack { state, count, is_final: trick == 1, ..one });
                }
                _ => {}
            }
        }
        (forged.len() > 20).then_some(forged)
    }

    /// An announcement of a participant that does not exist.
    fn ghost(&mut self, bytes: &[u8], prefix: GuidPrefix) -> Vec<u8> {
        let mut ghost = [0x66; 12];
        ghost[..2].copy_from_slice(&VendorId::THALWEG.0);
        ghost[11] = self.rng.below(GHOSTS) as u8;
        let mut forged = bytes.to_vec();
        let mut place = 0;
        while place + 12 <= forged.len() {
            if forged[place..place + 12] == prefix.0 {
                forged[place..place + 12].copy_from_slice(&ghost);
            }
            place += 1;
        }
        forged
    }
}

/// A forged claim of a writer: that all samples are gone, or that no more will come.
fn lie_about(forged: &mut Vec<u8>, writer: EntityId, reader: EntityId, trick: u64) {
    match trick {
        0 => {
            let (start, list) = (SequenceNumber::FIRST, SequenceSet::new(FAR));
            write::gap(forged, &Gap { reader, writer, start, list });
        }
        1 => {
            let (first, last, count) = (FAR, FAR, 1 << 30);
            write::heartbeat(
                forged,
                &Heartbeat { reader, writer, first, last, count, is_final: false, liveliness: false },
            );
        }
        _ => {
            let (first, last, count) = (SequenceNumber::FIRST, SequenceNumber::FIRST, u32::MAX / 2);
            write::heartbeat(
                forged,
                &Heartbeat { reader, writer, first, last, count, is_final: true, liveliness: true },
            );
        }
    }
}

impl Simulation {
    pub(crate) fn overhear(&mut self, to: SocketAddr, bytes: &Payload) {
        self.intruders.iter_mut().for_each(|intruder| intruder.overhear(to, bytes));
    }

    pub(crate) fn intrude(&mut self, number: usize) {
        let plan = self.plan.intruders[number];
        if let Some((to, bytes)) = self.intruders[number].next()
            && !to.ip().is_loopback()
        {
            let source = SocketAddr::new(self.network.address_of(plan.host), INTRUDER_PORT);
            let bytes = Payload::from(bytes);
            self.fates.clear();
            self.network.send(self.now, plan.host, to, bytes.len(), &mut self.fates);
            self.trace.record(self.now, self.processes.len() + number, Step::Sent { to, bytes: bytes.clone() });
            self.follow(Some(plan.host), source, to, &bytes);
        }
        if self.now + plan.period < plan.until {
            self.queue.plan(self.now + plan.period, Happening::Intrude(number));
        }
    }
}
