//! The bytes of RTPS messages: checked parsing and writing of headers, submessages and parameter lists (RTPS 2.5 §9.4).
//!
//! Parsing borrows from the datagram, allocates nothing and answers malformed bytes with a [`WireError`]; it reads both
//! byte orders. Writing appends to a `Vec<u8>` and is always little endian.

pub mod batch;
mod cursor;
mod message;
mod number_set;
pub mod parameters;
pub mod pid;
mod submessage;
pub mod write;

use std::fmt;

pub use message::{Message, Submessages, count_samples};
pub use number_set::{FragmentSet, SequenceSet};
pub use submessage::{
    AckNack, AskedBy, Content, Data, DataFrag, Echo, Gap, GroupInfo, Header, Heartbeat, HeartbeatFrag, LocatorList,
    Lost, LostFrag, NackFrag, Submessage,
};

/// Why bytes are not a valid message, list or value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireError {
    /// Position of the offending byte from the start of the parsed bytes (the datagram, or the discovery payload).
    pub offset: usize,
    /// The content that the format requires at that position.
    pub expected: &'static str,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}", self.offset, self.expected)
    }
}

impl std::error::Error for WireError {}

/// Byte order of a submessage or of an encapsulated payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endianness {
    /// Most significant byte first.
    Big,
    /// Least significant byte first; what Thalweg writes.
    Little,
}

/// Submessage ids (RTPS 2.5 §9.4.5.1.1); ids from 0x80 on belong to vendors.
mod id {
    pub const PAD: u8 = 0x01;
    pub const ACKNACK: u8 = 0x06;
    pub const HEARTBEAT: u8 = 0x07;
    pub const GAP: u8 = 0x08;
    pub const INFO_TS: u8 = 0x09;
    pub const INFO_SRC: u8 = 0x0c;
    pub const INFO_REPLY_IP4: u8 = 0x0d;
    pub const INFO_DST: u8 = 0x0e;
    pub const INFO_REPLY: u8 = 0x0f;
    pub const NACK_FRAG: u8 = 0x12;
    pub const HEARTBEAT_FRAG: u8 = 0x13;
    pub const DATA: u8 = 0x15;
    pub const DATA_FRAG: u8 = 0x16;
    /// RTI's, as the two that follow.
    pub const ACKNACK_BATCH: u8 = 0x17;
    pub const DATA_BATCH: u8 = 0x18;
    pub const HEARTBEAT_BATCH: u8 = 0x19;
    /// Thalweg's own, as the two that follow: other vendors mean something else by them.
    pub const LOST: u8 = 0xf1;
    pub const LOST_FRAG: u8 = 0xf2;
    pub const ECHO: u8 = 0xf3;
}

/// Submessage flags (RTPS 2.5 §9.4.5); a bit means something else in each submessage.
mod flag {
    /// E, in every submessage: the integers are little endian.
    pub const LITTLE_ENDIAN: u8 = 0x01;
    /// Q: DATA and DATA_FRAG carry inline QoS.
    pub const INLINE_QOS: u8 = 0x02;
    /// D: the payload of DATA is a sample.
    pub const DATA: u8 = 0x04;
    /// K: the payload of DATA is a key.
    pub const DATA_KEY: u8 = 0x08;
    /// K: the payload of DATA_FRAG is a key.
    pub const FRAG_KEY: u8 = 0x04;
    /// F: HEARTBEAT and ACKNACK ask for no answer.
    pub const FINAL: u8 = 0x02;
    /// L: HEARTBEAT asserts the writer's liveliness.
    pub const LIVELINESS: u8 = 0x04;
    /// G: HEARTBEAT tells of the writer's publisher.
    pub const GROUP_INFO: u8 = 0x08;
    /// I: INFO_TS carries no time and takes the last one back.
    pub const INVALIDATE: u8 = 0x02;
    /// R: of the fragments beyond the last one that LOST_FRAG names, none has come.
    pub const REST: u8 = 0x02;
    /// P: ECHO names a HEARTBEAT_FRAG.
    pub const PARTS: u8 = 0x02;
    /// M: INFO_REPLY carries multicast locators as well.
    pub const MULTICAST: u8 = 0x02;
}

/// The first four bytes of every message.
const MAGIC: [u8; 4] = *b"RTPS";

#[cfg(test)]
pub(crate) mod tests;
