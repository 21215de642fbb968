//! A WebSocket of one client over a socket that never waits (RFC 6455).

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::Arc;

use mio::net::TcpStream;
use thalweg::Payload;
use tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response, ServerHandshake, write_response};
use tungstenite::handshake::{HandshakeError, MidHandshake};
use tungstenite::http::{HeaderValue, StatusCode};
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Data, OpCode};
use tungstenite::protocol::{WebSocket, WebSocketConfig};
use tungstenite::{Bytes, Error, Message};

use crate::protocol::SUBPROTOCOLS;
use crate::switchboard::Outgoing;
use crate::visitors::Visitors;

/// What a client said.
#[derive(Debug)]
pub enum Heard {
    /// A message in text.
    Text(String),
    /// A message in bytes.
    Binary,
    /// It has come in: the handshake is over.
    Entered,
}

/// The bytes of both directions in memory: tungstenite never sees the socket. Frames leave in the order in which they were made.
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

enum Layer {
    Accepting(Box<MidHandshake<ServerHandshake<Pipe, Doorkeeper>>>),
    Open(Box<WebSocket<Pipe>>),
    /// It was refused, or a side has said goodbye: what waits is sent, and nothing else is read.
    Closing,
}

/// Bytes for the socket: frames, or a part of one.
enum Piece {
    Bytes(Vec<u8>),
    /// A sample is shared with other clients and sent from where it lies.
    Sample(Payload),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Piece::Bytes(bytes) => bytes,
            Piece::Sample(payload) => payload,
        }
    }
}

/// The socket of one client.
pub struct ClientSocket {
    stream: TcpStream,
    layer: Layer,
    pieces: VecDeque<Piece>,
    /// Bytes of the first piece that the socket took.
    taken: usize,
    /// Bytes of pieces that are no samples.
    framed_bytes: usize,
    /// Why it was not let in.
    refusal: Option<String>,
}

impl ClientSocket {
    /// A socket on which the client begins the handshake.
    pub fn accept(stream: TcpStream, visitors: Arc<Visitors>) -> ClientSocket {
        // Small samples are not to wait for the acknowledgement of others; where that cannot be had, they are late.
        let _ = stream.set_nodelay(true);
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX))
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(0);
        let handshake = ServerHandshake::start(Pipe::default(), Doorkeeper(visitors), Some(config));
        let layer = Layer::Accepting(Box::new(handshake));
        ClientSocket { stream, layer, pieces: VecDeque::new(), taken: 0, framed_bytes: 0, refusal: None }
    }

    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Whether the client is to be heard: not while it leaves answers to its own messages lying.
    pub fn wants_input(&self) -> bool {
        self.framed_bytes < FRAMED_BYTES_MAX && !matches!(self.layer, Layer::Closing)
    }

    /// Whether all that was said has left.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether nothing more is said once all has left.
    pub fn is_closing(&self) -> bool {
        matches!(self.layer, Layer::Closing)
    }

    /// Why the client was not let in, if that is so.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Reads once; what was said is appended. `None` when nothing has arrived, else the number of bytes.
    ///
    /// # Errors
    /// When the client has gone, or breaks the protocol.
    pub fn read(&mut self, heard: &mut Vec<Heard>) -> io::Result<Option<usize>> {
        let mut buffer = [0; READ_BYTES];
        let count = match self.stream.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Some(0)),
            Err(error) => return Err(error),
        };
        let handled = self.handle(&buffer[..count], heard);
        self.take_frames();
        handled.map(|()| Some(count))
    }

    /// Puts a frame behind the others.
    pub fn send(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Text(text) => self.write(Message::Text(text.into())),
            Outgoing::Sample { head, payload } => {
                let header = FrameHeader { opcode: OpCode::Data(Data::Binary), ..FrameHeader::default() };
                let mut bytes = Vec::with_capacity(FRAME_HEADER_MAX + head.len());
                let formatted = header.format((head.len() + payload.len()) as u64, &mut bytes);
                formatted.expect("a vector takes what is written to it");
                bytes.extend_from_slice(&head);
                self.push(Piece::Bytes(bytes));
                self.push(Piece::Sample(payload));
            }
        }
    }

    /// Asks the client for a sign of life.
    pub fn ping(&mut self) {
        self.write(Message::Ping(Bytes::new()));
    }

    /// Says goodbye behind all that waits.
    pub fn close(&mut self) {
        if let Layer::Open(socket) = &mut self.layer {
            // Nothing is lost when it cannot be said.
            let _ = socket.close(None);
        }
        self.take_frames();
        self.layer = Layer::Closing;
    }

    /// Gives the socket what it takes, up to some MiB. Returns how many bytes that were, and whether it takes more.
    ///
    /// # Errors
    /// When the client has gone.
    pub fn flush(&mut self) -> io::Result<(usize, bool)> {
        let mut written = 0;
        while let Some(piece) = self.pieces.front() {
            if written >= TURN_BYTES {
                return Ok((written, true));
            }
            let bytes = piece.bytes();
            let count = match self.stream.write(&bytes[self.taken..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok((written, false)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            (self.taken, written) = (self.taken + count, written + count);
            if self.taken == bytes.len() {
                self.framed_bytes -= if let Piece::Bytes(bytes) = piece { bytes.len() } else { 0 };
                self.pieces.pop_front();
                self.taken = 0;
            }
        }
        Ok((written, true))
    }

    /// Takes bytes of the client.
    fn handle(&mut self, bytes: &[u8], heard: &mut Vec<Heard>) -> io::Result<()> {
        self.layer = match std::mem::replace(&mut self.layer, Layer::Closing) {
            Layer::Accepting(mut handshake) => {
                handshake.get_mut().get_mut().incoming.extend(bytes);
                match handshake.handshake() {
                    Ok(socket) => {
                        heard.push(Heard::Entered);
                        Layer::Open(Box::new(socket))
                    }
                    Err(HandshakeError::Interrupted(handshake)) => Layer::Accepting(Box::new(handshake)),
                    Err(HandshakeError::Failure(error)) => {
                        let (status, why) = refusal(error);
                        self.push(Piece::Bytes(answer(status, &why)));
                        self.refusal = Some(why);
                        Layer::Closing
                    }
                }
            }
            Layer::Open(mut socket) => {
                socket.get_mut().incoming.extend(bytes);
                Layer::Open(socket)
            }
            Layer::Closing => Layer::Closing,
        };
        self.hear(heard)
    }

    /// Appends the messages that have arrived whole.
    fn hear(&mut self, heard: &mut Vec<Heard>) -> io::Result<()> {
        while let Layer::Open(socket) = &mut self.layer {
            match socket.read() {
                Ok(Message::Text(text)) => heard.push(Heard::Text(text.as_str().to_owned())),
                Ok(Message::Binary(_)) => heard.push(Heard::Binary),
                Ok(Message::Close(_)) => {
                    // The answer has been made.
                    let _ = socket.flush();
                    self.take_frames();
                    self.layer = Layer::Closing;
                }
                // A ping has been answered.
                Ok(_) => {}
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(())
    }

    fn write(&mut self, message: Message) {
        if let Layer::Open(socket) = &mut self.layer {
            // It goes into memory, and fails only where the client has said goodbye.
            let _ = socket.send(message);
        }
        self.take_frames();
    }

    /// Takes what tungstenite has made.
    fn take_frames(&mut self) {
        let pipe = match &mut self.layer {
            Layer::Accepting(handshake) => handshake.get_mut().get_mut(),
            Layer::Open(socket) => socket.get_mut(),
            Layer::Closing => return,
        };
        let bytes = std::mem::take(&mut pipe.outgoing);
        self.push(Piece::Bytes(bytes));
    }

    fn push(&mut self, piece: Piece) {
        if piece.bytes().is_empty() {
            return;
        }
        self.framed_bytes += if let Piece::Bytes(bytes) = &piece { bytes.len() } else { 0 };
        self.pieces.push_back(piece);
    }
}

/// Lets clients in that speak the protocol and come from where the user trusts.
struct Doorkeeper(Arc<Visitors>);

impl Callback for Doorkeeper {
    #[expect(clippy::result_large_err, reason = "tungstenite's signature")]
    fn on_request(self, request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
        let refuse = |status: StatusCode, why: String| {
            let mut refusal = ErrorResponse::new(Some(why));
            *refusal.status_mut() = status;
            Err(refusal)
        };
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        let origin = match request.headers().get("origin") {
            // An origin that is no text is nobody's.
            Some(value) => Some(value.to_str().unwrap_or("?")),
            None => None,
        };
        if !self.0.has(origin, header("host")) {
            let origin = origin.unwrap_or_default();
            return refuse(StatusCode::FORBIDDEN, format!("pages of {origin} are not let in: --origin {origin} does"));
        }
        let offered: Vec<&str> = request
            .headers()
            .get_all(PROTOCOL_HEADER)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|names| names.split(',').map(str::trim))
            .collect();
        let Some(chosen) = SUBPROTOCOLS.into_iter().find(|name| offered.contains(name)) else {
            return refuse(StatusCode::BAD_REQUEST, format!("the subprotocol is {}", SUBPROTOCOLS.join(" or ")));
        };
        response.headers_mut().insert(PROTOCOL_HEADER, HeaderValue::from_static(chosen));
        Ok(response)
    }
}

/// Why a client is not let in.
fn refusal(error: Error) -> (StatusCode, String) {
    match error {
        Error::Http(response) => {
            let (parts, body) = response.into_parts();
            (parts.status, String::from_utf8(body.unwrap_or_default()).unwrap_or_default())
        }
        other => {
            (StatusCode::BAD_REQUEST, format!("this is a WebSocket for Foxglove and Lichtblick, and no page: {other}"))
        }
    }
}

/// An answer in HTTP after which the connection ends.
fn answer(status: StatusCode, text: &str) -> Vec<u8> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert("content-length", HeaderValue::from(text.len()));
    headers.insert("connection", HeaderValue::from_static("close"));
    let mut bytes = Vec::new();
    // A vector takes what is written to it.
    let _ = write_response(&mut bytes, &response);
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

const PROTOCOL_HEADER: &str = "sec-websocket-protocol";
/// Bytes of a client's message: a thousand times what it takes to subscribe to a topic.
const MESSAGE_BYTES_MAX: usize = 256 << 10;
const READ_BYTES: usize = 4096;
/// Bytes of frames beside samples that may wait before the client is not heard any more.
const FRAMED_BYTES_MAX: usize = 8 << 20;
/// Bytes for one client before others have their turn.
const TURN_BYTES: usize = 4 << 20;
/// Bytes before the content of a frame (RFC 6455 §5.2).
const FRAME_HEADER_MAX: usize = 10;
