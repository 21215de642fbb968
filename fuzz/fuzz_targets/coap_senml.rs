//! SenML packs: whatever comes is read or refused, and what was read is written and read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_coap::message::content_format::{SENML_CBOR, SENML_JSON};
use thalweg_coap::senml;

fuzz_target!(|bytes: &[u8]| {
    for format in [SENML_JSON, SENML_CBOR] {
        let Ok(records) = senml::parse(format, bytes) else { continue };
        // CBOR keeps every number exactly; a pack may hold no record, only base values.
        if let Ok(written) = senml::encode(SENML_CBOR, &records) {
            let again = senml::parse(SENML_CBOR, &written).expect("what was written is read");
            assert_eq!(again, records);
        }
    }
});
