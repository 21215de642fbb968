//! Proof that a peer gets what is sent to its address, and the bound on what others get (RFC 9175 §2.3, §2.4).

use thalweg_rtps::time::Instant;

use super::Endpoint;
use super::encode::{Head, Part};
use super::ids::seconds;
use super::server::{Exchange, Kind, whole};
use crate::message::{Code, OptionNumber, Response};

/// How long an Echo value is good, in seconds: this period and the one before.
const PERIOD_SECONDS: u32 = 128;

impl Endpoint {
    /// Notes that a peer sent back what only it could have got.
    pub(super) fn verify(&mut self, now: Instant, place: u32, echo: u64) {
        let period = seconds(now) / PERIOD_SECONDS;
        let is_right = [period, period.wrapping_sub(1)].iter().any(|period| self.echo(place, *period) == echo);
        self.peers.get_mut(place).verified |= is_right;
    }

    /// Whether a response is too large for an address that may be forged.
    pub(super) fn is_amplified(&self, exchange: &Exchange, len: usize) -> bool {
        let limit = usize::from(self.config.amplification_max) * exchange.request_bytes;
        limit > 0 && len > limit && !self.peers.get(exchange.peer).verified
    }

    /// Sends something smaller in place of the last datagram. A request that changes nothing can be asked for again; of
    /// the response to another one a smaller block is sent, and the client fetches the rest.
    pub(super) fn shrink(
        &mut self,
        now: Instant,
        exchange: &mut Exchange,
        head: &Head,
        response: &mut Response,
        part: &mut Part,
    ) {
        self.counters.challenged += 1;
        if exchange.code.is_safe() {
            self.forget_registration(exchange);
            let echo = self.echo(exchange.peer, seconds(now) / PERIOD_SECONDS);
            *response = Response::new(Code::UNAUTHORIZED).with_option(OptionNumber::ECHO, &echo.to_be_bytes());
            *part = whole(response);
            self.write_again(exchange, head, response, part);
            return;
        }
        let wanted = part.block2.map_or(self.config.block_exponent, |block| block.exponent);
        for exponent in (0..wanted).rev() {
            *part = self.part(now, exchange, response, exponent);
            let len = self.write_again(exchange, head, response, part);
            if !self.is_amplified(exchange, len) {
                return;
            }
        }
    }

    fn write_again(&mut self, exchange: &mut Exchange, head: &Head, response: &Response, part: &Part) -> usize {
        debug_assert!(exchange.kind != Kind::Multicast, "nothing was sent yet");
        self.outbox.drop_last();
        self.push_response(exchange, head, response, part)
    }

    fn echo(&self, place: u32, period: u32) -> u64 {
        self.secret.hash((self.peers.get(place).peer, period, "echo"))
    }
}
