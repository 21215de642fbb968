//! Recordings of topics in MCAP files: any type, as it is on the wire.
//!
//! A channel of a file is one writer, with its QoS and GUID in the channel's metadata and its sequence numbers (the low 32 bits) in the
//! messages: what is missing can be computed from the file alone. Messages are the serialized samples, log times their reception,
//! publish times their source time stamps. The end of an instance is a private record that other programs skip
//! ([`write_end`](files::RecordingFiles::write_end)).
#![forbid(unsafe_code)]

pub mod arrival;
pub mod bag;
pub mod channel;
mod chunk;
pub mod contents;
pub mod demand;
pub mod error;
pub mod files;
pub mod instance;
pub mod latched;
mod ledger;
mod life;
mod members;
pub mod numbers;
mod opening;
pub mod order;
mod pace;
pub mod player;
pub mod qos;
pub mod queue;
pub mod read;
pub mod recorder;
mod records;
pub mod schema;
mod seen;
mod selection;
mod structure;
mod summary;
mod timeline;
pub mod type_identity;
pub mod type_search;
pub mod verify;

pub use error::RecordingError;
pub use members::JoinDomain;
pub use selection::{TopicSelection, Withheld};
pub use summary::{ChannelSummary, RecordingSummary};

#[cfg(test)]
mod tests;
