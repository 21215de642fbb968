//! The paper's network receiver: an event loop that takes, handles and sends datagrams by the batch.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_base::time::Instant;
use thalweg_transport::batch::{Arrivals, Arrived, BatchScratch, BatchSocket, Departure, Watch};
use thalweg_transport::clock;

use super::adapter::Adapter;
use super::backlog::Backlog;
use super::counts::LoopCounts;
use super::gate::Gate;
use super::pause::Pause;
use super::send_handler::SendHandler;
use crate::endpoint::{CoapOutbox, Endpoint, Peer};

/// One event loop with its socket and the state of the peers that the kernel assigns to it.
pub(super) struct NetworkReceiver {
    socket: BatchSocket,
    watch: Watch,
    endpoint: Endpoint,
    adapter: Adapter,
    arrivals: Arrivals,
    outbox: CoapOutbox,
    origins: Origins,
    backlog: Backlog,
    pause: Pause,
    gate: Gate,
    counts: LoopCounts,
    kernel_drops: KernelDrops,
}

/// Number of datagrams that the kernel dropped at this socket.
#[derive(Default)]
struct KernelDrops {
    /// As it told last.
    told: u32,
    /// Whether there was a filter since then.
    is_filtered: bool,
}

/// State shared by a loop and the server.
pub(super) struct Shared {
    /// Which of the loops it is.
    pub(super) home: usize,
    pub(super) homes: Arc<[SendHandler]>,
    pub(super) counts: Arc<Mutex<LoopCounts>>,
    pub(super) is_over: Arc<AtomicBool>,
}

impl NetworkReceiver {
    pub(super) fn new(socket: BatchSocket, watch: Watch, endpoint: Endpoint, adapter: Adapter) -> NetworkReceiver {
        NetworkReceiver {
            socket,
            watch,
            endpoint,
            adapter,
            arrivals: Arrivals::new(DATAGRAM_BYTES),
            outbox: CoapOutbox::default(),
            origins: Origins::default(),
            backlog: Backlog::default(),
            pause: Pause::default(),
            gate: Gate::default(),
            counts: LoopCounts::default(),
            kernel_drops: KernelDrops::default(),
        }
    }

    /// Serves until the server is over.
    ///
    /// # Errors
    /// When the socket or the wait fails, which only a lack of memory in the kernel brings about.
    pub(super) fn run(mut self, shared: &Shared) -> io::Result<()> {
        let mut scratch = BatchScratch::default();
        while !shared.is_over.load(Ordering::Relaxed) {
            let is_full = self.turn(&mut scratch)?;
            *shared.counts.lock().unwrap_or_else(PoisonError::into_inner) = self.counts;
            if let Some(pause) = self.pause.handle_turn(self.adapter.has_refused(), is_full) {
                std::thread::sleep(pause);
                continue;
            }
            let home = &shared.homes[shared.home];
            if is_full || !home.may_sleep() {
                continue;
            }
            if !shared.is_over.load(Ordering::SeqCst) {
                self.watch.wait(earlier(self.endpoint.poll_timeout(), self.gate.poll_timeout()))?;
            }
            home.has_slept();
        }
        Ok(())
    }

    /// Takes a batch, and sends ready answers; true when there may be more to take.
    fn turn(&mut self, scratch: &mut BatchScratch) -> io::Result<bool> {
        let count = self.socket.receive(&mut self.arrivals)?;
        // The only look at the clock for all datagrams of the batch.
        let now = clock::now();
        self.handle_arrivals(now, count);
        self.adapter.handle_inbox(now, &mut self.endpoint);
        if self.endpoint.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.adapter.handle_events(now, &mut self.endpoint, &mut self.counts);
        self.endpoint.poll_transmit(&mut self.outbox);
        if !self.outbox.is_empty() {
            self.send(scratch);
        }
        let is_full = count == self.arrivals.capacity();
        if let Some(bytes) = self.backlog.handle_batch(now, count, is_full) {
            self.socket.set_receive_buffer(bytes)?;
        }
        if let Some(program) = self.gate.handle_turn(now) {
            self.kernel_drops.is_filtered = true;
            if let Err(error) = self.socket.set_filter(&program) {
                // Requests are then dropped by this loop alone.
                tracing::warn!(%error, "the kernel took no filter against an overload; is net.core.optmem_max too small?");
                self.socket.set_filter(&[])?;
                self.gate = Gate::disabled();
            }
        }
        Ok(is_full)
    }

    fn handle_arrivals(&mut self, now: Instant, count: usize) {
        self.counts.receive_calls += 1;
        self.counts.received += count as u64;
        self.adapter.begin_batch();
        for arrived in self.arrivals.iter() {
            let Some(Arrived { bytes, source, destination, kernel_drops, .. }) = arrived else {
                self.counts.truncated += 1;
                continue;
            };
            if let Some(drops) = kernel_drops {
                let new = u64::from(drops.wrapping_sub(self.kernel_drops.told));
                let counter = if self.kernel_drops.is_filtered {
                    &mut self.counts.filtered
                } else {
                    &mut self.counts.kernel_drops
                };
                *counter += new;
                self.kernel_drops = KernelDrops { told: drops, is_filtered: self.gate.is_shut() };
            }
            if self.adapter.drops(bytes) {
                self.counts.dropped += 1;
                self.gate.handle_drop(now, bytes);
                continue;
            }
            self.gate.handle_kept(bytes);
            let peer = Peer::from(source);
            match destination {
                Some(group) if group.is_multicast() => self.endpoint.handle_multicast(now, peer, bytes),
                Some(address) => {
                    self.origins.note(source, address);
                    self.endpoint.handle_datagram(now, peer, bytes);
                }
                None => self.endpoint.handle_datagram(now, peer, bytes),
            }
        }
    }

    fn send(&mut self, scratch: &mut BatchScratch) {
        let origins = &self.origins;
        let departures = self.outbox.iter().map(|transmit| {
            let to = transmit.peer.address;
            Departure { to, from: origins.of(to), bytes: transmit.bytes }
        });
        let sent = self.socket.send(scratch, departures);
        self.counts.sent += sent.datagrams as u64;
        self.counts.send_lost += sent.lost as u64;
        self.counts.send_calls += sent.calls as u64;
        self.outbox.clear();
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// Which of this host's addresses peers talk to: what goes back must come from there (RFC 7252 §4.2). Empty for a socket
/// that is bound to one address.
#[derive(Debug, Default)]
struct Origins(HashMap<SocketAddr, IpAddr>);

impl Origins {
    fn note(&mut self, peer: SocketAddr, address: IpAddr) {
        // Forgotten ones are noted again with their next datagram.
        if self.0.len() >= ORIGINS_MAX && !self.0.contains_key(&peer) {
            self.0.clear();
        }
        self.0.insert(peer, address);
    }

    fn of(&self, peer: SocketAddr) -> Option<IpAddr> {
        if self.0.is_empty() { None } else { self.0.get(&peer).copied() }
    }
}

/// Longer datagrams are no CoAP messages for this server: RFC 7252 §4.6 reckons with 1,152 bytes, larger bodies come in
/// blocks.
const DATAGRAM_BYTES: usize = 2048;
/// Peers of a socket for every address.
const ORIGINS_MAX: usize = 16_384;
