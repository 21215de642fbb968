//! Security contexts: the keys that two ends share, and their used numbers (RFC 8613 §3).

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::classes::{self, Opened};
use super::header::OscoreHeader;
use super::keys::{CommonName, Keys, RequestName, Sealed, common_name};
use super::replay::ReplayWindow;
use super::sequence::{Sequence, SequenceError, SequenceStore};
use super::{ContextParameters, PartialIv, Refusal};
use crate::message::{CoapMessage, Code, MessageWriter, OptionNumber};

/// A security context. It can be shared by any number of endpoints, but only by those of one process: two that count
/// sequence numbers apart would use the same nonce twice, which gives both messages away.
pub struct Context {
    sender_id: Vec<u8>,
    recipient_id: Vec<u8>,
    id_context: Option<Vec<u8>>,
    replay_window: u32,
    common_name: CommonName,
    keys: Keys,
    state: Mutex<State>,
    /// It was taken away from its peer.
    is_retired: AtomicBool,
}

/// The part that changes with each message.
struct State {
    sequence: Sequence,
    requests: Requests,
}

/// The peer's earlier requests.
enum Requests {
    Known(ReplayWindow),
    Lost(EchoChallenge),
}

/// The value of an Echo option for the peer alone. It must be unpredictable.
pub type EchoChallenge = [u8; 8];

/// The earlier use of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// None: its keys are new.
    Unused,
    /// Which requests were accepted is not known any more. The first request is answered by a demand to repeat it with
    /// this Echo value (RFC 8613 Appendix B.1.2), of which no earlier one was; later ones are told by their numbers.
    Lost(EchoChallenge),
}

/// The freshness of a request, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// It was not accepted before.
    New,
    /// The same, and its sender has proved its address.
    Proven,
    /// It may be an old one that is sent again: nothing must be done but to ask for this Echo value.
    Unknown(EchoChallenge),
}

/// Which nonce protects a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nonce {
    /// That of its request: good for one response.
    OfRequest,
    /// One of its own, whose Partial IV is sent along.
    Fresh,
}

impl Context {
    /// A context that uses sequence numbers from `next` on and has `store` remember them. With the same parameters `next`
    /// must never be lower than the stored value. Contexts with one master secret, master salt and ID context must have no ID
    /// in common (RFC 8613 §3.3); [`Keyring`](super::Keyring) and [`file`](super::file) see to it for theirs.
    pub fn new(parameters: &ContextParameters, next: u64, store: Box<dyn SequenceStore>, past: Past) -> Arc<Context> {
        let requests = match past {
            Past::Unused => Requests::Known(ReplayWindow::new(parameters.replay_window())),
            Past::Lost(challenge) => Requests::Lost(challenge),
        };
        Arc::new(Context {
            sender_id: parameters.sender_id().to_vec(),
            recipient_id: parameters.recipient_id().to_vec(),
            id_context: parameters.id_context().map(<[u8]>::to_vec),
            replay_window: parameters.replay_window(),
            common_name: common_name(parameters),
            keys: Keys::derive(parameters),
            state: Mutex::new(State { sequence: Sequence::new(next, store), requests }),
            is_retired: AtomicBool::new(false),
        })
    }

    /// This end's ID.
    pub fn sender_id(&self) -> &[u8] {
        &self.sender_id
    }

    /// The peer's ID.
    pub fn recipient_id(&self) -> &[u8] {
        &self.recipient_id
    }

    /// The ID context, which distinguishes contexts with the same IDs.
    pub fn id_context(&self) -> Option<&[u8]> {
        self.id_context.as_deref()
    }

    /// The same for all contexts with which this one must share no ID.
    pub(super) fn common_name(&self) -> &CommonName {
        &self.common_name
    }

    /// Whether its peer is not to hear anything more under it.
    pub fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Relaxed)
    }

    /// Takes it away from its peer: observations that were registered with it end.
    pub fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Protects a request; gives the datagram and its Partial IV (RFC 8613 §8.1).
    pub(super) fn protect_request(&self, message: &CoapMessage<'_>) -> Result<(Vec<u8>, PartialIv), SequenceError> {
        let partial_iv = self.state().sequence.take()?;
        let request = RequestName { kid: &self.sender_id, partial_iv };
        let sealed = Sealed { id: &self.sender_id, partial_iv, request };
        let kid_context = self.id_context.as_deref();
        let header = OscoreHeader { partial_iv: Some(partial_iv), kid_context, kid: Some(&self.sender_id) };
        Ok((self.seal(message, &sealed, &header), partial_iv))
    }

    /// Takes the protection off the response to the request with a Partial IV (RFC 8613 §8.4).
    pub(super) fn open_response(
        &self,
        request: PartialIv,
        header: &OscoreHeader<'_>,
        message: &CoapMessage<'_>,
    ) -> Result<Opened, Refusal> {
        // A response need not name its sender; only this check protects the name.
        let is_of_peer = header.kid.is_none_or(|kid| kid == self.recipient_id)
            && header.kid_context.is_none_or(|id_context| Some(id_context) == self.id_context.as_deref());
        if !is_of_peer {
            return Err(Refusal::UnknownContext);
        }
        let request = RequestName { kid: &self.sender_id, partial_iv: request };
        let sealed = match header.partial_iv {
            Some(partial_iv) => Sealed { id: &self.recipient_id, partial_iv, request },
            None => Sealed { id: &self.sender_id, partial_iv: request.partial_iv, request },
        };
        let plaintext = self.keys.open(&sealed, message.payload).ok_or(Refusal::Forged)?;
        Opened::read(plaintext, message.options)
    }

    /// Takes the protection off a request (RFC 8613 §8.2).
    pub(super) fn open_request(
        &self,
        partial_iv: PartialIv,
        message: &CoapMessage<'_>,
    ) -> Result<(Opened, Age), Refusal> {
        if let Requests::Known(window) = &self.state().requests
            && !window.is_free(partial_iv)
        {
            return Err(Refusal::Replay);
        }
        let request = RequestName { kid: &self.recipient_id, partial_iv };
        let sealed = Sealed { id: &self.recipient_id, partial_iv, request };
        let plaintext = self.keys.open(&sealed, message.payload).ok_or(Refusal::Forged)?;
        let opened = Opened::read(plaintext, message.options)?;
        let mut state = self.state();
        let age = match &mut state.requests {
            Requests::Known(window) => {
                let is_new = window.accept(partial_iv);
                if is_new { Age::New } else { return Err(Refusal::Replay) }
            }
            Requests::Lost(challenge) if opened.view().options.value(OptionNumber::ECHO) == Some(&*challenge) => {
                state.requests = Requests::Known(ReplayWindow::above(self.replay_window, partial_iv));
                Age::Proven
            }
            Requests::Lost(challenge) => Age::Unknown(*challenge),
        };
        Ok((opened, age))
    }

    /// Protects a response to the request with a Partial IV (RFC 8613 §8.3).
    pub(super) fn protect_response(
        &self,
        request: PartialIv,
        nonce: Nonce,
        message: &CoapMessage<'_>,
    ) -> Result<Vec<u8>, SequenceError> {
        let request = RequestName { kid: &self.recipient_id, partial_iv: request };
        let (sealed, partial_iv) = match nonce {
            Nonce::OfRequest => (Sealed { id: &self.recipient_id, partial_iv: request.partial_iv, request }, None),
            Nonce::Fresh => {
                let partial_iv = self.state().sequence.take()?;
                (Sealed { id: &self.sender_id, partial_iv, request }, Some(partial_iv))
            }
        };
        Ok(self.seal(message, &sealed, &OscoreHeader { partial_iv, ..OscoreHeader::default() }))
    }

    fn seal(&self, message: &CoapMessage<'_>, sealed: &Sealed<'_>, header: &OscoreHeader<'_>) -> Vec<u8> {
        let mut ciphertext = classes::plaintext(message.code, message.options, message.payload);
        self.keys.seal(sealed, &mut ciphertext);
        let is_observe = message.options.value(OptionNumber::OBSERVE).is_some();
        // Proxies decide by the code what they may cache; these two codes tell them nothing (RFC 8613 §4.2, §4.1.3.5).
        let code = match (message.code.is_request(), is_observe) {
            (true, false) => Code::POST,
            (true, true) => Code::FETCH,
            (false, false) => Code::CHANGED,
            (false, true) => Code::CONTENT,
        };
        let mut bytes = Vec::new();
        let mut writer = MessageWriter::new(&mut bytes, message.message_type, code, message.id, &message.token);
        for (number, value) in classes::outer_options(message.options, &header.encode()) {
            writer.option(number, value);
        }
        writer.payload(&ciphertext);
        bytes
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Context { sender_id, recipient_id, id_context, .. } = self;
        write!(formatter, "Context {{ sender_id: {sender_id:02x?}, recipient_id: {recipient_id:02x?}")?;
        write!(formatter, ", id_context: {id_context:02x?}, .. }}")
    }
}
