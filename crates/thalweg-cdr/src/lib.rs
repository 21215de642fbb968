//! The encodings of OMG DDS-XTypes 1.3 §7.4: what samples look like on the wire.
//!
//! A type that derives `Topic` (from `thalweg-derive`) is written with [`encode()`] and read back with [`decode()`], in
//! XCDR version 1 or 2, final, appendable or mutable. Bytes that are read are never trusted: decoding ends in a value or
//! in a [`DecodeError`] that names the offset, and takes memory in proportion to the input only.
//!
//! | Rust | IDL |
//! |---|---|
//! | `bool`, `u8` … `i64`, `f32`, `f64` | `boolean`, `uint8` … `int64`, `float`, `double` |
//! | `char` | `char`: one byte, ISO 8859-1 |
//! | `String`, [`WString`] | `string`, `wstring` |
//! | `Vec<T>`, `[T; N]`, `[[T; N]; M]` | `sequence<T>`, `T[N]`, `T[M][N]` |
//! | `BTreeMap<K, V>`, `HashMap<K, V>` | `map<K, V>` |
//! | `Option<T>` as a member | `@optional T` |
//! | `Box<T>` | `@external T` |
//! | struct, enum without data, enum with data | `struct`, `enum`, `union` |
//! | newtype | `typedef` |

#![forbid(unsafe_code)]

mod codec;
mod decoder;
pub mod description;
mod encoder;
mod error;
mod field;
mod key;
mod layout;
mod map;
mod payload;
pub mod plain;
mod primitive;
mod representation;
mod sequence;
mod text;

pub use codec::{Bounded, BoundedKeySize, Decode, Encode, Topic};
pub use decoder::Decoder;
pub use encoder::{Encoder, Member, NESTING_MAX};
pub use error::{DecodeError, EncodeError};
pub use field::{FieldKind, FieldStep, FieldValue};
pub use key::{key_hash, key_hash_of_payload};
pub use layout::{KeySize, Layout, LengthCode};
pub use payload::{decode, decode_into, decode_key, encode, encode_key, encoded_size_hint};
pub use representation::{ByteOrder, ENCAPSULATION_BYTES, Encapsulation, Extensibility, Representation};
pub use text::WString;
/// The traits that prove a struct plain; `#[topic(plain)]` needs its derives on the struct.
pub use zerocopy;
