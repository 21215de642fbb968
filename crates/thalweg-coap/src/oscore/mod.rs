//! OSCORE: requests and responses that are encrypted and authenticated between client and server, whatever lies between
//! them (RFC 8613). Everything here is without I/O but [`mod@file`].
//!
//! ```text
//! application ── request ── blocks, observation, Echo ── OSCORE ── message layer ── datagram
//! ```
//!
//! A [`Context`] holds the keys that two ends share; [`Keyring`] finds it for a request, [`ServerAssociation`] and
//! [`ClientAssociation`] bind responses to their request. The ends must have agreed on a master secret:
//!
//! ```
//! use thalweg_coap::oscore::{Context, OneRun, ContextParameters, Past};
//! let secret = [7; 16]; // From the system's entropy.
//! let client = ContextParameters::new(&secret, b"client", b"server")?;
//! let server = ContextParameters::new(&secret, b"server", b"client")?;
//! let contexts = [client, server].map(|side| Context::new(&side, 0, Box::new(OneRun), Past::Unused));
//! # Ok::<(), thalweg_coap::oscore::ParameterError>(())
//! ```

mod association;
mod classes;
mod context;
pub mod file;
mod header;
mod keyring;
mod keys;
mod owners;
mod parameters;
mod partial_iv;
mod refusal;
mod replay;
mod sequence;
#[cfg(test)]
mod tests;

pub use association::{ClientAssociation, ServerAssociation, Verified};
pub use classes::Opened;
pub use context::{Age, Context, EchoChallenge, Past};
pub use header::OscoreHeader;
pub use keyring::{Keyring, KeyringError};
pub use owners::SharedId;
pub use parameters::{ContextParameters, ParameterError};
pub use partial_iv::PartialIv;
pub use refusal::Refusal;
pub use sequence::{OneRun, SequenceError, SequenceStore};
