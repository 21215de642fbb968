//! The binding of responses to their request: security context and Partial IV (RFC 8613 §8).

use std::sync::Arc;

use super::classes::{self, Opened};
use super::context::{Age, Context, Nonce};
use super::header::OscoreHeader;
use super::sequence::SequenceError;
use super::{PartialIv, Refusal};
use crate::message::{CoapMessage, CoapRequest, Observe, OptionNumber, Token};

/// A request whose protection was taken off.
#[derive(Debug)]
pub struct Verified {
    /// Method, options and payload.
    pub request: Opened,
    /// The protection of its responses.
    pub association: ServerAssociation,
    /// Its freshness, as far as known.
    pub age: Age,
}

/// A server's side of a request: the protection of its responses.
#[derive(Debug)]
pub struct ServerAssociation {
    context: Arc<Context>,
    request: PartialIv,
    nonce: Nonce,
}

impl ServerAssociation {
    /// The association of a request that was opened.
    pub(super) fn new(context: &Arc<Context>, request: PartialIv, age: Age) -> ServerAssociation {
        // A request that may be old may have been answered with its nonce.
        let nonce = if matches!(age, Age::Unknown(_)) { Nonce::Fresh } else { Nonce::OfRequest };
        ServerAssociation { context: Arc::clone(context), request, nonce }
    }

    /// Protects a response; gives the datagram. The first one takes the nonce of the request.
    ///
    /// # Errors
    /// When there is no sequence number for it.
    pub fn protect(&mut self, message: &CoapMessage<'_>) -> Result<Vec<u8>, SequenceError> {
        let nonce = std::mem::replace(&mut self.nonce, Nonce::Fresh);
        self.context.protect_response(self.request, nonce, message)
    }

    /// The same for notifications that follow the first response: each has a nonce of its own.
    pub fn for_notifications(&self) -> ServerAssociation {
        ServerAssociation { context: Arc::clone(&self.context), request: self.request, nonce: Nonce::Fresh }
    }

    /// Whether two requests have the same security context.
    pub fn is_of_same_context(&self, other: &ServerAssociation) -> bool {
        Arc::ptr_eq(&self.context, &other.context)
    }

    /// The context of the request, for whoever asks later.
    pub fn shared_context(&self) -> Arc<Context> {
        Arc::clone(&self.context)
    }

    /// The context of the request.
    pub fn context(&self) -> &Context {
        &self.context
    }
}

/// A client's side of a request, with its blocks and its notifications.
#[derive(Debug)]
pub struct ClientAssociation {
    context: Arc<Context>,
    registration: Registration,
    /// The latest message that is not the registration.
    current: Option<Sent>,
    /// Whether a response came that could not be verified.
    has_refused: bool,
}

/// A message that waits for responses.
#[derive(Clone, Copy, Debug)]
struct Sent {
    token: Token,
    partial_iv: PartialIv,
}

/// The first message of a request, and the responses to it that were accepted.
#[derive(Debug, Default)]
struct Registration {
    sent: Option<Sent>,
    /// Whether notifications may follow.
    is_observing: bool,
    /// Whether a response without a Partial IV came.
    is_answered: bool,
    /// The Notification Number: the largest Partial IV.
    latest: Option<PartialIv>,
    /// Number of notifications that came.
    count: u32,
}

/// Numbers of notifications have 24 bits (RFC 7641 §4.4).
const COUNT_MASK: u32 = 0x00ff_ffff;

impl ClientAssociation {
    /// An association before its first message.
    pub fn new(context: Arc<Context>) -> ClientAssociation {
        ClientAssociation { context, registration: Registration::default(), current: None, has_refused: false }
    }

    /// Protects a message of the request; gives the datagram. Notifications come under the token `registration`.
    ///
    /// # Errors
    /// When there is no sequence number for it.
    pub fn protect(&mut self, message: &CoapMessage<'_>, registration: Token) -> Result<Vec<u8>, SequenceError> {
        let (bytes, partial_iv) = self.context.protect_request(message)?;
        let sent = Some(Sent { token: message.token, partial_iv });
        if message.token == registration {
            let view = CoapRequest { code: message.code, options: message.options, payload: &[], caller: None };
            let is_observing = view.observe() == Some(Observe::Register);
            let count = self.registration.count;
            self.registration = Registration { sent, is_observing, count, ..Registration::default() };
        } else {
            self.current = sent;
        }
        Ok(bytes)
    }

    /// Takes the protection off a response. Notifications are numbered in the order of their Partial IVs.
    ///
    /// # Errors
    /// Why it is not believed. The caller goes on waiting; see [`ClientAssociation::has_refused`].
    pub fn open(&mut self, message: &CoapMessage<'_>) -> Result<Opened, Refusal> {
        let value = message.options.value(OptionNumber::OSCORE).ok_or(Refusal::Unprotected)?;
        let opened = self.verify(value, message);
        self.has_refused |= opened.is_err();
        opened
    }

    fn verify(&mut self, value: &[u8], message: &CoapMessage<'_>) -> Result<Opened, Refusal> {
        classes::check_outer(message.options)?;
        let header = OscoreHeader::parse(value).ok_or(Refusal::Malformed)?;
        let is_sent = |sent: &&Option<Sent>| sent.is_some_and(|sent| sent.token == message.token);
        let sent = [&self.registration.sent, &self.current].into_iter().find(is_sent).copied().flatten();
        let request = sent.ok_or(Refusal::Malformed)?.partial_iv;
        let mut opened = self.context.open_response(request, &header, message)?;
        let (code, options) = (opened.view().code, opened.view().options);
        let is_notification = options.value(OptionNumber::OBSERVE).is_some();
        if !code.is_response() || (is_notification && !self.registration.is_observing) {
            return Err(Refusal::Malformed);
        }
        if self.registration.sent.is_some_and(|sent| sent.token == message.token) {
            self.registration.accept(header.partial_iv)?;
            if is_notification {
                opened.set_count(self.registration.count);
            }
        }
        Ok(opened)
    }

    /// Whether a response came that could not be verified: perhaps the ends have different keys.
    pub fn has_refused(&self) -> bool {
        self.has_refused
    }
}

impl Registration {
    /// Accepts a response unless it came before or is older than the latest (RFC 8613 §7.4.1).
    fn accept(&mut self, partial_iv: Option<PartialIv>) -> Result<(), Refusal> {
        let is_newer = match partial_iv {
            Some(partial_iv) => self.latest.is_none_or(|latest| partial_iv > latest),
            // Without a number it is the oldest, and there is only one.
            None => self.latest.is_none() && !self.is_answered,
        };
        if !is_newer {
            return Err(Refusal::Replay);
        }
        self.is_answered |= partial_iv.is_none();
        self.latest = partial_iv.or(self.latest);
        self.count = (self.count + 1) & COUNT_MASK;
        Ok(())
    }
}
