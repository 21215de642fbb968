//! DTLS 1.2 and 1.3 for `coaps` (RFC 7252 §9), without I/O: one [`Sessions`] for the clients of a server's socket, a
//! [`ClientSession`] for a client. The handshake and the records are dimpl's.
//!
//! Pre-shared keys (TLS_PSK_WITH_AES_128_CCM_8) need DTLS 1.2, certificates with ECDSA keys work with both. Raw public keys
//! (RFC 7250), connection IDs (RFC 9146) and resumption are not built.

mod association;
mod challenges;
mod client;
mod cookie;
mod hello;
mod limits;
mod recency;
mod record;
mod sessions;
#[cfg(test)]
mod tests;

use std::fmt;

pub use association::ClockOrigin;
pub(crate) use association::RECORD_MAX;
pub use client::{ClientSession, SessionState};
pub use limits::{SessionCounts, SessionLimits};
pub use sessions::Sessions;

/// Why a session cannot begin, or ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DtlsError(String);

impl DtlsError {
    /// The peer said goodbye.
    pub(crate) fn closed() -> DtlsError {
        DtlsError("the server ended the session".to_owned())
    }
}

impl fmt::Display for DtlsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DTLS: {}", self.0)
    }
}

impl std::error::Error for DtlsError {}

impl From<dimpl::Error> for DtlsError {
    fn from(error: dimpl::Error) -> DtlsError {
        DtlsError(error.to_string())
    }
}
