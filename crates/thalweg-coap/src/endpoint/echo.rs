//! Proof of a peer's address, and the bound on bytes to unproved addresses (RFC 9175 §2.3, §2.4).

use thalweg_base::time::Instant;

use super::encode::{Head, ResponsePart};
use super::exchange::{Exchange, Kind};
use super::ids::seconds;
use super::in_flight::Backoff;
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
        state.end_silence();
    }

    /// Whether a response of `len` bytes with this part of a body is too large for an address that may be forged, and a
    /// smaller one can be sent.
    pub(super) fn is_amplified(&self, exchange: &Exchange, part: &ResponsePart, len: usize) -> bool {
        let headers = header_bytes(self.peers.get(exchange.peer).peer);
        let is_smallest = part.range.len() <= BLOCK_BYTES_MIN;
        !is_smallest && self.allowance(exchange).is_some_and(|allowance| len + headers > allowance)
    }

    /// Bytes on the wire that may still answer an exchange; `None` for an address that is proved.
    fn allowance(&self, exchange: &Exchange) -> Option<usize> {
        let factor = usize::from(self.config.amplification_max);
        let state = self.peers.get(exchange.peer);
        let bytes = factor * (exchange.request_bytes + header_bytes(state.peer));
        (factor > 0 && !state.verified).then(|| bytes.saturating_sub(exchange.spent_bytes as usize))
    }

    /// The pauses of the confirmable response or notification that just left. Its copies count as answers as well, so an
    /// address that may be forged gets fewer of them.
    pub(super) fn backoff_for(&mut self, exchange: &Exchange) -> Backoff {
        let first = self.first_backoff();
        let len = self.outbox.last().len() + header_bytes(self.peers.get(exchange.peer).peer);
        let copies = self.allowance(exchange).map_or(usize::MAX, |allowance| allowance / len);
        let left = u8::try_from(copies.saturating_sub(1)).map_or(first.left, |left| left.min(first.left));
        Backoff { left, ..first }
    }

    /// The Echo value of a peer at present.
    pub(super) fn current_echo(&self, now: Instant, place: u32) -> [u8; 8] {
        self.echo(place, seconds(now) / PERIOD_SECONDS).to_be_bytes()
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
        let echo = self.current_echo(now, exchange.peer);
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
pub(super) fn header_bytes(peer: Peer) -> usize {
    if peer.address.is_ipv4() { 28 } else { 48 }
}
