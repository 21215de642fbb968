//! Statistics of a server, a line of JSON at a time: `thalweg coap serve --statistics SECONDS --json`.

use serde::{Deserialize, Serialize};

/// Counters of a server since its start; all numbers but `at_s` and those of the pools' present only grow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerLine {
    /// Seconds since it started; in a result seconds since requests were counted, negative before.
    pub at_s: f64,
    /// Datagrams received.
    pub received: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Requests answered on the receiving thread.
    pub inline: u64,
    /// Requests sent to a pool.
    pub pooled: u64,
    /// Requests answered 5.03, because they would have waited too long.
    pub unavailable: u64,
    /// Non-confirmable requests dropped for the same reason.
    pub dropped: u64,
    /// Notifications that were put off for the same reason.
    #[serde(default)]
    pub put_off: u64,
    /// Requests answered 4.29.
    pub limited: u64,
    /// Datagrams that found the receive buffer full.
    pub kernel_drops: u64,
    /// Non-confirmable requests for a pool without room that a filter in the kernel dropped.
    pub filtered: u64,
    /// Datagrams that were too long; requests among them were answered 4.13.
    #[serde(default)]
    pub truncated: u64,
    /// Datagrams of peers for which there was no place.
    #[serde(default)]
    pub peers_refused: u64,
    /// Registrations answered without observation.
    #[serde(default)]
    pub observers_refused: u64,
    /// Registrations that ended because others needed their places.
    #[serde(default)]
    pub observers_evicted: u64,
    /// Requests answered 5.03 because handlers held as many bytes as they may.
    #[serde(default)]
    pub bytes_refused: u64,
    /// DTLS sessions.
    #[serde(default)]
    pub sessions: SessionLine,
    /// Connections over TCP, TLS and WebSocket.
    #[serde(default)]
    pub connections: ConnectionLine,
    /// Paths whose handlers took too long inline and run in a pool now.
    pub demoted: Vec<String>,
    /// Its handler pools.
    pub pools: Vec<PoolLine>,
}

/// DTLS sessions of a server: the first two numbers are those at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLine {
    /// Sessions.
    pub open: u64,
    /// Handshakes under way.
    pub handshakes: u64,
    /// Datagrams that asked for a cookie.
    pub challenged: u64,
    /// Handshakes that were completed.
    pub established: u64,
    /// Handshakes that failed.
    pub failed: u64,
    /// Sessions and handshakes that made room for others.
    pub evicted: u64,
    /// Datagrams that belong to no session, or could not be read.
    pub unreadable: u64,
}

/// Connections of a server: the first number is that at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionLine {
    /// Connections.
    pub open: u64,
    /// Connections that were opened.
    pub opened: u64,
    /// Those that the server ended, because what came was no CoAP or too long.
    pub aborted: u64,
    /// Those that were too slow or silent for too long.
    pub timed_out: u64,
}

/// Counters of a handler pool since its creation, as of its law's last decision `age_s` ago.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolLine {
    /// The resource class.
    pub name: String,
    /// The law for its threads.
    pub law: String,
    /// How old these numbers are, in seconds.
    pub age_s: f64,
    /// Threads (N).
    pub threads: u64,
    /// The most that the law would give (`NT_max`).
    pub threads_max: u64,
    /// Requests in the queue (QS).
    pub queue: u64,
    /// Requests let into the queue.
    pub accepted: u64,
    /// Requests not let in.
    pub refused: u64,
    /// Requests let in and not done.
    pub dropped: u64,
    /// Requests finished.
    pub completed: u64,
    /// Seconds that threads spent in handlers, added up.
    pub busy_s: f64,
    /// How many of them a processor worked.
    pub processor_s: f64,
}

impl ServerLine {
    /// Requests that handlers finished, wherever they ran.
    pub fn handled(&self) -> u64 {
        self.inline + self.pools.iter().map(|pool| pool.completed).sum::<u64>()
    }

    /// When its numbers of handlers were taken: those of pools are older than the line.
    pub fn handled_at_s(&self) -> f64 {
        self.at_s - self.busiest().map_or(0.0, |pool| pool.age_s)
    }

    /// The pool that did most; `None` where there is no pool.
    pub fn busiest(&self) -> Option<&PoolLine> {
        self.pools.iter().max_by_key(|pool| pool.accepted + pool.refused)
    }
}
