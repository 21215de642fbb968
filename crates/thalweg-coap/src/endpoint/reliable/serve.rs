//! The server's side: requests of other ends, the responses to them, and notifications.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use thalweg_base::time::Instant;

use super::connection::ConnectionStage;
use super::frame::ReliableMessage;
use super::signal::Capabilities;
use super::{ConnectionId, ReliableEndpoint};
use crate::endpoint::asked::{Asked, OptionRefusal};
use crate::endpoint::bounded::BoundedMap;
use crate::endpoint::cutting::whole;
use crate::endpoint::encode::{OutOfRange, ResponsePart, cut};
use crate::endpoint::peer::PeerHost;
use crate::endpoint::pending::{PendingRegistration, PendingRegistrations};
use crate::endpoint::slab::Slab;
use crate::endpoint::spare::Spare;
use crate::endpoint::{Confirmability, EndpointEvent, ExchangeGone, ExchangeId};
use crate::message::{
    Block, Code, ETag, Observe, OptionNumber, Options, RequestBuf, Response, Token, encode_uint, parse_uint,
    write_option,
};

/// State of the server's side.
pub(super) struct Serving {
    pub exchanges: Slab<ReliableExchange>,
    /// Bodies of requests that have not arrived completely, by representation and connection.
    uploads: BoundedMap<Vec<u8>>,
    /// Responses that are fetched block by block, by representation and connection.
    bodies: BoundedMap<Response>,
    pub by_path: HashMap<String, BTreeSet<(ConnectionId, Token)>>,
    pub pending: PendingRegistrations,
    pub observers: usize,
    /// How many of them each host has.
    pub hosts: HashMap<PeerHost, usize>,
    /// The same hosts, by that number.
    pub by_count: BTreeSet<(usize, PeerHost)>,
    pub number: u32,
    /// How many registrations there were.
    pub registrations: u64,
    pub spare: Spare,
}

impl Serving {
    pub fn new(transfer_bytes_max: usize) -> Serving {
        Serving {
            exchanges: Slab::new(),
            uploads: BoundedMap::new(transfer_bytes_max),
            bodies: BoundedMap::new(transfer_bytes_max),
            by_path: HashMap::new(),
            pending: PendingRegistrations::default(),
            observers: 0,
            hosts: HashMap::new(),
            by_count: BTreeSet::new(),
            number: 0,
            registrations: 0,
            spare: Spare::default(),
        }
    }

    /// Takes into account that a host has another number of observers.
    pub fn recount(&mut self, host: PeerHost, change: impl FnOnce(usize) -> usize) {
        let before = self.hosts.remove(&host).unwrap_or(0);
        self.by_count.remove(&(before, host));
        let count = change(before);
        if count > 0 {
            self.hosts.insert(host, count);
            self.by_count.insert((count, host));
        }
    }
}

/// A request that a handler works on.
#[derive(Debug)]
pub(super) struct ReliableExchange {
    pub connection: ConnectionId,
    pub token: Token,
    pub asked: Asked,
    pub code: Code,
    /// The blocks that were asked for are joined ones (BERT).
    pub blocks: JoinedBlocks,
    /// Of a client that wants to observe.
    pub registration: Option<Box<PendingRegistration>>,
    /// The registration that asks, for a notification.
    pub notifies: Option<u64>,
}

/// Which Block options had the exponent 7 (RFC 8323 §6).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JoinedBlocks {
    request: bool,
    response: bool,
}

impl ReliableEndpoint {
    /// Answers a request of [`EndpointEvent::Request`].
    ///
    /// # Errors
    /// When it was answered before, or its connection is gone.
    pub fn respond(&mut self, now: Instant, exchange: ExchangeId, response: Response) -> Result<(), ExchangeGone> {
        self.now = now;
        let exchange = self.take_exchange(exchange).ok_or(ExchangeGone)?;
        let id = exchange.connection;
        let connection = self.connections.get(id.0).ok_or(ExchangeGone)?;
        let was_full = !self.has_room(connection);
        if let Some(serial) = exchange.notifies {
            self.finish_notification(now, &exchange, serial, response);
        } else {
            self.finish(now, exchange, response);
        }
        self.settle(now, id, was_full);
        Ok(())
    }

    /// Takes a request away from its handler.
    pub(super) fn take_exchange(&mut self, id: ExchangeId) -> Option<ReliableExchange> {
        let mut exchange = self.serving.exchanges.remove(id.0)?;
        if let Some(registration) = &mut exchange.registration {
            self.serving.pending.end(registration);
        }
        Some(exchange)
    }

    /// Whether requests with a critical option that is not understood but safe to forward reach the driver, as with
    /// [`Config::forwarding`](crate::endpoint::Config::forwarding). Default no.
    pub fn set_forwarding(&mut self, forwarding: bool) {
        self.forwarding = forwarding;
    }

    /// Whether requests that name another server reach the driver, as with
    /// [`Config::proxying`](crate::endpoint::Config::proxying). Default no: they are answered 5.05.
    pub fn set_proxying(&mut self, proxying: bool) {
        self.proxying = proxying;
    }

    /// As [`Endpoint::unread_option`](crate::endpoint::Endpoint::unread_option).
    pub fn unread_option(&self, exchange: ExchangeId) -> Option<OptionNumber> {
        self.serving.exchanges.get(exchange.0).and_then(|exchange| exchange.asked.unread)
    }

    /// As [`Endpoint::is_notification`](crate::endpoint::Endpoint::is_notification).
    pub fn is_notification(&self, exchange: ExchangeId) -> bool {
        self.serving.exchanges.get(exchange.0).is_some_and(|exchange| exchange.notifies.is_some())
    }

    /// Leaves a request without a response: its client is told 5.03, since on a connection nothing gets lost. A notification is put
    /// off: its resource is asked again within a second, or with its next change.
    pub fn abandon(&mut self, now: Instant, exchange: ExchangeId) {
        if self.is_notification(exchange) {
            return self.put_off(now, exchange);
        }
        let _ = self.respond(now, exchange, Response::new(Code::SERVICE_UNAVAILABLE).with_max_age(1));
    }

    pub(super) fn handle_request(&mut self, now: Instant, id: ConnectionId, message: &ReliableMessage<'_>) {
        let mut options = Vec::new();
        let blocks = join_blocks(message.options, &mut options);
        let options = blocks.map_or(message.options, |_| Options::new(&options));
        let asked = Asked::read(message.code, options, &self.table, self.forwarding);
        let mut exchange = ReliableExchange {
            connection: id,
            token: message.token,
            asked: asked.unwrap_or_default(),
            code: message.code,
            blocks: blocks.unwrap_or_default(),
            registration: None,
            notifies: None,
        };
        if message.code == Code::FETCH && exchange.asked.block1.is_none() {
            exchange.asked.payload = self.payload_hash(message.payload);
        }
        let refusal = match asked {
            Ok(asked) if asked.is_for_proxy && !self.proxying => Some(Response::new(Code::PROXYING_NOT_SUPPORTED)),
            Ok(_) if message.code > Code::IPATCH => Some(Response::new(Code::METHOD_NOT_ALLOWED)),
            // What is protected for the other server is passed on unopened.
            Ok(asked) if asked.is_for_proxy => None,
            Err(OptionRefusal::BadOption(OptionNumber::OSCORE))
            | Ok(Asked { unread: Some(OptionNumber::OSCORE), .. }) => {
                Some(Response::error(Code::BAD_OPTION, "OSCORE is not supported over reliable transports"))
            }
            Err(OptionRefusal::BadOption(number)) => {
                Some(Response::error(Code::BAD_OPTION, format!("{number} is not understood")))
            }
            Err(OptionRefusal::BadRequest(reason)) => Some(Response::error(Code::BAD_REQUEST, reason)),
            Ok(_) => None,
        };
        let is_releasing = self.connections.get(id.0).is_some_and(|one| one.stage == ConnectionStage::Releasing);
        let refusal = refusal.or_else(|| is_releasing.then(|| Response::new(Code::SERVICE_UNAVAILABLE)));
        if let Some(response) = refusal {
            return self.finish(now, exchange, response);
        }
        if exchange.asked.observe == Some(Observe::Deregister) && exchange.asked.unread.is_none() {
            self.forget_observation(id, exchange.token);
        }
        if let Some(block) = exchange.asked.block1 {
            return self.upload(now, exchange, block, options, message.payload);
        }
        if exchange.asked.wants_further_block() {
            let held = self.serving.bodies.get(now, self.body_key(id, &exchange.asked)).cloned();
            let lost = || Response::error(Code::REQUEST_ENTITY_INCOMPLETE, "the response is not held any more");
            if let Some(response) = held.or_else(|| (!message.code.is_safe()).then(lost)) {
                return self.finish(now, exchange, response);
            }
        }
        let mut request = self.serving.spare.request();
        request.refill(message.code, options, message.payload);
        self.ask(exchange, request);
    }

    /// Passes a request to its handler.
    pub(super) fn ask(&mut self, mut exchange: ReliableExchange, request: RequestBuf) {
        let Some(connection) = self.connections.get_mut(exchange.connection.0) else { return };
        if exchange.asked.observe == Some(Observe::Register) && exchange.code.is_safe() && exchange.notifies.is_none() {
            exchange.registration = Some(self.serving.pending.begin(request.clone()));
        }
        connection.exchanges += 1;
        let peer = connection.peer;
        let exchange = ExchangeId(self.serving.exchanges.insert(exchange));
        let delivery = Confirmability::Confirmable;
        self.events.push_back(EndpointEvent::Request { exchange, peer, delivery, request });
    }

    /// A handler is done with a request of a connection.
    pub(super) fn settle(&mut self, now: Instant, id: ConnectionId, was_full: bool) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        connection.exchanges -= 1;
        self.close_if_released(id);
        let has_room = self.connections.get(id.0).is_some_and(|connection| self.has_room(connection));
        if was_full && has_room {
            self.handle_room(now, id);
        }
    }

    /// Sends the response to an exchange that is over.
    fn finish(&mut self, now: Instant, mut exchange: ReliableExchange, response: Response) {
        let is_unwanted = exchange.asked.no_response.is_some_and(|classes| {
            let class = response.code.class();
            response.code != Code::CONTINUE && class > 0 && classes & 1 << (class - 1) != 0
        });
        if is_unwanted {
            return;
        }
        let registered = self.register(now, &mut exchange, &response);
        self.push(now, &exchange, response, registered.map(|one| one.number));
        if registered.is_some_and(|one| one.is_outdated) {
            self.ask_for_observation(exchange.connection, exchange.token);
        }
    }

    pub(super) fn push(
        &mut self,
        now: Instant,
        exchange: &ReliableExchange,
        mut response: Response,
        observe: Option<u32>,
    ) {
        let Some(connection) = self.connections.get(exchange.connection.0) else { return };
        let capabilities = connection.capabilities.unwrap_or(Capabilities::BASE);
        let mut part = self.part(now, exchange, &mut response, &capabilities);
        part.observe = observe;
        let Some(connection) = self.connections.get_mut(exchange.connection.0) else { return };
        let (framing, token) = (connection.framing, exchange.token);
        let bytes =
            connection.outbound.push(framing, |out| self.writer.response(out, framing, token, &response, &part));
        self.note_pushed(exchange.connection, bytes);
        self.counts.sent += 1;
        self.mark_dirty(exchange.connection);
        self.plan(exchange.connection);
    }

    /// The part of a response that fits into one message to this end.
    fn part(
        &mut self,
        now: Instant,
        exchange: &ReliableExchange,
        response: &mut Response,
        capabilities: &Capabilities,
    ) -> ResponsePart {
        let len = response.payload.len();
        let more = response.code == Code::CONTINUE;
        let exponent = |is_joined: bool, block: Block| if is_joined { JOINED } else { block.exponent };
        let block1 = exchange.asked.block1;
        let block1 = block1.map(|block| Block { more, exponent: exponent(exchange.blocks.request, block), ..block });
        let asked = exchange.asked.block2.filter(|_| response.code.is_success());
        let joined = capabilities.bert_blocks();
        let found = match asked {
            None if len <= capabilities.payload_max() => return ResponsePart { block1, ..whole(response) },
            None if joined > 0 => cut_joined(len, 0, joined),
            Some(block) if exchange.blocks.response && joined > 0 => cut_joined(len, block.number, joined),
            _ => cut(len, asked, fitting_exponent(capabilities)),
        };
        let found = found.unwrap_or_else(|OutOfRange| {
            *response = Response::error(Code::BAD_REQUEST, "the block lies behind the end of the body");
            None
        });
        let Some((block, range)) = found else { return ResponsePart { block1, ..whole(response) } };
        if (block.number > 0 || block.more) && response.etag.is_none() {
            let mut hasher = self.table.build_hasher();
            hasher.write(&response.payload);
            response.etag = Some(ETag::from_u64(hasher.finish()));
        }
        if block.more && block.number == 0 {
            response.payload = std::mem::take(&mut response.payload).into_shared();
            let key = self.body_key(exchange.connection, &exchange.asked);
            self.serving.bodies.insert(key, response.clone(), len, now + BODY_LIFETIME);
            if exchange.asked.payload != 0 {
                // A client need not repeat its payload when it asks for further blocks (RFC 7959 §3.3).
                let key = self.body_key(exchange.connection, &Asked { payload: 0, ..exchange.asked });
                self.serving.bodies.insert(key, response.clone(), 0, now + BODY_LIFETIME);
            }
        }
        ResponsePart { observe: None, block1, block2: Some(block), echo: None, range }
    }

    fn body_key(&self, connection: ConnectionId, asked: &Asked) -> u64 {
        let mut hasher = self.table.build_hasher();
        hasher.write_u64(connection.0);
        hasher.write_u64(asked.representation);
        hasher.write_u64(asked.payload);
        hasher.finish()
    }

    /// Tells apart the requests of FETCH, whose payload says what of the resource is wanted (RFC 8132 §2.1); 0 for none.
    fn payload_hash(&self, payload: &[u8]) -> u64 {
        if payload.is_empty() {
            return 0;
        }
        let mut hasher = self.table.build_hasher();
        hasher.write(payload);
        hasher.finish()
    }

    /// Adds a block to the body of a request; the last one completes it (RFC 7959 §2.5, RFC 8323 §6).
    fn upload(&mut self, now: Instant, exchange: ReliableExchange, block: Block, options: Options<'_>, payload: &[u8]) {
        let key = self.body_key(exchange.connection, &exchange.asked);
        let body_max = self.limits.body_bytes_max;
        let declared = exchange.asked.size1.unwrap_or(0) as usize;
        if declared > body_max || block.offset() + payload.len() > body_max {
            self.serving.uploads.take(now, key);
            let size = Some(u32::try_from(body_max).unwrap_or(u32::MAX));
            let told = format!("at most {body_max} bytes to {}", exchange.code);
            let response = Response { size, ..Response::error(Code::REQUEST_ENTITY_TOO_LARGE, told) };
            return self.finish(now, exchange, response);
        }
        let mut body = self.serving.uploads.take(now, key).unwrap_or_default();
        if block.number == 0 {
            body.clear();
        }
        let is_joined = exchange.blocks.request;
        let is_full = match is_joined {
            true => !payload.is_empty() && payload.len().is_multiple_of(block.size()),
            false => payload.len() == block.size(),
        };
        let is_too_long = !is_joined && payload.len() > block.size();
        if body.len() != block.offset() || (block.more && !is_full) || is_too_long {
            let response = Response::error(Code::REQUEST_ENTITY_INCOMPLETE, "a block is missing or has a wrong size");
            return self.finish(now, exchange, response);
        }
        body.extend_from_slice(payload);
        if block.more {
            let bytes = body.len();
            let is_held = self.serving.uploads.insert(key, body, bytes, now + BODY_LIFETIME);
            let code = if is_held { Code::CONTINUE } else { Code::SERVICE_UNAVAILABLE };
            return self.finish(now, exchange, Response::new(code));
        }
        let mut exchange = exchange;
        if exchange.code == Code::FETCH {
            exchange.asked.payload = self.payload_hash(&body);
        }
        let mut request = self.serving.spare.request();
        request.refill(exchange.code, options, &[]);
        request.set_payload(body);
        self.ask(exchange, request);
    }
}

/// The joined blocks from block `number` of a body, at most `blocks` of them.
fn cut_joined(len: usize, number: u32, blocks: usize) -> Result<Option<(Block, std::ops::Range<usize>)>, OutOfRange> {
    let start = number as usize * 1024;
    if start >= len && start > 0 {
        return Err(OutOfRange);
    }
    let end = len.min(start + blocks * 1024);
    Ok(Some((Block { number, more: end < len, exponent: JOINED }, start..end)))
}

/// The largest exponent whose blocks fit into a message to this end.
pub(super) fn fitting_exponent(capabilities: &Capabilities) -> u8 {
    let fits = |exponent: &u8| 16 << exponent <= capabilities.payload_max();
    (0..=Block::EXPONENT_MAX).rev().find(fits).unwrap_or(0)
}

/// Which Block options say that they stand for joined blocks; the options with the exponent of a single block of the same
/// size in `plain`, for whoever reads them next. `None`, and nothing in `plain`, where none does.
fn join_blocks(options: Options<'_>, plain: &mut Vec<u8>) -> Option<JoinedBlocks> {
    let is_block = |number: OptionNumber| number == OptionNumber::BLOCK1 || number == OptionNumber::BLOCK2;
    let is_joined = |value: &[u8]| value.len() <= 3 && parse_uint(value).is_some_and(|bits| bits & 7 == 7);
    if !options.clone().any(|(number, value)| is_block(number) && is_joined(value)) {
        return None;
    }
    let mut blocks = JoinedBlocks::default();
    let mut last = OptionNumber(0);
    for (number, value) in options {
        if is_block(number) && is_joined(value) {
            let bits = parse_uint(value).unwrap_or_default() - 1;
            write_option(plain, last, number, encode_uint(bits, &mut [0; 4]));
            blocks.request |= number == OptionNumber::BLOCK1;
            blocks.response |= number == OptionNumber::BLOCK2;
        } else {
            write_option(plain, last, number, value);
        }
        last = number;
    }
    Some(blocks)
}

/// The exponent of joined blocks (RFC 8323 §6).
pub(super) const JOINED: u8 = 7;
/// How long bodies are kept for their next block.
const BODY_LIFETIME: Duration = Duration::from_secs(247);
