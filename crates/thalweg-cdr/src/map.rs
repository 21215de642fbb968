//! Maps.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

use crate::codec::{Bounded, BoundedKeySize, elements_hint};
use crate::description::Type;
use crate::sequence::{bounded_length, skip_collection};
use crate::{Decode, DecodeError, Decoder, Encode, EncodeError, Encoder, KeySize, Layout, LengthCode};

/// Implements the traits for a map type: IDL's `map<K, V>`, a count and that many pairs.
macro_rules! map {
    ($map:ident<K, V $(, $hasher:ident)?>, $($key_bound:ident)|+) => {
        impl<K: Layout, V: Layout $(, $hasher)?> Layout for $map<K, V $(, $hasher)?> {
            const LENGTH_CODE: LengthCode =
                if K::PRIMITIVE && V::PRIMITIVE { LengthCode::Stated } else { LengthCode::OwnBytes };
            const KEY_HAS_OPTIONAL: bool = K::KEY_HAS_OPTIONAL || V::KEY_HAS_OPTIONAL;
            const MIN_BYTES: usize = 4;

            fn description() -> Option<Type> {
                let (key, element) = (Box::new(K::description()?), Box::new(V::description()?));
                Some(Type::Map { key, element, bound: None })
            }
        }

        impl<K: Encode, V: Encode $(, $hasher)?> Encode for $map<K, V $(, $hasher)?> {
            fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
                encoder.nested(|encoder| {
                    encoder.collection(K::PRIMITIVE && V::PRIMITIVE, |encoder| {
                        encoder.length(self.len())?;
                        self.iter().try_for_each(|(key, value)| {
                            key.encode(encoder)?;
                            value.encode(encoder)
                        })
                    })
                })
            }

            fn size_hint(&self) -> usize {
                let pairs = self.iter().map(|(key, value)| key.size_hint().saturating_add(value.size_hint()));
                elements_hint(pairs, self.len(), K::PRIMITIVE && V::PRIMITIVE).saturating_add(8)
            }
        }

        impl<K: Decode $(+ $key_bound)+, V: Decode $(, $hasher: BuildHasher + Default)?> Decode
            for $map<K, V $(, $hasher)?>
        {
            fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                decode_pairs::<K, V, Self>(decoder, usize::MAX)
            }

            fn default_value() -> Self {
                Self::default()
            }

            fn skip(decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
                skip_pairs::<K, V>(decoder)
            }
        }

        impl<K: Encode + Decode $(+ $key_bound)+, V: Encode + Decode $(, $hasher: BuildHasher + Default)?> Bounded
            for $map<K, V $(, $hasher)?>
        {
            // A map cannot be a key, so that its size as one is of no interest.
            const BOUNDED_KEY_SIZE: BoundedKeySize =
                BoundedKeySize { prefix: KeySize::OVER, element: KeySize::ZERO, extra: 0 };

            fn length(&self) -> usize {
                self.len()
            }

            fn decode_bounded(decoder: &mut Decoder<'_>, max_len: usize) -> Result<Self, DecodeError> {
                decode_pairs::<K, V, Self>(decoder, max_len)
            }
        }
    };
}

map!(BTreeMap<K, V>, Ord);
map!(HashMap<K, V, S>, Hash | Eq);

/// Reads pairs one by one: an input that repeats a key costs time in proportion to its size, and no more memory.
fn decode_pairs<K: Decode, V: Decode, M: Default + Extend<(K, V)>>(
    decoder: &mut Decoder<'_>,
    max_len: usize,
) -> Result<M, DecodeError> {
    decoder.nested(|decoder| {
        decoder.collection(K::PRIMITIVE && V::PRIMITIVE, |decoder| {
            let count = bounded_length(decoder, K::MIN_BYTES + V::MIN_BYTES, max_len)?;
            decoder.charge(count, size_of::<(K, V)>())?;
            let mut map = M::default();
            for _ in 0..count {
                let key = K::decode(decoder)?;
                let value = V::decode(decoder)?;
                map.extend([(key, value)]);
            }
            Ok(map)
        })
    })
}

fn skip_pairs<K: Decode, V: Decode>(decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
    let pairs = |decoder: &mut Decoder<'_>| {
        let count = decoder.length(K::MIN_BYTES + V::MIN_BYTES)?;
        decoder.charge(count, 1)?;
        (0..count).try_for_each(|_| {
            K::skip(decoder)?;
            V::skip(decoder)
        })
    };
    if K::PRIMITIVE && V::PRIMITIVE { pairs(decoder) } else { skip_collection(decoder, pairs) }
}
