//! What Cyclone DDS 11.0.1 makes of the same values (testdata/generate_cyclone.py).

use std::fmt::Debug;

use thalweg_cdr::{
    ByteOrder, Encapsulation, Encoder, Representation, Topic, decode, decode_key, encode, encode_key, key_hash,
    key_hash_of_payload,
};

use crate::types::*;

/// How far the bytes of XCDR1 can be compared.
#[derive(Clone, Copy, PartialEq)]
enum Xcdr1 {
    /// Byte for byte.
    Same,
    /// Cyclone writes every parameter with an extended header, which is legal; Thalweg writes the short one where it
    /// suffices. Each reads the other's.
    ExtendedHeaders,
    /// The Python binding writes enums with 4 bytes in XCDR1 whatever their bit bound; Cyclone's C library, which
    /// refuses to send that, and Thalweg write 1, 2 or 4.
    WideEnums,
}

#[test]
fn shapes() {
    let blue = ShapeType { color: "BLUE".into(), x: 10, y: -20, shapesize: 30, additional_payload_size: vec![] };
    check("blue", &blue, Xcdr1::Same);
    let payload =
        ShapeType { color: String::new(), x: 0, y: 0, shapesize: 1, additional_payload_size: vec![255, 254, 253] };
    check("payload", &payload, Xcdr1::Same);
}

#[test]
fn numbers() {
    let mixed = Numbers {
        a: true,
        b: 0x0102_0304_0506_0708,
        c: -2,
        d: -300,
        e: 200,
        f: -0.1,
        g: 'x',
        h: 60000,
        i: 3.5,
        j: -5,
        k: 4_000_000_000,
        l: -2_000_000_000,
    };
    check("mixed", &mixed, Xcdr1::Same);
}

#[test]
fn sequences() {
    let some = Sequences {
        bytes: vec![1, 2, 3],
        shorts: vec![-1, 300],
        longs: vec![4_000_000_000],
        doubles: vec![0.1, -0.2],
        bools: vec![true, false],
        texts: vec!["one".into(), String::new()],
        points: vec![Point { x: 1.0, y: 2.0 }, Point { x: 3.0, y: 4.0 }],
        notes: vec![note(1, "a"), note(2, "bc")],
        colors: vec![Color::Blue, Color::Red],
        nested: vec![vec![1, 2, 3], vec![], vec![4]],
        bounded: vec![-1, -2, -3],
    };
    check("some", &some, Xcdr1::Same);
    let none = Sequences {
        bytes: vec![],
        shorts: vec![],
        longs: vec![],
        doubles: vec![],
        bools: vec![],
        texts: vec![],
        points: vec![],
        notes: vec![],
        colors: vec![],
        nested: vec![],
        bounded: vec![],
    };
    check("none", &none, Xcdr1::Same);
}

#[test]
fn arrays() {
    let full = Arrays {
        bytes: [1, 2, 3],
        matrix: [[1, 2, 3], [4, 5, 6]],
        doubles: [0.5, 0.25],
        texts: ["a".into(), "bc".into()],
        grid: [["p".into(), "q".into()], ["r".into(), "s".into()]],
        points: [Point { x: 1.0, y: 2.0 }, Point { x: 3.0, y: 4.0 }],
        rows: vec![[1, 2, 3], [4, 5, 6]],
        last: 9,
    };
    check("full", &full, Xcdr1::Same);
}

#[test]
fn enums() {
    check("literals", &Enums { color: Color::Green, first: 1, second: Color::Blue }, Xcdr1::Same);
    let bounded = BoundedEnums {
        small: Small::Two,
        medium: Medium::Far,
        color: Color::Blue,
        smalls: vec![Small::One, Small::Two],
    };
    check("bounded", &bounded, Xcdr1::WideEnums);
}

#[test]
fn unions() {
    let branches = Unions {
        lead: 1,
        first: Choice::Number(-5),
        second: Choice::Text("two".into()),
        third: Choice::Other(77, 8),
        fourth: Growing::Note(note(4, "x")),
        fifth: vec![Growing::Point(Point { x: 0.5, y: 1.5 }), Growing::Note(note(1, ""))],
    };
    check("branches", &branches, Xcdr1::Same);
}

#[test]
fn optional_members() {
    let present = FinalOptionals {
        lead: 1,
        number: Some(2.5),
        text: Some("abc".into()),
        point: Some(Point { x: 1.0, y: 2.0 }),
        last: 7,
    };
    check("present", &present, Xcdr1::ExtendedHeaders);
    let absent = FinalOptionals { lead: 1, number: None, text: None, point: None, last: 7 };
    check("absent", &absent, Xcdr1::ExtendedHeaders);
    let half = AppendableOptionals { lead: 1, number: None, text: Some("t".into()), last: 7 };
    check("half", &half, Xcdr1::ExtendedHeaders);
}

#[test]
fn mutable_types() {
    check("members", &mutable(1), Xcdr1::ExtendedHeaders);
    let nested = Outer { lead: 5, inner: mutable(2), list: vec![mutable(3)], last: 6 };
    check("nested", &nested, Xcdr1::ExtendedHeaders);
    check("hashed", &Hashed { color: 1, shapesize: 2 }, Xcdr1::ExtendedHeaders);
}

#[test]
fn keys() {
    let short = ShortKey { data: "data".into(), id: 7, number: 0x1122_3344_5566_7788, rest: vec!["a".into()] };
    check("short", &short, Xcdr1::Same);
    let inner = NestedKey {
        lead: 1,
        inner: Inner { ignored: "no".into(), group: 515 },
        point: Point { x: 1.5, y: 2.5 },
        last: "end".into(),
    };
    check("inner", &inner, Xcdr1::Same);
    check("mutable", &MutableKey { late: 0x0102_0304, text: "text".into(), early: 5 }, Xcdr1::ExtendedHeaders);
    check("unordered", &UnorderedKey { late: 0x0102_0304, text: "text".into(), early: 5 }, Xcdr1::Same);
    check("eleven", &TextKey { a: "abc".into(), b: 1 }, Xcdr1::Same);
    check("twelve", &LongTextKey { a: "abc".into(), b: 1 }, Xcdr1::Same);
}

#[test]
fn maps() {
    check("map", &Maps { numbers: [(1, 0.5), (-2, 1.5)].into(), last: 3 }, Xcdr1::Same);
}

fn note(level: u8, text: &str) -> Note {
    Note { level, text: text.into() }
}

fn mutable(one: u8) -> Mutable {
    Mutable {
        one,
        two: 515,
        four: 1.5,
        eight: 0x0102_0304_0506_0708,
        text: "grün".into(),
        bytes: vec![1, 2, 3],
        shorts: vec![-1, 2, -3],
        longs: vec![1, -2],
        doubles: vec![0.5],
        texts: vec![String::new(), "a".into()],
        block: [7, 8],
        point: Point { x: 1.25, y: -2.5 },
        note: note(3, "n"),
        maybe: Some(-7),
        never: None,
        color: Color::Blue,
        choice: Choice::Number(-9),
    }
}

/// Decodes all that Cyclone made of the value, and holds what Thalweg makes of it against that.
#[track_caller]
fn check<T: Topic + PartialEq + Debug>(name: &str, value: &T, xcdr1: Xcdr1) {
    let lines: Vec<_> = golden().filter(|line| line.of_type == T::TYPE_NAME && line.value == name).collect();
    assert!(!lines.is_empty(), "no golden bytes for {} {name}", T::TYPE_NAME);
    for line in lines {
        let context = format!("{} {name}, {} {}: {}", T::TYPE_NAME, line.encoding, line.part, hex(&line.bytes));
        if xcdr1 == Xcdr1::WideEnums && line.encoding.starts_with("x1") {
            continue;
        }
        let comparable = xcdr1 == Xcdr1::Same || !line.is_xcdr1();
        match line.part {
            "data" => {
                assert_eq!(decode::<T>(&line.bytes).as_ref(), Ok(value), "{context}");
                let hash = key_hash_of_payload::<T>(&line.bytes, false);
                assert_eq!(hash, Ok(key_hash(value).expect("a key that can be written")), "{context}");
                if comparable {
                    assert_eq!(hex(&line.encode(value, T::encode)), hex(&line.bytes), "{context}");
                }
            }
            "key" => {
                let decoded = decode_key::<T>(&line.bytes).expect(&context);
                assert_eq!(key_hash(&decoded), key_hash(value), "{context}");
                let hash = key_hash_of_payload::<T>(&line.bytes, true);
                assert_eq!(hash, Ok(key_hash(value).expect("a key that can be written")), "{context}");
                if comparable {
                    assert_eq!(hex(&line.encode(value, T::encode_key)), hex(&line.bytes), "{context}");
                }
            }
            _ => check_key_hash(&line, value, &context),
        }
    }
}

/// Holds a key hash that Cyclone sent against ours.
///
/// Cyclone makes it in the encoding of the writer, as one reading of RTPS has it; ours are always those of PLAIN_CDR2,
/// so that an instance has one name however it travels. Where alignment makes no difference, both agree, but for two
/// faults of the Python binding: it fills keys up to 16 bytes before it takes their MD5, which the C library does not,
/// and it takes the MD5 where it need not.
fn check_key_hash<T: Topic>(line: &Line, value: &T, context: &str) {
    let ours = hex(&key_hash(value).expect("a key that can be written"));
    let theirs = hex(&line.bytes);
    let (expected_ours, hashed_by_cyclone) = match (T::TYPE_NAME, line.encoding) {
        // XCDR1 aligns the number to 8.
        ("ShortKey", "wire1") => {
            assert_eq!(theirs, "07000000000000001122334455667788", "{context}");
            ("07000000112233445566778800000000", None)
        }
        // 16 bytes at most in PLAIN_CDR2; Cyclone's Python binding aligns to 8 when it decides about MD5.
        ("NestedKey", "wire1") => {
            ("020300003ff800000000000040200000", Some("02030000000000003ff800000000000040200000"))
        }
        ("NestedKey", _) => ("020300003ff800000000000040200000", Some("020300003ff800000000000040200000")),
        // 8 bytes at most; Cyclone's Python binding takes the MD5 of any mutable type's key.
        ("MutableKey", _) => ("05000000010203040000000000000000", Some("05000000010203040000000000000000")),
        ("ShapeType", _) | ("LongTextKey", _) => {
            let mut key = Vec::new();
            let mut encoder = Encoder::new(&mut key, Representation::Xcdr2, ByteOrder::Big);
            // Not the key alone, but the key comes first, and the frame of the appendable type before it.
            value.encode_key(&mut encoder).expect("a key that can be written");
            let key = &key[if T::TYPE_NAME == "ShapeType" { 4 } else { 0 }..];
            assert_eq!(ours, hex(&md5::compute(key).0), "{context}");
            let filled: Vec<u8> = key.iter().copied().chain([0; 16]).take(key.len().max(16)).collect();
            assert_eq!(theirs, hex(&md5::compute(filled).0), "{context}");
            return;
        }
        _ => (&*theirs, None),
    };
    assert_eq!(ours, expected_ours, "{context}");
    if let Some(key) = hashed_by_cyclone {
        assert_eq!(theirs, hex(&md5::compute(unhex(key)).0), "{context}");
    }
}

struct Line {
    of_type: &'static str,
    value: &'static str,
    encoding: &'static str,
    part: &'static str,
    bytes: Vec<u8>,
}

impl Line {
    fn is_xcdr1(&self) -> bool {
        self.encoding.contains('1')
    }

    /// The payload that Thalweg would send, in the byte order of the line.
    fn encode<T: Topic>(
        &self,
        value: &T,
        write: impl FnOnce(&T, &mut Encoder<'_>) -> Result<(), thalweg_cdr::EncodeError>,
    ) -> Vec<u8> {
        let representation = if self.is_xcdr1() { Representation::Xcdr1 } else { Representation::Xcdr2 };
        let order = if self.encoding.ends_with("be") { ByteOrder::Big } else { ByteOrder::Little };
        let mut payload = Encapsulation::new(representation, T::EXTENSIBILITY, order).id().to_be_bytes().to_vec();
        payload.extend([0, 0]);
        write(value, &mut Encoder::new(&mut payload, representation, order)).expect("a value that can be written");
        if self.encoding.starts_with("wire") {
            // Cyclone pads what it sends to four bytes, in XCDR1 as well, and leaves the options zero.
            payload.resize(payload.len().next_multiple_of(4), 0);
        }
        payload
    }
}

fn golden() -> impl Iterator<Item = Line> {
    include_str!("../../testdata/cyclone-11.0.1.txt").lines().map(|line| {
        let mut words = line.split(' ');
        let mut word = || words.next().expect("five words a line");
        let (of_type, value, encoding, part) = (word(), word(), word(), word());
        Line { of_type, value, encoding, part, bytes: unhex(word()) }
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = |index| u8::from_str_radix(&text[index..index + 2], 16).expect("hexadecimal digits");
    (0..text.len()).step_by(2).map(digits).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn payloads_are_padded_as_the_options_tell() {
    let shape = ShapeType { color: "RED".into(), x: 1, y: 2, shapesize: 3, additional_payload_size: vec![9] };
    let mut payload = vec![0xee];
    encode(&shape, Representation::Xcdr2, &mut payload).expect("a value that can be written");
    assert_eq!(hex(&payload[1..9]), "0009000319000000");
    assert_eq!(payload.len(), 1 + 4 + 4 + 0x19 + 3);
    payload.truncate(1);
    encode_key(&shape, Representation::Xcdr1, &mut payload).expect("a key that can be written");
    assert_eq!(hex(&payload[1..]), "000100000400000052454400");
}
