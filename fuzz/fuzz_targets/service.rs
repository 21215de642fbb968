//! A participant with a registered service that a peer writes to: no panic, and the driver is handed what was written, within its
//! bounds.
#![no_main]

use std::net::SocketAddr;

use libfuzzer_sys::fuzz_target;
use thalweg_rtps::discovery::LocalAddresses;
use thalweg_rtps::outbox::Outbox;
use thalweg_rtps::participant::{BuiltinService, Event, Participant, ParticipantConfig, ServiceBounds, ServicePeers};
use thalweg_rtps::payload::Payload;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{EntityId, GuidPrefix, Locator, SequenceNumber};
use thalweg_rtps::wire::write::{self, DataHead, DataKind};

const WRITER: EntityId = EntityId([0x8f, 9, 0, 0x43]);
const READER: EntityId = EntityId([0x8f, 9, 0, 0x44]);
const BYTES_MAX: usize = 64;
const SAMPLES_PER_SECOND: u32 = 5;

fn participant(last: u8) -> Participant {
    let address = |port: u16| Locator::from(SocketAddr::from(([10, 0, 0, last], port)));
    let addresses = LocalAddresses {
        metatraffic_unicast: vec![address(7410)],
        default_unicast: vec![address(7411)],
        interfaces: vec![([10, 0, 0, last].into(), 24)],
        announce_to: vec![Locator::from(SocketAddr::from(([239, 255, 0, 1], 7400)))],
        ..LocalAddresses::default()
    };
    let mut config = ParticipantConfig::new(0, GuidPrefix([last; 12]), addresses);
    (config.seed, config.host) = (u64::from(last), [last; 16]);
    let everybody = ServicePeers::Everybody;
    config.services.push(BuiltinService {
        writer: WRITER,
        reader: READER,
        writes_to: everybody.clone(),
        reads_from: everybody,
        bounds: ServiceBounds {
            samples_max: 16,
            sample_bytes_max: BYTES_MAX,
            samples_per_second_max: SAMPLES_PER_SECOND,
        },
    });
    Participant::new(Instant::from_nanos(1), config)
}

fn drain(participant: &mut Participant, now: Instant) -> Vec<Vec<u8>> {
    let (mut outbox, mut sent) = (Outbox::new(), Vec::new());
    while {
        outbox.clear();
        let more = participant.poll_transmit(now, &mut outbox);
        sent.extend(outbox.datagrams().map(|datagram| datagram.to_vec()));
        more && !outbox.is_empty()
    } {}
    sent
}

/// Lets both find each other, without losses.
fn meet(one: &mut Participant, other: &mut Participant, now: Instant) {
    for _ in 0..8 {
        let (from_one, from_other) = (drain(one, now), drain(other, now));
        for datagram in from_one {
            other.handle_datagram(now, &Payload::from(datagram), SocketAddr::from(([10, 0, 0, 1], 7410)));
        }
        for datagram in from_other {
            one.handle_datagram(now, &Payload::from(datagram), SocketAddr::from(([10, 0, 0, 2], 7410)));
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let now = Instant::from_nanos(1);
    let (mut participant, mut peer) = (participant(1), participant(2));
    meet(&mut participant, &mut peer, now);
    assert!(participant.participants().any(|known| known.data.guid_prefix == GuidPrefix([2; 12])));
    while participant.poll_event().is_some() {}
    let written: Vec<&[u8]> = input.split(|byte| *byte == 0xff).take(16).collect();
    for (number, payload) in (1..).zip(&written) {
        let mut datagram = Vec::new();
        write::header(&mut datagram, GuidPrefix([2; 12]));
        let sequence = SequenceNumber(number);
        let head = DataHead { reader: READER, writer: WRITER, sequence, inline_qos: &[], kind: DataKind::Data };
        write::data(&mut datagram, &head, payload.len());
        datagram.extend_from_slice(payload);
        participant.handle_datagram(now, &Payload::from(datagram), SocketAddr::from(([10, 0, 0, 2], 7410)));
    }
    let mut handed = 0;
    while let Some(event) = participant.poll_event() {
        let Event::ServiceData { reader, from, payload } = event else { continue };
        assert!((reader, from) == (READER, GuidPrefix([2; 12])) && payload.len() <= BYTES_MAX);
        assert!(written.iter().any(|one| payload.starts_with(one)));
        handed += 1;
    }
    assert!(handed <= SAMPLES_PER_SECOND);
    drain(&mut participant, now);
});
