//! Why a protected message is not believed.

use std::fmt;

use crate::message::{Code, OptionNumber, Response};

/// Why the protection of a message could not be taken off (RFC 8613 §8.2, §8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The option, the COSE object or the decrypted message has a wrong form.
    Malformed,
    /// No security context has this ID.
    UnknownContext,
    /// The message was accepted before, or is too old to tell.
    Replay,
    /// The message was changed, or protected with other keys.
    Forged,
    /// A readable option is critical and not understood.
    BadOption(OptionNumber),
    /// The protected message itself came in blocks.
    OuterBlocks,
    /// The message is not protected at all.
    Unprotected,
}

impl Refusal {
    /// The unprotected answer to a request; proxies must not keep it.
    pub fn response(&self) -> Response {
        let code = match self {
            Refusal::UnknownContext | Refusal::Replay | Refusal::Unprotected => Code::UNAUTHORIZED,
            Refusal::Forged => Code::BAD_REQUEST,
            Refusal::Malformed | Refusal::BadOption(_) | Refusal::OuterBlocks => Code::BAD_OPTION,
        };
        Response::error(code, self.to_string()).with_max_age(0)
    }
}

/// The texts of RFC 8613 where it has one.
impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Malformed => formatter.write_str("Failed to decode COSE"),
            Refusal::UnknownContext => formatter.write_str("Security context not found"),
            Refusal::Replay => formatter.write_str("Replay detected"),
            Refusal::Forged => formatter.write_str("Decryption failed"),
            Refusal::BadOption(number) => write!(formatter, "{number} is not understood"),
            Refusal::OuterBlocks => formatter.write_str("send blocks inside OSCORE, not outside"),
            Refusal::Unprotected => formatter.write_str("protect the request by OSCORE"),
        }
    }
}
