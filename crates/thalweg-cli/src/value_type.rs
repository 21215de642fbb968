//! Values of topics as people type and read them, whatever their type.

use std::sync::Arc;

use thalweg::cdr::{DecodeError, EncodeError, Representation};
use thalweg::qos::{self, WriterQos};
use thalweg::types::{KeyHash, Keyed};
use thalweg::{DomainParticipant, KeyOf, Raw, Sample, Topic, Type};
use thalweg_recording::instance::{instance_of, serialized_key};
use thalweg_types::Types;
use thalweg_types::codec::{self, SampleType};
use thalweg_types::document::{Document, MapKey, hexadecimal, octets};

use crate::commands::topic::find::sample_type;
use crate::commands::topic::text::flow;
use crate::outcome::Failure;

/// A type of samples, and how a value of it looks in a line.
#[derive(Clone, Debug)]
pub struct ValueType {
    /// Its name on the wire.
    name: String,
    of: Type,
    form: Form,
}

/// How a value is written besides as a JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The text itself: ROS 2's `std_msgs/msg/String`, so that its nodes understand it on topics `rt/…`.
    Text,
    /// Text, `0x…` or `@FILE`.
    Octets,
    /// `color,x,y,size`: the type of the shapes demonstration of every DDS vendor.
    Shape,
    /// In no other way.
    Members,
}

impl ValueType {
    /// The type of this name on the wire.
    ///
    /// # Errors
    /// When it is neither structure nor union.
    pub fn new(name: &str, of: Type) -> Result<ValueType, Failure> {
        sample_type(&of)?;
        let form = match name {
            TEXT => Form::Text,
            OCTETS => Form::Octets,
            SHAPE => Form::Shape,
            _ => Form::Members,
        };
        Ok(ValueType { name: name.to_owned(), of, form })
    }

    /// The type of texts, which those mean who name none.
    pub fn text() -> ValueType {
        ValueType::known(TEXT).expect("a type that this command knows")
    }

    /// The type of this name on the wire that needs no description.
    pub fn known(name: &str) -> Option<ValueType> {
        let of = Types::default().find_type(name)?.clone();
        ValueType::new(name, of).ok()
    }

    /// Its name on the wire.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its topics have instances.
    pub fn is_keyed(&self) -> bool {
        self.sampled().is_keyed()
    }

    fn sampled(&self) -> SampleType<'_> {
        SampleType::of(&self.of).expect("looked at when it was made")
    }

    /// The topic of this name, whose type others are told.
    ///
    /// # Errors
    /// When the type cannot be described.
    pub fn topic(&self, participant: &DomainParticipant, name: &str) -> Result<Topic<Raw>, Failure> {
        let keyed = if self.is_keyed() { Keyed::Yes } else { Keyed::No };
        let of = self.of.clone();
        let key_of: KeyOf = Arc::new(move |bytes, kind| instance_of(&of, bytes, kind));
        let topic = participant.create_raw_topic(name, &self.name, keyed, self.is_keyed().then_some(key_of));
        topic.described_as(&self.of).map_err(Failure::from_cause)
    }

    /// The value that a text means.
    ///
    /// # Errors
    /// The text is no value of the type; the error says what is expected.
    pub fn parse(&self, text: &str) -> Result<Document, String> {
        if text.trim_start().starts_with('{') {
            let value = Document::from_json(text.as_bytes()).map_err(|error| format!("{text:?} is {error}"))?;
            return if self.form == Form::Octets { with_octets(value) } else { Ok(value) };
        }
        match self.form {
            Form::Text => Ok(map([("data", Document::Text(text.to_owned()))])),
            Form::Octets => Ok(map([("data", Document::Bytes(octets_of(text)?))])),
            Form::Shape => shape_of(text),
            Form::Members => Err(format!("{text:?} is no {}; give a JSON object with its members", self.name)),
        }
    }

    /// The bytes of a value; members that it leaves out have their default, but for those of the key.
    ///
    /// # Errors
    /// The first member that does not fit, and why.
    pub fn encode(&self, value: Document, representation: Representation) -> Result<Vec<u8>, EncodeError> {
        codec::encode(self.sampled(), &codec::completed(self.sampled(), value), representation)
    }

    /// The instance of a value, and the bytes of its key.
    ///
    /// # Errors
    /// The first member of the key that does not fit, and why.
    pub fn encode_key(
        &self,
        value: &Document,
        representation: Representation,
    ) -> Result<(KeyHash, Vec<u8>), EncodeError> {
        let key = codec::encode_key(self.sampled(), value, representation)?;
        Ok((KeyHash(codec::key_hash(self.sampled(), value)?), key))
    }

    /// The value of a sample; of one without value the key of the instance that has ended, `None` where that is not known.
    ///
    /// # Errors
    /// The place at which the bytes are no value of the type, and the expected content.
    pub fn value_of(&self, sample: &Sample<Raw>) -> Result<Option<Document>, DecodeError> {
        if sample.is_valid() {
            return codec::decode(self.sampled(), sample.bytes()).map(Some);
        }
        let key = serialized_key(Some(&self.of), sample.bytes(), sample.bytes_kind());
        Ok(key.and_then(|key| codec::decode_key(self.sampled(), &key).ok()))
    }

    /// The value in one line.
    pub fn to_text(&self, value: &Document) -> String {
        let text = match self.form {
            Form::Text => value.member("data").and_then(|data| match data {
                Document::Text(text) => Some(text.clone()),
                _ => None,
            }),
            Form::Octets => value.member("data").and_then(shown_octets),
            Form::Shape => shown_shape(value),
            Form::Members => None,
        };
        // A stranger's type may have the name and other members.
        text.unwrap_or_else(|| flow(value))
    }
}

/// The encoding that a writer of this QoS offers.
pub fn representation(qos: &WriterQos) -> Representation {
    match qos.data_representation.first() {
        Some(qos::Representation::Xcdr2) => Representation::Xcdr2,
        _ => Representation::Xcdr1,
    }
}

/// The name on the wire of a type that the user names: some have a short one.
pub fn wire_name(given: &str) -> &str {
    let known = SHORT_NAMES.iter().find(|(short, _)| short.eq_ignore_ascii_case(given));
    known.map_or(given, |(_, name)| name)
}

fn map<const N: usize>(members: [(&str, Document); N]) -> Document {
    Document::Map(members.into_iter().map(|(name, value)| (MapKey::Text(name.into()), value)).collect())
}

/// The octets of a JSON object may be written as those of a line.
fn with_octets(value: Document) -> Result<Document, String> {
    let Document::Map(members) = value else { return Ok(value) };
    let convert = |(key, value)| match value {
        Document::Text(text) => Ok((key, Document::Bytes(octets_of(&text)?))),
        other => Ok((key, other)),
    };
    members.into_iter().map(convert).collect::<Result<_, String>>().map(Document::Map)
}

fn octets_of(text: &str) -> Result<Vec<u8>, String> {
    match text.strip_prefix('@') {
        Some(path) => std::fs::read(path).map_err(|error| format!("the file {path:?} cannot be read: {error}")),
        None if text.starts_with("0x") => {
            octets(text).ok_or_else(|| format!("{text} is no even number of hexadecimal digits"))
        }
        None => Ok(text.as_bytes().to_vec()),
    }
}

fn shown_octets(data: &Document) -> Option<String> {
    let Document::Bytes(bytes) = data else { return None };
    let shown = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
    let more = if shown.len() < bytes.len() { "…" } else { "" };
    Some(format!("{} bytes {}{more}", bytes.len(), hexadecimal(shown)))
}

fn shape_of(text: &str) -> Result<Document, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let [color, x, y, size] = parts[..] else {
        return Err(format!("{text:?} is no shape; give color,x,y,size such as RED,10,20,30, or a JSON object"));
    };
    let number = |name: &str, text: &str| {
        let number: Result<i32, String> =
            text.parse().map_err(|_| format!("{name} is {text:?}; a whole number of 32 bits is needed"));
        number.map(|number| Document::Integer(number.into()))
    };
    let (x, y, size) = (number("x", x)?, number("y", y)?, number("size", size)?);
    Ok(map([("color", Document::Text(color.to_owned())), ("x", x), ("y", y), ("shapesize", size)]))
}

fn shown_shape(value: &Document) -> Option<String> {
    let Some(Document::Text(color)) = value.member("color") else { return None };
    let number = |name: &str| match value.member(name) {
        Some(Document::Integer(number)) => Some(*number),
        _ => None,
    };
    Some(format!("{color},{},{},{}", number("x")?, number("y")?, number("shapesize")?))
}

/// DDS type of ROS 2's `std_msgs/msg/String`.
const TEXT: &str = "std_msgs::msg::dds_::String_";
const OCTETS: &str = "thalweg::Bytes";
const SHAPE: &str = "ShapeType";
/// Short names of types, in any case.
pub const SHORT_NAMES: [(&str, &str); 4] =
    [("string", TEXT), ("bytes", OCTETS), ("ShapeType", SHAPE), ("shape", SHAPE)];
/// Bytes of a value that fit a line of text.
const SHOWN_BYTES_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use thalweg_types::type_object::describe;

    use super::*;

    fn of(name: &str) -> ValueType {
        ValueType::known(wire_name(name)).expect("a type that this command knows")
    }

    /// Checks that `text` means the value that prints as `expect`, and that the JSON of it means the same; or that it is refused with a
    /// text of that part.
    #[track_caller]
    fn check(name: &str, text: &str, expect: Result<&str, &str>) {
        let of = of(name);
        let encoded = |text: &str| {
            of.parse(text).and_then(|value| of.encode(value, Representation::Xcdr1).map_err(|error| error.to_string()))
        };
        match (encoded(text), expect) {
            (Ok(bytes), Ok(shown)) => {
                let value = codec::decode(of.sampled(), &bytes).expect("a value of the type");
                assert_eq!(of.to_text(&value), shown, "{text}");
                let json = String::from_utf8(value.to_json().expect("JSON")).expect("UTF-8");
                assert_eq!(encoded(&json), Ok(bytes), "back from {json}");
            }
            (Err(error), Err(part)) => assert!(error.contains(part), "{part:?} not in {error:?}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[derive(thalweg::Topic)]
    #[topic(name = "std_msgs::msg::dds_::String_", extensibility = "final")]
    struct DerivedText {
        data: String,
    }

    #[derive(thalweg::Topic)]
    #[topic(name = "thalweg::Bytes", extensibility = "final")]
    struct DerivedOctets {
        data: Vec<u8>,
    }

    #[derive(thalweg::Topic)]
    #[topic(name = "ShapeType", extensibility = "appendable")]
    struct DerivedShape {
        #[topic(key, max_len = 128)]
        color: String,
        x: i32,
        y: i32,
        shapesize: i32,
    }

    /// Programs have these types as derived ones, which a reader that compares types has to take for the same.
    #[test]
    fn known_types_are_those_that_programs_derive() {
        fn check<T: thalweg::TopicType>(name: &str) {
            let derived = describe(&T::description().expect("described")).expect("described").information;
            let known = describe(&of(name).of).expect("described").information;
            assert_eq!(known.complete.of, derived.complete.of, "{name}");
        }
        check::<DerivedText>("string");
        check::<DerivedOctets>("bytes");
        check::<DerivedShape>("ShapeType");
    }

    #[test]
    fn shapes_are_lists_or_objects() {
        check("ShapeType", "RED,10,-20,30", Ok("RED,10,-20,30"));
        check("shape", r#"{"color":"RED","x":10,"y":-20,"shapesize":30}"#, Ok("RED,10,-20,30"));
        check("shape", r#"{"color":"RED","x":10}"#, Ok("RED,10,0,0"));
        check("shape", "RED,10,20", Err("give color,x,y,size"));
        check("shape", "RED,10,20,huge", Err("size is \"huge\""));
        check("shape", r#"{"colour":"RED","x":1,"y":2,"shapesize":3}"#, Err("did you mean \"color\""));
        check("shape", r#"{"x":1}"#, Err("\"color\" is missing"));
        check("shape", r#"{"color":"RED","x":3000000000}"#, Err("x: "));
        check("shape", &format!("{},1,2,3", "é".repeat(65)), Err("color: "));
    }

    #[test]
    fn text_is_itself_unless_it_is_an_object() {
        check("string", "hello, world", Ok("hello, world"));
        check("String", r#"{"data":"{braces}"}"#, Ok("{braces}"));
        check("string", "{braces}", Err("no JSON"));
    }

    #[test]
    fn octets_are_text_digits_or_a_file() {
        check("bytes", "hello", Ok("5 bytes 0x68656c6c6f"));
        check("bytes", "0x00ff10", Ok("3 bytes 0x00ff10"));
        check("bytes", r#"{"data":"hi"}"#, Ok("2 bytes 0x6869"));
        check("bytes", &"a".repeat(40), Ok(&format!("40 bytes 0x{}…", "61".repeat(32))));
        check("bytes", "0x0", Err("even number"));
        check("bytes", "0xgg", Err("even number"));
        check("bytes", "@/nonexistent", Err("cannot be read"));
        let path = std::env::temp_dir().join(format!("thalweg-value-{}", std::process::id()));
        std::fs::write(&path, [1, 2, 3]).expect("written");
        check("bytes", &format!("@{}", path.display()), Ok("3 bytes 0x010203"));
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn values_of_any_other_type_are_objects() {
        check("thalweg::things::Real", r#"{"value":1.5,"unit":"m"}"#, Ok(r#"{value: 1.5, unit: "m"}"#));
        check("thalweg::things::Real", "1.5", Err("no thalweg::things::Real; give a JSON object"));
    }

    #[test]
    fn a_strangers_type_of_a_known_name_is_shown_by_its_members() {
        let real = Types::default().find_type("thalweg::things::Real").expect("known").clone();
        let forged = ValueType::new(SHAPE, real).expect("a structure");
        let value = forged.parse(r#"{"value":2.5}"#).expect("a value");
        assert_eq!(forged.to_text(&value), "{value: 2.5}");
    }
}
