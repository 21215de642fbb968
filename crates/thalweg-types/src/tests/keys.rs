//! Keys near the 16 bytes of a key hash, which derived and dynamic types tell from longer ones in the same way.

use thalweg_cdr::{self as cdr, Topic};
use thalweg_derive::Topic;

use super::Types;
use crate::codec;

const IDL: &str = "
@bit_bound(8) enum Half { ONE, TWO };
@final struct Grid { @key Half grid[4][3]; };
@final struct WideGrid { @key Half grid[4][4]; };
typedef Half Row[3];
@final struct NamedGrid { @key Row grid[4]; };
@final struct Bytes { @key sequence<octet, 12> bytes; };
@final struct Letters { @key wstring<6> letters; };
@final struct Halves { @key sequence<Half, 2> halves; @key Half last; };
@final struct Pair { @optional octet a; octet b; };
@final struct Paired { @key Pair pair; };
";

#[derive(Topic, Clone)]
#[topic(crate = "thalweg_cdr", bit_bound = 8)]
enum Half {
    #[topic(name = "ONE")]
    One,
    #[topic(name = "TWO")]
    Two,
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct Grid {
    #[topic(key)]
    grid: [[Half; 3]; 4],
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct WideGrid {
    #[topic(key)]
    grid: [[Half; 4]; 4],
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct Bytes {
    #[topic(key, max_len = 12)]
    bytes: Vec<u8>,
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct Letters {
    #[topic(key, max_len = 6)]
    letters: cdr::WString,
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct Halves {
    #[topic(key, max_len = 2)]
    halves: Vec<Half>,
    #[topic(key)]
    last: Half,
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct Pair {
    a: Option<u8>,
    b: u8,
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct Paired {
    #[topic(key)]
    pair: Pair,
}

#[track_caller]
fn check<T: Topic>(value: &T, name: &str) -> [u8; 16] {
    let mut types = Types::default();
    types.add_idl(IDL).expect("IDL");
    let of = types.find(name).expect("the type");
    let expect = cdr::key_hash(value).expect("hashed");
    for representation in [cdr::Representation::Xcdr1, cdr::Representation::Xcdr2] {
        let mut payload = Vec::new();
        cdr::encode(value, representation, &mut payload).expect("encoded");
        let read = codec::decode(of, &payload).expect("decoded");
        assert_eq!(codec::key_hash(of, &read).expect("hashed"), expect, "{name} {representation:?}");
    }
    expect
}

#[test]
fn dynamic_and_derived_types_have_the_same_key_hashes() {
    let grid = Grid { grid: [const { [Half::One, Half::Two, Half::One] }; 4] };
    assert_eq!(check(&grid, "Grid"), check(&grid, "NamedGrid"));
    check(&WideGrid { grid: [const { [Half::One, Half::Two, Half::One, Half::Two] }; 4] }, "WideGrid");
    check(&Bytes { bytes: vec![7; 12] }, "Bytes");
    check(&Letters { letters: cdr::WString("größe".to_owned()) }, "Letters");
    check(&Halves { halves: vec![Half::Two], last: Half::One }, "Halves");
    let [with, without] = [Some(0), None].map(|a| check(&Paired { pair: Pair { a, b: 1 } }, "Paired"));
    assert_ne!(with, without, "they are two instances");
}
