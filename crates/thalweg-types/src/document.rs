//! Documents: the tree of values that JSON and CBOR have in common.

mod numbers;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use minicbor::data::Type;
use minicbor::{Decoder, Encoder};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{self, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use numbers::Numbers;

/// A value of JSON (RFC 8259) or CBOR (RFC 8949).
///
/// JSON has no octets and no infinite numbers: octets are written as `"0x…"`, numbers that are none as `"NaN"`,
/// `"Infinity"` and `"-Infinity"`. A row of numbers equals an array of the same ones.
#[derive(Clone, Debug)]
pub enum Document {
    /// Nothing.
    Null,
    /// True or false.
    Boolean(bool),
    /// A whole number; CBOR has them from -2^64 to 2^64 - 1.
    Integer(i128),
    /// Any other number.
    Real(f64),
    /// Text.
    Text(String),
    /// Octets.
    Bytes(Vec<u8>),
    /// Values in order.
    Array(Vec<Document>),
    /// Numbers in order: an array of them as samples have it.
    Numbers(Numbers),
    /// Values by name, in the order of the text; SenML's CBOR names are whole numbers.
    Map(Vec<(MapKey, Document)>),
}

/// The name of a value in a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MapKey {
    /// As in JSON. The names of a type's members are shared by its samples.
    Text(Arc<str>),
    /// A label of CBOR.
    Label(i64),
}

/// Why bytes are no document, or a document cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError(String);

/// Deepest nesting of arrays and maps; chosen by us, above any data type in use and below what a thread's stack allows.
pub const NESTING_MAX: usize = 64;

impl Document {
    /// Reads JSON.
    ///
    /// # Errors
    /// When the bytes are not one JSON value, nest deeper than 127 levels, or have a name twice in one object.
    pub fn from_json(bytes: &[u8]) -> Result<Document, DocumentError> {
        serde_json::from_slice(bytes).map_err(|error| DocumentError(format!("no JSON: {error}")))
    }

    /// Writes JSON, the members of maps in their order.
    ///
    /// # Errors
    /// When a map has a label for a name, which JSON has not, or a whole number does not fit into 64 bits.
    pub fn to_json(&self) -> Result<Vec<u8>, DocumentError> {
        serde_json::to_vec(self).map_err(|error| DocumentError(error.to_string()))
    }

    /// Reads CBOR; tags are passed over.
    ///
    /// # Errors
    /// When the bytes are not one CBOR value, nest deeper than [`NESTING_MAX`], hold a value that documents do not have, or have a name
    /// twice in one map.
    pub fn from_cbor(bytes: &[u8]) -> Result<Document, DocumentError> {
        let mut decoder = Decoder::new(bytes);
        let document = of_cbor(&mut decoder, NESTING_MAX)?;
        if decoder.position() < bytes.len() {
            return Err(DocumentError(format!("bytes behind the CBOR value, from {}", decoder.position())));
        }
        Ok(document)
    }

    /// Writes CBOR, with lengths in front.
    ///
    /// # Errors
    /// When a whole number does not fit into 64 bits and a sign.
    pub fn to_cbor(&self) -> Result<Vec<u8>, DocumentError> {
        let mut bytes = Vec::new();
        into_cbor(self, &mut Encoder::new(&mut bytes))?;
        Ok(bytes)
    }

    /// The member of this name, if this is a map with one.
    pub fn member(&self, name: &str) -> Option<&Document> {
        let Document::Map(members) = self else { return None };
        let is_named = |key: &MapKey| matches!(key, MapKey::Text(text) if **text == *name);
        members.iter().find(|(key, _)| is_named(key)).map(|(_, value)| value)
    }

    /// The item at this place, if this is an array or a row of numbers or octets that long.
    pub fn item(&self, index: usize) -> Option<Cow<'_, Document>> {
        match self {
            Document::Array(items) => items.get(index).map(Cow::Borrowed),
            Document::Numbers(row) => row.get(index).map(Cow::Owned),
            Document::Bytes(bytes) => bytes.get(index).map(|byte| Cow::Owned(Document::Integer((*byte).into()))),
            _ => None,
        }
    }

    /// The items of an array or of a row of numbers or octets.
    pub fn items(&self) -> Option<impl Iterator<Item = Cow<'_, Document>>> {
        let count = match self {
            Document::Array(items) => items.len(),
            Document::Numbers(row) => row.len(),
            Document::Bytes(bytes) => bytes.len(),
            _ => return None,
        };
        Some((0..count).filter_map(|index| self.item(index)))
    }
}

impl PartialEq for Document {
    fn eq(&self, other: &Document) -> bool {
        match (self, other) {
            (Document::Null, Document::Null) => true,
            (Document::Boolean(one), Document::Boolean(other)) => one == other,
            (Document::Integer(one), Document::Integer(other)) => one == other,
            (Document::Real(one), Document::Real(other)) => one == other,
            (Document::Text(one), Document::Text(other)) => one == other,
            (Document::Bytes(one), Document::Bytes(other)) => one == other,
            (Document::Array(one), Document::Array(other)) => one == other,
            (Document::Map(one), Document::Map(other)) => one == other,
            (Document::Array(_) | Document::Numbers(_), Document::Array(_) | Document::Numbers(_)) => {
                self.items().into_iter().flatten().eq(other.items().into_iter().flatten())
            }
            _ => false,
        }
    }
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DocumentError {}

impl From<&str> for MapKey {
    fn from(name: &str) -> MapKey {
        MapKey::Text(name.into())
    }
}

/// Octets as text: `0x` and two digits each.
pub fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let mut text = String::with_capacity(2 + 2 * bytes.len());
    text.push_str("0x");
    text.extend(bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|half| char::from(DIGITS[usize::from(half)])));
    text
}

/// The octets of a text that [`hexadecimal`] made.
pub fn octets(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.is_ascii() && digits.len().is_multiple_of(2))?;
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Document, D::Error> {
        deserializer.deserialize_any(JsonValue)
    }
}

/// Takes the values of JSON one by one; its numbers are whole ones of 64 bits, or real.
struct JsonValue;

impl<'de> Visitor<'de> for JsonValue {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(Document::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Document, E> {
        Ok(Document::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Document, E> {
        Ok(Document::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Document, E> {
        Ok(Document::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Document, E> {
        Ok(Document::Real(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Document, E> {
        Ok(Document::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Document, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element()? {
            array.push(item);
        }
        Ok(Document::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Document, A::Error> {
        let (mut map, mut names) = (Vec::new(), BTreeSet::new());
        while let Some((name, value)) = members.next_entry::<String, Document>()? {
            if !names.insert(name.clone()) {
                // Which of the two counts, everybody decides otherwise (RFC 8259 §4).
                return Err(A::Error::custom(format!("the name {name:?} is there twice")));
            }
            map.push((MapKey::Text(name.into()), value));
        }
        Ok(Document::Map(map))
    }
}

/// As JSON: an error says what JSON has no form for.
impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Document::Null => serializer.serialize_unit(),
            Document::Boolean(value) => serializer.serialize_bool(*value),
            Document::Integer(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                (Ok(number), _) => serializer.serialize_i64(number),
                (_, Ok(number)) => serializer.serialize_u64(number),
                _ => Err(ser::Error::custom(too_large(*number))),
            },
            Document::Real(number) if number.is_finite() => serializer.serialize_f64(*number),
            Document::Real(number) if number.is_nan() => serializer.serialize_str("NaN"),
            Document::Real(number) => serializer.serialize_str(if *number > 0.0 { "Infinity" } else { "-Infinity" }),
            Document::Text(text) => serializer.serialize_str(text),
            Document::Bytes(bytes) => serializer.serialize_str(&hexadecimal(bytes)),
            Document::Array(items) => serializer.collect_seq(items),
            Document::Numbers(_) => serializer.collect_seq(self.items().into_iter().flatten()),
            Document::Map(members) => {
                let mut object = serializer.serialize_map(Some(members.len()))?;
                for (key, value) in members {
                    let MapKey::Text(name) = key else {
                        return Err(ser::Error::custom("a map with whole numbers for names is no JSON"));
                    };
                    object.serialize_entry(&**name, value)?;
                }
                object.end()
            }
        }
    }
}

fn of_cbor(decoder: &mut Decoder<'_>, depth: usize) -> Result<Document, DocumentError> {
    let kind = decoder.datatype().map_err(no_cbor)?;
    Ok(match kind {
        Type::Null | Type::Undefined => {
            decoder.skip().map_err(no_cbor)?;
            Document::Null
        }
        Type::Bool => Document::Boolean(decoder.bool().map_err(no_cbor)?),
        Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::Int => {
            Document::Integer(decoder.int().map_err(no_cbor)?.into())
        }
        Type::F16 => Document::Real(decoder.f16().map_err(no_cbor)?.into()),
        Type::F32 => Document::Real(decoder.f32().map_err(no_cbor)?.into()),
        Type::F64 => Document::Real(decoder.f64().map_err(no_cbor)?),
        Type::String => Document::Text(decoder.str().map_err(no_cbor)?.to_owned()),
        Type::StringIndef => {
            let parts = decoder.str_iter().map_err(no_cbor)?;
            Document::Text(parts.collect::<Result<String, _>>().map_err(no_cbor)?)
        }
        Type::Bytes => Document::Bytes(decoder.bytes().map_err(no_cbor)?.to_owned()),
        Type::BytesIndef => {
            let parts = decoder.bytes_iter().map_err(no_cbor)?;
            Document::Bytes(parts.collect::<Result<Vec<&[u8]>, _>>().map_err(no_cbor)?.concat())
        }
        Type::Array | Type::ArrayIndef => {
            let depth = deeper(depth)?;
            let count = decoder.array().map_err(no_cbor)?;
            let mut items = Vec::new();
            while !ended(decoder, count, items.len())? {
                items.push(of_cbor(decoder, depth)?);
            }
            Document::Array(items)
        }
        Type::Map | Type::MapIndef => {
            let depth = deeper(depth)?;
            let count = decoder.map().map_err(no_cbor)?;
            let mut members = Vec::new();
            while !ended(decoder, count, members.len())? {
                let key = match of_cbor(decoder, depth)? {
                    Document::Text(name) => MapKey::Text(name.into()),
                    Document::Integer(label) => MapKey::Label(i64::try_from(label).map_err(|_| too_large(label))?),
                    _ => return Err(DocumentError("a map with names that are neither text nor numbers".to_owned())),
                };
                members.push((key, of_cbor(decoder, depth)?));
            }
            refuse_twins(&members)?;
            Document::Map(members)
        }
        Type::Tag => {
            let depth = deeper(depth)?;
            decoder.tag().map_err(no_cbor)?;
            of_cbor(decoder, depth)?
        }
        other => return Err(DocumentError(format!("a CBOR item of type {other}, which means nothing here"))),
    })
}

/// Whether an array or map is complete; its mark of the end is passed over.
fn ended(decoder: &mut Decoder<'_>, count: Option<u64>, read: usize) -> Result<bool, DocumentError> {
    if let Some(count) = count {
        return Ok(read as u64 >= count);
    }
    let is_end = decoder.datatype().map_err(no_cbor)? == Type::Break;
    if is_end {
        decoder.skip().map_err(no_cbor)?;
    }
    Ok(is_end)
}

/// Which of two values of one name counts, everybody decides otherwise: such a map is not valid (RFC 8949 §5.6).
fn refuse_twins(members: &[(MapKey, Document)]) -> Result<(), DocumentError> {
    let mut names: Vec<&MapKey> = members.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]) {
        None => Ok(()),
        Some(MapKey::Text(name)) => Err(DocumentError(format!("the name {name:?} is there twice"))),
        Some(MapKey::Label(label)) => Err(DocumentError(format!("the name {label} is there twice"))),
    }
}

fn deeper(depth: usize) -> Result<usize, DocumentError> {
    depth.checked_sub(1).ok_or_else(|| DocumentError(format!("more than {NESTING_MAX} levels of nesting")))
}

fn into_cbor(document: &Document, encoder: &mut Encoder<&mut Vec<u8>>) -> Result<(), DocumentError> {
    match document {
        Document::Null => encoder.null().map(drop),
        Document::Boolean(value) => encoder.bool(*value).map(drop),
        Document::Integer(number) => {
            let number = minicbor::data::Int::try_from(*number).map_err(|_| too_large(*number))?;
            encoder.int(number).map(drop)
        }
        Document::Real(number) => encoder.f64(*number).map(drop),
        Document::Text(text) => encoder.str(text).map(drop),
        Document::Bytes(bytes) => encoder.bytes(bytes).map(drop),
        Document::Array(items) => {
            encoder.array(items.len() as u64).map_err(unwritable)?;
            return items.iter().try_for_each(|item| into_cbor(item, encoder));
        }
        Document::Numbers(row) => {
            encoder.array(row.len() as u64).map_err(unwritable)?;
            return document.items().into_iter().flatten().try_for_each(|item| into_cbor(&item, encoder));
        }
        Document::Map(members) => {
            encoder.map(members.len() as u64).map_err(unwritable)?;
            for (key, value) in members {
                match key {
                    MapKey::Text(name) => encoder.str(name),
                    MapKey::Label(label) => encoder.i64(*label),
                }
                .map_err(unwritable)?;
                into_cbor(value, encoder)?;
            }
            return Ok(());
        }
    }
    .map_err(unwritable)
}

fn no_cbor(error: minicbor::decode::Error) -> DocumentError {
    DocumentError(format!("no CBOR: {error}"))
}

fn unwritable(error: minicbor::encode::Error<std::convert::Infallible>) -> DocumentError {
    DocumentError(error.to_string())
}

fn too_large(number: i128) -> DocumentError {
    DocumentError(format!("{number} is too large a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that CBOR bytes mean what the JSON says, and that both are written and read back.
    #[track_caller]
    fn check(hex: &str, json: &str) {
        let bytes = octets(&format!("0x{hex}")).expect("digits");
        let document = Document::from_cbor(&bytes).expect("CBOR");
        assert_eq!(String::from_utf8(document.to_json().expect("JSON")).expect("text"), json, "{hex}");
        let again = Document::from_cbor(&document.to_cbor().expect("CBOR")).expect("CBOR");
        // As text, because NaN is not equal to itself.
        assert_eq!(format!("{again:?}"), format!("{document:?}"), "{hex}");
    }

    #[track_caller]
    fn refused(hex: &str, part: &str) {
        let error = Document::from_cbor(&octets(&format!("0x{hex}")).expect("digits")).expect_err("an error");
        assert!(error.to_string().contains(part), "{part:?} not in {error}");
    }

    #[test]
    fn examples_of_the_standard_are_understood() {
        // RFC 8949, Appendix A.
        check("00", "0");
        check("1bffffffffffffffff", "18446744073709551615");
        check("3903e7", "-1000");
        check("f93c00", "1.0");
        check("fb3ff199999999999a", "1.1");
        check("f97e00", "\"NaN\"");
        check("f9fc00", "\"-Infinity\"");
        check("f5", "true");
        check("f6", "null");
        check("c074323031332d30332d32315432303a30343a30305a", "\"2013-03-21T20:04:00Z\"");
        check("4401020304", "\"0x01020304\"");
        check("62c3bc", "\"ü\"");
        check("8301820203820405", "[1,[2,3],[4,5]]");
        check("a26161016162820203", "{\"a\":1,\"b\":[2,3]}");
        check("5f42010243030405ff", "\"0x0102030405\"");
        check("7f657374726561646d696e67ff", "\"streaming\"");
        check("9f018202039f0405ffff", "[1,[2,3],[4,5]]");
        check("bf61610161629f0203ffff", "{\"a\":1,\"b\":[2,3]}");
    }

    #[test]
    fn what_is_no_document_is_refused() {
        refused("", "no CBOR");
        refused("8301", "no CBOR");
        refused("0001", "bytes behind the CBOR value, from 1");
        refused("ff", "means nothing here");
        refused("a1f501", "neither text nor numbers");
        refused("a2616101616102", "the name \"a\" is there twice");
        refused("81bf020103020203ff", "the name 2 is there twice");
        refused("9bffffffffffffffff", "no CBOR");
        refused(&"81".repeat(NESTING_MAX + 1), "levels of nesting");
        refused(&"c1".repeat(NESTING_MAX + 1), "levels of nesting");
    }

    #[test]
    fn an_object_of_json_has_each_name_once_and_keeps_their_order() {
        let read = |json: &str| Document::from_json(json.as_bytes());
        let document = read(r#"{"b":[1,{"a":null}],"a":2.5}"#).expect("JSON");
        let inner = Document::Map(vec![("a".into(), Document::Null)]);
        let list = Document::Array(vec![Document::Integer(1), inner]);
        assert_eq!(document, Document::Map(vec![("b".into(), list), ("a".into(), Document::Real(2.5))]));
        let error = read(r#"{"a":{"b":1,"c":2,"b":1}}"#).expect_err("twice").to_string();
        assert_eq!(error, "no JSON: the name \"b\" is there twice at line 1 column 24");
        assert!(read(&"[".repeat(100_000)).is_err() && read("1 2").is_err() && read("").is_err());
    }

    #[test]
    fn json_has_members_in_their_order_and_rows_as_arrays() {
        let row = Document::Numbers(Numbers::Float32(vec![0.5, f32::NAN, f32::NEG_INFINITY]));
        let large = Document::Integer(u64::MAX.into());
        let octets = Document::Bytes(vec![0, 255]);
        let map = Document::Map(vec![("z".into(), row), ("a".into(), large), ("m".into(), octets)]);
        let json = String::from_utf8(map.to_json().expect("JSON")).expect("text");
        assert_eq!(json, r#"{"z":[0.5,"NaN","-Infinity"],"a":18446744073709551615,"m":"0x00ff"}"#);
        let error = Document::Array(vec![Document::Integer(1 << 64)]).to_json().expect_err("too large");
        assert_eq!(error.to_string(), "18446744073709551616 is too large a number");
    }

    #[test]
    fn labels_are_cbor_only() {
        let document = Document::from_cbor(&octets("0xa10201").expect("digits")).expect("CBOR");
        assert_eq!(document, Document::Map(vec![(MapKey::Label(2), Document::Integer(1))]));
        assert!(document.to_json().is_err());
    }

    #[test]
    fn json_keeps_whole_numbers_whole() {
        for json in ["9223372036854775807", "-9223372036854775808", "18446744073709551615", "0.1", "{\"b\":1}"] {
            let document = Document::from_json(json.as_bytes()).expect("JSON");
            assert_eq!(document.to_json().expect("JSON"), json.as_bytes());
        }
        assert!(Document::from_json(b"{").is_err());
        assert!(Document::from_json(&b"[".repeat(100_000)).is_err(), "no stack is deep enough");
    }
}
