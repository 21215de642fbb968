//! Laws of participants that have not proved their address: whatever is forged, an address that has not answered is sent at most
//! three times the bytes that came in its name, and forgeries keep no other participant out.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::tests::*;
use super::*;
use crate::discovery::challenge::HALVES;
use crate::discovery::participant_data::ParticipantData;
use crate::payload::Payload;
use crate::qos::{Durability, History, WriterQos};
use crate::types::{EntityId, Guid, Keyed, Locator, SequenceNumber};
use crate::wire::write::{self, DataHead, DataKind};
use crate::wire::{AckNack, Heartbeat, Message, SequenceSet, Submessage};

pub(super) const VICTIM: [u8; 4] = [10, 0, 0, 200];
pub(super) const FORGER: [u8; 4] = [10, 0, 0, 99];
pub(super) const PREFIX: GuidPrefix = GuidPrefix([0xab; 12]);
/// SPDP, SEDP and participant messages, as other vendors announce them.
const ALL_BUILTIN: u32 = 0xc3f;

pub(super) fn address(ip: [u8; 4]) -> SocketAddr {
    SocketAddr::from((ip, 7410))
}

/// A participant that is driven by hand, and the datagrams that it sends to unicast addresses.
pub(super) struct Subject {
    pub(super) net: Net,
    pub(super) sent: Vec<(Locator, Vec<u8>)>,
    received: usize,
}

impl Subject {
    /// A participant with much to announce: 20 writers with a history.
    pub(super) fn new() -> Subject {
        let mut net = Net::new(1);
        for _ in 0..20 {
            let qos = WriterQos { durability: Durability::TransientLocal, ..reliable_writer(History::KeepAll) };
            let writer = net.writer(0, qos, Keyed::No);
            assert!(net.write(0, &writer, &[1; 5_000]));
        }
        let mut subject = Subject { net, sent: Vec::new(), received: 0 };
        subject.run_for(SECOND);
        subject.sent.clear();
        subject
    }

    pub(super) fn participant(&mut self) -> &mut Participant {
        &mut self.net.nodes[0].participant
    }

    fn drain(&mut self) {
        let now = self.net.now;
        loop {
            self.net.outbox.clear();
            let more = self.net.nodes[0].participant.poll_transmit(now, &mut self.net.outbox);
            for datagram in self.net.outbox.datagrams() {
                let unicast = datagram.destinations().iter().filter(|to| !to.is_multicast());
                self.sent.extend(unicast.map(|to| (*to, datagram.to_vec())));
            }
            if !more || self.net.outbox.is_empty() {
                return;
            }
        }
    }

    pub(super) fn run_for(&mut self, duration: Duration) {
        let end = self.net.now + duration;
        loop {
            self.drain();
            let next = self.participant().poll_timeout();
            if next > end {
                break;
            }
            self.net.now = next.max(self.net.now);
            let now = self.net.now;
            self.participant().handle_timeout(now);
        }
        self.net.now = end;
    }

    pub(super) fn receive(&mut self, bytes: &[u8], from: SocketAddr) {
        self.received += bytes.len();
        let now = self.net.now;
        self.participant().handle_datagram(now, &Payload::from(bytes), from);
        self.drain();
    }

    pub(super) fn announce(&mut self, data: &ParticipantData, from: SocketAddr) {
        self.receive(&announcement(data), from);
    }

    /// Bytes sent to an address.
    fn bytes_to(&self, ip: [u8; 4]) -> usize {
        let ip = IpAddr::from(ip);
        let got = self.sent.iter().filter(|(to, _)| to.socket_address().is_some_and(|to| to.ip() == ip));
        got.map(|(_, bytes)| bytes.len()).sum()
    }

    /// The numbers that the latest challenge to an address asks for.
    pub(super) fn numbers_for(&self, ip: [u8; 4]) -> [SequenceNumber; 2] {
        let mut numbers = [SequenceNumber::ZERO; 2];
        let to = |to: &Locator| to.socket_address().is_some_and(|to| to.ip() == IpAddr::from(ip));
        for (_, bytes) in self.sent.iter().filter(|(locator, _)| to(locator)) {
            for submessage in Message::parse(bytes).expect("what we send can be read").submessages() {
                let Ok(Submessage::Heartbeat(heartbeat)) = submessage else { continue };
                let half = HALVES.iter().position(|(writer, _)| *writer == heartbeat.writer);
                if let Some(half) = half.filter(|_| heartbeat.last < heartbeat.first) {
                    numbers[half] = heartbeat.first;
                }
            }
        }
        numbers
    }

    pub(super) fn known(&mut self) -> usize {
        self.participant().participants().count()
    }

    pub(super) fn answer(&mut self, prefix: GuidPrefix, numbers: [SequenceNumber; 2], count: u32, from: SocketAddr) {
        self.receive(&answers(prefix, numbers, count), from);
    }
}

pub(super) fn peer(prefix: GuidPrefix, at: [u8; 4]) -> ParticipantData {
    let mut data = ParticipantData::new(prefix);
    data.vendor = crate::types::VendorId([1, 16]);
    data.builtin_endpoints = ALL_BUILTIN;
    data.locators.metatraffic_unicast = vec![locator(at, 7410)];
    data.locators.default_unicast = vec![locator(at, 7411)];
    data
}

pub(super) fn number(index: u32) -> GuidPrefix {
    let mut prefix = [0xcd; 12];
    prefix[8..].copy_from_slice(&index.to_be_bytes());
    GuidPrefix(prefix)
}

pub(super) fn data_message(prefix: GuidPrefix, writer: EntityId, sequence: i64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write::header(&mut bytes, prefix);
    let sequence = SequenceNumber(sequence);
    let head = DataHead { reader: EntityId::UNKNOWN, writer, sequence, inline_qos: &[], kind: DataKind::Data };
    write::data(&mut bytes, &head, payload.len());
    bytes.extend_from_slice(payload);
    bytes
}

fn announcement(data: &ParticipantData) -> Vec<u8> {
    let mut payload = Vec::new();
    data.encode(&mut payload);
    data_message(data.guid_prefix, EntityId::SPDP_WRITER, 1, &payload)
}

fn farewell(prefix: GuidPrefix) -> Vec<u8> {
    let mut key = Vec::new();
    ParticipantData::encode_key(prefix, &mut key);
    let mut bytes = Vec::new();
    write::header(&mut bytes, prefix);
    let head = DataHead {
        reader: EntityId::UNKNOWN,
        writer: EntityId::SPDP_WRITER,
        sequence: SequenceNumber(2),
        inline_qos: &[],
        kind: DataKind::Key,
    };
    write::data(&mut bytes, &head, key.len());
    bytes.extend_from_slice(&key);
    bytes
}

fn answers(prefix: GuidPrefix, numbers: [SequenceNumber; 2], count: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    write::header(&mut bytes, prefix);
    for ((writer, reader), base) in HALVES.into_iter().zip(numbers) {
        let state = SequenceSet::new(base);
        write::acknack(&mut bytes, &AckNack { reader, writer, state, count, is_final: false });
    }
    bytes
}

/// A reader of participant messages asks for the first one: its participant knows us.
fn asks_for_messages(prefix: GuidPrefix, count: u32) -> Vec<u8> {
    let (writer, reader) = (EntityId::PARTICIPANT_MESSAGE_WRITER, EntityId::PARTICIPANT_MESSAGE_READER);
    let mut bytes = Vec::new();
    write::header(&mut bytes, prefix);
    let state = SequenceSet::new(SequenceNumber::FIRST);
    write::acknack(&mut bytes, &AckNack { reader, writer, state, count, is_final: false });
    bytes
}

/// Its announcements may be lost, too, for longer than a lease.
#[test]
fn a_stranger_that_knows_us_is_asked_again_at_once() {
    let mut subject = Subject::new();
    subject.announce(&peer(PREFIX, FORGER), address(FORGER));
    subject.run_for(Duration::from_millis(2_500));
    subject.sent.clear();
    subject.receive(&asks_for_messages(PREFIX, 1), address(FORGER));
    let right = subject.numbers_for(FORGER);
    assert!(right.iter().all(|number| number.0 > 1), "it is not asked: {right:?}");
    subject.sent.clear();
    subject.receive(&asks_for_messages(PREFIX, 2), address(FORGER));
    assert_eq!(subject.bytes_to(FORGER), 0, "it was just asked");
    subject.answer(PREFIX, right, 3, address(FORGER));
    assert_eq!(subject.known(), 1);
}

#[test]
fn an_address_that_does_not_answer_gets_three_times_what_came_in_its_name() {
    for seed in 0..30 {
        let mut subject = Subject::new();
        let mut rng = Rng::new(seed);
        let sedp = {
            let guid = Guid::new(PREFIX, EntityId::user_reader(1, Keyed::No));
            let mut qos = reliable_reader(History::KeepAll);
            qos.durability = Durability::TransientLocal;
            let mut payload = Vec::new();
            SubscriptionData::new(guid, "topic", "type", qos).encode(&mut payload);
            payload
        };
        for step in 0..400u32 {
            let from = SocketAddr::from(([10, 0, 0, 90 + rng.below(4) as u8], 9));
            let prefix = if rng.chance(0.5) { PREFIX } else { number(rng.below(20) as u32) };
            let mut data = peer(prefix, VICTIM);
            if rng.chance(0.3) {
                data.locators.metatraffic_unicast.push(locator(VICTIM, rng.below(60_000) as u32 as u16));
                data.user_data = vec![0; rng.below(3_000) as usize];
                data.vendor = crate::types::VendorId::THALWEG;
            }
            let guess = |rng: &mut Rng| SequenceNumber(rng.below(100_000) as i64);
            let numbers = [guess(&mut rng), guess(&mut rng)];
            match rng.below(6) {
                0 => subject.announce(&data, from),
                1 => {
                    subject.receive(&data_message(prefix, EntityId::SUBSCRIPTIONS_WRITER, i64::from(step), &sedp), from)
                }
                2 => subject.answer(prefix, numbers, step, from),
                3 => {
                    let mut bytes = Vec::new();
                    write::header(&mut bytes, prefix);
                    for (writer, reader) in HALVES {
                        let (first, last) = (numbers[0], numbers[0].previous());
                        let heartbeat =
                            Heartbeat { reader, writer, first, last, count: step, is_final: false, liveliness: false };
                        write::heartbeat(&mut bytes, &heartbeat);
                    }
                    subject.receive(&bytes, from);
                }
                4 => subject.receive(&asks_for_messages(prefix, step), from),
                _ => subject.run_for(Duration::from_millis(rng.below(2_000))),
            }
            let (got, paid) = (subject.bytes_to(VICTIM), subject.received);
            assert!(got <= 3 * paid, "seed {seed}, step {step}: {got} bytes for {paid}");
        }
        assert!(subject.bytes_to(VICTIM) > 0, "nobody was asked: the law says nothing");
        assert_eq!(subject.known(), 0);
    }
}

#[test]
fn the_right_numbers_prove_an_address_and_nothing_else_does() {
    let mut subject = Subject::new();
    subject.announce(&peer(PREFIX, FORGER), address(FORGER));
    let right = subject.numbers_for(FORGER);
    assert!(right.iter().all(|number| number.0 > 1), "{right:?}");
    let [publications, subscriptions] = right;
    let (zero, one) = (SequenceNumber::ZERO, SequenceNumber::FIRST);
    // Numbers that readers send before they have received anything, wrong ones, right ones of the other half, one half alone.
    for numbers in [
        [zero, zero],
        [one, one],
        [publications.next(), subscriptions.next()],
        [subscriptions, publications],
        [publications, subscriptions.next()],
        [publications.next(), subscriptions],
    ] {
        subject.answer(PREFIX, numbers, 1, address(FORGER));
        assert_eq!(subject.known(), 0, "{numbers:?} instead of {right:?}");
    }
    // Those of another participant, and of another address.
    subject.answer(number(1), right, 1, address(FORGER));
    assert_eq!((subject.known(), subject.participant().counters().wrong_proofs), (0, 6));
    subject.answer(PREFIX, right, 2, address(FORGER));
    assert_eq!(subject.known(), 1);
    // Endpoints announced before the proof still arrive: their numbers are above every challenge.
    let writer = subject.participant().endpoints.writer(EntityId::PUBLICATIONS_WRITER).cloned().expect("a writer");
    let first = writer.lock().last() + (1 - 20);
    assert!(first.0 > 65_537);
    let got = subject.bytes_to(FORGER);
    let mut state = SequenceSet::new(first);
    assert!((0..20).all(|number| state.insert(first + number)));
    let mut request = Vec::new();
    write::header(&mut request, PREFIX);
    let (writer, reader) = HALVES[0];
    write::acknack(&mut request, &AckNack { reader, writer, state, count: 3, is_final: false });
    subject.receive(&request, address(FORGER));
    assert!(subject.bytes_to(FORGER) - got > 2_000);
}

#[test]
fn what_one_address_was_asked_proves_no_other() {
    let mut subject = Subject::new();
    subject.announce(&peer(PREFIX, FORGER), address(FORGER));
    let right = subject.numbers_for(FORGER);
    subject.announce(&peer(PREFIX, VICTIM), address(FORGER));
    assert_ne!(subject.numbers_for(VICTIM), right);
    subject.answer(PREFIX, right, 1, address(FORGER));
    assert_eq!(subject.known(), 0);
    assert!(subject.bytes_to(VICTIM) <= 3 * subject.received);
}

#[test]
fn guesses_are_not_looked_at_without_end() {
    let mut subject = Subject::new();
    subject.announce(&peer(PREFIX, FORGER), address(FORGER));
    let right = subject.numbers_for(FORGER);
    for guess in 0..20 {
        let wrong = [SequenceNumber(2 + guess), SequenceNumber(2 + guess)];
        subject.answer(PREFIX, wrong, guess as u32, address(FORGER));
    }
    subject.answer(PREFIX, right, 30, address(FORGER));
    assert_eq!(subject.known(), 0, "it may have been guessed");
    subject.run_for(SECOND);
    subject.announce(&peer(PREFIX, FORGER), address(FORGER));
    subject.answer(PREFIX, right, 31, address(FORGER));
    assert_eq!(subject.known(), 1, "after the next challenge it counts again");
}

#[test]
fn a_flood_of_forged_participants_keeps_no_newcomer_out() {
    let mut subject = Subject::new();
    for index in 0..10_000 {
        subject.announce(&peer(number(index), VICTIM), address(FORGER));
    }
    assert!(subject.participant().strangers() <= 64);
    let newcomer = [10, 0, 0, 7];
    subject.announce(&peer(PREFIX, newcomer), address(newcomer));
    let right = subject.numbers_for(newcomer);
    subject.answer(PREFIX, right, 1, address(newcomer));
    assert_eq!(subject.known(), 1);
    let (before, sent) = (subject.bytes_to(VICTIM), subject.sent.len());
    subject.run_for(SECOND * 10);
    let later = subject.sent.len() - sent;
    assert!(later < 1_000, "{later} datagrams in ten seconds");
    assert!(before <= 3 * subject.received);
    subject.run_for(SECOND * 25);
    assert_eq!(subject.participant().strangers(), 0, "those that fall silent are forgotten");
}

#[test]
fn floods_from_many_addresses_are_bounded_and_make_room() {
    let mut subject = Subject::new();
    for index in 0..4_000u32 {
        let from = SocketAddr::from(([10, 1, (index % 200) as u8, 1], 9));
        subject.announce(&peer(number(index), VICTIM), from);
    }
    assert_eq!(subject.participant().strangers(), 1_024);
    assert_eq!(subject.participant().counters().strangers_evicted, 4_000 - 1_024);
    let newcomer = [10, 0, 0, 7];
    subject.announce(&peer(PREFIX, newcomer), address(newcomer));
    let right = subject.numbers_for(newcomer);
    subject.answer(PREFIX, right, 1, address(newcomer));
    assert_eq!((subject.known(), subject.participant().strangers()), (1, 1_023));
}

#[test]
fn nobody_else_ends_a_participant_or_changes_it() {
    let mut subject = Subject::new();
    let home = [10, 0, 0, 7];
    subject.announce(&peer(PREFIX, home), address(home));
    let right = subject.numbers_for(home);
    subject.answer(PREFIX, right, 1, address(home));
    assert_eq!(subject.known(), 1);
    subject.receive(&farewell(PREFIX), address(FORGER));
    assert_eq!((subject.known(), subject.participant().counters().foreign_source), (1, 1));
    // An announcement from elsewhere changes neither addresses nor lease.
    let mut forged = peer(PREFIX, VICTIM);
    forged.lease_duration = Duration::from_millis(1);
    subject.announce(&forged, address(FORGER));
    subject.run_for(Duration::from_millis(100));
    let reached: Vec<Locator> =
        subject.participant().participants().flat_map(|known| known.reach.user.clone()).collect();
    assert_eq!(reached, [locator(home, 7411)]);
    assert!(subject.bytes_to(VICTIM) <= 3 * subject.received);
    // Endless signs of life from elsewhere do not keep it alive.
    let mut news = peer(PREFIX, home);
    news.lease_duration = SECOND * 5;
    subject.announce(&news, address(home));
    for _ in 0..10 {
        subject.run_for(SECOND);
        subject.announce(&forged, address(FORGER));
    }
    assert_eq!(subject.known(), 0);
    subject.announce(&peer(PREFIX, home), address(home));
    subject.answer(PREFIX, right, 2, address(home));
    subject.receive(&farewell(PREFIX), address(home));
    assert_eq!(subject.known(), 0);
}

#[test]
fn a_lease_is_an_hour_at_most() {
    let mut subject = Subject::new();
    let mut data = peer(PREFIX, FORGER);
    data.lease_duration = Duration::from_secs(1 << 30);
    subject.announce(&data, address(FORGER));
    let right = subject.numbers_for(FORGER);
    subject.answer(PREFIX, right, 1, address(FORGER));
    subject.run_for(SECOND * 3_590);
    assert_eq!(subject.known(), 1);
    subject.run_for(SECOND * 20);
    assert_eq!(subject.known(), 0);
}

#[test]
fn addresses_of_endpoints_that_have_not_answered_are_not_used() {
    let mut subject = Subject::new();
    subject.announce(&peer(PREFIX, FORGER), address(FORGER));
    let right = subject.numbers_for(FORGER);
    subject.answer(PREFIX, right, 1, address(FORGER));
    let guid = Guid::new(PREFIX, EntityId::user_reader(1, Keyed::No));
    let mut data = SubscriptionData::new(guid, "topic", "type", reliable_reader(History::KeepAll));
    data.unicast = vec![locator(VICTIM, 7411)];
    let mut payload = Vec::new();
    data.encode(&mut payload);
    subject.receive(&data_message(PREFIX, EntityId::SUBSCRIPTIONS_WRITER, 1, &payload), address(FORGER));
    subject.run_for(SECOND * 5);
    assert_eq!(subject.participant().counters().unproved_locators, 1);
    assert_eq!(subject.bytes_to(VICTIM), 0);
}

#[test]
fn a_participant_that_moves_is_followed_once_it_has_answered_there_and_is_silent_here() {
    let mut net = Net::new(2);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    let reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    let new = [10, 0, 0, 42];
    net.nodes[1].address = new;
    let mut addresses = net.nodes[1].participant.config().addresses.clone();
    addresses.metatraffic_unicast = vec![locator(new, 7410)];
    addresses.default_unicast = vec![locator(new, 7411)];
    addresses.interfaces = vec![(new.into(), 24)];
    let now = net.now;
    net.nodes[1].participant.set_addresses(now, addresses);
    let reach = |net: &Net| -> Vec<Locator> {
        net.nodes[0].participant.participants().flat_map(|known| known.reach.user.clone()).collect()
    };
    net.run_for(SECOND);
    assert_eq!(reach(&net), [locator([10, 0, 0, 2], 7411)], "it may still be there");
    net.run_for(SECOND * 2);
    assert_eq!(reach(&net), [locator(new, 7411)]);
    assert!(net.write(0, &writer, b"z"));
    net.run_for(SECOND);
    assert_eq!(first_bytes(&take(&net, &reader)), b"z");
}

/// In this case it has been silent for less than two seconds when its lease ends.
#[test]
fn a_participant_that_has_answered_where_it_moved_to_is_not_lost_at_the_end_of_its_lease() {
    let mut subject = Subject::new();
    let new = [10, 0, 0, 42];
    let with_lease = |at| ParticipantData { lease_duration: SECOND * 3, ..peer(PREFIX, at) };
    subject.announce(&with_lease(FORGER), address(FORGER));
    let right = subject.numbers_for(FORGER);
    subject.answer(PREFIX, right, 1, address(FORGER));
    subject.run_for(Duration::from_millis(2_500));
    subject.announce(&with_lease(new), address(new));
    let right = subject.numbers_for(new);
    subject.answer(PREFIX, right, 2, address(new));
    while subject.participant().poll_event().is_some() {}
    subject.run_for(Duration::from_millis(400));
    subject.sent.clear();
    subject.run_for(Duration::from_millis(600));
    let events: Vec<Event> = std::iter::from_fn(|| subject.participant().poll_event()).collect();
    assert_eq!(events, [Event::AddressesChosen(PREFIX)]);
    let announces = |bytes: &[u8]| {
        let message = Message::parse(bytes).expect("what we send can be read");
        let is_spdp = |one| matches!(one, Ok(Submessage::Data(data)) if data.writer == EntityId::SPDP_WRITER);
        message.submessages().any(is_spdp)
    };
    let greets = |(to, bytes): &(Locator, Vec<u8>)| *to == locator(new, 7410) && announces(bytes);
    assert!(subject.sent.iter().any(greets), "it may have forgotten us");
    subject.run_for(SECOND * 3);
    assert_eq!(subject.known(), 0, "it has said nothing there for a lease");
}

#[test]
fn a_known_participant_is_not_followed_to_an_address_that_answers_with_wrong_numbers() {
    for (is_right, follows) in [(true, 1), (false, 0)] {
        let mut subject = Subject::new();
        let with_lease = |at| ParticipantData { lease_duration: SECOND * 3, ..peer(PREFIX, at) };
        subject.announce(&with_lease(VICTIM), address(VICTIM));
        let right = subject.numbers_for(VICTIM);
        subject.answer(PREFIX, right, 1, address(VICTIM));
        assert_eq!(subject.known(), 1);
        subject.announce(&with_lease(FORGER), address(FORGER));
        let [publications, subscriptions] = subject.numbers_for(FORGER);
        let wrong = [publications.next(), subscriptions.next()];
        let numbers = if is_right { [publications, subscriptions] } else { wrong };
        subject.answer(PREFIX, numbers, 2, address(FORGER));
        assert_eq!(subject.participant().counters().wrong_proofs, 2 - 2 * follows);
        subject.run_for(SECOND * 4);
        assert_eq!(subject.known(), follows as usize, "the victim is silent, and its lease has ended");
    }
}
