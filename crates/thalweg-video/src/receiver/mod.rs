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
mod numbers;
mod playout;
mod repair;
mod sequence;
mod slots;
mod source;

pub use conceal::Concealment;
pub use config::{Paths, ReceiverConfig, ReceiverError, Repair};
pub use counters::{FrameCounters, PacketCounters, PathCounters, ReceiverCounters, RefusalCounters, RequestCounters};
pub use lines::LineSet;
pub use repair::{NACK_ITEMS_MAX, NackItem};

/// One of two paths of a stream (ST 2022-7); the first where there is only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkPath {
    /// The first path.
    First,
    /// The second path.
    Second,
}

/// The pieces of a packet within the frame.
#[derive(Clone, Copy, Debug, Default)]
struct FramePiece {
    line: u16,
    first_group: u16,
    groups: u16,
}
