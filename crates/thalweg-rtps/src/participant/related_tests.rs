//! Laws of samples that are related to others.

use super::tests::*;
use super::*;
use crate::history::ChangeKind;
use crate::payload::Payload;
use crate::qos::{History, Method, ReaderQos, Reliability, Transmission, WriterQos};
use crate::reader::Reader;
use crate::shared::Shared;
use crate::types::{KeyHash, Keyed, SampleIdentity, SequenceNumber};
use crate::writer::{NewChange, Writer};

fn identity(number: i64) -> SampleIdentity {
    let writer = Guid::new(GuidPrefix([7; 12]), EntityId::user_writer(3, Keyed::No));
    SampleIdentity { writer, sequence: SequenceNumber(number) }
}

/// Writes a sample of `size` bytes that begins with `first`.
fn reply(net: &mut Net, writer: &Shared<Writer>, first: u8, size: usize, related: Option<SampleIdentity>) {
    let mut payload = vec![0, 1, 0, 0];
    payload.resize(4 + size, first);
    let keyed = writer.lock().guid().entity.keyed();
    let instance = if keyed == Keyed::Yes { KeyHash([first; 16]) } else { KeyHash::default() };
    let timestamp = Some(Timestamp::default());
    let change = NewChange { kind: ChangeKind::Write, instance, timestamp, payload: Payload::from(payload) };
    let entity = {
        let mut state = writer.lock();
        state.write_related(net.now, change, related.as_ref()).expect("there is room");
        state.guid().entity
    };
    net.nodes[0].participant.rearm(entity, net.now);
}

/// What the samples that arrive say, each its first byte and the number of what it is related to.
fn taken(net: &Net, reader: &Shared<Reader>) -> Vec<(u8, Option<i64>)> {
    let samples = take(net, reader);
    assert!(samples.iter().all(|sample| sample.related.as_ref().is_none_or(|it| it.writer == identity(1).writer)));
    samples.iter().map(|sample| (sample.payload[4], sample.related.as_ref().map(|it| it.sequence.0))).collect()
}

fn check(method: Method, keyed: Keyed, size: usize, loss: f64) {
    let transmission = Transmission { method, ..Transmission::default() };
    let offered = WriterQos { transmission, ..reliable_writer(History::KeepAll) };
    let requested = ReaderQos { reliability: Reliability::RELIABLE, history: History::KeepAll, ..ReaderQos::default() };
    let mut net = Net::new(2);
    let writer = net.writer(0, offered, keyed);
    let reader = net.reader(1, requested, keyed);
    net.run_for(SECOND);
    net.loss = loss;
    let mut expect = Vec::new();
    for number in 1..=30u8 {
        let related = (number % 3 != 0).then(|| identity(i64::from(number) << 33));
        reply(&mut net, &writer, number, size, related);
        expect.push((number, related.map(|it| it.sequence.0)));
    }
    net.run_for(SECOND * 20);
    assert_eq!(taken(&net, &reader), expect, "{keyed:?}, {size} bytes, loss {loss}");
}

#[test]
fn every_way_of_a_sample_brings_what_it_is_related_to() {
    for loss in [0.0, 0.3] {
        check(Method::Immediate, Keyed::No, 10, loss);
        check(Method::Immediate, Keyed::Yes, 10, loss);
        check(Method::Immediate, Keyed::No, 5_000, loss);
        check(Method::Auto, Keyed::Yes, 40, loss);
        check(Method::Batch(crate::qos::Limits::default()), Keyed::No, 10, loss);
    }
}

#[test]
fn what_replies_are_related_to_goes_with_them() {
    let mut net = Net::new(1);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    let requested = ReaderQos { reliability: Reliability::RELIABLE, ..ReaderQos::default() };
    let _reader = net.reader(0, requested, Keyed::No);
    net.run_for(SECOND);
    for number in 1..=10_000 {
        reply(&mut net, &writer, 1, 8, Some(identity(number)));
        if number % 50 == 0 {
            net.run_for(std::time::Duration::from_millis(1));
        }
    }
    net.run_for(SECOND);
    assert_eq!(writer.lock().held(), 0);
    reply(&mut net, &writer, 1, 8, Some(identity(1)));
    assert_eq!(writer.lock().related_remembered(), 1);
}
