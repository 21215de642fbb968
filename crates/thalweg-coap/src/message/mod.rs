//! CoAP messages on the wire (RFC 7252 §3): a view of a received one, a writer for one to send, and the two plain
//! types that handlers and applications see, [`CoapRequest`] and [`Response`].

mod code;
mod option;
mod request;
mod response;
mod short;
#[cfg(test)]
mod tests;
mod wire;

pub use code::Code;
pub(crate) use option::PROTECTED_BYTES_MAX;
pub use option::{
    Block, OPTIONS_MAX, OptionNumber, Options, content_format, encode_uint, insert_option, parse_uint, write_option,
};
pub(crate) use request::unescape;
pub use request::{CoapRequest, Observe, RequestBuf};
pub use response::{Body, Response};
pub use short::{ETag, Token};
pub use wire::{
    CoapMessage, HEADER_LEN, MessageError, MessageId, MessageType, MessageWriter, PAYLOAD_MARKER, empty_message,
};
