//! `final struct { uint64 number; sequence<octet> bytes; }` in XCDR1. By hand: serde would go octet by octet.

use std::io::{Error, ErrorKind};

use rustdds::RepresentationIdentifier;
use rustdds::bytes::{BufMut, Bytes, BytesMut};
use rustdds::no_key::{Decode, DefaultDecoder, DeserializerAdapter, SerializerAdapter};

/// A sample that is serialised already.
pub struct Outgoing(Bytes);

impl Outgoing {
    /// Copies the bytes, once.
    pub fn new(number: u64, bytes: &[u8]) -> Outgoing {
        let mut payload = BytesMut::with_capacity(12 + bytes.len());
        payload.put_u64_le(number);
        payload.put_u32_le(bytes.len() as u32);
        payload.put_slice(bytes);
        Outgoing(payload.freeze())
    }
}

/// A sample that arrived.
pub struct Incoming {
    pub number: u64,
    pub bytes: Vec<u8>,
}

pub struct Xcdr1;

impl SerializerAdapter<Outgoing> for Xcdr1 {
    type Error = Error;

    fn output_encoding() -> RepresentationIdentifier {
        RepresentationIdentifier::CDR_LE
    }

    fn to_bytes(value: &Outgoing) -> Result<Bytes, Error> {
        Ok(value.0.clone())
    }
}

impl DeserializerAdapter<Incoming> for Xcdr1 {
    type Error = Error;
    type Decoded = Incoming;

    fn supported_encodings() -> &'static [RepresentationIdentifier] {
        &[RepresentationIdentifier::CDR_LE]
    }

    fn transform_decoded(decoded: Incoming) -> Incoming {
        decoded
    }
}

impl DefaultDecoder<Incoming> for Xcdr1 {
    type Decoder = Decoder;
    const DECODER: Decoder = Decoder;
}

#[derive(Clone)]
pub struct Decoder;

impl<'de> Decode<'de, Incoming> for Decoder {
    type Error = Error;

    fn decode_bytes(self, input: &'de [u8], _encoding: RepresentationIdentifier) -> Result<Incoming, Error> {
        let (number, rest) = input.split_first_chunk().ok_or(ErrorKind::UnexpectedEof)?;
        let (length, rest) = rest.split_first_chunk().ok_or(ErrorKind::UnexpectedEof)?;
        let length = u32::from_le_bytes(*length) as usize;
        let bytes = rest.get(..length).ok_or(ErrorKind::UnexpectedEof)?.to_vec();
        Ok(Incoming { number: u64::from_le_bytes(*number), bytes })
    }
}
