//! Bursts by every method: what shares datagrams and submessages with Thalweg's readers must not confuse Cyclone's.

use ::thalweg::qos::Method;
use ::thalweg::{DataWriter, TopicType};
use serde_json::{Value, json};

use super::{crc32, peer_values};
use crate::bursts::{self, Bytes, COUNT, Record};
use crate::{peer, thalweg};

/// What the peer prints of a sample with a key.
fn as_printed(record: &Record) -> Value {
    json!({"key": record.key, "number": record.number, "length": record.data.len(), "crc32": crc32(&record.data)})
}

fn keyless_as_printed(sample: &Bytes) -> Value {
    json!({"length": sample.data.len(), "first": sample.data[0], "crc32": crc32(&sample.data)})
}

/// Fails unless these are all samples, each once, and each instance's in order; between instances nobody promises any.
#[track_caller]
fn assert_all_records(what: &str, got: &[Value]) {
    let expected: Vec<Value> = bursts::records().iter().map(as_printed).collect();
    assert_eq!(got.len(), expected.len(), "{what}");
    for key in 0..7 {
        let of_key =
            |values: &[Value]| -> Vec<Value> { values.iter().filter(|value| value["key"] == key).cloned().collect() };
        assert!(of_key(got) == of_key(&expected), "{what}: samples of {key} are missing, altered or out of order");
    }
}

/// Writes the samples to a reader of Cyclone DDS and, if wanted, at the same time to one of Thalweg; returns what the former
/// printed, and checks what the latter took.
#[track_caller]
fn burst<T: TopicType + Clone + PartialEq>(
    method: &Method,
    type_name: &str,
    samples: &[T],
    with_thalweg: bool,
) -> Vec<Value> {
    let domain = thalweg::domain();
    let words = format!("sub --topic burst --type {type_name} --count {COUNT} --timeout 80");
    let cyclone = peer::start(None, domain, &words);
    let participant = bursts::participant(domain);
    let writer = bursts::writer::<T>(&participant, "burst", method.clone());
    let beside = with_thalweg.then(|| {
        let participant = bursts::participant(domain);
        let reader = bursts::reader::<T>(&participant, "burst");
        (participant, reader)
    });
    bursts::write(&writer, 1 + usize::from(with_thalweg), samples);
    if let Some((_, reader)) = &beside {
        let taken = bursts::take(reader, samples.len());
        assert_eq!(taken.len(), samples.len(), "{method}, to Thalweg");
        assert!(taken == samples, "{method}: not in the order of writing, or altered, to Thalweg");
    }
    assert_form(method, &writer, with_thalweg);
    peer_values(&cyclone.finish().well())
}

/// Fails unless the samples travelled as the method promises.
#[track_caller]
fn assert_form<T: TopicType>(method: &Method, writer: &DataWriter<T>, with_thalweg: bool) {
    let counters = writer.counters();
    if matches!(method, Method::Coalesce(_) | Method::Batch(_)) {
        assert!(counters.datagrams < u64::from(COUNT) / 2, "{method}: {counters:?}");
    }
    match method {
        Method::Batch(_) if with_thalweg => assert!(counters.batches > 10, "{method}: {counters:?}"),
        _ if !with_thalweg => {
            assert_eq!(counters.batches, 0, "{method}: {counters:?}");
        }
        _ => {}
    }
}

#[track_caller]
fn check(method: &Method) {
    let (records, keyless) = (bursts::records(), bursts::keyless());
    for with_thalweg in [false, true] {
        let what = format!("{method}, {} a reader of Thalweg", if with_thalweg { "beside" } else { "without" });
        assert_all_records(&what, &burst(method, "record", &records, with_thalweg));
        let got = burst(method, "bytes", &keyless, with_thalweg);
        assert_eq!(got.len(), keyless.len(), "{what}");
        let expected: Vec<Value> = keyless.iter().map(keyless_as_printed).collect();
        assert!(got == expected, "{what}: keyless samples are altered or out of order");
    }
}

#[test]
fn immediate_samples_all_arrive() {
    check(&bursts::methods()[0]);
}

#[test]
fn coalesced_samples_all_arrive() {
    check(&bursts::methods()[1]);
}

#[test]
fn batched_samples_all_arrive() {
    check(&bursts::methods()[2]);
}

#[test]
fn samples_sent_as_the_writer_finds_best_all_arrive() {
    check(&bursts::methods()[3]);
}

#[test]
fn asynchronous_samples_all_arrive() {
    check(&bursts::methods()[4]);
}

#[test]
fn what_cyclone_batches_all_arrives() {
    let words = format!("pub --topic burst --mixed-sizes --batch --count {COUNT} --linger 1");
    let domain = thalweg::domain();
    let reader = bursts::participant(domain);
    let reader = (bursts::reader::<Record>(&reader, "burst"), reader);
    let cyclone = peer::start(None, domain, &format!("{words} --type record"));
    assert!(
        bursts::take(&reader.0, COUNT as usize) == bursts::records(),
        "records are missing, altered or out of order"
    );
    cyclone.finish().well();

    let domain = thalweg::domain();
    let reader = bursts::participant(domain);
    let reader = (bursts::reader::<Bytes>(&reader, "burst"), reader);
    let cyclone = peer::start(None, domain, &format!("{words} --type bytes"));
    assert!(
        bursts::take(&reader.0, COUNT as usize) == bursts::keyless(),
        "samples are missing, altered or out of order"
    );
    cyclone.finish().well();
}
