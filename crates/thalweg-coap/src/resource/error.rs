//! Why a resource gave no answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::device::DeviceError;
use crate::message::{Code, Response};

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
    /// Access rules answered with this error, or what stands before the resource.
    Refused(Code, String),
    /// Another thing answered with this error; the text says which one, and what about.
    Answered(Arc<Response>, String),
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
            ResourceError::Answered(response, _) => response.code,
            ResourceError::HopLimitReached(_) => Code::HOP_LIMIT_REACHED,
        }
    }

    /// What a client is told of it, and for how long that holds.
    pub(crate) fn response(&self) -> Response {
        let response = Response::error(self.code(), self.to_string());
        let max_age = match self {
            ResourceError::Unavailable(_, retry_after) => Some(whole_seconds(*retry_after).max(1)),
            ResourceError::Answered(answer, _) => answer.max_age,
            _ => None,
        };
        Response { max_age, ..response }
    }
}

/// Whole seconds, begun ones included: a cache may use for a second more what is fresh for a part of one, or it would never keep
/// a reading that is fresh for a second. Nothing stays nothing.
pub(super) fn whole_seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs() + u64::from(time.subsec_nanos() > 0)).unwrap_or(u32::MAX)
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
            | ResourceError::Refused(_, reason)
            | ResourceError::Answered(_, reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for ResourceError {}

/// When it is worth asking again for a device that is busy or away; chosen by us, as most sensors measure once a second.
const RETRY_AFTER: Duration = Duration::from_secs(1);
