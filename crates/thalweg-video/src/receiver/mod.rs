//! The receiver of a picture: datagrams and the time in, frames and requests for missing packets out.
//!
//! A packet is placed by its time stamp, field, line and offset, in any order and from any path; its number serves to
//! count, to find what is missing and to ask for it. Frames are presented in their order at fixed times after the
//! earliest arrival, complete or concealed, and never before the first complete one.

#![allow(dead_code, unused_imports, reason = "the receiver that is made of these parts follows")]

mod conceal;
mod config;
mod counters;
mod coverage;
mod lines;
mod numbering;
mod playout;
mod source;

pub use conceal::Concealment;
pub use config::{Paths, ReceiverConfig, ReceiverError, Repair};
pub use counters::{FrameCounters, PacketCounters, PathCounters, ReceiverCounters, RefusalCounters, RequestCounters};
pub use lines::LineSet;
