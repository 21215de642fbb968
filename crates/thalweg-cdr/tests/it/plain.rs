//! Structs whose memory is their encoding.

use proptest::prelude::*;
use thalweg_cdr::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
use thalweg_cdr::{
    ByteOrder, Decode, Decoder, Encode, Encoder, Representation, Topic, decode, encode, encoded_size_hint,
};
use thalweg_derive::Topic;

/// 24 bytes without padding; 8-aligned in memory and XCDR1, 4-aligned in XCDR2.
#[derive(Debug, Clone, Copy, PartialEq, Topic, IntoBytes, FromBytes, Immutable, KnownLayout)]
#[topic(crate = "thalweg_cdr", plain)]
#[repr(C)]
struct Reading {
    pub station: u16,
    pub flags: [u8; 2],
    pub height: f32,
    pub corner: Corner,
    pub time: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Topic, IntoBytes, FromBytes, Immutable, KnownLayout)]
#[topic(crate = "thalweg_cdr", plain)]
#[repr(C)]
struct Corner {
    pub x: i32,
    pub y: i32,
}

/// The same, written member by member.
#[derive(Debug, Clone, Copy, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct ReadingByMember {
    pub station: u16,
    pub flags: [u8; 2],
    pub height: f32,
    pub corner: CornerByMember,
    pub time: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct CornerByMember {
    pub x: i32,
    pub y: i32,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "appendable")]
struct Log {
    pub shift: Vec<u8>,
    pub one: Reading,
    pub row: [Reading; 2],
    pub list: Vec<Reading>,
    pub maybe: Option<Reading>,
    pub corners: Vec<Corner>,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "appendable")]
struct LogByMember {
    pub shift: Vec<u8>,
    pub one: ReadingByMember,
    pub row: [ReadingByMember; 2],
    pub list: Vec<ReadingByMember>,
    pub maybe: Option<ReadingByMember>,
    pub corners: Vec<CornerByMember>,
}

/// A plain struct with a frame of its own.
#[derive(Debug, Clone, Copy, PartialEq, Topic, IntoBytes, FromBytes, Immutable, KnownLayout)]
#[topic(crate = "thalweg_cdr", plain, extensibility = "appendable")]
#[repr(C)]
struct Framed {
    pub a: u32,
    pub b: u32,
}

fn reading() -> impl Strategy<Value = Reading> {
    (any::<u16>(), any::<[u8; 2]>(), -1e9f32..1e9, any::<(i32, i32)>(), any::<u64>()).prop_map(
        |(station, flags, height, (x, y), time)| Reading { station, flags, height, corner: Corner { x, y }, time },
    )
}

fn by_member(reading: Reading) -> ReadingByMember {
    let Reading { station, flags, height, corner: Corner { x, y }, time } = reading;
    ReadingByMember { station, flags, height, corner: CornerByMember { x, y }, time }
}

proptest! {
    /// Wherever the plain struct comes to stand, and in either byte order.
    #[test]
    fn a_copy_gives_the_bytes_that_members_give(
        shift in proptest::collection::vec(any::<u8>(), 0..9),
        one in reading(),
        row in [reading(), reading()],
        list in proptest::collection::vec(reading(), 0..4),
        maybe in proptest::option::of(reading()),
    ) {
        let corners: Vec<_> = list.iter().map(|reading| reading.corner).collect();
        let log = Log { shift: shift.clone(), one, row, list: list.clone(), maybe, corners: corners.clone() };
        let twin = LogByMember {
            shift,
            one: by_member(one),
            row: row.map(by_member),
            list: list.into_iter().map(by_member).collect(),
            maybe: maybe.map(by_member),
            corners: corners.iter().map(|corner| CornerByMember { x: corner.x, y: corner.y }).collect(),
        };
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            for order in [ByteOrder::Little, ByteOrder::Big] {
                let (mut copied, mut moved) = (Vec::new(), Vec::new());
                log.encode(&mut Encoder::new(&mut copied, representation, order)).expect("no bound");
                twin.encode(&mut Encoder::new(&mut moved, representation, order)).expect("no bound");
                prop_assert_eq!(&copied, &moved, "{:?} {:?}", representation, order);
                let decoded = Log::decode(&mut Decoder::new(&copied, representation, order));
                prop_assert_eq!(decoded, Ok(log.clone()), "{:?} {:?}", representation, order);
            }
        }
    }
}

#[test]
fn the_hint_of_a_plain_struct_is_exact() {
    let corner = Corner { x: 1, y: 2 };
    check_hint(&corner, 4 + 8);
    check_hint(&Framed { a: 1, b: 2 }, 4 + 4 + 8);
}

#[track_caller]
fn check_hint<T: Topic>(value: &T, expected: usize) {
    let mut out = Vec::new();
    encode(value, Representation::Xcdr2, &mut out).expect("no bound");
    assert_eq!((encoded_size_hint(value), out.len()), (expected, expected));
}

#[test]
fn a_framed_plain_struct_takes_defaults_from_an_older_sender() {
    assert_eq!(decode::<Framed>(&[0, 9, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0]), Ok(Framed { a: 7, b: 0 }));
}

#[test]
fn a_short_plain_struct_names_the_member_that_is_missing() {
    let error = decode::<Reading>(&[0, 7, 0, 0, 1, 0, 2, 3, 0, 0]).expect_err("cut off");
    assert_eq!(error.to_string(), "8: expected 4 bytes of f32, 2 left (Reading.height)");
}

#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "final")]
struct Picture {
    pub pixels: Box<[u16; 4 << 20]>,
    pub number: u32,
}

#[test]
fn a_large_array_in_a_box_is_read_without_lying_on_the_stack() {
    let pixels: Vec<u16> = (0..4 << 20).map(|index: u32| index as u16).collect();
    let picture = Picture { pixels: pixels.into_boxed_slice().try_into().expect("as long"), number: 7 };
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut bytes = Vec::new();
        encode(&picture, representation, &mut bytes).expect("encoded");
        let reader = std::thread::Builder::new().stack_size(512 << 10);
        let read = reader.spawn(move || decode::<Picture>(&bytes)).expect("a thread").join().expect("read");
        assert!(read.expect("decoded") == picture, "8 MiB come back as they were");
    }
}
