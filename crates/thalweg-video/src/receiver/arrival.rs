//! What a datagram was, and what became of it.

use crate::format::Field;

/// One of two paths of a stream (ST 2022-7); the first where there is only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkPath {
    /// The first path.
    First,
    /// The second path.
    Second,
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketArrival {
    /// It came in the stream, and its pixels are in their frame.
    Placed(PicturePlace),
    /// It was sent again in a stream of its own (RFC 4588), and its pixels are in their frame. Its time is not that of the stream.
    Repaired,
    /// It came before.
    Duplicate,
    /// Its frame is gone.
    Late,
    /// It counts, and its place is not known yet.
    Unplaced,
    /// It is not of this stream; see [`RefusalCounters`](super::RefusalCounters). One of another source that goes on where the stream ends
    /// is kept, and taken once the sender has [left](super::VideoReceiver::handle_departure).
    Refused,
}

/// Where a packet belongs, as measurements of jitter need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PicturePlace {
    /// The time stamp of the packet.
    pub timestamp: u32,
    /// The field of its first piece.
    pub field: Field,
    /// The octets of the frame that are sent before it with the same time stamp, in the order of the scan.
    pub octets_before: usize,
}
