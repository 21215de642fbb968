//! The client's side: requests, their responses, and registrations for notifications.

use thalweg_base::time::Instant;

use super::cache::{self, Cache, CacheKey};
use super::in_flight::{Owner, Use};
use super::peers::{PeerState, RequestQueue};
use super::protected::push_request;
use super::slab::Slab;
use super::timers::TimerId;
use super::transfer::BlockTransfer;
use super::{Config, Confirmability, Due, Endpoint, EndpointEvent, Peer, RequestError, RequestId};
use crate::message::{
    Block, CoapMessage, MessageId, MessageType, Observe, OptionNumber, Options, RequestBuf, Token, empty_message,
};
use crate::oscore::ClientAssociation;

/// Bytes of a token that hold the place of its request; the others cannot be guessed.
const TOKEN_PLACE_SHIFT: u32 = 40;
const TOKEN_SECRET_MASK: u64 = (1 << TOKEN_PLACE_SHIFT) - 1;
const REQUESTS_MAX: usize = 1 << (64 - TOKEN_PLACE_SHIFT);

/// State of the client's side.
#[derive(Debug)]
pub(super) struct Client {
    pub requests: Slab<Outgoing>,
    pub cache: Cache,
    /// Number of requests whose responses may be kept.
    kept: usize,
    /// Number of tokens made.
    tokens: u64,
    /// Bytes of responses of which blocks are missing.
    pub body_bytes: usize,
}

/// A request of this endpoint.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Place of the peer, which is held.
    pub peer: u32,
    /// The peer, or the group.
    pub target: Peer,
    pub delivery: Confirmability,
    pub request: RequestBuf,
    pub stage: Stage,
    pub tokens: Tokens,
    pub message: LastMessage,
    pub transfer: BlockTransfer,
    /// Number and time of the last notification.
    pub latest: Option<(u32, Instant)>,
    pub cache_key: Option<CacheKey>,
    /// It asks whether a response that was kept is still right.
    pub is_validating: bool,
    /// The server has requested a proof of the address.
    pub is_challenged: bool,
    pub timer: Option<TimerId>,
    /// The protection of its messages.
    pub protection: Option<Box<ClientAssociation>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// As many requests as may be are under way to the peer.
    Waiting,
    Sent,
    /// The response will be a message of its own.
    Acknowledged,
    Observing,
}

/// The tokens under which responses arrive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens {
    pub current: u64,
    /// That of the registration, while the blocks of a notification are fetched under another.
    pub first: u64,
}

/// The last message of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastMessage {
    pub transmission: Option<u64>,
    pub unacknowledged: Option<MessageId>,
    /// Whether it counts towards NSTART.
    pub is_counted: bool,
}

impl Client {
    pub fn new(config: &Config) -> Client {
        let cache = Cache::new(config.limits.cache_bytes_max);
        Client { requests: Slab::new(), cache, kept: 0, tokens: 0, body_bytes: 0 }
    }

    pub fn len(&self) -> usize {
        self.requests.len()
    }

    pub fn body_bytes(&self) -> usize {
        self.body_bytes
    }

    /// A resource was changed: what is kept of it is stale, and so are responses that are under way.
    pub fn invalidate(&mut self, target: u64) {
        self.cache.invalidate(target);
        // Who only changes resources does not pay for it with a look at each request.
        if self.kept > 0 {
            for outgoing in self.requests.values_mut() {
                self.kept -= usize::from(outgoing.cache_key.take_if(|key| key.is_of(target)).is_some());
            }
        }
    }

    /// The request that a response with this token of this peer belongs to.
    pub fn find(&self, token: Token, peer: Peer) -> Option<u64> {
        let token = token.to_u64()?;
        let (id, outgoing) = self.requests.at((token >> TOKEN_PLACE_SHIFT) as u32)?;
        let is_mine = token == outgoing.tokens.current || token == outgoing.tokens.first;
        (is_mine && (outgoing.target == peer || outgoing.target.is_multicast())).then_some(id)
    }
}

impl Endpoint {
    /// Sends a request, at once or when fewer are under way to the peer; its outcome comes as an [`EndpointEvent`]. With
    /// Observe it stays until the server ends it or [`Endpoint::cancel`]. With a Block2 option of its own only that block
    /// is fetched. A body larger than a block goes out in blocks.
    ///
    /// # Errors
    /// When it cannot be sent now; see [`RequestError`].
    pub fn request(
        &mut self,
        now: Instant,
        peer: Peer,
        request: RequestBuf,
        delivery: Confirmability,
    ) -> Result<RequestId, RequestError> {
        self.check_request(peer, &request, delivery)?;
        let key = cache::key(&self.secret, &self.table, peer, &request).filter(|_| self.client.cache.is_on());
        let id = self.insert_request(now, peer, request, delivery)?;
        if let Some(outgoing) = self.client.requests.get_mut(id) {
            outgoing.cache_key = key;
            self.client.kept += usize::from(key.is_some());
        }
        if let Some(response) = key.and_then(|key| self.client.cache.fresh(now, key)) {
            self.close_request(now, id);
            self.events.push_back(EndpointEvent::Response { request: RequestId(id), peer, response });
        } else {
            self.send_in_turn(now, id);
        }
        Ok(RequestId(id))
    }

    /// Asks whether a peer is there (RFC 7252 §4.3); the answer is [`EndpointEvent::Pong`].
    ///
    /// # Errors
    /// When there is no place for it, or no message ID.
    pub fn ping(&mut self, now: Instant, peer: Peer) -> Result<RequestId, RequestError> {
        let id = self.insert_request(now, peer, RequestBuf::default(), Confirmability::Confirmable)?;
        let place = self.client.requests.get(id).map_or(0, |outgoing| outgoing.peer);
        let message = self.peers.get_mut(place).ids.next(now);
        self.outbox.push(peer, |out| out.extend_from_slice(&empty_message(MessageType::Confirmable, message)));
        let backoff = self.first_backoff();
        let transmission = self.repeat_until_acknowledged(now, place, message, Owner::Ping(id), backoff);
        if let Some(outgoing) = self.client.requests.get_mut(id) {
            outgoing.message.transmission = Some(transmission);
        }
        Ok(RequestId(id))
    }

    /// Ends a request; no event about it follows. The server of an observed resource is told.
    pub fn cancel(&mut self, now: Instant, request: RequestId) {
        let Some(outgoing) = self.client.requests.get(request.0) else { return };
        if outgoing.latest.is_some() {
            let (place, token) = (outgoing.peer, Token::from_u64(outgoing.tokens.first));
            let mut farewell = RequestBuf::new(outgoing.request.code(), "");
            let view = outgoing.request.view();
            for (number, value) in view.options.filter(|(number, _)| *number != OptionNumber::OBSERVE) {
                farewell = farewell.with_option(number, value);
            }
            let farewell = farewell.with_observe(Observe::Deregister);
            let id = self.next_id(now, place);
            let view = farewell.view();
            let (code, options) = (view.code, view.options);
            let message_type = MessageType::NonConfirmable;
            let message = CoapMessage { message_type, code, id, token, options, payload: &[] };
            if let Some(outgoing) = self.client.requests.get_mut(request.0) {
                // Without a sequence number for it the server finds out by itself.
                let _ = push_request(&mut self.outbox, outgoing.target, &mut outgoing.protection, token, &message);
            }
        }
        self.close_request(now, request.0);
    }

    pub(super) fn check_request(
        &self,
        peer: Peer,
        request: &RequestBuf,
        delivery: Confirmability,
    ) -> Result<(), RequestError> {
        let view = request.view();
        let is_large = view.payload.len() > 16 << self.config.block_exponent.min(Block::EXPONENT_MAX);
        let is_for_groups = delivery == Confirmability::NonConfirmable && view.code.is_safe() && !is_large;
        if !view.code.is_request() {
            return Err(RequestError::Malformed("its code is no method"));
        }
        if let Some(fault) = request.fault() {
            return Err(RequestError::Malformed(fault));
        }
        if view.options.value(OptionNumber::BLOCK1).is_some() {
            return Err(RequestError::Malformed("Block1 is set by the endpoint"));
        }
        if peer.is_multicast() && !is_for_groups {
            return Err(RequestError::NotForGroups);
        }
        if view.payload.len() / 16 >= Block::NUMBER_END as usize {
            return Err(RequestError::Malformed("its body is larger than the smallest blocks can number"));
        }
        Ok(())
    }

    pub(super) fn insert_request(
        &mut self,
        now: Instant,
        peer: Peer,
        request: RequestBuf,
        delivery: Confirmability,
    ) -> Result<u64, RequestError> {
        if self.client.requests.len() >= self.config.limits.requests_max.min(REQUESTS_MAX) {
            return Err(RequestError::TooManyRequests);
        }
        let place = self.peers.hold(peer, &mut self.rng).ok_or(RequestError::TooManyPeers)?;
        let state = self.peers.get(place);
        let blocked = state.ids.blocked_until(now, self.config.times.message_id_lifetime);
        let paused = state.requests().map(|requests| requests.paused_until).filter(|until| now < *until);
        let probes = delivery == Confirmability::NonConfirmable && !peer.is_multicast();
        let blocked_until = |requests: &RequestQueue| requests.silence.blocked_until(&self.config);
        let silent = state.requests().map(blocked_until).filter(|until| probes && now < *until);
        if let Some(until) = blocked {
            self.peers.release(place);
            return Err(RequestError::MessageIdsExhausted { until });
        }
        if let Some(until) = paused {
            self.peers.release(place);
            return Err(RequestError::Paused { until });
        }
        if let Some(until) = silent {
            self.peers.release(place);
            return Err(RequestError::Silent { until });
        }
        self.client.tokens += 1;
        let tag = self.secret.hash((self.client.tokens, "tag"));
        let transfer = BlockTransfer::new(self.config.block_exponent, tag, &request);
        let id = self.client.requests.insert(Outgoing {
            peer: place,
            target: peer,
            delivery,
            request,
            stage: Stage::Waiting,
            tokens: Tokens { current: 0, first: 0 },
            message: LastMessage::default(),
            transfer,
            latest: None,
            cache_key: None,
            is_validating: false,
            is_challenged: false,
            timer: None,
            protection: None,
        });
        let token = self.new_token(id);
        let times = &self.config.times;
        let wait = if peer.is_multicast() { times.leisure + 2 * times.ack_timeout } else { times.transmit_wait };
        let timer = self.timers.set(now + wait, Due::Request(id));
        if let Some(outgoing) = self.client.requests.get_mut(id) {
            outgoing.tokens = Tokens { current: token, first: token };
            outgoing.timer = Some(timer);
        }
        Ok(id)
    }

    pub(super) fn new_token(&mut self, id: u64) -> u64 {
        self.client.tokens += 1;
        let secret = self.secret.hash((self.client.tokens, "token")) & TOKEN_SECRET_MASK;
        (id & (REQUESTS_MAX as u64 - 1)) << TOKEN_PLACE_SHIFT | secret
    }

    /// Sends the next message of a request, or lets it wait for its turn.
    pub(super) fn send_in_turn(&mut self, now: Instant, id: u64) {
        let Some(outgoing) = self.client.requests.get_mut(id) else { return };
        let requests = self.peers.get_mut(outgoing.peer).requests_mut();
        if outgoing.delivery == Confirmability::Confirmable && requests.in_flight >= self.config.nstart.max(1) {
            outgoing.stage = Stage::Waiting;
            requests.waiting.push_back(id);
        } else if let Err(error) = self.send(now, id) {
            self.fail(now, id, error);
        }
    }

    /// Sends as many of the waiting requests as may be under way; those that cannot be sent fail, one after the other.
    pub(super) fn send_waiting(&mut self, now: Instant, place: u32) {
        let has_room = |state: &PeerState, nstart: u16| {
            state.requests().is_some_and(|requests| requests.in_flight < nstart.max(1))
        };
        let mut failed = 0;
        while has_room(self.peers.get(place), self.config.nstart) {
            let Some(id) = self.peers.get_mut(place).take_waiting() else { break };
            // One that was cancelled meanwhile is gone, and one that waited twice has left.
            let waits = self.client.requests.get(id).is_some_and(|outgoing| outgoing.stage == Stage::Waiting);
            if waits
                && let Err(error) = self.send(now, id)
                && let Some(ended) = self.end_request(id)
            {
                failed += 1;
                let (request, peer) = (RequestId(id), ended.target);
                self.events.push_back(EndpointEvent::Failed { request, peer, error });
            }
        }
        // The last request of a peer takes its place with it.
        (0..failed).for_each(|_| self.peers.release(place));
    }

    fn send(&mut self, now: Instant, id: u64) -> Result<(), RequestError> {
        let Some(outgoing) = self.client.requests.get_mut(id) else { return Ok(()) };
        let place = outgoing.peer;
        let ids = &mut self.peers.get_mut(place).ids;
        if let Some(until) = ids.blocked_until(now, self.config.times.message_id_lifetime) {
            return Err(RequestError::MessageIdsExhausted { until });
        }
        let message = ids.next(now);
        let is_confirmable = outgoing.delivery == Confirmability::Confirmable;
        let message_type = if is_confirmable { MessageType::Confirmable } else { MessageType::NonConfirmable };
        let etag = outgoing.cache_key.filter(|_| outgoing.transfer.is_first());
        let etag = etag.and_then(|key| self.client.cache.etag(now, key));
        outgoing.is_validating = etag.is_some();
        let (options, range) = outgoing.transfer.compose(&outgoing.request, etag);
        let token = Token::from_u64(outgoing.tokens.current);
        let view = outgoing.request.view();
        let (options, payload) = (Options::new(&options), &view.payload[range]);
        let datagram = CoapMessage { message_type, code: view.code, id: message, token, options, payload };
        let registration = Token::from_u64(outgoing.tokens.first);
        let protection = &mut outgoing.protection;
        let len = match push_request(&mut self.outbox, outgoing.target, protection, registration, &datagram) {
            Ok(len) => len,
            Err(error) => return Err(RequestError::NotProtected(error)),
        };
        let mut last = LastMessage { is_counted: is_confirmable, ..LastMessage::default() };
        if is_confirmable {
            let backoff = self.first_backoff();
            last.transmission = Some(self.repeat_until_acknowledged(now, place, message, Owner::Request(id), backoff));
            self.peers.get_mut(place).requests_mut().in_flight += 1;
        } else {
            self.in_flight.set_use(place, message, Use::Unacknowledged(Owner::Request(id)));
            last.unacknowledged = Some(message);
            self.peers.get_mut(place).requests_mut().silence.note_sent(now, len);
        }
        if let Some(outgoing) = self.client.requests.get_mut(id) {
            outgoing.stage = Stage::Sent;
            outgoing.message = last;
        }
        Ok(())
    }

    /// The last message of a request needs nothing more.
    pub(super) fn settle(&mut self, id: u64) {
        let Some(outgoing) = self.client.requests.get_mut(id) else { return };
        let (place, last) = (outgoing.peer, std::mem::take(&mut outgoing.message));
        if let Some(transmission) = last.transmission {
            self.stop_repeating(transmission);
        }
        if let Some(message) = last.unacknowledged {
            self.in_flight.forget_use(place, message);
        }
        if last.is_counted {
            self.peers.get_mut(place).requests_mut().in_flight -= 1;
        }
    }

    pub(super) fn handle_request_acknowledged(&mut self, now: Instant, id: u64) {
        self.settle(id);
        let Some(outgoing) = self.client.requests.get_mut(id) else { return };
        outgoing.stage = Stage::Acknowledged;
        let place = outgoing.peer;
        self.send_waiting(now, place);
    }

    pub(super) fn set_deadline(&mut self, id: u64, at: Instant) {
        let Some(outgoing) = self.client.requests.get_mut(id) else { return };
        let timer = self.timers.set(at, Due::Request(id));
        if let Some(before) = outgoing.timer.replace(timer) {
            self.timers.cancel(before);
        }
    }

    /// The time of a request is over.
    pub(super) fn handle_request_timeout(&mut self, now: Instant, id: u64) {
        let Some(outgoing) = self.client.requests.get_mut(id) else { return };
        outgoing.timer = None;
        let wants_no_response = outgoing.request.view().options.value(OptionNumber::NO_RESPONSE).is_some();
        if outgoing.target.is_multicast() || wants_no_response {
            self.close_request(now, id);
            self.events.push_back(EndpointEvent::Finished { request: RequestId(id) });
        } else if outgoing.stage == Stage::Observing {
            // Registers again under the same token; whatever number the server begins with is right.
            outgoing.latest = None;
            outgoing.tokens.current = outgoing.tokens.first;
            outgoing.transfer.reset();
            self.set_deadline(id, now + self.config.times.transmit_wait);
            self.send_in_turn(now, id);
        } else {
            self.fail(now, id, RequestError::TimedOut);
        }
    }

    /// Ends a request without an answer.
    pub(super) fn fail(&mut self, now: Instant, id: u64, error: RequestError) {
        let protection = self.client.requests.get(id).and_then(|outgoing| outgoing.protection.as_ref());
        let is_unverifiable = error == RequestError::TimedOut && protection.is_some_and(|one| one.has_refused());
        let error = if is_unverifiable { RequestError::Unverifiable } else { error };
        if let Some(peer) = self.close_request(now, id) {
            self.events.push_back(EndpointEvent::Failed { request: RequestId(id), peer, error });
        }
    }

    /// Ends the requests to a peer whose message was refused. A registration stays: its server may come back before the state
    /// that the client has is not fresh any more.
    pub(super) fn fail_unreachable(&mut self, now: Instant, peer: Peer) {
        let is_told = |outgoing: &Outgoing| {
            let last = outgoing.message;
            outgoing.target == peer && (last.transmission.is_some() || last.unacknowledged.is_some())
        };
        let told = self.client.requests.iter().filter(|(_, outgoing)| is_told(outgoing)).map(|(id, _)| id);
        let told: Vec<u64> = told.collect();
        told.into_iter().for_each(|id| self.fail(now, id, RequestError::Unreachable));
    }

    /// Forgets a request; returns its owner.
    pub(super) fn close_request(&mut self, now: Instant, id: u64) -> Option<Peer> {
        let ended = self.end_request(id)?;
        self.send_waiting(now, ended.peer);
        self.peers.release(ended.peer);
        Some(ended.target)
    }

    /// The same, but what waits for it goes on waiting, and it still holds its peer.
    fn end_request(&mut self, id: u64) -> Option<Outgoing> {
        self.settle(id);
        let outgoing = self.client.requests.remove(id)?;
        if let Some(timer) = outgoing.timer {
            self.timers.cancel(timer);
        }
        self.client.body_bytes -= outgoing.transfer.received_bytes();
        self.client.kept -= usize::from(outgoing.cache_key.is_some());
        Some(outgoing)
    }
}
