//! What a writer makes of answers that come over a path, checked message by message.

use super::tests::{START, acknowledge, matched_reader, reader, writer};
use super::*;

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
