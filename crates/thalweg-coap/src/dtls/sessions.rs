//! The DTLS sessions of a server's socket.

mod renewal;

use std::collections::HashMap;
use std::sync::Arc;

use thalweg_base::time::Instant;

use super::DtlsError;
use super::association::{ClockOrigin, DtlsAssociation, DtlsStep, RECORD_MAX, ServerSide};
use super::cookie::Cookies;
use super::hello::{self, ClientHello};
use super::hosts::HostCounts;
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
    cookies: Cookies,
    entries: Slab<Entry>,
    places: HashMap<Peer, Places>,
    established: Recency,
    handshakes: Recency,
    /// Handshakes of each host.
    hosts: HostCounts,
    unproved: usize,
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
    /// Its address may be forged.
    Unproved,
    Handshake,
    /// The last messages of the handshake may have been lost.
    Established,
    /// The client has used the session.
    Used,
}

impl Stage {
    fn is_handshake(self) -> bool {
        matches!(self, Stage::Unproved | Stage::Handshake)
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
            cookies: Cookies::new(secret),
            entries: Slab::new(),
            places: HashMap::new(),
            established: Recency::new(),
            handshakes: Recency::new(),
            hosts: HostCounts::default(),
            unproved: 0,
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
            return self.handle_hello(now, from, places, &hello, bytes);
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
                entry.association.close();
                let _ = self.pump(now, id);
                self.end(id, &Over::Closed);
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

    /// A client wants a session, or wants another one.
    fn handle_hello(&mut self, now: Instant, from: Peer, places: Places, hello: &ClientHello<'_>, bytes: &[u8]) {
        if hello.offers_dtls13 && self.side.has_dtls13() {
            // The cookie of DTLS 1.3 is checked by the handshake that gave it.
            return match places.handshake {
                Some(id) => self.feed(now, id, bytes),
                None => self.begin(now, from, Stage::Unproved, |side, origin| {
                    DtlsAssociation::accept13(side, origin, now, bytes)
                }),
            };
        }
        if !self.cookies.is_valid(now, from.address, hello) {
            self.counts.challenged += 1;
            let cookie = self.cookies.make(now, from.address, hello);
            self.outbox.push(from, |out| hello::write_verify_request(out, hello, &cookie));
            return;
        }
        if let Some(id) = places.handshake.filter(|id| self.is_of_handshake(*id, hello)) {
            return self.feed(now, id, bytes);
        }
        if !self.side.choose(hello) {
            self.counts.failed += 1;
            return self.alert(from, HANDSHAKE_FAILURE);
        }
        if let Some(id) = places.handshake {
            self.end(id, &Over::Failed);
        }
        self.begin(now, from, Stage::Handshake, |side, origin| {
            DtlsAssociation::accept(side, origin, now, hello, bytes)
        });
    }

    /// Whether a ClientHello is the one that a handshake began with.
    fn is_of_handshake(&self, id: u64, hello: &ClientHello<'_>) -> bool {
        self.entries.get(id).is_some_and(|entry| entry.association.is_of(hello))
    }

    fn begin(
        &mut self,
        now: Instant,
        from: Peer,
        stage: Stage,
        open: impl FnOnce(&ServerSide, ClockOrigin) -> Result<DtlsAssociation, DtlsError>,
    ) {
        self.make_room(from.host(), stage);
        let association = match open(&self.side, self.origin).map(Box::new) {
            Ok(association) => association,
            Err(error) => {
                tracing::debug!(from = %from.address, %error, "a DTLS handshake failed at its beginning");
                self.counts.failed += 1;
                if stage != Stage::Unproved {
                    self.alert(from, HANDSHAKE_FAILURE);
                }
                return;
            }
        };
        self.serial = self.serial.wrapping_add(1).max(1);
        let peer = Peer { session: self.serial, ..from };
        let id = self.entries.insert(Entry { association, peer, stage, identity: None, timer: None, used_at: now });
        self.handshakes.insert(index_of(id));
        self.hosts.add(peer.host());
        self.unproved += usize::from(stage == Stage::Unproved);
        self.places.entry(from).or_default().handshake = Some(id);
        if let Turn::Over(over) = self.pump(now, id) {
            self.end(id, &over);
        }
    }

    /// Lets the oldest handshake go, if there is no room for another one: that of the same host, where it has as many as it may.
    fn make_room(&mut self, host: PeerHost, stage: Stage) {
        let is_unproved = stage == Stage::Unproved;
        let oldest = if is_unproved && self.unproved >= self.limits.unproved_max.max(1) {
            self.oldest_handshake(|entry| entry.stage == Stage::Unproved)
        } else if !is_unproved && self.hosts.of(host) >= self.limits.handshakes_per_host_max.max(1) {
            self.oldest_handshake(|entry| entry.peer.host() == host)
        } else if self.handshakes.len() >= self.limits.handshakes_max.max(1) {
            self.oldest_handshake(|_| true)
        } else {
            return;
        };
        if let Some(id) = oldest {
            self.counts.evicted += 1;
            self.remove(id);
        }
    }

    fn oldest_handshake(&self, is_meant: impl Fn(&Entry) -> bool) -> Option<u64> {
        let mut entries = self.handshakes.oldest_first().filter_map(|place| self.entries.at(place));
        entries.find(|(_, entry)| is_meant(entry)).map(|(id, _)| id)
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
                    self.established.touch(index_of(id));
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
        self.unproved -= usize::from(entry.stage == Stage::Unproved);
        entry.stage = Stage::Established;
        entry.used_at = now;
        self.handshakes.remove(index_of(id));
        let host = entry.peer.host();
        let places = self.places.entry(entry.peer.place()).or_default();
        places.handshake = None;
        let before = places.session.replace(id);
        self.counts.established += 1;
        if let Some(before) = before.filter(|before| self.entries.remove(*before).is_some()) {
            self.established.remove(index_of(before));
        }
        if self.established.len() >= self.limits.sessions_max.max(1)
            && let Some((oldest, _)) = self.established.oldest().and_then(|place| self.entries.at(place))
        {
            self.counts.evicted += 1;
            self.remove(oldest);
        }
        self.established.insert(index_of(id));
        self.hosts.release(host);
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
        if entry.stage == Stage::Handshake && matches!(over, Over::Failed) {
            self.alert(place, HANDSHAKE_FAILURE);
        }
        self.counts.failed += u64::from(matches!(over, Over::Failed));
        self.remove(id);
    }

    /// Tells a client whose address is proved that there will be no session.
    fn alert(&mut self, to: Peer, description: u8) {
        self.outbox.push(to, |out| hello::write_alert(out, description));
    }

    fn remove(&mut self, id: u64) {
        let Some(entry) = self.entries.remove(id) else { return };
        if let Some((timer, _)) = entry.timer {
            self.timers.cancel(timer);
        }
        self.unproved -= usize::from(entry.stage == Stage::Unproved);
        if entry.stage.is_handshake() {
            self.handshakes.remove(index_of(id));
            self.hosts.release(entry.peer.host());
        } else {
            self.established.remove(index_of(id));
        }
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
