//! One request of a peer, from its arrival to its response.

use super::asked::Asked;
use super::pending::PendingRegistration;
use super::timers::TimerId;
use super::{Confirmability, Endpoint, ExchangeId};
use crate::message::{Code, MessageId, OptionNumber, Response, Token};
use crate::oscore::ServerAssociation;

/// A request whose handler works.
#[derive(Debug)]
pub(super) struct Exchange {
    /// Place of the peer, which is held.
    pub peer: u32,
    pub id: MessageId,
    pub token: Token,
    pub code: Code,
    pub kind: Kind,
    pub asked: Asked,
    pub request_bytes: usize,
    /// Bytes on the wire that went to the client before the response.
    pub spent_bytes: u32,
    /// Bytes of the request as long as its handler works.
    pub held_bytes: u32,
    /// Its handler was not asked, so that it may be when the request is repeated.
    pub is_refused: bool,
    /// Until the request is acknowledged by itself.
    pub timer: Option<TimerId>,
    /// Of a client that wants to observe.
    pub registration: Option<Box<PendingRegistration>>,
    /// The protection of the response.
    pub protection: Option<Box<ServerAssociation>>,
    /// The second in which its handler was asked.
    pub asked_at: u32,
}

/// The type of message of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// With the acknowledgement.
    Confirmable,
    /// By itself: the acknowledgement has left.
    Acknowledged,
    NonConfirmable,
    /// After a random time.
    Multicast,
    /// As a notification.
    Notification(u64),
}

impl Kind {
    /// Whether the client repeats the request until it hears of it, or would.
    pub fn confirmability(self) -> Confirmability {
        match self {
            Kind::Confirmable | Kind::Acknowledged | Kind::Notification(_) => Confirmability::Confirmable,
            Kind::NonConfirmable | Kind::Multicast => Confirmability::NonConfirmable,
        }
    }
}

impl Exchange {
    /// Whether a duplicate may be answered anew. A protected one is taken for a replay.
    pub fn is_repeatable(&self) -> bool {
        self.protection.is_none() && self.asked.is_repeatable(self.code)
    }

    /// Whether it must not run again.
    pub fn runs_once(&self) -> bool {
        self.asked.runs_once(self.code)
    }

    /// It does not run, so that it may do so when it is repeated; a protected one gets the same answer then.
    pub fn refuse(&mut self) {
        self.is_refused = self.protection.is_none();
    }

    /// Whether the client does not want this response, or a group should be silent about it: errors and lists with nothing
    /// in them (RFC 7252 §8.2, RFC 7967 §2.1).
    pub fn is_unwanted(&self, response: &Response) -> bool {
        let code = response.code;
        match self.asked.no_response {
            Some(_) if code == Code::CONTINUE => false, // The client could not go on.
            Some(classes) => code.class() > 0 && classes & 1 << (code.class() - 1) != 0,
            None => {
                let says_nothing = code == Code::CONTENT && response.payload.is_empty();
                self.kind == Kind::Multicast && (!code.is_success() || says_nothing)
            }
        }
    }
}

impl Endpoint {
    /// Whether a request may wait for its handler: `false` when so many others do that newcomers would find no place. Then it
    /// is better refused at once.
    pub fn may_wait(&self, exchange: ExchangeId) -> bool {
        self.server.exchanges.get(exchange.0).is_some_and(|exchange| self.peers.may_stay(exchange.peer))
    }

    /// Whether a request was sent to a group of hosts.
    pub fn is_for_group(&self, exchange: ExchangeId) -> bool {
        self.server.exchanges.get(exchange.0).is_some_and(|exchange| exchange.kind == Kind::Multicast)
    }

    /// Whether the client did not ask now: its registration does, since the resource changed.
    pub fn is_notification(&self, exchange: ExchangeId) -> bool {
        let exchange = self.server.exchanges.get(exchange.0);
        exchange.is_some_and(|exchange| matches!(exchange.kind, Kind::Notification(_)))
    }

    /// Whether the client of a request is at its address: one that may be forged has not shown so.
    #[inline]
    pub fn has_proved_address(&self, exchange: ExchangeId) -> bool {
        let exchange = self.server.exchanges.get(exchange.0);
        exchange.is_some_and(|exchange| self.peers.get(exchange.peer).verified)
    }

    /// The first critical option of a request that is not understood but safe to forward: its driver must answer 4.02 unless
    /// it passes the request on (RFC 7252 §5.4.1, §5.7.1). There are none but under
    /// [`Config::forwarding`](super::Config::forwarding) and [`Config::proxying`](super::Config::proxying).
    #[inline]
    pub fn unread_option(&self, exchange: ExchangeId) -> Option<OptionNumber> {
        self.server.exchanges.get(exchange.0).and_then(|exchange| exchange.asked.unread)
    }
}
