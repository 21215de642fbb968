//! Laws of the room that acknowledgements make.

use super::tests::{START, acknowledge, matched_reader, reader, send, write, writer};
use super::*;
use crate::qos::{History, Method, Transmission, WriterQos};
use crate::types::{EntityId, GuidPrefix, Keyed};
use crate::wire::{AckNack, SequenceSet};

/// A KEEP_ALL writer of 100 samples that is full, with one reader that has been sent all of them.
fn full_writer() -> Writer {
    let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::No));
    let transmission = Transmission::by(Method::Immediate);
    let mut qos = WriterQos { history: History::KeepAll, transmission, ..WriterQos::default() };
    qos.resource_limits.max_samples = Some(100);
    let mut writer = Writer::new(guid, &qos, &WriterOptions::default());
    writer.match_reader(START, matched_reader(1));
    acknowledge(&mut writer, START, 1, SequenceNumber(1), &[]);
    (0..100).for_each(|_| write(&mut writer, 10));
    send(&mut writer, START);
    let change = NewChange {
        kind: ChangeKind::Write,
        instance: KeyHash::default(),
        timestamp: None,
        payload: Payload::from(vec![0; 10]),
    };
    assert!(writer.write(START, change).is_err(), "the history is full");
    writer
}

/// Whether a write that waits is told of room when the reader has everything below `base`.
fn tells_of_room(writer: &mut Writer, base: i64) -> bool {
    let acknack = AckNack {
        reader: reader(1).entity,
        writer: writer.guid().entity,
        state: SequenceSet::new(SequenceNumber(base)),
        count: u32::try_from(base).expect("small"),
        is_final: true,
    };
    writer.handle_acknack(START, reader(1), &acknack).space
}

#[test]
fn a_write_that_waits_is_told_when_a_quarter_of_the_history_is_free() {
    let mut writer = full_writer();
    assert!(!tells_of_room(&mut writer, 25), "76 of 100 are left");
    assert!(tells_of_room(&mut writer, 26), "75 are left");
}

#[test]
fn what_was_sent_waits_no_longer_to_be_sent() {
    let mut writer = writer(1);
    (0..10).for_each(|_| write(&mut writer, 1_000));
    let unsent = writer.ahead.unsent_bytes;
    assert!(unsent >= 10_000, "{unsent} bytes wait");
    writer.note_unsent(1_000);
    assert_eq!(writer.ahead.unsent_bytes, unsent - 1_000, "the others still wait");
    send(&mut writer, START);
    assert_eq!(writer.ahead.unsent_bytes, 0);
}
