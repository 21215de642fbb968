//! What a writer makes of answers that come over a path, checked message by message.

use super::tests::{START, acknowledge, matched_reader, reader, writer};
use super::*;
use crate::qos::{History, Transmission};
use crate::types::{EntityId, GuidPrefix, Keyed};

/// A writer whose reader 1 runs on another host and has room for much.
fn writer_to_afar() -> Writer {
    let mut writer = writer(0);
    join_from_afar(&mut writer, 1);
    writer
}

fn join_from_afar(writer: &mut Writer, number: u8) {
    let matched = MatchedReader { receive_buffer_bytes: Some(1 << 24), ..matched_reader(number) };
    writer.match_reader(START, matched);
    acknowledge(writer, START, number, writer.last().next(), &[]);
}

/// Datagrams of more than a kilobyte that leave now.
fn send_large(writer: &mut Writer, now: Instant) -> u32 {
    let (mut outbox, mut large) = (Outbox::new(), 0);
    loop {
        let more = writer.poll_transmit(now, &mut outbox);
        large += outbox.datagrams().filter(|datagram| datagram.len() > 1_000).count() as u32;
        outbox.clear();
        if !more {
            return large;
        }
    }
}

#[test]
fn what_is_owed_to_nobody_since_its_reader_left_does_not_leave() {
    let mut writer = writer_to_afar();
    super::tests::write(&mut writer, 1_000_000);
    assert!(send_large(&mut writer, START) > 0);
    join_from_afar(&mut writer, 2);
    writer.unmatch_reader(reader(1));
    assert_eq!(send_large(&mut writer, START), 0, "reader 2 has come since");
    super::tests::write(&mut writer, 1_200);
    assert_eq!(send_large(&mut writer, START), 1, "of what was written since");
}

#[test]
fn no_datagram_is_larger_than_the_writer_allows_and_nothing_is_left_out() {
    for (method, bytes) in [(Method::Immediate, 5_000), (Method::Immediate, 500), (Method::batch(), 100)] {
        for limit in [548, 700, 1_472] {
            let transmission = Transmission { max_datagram_bytes: limit, ..Transmission::by(method.clone()) };
            let qos = WriterQos { history: History::KeepAll, transmission, ..WriterQos::default() };
            let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::No));
            let mut writer = Writer::new(guid, qos.into(), &WriterOptions::default());
            writer.match_reader(START, MatchedReader { receive_buffer_bytes: Some(1 << 24), ..matched_reader(1) });
            acknowledge(&mut writer, START, 1, SequenceNumber::FIRST, &[]);
            let (samples, mut outbox, mut sent) = (5, Outbox::new(), 0);
            (0..samples).for_each(|_| super::tests::write(&mut writer, bytes));
            writer.flush();
            let mut more = true;
            while more {
                outbox.clear();
                more = writer.poll_transmit(START, &mut outbox);
                for datagram in outbox.datagrams() {
                    assert!(datagram.len() <= limit, "{} bytes where {limit} are allowed", datagram.len());
                    sent += datagram.len();
                }
            }
            assert!(sent > samples * bytes, "{sent} bytes for {samples} samples of {bytes}");
        }
    }
}
