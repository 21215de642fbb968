//! Disturbances of a simulated network and its processes besides loss: splits, pauses, moves, narrow paths, intruders.

use std::time::Duration;

use thalweg_rtps::time::Instant;

/// A time in which the network is in two parts.
#[derive(Clone, Copy, Debug)]
pub struct SplitPlan {
    /// When it begins.
    pub from: Instant,
    /// When it heals.
    pub until: Instant,
    /// Hosts of the one part, a bit each; hosts from 64 on are in the other.
    pub hosts: u64,
    /// Which datagrams are cut off.
    pub cut: Cut,
}

/// In which direction a split network carries nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// The parts do not hear each other.
    #[default]
    BothWays,
    /// No other host receives from [`SplitPlan::hosts`], and they receive from all.
    FromHosts,
    /// [`SplitPlan::hosts`] receive only from themselves, and all others receive from them.
    ToHosts,
}

impl SplitPlan {
    /// Which part a host is in.
    pub fn side(&self, host: usize) -> u32 {
        u32::from(host < 64 && self.hosts >> host & 1 == 1)
    }
}

/// A time in which a process does not run: nothing is received, written or taken, and its receive buffer fills.
#[derive(Clone, Copy, Debug)]
pub struct PausePlan {
    /// Which process.
    pub process: usize,
    /// When it stops.
    pub from: Instant,
    /// When it goes on.
    pub until: Instant,
}

/// A host gets another address.
#[derive(Clone, Copy, Debug)]
pub struct MovePlan {
    /// Which host.
    pub host: usize,
    /// When.
    pub at: Instant,
    /// Delay after which its processes are told.
    pub told_after: Duration,
}

/// The paths between hosts become narrower or wider.
#[derive(Clone, Copy, Debug)]
pub struct PathPlan {
    /// When.
    pub at: Instant,
    /// The largest IP packet they carry from then on. A larger one is refused, and its sender told a round trip later.
    pub mtu_bytes: u32,
}

/// A host with an intruder that overhears the network and sends forged datagrams from its own address.
#[derive(Clone, Copy, Debug)]
pub struct IntruderPlan {
    /// Its host; no process runs there.
    pub host: usize,
    /// When he begins.
    pub from: Instant,
    /// When he stops.
    pub until: Instant,
    /// Time between two of his datagrams.
    pub period: Duration,
}

impl IntruderPlan {
    /// How many datagrams he sends at most.
    pub(crate) fn datagrams(&self) -> u64 {
        let sent = self.until.since(self.from).as_nanos() / self.period.as_nanos().max(1);
        u64::try_from(sent).unwrap_or(u64::MAX)
    }
}
