//! Takes datagrams from the kernel into pooled buffers, and waits when there are none.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use thalweg_base::payload::{Payload, PayloadPool, SlabPool};
use thalweg_base::time::Instant;

use super::counters::{ReceiveCounters, ReceiveCounts, bump};
use super::open::join_all;
use super::socket::UdpSocket;
use super::{Notice, Sender, UdpConfig, Waker};
use crate::interfaces::{self, Interface, InterfaceSelection};
use crate::sys::interfaces::Watcher;
use crate::sys::poll::{EVENTS_MAX, Epoll, EventFd, Ready, Timer};
use crate::sys::receive::{Armed, Arrival, ReceiveSlots, take_error};

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
/// Messages in one call that suggest a stream.
const BURST: usize = 3;
/// Most questions in vain before a socket's traffic no longer counts as a stream.
const CREDIT_MAX: u32 = 4;
/// Entries taken from an error queue at a time; the rest waits for the next turn.
const ERRORS_MAX: usize = 64;
/// Polls after which a socket without datagrams is asked only when epoll names it: about a millisecond's worth.
const IDLE_POLLS_MAX: u32 = 4096;
/// Tokens of descriptors that are not UDP sockets.
const WAKE_TOKEN: u64 = u64::MAX;
const WATCH_TOKEN: u64 = u64::MAX - 1;
const TIMER_TOKEN: u64 = u64::MAX - 2;

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

/// Why [`Receiver::wait`] returned; all false when its time had passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakeup {
    /// [`Receiver::receive`] will find something.
    pub readable: bool,
    /// A [`Waker`](super::Waker) was used.
    pub woken: bool,
    /// A link or an address changed: call [`Receiver::refresh_interfaces`].
    pub interfaces_changed: bool,
}

/// The receiving side of one participant's sockets; belongs to one thread.
pub struct Receiver {
    sockets: Vec<Listening>,
    epoll: Epoll,
    timer: Arc<Timer>,
    watcher: Option<Watcher>,
    wake: Arc<EventFd>,
    slots: ReceiveSlots,
    armed: Vec<Armed>,
    /// Number of messages that the next call asks for.
    ask: usize,
    slabs: SlabPool,
    copies: PayloadPool,
    selection: InterfaceSelection,
    /// Indices of the interfaces in use, unless all are.
    accepted: Option<Vec<u32>>,
    counters: Arc<ReceiveCounters>,
}

/// A socket and the state of its queue.
struct Listening {
    socket: Arc<UdpSocket>,
    /// It receives discovery alone: bursts when many participants start, which are not worth buffers that stay.
    discovers: bool,
    /// Something may be queued: told by epoll, or guessed because traffic flows.
    ready: bool,
    /// Datagrams its full buffer has refused so far.
    kernel_drops: u32,
    /// It is read although the poller reported nothing.
    speculative: bool,
    /// Number of such reads in a row that may find nothing; successful ones raise it.
    credit: u32,
    /// Polls since the last datagram.
    idle_polls: u32,
}

impl Receiver {
    pub(super) fn new(
        sockets: Vec<Arc<UdpSocket>>,
        watcher: Option<Watcher>,
        wake: EventFd,
        config: &UdpConfig,
        interfaces: &[Interface],
        discovery_ports: &[u16],
    ) -> io::Result<Receiver> {
        let epoll = Epoll::new()?;
        for (token, socket) in sockets.iter().enumerate() {
            epoll.add(socket.as_fd(), token as u64)?;
        }
        epoll.add(wake.as_fd(), WAKE_TOKEN)?;
        let timer = Arc::new(Timer::new()?);
        epoll.add(timer.as_fd(), TIMER_TOKEN)?;
        if let Some(watcher) = &watcher {
            epoll.add(watcher.as_fd(), WATCH_TOKEN)?;
        }
        let listening = |socket: Arc<UdpSocket>| Listening {
            discovers: discovery_ports.contains(&socket.port()),
            socket,
            ready: true,
            kernel_drops: 0,
            speculative: false,
            credit: 0,
            idle_polls: IDLE_POLLS_MAX,
        };
        let mut receiver = Receiver {
            sockets: sockets.into_iter().map(listening).collect(),
            epoll,
            timer,
            watcher,
            wake: Arc::new(wake),
            slots: ReceiveSlots::new(MESSAGES_MAX),
            armed: Vec::with_capacity(MESSAGES_MAX),
            ask: MESSAGES_MIN,
            slabs: SlabPool::new(SLAB_BYTES, SLABS_MAX),
            copies: PayloadPool::new(COPY_POOL_BYTES),
            selection: config.interfaces.clone(),
            accepted: None,
            counters: Arc::default(),
        };
        receiver.accept_only(interfaces);
        Ok(receiver)
    }

    /// Waits until a socket has datagrams, a waker is used or `deadline` has come, or for no reason at all: an earlier
    /// deadline's timer is left running rather than set anew. One system call, two when the deadline is the earliest so far.
    ///
    /// # Errors
    /// Only when epoll or the timer fails, which no retry will mend.
    pub fn wait_until(&mut self, deadline: Instant) -> io::Result<Wakeup> {
        if deadline != Instant::NEVER {
            self.timer.fire_by(deadline.as_nanos())?;
        }
        self.wait(None)
    }

    /// Waits until a socket has datagrams, a waker is used or `timeout` has passed (`None`: for ever). One system call.
    ///
    /// # Errors
    /// Only when epoll itself fails, which no retry will mend.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Wakeup> {
        let mut ready = [Ready::default(); EVENTS_MAX];
        bump(&self.counters.waits, 1);
        let count = self.epoll.wait(timeout, &mut ready)?;
        let mut wakeup = Wakeup::default();
        for event in &ready[..count] {
            match event.token {
                WAKE_TOKEN => wakeup.woken = true,
                TIMER_TOKEN => self.timer.has_fired(),
                WATCH_TOKEN => {
                    self.watcher.iter().for_each(Watcher::drain);
                    wakeup.interfaces_changed = true;
                }
                token => {
                    let Some(listening) = self.sockets.get_mut(token as usize) else { continue };
                    if event.failed {
                        drain_errors(&listening.socket, &self.counters);
                    }
                    listening.ready |= event.readable;
                    wakeup.readable |= event.readable;
                }
            }
        }
        Ok(wakeup)
    }

    /// Appends arrived datagrams to `into` without waiting, at most 32 messages a socket; returns their number.
    ///
    /// After a return of zero nothing is queued, and [`Receiver::wait`] is due. Asks only sockets that have something, as
    /// the last wait told or the traffic of the last call suggests.
    pub fn receive(&mut self, into: &mut Vec<Datagram>) -> usize {
        let before = into.len();
        for index in 0..self.sockets.len() {
            if self.sockets[index].ready {
                self.receive_from(index, into);
            }
        }
        let received = into.len() - before;
        bump(&self.counters.datagrams, received);
        received
    }

    /// Like [`Receiver::receive`] for a thread that polls instead of waiting: also asks sockets that had datagrams
    /// lately. Others are only asked after [`Receiver::wait`], which such a thread calls without time every now and then.
    pub fn receive_polling(&mut self, into: &mut Vec<Datagram>) -> usize {
        for listening in &mut self.sockets {
            listening.idle_polls = listening.idle_polls.saturating_add(1);
            listening.ready |= listening.idle_polls < IDLE_POLLS_MAX;
        }
        self.receive(into)
    }

    /// Ends this receiver's wait from other threads.
    pub fn waker(&self) -> Waker {
        Waker { event: Arc::clone(&self.wake), timer: Arc::clone(&self.timer) }
    }

    /// Lists the interfaces anew after a change, joins the groups on new ones and lets `sender` use them.
    ///
    /// # Errors
    /// When they cannot be listed; everything then stays as it was.
    pub fn refresh_interfaces(&mut self, sender: &Sender) -> io::Result<(Vec<Interface>, Vec<Notice>)> {
        let interfaces = interfaces::enumerate(&self.selection)?;
        let mut notices = Vec::new();
        for listening in self.sockets.iter().filter(|listening| listening.socket.is_shared()) {
            join_all(&listening.socket, &interfaces, &mut notices);
        }
        self.accept_only(&interfaces);
        sender.set_interfaces(&interfaces);
        Ok((interfaces, notices))
    }

    /// Counts of received datagrams since the sockets were opened.
    pub fn counts(&self) -> ReceiveCounts {
        self.counters.read()
    }

    /// A reader of the counters for other threads.
    pub fn counter_reader(&self) -> impl Fn() -> ReceiveCounts + Send + Sync + use<> {
        let counters = Arc::clone(&self.counters);
        move || counters.read()
    }

    fn accept_only(&mut self, interfaces: &[Interface]) {
        let indices = || interfaces.iter().map(|interface| interface.index).collect();
        self.accepted = (!self.selection.is_everything()).then(indices);
    }

    fn receive_from(&mut self, index: usize, into: &mut Vec<Datagram>) {
        let ask = if self.sockets[index].discovers { MESSAGES_MIN } else { self.ask };
        for _ in 0..ERRORS_MAX {
            self.arm(ask);
            let listening = &mut self.sockets[index];
            bump(&self.counters.calls, 1);
            match self.slots.receive(listening.socket.as_fd(), &mut self.armed[..ask]) {
                Ok(count) => return self.accept_all(index, (count, ask), into),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // News of a datagram sent earlier: the queue behind it is still to be read.
                Err(_) => drain_errors(&listening.socket, &self.counters),
            }
        }
        bump(&self.counters.empty_calls, 1);
        let listening = &mut self.sockets[index];
        if listening.speculative {
            listening.credit = listening.credit.saturating_sub(1);
        }
        listening.speculative = false;
        listening.ready = false;
    }

    fn accept_all(&mut self, index: usize, (count, ask): (usize, usize), into: &mut Vec<Datagram>) {
        let before = into.len();
        (0..count).for_each(|slot| self.accept(index, slot, into));
        let bytes = into[before..].iter().map(|datagram| datagram.payload.len()).sum();
        let listening = &mut self.sockets[index];
        if listening.speculative {
            listening.credit = (listening.credit + 1).min(CREDIT_MAX);
        } else if count >= BURST {
            listening.credit = listening.credit.max(1);
        }
        // A full call has left something behind. Otherwise, where traffic flows, more is there by the time this is
        // processed, and asking is cheaper than waiting first.
        listening.speculative = count < ask;
        listening.ready = count == ask || listening.credit > 0;
        listening.idle_polls = 0;
        if !listening.discovers {
            self.adapt(count, bytes);
        }
    }

    /// Makes sure that there is a buffer for each message asked for.
    fn arm(&mut self, ask: usize) {
        while self.armed.len() < ask {
            self.armed.push(Armed::new(self.slabs.take_full()));
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

    /// Turns the message in `slot` into datagrams.
    fn accept(&mut self, index: usize, slot: usize, into: &mut Vec<Datagram>) {
        let Arrival { bytes, source, truncated, control } = self.slots.arrival(slot);
        let listening = &mut self.sockets[index];
        if let Some(drops) = control.kernel_drops {
            let new = drops.wrapping_sub(listening.kernel_drops);
            listening.kernel_drops = drops;
            bump(&self.counters.kernel_drops, new as usize);
        }
        if truncated {
            return bump(&self.counters.truncated, 1);
        }
        if self.accepted.as_ref().is_some_and(|accepted| !accepted.contains(&control.interface)) {
            return bump(&self.counters.foreign_interface, 1);
        }
        let Some(source) = source else { return };
        bump(&self.counters.bytes, bytes);
        let segment = control.segment_bytes.unwrap_or(bytes);
        bump(&self.counters.joined_messages, usize::from(segment < bytes));
        let message = self.payload_of(slot, bytes);
        for start in (0..bytes).step_by(segment.max(1)) {
            let payload = message.slice(start..(start + segment).min(bytes));
            let (interface, destination) = (control.interface, control.destination);
            into.push(Datagram { payload, source, interface, destination });
        }
    }

    /// The first `bytes` of the buffer in `slot`: a small message as a copy, a large one as the buffer itself.
    fn payload_of(&mut self, slot: usize, bytes: usize) -> Payload {
        if bytes <= COPY_MAX_BYTES {
            return self.copies.copy(&self.armed[slot].bytes()[..bytes]);
        }
        let fresh = Armed::new(self.slabs.take_full());
        let filled = std::mem::replace(&mut self.armed[slot], fresh).release();
        self.slabs.remember(&filled);
        Payload::new(filled).slice(0..bytes)
    }
}

/// Takes what earlier sends provoked, so that it does not make later ones fail.
fn drain_errors(socket: &UdpSocket, counters: &ReceiveCounters) {
    let errors = (0..ERRORS_MAX).map_while(|_| take_error(socket.as_fd()));
    let errors = errors.inspect(|error| socket.note_error(error)).count();
    bump(&counters.asynchronous_errors, errors);
}
