//! Where first transmission stands, and the token of the thread that sends.

use super::allowance::Asynchronous;
use super::lost::{NeverSent, SentLarge};
use super::transmission::Place;
use crate::qos::Method;
use crate::types::SequenceNumber;

/// Where first transmission stands.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub place: Place,
    pub sent_large: SentLarge,
    pub never_sent: NeverSent,
    /// The newest samples left as a DATA_BATCH.
    pub batched: bool,
    token: Token,
    pub scratch: Vec<u8>,
    /// Set for asynchronous writers: only the participant sends for them.
    pub asynchronous: Option<Asynchronous>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Free,
    Held,
    /// Somebody has left work for the holder.
    HeldMore,
}

impl Outgoing {
    /// Nothing was sent; the first sample has number `first`.
    pub(super) fn new(first: SequenceNumber, method: &Method) -> Outgoing {
        Outgoing {
            place: Place::before(first),
            sent_large: SentLarge::default(),
            never_sent: NeverSent::default(),
            batched: false,
            token: Token::Free,
            scratch: Vec::new(),
            asynchronous: Asynchronous::of(method),
        }
    }

    /// True when a thread holds the sender token; it then sends on behalf of everybody.
    pub(super) fn leave_to_holder(&mut self) -> bool {
        let held = self.token != Token::Free;
        if held {
            self.token = Token::HeldMore;
        }
        held
    }

    /// The caller holds the token from now on; if `more`, samples wait besides those that it has.
    pub(super) fn take_token(&mut self, more: bool) {
        self.token = if more { Token::HeldMore } else { Token::Held };
    }

    /// The holder gives the token back. Returns whether more is waiting.
    pub(super) fn return_token(&mut self) -> bool {
        std::mem::replace(&mut self.token, Token::Free) == Token::HeldMore
    }
}
