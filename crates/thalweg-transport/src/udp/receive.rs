//! What a participant receives: datagrams in pooled buffers that its readers may keep.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use thalweg_base::payload::{Payload, PayloadPool, SlabPool};
use thalweg_base::time::Instant;

use super::open::join_all;
use super::{Notice, Sender, UdpConfig};
use crate::counters::ReceiveCounts;
use crate::intake::{Guessing, Intake, Message, Waker, Wakeup};
use crate::interfaces::{self, Interface, InterfaceSelection};
use crate::socket::UdpSocket;
use crate::sys::interfaces::Watcher;

/// Size of a receive buffer: the largest UDP datagram, and the most that GRO joins.
const SLAB_BYTES: usize = 65_536;
/// Free buffers remembered for reuse: 16 MiB, three samples of 5 MB under way.
const SLABS_MAX: usize = 256;
/// Messages of up to this size are copied into a buffer of their own size, so that a held sample of 1 KiB does not
/// keep 64 KiB alive; the copy costs about 0.1 µs of the 4 µs that receiving it costs.
const COPY_MAX_BYTES: usize = 8 << 10;
/// Bytes that the pool of these copies keeps in each size class.
const COPY_POOL_BYTES: usize = 2 << 20;
/// Messages asked for by one system call: at first, always of sockets of discovery, and when there is always more.
const MESSAGES_MIN: usize = 4;
const MESSAGES_MAX: usize = 32;
/// Bytes of one call beyond which it asks for no more messages: the next message to process should still be in the cache of
/// the processor when its turn comes, and large messages make the cost of a call disappear anyway.
const CALL_BYTES: usize = 256 << 10;

/// One received datagram.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Its bytes, shared with its neighbours of the same buffer.
    pub payload: Payload,
    /// The source address.
    pub source: SocketAddr,
    /// The interface it came in on; 0 when the kernel did not tell.
    pub interface: u32,
    /// The address it was sent to; tells multicast from unicast.
    pub destination: Option<IpAddr>,
}

/// The receiving side of one participant's sockets; belongs to one thread.
pub struct Receiver {
    intake: Intake,
    /// For each socket, whether it receives discovery alone: bursts when many participants start, which are not worth buffers that
    /// stay.
    discovers: Vec<bool>,
    /// Number of messages that the next call asks for.
    ask: usize,
    /// The last call threw away all that it took, and more is queued: epoll does not tell of that again.
    left_behind: bool,
    slabs: SlabPool,
    copies: PayloadPool,
    selection: InterfaceSelection,
    /// Indices of the interfaces where groups were joined.
    joined: Vec<u32>,
}

impl Receiver {
    pub(super) fn new(
        sockets: Vec<Arc<UdpSocket>>,
        watcher: Option<Watcher>,
        config: &UdpConfig,
        interfaces: &[Interface],
        discovery_ports: &[u16],
    ) -> io::Result<Receiver> {
        let mut receiver = Receiver {
            discovers: sockets.iter().map(|socket| discovery_ports.contains(&socket.port())).collect(),
            intake: Intake::new(sockets, watcher, MESSAGES_MAX, Guessing::Allowed)?,
            ask: MESSAGES_MIN,
            left_behind: false,
            slabs: SlabPool::new(SLAB_BYTES, SLABS_MAX),
            copies: PayloadPool::new(COPY_POOL_BYTES),
            selection: config.interfaces.clone(),
            joined: indices(interfaces),
        };
        receiver.accept_only(interfaces);
        Ok(receiver)
    }

    /// Waits until a socket has datagrams, a waker is used or `deadline` has come, or for no reason at all: an earlier
    /// deadline's timer is left running rather than set anew. One system call, two when the deadline is the earliest so far. Does not
    /// wait where the last [`Receiver::receive`] returned zero because it threw away what it took, and may have left something behind.
    ///
    /// # Errors
    /// Only when epoll or the timer fails, which no retry will mend.
    pub fn wait_until(&mut self, deadline: Instant) -> io::Result<Wakeup> {
        if self.left_behind { self.look_around() } else { self.intake.wait_until(deadline) }
    }

    /// Waits until a socket has datagrams, a waker is used or `timeout` has passed (`None`: for ever). One system call. Does not wait
    /// where the last [`Receiver::receive`] returned zero because it threw away what it took, and may have left something behind.
    ///
    /// # Errors
    /// Only when epoll itself fails, which no retry will mend.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Wakeup> {
        if self.left_behind { self.look_around() } else { self.intake.wait(timeout) }
    }

    /// Takes the news of all sockets without waiting for any.
    fn look_around(&mut self) -> io::Result<Wakeup> {
        let wakeup = self.intake.wait(Some(Duration::ZERO))?;
        Ok(Wakeup { readable: true, ..wakeup })
    }

    /// Appends arrived datagrams to `into` without waiting, at most 32 messages a socket; returns their number.
    ///
    /// After a return of zero [`Receiver::wait`] is due. Asks only sockets that have something, as the last wait told or the traffic
    /// of the last call suggests: while one always has more, what comes in by another is found after a wait alone.
    pub fn receive(&mut self, into: &mut Vec<Datagram>) -> usize {
        let before = into.len();
        for place in 0..self.discovers.len() {
            if self.intake.is_ready(place) {
                self.receive_from(place, into);
            }
        }
        let received = into.len() - before;
        self.left_behind = received == 0 && (0..self.discovers.len()).any(|place| self.intake.is_ready(place));
        received
    }

    /// Like [`Receiver::receive`] for a thread that polls instead of waiting: also asks sockets that had datagrams
    /// lately. Others are only asked after [`Receiver::wait`], which such a thread calls without time every now and then.
    pub fn receive_polling(&mut self, into: &mut Vec<Datagram>) -> usize {
        self.intake.mark_polled();
        self.receive(into)
    }

    /// Ends this receiver's wait from other threads.
    pub fn waker(&self) -> Waker {
        self.intake.waker()
    }

    /// Lists the interfaces anew after a change, leaves the groups on those that are gone, joins them on new ones and lets `sender` use
    /// them.
    ///
    /// # Errors
    /// When they cannot be listed; everything then stays as it was.
    pub fn refresh_interfaces(&mut self, sender: &Sender) -> io::Result<(Vec<Interface>, Vec<Notice>)> {
        let interfaces = interfaces::enumerate(&self.selection)?;
        let (mut notices, present) = (Vec::new(), indices(&interfaces));
        for socket in self.intake.sockets().filter(|socket| socket.is_shared()) {
            self.joined.iter().filter(|index| !present.contains(index)).for_each(|gone| socket.leave_discovery(*gone));
            join_all(socket, &interfaces, &mut notices);
        }
        self.joined = present;
        self.accept_only(&interfaces);
        sender.set_interfaces(&interfaces);
        Ok((interfaces, notices))
    }

    /// Counts of received datagrams since the sockets were opened.
    pub fn counts(&self) -> ReceiveCounts {
        self.intake.counts()
    }

    /// A reader of the counters for other threads.
    pub fn counter_reader(&self) -> impl Fn() -> ReceiveCounts + Send + Sync + use<> {
        let counters = Arc::clone(self.intake.counters());
        move || counters.read()
    }

    fn accept_only(&mut self, interfaces: &[Interface]) {
        let present = || indices(interfaces);
        self.intake.hear_only((!self.selection.is_everything()).then(present));
    }

    fn receive_from(&mut self, place: usize, into: &mut Vec<Datagram>) {
        let ask = if self.discovers[place] { MESSAGES_MIN } else { self.ask };
        self.intake.arm(ask, || self.slabs.take_full());
        // A socket that only fails has nothing to hand over; the other ones have.
        let count = self.intake.receive(place, ask).unwrap_or_default();
        let mut bytes = 0;
        for slot in 0..count {
            bytes += self.accept(place, slot, into);
        }
        if count > 0 && !self.discovers[place] {
            self.adapt(count, bytes);
        }
    }

    /// Asks for more messages a call while calls come back full of small ones, for fewer when they do not.
    fn adapt(&mut self, count: usize, bytes: usize) {
        if count == self.ask && bytes < CALL_BYTES / 2 {
            self.ask = (self.ask * 2).min(MESSAGES_MAX);
        } else if count * 4 < self.ask || bytes > CALL_BYTES {
            self.ask = (self.ask - 1).max(MESSAGES_MIN);
        }
    }

    /// Turns the message in `slot` into datagrams; returns their bytes.
    fn accept(&mut self, place: usize, slot: usize, into: &mut Vec<Datagram>) -> usize {
        let Some(message) = self.intake.take_message(place, slot) else { return 0 };
        let Message { bytes, source, destination, interface, .. } = message;
        let payload = self.payload_of(slot, bytes);
        into.extend(message.datagrams().map(|range| Datagram {
            payload: payload.slice(range),
            source,
            interface,
            destination,
        }));
        bytes
    }

    /// The first `bytes` of the buffer in `slot`: a small message as a copy, a large one as the buffer itself.
    fn payload_of(&mut self, slot: usize, bytes: usize) -> Payload {
        if bytes <= COPY_MAX_BYTES {
            return self.copies.copy(&self.intake.buffer(slot)[..bytes]);
        }
        let filled = self.intake.replace(slot, self.slabs.take_full());
        self.slabs.remember(&filled);
        Payload::new(filled).slice(0..bytes)
    }
}

fn indices(interfaces: &[Interface]) -> Vec<u32> {
    interfaces.iter().map(|interface| interface.index).collect()
}
