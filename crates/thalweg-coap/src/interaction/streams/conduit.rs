//! The layers between a socket and the messages of a connection.

use std::io;

use super::tls::TlsLayer;
use super::web::WebLayer;
use crate::endpoint::reliable::Framing;
use crate::identity::SessionIdentity;

/// What a layer has opened.
pub(super) enum Heard {
    /// A part of the stream, or a whole message where messages are kept apart.
    Bytes(Vec<u8>),
    /// A message of the layer itself, such as a ping.
    Control,
}

/// TLS, WebSocket, both or neither.
pub(super) struct Conduit {
    tls: Option<TlsLayer>,
    web: Option<WebLayer>,
    plain: Vec<u8>,
    wrapped: Vec<u8>,
}

impl Conduit {
    /// These layers, of which WebSocket lies above TLS.
    pub(super) fn new(tls: Option<TlsLayer>, web: Option<WebLayer>) -> Conduit {
        Conduit { tls, web, plain: Vec::new(), wrapped: Vec::new() }
    }

    /// Whether bytes of messages are bytes of the socket.
    pub(super) fn is_direct(&self) -> bool {
        self.tls.is_none() && self.web.is_none()
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(TlsLayer::is_handshaking)
            || self.web.as_ref().is_some_and(WebLayer::is_handshaking)
    }

    /// What the other end proved.
    pub(super) fn identity(&self) -> Option<SessionIdentity> {
        self.tls.as_ref().and_then(TlsLayer::identity)
    }

    pub(super) fn framing(&self) -> Framing {
        if self.web.is_some() { Framing::Messages } else { Framing::Stream }
    }

    /// Takes bytes of the socket; what they say comes from [`Conduit::next`].
    ///
    /// # Errors
    /// When a layer refuses them, or the other end has said goodbye.
    pub(super) fn handle(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.open(bytes, &mut self.plain)?;
        } else {
            self.plain.extend_from_slice(bytes);
        }
        match &mut self.web {
            Some(web) if !self.plain.is_empty() => {
                let handled = web.handle(&self.plain);
                self.plain.clear();
                handled
            }
            _ => Ok(()),
        }
    }

    /// Goes on with a handshake that this end begins.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        let is_ready = self.tls.as_ref().is_none_or(|tls| !tls.is_handshaking());
        match &mut self.web {
            Some(web) if is_ready && web.is_handshaking() => web.go_on(),
            _ => Ok(()),
        }
    }

    /// The next thing that was said.
    ///
    /// # Errors
    /// As [`Conduit::handle`].
    pub(super) fn next(&mut self) -> io::Result<Option<Heard>> {
        match &mut self.web {
            Some(web) => web.next_message(),
            None if self.plain.is_empty() => Ok(None),
            None => Ok(Some(Heard::Bytes(std::mem::take(&mut self.plain)))),
        }
    }

    /// Bytes that are held for messages which have not arrived whole, or wait to be taken, where messages are kept apart.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.web.as_ref().map_or(0, WebLayer::waiting_bytes)
    }

    /// How many bytes may be wrapped at a time: a stream can be cut anywhere, a message is whole.
    pub(super) fn part_max(&self) -> usize {
        if self.web.is_some() { usize::MAX } else { STREAM_PART_MAX }
    }

    /// Wraps a part of the stream or a message.
    pub(super) fn wrap(&mut self, bytes: &[u8]) -> io::Result<()> {
        match (&mut self.web, &mut self.tls) {
            (Some(web), _) => web.wrap(bytes),
            (None, Some(tls)) => tls.seal(bytes),
            (None, None) => {
                self.wrapped.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Appends bytes for the socket.
    pub(super) fn take(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        if let Some(web) = &mut self.web {
            web.take(&mut self.wrapped);
        }
        match &mut self.tls {
            Some(tls) => {
                if !self.wrapped.is_empty() {
                    tls.seal(&self.wrapped)?;
                    self.wrapped.clear();
                }
                tls.take(out)
            }
            None => {
                out.append(&mut self.wrapped);
                Ok(())
            }
        }
    }

    /// Says goodbye in all layers.
    pub(super) fn close(&mut self) {
        if let Some(web) = &mut self.web {
            web.close();
        }
        if let Some(tls) = &mut self.tls {
            if let Some(web) = &mut self.web {
                web.take(&mut self.wrapped);
                let _ = tls.seal(&self.wrapped);
                self.wrapped.clear();
            }
            tls.close();
        }
    }
}

/// Bytes of a stream that are sealed at a time: those of a record of TLS (RFC 8446 §5.1).
const STREAM_PART_MAX: usize = 1 << 14;
