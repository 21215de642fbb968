//! One UDP socket that moves datagrams by the batch, for servers with many peers: `recvmmsg` in, `sendmmsg` out, and a
//! way to wait. Every datagram brings its own address; equal-sized neighbours to one address go through the kernel as one
//! message, which cuts them apart (GSO).
//!
//! It takes datagrams in by the same way as a participant. What differs: they are read where they lie, the socket
//! is asked only when there is something, and the kernel does not join datagrams (GRO), since a filter would then see only the first of
//! those it joined.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_base::time::Instant;

use crate::filter::FilterInstruction;
use crate::intake::{Guessing, Intake, Message};
use crate::outgo::{self, Patience, Run, Verdict};
use crate::socket::{Buffers, UdpSocket, ask_for_errors};
use crate::sys::address::RawAddress;
use crate::sys::control::{Exit, SendControl};
use crate::sys::options;
use crate::sys::send::{Gather, OutMessage, SendScratch};

pub use crate::counters::ReceiveCounts;
pub use crate::intake::{Waker, Wakeup};
pub use crate::outgo::Sent;
pub use crate::socket::PortSharing;

/// Settings of a [`BatchSocket`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchOptions {
    /// Bytes of receive buffer to ask for. Default 2 MiB: Linux counts 768 bytes for a small datagram and doubles what is
    /// asked for, so this holds 5,000, and a server of 200,000 a second has never more than 30 ms of them waiting.
    pub receive_buffer_bytes: usize,
    /// Bytes of send buffer to ask for. Default 1 MiB.
    pub send_buffer_bytes: usize,
    /// Whether other sockets of this user may bind the same address; the kernel then spreads the peers over them.
    pub sharing: PortSharing,
    /// The longest datagram that is received, in bytes; of longer ones only the
    /// beginning is kept ([`BatchSocket::next_oversized`]). Default 2,048.
    pub datagram_bytes: usize,
    /// Whether hosts are listened to that say that nobody listens at a port ([`BatchSocket::next_refusal`]): for clients. Anybody
    /// could keep a server busy with it by forging the addresses that it answers to. Default no.
    pub hears_refusals: bool,
}

impl Default for BatchOptions {
    fn default() -> BatchOptions {
        BatchOptions {
            receive_buffer_bytes: 2 << 20,
            send_buffer_bytes: 1 << 20,
            sharing: PortSharing::Exclusive,
            datagram_bytes: 2048,
            hears_refusals: false,
        }
    }
}

/// A bound UDP socket for batches, with what its last call received and a wait for more; belongs to one thread.
pub struct BatchSocket {
    socket: Arc<UdpSocket>,
    intake: Intake,
    /// What the last call received and nobody has looked at yet.
    arrivals: Range<usize>,
    /// All places that the last call filled, if some datagrams of it were left out.
    left_out: Range<usize>,
    /// Whether the kernel may be given messages to cut; false once it refused one.
    cuts: AtomicBool,
}

impl BatchSocket {
    /// Opens and binds a socket; port 0 lets the system choose.
    ///
    /// # Errors
    /// What the system says when the address is not of this host, is taken, or its family is missing, or when the process may
    /// open no more descriptors.
    pub fn bind(address: SocketAddr, options: &BatchOptions) -> io::Result<BatchSocket> {
        let buffers = Buffers { receive_bytes: options.receive_buffer_bytes, send_bytes: options.send_buffer_bytes };
        let ask = |socket: &_, family| if options.hears_refusals { ask_for_errors(socket, family) } else { Ok(()) };
        let socket = Arc::new(UdpSocket::bind(address, options.sharing, buffers, ask)?);
        let mut intake = Intake::new(vec![Arc::clone(&socket)], None, BATCH_MAX, Guessing::Never)?;
        if options.hears_refusals {
            intake.keep_refusals();
        }
        intake.arm(BATCH_MAX, || Arc::new(vec![0; options.datagram_bytes]));
        Ok(BatchSocket { socket, intake, arrivals: 0..0, left_out: 0..0, cuts: AtomicBool::new(true) })
    }

    /// The address and port it is bound to.
    pub fn local_address(&self) -> SocketAddr {
        self.socket.local_address()
    }

    /// Takes part in the multicast group `group` on the interface with this index.
    ///
    /// # Errors
    /// When the family is not the socket's, or the system refuses.
    pub fn join(&self, group: IpAddr, interface: u32) -> io::Result<()> {
        self.socket.join(group, interface)
    }

    /// Bounds what may wait in the receive buffer; the kernel counts its own bookkeeping as well and doubles the value.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn set_receive_buffer(&self, bytes: usize) -> io::Result<usize> {
        self.socket.set_receive_buffer(bytes)
    }

    /// Lets the kernel drop what `program` says before it is queued, in place of an earlier program; an empty one lets
    /// everything in again. Its drops are counted in [`Arrived::kernel_drops`] and [`ReceiveCounts::filtered`].
    ///
    /// # Errors
    /// When the program is not valid, or longer than `net.core.optmem_max` allows. The earlier one stays.
    pub fn set_filter(&self, program: &[FilterInstruction]) -> io::Result<()> {
        self.socket.set_filter(program)
    }

    /// Ends a [`BatchSocket::wait`] from other threads.
    pub fn waker(&self) -> Waker {
        self.intake.waker()
    }

    /// What was received since the socket was opened.
    pub fn counts(&self) -> ReceiveCounts {
        self.intake.counts()
    }

    /// Waits until datagrams arrive, a waker is used or `deadline` has passed, or for no reason at all. Each arrival is told
    /// once: whoever is told reads until [`BatchSocket::is_ready`] says no. One system call, two when the deadline is the earliest
    /// so far.
    ///
    /// # Errors
    /// The system's error.
    pub fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Wakeup> {
        self.intake.wait_until(deadline.unwrap_or(Instant::NEVER))
    }

    /// Whether receiving is worth a system call: the last wait told so, or the last call came back full.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.intake.is_ready(0)
    }

    /// Takes what is queued, at most [`BATCH_MAX`] datagrams, without waiting; returns how many came. Fewer than that means that the
    /// queue was emptied. [`BatchSocket::next_arrival`] has them.
    ///
    /// # Errors
    /// The system's error, an empty queue excepted.
    pub fn receive(&mut self) -> io::Result<usize> {
        (self.arrivals, self.left_out) = (0..0, 0..0);
        let count = self.intake.receive(0, BATCH_MAX)?;
        self.arrivals = 0..count;
        Ok(count)
    }

    /// The next datagram of the last call, in the order of their arrival; those that were too long are left out and counted
    /// ([`ReceiveCounts::truncated`]).
    #[inline]
    pub fn next_arrival(&mut self) -> Option<Arrived<'_>> {
        for slot in self.arrivals.by_ref() {
            let Some(message) = self.intake.take_message(0, slot) else {
                let first = if self.left_out.is_empty() { slot } else { self.left_out.start };
                self.left_out = first..slot + 1;
                continue;
            };
            let Message { bytes, source, destination, interface, kernel_drops, .. } = message;
            let bytes = &self.intake.buffer(slot)[..bytes];
            return Some(Arrived { bytes, source, destination, interface, kernel_drops });
        }
        None
    }

    /// The next datagram of the last call that was too long, as far as it fits; ask once [`BatchSocket::next_arrival`] has told all
    /// others.
    pub fn next_oversized(&mut self) -> Option<Oversized<'_>> {
        let slot = self.left_out.find(|slot| self.intake.oversized(*slot).is_some())?;
        let (source, destination) = self.intake.oversized(slot)?;
        Some(Oversized { beginning: self.intake.buffer(slot), source, destination })
    }

    /// An address to which something was sent and at which nobody listens, as its host told (ICMP port unreachable), if
    /// the socket hears that. At most 256 are kept.
    pub fn next_refusal(&mut self) -> Option<SocketAddr> {
        self.intake.next_refusal()
    }

    /// Sends all of `departures` by as few system calls as possible. Datagrams that the system does not take within 5 ms are lost, as
    /// the network may lose it: a server must not stand still for one peer.
    pub fn send<'bytes>(
        &self,
        scratch: &mut BatchScratch,
        departures: impl IntoIterator<Item = Departure<'bytes>>,
    ) -> Sent {
        let mut gather = Gather::new(&mut scratch.0);
        let cuts = self.cuts.load(Ordering::Relaxed);
        let mut joined: Option<Joined> = None;
        for (index, Departure { to, from, bytes }) in departures.into_iter().enumerate() {
            gather.push_piece(bytes);
            if joined
                .as_mut()
                .is_none_or(|joined| (to, from) != (joined.to, joined.from) || !joined.run.admit(bytes.len()))
            {
                joined.iter().for_each(|joined| gather.push_message(joined.message()));
                let run = Run::new(bytes.len(), cuts && bytes.len() <= SEGMENT_MAX_BYTES);
                joined = Some(Joined { first: index, to, from, run });
            }
        }
        joined.iter().for_each(|joined| gather.push_message(joined.message()));
        let mut patience = Patience::new(SEND_PATIENCE);
        outgo::transmit_all(&mut gather, &self.socket, &mut patience, |gather, index, _, error| {
            let refused = gather.message(index).cloned();
            let Some(joined) = refused.filter(|message| message.datagrams.len() > 1) else { return Verdict::Lost };
            let is_uncut = matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL));
            self.cuts.fetch_and(!is_uncut, Ordering::Relaxed);
            split(&joined, gather);
            Verdict::Replaced
        })
    }
}

/// Neighbours that leave as one message.
struct Joined {
    first: usize,
    to: SocketAddr,
    from: Option<IpAddr>,
    run: Run,
}

impl Joined {
    fn message(&self) -> OutMessage {
        let pieces = self.first..self.first + self.run.len();
        out_message(pieces, RawAddress::new(self.to), self.from, self.run.segment())
    }
}

/// Adds the datagrams of a message that the kernel did not cut, each by itself.
fn split(message: &OutMessage, gather: &mut Gather<'_, '_>) {
    let source = message.control.exit().map(|exit| exit.source);
    message
        .pieces
        .clone()
        .for_each(|piece| gather.push_message(out_message(piece..piece + 1, message.address, source, None)));
}

/// A message of one piece for each datagram.
fn out_message(pieces: Range<usize>, address: RawAddress, source: Option<IpAddr>, segment: Option<u16>) -> OutMessage {
    let exit = source.map(|source| Exit { interface: 0, source });
    OutMessage { datagrams: pieces.clone(), pieces, address, control: SendControl::new(exit, segment, None) }
}

/// Lets the kernel cut messages sent by `socket` into datagrams of `bytes` each (GSO), the last of which may be shorter.
///
/// # Errors
/// When the kernel cannot (Linux before 4.18).
pub fn cut_sends(socket: &impl AsFd, bytes: u16) -> io::Result<()> {
    options::set(socket.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, i32::from(bytes))
}

/// One received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived<'a> {
    /// Its payload.
    pub bytes: &'a [u8],
    /// The source address.
    pub source: SocketAddr,
    /// The destination address; known for sockets that are bound to every address.
    pub destination: Option<IpAddr>,
    /// The interface it came in on, where `destination` is known; else 0.
    pub interface: u32,
    /// Datagrams that a full receive buffer or a filter has refused since the datagram before was queued.
    pub kernel_drops: u32,
}

/// The beginning of a datagram that was longer than [`BatchOptions::datagram_bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oversized<'a> {
    /// Its first bytes.
    pub beginning: &'a [u8],
    /// The source address.
    pub source: SocketAddr,
    /// The destination address, where it is known.
    pub destination: Option<IpAddr>,
}

/// One datagram to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure<'a> {
    /// The destination.
    pub to: SocketAddr,
    /// The address of this host that it leaves from; `None` leaves that to the routing table.
    pub from: Option<IpAddr>,
    /// The payload.
    pub bytes: &'a [u8],
}

/// Memory that sending reuses; one a thread.
#[derive(Default)]
pub struct BatchScratch(SendScratch);

/// Datagrams that one [`BatchSocket::receive`] takes at most.
pub const BATCH_MAX: usize = 64;
/// Longer datagrams are not joined: they might not fit the path, and 64 of these fit into one message.
const SEGMENT_MAX_BYTES: usize = 1000;
/// Time for which one `send` waits for room in the send buffer.
const SEND_PATIENCE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests;
