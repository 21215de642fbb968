//! Laws of participants that are known at one of their addresses, and can be reached at another one only.

use super::stranger_tests::*;
use super::tests::*;
use super::*;
use crate::discovery::challenge::HALVES;
use crate::qos::History;
use crate::types::{Keyed, Locator, SequenceNumber, VendorId};
use crate::wire::write;
use crate::wire::{Heartbeat, Message, Submessage};

/// The second address of the participant, in a network of its own as far as this law goes.
const OTHER: [u8; 4] = [10, 0, 0, 42];
const FIRST: SequenceNumber = SequenceNumber(70_000);

fn of_two_networks() -> ParticipantData {
    let mut data = ParticipantData { vendor: VendorId::THALWEG, ..peer(PREFIX, FORGER) };
    data.locators.metatraffic_unicast.push(locator(OTHER, 7410));
    data.locators.default_unicast.push(locator(OTHER, 7411));
    data
}

/// The challenge of the participant, which asks for [`FIRST`].
fn challenge() -> Vec<u8> {
    let mut bytes = Vec::new();
    write::header(&mut bytes, PREFIX);
    for (writer, reader) in HALVES {
        let (first, last) = (FIRST, FIRST.previous());
        let heartbeat = Heartbeat { reader, writer, first, last, count: 1, is_final: false, liveliness: false };
        write::heartbeat(&mut bytes, &heartbeat);
    }
    bytes
}

/// Whether the answer to such a challenge was sent to the other address.
fn has_answered(subject: &Subject) -> bool {
    let answers = |bytes: &[u8]| {
        let message = Message::parse(bytes).expect("what we send can be read");
        let is_answer = |one| matches!(one, Ok(Submessage::AckNack(acknack)) if acknack.state.base() == FIRST);
        message.submessages().any(is_answer)
    };
    subject.sent.iter().any(|(to, bytes)| *to == locator(OTHER, 7410) && answers(bytes))
}

fn reached(subject: &mut Subject) -> Vec<Locator> {
    subject.participant().participants().flat_map(|known| known.reach.user.clone()).collect()
}

/// A network between the two is gone. What the participant announces stays the same, and arrives by the other network.
#[test]
fn a_participant_that_is_silent_where_it_is_known_is_followed_to_another_of_its_addresses() {
    let (mut subject, data) = (Subject::new(), of_two_networks());
    subject.announce(&data, address(FORGER));
    let right = subject.numbers_for(FORGER);
    subject.answer(PREFIX, right, 1, address(FORGER));
    assert_eq!(subject.known(), 1);
    subject.sent.clear();
    subject.announce(&data, address(OTHER));
    subject.receive(&challenge(), address(OTHER));
    let is_left_alone = subject.sent.iter().all(|(to, _)| *to != locator(OTHER, 7410));
    assert!(is_left_alone, "it may well answer where it is known to be");
    subject.run_for(SECOND * 10);
    subject.announce(&data, address(OTHER));
    let right = subject.numbers_for(OTHER);
    assert!(right.iter().all(|number| number.0 > 1), "it is not asked: {right:?}");
    subject.receive(&challenge(), address(OTHER));
    assert!(has_answered(&subject), "it may have to look for us as well");
    assert_eq!(reached(&mut subject), [locator(FORGER, 7411)]);
    subject.answer(PREFIX, right, 2, address(OTHER));
    subject.run_for(SECOND * 3);
    assert_eq!(reached(&mut subject), [locator(OTHER, 7411)]);
}

/// It is asked there as well, whether it still answers. What it is asked is no secret of the other address.
#[test]
fn what_a_participant_is_told_where_it_is_known_proves_no_other_address() {
    let mut subject = Subject::new();
    subject.announce(&peer(PREFIX, FORGER), address(FORGER));
    let right = subject.numbers_for(FORGER);
    subject.answer(PREFIX, right, 1, address(FORGER));
    subject.sent.clear();
    subject.announce(&peer(PREFIX, VICTIM), address(FORGER));
    let heard = subject.numbers_for(FORGER);
    assert!(heard.iter().all(|number| number.0 > 1), "it is not asked: {heard:?}");
    subject.answer(PREFIX, heard, 2, address(FORGER));
    subject.run_for(SECOND * 5);
    assert_eq!(reached(&mut subject), [locator(FORGER, 7411)], "it cannot receive at the other one");
}

/// A short announcement does not pay for both questions and our own announcement.
#[test]
fn nobody_is_asked_elsewhere_for_a_known_participant_that_is_not_asked_itself() {
    let mut subject = Subject::new();
    subject.announce(&peer(PREFIX, VICTIM), address(VICTIM));
    let right = subject.numbers_for(VICTIM);
    subject.answer(PREFIX, right, 1, address(VICTIM));
    assert_eq!(subject.known(), 1);
    subject.sent.clear();
    subject.announce(&peer(PREFIX, FORGER), address(FORGER));
    for asked in [FORGER, VICTIM] {
        let numbers = subject.numbers_for(asked);
        assert!(numbers.iter().all(|number| number.0 > 1), "{asked:?} is not asked: {numbers:?}");
    }
}

#[test]
fn a_participant_whose_addresses_change_asks_everybody_whether_they_are_there() {
    let mut net = Net::new(2);
    net.run_for(SECOND * 5);
    net.nodes[1].cut_off = true;
    let mut addresses = net.nodes[0].participant.config().addresses.clone();
    addresses.interfaces.push(([10, 1, 0, 1].into(), 24));
    net.nodes[0].participant.set_addresses(net.now, addresses);
    net.run_for(SECOND * 5);
    let other = Guid::new(net.nodes[1].participant.guid_prefix(), EntityId::PARTICIPANT_MESSAGE_READER);
    let writer =
        net.nodes[0].participant.endpoints.writer(EntityId::PARTICIPANT_MESSAGE_WRITER).expect("it is built in");
    assert!(writer.lock().is_reader_silent(other));
}

#[test]
fn endpoints_of_one_participant_reach_each_other_where_it_has_moved_to() {
    let mut net = Net::new(1);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    let reader = net.reader(0, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    net.nodes[0].address = OTHER;
    let mut addresses = net.nodes[0].participant.config().addresses.clone();
    addresses.metatraffic_unicast = vec![locator(OTHER, 7410)];
    addresses.default_unicast = vec![locator(OTHER, 7411)];
    addresses.interfaces = vec![(OTHER.into(), 24)];
    net.nodes[0].participant.set_addresses(net.now, addresses);
    assert!(net.write(0, &writer, b"x"));
    net.run_for(SECOND);
    assert_eq!(first_bytes(&take(&net, &reader)), b"x");
}
