//! Bytes that arrive: messages, signals, and the way of both.

use thalweg_base::time::Instant;

use super::ask::OwnRequest;
use super::connection::{ConnectionStage, KEPT_MAX};
use super::frame::{Framing, ReliableMessage, message_len};
use super::signal::{self, Capabilities};
use super::{ConnectionId, ReliableEndpoint};
use crate::endpoint::EndpointEvent;
use crate::message::Code;

impl ReliableEndpoint {
    /// Takes bytes of the transport: any part of a stream, or exactly one message where the transport keeps messages apart.
    pub fn handle_bytes(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        self.now = now;
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        match connection.framing {
            Framing::Messages if bytes.len() > self.limits.message_bytes_max => self.abort(id, TOO_LONG, None),
            // One message more than there is room for is answered; the driver reads no further.
            Framing::Messages => {
                connection.times.partial_since = None;
                self.handle_one(now, id, bytes);
            }
            Framing::Stream => {
                let mut inbound = std::mem::take(&mut connection.inbound);
                self.counts.inbound_bytes -= inbound.len();
                inbound.extend_from_slice(bytes);
                self.handle_stream(now, id, inbound);
            }
        }
        self.plan(id);
    }

    /// Where the transport keeps messages apart, it holds so many bytes for those that it has not given, since they are not whole
    /// or there is no room for them; 0 when it has given all. To be told after whatever has arrived: what is not whole is bounded
    /// as in a stream, by [`inbound_bytes_max`] and [`message_time_max`].
    ///
    /// [`inbound_bytes_max`]: super::ReliableLimits::inbound_bytes_max
    /// [`message_time_max`]: super::ReliableLimits::message_time_max
    pub fn handle_partial(&mut self, now: Instant, id: ConnectionId, bytes: usize) {
        let wants_input = self.wants_input(id);
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let is_meant = connection.framing == Framing::Messages && !connection.stage.is_over();
        if !is_meant || (bytes == 0 && connection.share.held_bytes == 0) {
            return;
        }
        self.now = now;
        let before = std::mem::replace(&mut connection.share.held_bytes, bytes);
        self.counts.inbound_bytes = self.counts.inbound_bytes - before + bytes;
        if bytes == 0 {
            connection.times.partial_since = None;
        } else if wants_input {
            connection.times.partial_since.get_or_insert(now);
        } // What waits for room may have arrived whole.
        self.bound_inbound();
        self.plan(id);
    }

    /// There is room again: goes on with what has arrived.
    pub(super) fn handle_room(&mut self, now: Instant, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if connection.framing == Framing::Stream && !connection.inbound.is_empty() {
            let inbound = std::mem::take(&mut connection.inbound);
            self.counts.inbound_bytes -= inbound.len();
            self.handle_stream(now, id, inbound);
        }
        self.ask_stale_observations(now, id);
        // The driver looks whether it may read again.
        self.mark_dirty(id);
    }

    /// Takes all whole messages off the beginning of a stream.
    fn handle_stream(&mut self, now: Instant, id: ConnectionId, mut inbound: Vec<u8>) {
        let mut start = 0;
        let mut is_partial = false;
        while self.wants_input(id) {
            let rest = &inbound[start..];
            match message_len(rest) {
                Err(_) => {
                    self.abort(id, "a token is longer than 8 bytes", None);
                    break;
                }
                Ok(Some(len)) if len > self.limits.message_bytes_max => {
                    self.abort(id, TOO_LONG, None);
                    break;
                }
                Ok(Some(len)) if len <= rest.len() => {
                    self.handle_one(now, id, &rest[..len]);
                    start += len;
                }
                Ok(_) => {
                    is_partial = !rest.is_empty();
                    break;
                }
            }
        }
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if connection.stage.is_over() {
            return;
        }
        if start > 0 {
            connection.times.partial_since = None;
        }
        if is_partial && connection.stage != ConnectionStage::Ending {
            connection.times.partial_since.get_or_insert(now);
        }
        inbound.drain(..start);
        if inbound.is_empty() && inbound.capacity() > KEPT_MAX {
            inbound = Vec::new();
        }
        self.counts.inbound_bytes += inbound.len();
        connection.inbound = inbound;
        self.bound_inbound();
        self.close_if_released(id);
    }

    /// The other end of a stream sends nothing more, and may still read: what has arrived whole is answered, then the connection is
    /// over. No answer to an own request comes any more.
    pub fn handle_input_end(&mut self, now: Instant, id: ConnectionId) {
        self.now = now;
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if connection.stage == ConnectionStage::Open {
            connection.stage = ConnectionStage::Ending;
            // What has not arrived whole never does, and is waited for no more.
            connection.times.partial_since = None;
        }
        self.close_if_released(id);
    }

    fn handle_one(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        self.counts.received += 1;
        self.note_taken(id);
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        connection.times.heard = now;
        let message = match ReliableMessage::parse(bytes, connection.framing) {
            Ok(message) => message,
            Err(error) => return self.abort(id, &error.to_string(), None),
        };
        let has_greeted = connection.capabilities.is_some();
        if !has_greeted && message.code != signal::CSM && message.code != signal::ABORT {
            return self.abort(id, "the first message is a CSM (RFC 8323 §5.3)", None);
        }
        match message.code {
            signal::CSM => {
                let mut capabilities = connection.capabilities.unwrap_or(Capabilities::BASE);
                let updated = capabilities.update(message.options);
                connection.capabilities = Some(capabilities);
                match updated {
                    Ok(()) => self.send_waiting(id),
                    Err(unknown) => self.abort(id, "an option of the CSM is not understood", Some(unknown)),
                }
            }
            signal::PING => self.signal(id, signal::PONG, message.token, &[], ""),
            signal::PONG => self.handle_pong(id, message.token),
            signal::RELEASE => self.begin_release(id),
            signal::ABORT => {
                tracing::debug!(why = %String::from_utf8_lossy(message.payload).escape_debug(), "a connection is aborted");
                self.mark_over(id);
            }
            Code::EMPTY => {}
            code if code.is_request() => self.handle_request(now, id, &message),
            code if code.is_response() => self.handle_response(id, &message),
            // Signals that are not known are ignored (RFC 8323 §5.1).
            _ => {}
        }
    }

    fn handle_pong(&mut self, id: ConnectionId, token: crate::message::Token) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let Some(token) = token.to_u64() else { return };
        let Some(request) = connection.requests.get(&token).copied() else { return };
        // A PONG with the token of a request answers nothing.
        if !self.asking.requests.get(request.0).is_some_and(OwnRequest::is_ping) {
            return;
        }
        connection.requests.remove(&token);
        self.asking.requests.remove(request.0);
        let peer = connection.peer;
        self.events.push_back(EndpointEvent::Pong { request, peer });
        self.close_if_released(id);
    }
}

const TOO_LONG: &str = "the message is longer than the Max-Message-Size of the CSM";
