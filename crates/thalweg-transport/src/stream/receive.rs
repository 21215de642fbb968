//! Taking a stream in: joined datagrams in buffers that are read where they lie.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use thalweg_base::time::Instant;

use super::StreamSocket;
use crate::clock;
use crate::counters::ReceiveCounts;
use crate::intake::{Guessing, Intake, Message, Waker, Wakeup};

/// Receives from some sockets, and waits for them; belongs to one thread.
pub struct StreamReceiver {
    intake: Intake,
    /// The socket that the last call asked, and the messages of it that nobody has looked at yet.
    place: usize,
    arrivals: Range<usize>,
    /// What the two clocks showed when the last call returned.
    now: Instant,
    wall: Duration,
}

/// One received message: datagrams of one sender that the kernel joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamArrival<'a> {
    /// The datagrams, one behind the other.
    pub bytes: &'a [u8],
    /// Length of each datagram but the last, which may be shorter.
    pub segment_bytes: usize,
    /// The source address.
    pub source: SocketAddr,
    /// The destination address; known for sockets that are bound to every address.
    pub destination: Option<IpAddr>,
    /// Messages that the socket's full receive buffer has refused since the message before. The kernel counts one that it had joined
    /// once, whatever it held: only sequence numbers tell how many datagrams are missing.
    pub kernel_drops: u32,
    /// When the kernel took the first datagram from the device, or when it was received where the kernel did not tell.
    pub arrived: Instant,
}

impl<'a> StreamArrival<'a> {
    /// The datagrams in the order of their arrival.
    pub fn datagrams(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        self.bytes.chunks(self.segment_bytes.max(1))
    }
}

impl StreamReceiver {
    /// Receives from `sockets`, in whose order other calls name them by their place.
    ///
    /// # Errors
    /// When the process may open no more descriptors.
    pub fn new(sockets: &[&StreamSocket]) -> io::Result<StreamReceiver> {
        let sockets = sockets.iter().map(|socket| Arc::clone(&socket.socket)).collect();
        let mut intake = Intake::new(sockets, None, MESSAGES_MAX, Guessing::Never)?;
        intake.arm(MESSAGES_MAX, || Arc::new(vec![0; MESSAGE_BYTES]));
        Ok(StreamReceiver { intake, place: 0, arrivals: 0..0, now: Instant::ZERO, wall: Duration::ZERO })
    }

    /// Ends a [`StreamReceiver::wait_until`] from other threads.
    pub fn waker(&self) -> Waker {
        self.intake.waker()
    }

    /// What was received since the sockets were opened.
    pub fn counts(&self) -> ReceiveCounts {
        self.intake.counts()
    }

    /// Waits until datagrams arrive, a waker is used or `deadline` has come, or for no reason at all. Each arrival is told once:
    /// whoever is told receives until [`StreamReceiver::is_ready`] says no. One system call, two when the deadline is the earliest so
    /// far.
    ///
    /// # Errors
    /// Only when epoll or the timer fails, which no retry will mend.
    pub fn wait_until(&mut self, deadline: Instant) -> io::Result<Wakeup> {
        self.intake.wait_until(deadline)
    }

    /// Whether asking the socket at `place` is worth a system call: the last wait told so, or the last call came back full.
    #[inline]
    pub fn is_ready(&self, place: usize) -> bool {
        self.intake.is_ready(place)
    }

    /// Takes what is queued at the socket at `place`, at most eight messages, without waiting; returns how many came.
    /// [`StreamReceiver::next_arrival`] has them.
    ///
    /// # Errors
    /// The system's error, an empty queue excepted.
    pub fn receive(&mut self, place: usize) -> io::Result<usize> {
        self.arrivals = 0..0;
        let count = self.intake.receive(place, MESSAGES_MAX)?;
        (self.place, self.arrivals) = (place, 0..count);
        if count > 0 {
            (self.now, self.wall) = (clock::now(), clock::wall_clock_since_epoch());
        }
        Ok(count)
    }

    /// The next message of the last call, in the order of arrival.
    #[inline]
    pub fn next_arrival(&mut self) -> Option<StreamArrival<'_>> {
        for slot in self.arrivals.by_ref() {
            let Some(message) = self.intake.take_message(self.place, slot) else { continue };
            let Message { bytes, segment_bytes, source, destination, kernel_drops, kernel_time, .. } = message;
            let arrived = kernel_time.map_or(self.now, |told| self.now - age(self.wall, told));
            let bytes = &self.intake.buffer(slot)[..bytes];
            return Some(StreamArrival { bytes, segment_bytes, source, destination, kernel_drops, arrived });
        }
        None
    }
}

/// How long ago the wall clock showed `told`; zero where the clock was set in between.
pub(super) fn age(wall: Duration, told: Duration) -> Duration {
    let age = wall.saturating_sub(told);
    if age > AGE_MAX { Duration::ZERO } else { age }
}

/// Messages of one call: half a megabyte of buffers, which stays in the cache of a processor.
const MESSAGES_MAX: usize = 8;
/// The most that the kernel joins, and the largest datagram.
const MESSAGE_BYTES: usize = 65_536;
/// Nothing waits in a receive buffer for longer while somebody receives; an older time tells of a clock that was set.
const AGE_MAX: Duration = Duration::from_secs(10);
