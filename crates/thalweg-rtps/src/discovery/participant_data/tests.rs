use super::*;
use crate::discovery::LOCATORS_MAX;
use crate::rng::Rng;
use crate::time::INFINITE;
use crate::wire::tests::bytes_of;
use crate::wire::tests::golden::{GOLDEN, golden, payloads};

const PREFIX: GuidPrefix = GuidPrefix([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
/// PID_PARTICIPANT_GUID of `PREFIX`, little endian.
const GUID: &str = "5000 1000 0102030405060708090a0b0c 000001c1 ";

fn random_text(rng: &mut Rng) -> String {
    (0..rng.below(12)).map(|_| char::from_u32(1 + rng.below(0x2ff) as u32).unwrap_or('x')).collect()
}

fn random_locators(rng: &mut Rng) -> Vec<Locator> {
    let mut locator = |port| {
        let address = [rng.next_u64() as u8; 16];
        let (kind, address) = match rng.chance(0.5) {
            true => (Locator::UDP_V6, address),
            false => (Locator::UDP_V4, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, address[0]]),
        };
        Locator { kind, port: 1 + port, address }
    };
    let count = locator(0).address[15] as u32 % 5;
    (0..count).map(locator).collect()
}

fn random_data(rng: &mut Rng) -> ParticipantData {
    let mut data = ParticipantData::new(GuidPrefix([1 + rng.below(255) as u8; 12]));
    data.version = ProtocolVersion { major: 2, minor: rng.below(9) as u8 };
    data.domain_id = rng.chance(0.5).then(|| rng.below(233) as u32);
    data.domain_tag = random_text(rng);
    data.expects_inline_qos = rng.chance(0.5);
    data.builtin_endpoints = rng.next_u64() as u32;
    data.locators.metatraffic_unicast = random_locators(rng);
    data.locators.metatraffic_multicast = random_locators(rng);
    data.locators.default_unicast = random_locators(rng);
    data.locators.default_multicast = random_locators(rng);
    data.lease_duration = if rng.chance(0.2) { INFINITE } else { Duration::from_nanos(rng.below(1 << 60)) };
    data.user_data = (0..rng.below(9)).map(|byte| byte as u8).collect();
    data.entity_name = random_text(rng);
    data.properties = (0..rng.below(4)).map(|_| (random_text(rng), random_text(rng))).collect();
    if rng.chance(0.8) {
        data.receive_buffer_bytes = rng.chance(0.5).then(|| rng.next_u64() as u32);
        data.host = rng.chance(0.5).then(|| [rng.next_u64() as u8; 16]);
    } else {
        data.vendor = VendorId([1, 2]);
    }
    data
}

#[test]
fn what_is_announced_comes_back() {
    let mut rng = Rng::new(8);
    for _ in 0..2_000 {
        let data = random_data(&mut rng);
        let mut payload = Vec::new();
        data.encode(&mut payload);
        assert!(payload.len().is_multiple_of(4));
        assert_eq!(ParticipantData::decode(&payload), Ok(data.clone()));
        assert_eq!(ParticipantData::decode_key(&payload), Ok(data.guid_prefix));
        payload.clear();
        ParticipantData::encode_key(data.guid_prefix, &mut payload);
        assert_eq!(ParticipantData::decode_key(&payload), Ok(data.guid_prefix));
    }
}

/// Decodes a little-endian list; `then` picks the part to compare.
#[track_caller]
fn check(list: &str, then: fn(ParticipantData) -> String, expect: &str) {
    let payload = bytes_of(&format!("0003 0000 {list} 0100 0000"));
    let told = ParticipantData::decode(&payload).map_or_else(|error| error.to_string(), then);
    assert_eq!(told, expect);
}

#[test]
fn what_is_missing_has_its_default() {
    let expect = ParticipantData {
        version: ProtocolVersion { major: 2, minor: 0 },
        vendor: VendorId::UNKNOWN,
        ..ParticipantData::new(PREFIX)
    };
    assert_eq!(expect.lease_duration, Duration::from_secs(100));
    let payload = bytes_of(&format!("0003 0000 {GUID} 0100 0000"));
    assert_eq!(ParticipantData::decode(&payload), Ok(expect));
}

#[test]
fn a_participant_without_a_proper_guid_is_refused() {
    let nothing = |_| String::new();
    check("", nothing, "4: expected PID_PARTICIPANT_GUID in the list");
    check("5000 0c00 0102030405060708090a0b0c", nothing, "8: expected GUID of 16 bytes");
    check("5000 1000 0102030405060708090a0b0c 00000102", nothing, "8: expected GUID of a participant");
    check("5000 1000 00000000000000000000000000 0001c1", nothing, "8: expected GUID of a participant");
    assert_eq!(
        ParticipantData::decode(&[]).unwrap_err().to_string(),
        "0: expected encapsulation PL_CDR_BE or PL_CDR_LE"
    );
    let unterminated = bytes_of(&format!("0003 0000 {GUID} 0f00 0400 03000000"));
    assert_eq!(ParticipantData::decode(&unterminated).unwrap_err().to_string(), "32: expected parameter or sentinel");
}

#[test]
fn vendor_parameters_are_read_only_from_their_vendor() {
    let buffer = |data: ParticipantData| format!("{:?} {:?}", data.receive_buffer_bytes, data.host);
    let link = "038f 1400 00000000000000000000ffff0a000001 28230000";
    let links = |data: ParticipantData| data.locators.link_mtus.iter().map(|link| link.bytes.to_string()).collect();
    check(&format!("{GUID} {link} 1600 0400 01d70000 {link}"), links, "90009000");
    check(&format!("{GUID} {link} 1600 0400 01100000"), links, "");
    check(
        &format!("{GUID} 1600 0400 01d70000 {}", link.repeat(40)),
        |data| data.locators.link_mtus.len().to_string(),
        "32",
    );
    check(
        &format!("{GUID} 1600 0400 01d70000 038f 1000 00000000000000000000ffff0a000001"),
        links,
        "52: expected 32-bit number",
    );
    let cyclone = "1980 0400 00001000";
    let thalweg = "028f 0400 00002000 018f 1000 09090909090909090909090909090909";
    let host = "Some([9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9])";
    check(&format!("{GUID} 1600 0400 01100000 {cyclone} {thalweg}"), buffer, "Some(1048576) None");
    check(&format!("{GUID} {cyclone} {thalweg} 1600 0400 01d70000"), buffer, &format!("Some(2097152) {host}"));
    check(&format!("{GUID} 1600 0400 01010000 {cyclone} {thalweg}"), buffer, "None None");
    check(&format!("{GUID} {cyclone} {thalweg}"), buffer, "None None");
    check(&format!("{GUID} 1600 0400 01100000 1980 0000"), buffer, "36: expected 32-bit number");
}

#[test]
fn unknown_parameters_are_skipped_unless_they_must_be_understood() {
    let tag = |data: ParticipantData| format!("{:?}", data.domain_tag);
    check(&format!("{GUID} ff3f 0400 00000000 0080 0800 0000000000000000 01c0 0000"), tag, "\"\"");
    check(&format!("{GUID} 1440 0800 04000000 74616700"), tag, "\"tag\"");
    check(&format!("{GUID} 1540 0400 00000000"), tag, "28: expected a parameter that need not be understood");
}

#[test]
fn only_addresses_that_can_be_sent_to_are_kept_and_a_bounded_number_of_them() {
    let count = |data: ParticipantData| data.locators.default_unicast.len().to_string();
    let locator =
        |kind: &str, port: &str, last: u8| format!("3100 1800 {kind} {port} 000000000000000000000000 7f0000{last:02x}");
    let (udp, port) = ("01000000", "f31c0000");
    check(&format!("{GUID} {} {}", locator(udp, port, 1), locator(udp, port, 2)), count, "2");
    check(&format!("{GUID} {} {}", locator(udp, port, 1), locator(udp, port, 1)), count, "1");
    check(&format!("{GUID} {}", locator("10000000", port, 1)), count, "0");
    check(&format!("{GUID} {}", locator(udp, "00000000", 1)), count, "0");
    check(&format!("{GUID} {}", locator(udp, "00000100", 1)), count, "0");
    let many: String = (0..200).map(|last| locator(udp, port, last)).collect();
    check(&format!("{GUID} {many}"), count, &LOCATORS_MAX.to_string());
    check(
        &format!("{GUID} 3100 1400 01000000 f31c0000 000000000000000000000000"),
        count,
        "36: expected locator address",
    );
}

#[test]
fn counts_and_lengths_that_lie_are_refused() {
    let count = |data: ParticipantData| data.properties.len().to_string();
    check(&format!("{GUID} 5900 0400 ffffffff"), count, "32: expected 32-bit number");
    check(&format!("{GUID} 5900 0800 01000000 ffffff7f"), count, "32: expected length within the parameter");
    let many = "01000000 00000000 ".repeat(2 * (PROPERTIES_MAX + 6));
    let length = 4 + 16 * (PROPERTIES_MAX + 6);
    let list = format!("{GUID} 5900 {:02x}{:02x} {:02x}000000 {many}", length & 0xff, length >> 8, PROPERTIES_MAX + 6);
    check(&list, count, &PROPERTIES_MAX.to_string());
    check(&format!("{GUID} 2c00 0400 01000000"), count, "28: expected length within the parameter");
    check(&format!("{GUID} 1440 0800 04000000 74616767"), count, "28: expected string that ends with its only NUL");
    check(&format!("{GUID} 0200 0400 14000000"), count, "32: expected 32-bit number");
    check(&format!("{GUID} 4300 0400 07000000"), count, "28: expected boolean 0 or 1");
}

#[test]
fn names_in_odd_encodings_are_no_reason_to_ignore_a_participant() {
    let name = |data: ParticipantData| data.entity_name;
    check(&format!("{GUID} 6200 0800 04000000 6df66200"), name, "m\u{fffd}b");
}

#[test]
fn big_endian_announcements_are_read() {
    let payload = bytes_of(
        "
        0002 0000
        0015 0004 02010000
        0016 0004 01010000
        0050 0010 0102030405060708090a0b0c 000001c1
        0058 0004 00000c3f
        0002 0008 0000000a 80000000
        000f 0004 0000002a
        4014 000c 00000005 626c7565 00000000
        0032 0018 00000001 00001cf2 000000000000000000000000 0a000001
        002c 0008 00000002 aabb0000
        0059 001c 00000001 00000007 646f6d61 696e0000 00000002 78000000 00000000
        0001 0000",
    );
    let data = ParticipantData::decode(&payload).unwrap();
    assert_eq!((data.version.minor, data.vendor.name()), (1, Some("RTI Connext")));
    assert_eq!((data.guid_prefix, data.builtin_endpoints), (PREFIX, 0xc3f));
    assert_eq!((data.lease_duration, data.domain_id), (Duration::from_millis(10_500), Some(42)));
    assert_eq!((data.domain_tag.as_str(), data.user_data.as_slice()), ("blue", &[0xaa, 0xbb][..]));
    assert_eq!(data.locators.metatraffic_unicast[0].to_string(), "udp/10.0.0.1:7410");
}

/// The participant that a file of `testdata/` announces.
fn announced(name: &str) -> ParticipantData {
    ParticipantData::decode(&payloads(&golden(name))[0]).unwrap()
}

fn texts(locators: &[Locator]) -> Vec<String> {
    locators.iter().map(Locator::to_string).collect()
}

#[test]
fn cyclone_announces_itself() {
    let data = announced("cyclone-11.0.1-participant");
    assert_eq!((data.vendor, data.version), (VendorId::CYCLONE, ProtocolVersion::V2_5));
    assert_eq!(data.guid().to_string(), "01101d8baab35a09fcbdd63a:000001c1");
    assert_eq!((data.domain_id, data.domain_tag.as_str()), (Some(0), ""));
    assert_eq!(data.builtin_endpoints, 0xfc3f);
    assert_eq!(texts(&data.locators.metatraffic_unicast), ["udp/127.0.0.1:38197"]);
    assert_eq!(texts(&data.locators.metatraffic_multicast), ["udp/239.255.0.1:7400"]);
    assert_eq!(texts(&data.locators.default_unicast), ["udp/127.0.0.1:38197"]);
    assert_eq!(texts(&data.locators.default_multicast), ["udp/239.255.0.1:7401"]);
    assert_eq!(data.lease_duration, Duration::from_secs(10));
    assert_eq!((data.user_data.as_slice(), data.entity_name.as_str()), (&b"enclave=/;"[..], "golden participant"));
    let property = |name: &str| data.properties.iter().find(|property| property.0 == name).map(|property| &*property.1);
    assert_eq!((property("__ProcessName"), property("__Hostname")), (Some("python"), Some("golden-host")));
    assert_eq!((data.receive_buffer_bytes, data.host), (Some(2_097_152), None));
}

#[test]
fn fast_dds_announces_itself() {
    let data = announced("fastdds-2.9.1-participant");
    assert_eq!((data.vendor.name(), data.version.minor), (Some("Fast DDS"), 3));
    assert_eq!(data.guid().to_string(), "010f7f01de27784400000000:000001c1");
    assert_eq!(data.domain_id, None);
    assert_eq!(data.builtin_endpoints, 0x0c3f_0c3f);
    assert_eq!(texts(&data.locators.metatraffic_unicast), ["udp/127.0.0.1:7410"]);
    assert_eq!(texts(&data.locators.default_unicast), ["udp/127.0.0.1:7411"]);
    assert_eq!(data.locators.metatraffic_multicast, []);
    assert_eq!(data.lease_duration, Duration::from_secs(20));
    assert_eq!((data.user_data.as_slice(), data.entity_name.as_str()), (&b"enc"[..], "golden participant"));
    assert_eq!(data.properties[0], ("org.example.name".to_owned(), "golden".to_owned()));
    assert_eq!((data.receive_buffer_bytes, data.host), (None, None));
}

#[test]
fn the_end_of_a_cyclone_participant_names_it() {
    let payload = &payloads(&golden("cyclone-11.0.1-participant-gone"))[0];
    let prefix = announced("cyclone-11.0.1-participant").guid_prefix;
    assert_eq!(ParticipantData::decode_key(payload), Ok(prefix));
}

#[test]
fn any_bytes_and_damaged_announcements_are_answered_without_panic() {
    let mut rng = Rng::new(9);
    let mut specimens: Vec<_> = GOLDEN.iter().flat_map(|golden| payloads(&bytes_of(golden.hex))).collect();
    for _ in 0..20 {
        specimens.push(Vec::new());
        random_data(&mut rng).encode(specimens.last_mut().unwrap());
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
            if let Ok(data) = ParticipantData::decode(&damaged) {
                let mut again = Vec::new();
                data.encode(&mut again);
                ParticipantData::decode(&again).unwrap();
            }
            let _ = ParticipantData::decode_key(&damaged);
        }
    }
}
