//! Datagrams that arrive: their classification and dispatch (RFC 7252 §4.2, §4.3).

use thalweg_base::time::Instant;

use super::cutting::whole;
use super::encode::{Head, ResponsePart, write_response};
use super::{Endpoint, Peer, Reach};
use crate::message::{Block, CoapMessage, Code, HEADER_LEN, MessageId, MessageType, Response, Token, empty_message};

impl Endpoint {
    #[inline]
    pub(super) fn receive(&mut self, now: Instant, peer: Peer, bytes: &[u8], reach: Reach) {
        let Ok(message) = CoapMessage::parse(bytes) else {
            return self.reject_malformed(peer, bytes, reach);
        };
        let Some(place) = self.peers.hold(peer, &mut self.rng) else {
            self.counters.peers_refused += 1;
            let response = Response::new(Code::SERVICE_UNAVAILABLE).with_max_age(1);
            return self.refuse(
                peer,
                (message.message_type, message.code, message.id),
                message.token,
                reach,
                &response,
            );
        };
        self.route(now, place, &message, bytes.len(), reach);
        self.peers.release(place);
    }

    fn route(&mut self, now: Instant, place: u32, message: &CoapMessage<'_>, len: usize, reach: Reach) {
        use MessageType::{Acknowledgement, Confirmable, NonConfirmable, Reset};
        let code = message.code;
        if reach == Reach::Multicast {
            // Anything else makes no sense for a group, and a CON would draw as many answers (RFC 7252 §8.1).
            if message.message_type == NonConfirmable && code.is_request() {
                self.handle_request(now, place, message, len, reach);
            }
            return;
        }
        match message.message_type {
            Confirmable | NonConfirmable if code.is_request() => self.handle_request(now, place, message, len, reach),
            Confirmable | NonConfirmable | Acknowledgement if code.is_response() => {
                self.handle_response(now, place, message);
            }
            // A CON without content is a ping; of a reserved class nothing is known (RFC 7252 §4.3).
            Confirmable => self.send_empty(place, Reset, message.id),
            Acknowledgement if code == Code::EMPTY => self.handle_acknowledgement(now, place, message.id),
            Reset if code == Code::EMPTY => self.handle_reset(now, place, message.id),
            NonConfirmable | Acknowledgement | Reset => {}
        }
    }

    /// A confirmable message is rejected as far as its header can be read, anything else is dropped (RFC 7252 §4.2).
    #[cold]
    fn reject_malformed(&mut self, peer: Peer, bytes: &[u8], reach: Reach) {
        self.counters.malformed += 1;
        let Ok((message_type, _, id)) = CoapMessage::parse_header(bytes) else { return };
        if message_type == MessageType::Confirmable && reach == Reach::Unicast {
            self.outbox.push(peer, |out| out.extend_from_slice(&empty_message(MessageType::Reset, id)));
        }
    }

    /// Answers the beginning of a datagram that was too long to be received whole: a request gets 4.13 Request Entity Too
    /// Large and the size of blocks to send instead (RFC 7959 §2.9.3). Other messages are dropped.
    pub(super) fn refuse_oversized(&mut self, peer: Peer, beginning: &[u8], reach: Reach) {
        self.counters.oversized += 1;
        let Ok(header) = CoapMessage::parse_header(beginning) else { return };
        let token_len = usize::from(beginning[0] & 15);
        let token = beginning.get(HEADER_LEN..HEADER_LEN + token_len).and_then(Token::new);
        let Some(token) = token else { return };
        let response = Response::new(Code::REQUEST_ENTITY_TOO_LARGE);
        self.refuse(peer, header, token, reach, &response);
    }

    /// Answers a request by an error of which no state is kept: its repetition is answered the same way.
    fn refuse(
        &mut self,
        peer: Peer,
        (message_type, code, id): (MessageType, Code, MessageId),
        token: Token,
        reach: Reach,
        response: &Response,
    ) {
        let head = match message_type {
            MessageType::Confirmable => Head { message_type: MessageType::Acknowledgement, id, token },
            _ => Head { message_type, id: MessageId(self.rng.next_u64() as u16), token },
        };
        let is_asked = matches!(message_type, MessageType::Confirmable | MessageType::NonConfirmable);
        if is_asked && code.is_request() && reach == Reach::Unicast {
            let block1 = (response.code == Code::REQUEST_ENTITY_TOO_LARGE).then(|| Block {
                number: 0,
                more: false,
                exponent: self.config.block_exponent.min(Block::EXPONENT_MAX),
            });
            let part = ResponsePart { block1, ..whole(response) };
            self.outbox.push(peer, |out| write_response(out, &head, response, &part));
        }
    }

    pub(super) fn send_empty(&mut self, place: u32, message_type: MessageType, id: MessageId) {
        let peer = self.peers.get(place).peer;
        self.outbox.push(peer, |out| out.extend_from_slice(&empty_message(message_type, id)));
    }
}
