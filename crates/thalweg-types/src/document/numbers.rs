//! Numbers of one type in a row.

use thalweg_cdr::description::Primitive;
use thalweg_cdr::{Decode, DecodeError, Decoder, Encode, EncodeError, Encoder};

use super::Document;

/// Defines the row from the numbers that it can have: the names in [`Primitive`], Rust's types, and the documents that stand for one.
macro_rules! numbers {
    ($($kind:ident($number:ident): $document:ident,)*) => {
        /// The numbers of a sequence or array, as a sample holds them: four bytes for each `float`, where a
        /// document takes 32.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Numbers {
            $(
                #[doc = concat!("As `", stringify!($number), "`.")]
                $kind(Vec<$number>),
            )*
        }

        impl Numbers {
            /// How many they are.
            pub fn len(&self) -> usize {
                match self {
                    $(Numbers::$kind(row) => row.len(),)*
                }
            }

            /// One of them.
            pub fn get(&self, index: usize) -> Option<Document> {
                match self {
                    $(Numbers::$kind(row) => row.get(index).map(|number| Document::$document((*number).into())),)*
                }
            }

            /// So many zeros; `None` for a type that has no rows.
            pub(crate) fn zeros(of: Primitive, count: usize) -> Option<Numbers> {
                match of {
                    $(Primitive::$kind => Some(Numbers::$kind(vec![<$number>::default(); count])),)*
                    _ => None,
                }
            }

            /// The type of each.
            pub(crate) fn primitive(&self) -> Primitive {
                match self {
                    $(Numbers::$kind(_) => Primitive::$kind,)*
                }
            }

            /// Reads a row of `count`; `None` for a type that has no rows.
            pub(crate) fn decode(
                of: Primitive,
                count: usize,
                decoder: &mut Decoder<'_>,
            ) -> Option<Result<Numbers, DecodeError>> {
                match of {
                    $(Primitive::$kind => Some(<$number>::decode_elements(decoder, count).map(Numbers::$kind)),)*
                    _ => None,
                }
            }

            /// Writes the row.
            pub(crate) fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
                match self {
                    $(Numbers::$kind(row) => <$number>::encode_elements(row, encoder),)*
                }
            }
        }
    };
}

numbers! {
    Int8(i8): Integer,
    Int16(i16): Integer,
    UInt16(u16): Integer,
    Int32(i32): Integer,
    UInt32(u32): Integer,
    Int64(i64): Integer,
    UInt64(u64): Integer,
    Float32(f32): Real,
    Float64(f64): Real,
}

impl Numbers {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
