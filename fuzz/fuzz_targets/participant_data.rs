//! Any payload of a `DATA(p)`: no panic, and what is announced again reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_rtps::discovery::participant_data::ParticipantData;
use thalweg_rtps::types::VendorId;

fuzz_target!(|payload: &[u8]| {
    let key = ParticipantData::decode_key(payload);
    let Ok(mut data) = ParticipantData::decode(payload) else { return };
    assert_eq!(key, Ok(data.guid_prefix));
    if data.vendor != VendorId::THALWEG {
        data.receive_buffer_bytes = None;
    }
    let mut again = Vec::new();
    data.encode(&mut again);
    assert_eq!(ParticipantData::decode(&again), Ok(data));
});
