//! A participant that asks about writers and is asked, fed with any payload as question and as answer: no panic, nothing kept
//! beyond what one peer may tell.
#![no_main]

use std::net::SocketAddr;

use libfuzzer_sys::fuzz_target;
use thalweg_rtps::discovery::LocalAddresses;
use thalweg_rtps::discovery::participant_data::ParticipantData;
use thalweg_rtps::outbox::Outbox;
use thalweg_rtps::participant::{INSPECTOR_PROPERTY, Participant, ParticipantConfig};
use thalweg_rtps::payload::Payload;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{EntityId, GuidPrefix, Keyed, Locator, SequenceNumber, VendorId};
use thalweg_rtps::wire::parameters::ParameterWriter;
use thalweg_rtps::wire::write::{self, DataHead, DataKind};

const OWN: GuidPrefix = GuidPrefix([1, 0xfb, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
const PEER: GuidPrefix = GuidPrefix([2, 0xfb, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
/// Parameter ids of an answer: its head, and who is explained.
const ANSWER: u16 = 0x8181;
const IDENTITY: u16 = 0x8101;

fn address(last: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], port))
}

fn receive(participant: &mut Participant, writer: EntityId, sequence: i64, payload: &[u8]) {
    let mut out = Vec::new();
    write::header(&mut out, PEER);
    let sequence = SequenceNumber(sequence);
    let head = DataHead { reader: EntityId::UNKNOWN, writer, sequence, inline_qos: &[], kind: DataKind::Data };
    write::data(&mut out, &head, payload.len());
    out.extend_from_slice(payload);
    let now = Instant::from_nanos(1);
    participant.handle_datagram(now, &Payload::from(out), address(2, 7410));
    let mut outbox = Outbox::new();
    while participant.poll_transmit(now, &mut outbox) && !outbox.is_empty() {
        outbox.clear();
    }
    while participant.poll_event().is_some() {}
}

/// An answer to the question that is open, about a writer of the peer, that goes on with `rest`.
fn answer(rest: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut list = ParameterWriter::encapsulated(&mut bytes);
    list.put(ANSWER, |value| {
        value.extend_from_slice(&OWN.0);
        [1u32, 0, 1].into_iter().for_each(|number| value.extend_from_slice(&number.to_le_bytes()));
    });
    list.put(IDENTITY, |value| {
        value.extend_from_slice(&PEER.0);
        value.extend_from_slice(&EntityId::user_writer(1, Keyed::No).0);
        value.extend_from_slice(b"\x02\0\0\0t\0\0\0");
    });
    bytes.extend_from_slice(rest);
    bytes
}

fuzz_target!(|input: &[u8]| {
    let Some((which, payload)) = input.split_first() else { return };
    let addresses = LocalAddresses {
        metatraffic_unicast: vec![Locator::from(address(1, 7410))],
        default_unicast: vec![Locator::from(address(1, 7411))],
        interfaces: vec![(address(1, 0).ip(), 24)],
        announce_to: vec![Locator::from(SocketAddr::from(([239, 255, 0, 1], 7400)))],
        ..LocalAddresses::default()
    };
    let mut config = ParticipantConfig::new(0, OWN, addresses);
    config.inspector = true;
    let mut participant = Participant::new(Instant::from_nanos(1), config);
    let mut peer = ParticipantData::new(PEER);
    peer.vendor = VendorId::THALWEG;
    peer.builtin_endpoints = 0xc3f;
    peer.locators.metatraffic_unicast = vec![Locator::from(address(2, 7410))];
    peer.properties.push((INSPECTOR_PROPERTY.0.to_owned(), INSPECTOR_PROPERTY.1.to_owned()));
    let mut announcement = Vec::new();
    peer.encode(&mut announcement);
    receive(&mut participant, EntityId::SPDP_WRITER, 1, &announcement);
    participant.ask(Instant::from_nanos(1), "t");
    match which % 3 {
        0 => receive(&mut participant, EntityId::ANSWER_WRITER, 1, payload),
        1 => receive(&mut participant, EntityId::ANSWER_WRITER, 1, &answer(payload)),
        _ => receive(&mut participant, EntityId::QUESTION_WRITER, 1, payload),
    }
    assert!(participant.answers().count() <= 1);
    assert!(participant.answers().all(|told| told.guid.prefix == PEER));
});
