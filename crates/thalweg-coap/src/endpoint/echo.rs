//! Proof of a peer's address, and the bound on bytes to unproved addresses (RFC 9175 §2.3, §2.4).

use thalweg_base::time::Instant;

use super::encode::{Head, ResponsePart};
use super::exchange::{Exchange, Kind};
use super::ids::seconds;
use super::{Endpoint, Peer};
use crate::message::{Block, Body, Response};

/// Lifetime of an Echo value, in seconds: this period and the one before.
const PERIOD_SECONDS: u32 = 128;
/// The smallest block (RFC 7959 §2.2): a payload of this size is not cut.
const BLOCK_BYTES_MIN: usize = 16;

impl Endpoint {
    /// Notes that a peer sent back what only it could have got.
    pub(super) fn verify(&mut self, now: Instant, place: u32, echo: u64) {
        let period = seconds(now) / PERIOD_SECONDS;
        let is_right = [period, period.wrapping_sub(1)].iter().any(|period| self.echo(place, *period) == echo);
        self.peers.get_mut(place).verified |= is_right;
    }

    /// Notes that a peer told what only it could have got from this endpoint: it is at its address, and not silent.
    pub(super) fn note_proof(&mut self, place: u32) {
        let state = self.peers.get_mut(place);
        state.verified = true;
        state.requests.silence.end();
    }

    /// Whether a response of `len` bytes with this part of a body is too large for an address that may be forged, and a
    /// smaller one can be sent.
    pub(super) fn is_amplified(&self, exchange: &Exchange, part: &ResponsePart, len: usize) -> bool {
        let factor = usize::from(self.config.amplification_max);
        let state = self.peers.get(exchange.peer);
        if factor == 0 || state.verified || part.range.len() <= BLOCK_BYTES_MIN {
            return false;
        }
        let headers = header_bytes(state.peer);
        len + headers > factor * (exchange.request_bytes + headers)
    }

    /// Sends a smaller block in place of the last datagram, with an Echo value that proves the address when it comes back;
    /// of an error only the code.
    pub(super) fn shrink(
        &mut self,
        now: Instant,
        exchange: &mut Exchange,
        head: &Head,
        response: &mut Response,
        part: &mut ResponsePart,
    ) {
        debug_assert!(exchange.kind != Kind::Multicast, "nothing was sent yet");
        self.counters.shrunk += 1;
        if !response.code.is_success() {
            response.payload = Body::EMPTY;
        }
        let echo = self.echo(exchange.peer, seconds(now) / PERIOD_SECONDS).to_be_bytes();
        let observe = part.observe;
        let largest = part.block2.map_or(self.config.block_exponent, |block| block.exponent).min(Block::EXPONENT_MAX);
        for exponent in (0..=largest).rev() {
            *part = ResponsePart { observe, echo: Some(echo), ..self.part(now, exchange, response, exponent) };
            self.outbox.drop_last();
            let len = self.push_response(exchange, head, response, part);
            if !self.is_amplified(exchange, part, len) {
                return;
            }
        }
    }

    fn echo(&self, place: u32, period: u32) -> u64 {
        self.secret.hash((self.peers.get(place).peer, period, "echo"))
    }
}

/// Bytes of the headers of IP and UDP of a datagram: the bound is about bytes on the wire.
fn header_bytes(peer: Peer) -> usize {
    if peer.address.is_ipv4() { 28 } else { 48 }
}
