//! Messages over reliable transports on the wire (RFC 8323 §3.2, §4.2).

use crate::endpoint::encode::{Head, ResponsePart, write_response};
use crate::message::{
    CoapMessage, Code, HEADER_LEN, MessageError, MessageId, MessageType, MessageWriter, Options, Response, Token,
};

/// What tells messages apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// A length before each message, for TCP and TLS.
    Stream,
    /// One message in each message of the transport, for WebSocket.
    Messages,
}

/// A received message; options and payload are read where they lie.
#[derive(Clone, Copy, Debug)]
pub struct ReliableMessage<'a> {
    /// Method, response or signal; 0.00 for a message that only keeps the connection alive.
    pub code: Code,
    /// Token.
    pub token: Token,
    /// All options in ascending order.
    pub options: Options<'a>,
    /// The payload, perhaps empty.
    pub payload: &'a [u8],
}

/// How long the message at the beginning of a stream is; `None` while that has not arrived.
///
/// # Errors
/// When its token would be longer than 8 bytes.
pub fn message_len(bytes: &[u8]) -> Result<Option<usize>, MessageError> {
    let Some(first) = bytes.first() else { return Ok(None) };
    let token_len = usize::from(first & 15);
    if token_len > 8 {
        return Err(MessageError { offset: 0, expected: "token length of at most 8" });
    }
    let extended =
        |count: usize| bytes.get(1..=count).map(|bytes| bytes.iter().fold(0, |n, b| n << 8 | usize::from(*b)));
    let (count, len) = match first >> 4 {
        13 => (1, extended(1).map(|len| len + EXTENDED_1)),
        14 => (2, extended(2).map(|len| len + EXTENDED_2)),
        15 => (4, extended(4).map(|len| len + EXTENDED_4)),
        len => (0, Some(usize::from(len))),
    };
    Ok(len.map(|len| 1 + count + 1 + token_len + len))
}

impl<'a> ReliableMessage<'a> {
    /// Reads one whole message and checks its form throughout.
    ///
    /// # Errors
    /// The place of the fault.
    pub fn parse(bytes: &'a [u8], framing: Framing) -> Result<ReliableMessage<'a>, MessageError> {
        let wrong = |offset, expected| Err(MessageError { offset, expected });
        let Some(first) = bytes.first() else { return wrong(0, "message") };
        let token_len = usize::from(first & 15);
        if token_len > 8 {
            return wrong(0, "token length of at most 8");
        }
        let at = match (framing, first >> 4) {
            (Framing::Stream, 13) => 2,
            (Framing::Stream, 14) => 3,
            (Framing::Stream, 15) => 5,
            (Framing::Stream, _) | (Framing::Messages, 0) => 1,
            (Framing::Messages, _) => return wrong(0, "length of 0 in a message of its own"),
        };
        let Some(code) = bytes.get(at) else { return wrong(at, "code") };
        let code = Code::from_byte(*code);
        let start = at + 1 + token_len;
        let Some(token) = bytes.get(at + 1..start).and_then(Token::new) else { return wrong(at + 1, "complete token") };
        if matches!(code.class(), 1 | 6) {
            return wrong(at, "code class 0, 2, 3, 4, 5 or 7");
        }
        let (options, len) = Options::check(&bytes[start..], start)?;
        let payload = match bytes.get(start + len + 1..) {
            Some([]) => return wrong(start + len, "payload after the payload marker"),
            Some(payload) => payload,
            None => &[],
        };
        Ok(ReliableMessage { code, token, options, payload })
    }
}

/// Writes messages; keeps a buffer for that.
#[derive(Debug, Default)]
pub struct FrameWriter {
    datagram: Vec<u8>,
}

impl FrameWriter {
    /// Appends a response.
    pub fn response(
        &mut self,
        out: &mut Vec<u8>,
        framing: Framing,
        token: Token,
        response: &Response,
        part: &ResponsePart,
    ) {
        self.datagram.clear();
        let head = Head { message_type: MessageType::NonConfirmable, id: MessageId(0), token };
        write_response(&mut self.datagram, &head, response, part);
        self.finish(out, framing, token);
    }

    /// Appends a request or a signal.
    pub fn message(&mut self, out: &mut Vec<u8>, framing: Framing, message: &ReliableMessage<'_>) {
        self.datagram.clear();
        let (code, token) = (message.code, message.token);
        let mut writer =
            MessageWriter::new(&mut self.datagram, MessageType::NonConfirmable, code, MessageId(0), &token);
        writer.options(message.options);
        writer.payload(message.payload);
        self.finish(out, framing, token);
    }

    /// A datagram has the same content behind another header.
    fn finish(&self, out: &mut Vec<u8>, framing: Framing, token: Token) {
        let (code, content) = (self.datagram[1], &self.datagram[HEADER_LEN + token.len()..]);
        let token_len = token.len() as u8;
        match (framing, content.len()) {
            (Framing::Messages, _) => out.push(token_len),
            (Framing::Stream, len @ ..EXTENDED_1) => out.push((len as u8) << 4 | token_len),
            (Framing::Stream, len @ EXTENDED_1..EXTENDED_2) => {
                out.extend_from_slice(&[13 << 4 | token_len, (len - EXTENDED_1) as u8]);
            }
            (Framing::Stream, len @ EXTENDED_2..EXTENDED_4) => {
                out.push(14 << 4 | token_len);
                out.extend_from_slice(&((len - EXTENDED_2) as u16).to_be_bytes());
            }
            (Framing::Stream, len) => {
                out.push(15 << 4 | token_len);
                out.extend_from_slice(&((len - EXTENDED_4) as u32).to_be_bytes());
            }
        }
        out.push(code);
        out.extend_from_slice(&token);
        out.extend_from_slice(content);
    }
}

impl<'a> ReliableMessage<'a> {
    /// The message of a datagram without what only datagrams need.
    pub fn of_datagram(message: &CoapMessage<'a>) -> ReliableMessage<'a> {
        let CoapMessage { code, token, options, payload, .. } = *message;
        ReliableMessage { code, token, options, payload }
    }

    /// The same as a datagram, for what reads both.
    pub fn as_datagram(&self) -> CoapMessage<'a> {
        let ReliableMessage { code, token, options, payload } = *self;
        CoapMessage { message_type: MessageType::NonConfirmable, code, id: MessageId(0), token, options, payload }
    }
}

/// The shortest contents whose lengths take one, two and four bytes of their own.
const EXTENDED_1: usize = 13;
const EXTENDED_2: usize = 269;
const EXTENDED_4: usize = 65_805;
