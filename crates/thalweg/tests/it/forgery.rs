//! Somebody on this host forges what a writer and a reader say to each other, with their GUIDs and an address that is theirs as well.

use std::net::{SocketAddr, UdpSocket};

use thalweg::DomainParticipant;
use thalweg::types::{EntityId, Guid, SequenceNumber};
use thalweg_rtps::wire::{AckNack, Gap, Heartbeat, SequenceSet, write};

use crate::fixture::*;

const FAR: SequenceNumber = SequenceNumber(1 << 40);

/// Where user data for `there` go to, as `here` has learned.
fn address_of(here: &DomainParticipant, there: &DomainParticipant) -> SocketAddr {
    let known = here.discovered_participants().into_iter().find(|data| data.guid_prefix == there.guid_prefix());
    let locators = known.expect("they have met").locators;
    let mut addresses = locators.default_unicast.iter().filter_map(|locator| locator.socket_address());
    addresses.find(|address| address.ip().is_loopback() && address.is_ipv4()).expect("an address on loopback")
}

fn lie_of_writer(step: u32, writer: Guid) -> Vec<u8> {
    let (mut out, reader) = (Vec::new(), EntityId::UNKNOWN);
    write::header(&mut out, writer.prefix);
    let writer = writer.entity;
    let heartbeat = |first, last| {
        let count = (1 << 30) + step;
        Heartbeat { reader, writer, first, last, count, is_final: false, liveliness: false }
    };
    match step % 3 {
        0 => write::gap(&mut out, &Gap { reader, writer, start: SequenceNumber::FIRST, list: SequenceSet::new(FAR) }),
        1 => write::heartbeat(&mut out, &heartbeat(FAR, FAR)),
        _ => write::heartbeat(&mut out, &heartbeat(SequenceNumber::FIRST, FAR)),
    }
    out
}

fn lie_of_reader(step: u32, reader: Guid, writer: Guid) -> Vec<u8> {
    let mut out = Vec::new();
    write::header(&mut out, reader.prefix);
    let (state, count) = (SequenceSet::new(FAR), (1 << 30) + step);
    let (reader, writer) = (reader.entity, writer.entity);
    write::acknack(&mut out, &AckNack { reader, writer, state, count, is_final: true });
    out
}

#[test]
fn a_stream_goes_on_whole_whatever_is_forged() {
    let Pair { writer, reader, participants: (here, there) } =
        pair::<Count>("forgery", reliable_writer(), reliable_reader());
    let forger = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let (to_writer, to_reader) = (address_of(&there, &here), address_of(&here, &there));
    for step in 0..30 {
        for value in 0..100 {
            writer.write(&Count { value }).unwrap();
            if value == 50 {
                forger.send_to(&lie_of_writer(step, writer.guid()), to_reader).expect("loopback takes datagrams");
                forger.send_to(&lie_of_reader(step, reader.guid(), writer.guid()), to_writer).expect("and again");
            }
        }
        for (value, sample) in take(&reader, 100).iter().enumerate() {
            assert_eq!(sample.data().unwrap(), Count { value: value as u64 });
        }
        writer.wait_for_acknowledgments(PATIENCE).unwrap();
    }
    assert!(writer.counters().implausible >= 30);
    assert_eq!(reader.counters().lost, 0);
}
