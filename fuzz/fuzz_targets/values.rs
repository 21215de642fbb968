//! Any IDL and any JSON behind a NUL: no panic, and what is written as a sample or a key is read as one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_cdr::Representation;
use thalweg_types::codec::{self, SampleType};
use thalweg_types::document::Document;
use thalweg_types::idl;

fuzz_target!(|input: &[u8]| {
    let Some(end) = input.iter().position(|byte| *byte == 0) else { return };
    let Ok(Ok(types)) = std::str::from_utf8(&input[..end]).map(idl::parse) else { return };
    let Ok(given) = Document::from_json(&input[end + 1..]) else { return };
    for of in types.iter().filter_map(SampleType::of) {
        let value = codec::completed(of, given.clone());
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            let _ = codec::encode(of, &given, representation);
            let Ok(bytes) = codec::encode(of, &value, representation) else { continue };
            let read = codec::decode(of, &bytes).expect("what was written is read");
            assert_eq!(codec::encode(of, &read, representation).expect("written again"), bytes);
            if !of.is_keyed() {
                continue;
            }
            let hash = codec::key_hash(of, &value).expect("the sample was written");
            let key = codec::encode_key(of, &value, representation).expect("the sample was written");
            let key = codec::decode_key(of, &key).expect("the key was written");
            assert_eq!(codec::key_hash(of, &key).expect("the key was read"), hash);
        }
    }
});
