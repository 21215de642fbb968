//! What an end of a measurement tells of itself.

use serde::{Deserialize, Serialize};
use thalweg_host::Layers;

/// One end's part of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndReport {
    /// Processor time of its process in seconds, all threads.
    pub cpu_seconds: f64,
    /// How long it looked, in seconds.
    pub seconds: f64,
    /// Share of the machine's processor time, 0 to 1, that was not this process's: other programs, and the kernel's work for the
    /// network outside of any program. `None` where the kernel does not tell.
    pub other_cpu_share: Option<f64>,
    /// Messages that found a full receive buffer at its sockets (`/proc/net/udp`); one that the kernel had joined from several
    /// datagrams counts once.
    pub socket_drops: u64,
    /// Counters of the kernel that moved, by layer.
    pub layers: Layers,
    /// What it sent, of the end that sent a stream or requests.
    pub sent: Option<SentReport>,
    /// What it received, of the end that received a stream or requests.
    pub received: Option<ReceivedReport>,
}

/// What was sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SentReport {
    /// Messages handed to the kernel, of each stream: of UDP datagrams, of TCP writes of the size that was asked for.
    pub offered: Vec<u64>,
    /// Datagrams among them that the kernel did not take: its send buffer stayed full, or they were refused.
    pub not_sent: u64,
    /// Payload bytes that the kernel took.
    pub bytes: u64,
    /// From the beginning of the first stream to the end of the last, in seconds.
    pub seconds: f64,
    /// System calls that sent.
    pub calls: u64,
    /// Calls' messages that the kernel cut into several datagrams (GSO).
    pub segmented_messages: u64,
    /// How much later than due a message of an open loop was sent at most, in microseconds.
    pub behind_us_max: f64,
    /// TCP segments that were sent again.
    pub retransmitted_segments: Option<u64>,
}

/// What was received.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceivedReport {
    /// Different datagrams of each stream; of TCP bytes.
    pub received: Vec<u64>,
    /// Payload bytes.
    pub bytes: u64,
    /// Arrivals of a datagram that had arrived before.
    pub duplicates: u64,
    /// Datagrams that arrived after one with a higher number of their stream.
    pub reordered: u64,
    /// Datagrams that came too late to be told from duplicates; they count as lost.
    pub outdated: u64,
    /// Datagrams of somebody else, or damaged ones.
    pub foreign: u64,
    /// From the first arrival to the last, all streams, in seconds.
    pub seconds: f64,
    /// Jitter by RFC 3550 §6.4.1 in microseconds, the mean over the streams.
    pub jitter_us: f64,
    /// Bytes of receive buffer of each socket that were asked for; 0 leaves it to the kernel.
    pub receive_buffer_asked_bytes: u64,
    /// Bytes of receive buffer that the kernel granted to each socket, without its own doubling.
    pub receive_buffer_granted_bytes: u64,
    /// System calls that received or waited.
    pub calls: u64,
    /// Messages that the kernel had joined from several datagrams (GRO).
    pub joined_messages: u64,
    /// Messages that found a full receive buffer, as the sockets themselves were told (`SO_RXQ_OVFL`), which is so up to the last
    /// message that was received.
    pub overflow_drops: u64,
}

/// A second of a stream at its receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeSecond {
    /// When it began, in seconds since the measurement.
    pub start_s: f64,
    /// How long it was in seconds.
    pub seconds: f64,
    /// Payload bytes that arrived.
    pub bytes: u64,
    /// Datagrams that arrived; of TCP none.
    pub datagrams: u64,
    /// Numbers that this second's highest left behind and that have not arrived: an estimate, since some may still come.
    pub missing: u64,
}
