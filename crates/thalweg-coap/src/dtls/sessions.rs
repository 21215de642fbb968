//! The DTLS sessions of a server's socket.

mod hellos;
mod renewal;

use std::collections::HashMap;
use std::sync::Arc;

use thalweg_base::time::Instant;

use super::DtlsError;
use super::association::{ClockOrigin, DtlsAssociation, DtlsStep, RECORD_MAX, ServerSide};
use super::challenges::Challenges;
use super::hello::{self, ClientHello};
use super::limits::{SessionCounts, SessionLimits};
use super::recency::Recency;
use super::record::RecordKind;
use crate::credentials::{Credentials, Trust};
use crate::endpoint::slab::{Slab, index_of};
use crate::endpoint::timers::{TimerId, Timers};
use crate::endpoint::{CoapOutbox, Peer, PeerHost};
use crate::identity::{SessionIdentity, read_subject};

/// All sessions of a socket.
pub struct Sessions {
    side: ServerSide,
    trust: Option<Trust>,
    limits: SessionLimits,
    origin: ClockOrigin,
    challenges: Challenges,
    entries: Slab<Entry>,
    places: HashMap<Peer, Places>,
    established: Recency,
    handshakes: Recency,
    timers: Timers<u64>,
    serial: u32,
    counts: SessionCounts,
    plain: CoapOutbox,
    outbox: CoapOutbox,
    buffer: Box<[u8; RECORD_MAX]>,
}

/// What an address has.
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    session: Option<u64>,
    /// A handshake, which takes the session's place when it is complete (RFC 6347 §4.2.8).
    handshake: Option<u64>,
}

struct Entry {
    /// In a place of its own, which goes with it: it is most of what a session holds.
    association: Box<DtlsAssociation>,
    peer: Peer,
    stage: Stage,
    identity: Option<Arc<SessionIdentity>>,
    timer: Option<(TimerId, Instant)>,
    used_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its client has proved its address.
    Handshake,
    /// The last messages of the handshake may have been lost.
    Established,
    /// The client has used the session.
    Used,
}

impl Stage {
    fn is_handshake(self) -> bool {
        self == Stage::Handshake
    }
}

/// What became of an entry.
enum Turn {
    GoesOn,
    Over(Over),
}

enum Over {
    Closed,
    Failed,
}

impl Sessions {
    /// No sessions yet. `secret` has to come from the system's entropy: cookies follow from it.
    ///
    /// # Errors
    /// When there is neither a key nor a certificate, or one that cannot be used.
    pub fn new(
        credentials: &Credentials,
        limits: SessionLimits,
        secret: [u64; 2],
        origin: ClockOrigin,
    ) -> Result<Sessions, DtlsError> {
        let trust = credentials.trust.clone();
        let side = ServerSide::new(
            &credentials.keys,
            credentials.certificate.as_ref(),
            trust.is_some(),
            limits.handshake_max,
        )?;
        Ok(Sessions {
            side,
            trust,
            limits,
            origin,
            challenges: Challenges::new(secret, limits.unproved_max),
            entries: Slab::new(),
            places: HashMap::new(),
            established: Recency::default(),
            handshakes: Recency::default(),
            timers: Timers::new(),
            serial: 0,
            counts: SessionCounts::default(),
            plain: CoapOutbox::default(),
            outbox: CoapOutbox::default(),
            buffer: Box::new([0; RECORD_MAX]),
        })
    }

    /// Whether a server can use these credentials.
    ///
    /// # Errors
    /// As [`Sessions::new`].
    pub fn check(credentials: &Credentials) -> Result<(), DtlsError> {
        let (asks_clients, timeout) = (credentials.trust.is_some(), SessionLimits::default().handshake_max);
        ServerSide::new(&credentials.keys, credentials.certificate.as_ref(), asks_clients, timeout).map(drop)
    }

    /// Takes a datagram from an address, whose peer has no session of its own; [`Sessions::plain`] has what it said.
    pub fn handle_datagram(&mut self, now: Instant, from: impl Into<Peer>, bytes: &[u8]) {
        let from = from.into().place();
        self.plain.clear();
        let places = self.places.get(&from).copied().unwrap_or_default();
        let Some(kind) = RecordKind::of(bytes) else {
            self.counts.unreadable += 1;
            return;
        };
        if kind == RecordKind::PlainHandshake
            && let Some(hello) = ClientHello::parse(bytes)
        {
            return self.handle_hello(now, from, &hello, bytes);
        }
        let session = places.session.filter(|id| match self.entries.get(*id).map(|entry| entry.stage) {
            Some(Stage::Established) => true,
            // Once the client has used the session, nothing without protection can be of it.
            Some(Stage::Used) => kind != RecordKind::PlainHandshake && kind != RecordKind::Plain,
            _ => false,
        });
        let targets = match kind {
            RecordKind::Data => [session.or(places.handshake), None],
            // Only the keys tell whose it is: anybody can begin a handshake from a client's address.
            RecordKind::Protected => [session, places.handshake],
            RecordKind::Plain | RecordKind::PlainHandshake => [places.handshake.or(session), None],
        };
        if targets == [None; 2] {
            self.counts.unreadable += 1;
        }
        targets.into_iter().flatten().for_each(|id| self.feed(now, id, bytes));
    }

    /// What the last datagram said: plaintexts of one peer.
    pub fn plain(&self) -> &CoapOutbox {
        &self.plain
    }

    /// Protects a datagram for a peer; false when its session is over, or another one has its address.
    pub fn protect(&mut self, now: Instant, peer: Peer, bytes: &[u8]) -> bool {
        let Some(id) = self.session_of(peer) else { return false };
        let Some(entry) = self.entries.get_mut(id) else { return false };
        let turn = match entry.association.handle_timeout(now).and_then(|()| entry.association.send(bytes)) {
            Ok(()) => self.pump(now, id),
            Err(_) => Turn::Over(Over::Closed),
        };
        match turn {
            Turn::GoesOn => true,
            Turn::Over(over) => {
                self.end(id, &over);
                false
            }
        }
    }

    /// What the client of a peer's session proved.
    pub fn identity(&self, peer: Peer) -> Option<Arc<SessionIdentity>> {
        self.entries.get(self.session_of(peer)?)?.identity.clone()
    }

    /// Replaces the content of `outbox` by the datagrams that are ready; false when there is none.
    pub fn poll_transmit(&mut self, outbox: &mut CoapOutbox) -> bool {
        outbox.clear();
        std::mem::swap(outbox, &mut self.outbox);
        !outbox.is_empty()
    }

    /// When [`Sessions::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Repeats what was lost in handshakes, and ends those that take too long and sessions that were silent for too long.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(id) = self.timers.fire(now) {
            let Some(entry) = self.entries.get_mut(id) else { continue };
            entry.timer = None;
            let is_idle = !entry.stage.is_handshake() && now.since(entry.used_at) >= self.limits.idle_max;
            if is_idle {
                self.retire(now, id);
                continue;
            }
            let turn = match entry.association.handle_timeout(now) {
                Ok(()) => self.pump(now, id),
                Err(_) => Turn::Over(Over::Failed),
            };
            if let Turn::Over(over) = turn {
                self.end(id, &over);
            }
        }
    }

    /// The numbers so far.
    pub fn counts(&self) -> SessionCounts {
        let mut counts = SessionCounts { sessions: 0, handshakes: 0, ..self.counts };
        counts.handshakes = self.handshakes.len();
        counts.sessions = self.entries.len() - counts.handshakes;
        counts
    }

    fn session_of(&self, peer: Peer) -> Option<u64> {
        let id = self.places.get(&peer.place())?.session?;
        self.entries.get(id).filter(|entry| entry.peer == peer).map(|_| id)
    }

    fn feed(&mut self, now: Instant, id: u64, bytes: &[u8]) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        let handled = entry.association.handle(now, bytes);
        // Whatever becomes of the datagram, a key that was looked up for it belongs to no other session.
        if let Some(identity) = self.side.take_identity().filter(|_| entry.stage.is_handshake()) {
            entry.identity = Some(Arc::new(SessionIdentity::PresharedKey(identity)));
        }
        let turn = match handled {
            Ok(()) => self.pump(now, id),
            Err(error) => {
                tracing::debug!(%error, "a DTLS session failed");
                Turn::Over(Over::Failed)
            }
        };
        if let Turn::Over(over) = turn {
            self.end(id, &over);
        }
    }

    /// Carries out what a connection wants.
    fn pump(&mut self, now: Instant, id: u64) -> Turn {
        loop {
            let Some(entry) = self.entries.get_mut(id) else { return Turn::GoesOn };
            match entry.association.poll(&mut self.buffer) {
                DtlsStep::Send(bytes) => {
                    self.outbox.push(entry.peer, |out| out.extend_from_slice(bytes));
                }
                // What comes before the handshake is complete is not believed.
                DtlsStep::Plain(_) if entry.stage.is_handshake() => {}
                DtlsStep::Nothing => {}
                DtlsStep::Plain(bytes) => {
                    entry.stage = Stage::Used;
                    entry.used_at = now;
                    let peer = entry.peer;
                    self.plain.push(peer, |out| out.extend_from_slice(bytes));
                    self.established.touch(peer.host(), index_of(id));
                }
                DtlsStep::Certificate(der) => {
                    let checked = self.trust.as_ref().map(|trust| trust.check_client(der));
                    if let Some(Err(error)) = checked {
                        tracing::info!(peer = %entry.peer, %error, "a DTLS client is refused");
                        return Turn::Over(Over::Failed);
                    }
                    entry.identity = checked
                        .and_then(|_| read_subject(der))
                        .map(|subject| Arc::new(SessionIdentity::Certificate { subject }));
                }
                DtlsStep::Connected => self.establish(now, id),
                DtlsStep::Closed => return Turn::Over(Over::Closed),
                DtlsStep::Idle(until) => {
                    self.plan(now, id, until);
                    return Turn::GoesOn;
                }
            }
        }
    }

    /// The handshake is complete: the session takes the place of one before it.
    fn establish(&mut self, now: Instant, id: u64) {
        let Some(entry) = self.entries.get_mut(id).filter(|entry| entry.stage.is_handshake()) else { return };
        entry.stage = Stage::Established;
        entry.used_at = now;
        let (place, host) = (entry.peer.place(), entry.peer.host());
        self.handshakes.remove(host, index_of(id));
        let places = self.places.entry(place).or_default();
        places.handshake = None;
        let before = places.session.replace(id);
        self.counts.established += 1;
        if let Some(before) = before.filter(|before| self.entries.remove(*before).is_some()) {
            self.established.remove(host, index_of(before));
        }
        self.make_room_for_session(now, host);
        self.established.insert(host, index_of(id));
    }

    /// Ends the session that was silent longest, if there is no room for another one: that of the same host, where it has as
    /// many as it may.
    fn make_room_for_session(&mut self, now: Instant, host: PeerHost) {
        let oldest = if self.established.len_of(host) >= self.limits.sessions_per_host_max.max(1) {
            self.established.oldest_of(host)
        } else if self.established.len() >= self.limits.sessions_max.max(1) {
            self.established.oldest()
        } else {
            return;
        };
        if let Some((id, _)) = oldest.and_then(|place| self.entries.at(place)) {
            self.counts.evicted += 1;
            self.retire(now, id);
        }
    }

    /// Ends a session and says so: its client would go on with it.
    fn retire(&mut self, now: Instant, id: u64) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        entry.association.close();
        // Whatever it says, it is over.
        let _ = self.pump(now, id);
        self.remove(id);
    }

    /// Sets the timer of a connection to the next thing that is due.
    fn plan(&mut self, now: Instant, id: u64, until: Instant) {
        let idle_max = self.limits.idle_max;
        let Some(entry) = self.entries.get_mut(id) else { return };
        let silent_since = if entry.stage.is_handshake() { now } else { entry.used_at };
        let at = until.min(silent_since + idle_max);
        match entry.timer {
            // It may fire early: then it is set again.
            Some((_, set)) if set <= at => return,
            Some((timer, _)) => self.timers.cancel(timer),
            None => {}
        }
        entry.timer = Some((self.timers.set(at, id), at));
    }

    fn end(&mut self, id: u64, over: &Over) {
        let Some(entry) = self.entries.get(id) else { return };
        let place = entry.peer.place();
        if entry.stage.is_handshake() && matches!(over, Over::Failed) {
            self.alert(place, HANDSHAKE_FAILURE);
        }
        self.counts.failed += u64::from(matches!(over, Over::Failed));
        self.remove(id);
    }

    /// Tells a client that there will be no session, by a datagram shorter than any ClientHello.
    fn alert(&mut self, to: Peer, description: u8) {
        self.outbox.push(to, |out| hello::write_alert(out, description));
    }

    fn remove(&mut self, id: u64) {
        let Some(entry) = self.entries.remove(id) else { return };
        if let Some((timer, _)) = entry.timer {
            self.timers.cancel(timer);
        }
        let order = if entry.stage.is_handshake() { &mut self.handshakes } else { &mut self.established };
        order.remove(entry.peer.host(), index_of(id));
        let Some(places) = self.places.get_mut(&entry.peer.place()) else { return };
        for place in [&mut places.session, &mut places.handshake] {
            place.take_if(|held| *held == id);
        }
        if places.session.is_none() && places.handshake.is_none() {
            self.places.remove(&entry.peer.place());
        }
    }
}

/// An alert's description (RFC 5246 §7.2.2).
const HANDSHAKE_FAILURE: u8 = 40;
