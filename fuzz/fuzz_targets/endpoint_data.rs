//! Any payload of a `DATA(w)` or `DATA(r)`: no panic, what is announced again reads the same, and matching does not panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_rtps::discovery::endpoint_data::{PublicationData, SubscriptionData, match_endpoints};
use thalweg_rtps::qos::{ReaderQos, WriterQos};

fuzz_target!(|payload: &[u8]| {
    let mut again = Vec::new();
    if let Ok(writer) = PublicationData::decode(payload) {
        assert_eq!(PublicationData::decode_key(payload), Ok(writer.guid));
        writer.encode(&mut again);
        // What describes the type is not announced again.
        let expect = PublicationData { describes_type: writer.type_information.is_some(), ..writer.clone() };
        assert_eq!(PublicationData::decode(&again), Ok(expect));
        let _ = writer.qos.check();
        let reader = SubscriptionData::new(writer.guid, &writer.topic_name, &writer.type_name, ReaderQos::default());
        let _ = match_endpoints(&writer, &reader).to_string();
    }
    if let Ok(reader) = SubscriptionData::decode(payload) {
        assert_eq!(SubscriptionData::decode_key(payload), Ok(reader.guid));
        again.clear();
        reader.encode(&mut again);
        assert_eq!(SubscriptionData::decode(&again).as_ref(), Ok(&reader));
        let _ = reader.qos.check();
        let writer = PublicationData::new(reader.guid, &reader.topic_name, &reader.type_name, WriterQos::default());
        let _ = match_endpoints(&writer, &reader).to_string();
    }
});
