//! TRANSMISSION, a policy of Thalweg: by what way a writer's samples travel. It is the writer's own affair: neither announced nor
//! matched, and every method serves readers of every vendor.

use std::fmt;
use std::time::Duration;

use crate::types::ON_HOST_DATAGRAM_BYTES;

/// By what way a writer's samples travel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// Packing of samples into datagrams.
    pub method: Method,
    /// Destinations of datagrams.
    pub destination: Destination,
    /// Largest datagram, in bytes, where the path to a reader takes larger ones: samples that do not fit leave in fragments. Of small
    /// fragments less has to be sent again where packets are lost, but each costs a datagram. Default 65,000, at least 548.
    pub max_datagram_bytes: usize,
    /// Pause until a reader that owes an acknowledgement is asked for it again, by a HEARTBEAT (RTPS 2.5 §8.4.15.4); four round
    /// trips where these are longer. It doubles while the reader does not answer; while samples or a write wait for the answer it is
    /// 200 ms at most. Default 20 ms, from 1 ms to 3 s.
    pub heartbeat_period: Duration,
}

impl Default for Transmission {
    fn default() -> Transmission {
        Transmission {
            method: Method::Auto,
            destination: Destination::Auto,
            max_datagram_bytes: ON_HOST_DATAGRAM_BYTES,
            heartbeat_period: HEARTBEAT_PERIOD,
        }
    }
}

/// Packing of samples into datagrams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// Immediate while the writer is idle; once writes come faster than datagrams leave, samples share datagrams as with
    /// [`Method::Coalesce`] or [`Method::Batch`], whichever the readers allow, and wait at most [`AUTO_FLUSH_DELAY`].
    #[default]
    Auto,
    /// Every sample leaves with the call that writes it, in a datagram of its own. Only what could not leave at once, because
    /// another thread was sending or the readers were behind, shares datagrams.
    Immediate,
    /// Samples wait for each other and share datagrams, each as a DATA submessage of its own: every vendor's readers understand
    /// them.
    Coalesce(Limits),
    /// Samples wait for each other and leave as one DATA_BATCH submessage, acknowledged as one, to readers that announce that
    /// they understand it; to others as with [`Method::Coalesce`].
    Batch(Limits),
    /// A write only files the sample; the I/O thread sends it when the named flow controller grants tokens.
    Asynchronous {
        /// Name of a flow controller of the participant; [`BACKGROUND`] is always there.
        flow_controller: String,
    },
}

/// Limits of collected samples; the one that is reached first lets all of them leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of serialized samples. Default 60,000, at least 1.
    pub max_bytes: usize,
    /// Samples. Default [`usize::MAX`], at least 1.
    pub max_samples: usize,
    /// Time since the first of them was written. Default 1 ms; at most 10 s.
    pub max_flush_delay: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_bytes: 60_000, max_samples: usize::MAX, max_flush_delay: Duration::from_millis(1) }
    }
}

/// Destinations of a writer's datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Destination {
    /// Unicast or multicast, whichever costs less, see [`crate::writer`]; never multicast while all readers are on this host.
    #[default]
    Auto,
    /// One copy for each reading participant.
    Unicast,
    /// The readers' group where they announce one, unicast to the others.
    Multicast,
}

impl Transmission {
    /// This method, and a destination that costs least.
    pub fn by(method: Method) -> Transmission {
        Transmission { method, ..Transmission::default() }
    }

    /// This destination, and the method [`Method::Auto`].
    pub fn to(destination: Destination) -> Transmission {
        Transmission { destination, ..Transmission::default() }
    }
}

impl Method {
    /// [`Method::Coalesce`] with the default limits.
    pub fn coalesce() -> Method {
        Method::Coalesce(Limits::default())
    }

    /// [`Method::Batch`] with the default limits.
    pub fn batch() -> Method {
        Method::Batch(Limits::default())
    }

    /// [`Method::Asynchronous`] under the flow controller of this name.
    pub fn asynchronous(flow_controller: impl Into<String>) -> Method {
        Method::Asynchronous { flow_controller: flow_controller.into() }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Method::Auto => f.write_str("auto"),
            Method::Immediate => f.write_str("immediate"),
            Method::Coalesce(limits) => write!(f, "coalesce ({limits})"),
            Method::Batch(limits) => write!(f, "batch ({limits})"),
            Method::Asynchronous { flow_controller } => write!(f, "asynchronous ({flow_controller})"),
        }
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {} B, ", self.max_bytes)?;
        if self.max_samples != usize::MAX {
            write!(f, "{} samples, ", self.max_samples)?;
        }
        write!(f, "{:?}", self.max_flush_delay)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Destination::Auto => "auto",
            Destination::Unicast => "unicast",
            Destination::Multicast => "multicast",
        })
    }
}

/// The longest that a sample of a [`Method::Auto`] writer waits for company.
pub const AUTO_FLUSH_DELAY: Duration = Duration::from_micros(50);

/// Name of the flow controller that every participant has from the start.
pub const BACKGROUND: &str = "background";

/// The usual pause between repeated HEARTBEATs, and what is accepted instead.
const HEARTBEAT_PERIOD: Duration = Duration::from_millis(20);
pub(super) const HEARTBEAT_PERIOD_RANGE: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(3);

/// The longest flush delay that is accepted.
pub(super) const FLUSH_DELAY_MAX: Duration = Duration::from_secs(10);
