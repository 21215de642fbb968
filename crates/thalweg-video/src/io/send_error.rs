//! Why streams are not sent to their ends.

use std::{fmt, io};

use super::options::PathRoom;
use crate::rfc4175::PlanError;
use crate::sender::{FrameRefusal, SenderError};
use crate::source::SourceError;

/// Why a stream was not sent to its end.
#[derive(Debug)]
pub enum SendError {
    /// The system refused a socket, a thread or a wait.
    Socket(io::Error),
    /// The format cannot be cut for this path.
    Plan(PlanError),
    /// A number of the configuration is outside its range.
    Config(SenderError),
    /// A frame does not fit the format.
    Frame(FrameRefusal),
    /// The source failed; what it gave before was sent.
    Source(SourceError),
    /// Packets of sound are larger than their path takes; they are not cut.
    Oversize {
        /// Octets of the largest one, that of a repetition where there are some.
        octets: usize,
        /// The narrowest path.
        room: PathRoom,
    },
    /// A source of sound has other channels than the form says.
    Channels {
        /// Channels of the source.
        source: u8,
        /// Channels of the form.
        format: usize,
    },
}

impl fmt::Display for SendError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Socket(error) => write!(formatter, "cannot send: {error}"),
            SendError::Plan(error) => error.fmt(formatter),
            SendError::Config(error) => error.fmt(formatter),
            SendError::Frame(error) => error.fmt(formatter),
            SendError::Source(error) => error.fmt(formatter),
            SendError::Oversize { octets, room: PathRoom { mtu, payload } } => write!(
                formatter,
                "datagrams of sound have up to {octets} octets, and a path with an MTU of {mtu} has room for {payload}: give fewer channels \
                 or less time in a packet"
            ),
            SendError::Channels { source, format } => {
                write!(formatter, "the source of sound has {source} channels, and {format} are to be sent")
            }
        }
    }
}

impl std::error::Error for SendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(match self {
            SendError::Socket(error) => error,
            SendError::Plan(error) => error,
            SendError::Config(error) => error,
            SendError::Frame(error) => error,
            SendError::Source(error) => error,
            SendError::Oversize { .. } | SendError::Channels { .. } => return None,
        })
    }
}
