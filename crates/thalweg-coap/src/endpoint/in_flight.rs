//! Messages of this endpoint for which an acknowledgement or a rejection may come (RFC 7252 §4.2).

use std::collections::HashMap;
use std::time::Duration;

use super::secret::TableState;
use super::slab::Slab;
use super::timers::TimerId;
use crate::message::MessageId;

/// The owner of a message, which gets its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A request of this endpoint.
    Request(u64),
    /// A ping.
    Ping(u64),
    /// A notification.
    Observer(u64),
    /// A separate response: the handler that wrote it is done.
    Response,
}

/// A confirmable message that waits for its acknowledgement.
#[derive(Debug)]
pub struct PendingConfirmable {
    /// Place of the peer, which is held.
    pub peer: u32,
    pub id: MessageId,
    pub owner: Owner,
    /// The whole message.
    pub bytes: Vec<u8>,
    pub backoff: Backoff,
    pub timer: Option<TimerId>,
}

/// The remaining repetitions.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// Length of the present pause.
    pub pause: Duration,
    /// Number of repetitions that may follow.
    pub left: u8,
}

/// The use of an ID of this endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Transmission(u64),
    /// A non-confirmable notification or request, which a RST may answer.
    Unacknowledged(Owner),
}

/// All of them, by peer and message ID.
#[derive(Debug)]
pub struct InFlight {
    pub transmissions: Slab<PendingConfirmable>,
    uses: HashMap<u64, Use, TableState>,
}

impl InFlight {
    pub fn new(table: TableState) -> InFlight {
        InFlight { transmissions: Slab::new(), uses: HashMap::with_hasher(table) }
    }

    pub fn set_use(&mut self, peer: u32, id: MessageId, of: Use) {
        self.uses.insert(key(peer, id), of);
    }

    pub fn find(&self, peer: u32, id: MessageId) -> Option<Use> {
        self.uses.get(&key(peer, id)).copied()
    }

    pub fn forget_use(&mut self, peer: u32, id: MessageId) {
        self.uses.remove(&key(peer, id));
    }

    /// Holds a message with the timer that `set_timer` sets for its id.
    pub fn insert(&mut self, transmission: PendingConfirmable, set_timer: impl FnOnce(u64) -> TimerId) -> u64 {
        let (peer, message) = (transmission.peer, transmission.id);
        let id = self.transmissions.insert(transmission);
        self.set_use(peer, message, Use::Transmission(id));
        if let Some(transmission) = self.transmissions.get_mut(id) {
            transmission.timer = Some(set_timer(id));
        }
        id
    }

    pub fn remove(&mut self, id: u64) -> Option<PendingConfirmable> {
        let transmission = self.transmissions.remove(id)?;
        self.forget_use(transmission.peer, transmission.id);
        Some(transmission)
    }
}

fn key(peer: u32, id: MessageId) -> u64 {
    u64::from(peer) << 16 | u64::from(id.0)
}
