//! The one error type of the API.

use std::error::Error as StdError;
use std::fmt;

use thalweg_rtps::qos::{QosError, QosErrorKind};

/// The reason of a failed call: DDS's return code, the operation and its topic, the measured cause, and a remedy.
///
/// Displays as one sentence, such as `write on topic "pose" timed out after 100ms: 2 of 3 readers owe an acknowledgement;
/// raise max_blocking_time or the history's limits`. One pointer wide, so that calls that succeed pay nothing for it.
pub struct Error(Box<Failure>);

struct Failure {
    kind: ErrorKind,
    operation: &'static str,
    topic: Option<String>,
    cause: String,
    advice: &'static str,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// Return code of DDS (DDS 1.4 §2.2.1.1) that an [`Error`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// RETCODE_ERROR: the operating system refused something, or a reader was given up that lacks samples.
    Error,
    /// RETCODE_UNSUPPORTED: legal in DDS, but not effective here.
    Unsupported,
    /// RETCODE_BAD_PARAMETER: an argument that cannot be used.
    BadParameter,
    /// RETCODE_PRECONDITION_NOT_MET: not in this state.
    PreconditionNotMet,
    /// RETCODE_OUT_OF_RESOURCES: a bound or the system's resources are exhausted.
    OutOfResources,
    /// RETCODE_INCONSISTENT_POLICY: QoS that contradicts itself.
    InconsistentPolicy,
    /// RETCODE_IMMUTABLE_POLICY: a policy that an existing entity keeps.
    ImmutablePolicy,
    /// RETCODE_TIMEOUT: the wait ended without result.
    Timeout,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, operation: &'static str, cause: impl Into<String>) -> Error {
        Error(Box::new(Failure { kind, operation, topic: None, cause: cause.into(), advice: "", source: None }))
    }

    pub(crate) fn on_topic(mut self, topic: &str) -> Error {
        self.0.topic = Some(topic.to_owned());
        self
    }

    pub(crate) fn advise(mut self, advice: &'static str) -> Error {
        self.0.advice = advice;
        self
    }

    /// Adds to the cause.
    pub(crate) fn noting(mut self, note: &str) -> Error {
        self.0.cause.push_str(note);
        self
    }

    pub(crate) fn because(mut self, source: impl StdError + Send + Sync + 'static) -> Error {
        self.0.source = Some(Box::new(source));
        self
    }

    /// A system call or a library failed.
    pub(crate) fn system(operation: &'static str, source: impl StdError + Send + Sync + 'static) -> Error {
        Error::new(ErrorKind::Error, operation, format!("failed: {source}")).because(source)
    }

    pub(crate) fn qos(operation: &'static str, topic: &str, source: QosError) -> Error {
        let kind = match source.kind {
            QosErrorKind::Inconsistent => ErrorKind::InconsistentPolicy,
            QosErrorKind::Unsupported => ErrorKind::Unsupported,
            QosErrorKind::Immutable => ErrorKind::ImmutablePolicy,
            QosErrorKind::Exhausted => ErrorKind::OutOfResources,
            _ => ErrorKind::Error,
        };
        Error::new(kind, operation, format!("failed: {source}")).on_topic(topic).because(source)
    }

    /// DDS's return code.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The call that failed, such as `write` or `create_reader`.
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// The topic that the call was about, if it was about one.
    pub fn topic(&self) -> Option<&str> {
        self.0.topic.as_deref()
    }

    /// True for [`ErrorKind::Timeout`].
    pub fn is_timeout(&self) -> bool {
        self.0.kind == ErrorKind::Timeout
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failure = &*self.0;
        f.write_str(failure.operation)?;
        if let Some(topic) = &failure.topic {
            write!(f, " on topic \"{topic}\"")?;
        }
        write!(f, " {}", failure.cause)?;
        if failure.advice.is_empty() { Ok(()) } else { write!(f, "; {}", failure.advice) }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let source = self.0.source.as_deref()?;
        Some(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_what_failed_where_why_and_what_to_do() {
        let error =
            Error::new(ErrorKind::Timeout, "write", "timed out after 100ms: 2 of 3 readers owe an acknowledgement")
                .on_topic("pose")
                .advise("raise max_blocking_time or the history's limits");
        let expect = "write on topic \"pose\" timed out after 100ms: 2 of 3 readers owe an acknowledgement; \
                      raise max_blocking_time or the history's limits";
        assert_eq!(error.to_string(), expect);
        assert!(error.is_timeout());
        assert_eq!((error.operation(), error.topic()), ("write", Some("pose")));
        assert_eq!(size_of::<Result<(), Error>>(), size_of::<usize>());
    }
}
