//! Why a stream cannot be published or subscribed to.

use std::fmt;
use std::time::Duration;

use crate::format::{FormatError, VideoFormat};
use crate::receiver::ReceiverError;

/// Why a stream cannot be published or subscribed to.
#[derive(Debug)]
pub enum TopicError {
    /// The middleware refuses.
    Middleware(thalweg::Error),
    /// A format that does not exist.
    Format(FormatError),
    /// A number of the configuration is outside its range.
    Receiver(ReceiverError),
    /// The system gives no random number.
    Entropy(std::io::Error),
    /// A word of a sample means nothing here: a later edition of the types, or damage.
    UnknownWord {
        /// Which.
        word: &'static str,
        /// Its value.
        found: u8,
    },
    /// Nobody describes the stream.
    NoStream {
        /// The stream.
        stream: u32,
        /// How long it was waited for.
        waited: Duration,
        /// The streams that are described, as many as fit a line.
        others: Vec<u32>,
    },
    /// The stream has another format than the one that was asked for.
    OtherFormat {
        /// The stream.
        stream: u32,
        /// What it has.
        offered: VideoFormat,
        /// What was asked for.
        expected: VideoFormat,
    },
    /// RELIABLE was asked for, and the stream is offered BEST_EFFORT.
    NotReliable {
        /// The stream.
        stream: u32,
    },
    /// A slice has a number of lines that slices do not have.
    SliceLines {
        /// The number.
        lines: u16,
        /// The lines of a field.
        field_lines: u16,
    },
    /// A lifespan outside its range.
    Lifespan {
        /// The lifespan.
        lifespan: Duration,
        /// The frame time.
        frame: Duration,
    },
    /// The stream is published the other way: whole frames or slices.
    OtherUnit,
    /// Memory that is not a frame, or not the lines that were told.
    Octets {
        /// What there is.
        got: usize,
        /// What belongs there.
        expected: usize,
    },
    /// A slice that does not follow the one before it.
    SliceOrder {
        /// Its first line.
        line: u16,
        /// The line that is due.
        expected: u16,
    },
    /// A text that does not fit a description.
    TextLength {
        /// What it is.
        what: &'static str,
        /// Its octets.
        octets: usize,
        /// The bound.
        octets_max: usize,
    },
}

impl fmt::Display for TopicError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopicError::Middleware(error) => write!(formatter, "{error}"),
            TopicError::Format(error) => write!(formatter, "{error}"),
            TopicError::Receiver(error) => write!(formatter, "{error}"),
            TopicError::Entropy(error) => write!(formatter, "the system gives no random number: {error}"),
            TopicError::UnknownWord { word, found } => {
                write!(formatter, "{word} {found} of the stream's format is not known; a newer version may know it")
            }
            TopicError::NoStream { stream, waited, others } => {
                write!(formatter, "nobody described stream {stream} within {waited:?}; ")?;
                match others.as_slice() {
                    [] => formatter.write_str("no stream is there at all: check domain, group and network"),
                    others => write!(formatter, "there are {others:?}"),
                }
            }
            TopicError::OtherFormat { stream, offered, expected } => {
                write!(formatter, "stream {stream} is {offered}, and {expected} was asked for")
            }
            TopicError::NotReliable { stream } => write!(
                formatter,
                "stream {stream} is offered BEST_EFFORT, and RELIABLE was asked for; ask for BEST_EFFORT, or publish it RELIABLE"
            ),
            TopicError::SliceLines { lines, field_lines } => write!(
                formatter,
                "slices of {lines} lines are not between {} and {} lines, or larger than a field of {field_lines}",
                super::SLICE_LINES_MIN,
                super::SLICE_LINES_MAX
            ),
            TopicError::Lifespan { lifespan, frame } => {
                write!(formatter, "a lifespan of {lifespan:?} is not between half a frame time and eight of {frame:?}")
            }
            TopicError::OtherUnit => {
                formatter.write_str("the publisher writes the other unit; frames and slices of one stream do not mix")
            }
            TopicError::Octets { got, expected } => {
                write!(formatter, "{got} octets are given where {expected} belong")
            }
            TopicError::SliceOrder { line, expected } => {
                write!(formatter, "a slice begins at line {line}, and line {expected} is due")
            }
            TopicError::TextLength { what, octets, octets_max } => {
                write!(formatter, "the {what} has {octets} octets; {octets_max} fit")
            }
        }
    }
}

impl std::error::Error for TopicError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TopicError::Middleware(error) => Some(error),
            TopicError::Format(error) => Some(error),
            TopicError::Receiver(error) => Some(error),
            TopicError::Entropy(error) => Some(error),
            _ => None,
        }
    }
}

impl From<thalweg::Error> for TopicError {
    fn from(error: thalweg::Error) -> TopicError {
        TopicError::Middleware(error)
    }
}

impl From<FormatError> for TopicError {
    fn from(error: FormatError) -> TopicError {
        TopicError::Format(error)
    }
}

impl From<ReceiverError> for TopicError {
    fn from(error: ReceiverError) -> TopicError {
        TopicError::Receiver(error)
    }
}
