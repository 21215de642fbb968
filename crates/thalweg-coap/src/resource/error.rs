//! Why a resource gave no answer.

use std::fmt;
use std::time::Duration;

use crate::device::DeviceError;
use crate::message::Code;

/// Why a request to a resource failed. The text goes to the client as a diagnostic payload (RFC 7252 §5.5.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceError {
    /// There is no resource of this path.
    NotFound(String),
    /// The resource cannot do that.
    NotAllowed(String),
    /// None of its representations is acceptable.
    NotAcceptable,
    /// The format of the payload is not understood.
    UnsupportedFormat,
    /// The payload or query is wrong, and why.
    BadRequest(String),
    /// It cannot answer now; it is worth asking again after this time.
    Unavailable(String, Duration),
    /// It failed.
    Failed(String),
    /// Another thing did not answer in time.
    NoAnswer(String),
    /// Another thing's answer makes no sense.
    BadAnswer(String),
    /// Another thing answered with this error, or access rules did.
    Refused(Code, String),
    /// The request passed too many proxies, which are named here with spaces between them, the nearest one first (RFC 8768 §4).
    HopLimitReached(String),
}

impl ResourceError {
    /// The response code (RFC 7252 §5.9).
    pub fn code(&self) -> Code {
        match self {
            ResourceError::NotFound(_) => Code::NOT_FOUND,
            ResourceError::NotAllowed(_) => Code::METHOD_NOT_ALLOWED,
            ResourceError::NotAcceptable => Code::NOT_ACCEPTABLE,
            ResourceError::UnsupportedFormat => Code::UNSUPPORTED_CONTENT_FORMAT,
            ResourceError::BadRequest(_) => Code::BAD_REQUEST,
            ResourceError::Unavailable(..) => Code::SERVICE_UNAVAILABLE,
            ResourceError::Failed(_) => Code::INTERNAL_SERVER_ERROR,
            ResourceError::NoAnswer(_) => Code::GATEWAY_TIMEOUT,
            ResourceError::BadAnswer(_) => Code::BAD_GATEWAY,
            ResourceError::Refused(code, _) => *code,
            ResourceError::HopLimitReached(_) => Code::HOP_LIMIT_REACHED,
        }
    }
}

impl From<DeviceError> for ResourceError {
    fn from(error: DeviceError) -> ResourceError {
        match error {
            DeviceError::Refused(reason) => ResourceError::BadRequest(reason),
            DeviceError::Failed(_) => ResourceError::Failed(error.to_string()),
            DeviceError::Absent(_) | DeviceError::TimedOut(_) | DeviceError::Unresponsive | DeviceError::Overloaded => {
                ResourceError::Unavailable(error.to_string(), RETRY_AFTER)
            }
        }
    }
}

impl fmt::Display for ResourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResourceError::NotFound(path) => write!(f, "there is no resource /{path}"),
            ResourceError::NotAcceptable => f.write_str("there is no representation of that format"),
            ResourceError::UnsupportedFormat => f.write_str("the payload's format is not understood here"),
            ResourceError::HopLimitReached(proxies) => write!(f, "the request passed too many proxies: {proxies}"),
            ResourceError::NotAllowed(reason)
            | ResourceError::BadRequest(reason)
            | ResourceError::Unavailable(reason, _)
            | ResourceError::Failed(reason)
            | ResourceError::NoAnswer(reason)
            | ResourceError::BadAnswer(reason)
            | ResourceError::Refused(_, reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for ResourceError {}

/// When it is worth asking again for a device that is busy or away; chosen by us, as most sensors measure once a second.
const RETRY_AFTER: Duration = Duration::from_secs(1);
