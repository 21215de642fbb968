//! What clients prove before a handshake takes memory: that they are at their addresses (RFC 6347 §4.2.1, RFC 9147 §5.1).
//!
//! A handshake of DTLS 1.3 covers the client's first message, which the server has not kept. The cookie proves that it is the
//! second one without the cookie, and how much padding it had. Clients may change more, which a few kept messages allow for.

use std::collections::VecDeque;

use thalweg_base::time::Instant;

use super::cookie::{self, Cookies};
use super::hello::ClientHello;
use crate::endpoint::Peer;

/// Cookies, and the first messages of the clients of DTLS 1.3 that were asked for one last.
pub struct Challenges {
    /// Those of all versions.
    pub cookies: Cookies,
    kept: VecDeque<FirstHello>,
    kept_max: usize,
}

/// The first message of a client, whose address may be forged.
struct FirstHello {
    from: Peer,
    datagram: Box<[u8]>,
}

impl Challenges {
    pub fn new(secret: [u64; 2], kept_max: usize) -> Challenges {
        Challenges { cookies: Cookies::new(secret), kept: VecDeque::new(), kept_max }
    }

    /// Keeps the first message of a client of DTLS 1.3. The oldest makes room: of its own host, where this has a quarter.
    pub fn keep(&mut self, from: Peer, datagram: &[u8]) {
        self.forget(from);
        if datagram.len() > KEPT_BYTES_MAX || self.kept_max == 0 {
            return;
        }
        let host = from.host();
        let of_host = self.kept.iter().filter(|one| one.from.host() == host).count();
        if of_host >= self.kept_max.div_ceil(4) {
            if let Some(oldest) = self.kept.iter().position(|one| one.from.host() == host) {
                self.kept.remove(oldest);
            }
        } else if self.kept.len() >= self.kept_max {
            self.kept.pop_front();
        }
        self.kept.push_back(FirstHello { from, datagram: datagram.into() });
    }

    /// The first message of the client that sent `again` with a cookie; `None` when this is not a cookie of its.
    pub fn first_of(&self, now: Instant, from: Peer, again: &ClientHello<'_>) -> Option<Vec<u8>> {
        let cookie = again.retry_cookie?;
        let kept = self.kept.iter().find(|one| one.from == from).map(|one| &*one.datagram);
        if let Some(first) = kept
            && let Some(hello) = ClientHello::parse(first)
            && self.cookies.is_valid_retry(now, from.address, &hello, cookie)
        {
            return Some(first.to_vec());
        }
        if !self.cookies.is_valid_retry(now, from.address, again, cookie) {
            return None;
        }
        let mut first = Vec::new();
        again.write_without_retry(cookie::padding_of(cookie), &mut first);
        Some(first)
    }

    /// Lets the first message of a client go.
    pub fn forget(&mut self, from: Peer) {
        self.kept.retain(|one| one.from != from);
    }
}

/// Bytes of a first message that is kept: more than a datagram of Ethernet has.
const KEPT_BYTES_MAX: usize = 2048;
