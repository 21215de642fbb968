//! The order of the messages, and the time that each may take.

use std::fmt;
use std::time::Duration;

use thalweg_base::time::Instant;

use super::message::ControlMessage;
use crate::order::{ProbeOrder, ProbeProtocol, Shape, StreamDirection};

/// Which end this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndRole {
    /// The end that asked.
    Client,
    /// The end that takes part.
    Server,
}

/// One end of a conversation: bytes and the time in, messages out. It lets nobody say what is not due, the own driver included.
#[derive(Debug)]
pub struct Conversation {
    role: EndRole,
    phase: Phase,
    order: Option<ProbeOrder>,
    seconds: usize,
    /// Bytes that arrived and make no message yet.
    heard: Vec<u8>,
    /// Where in them no end of a line has to be looked for again.
    searched: usize,
    deadline: Instant,
}

/// What is due next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Order,
    Ready,
    Begin,
    Begun,
    /// The stream is under way: its end, and the receiver's seconds.
    Ended,
    Report,
    Over,
}

/// Why a conversation is over before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversationError {
    /// The other end gave up, for this reason.
    Failed(String),
    /// The other end said what is no message.
    Unreadable(String),
    /// The other end said what was not due.
    Unexpected(&'static str),
    /// A line without end, or longer than [`LINE_MAX`].
    TooLong,
    /// Nothing came in time while this was due.
    Silent(&'static str),
}

impl Conversation {
    /// One that begins at `now`.
    pub fn new(role: EndRole, now: Instant) -> Conversation {
        let (heard, deadline) = (Vec::new(), now + PATIENCE);
        Conversation { role, phase: Phase::Order, order: None, seconds: 0, heard, searched: 0, deadline }
    }

    /// Takes bytes of the other end; all messages are taken by [`Conversation::poll_message`] before the next bytes.
    ///
    /// # Errors
    /// [`ConversationError::TooLong`]; no more is to be expected.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), ConversationError> {
        if self.heard.len() + bytes.len() > LINE_MAX {
            return Err(ConversationError::TooLong);
        }
        self.heard.extend_from_slice(bytes);
        Ok(())
    }

    /// The next message of the other end, one that was due.
    ///
    /// # Errors
    /// The other end gave up or said what it must not; no more is to be expected.
    pub fn poll_message(&mut self, now: Instant) -> Result<Option<ControlMessage>, ConversationError> {
        let rest = &self.heard[self.searched..];
        let Some(at) = rest.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.heard.len();
            return Ok(None);
        };
        let length = self.searched + at;
        let message = ControlMessage::from_line(&self.heard[..length]).map_err(ConversationError::Unreadable)?;
        self.heard.drain(..=length);
        self.searched = 0;
        let other = match self.role {
            EndRole::Client => EndRole::Server,
            EndRole::Server => EndRole::Client,
        };
        self.advance(now, other, &message)?;
        match message {
            ControlMessage::Failed { reason } => Err(ConversationError::Failed(reason)),
            message => Ok(Some(message)),
        }
    }

    /// The bytes of a message that this end says at `now`.
    ///
    /// # Errors
    /// [`ConversationError::Unexpected`]: it is not due.
    pub fn create_message(&mut self, now: Instant, message: &ControlMessage) -> Result<Vec<u8>, ConversationError> {
        self.advance(now, self.role, message)?;
        Ok(message.to_line())
    }

    /// When the other end, or this one, will have taken too long.
    pub fn poll_timeout(&self) -> Instant {
        self.deadline
    }

    /// Tells whether it has.
    ///
    /// # Errors
    /// [`ConversationError::Silent`].
    pub fn handle_timeout(&self, now: Instant) -> Result<(), ConversationError> {
        if now < self.deadline || self.is_over() { Ok(()) } else { Err(ConversationError::Silent(self.phase.name())) }
    }

    /// Whether everything was said.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    fn advance(&mut self, now: Instant, says: EndRole, message: &ControlMessage) -> Result<(), ConversationError> {
        let phase = self.after(says, message).ok_or(ConversationError::Unexpected(name_of(message)))?;
        if let ControlMessage::Order(order) = message {
            self.order = Some(order.clone());
        }
        if matches!(message, ControlMessage::Second(_)) {
            // It grants no more time.
            self.seconds += 1;
            return if self.seconds > SECONDS_KEPT { Err(ConversationError::Unexpected("second")) } else { Ok(()) };
        }
        let lasts = match (phase, &self.order) {
            (Phase::Ended, Some(order)) => order.duration().min(crate::order::DURATION_MAX) + TAIL,
            (Phase::Report, _) => TAIL,
            _ => PATIENCE,
        };
        (self.phase, self.deadline) = (phase, now + lasts);
        Ok(())
    }

    /// The phase after an end said something; `None` where it must not.
    fn after(&self, says: EndRole, message: &ControlMessage) -> Option<Phase> {
        let (sends, receives) = self.ends();
        let streams = self.order.as_ref().map_or(0, |order| order.streams as usize);
        Some(match (self.phase, message) {
            (Phase::Over, _) => return None,
            (_, ControlMessage::Failed { .. }) => Phase::Over,
            (Phase::Order, ControlMessage::Order(_)) if says == EndRole::Client => Phase::Ready,
            (Phase::Ready, ControlMessage::Ready(ready))
                if says == EndRole::Server && is_full(&ready.ports, streams) =>
            {
                Phase::Begin
            }
            (Phase::Begin, ControlMessage::Begin(begin))
                if says == EndRole::Client && is_full(&begin.ports, self.client_ports()) =>
            {
                Phase::Begun
            }
            (Phase::Begun, ControlMessage::Begun) if says == EndRole::Server => Phase::Ended,
            (Phase::Ended | Phase::Report, ControlMessage::Second(_))
                if says == EndRole::Server && receives == EndRole::Server =>
            {
                self.phase
            }
            (Phase::Ended, ControlMessage::Ended(report))
                if says == sends && report.sent.as_ref().is_some_and(|sent| sent.offered.len() == streams) =>
            {
                Phase::Report
            }
            (Phase::Report, ControlMessage::Report(report))
                if says == receives
                    && report.received.as_ref().is_some_and(|received| received.received.len() == streams) =>
            {
                Phase::Over
            }
            _ => return None,
        })
    }

    /// The end that sends and the one that receives; the server answers requests.
    fn ends(&self) -> (EndRole, EndRole) {
        match self.order.as_ref().map(|order| order.shape) {
            Some(Shape::Stream { direction: StreamDirection::ToClient, .. }) => (EndRole::Server, EndRole::Client),
            _ => (EndRole::Client, EndRole::Server),
        }
    }

    /// Ports that the client has to tell.
    fn client_ports(&self) -> usize {
        let is_udp = |order: &&ProbeOrder| order.protocol == ProbeProtocol::Udp && self.ends().0 == EndRole::Server;
        self.order.as_ref().filter(is_udp).map_or(0, |order| order.streams as usize)
    }
}

fn is_full(ports: &[u16], count: usize) -> bool {
    ports.len() == count && !ports.contains(&0)
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Phase::Order => "order",
            Phase::Ready => "answer to the order",
            Phase::Begin => "wish to begin",
            Phase::Begun => "beginning",
            Phase::Ended => "end of what is sent",
            Phase::Report | Phase::Over => "report",
        }
    }
}

fn name_of(message: &ControlMessage) -> &'static str {
    match message {
        ControlMessage::Order(_) => "order",
        ControlMessage::Ready(_) => "ready",
        ControlMessage::Begin(_) => "begin",
        ControlMessage::Begun => "begun",
        ControlMessage::Second(_) => "second",
        ControlMessage::Ended(_) => "ended",
        ControlMessage::Report(_) => "report",
        ControlMessage::Failed { .. } => "failed",
    }
}

impl fmt::Display for ConversationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConversationError::Failed(reason) => write!(f, "the other end gave up: {reason}"),
            ConversationError::Unreadable(reason) => {
                write!(f, "the other end said what is no message of this probe ({reason}): is it `thalweg perf serve`?")
            }
            ConversationError::Unexpected(name) => {
                write!(f, "the message \"{name}\" came where it is not due: install the same thalweg on both hosts")
            }
            ConversationError::TooLong => write!(f, "the other end said a line of more than {LINE_MAX} B"),
            ConversationError::Silent(what) => write!(f, "the other end took too long: its {what} was due"),
        }
    }
}

impl std::error::Error for ConversationError {}

/// The longest line, and the most that is held of what the other end says. Chosen here: twice a report with every counter of a kernel.
pub const LINE_MAX: usize = 1 << 16;
/// The most seconds that are told of one measurement: those of the longest, and of its tail.
pub const SECONDS_KEPT: usize = 3_600 + 60;
/// How long an end may take where it only prepares. Chosen here: many times what the slowest board needs.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long after its time a stream may end, and after that its last bytes may come. Chosen here: what 30 s of queues hold.
const TAIL: Duration = Duration::from_secs(30);
