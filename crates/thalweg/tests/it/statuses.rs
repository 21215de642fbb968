//! Samples that are not handed over are told.

use std::sync::mpsc;

use thalweg::qos::{ReaderQos, ResourceLimits};
use thalweg::status::{LossReason, ReaderStatus, RejectReason};
use thalweg::types::{KeyHash, Keyed};
use thalweg::{Delivery, Payload, Raw};

use crate::fixture::*;

#[test]
fn a_sample_without_a_readable_key_is_a_lost_sample() {
    let (domain, name) = (domain(), unique("no key"));
    let (here, there) = (participant(domain), participant(domain));
    let topic = here.create_raw_topic(&name, "Shape", Keyed::Yes, None);
    let writer = here.create_writer::<Raw>(&topic, reliable_writer()).unwrap();
    let reader = there.create_reader(&there.create_topic::<Shape>(&name), reliable_reader()).unwrap();
    let (sender, heard) = mpsc::channel();
    reader.on_status(Delivery::Thread, move |status| sender.send(status).unwrap()).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    // A string of 4 GiB is no key of a Shape.
    let payload = Payload::from(&[0, 1, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0][..]);
    writer.write_payload(&payload, Some(KeyHash([1; 16])), None).unwrap();
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    loop {
        match heard.recv_timeout(PATIENCE).unwrap() {
            ReaderStatus::SampleLost(lost) => {
                assert_eq!((lost.total, lost.total_change, lost.last_reason), (1, 1, Some(LossReason::KeyUnknown)));
                break;
            }
            ReaderStatus::SubscriptionMatched(_) | ReaderStatus::LivelinessChanged(_) => {}
            other => panic!("{other:?}"),
        }
    }
    let lost = reader.sample_lost();
    assert_eq!((lost.total, lost.total_change), (1, 0), "the listener was told of it");
    assert_eq!(reader.counters().lost, 1);
    assert_eq!(reader.available(), 0);
}

#[test]
fn a_sample_that_finds_no_room_is_rejected_once_and_handed_over_later() {
    let resource_limits = ResourceLimits { max_samples: Some(2), ..ResourceLimits::default() };
    let qos = ReaderQos { resource_limits, ..reliable_reader() };
    let Pair { writer, reader, participants: _alive } = pair::<Count>("rejected", reliable_writer(), qos);
    for value in 0..4 {
        writer.write(&Count { value }).unwrap();
    }
    let mut rejected = reader.sample_rejected();
    eventually("the third finds no room", || {
        let news = reader.sample_rejected();
        rejected = if news.total_change > 0 { news } else { rejected };
        news.total == 1
    });
    assert_eq!((rejected.total_change, rejected.last_reason), (1, Some(RejectReason::Samples)));
    assert_eq!(rejected.last_instance, Some(KeyHash::default()));
    let values: Vec<u64> = take(&reader, 4).iter().map(|sample| sample.data().unwrap().value).collect();
    assert_eq!(values, [0, 1, 2, 3]);
    assert_eq!((reader.sample_rejected().total, reader.sample_lost().total), (1, 0));
}
