//! One connection: its buffers and what it has under way.

use std::collections::{HashMap, VecDeque};

use thalweg_base::time::Instant;

use super::frame::{Framing, message_len};
use super::signal::Capabilities;
use crate::endpoint::asked::Asked;
use crate::endpoint::observers::NotifiedFormat;
use crate::endpoint::timers::TimerId;
use crate::endpoint::{Peer, RequestId};
use crate::identity::Caller;
use crate::message::{RequestBuf, Token};

/// State of a connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub caller: Caller,
    pub peer: Peer,
    pub framing: Framing,
    /// What the other end can do; `None` until it has said so.
    pub capabilities: Option<Capabilities>,
    pub inbound: Vec<u8>,
    pub outbound: Outbound,
    /// Requests of the other end that handlers work on.
    pub exchanges: usize,
    pub share: ConnectionShare,
    pub observations: HashMap<Token, Observation>,
    /// Observations whose handlers are to be asked once there is room.
    pub stale: VecDeque<Token>,
    /// Own requests that wait for an answer, by token.
    pub requests: HashMap<u64, RequestId>,
    pub stage: ConnectionStage,
    pub times: ConnectionTimes,
    pub timer: Option<(TimerId, Instant)>,
    /// Whether the driver has been told that there is something to send.
    pub is_dirty: bool,
}

impl Connection {
    /// Bytes of messages that are not whole, here and in the transport.
    pub fn inbound_bytes(&self) -> usize {
        self.inbound.len() + self.share.held_bytes
    }

    /// Whether a message has arrived whole and waits for room.
    pub fn has_message(&self) -> bool {
        matches!(message_len(&self.inbound), Ok(Some(len)) if len <= self.inbound.len())
    }

    /// Bytes that the other end has not taken, here and in layers of the transport.
    pub fn unsent_bytes(&self) -> usize {
        self.outbound.len() + self.share.layered_bytes
    }

    /// Lets what waits for the other end go; returns how much it was.
    pub fn drop_unsent(&mut self) -> usize {
        std::mem::take(&mut self.outbound).len() + std::mem::take(&mut self.share.layered_bytes)
    }

    /// Lets what has arrived go; returns how much it was.
    pub fn drop_inbound(&mut self) -> usize {
        std::mem::take(&mut self.inbound).len() + std::mem::take(&mut self.share.held_bytes)
    }
}

/// What a connection takes of what all share.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionShare {
    /// What an answer to it is reckoned to need.
    pub answer_bytes: usize,
    /// The last turn in which it brought messages, and how many.
    pub turn: u64,
    pub taken: usize,
    /// What the transport holds of messages that it has not given.
    pub held_bytes: usize,
    /// What layers of the transport hold of messages that the other end has not taken.
    pub layered_bytes: usize,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionStage {
    Open,
    /// The other end sends nothing more: it ends after what has arrived.
    Ending,
    /// No more requests: it ends after those under way.
    Releasing,
    /// It ends when all is sent.
    Over,
    /// It ends at once.
    Lost,
}

impl ConnectionStage {
    pub fn is_over(self) -> bool {
        matches!(self, ConnectionStage::Over | ConnectionStage::Lost)
    }
}

/// When things happened last.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionTimes {
    pub opened: Instant,
    /// The last whole message of the other end.
    pub heard: Instant,
    /// The first byte of a message that is not whole.
    pub partial_since: Option<Instant>,
    /// When the other end last took something that waited.
    pub sent: Instant,
    /// A ping without an answer.
    pub pinged: Option<Instant>,
    /// When notifications that were put off are to be tried again.
    pub notify_again: Option<Instant>,
}

/// A registration for notifications.
#[derive(Debug)]
pub(super) struct Observation {
    /// Never used twice: what was asked for before its client registered again is not told any more.
    pub serial: u64,
    pub path: String,
    pub request: RequestBuf,
    pub asked: Asked,
    pub format: NotifiedFormat,
    /// The handler works on a notification.
    pub is_asked: bool,
    /// The resource changed since.
    pub is_stale: bool,
    /// It is among the stale ones of its connection.
    pub is_queued: bool,
}

/// Messages that wait for the transport.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    bytes: Vec<u8>,
    start: usize,
    /// Where messages end, for transports that keep them apart.
    ends: VecDeque<usize>,
}

impl Outbound {
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Appends a message; returns its bytes.
    pub fn push(&mut self, framing: Framing, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let before = self.bytes.len();
        write(&mut self.bytes);
        if framing == Framing::Messages {
            self.ends.push_back(self.bytes.len());
        }
        self.bytes.len() - before
    }

    /// What the transport may take now: all of it, or one message.
    pub fn next(&self) -> &[u8] {
        let end = self.ends.front().copied().unwrap_or(self.bytes.len());
        &self.bytes[self.start..end]
    }

    /// The transport took this many bytes.
    pub fn handle_sent(&mut self, count: usize) {
        self.start = (self.start + count).min(self.bytes.len());
        while self.ends.front().is_some_and(|end| *end <= self.start) {
            self.ends.pop_front();
        }
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
            if self.bytes.capacity() > KEPT_MAX {
                self.bytes = Vec::new();
            }
        } else if self.start >= KEPT_MAX {
            self.bytes.drain(..self.start);
            self.ends.iter_mut().for_each(|end| *end -= self.start);
            self.start = 0;
        }
    }
}

/// Bytes of memory that an idle connection keeps for its next messages.
pub(super) const KEPT_MAX: usize = 16 << 10;
