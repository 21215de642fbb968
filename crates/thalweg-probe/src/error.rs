//! Why a measurement has no figures.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;

use crate::control::ConversationError;
use crate::order::OrderError;

/// Why a measurement did not come to its end.
#[derive(Debug)]
pub enum ProbeError {
    /// The order is out of bounds.
    Order(OrderError),
    /// The other end gave up, fell silent or said what was not due.
    Conversation(ConversationError),
    /// The other end closed the conversation.
    Left,
    /// Nobody answers at this address.
    Unreachable(SocketAddr, io::Error),
    /// A system call failed.
    System {
        /// What was to be done.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// Datagrams are larger than their path.
    TooLarge {
        /// Payload bytes of a datagram.
        size_bytes: u32,
        /// The path's MTU in bytes.
        mtu_bytes: u32,
        /// The largest payload in bytes that fits it.
        payload_max: usize,
    },
    /// Figures of the two ends contradict each other.
    Contradiction(String),
    /// The measurement itself failed.
    Failed(String),
    /// A stop was requested.
    Interrupted,
}

impl ProbeError {
    /// For `map_err`: a system call that was to do `what`.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> ProbeError {
        move |error| ProbeError::System { what, error }
    }
}

impl From<ConversationError> for ProbeError {
    fn from(error: ConversationError) -> ProbeError {
        ProbeError::Conversation(error)
    }
}

impl From<OrderError> for ProbeError {
    fn from(error: OrderError) -> ProbeError {
        ProbeError::Order(error)
    }
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeError::Order(error) => error.fmt(f),
            ProbeError::Conversation(error) => error.fmt(f),
            ProbeError::Left => f.write_str("the other end left before the measurement was done"),
            ProbeError::Unreachable(address, error) => {
                write!(f, "no probe answers at {address} ({error}): start `thalweg perf serve` there")
            }
            ProbeError::System { what, error } => write!(f, "{what} failed: {error}"),
            ProbeError::TooLarge { size_bytes, mtu_bytes, payload_max } => write!(
                f,
                "datagrams of {size_bytes} B do not fit the path's MTU of {mtu_bytes} B: give --size {payload_max} or less, or --fragment \
                 to let IP cut them"
            ),
            ProbeError::Contradiction(text) | ProbeError::Failed(text) => f.write_str(text),
            ProbeError::Interrupted => f.write_str("interrupted before the measurement was done"),
        }
    }
}

impl Error for ProbeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ProbeError::Order(error) => Some(error),
            ProbeError::Conversation(error) => Some(error),
            ProbeError::Unreachable(_, error) | ProbeError::System { error, .. } => Some(error),
            _ => None,
        }
    }
}
