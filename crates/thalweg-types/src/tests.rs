mod attributes;
mod hostile;
mod keys;
mod labels;
mod older_senders;
mod ranges;
mod recursive;

use std::collections::BTreeMap;

use thalweg_cdr::{self as cdr, Representation};
use thalweg_derive::Topic;

use super::*;
use crate::document::Document;

const IDL: &str = "
enum Color { RED, GREEN };
@bit_bound(8) enum Small { A, B };
@final struct Point { @key long y; @key long x; };
@mutable struct Options { @optional double scale; string label; };
@mutable struct Label { string label; };
@appendable struct Everything {
  @key string<20> name;
  Color color; Small small;
  @key Point at;
  Options options;
  sequence<Point> path; sequence<long, 3> numbers; sequence<uint8> raw; sequence<Color> colors;
  short grid[2][3]; Point corners[2]; char letter; wstring wide;
  boolean flag; int8 i8; uint8 u8; uint16 u16; uint32 u32; int64 i64; uint64 u64; float f; double d;
  @optional long maybe;
};
@final union Target switch (uint8) { case 1: double point[3]; case 2: case 3: string<32> name; default: Label other; };
@mutable union Choice switch (Color) { case RED: long a; case GREEN: string b; };
typedef string<4> Word; typedef sequence<Word, 3> Named;
@appendable struct Holder {
  @key Target target; Choice choice; map<string, Point> places; map<long, uint8> counts; Named name; @id(40) long z;
};
typedef string Pair[2];
@final struct Entry { @key uint8 a; long rest[9]; };
typedef float Vector[3];
@final struct Rows {
  @key sequence<Entry> entries; @key sequence<Entry, 2> few; sequence<Pair> pairs;
  sequence<Vector> vectors; map<long, Vector> by_number;
};
@mutable struct Boxes { sequence<Vector> vectors; @key sequence<Vector, 1> first; };
@final struct Keys { @key @id(3) uint8 c; @key @id(1) int64 a; @id(4) long rest; };
";

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr")]
enum Color {
    #[topic(name = "RED")]
    Red,
    #[topic(name = "GREEN")]
    Green,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr")]
#[topic(bit_bound = 8)]
enum Small {
    A,
    B,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr")]
#[topic(extensibility = "final")]
struct Point {
    #[topic(key)]
    y: i32,
    #[topic(key)]
    x: i32,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr")]
#[topic(extensibility = "mutable")]
struct Options {
    scale: Option<f64>,
    label: String,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr")]
#[topic(extensibility = "appendable")]
struct Everything {
    #[topic(key, max_len = 20)]
    name: String,
    color: Color,
    small: Small,
    #[topic(key)]
    at: Point,
    options: Options,
    path: Vec<Point>,
    #[topic(max_len = 3)]
    numbers: Vec<i32>,
    raw: Vec<u8>,
    colors: Vec<Color>,
    grid: [[i16; 3]; 2],
    corners: [Point; 2],
    letter: char,
    wide: cdr::WString,
    flag: bool,
    i8: i8,
    u8: u8,
    u16: u16,
    u32: u32,
    i64: i64,
    u64: u64,
    f: f32,
    d: f64,
    maybe: Option<i32>,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr")]
#[topic(extensibility = "final")]
struct Keys {
    #[topic(key, id = 3)]
    c: u8,
    #[topic(key, id = 1)]
    a: i64,
    #[topic(id = 4)]
    rest: i32,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr")]
struct Entry {
    #[topic(key)]
    a: u8,
    rest: [i32; 9],
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr")]
struct Rows {
    #[topic(key)]
    entries: Vec<Entry>,
    #[topic(key, max_len = 2)]
    few: Vec<Entry>,
    pairs: Vec<[String; 2]>,
    vectors: Vec<[f32; 3]>,
    by_number: BTreeMap<i32, [f32; 3]>,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr", extensibility = "mutable")]
struct Boxes {
    vectors: Vec<[f32; 3]>,
    #[topic(key, max_len = 1)]
    first: Vec<[f32; 3]>,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr", extensibility = "mutable")]
struct Label {
    label: String,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr", discriminator = u8)]
enum Target {
    #[topic(case = 1, name = "point")]
    Point([f64; 3]),
    #[topic(case = 2 | 3, name = "name")]
    Name(#[topic(max_len = 32)] String),
    #[topic(default, name = "other")]
    Other(Label),
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr", discriminator = Color, extensibility = "mutable")]
enum Choice {
    #[topic(case = Color::Red, name = "a")]
    A(i32),
    #[topic(case = Color::Green, name = "b")]
    B(String),
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr")]
struct Word(#[topic(max_len = 4)] String);

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr")]
struct Named(#[topic(max_len = 3)] Vec<Word>);

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr", extensibility = "appendable")]
struct Holder {
    #[topic(key)]
    target: Target,
    choice: Choice,
    places: BTreeMap<String, Point>,
    counts: BTreeMap<i32, u8>,
    name: Named,
    #[topic(id = 40)]
    z: i32,
}

fn holder(target: Target, choice: Choice) -> Holder {
    Holder {
        target,
        choice,
        places: BTreeMap::from([("home".to_owned(), Point { y: 1, x: 2 })]),
        counts: BTreeMap::from([(-1, 3), (4, 5)]),
        name: Named(vec![Word("w".to_owned())]),
        z: 9,
    }
}

fn everything() -> Everything {
    Everything {
        name: "n".to_owned(),
        color: Color::Green,
        small: Small::B,
        at: Point { y: 1, x: -2 },
        options: Options { scale: Some(0.5), label: "l".to_owned() },
        path: vec![Point { y: 3, x: 4 }, Point { y: 5, x: 6 }],
        numbers: vec![7, 8],
        raw: vec![9, 255],
        colors: vec![Color::Red],
        grid: [[1, 2, 3], [4, 5, 6]],
        corners: [Point { y: 0, x: 0 }, Point { y: 9, x: 9 }],
        letter: 'é',
        wide: cdr::WString("größe".to_owned()),
        flag: true,
        i8: -8,
        u8: 8,
        u16: 60_000,
        u32: 4_000_000_000,
        i64: i64::MIN,
        u64: u64::MAX,
        f: 0.25,
        d: -1e300,
        maybe: Some(11),
    }
}

const EVERYTHING: &str = r#"{"at":{"x":-2,"y":1},"color":"GREEN","colors":["RED"],"corners":[{"x":0,"y":0},{"x":9,"y":9}],"d":-1e+300,"f":0.25,"flag":true,"grid":[[1,2,3],[4,5,6]],"i64":-9223372036854775808,"i8":-8,"letter":"é","maybe":11,"name":"n","numbers":[7,8],"options":{"label":"l","scale":0.5},"path":[{"x":4,"y":3},{"x":6,"y":5}],"raw":"0x09ff","small":"B","u16":60000,"u32":4000000000,"u64":18446744073709551615,"u8":8,"wide":"größe"}"#;

fn structure(name: &str) -> std::sync::Arc<Structure> {
    let mut types = Types::default();
    types.add_idl(IDL).expect("IDL");
    std::sync::Arc::clone(types.find(name).expect("the type"))
}

/// A value of JSON, to which the order of members means nothing.
fn as_json(text: &[u8]) -> serde_json::Value {
    serde_json::from_slice(text).expect("JSON")
}

/// Checks that the derived and the dynamic type write the same bytes and hashes and read each other's.
#[track_caller]
fn check<T: cdr::Topic + Clone + std::fmt::Debug + PartialEq>(value: &T, json: &str, type_name: &str) {
    let structure = structure(type_name);
    let document = Document::from_json(json.as_bytes()).expect("JSON");
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut derived = Vec::new();
        cdr::encode(value, representation, &mut derived).expect("encoded");
        let read = codec::decode(&structure, &derived).unwrap_or_else(|error| panic!("{representation:?}: {error}"));
        let in_order = codec::encode(&structure, &read, representation).expect("encoded");
        assert_eq!(in_order, derived, "{representation:?}");
        assert_eq!(as_json(&read.to_json().expect("JSON")), as_json(json.as_bytes()), "{representation:?}");
        let dynamic = codec::encode(&structure, &document, representation).expect("encoded");
        let back: T = cdr::decode(&dynamic).unwrap_or_else(|error| panic!("{representation:?}: {error}"));
        assert_eq!(&back, value, "{representation:?}");
        let through_cbor = Document::from_cbor(&read.to_cbor().expect("CBOR")).expect("CBOR");
        assert_eq!(codec::encode(&structure, &through_cbor, representation).expect("encoded"), dynamic);
        for length in 0..derived.len() - 4 {
            // Whatever is cut off, it is an error or a value, and no panic.
            let _ = codec::decode(&structure, &derived[..length]);
        }
        if T::KEYED {
            let mut key = Vec::new();
            cdr::encode_key(value, representation, &mut key).expect("encoded");
            assert_eq!(codec::encode_key(&structure, &read, representation).expect("encoded"), key);
            let expect = cdr::key_hash(value).expect("hashed");
            assert_eq!(cdr::key_hash_of_payload::<T>(&key, true).expect("hashed"), expect, "{representation:?}");
            let key = codec::decode_key(&structure, &key).expect("decoded");
            assert_eq!(codec::key_hash(&structure, &key).expect("hashed"), expect, "{representation:?}");
            assert_eq!(codec::key_hash(&structure, &read).expect("hashed"), expect, "{representation:?}");
        }
    }
}

#[test]
fn dynamic_and_derived_types_understand_each_other() {
    check(&everything(), EVERYTHING, "Everything");
    let absent = Everything { maybe: None, options: Options { scale: None, label: String::new() }, ..everything() };
    let json = EVERYTHING.replace("\"maybe\":11,", "").replace(r#"{"label":"l","scale":0.5}"#, r#"{"label":""}"#);
    check(&absent, &json, "Everything");
    check(&Keys { c: 1, a: -2, rest: 3 }, r#"{"a":-2,"c":1,"rest":3}"#, "Keys");
    check(&Point { y: 1, x: 2 }, r#"{"x":2,"y":1}"#, "Point");
}

#[test]
fn rows_of_arrays_and_keys_in_rows_are_understood_as_the_derived_ones() {
    let entry = |a| Entry { a, rest: [7; 9] };
    let pairs = vec![["a".to_owned(), "bc".to_owned()], [String::new(), "d".to_owned()]];
    let json = r#"{"entries":[{"a":1,"rest":[7,7,7,7,7,7,7,7,7]},{"a":2,"rest":[7,7,7,7,7,7,7,7,7]}],"few":[{"a":3,"rest":[7,7,7,7,7,7,7,7,7]}],"pairs":[["a","bc"],["","d"]],"vectors":[[0.5,1.0,2.0],[-1.0,0.0,4.0]],"by_number":{"7":[1.0,2.0,3.0]}}"#;
    let vectors = vec![[0.5, 1.0, 2.0], [-1.0, 0.0, 4.0]];
    let by_number = BTreeMap::from([(7, [1.0, 2.0, 3.0])]);
    let (entries, few) = (vec![entry(1), entry(2)], vec![entry(3)]);
    check(&Rows { entries, few, pairs, vectors: vectors.clone(), by_number }, json, "Rows");
    let json = r#"{"vectors":[[0.5,1.0,2.0],[-1.0,0.0,4.0]],"first":[[0.5,1.0,2.0]]}"#;
    check(&Boxes { first: vectors[..1].to_vec(), vectors }, json, "Boxes");
}

#[test]
fn unions_maps_and_names_of_types_are_understood_as_the_derived_ones() {
    let rest = r#""counts":{"-1":3,"4":5},"name":["w"],"places":{"home":{"x":2,"y":1}}"#;
    let point = r#"{"$discriminator":1,"point":[0.5,1.0,-2.0]}"#;
    let json = format!(r#"{{"choice":{{"$discriminator":"RED","a":7}},{rest},"target":{point},"z":9}}"#);
    check(&holder(Target::Point([0.5, 1.0, -2.0]), Choice::A(7)), &json, "Holder");
    let name = r#"{"$discriminator":2,"name":"n"}"#;
    let json = format!(r#"{{"choice":{{"$discriminator":"GREEN","b":"c"}},{rest},"target":{name},"z":9}}"#);
    check(&holder(Target::Name("n".to_owned()), Choice::B("c".to_owned())), &json, "Holder");
    let other = r#"{"$discriminator":0,"other":{"label":"o"}}"#;
    let json = format!(r#"{{"choice":{{"$discriminator":"RED","a":0}},{rest},"target":{other},"z":9}}"#);
    check(&holder(Target::Other(Label { label: "o".to_owned() }), Choice::A(0)), &json, "Holder");
    refused(
        "Holder",
        &json.replace("\"$discriminator\":0", "\"$discriminator\":1"),
        "target: the discriminator selects \"point\", not \"other\"",
    );
    refused(
        "Holder",
        &json.replace("\"other\"", "\"others\""),
        "target: there is no member \"others\"; did you mean \"other\"? There are point, name, other",
    );
}

/// Checks that a derived type and one of the IDL are told to others by the same objects.
#[track_caller]
fn same_objects<T: cdr::Topic>(name: &str) {
    let reading = idl::Reading { extensibility: cdr::Extensibility::Final, ..idl::Reading::default() };
    let types = idl::parse_as(IDL, &reading).expect("IDL");
    let derived = T::description().expect("a description");
    let of_idl = types.find(name).expect("the type");
    let text = |found: &Type| idl::to_idl([found]);
    let [ours, theirs] = [&derived, of_idl].map(|found| type_object::describe(found).expect("described"));
    assert_eq!(ours, theirs, "{}\nand\n{}", text(&derived), text(of_idl));
}

#[test]
fn a_derived_type_has_the_type_objects_of_the_idl_that_it_corresponds_to() {
    same_objects::<Holder>("Holder");
    same_objects::<Keys>("Keys");
    same_objects::<Target>("Target");
    same_objects::<Options>("Options");
    same_objects::<Everything>("Everything");
}

#[test]
fn bytes_of_dynamic_types_are_those_of_derived_ones() {
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut derived = Vec::new();
        let keys = Keys { c: 1, a: -2, rest: 3 };
        cdr::encode(&keys, representation, &mut derived).expect("encoded");
        let document = Document::from_json(br#"{"c":1,"a":-2,"rest":3}"#).expect("JSON");
        assert_eq!(codec::encode(&structure("Keys"), &document, representation).expect("encoded"), derived);
    }
}

/// Checks what is said about a document that is no value of the type.
#[track_caller]
fn refused(type_name: &str, json: &str, expect: &str) {
    let document = Document::from_json(json.as_bytes()).expect("JSON");
    let error = codec::encode(&structure(type_name), &document, Representation::Xcdr1).expect_err("an error");
    assert_eq!(error.to_string(), expect);
}

#[test]
fn what_does_not_fit_is_named() {
    refused("ShapeType", r#"{"color":"RED","x":1,"y":2}"#, "the member \"shapesize\" is missing");
    let shape = |x: &str| format!(r#"{{"color":"RED","x":{x},"y":2,"shapesize":3}}"#);
    let range = "x: a whole number from -2147483648 to 2147483647 is needed, not";
    refused("ShapeType", &shape("1.5"), &format!("{range} 1.5"));
    refused("ShapeType", &shape("3000000000"), &format!("{range} 3000000000"));
    refused("ShapeType", &shape("null"), &format!("{range} nothing"));
    refused("ShapeType", r#"{"x":1}"#, "the key member \"color\" is missing");
    let misspelt = r#"{"color":"RED","x":1,"y":2,"shape_size":3}"#;
    let meant = "there is no member \"shape_size\"; did you mean \"shapesize\"? There are color, x, y, shapesize";
    refused("ShapeType", misspelt, meant);
    refused("Point", r#"{"x":1,"y":2,"z":3}"#, "there is no member \"z\"; did you mean \"x\"? There are y, x");
    refused("Point", "[1,2]", "an object with the members of Point is needed, not an array");
    let with = |from: &str, to: &str| {
        assert!(EVERYTHING.contains(from));
        EVERYTHING.replace(from, to)
    };
    refused("Everything", &with("\"n\"", "\"123456789012345678901\""), "name: 21 bytes, where 20 are allowed");
    let color = "one of RED (0), GREEN (1) is needed, not";
    refused("Everything", &with("\"GREEN\"", "\"BLUE\""), &format!("color: {color} \"BLUE\""));
    let meant = format!("color: {color} \"green\"; did you mean \"GREEN\"?");
    refused("Everything", &with("\"GREEN\"", "\"green\""), &meant);
    refused("Everything", &with("\"GREEN\"", "7"), &format!("color: {color} 7"));
    refused("Everything", &with("\"RED\"", "-1"), &format!("colors[0]: {color} -1"));
    refused("Everything", &with("[7,8]", "[7,8,9,10]"), "numbers: 4 elements, where 3 are allowed");
    refused("Everything", &with("[4,5,6]", "[4,5]"), "grid[1]: 2 elements, where there must be 3");
    refused("Everything", &with("{\"x\":6,\"y\":5}", "{\"x\":6}"), "path[1]: the key member \"y\" is missing");
    refused(
        "Everything",
        &with("{\"x\":9,\"y\":9}", "{\"x\":\"9\",\"y\":9}"),
        "corners[1].x: a whole number from -2147483648 to 2147483647 is needed, not \"9\"",
    );
    refused(
        "Everything",
        &with("\"l\"", "\"\\u0000\""),
        "options.label: the string contains a NUL, which ends strings on the wire",
    );
    refused("Everything", &with("\"é\"", "\"€\""), "letter: '€' is not in ISO 8859-1, which a char holds");
    refused("Everything", &with("0.25", "1e39"), "f: a number from -3.4028235e38 to 3.4028235e38 is needed, not 1e39");
    refused(
        "Everything",
        &with("18446744073709551615", "18446744073709551616"),
        "u64: a whole number from 0 to 18446744073709551615 is needed, not 1.8446744073709552e19",
    );
    refused(
        "Everything",
        &with("\"0x09ff\"", "\"09ff\""),
        "raw: an array, or octets as \"0x…\" is needed, not \"09ff\"",
    );
    let pairs = r#"{"choice":{"a":7},"counts":{"4":1,"04":2},"name":[],"places":{},"target":{"point":[1,2,3]},"z":9}"#;
    refused("Holder", pairs, "counts.04: the key is there twice");
    refused(
        "Holder",
        &pairs.replace("\"04\":2", "\"5\":256"),
        "counts.5: a whole number from 0 to 255 is needed, not 256",
    );
}

#[test]
fn numbers_are_understood_as_json_writes_them() {
    let document = Document::from_json(br#"{"value":"-Infinity","unit":""}"#).expect("JSON");
    let bytes = codec::encode(&structure("thalweg::things::Real"), &document, Representation::Xcdr1).expect("encoded");
    let read = codec::decode(&structure("thalweg::things::Real"), &bytes).expect("decoded");
    assert_eq!(read.member("value"), Some(&Document::Real(f64::NEG_INFINITY)));
    let document = Document::from_json(br#"{"x":2.0,"y":1}"#).expect("JSON");
    assert!(codec::encode(&structure("Point"), &document, Representation::Xcdr1).is_ok());
}

#[test]
fn of_a_key_that_is_there_twice_the_last_pair_counts() {
    let mut types = Types::default();
    types.add_idl("struct Counts { map<string, long> of; };").expect("IDL");
    let pair = |key: u8, value: u8| [2, 0, 0, 0, key, 0, 0, 0, value, 0, 0, 0];
    let pairs = [pair(b'a', 1), pair(b'b', 2), pair(b'a', 3)].concat();
    let bytes = [&[0, 1, 0, 0, 3, 0, 0, 0][..], &pairs].concat();
    let read = codec::decode(types.find("Counts").expect("the type"), &bytes).expect("decoded");
    assert_eq!(read.to_json().expect("JSON"), br#"{"of":{"b":2,"a":3}}"#);
}

#[test]
fn the_built_in_types_are_there() {
    let names: BTreeMap<String, ()> = Types::default().names().map(|name| (name.to_owned(), ())).collect();
    for name in ["ShapeType", "std_msgs::msg::dds_::String_", "thalweg::Bytes", "thalweg::things::Real"] {
        assert!(names.contains_key(name), "{name}");
    }
}
