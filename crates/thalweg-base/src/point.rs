//! The trace points on a sample's way.

/// A point on a sample's way; in the order of the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// `write` was called.
    WriteEnter,
    /// The sample is serialized.
    Serialized,
    /// It has its number and its place in the writer's history, after waiting for room.
    Stored,
    /// This thread sends for the writer, or its flow controller granted tokens.
    TokenGranted,
    /// It lies in datagrams.
    Packed,
    /// The system call that sends them begins; of several the first one.
    SendEnter,
    /// The system call is done; of several the last one.
    SendExit,
    /// The system call that received it, or the last of its fragments, is done.
    Received,
    /// Its datagram is taken apart.
    Parsed,
    /// All its fragments are there; samples of one datagram never pass this.
    Reassembled,
    /// All samples before it were delivered.
    Ordered,
    /// It can be taken.
    Cached,
    /// Listeners and waiting threads are about to be told.
    Notified,
    /// The application has it.
    Taken,
}

impl Point {
    /// Every point, in the order of the way.
    pub const ALL: [Point; 14] = [
        Point::WriteEnter,
        Point::Serialized,
        Point::Stored,
        Point::TokenGranted,
        Point::Packed,
        Point::SendEnter,
        Point::SendExit,
        Point::Received,
        Point::Parsed,
        Point::Reassembled,
        Point::Ordered,
        Point::Cached,
        Point::Notified,
        Point::Taken,
    ];

    /// Its name, also that of its static probe (USDT, provider `thalweg`).
    pub fn name(self) -> &'static str {
        match self {
            Point::WriteEnter => "write_enter",
            Point::Serialized => "serialized",
            Point::Stored => "stored",
            Point::TokenGranted => "token_granted",
            Point::Packed => "packed",
            Point::SendEnter => "send_enter",
            Point::SendExit => "send_exit",
            Point::Received => "received",
            Point::Parsed => "parsed",
            Point::Reassembled => "reassembled",
            Point::Ordered => "ordered",
            Point::Cached => "cached",
            Point::Notified => "notified",
            Point::Taken => "taken",
        }
    }
}
