//! Requests and responses that are protected by OSCORE (RFC 8613 §8). Below them the message layer is the same; above
//! them blocks, observation and Echo are.

use std::sync::Arc;

use thalweg_base::time::Instant;

use super::asked::{Asked, refused_option};
use super::cutting::whole;
use super::encode::{Head, ResponsePart, write_response};
use super::exchange::{Exchange, Kind};
use super::ids::seconds;
use super::outbox::CoapOutbox;
use super::{Confirmability, Endpoint, ExchangeId, Peer, Reach, RequestError, RequestId};
use crate::message::{CoapMessage, Code, MessageType, MessageWriter, OptionNumber, RequestBuf, Response, Token};
use crate::oscore::{Age, ClientAssociation, Context, Keyring, Refusal, SequenceError, ServerAssociation};

impl Endpoint {
    /// Answers protected requests of the peers in `keyring` from now on. Endpoints that serve the same peers share it.
    /// Without a keyring such requests are answered with 4.02 Bad Option.
    pub fn set_keyring(&mut self, keyring: Arc<Keyring>) {
        self.keyring = Some(keyring);
    }

    /// The security context of an exchange's request; `None` for one without protection.
    #[inline]
    pub fn oscore_context(&self, exchange: ExchangeId) -> Option<Arc<Context>> {
        self.keyring.as_ref()?;
        let exchange = self.server.exchanges.get(exchange.0)?;
        exchange.protection.as_ref().map(|association| association.shared_context())
    }

    /// Whether the request of an exchange is protected: encrypted, unchanged, and from a holder of the keys.
    pub fn is_protected(&self, exchange: ExchangeId) -> bool {
        self.server.exchanges.get(exchange.0).is_some_and(|exchange| exchange.protection.is_some())
    }

    /// Sends a request as [`Endpoint::request`] does, protected with the keys of `context`. Its responses come from the
    /// peer of the context, or there are none; none is kept for other requests. With Proxy-Scheme, Uri-Host and Uri-Port, which
    /// stay readable, a proxy passes it on to the server that has the keys.
    ///
    /// # Errors
    /// As [`Endpoint::request`], and for groups, which need keys of another kind (Group OSCORE, which is not built).
    pub fn request_protected(
        &mut self,
        now: Instant,
        peer: Peer,
        request: RequestBuf,
        delivery: Confirmability,
        context: &Arc<Context>,
    ) -> Result<RequestId, RequestError> {
        self.check_request(peer, &request, delivery)?;
        let options = request.view().options;
        if peer.is_multicast() {
            return Err(RequestError::Malformed("a group cannot be asked with the keys of one server"));
        }
        if [OptionNumber::OSCORE, OptionNumber::PROXY_URI].iter().any(|number| options.value(*number).is_some()) {
            return Err(RequestError::Malformed("a protected request has no OSCORE or Proxy-Uri option of its own"));
        }
        let id = self.insert_request(now, peer, request, delivery)?;
        if let Some(outgoing) = self.client.requests.get_mut(id) {
            outgoing.protection = Some(Box::new(ClientAssociation::new(Arc::clone(context))));
        }
        self.send_in_turn(now, id);
        Ok(RequestId(id))
    }

    /// Handles a request with an OSCORE option that names no other server, of a peer that is held while this runs.
    #[cold]
    pub(super) fn handle_protected_request(
        &mut self,
        now: Instant,
        place: u32,
        message: &CoapMessage<'_>,
        len: usize,
        reach: Reach,
    ) {
        let Some(keyring) = self.keyring.clone().filter(|_| reach == Reach::Unicast) else { return };
        // Before anything else: a repetition is the same message and would look like a replay. What it asks for is not known yet.
        let is_duplicate =
            |endpoint: &mut Endpoint, is_once| endpoint.settle_duplicate(now, place, message, (false, is_once));
        if is_duplicate(self, true) || is_duplicate(self, false) {
            self.counters.duplicates += 1;
            return;
        }
        self.peers.hold_again(place);
        let is_confirmable = message.message_type == MessageType::Confirmable;
        let mut exchange = Exchange {
            peer: place,
            id: message.id,
            token: message.token,
            code: Code::POST,
            kind: if is_confirmable { Kind::Confirmable } else { Kind::NonConfirmable },
            asked: Asked::default(),
            request_bytes: len,
            spent_bytes: 0,
            held_bytes: 0,
            is_refused: false,
            timer: None,
            registration: None,
            asked_at: seconds(now),
            protection: None,
        };
        let verified = match keyring.verify(message) {
            Ok(verified) => verified,
            Err(refusal) => {
                self.counters.protected_refused += 1;
                exchange.is_refused = true;
                return self.finish(now, exchange, refusal.response());
            }
        };
        let association = verified.association;
        let inner = verified.request.in_place_of(message);
        let asked = Asked::read(inner.code, inner.options, &self.table, self.config.forwarding).map(|asked| {
            // Neither another context nor an unprotected request gets at the blocks of this one.
            let context = association.context();
            let name = (asked.representation, context.recipient_id(), context.id_context());
            Asked { representation: self.secret.hash(name), ..asked }
        });
        exchange.protection = Some(Box::new(association));
        match verified.age {
            Age::Unknown(challenge) => {
                // It did not run, and its copy is challenged under another nonce: one captured request, sent from everywhere, must
                // take no room from answers that are needed.
                exchange.is_refused = true;
                let response = Response::new(Code::UNAUTHORIZED).with_option(OptionNumber::ECHO, &challenge);
                return self.finish(now, exchange, response);
            }
            Age::Proven => self.note_proof(place),
            Age::New => {}
        }
        exchange.code = inner.code;
        exchange.asked = asked.unwrap_or_default();
        self.begin(now, exchange, asked, &inner);
    }

    /// Appends a response to the outbox, protected as its request was; gives the length of the datagram.
    pub(super) fn push_response(
        &mut self,
        exchange: &mut Exchange,
        head: &Head,
        response: &Response,
        part: &ResponsePart,
    ) -> usize {
        let peer = self.peers.get(exchange.peer).peer;
        let len = self.outbox.push(peer, |out| write_response(out, head, response, part));
        match &mut exchange.protection {
            Some(association) => protect_last(&mut self.outbox, peer, head, association),
            None => len,
        }
    }

    /// Handles what claims to be the response to a protected request of this endpoint.
    #[cold]
    pub(super) fn handle_protected_response(&mut self, now: Instant, place: u32, id: u64, message: &CoapMessage<'_>) {
        let peer = self.peers.get(place).peer;
        let Some(outgoing) = self.client.requests.get_mut(id) else { return };
        let is_observing = outgoing.latest.is_some();
        let is_forwarded = outgoing.request.is_forwarded();
        let Some(association) = &mut outgoing.protection else { return };
        match association.open(message) {
            Ok(opened) => {
                let inner = opened.in_place_of(message);
                self.acknowledge_response(now, place, message);
                self.note_proof(place); // It has the keys.
                match refused_option(inner.options, is_forwarded) {
                    Some(number) => self.fail(now, id, RequestError::UnknownOption(number)),
                    None => self.accept(now, id, peer, &inner),
                }
                self.send_waiting(now, place);
            }
            // The sender of such an answer need not be the server. It ends a request, which it could suppress as well, but no
            // observation, and nothing in it is taken for an answer.
            Err(Refusal::Unprotected) if !is_observing => {
                self.counters.protected_refused += 1;
                self.acknowledge_response(now, place, message);
                let diagnosis = String::from_utf8_lossy(message.payload).into_owned();
                self.fail(now, id, RequestError::Unprotected { code: message.code, diagnosis });
            }
            // As if it was lost: the right one may follow.
            Err(_) => self.counters.protected_refused += 1,
        }
    }
}

/// Appends a message of a request to the outbox, protected if the request is; gives the length of the datagram. `registration`
/// is the token under which notifications come.
pub(super) fn push_request(
    outbox: &mut CoapOutbox,
    peer: Peer,
    protection: &mut Option<Box<ClientAssociation>>,
    registration: Token,
    message: &CoapMessage<'_>,
) -> Result<usize, SequenceError> {
    let Some(association) = protection else {
        return Ok(outbox.push(peer, |out| {
            let CoapMessage { message_type, code, id, token, .. } = message;
            let mut writer = MessageWriter::new(out, *message_type, *code, *id, token);
            writer.options(message.options);
            writer.payload(message.payload);
        }));
    };
    let datagram = association.protect(message, registration)?;
    Ok(outbox.push(peer, |out| out.extend_from_slice(&datagram)))
}

/// Puts a protected response in the place of the last datagram, or an error if it cannot be protected: what it says must
/// not leave without. Gives the length.
fn protect_last(outbox: &mut CoapOutbox, peer: Peer, head: &Head, association: &mut ServerAssociation) -> usize {
    let protected = CoapMessage::parse(outbox.last()).ok().and_then(|message| association.protect(&message).ok());
    outbox.drop_last();
    match protected {
        Some(datagram) => outbox.push(peer, |out| out.extend_from_slice(&datagram)),
        None => {
            let error = Response::error(Code::INTERNAL_SERVER_ERROR, "the response cannot be protected");
            outbox.push(peer, |out| write_response(out, head, &error, &whole(&error)))
        }
    }
}
