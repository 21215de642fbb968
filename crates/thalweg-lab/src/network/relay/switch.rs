//! The switch itself: frames in, fates, frames out.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;
use std::rc::Rc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thalweg_transport::frames::{FramePort, FrameSent};

use super::bundle::{Bundle, Piece};
use super::direction::{Counts, Direction};
use super::frames::{Datagram, Stations, is_farewell, is_of_address_resolution, is_of_stream, user_data};
use super::line::Line;
use super::{RelayOrder, RelayedStream};
use crate::error::LabError;
use crate::host::{Layers, monotonic_nanos};
use crate::scenario::Impairment;
use thalweg_base::rng::Rng;

/// A host's port.
struct Port {
    socket: FramePort,
    /// From the host.
    uplink: Line,
    /// Towards it.
    downlink: Line,
    /// Frames that came while this process did not keep up; packets that the kernel has not cut count as one.
    missed: u64,
    /// Frames that found the uplink's queue full.
    overflowed: u64,
}

/// A packet on its way.
struct Journey {
    at_ns: u64,
    /// Keeps frames of the same time in order.
    serial: u64,
    stage: Stage,
    from: usize,
    to: usize,
    piece: Piece,
}

impl Journey {
    fn order(&self) -> (u64, u64) {
        (self.at_ns, self.serial)
    }
}

impl PartialEq for Journey {
    fn eq(&self, other: &Journey) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Journey {}

impl PartialOrd for Journey {
    fn partial_cmp(&self, other: &Journey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Journey {
    fn cmp(&self, other: &Journey) -> Ordering {
        self.order().cmp(&other.order())
    }
}

/// The next step of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It comes to the line towards its host.
    Arrive,
    /// It has passed that line.
    Leave,
}

/// All ports and everything between them.
pub(super) struct RelaySwitch {
    ports: Vec<Port>,
    stations: Stations,
    /// By the host that they come from, then by the one that they go to.
    directions: Vec<Vec<Direction<Piece>>>,
    journeys: BinaryHeap<Reverse<Journey>>,
    serial: u64,
    impairment: Impairment,
    chance: u64,
    /// The stream whose packets count apart.
    stream: Option<RelayedStream>,
    buffer: Vec<u8>,
    passed: Vec<(u64, Piece)>,
    /// Headers of what leaves.
    headers: Vec<u8>,
}

impl RelaySwitch {
    /// Opens the ports; nothing is impaired yet.
    pub(super) fn open(order: &RelayOrder) -> Result<RelaySwitch, LabError> {
        let open = |name: &String| {
            let failed =
                |error: io::Error| LabError::Here(format!("the relay cannot open the interface {name}: {error}"));
            let line = Line::new(order.rate_mbit, order.queue);
            let socket = FramePort::open(name).map_err(failed)?;
            Ok(Port { socket, uplink: line, downlink: line, missed: 0, overflowed: 0 })
        };
        let ports = order.ports.iter().map(open).collect::<Result<Vec<_>, LabError>>()?;
        Ok(RelaySwitch {
            directions: directions(ports.len(), &Impairment::default(), 0),
            ports,
            stations: Stations::default(),
            journeys: BinaryHeap::new(),
            serial: 0,
            impairment: order.impairment.clone(),
            chance: order.chance,
            stream: order.stream,
            buffer: vec![0; FRAME_BYTES_MAX],
            passed: Vec::new(),
            headers: Vec::new(),
        })
    }

    /// Impairs and counts from now on.
    pub(super) fn begin(&mut self) -> Result<(), LabError> {
        self.directions = directions(self.ports.len(), &self.impairment, self.chance);
        for port in &mut self.ports {
            port.socket.take_missed().map_err(LabError::here)?;
            (port.missed, port.overflowed) = (0, 0);
        }
        Ok(())
    }

    /// Counters since the beginning, by host and by direction.
    pub(super) fn counters(&mut self) -> Result<Layers, LabError> {
        let mut out = Vec::new();
        for (index, port) in self.ports.iter_mut().enumerate() {
            port.missed += port.socket.take_missed().map_err(LabError::here)?;
            out.push((format!("relay.host{index}.missed"), port.missed));
            out.push((format!("relay.host{index}.overflowed"), port.overflowed));
        }
        for (from, row) in self.directions.iter().enumerate() {
            for (to, direction) in row.iter().enumerate().filter(|(to, _)| *to != from) {
                let named = |(name, value)| (format!("relay.host{from}-host{to}.{name}"), value);
                out.extend(named_counts(&direction.counts).map(named));
            }
        }
        Ok(out.into_iter().filter(|(_, value)| *value > 0).collect())
    }

    /// Takes arrived frames and sends due ones; sleeps without either, for a short time at most.
    pub(super) fn turn(&mut self) -> Result<(), LabError> {
        let mut found = false;
        for index in 0..self.ports.len() {
            found |= self.receive(index)?;
        }
        let now_ns = monotonic_nanos();
        self.time_out(now_ns);
        self.send_due(now_ns)?;
        if found { Ok(()) } else { self.wait() }
    }

    /// Takes some packets of a port; whether there were any.
    fn receive(&mut self, from: usize) -> Result<bool, LabError> {
        let mut taken = 0;
        while taken < PACKETS_AT_ONCE {
            let Some(bytes) = self.ports[from].socket.receive(&mut self.buffer).map_err(LabError::here)? else { break };
            let Some(bundle) = Bundle::new(&self.buffer[..bytes]) else { continue };
            let (bundle, now_ns) = (Rc::new(bundle), monotonic_nanos());
            let targets = self.stations.handle_frame(from, self.ports.len(), bundle.ethernet());
            for number in 0..bundle.packets() {
                self.handle_packet(now_ns, (from, targets.clone()), &Piece::packet(&bundle, number), bundle.ethernet());
            }
            taken += bundle.packets();
        }
        Ok(taken > 0)
    }

    /// Decides what becomes of a packet on its way between ports; `ethernet` is the frame that it came in.
    fn handle_packet(&mut self, now_ns: u64, (from, targets): (usize, Range<usize>), piece: &Piece, ethernet: &[u8]) {
        let Some(at_ns) = self.ports[from].uplink.handle_frame(now_ns, piece.frame_bytes()) else {
            self.ports[from].overflowed += 1;
            return;
        };
        let datagram = piece.datagram();
        let of_stream = |is: fn(Datagram<'_>, RelayedStream) -> bool| {
            self.stream.zip(datagram).is_some_and(|(stream, datagram)| is(datagram, stream))
        };
        let is_exempt = is_of_address_resolution(ethernet) || of_stream(is_farewell);
        let packets = u64::from(of_stream(is_of_stream));
        for to in targets.filter(|to| *to != from) {
            let data = |piece: &Piece| piece.datagram().map_or(0, user_data);
            let direction = &mut self.directions[from][to];
            if is_exempt {
                direction.handle_exempt(at_ns, piece.clone(), &mut self.passed);
            } else if direction.handle_frame(at_ns, piece.clone(), data, &mut self.passed) {
                direction.counts.stream.note_passed(packets);
            } else {
                direction.counts.stream.note_dropped(packets);
            }
            self.depart(from, to);
        }
    }

    /// Puts what passed a direction on its way.
    fn depart(&mut self, from: usize, to: usize) {
        let mut passed = std::mem::take(&mut self.passed);
        for (at_ns, piece) in passed.drain(..) {
            if self.journeys.len() >= JOURNEYS_MAX {
                self.directions[from][to].counts.refused += 1;
                continue;
            }
            self.push(Journey { at_ns, serial: 0, stage: Stage::Arrive, from, to, piece });
        }
        self.passed = passed;
    }

    fn push(&mut self, journey: Journey) {
        self.serial += 1;
        self.journeys.push(Reverse(Journey { serial: self.serial, ..journey }));
    }

    fn time_out(&mut self, now_ns: u64) {
        for from in 0..self.ports.len() {
            for to in 0..self.ports.len() {
                self.directions[from][to].handle_timeout(now_ns, &mut self.passed);
                self.depart(from, to);
            }
        }
    }

    /// Sends what is due. Packets that came together, and are due together, leave together.
    fn send_due(&mut self, now_ns: u64) -> Result<(), LabError> {
        let mut leaving: Vec<Option<Journey>> = self.ports.iter().map(|_| None).collect();
        while self.journeys.peek().is_some_and(|Reverse(next)| next.at_ns <= now_ns) {
            let Some(Reverse(mut journey)) = self.journeys.pop() else { break };
            if journey.stage == Stage::Arrive {
                match self.ports[journey.to].downlink.handle_frame(journey.at_ns, journey.piece.frame_bytes()) {
                    Some(at_ns) => self.push(Journey { at_ns, stage: Stage::Leave, ..journey }),
                    None => self.directions[journey.from][journey.to].counts.refused += 1,
                }
                continue;
            }
            let last = &mut leaving[journey.to];
            if let Some(before) = last {
                match before.piece.join(journey.piece) {
                    Ok(()) => continue,
                    Err(piece) => journey.piece = piece,
                }
            }
            last.replace(journey).map_or(Ok(()), |before| self.send(&before))?;
        }
        leaving.iter().flatten().try_for_each(|last| self.send(last))
    }

    fn send(&mut self, journey: &Journey) -> Result<(), LabError> {
        let (head, payload) = journey.piece.parts(&mut self.headers);
        let sent = self.ports[journey.to].socket.send(head, payload).map_err(LabError::here)?;
        let counts = &mut self.directions[journey.from][journey.to].counts;
        match sent {
            FrameSent::Taken => {
                counts.forwarded += journey.piece.packets();
                counts.messages += 1;
            }
            FrameSent::Refused => counts.refused += journey.piece.packets(),
        }
        Ok(())
    }

    /// Sleeps until a frame arrives or one is due.
    fn wait(&mut self) -> Result<(), LabError> {
        let held = self.directions.iter().flatten().filter_map(Direction::poll_timeout);
        let due = held.chain(self.journeys.peek().map(|Reverse(next)| next.at_ns)).min();
        let wait_ns = due.map_or(LOOK_NANOS, |due| due.saturating_sub(monotonic_nanos()).min(LOOK_NANOS));
        let mut ports: Vec<PollFd<'_>> =
            self.ports.iter().map(|port| PollFd::new(&port.socket, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: wait_ns as i64 };
        match poll(&mut ports, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(LabError::here(error)),
        }
    }
}

/// Each direction decides by a chance of its own.
fn directions(ports: usize, impairment: &Impairment, chance: u64) -> Vec<Vec<Direction<Piece>>> {
    let mut seeds = Rng::new(chance);
    let mut row = || (0..ports).map(|_| Direction::new(impairment.clone(), seeds.next_u64())).collect();
    (0..ports).map(|_| row()).collect()
}

fn named_counts(counts: &Counts) -> [(&'static str, u64); 11] {
    [
        ("seen", counts.seen),
        ("dropped", counts.dropped),
        ("dropped_data", counts.dropped_data),
        ("duplicated", counts.duplicated),
        ("reordered", counts.reordered),
        ("forwarded", counts.forwarded),
        ("messages", counts.messages),
        ("refused", counts.refused),
        ("stream_seen", counts.stream.seen),
        ("stream_dropped", counts.stream.dropped),
        ("stream_gaps", counts.stream.gaps),
    ]
}

/// A frame of 9,000 bytes with its headers, and segments in one buffer where the kernel did not split them.
const FRAME_BYTES_MAX: usize = 70_000;
/// So that no port waits for another that is never silent.
const PACKETS_AT_ONCE: usize = 64;
/// Packets on their way at a time: 100 MB of the usual size.
const JOURNEYS_MAX: usize = 1 << 16;
/// Interval at which a sleeping relay checks its commands.
const LOOK_NANOS: u64 = 10_000_000;
