//! Why a session description is refused.

use std::fmt;

/// A refusal, with the stream that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SdpError {
    /// The stream, such as `stream 2 (audio, port 5006)`; empty for the session as a whole.
    pub place: String,
    /// What is wrong.
    pub fault: SdpFault,
}

/// What is wrong with a session description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SdpFault {
    /// It is longer than [`SDP_OCTETS_MAX`](super::SDP_OCTETS_MAX).
    TooLong {
        /// Its octets.
        octets: usize,
    },
    /// It is not the form of RFC 8866.
    Syntax {
        /// What the reader of the form says.
        reason: String,
    },
    /// A line, attribute or key is missing.
    Missing {
        /// Its name.
        key: &'static str,
    },
    /// A value is none of those known.
    Invalid {
        /// The name of the line, attribute or key.
        key: String,
        /// The value found, cut to 64 characters.
        value: String,
        /// What was expected.
        expected: &'static str,
    },
    /// Two statements exclude each other.
    Contradiction {
        /// One statement, cut to 64 characters.
        first: String,
        /// The other one.
        second: String,
    },
    /// It describes no stream of raw video or linear audio.
    NoStream,
    /// There are more of something than are read.
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// The most that is read.
        max: usize,
    },
}

impl fmt::Display for SdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the session description is refused: ")?;
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        match &self.fault {
            SdpFault::TooLong { octets } => {
                write!(f, "it has {octets} octets, of which at most {} are read", super::SDP_OCTETS_MAX)
            }
            SdpFault::Syntax { reason } => f.write_str(reason),
            SdpFault::Missing { key } => write!(f, "{key} is missing"),
            SdpFault::Invalid { key, value, expected } => write!(f, "{key} is {value:?} and should be {expected}"),
            SdpFault::Contradiction { first, second } => write!(f, "{first:?} contradicts {second:?}"),
            SdpFault::NoStream => f.write_str("it has no stream of raw video or linear audio"),
            SdpFault::TooMany { what, max } => write!(f, "more than {max} {what}"),
        }
    }
}

impl std::error::Error for SdpError {}

impl SdpFault {
    pub(super) fn invalid(key: &str, value: &str, expected: &'static str) -> SdpFault {
        SdpFault::Invalid { key: cut(key), value: cut(value), expected }
    }

    pub(super) fn contradiction(first: &str, second: &str) -> SdpFault {
        SdpFault::Contradiction { first: cut(first), second: cut(second) }
    }

    /// The refusal of the session as a whole.
    pub(super) fn of_session(self) -> SdpError {
        SdpError { place: String::new(), fault: self }
    }
}

/// The beginning of a text from the network.
fn cut(text: &str) -> String {
    text.chars().take(64).collect()
}
