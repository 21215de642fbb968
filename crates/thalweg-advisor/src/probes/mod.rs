//! Measurements that show what settings do, since many calls succeed and change nothing.

mod live;
mod path;
mod planted;

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use live::LiveProbes;
pub use path::device_towards;
pub use planted::PlantedProbes;

/// Measurements of a host; tests plant answers.
///
/// Each returns the system's error where it cannot be made.
pub trait Probes {
    /// The receive buffer that a program of this user gets when it asks for `bytes`.
    ///
    /// # Errors
    /// No socket can be opened.
    fn granted_buffer(&mut self, bytes: u64) -> io::Result<GrantedBuffer>;

    /// What a datagram of this many bytes of payload is charged that waits in a receive buffer.
    ///
    /// # Errors
    /// No datagram arrives over loopback, or the kernel does not tell.
    fn charge(&mut self, payload_bytes: u64) -> io::Result<DatagramCharge>;

    /// Whether the kernel cuts large sends into datagrams and joins datagrams for a receiver.
    ///
    /// # Errors
    /// The kernel refuses to cut (before Linux 4.18), or nothing arrives.
    fn segmentation(&mut self, payload_bytes: u64) -> io::Result<Segmentation>;

    /// The largest packet that reaches `peer` without being cut, up to `at_most` bytes, and the round trip.
    ///
    /// # Errors
    /// There is no route.
    fn path(&mut self, peer: IpAddr, at_most: u32) -> io::Result<PathMtu>;

    /// How late a thread wakes that sleeps for 1 ms again and again.
    ///
    /// # Errors
    /// None on a running system.
    fn wake_ups(&mut self) -> io::Result<WakeUps>;

    /// Whether the queue of the interface to `peer`, else of loopback, holds datagrams back to a rate that a socket asks for.
    ///
    /// # Errors
    /// The kernel has no such option, there is no route, or the datagrams do not leave within some seconds, as for a peer that is
    /// switched off.
    fn pacing(&mut self, peer: Option<IpAddr>) -> io::Result<PacingEffect>;

    /// Processor time of one datagram of this size, sent and received over loopback.
    ///
    /// # Errors
    /// Nothing arrives.
    fn packet_cost(&mut self, payload_bytes: u64) -> io::Result<PacketCost>;
}

/// A receive buffer that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantedBuffer {
    /// Bytes that were asked for.
    pub asked_bytes: u64,
    /// Bytes that `SO_RCVBUF` granted, as they are asked for: half of what may be charged.
    pub granted_bytes: u64,
    /// Bytes that `SO_RCVBUFFORCE` granted; `None` where the right is missing.
    pub forced_bytes: Option<u64>,
    /// Bytes of a socket that asks for nothing.
    pub default_bytes: u64,
}

impl GrantedBuffer {
    /// The most that this user gets by either way.
    pub fn best_bytes(&self) -> u64 {
        self.granted_bytes.max(self.forced_bytes.unwrap_or(0))
    }
}

/// What waiting datagrams are charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatagramCharge {
    /// Bytes of payload of each.
    pub payload_bytes: u64,
    /// Bytes charged for each.
    pub charged_bytes: u64,
    /// Datagrams that waited.
    pub datagrams: u64,
}

/// One large send and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segmentation {
    /// Datagrams in the send.
    pub datagrams: u64,
    /// Messages that a receiver took which asked for joined ones: 1 where the kernel left them joined.
    pub messages: u64,
}

/// The width of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathMtu {
    /// Bytes of the largest IP packet that was answered for; where nothing answers, what this host believes.
    pub bytes: u32,
    /// Whether the peer answered for a packet of that size: a port that nobody uses, refused.
    pub is_confirmed: bool,
    /// The shortest time of an answer.
    pub round_trip: Option<Duration>,
}

/// How late a thread woke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeUps {
    /// Sleeps of 1 ms.
    pub count: u64,
    /// Lateness that 99 of 100 did not exceed.
    pub p99: Duration,
    /// The worst lateness.
    pub worst: Duration,
}

/// A train of datagrams from a socket that asked for a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PacingEffect {
    /// Bytes a second that were asked for.
    pub asked_bytes_per_second: u32,
    /// Bytes a second with which the train left the queue.
    pub seen_bytes_per_second: u64,
}

impl PacingEffect {
    /// Whether the train was held back, if not to the very rate.
    pub fn is_effective(&self) -> bool {
        self.seen_bytes_per_second < 2 * u64::from(self.asked_bytes_per_second)
    }
}

/// Processor time of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketCost {
    /// Of one datagram, sent and received.
    pub each: Duration,
    /// Datagrams that were measured.
    pub datagrams: u64,
}

/// A measurement, as others refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// [`Probes::granted_buffer`].
    GrantedBuffer,
    /// [`Probes::charge`].
    Charge,
    /// [`Probes::segmentation`].
    Segmentation,
    /// [`Probes::path`].
    Path,
    /// [`Probes::wake_ups`].
    WakeUps,
    /// [`Probes::pacing`].
    Pacing,
    /// [`Probes::packet_cost`].
    PacketCost,
}

/// Answers of all probes; a missing one could not be had, or was not asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProbeAnswers {
    /// The receive buffer.
    pub granted_buffer: Option<GrantedBuffer>,
    /// Charges by size, the smallest first.
    pub charges: Vec<DatagramCharge>,
    /// Cutting and joining.
    pub segmentation: Option<Segmentation>,
    /// The path to the peer.
    pub path: Option<PathMtu>,
    /// Lateness of threads.
    pub wake_ups: Option<WakeUps>,
    /// Pacing by the interface's queue.
    pub pacing: Option<PacingEffect>,
    /// Processor time of a datagram.
    pub packet_cost: Option<PacketCost>,
    /// Probes without an answer, with the system's reason.
    pub failures: Vec<(ProbeKind, String)>,
}

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbePlan {
    /// Bytes of UDP payload of the stream's datagrams.
    pub payload_bytes: u64,
    /// The host at the other end, where one is named.
    pub peer: Option<IpAddr>,
    /// Bytes of the largest packet to try on the path.
    pub path_at_most: u32,
}

impl ProbeAnswers {
    /// Makes every measurement but that of the receive buffer, whose size follows from the others.
    pub fn measure(probes: &mut dyn Probes, plan: &ProbePlan) -> ProbeAnswers {
        let mut answers = ProbeAnswers::default();
        let bytes = plan.payload_bytes;
        if let Some(peer) = plan.peer {
            answers.path = answers.note(ProbeKind::Path, probes.path(peer, plan.path_at_most));
        }
        answers.charges = answers.note(ProbeKind::Charge, probes.charge(bytes)).into_iter().collect();
        answers.segmentation = answers.note(ProbeKind::Segmentation, probes.segmentation(bytes.min(SEGMENT_MAX_BYTES)));
        answers.pacing = answers.note(ProbeKind::Pacing, probes.pacing(plan.peer));
        answers.packet_cost = answers.note(ProbeKind::PacketCost, probes.packet_cost(bytes));
        answers.wake_ups = answers.note(ProbeKind::WakeUps, probes.wake_ups());
        answers
    }

    /// Measures what a program gets that asks for `bytes` of receive buffer.
    pub fn measure_buffer(&mut self, probes: &mut dyn Probes, bytes: u64) {
        self.granted_buffer = self.note(ProbeKind::GrantedBuffer, probes.granted_buffer(bytes));
    }

    fn note<Answer>(&mut self, probe: ProbeKind, result: io::Result<Answer>) -> Option<Answer> {
        result.map_err(|error| self.failures.push((probe, error.to_string()))).ok()
    }
}

/// Two segments at least have to fit a message.
const SEGMENT_MAX_BYTES: u64 = 16_000;
