//! What stands in a datagram, what a receiver counts of a stream, and when a sender's messages are due: without I/O or a clock.

mod arrivals;
mod datagram;
mod schedule;

pub use arrivals::{ArrivalCounts, Arrivals, WINDOW};
pub use datagram::{DatagramHeader, HEADER_BYTES};
pub use schedule::{BURST_TIME, MESSAGES_MAX, SendSchedule};

#[cfg(test)]
mod tests;
