//! The server's side: requests that arrive, and the responses to them.

use std::time::Duration;

use thalweg_base::time::Instant;

use super::answers::{Answer, AnswerKey, AnswerTimes, Answers, answer_seed};
use super::asked::{Asked, OptionRefusal};
use super::bounded::BoundedMap;
use super::echo::header_bytes;
use super::encode::{Head, ResponsePart, write_response};
use super::exchange::{Exchange, Kind};
use super::ids::seconds;
use super::in_flight::Owner;
use super::peers::Peers;
use super::pending::PendingRegistrations;
use super::registrations::Observers;
use super::secret::{EndpointSecret, TableState};
use super::seen::MessageFate;
use super::slab::{Slab, index_of};
use super::{Config, Due, Endpoint, EndpointEvent, ExchangeGone, ExchangeId, Peer, Reach};
use crate::message::{
    CoapMessage, Code, HEADER_LEN, MessageId, MessageType, Observe, OptionNumber, RequestBuf, Response, Token,
    empty_message,
};

/// State of the server's side.
#[derive(Debug)]
pub(super) struct Server {
    pub exchanges: Slab<Exchange>,
    /// A timer runs for unanswered exchanges.
    pub is_sweeping: bool,
    /// Responses to multicast requests that wait for their moment.
    pub delayed: Slab<(Peer, Vec<u8>)>,
    /// Answers to requests that must not run twice.
    pub answers_once: Answers,
    /// Answers to requests that have the same effect when they run again, and to single blocks.
    pub answers: Answers,
    /// For how long a client repeats a request.
    repeats_for: Duration,
    /// For how long a copy of a non-confirmable request can arrive.
    non_lifetime: Duration,
    /// Bytes of the requests that handlers work on.
    pub request_bytes: usize,
    /// Bodies of requests that have not arrived completely, by representation and peer.
    pub uploads: BoundedMap<Vec<u8>>,
    /// Responses that are fetched block by block, by representation and peer.
    pub bodies: BoundedMap<Response>,
    pub observers: Observers,
    pub pending: PendingRegistrations,
}

impl Server {
    pub fn new(config: &Config, table: TableState) -> Server {
        let limits = &config.limits;
        Server {
            exchanges: Slab::new(),
            is_sweeping: false,
            delayed: Slab::new(),
            answers_once: Answers::shared(limits.answer_bytes_max / 4 * 3, table),
            answers: Answers::new(limits.answer_bytes_max / 4, table),
            repeats_for: config.times.repetitions_end(config.retransmit_max),
            non_lifetime: config.times.non_lifetime(config.retransmit_max),
            request_bytes: 0,
            uploads: BoundedMap::new(limits.transfer_bytes_max),
            bodies: BoundedMap::new(limits.transfer_bytes_max),
            observers: Observers::new(config.observe.observers_max, limits.peers_max),
            pending: PendingRegistrations::default(),
        }
    }

    /// Answers to requests that must not run twice, or to the others.
    pub fn answers_of(&mut self, is_once: bool) -> &mut Answers {
        if is_once { &mut self.answers_once } else { &mut self.answers }
    }
}

impl Endpoint {
    /// Answers a request of [`EndpointEvent::Request`].
    ///
    /// # Errors
    /// When it was answered before, or not within [`Times::exchange_lifetime`](super::Times::exchange_lifetime): then its
    /// client was told 5.04, or nothing if it was non-confirmable.
    pub fn respond(&mut self, now: Instant, exchange: ExchangeId, response: Response) -> Result<(), ExchangeGone> {
        let exchange = self.take_exchange(exchange).ok_or(ExchangeGone)?;
        self.finish(now, exchange, response);
        Ok(())
    }

    /// Takes a request away from its handler.
    #[inline]
    fn take_exchange(&mut self, id: ExchangeId) -> Option<Exchange> {
        let mut exchange = self.server.exchanges.remove(id.0)?;
        self.peers.get_mut(exchange.peer).exchanges -= 1;
        self.server.request_bytes -= exchange.held_bytes as usize;
        if let Some(registration) = &mut exchange.registration {
            self.server.pending.end(registration);
        }
        Some(exchange)
    }

    /// Leaves a request without a response, as if the network had lost it: right for a non-confirmable one that there is no
    /// time for. A notification is put off: its resource is asked again after a second, or with its next change. Nothing happens
    /// when it was answered before.
    pub fn abandon(&mut self, now: Instant, exchange: ExchangeId) {
        let Some(mut exchange) = self.take_exchange(exchange) else { return };
        if let Some(timer) = exchange.timer.take() {
            self.timers.cancel(timer);
        }
        match exchange.kind {
            Kind::Notification(id) => self.put_off(now, exchange.peer, id),
            Kind::Confirmable | Kind::Acknowledged | Kind::NonConfirmable | Kind::Multicast => {
                exchange.kind = Kind::NonConfirmable;
                self.close(now, &exchange);
            }
        }
    }

    /// Takes the buffers of a request back, so that the next ones need no allocation.
    #[inline]
    pub fn recycle(&mut self, request: RequestBuf) {
        self.spare.put_request(request);
    }

    /// Handles a request of a peer that is held while this runs.
    pub(super) fn handle_request(
        &mut self,
        now: Instant,
        place: u32,
        message: &CoapMessage<'_>,
        len: usize,
        reach: Reach,
    ) {
        let asked = Asked::read(message.code, message.options, &self.table, self.config.forwarding);
        // One that names another server is for that one to open (RFC 8613 §10): whoever wrote the name must not decide where
        // what is opened here goes.
        let is_protected = match asked {
            Ok(asked) => asked.unread == Some(OptionNumber::OSCORE) && !asked.is_for_proxy,
            Err(refusal) => refusal.number() == Some(OptionNumber::OSCORE),
        };
        if is_protected && self.keyring.is_some() {
            self.handle_protected_request(now, place, message, len, reach);
        } else {
            self.handle_plain_request(now, place, message, len, reach, asked);
        }
    }

    /// Handles a request that has no protection, or none that is for this endpoint.
    pub(super) fn handle_plain_request(
        &mut self,
        now: Instant,
        place: u32,
        message: &CoapMessage<'_>,
        len: usize,
        reach: Reach,
        asked: Result<Asked, OptionRefusal>,
    ) {
        let is_repeatable = asked.unwrap_or_default().is_repeatable(message.code);
        let is_once = asked.unwrap_or_default().runs_once(message.code);
        if self.settle_duplicate(now, place, message, (is_repeatable, is_once)) {
            self.counters.duplicates += 1;
            return;
        }
        let kind = match (message.message_type, reach) {
            (_, Reach::Multicast) => Kind::Multicast,
            (MessageType::Confirmable, _) => Kind::Confirmable,
            _ => Kind::NonConfirmable,
        };
        if kind != Kind::Confirmable && is_repeatable {
            self.note(now, place, (message.id, message.token), MessageFate::Ignored);
        }
        self.peers.hold_again(place);
        let exchange = Exchange {
            peer: place,
            id: message.id,
            token: message.token,
            code: message.code,
            kind,
            asked: asked.unwrap_or_default(),
            request_bytes: len,
            spent_bytes: 0,
            held_bytes: 0,
            is_refused: false,
            timer: None,
            registration: None,
            protection: None,
            asked_at: seconds(now),
        };
        self.begin(now, exchange, asked, message);
    }

    /// Deals with a request whose options were read.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        mut exchange: Exchange,
        asked: Result<Asked, OptionRefusal>,
        message: &CoapMessage<'_>,
    ) {
        if asked.is_err() || exchange.asked.is_for_proxy && !self.config.proxying {
            exchange.refuse(); // A refusal must take no room from answers that are needed.
        }
        match asked {
            // A NON with an option that is not understood is rejected in silence (RFC 7252 §5.4.1).
            Err(OptionRefusal::BadOption(_)) if exchange.kind != Kind::Confirmable => self.peers.release(exchange.peer),
            Err(OptionRefusal::BadOption(number)) => {
                let diagnosis = format!("{number} is not understood");
                self.finish(now, exchange, Response::error(Code::BAD_OPTION, diagnosis));
            }
            Err(OptionRefusal::BadRequest(reason)) => {
                self.finish(now, exchange, Response::error(Code::BAD_REQUEST, reason));
            }
            Ok(asked) if asked.is_for_proxy && !self.config.proxying => {
                self.finish(now, exchange, Response::new(Code::PROXYING_NOT_SUPPORTED));
            }
            Ok(_) => self.admit(now, exchange, message),
        }
    }

    /// Handles requests for the endpoint itself, and passes the others on.
    fn admit(&mut self, now: Instant, mut exchange: Exchange, message: &CoapMessage<'_>) {
        let (place, asked) = (exchange.peer, exchange.asked);
        if let Some(echo) = asked.echo {
            self.verify(now, place, echo);
        }
        if message.code > Code::IPATCH {
            return self.finish(now, exchange, Response::new(Code::METHOD_NOT_ALLOWED));
        }
        if asked.runs_once(message.code)
            && let Some(refusal) = self.refusal_to_run(now, place)
        {
            exchange.refuse();
            return self.finish(now, exchange, refusal);
        }
        let limits = &self.config.limits;
        if self.peers.get(place).exchanges >= limits.exchanges_per_peer_max {
            return self.finish(now, exchange, Response::new(Code::TOO_MANY_REQUESTS).with_max_age(1));
        }
        if self.server.exchanges.len() >= limits.exchanges_max {
            return self.finish(now, exchange, Response::new(Code::SERVICE_UNAVAILABLE).with_max_age(1));
        }
        if asked.observe == Some(Observe::Deregister) && asked.unread.is_none() {
            self.forget_registration(&exchange);
        }
        if let Some(block) = asked.block1 {
            return self.upload(now, exchange, block, message);
        }
        if message.code == Code::FETCH {
            exchange.asked.payload = self.payload_hash(message.payload);
        }
        if asked.wants_further_block() {
            let held = self.server.bodies.get(now, self.body_key(place, &exchange.asked)).cloned();
            // Of a resource that does not change the block is cut from a new response; a change must not run again.
            let lost = || Response::error(Code::REQUEST_ENTITY_INCOMPLETE, "the response is not held any more");
            if let Some(response) = held.or_else(|| (!message.code.is_safe()).then(lost)) {
                return self.finish(now, exchange, response);
            }
        }
        let mut request = self.spare.request();
        request.refill(message.code, message.options, message.payload);
        self.ask(now, exchange, request);
    }

    /// Passes a request to its handler, unless handlers hold too many bytes already.
    pub(super) fn ask(&mut self, now: Instant, mut exchange: Exchange, request: RequestBuf) {
        let (place, message, token, kind) = (exchange.peer, exchange.id, exchange.token, exchange.kind);
        if self.exceeds_budget(request.capacity()) && !matches!(kind, Kind::Notification(_)) {
            return self.refuse_bytes(now, exchange, request);
        }
        let is_repeatable = exchange.is_repeatable();
        let wants = exchange.asked.observe == Some(Observe::Register) && exchange.code.is_safe();
        if wants && matches!(kind, Kind::Confirmable | Kind::NonConfirmable) {
            exchange.registration = Some(self.server.pending.begin(request.clone()));
        }
        let held_bytes = request.capacity() + exchange.registration.as_ref().map_or(0, |copy| copy.bytes());
        exchange.held_bytes = held_bytes as u32;
        self.server.request_bytes += exchange.held_bytes as usize;
        let is_once = exchange.runs_once();
        let id = self.server.exchanges.insert(exchange);
        self.plan_sweep(now);
        if kind == Kind::Confirmable {
            let timer = self.timers.set(now + self.config.times.processing_delay, Due::Acknowledge(id));
            self.server.exchanges.get_mut(id).expect("just inserted").timer = Some(timer);
        }
        let delivery = kind.confirmability();
        let state = self.peers.get_mut(place);
        state.exchanges += 1;
        let peer = state.peer;
        if matches!(kind, Kind::Notification(_)) {
            // A notification answers no message of the peer.
        } else if !is_repeatable {
            let key = self.answer_key(place, message, token);
            self.server.answers_of(is_once).open(key, id);
        } else if kind == Kind::Confirmable {
            self.note(now, place, (message, token), MessageFate::Repeatable(index_of(id)));
        }
        self.events.push_back(EndpointEvent::Request { exchange: ExchangeId(id), peer, delivery, request });
    }

    /// Acknowledges a request whose handler takes long: the response will be a message of its own (RFC 7252 §5.2.2).
    pub(super) fn acknowledge_slow(&mut self, id: u64) {
        let Some(exchange) = self.server.exchanges.get_mut(id) else { return };
        exchange.timer = None;
        exchange.kind = Kind::Acknowledged;
        let (peer, message) = (exchange.peer, exchange.id);
        exchange.spent_bytes = (HEADER_LEN + header_bytes(self.peers.get(peer).peer)) as u32;
        self.send_empty(peer, MessageType::Acknowledgement, message);
    }

    /// Whether a request is a duplicate; handles the duplicate then.
    #[inline]
    pub(super) fn settle_duplicate(
        &mut self,
        now: Instant,
        place: u32,
        message: &CoapMessage<'_>,
        (is_repeatable, is_once): (bool, bool),
    ) -> bool {
        let state = self.peers.get(place);
        if is_repeatable {
            let lifetime = self.config.times.exchange_lifetime.as_secs() as u32;
            return match state.seen.fate(now, message.id, message.token, lifetime) {
                None => false,
                Some(MessageFate::Repeatable(index)) => {
                    let open = self.server.exchanges.at(index).map(|(_, exchange)| exchange);
                    let open = open.filter(|one| (one.peer, one.id, one.token) == (place, message.id, message.token));
                    let kind = open.map(|exchange| exchange.kind);
                    self.acknowledge_again(place, message.id, kind);
                    kind.is_some()
                }
                Some(fate) => {
                    self.repeat(place, message.id, fate);
                    true
                }
            };
        }
        let peer = state.peer;
        let key = self.answer_key(place, message.id, message.token);
        match self.server.answers_of(is_once).find(now, key) {
            None => return false,
            Some(Answer::Open(exchange)) => {
                let kind = self.server.exchanges.get(exchange).map(|exchange| exchange.kind);
                self.acknowledge_again(place, message.id, kind);
            }
            Some(Answer::Sent(bytes)) => {
                if !bytes.is_empty() {
                    self.outbox.push(peer, |out| out.extend_from_slice(&bytes));
                }
            }
        }
        true
    }

    fn answer_key(&mut self, place: u32, id: MessageId, token: Token) -> AnswerKey {
        answer_key(&mut self.peers, &self.secret, place, (id, token))
    }

    fn acknowledge_again(&mut self, place: u32, id: MessageId, kind: Option<Kind>) {
        if kind == Some(Kind::Acknowledged) {
            self.send_empty(place, MessageType::Acknowledgement, id);
        }
    }

    /// Treats a duplicate as the message before it.
    pub(super) fn repeat(&mut self, place: u32, id: MessageId, fate: MessageFate) {
        match fate {
            MessageFate::Acknowledged => self.send_empty(place, MessageType::Acknowledgement, id),
            MessageFate::Rejected => self.send_empty(place, MessageType::Reset, id),
            MessageFate::Ignored | MessageFate::Repeatable(_) => {}
        }
    }

    pub(super) fn note(&mut self, now: Instant, place: u32, (id, token): (MessageId, Token), fate: MessageFate) {
        let entries_max = self.config.limits.duplicates_max;
        self.peers.get_mut(place).seen.note(now, id, token, fate, entries_max);
    }

    /// Sends the response to an exchange that is over, and releases its peer.
    pub(super) fn finish(&mut self, now: Instant, mut exchange: Exchange, mut response: Response) {
        if let Some(timer) = exchange.timer.take() {
            self.timers.cancel(timer);
        }
        if let Kind::Notification(observer) = exchange.kind {
            return self.finish_notification(now, exchange, observer, response);
        }
        if exchange.is_unwanted(&response) {
            if exchange.kind == Kind::Confirmable {
                self.send_empty(exchange.peer, MessageType::Acknowledgement, exchange.id);
            }
            return self.close(now, &exchange);
        }
        let registered = self.register(now, &mut exchange, &response);
        let challenged = registered.map(|one| one.observer).filter(|id| self.is_to_prove(exchange.peer, *id));
        if challenged.is_some() && exchange.kind == Kind::Confirmable {
            // Then the response is a message of its own, whose acknowledgement proves the address.
            exchange.kind = Kind::Acknowledged;
            exchange.spent_bytes = (HEADER_LEN + header_bytes(self.peers.get(exchange.peer).peer)) as u32;
            self.send_empty(exchange.peer, MessageType::Acknowledgement, exchange.id);
        }
        let exponent = self.config.block_exponent;
        let mut part = self.part(now, &exchange, &mut response, exponent);
        part.observe = registered.map(|one| one.number);
        if response.is_challenge && !self.peers.get(exchange.peer).verified {
            part.echo = Some(self.current_echo(now, exchange.peer));
            exchange.refuse(); // Nothing was done, and a refusal must take no room from answers that are needed.
        }
        let mut head = self.head(now, &exchange);
        if challenged.is_some() {
            head.message_type = MessageType::Confirmable;
        }
        if exchange.kind == Kind::Multicast {
            self.delay(now, &exchange, &head, &response, &part);
            return self.close(now, &exchange);
        }
        let len = self.push_response(&mut exchange, &head, &response, &part);
        if self.is_amplified(&exchange, &part, len) {
            self.shrink(now, &mut exchange, &head, &mut response, &mut part);
        }
        if let Some(one) = registered {
            self.note_answered(one.observer);
        }
        if let Some(observer) = challenged {
            let backoff = self.backoff_for(&exchange);
            self.confirm(now, observer, exchange.peer, head.id, backoff);
        } else if head.message_type == MessageType::Confirmable {
            let backoff = self.backoff_for(&exchange);
            self.repeat_until_acknowledged(now, exchange.peer, head.id, Owner::Response, backoff);
        }
        self.close(now, &exchange);
        if let Some(one) = registered.filter(|one| one.is_outdated) {
            self.ask_for_observer(now, one.observer);
        }
    }

    fn head(&mut self, now: Instant, exchange: &Exchange) -> Head {
        let (message_type, id) = match exchange.kind {
            Kind::Confirmable => (MessageType::Acknowledgement, exchange.id),
            Kind::Acknowledged => (MessageType::Confirmable, self.next_id(now, exchange.peer)),
            _ => (MessageType::NonConfirmable, self.next_id(now, exchange.peer)),
        };
        Head { message_type, id, token: exchange.token }
    }

    /// A group's answers wait for their moment; as many as requests may wait for handlers. Nobody misses the others: any server may ignore
    /// a request to a group (RFC 7252 §8.2).
    fn delay(&mut self, now: Instant, exchange: &Exchange, head: &Head, response: &Response, part: &ResponsePart) {
        if self.server.delayed.len() >= self.config.limits.exchanges_max {
            return;
        }
        let mut bytes = self.spare.bytes();
        write_response(&mut bytes, head, response, part);
        let leisure = self.config.times.leisure.as_nanos() as u64;
        let at = now + Duration::from_nanos(self.rng.below(leisure));
        let id = self.server.delayed.insert((self.peers.get(exchange.peer).peer, bytes));
        self.timers.set(at, Due::Leisure(id));
    }

    /// Ends an exchange: records the answer to its duplicates, and releases the peer.
    fn close(&mut self, now: Instant, exchange: &Exchange) {
        let peer = self.peers.get(exchange.peer).peer;
        if exchange.is_refused {
            // It did not run, so that it may do so when it is repeated. A handler may have been asked before it was refused.
            if !exchange.is_repeatable() {
                let key = answer_key(&mut self.peers, &self.secret, exchange.peer, (exchange.id, exchange.token));
                self.server.answers_of(exchange.runs_once()).forget(key);
            }
        } else if !exchange.is_repeatable() {
            let acknowledgement = empty_message(MessageType::Acknowledgement, exchange.id);
            let sent: &[u8] = match exchange.kind {
                Kind::Confirmable => self.outbox.last(),
                Kind::Acknowledged => &acknowledgement,
                _ => &[],
            };
            let lifetime = match exchange.kind {
                Kind::Confirmable | Kind::Acknowledged => self.config.times.exchange_lifetime,
                _ => self.server.non_lifetime,
            };
            // From its arrival, of which the second is known: the client counts from there, however long the handler took.
            let arrived = Instant::from_nanos((u64::from(exchange.asked_at) + 1) * 1_000_000_000);
            let times = AnswerTimes { repeats_until: now + self.server.repeats_for, ends: arrived + lifetime };
            let key = answer_key(&mut self.peers, &self.secret, exchange.peer, (exchange.id, exchange.token));
            let answers = self.server.answers_of(exchange.runs_once());
            let early = answers.keep(now, key, peer.host(), sent, times);
            self.counters.answers_evicted += early as u64;
        } else if exchange.kind == Kind::Acknowledged {
            self.note(now, exchange.peer, (exchange.id, exchange.token), MessageFate::Acknowledged);
        }
        self.peers.release(exchange.peer);
    }
}

/// The key of the answer to a message of a peer.
fn answer_key(peers: &mut Peers, secret: &EndpointSecret, place: u32, message: (MessageId, Token)) -> AnswerKey {
    let state = peers.get_mut(place);
    let peer = state.peer;
    let seed = *state.answer_seed.get_or_insert_with(|| answer_seed(secret, peer));
    AnswerKey::new(secret, seed, message.0, message.1)
}
