//! Uncompressed video and audio over RTP: RFC 4175 with the conventions of SMPTE ST 2110-20, and L24 audio of ST 2110-30.
//!
//! Senders and receivers are state machines without I/O: datagrams, frames and the time go in; datagrams, frames and
//! deadlines come out. [`topics`] has the same pictures as DDS topics.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod audio;
pub mod conformance;
pub mod format;
pub mod io;
pub mod jitter;
mod origin;
pub mod picture;
pub mod receiver;
pub mod rfc4175;
pub mod rtcp;
pub mod rtp;
pub mod sap;
pub mod sdp;
pub mod sender;
pub mod sink;
pub mod source;
pub mod topics;
mod waiting;
pub mod wav;
pub mod y4m;
