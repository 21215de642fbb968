//! Representations: the encoding of a resource in a response, and the decoding of a payload.

use std::time::Duration;

use thalweg_types::document::{Document, octets};

use crate::device::{Unit, Value, ValueKind};
use crate::message::{ETag, OptionNumber, Response, content_format};
use crate::resource::ResourceError;
use crate::senml::{self, SenmlRecord};

/// The formats of readings; the first is the default.
pub const READING_FORMATS: [u16; 5] = [
    content_format::TEXT,
    content_format::JSON,
    content_format::CBOR,
    content_format::SENML_JSON,
    content_format::SENML_CBOR,
];

/// A resource as a response carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceRepresentation {
    /// The payload's format, by its number (RFC 7252 §12.3); `None` where another thing does not say.
    pub content_format: Option<u16>,
    /// The payload.
    pub payload: Vec<u8>,
    /// Time for which it stays fresh.
    pub max_age: Duration,
    /// Options of another thing's response that have no field of their own, for those who pass it on.
    pub options: Vec<(OptionNumber, Vec<u8>)>,
}

impl ResourceRepresentation {
    /// A payload in a format that stays fresh for so long.
    pub fn new(content_format: u16, payload: Vec<u8>, max_age: Duration) -> ResourceRepresentation {
        ResourceRepresentation { content_format: Some(content_format), payload, max_age, options: Vec::new() }
    }

    /// A response that has it.
    pub(crate) fn into_response(self) -> Response {
        let content_format = self.content_format;
        Response { content_format, ..Response::content(self.payload, content_format::TEXT) }
    }

    /// An entity tag that differs when the payload or its format does (RFC 7252 §5.10.6).
    pub fn etag(&self) -> ETag {
        let format = self.content_format.unwrap_or(u16::MAX).to_be_bytes();
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
        ETag::from_u64(format.iter().chain(&self.payload).fold(FNV_OFFSET, mix))
    }

    /// The value and the symbol of its unit, where the format has one; the reverse of [`of_value`].
    ///
    /// # Errors
    /// When the payload is not a value in its format.
    pub fn value(&self) -> Result<(Value, String), ResourceError> {
        let bad = |reason: String| ResourceError::BadAnswer(reason);
        // A payload without a format is guessed to be what people type (RFC 7252 §5.5.1).
        let content_format = self.content_format.unwrap_or(content_format::TEXT);
        let document = match content_format {
            content_format::TEXT => {
                let text = std::str::from_utf8(&self.payload).map_err(|_| bad("the text is not UTF-8".to_owned()))?;
                return Ok((value_of_text(text), String::new()));
            }
            content_format::OCTET_STREAM => return Ok((Value::Bytes(self.payload.clone()), String::new())),
            content_format::SENML_JSON | content_format::SENML_CBOR => {
                let records = senml::parse(content_format, &self.payload).map_err(|error| bad(error.to_string()))?;
                let first = records.into_iter().find_map(|record| Some((record.value?, record.unit)));
                return first.ok_or_else(|| bad("the answer holds no value".to_owned()));
            }
            _ => document(content_format, &self.payload).map_err(|error| bad(error.to_string()))?,
        };
        let value = document.member("value").and_then(value_of_document);
        let unit = match document.member("unit") {
            Some(Document::Text(symbol)) => symbol.clone(),
            _ => String::new(),
        };
        value.map(|value| (value, unit)).ok_or_else(|| bad("the answer holds no value".to_owned()))
    }
}

/// The first of `offered` that `accept` allows.
///
/// # Errors
/// [`ResourceError::NotAcceptable`] when there is none.
pub fn negotiate(offered: &[u16], accept: Option<u16>) -> Result<u16, ResourceError> {
    let chosen = match accept {
        None => offered.first(),
        Some(accept) => offered.iter().find(|format| **format == accept),
    };
    chosen.copied().ok_or(ResourceError::NotAcceptable)
}

/// A reading in one of [`READING_FORMATS`]; `name` is what SenML calls it.
///
/// # Errors
/// [`ResourceError::NotAcceptable`] for any other format.
pub fn of_value(format: u16, name: &str, value: &Value, unit: Unit) -> Result<Vec<u8>, ResourceError> {
    let content = |value: &Value| match value {
        Value::Boolean(value) => Document::Boolean(*value),
        Value::Integer(value) => Document::Integer(i128::from(*value)),
        Value::Real(value) => Document::Real(*value),
        Value::Text(text) => Document::Text(text.clone()),
        Value::Bytes(bytes) => Document::Bytes(bytes.clone()),
    };
    let symbol = Document::Text(unit.symbol().to_owned());
    let has_unit = !unit.symbol().is_empty();
    let written = match format {
        content_format::TEXT => return Ok(value.to_string().into_bytes()),
        content_format::JSON | content_format::CBOR => {
            let mut members = vec![("value".into(), content(value))];
            members.extend(has_unit.then_some(("unit".into(), symbol)));
            let document = Document::Map(members);
            if format == content_format::JSON { document.to_json() } else { document.to_cbor() }
        }
        content_format::SENML_JSON | content_format::SENML_CBOR => {
            let record = SenmlRecord::new(senml_name(name), unit.symbol(), value.clone());
            return senml::encode(format, &[record]).map_err(|error| ResourceError::Failed(error.to_string()));
        }
        _ => return Err(ResourceError::NotAcceptable),
    };
    written.map_err(|error| ResourceError::Failed(error.to_string()))
}

/// The value of this kind that a payload means: text, or a JSON or CBOR value, alone or as the member `value`.
///
/// # Errors
/// [`ResourceError::UnsupportedFormat`] or [`ResourceError::BadRequest`].
pub fn to_value(format: Option<u16>, payload: &[u8], kind: ValueKind) -> Result<Value, ResourceError> {
    let format = format.unwrap_or(content_format::TEXT);
    let bad = |reason: String| ResourceError::BadRequest(reason);
    let value = match format {
        content_format::OCTET_STREAM => Some(Value::Bytes(payload.to_vec())),
        content_format::TEXT => {
            let text = std::str::from_utf8(payload).map_err(|_| bad("the text is not UTF-8".to_owned()))?;
            Some(if kind == ValueKind::Text { Value::Text(text.to_owned()) } else { value_of_text(text.trim()) })
        }
        content_format::SENML_JSON | content_format::SENML_CBOR => {
            // The link that it is sent to names what has no name.
            let mut records = senml::parse_for("value", format, payload).map_err(|error| bad(error.to_string()))?;
            if records.len() != 1 {
                return Err(bad(format!("a pack of one record is needed, not of {}", records.len())));
            }
            records.pop().and_then(|record| record.value)
        }
        _ => {
            let document = document(format, payload)?;
            let inner = document.member("value").unwrap_or(&document);
            value_of_document(inner)
        }
    };
    let given = value.ok_or_else(|| bad(format!("a {kind} is needed")))?;
    let given = match (given, kind) {
        (Value::Text(text), ValueKind::Bytes) => octets(&text).map_or(Value::Text(text), Value::Bytes),
        (given, _) => given,
    };
    let found = given.kind();
    given.into_kind(kind).ok_or_else(|| bad(format!("a {kind} is needed, not a {found}")))
}

/// A document in JSON or CBOR.
///
/// # Errors
/// [`ResourceError::UnsupportedFormat`] for other formats, [`ResourceError::BadRequest`] when it cannot be read.
pub fn document(format: u16, payload: &[u8]) -> Result<Document, ResourceError> {
    let read = match format {
        content_format::JSON => Document::from_json(payload),
        content_format::CBOR => Document::from_cbor(payload),
        _ => return Err(ResourceError::UnsupportedFormat),
    };
    read.map_err(|error| ResourceError::BadRequest(error.to_string()))
}

/// A path as SenML can name it: letters that names do not have become `_` (RFC 8428 §4.5.1).
pub fn senml_name(path: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-:./_".contains(letter) { letter } else { '_' };
    let name: String = path.chars().map(plain).collect();
    if name.starts_with(|first: char| first.is_ascii_alphanumeric()) { name } else { format!("x{name}") }
}

fn value_of_text(text: &str) -> Value {
    match text {
        "true" | "on" => return Value::Boolean(true),
        "false" | "off" => return Value::Boolean(false),
        _ => {}
    }
    let whole = text.parse().ok().map(Value::Integer);
    let number = whole.or_else(|| text.parse().ok().map(Value::Real));
    number.unwrap_or_else(|| octets(text).map_or_else(|| Value::Text(text.to_owned()), Value::Bytes))
}

fn value_of_document(document: &Document) -> Option<Value> {
    match document {
        Document::Boolean(value) => Some(Value::Boolean(*value)),
        Document::Integer(number) => i64::try_from(*number).ok().map(Value::Integer),
        Document::Real(number) => Some(Value::Real(*number)),
        Document::Text(text) => Some(Value::Text(text.clone())),
        Document::Bytes(bytes) => Some(Value::Bytes(bytes.clone())),
        Document::Null | Document::Array(_) | Document::Numbers(_) | Document::Map(_) => None,
    }
}

// The 64-bit FNV-1a hash.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    fn representation(format: u16, value: &Value) -> ResourceRepresentation {
        let payload = of_value(format, "t", value, Unit::CELSIUS).expect("written");
        ResourceRepresentation::new(format, payload, Duration::ZERO)
    }

    #[test]
    fn every_kind_of_value_survives_every_format() {
        let values = [
            Value::Boolean(true),
            Value::Integer(-7),
            Value::Real(21.5),
            Value::Text("warm".to_owned()),
            Value::Bytes(vec![0, 255]),
        ];
        for value in &values {
            for format in READING_FORMATS {
                let sent = representation(format, value);
                let (got, unit) = sent.value().expect("read");
                match value {
                    // JSON has no octets.
                    Value::Bytes(_) if format == content_format::JSON => {
                        assert_eq!(got, Value::Text("0x00ff".to_owned()))
                    }
                    _ => assert_eq!(&got, value, "{format:?}"),
                }
                assert_eq!(unit, if format == content_format::TEXT { "" } else { "Cel" });
                let put = to_value(Some(format), &sent.payload, value.kind());
                assert_eq!(put.as_ref(), Ok(value), "{format:?}");
            }
        }
    }

    #[test]
    fn senml_is_that_of_the_standard() {
        let json = of_value(content_format::SENML_JSON, "urn:x", &Value::Real(23.5), Unit::CELSIUS).expect("written");
        assert_eq!(String::from_utf8(json).expect("text"), r#"[{"n":"urn:x","u":"Cel","v":23.5}]"#);
        let cbor = of_value(content_format::SENML_CBOR, "x", &Value::Boolean(true), Unit::NONE).expect("written");
        assert_eq!(cbor, [0x81, 0xa2, 0x00, 0x61, b'x', 0x04, 0xf5]);
    }

    #[track_caller]
    fn put(format: Option<u16>, payload: &str, kind: ValueKind, expect: Result<Value, ResourceError>) {
        assert_eq!(to_value(format, payload.as_bytes(), kind), expect, "{payload}");
    }

    #[test]
    fn a_payload_means_the_value_that_the_resource_takes() {
        put(None, " 21 ", ValueKind::Real, Ok(Value::Real(21.0)));
        put(None, "on", ValueKind::Boolean, Ok(Value::Boolean(true)));
        put(None, "on", ValueKind::Text, Ok(Value::Text("on".to_owned())));
        put(None, "0x0a", ValueKind::Bytes, Ok(Value::Bytes(vec![10])));
        put(Some(content_format::JSON), "1", ValueKind::Boolean, Ok(Value::Boolean(true)));
        put(Some(content_format::JSON), r#"{"value":1.5}"#, ValueKind::Real, Ok(Value::Real(1.5)));
        let needed = "a number is needed, not a text".to_owned();
        put(None, "warm", ValueKind::Real, Err(ResourceError::BadRequest(needed)));
        let senml = Some(content_format::SENML_JSON);
        put(senml, r#"[{"n":"x","bv":20,"v":1.5}]"#, ValueKind::Real, Ok(Value::Real(21.5)));
        put(senml, r#"[{"vb":true}]"#, ValueKind::Boolean, Ok(Value::Boolean(true)));
        let refused = |payload: &str| {
            assert!(
                matches!(to_value(senml, payload.as_bytes(), ValueKind::Real), Err(ResourceError::BadRequest(_))),
                "{payload}"
            )
        };
        for payload in
            ["1", "[]", "[1]", r#"{"v":1}"#, r#"[{"v":1},{"v":2}]"#, r#"[{"v":1,"x_":0}]"#, r#"[{"bv":"a","v":1}]"#]
        {
            refused(payload);
        }
        put(Some(9999), "1", ValueKind::Real, Err(ResourceError::UnsupportedFormat));
        let no_value = ResourceError::BadRequest("a number is needed".to_owned());
        put(Some(content_format::JSON), "[1]", ValueKind::Real, Err(no_value));
        put(Some(content_format::SENML_JSON), r#"[{"n":"a","v":1}]"#, ValueKind::Real, Ok(Value::Real(1.0)));
        let two = ResourceError::BadRequest("a pack of one record is needed, not of 2".to_owned());
        put(Some(content_format::SENML_JSON), r#"[{"bn":"a","v":1},{"v":2}]"#, ValueKind::Real, Err(two));
    }

    #[test]
    fn a_tag_differs_with_payload_and_format() {
        let tags = [(0, "1"), (0, "2"), (50, "1")].map(|(format, payload)| {
            let payload = payload.as_bytes().to_vec();
            ResourceRepresentation::new(format, payload, Duration::ZERO).etag()
        });
        assert_ne!(tags[0], tags[1]);
        assert_ne!(tags[0], tags[2]);
    }
}
