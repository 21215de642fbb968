//! Endpoints for bytes that the application serializes itself.

use std::sync::Arc;

use thalweg::types::{KeyHash, Keyed};
use thalweg::{ErrorKind, InstanceState, KeyOf, PayloadKind, Raw, cdr};

use crate::fixture::*;

fn encoded(shape: &Shape) -> Vec<u8> {
    let mut bytes = Vec::new();
    cdr::encode(shape, cdr::Representation::Xcdr1, &mut bytes).unwrap();
    bytes
}

#[test]
fn raw_and_typed_endpoints_of_a_topic_understand_each_other() {
    let (domain, name) = (domain(), unique("raw"));
    let (here, there) = (participant(domain), participant(domain));
    let key_of: KeyOf = Arc::new(|bytes: &[u8], kind| {
        cdr::key_hash_of_payload::<Shape>(bytes, kind == PayloadKind::Key).ok().map(KeyHash)
    });
    let raw_topic = here.create_raw_topic(&name, "Shape", Keyed::Yes, Some(key_of));
    let raw_writer = here.create_writer(&raw_topic, reliable_writer()).unwrap();
    let raw_reader = here.create_reader(&raw_topic, reliable_reader()).unwrap();
    let topic = there.create_topic::<Shape>(&name);
    let reader = there.create_reader(&topic, reliable_reader()).unwrap();
    let writer = there.create_writer(&topic, reliable_writer()).unwrap();
    raw_writer.wait_for_matched(2, PATIENCE).unwrap();
    writer.wait_for_matched(2, PATIENCE).unwrap();
    let shape = Shape::new("ORANGE", 11);
    raw_writer.write_serialized(&encoded(&shape)).unwrap();
    assert_eq!(take(&reader, 1)[0].data().unwrap(), shape);
    let looped = take(&raw_reader, 1);
    assert_eq!(looped[0].bytes(), encoded(&shape));
    // What was received is passed on without a copy.
    raw_writer.write_payload(looped[0].payload(), Some(looped[0].info().instance), None).unwrap();
    assert_eq!(take(&reader, 1)[0].data().unwrap(), shape);
    let mut key = Vec::new();
    cdr::encode_key(&shape, cdr::Representation::Xcdr1, &mut key).unwrap();
    raw_writer.dispose_serialized(&key, None).unwrap();
    assert_eq!(take(&reader, 1)[0].info().instance_state, InstanceState::NotAliveDisposed);
}

#[test]
fn bytes_without_encapsulation_or_instance_are_refused() {
    let participant = participant(domain());
    let keyless = participant.create_raw_topic("keyless", "Bytes", Keyed::No, None);
    let writer = participant.create_writer::<Raw>(&keyless, reliable_writer()).unwrap();
    assert_eq!(writer.write_serialized(&[0, 1]).unwrap_err().kind(), ErrorKind::BadParameter);
    let keyed = participant.create_raw_topic("keyed", "Bytes", Keyed::Yes, None);
    let writer = participant.create_writer::<Raw>(&keyed, reliable_writer()).unwrap();
    let error = writer.write_serialized(&[0, 1, 0, 0, 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadParameter);
    assert!(error.to_string().contains("pass its key hash"), "{error}");
}
