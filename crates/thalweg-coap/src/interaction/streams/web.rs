//! WebSocket of both ends, in memory (RFC 8323 §4).

use std::collections::VecDeque;
use std::io::{self, Read, Write};

use tungstenite::handshake::client::ClientHandshake;
use tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response, ServerHandshake};
use tungstenite::handshake::{HandshakeError, MidHandshake};
use tungstenite::http::{HeaderValue, StatusCode};
use tungstenite::protocol::{WebSocket, WebSocketConfig};
use tungstenite::{ClientRequestBuilder, Error, Message};

use super::conduit::Heard;

/// The bytes of both directions.
#[derive(Debug, Default)]
struct Pipe {
    incoming: VecDeque<u8>,
    outgoing: Vec<u8>,
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.incoming.read(buffer)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outgoing.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// WebSocket of one connection.
pub(super) struct WebLayer {
    state: State,
}

enum State {
    Accepting(MidHandshake<ServerHandshake<Pipe, CoapOnly>>),
    Connecting(MidHandshake<ClientHandshake<Pipe>>),
    Open(Box<WebSocket<Pipe>>),
    Failed,
}

impl WebLayer {
    /// The server's end.
    pub(super) fn accept(message_bytes_max: usize) -> WebLayer {
        let handshake = ServerHandshake::start(Pipe::default(), CoapOnly, Some(config(message_bytes_max)));
        WebLayer { state: State::Accepting(handshake) }
    }

    /// The client's end, to the server at `authority`.
    pub(super) fn connect(authority: &str, message_bytes_max: usize) -> io::Result<WebLayer> {
        let uri = format!("ws://{authority}{PATH}").parse().map_err(io::Error::other)?;
        let request = ClientRequestBuilder::new(uri).with_sub_protocol(PROTOCOL);
        let request = tungstenite::client::IntoClientRequest::into_client_request(request).map_err(io::Error::other)?;
        let config = Some(config(message_bytes_max));
        let handshake = ClientHandshake::start(Pipe::default(), request, config).map_err(io::Error::other)?;
        Ok(WebLayer { state: State::Connecting(handshake) })
    }

    pub(super) fn is_handshaking(&self) -> bool {
        matches!(self.state, State::Accepting(_) | State::Connecting(_))
    }

    /// Takes bytes of the transport; messages in them come from [`WebLayer::next_message`].
    pub(super) fn handle(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.state {
            State::Accepting(handshake) => handshake.get_mut().get_mut().incoming.extend(bytes),
            State::Connecting(handshake) => handshake.get_mut().get_mut().incoming.extend(bytes),
            State::Open(socket) => socket.get_mut().incoming.extend(bytes),
            State::Failed => {}
        }
        self.go_on()
    }

    /// Goes on with the handshake.
    pub(super) fn go_on(&mut self) -> io::Result<()> {
        self.state = match std::mem::replace(&mut self.state, State::Failed) {
            State::Accepting(handshake) => match handshake.handshake() {
                Ok(socket) => State::Open(Box::new(socket)),
                Err(HandshakeError::Interrupted(handshake)) => State::Accepting(handshake),
                Err(HandshakeError::Failure(error)) => return Err(io::Error::other(error)),
            },
            State::Connecting(handshake) => match handshake.handshake() {
                Ok((socket, response)) if is_coap(response.headers().get(PROTOCOL_HEADER)) => {
                    State::Open(Box::new(socket))
                }
                Ok(_) => return Err(io::Error::other("the server does not speak the subprotocol coap")),
                Err(HandshakeError::Interrupted(handshake)) => State::Connecting(handshake),
                Err(HandshakeError::Failure(error)) => return Err(io::Error::other(error)),
            },
            other => other,
        };
        Ok(())
    }

    /// The next message that has arrived whole.
    pub(super) fn next_message(&mut self) -> io::Result<Option<Heard>> {
        let State::Open(socket) = &mut self.state else { return Ok(None) };
        match socket.read() {
            Ok(Message::Binary(bytes)) => Ok(Some(Heard::Bytes(bytes.into()))),
            Ok(Message::Text(_)) => Err(io::Error::other("a message is text, where CoAP is binary")),
            Ok(Message::Close(_)) => Err(io::ErrorKind::UnexpectedEof.into()),
            // A ping has been answered.
            Ok(_) => Ok(Some(Heard::Control)),
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// Wraps a message.
    pub(super) fn wrap(&mut self, message: &[u8]) -> io::Result<()> {
        let State::Open(socket) = &mut self.state else { return Err(io::ErrorKind::NotConnected.into()) };
        socket.send(Message::Binary(message.to_vec().into())).map_err(io::Error::other)
    }

    /// Appends what is to be sent.
    pub(super) fn take(&mut self, out: &mut Vec<u8>) {
        let pipe = match &mut self.state {
            State::Accepting(handshake) => handshake.get_mut().get_mut(),
            State::Connecting(handshake) => handshake.get_mut().get_mut(),
            State::Open(socket) => socket.get_mut(),
            State::Failed => return,
        };
        out.append(&mut pipe.outgoing);
    }

    /// Says goodbye.
    pub(super) fn close(&mut self) {
        if let State::Open(socket) = &mut self.state {
            // Nothing is lost when it cannot be said.
            let _ = socket.close(None);
            let _ = socket.flush();
        }
    }
}

/// Lets only CoAP in (RFC 8323 §4.1).
#[derive(Debug)]
struct CoapOnly;

impl Callback for CoapOnly {
    #[expect(clippy::result_large_err, reason = "tungstenite's signature")]
    fn on_request(self, request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
        let refuse = |status: StatusCode, why: &str| {
            let mut refusal = ErrorResponse::new(Some(why.to_owned()));
            *refusal.status_mut() = status;
            Err(refusal)
        };
        if request.uri().path() != PATH {
            return refuse(StatusCode::NOT_FOUND, "CoAP is at /.well-known/coap");
        }
        if !request.headers().get_all(PROTOCOL_HEADER).iter().any(|offered| is_coap(Some(offered))) {
            return refuse(StatusCode::BAD_REQUEST, "the subprotocol is coap");
        }
        response.headers_mut().insert(PROTOCOL_HEADER, HeaderValue::from_static(PROTOCOL));
        Ok(response)
    }
}

fn is_coap(offered: Option<&HeaderValue>) -> bool {
    let names = offered.and_then(|value| value.to_str().ok()).unwrap_or_default();
    names.split(',').any(|name| name.trim() == PROTOCOL)
}

fn config(message_bytes_max: usize) -> WebSocketConfig {
    let bound = Some(message_bytes_max);
    let config = WebSocketConfig::default().max_message_size(bound).max_frame_size(bound);
    // An idle connection keeps no more than this.
    config.read_buffer_size(4096).write_buffer_size(0)
}

const PATH: &str = "/.well-known/coap";
const PROTOCOL: &str = "coap";
const PROTOCOL_HEADER: &str = "sec-websocket-protocol";
