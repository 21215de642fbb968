//! Why receiving fails.

use std::{fmt, io};

use crate::receiver::ReceiverError;
use crate::sink::SinkError;

/// Why a stream was not received to its end.
#[derive(Debug)]
pub enum ReceiveError {
    /// The system refused a socket, a thread or a wait.
    Socket(io::Error),
    /// A number of the configuration is outside its range.
    Config(ReceiverError),
    /// The sink failed.
    Sink(SinkError),
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReceiveError::Socket(error) => write!(formatter, "cannot receive: {error}"),
            ReceiveError::Config(error) => error.fmt(formatter),
            ReceiveError::Sink(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for ReceiveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(match self {
            ReceiveError::Socket(error) => error,
            ReceiveError::Config(error) => error,
            ReceiveError::Sink(error) => error,
        })
    }
}
