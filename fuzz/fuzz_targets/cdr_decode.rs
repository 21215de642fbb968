//! Any payload as any type: no panic, little memory, and what is read can be written and read again, in each encoding.
#![no_main]

use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use thalweg_cdr::{
    ByteOrder, Decoder, Encapsulation, Encoder, Representation, Topic, decode, decode_into, decode_key, key_hash,
    key_hash_of_payload,
};

#[path = "../../crates/thalweg-cdr/tests/it/types.rs"]
mod types;
#[path = "../../crates/thalweg-cdr/tests/it/zoo.rs"]
mod zoo;

fuzz_target!(|input: &[u8]| {
    let Some((which, payload)) = input.split_first() else { return };
    match which % 27 {
        0 => check::<types::ShapeType>(payload),
        1 => check::<types::Numbers>(payload),
        2 => check::<types::Sequences>(payload),
        3 => check::<types::Arrays>(payload),
        4 => check::<types::Enums>(payload),
        5 => check::<types::BoundedEnums>(payload),
        6 => check::<types::Unions>(payload),
        7 => check::<types::FinalOptionals>(payload),
        8 => check::<types::AppendableOptionals>(payload),
        9 => check::<types::Mutable>(payload),
        10 => check::<types::Outer>(payload),
        11 => check::<types::Hashed>(payload),
        12 => check::<types::ShortKey>(payload),
        13 => check::<types::NestedKey>(payload),
        14 => check::<types::MutableKey>(payload),
        15 => check::<types::UnorderedKey>(payload),
        16 => check::<types::TextKey>(payload),
        17 => check::<types::LongTextKey>(payload),
        18 => check::<types::Maps>(payload),
        19 => check::<zoo::Mutating>(payload),
        20 => check::<zoo::Tree>(payload),
        21 => check::<zoo::Collections>(payload),
        22 => check::<zoo::Options>(payload),
        23 => check::<zoo::Keyed>(payload),
        24 => check::<zoo::KeyedParts>(payload),
        25 => check::<zoo::Heads>(payload),
        _ => check::<zoo::Generic<types::Choice, 2>>(payload),
    }
});

fn check<T: Topic + PartialEq + Debug>(payload: &[u8]) {
    let hash = key_hash_of_payload::<T>(payload, false);
    check_in_place::<T>(payload);
    if let Ok(value) = decode::<T>(payload) {
        let expected = key_hash(&value).expect("a key that was read can be written");
        assert_eq!(hash, Ok(expected));
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            for order in [ByteOrder::Little, ByteOrder::Big] {
                check_again(&value, expected, representation, order);
            }
        }
    }
    let hash = key_hash_of_payload::<T>(payload, true);
    if let Ok(key) = decode_key::<T>(payload) {
        assert_eq!(hash, Ok(key_hash(&key).expect("a key that was read can be written")));
    }
    if let Ok((mut decoder, _)) = Decoder::of_payload(payload) {
        let _ = T::skip(&mut decoder);
    }
}

/// The first half of the input is a value that the whole is read in place of.
fn check_in_place<T: Topic + PartialEq + Debug>(payload: &[u8]) {
    let (half, expected) = (decode::<T>(&payload[..payload.len() / 2]), decode::<T>(payload));
    let mut value = half.unwrap_or_else(|_| T::default_value());
    let result = decode_into(&mut value, payload).map(|()| value);
    // Rows of numbers are read at once here, so that errors may tell of more missing bytes.
    let is_same = result == expected || result.is_err() && expected.is_err();
    assert!(is_same || format!("{result:?}").contains("NaN"), "{result:?}\n{expected:?}");
}

fn check_again<T: Topic + PartialEq + Debug>(
    value: &T,
    hash: [u8; 16],
    representation: Representation,
    order: ByteOrder,
) {
    let mut payload = Encapsulation::new(representation, T::EXTENSIBILITY, order).id().to_be_bytes().to_vec();
    payload.extend([0, 0]);
    value.encode(&mut Encoder::new(&mut payload, representation, order)).expect("what was read can be written");
    let again = decode::<T>(&payload).expect("what was written can be read");
    assert!(again == *value || format!("{value:?}").contains("NaN"), "{value:?}\n{again:?}");
    assert_eq!(key_hash_of_payload::<T>(&payload, false), Ok(hash));
}
