//! Datagrams that arrive: their classification and dispatch (RFC 7252 §4.2, §4.3).

use thalweg_base::time::Instant;

use super::{Endpoint, Peer, Reach};
use crate::message::{CoapMessage, Code, MessageId, MessageType, empty_message};

impl Endpoint {
    #[inline]
    pub(super) fn receive(&mut self, now: Instant, peer: Peer, bytes: &[u8], reach: Reach) {
        let Ok(message) = CoapMessage::parse(bytes) else {
            return self.reject_malformed(peer, bytes, reach);
        };
        let Some(place) = self.peers.hold(peer, &mut self.rng) else {
            self.counters.peers_refused += 1;
            return;
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

    pub(super) fn send_empty(&mut self, place: u32, message_type: MessageType, id: MessageId) {
        let peer = self.peers.get(place).peer;
        self.outbox.push(peer, |out| out.extend_from_slice(&empty_message(message_type, id)));
    }
}
