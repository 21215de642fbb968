//! The kernel's side of a process: a receive buffer of so many bytes, emptied as fast as the processor allows.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use thalweg_rtps::payload::Payload;
use thalweg_rtps::time::Instant;

/// A datagram on its way to a process.
#[derive(Clone, Debug)]
pub struct DatagramInTransit {
    /// Its source address.
    pub source: SocketAddr,
    /// Its bytes, shared by all receivers.
    pub bytes: Payload,
}

/// Bytes that the kernel charges for a datagram beside its payload.
const OVERHEAD_BYTES: usize = 512;

/// Receive buffer and processor of one process.
#[derive(Debug)]
pub struct Inbox {
    waiting: VecDeque<DatagramInTransit>,
    waiting_bytes: usize,
    bytes_max: usize,
    cost: Duration,
    free_at: Instant,
    dropped: u64,
}

impl Inbox {
    /// An empty buffer of `bytes_max` bytes; each datagram takes the processor for `cost`.
    pub fn new(bytes_max: usize, cost: Duration) -> Inbox {
        Inbox { waiting: VecDeque::new(), waiting_bytes: 0, bytes_max, cost, free_at: Instant::ZERO, dropped: 0 }
    }

    /// Puts a datagram into the buffer, or drops it when that is full. Returns when the processor will be done with
    /// receiving it, if nothing else was waiting: call [`Inbox::take`] then.
    pub fn put(&mut self, now: Instant, datagram: DatagramInTransit) -> Result<Option<Instant>, DatagramInTransit> {
        let charged = datagram.bytes.len() + OVERHEAD_BYTES;
        if self.waiting_bytes + charged > self.bytes_max {
            self.dropped += 1;
            return Err(datagram);
        }
        self.waiting_bytes += charged;
        self.waiting.push_back(datagram);
        let first = self.waiting.len() == 1;
        Ok(first.then(|| self.free_at.max(now) + self.cost))
    }

    /// Removes the next datagram; also returns when the one behind it will be due, if there is one.
    pub fn take(&mut self, now: Instant) -> Option<(DatagramInTransit, Option<Instant>)> {
        let datagram = self.waiting.pop_front()?;
        self.waiting_bytes -= datagram.bytes.len() + OVERHEAD_BYTES;
        self.free_at = now;
        let next = (!self.waiting.is_empty()).then(|| now + self.cost);
        Some((datagram, next))
    }

    /// Datagrams that met a full buffer.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(bytes: usize) -> DatagramInTransit {
        DatagramInTransit { source: "10.0.0.1:7411".parse().unwrap(), bytes: Payload::from(vec![0; bytes]) }
    }

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn datagrams_are_received_one_after_the_other() {
        let mut inbox = Inbox::new(10_000, Duration::from_nanos(10));
        assert_eq!(inbox.put(at(100), datagram(1)).unwrap(), Some(at(110)));
        assert_eq!(inbox.put(at(105), datagram(2)).unwrap(), None);
        let (first, next) = inbox.take(at(110)).unwrap();
        assert_eq!((first.bytes.len(), next), (1, Some(at(120))));
        let (second, next) = inbox.take(at(120)).unwrap();
        assert_eq!((second.bytes.len(), next), (2, None));
        assert_eq!(inbox.put(at(121), datagram(3)).unwrap(), Some(at(131)));
        assert_eq!(inbox.put(at(500), datagram(3)).unwrap(), None);
    }

    #[test]
    fn a_full_buffer_drops() {
        let mut inbox = Inbox::new(2 * (1000 + OVERHEAD_BYTES), Duration::ZERO);
        assert!(inbox.put(at(0), datagram(1000)).is_ok());
        assert!(inbox.put(at(0), datagram(1000)).is_ok());
        assert!(inbox.put(at(0), datagram(1)).is_err());
        assert_eq!(inbox.dropped(), 1);
        inbox.take(at(0));
        assert!(inbox.put(at(0), datagram(1)).is_ok());
    }
}
