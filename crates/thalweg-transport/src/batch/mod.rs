//! One UDP socket that moves datagrams by the batch, for servers with many peers: `recvmmsg` in, `sendmmsg` out, and a
//! way to wait. Every datagram brings its own address; equal-sized neighbours to one address go through the kernel as one
//! message, which cuts them apart (GSO).

mod watch;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};

use crate::filter::FilterInstruction;
use crate::sys::address::{Family, RawAddress};
use crate::sys::control::{Exit, SendControl};
use crate::sys::options;
use crate::sys::poll::wait_writable;
use crate::sys::receive::{Armed, Arrival, ReceiveSlots};
use crate::sys::send::{Addressing, Gather, OutMessage, SendScratch};
use crate::udp::{grow_receive_buffer, grow_send_buffer};

pub use watch::{BatchWaker, Watch, Woken};

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
}

impl Default for BatchOptions {
    fn default() -> BatchOptions {
        BatchOptions { receive_buffer_bytes: 2 << 20, send_buffer_bytes: 1 << 20, sharing: PortSharing::Exclusive }
    }
}

/// Whether a port has one socket or several (`SO_REUSEPORT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortSharing {
    /// One socket.
    Exclusive,
    /// Several; all must ask for it. A peer's datagrams always reach the same one.
    Shared,
}

/// A bound UDP socket for batches.
#[derive(Debug)]
pub struct BatchSocket {
    socket: Socket,
    local: SocketAddr,
    /// Whether the kernel may be given messages to cut; false once it refused one.
    cuts: AtomicBool,
}

impl BatchSocket {
    /// Opens and binds a socket; port 0 lets the system choose.
    ///
    /// # Errors
    /// The system's error: the address is not of this host, is in use, or its family is missing.
    pub fn bind(address: SocketAddr, options: &BatchOptions) -> io::Result<BatchSocket> {
        let family = Family::of(&address.ip());
        let domain = if family == Family::V4 { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        if options.sharing == PortSharing::Shared {
            socket.set_reuse_port(true)?;
        }
        ask_for_destination(&socket, family, address.ip())?;
        hear_joined_groups_only(&socket, family)?;
        options::set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)?;
        // The system may grant less; the buffer then only overflows earlier.
        grow_receive_buffer(&socket, options.receive_buffer_bytes)?;
        grow_send_buffer(&socket, options.send_buffer_bytes)?;
        socket.bind(&address.into())?;
        let local = socket.local_addr()?.as_socket().unwrap_or(address);
        Ok(BatchSocket { socket, local, cuts: AtomicBool::new(true) })
    }

    /// The address and port it is bound to.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Takes part in the multicast group `group` on the interface with this index.
    ///
    /// # Errors
    /// When the family is not the socket's, or the system refuses.
    pub fn join(&self, group: IpAddr, interface: u32) -> io::Result<()> {
        match group {
            IpAddr::V4(group) => self.socket.join_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(interface)),
            IpAddr::V6(group) => self.socket.join_multicast_v6(&group, interface),
        }
    }

    /// Bounds what may wait in the receive buffer; the kernel counts its own bookkeeping as well and doubles the value.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        grow_receive_buffer(&self.socket, bytes).map(drop)
    }

    /// Lets the kernel drop what `program` says before it is queued, in place of an earlier program; an empty one lets
    /// everything in again. Its drops are counted in [`Arrived::kernel_drops`].
    ///
    /// # Errors
    /// When the program is not valid, or longer than `net.core.optmem_max` allows. The earlier one stays.
    pub fn set_filter(&self, program: &[FilterInstruction]) -> io::Result<()> {
        if program.is_empty() {
            return match self.socket.detach_filter() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                result => result,
            };
        }
        let program: Vec<_> = program.iter().copied().map(FilterInstruction::encode).collect();
        self.socket.attach_filter(&program)
    }

    /// Takes the queued datagrams, without waiting; returns their number. Fewer than the capacity of `arrivals` means
    /// that the queue was emptied.
    ///
    /// # Errors
    /// The system's error, an empty queue excepted.
    pub fn receive(&self, arrivals: &mut Arrivals) -> io::Result<usize> {
        arrivals.count = match arrivals.slots.receive(self.socket.as_fd(), &mut arrivals.armed) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => {
                arrivals.count = 0;
                return Err(error);
            }
        };
        Ok(arrivals.count)
    }

    /// Sends all of `departures` by as few system calls as possible. Datagrams that the system does not take within 5 ms are lost, as
    /// the network may lose it: a server must not stand still for one peer.
    pub fn send<'bytes>(
        &self,
        scratch: &mut BatchScratch,
        departures: impl IntoIterator<Item = Departure<'bytes>>,
    ) -> Sent {
        let mut sent = Sent::default();
        let mut gather = Gather::new(&mut scratch.0);
        let segments_max = if self.cuts.load(Ordering::Relaxed) { SEGMENTS_MAX } else { 1 };
        let mut run: Option<Run> = None;
        for (index, Departure { to, from, bytes }) in departures.into_iter().enumerate() {
            gather.push_piece(bytes);
            if run.as_mut().is_none_or(|run| !run.takes(to, from, bytes.len(), segments_max)) {
                run.iter().for_each(|run| gather.push_message(run.message(index)));
                run = Some(Run { first: index, to, from, segment: bytes.len(), count: 1, is_over: false });
            }
        }
        run.iter().for_each(|run| gather.push_message(run.message(run.first + run.count)));
        let (mut next, mut end) = (0, gather.len());
        let mut patience = SEND_PATIENCE;
        while next < end {
            sent.calls += 1;
            match gather.transmit(self.socket.as_fd(), next..end.min(next + BATCH_MAX), Addressing::Each) {
                Ok(count) => {
                    let taken = next..next + count.max(1);
                    let datagrams = |index| gather.message(index).map_or(0, |message| message.datagrams.len());
                    sent.datagrams += taken.clone().map(datagrams).sum::<usize>();
                    next = taken.end;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !patience.is_zero() => {
                    wait_writable(self.socket.as_fd(), patience);
                    patience = Duration::ZERO;
                }
                // The first of the batch is the one that was refused: unreachable, too large, no room, or nobody to cut it.
                Err(error) => {
                    let refused = gather.message(next).cloned();
                    let joined = refused.filter(|message| message.datagrams.len() > 1);
                    let is_uncut = matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL));
                    self.cuts.fetch_and(joined.is_none() || !is_uncut, Ordering::Relaxed);
                    sent.lost += usize::from(joined.is_none());
                    joined.iter().for_each(|message| split(message, &mut gather));
                    next += 1;
                    end = gather.len();
                }
            }
        }
        sent
    }
}

/// Neighbours that leave as one message.
struct Run {
    first: usize,
    to: SocketAddr,
    from: Option<IpAddr>,
    segment: usize,
    count: usize,
    /// Only the last segment may be shorter.
    is_over: bool,
}

impl Run {
    /// Adds the next datagram if it fits to those before it.
    fn takes(&mut self, to: SocketAddr, from: Option<IpAddr>, bytes: usize, segments_max: usize) -> bool {
        let fits = !self.is_over && self.count < segments_max && (1..=self.segment).contains(&bytes);
        if !fits || self.segment > SEGMENT_MAX_BYTES || (to, from) != (self.to, self.from) {
            return false;
        }
        self.count += 1;
        self.is_over = bytes < self.segment;
        true
    }

    fn message(&self, end: usize) -> OutMessage {
        let segment = (self.count > 1).then_some(self.segment as u16);
        out_message(self.first..end, RawAddress::new(self.to), self.from, segment)
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

/// Asks the kernel to tell where datagrams were sent to, when that is not known anyway: then answers can leave from there.
fn ask_for_destination(socket: &Socket, family: Family, address: IpAddr) -> io::Result<()> {
    match family {
        _ if !address.is_unspecified() => Ok(()),
        Family::V4 => options::set(socket.as_fd(), libc::IPPROTO_IP, libc::IP_PKTINFO, 1),
        Family::V6 => options::set(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1),
    }
}

/// By default Linux gives a socket for every address the datagrams of all groups that anybody on the host joined.
fn hear_joined_groups_only(socket: &Socket, family: Family) -> io::Result<()> {
    match family {
        Family::V4 => options::set(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0),
        Family::V6 => {
            // Since Linux 4.20.
            let _ = options::set(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_ALL, 0);
            Ok(())
        }
    }
}

/// The outcome of one [`BatchSocket::send`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Datagrams that the kernel took.
    pub datagrams: usize,
    /// Datagrams that it refused.
    pub lost: usize,
    /// System calls made.
    pub calls: usize,
}

/// Room for the datagrams of one [`BatchSocket::receive`].
pub struct Arrivals {
    slots: ReceiveSlots,
    armed: Vec<Armed>,
    count: usize,
}

impl Arrivals {
    /// Room for 64 datagrams of at most `datagram_bytes` each; longer ones are refused.
    pub fn new(datagram_bytes: usize) -> Arrivals {
        let armed = (0..BATCH_MAX).map(|_| Armed::new(Arc::new(vec![0; datagram_bytes]))).collect();
        Arrivals { slots: ReceiveSlots::new(BATCH_MAX), armed, count: 0 }
    }

    /// The most datagrams that one call takes.
    pub fn capacity(&self) -> usize {
        self.armed.len()
    }

    /// The datagrams of the last call in the order of their arrival, `None` for one that was cut off because it was too
    /// long.
    pub fn iter(&self) -> impl Iterator<Item = Option<Arrived<'_>>> {
        (0..self.count).map(|slot| {
            let Arrival { bytes, source, truncated, control } = self.slots.arrival(slot);
            let bytes = self.armed[slot].bytes().get(..bytes).filter(|_| !truncated)?;
            Some(Arrived {
                bytes,
                source: source?,
                destination: control.destination,
                interface: control.interface,
                kernel_drops: control.kernel_drops,
            })
        })
    }
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
    /// Datagrams that a full receive buffer or a filter has refused since the socket was opened (wraps), once there were
    /// any.
    pub kernel_drops: Option<u32>,
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

/// Datagrams moved by one system call at most.
pub const BATCH_MAX: usize = 64;
/// Most datagrams that the kernel cuts from one message (`UDP_MAX_SEGMENTS` of its older versions).
const SEGMENTS_MAX: usize = 64;
/// Longer datagrams are not joined: they might not fit the path, and 64 of these fit into one message.
const SEGMENT_MAX_BYTES: usize = 1000;
/// Time for which one `send` waits for room in the send buffer.
const SEND_PATIENCE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests;
