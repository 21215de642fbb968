//! Sans-IO implementation of RTPS 2.5.
//!
//! The crate opens no socket, reads no clock, draws no entropy, logs nothing and starts no thread: bytes and `now` go in,
//! bytes and deadlines come out. Production and the simulator compose the same [`participant::Participant`].
#![forbid(unsafe_code)]

mod assertion;
mod count;
pub mod discovery;
pub mod flow_control;
pub mod history;
pub mod participant;
mod proxies;
pub mod qos;
pub mod reader;
pub mod round_trip;
pub mod shared;
pub mod status;
pub mod trace;
pub mod types;
mod vendor;
pub mod wire;
pub mod writer;

pub use thalweg_base::{outbox, payload, rng, time};
