//! One call of [`Sender::send`]: groups datagrams into messages, hands them over and deals with refusals.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg_base::locator::Locator;
use thalweg_base::outbox::{OutboundDatagram, Outbox};
use thalweg_base::traffic_class::TrafficClass;

use super::send::{Origin, Sender};
use crate::counters::add;
use crate::outgo::{MESSAGES_MAX, Patience, Run, Sent, lacks_room};
use crate::socket::UdpSocket;
use crate::sys::address::{Family, RawAddress};
use crate::sys::control::{Marking, SendControl};
use crate::sys::send::{Addressing, Gather, OutMessage, SendScratch};

/// Pieces of one message (`UIO_MAXIOV`).
const PIECES_MAX: usize = 1024;
/// Total time for which one call of [`Sender::send`] waits for room in the send buffer before it drops. Chosen so that
/// a link that is down delays nobody for longer than a lost heartbeat would.
const PATIENCE: Duration = Duration::from_millis(50);

/// The rank of a code point in this host's queues: those that ask for less than best effort behind the others (`TC_PRIO_BULK`),
/// real-time classes from CS4 on before them (`TC_PRIO_INTERACTIVE`, the highest that needs no privilege).
fn queue_rank(code_point: u8) -> u32 {
    match code_point {
        1 | 8 => 2,
        32.. => 6,
        _ => 0,
    }
}

/// How many times in a row the error `code` is taken for news of earlier datagrams. That nobody listens is always news, and comes again
/// for each unanswered datagram while another thread reads the socket's error queue; that no way leads there may be said of this datagram.
fn news_max(code: i32) -> u32 {
    match code {
        libc::ECONNREFUSED => 64,
        libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EHOSTDOWN => 1,
        _ => 0,
    }
}

/// One outbox on its way.
pub(super) struct Flight<'a, 'scratch> {
    sender: &'a Sender,
    origin: Origin,
    class: TrafficClass,
    outbox: &'a Outbox,
    gather: Gather<'scratch, 'a>,
    sent: Sent,
    patience: Patience,
    /// A segmented message was refused: if plain message number `.0` goes through, GSO itself is to blame.
    verdict: Option<(usize, Refusal)>,
}

/// A message that the kernel would not cut.
#[derive(Clone, Copy)]
struct Refusal {
    destination: Locator,
    segment_max: u32,
}

impl<'a, 'scratch> Flight<'a, 'scratch> {
    pub(super) fn new(
        sender: &'a Sender,
        origin: Origin,
        class: TrafficClass,
        outbox: &'a Outbox,
        scratch: &'scratch mut SendScratch,
    ) -> Self {
        let gather = Gather::new(scratch);
        let (sent, patience) = (Sent::default(), Patience::new(PATIENCE));
        Flight { sender, origin, class, outbox, gather, sent, patience, verdict: None }
    }

    pub(super) fn send(mut self) -> Sent {
        let mut next = 0;
        while next < self.outbox.len() {
            next = self.gather_run(next);
            if self.gather.len() >= MESSAGES_MAX {
                self.transmit();
            }
        }
        self.transmit();
        self.sent
    }

    /// Gathers the longest run from datagram `first` on that can leave as one message; returns where it ends.
    fn gather_run(&mut self, first: usize) -> usize {
        let Some(head) = self.outbox.datagram(first) else { return first + 1 };
        let first_piece = self.gather.pieces();
        head.pieces().for_each(|piece| self.gather.push_piece(piece));
        let mut run = Run::new(head.len(), self.may_be_cut(&head));
        while let Some(next) = self.outbox.datagram(first + run.len()) {
            let pieces = self.gather.pieces() - first_piece + next.pieces().count();
            if pieces > PIECES_MAX || !next.same_destinations(&head) || !run.admit(next.len()) {
                break;
            }
            next.pieces().for_each(|piece| self.gather.push_piece(piece));
        }
        let end = first + run.len();
        let pieces = first_piece..self.gather.pieces();
        self.address_messages(&pieces, first..end, run.segment(), &head);
        end
    }

    /// The mark of the datagrams; none for the class of unmarked ones.
    fn marking(&self, family: Family) -> Option<Marking> {
        let code_point = self.class.code_point();
        let queue = || self.sender.ranks().load(Ordering::Relaxed).then(|| queue_rank(code_point));
        (self.class != TrafficClass::DEFAULT).then(|| Marking { family, code_point, queue: queue() })
    }

    /// Whether the kernel may cut datagrams of the size of `head` from one message to all destinations of `head`.
    fn may_be_cut(&self, head: &OutboundDatagram<'_>) -> bool {
        let fits = |to: &Locator| head.len() <= self.sender.segment_max(to).load(Ordering::Relaxed) as usize;
        head.destinations().iter().all(fits)
    }

    /// Adds one message for each unicast destination, and one for each interface and multicast destination.
    fn address_messages(
        &mut self,
        pieces: &Range<usize>,
        datagrams: Range<usize>,
        segment: Option<u16>,
        head: &OutboundDatagram<'_>,
    ) {
        for destination in head.destinations() {
            let Some(address) = destination.socket_address() else {
                self.give_up(datagrams.len(), &self.sender.counters().unroutable);
                continue;
            };
            let message = OutMessage {
                pieces: pieces.clone(),
                datagrams: datagrams.clone(),
                address: RawAddress::new(address),
                control: SendControl::new(None, segment, self.marking(Family::of(&address.ip()))),
            };
            if address.ip().is_multicast() {
                self.address_multicast(&message, address, segment);
            } else {
                self.gather.push_message(message);
            }
        }
    }

    fn address_multicast(&mut self, template: &OutMessage, address: SocketAddr, segment: Option<u16>) {
        let before = self.gather.len();
        let marking = template.control.marking();
        self.sender.for_each_exit(Family::of(&address.ip()), |exit| {
            let control = SendControl::new(Some(exit), segment, marking);
            self.gather.push_message(OutMessage { control, ..template.clone() });
        });
        if self.gather.len() == before {
            self.give_up(template.datagrams.len(), &self.sender.counters().unroutable);
        }
    }

    fn give_up(&mut self, datagrams: usize, counter: &AtomicU64) {
        self.sent.lost += datagrams;
        add(counter, datagrams);
    }

    /// Hands all gathered messages to the kernel and forgets them.
    fn transmit(&mut self) {
        let mut next = 0;
        let mut errors_in_row = 0;
        while next < self.gather.len() {
            let (family, group_end) = self.gather.same_family(next);
            let group = next..group_end.min(next + MESSAGES_MAX);
            let address = self.gather.only_address(group.clone()).and_then(RawAddress::socket_address);
            let connection = address.and_then(|address| self.sender.connection(self.origin, address));
            let Some(socket) = connection.as_deref().or_else(|| self.sender.sockets(self.origin).get(family)) else {
                let datagrams = (next..group_end).filter_map(|index| self.gather.message(index));
                let datagrams = datagrams.map(|message| message.datagrams.len()).sum();
                self.give_up(datagrams, &self.sender.counters().unroutable);
                next = group_end;
                continue;
            };
            self.sent.calls += 1;
            let addressing = if connection.is_some() { Addressing::Connected } else { Addressing::Each };
            match self.gather.transmit(socket.as_fd(), group.clone(), addressing) {
                Ok(count) => {
                    self.account(next, next + count);
                    next += count;
                    errors_in_row = 0;
                    self.patience.note_progress();
                }
                Err(error) => {
                    errors_in_row += 1;
                    let skipped = self.handle_error(&error, group, errors_in_row, socket);
                    next += skipped;
                    // A message that has waited for room has not been refused.
                    if skipped > 0 || lacks_room(&error) {
                        errors_in_row = 0;
                    }
                }
            }
        }
        self.gather.clear();
        self.verdict = None;
    }

    fn account(&mut self, first: usize, end: usize) {
        for message in (first..end).filter_map(|index| self.gather.message(index)) {
            self.sent.datagrams += message.datagrams.len();
            add(&self.sender.counters().segmented_messages, usize::from(message.datagrams.len() > 1));
        }
        if let Some((plain, refusal)) = self.verdict
            && (first..end).contains(&plain)
        {
            self.sender.segment_max(&refusal.destination).fetch_min(refusal.segment_max, Ordering::Relaxed);
            self.verdict = None;
        }
    }

    /// Judges an error that stopped the first message of `group`, the `attempts`-th in a row; returns how many messages are
    /// done with.
    fn handle_error(&mut self, error: &io::Error, group: Range<usize>, attempts: u32, socket: &UdpSocket) -> usize {
        let index = group.start;
        let datagrams = self.gather.message(index).map_or(0, |message| message.datagrams.len());
        let counters = self.sender.counters();
        match error.raw_os_error().unwrap_or_default() {
            libc::EINTR => 0,
            libc::EAGAIN | libc::ENOBUFS => {
                if self.wait_for_room(error, socket) {
                    return 0;
                }
                self.give_up(datagrams, &counters.dropped);
                1
            }
            // News of an earlier datagram, most likely, that a router found too large.
            libc::EMSGSIZE if attempts == 1 => 0,
            libc::EINVAL if self.stop_ranking(index) => 0,
            code @ (libc::EIO | libc::EINVAL | libc::EMSGSIZE) if datagrams > 1 => {
                self.resend_plain(index, code);
                1
            }
            libc::EMSGSIZE => self.send_in_fragments(group),
            code if attempts <= news_max(code) => {
                // Most likely news of an earlier datagram; the call took it from the socket, this datagram is still here.
                add(&counters.asynchronous_errors, 1);
                0
            }
            _ => {
                self.give_up(datagrams, &counters.refused);
                1
            }
        }
    }

    /// True when message `index` was ranked: older kernels refuse that, so it and all later ones go without.
    fn stop_ranking(&mut self, index: usize) -> bool {
        let ranked = |message: &OutMessage| message.control.marking().is_some_and(|marking| marking.queue.is_some());
        if !self.gather.message(index).is_some_and(ranked) {
            return false;
        }
        self.sender.ranks().store(false, Ordering::Relaxed);
        self.gather.remark(index, SendControl::without_rank);
        true
    }

    /// The first message of `group` is larger than its path, and the others likely are: they leave by the socket whose
    /// datagrams may be cut on the way. Returns how many messages are done with.
    fn send_in_fragments(&mut self, group: Range<usize>) -> usize {
        let counters = self.sender.counters();
        let family = self.gather.same_family(group.start).0;
        self.sent.calls += 1;
        let cutting = self.sender.sockets(Origin::Metatraffic).get(family);
        match cutting.map(|socket| self.gather.transmit(socket.as_fd(), group.clone(), Addressing::Each)) {
            Some(Ok(count)) => {
                self.account(group.start, group.start + count);
                add(&counters.fragmented, count);
                count
            }
            _ => {
                self.give_up(1, &counters.refused);
                1
            }
        }
    }

    /// Waits until the kernel may take more; false when patience has ended.
    fn wait_for_room(&mut self, error: &io::Error, socket: &UdpSocket) -> bool {
        add(&self.sender.counters().waits, 1);
        self.patience.wait(error, socket)
    }

    /// Whether datagrams of `bytes` fit the path to `address`.
    fn fits_path(&self, bytes: usize, address: SocketAddr) -> bool {
        let headers = if address.is_ipv4() { 28 } else { 48 };
        self.sender.path_mtu(address).is_ok_and(|mtu| bytes + headers <= mtu as usize)
    }

    /// The kernel does not cut message `index`: queues its datagrams one by one behind the others.
    fn resend_plain(&mut self, index: usize, code: i32) {
        let Some(refused) = self.gather.message(index).cloned() else { return };
        let Some(head) = self.outbox.datagram(refused.datagrams.start) else { return };
        let control = SendControl::new(refused.control.exit(), None, refused.control.marking());
        if let Some(address) = refused.address.socket_address()
            && (code == libc::EIO || self.fits_path(head.len(), address))
        {
            let segment_max = if code == libc::EIO { 0 } else { head.len().saturating_sub(1) as u32 };
            let refusal = Refusal { destination: Locator::from(address), segment_max };
            self.verdict = Some((self.gather.len(), refusal));
        }
        let mut piece = refused.pieces.start;
        for number in refused.datagrams {
            let pieces = self.outbox.datagram(number).map_or(0, |datagram| datagram.pieces().count());
            let message = OutMessage {
                pieces: piece..piece + pieces,
                datagrams: number..number + 1,
                address: refused.address,
                control,
            };
            piece += pieces;
            self.gather.push_message(message);
        }
    }
}
