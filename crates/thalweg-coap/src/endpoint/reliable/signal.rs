//! Signals between the ends of a connection (RFC 8323 §5).

use super::frame::ReliableMessage;
use crate::message::{Code, OptionNumber, Options, Token, encode_uint, parse_uint, write_option};

/// Capabilities and settings, the first message of each end.
pub const CSM: Code = Code::from_byte(0xe1);
/// Asks for a [`PONG`].
pub const PING: Code = Code::from_byte(0xe2);
/// Answers a [`PING`].
pub const PONG: Code = Code::from_byte(0xe3);
/// The sender wants the connection to end, after what is under way.
pub const RELEASE: Code = Code::from_byte(0xe4);
/// The sender ends the connection.
pub const ABORT: Code = Code::from_byte(0xe5);

/// What an end can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The longest message that it takes. Before it has said so, 1,152 bytes (RFC 8323 §5.3.1).
    pub message_max: usize,
    /// Whether it can take bodies in blocks.
    pub has_blocks: bool,
}

impl Capabilities {
    /// Those of an end that has said nothing.
    pub const BASE: Capabilities = Capabilities { message_max: MESSAGE_MAX_BASE, has_blocks: false };

    /// Takes over what a CSM says; later ones replace what they mention (RFC 8323 §5.3).
    ///
    /// # Errors
    /// The critical option that is not known.
    pub fn update(&mut self, options: Options<'_>) -> Result<(), OptionNumber> {
        for (number, value) in options {
            match number {
                MAX_MESSAGE_SIZE => {
                    let size = parse_uint(value).map_or(MESSAGE_MAX_BASE, |size| size as usize);
                    // Smaller ones leave no room for a block with its options.
                    self.message_max = size.max(MESSAGE_MAX_LEAST);
                }
                BLOCK_WISE_TRANSFER => self.has_blocks = true,
                unknown if unknown.is_critical() => return Err(unknown),
                _ => {}
            }
        }
        Ok(())
    }

    /// Bytes of payload that one message to this end may have, options excluded.
    pub fn payload_max(&self) -> usize {
        self.message_max - OPTIONS_ROOM
    }

    /// Blocks of 1024 bytes that one message to this end may have; none when it takes no such messages (BERT, RFC 8323 §6).
    pub fn bert_blocks(&self) -> usize {
        let is_able = self.has_blocks && self.message_max > MESSAGE_MAX_BASE;
        if is_able { self.payload_max() / 1024 } else { 0 }
    }
}

/// The options of this end's CSM.
pub fn write_capabilities(message_max: usize) -> Vec<u8> {
    let mut options = Vec::new();
    let size = u32::try_from(message_max).unwrap_or(u32::MAX);
    write_option(&mut options, OptionNumber(0), MAX_MESSAGE_SIZE, encode_uint(size, &mut [0; 4]));
    write_option(&mut options, MAX_MESSAGE_SIZE, BLOCK_WISE_TRANSFER, &[]);
    options
}

/// A signal without options.
pub fn plain(code: Code, token: Token, diagnosis: &str) -> ReliableMessage<'_> {
    ReliableMessage { code, token, options: Options::new(&[]), payload: diagnosis.as_bytes() }
}

/// The option of an ABORT that names the option of a CSM that was not understood (RFC 8323 §5.6).
pub fn write_bad_csm_option(bad: OptionNumber) -> Vec<u8> {
    let mut options = Vec::new();
    write_option(&mut options, OptionNumber(0), BAD_CSM_OPTION, encode_uint(u32::from(bad.0), &mut [0; 4]));
    options
}

const MAX_MESSAGE_SIZE: OptionNumber = OptionNumber(2);
const BLOCK_WISE_TRANSFER: OptionNumber = OptionNumber(4);
const BAD_CSM_OPTION: OptionNumber = OptionNumber(2);
const MESSAGE_MAX_BASE: usize = 1152;
/// Header, options of a response and a block of 64 bytes.
const MESSAGE_MAX_LEAST: usize = OPTIONS_ROOM + 64;
/// Room for header, token and options: what a datagram of 1,152 bytes leaves beside a block (RFC 7252 §4.6).
const OPTIONS_ROOM: usize = 128;
