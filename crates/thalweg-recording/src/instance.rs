//! The instance of a serialized sample whose type is known at run time, and its key.

use thalweg::cdr::Representation;
use thalweg::types::KeyHash;
use thalweg::{PayloadKind, Type};
use thalweg_types::codec::{self, SampleType};

/// The key hash of a sample or key; `None` when the bytes are none of the type.
pub fn instance_of(of: &Type, bytes: &[u8], kind: PayloadKind) -> Option<KeyHash> {
    let of = SampleType::of(of)?;
    let value = match kind {
        PayloadKind::Data => codec::decode(of, bytes),
        PayloadKind::Key => codec::decode_key(of, bytes),
    };
    codec::key_hash(of, &value.ok()?).ok().map(KeyHash)
}

/// The serialized key of a sample or key, with its encapsulation header; `None` without bytes, and of a sample without its type.
pub fn serialized_key(of: Option<&Type>, bytes: &[u8], kind: PayloadKind) -> Option<Vec<u8>> {
    match kind {
        PayloadKind::Key => (!bytes.is_empty()).then(|| bytes.to_vec()),
        PayloadKind::Data => {
            let of = SampleType::of(of?)?;
            let value = codec::decode(of, bytes).ok()?;
            codec::encode_key(of, &value, representation(bytes)).ok()
        }
    }
}

/// The encoding that an encapsulation header names: identifiers from 6 on are XCDR2's (RTPS 2.5 §10.2.1.2).
fn representation(bytes: &[u8]) -> Representation {
    if bytes.get(1).is_some_and(|id| *id >= 6) { Representation::Xcdr2 } else { Representation::Xcdr1 }
}
