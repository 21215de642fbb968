//! How often a reader speaks while a large sample arrives.

use super::tests::{LATER, Session, WRITER, fragment_of, matched_writer, number};
use super::*;
use crate::history::{ChangeKind, PayloadKind};
use crate::qos::Reliability;
use crate::rng::Rng;
use crate::types::{EntityId, VendorId};
use crate::wire::{HeartbeatFrag, Message, Submessage};

/// Cyclone DDS's fragments, and how many of them it puts into one packet.
const FRAGMENT_BYTES: usize = 1_344;
const IN_A_PACKET: u32 = 10;
const PACKET_PERIOD: Duration = Duration::from_micros(60);

/// A reader and a writer that sends as Cyclone DDS 11.0.1 does: packets of ten fragments, each with a HEARTBEAT_FRAG.
struct Stream {
    session: Session,
    fragments: u32,
    said: u32,
    arrived: Vec<bool>,
}

impl Stream {
    fn of(bytes: usize, vendor: VendorId) -> Stream {
        let mut session = Session::with_budget(Reliability::RELIABLE, None, 1 << 26);
        session.reader.match_writer(session.now, MatchedWriter { vendor, ..matched_writer() });
        session.answer_after(Duration::ZERO);
        session.heartbeat(1, 0).answer_after(Duration::from_millis(200));
        let fragments = bytes.div_ceil(FRAGMENT_BYTES) as u32;
        Stream { session, fragments, said: 0, arrived: vec![false; fragments as usize + 1] }
    }

    fn fragment(&mut self, fragment: u32) {
        let bytes = [0; FRAGMENT_BYTES];
        let fragments = DataFrag {
            reader: EntityId::UNKNOWN,
            writer: WRITER.entity,
            sequence: number(1),
            first_fragment: fragment,
            fragments: 1,
            fragment_size: FRAGMENT_BYTES as u16,
            sample_size: self.fragments * FRAGMENT_BYTES as u32,
            inline_qos: None,
            key: false,
            bytes: 0..bytes.len(),
        };
        let head = FragmentedSample {
            coherent_set: crate::types::SequenceNumber::ZERO,
            related: None,
            timestamp: None,
            kind: ChangeKind::Write,
            hint: None,
            content_kind: PayloadKind::Data,
        };
        let now = self.session.now;
        let (complete, _) = self.session.reader.handle_data_frag(now, WRITER, &fragments, &bytes, head);
        self.arrived[fragment as usize] = true;
        if let Some(whole) = complete {
            self.session.reader.handle_arrivals(now, WRITER, std::iter::once(Arrival::Sample(whole.sample)));
        }
    }

    /// All packets once, of which `loses` says which are lost; the last one ends with a HEARTBEAT.
    fn send(&mut self, mut loses: impl FnMut() -> bool) {
        for (packet, first) in (1..=self.fragments).step_by(IN_A_PACKET as usize).enumerate() {
            let last = (first + IN_A_PACKET - 1).min(self.fragments);
            self.session.now += PACKET_PERIOD;
            if loses() {
                continue;
            }
            (first..=last).for_each(|fragment| self.fragment(fragment));
            let (reader, writer, count) = (EntityId::UNKNOWN, WRITER.entity, packet as u32 + 1);
            let heartbeat = HeartbeatFrag { reader, writer, sequence: number(1), last_fragment: last, count };
            self.session.reader.handle_heartbeat_frag(self.session.now, WRITER, &heartbeat);
            self.answers();
        }
        self.session.heartbeat(1, 1);
        self.answers();
    }

    /// What the reader asks for now.
    fn answers(&mut self) -> Vec<u32> {
        self.session.outbox.clear();
        self.session.reader.poll_transmit(self.session.now, &mut self.session.outbox);
        let mut asked = Vec::new();
        for datagram in self.session.outbox.datagrams() {
            self.said += 1;
            for submessage in Message::parse(&datagram.to_vec()).unwrap().submessages() {
                if let Ok(Submessage::NackFrag(nack)) = submessage {
                    asked.extend(nack.state.iter().filter(|fragment| !self.arrived[*fragment as usize]));
                }
            }
        }
        asked
    }
}

#[test]
fn a_large_sample_that_arrives_whole_is_acknowledged_once_and_not_with_every_packet() {
    let mut stream = Stream::of(6_000_000, VendorId([1, 16]));
    stream.send(|| false);
    assert_eq!(stream.session.taken(), [1]);
    assert_eq!(stream.said, 1, "447 packets told how far the writer is");
}

#[test]
fn what_is_lost_of_a_large_sample_is_asked_for_while_the_rest_arrives() {
    let mut rng = Rng::new(3);
    let mut stream = Stream::of(6_000_000, VendorId([1, 16]));
    stream.send(|| rng.chance(0.05));
    // 27 ms on their way: one request in 5 ms, each with what it takes to name 20 lost packets.
    assert!((2..=40).contains(&stream.said), "{} datagrams", stream.said);
    for _ in 0..20 {
        stream.session.now += Duration::from_millis(20);
        let asked = stream.answers();
        asked.into_iter().for_each(|fragment| stream.fragment(fragment));
    }
    assert_eq!(stream.session.taken(), [1]);
}

#[test]
fn a_repair_puts_the_next_request_off_unless_it_comes_when_that_is_due() {
    for (early, asks) in [(Duration::from_nanos(1), false), (Duration::ZERO, true)] {
        let mut stream = Stream::of(40 * FRAGMENT_BYTES, VendorId::THALWEG);
        let mut is_first = true;
        stream.send(|| std::mem::take(&mut is_first));
        let due = stream.session.reader.writers[0].requests.due.expect("it asks again");
        stream.session.now += due.since(stream.session.now) - early;
        stream.fragment(1);
        stream.session.now = due;
        assert_eq!(!stream.answers().is_empty(), asks, "{early:?} before");
    }
}

#[test]
fn a_writer_that_waits_for_progress_hears_of_it() {
    let mut stream = Stream::of(100 * FRAGMENT_BYTES, VendorId::THALWEG);
    stream.send(|| false);
    assert_eq!(stream.said, 11, "one for each packet, and for the HEARTBEAT");
}

/// A reader takes what lies in its socket together: the rest of the sample comes before the question about part of it. Without an
/// answer the writer would keep its window closed until the next HEARTBEAT.
#[test]
fn a_question_about_part_of_a_sample_that_is_complete_by_then_is_answered() {
    for (vendor, said) in [(VendorId::THALWEG, 1), (VendorId([1, 16]), 0)] {
        let mut stream = Stream::of(10 * FRAGMENT_BYTES, vendor);
        (1..=10).for_each(|fragment| stream.fragment(fragment));
        let (reader, writer) = (EntityId::UNKNOWN, WRITER.entity);
        for count in [1, 1] {
            let heartbeat = HeartbeatFrag { reader, writer, sequence: number(1), last_fragment: 5, count };
            stream.session.reader.handle_heartbeat_frag(stream.session.now, WRITER, &heartbeat);
            stream.answers();
        }
        assert_eq!(stream.said, said, "{vendor}: the repetition is not answered again");
    }
}

/// The writer was told of progress, so that the reader waits for the rest; that comes in the same turn as the next question.
#[test]
fn a_question_is_answered_although_what_comes_behind_it_completes_the_sample() {
    let mut stream = Stream::of(10 * FRAGMENT_BYTES, VendorId::THALWEG);
    let (reader, writer) = (EntityId::UNKNOWN, WRITER.entity);
    for (fragments, last_fragment, count) in [(1..=4, 4, 1), (5..=7, 7, 2)] {
        fragments.for_each(|fragment| stream.fragment(fragment));
        let heartbeat = HeartbeatFrag { reader, writer, sequence: number(1), last_fragment, count };
        stream.session.reader.handle_heartbeat_frag(stream.session.now, WRITER, &heartbeat);
        if count == 1 {
            stream.answers();
        }
    }
    (8..=10).for_each(|fragment| stream.fragment(fragment));
    stream.answers();
    assert_eq!(stream.said, 2, "one answer for each question");
}

/// Had it asked for the rest, the writer, which has nothing to send, would have answered with a HEARTBEAT, which would have been
/// answered at once, and so on, as fast as the network carries it.
#[test]
fn parts_of_a_sample_that_needs_none_are_not_asked_for_while_others_wait_for_room() {
    for word in ["gone", "irrelevant", "whole"] {
        let mut session = Session::new(Reliability::RELIABLE, Some(1));
        session.heartbeat(1, 0).answer_after(LATER);
        assert!(!fragment_of(session.data(&[1, 2]), 3, 0, 2_800));
        match word {
            "gone" => _ = session.confirmed_heartbeat(4, 3),
            "whole" => _ = session.data(&[3]),
            _ => {
                let gap = Arrival::Irrelevant { start: number(3), end: number(4) };
                session.reader.handle_arrivals(session.now, WRITER, std::iter::once(gap));
            }
        }
        session.heartbeat(if word == "gone" { 4 } else { 1 }, 3).answer_after(Duration::ZERO);
        for datagram in session.outbox.datagrams() {
            let datagram = datagram.to_vec();
            let message = Message::parse(&datagram).unwrap();
            let asks = message.submessages().any(|submessage| match submessage.unwrap() {
                Submessage::AckNack(acknack) => !acknack.is_final || !acknack.state.is_empty(),
                Submessage::AckNackBatch(acknack) => !acknack.state.is_empty(),
                submessage => matches!(submessage, Submessage::NackFrag(_)),
            });
            assert!(!asks, "{word}");
        }
        assert_eq!(session.reader.footprint().unfinished, 0, "{word}");
    }
}

/// Parts of a sample that was counted came and began it again, and the next whole sample counted it once more.
#[test]
fn a_best_effort_sample_that_came_in_part_is_lost_once() {
    let mut session = Session::new(Reliability::BestEffort, None);
    session.data(&[1]);
    assert!((2..=6).all(|sequence| !fragment_of(&mut session, sequence, 0, 2_800)));
    assert_eq!(session.reader.losses().to_string(), "1 arrived in part");
    assert!(!fragment_of(&mut session, 2, 1, 2_800), "it is late");
    session.data(&[7]).check("", &[1, 7]);
    assert_eq!(session.reader.losses().to_string(), "4 never arrived, 1 arrived in part");
    // Of those that it still puts together, each may be completed.
    assert!((8..=12).all(|sequence| !fragment_of(&mut session, sequence, 0, 2_800)));
    assert!(fragment_of(&mut session, 9, 1, 2_800));
    assert_eq!(session.reader.losses().to_string(), "4 never arrived, 2 arrived in part");
}

#[test]
fn parts_of_a_best_effort_sample_that_is_not_wanted_are_no_loss() {
    let mut session = Session::new(Reliability::BestEffort, None);
    assert!(!fragment_of(&mut session, 1, 1, 2_800));
    session.reader.handle_arrivals(session.now, WRITER, std::iter::once(Arrival::Unwanted(number(1))));
    assert!((2..=5).all(|sequence| !fragment_of(&mut session, sequence, 0, 2_800)));
    assert_eq!(session.reader.losses().total(), 0);
}

/// Repetitions of a refused sample took back that its number was passed over, and all of it was asked for again.
#[test]
fn the_repeated_end_of_a_sample_that_a_filter_refused_is_not_the_beginning_of_another_one() {
    let mut session = Session::new(Reliability::RELIABLE, None);
    session.data(&[1]).heartbeat(1, 1).check("samples 2:", &[1]);
    assert!(!fragment_of(&mut session, 2, 0, 2_800));
    assert!(fragment_of(&mut session, 2, 1, 2_800));
    session.reader.handle_arrivals(session.now, WRITER, std::iter::once(Arrival::Unwanted(number(2))));
    assert!(!fragment_of(&mut session, 2, 1, 2_800));
    assert_eq!((session.reader.footprint().unfinished, session.answer_after(LATER)), (0, String::new()));
    session.data(&[4]).heartbeat(1, 4).answer_after(LATER);
    session.reader.handle_arrivals(session.now, WRITER, std::iter::once(Arrival::Unwanted(number(3))));
    session.heartbeat(1, 4).check("samples 5:", &[4]);
}
