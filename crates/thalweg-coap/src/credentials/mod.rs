//! What proves an end of a DTLS or TLS session to the other: pre-shared keys and certificates, and the files they lie in.

mod certificates;
mod preshared;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

pub(crate) use certificates::provider;
pub use certificates::{OwnCertificate, Trust, Untrusted};
pub use preshared::{PresharedKey, PresharedKeys};

/// What an end of a session has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Credentials {
    /// Pre-shared keys: those of all clients for a server, one for a client.
    pub keys: PresharedKeys,
    /// The own certificate with its key.
    pub certificate: Option<OwnCertificate>,
    /// The certificates of the other side that are believed. A server that has some asks its clients for one.
    pub trust: Option<Trust>,
}

/// Why credentials cannot be read or used.
#[derive(Debug)]
pub struct CredentialError {
    path: PathBuf,
    reason: String,
}

impl CredentialError {
    pub(crate) fn new(path: &Path, reason: impl fmt::Display) -> CredentialError {
        CredentialError { path: path.to_owned(), reason: reason.to_string() }
    }
}

impl fmt::Display for CredentialError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the file {} cannot be used: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for CredentialError {}
