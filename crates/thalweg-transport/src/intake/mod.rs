//! The one way in, for the sockets of a participant and for batch sockets: what is queued is taken by the batch, counted and looked at
//! in the same way, and one wait tells where more is.
//!
//! What differs is left to the owner: a participant fills pooled buffers that its readers keep ([`crate::udp`]), a batch socket reads
//! what arrived where it lies ([`crate::batch`]).

mod queue;
mod watch;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use thalweg_base::time::Instant;

use crate::counters::{ReceiveCounters, ReceiveCounts, bump};
use crate::socket::UdpSocket;
use crate::sys::control::Control;
use crate::sys::interfaces::Watcher;
use crate::sys::receive::{Armed, Arrival, ReceiveSlots, take_error};
use queue::Queue;
use watch::Watch;

pub(crate) use queue::Guessing;
pub use watch::{Waker, Wakeup};

/// Some sockets that one thread receives from, with the buffers that the kernel fills.
pub(crate) struct Intake {
    queues: Vec<Queue>,
    watch: Watch,
    slots: ReceiveSlots,
    buffers: Vec<Armed>,
    /// Indices of the interfaces that are heard, unless all are.
    heard: Option<Vec<u32>>,
    /// Addresses at which nobody listens, as hosts told since they were looked at; only where somebody looks.
    refusals: Option<Vec<SocketAddr>>,
    counters: Arc<ReceiveCounters>,
}

/// One received message: a datagram, or several of one sender that the kernel joined (GRO).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) bytes: usize,
    /// Length of each of its datagrams but the last, which may be shorter.
    pub(crate) segment_bytes: usize,
    pub(crate) source: SocketAddr,
    /// The address it was sent to, where the socket asks for that.
    pub(crate) destination: Option<IpAddr>,
    /// The interface it came in on; 0 when the kernel did not tell.
    pub(crate) interface: u32,
    /// Datagrams that this socket's full buffer or its filter refused since the message before.
    pub(crate) kernel_drops: u32,
    /// Wall-clock time since 1970 at which the kernel took it from the device, where the socket asks for that.
    pub(crate) kernel_time: Option<Duration>,
}

impl Message {
    /// Where its datagrams lie.
    pub(crate) fn datagrams(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let Message { bytes, segment_bytes, .. } = *self;
        (0..bytes).step_by(segment_bytes.max(1)).map(move |start| start..(start + segment_bytes).min(bytes))
    }
}

impl Intake {
    /// An intake without buffers yet, for at most `messages_max` messages of one call.
    pub(crate) fn new(
        sockets: Vec<Arc<UdpSocket>>,
        interfaces: Option<Watcher>,
        messages_max: usize,
        guessing: Guessing,
    ) -> io::Result<Intake> {
        let watch = Watch::new(sockets.iter().map(|socket| &**socket), interfaces)?;
        Ok(Intake {
            queues: sockets.into_iter().map(|socket| Queue::new(socket, guessing)).collect(),
            watch,
            slots: ReceiveSlots::new(messages_max),
            buffers: Vec::with_capacity(messages_max),
            heard: None,
            refusals: None,
            counters: Arc::default(),
        })
    }

    /// Its sockets; the place of one among them is what other calls name it by.
    pub(crate) fn sockets(&self) -> impl ExactSizeIterator<Item = &UdpSocket> {
        self.queues.iter().map(|queue| &*queue.socket)
    }

    /// Throws away from now on what comes in by other interfaces than these; `None` throws nothing away.
    pub(crate) fn hear_only(&mut self, interfaces: Option<Vec<u32>>) {
        self.heard = interfaces;
    }

    /// Keeps from now on what hosts tell about ports at which nobody listens.
    pub(crate) fn keep_refusals(&mut self) {
        self.refusals = Some(Vec::new());
    }

    /// An address at which nobody listens.
    pub(crate) fn next_refusal(&mut self) -> Option<SocketAddr> {
        self.refusals.as_mut()?.pop()
    }

    pub(crate) fn waker(&self) -> Waker {
        self.watch.waker()
    }

    pub(crate) fn counts(&self) -> ReceiveCounts {
        self.counters.read()
    }

    pub(crate) fn counters(&self) -> &Arc<ReceiveCounters> {
        &self.counters
    }

    /// Waits until a socket has datagrams, a waker is used or `deadline` has come, or for no reason at all: an earlier
    /// deadline's timer is left running rather than set anew. One system call, two when the deadline is the earliest so far.
    /// Each arrival is told once: a socket that is told of is asked until a call comes back with room left.
    pub(crate) fn wait_until(&mut self, deadline: Instant) -> io::Result<Wakeup> {
        self.watch.fire_by(deadline)?;
        self.wait(None)
    }

    /// As [`Intake::wait_until`] for at most `timeout` (`None`: for ever). One system call.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Wakeup> {
        let Intake { queues, counters, refusals, .. } = self;
        bump(&counters.waits, 1);
        self.watch.wait(timeout, |place, event| {
            let Some(queue) = queues.get_mut(place) else { return };
            if event.failed {
                drain_errors(&queue.socket, counters, refusals);
            }
            if event.readable {
                queue.mark_ready();
            }
        })
    }

    /// Whether asking the socket at `place` is worth a system call: the last wait told so, the last call was full, or a guess.
    #[inline]
    pub(crate) fn is_ready(&self, place: usize) -> bool {
        self.queues[place].is_ready()
    }

    /// For a thread that polls instead of waiting: sockets that had datagrams lately count as ready.
    pub(crate) fn mark_polled(&mut self) {
        self.queues.iter_mut().for_each(Queue::mark_polled);
    }

    /// Makes sure that there are `count` buffers.
    pub(crate) fn arm(&mut self, count: usize, mut fresh: impl FnMut() -> Arc<Vec<u8>>) {
        while self.buffers.len() < count {
            self.buffers.push(Armed::new(fresh()));
        }
    }

    /// Asks the socket at `place` for up to `ask` messages without waiting; returns how many came. There must be as many buffers.
    ///
    /// News of what was sent earlier are taken from its error queue on the way.
    ///
    /// # Errors
    /// What the system says again and again, an empty queue excepted.
    pub(crate) fn receive(&mut self, place: usize, ask: usize) -> io::Result<usize> {
        let queue = &mut self.queues[place];
        let mut outcome = Ok(0);
        for _ in 0..ERRORS_MAX {
            bump(&self.counters.calls, 1);
            match self.slots.receive(queue.socket.as_fd(), &mut self.buffers[..ask]) {
                Ok(count) => {
                    queue.handle_messages(count, ask);
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    outcome = Ok(0);
                    break;
                }
                // News of a datagram sent earlier: the queue behind it is still to be read.
                Err(error) => {
                    drain_errors(&queue.socket, &self.counters, &mut self.refusals);
                    outcome = Err(error);
                }
            }
        }
        bump(&self.counters.empty_calls, 1);
        queue.handle_emptiness();
        outcome
    }

    /// What the last call, to the socket at `place`, stored in `slot`, to be asked for once; `None` for what is thrown away: it was
    /// longer than its buffer, or came by an interface that is not heard.
    #[inline]
    pub(crate) fn take_message(&mut self, place: usize, slot: usize) -> Option<Message> {
        let Arrival { bytes, source, truncated, control } = self.slots.arrival(slot);
        let queue = &mut self.queues[place];
        let kernel_drops = queue.count_drops(control.kernel_drops);
        if kernel_drops > 0 {
            // The kernel counts what a filter refuses among them.
            let is_filtered = queue.socket.is_filtered();
            let counter = if is_filtered { &self.counters.filtered } else { &self.counters.kernel_drops };
            bump(counter, kernel_drops as usize);
        }
        if truncated {
            bump(&self.counters.truncated, 1);
            return None;
        }
        if self.heard.as_ref().is_some_and(|heard| !heard.contains(&control.interface)) {
            bump(&self.counters.foreign_interface, 1);
            return None;
        }
        let (source, segment_bytes) = (source?, control.segment_bytes.unwrap_or(bytes));
        bump(&self.counters.bytes, bytes);
        bump(&self.counters.joined_messages, usize::from(segment_bytes < bytes));
        bump(&self.counters.datagrams, if segment_bytes < bytes { bytes.div_ceil(segment_bytes) } else { 1 });
        let Control { interface, destination, kernel_time, .. } = control;
        Some(Message { bytes, segment_bytes, source, destination, interface, kernel_drops, kernel_time })
    }

    /// Whence the last call brought a datagram to `slot` that was longer than its buffer, and to which address; `None` for others.
    pub(crate) fn oversized(&self, slot: usize) -> Option<(SocketAddr, Option<IpAddr>)> {
        let Arrival { source, truncated, control, .. } = self.slots.arrival(slot);
        source.filter(|_| truncated).map(|source| (source, control.destination))
    }

    /// What the kernel stored in `slot`, and what lay there before behind it.
    #[inline]
    pub(crate) fn buffer(&self, slot: usize) -> &[u8] {
        self.buffers[slot].bytes()
    }

    /// Takes the buffer of `slot` and puts `fresh` in its place.
    pub(crate) fn replace(&mut self, slot: usize, fresh: Arc<Vec<u8>>) -> Arc<Vec<u8>> {
        std::mem::replace(&mut self.buffers[slot], Armed::new(fresh)).release()
    }
}

/// Takes what earlier sends provoked, so that it does not make later ones fail.
fn drain_errors(socket: &UdpSocket, counters: &ReceiveCounters, refusals: &mut Option<Vec<SocketAddr>>) {
    let errors = (0..ERRORS_MAX).map_while(|_| take_error(socket.as_fd()));
    let errors = errors.inspect(|error| {
        socket.note_error(error);
        let refused = error.destination.filter(|_| error.errno == libc::ECONNREFUSED);
        if let Some((refusals, address)) = refusals.as_mut().zip(refused).filter(|(kept, _)| kept.len() < REFUSALS_MAX)
        {
            refusals.push(address);
        }
    });
    let errors = errors.count();
    bump(&counters.asynchronous_errors, errors);
}

/// Entries taken from an error queue at a time; the rest waits for the next turn.
const ERRORS_MAX: usize = 64;
/// Refusals that nobody has looked at: those of some turns. Whoever is not told of one waits for an answer in vain, as without it.
const REFUSALS_MAX: usize = 256;
