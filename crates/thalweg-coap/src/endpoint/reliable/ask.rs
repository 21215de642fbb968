//! The client's side: own requests on a connection, and the responses to them.

use thalweg_base::rng::Rng;

use super::connection::ConnectionStage;
use super::frame::ReliableMessage;
use super::serve::{JOINED, fitting_exponent};
use super::signal::{self, Capabilities};
use super::{ConnectionId, ReliableEndpoint};
use crate::endpoint::asked::refused_option;
use crate::endpoint::response::read_response;
use crate::endpoint::slab::Slab;
use crate::endpoint::transfer::{RESTARTS_MAX, for_further_block, insert_uint};
use crate::endpoint::{EndpointEvent, RequestError, RequestId};
use crate::message::{
    Block, Code, Observe, OptionNumber, Options, RequestBuf, Response, Token, parse_uint, write_option,
};

/// State of the client's side.
pub(super) struct Asking {
    pub requests: Slab<OwnRequest>,
    rng: Rng,
}

impl Asking {
    pub fn new(seed: u64) -> Asking {
        Asking { requests: Slab::new(), rng: Rng::new(seed) }
    }
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(super) struct OwnRequest {
    connection: ConnectionId,
    request: RequestBuf,
    /// The token of the registration, and of the first message.
    first: u64,
    /// Bytes of the body that have left.
    sent: usize,
    /// Bytes of the block that is under way.
    under_way: usize,
    /// Size exponent of the blocks of the body, as its first block chose it.
    exponent: u8,
    /// The first block of the response without its payload.
    head: Option<Response>,
    received: Vec<u8>,
    /// The block of the response to ask for.
    wanted: Option<(u32, u8)>,
    /// Whether a first block that was fetched anew belongs to a notification, and how often that happened.
    restarted: (Option<u32>, u8),
}

impl OwnRequest {
    fn new(connection: ConnectionId, request: RequestBuf, first: u64) -> OwnRequest {
        OwnRequest {
            connection,
            request,
            first,
            sent: 0,
            under_way: 0,
            exponent: Block::EXPONENT_MAX,
            head: None,
            received: Vec::new(),
            wanted: None,
            restarted: (None, 0),
        }
    }

    /// Whether a PONG is its answer, and nothing else.
    pub fn is_ping(&self) -> bool {
        self.request.code() == Code::EMPTY
    }

    /// Whether its response may be asked for anew from the first block: it changes nothing, and its body fits into one message.
    fn is_repeatable(&self, capabilities: &Capabilities) -> bool {
        self.request.code().is_safe() && self.request.view().payload.len() <= capabilities.payload_max()
    }
}

impl ReliableEndpoint {
    /// Sends a request; its outcome comes as an [`EndpointEvent`]. With Observe it stays until the server ends it or
    /// [`ReliableEndpoint::cancel`]. A body that does not fit into one message goes out in blocks.
    ///
    /// # Errors
    /// When the connection is gone, or the request is no request.
    pub fn request(&mut self, id: ConnectionId, request: RequestBuf) -> Result<RequestId, RequestError> {
        if !request.code().is_request() {
            return Err(RequestError::Malformed("its code is no method"));
        }
        if request.view().options.value(OptionNumber::BLOCK1).is_some() {
            return Err(RequestError::Malformed("Block1 is set by the endpoint"));
        }
        let connection = self.connections.get(id.0).filter(|connection| connection.stage == ConnectionStage::Open);
        let connection = connection.ok_or(RequestError::Disconnected)?;
        let waits = connection.capabilities.is_none();
        let first = self.asking.rng.next_u64();
        let request = RequestId(self.asking.requests.insert(OwnRequest::new(id, request, first)));
        if let Some(connection) = self.connections.get_mut(id.0) {
            connection.requests.insert(first, request);
        }
        if !waits {
            self.send_next(request, first);
        }
        Ok(request)
    }

    /// Asks whether the other end is there; the answer is [`EndpointEvent::Pong`].
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn ping(&mut self, id: ConnectionId) -> Result<RequestId, RequestError> {
        let connection = self.connections.get_mut(id.0).ok_or(RequestError::Disconnected)?;
        let token = self.asking.rng.next_u64();
        let own = OwnRequest::new(id, RequestBuf::default(), token);
        let request = RequestId(self.asking.requests.insert(own));
        connection.requests.insert(token, request);
        self.signal(id, signal::PING, Token::from_u64(token), &[], "");
        Ok(request)
    }

    /// Ends a request; no event about it follows. The server of an observed resource is told.
    pub fn cancel(&mut self, request: RequestId) {
        let Some(own) = self.asking.requests.remove(request.0) else { return };
        let Some(connection) = self.connections.get_mut(own.connection.0) else { return };
        connection.requests.retain(|_, other| *other != request);
        let view = own.request.view();
        if view.observe() == Some(Observe::Register) {
            let mut options = Vec::new();
            let mut last = OptionNumber(0);
            for (number, value) in view.options {
                let value = if number == OptionNumber::OBSERVE { &[1][..] } else { value };
                write_option(&mut options, last, number, value);
                last = number;
            }
            let token = Token::from_u64(own.first);
            let message = ReliableMessage { code: view.code, token, options: Options::new(&options), payload: &[] };
            self.send(own.connection, &message);
        }
        self.close_if_released(own.connection);
    }

    /// The other end has said what it can do: what waited for that leaves.
    pub(super) fn send_waiting(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get(id.0) else { return };
        let mut waiting: Vec<(RequestId, u64)> = connection.requests.iter().map(|(token, id)| (*id, *token)).collect();
        // A second CSM finds requests that have left.
        let has_left = |id: &RequestId| self.asking.requests.get(id.0).is_none_or(|own| own.under_way > 0);
        waiting.retain(|(id, _)| !has_left(id));
        waiting.sort_unstable_by_key(|(id, _)| id.0);
        waiting.into_iter().for_each(|(request, token)| self.send_next(request, token));
    }

    /// Sends the next message of a request.
    fn send_next(&mut self, request: RequestId, token: u64) {
        let Some(own) = self.asking.requests.get_mut(request.0) else { return };
        if own.is_ping() {
            return; // A ping needs no capabilities.
        }
        let Some(connection) = self.connections.get(own.connection.0) else { return };
        let capabilities = connection.capabilities.unwrap_or(Capabilities::BASE);
        let view = own.request.view();
        let (len, joined) = (view.payload.len(), capabilities.bert_blocks());
        let mut options = view.options.as_bytes().to_vec();
        let range = if let Some((number, exponent)) = own.wanted {
            options = for_further_block(view.options);
            insert_uint(&mut options, OptionNumber::BLOCK2, Block { number, more: false, exponent }.to_uint());
            // The server finds the blocks of one whose body is too long without it.
            if view.code == Code::FETCH && len <= capabilities.payload_max() { 0..len } else { 0..0 }
        } else if len > capabilities.payload_max() || own.sent > 0 {
            if own.sent == 0 {
                own.exponent = if joined > 0 { JOINED } else { fitting_exponent(&capabilities) };
            }
            let (size, exponent) = (block_bytes(own.exponent), own.exponent);
            let blocks = if exponent == JOINED { joined.max(1) } else { 1 };
            let end = len.min(own.sent + blocks * size);
            let block = Block { number: (own.sent / size) as u32, more: end < len, exponent };
            insert_uint(&mut options, OptionNumber::BLOCK1, block.to_uint());
            own.sent..end
        } else {
            0..len
        };
        own.under_way = range.len().max(1);
        let (id, payload) = (own.connection, view.payload[range].to_vec());
        let (code, token) = (view.code, Token::from_u64(token));
        self.send(id, &ReliableMessage { code, token, options: Options::new(&options), payload: &payload });
    }

    pub(super) fn handle_response(&mut self, id: ConnectionId, message: &ReliableMessage<'_>) {
        let Some(token) = message.token.to_u64() else { return };
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        // A response that nobody waits for is ignored: it may have crossed a cancellation.
        let Some(request) = connection.requests.get(&token).copied() else { return };
        let peer = connection.peer;
        let mut plain = Vec::new();
        let joined = take_joined(message.options, &mut plain);
        let options = if joined.is_some() { Options::new(&plain) } else { message.options };
        let own = self.asking.requests.get(request.0);
        if own.is_some_and(OwnRequest::is_ping) {
            return;
        }
        let is_forwarded = own.is_some_and(|own| own.request.is_forwarded());
        if let Some(unknown) = refused_option(options, is_forwarded) {
            return self.fail(id, request, RequestError::UnknownOption(unknown));
        }
        let (mut response, block1, _) = read_response(&ReliableMessage { options, ..*message }.as_datagram());
        let joined_block = joined.as_ref().and_then(|joined| joined.block2);
        let answered = joined.and_then(|joined| joined.block1).or(block1.map(|block| (block.number, block.more)));
        if let Some((number, more)) = joined_block {
            response.block = Some(Block { number, more, exponent: Block::EXPONENT_MAX });
        }
        let Some(own) = self.asking.requests.get_mut(request.0) else { return };
        if token != own.first {
            connection.requests.remove(&token);
        }
        let is_new_state = token == own.first && own.wanted.is_some();
        if is_new_state {
            // A notification while the blocks of an older state are fetched, of which one may still come.
            (own.head, own.wanted, own.restarted) = (None, None, (None, 0));
            own.received.clear();
            let first = own.first;
            connection.requests.retain(|token, other| *other != request || *token == first);
        }
        let (len, size) = (own.request.view().payload.len(), block_bytes(own.exponent));
        // The other end used these blocks by themselves; it waits for those that follow all the same (RFC 7959 §2.3).
        let is_used_alone = response.code.is_success()
            && answered == Some(((own.sent / size) as u32, false))
            && own.wanted.is_none()
            && !is_new_state
            && own.sent + own.under_way < len;
        if response.code == Code::CONTINUE || is_used_alone {
            own.sent += own.under_way;
            if answered.is_none() || own.sent >= len {
                let exponent = own.exponent.min(Block::EXPONENT_MAX);
                let expected = Block { number: (own.sent / size) as u32, more: true, exponent };
                return self.fail(id, request, RequestError::BlockMismatch { expected });
            }
            return self.send_next(request, token);
        }
        match response.block {
            Some(block) if block.more || own.head.is_some() => {
                let exponent = if joined_block.is_some() { JOINED } else { block.exponent };
                self.accept_block(id, request, response, block, exponent);
            }
            _ => {
                response.block = None;
                self.deliver(id, request, peer, response);
            }
        }
    }

    /// Adds a block to a response.
    fn accept_block(&mut self, id: ConnectionId, request: RequestId, response: Response, block: Block, exponent: u8) {
        let Some(own) = self.asking.requests.get_mut(request.0) else { return };
        let head = own.head.get_or_insert_with(|| Response { payload: Default::default(), ..response.clone() });
        if head.etag != response.etag || head.code != response.code {
            own.restarted = (head.observe.or(own.restarted.0), own.restarted.1 + 1);
            own.received.clear();
            own.head = None;
            let connection = self.connections.get(id.0);
            let capabilities = connection.and_then(|one| one.capabilities).unwrap_or(Capabilities::BASE);
            // Anything else would run again, without its body.
            if own.restarted.1 > RESTARTS_MAX || !own.is_repeatable(&capabilities) {
                return self.fail(id, request, RequestError::BodyChanged);
            }
            return self.ask_for_block(id, request, (0, exponent));
        }
        let size = block.size();
        let is_whole = !block.more || (!response.payload.is_empty() && response.payload.len().is_multiple_of(size));
        if block.offset() != own.received.len() || !is_whole {
            let number = (own.received.len() / size) as u32;
            return self.fail(id, request, RequestError::BlockMismatch { expected: Block { number, ..block } });
        }
        if own.received.len() + response.payload.len() > self.limits.body_bytes_max {
            return self.fail(id, request, RequestError::BodyTooLarge);
        }
        own.received.extend_from_slice(&response.payload);
        if block.more {
            let number = (own.received.len() / size) as u32;
            return self.ask_for_block(id, request, (number, exponent));
        }
        let mut complete = own.head.take().unwrap_or(response);
        complete.observe = complete.observe.or(own.restarted.0);
        own.restarted = (None, 0);
        complete.block = None;
        complete.payload = std::mem::take(&mut own.received).into();
        own.wanted = None;
        let Some(peer) = self.connections.get(id.0).map(|connection| connection.peer) else { return };
        self.deliver(id, request, peer, complete);
    }

    fn ask_for_block(&mut self, id: ConnectionId, request: RequestId, wanted: (u32, u8)) {
        let token = self.asking.rng.next_u64();
        if let Some(own) = self.asking.requests.get_mut(request.0) {
            own.wanted = Some(wanted);
        }
        if let Some(connection) = self.connections.get_mut(id.0) {
            connection.requests.insert(token, request);
        }
        self.send_next(request, token);
    }

    fn deliver(&mut self, id: ConnectionId, request: RequestId, peer: crate::endpoint::Peer, mut response: Response) {
        let Some(own) = self.asking.requests.get_mut(request.0) else { return };
        let wants = own.request.view().observe() == Some(Observe::Register);
        if wants && response.code.is_success() && response.observe.is_some() {
            (own.sent, own.under_way) = (0, own.request.view().payload.len().max(1));
        } else {
            response.observe = None;
            self.asking.requests.remove(request.0);
            if let Some(connection) = self.connections.get_mut(id.0) {
                connection.requests.retain(|_, other| *other != request);
            }
        }
        self.events.push_back(EndpointEvent::Response { request, peer, response });
        self.close_if_released(id);
    }

    fn fail(&mut self, id: ConnectionId, request: RequestId, error: RequestError) {
        self.asking.requests.remove(request.0);
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        connection.requests.retain(|_, other| *other != request);
        let peer = connection.peer;
        self.events.push_back(EndpointEvent::Failed { request, peer, error });
        self.close_if_released(id);
    }
}

/// Bytes of a block, also of one of those that are joined.
fn block_bytes(exponent: u8) -> usize {
    16 << exponent.min(Block::EXPONENT_MAX)
}

/// Block options that stand for joined blocks.
struct Joined {
    /// Number and continuation of a Block1 of that kind.
    block1: Option<(u32, bool)>,
    /// The same of a Block2.
    block2: Option<(u32, bool)>,
}

/// The Block options of joined blocks, with the other options in `plain`; `None`, and nothing there, where no option is of that kind.
fn take_joined(options: Options<'_>, plain: &mut Vec<u8>) -> Option<Joined> {
    let is_joined = |value: &[u8]| value.len() <= 3 && parse_uint(value).is_some_and(|bits| bits & 7 == 7);
    let is_block = |number: OptionNumber| number == OptionNumber::BLOCK1 || number == OptionNumber::BLOCK2;
    if !options.clone().any(|(number, value)| is_block(number) && is_joined(value)) {
        return None;
    }
    let (mut block1, mut block2, mut last) = (None, None, OptionNumber(0));
    for (number, value) in options {
        if !is_block(number) || !is_joined(value) {
            write_option(plain, last, number, value);
            last = number;
            continue;
        }
        let bits = parse_uint(value).unwrap_or_default();
        let place = if number == OptionNumber::BLOCK1 { &mut block1 } else { &mut block2 };
        *place = Some((bits >> 4, bits & 8 != 0));
    }
    Some(Joined { block1, block2 })
}
