//! Messages of the TypeLookup service (DDS-XTypes 1.3 §7.6.3.3.4).
//!
//! Both are final structures in XCDR2; a peer that frames them as appendable is understood by its encapsulation.

use thalweg_cdr::{
    ByteOrder, Decode, DecodeError, Decoder, Encapsulation, Encode, EncodeError, Encoder, Extensibility, Layout,
    LengthCode, Member, Representation,
};

use super::identifier::TypeIdentifier;
use super::information::TypeWithSize;
use super::object::TypeObject;

/// Which call a reply belongs to: the writer of the request and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestIdentity {
    /// GUID of the writer.
    pub writer: [u8; 16],
    /// Number that the writer gave to the request.
    pub number: i64,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupRequest {
    /// What the reply names.
    pub identity: RequestIdentity,
    /// `dds.builtin.TOS.` and the GUID of the participant that is to answer, as 32 hexadecimal digits.
    pub instance: String,
    /// What is asked for.
    pub call: LookupCall,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupCall {
    /// The objects of these types.
    Types(Vec<TypeIdentifier>),
    /// The identifiers of all types that these refer to, from this point on.
    Dependencies(Vec<TypeIdentifier>, Vec<u8>),
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupReply {
    /// What the request named.
    pub identity: RequestIdentity,
    /// The answer; `None` where the peer could not give one.
    pub answer: Option<LookupAnswer>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupAnswer {
    /// Objects with their bytes as they came, and pairs of complete and minimal identifiers.
    Types(Vec<(TypeIdentifier, Vec<u8>)>, Vec<(TypeIdentifier, TypeIdentifier)>),
    /// The identifiers of types, and where the next answer continues; empty for the last one.
    Dependencies(Vec<TypeWithSize>, Vec<u8>),
}

const GET_TYPES: i32 = 0x0182_52d3;
const GET_DEPENDENCIES: i32 = 0x05aa_fb31;
// Ids of members by their names, as `@hashid` gives them.
const TYPE_IDS: u32 = 0x0c53_6065;
const CONTINUATION_POINT: u32 = 0x0508_e3d2;
const TYPES: u32 = 0x0280_4ad1;
const COMPLETE_TO_MINIMAL: u32 = 0x0b8e_6577;
const DEPENDENT_TYPEIDS: u32 = 0x0ba4_dfc9;

const INSTANCE_PREFIX: &str = "dds.builtin.TOS.";
/// Longest continuation point: `sequence<octet, 32>`.
const CONTINUATION_MAX: usize = 32;

/// The instance name of the service of a participant.
pub fn instance_name(participant: &[u8; 16]) -> String {
    participant.iter().fold(INSTANCE_PREFIX.to_owned(), |name, byte| format!("{name}{byte:02x}"))
}

fn payload(write: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    let id = Encapsulation::new(Representation::Xcdr2, Extensibility::Final, ByteOrder::Little).id();
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    write(&mut Encoder::new(&mut out, Representation::Xcdr2, ByteOrder::Little))?;
    let padding = out.len().wrapping_neg() & 3;
    out.resize(out.len() + padding, 0);
    out[3] = padding as u8;
    Ok(out)
}

fn read<T>(payload: &[u8], body: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>) -> Result<T, DecodeError> {
    let (mut decoder, encapsulation) = Decoder::of_payload(payload)?;
    match (encapsulation.representation, encapsulation.extensibility) {
        (Representation::Xcdr2, Extensibility::Final) => body(&mut decoder),
        (Representation::Xcdr2, Extensibility::Appendable) => decoder.appendable_type(body),
        _ => Err(DecodeError::new(0, "a message of TypeLookup in XCDR2")),
    }
}

impl RequestIdentity {
    fn write(self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encoder.bytes(&self.writer);
        ((self.number >> 32) as i32).encode(encoder)?;
        (self.number as u32).encode(encoder)
    }

    fn read(decoder: &mut Decoder<'_>) -> Result<RequestIdentity, DecodeError> {
        let bytes = decoder.bytes(16, "a GUID")?;
        let writer = std::array::from_fn(|index| bytes[index]);
        let (high, low) = (i32::decode(decoder)?, u32::decode(decoder)?);
        Ok(RequestIdentity { writer, number: i64::from(high) << 32 | i64::from(low) })
    }
}

fn member<T: Encode>(id: u32, value: &T, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
    encoder.parameter(Member { id, must_understand: false }, LengthCode::Stated, |encoder| value.encode(encoder))
}

impl LookupRequest {
    /// The payload, with its encapsulation header.
    ///
    /// # Errors
    /// When it exceeds 2^32 bytes.
    pub fn to_payload(&self) -> Result<Vec<u8>, EncodeError> {
        payload(|encoder| {
            self.identity.write(encoder)?;
            self.instance.encode(encoder)?;
            encoder.appendable_type(|encoder| match &self.call {
                LookupCall::Types(types) => {
                    GET_TYPES.encode(encoder)?;
                    encoder.mutable_type(|encoder| member(TYPE_IDS, types, encoder))
                }
                LookupCall::Dependencies(types, from) => {
                    GET_DEPENDENCIES.encode(encoder)?;
                    encoder.mutable_type(|encoder| {
                        member(TYPE_IDS, types, encoder)?;
                        member(CONTINUATION_POINT, from, encoder)
                    })
                }
            })
        })
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// When it is no request.
    pub fn from_payload(payload: &[u8]) -> Result<LookupRequest, DecodeError> {
        read(payload, |decoder| {
            let identity = RequestIdentity::read(decoder)?;
            let instance = String::decode(decoder)?;
            let call = decoder.appendable_type(|decoder| {
                let at = decoder.offset();
                let kind = i32::decode(decoder)?;
                let (mut types, mut from) = (Vec::new(), Vec::new());
                decoder.mutable_type(|decoder, id| {
                    match id {
                        TYPE_IDS => types = Vec::decode(decoder)?,
                        CONTINUATION_POINT => from = read_continuation(decoder)?,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                match kind {
                    GET_TYPES => Ok(LookupCall::Types(types)),
                    GET_DEPENDENCIES => Ok(LookupCall::Dependencies(types, from)),
                    _ => Err(DecodeError::new(at, "a call of TypeLookup")),
                }
            })?;
            Ok(LookupRequest { identity, instance, call })
        })
    }
}

fn read_continuation(decoder: &mut Decoder<'_>) -> Result<Vec<u8>, DecodeError> {
    <Vec<u8> as thalweg_cdr::Bounded>::decode_bounded(decoder, CONTINUATION_MAX)
}

/// An identifier with the object that it names, whose bytes are kept as they are.
struct Pair(TypeIdentifier, Vec<u8>);

impl Layout for Pair {
    const MIN_BYTES: usize = 8;
}

impl Encode for Pair {
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        self.0.encode(encoder)?;
        encoder.align(4);
        encoder.bytes(&self.1);
        Ok(())
    }
}

impl Decode for Pair {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Pair, DecodeError> {
        let identifier = TypeIdentifier::decode(decoder)?;
        decoder.align(4);
        let (mut whole, start) = (decoder.clone(), decoder.offset());
        TypeObject::decode(decoder)?;
        let length = decoder.offset() - start;
        decoder.charge(length, 1)?;
        let bytes = whole.bytes(length, "a type object")?.to_vec();
        Ok(Pair(identifier, bytes))
    }

    fn default_value() -> Pair {
        Pair(TypeIdentifier::None, Vec::new())
    }
}

/// Two identifiers of one type.
struct Both(TypeIdentifier, TypeIdentifier);

impl Layout for Both {
    const MIN_BYTES: usize = 2;
}

impl Encode for Both {
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        self.0.encode(encoder)?;
        self.1.encode(encoder)
    }
}

impl Decode for Both {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Both, DecodeError> {
        Ok(Both(TypeIdentifier::decode(decoder)?, TypeIdentifier::decode(decoder)?))
    }

    fn default_value() -> Both {
        Both(TypeIdentifier::None, TypeIdentifier::None)
    }
}

impl LookupReply {
    /// The payload, with its encapsulation header.
    ///
    /// # Errors
    /// When it exceeds 2^32 bytes.
    pub fn to_payload(&self) -> Result<Vec<u8>, EncodeError> {
        payload(|encoder| {
            self.identity.write(encoder)?;
            i32::from(self.answer.is_none()).encode(encoder)?;
            encoder.appendable_type(|encoder| match &self.answer {
                Some(LookupAnswer::Types(types, pairs)) => {
                    GET_TYPES.encode(encoder)?;
                    let types: Vec<Pair> = types.iter().map(|(id, bytes)| Pair(id.clone(), bytes.clone())).collect();
                    let pairs: Vec<Both> = pairs.iter().map(|(one, other)| Both(one.clone(), other.clone())).collect();
                    result(encoder, |encoder| {
                        member(TYPES, &types, encoder)?;
                        member(COMPLETE_TO_MINIMAL, &pairs, encoder)
                    })
                }
                Some(LookupAnswer::Dependencies(types, next)) => {
                    GET_DEPENDENCIES.encode(encoder)?;
                    result(encoder, |encoder| {
                        member(DEPENDENT_TYPEIDS, types, encoder)?;
                        member(CONTINUATION_POINT, next, encoder)
                    })
                }
                None => 0_i32.encode(encoder),
            })
        })
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// When it is no reply.
    pub fn from_payload(payload: &[u8]) -> Result<LookupReply, DecodeError> {
        read(payload, |decoder| {
            let identity = RequestIdentity::read(decoder)?;
            if i32::decode(decoder)? != 0 {
                return Ok(LookupReply { identity, answer: None });
            }
            let answer = decoder.appendable_type(|decoder| {
                let kind = i32::decode(decoder)?;
                if kind != GET_TYPES && kind != GET_DEPENDENCIES {
                    return Ok(None);
                }
                decoder.appendable_type(|decoder| {
                    let is_fine = i32::decode(decoder)? == 0;
                    if is_fine { read_out(kind, decoder).map(Some) } else { Ok(None) }
                })
            })?;
            Ok(LookupReply { identity, answer })
        })
    }
}

/// The result of a call that succeeded.
fn result(
    encoder: &mut Encoder<'_>,
    write: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    encoder.appendable_type(|encoder| {
        0_i32.encode(encoder)?;
        encoder.mutable_type(write)
    })
}

fn read_out(kind: i32, decoder: &mut Decoder<'_>) -> Result<LookupAnswer, DecodeError> {
    let (mut types, mut pairs): (Vec<Pair>, Vec<Both>) = Default::default();
    let (mut dependent, mut next) = (Vec::new(), Vec::new());
    decoder.mutable_type(|decoder, id| {
        match id {
            TYPES => types = Vec::decode(decoder)?,
            COMPLETE_TO_MINIMAL => pairs = Vec::decode(decoder)?,
            DEPENDENT_TYPEIDS => dependent = Vec::decode(decoder)?,
            CONTINUATION_POINT => next = read_continuation(decoder)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(match kind {
        GET_TYPES => LookupAnswer::Types(
            types.into_iter().map(|Pair(id, bytes)| (id, bytes)).collect(),
            pairs.into_iter().map(|Both(one, other)| (one, other)).collect(),
        ),
        _ => LookupAnswer::Dependencies(dependent, next),
    })
}
