//! Bursts of datagrams, each of several pieces, without a copy in this process.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::StreamSocket;
use crate::counters::add;
use crate::outgo::{self, Patience, Run, Sent, Verdict};
use crate::sys::address::RawAddress;
use crate::sys::control::SendControl;
use crate::sys::receive::take_error;
use crate::sys::send::{Gather, OutMessage, SendScratch};

/// Memory that sending reuses; one a thread.
#[derive(Default)]
pub struct StreamScratch {
    send: SendScratch,
    /// For each datagram, the number of pieces up to its end.
    ends: Vec<usize>,
}

/// Datagrams under construction that leave together, to one address.
pub struct StreamBurst<'scratch, 'bytes> {
    socket: &'scratch StreamSocket,
    gather: Gather<'scratch, 'bytes>,
    ends: &'scratch mut Vec<usize>,
    address: RawAddress,
    /// The datagrams that will be the next message: the number of the first and how many.
    joined: Option<(usize, Run)>,
}

impl StreamSocket {
    /// Begins a burst of datagrams to `to`.
    pub fn burst<'scratch, 'bytes>(
        &'scratch self,
        scratch: &'scratch mut StreamScratch,
        to: SocketAddr,
    ) -> StreamBurst<'scratch, 'bytes> {
        let StreamScratch { send, ends } = scratch;
        ends.clear();
        StreamBurst { socket: self, gather: Gather::new(send), ends, address: RawAddress::new(to), joined: None }
    }
}

impl<'bytes> StreamBurst<'_, 'bytes> {
    /// Adds a datagram of these pieces. Neighbours of equal length, and a shorter last one, leave as one message, which the kernel cuts
    /// (GSO); at most 64 datagrams or 65,507 bytes a message.
    pub fn push(&mut self, pieces: impl IntoIterator<Item = &'bytes [u8]>) {
        let mut bytes = 0;
        for piece in pieces {
            bytes += piece.len();
            self.gather.push_piece(piece);
        }
        let number = self.ends.len();
        self.ends.push(self.gather.pieces());
        if !self.joined.as_mut().is_some_and(|(_, run)| run.admit(bytes)) {
            self.close_message();
            self.joined = Some((number, Run::new(bytes, self.socket.cuts.load(Ordering::Relaxed))));
        }
    }

    /// Hands everything to the kernel by as few system calls as possible; what it has no room for within `patience` is lost.
    pub fn send(mut self, patience: Duration) -> Sent {
        self.close_message();
        let StreamBurst { socket, mut gather, ends, .. } = self;
        let mut patience = Patience::new(patience);
        let messages = gather.len();
        let (mut refused, mut news, mut splits) = (0, 0, 0);
        let sent = outgo::transmit_all(&mut gather, &socket.socket, &mut patience, |gather, index, attempts, error| {
            if attempts <= news_max(error) {
                news += drain_errors(socket);
                return Verdict::Again;
            }
            if may_be_uncut(error) && split(gather, index, ends) {
                splits += 1;
                return Verdict::Replaced;
            }
            let datagrams = gather.message(index).map_or(0, |message| message.datagrams.len());
            let is_full = outgo::lacks_room(error);
            refused += if is_full { 0 } else { datagrams };
            add(&socket.counters.dropped, if is_full { datagrams } else { 0 });
            Verdict::Lost
        });
        if splits > 0 && sent.lost == 0 {
            // What the kernel took singly it had not refused for its size: it cannot cut for this device.
            socket.cuts.store(false, Ordering::Relaxed);
        }
        let joined = (0..messages).filter_map(|index| gather.message(index));
        let joined = joined.filter(|message| message.datagrams.len() > 1).count();
        let counters = &socket.counters;
        add(&counters.calls, sent.calls);
        add(&counters.datagrams, sent.datagrams);
        add(&counters.segmented_messages, joined.saturating_sub(splits));
        add(&counters.waits, patience.waits());
        add(&counters.refused, refused);
        add(&counters.asynchronous_errors, news);
        sent
    }

    fn close_message(&mut self) {
        let Some((first, run)) = self.joined.take() else { return };
        let datagrams = first..first + run.len();
        self.gather.push_message(message(datagrams, self.ends, self.address, run.segment()));
    }
}

/// A message of these datagrams.
fn message(datagrams: std::ops::Range<usize>, ends: &[usize], address: RawAddress, segment: Option<u16>) -> OutMessage {
    let end_of = |number: usize| number.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    let pieces = end_of(datagrams.start)..end_of(datagrams.end);
    OutMessage { pieces, datagrams, address, control: SendControl::new(None, segment, None) }
}

/// Queues the datagrams of message `index` singly behind the others; false when it has only one.
fn split(gather: &mut Gather<'_, '_>, index: usize, ends: &[usize]) -> bool {
    let Some(joined) = gather.message(index).filter(|message| message.datagrams.len() > 1).cloned() else {
        return false;
    };
    for number in joined.datagrams {
        gather.push_message(message(number..number + 1, ends, joined.address, None));
    }
    true
}

/// How many times in a row an error is taken for news of an earlier datagram, which says nothing of the message that met it; 0 where it is
/// none. That nobody listens is always news, and comes again while the error queue holds more than is read at a time; that no way leads
/// there, or that a router found it too large, may be said of this message.
fn news_max(error: &io::Error) -> u32 {
    match error.raw_os_error() {
        Some(libc::ECONNREFUSED) => 64,
        Some(libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EHOSTDOWN | libc::EMSGSIZE) => 2,
        _ => 0,
    }
}

/// Whether the kernel or the device may be unable to cut a message: its datagrams are then offered singly.
fn may_be_uncut(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP))
}

/// Takes what earlier sends provoked, which would fill the receive buffer; returns how many entries that was.
fn drain_errors(stream: &StreamSocket) -> usize {
    let errors = (0..ERRORS_MAX).map_while(|_| take_error(stream.socket.as_fd()));
    errors.inspect(|error| stream.socket.note_error(error)).count()
}

/// Entries taken from an error queue at a time; the rest waits for the next turn.
const ERRORS_MAX: usize = 64;
