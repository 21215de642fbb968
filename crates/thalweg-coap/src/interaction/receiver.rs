//! The paper's network receiver: an event loop that takes, handles and sends datagrams by the batch.

use std::io;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::batch::{Arrived, BATCH_MAX, BatchScratch, BatchSocket, Departure, Oversized};
use thalweg_transport::clock;

use super::adapter::Adapter;
use super::backlog::Backlog;
use super::counts::{FilteredRequests, LoopCounts};
use super::gate::Gate;
use super::pause::Pause;
use super::renewal::RenewalReader;
use super::send_handler::SendHandler;
use super::sockets::MESSAGE_BYTES_MAX;
use super::source::SecureSource;
use crate::dtls::{SessionCounts, Sessions};
use crate::endpoint::{CoapOutbox, Counters, Endpoint, Peer};
use crate::message::{CoapMessage, MessageId, MessageType, empty_message};

/// One event loop with its socket and the state of the peers that the kernel assigns to it.
pub(super) struct NetworkReceiver {
    socket: BatchSocket,
    endpoint: Endpoint,
    adapter: Adapter,
    outbox: CoapOutbox,
    backlog: Backlog,
    pause: Pause,
    gate: Gate,
    counts: LoopCounts,
    /// The DTLS sessions of the socket, where it has them.
    security: Option<Box<Security>>,
    /// Whether the socket had a filter since the last datagram was queued.
    is_filtered: bool,
    /// Whether datagrams were taken while others were sent, so that there may be something to do.
    is_behind: bool,
}

/// What a loop tells less often than its counts.
#[derive(Debug, Default)]
pub(super) struct ProtocolFigures {
    pub(super) counters: Counters,
    /// What the filter dropped, by kind.
    pub(super) filtered: Vec<FilteredRequests>,
}

/// Sessions below the endpoint: what arrives is opened first, and what leaves is sealed last.
struct Security {
    sessions: Sessions,
    renewal: RenewalReader,
    sealed: CoapOutbox,
    /// Messages to peers whose sessions are over.
    undelivered: Vec<(Peer, MessageId)>,
}

/// State shared by a loop and the server.
pub(super) struct Shared {
    /// Which of the loops it is.
    pub(super) home: usize,
    pub(super) homes: Arc<[SendHandler]>,
    pub(super) counts: Arc<Mutex<LoopCounts>>,
    /// Those of the protocol, and what the filter dropped.
    pub(super) protocol: Arc<Mutex<ProtocolFigures>>,
    pub(super) is_over: Arc<AtomicBool>,
    /// Numbers about the loop's DTLS sessions.
    pub(super) sessions: Arc<Mutex<SessionCounts>>,
}

impl NetworkReceiver {
    pub(super) fn new(socket: BatchSocket, endpoint: Endpoint, adapter: Adapter) -> NetworkReceiver {
        NetworkReceiver {
            socket,
            endpoint,
            adapter,
            outbox: CoapOutbox::default(),
            backlog: Backlog::default(),
            pause: Pause::default(),
            gate: Gate::default(),
            counts: LoopCounts::default(),
            security: None,
            is_filtered: false,
            is_behind: false,
        }
    }

    /// The same without a filter in the kernel.
    pub(super) fn without_filter(self) -> NetworkReceiver {
        NetworkReceiver { gate: Gate::disabled(), ..self }
    }

    /// The same with DTLS below the endpoint.
    pub(super) fn with_sessions(self, sessions: Sessions, renewal: RenewalReader) -> NetworkReceiver {
        let security = Security { sessions, renewal, sealed: CoapOutbox::default(), undelivered: Vec::new() };
        NetworkReceiver { security: Some(Box::new(security)), ..self }
    }

    /// Serves until the server is over.
    ///
    /// # Errors
    /// When the socket or the wait fails, which only a lack of memory in the kernel brings about.
    pub(super) fn run(mut self, shared: &Shared) -> io::Result<()> {
        let mut scratch = BatchScratch::default();
        let (mut asks, mut turns) = (true, 0_u32);
        while !shared.is_over.load(Ordering::Relaxed) {
            let is_full = self.turn(asks, &mut scratch)?;
            asks = true;
            *shared.counts.lock().unwrap_or_else(PoisonError::into_inner) = self.counts;
            if let Some(security) = &self.security {
                *shared.sessions.lock().unwrap_or_else(PoisonError::into_inner) = security.sessions.counts();
            }
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(TURNS_COUNTED) {
                self.tell_protocol(shared);
            }
            if let Some(pause) = self.pause.handle_turn(self.adapter.has_refused(), is_full) {
                std::thread::sleep(pause);
                continue;
            }
            let home = &shared.homes[shared.home];
            if std::mem::take(&mut self.is_behind) || self.socket.is_ready() || !home.may_sleep() {
                continue;
            }
            self.tell_protocol(shared);
            if !shared.is_over.load(Ordering::SeqCst) {
                let sessions = self.security.as_ref().and_then(|security| security.sessions.poll_timeout());
                let deadline = earlier(self.endpoint.poll_timeout(), self.gate.poll_timeout());
                self.socket.wait(earlier(deadline, sessions))?;
            }
            home.has_slept();
            // Woken by an answer or a deadline alone, it has nothing to ask the socket for.
            asks = self.socket.is_ready();
        }
        Ok(())
    }

    fn tell_protocol(&self, shared: &Shared) {
        let figures = ProtocolFigures { counters: self.endpoint.counters(), filtered: self.gate.filtered().to_vec() };
        *shared.protocol.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }

    /// Takes a batch if it `asks` for one, and sends what is ready; true when the batch was full.
    fn turn(&mut self, asks: bool, scratch: &mut BatchScratch) -> io::Result<bool> {
        let count = if asks { self.socket.receive()? } else { 0 };
        // The only look at the clock for all datagrams of the batch.
        let now = clock::now();
        match self.security.is_some() {
            false => self.handle_arrivals(now),
            true => self.handle_sealed(now),
        }
        self.adapter.handle_inbox(now, &mut self.endpoint, &mut self.counts);
        if self.endpoint.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.handle_events(now);
        self.counts.set_refused(self.endpoint.counted());
        self.endpoint.poll_transmit(&mut self.outbox);
        let awaited = self.awaited();
        if self.security.is_some() {
            self.seal(now);
        }
        let is_burst = self.outbox.len() > BURST;
        self.send(scratch, awaited)?;
        let now = if is_burst { clock::now() } else { now };
        let is_full = count == BATCH_MAX;
        // The time of a burst is not that of the datagrams before it: by it the buffer would become too small for what it brings.
        if let Some(bytes) = self.backlog.handle_batch(now, count, is_full && !is_burst) {
            self.socket.set_receive_buffer(bytes)?;
        }
        if let Some(program) = self.gate.handle_turn(now) {
            self.is_filtered = true;
            if let Err(error) = self.socket.set_filter(&program) {
                // Requests are then dropped by this loop alone.
                tracing::warn!(%error, "the kernel took no filter against an overload; is net.core.optmem_max too small?");
                self.socket.set_filter(&[])?;
                self.gate.disable();
            }
        }
        Ok(is_full)
    }

    fn handle_arrivals(&mut self, now: Instant) {
        self.adapter.begin_batch();
        while let Some(Arrived { bytes, source, destination, kernel_drops, .. }) = self.socket.next_arrival() {
            let drops = if self.is_filtered { &mut self.counts.filtered } else { &mut self.counts.kernel_drops };
            *drops += u64::from(kernel_drops);
            if self.is_filtered {
                self.gate.handle_filtered(u64::from(kernel_drops));
            }
            self.is_filtered = self.gate.is_shut();
            if self.adapter.drops(bytes) {
                self.counts.dropped += 1;
                self.gate.handle_drop(now, bytes, || self.adapter.pool_of(bytes));
                continue;
            }
            self.gate.handle_kept(bytes);
            let peer = Peer::from(source);
            match destination {
                Some(group) if group.is_multicast() => self.endpoint.handle_multicast(now, peer, bytes),
                local => self.endpoint.handle_datagram(now, peer.at(local), bytes),
            }
        }
        while let Some(Oversized { beginning, source, destination }) = self.socket.next_oversized() {
            if destination.is_none_or(|address| !address.is_multicast()) {
                self.endpoint.handle_oversized(Peer::from(source).at(destination), beginning);
            }
        }
        self.counts.set_received(&self.socket.counts());
    }

    /// Opens what arrived at a socket with sessions.
    fn handle_sealed(&mut self, now: Instant) {
        let Some(security) = &mut self.security else { return };
        let sessions = &mut security.sessions;
        if let Some(credentials) = security.renewal.poll()
            && let Err(error) = sessions.set_credentials(now, &credentials)
        {
            tracing::warn!(%error, "the new credentials of coaps cannot be used; the old ones hold");
        }
        self.adapter.begin_batch();
        while let Some(Arrived { bytes, source, destination, kernel_drops, .. }) = self.socket.next_arrival() {
            self.counts.kernel_drops += u64::from(kernel_drops);
            let local = destination.filter(|address| !address.is_multicast());
            sessions.handle_datagram(now, Peer::from(source).at(local), bytes);
            for plain in sessions.plain().iter() {
                match plain.bytes.len() {
                    0..=MESSAGE_BYTES_MAX => self.endpoint.handle_datagram(now, plain.peer, plain.bytes),
                    _ => self.endpoint.handle_oversized(plain.peer, plain.bytes),
                }
            }
        }
        if sessions.poll_timeout().is_some_and(|deadline| deadline <= now) {
            sessions.handle_timeout(now);
        }
        self.counts.set_received(&self.socket.counts());
    }

    fn handle_events(&mut self, now: Instant) {
        match &self.security {
            None => self.adapter.handle_events(now, &mut self.endpoint, &mut self.counts),
            Some(security) => {
                let mut source = SecureSource { endpoint: &mut self.endpoint, sessions: &security.sessions };
                self.adapter.handle_events(now, &mut source, &mut self.counts);
            }
        }
    }

    /// Seals what is ready to leave. A message to a peer whose session is over counts as rejected, so that its
    /// observations end.
    fn seal(&mut self, now: Instant) {
        let Some(security) = &mut self.security else { return };
        for transmit in self.outbox.iter() {
            if security.sessions.protect(now, transmit.peer, transmit.bytes) {
                continue;
            }
            self.counts.send_lost += 1;
            if let Ok((MessageType::Confirmable | MessageType::NonConfirmable, _, id)) =
                CoapMessage::parse_header(transmit.bytes)
            {
                security.undelivered.push((transmit.peer, id));
            }
        }
        security.sessions.poll_transmit(&mut security.sealed);
        std::mem::swap(&mut self.outbox, &mut security.sealed);
        if security.undelivered.is_empty() {
            return;
        }
        for (peer, id) in security.undelivered.drain(..) {
            self.endpoint.handle_datagram(now, peer, &empty_message(MessageType::Reset, id));
        }
        self.handle_events(now);
    }

    /// Acknowledgements that what is ready will bring, where it is much.
    fn awaited(&self) -> usize {
        if self.outbox.len() <= AWAITED_MAX {
            return 0;
        }
        let is_confirmable =
            |bytes: &[u8]| matches!(CoapMessage::parse_header(bytes), Ok((MessageType::Confirmable, ..)));
        self.outbox.iter().filter(|transmit| is_confirmable(transmit.bytes)).count()
    }

    /// Sends what is ready. A change of a resource with thousands of observers that acknowledge it is told in parts, and what arrives
    /// meanwhile is taken between them, so that no more acknowledgements are on their way than the receive buffer holds: each that is lost
    /// keeps the next state from its observer until the repetition.
    fn send(&mut self, scratch: &mut BatchScratch, mut awaited: usize) -> io::Result<()> {
        let room = if awaited > AWAITED_MAX { self.make_room()? } else { AWAITED_MAX };
        let (mut left, mut on_their_way, mut patience) = (0, 0_usize, BURST_PATIENCE);
        while left < self.outbox.len() {
            let in_parts = awaited > AWAITED_MAX;
            let part = if in_parts { BATCH_MAX } else { self.outbox.len() - left };
            self.send_part(scratch, left, part);
            left += part;
            if in_parts {
                awaited -= part;
                on_their_way += part;
                let came = self.take_acknowledgements(on_their_way.saturating_sub(room), &mut patience)?;
                on_their_way = on_their_way.saturating_sub(came);
            }
        }
        self.outbox.clear();
        Ok(())
    }

    /// Gives the receive buffer its full size; how many acknowledgements it holds beside those of a part and of the rest.
    fn make_room(&mut self) -> io::Result<usize> {
        let granted = self.socket.set_receive_buffer(self.backlog.handle_growth(clock::now()))?;
        Ok(Backlog::datagrams_in(granted).saturating_sub(BATCH_MAX + AWAITED_MAX))
    }

    /// Takes what is there, and waits until `count` have come, or for a while: peers may be far away, or gone, and then `patience` with
    /// all of them is shorter. Returns how many datagrams came.
    fn take_acknowledgements(&mut self, count: usize, patience: &mut Duration) -> io::Result<usize> {
        let start = clock::now();
        let end = start + PART_PATIENCE.min(*patience);
        let mut came = self.take_arrivals()?;
        while came < count && clock::now() < end {
            self.socket.wait(Some(end))?;
            // Somebody may have woken it who is not heard here.
            self.is_behind = true;
            came += self.take_arrivals()?;
        }
        if came < count {
            *patience = patience.saturating_sub(clock::now().since(start));
        }
        Ok(came)
    }

    fn send_part(&mut self, scratch: &mut BatchScratch, first: usize, count: usize) {
        let departures = self.outbox.iter_from(first).take(count).map(|transmit| {
            let Peer { address, local, .. } = transmit.peer;
            Departure { to: address, from: local, bytes: transmit.bytes }
        });
        let sent = self.socket.send(scratch, departures);
        self.counts.sent += sent.datagrams as u64;
        self.counts.send_lost += sent.lost as u64;
        self.counts.send_calls += sent.calls as u64;
    }

    /// Takes a batch into the endpoint, whose events wait for the next turn; how many came.
    fn take_arrivals(&mut self) -> io::Result<usize> {
        let count = self.socket.receive()?;
        let now = clock::now();
        match self.security.is_some() {
            false => self.handle_arrivals(now),
            true => self.handle_sealed(now),
        }
        self.is_behind |= count > 0;
        Ok(count)
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// From so many datagrams at a time on sending takes long beside a batch of requests.
const BURST: usize = 4 * BATCH_MAX;
/// So many acknowledgements find room in the smallest receive buffer, whenever they come.
const AWAITED_MAX: usize = 128;
/// How long 64 notifications wait for acknowledgements of others.
const PART_PATIENCE: Duration = Duration::from_millis(1);
/// How long all notifications of a turn wait for peers that acknowledge slowly or not at all: nobody else is answered meanwhile.
const BURST_PATIENCE: Duration = Duration::from_millis(100);
/// A busy loop tells the counters of the protocol after so many batches; one that is about to sleep tells them at once.
const TURNS_COUNTED: u32 = 64;
