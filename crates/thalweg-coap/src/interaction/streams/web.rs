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
use super::unfinished::Unfinished;

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
    head: HeadEnd,
    unfinished: Unfinished,
}

enum State {
    Accepting(MidHandshake<ServerHandshake<Pipe, CoapOnly>>),
    Connecting(MidHandshake<ClientHandshake<Pipe>>),
    Open(Box<WebSocket<Pipe>>),
    /// What still comes is of no interest.
    Failed(Pipe),
}

impl WebLayer {
    /// The server's end.
    pub(super) fn accept(message_bytes_max: usize) -> WebLayer {
        let handshake = ServerHandshake::start(Pipe::default(), CoapOnly, Some(config(message_bytes_max)));
        WebLayer::new(State::Accepting(handshake), message_bytes_max)
    }

    /// The client's end, to the server at `authority`.
    pub(super) fn connect(authority: &str, message_bytes_max: usize) -> io::Result<WebLayer> {
        let uri = format!("ws://{authority}{PATH}").parse().map_err(io::Error::other)?;
        let request = ClientRequestBuilder::new(uri).with_sub_protocol(PROTOCOL);
        let request = tungstenite::client::IntoClientRequest::into_client_request(request).map_err(io::Error::other)?;
        let config = Some(config(message_bytes_max));
        let handshake = ClientHandshake::start(Pipe::default(), request, config).map_err(io::Error::other)?;
        Ok(WebLayer::new(State::Connecting(handshake), message_bytes_max))
    }

    fn new(state: State, message_bytes_max: usize) -> WebLayer {
        WebLayer { state, head: HeadEnd::default(), unfinished: Unfinished::new(message_bytes_max) }
    }

    pub(super) fn is_handshaking(&self) -> bool {
        matches!(self.state, State::Accepting(_) | State::Connecting(_))
    }

    /// Takes bytes of the transport; messages in them come from [`WebLayer::next_message`].
    pub(super) fn handle(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_handshaking() {
            self.take_frames(bytes);
            return Ok(());
        }
        let (head, frames) = bytes.split_at(self.head.count(bytes)?);
        self.pipe().incoming.extend(head);
        self.go_on()?;
        // Frames are followed from the first one.
        if self.is_handshaking() == self.head.is_whole() {
            return Err(io::Error::other("the handshake does not end with its HTTP message"));
        }
        self.take_frames(frames);
        Ok(())
    }

    fn take_frames(&mut self, bytes: &[u8]) {
        self.unfinished.take(bytes);
        self.pipe().incoming.extend(bytes);
    }

    fn pipe(&mut self) -> &mut Pipe {
        match &mut self.state {
            State::Accepting(handshake) => handshake.get_mut().get_mut(),
            State::Connecting(handshake) => handshake.get_mut().get_mut(),
            State::Open(socket) => socket.get_mut(),
            State::Failed(pipe) => pipe,
        }
    }

    /// Bytes of messages that have not arrived whole, or were not read; 0 when there are none.
    pub(super) fn waiting_bytes(&self) -> usize {
        let State::Open(socket) = &self.state else { return 0 };
        self.unfinished.bytes() + socket.get_ref().incoming.len()
    }

    /// Goes on with the handshake.
    pub(super) fn go_on(&mut self) -> io::Result<()> {
        self.state = match std::mem::replace(&mut self.state, State::Failed(Pipe::default())) {
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
        out.append(&mut self.pipe().outgoing);
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

/// Finds where the head of an HTTP message ends that comes in parts.
#[derive(Debug, Default)]
struct HeadEnd {
    /// How much of the end has just been seen.
    seen: usize,
    bytes: usize,
}

impl HeadEnd {
    /// How many of these bytes belong to the head.
    fn count(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut count = 0;
        for byte in bytes {
            if self.is_whole() {
                break;
            }
            self.seen = if *byte == HEAD_END[self.seen] { self.seen + 1 } else { usize::from(*byte == HEAD_END[0]) };
            count += 1;
        }
        self.bytes += count;
        if self.bytes > HEAD_BYTES_MAX {
            return Err(io::Error::other("the HTTP message of the handshake is too long"));
        }
        Ok(count)
    }

    fn is_whole(&self) -> bool {
        self.seen == HEAD_END.len()
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

const HEAD_END: &[u8; 4] = b"\r\n\r\n";
/// Bytes of the handshake of one end, as many as servers of HTTP take at least; they are not counted as messages are.
const HEAD_BYTES_MAX: usize = 8192;
const PATH: &str = "/.well-known/coap";
const PROTOCOL: &str = "coap";
const PROTOCOL_HEADER: &str = "sec-websocket-protocol";
