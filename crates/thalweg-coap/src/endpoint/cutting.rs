//! Responses cut into blocks for their clients (RFC 7959).

use thalweg_base::time::Instant;

use super::Endpoint;
use super::asked::Asked;
use super::encode::{OutOfRange, ResponsePart, cut};
use super::exchange::Exchange;
use crate::message::{Block, Code, ETag, OptionNumber, PROTECTED_BYTES_MAX, Response};

impl Endpoint {
    /// The part of a response that fits into one message, for a client that asked for one or not; its blocks are not larger
    /// than the exponent says. The response becomes an error if the client asked for a block behind its end.
    pub(super) fn part(
        &mut self,
        now: Instant,
        exchange: &Exchange,
        response: &mut Response,
        exponent: u8,
    ) -> ResponsePart {
        let exponent = exponent.min(Block::EXPONENT_MAX);
        let asked = exchange.asked.block2.filter(|_| response.code.is_success());
        // Smaller blocks than that are for an address that may be forged.
        let is_largest = exponent >= self.config.block_exponent.min(Block::EXPONENT_MAX);
        let is_whole = asked.is_none() && is_largest && goes_whole(response);
        let found = if is_whole { Ok(None) } else { cut(response.payload.len(), asked, exponent) };
        let found = found.unwrap_or_else(|OutOfRange| {
            *response = Response::error(Code::BAD_REQUEST, "the block lies behind the end of the body");
            None
        });
        let more = response.code == Code::CONTINUE;
        let block1 = exchange.asked.block1;
        let block1 = block1.map(|block| Block { more, exponent: block.exponent.min(exponent), ..block });
        let Some((block, range)) = found else {
            return ResponsePart { block1, ..whole(response) };
        };
        let is_whole = block.number == 0 && !block.more;
        if !is_whole && response.etag.is_none() {
            response.etag = Some(ETag::from_u64(self.secret.hash(&*response.payload)));
        }
        if block.more && block.number == 0 {
            self.hold_body(now, exchange, response);
        }
        ResponsePart { observe: None, block1, block2: Some(block), echo: None, range }
    }

    /// Keeps a body for the requests for its further blocks.
    fn hold_body(&mut self, now: Instant, exchange: &Exchange, response: &mut Response) {
        response.payload = std::mem::take(&mut response.payload).into_shared();
        let ends = now + self.config.times.exchange_lifetime;
        let key = self.body_key(exchange.peer, &exchange.asked);
        self.server.bodies.insert(key, response.clone(), response.payload.len(), ends);
        if exchange.asked.payload != 0 {
            // A client need not repeat its payload when it asks for further blocks (RFC 7959 §3.3).
            let key = self.body_key(exchange.peer, &Asked { payload: 0, ..exchange.asked });
            self.server.bodies.insert(key, response.clone(), 0, ends);
        }
    }

    pub(super) fn body_key(&self, place: u32, asked: &Asked) -> u64 {
        self.secret.hash((self.peers.get(place).peer, asked.representation, asked.payload))
    }

    /// Tells apart the requests of FETCH, whose payload says what of the resource is wanted (RFC 8132 §2.1); 0 for none.
    pub(super) fn payload_hash(&self, payload: &[u8]) -> u64 {
        if payload.is_empty() { 0 } else { self.secret.hash(payload) }
    }
}

/// Whether a response is protected by another server in one message, which its client cannot put together of blocks.
fn goes_whole(response: &Response) -> bool {
    let is_protected = || response.options.iter().any(|(number, _)| *number == OptionNumber::OSCORE);
    response.payload.len() <= PROTECTED_BYTES_MAX && is_protected()
}

/// A response that is not cut.
pub(super) fn whole(response: &Response) -> ResponsePart {
    ResponsePart { observe: None, block1: None, block2: None, echo: None, range: 0..response.payload.len() }
}
