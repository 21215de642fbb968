//! Laws that hold for every value and for every input.

use std::fmt::Debug;

use proptest::prelude::*;
use thalweg_cdr::{
    ByteOrder, Decoder, Encapsulation, EncodeError, Encoder, Representation, Topic, decode, decode_into, decode_key,
    encode, key_hash, key_hash_of_payload,
};

use crate::{strategies, types, zoo};

/// Every encoding of a value is read back as the value, passed over to its end, and has the value's key hash.
fn check<T: Topic + PartialEq + Debug>(value: &T) -> Result<(), TestCaseError> {
    let hash = key_hash(value).expect("a key that can be written");
    for (representation, order) in encodings() {
        let payload = payload(value, representation, order, T::encode);
        let decoded = decode::<T>(&payload);
        prop_assert_eq!(decoded.as_ref(), Ok(value), "{:?} {:?}", representation, order);
        prop_assert_eq!(key_hash_of_payload::<T>(&payload, false), Ok(hash), "{:?} {:?}", representation, order);
        let (mut decoder, _) = Decoder::of_payload(&payload).expect("a header");
        prop_assert_eq!(T::skip(&mut decoder), Ok(()), "{:?} {:?}", representation, order);
        prop_assert_eq!(decoder.remaining(), 0, "{:?} {:?}", representation, order);
        if T::KEYED {
            let payload = self::payload(value, representation, order, T::encode_key);
            let key = decode_key::<T>(&payload).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(key_hash(&key), Ok(hash), "{:?} {:?}", representation, order);
            prop_assert_eq!(key_hash_of_payload::<T>(&payload, true), Ok(hash), "{:?} {:?}", representation, order);
        }
    }
    Ok(())
}

/// What comes of changed bytes is an error or a value that can be written and read again.
fn check_changed<T: Topic + PartialEq + Debug>(value: &T, changes: &[(usize, u8)], cut: usize) {
    for (representation, order) in encodings() {
        for key_only in [false, true] {
            let write = if key_only { T::encode_key } else { T::encode };
            let mut payload = payload(value, representation, order, write);
            for (at, byte) in changes {
                let at = at % payload.len();
                payload[at] = *byte;
            }
            payload.truncate(payload.len().saturating_sub(cut));
            check_any::<T>(&payload);
        }
    }
}

/// What comes of any bytes is an error or a value that can be written and read again.
fn check_any<T: Topic + PartialEq + Debug>(payload: &[u8]) {
    let decoded = decode::<T>(payload);
    if let Ok(value) = &decoded {
        let mut again = Vec::new();
        encode(value, Representation::Xcdr2, &mut again).expect("what was read can be written");
        // Debug, not equality: a NaN is not equal to itself.
        let reread = decode::<T>(&again).expect("what was written can be read");
        assert_eq!(format!("{reread:?}").len(), format!("{value:?}").len());
    }
    for key_only in [false, true] {
        let _ = key_hash_of_payload::<T>(payload, key_only);
    }
    let _ = decode_key::<T>(payload);
    if let Ok((mut decoder, _)) = Decoder::of_payload(payload) {
        let _ = T::skip(&mut decoder);
    }
}

/// Bytes are read in place of any other value as they are read alone: into the same value, or refused.
fn check_in_place<T: Topic + Clone + PartialEq + Debug>(value: &T, other: &T, changes: &[(usize, u8)], cut: usize) {
    for (representation, order) in encodings() {
        let mut payload = payload(value, representation, order, T::encode);
        for changed in [false, true] {
            if changed {
                let length = payload.len();
                changes.iter().for_each(|(at, byte)| payload[at % length] = *byte);
                payload.truncate(length.saturating_sub(cut));
            }
            let mut in_place = other.clone();
            let result = decode_into(&mut in_place, &payload).map(|()| in_place);
            let expected = decode::<T>(&payload);
            // Rows of numbers are read at once in place, so that errors may tell of more missing bytes; a NaN is not equal to itself.
            let is_same = result == expected || result.is_err() && expected.is_err();
            let is_same = is_same || format!("{result:?}{expected:?}").contains("NaN");
            assert!(is_same, "{result:?}\n{expected:?}\nover {other:?}: {payload:02x?}");
        }
    }
}

fn encodings() -> impl Iterator<Item = (Representation, ByteOrder)> {
    [Representation::Xcdr1, Representation::Xcdr2]
        .into_iter()
        .flat_map(|representation| [(representation, ByteOrder::Little), (representation, ByteOrder::Big)])
}

fn payload<T: Topic>(
    value: &T,
    representation: Representation,
    order: ByteOrder,
    write: fn(&T, &mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Vec<u8> {
    let mut payload = Encapsulation::new(representation, T::EXTENSIBILITY, order).id().to_be_bytes().to_vec();
    payload.extend([0, 0]);
    write(value, &mut Encoder::new(&mut payload, representation, order)).expect("a value that can be written");
    payload
}

/// An encapsulation header that is understood, and any bytes after it.
fn any_payload() -> impl Strategy<Value = Vec<u8>> {
    let id = prop_oneof![0u8..4, 6u8..12];
    (id, proptest::collection::vec(prop_oneof![any::<u8>(), 0u8..4], 0..200)).prop_map(|(id, body)| {
        let mut payload = vec![0, id, 0, 0];
        payload.extend(body);
        payload
    })
}

macro_rules! laws {
    ($($name:ident: $type:ty = $strategy:expr;)*) => {$(
        mod $name {
            use super::*;

            proptest! {
                #[test]
                fn every_encoding_is_read_back(value in $strategy) {
                    check::<$type>(&value)?;
                }

                #[test]
                fn changed_bytes_end_in_an_error_or_a_value(
                    value in $strategy,
                    changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..4),
                    cut in 0usize..3,
                ) {
                    check_changed::<$type>(&value, &changes, cut * cut * cut);
                }

                #[test]
                fn reading_in_place_of_any_value_is_reading(
                    value in $strategy,
                    other in $strategy,
                    changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..4),
                    cut in 0usize..3,
                ) {
                    check_in_place::<$type>(&value, &other, &changes, cut * cut * cut);
                }

                #[test]
                fn any_bytes_end_in_an_error_or_a_value(payload in any_payload()) {
                    check_any::<$type>(&payload);
                }
            }
        }
    )*};
}

laws! {
    collections: zoo::Collections = strategies::collections();
    options: zoo::Options = strategies::options();
    keyed: zoo::Keyed = strategies::keyed();
    keyed_parts: zoo::KeyedParts = strategies::keyed_parts();
    heads: zoo::Heads = strategies::heads();
    trees: zoo::Tree = strategies::tree();
    generic: zoo::Generic<types::Choice, 2> = strategies::generic();
    unions: types::Growing = strategies::growing();
}
