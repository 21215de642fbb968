//! Any payload as CBOR and JSON, as a sample of types from IDL, and as IDL: no panic, and what is read is written and read
//! again as the same.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use thalweg_cdr::Representation;
use thalweg_types::document::Document;
use thalweg_types::{Types, codec, idl};

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    let mut types = Types::default();
    let text = "
        enum Color { RED, GREEN }; bitmask Mask { A, @position(7) B }; bitset Bits { bitfield<3> a; bitfield<9, short> b; };
        @mutable union Choice switch (Color) { case RED: long a; default: string b; };
        @final struct Point { @key long y; @key long x; };
        @mutable struct Options { @optional double scale; string label; };
        @appendable struct Everything {
          @key string<20> name; Color color; @key Point at; Options options; sequence<Point> path;
          sequence<octet> raw; short grid[2][3]; char letter; wstring wide; @optional long maybe; float f;
          Mask mask; Bits bits; Choice choice; map<string, Point> places; map<short, long double, 9> big; wchar unit;
        };
        struct Node; @final union Value switch (long) { case 0: long leaf; case 1: sequence<Node> nodes; };
        @appendable struct Node { @key long id; sequence<Node> children; @optional Node next; Value value; };";
    types.add_idl(text).expect("IDL");
    types
});

fuzz_target!(|input: &[u8]| {
    let Some((which, payload)) = input.split_first() else { return };
    match which % 4 {
        0 => {
            if let Ok(document) = Document::from_cbor(payload) {
                let again = Document::from_cbor(&document.to_cbor().expect("written")).expect("read again");
                assert_eq!(format!("{again:?}"), format!("{document:?}"));
                let _ = document.to_json();
            }
            let _ = Document::from_json(payload);
        }
        1 | 2 => {
            let name = if which % 4 == 1 { "Everything" } else { "Node" };
            let structure = TYPES.find(name).expect("the type");
            let _ = codec::decode_key(structure, payload);
            let Ok(document) = codec::decode(structure, payload) else { return };
            for representation in [Representation::Xcdr1, Representation::Xcdr2] {
                // A text may hold what cannot be written, such as a NUL in the middle.
                let Ok(bytes) = codec::encode(structure, &document, representation) else { continue };
                let again = codec::decode(structure, &bytes).expect("read again");
                assert_eq!(format!("{again:?}"), format!("{document:?}"));
            }
        }
        _ => {
            if let Ok(text) = std::str::from_utf8(payload) {
                let _ = idl::parse(text);
            }
        }
    }
});
