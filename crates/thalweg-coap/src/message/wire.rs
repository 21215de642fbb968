//! A whole message: header, token, options, payload.

use std::fmt;

use super::option::{Options, write_option};
use super::{Code, OptionNumber, Token, encode_uint};

/// Bytes before the token.
pub const HEADER_LEN: usize = 4;

/// Separates options from the payload.
pub const PAYLOAD_MARKER: u8 = 0xff;

/// The version that this crate speaks, where it stands in the first byte.
const VERSION_1: u8 = 1 << 6;

/// Matches an acknowledgement to its message, and tells duplicates (RFC 7252 §4.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(pub u16);

/// The type of a message at the message layer (RFC 7252 §4.2, §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageType {
    /// CON: repeated until it is acknowledged.
    Confirmable,
    /// NON: sent once.
    NonConfirmable,
    /// ACK: answers a CON, perhaps with the response.
    Acknowledgement,
    /// RST: the receiver cannot make sense of a message.
    Reset,
}

impl MessageType {
    const fn bits(self) -> u8 {
        match self {
            MessageType::Confirmable => 0x00,
            MessageType::NonConfirmable => 0x10,
            MessageType::Acknowledgement => 0x20,
            MessageType::Reset => 0x30,
        }
    }

    const fn from_bits(first: u8) -> MessageType {
        match first & 0x30 {
            0x00 => MessageType::Confirmable,
            0x10 => MessageType::NonConfirmable,
            0x20 => MessageType::Acknowledgement,
            _ => MessageType::Reset,
        }
    }
}

/// Why bytes are no CoAP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageError {
    /// Offset in bytes from the beginning.
    pub offset: usize,
    /// The expected content.
    pub expected: &'static str,
}

impl fmt::Display for MessageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "byte {}: expected {}", self.offset, self.expected)
    }
}

impl std::error::Error for MessageError {}

/// A received message; options and payload are read where they lie.
#[derive(Clone, Copy, Debug)]
pub struct CoapMessage<'a> {
    /// CON, NON, ACK or RST.
    pub message_type: MessageType,
    /// Method, response code or empty.
    pub code: Code,
    /// Message ID.
    pub id: MessageId,
    /// Token.
    pub token: Token,
    /// All options in ascending order.
    pub options: Options<'a>,
    /// The payload, perhaps empty.
    pub payload: &'a [u8],
}

impl<'a> CoapMessage<'a> {
    /// Reads a datagram and checks its form throughout (RFC 7252 §3).
    ///
    /// # Errors
    /// The place of the fault: another version, a token longer than 8 bytes, a reserved code class, a reserved or
    /// truncated option, a payload marker without payload, an empty message that is not empty.
    pub fn parse(bytes: &'a [u8]) -> Result<CoapMessage<'a>, MessageError> {
        let (message_type, code, id) = CoapMessage::parse_header(bytes)?;
        let wrong = |offset, expected| Err(MessageError { offset, expected });
        let token_len = usize::from(bytes[0] & 15);
        if token_len > 8 {
            return wrong(0, "token length of at most 8");
        }
        if matches!(code.class(), 1 | 6 | 7) {
            return wrong(1, "code class 0, 2, 3, 4 or 5");
        }
        if code == Code::EMPTY && bytes.len() > HEADER_LEN {
            return wrong(HEADER_LEN, "nothing after the header of an empty message");
        }
        let Some(token) = bytes.get(HEADER_LEN..HEADER_LEN + token_len).and_then(Token::new) else {
            return wrong(HEADER_LEN, "complete token");
        };
        let start = HEADER_LEN + token_len;
        let (options, len) = Options::check(&bytes[start..], start)?;
        let payload = match bytes.get(start + len + 1..) {
            Some([]) => return wrong(start + len, "payload after the payload marker"),
            Some(payload) => payload,
            None => &[],
        };
        Ok(CoapMessage { message_type, code, id, token, options, payload })
    }

    /// Reads the header only: enough to reject a message whose rest is wrong.
    ///
    /// # Errors
    /// When there are fewer than four bytes, or the version is not 1.
    pub fn parse_header(bytes: &[u8]) -> Result<(MessageType, Code, MessageId), MessageError> {
        let &[first, code, high, low, ..] = bytes else {
            return Err(MessageError { offset: bytes.len(), expected: "header of four bytes" });
        };
        if first & 0xc0 != VERSION_1 {
            return Err(MessageError { offset: 0, expected: "version 1" });
        }
        Ok((MessageType::from_bits(first), Code::from_byte(code), MessageId(u16::from_be_bytes([high, low]))))
    }
}

/// A message without token, options and payload: an ACK, a RST or, as CON, a ping.
pub fn empty_message(message_type: MessageType, id: MessageId) -> [u8; HEADER_LEN] {
    let [high, low] = id.0.to_be_bytes();
    [VERSION_1 | message_type.bits(), Code::EMPTY.byte(), high, low]
}

/// Appends one message to a buffer; nothing is allocated unless the buffer grows.
#[derive(Debug)]
pub struct MessageWriter<'a> {
    out: &'a mut Vec<u8>,
    last: OptionNumber,
}

impl<'a> MessageWriter<'a> {
    /// Appends header and token.
    pub fn new(
        out: &'a mut Vec<u8>,
        message_type: MessageType,
        code: Code,
        id: MessageId,
        token: &Token,
    ) -> MessageWriter<'a> {
        let [high, low] = id.0.to_be_bytes();
        out.extend_from_slice(&[VERSION_1 | message_type.bits() | token.len() as u8, code.byte(), high, low]);
        out.extend_from_slice(token);
        MessageWriter { out, last: OptionNumber(0) }
    }

    /// Appends an option.
    ///
    /// # Panics
    /// When its number is below that of the option before it.
    pub fn option(&mut self, number: OptionNumber, value: &[u8]) -> &mut Self {
        write_option(self.out, self.last, number, value);
        self.last = number;
        self
    }

    /// Appends an option whose value is a number.
    ///
    /// # Panics
    /// When its number is below that of the option before it.
    pub fn uint(&mut self, number: OptionNumber, value: u32) -> &mut Self {
        self.option(number, encode_uint(value, &mut [0; 4]))
    }

    /// Appends encoded options; only as the first options of the message.
    ///
    /// # Panics
    /// When an option was written before.
    pub fn options(&mut self, options: Options<'_>) -> &mut Self {
        assert_eq!(self.last, OptionNumber(0), "encoded options are the first of their message");
        self.out.extend_from_slice(options.as_bytes());
        self.last = options.last().map_or(self.last, |(number, _)| number);
        self
    }

    /// Appends marker and payload, or nothing for an empty payload; the message is complete.
    pub fn payload(self, payload: &[u8]) {
        if !payload.is_empty() {
            self.out.push(PAYLOAD_MARKER);
            self.out.extend_from_slice(payload);
        }
    }
}
