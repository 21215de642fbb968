//! Payloads that drive resources and answers of other things: whatever comes is a value or refused; a value is of the kind that is
//! needed, and reads the same when it is written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_coap::device::{Unit, Value, ValueKind};
use thalweg_coap::message::content_format;
use thalweg_coap::resource::ResourceRepresentation;
use thalweg_coap::resource::representation::{READING_FORMATS, of_value, to_value};

const KINDS: [ValueKind; 5] =
    [ValueKind::Boolean, ValueKind::Integer, ValueKind::Real, ValueKind::Text, ValueKind::Bytes];

fuzz_target!(|payload: &[u8]| {
    let formats = READING_FORMATS.into_iter().chain([content_format::OCTET_STREAM, 9999]);
    for format in formats.clone() {
        let representation = ResourceRepresentation::new(format, payload.to_vec(), std::time::Duration::ZERO);
        let _ = representation.value();
        let _ = representation.etag();
    }
    for format in formats.map(Some).chain([None]) {
        for kind in KINDS {
            let Ok(value) = to_value(format, payload, kind) else { continue };
            assert_eq!(value.kind(), kind);
            // CBOR keeps every value exactly, but one that equals nothing.
            let is_number = !matches!(value, Value::Real(number) if number.is_nan());
            if let Ok(written) = of_value(content_format::CBOR, "a", &value, Unit::CELSIUS)
                && is_number
            {
                assert_eq!(to_value(Some(content_format::CBOR), &written, kind), Ok(value));
            }
        }
    }
});
