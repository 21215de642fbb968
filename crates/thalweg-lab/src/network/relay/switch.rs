//! The switch itself: frames in, fates, frames out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::rc::Rc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thalweg_transport::frames::{FramePort, FrameSent};

use super::direction::{Counts, Direction};
use super::frames::{Stations, is_farewell, is_of_address_resolution, stream_packets, user_data};
use super::line::Line;
use super::{RelayOrder, RelayedStream};
use crate::error::LabError;
use crate::host::{Layers, monotonic_nanos};
use crate::scenario::Impairment;
use thalweg_base::rng::Rng;

type Frame = Rc<[u8]>;

/// A host's port.
struct Port {
    socket: FramePort,
    /// From the host.
    uplink: Line,
    /// Towards it.
    downlink: Line,
    /// Frames that came while this process did not keep up.
    missed: u64,
    /// Frames that found the uplink's queue full.
    overflowed: u64,
}

/// A frame on its way.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Journey {
    at_ns: u64,
    /// Keeps frames of the same time in order.
    serial: u64,
    stage: Stage,
    from: usize,
    to: usize,
    frame: Frame,
}

/// The next step of a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    directions: Vec<Vec<Direction<Frame>>>,
    journeys: BinaryHeap<Reverse<Journey>>,
    serial: u64,
    impairment: Impairment,
    chance: u64,
    /// The stream whose packets count apart.
    stream: Option<RelayedStream>,
    buffer: Vec<u8>,
    passed: Vec<(u64, Frame)>,
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

    /// Takes some frames of a port; whether there were any.
    fn receive(&mut self, from: usize) -> Result<bool, LabError> {
        for taken in 0..FRAMES_AT_ONCE {
            let Some(bytes) = self.ports[from].socket.receive(&mut self.buffer).map_err(LabError::here)? else {
                return Ok(taken > 0);
            };
            self.handle_frame(from, bytes);
        }
        Ok(true)
    }

    fn handle_frame(&mut self, from: usize, bytes: usize) {
        let Some((prefix, ethernet)) = self.buffer[..bytes].split_at_checked(FramePort::PREFIX_BYTES) else { return };
        let Some(at_ns) = self.ports[from].uplink.handle_frame(monotonic_nanos(), ethernet.len()) else {
            self.ports[from].overflowed += 1;
            return;
        };
        let targets = self.stations.handle_frame(from, self.ports.len(), ethernet);
        let is_exempt =
            is_of_address_resolution(ethernet) || self.stream.is_some_and(|stream| is_farewell(ethernet, stream));
        let packets = self.stream.map_or(0, |stream| stream_packets(prefix, ethernet, stream));
        let frame: Frame = Rc::from(&self.buffer[..bytes]);
        for to in targets.filter(|to| *to != from) {
            let data = |frame: &Frame| frame.get(FramePort::PREFIX_BYTES..).map_or(0, user_data);
            let direction = &mut self.directions[from][to];
            if is_exempt {
                direction.handle_exempt(at_ns, Rc::clone(&frame), &mut self.passed);
            } else if direction.handle_frame(at_ns, Rc::clone(&frame), data, &mut self.passed) {
                direction.counts.stream.note_passed(packets);
            } else {
                direction.counts.stream.note_dropped(packets);
            }
            self.depart(from, to);
        }
    }

    /// Puts what passed a direction on its way.
    fn depart(&mut self, from: usize, to: usize) {
        for (at_ns, frame) in std::mem::take(&mut self.passed) {
            if self.journeys.len() >= JOURNEYS_MAX {
                self.directions[from][to].counts.refused += 1;
                continue;
            }
            self.push(Journey { at_ns, serial: 0, stage: Stage::Arrive, from, to, frame });
        }
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

    fn send_due(&mut self, now_ns: u64) -> Result<(), LabError> {
        while self.journeys.peek().is_some_and(|Reverse(next)| next.at_ns <= now_ns) {
            let Some(Reverse(journey)) = self.journeys.pop() else { break };
            let counts = &mut self.directions[journey.from][journey.to].counts;
            let port = &mut self.ports[journey.to];
            if journey.stage == Stage::Arrive {
                match port.downlink.handle_frame(journey.at_ns, journey.frame.len() - FramePort::PREFIX_BYTES) {
                    Some(at_ns) => self.push(Journey { at_ns, stage: Stage::Leave, ..journey }),
                    None => counts.refused += 1,
                }
                continue;
            }
            match port.socket.send(&journey.frame).map_err(LabError::here)? {
                FrameSent::Taken => counts.forwarded += 1,
                FrameSent::Refused => counts.refused += 1,
            }
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
fn directions(ports: usize, impairment: &Impairment, chance: u64) -> Vec<Vec<Direction<Frame>>> {
    let mut seeds = Rng::new(chance);
    let mut row = || (0..ports).map(|_| Direction::new(impairment.clone(), seeds.next_u64())).collect();
    (0..ports).map(|_| row()).collect()
}

fn named_counts(counts: &Counts) -> [(&'static str, u64); 10] {
    [
        ("seen", counts.seen),
        ("dropped", counts.dropped),
        ("dropped_data", counts.dropped_data),
        ("duplicated", counts.duplicated),
        ("reordered", counts.reordered),
        ("forwarded", counts.forwarded),
        ("refused", counts.refused),
        ("stream_seen", counts.stream.seen),
        ("stream_dropped", counts.stream.dropped),
        ("stream_gaps", counts.stream.gaps),
    ]
}

/// A frame of 9,000 bytes with its headers, and segments in one buffer where the kernel did not split them.
const FRAME_BYTES_MAX: usize = 70_000;
/// So that no port waits for another that is never silent.
const FRAMES_AT_ONCE: usize = 64;
/// Frames on their way at a time: 100 MB of the usual size.
const JOURNEYS_MAX: usize = 1 << 16;
/// Interval at which a sleeping relay checks its commands.
const LOOK_NANOS: u64 = 10_000_000;
