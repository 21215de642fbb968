//! ClientHellos: first they prove an address, and nothing is kept for it; then a handshake begins.

use thalweg_base::time::Instant;

use super::{Entry, HANDSHAKE_FAILURE, Sessions, Stage, Turn};
use crate::dtls::DtlsError;
use crate::dtls::association::{ClockOrigin, DtlsAssociation, ServerSide};
use crate::dtls::hello::{self, ClientHello};
use crate::endpoint::slab::index_of;
use crate::endpoint::{Peer, PeerHost};

impl Sessions {
    /// A client wants a session, or wants another one.
    pub(super) fn handle_hello(&mut self, now: Instant, from: Peer, hello: &ClientHello<'_>, bytes: &[u8]) {
        if hello.offers_dtls13 && self.side.has_dtls13() {
            return self.handle_hello13(now, from, hello, bytes);
        }
        if !self.challenges.cookies.is_valid(now, from.address, hello) {
            self.counts.challenged += 1;
            let cookie = self.challenges.cookies.make(now, from.address, hello);
            self.outbox.push(from, |out| hello::write_verify_request(out, hello, &cookie));
            return;
        }
        if let Some(id) = self.handshake_of(from, hello) {
            return self.feed(now, id, bytes);
        }
        if !self.side.choose(hello) {
            self.counts.failed += 1;
            return self.alert(from, HANDSHAKE_FAILURE);
        }
        self.begin(now, from, |side, origin| DtlsAssociation::accept(side, origin, now, hello, bytes));
    }

    fn handle_hello13(&mut self, now: Instant, from: Peer, hello: &ClientHello<'_>, bytes: &[u8]) {
        if hello.retry_cookie.is_none() {
            return self.ask_again(now, from, hello, bytes);
        }
        if let Some(id) = self.handshake_of(from, hello) {
            return self.feed(now, id, bytes);
        }
        let Some(first) = self.challenges.first_of(now, from, hello) else {
            // The client then begins anew (RFC 9147 §5.1).
            self.counts.failed += 1;
            return self.alert(from, ILLEGAL_PARAMETER);
        };
        self.challenges.forget(from);
        self.begin(now, from, |side, origin| DtlsAssociation::accept13(side, origin, now, hello, (&first[..], bytes)));
    }

    /// Asks a client of DTLS 1.3 for a cookie. It is asked once for each message of its: nothing is repeated for an address
    /// that may be forged.
    fn ask_again(&mut self, now: Instant, from: Peer, hello: &ClientHello<'_>, bytes: &[u8]) {
        let cookie = self.challenges.cookies.make_retry(now, from.address, hello);
        match DtlsAssociation::ask_again(&self.side, self.origin, now, bytes, cookie, &mut self.buffer) {
            Ok(request) => {
                self.counts.challenged += 1;
                self.outbox.push(from, |out| out.extend_from_slice(request));
                self.challenges.keep(from, bytes);
            }
            Err(error) => {
                tracing::debug!(from = %from.address, %error, "a DTLS client cannot be agreed with");
                self.counts.failed += 1;
                self.alert(from, HANDSHAKE_FAILURE);
            }
        }
    }

    /// The handshake that began with this ClientHello, which then is a repetition.
    fn handshake_of(&self, from: Peer, hello: &ClientHello<'_>) -> Option<u64> {
        let id = self.places.get(&from)?.handshake?;
        self.entries.get(id).filter(|entry| entry.association.is_of(hello)).map(|_| id)
    }

    /// Begins the handshake of a client that proved its address.
    fn begin(
        &mut self,
        now: Instant,
        from: Peer,
        open: impl FnOnce(&ServerSide, ClockOrigin) -> Result<DtlsAssociation, DtlsError>,
    ) {
        if let Some(id) = self.places.get(&from).and_then(|places| places.handshake) {
            // Without an alert: a client that begins anew would take it for an answer to this handshake.
            self.counts.failed += 1;
            self.remove(id);
        }
        self.make_room(from.host());
        let association = match open(&self.side, self.origin).map(Box::new) {
            Ok(association) => association,
            Err(error) => {
                tracing::debug!(from = %from.address, %error, "a DTLS handshake failed at its beginning");
                self.counts.failed += 1;
                return self.alert(from, HANDSHAKE_FAILURE);
            }
        };
        self.serial = self.serial.wrapping_add(1).max(1);
        let (peer, stage) = (Peer { session: self.serial, ..from }, Stage::Handshake);
        let id = self.entries.insert(Entry { association, peer, stage, identity: None, timer: None, used_at: now });
        self.handshakes.insert(from.host(), index_of(id));
        self.places.entry(from).or_default().handshake = Some(id);
        if let Turn::Over(over) = self.pump(now, id) {
            self.end(id, &over);
        }
    }

    /// Lets the oldest handshake go, if there is no room for another one: that of the same host, where it has as many as it may.
    fn make_room(&mut self, host: PeerHost) {
        let oldest = if self.handshakes.len_of(host) >= self.limits.handshakes_per_host_max.max(1) {
            self.handshakes.oldest_of(host)
        } else if self.handshakes.len() >= self.limits.handshakes_max.max(1) {
            self.handshakes.oldest()
        } else {
            return;
        };
        if let Some((id, _)) = oldest.and_then(|place| self.entries.at(place)) {
            self.counts.evicted += 1;
            self.remove(id);
        }
    }
}

/// An alert's description (RFC 8446 §6.2).
const ILLEGAL_PARAMETER: u8 = 47;
