//! Events of an endpoint for its driver.

use std::fmt;

use thalweg_base::time::Instant;

use super::Peer;
use crate::message::{Block, Code, OptionNumber, RequestBuf, Response};
use crate::oscore::SequenceError;

/// A request that waits for [`Endpoint::respond`](super::Endpoint::respond). Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExchangeId(pub(super) u64);

/// A request of this endpoint, a registration for notifications or a ping. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(pub(super) u64);

/// Whether a request is repeated until it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmability {
    /// CON: repeated with growing pauses.
    Confirmable,
    /// NON: sent once.
    NonConfirmable,
}

/// Events, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum EndpointEvent {
    /// A request to answer. For a notification that is due, the client's registration is asked again.
    Request {
        /// For [`Endpoint::respond`](super::Endpoint::respond).
        exchange: ExchangeId,
        /// The client.
        peer: Peer,
        /// Whether it repeats unanswered requests. A notification that is due counts as confirmable: its client waits for it.
        delivery: Confirmability,
        /// The request; give it back to [`Endpoint::recycle`](super::Endpoint::recycle) where speed matters.
        request: RequestBuf,
    },
    /// Number of clients that observe a path now; reported when it changes from or to zero.
    Observers {
        /// The path, such as `/a/b`.
        path: String,
        /// Clients and, for one client, different queries.
        count: usize,
    },
    /// An answer or a notification.
    Response {
        /// Which request it answers.
        request: RequestId,
        /// The answering server: one of many for a multicast request.
        peer: Peer,
        /// The answer, with all its blocks. A registration lives as long as its responses have
        /// [`observe`](Response::observe); one without is the last.
        response: Response,
    },
    /// A request ended without an answer, or a registration ended.
    Failed {
        /// Which request.
        request: RequestId,
        /// Whom it was for.
        peer: Peer,
        /// Why.
        error: RequestError,
    },
    /// The time for answers to a multicast request, or to one with No-Response, is over.
    Finished {
        /// Which request.
        request: RequestId,
    },
    /// The peer of a ping is there.
    Pong {
        /// Which ping.
        request: RequestId,
        /// The peer.
        peer: Peer,
    },
}

/// Why a request cannot be made, or ended without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// All message IDs for this peer were used within the lifetime of an exchange. Ask again after `until`, from another
    /// port, or shorten [`Times::message_id_lifetime`](super::Times::message_id_lifetime).
    MessageIdsExhausted {
        /// When the next ID is free.
        until: Instant,
    },
    /// As many requests wait as [`EndpointLimits::requests_max`](super::EndpointLimits::requests_max) allows.
    TooManyRequests,
    /// As many peers are busy as [`EndpointLimits::peers_max`](super::EndpointLimits::peers_max) allows.
    TooManyPeers,
    /// The peer asked for a pause by 4.29 (RFC 8516 §3).
    Paused {
        /// When requests go out again.
        until: Instant,
    },
    /// The peer answers nothing, and more would exceed [`Config::probing_rate`](super::Config::probing_rate).
    Silent {
        /// When the next non-confirmable request may go out.
        until: Instant,
    },
    /// A request to a group must be non-confirmable and fit into one datagram, and only GET and FETCH make sense.
    NotForGroups,
    /// The request is no request, or holds options that the endpoint sets by itself.
    Malformed(&'static str),
    /// No acknowledgement came, or no response.
    TimedOut,
    /// The connection ended before the answer came.
    Disconnected,
    /// The peer's host says that nobody listens at its port.
    Unreachable,
    /// The server's answer makes no sense for the request.
    Unexpected(Code),
    /// The peer sent a RST: it does not know the exchange, or is no CoAP server.
    Reset,
    /// The response has a critical option that is not understood.
    UnknownOption(OptionNumber),
    /// The response is larger than [`EndpointLimits::body_bytes_max`](super::EndpointLimits::body_bytes_max).
    BodyTooLarge,
    /// The representation changed each time between its blocks. For a request that is not repeated, since it changes something or
    /// has a body in blocks itself, once is enough: it was run, and its response is lost.
    BodyChanged,
    /// The peer acknowledged or sent another block than the one expected.
    BlockMismatch {
        /// The block that was expected.
        expected: Block,
    },
    /// The request cannot be protected.
    NotProtected(SequenceError),
    /// A protected request was answered without protection: by a server that cannot read it, or by another host.
    Unprotected {
        /// The code of the answer.
        code: Code,
        /// The text in it.
        diagnosis: String,
    },
    /// A response could not be verified: it was changed on its way, or the ends have different keys.
    Unverifiable,
}

impl fmt::Display for RequestError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::MessageIdsExhausted { .. } => formatter.write_str(
                "all 65,536 message IDs for this peer were used within an exchange's lifetime; \
                 wait, use another port, or shorten message_id_lifetime",
            ),
            RequestError::TooManyRequests => {
                formatter.write_str("too many requests wait for an answer; wait for some, or raise requests_max")
            }
            RequestError::TooManyPeers => formatter.write_str("too many peers are busy; raise peers_max"),
            RequestError::Paused { .. } => formatter.write_str("the server asked for a pause; ask again later"),
            RequestError::Silent { .. } => formatter.write_str(
                "the peer answers nothing, so non-confirmable requests to it are held to a byte a second; \
                 ask it by a confirmable one, or raise probing_rate",
            ),
            RequestError::NotForGroups => {
                formatter.write_str("a request to a group must be a non-confirmable GET or FETCH of one datagram")
            }
            RequestError::Malformed(what) => write!(formatter, "the request cannot be sent: {what}"),
            RequestError::TimedOut => formatter.write_str("no answer in time; is the server running and reachable?"),
            RequestError::Disconnected => formatter.write_str("the connection ended before the answer came"),
            RequestError::Unreachable => formatter.write_str(
                "nobody listens at the peer's port, its host says; is the server running, and is the port right?",
            ),
            RequestError::Unexpected(code) => {
                write!(formatter, "the server answered {code:?}, which no such request can get")
            }
            RequestError::Reset => formatter.write_str("the peer rejected the message with a RST"),
            RequestError::UnknownOption(number) => {
                write!(formatter, "the response has the critical option {number}, which is not understood")
            }
            RequestError::BodyTooLarge => formatter.write_str("the response is too large; raise body_bytes_max"),
            RequestError::BodyChanged => formatter.write_str(
                "the representation changed while its blocks were fetched; \
                 ask again if the request may run twice",
            ),
            RequestError::BlockMismatch { expected } => {
                write!(formatter, "the peer lost track of the blocks: expected number {}", expected.number)
            }
            RequestError::NotProtected(error) => error.fmt(formatter),
            RequestError::Unprotected { code, diagnosis } => write!(
                formatter,
                "the protected request was answered without protection by {code:?} \"{diagnosis}\"; \
                 have both ends the same OSCORE keys?"
            ),
            RequestError::Unverifiable => formatter.write_str(
                "what came could not be verified: it was changed on its way, or the ends have different OSCORE keys",
            ),
        }
    }
}

impl std::error::Error for RequestError {}

/// The exchange is over: it was answered, or not in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeGone;

impl fmt::Display for ExchangeGone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the exchange is over: it was answered before, or not in time")
    }
}

impl std::error::Error for ExchangeGone {}
