use std::time::Duration;

use super::*;
use crate::qos::{
    AccessScope, AttachedData, DestinationOrder, Durability, DurabilityService, History, Liveliness, LivelinessKind,
    Ownership, Presentation, ReaderTiming, Reliability, Representation, ResourceLimits, Transmission, WriterOwnership,
    WriterTiming,
};
use crate::rng::Rng;
use crate::time::INFINITE;
use crate::types::{GuidPrefix, HistoryIdentity, Keyed};
use crate::wire::tests::bytes_of;
use crate::wire::tests::golden::{GOLDEN, golden, payloads};

const PREFIX: GuidPrefix = GuidPrefix([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
/// PID_ENDPOINT_GUID of a keyed writer and of a keyed reader, little endian.
const WRITER: &str = "5a00 1000 0102030405060708090a0b0c 00000102 ";
const READER: &str = "5a00 1000 0102030405060708090a0b0c 00000107 ";
/// PID_TOPIC_NAME and PID_TYPE_NAME; values that follow these and a GUID start at offset 52.
const NAMES: &str = "0500 0800 02000000 54000000 0700 0800 02000000 59000000 ";

fn pick<T: Copy>(rng: &mut Rng, values: &[T]) -> T {
    values[rng.below(values.len() as u64) as usize]
}

fn random_period(rng: &mut Rng) -> Duration {
    if rng.chance(0.3) { INFINITE } else { Duration::from_nanos(rng.below(1 << 50)) }
}

fn random_octets(rng: &mut Rng) -> Vec<u8> {
    (0..rng.below(9)).map(|_| rng.next_u64() as u8).collect()
}

fn random_locators(rng: &mut Rng) -> Vec<Locator> {
    let locator = |port| Locator { kind: Locator::UDP_V6, port: 1 + port, address: [9; 16] };
    (0..rng.below(4) as u32).map(locator).collect()
}

fn random_reliability(rng: &mut Rng) -> Reliability {
    let max_blocking_time = random_period(rng);
    pick(rng, &[Reliability::BestEffort, Reliability::Reliable { max_blocking_time }])
}

fn random_durability(rng: &mut Rng) -> Durability {
    pick(rng, &[Durability::Volatile, Durability::TransientLocal, Durability::Transient, Durability::Persistent])
}

fn random_history(rng: &mut Rng) -> History {
    let depth = 1 + rng.below(20) as u32;
    pick(rng, &[History::KeepAll, History::KeepLast(1), History::KeepLast(depth)])
}

fn random_limits(rng: &mut Rng) -> ResourceLimits {
    let mut limit = || rng.chance(0.5).then(|| 1 + rng.below(i32::MAX as u64) as u32);
    ResourceLimits { max_samples: limit(), max_instances: limit(), max_samples_per_instance: limit() }
}

fn random_liveliness(rng: &mut Rng) -> Liveliness {
    let kinds = [LivelinessKind::Automatic, LivelinessKind::ManualByParticipant, LivelinessKind::ManualByTopic];
    Liveliness { kind: pick(rng, &kinds), lease: random_period(rng) }
}

fn random_order(rng: &mut Rng) -> DestinationOrder {
    pick(rng, &[DestinationOrder::ByReception, DestinationOrder::BySource])
}

fn random_presentation(rng: &mut Rng) -> Presentation {
    let access_scope = pick(rng, &[AccessScope::Instance, AccessScope::Topic, AccessScope::Group]);
    Presentation { access_scope, coherent: rng.chance(0.5), ordered: rng.chance(0.5) }
}

fn random_representations(rng: &mut Rng) -> Vec<Representation> {
    let kinds = [Representation::Xcdr1, Representation::Xml, Representation::Xcdr2, Representation::Other(-3)];
    (0..rng.below(4)).map(|_| pick(rng, &kinds)).collect()
}

fn random_partition(rng: &mut Rng) -> Vec<String> {
    (0..rng.below(4)).map(|_| pick(rng, &["", "a", "left*", "größe"]).to_owned()).collect()
}

fn random_attached(rng: &mut Rng) -> AttachedData {
    AttachedData { user: random_octets(rng), topic: random_octets(rng), group: random_octets(rng) }
}

fn random_writer_qos(rng: &mut Rng) -> WriterQos {
    let strength = rng.next_u64() as i32;
    WriterQos {
        reliability: random_reliability(rng),
        durability: random_durability(rng),
        durability_service: DurabilityService {
            cleanup_delay: random_period(rng),
            history: random_history(rng),
            resource_limits: random_limits(rng),
        },
        history: random_history(rng),
        resource_limits: random_limits(rng),
        timing: WriterTiming {
            deadline: random_period(rng),
            latency_budget: random_period(rng),
            lifespan: random_period(rng),
        },
        liveliness: random_liveliness(rng),
        ownership: pick(rng, &[WriterOwnership::Shared, WriterOwnership::Exclusive { strength }]),
        destination_order: random_order(rng),
        transport_priority: pick(rng, &[0, -7, 12]),
        data_representation: random_representations(rng),
        autodispose: true,
        transmission: Transmission::default(),
        reader_patience: INFINITE,
        presentation: random_presentation(rng),
        partition: random_partition(rng),
        attached: random_attached(rng),
    }
}

fn random_reader_qos(rng: &mut Rng) -> ReaderQos {
    ReaderQos {
        reliability: random_reliability(rng),
        durability: random_durability(rng),
        history: random_history(rng),
        resource_limits: random_limits(rng),
        timing: ReaderTiming {
            deadline: random_period(rng),
            latency_budget: random_period(rng),
            minimum_separation: random_period(rng),
        },
        liveliness: random_liveliness(rng),
        ownership: pick(rng, &[Ownership::Shared, Ownership::Exclusive]),
        destination_order: random_order(rng),
        data_representation: random_representations(rng),
        type_consistency: TypeConsistency {
            allows_coercion: rng.chance(0.5),
            ignores_sequence_bounds: rng.chance(0.5),
            ignores_string_bounds: rng.chance(0.5),
            ignores_member_names: rng.chance(0.5),
            prevents_widening: rng.chance(0.5),
            forces_validation: rng.chance(0.5),
        },
        presentation: random_presentation(rng),
        partition: random_partition(rng),
        attached: random_attached(rng),
        ..ReaderQos::default()
    }
}

fn random_publication(rng: &mut Rng) -> PublicationData {
    let guid = Guid::new(PREFIX, EntityId::user_writer(rng.below(1 << 24) as u32, Keyed::Yes));
    PublicationData {
        entity_name: pick(rng, &["", "front camera"]).to_owned(),
        unicast: random_locators(rng),
        multicast: random_locators(rng),
        ..PublicationData::new(guid, pick(rng, &["", "Square", "rt/größe"]), "ShapeType", random_writer_qos(rng))
    }
}

fn random_subscription(rng: &mut Rng) -> SubscriptionData {
    let guid = Guid::new(PREFIX, EntityId::user_reader(rng.below(1 << 24) as u32, Keyed::No));
    SubscriptionData {
        entity_name: pick(rng, &["", "display"]).to_owned(),
        unicast: random_locators(rng),
        multicast: random_locators(rng),
        expects_inline_qos: rng.chance(0.5),
        type_information: rng.chance(0.5).then(|| [1, 2, 3, 4, 5, 6, 7, 8].into()),
        ..SubscriptionData::new(guid, pick(rng, &["", "Square", "rt/größe"]), "ShapeType", random_reader_qos(rng))
    }
}

#[test]
fn what_is_announced_comes_back() {
    let mut rng = Rng::new(10);
    for _ in 0..2_000 {
        let (publication, subscription) = (random_publication(&mut rng), random_subscription(&mut rng));
        let mut payload = Vec::new();
        publication.encode(&mut payload);
        assert!(payload.len().is_multiple_of(4));
        assert_eq!(PublicationData::decode(&payload), Ok(publication.clone()));
        payload.clear();
        subscription.encode(&mut payload);
        assert_eq!(SubscriptionData::decode(&payload), Ok(subscription.clone()));
        payload.clear();
        PublicationData::encode_key(publication.guid, &mut payload);
        assert_eq!(PublicationData::decode_key(&payload), Ok(publication.guid));
        payload.clear();
        SubscriptionData::encode_key(subscription.guid, &mut payload);
        assert_eq!(SubscriptionData::decode_key(&payload), Ok(subscription.guid));
    }
}

#[test]
fn both_ends_come_to_the_same_result() {
    let mut rng = Rng::new(11);
    for _ in 0..500 {
        let (mut publication, mut subscription) = (random_publication(&mut rng), random_subscription(&mut rng));
        publication.topic_name.clone_from(&subscription.topic_name);
        subscription.guid.entity = EntityId::user_reader(1, Keyed::Yes);
        let (mut writer, mut reader) = (Vec::new(), Vec::new());
        publication.encode(&mut writer);
        subscription.encode(&mut reader);
        let here = match_endpoints(&publication, &SubscriptionData::decode(&reader).unwrap());
        let there = match_endpoints(&PublicationData::decode(&writer).unwrap(), &subscription);
        assert_eq!(here, there);
    }
}

#[test]
fn what_is_missing_has_the_default_of_the_specification() {
    let payload = bytes_of(&format!("0003 0000 {WRITER} {NAMES} 0100 0000"));
    let guid = Guid::new(PREFIX, EntityId::user_writer(1, Keyed::Yes));
    assert_eq!(PublicationData::decode(&payload), Ok(PublicationData::new(guid, "T", "Y", WriterQos::default())));
    let payload = bytes_of(&format!("0003 0000 {READER} {NAMES} 0100 0000"));
    let guid = Guid::new(PREFIX, EntityId::user_reader(1, Keyed::Yes));
    let qos = ReaderQos { data_representation: Vec::new(), ..ReaderQos::default() };
    assert_eq!(SubscriptionData::decode(&payload), Ok(SubscriptionData::new(guid, "T", "Y", qos)));
}

/// Decodes a little-endian list that has a GUID and both names in front of `rest`.
#[track_caller]
fn writer(rest: &str, then: fn(WriterQos) -> String, expect: &str) {
    let payload = bytes_of(&format!("0003 0000 {WRITER} {NAMES} {rest} 0100 0000"));
    let told = PublicationData::decode(&payload)
        .map_or_else(|error| error.to_string(), |data| then(WriterQos::clone(&data.qos)));
    assert_eq!(told, expect);
}

#[track_caller]
fn broken(list: &str, expect: &str) {
    let payload = bytes_of(&format!("0003 0000 {list} 0100 0000"));
    assert_eq!(PublicationData::decode(&payload).unwrap_err().to_string(), expect);
}

#[test]
fn endpoints_without_a_proper_guid_or_names_are_refused() {
    broken(NAMES, "4: expected PID_ENDPOINT_GUID in the list");
    broken(&format!("{READER} {NAMES}"), "8: expected GUID of a writer");
    broken("5a00 0c00 0102030405060708090a0b0c", "8: expected GUID of 16 bytes");
    broken(WRITER, "4: expected PID_TOPIC_NAME in the list");
    broken(&format!("{WRITER} 0500 0800 02000000 54000000"), "4: expected PID_TYPE_NAME in the list");
    broken(&format!("{WRITER} 0500 0800 02000000 ff000000 {NAMES}"), "28: expected string in UTF-8");
    broken(&format!("{WRITER} 0500 0800 f0ffffff 54000000 {NAMES}"), "28: expected length within the parameter");
    let payload = bytes_of(&format!("0003 0000 {WRITER} {NAMES} 0100 0000"));
    assert_eq!(SubscriptionData::decode(&payload).unwrap_err().to_string(), "8: expected GUID of a reader");
    assert_eq!(SubscriptionData::decode_key(&payload).unwrap_err().to_string(), "8: expected GUID of a reader");
}

#[test]
fn kinds_that_do_not_exist_are_refused() {
    let nothing = |_| String::new();
    writer("1a00 0c00 03000000 00000000 00000000", nothing, "52: expected reliability kind 1 or 2");
    writer("1a00 0c00 00000000 00000000 00000000", nothing, "52: expected reliability kind 1 or 2");
    writer("1a00 0400 02000000", nothing, "56: expected 32-bit number");
    writer("1d00 0400 04000000", nothing, "52: expected durability kind 0 to 3");
    writer("4000 0800 02000000 01000000", nothing, "52: expected history kind 0 or 1");
    writer("1b00 0c00 03000000 00000000 00000000", nothing, "52: expected liveliness kind 0 to 2");
    writer("1f00 0400 02000000", nothing, "52: expected ownership kind 0 or 1");
    writer("2500 0400 02000000", nothing, "52: expected destination order kind 0 or 1");
    writer("2100 0800 03000000 01010000", nothing, "52: expected access scope 0 to 2");
    writer("2100 0800 02000000 02010000", nothing, "56: expected boolean 0 or 1");
}

#[test]
fn numbers_that_make_no_sense_read_as_none() {
    writer("4000 0800 00000000 00000000", |qos| qos.history.to_string(), "KEEP_LAST 1");
    writer("4000 0800 00000000 ffffffff", |qos| qos.history.to_string(), "KEEP_LAST 1");
    writer("4000 0800 01000000 00000000", |qos| qos.history.to_string(), "KEEP_ALL");
    let limits = |qos: WriterQos| format!("{:?}", qos.resource_limits.max_samples);
    writer("4100 0c00 ffffffff ffffffff ffffffff", limits, "None");
    writer("4100 0c00 00000000 ffffffff ffffffff", limits, "None");
    writer("4100 0c00 05000000 ffffffff ffffffff", limits, "Some(5)");
    let deadline = |qos: WriterQos| format!("{:?}", qos.timing.deadline);
    writer("2300 0800 ffffffff 00000000", deadline, "0ns");
    writer("2300 0800 02000000 00000080", deadline, "2.5s");
    writer("2300 0800 ffffff7f ffffffff", |qos| (qos.timing.deadline == INFINITE).to_string(), "true");
    writer("2300 0800 ffffff7f 00000000", |qos| (qos.timing.deadline == INFINITE).to_string(), "true");
}

#[test]
fn the_strength_belongs_to_exclusive_ownership_in_either_order() {
    let ownership = |qos: WriterQos| format!("{:?}", qos.ownership);
    writer("0600 0400 05000000 1f00 0400 01000000", ownership, "Exclusive { strength: 5 }");
    writer("1f00 0400 01000000 0600 0400 05000000", ownership, "Exclusive { strength: 5 }");
    writer("1f00 0400 01000000", ownership, "Exclusive { strength: 0 }");
    writer("0600 0400 05000000", ownership, "Shared");
}

#[test]
fn counts_that_lie_and_too_many_or_too_long_partitions_are_refused() {
    let list = |qos: WriterQos| format!("{:?} {:?}", qos.partition, qos.data_representation);
    writer("2900 0400 00000000 7300 0400 00000000", list, "[] []");
    writer("2900 1400 02000000 02000000 61000000 01000000 00000000", list, "[\"a\", \"\"] []");
    writer("2900 0c00 02000000 02000000 61000000", list, "64: expected 32-bit number");
    writer("2900 0400 41000000", list, "52: expected at most 64 partitions");
    writer("2900 0400 ffffffff", list, "52: expected at most 64 partitions");
    let name = |length: usize| "61".repeat(length);
    writer(
        &format!("2900 0c01 01000000 01010000 {} 00000000", name(256)),
        |qos| qos.partition[0].len().to_string(),
        "256",
    );
    let long = format!("2900 0c01 01000000 02010000 {} 000000", name(257));
    writer(&long, list, "56: expected partition name of at most 256 bytes");
    writer("7300 0800 02000000 00000200", list, "[] [Xcdr1, Xcdr2]");
    writer("7300 0800 01000000 09000000", list, "[] [Other(9)]");
    writer("7300 0800 03000000 00000200", list, "52: expected as many representations as are announced");
    writer("7300 0800 ffffffff 00000200", list, "52: expected as many representations as are announced");
    writer("2c00 0800 05000000 00000000", list, "52: expected length within the parameter");
}

#[test]
fn a_durability_service_has_the_layout_of_the_standard() {
    let told = |qos: WriterQos| format!("{:?}", qos.durability_service);
    let expect = "DurabilityService { cleanup_delay: 2.5s, history: KeepLast(3), resource_limits: ResourceLimits { max_samples: \
                  Some(9), max_instances: None, max_samples_per_instance: Some(5) } }";
    writer("1e00 1c00 02000000 00000080 00000000 03000000 09000000 ffffffff 05000000", told, expect);
    writer(
        "1e00 1c00 00000000 00000000 07000000 03000000 09000000 ffffffff 05000000",
        told,
        "60: expected history kind 0 or 1",
    );
    writer("1e00 0800 02000000 00000080", told, "60: expected 32-bit number");
}

#[test]
fn a_history_has_a_name_of_sixteen_bytes() {
    let history = |rest: &str| {
        let payload = bytes_of(&format!("0003 0000 {WRITER} {NAMES} {rest} 0100 0000"));
        PublicationData::decode(&payload).expect("a writer").history
    };
    let identity = HistoryIdentity([7; 16]);
    assert_eq!(history("048f 1000 07070707 07070707 07070707 07070707"), Some(identity));
    assert_eq!(history("048f 0c00 07070707 07070707 07070707"), None);
    assert_eq!(history("048f 1400 07070707 07070707 07070707 07070707 00000000"), None);
    let guid = Guid::new(PREFIX, EntityId::user_writer(1, Keyed::Yes));
    let data =
        PublicationData { history: Some(identity), ..PublicationData::new(guid, "T", "Y", WriterQos::default()) };
    let mut bytes = Vec::new();
    data.encode(&mut bytes);
    assert_eq!(PublicationData::decode(&bytes), Ok(data));
}

#[test]
fn type_information_and_its_demand_are_noticed_whatever_they_look_like() {
    let describes = |rest: &str| {
        let payload = bytes_of(&format!("0003 0000 {WRITER} {NAMES} {rest} 0100 0000"));
        PublicationData::decode(&payload).expect("a writer").describes_type
    };
    assert_eq!([describes(""), describes("7500 0400 00000000"), describes("7200 0400 00000000")], [false, true, true]);
    let forces = |rest: &str| {
        let payload = bytes_of(&format!("0003 0000 {READER} {NAMES} {rest} 0100 0000"));
        SubscriptionData::decode(&payload).expect("a reader").qos.type_consistency.forces_validation
    };
    let [none, plain, forcing] =
        ["", "7400 0800 0100 01 01 00 00 00 00", "7400 0800 0100 01 01 00 00 01 00"].map(forces);
    assert_eq!([none, plain, forcing, forces("7400 0400 01000101")], [false, false, true, false]);
}

#[test]
fn unknown_parameters_are_skipped_unless_they_must_be_understood() {
    let durability = |qos: WriterQos| qos.durability.to_string();
    let tail = "1d00 0400 01000000";
    writer(&format!("7500 0800 0000000000000000 7600 0000 0780 0400 ffffffff {tail}"), durability, "TRANSIENT_LOCAL");
    writer(&format!("0040 0000 {tail}"), durability, "52: expected a parameter that need not be understood");
    writer(&format!("00c0 0000 {tail}"), durability, "TRANSIENT_LOCAL");
}

#[test]
fn big_endian_announcements_are_read() {
    let payload = bytes_of(
        "
        0002 0000
        005a 0010 0102030405060708090a0b0c 00000104
        0005 000c 00000007 53717561 72650000
        0007 0010 0000000a 53686170 65547970 65000000
        001a 000c 00000002 00000000 40000000
        001d 0004 00000001
        0029 000c 00000001 00000002 61000000
        0073 0008 00000002 00020000
        0043 0004 01000000
        002f 0018 00000001 00001cf3 000000000000000000000000 0a000001
        0001 0000",
    );
    let data = SubscriptionData::decode(&payload).unwrap();
    assert_eq!(data.guid, Guid::new(PREFIX, EntityId::user_reader(1, Keyed::No)));
    assert_eq!((data.topic_name.as_str(), data.type_name.as_str()), ("Square", "ShapeType"));
    let max_blocking_time = Duration::from_millis(250);
    assert_eq!(data.qos.reliability, Reliability::Reliable { max_blocking_time });
    assert_eq!(data.qos.durability, Durability::TransientLocal);
    assert_eq!(data.qos.partition, ["a"]);
    assert_eq!(data.qos.data_representation, [Representation::Xcdr2, Representation::Xcdr1]);
    assert!(data.expects_inline_qos);
    assert_eq!(data.unicast[0].to_string(), "udp/10.0.0.1:7411");
}

/// Payload number `index` of a file of `testdata/`.
fn payload(name: &str, index: usize) -> Vec<u8> {
    payloads(&golden(name)).swap_remove(index)
}

/// Checks the common properties of both vendors' writers with nearly every policy changed.
fn rich_writer_qos() -> WriterQos {
    WriterQos {
        reliability: Reliability::Reliable { max_blocking_time: Duration::from_millis(250) },
        durability: Durability::TransientLocal,
        timing: WriterTiming {
            deadline: Duration::from_secs(2),
            latency_budget: Duration::from_millis(5),
            lifespan: Duration::from_secs(30),
        },
        liveliness: Liveliness { kind: LivelinessKind::ManualByTopic, lease: Duration::from_secs(4) },
        ownership: WriterOwnership::Exclusive { strength: 42 },
        partition: vec!["room *".to_owned(), "hall".to_owned()],
        ..WriterQos::default()
    }
}

/// Checks the common properties of both vendors' readers with nearly every policy changed.
fn rich_reader_qos() -> ReaderQos {
    ReaderQos {
        reliability: Reliability::RELIABLE,
        durability: Durability::TransientLocal,
        timing: ReaderTiming {
            deadline: Duration::from_secs(3),
            latency_budget: Duration::from_millis(10),
            minimum_separation: Duration::from_millis(1),
        },
        liveliness: Liveliness { kind: LivelinessKind::Automatic, lease: Duration::from_secs(8) },
        ownership: Ownership::Exclusive,
        partition: vec!["room 1".to_owned()],
        data_representation: Vec::new(),
        ..ReaderQos::default()
    }
}

#[test]
fn cyclone_announces_its_writers() {
    let data = PublicationData::decode(&payload("cyclone-11.0.1-publication", 0)).unwrap();
    let qos = WriterQos {
        history: History::KeepLast(7),
        resource_limits: ResourceLimits {
            max_samples: Some(100),
            max_instances: Some(10),
            max_samples_per_instance: Some(50),
        },
        destination_order: DestinationOrder::BySource,
        transport_priority: 3,
        data_representation: vec![Representation::Xcdr2],
        presentation: Presentation { access_scope: AccessScope::Topic, coherent: false, ordered: true },
        attached: AttachedData { user: b"typehash=1;".to_vec(), topic: Vec::new(), group: b"group".to_vec() },
        ..rich_writer_qos()
    };
    let expect = PublicationData::new(data.guid, "Square", "ShapeType", qos);
    let entity_name = "golden writer".to_owned();
    assert_eq!(data, PublicationData { entity_name, ..expect.with_type_information(data.type_information.clone()) });
    assert_eq!(data.guid.to_string(), "01101d8baab35a09fcbdd63a:00000202");
    let gone = PublicationData::decode_key(&payload("cyclone-11.0.1-publication-gone", 0));
    assert_eq!(gone, Ok(data.guid));

    let data = PublicationData::decode(&payload("cyclone-11.0.1-publication-default", 0)).unwrap();
    let reliability = Reliability::Reliable { max_blocking_time: Duration::from_secs(1) };
    let qos = WriterQos { reliability, history: History::KeepAll, ..WriterQos::default() };
    let expect = PublicationData::new(data.guid, "Blob", "Blob", qos);
    assert_eq!(data, expect.with_type_information(data.type_information.clone()));
}

#[test]
fn cyclone_announces_its_readers() {
    let data = SubscriptionData::decode(&payload("cyclone-11.0.1-subscriptions", 0)).unwrap();
    let qos = ReaderQos {
        history: History::KeepAll,
        destination_order: DestinationOrder::BySource,
        data_representation: vec![Representation::Xcdr1, Representation::Xcdr2],
        presentation: Presentation { access_scope: AccessScope::Topic, coherent: false, ordered: true },
        attached: AttachedData { user: b"reader".to_vec(), ..AttachedData::default() },
        ..rich_reader_qos()
    };
    let expect = SubscriptionData::new(data.guid, "Square", "ShapeType", qos);
    assert_eq!(data, expect.with_type_information(data.type_information.clone()));
    assert_eq!(data.guid.to_string(), "01109c1806bc3ef306cac550:00000207");

    let data = SubscriptionData::decode(&payload("cyclone-11.0.1-subscriptions", 1)).unwrap();
    let reliability = Reliability::Reliable { max_blocking_time: Duration::from_secs(1) };
    let qos = ReaderQos { reliability, history: History::KeepAll, ..ReaderQos::default() };
    let expect = SubscriptionData::new(data.guid, "Blob", "Blob", qos);
    assert_eq!(data, expect.with_type_information(data.type_information.clone()));
}

#[test]
fn cyclones_endpoints_match_as_they_did_when_they_were_captured() {
    let writer = PublicationData::decode(&payload("cyclone-11.0.1-publication", 0)).unwrap();
    let reader = SubscriptionData::decode(&payload("cyclone-11.0.1-subscriptions", 0)).unwrap();
    assert_eq!(match_endpoints(&writer, &reader), MatchResult::Match);
    let other = SubscriptionData::decode(&payload("cyclone-11.0.1-subscriptions", 1)).unwrap();
    assert_eq!(match_endpoints(&writer, &other), MatchResult::DifferentTopic);
}

#[test]
fn fast_dds_announces_its_writers() {
    let data = PublicationData::decode(&payload("fastdds-2.9.1-publications", 0)).unwrap();
    let attached = AttachedData { user: b"th".to_vec(), topic: Vec::new(), group: b"grp".to_vec() };
    let qos = WriterQos { attached, ..rich_writer_qos() };
    let expect = PublicationData::new(data.guid, "Square", "ShapeType", qos);
    assert_eq!(data, PublicationData { unicast: data.unicast.clone(), ..expect });
    assert_eq!(data.guid.to_string(), "010f7f01de27784400000000:00000102");
    assert_eq!(data.unicast.iter().map(Locator::to_string).collect::<Vec<_>>(), ["udp/127.0.0.1:7411"]);

    let data = PublicationData::decode(&payload("fastdds-2.9.1-publications", 1)).unwrap();
    let qos = WriterQos { durability: Durability::TransientLocal, ..WriterQos::default() };
    let expect = PublicationData::new(data.guid, "Blob", "Blob", qos);
    assert_eq!(data, PublicationData { unicast: data.unicast.clone(), ..expect });
}

#[test]
fn fast_dds_announces_its_readers() {
    let data = SubscriptionData::decode(&payload("fastdds-2.9.1-subscriptions", 0)).unwrap();
    let attached = AttachedData { user: b"rd".to_vec(), ..AttachedData::default() };
    let qos = ReaderQos { attached, ..rich_reader_qos() };
    let expect = SubscriptionData::new(data.guid, "Square", "ShapeType", qos);
    assert_eq!(data, SubscriptionData { unicast: data.unicast.clone(), ..expect });
    assert_eq!(data.unicast.iter().map(Locator::to_string).collect::<Vec<_>>(), ["udp/127.0.0.1:7413"]);

    let data = SubscriptionData::decode(&payload("fastdds-2.9.1-subscriptions", 1)).unwrap();
    let (reliability, data_representation) = (Reliability::RELIABLE, Vec::new());
    let qos = ReaderQos { reliability, data_representation, ..ReaderQos::default() };
    let expect = SubscriptionData::new(data.guid, "Blob", "Blob", qos);
    assert_eq!(data, SubscriptionData { unicast: data.unicast.clone(), ..expect });
}

#[test]
fn any_bytes_and_damaged_announcements_are_answered_without_panic() {
    let mut rng = Rng::new(12);
    let mut specimens: Vec<_> = GOLDEN.iter().flat_map(|golden| payloads(&bytes_of(golden.hex))).collect();
    for _ in 0..20 {
        let (mut writer, mut reader) = (Vec::new(), Vec::new());
        random_publication(&mut rng).encode(&mut writer);
        random_subscription(&mut rng).encode(&mut reader);
        specimens.extend([writer, reader]);
    }
    for specimen in specimens {
        for _ in 0..300 {
            let mut damaged = specimen.clone();
            for _ in 0..rng.below(4) {
                let at = rng.below(damaged.len() as u64) as usize;
                damaged[at] = if rng.chance(0.3) { 0xff } else { rng.next_u64() as u8 };
            }
            damaged
                .truncate(damaged.len() - if rng.chance(0.3) { rng.below(damaged.len() as u64) as usize } else { 0 });
            let mut again = Vec::new();
            if let Ok(data) = PublicationData::decode(&damaged) {
                data.encode(&mut again);
                // A type object of earlier editions is not announced again.
                let describes_type = data.type_information.is_some();
                assert_eq!(PublicationData::decode(&again), Ok(PublicationData { describes_type, ..data }));
            }
            again.clear();
            if let Ok(data) = SubscriptionData::decode(&damaged) {
                data.encode(&mut again);
                assert_eq!(SubscriptionData::decode(&again), Ok(data));
            }
        }
    }
}
