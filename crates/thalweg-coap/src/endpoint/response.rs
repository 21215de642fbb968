//! Responses at a client: their request, their order, and the messages that follow (RFC 7252 §5.3).

use std::time::Duration;

use thalweg_base::time::Instant;

use super::asked::refused_option;
use super::cache;
use super::client::Stage;
use super::in_flight::Use;
use super::seen::MessageFate;
use super::transfer::TransferStep;
use super::{Endpoint, EndpointEvent, Peer, RequestError, RequestId};
use crate::message::{
    Block, Body, CoapMessage, Code, ETag, MessageId, MessageType, Observe, OptionNumber, RequestBuf, Response,
    parse_uint,
};

/// Numbers of notifications further apart than this have turned over (RFC 7641 §3.4).
pub(super) const NUMBER_HALF: u32 = 1 << 23;
/// After this time a notification is newer whatever its number (RFC 7641 §3.4).
const NUMBER_LIFETIME: Duration = Duration::from_secs(128);

impl Endpoint {
    /// Handles a response of a peer that is held while this runs.
    pub(super) fn handle_response(&mut self, now: Instant, place: u32, message: &CoapMessage<'_>) {
        let peer = self.peers.get(place).peer;
        let is_acknowledgement = message.message_type == MessageType::Acknowledgement;
        let is_confirmable = message.message_type == MessageType::Confirmable;
        let lifetime = self.config.times.exchange_lifetime.as_secs() as u32;
        let fate = || self.peers.get(place).seen.fate(now, message.id, message.token, lifetime);
        if let Some(fate) = (!is_acknowledgement).then(fate).flatten() {
            return self.repeat(place, message.id, fate);
        }
        let known = self.client.find(message.token, peer);
        let expected = known.filter(|id| !is_acknowledgement || self.acknowledges(place, message.id, *id));
        let is_protected = |id| self.client.requests.get(id).is_some_and(|outgoing| outgoing.protection.is_some());
        if let Some(id) = expected.filter(|id| is_protected(*id)) {
            return self.handle_protected_response(now, place, id, message);
        }
        let asked_for = expected.and_then(|id| self.client.requests.get(id));
        let is_forwarded = asked_for.is_some_and(|outgoing| outgoing.request.is_forwarded());
        let unknown = refused_option(message.options, is_forwarded);
        let Some(id) = expected.filter(|_| unknown.is_none()) else {
            // A NON is rejected where silence would make the server go on with its notifications (RFC 7641 §3.6).
            let is_notification = message.options.value(OptionNumber::OBSERVE).is_some();
            if is_confirmable || (is_notification && !is_acknowledgement) {
                self.send_empty(place, MessageType::Reset, message.id);
                self.note(now, place, (message.id, message.token), MessageFate::Rejected);
            }
            if let Some((id, number)) = expected.zip(unknown) {
                self.fail(now, id, RequestError::UnknownOption(number));
            }
            return;
        };
        self.acknowledge_response(now, place, message);
        self.note_proof(place); // It knows a token that was sent to its address.
        self.accept(now, id, peer, message);
        self.send_waiting(now, place);
    }

    /// Acknowledges a response that came by itself, and notes it.
    pub(super) fn acknowledge_response(&mut self, now: Instant, place: u32, message: &CoapMessage<'_>) {
        match message.message_type {
            MessageType::Confirmable => {
                self.send_empty(place, MessageType::Acknowledgement, message.id);
                self.note(now, place, (message.id, message.token), MessageFate::Acknowledged);
            }
            MessageType::NonConfirmable => {
                self.note(now, place, (message.id, message.token), MessageFate::Ignored);
            }
            MessageType::Acknowledgement | MessageType::Reset => {}
        }
    }

    /// Whether an acknowledgement with this ID is for the last message of a request.
    fn acknowledges(&self, place: u32, message: MessageId, id: u64) -> bool {
        let Some(Use::Transmission(found)) = self.in_flight.find(place, message) else { return false };
        self.client.requests.get(id).is_some_and(|outgoing| outgoing.message.transmission == Some(found))
    }

    pub(super) fn accept(&mut self, now: Instant, id: u64, peer: Peer, message: &CoapMessage<'_>) {
        let (response, block1, echo) = read_response(message);
        let Some(outgoing) = self.client.requests.get_mut(id) else { return };
        if outgoing.target.is_multicast() {
            self.events.push_back(EndpointEvent::Response { request: RequestId(id), peer, response });
            return;
        }
        if message.token.to_u64() == Some(outgoing.tokens.first)
            && let (Some(latest), Some(number)) = (outgoing.latest, response.observe)
        {
            if !is_newer(latest, number, now) {
                return;
            }
            // The blocks of an older state that are being fetched are of no use any more.
            self.client.body_bytes -= outgoing.transfer.received_bytes();
            outgoing.transfer.reset();
            outgoing.tokens.current = outgoing.tokens.first;
            outgoing.latest = Some((number, now));
        }
        self.settle(id);
        let Some(outgoing) = self.client.requests.get_mut(id) else { return };
        let is_single = outgoing.request.view().options.value(OptionNumber::BLOCK2).is_some();
        // A server that does not know the address sends small blocks; with its Echo value the same costs fewer of them.
        let is_held_small = |block: Block| {
            block.number == 0 && block.more && block.exponent < self.config.block_exponent.min(Block::EXPONENT_MAX)
        };
        let is_better_asked_again = response.code == Code::UNAUTHORIZED
            || (!is_single && outgoing.request.code().is_safe() && response.block.is_some_and(is_held_small));
        if let Some(echo) = echo.filter(|_| is_better_asked_again && !outgoing.is_challenged) {
            outgoing.is_challenged = true;
            // That of an earlier challenge is of no use any more.
            outgoing.request.replace_option(OptionNumber::ECHO, echo);
            return self.continue_request(now, id);
        }
        if outgoing.latest.is_none() && is_registered(&outgoing.request, &response) {
            // Its blocks may take longer than the next change.
            outgoing.latest = response.observe.map(|number| (number, now));
        }
        let step = if is_single {
            TransferStep::Done(response)
        } else {
            let len = outgoing.request.view().payload.len();
            self.client.body_bytes -= outgoing.transfer.received_bytes();
            let step = outgoing.transfer.accept(response, block1, len, self.config.limits.body_bytes_max);
            self.client.body_bytes += outgoing.transfer.received_bytes();
            step
        };
        match step {
            TransferStep::Next if self.client.body_bytes <= self.config.limits.transfer_bytes_max => {
                self.continue_request(now, id);
            }
            TransferStep::Next => self.fail(now, id, RequestError::BodyTooLarge),
            TransferStep::Failed(error) => self.fail(now, id, error),
            TransferStep::Done(response) => self.deliver(now, id, response),
        }
    }

    /// Sends the next message of a request whose last one was answered, with a time of its own.
    fn continue_request(&mut self, now: Instant, id: u64) {
        let token = self.new_token(id);
        let Some(outgoing) = self.client.requests.get_mut(id) else { return };
        outgoing.tokens.current = token;
        if outgoing.latest.is_none() && outgoing.transfer.is_first() {
            outgoing.tokens.first = token;
        }
        self.set_deadline(id, now + self.config.times.transmit_wait);
        self.send_in_turn(now, id);
    }

    /// Gives a whole response to the application.
    fn deliver(&mut self, now: Instant, id: u64, mut response: Response) {
        if response.code == Code::CONTINUE {
            return self.fail(now, id, RequestError::Unexpected(response.code));
        }
        let Some(outgoing) = self.client.requests.get_mut(id) else { return };
        let (place, peer) = (outgoing.peer, outgoing.target);
        let view = outgoing.request.view();
        if response.code == Code::TOO_MANY_REQUESTS {
            self.peers.get_mut(place).requests_mut().paused_until = now + cache::max_age(&response);
        }
        let key = outgoing.cache_key;
        if std::mem::take(&mut outgoing.is_validating) && response.code == Code::VALID {
            let Some(confirmed) = key.and_then(|key| self.client.cache.confirm(now, key, &response)) else {
                // What it confirms is not kept any more.
                outgoing.transfer.reset();
                return self.continue_request(now, id);
            };
            response = confirmed;
        } else if let Some(key) = key {
            response = self.client.cache.keep(now, key, response);
        } else if !view.code.is_safe() && response.code.is_success() && self.client.cache.is_on() {
            let target = cache::target(&self.secret, peer, &view);
            self.client.invalidate(target);
        }
        let Some(outgoing) = self.client.requests.get_mut(id) else { return };
        if let Some(number) = response.observe.filter(|_| is_registered(&outgoing.request, &response)) {
            outgoing.stage = Stage::Observing;
            // Its server may restart and ask for a proof again.
            outgoing.is_challenged = false;
            outgoing.latest = outgoing.latest.or(Some((number, now)));
            // When the state is not fresh any more, some seconds are left to the server (RFC 7641 §3.3.1).
            let patience = Duration::from_secs(5) + Duration::from_millis(self.rng.below(10_000));
            self.set_deadline(id, now + cache::max_age(&response) + patience);
        } else {
            response.observe = None;
            self.close_request(now, id);
        }
        self.events.push_back(EndpointEvent::Response { request: RequestId(id), peer, response });
    }
}

/// Whether a response says that its client observes the resource.
fn is_registered(request: &RequestBuf, response: &Response) -> bool {
    request.view().observe() == Some(Observe::Register) && response.code.is_success() && response.observe.is_some()
}

/// Whether a notification is newer than the latest (RFC 7641 §3.4).
fn is_newer((latest, at): (u32, Instant), number: u32, now: Instant) -> bool {
    let is_ahead =
        (latest < number && number - latest < NUMBER_HALF) || (latest > number && latest - number > NUMBER_HALF);
    is_ahead || now.since(at) > NUMBER_LIFETIME
}

/// The response that one message holds, with what only the endpoint has to know: Block1 and Echo.
pub(super) fn read_response<'a>(message: &CoapMessage<'a>) -> (Response, Option<Block>, Option<&'a [u8]>) {
    let mut response = Response { payload: Body::from(message.payload.to_vec()), ..Response::new(message.code) };
    let mut block1 = None;
    let mut echo = None;
    // A critical one of a wrong form is here only when it is passed on as one that is not known.
    let is_sound =
        |(number, value): &(OptionNumber, &[u8])| number.accepts(value) || !number.is_known() || number.is_critical();
    for (number, value) in message.options.filter(is_sound) {
        match number {
            OptionNumber::ETAG => response.etag = ETag::new(value),
            OptionNumber::OBSERVE => response.observe = parse_uint(value),
            OptionNumber::CONTENT_FORMAT => {
                response.content_format = parse_uint(value).and_then(|number| u16::try_from(number).ok());
            }
            OptionNumber::MAX_AGE => response.max_age = parse_uint(value),
            OptionNumber::BLOCK2 => response.block = Block::parse(value),
            OptionNumber::BLOCK1 => block1 = Block::parse(value),
            OptionNumber::SIZE2 | OptionNumber::SIZE1 => response.size = parse_uint(value),
            OptionNumber::ECHO => echo = Some(value),
            _ => response.options.push((number, value.to_vec())),
        }
    }
    (response, block1, echo)
}
