//! What an asynchronous writer asks its flow controller for, and what it gets for that.

use super::tests::{
    START, acknowledge, ask_for_pack, collecting, collecting_for, matched_reader, reader, write_stamped,
};
use super::transmission::Place;
use super::*;
use crate::qos::{History, Method};
use crate::types::VendorId;
use crate::wire;

#[test]
fn nothing_waits_for_tokens_once_the_last_reader_has_left() {
    let mut writer = collecting(Method::asynchronous("slow"), History::KeepAll);
    (0..10).for_each(|number| write_stamped(&mut writer, START + Duration::from_nanos(number), 1_000));
    assert_eq!(writer.footprint().waiting, 10);
    writer.unmatch_reader(reader(1));
    assert_eq!((writer.footprint().waiting, writer.held()), (0, 0));
    write_stamped(&mut writer, START + Duration::from_millis(1), 1_000);
    let mut outbox = Outbox::new();
    writer.poll_transmit_within(START + Duration::from_millis(2), u64::MAX, &mut outbox);
    assert_eq!((writer.footprint().waiting, outbox.len()), (0, 0), "nobody is there to get it");
}

/// Had the GAP for its first sample used up the tokens, it would have been all that the answer ever held.
#[test]
fn a_pack_whose_first_sample_is_gone_is_repaired_with_the_tokens_that_its_repair_asks_for() {
    let mut writer = collecting(Method::asynchronous("slow"), History::KeepLast(2));
    (0..2).for_each(|number| write_stamped(&mut writer, START + Duration::from_nanos(number), 200));
    let mut outbox = Outbox::new();
    writer.poll_transmit_within(START, u64::MAX, &mut outbox);
    write_stamped(&mut writer, START, 200);
    writer.poll_transmit_within(START, u64::MAX, &mut outbox);
    let (now, repaired) = (START + Duration::from_secs(1), writer.counters().repaired);
    let pack = writer.history.pack_of(SequenceNumber(1));
    ask_for_pack(&mut writer, now, pack);
    let cost = writer.backlog(now).expect("a repair waits").next_cost;
    outbox.clear();
    writer.poll_transmit_within(now, cost, &mut outbox);
    assert_eq!(writer.counters().repaired - repaired, 1, "with {cost} bytes");
}

/// Samples that were sent whole are repaired in fragments as large as a path that became narrower carries; one that was written since has
/// two equal ones. It waits for its turn: if the cost of its fragments were said to be that of the next datagram, nothing would ever leave.
#[test]
fn repairs_of_large_samples_are_paid_for_while_another_one_waits_for_its_turn() {
    let mut writer = collecting(Method::asynchronous("slow"), History::KeepAll);
    let mut outbox = Outbox::new();
    let wide = || MatchedReader { receive_buffer_bytes: Some(1_500_000), ..matched_reader(1) };
    let narrow = || MatchedReader { datagram_bytes: 800, ..wide() };
    for (reader, samples) in [(wide(), 8), (narrow(), 1)] {
        writer.match_reader(START, reader);
        (0..samples).for_each(|_| write_stamped(&mut writer, START, 800));
        while writer.poll_transmit_within(START, u64::MAX, &mut outbox).more {
            outbox.clear();
        }
    }
    let now = START + Duration::from_secs(1);
    acknowledge(&mut writer, now, 1, SequenceNumber::FIRST, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let repaired = writer.counters().repaired;
    while let Some(backlog) = writer.backlog(now) {
        outbox.clear();
        let paid = writer.poll_transmit_within(now, backlog.next_cost, &mut outbox);
        assert!(paid.spent > 0 || !paid.more, "nothing leaves for {} bytes", backlog.next_cost);
    }
    assert_eq!(writer.counters().repaired - repaired, 9 * 2);
}

#[test]
fn a_sample_that_is_overwritten_while_it_is_sent_closes_no_window() {
    let mut writer = collecting(Method::asynchronous("slow"), History::KeepLast(1));
    write_stamped(&mut writer, START, 400_000);
    let mut outbox = Outbox::new();
    while writer.poll_transmit_within(START, u64::MAX, &mut outbox).more {
        outbox.clear();
    }
    let stopped = writer.outgoing.place;
    assert!(stopped.sample == SequenceNumber(1) && stopped.fragment > 0, "the window closes in its middle");
    write_stamped(&mut writer, START, 400_000);
    assert!(writer.backlog(START).is_some(), "the readers are to be told that the rest will not come");
    writer.poll_transmit_within(START, u64::MAX, &mut outbox);
    assert_eq!(writer.outgoing.place.sample, SequenceNumber(2));
}

#[test]
fn what_the_next_datagram_is_said_to_cost_is_what_fits_into_it() {
    let limit = 9_000;
    let matched = MatchedReader { datagram_bytes: limit, receive_buffer_bytes: Some(1_500_000), ..matched_reader(1) };
    for bytes in 2_060..2_960 {
        let mut writer = collecting_for(matched.clone(), Method::asynchronous("slow"), History::KeepAll);
        (0..6).for_each(|_| write_stamped(&mut writer, START, bytes));
        let cost = writer.backlog(START).expect("samples wait").next_cost;
        let with_heartbeat = cost + wire::write::HEARTBEAT_BATCH_LEN as u64;
        assert!(with_heartbeat <= limit as u64, "{cost} bytes for samples of {bytes} leave no room for a HEARTBEAT");
        let mut outbox = Outbox::new();
        let paid = writer.poll_transmit_within(START, cost, &mut outbox);
        let unspent = cost.checked_sub(paid.spent).expect("no more is spent");
        assert!(unspent < bytes as u64, "{} of {cost} for samples of {bytes}", paid.spent);
    }
}

/// A sample with LIFESPAN that tokens come too late for, whole or in its midst, kept its writer waiting for ever.
#[test]
fn readers_are_told_of_what_expired_while_it_waited_for_tokens() {
    for (bytes, begins) in [(800, false), (20_000, true)] {
        let mut writer = collecting(Method::asynchronous("slow"), History::KeepAll);
        let mut outbox = Outbox::new();
        write_stamped(&mut writer, START, bytes);
        if begins {
            let cost = writer.backlog(START).expect("a sample waits").next_cost;
            writer.poll_transmit_within(START, cost, &mut outbox);
            assert!(writer.outgoing.place.fragment > 0, "a part has left");
        }
        writer.history.expire([SequenceNumber(1)].into_iter());
        let cost = writer.backlog(START).expect("readers are to be told").next_cost;
        writer.poll_transmit_within(START, cost, &mut outbox);
        assert_eq!((writer.footprint().waiting, writer.backlog(START).is_some()), (0, false), "{bytes} bytes");
    }
}

/// A reader that acknowledges no parts of a sample.
fn of_another_vendor() -> MatchedReader {
    let (vendor, receive_buffer_bytes) = (VendorId::CYCLONE, None);
    MatchedReader { vendor, batches: false, on_this_host: true, receive_buffer_bytes, ..matched_reader(1) }
}

/// Lets the writer send as long as it asks for tokens.
fn spend_all(writer: &mut Writer, now: Instant) {
    let mut outbox = Outbox::new();
    loop {
        outbox.clear();
        let paid = writer.poll_transmit_within(now, u64::MAX, &mut outbox);
        assert!(paid.spent > 0 || !paid.more, "it keeps a turn that it does not use");
        if !paid.more {
            return;
        }
    }
}

#[test]
fn a_large_sample_that_waits_for_the_acknowledgement_of_another_asks_for_no_tokens() {
    let mut writer = collecting_for(of_another_vendor(), Method::asynchronous("slow"), History::KeepAll);
    (0..2).for_each(|_| write_stamped(&mut writer, START, 40_000));
    spend_all(&mut writer, START);
    assert_eq!(writer.outgoing.place, Place::before(SequenceNumber(2)), "there is no room for both");
    acknowledge(&mut writer, START, 1, SequenceNumber(2), &[]);
    assert!(writer.backlog(START).is_some(), "now there is");
    spend_all(&mut writer, START);
    assert_eq!(writer.outgoing.place, Place::before(SequenceNumber(3)));
}

/// Nobody can acknowledge what has left of it, which fills the window.
#[test]
fn a_sample_larger_than_the_window_of_another_vendor_asks_for_tokens_to_its_end() {
    let mut writer = collecting_for(of_another_vendor(), Method::asynchronous("slow"), History::KeepAll);
    write_stamped(&mut writer, START, 400_000);
    let mut now = START;
    for _ in 0..100 {
        if writer.backlog(now).is_some() {
            spend_all(&mut writer, now);
        }
        now += Duration::from_millis(1);
    }
    assert_eq!(writer.outgoing.place, Place::before(SequenceNumber(2)));
}

#[test]
fn samples_that_wait_until_a_full_datagram_may_leave_ask_for_no_tokens() {
    let matched = MatchedReader {
        datagram_bytes: 9_000,
        on_this_host: true,
        receive_buffer_bytes: Some(150_000),
        ..matched_reader(1)
    };
    let mut writer = collecting_for(matched, Method::asynchronous("slow"), History::KeepAll);
    (0..4).for_each(|_| write_stamped(&mut writer, START, 2_500));
    writer.collection.mark_blocked();
    // Of a window of 100,000 bytes: three samples have room in the rest, 9,000 bytes have not.
    writer.flow.record_sent(90_700);
    spend_all(&mut writer, START);
    assert_eq!(writer.outgoing.place, Place::before(SequenceNumber(1)));
}

#[test]
fn what_closes_the_window_to_the_next_sample_is_asked_about() {
    let matched = MatchedReader { datagram_bytes: 60_000, on_this_host: true, ..matched_reader(1) };
    let mut writer = collecting_for(matched, Method::asynchronous("slow"), History::KeepAll);
    [1_000, 20_000].iter().for_each(|bytes| write_stamped(&mut writer, START, *bytes));
    spend_all(&mut writer, START);
    assert_eq!(writer.outgoing.place, Place::before(SequenceNumber(2)));
    assert!(!writer.flow.has_unasked(), "nothing else would open it");
}
