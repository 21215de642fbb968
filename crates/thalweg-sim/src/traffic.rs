//! The way of datagrams: out of a participant, through the network, into a receive buffer, into a participant.

use std::net::SocketAddr;

use thalweg_rtps::payload::Payload;
use thalweg_rtps::rng::Rng;
use thalweg_rtps::time::Instant;

use crate::dissect::{continues_sample, is_well_formed};
use crate::inbox::DatagramInTransit;
use crate::intruder::INTRUDER_PORT;
use crate::network::{Fate, PACKET_BYTES};
use crate::simulation::{CALMING_DOWN, Happening, Simulation};
use crate::toll::{Blame, charge};
use crate::trace::{Missed, Step};

/// Datagrams that one input may cause; more means that the participant does not stop sending.
const OUTPUT_ROUNDS_MAX: u32 = 10_000;

impl Simulation {
    pub(crate) fn arrive(&mut self, process: usize, datagram: DatagramInTransit) {
        if self.processes[process].participant.is_none() {
            return;
        }
        if self.is_refused_repetition(process, &datagram.bytes) {
            let missed = Step::Missed { why: Missed::Repetition, bytes: datagram.bytes.len() };
            return self.trace.record(self.now, process, missed);
        }
        match self.processes[process].inbox.put(self.now, datagram) {
            Ok(Some(due)) => self.queue.plan(due, Happening::Receive(process)),
            Ok(None) => {}
            Err(datagram) => {
                charge(&mut self.tolls, &datagram.bytes, Blame::Network);
                let missed = Step::Missed { why: Missed::BufferFull, bytes: datagram.bytes.len() };
                self.trace.record(self.now, process, missed);
            }
        }
    }

    pub(crate) fn receive(&mut self, number: usize) {
        let process = &mut self.processes[number];
        let Some((datagram, next)) = process.inbox.take(self.now) else { return };
        let now = process.local(self.now);
        let Some(participant) = process.participant.as_mut() else { return };
        participant.handle_datagram(now, &datagram.bytes, datagram.source);
        process.record.received += 1;
        if datagram.source.port() == INTRUDER_PORT {
            self.intruded_at = Some(self.now);
        }
        if let Some(next) = next {
            self.queue.plan(next, Happening::Receive(number));
        }
        let step = Step::Received { from: datagram.source, bytes: datagram.bytes.len() };
        self.trace.record(self.now, number, step);
        self.drive(number);
    }

    /// Takes everything out of a participant that an input has put in: datagrams, events, the next timeout.
    pub(crate) fn drive(&mut self, number: usize) {
        let now = self.processes[number].local(self.now);
        for round in 0.. {
            let Some(participant) = self.processes[number].participant.as_mut() else { return };
            self.outbox.clear();
            let more = participant.poll_transmit(now, &mut self.outbox);
            self.send(number);
            if !more {
                break;
            }
            if round == OUTPUT_ROUNDS_MAX {
                self.breach(format!("p{number} does not stop sending"));
                break;
            }
        }
        while let Some(event) = self.processes[number].participant.as_mut().and_then(|one| one.poll_event()) {
            self.handle_event(number, event);
        }
        self.check_acknowledged(number);
        self.check_stored(number);
        let at = self.processes[number].next_timeout(self.now);
        if at != self.processes[number].timer_at {
            self.processes[number].timer_at = at;
            self.queue.plan(at, Happening::Timeout(number));
        }
    }

    /// Hands the datagrams of the outbox to the network.
    pub(crate) fn send(&mut self, number: usize) {
        self.outbox.finish();
        let (host, source) = (self.processes[number].host, self.processes[number].source);
        let disturbed_at = self.intruded_at.unwrap_or(Instant::ZERO);
        for index in 0..self.outbox.len() {
            let Some(datagram) = self.outbox.datagram(index) else { break };
            let bytes = Payload::from(datagram.to_vec());
            let well_formed = is_well_formed(&bytes);
            for place in 0..datagram.destinations().len() {
                let Some(datagram) = self.outbox.datagram(index) else { break };
                let Some(to) = datagram.destinations()[place].socket_address() else { continue };
                self.fates.clear();
                self.network.send(self.now, host, to, bytes.len(), &mut self.fates);
                self.trace.record(self.now, number, Step::Sent { to, bytes: bytes.clone() });
                self.processes[number].record.sent += 1;
                let quiet = self.settled_at.is_some_and(|at| self.now > at.max(disturbed_at) + CALMING_DOWN);
                self.processes[number].record.sent_when_quiet += u64::from(quiet);
                self.overhear(to, &bytes);
                self.follow(Some(host), source, to, &bytes);
                // The fragments of one sample have one size: readers that come in its midst cannot have smaller ones.
                if bytes.len() > PACKET_BYTES && self.leaves_host(host) && !continues_sample(&bytes) {
                    self.breach(format!("p{number} sent {} bytes to {to}: more than a packet", bytes.len()));
                }
            }
            if !well_formed {
                self.breach(format!("p{number} sent a malformed datagram: {:02x?}", &bytes[..]));
            }
        }
    }

    pub(crate) fn leaves_host(&self, host: usize) -> bool {
        self.fates.iter().any(|fate| match fate {
            Fate::Arrives { process, .. }
            | Fate::Dropped { process }
            | Fate::TooLarge { process }
            | Fate::Lost { process }
            | Fate::Separated { process } => self.processes[*process].host != host,
            Fate::Enters { .. } => true,
        })
    }

    /// A datagram reaches the lane into a host.
    pub(crate) fn enter(&mut self, host: usize, to: SocketAddr, datagram: &DatagramInTransit) {
        self.fates.clear();
        self.network.enter(self.now, host, to, datagram.bytes.len(), &mut self.fates);
        self.follow(None, datagram.source, to, &datagram.bytes);
    }

    /// Plans the arrivals of a datagram that has just left `from_host`, or that is at the end of its way.
    pub(crate) fn follow(&mut self, from_host: Option<usize>, source: SocketAddr, to: SocketAddr, bytes: &Payload) {
        let damage = from_host.map_or(0.0, |_| self.plan.weather.corruption);
        for fate in &self.fates {
            match fate {
                Fate::Dropped { .. } => charge(&mut self.tolls, bytes, Blame::Queue),
                Fate::Lost { .. } | Fate::Separated { .. } | Fate::TooLarge { .. } => {
                    charge(&mut self.tolls, bytes, Blame::Network);
                }
                Fate::Arrives { .. } | Fate::Enters { .. } => {}
            }
            let missed = |why| Step::Missed { why, bytes: bytes.len() };
            let datagram = || DatagramInTransit { source, bytes: bytes.clone() };
            match *fate {
                Fate::Arrives { process, at } => {
                    let mut datagram = datagram();
                    let from_elsewhere = from_host != Some(self.processes[process].host);
                    if damage > 0.0 && from_elsewhere && self.damage.chance(damage) {
                        datagram.bytes = damaged(&mut self.damage, bytes);
                    }
                    self.queue.plan(at, Happening::Arrive(process, datagram));
                }
                Fate::Enters { host, at } => {
                    self.queue.plan(at, Happening::Enter { host, to, datagram: datagram() });
                }
                Fate::TooLarge { process } => {
                    self.trace.record(self.now, process, missed(Missed::TooLarge));
                    if let Some(host) = from_host {
                        let told = self.now + self.plan.weather.latency * 2;
                        self.queue.plan(told, Happening::TellPath(host));
                    }
                }
                Fate::Dropped { process } => self.trace.record(self.now, process, missed(Missed::QueueFull)),
                Fate::Lost { process } => self.trace.record(self.now, process, missed(Missed::Lost)),
                Fate::Separated { process } => self.trace.record(self.now, process, missed(Missed::Separated)),
            }
        }
    }
}

/// The same with one to three bits flipped.
fn damaged(rng: &mut Rng, bytes: &[u8]) -> Payload {
    let mut damaged = bytes.to_vec();
    for _ in 0..=rng.below(3) {
        let bit = rng.below(bytes.len().max(1) as u64 * 8) as usize;
        if let Some(byte) = damaged.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }
    Payload::from(damaged)
}
