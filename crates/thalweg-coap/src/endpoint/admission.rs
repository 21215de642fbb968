//! Requests that are refused before their handlers are asked, and bodies that arrive in blocks.

use thalweg_base::time::Instant;

use super::Endpoint;
use super::answers::RunFate;
use super::exchange::Exchange;
use crate::message::{Block, Body, CoapMessage, Code, RequestBuf, Response};

/// Bytes of a request that came in one datagram, at most.
const BODY_BYTES_SMALL: usize = 4096;

impl Endpoint {
    /// Why a request that must not run twice may not run: its answer could not be kept for its repetitions.
    pub(super) fn refusal_to_run(&mut self, now: Instant, place: u32) -> Option<Response> {
        let state = self.peers.get(place);
        match self.server.answers_once.fate(now, state.peer.host(), state.verified) {
            RunFate::Allowed => None,
            RunFate::Unproved => Some(Response::challenge(Body::EMPTY)),
            RunFate::Full(seconds) => Some(Response::new(Code::SERVICE_UNAVAILABLE).with_max_age(seconds)),
        }
    }

    /// Whether handlers hold so many bytes that a request of `bytes` must not come on top. A body that took several datagrams
    /// leaves room for requests of one.
    #[inline]
    pub(super) fn exceeds_budget(&self, bytes: usize) -> bool {
        let budget = self.config.limits.handler_bytes_max;
        let budget = if bytes > BODY_BYTES_SMALL { budget / 4 * 3 } else { budget };
        self.server.request_bytes + bytes > budget
    }

    #[cold]
    pub(super) fn refuse_bytes(&mut self, now: Instant, mut exchange: Exchange, request: RequestBuf) {
        self.counters.bytes_refused += 1;
        self.spare.put_request(request);
        exchange.refuse();
        self.finish(now, exchange, Response::new(Code::SERVICE_UNAVAILABLE).with_max_age(1));
    }

    /// Adds a block to the body of a request; the last one completes it (RFC 7959 §2.5).
    pub(super) fn upload(&mut self, now: Instant, exchange: Exchange, block: Block, message: &CoapMessage<'_>) {
        let key = self.body_key(exchange.peer, &exchange.asked);
        let body_max = self.config.limits.body_bytes_max;
        let too_large = |exchange: &Exchange| Response {
            size: Some(u32::try_from(body_max).unwrap_or(u32::MAX)),
            ..Response::error(Code::REQUEST_ENTITY_TOO_LARGE, format!("at most {body_max} bytes to {}", exchange.code))
        };
        let declared = exchange.asked.size1.unwrap_or(0) as usize;
        if declared > body_max || block.offset() + message.payload.len() > body_max {
            self.server.uploads.take(now, key);
            let response = too_large(&exchange);
            return self.finish(now, exchange, response);
        }
        let mut body = self.server.uploads.take(now, key).unwrap_or_default();
        if block.number == 0 {
            body.clear();
        }
        let is_full = message.payload.len() == block.size();
        if body.len() != block.offset() || (block.more && !is_full) || message.payload.len() > block.size() {
            let response = Response::error(Code::REQUEST_ENTITY_INCOMPLETE, "a block is missing or has a wrong size");
            return self.finish(now, exchange, response);
        }
        body.extend_from_slice(message.payload);
        if block.more {
            let ends = now + self.config.times.exchange_lifetime;
            let bytes = body.len();
            let is_held = self.server.uploads.insert(key, body, bytes, ends);
            let code = if is_held { Code::CONTINUE } else { Code::SERVICE_UNAVAILABLE };
            return self.finish(now, exchange, Response::new(code));
        }
        let mut exchange = exchange;
        if message.code == Code::FETCH {
            exchange.asked.payload = self.payload_hash(&body);
        }
        let mut request = self.spare.request();
        request.refill(message.code, message.options, &[]);
        request.set_payload(body);
        self.ask(now, exchange, request);
    }
}
