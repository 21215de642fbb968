//! Messages that no well-meaning peer sends, and odd ones that some do.

use super::super::parameters::inline_qos;
use super::*;

#[test]
fn headers_are_checked() {
    check(b"", "0: expected header");
    check(b"RTP", "0: expected header");
    check(b"RTPX\x02\x05\x01\x10abcdefghijkl", "0: expected header that starts with \"RTPS\"");
    check(b"RTPS\x01\x05\x01\x10abcdefghijkl", "4: expected protocol version 2.x");
    check(b"RTPS\x03\x00\x01\x10abcdefghijkl", "4: expected protocol version 2.x");
    check(b"RTPS\x02\x05\x01\x10abcdefghijk", "8: expected guid prefix");
    check(b"RTPS\x02\x09\x01\x10abcdefghijkl", "");
}

#[test]
fn submessages_are_delimited_by_their_length_only() {
    check(&message_of("15"), "20: expected submessage header");
    check(&message_of("01 01 0000 01 01 0400 ffffffff"), "PAD\nPAD");
    check(&message_of("01 01 0500 ffffffff"), "22: expected octetsToNextHeader within the message");
    check(&message_of("80 00 0004 ffffffff 30 01 0000 ffffffffff"), "unknown 80\nunknown 30");
    check(
        &message_of("00 01 0800 0102030405060708 0e 00 000c 0101010101010101 01010101"),
        "unknown 00\nINFO_DST 010101010101010101010101",
    );
    // A length of 0 reaches to the end of the message, but not for PAD and INFO_TS.
    check(
        &message_of("09 03 0000 0e 01 0000 010101010101010101010101"),
        "INFO_TS none\nINFO_DST 010101010101010101010101",
    );
    check(&message_of("09 01 0000 0e 01 0000 010101010101010101010101"), "24: expected seconds");
    // The invalid time is none.
    check(&message_of("09 01 0800 ffffffff ffffffff"), "INFO_TS none");
    // Later versions may append fields.
    check(
        &message_of("0e 01 1000 010101010101010101010101 ffffffff 01 01 0000"),
        "INFO_DST 010101010101010101010101\nPAD",
    );
}

#[test]
fn an_error_ends_the_message() {
    check(&message_of("0e 01 0400 01010101 01 01 0000"), "24: expected guid prefix");
}

#[test]
fn samples_have_a_number_of_at_least_1() {
    let data = |number: &str| message_of(&format!("15 01 1400 0000 1000 00000107 00000202 {number}"));
    let error = "36: expected sequence number of at least 1";
    check(&data("00000000 01000000"), "DATA 1 00000202>00000107 nothing");
    check(&data("ffffff7f ffffffff"), "DATA 9223372036854775807 00000202>00000107 nothing");
    check(&data("00000000 00000000"), error);
    check(&data("ffffffff 00000000"), error);
    check(&data("ffffffff ffffffff"), error);
    check(&data("00000080 00000000"), error);
    check(&data("00000000"), "22: expected octetsToNextHeader within the message");
    check(
        &message_of("15 01 1000 0000 1000 00000107 00000202 00000000"),
        "26: expected octetsToInlineQos behind the known fields and within the submessage",
    );
}

#[test]
fn a_payload_is_a_sample_or_a_key_but_not_both() {
    let data =
        |flags: &str| message_of(&format!("15 {flags} 1800 0000 1000 00000107 00000202 00000000 07000000 00010000"));
    check(&data("05"), "DATA 7 00000202>00000107 data 44..48");
    check(&data("09"), "DATA 7 00000202>00000107 key 44..48");
    check(&data("01"), "DATA 7 00000202>00000107 nothing");
    check(&data("0d"), "21: expected flag D or K of DATA, not both");
    // D with an empty payload is a matter of the decoder.
    check(
        &message_of("15 05 1400 0000 1000 00000107 00000202 00000000 07000000"),
        "DATA 7 00000202>00000107 data 44..44",
    );
}

#[test]
fn octets_to_inline_qos_may_skip_new_fields_but_not_lie() {
    let data = |octets: &str| {
        message_of(&format!(
            "15 07 2800 0000 {octets} 00000107 00000202 00000000 07000000 aabbccdd aabbccdd 7100 0000 0100 0000 00010000"
        ))
    };
    let error = "26: expected octetsToInlineQos behind the known fields and within the submessage";
    check(&data("1800"), "DATA 7 00000202>00000107 qos 0071 data 60..64");
    check(&data("1c00"), "DATA 7 00000202>00000107 qos data 60..64");
    check(&data("0f00"), error);
    check(&data("0000"), error);
    check(&data("2500"), error);
    check(&data("ffff"), error);
    check(&data("2400"), "64: expected parameter or sentinel");
}

#[test]
fn inline_qos_needs_a_sentinel_within_its_submessage() {
    let length = "expected parameter length that is a multiple of 4 and within the list";
    let data = |list: &str| {
        let bytes = bytes_of(list);
        message(|out| {
            out.extend_from_slice(&[0x15, 0x03, 20 + bytes.len() as u8, 0, 0, 0, 16, 0]);
            out.extend_from_slice(&bytes_of("00000107 00000202 00000000 07000000"));
            out.extend_from_slice(&bytes);
            // What follows would read as a sentinel.
            out.extend_from_slice(&bytes_of("01 00 0000"));
        })
    };
    check(&data("7100 0400 00000001 0100 0000"), "DATA 7 00000202>00000107 qos 0071 status 1 nothing\nPAD");
    check(&data("7100 0400 00000001"), "52: expected parameter or sentinel");
    check(&data("7100 0800 00000001"), &format!("46: {length}"));
    check(&data("7100 f0ff 00000001 0100 0000"), &format!("46: {length}"));
    check(&data("7100 0200 00000001 0100 0000"), &format!("46: {length}"));
    check(&data(""), "44: expected parameter or sentinel");
}

#[test]
fn sets_wider_than_256_numbers_or_than_their_message_are_refused() {
    let acknack = |rest: &str| {
        let bytes = bytes_of(rest);
        message(|out| {
            out.extend_from_slice(&[0x06, 0x03, 8 + bytes.len() as u8, 0]);
            out.extend_from_slice(&bytes_of("00000107 00000202"));
            out.extend_from_slice(&bytes);
        })
    };
    let base = "expected set base from 0 up to 256 below the highest sequence number";
    let word = "ffffffff ".repeat(8);
    check(&acknack("00000000 00000000 00000000 01000000"), "ACKNACK 0/0 {} #1 00000107>00000202 final");
    check(
        &acknack(&format!("00000000 01000000 01010000 {word} ffffffff 01000000")),
        "40: expected numBits of at most 256",
    );
    check(&acknack("00000000 01000000 ffffffff 01000000"), "40: expected numBits of at most 256");
    check(&acknack("00000000 01000000 21000000 ffffffff"), "48: expected word of a bitmap");
    check(&acknack("00000000 01000000 00010000 ffffffff"), "48: expected word of a bitmap");
    check(&acknack("00000000 01000000 20000000 00000000"), "48: expected acknack count");
    check(&acknack("00000000 01000000"), "40: expected numBits");
    check(&acknack("ffffffff ffffffff 00000000 01000000"), &format!("32: {base}"));
    check(&acknack("ffffffff 00000000 00000000 01000000"), &format!("32: {base}"));
    check(&acknack("ffffff7f ffffffff 00000000 01000000"), &format!("32: {base}"));
    let full = told(&acknack(&format!("00000000 01000000 00010000 {word} 01000000")));
    assert!(full.starts_with("ACKNACK 1/256 {1, 2,") && full.ends_with("256} #1 00000107>00000202 final"), "{full}");
}

#[test]
fn fragments_lie_within_their_sample_and_their_message() {
    // first fragment, count, size, sample size, bytes that follow
    let frag = |first: u32, count: u16, size: u16, sample: u32, follow: usize| {
        message(|out| {
            out.extend_from_slice(&[0x16, 0x01, (32 + follow) as u8, 0, 0, 0, 28, 0]);
            out.extend_from_slice(&bytes_of("00000107 00000202 00000000 07000000"));
            out.extend_from_slice(&first.to_le_bytes());
            out.extend_from_slice(&count.to_le_bytes());
            out.extend_from_slice(&size.to_le_bytes());
            out.extend_from_slice(&sample.to_le_bytes());
            out.extend(std::iter::repeat_n(7, follow));
        })
    };
    let numbers = "44: expected fragments of at least 1 byte within the sample";
    let told = |range: &str| format!("DATA_FRAG 7 00000202>00000107 {range}");
    check(&frag(1, 1, 10, 25, 12), &told("1+1/3 of 10 in 25 data 56..66 at 0"));
    check(&frag(3, 1, 10, 25, 8), &told("3+1/3 of 10 in 25 data 56..61 at 20"));
    check(&frag(2, 2, 10, 25, 16), &told("2+2/3 of 10 in 25 data 56..71 at 10"));
    check(&frag(1, 1, 100, 25, 28), &told("1+1/1 of 100 in 25 data 56..81 at 0"));
    check(&frag(0, 1, 10, 25, 12), numbers);
    check(&frag(1, 0, 10, 25, 12), numbers);
    check(&frag(1, 1, 0, 25, 12), numbers);
    check(&frag(1, 1, 10, 0, 12), numbers);
    check(&frag(4, 1, 10, 25, 12), numbers);
    check(&frag(3, 2, 10, 25, 24), numbers);
    check(&frag(1, 65_535, 10, 25, 24), numbers);
    check(&frag(u32::MAX, 65_535, 65_535, u32::MAX, 24), numbers);
    check(&frag(1, 1, 10, 25, 9), "56: expected as many bytes as the fragments have");
    check(&frag(1, 1, 10, u32::MAX, 12), &told("1+1/429496730 of 10 in 4294967295 data 56..66 at 0"));
    check(&frag(65_538, 1, 65_535, u32::MAX, 8), numbers);
}

#[test]
fn heartbeats_and_gaps_with_impossible_numbers_are_refused() {
    let heartbeat = |numbers: &str| message_of(&format!("07 07 1c00 00000107 00000202 {numbers} 01000000"));
    check(&heartbeat("00000000 01000000 00000000 00000000"), "HEARTBEAT 1..=0 #1 00000202>00000107 final liveliness");
    check(&heartbeat("00000000 05000000 00000000 04000000"), "HEARTBEAT 5..=4 #1 00000202>00000107 final liveliness");
    let last = "40: expected last sequence number of at least the first minus 1";
    check(&heartbeat("00000000 05000000 00000000 03000000"), last);
    check(&heartbeat("00000000 01000000 ffffffff ffffffff"), last);
    check(&heartbeat("00000000 00000000 00000000 00000000"), "32: expected sequence number of at least 1");
    check(&heartbeat("ffffffff 01000000 00000000 00000000"), "32: expected sequence number of at least 1");
    let gap = |numbers: &str| message_of(&format!("08 01 1c00 00000107 00000202 {numbers}"));
    check(&gap("00000000 01000000 ffffff7f fffeffff 00000000"), "GAP 1.. 9223372036854775551/0 {} 00000202>00000107");
    check(&gap("00000000 00000000 00000000 05000000 00000000"), "32: expected sequence number of at least 1");
    check(
        &gap("00000000 01000000 ffffff7f ffffffff 00000000"),
        "40: expected set base from 0 up to 256 below the highest sequence number",
    );
    let heartbeat_frag =
        |fragment: &str| message_of(&format!("13 01 1800 00000107 00000202 00000000 01000000 {fragment} 01000000"));
    check(&heartbeat_frag("02000000"), "HEARTBEAT_FRAG 1 ..=2 #1 00000202>00000107");
    check(&heartbeat_frag("00000000"), "40: expected last fragment number of at least 1");
    let nack_frag = |set: &str| message_of(&format!("12 01 1c00 00000107 00000202 00000000 01000000 {set} 01000000"));
    check(&nack_frag("02000000 00000000"), "NACK_FRAG 1 2/0 {} #1 00000107>00000202");
    check(&nack_frag("00000000 00000000"), "40: expected set base from 1 up to 256 below the highest fragment number");
    check(&nack_frag("ffffffff 00000000"), "40: expected set base from 1 up to 256 below the highest fragment number");
    check(&nack_frag("02000000 01010000"), "44: expected numBits of at most 256");
}

#[test]
fn locator_lists_do_not_count_beyond_their_message() {
    let locator = "01000000 f21c0000 000000000000000000000000 7f000001";
    let reply = |flags: &str, length: &str, rest: &str| message_of(&format!("0f {flags} {length} {rest}"));
    check(&reply("01", "1c00", &format!("01000000 {locator}")), "INFO_REPLY [udp/127.0.0.1:7410]");
    check(&reply("03", "2000", &format!("01000000 {locator} 00000000")), "INFO_REPLY [udp/127.0.0.1:7410] []");
    let error = "expected locator count within the submessage";
    check(&reply("01", "1c00", &format!("02000000 {locator}")), &format!("24: {error}"));
    check(&reply("01", "1c00", &format!("ffffffff {locator}")), &format!("24: {error}"));
    check(&reply("03", "1c00", &format!("01000000 {locator}")), "52: expected locator count");
    check(
        &message_of("0d 03 1000 0100007f f21c0000 0100ffef e81c0000"),
        "INFO_REPLY_IP4 udp/127.0.0.1:7410 Some(udp/239.255.0.1:7400)",
    );
    check(&message_of("0d 03 0800 0100007f f21c0000"), "32: expected IPv4 address");
}

#[test]
fn any_bytes_are_answered_without_panic() {
    let mut rng = Rng::new(5);
    for _ in 0..20_000 {
        let length = rng.below(200) as usize;
        walk(&message(|out| out.extend((0..length).map(|_| rng.next_u64() as u8))));
    }
}

/// A message with every kind of submessage that Thalweg writes or other vendors sent.
fn specimens() -> Vec<Vec<u8>> {
    let mut list = Vec::new();
    inline_qos(Some(1), Some(crate::types::KeyHash([3; 16])), &mut list);
    let mut all = vec![data_message(&list, DataKind::Key, &[0, 1, 0, 0, 9, 9, 9, 9])];
    all.extend(batches::specimens());
    all.extend(golden::GOLDEN.iter().map(|golden| bytes_of(golden.hex)));
    all
}

#[test]
fn damaged_messages_are_answered_without_panic() {
    let mut rng = Rng::new(6);
    for specimen in specimens() {
        for _ in 0..2_000 {
            let mut damaged = specimen.clone();
            for _ in 0..1 + rng.below(4) {
                let at = 20 + rng.below(damaged.len() as u64 - 20) as usize;
                damaged[at] = match rng.below(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => damaged[at] ^ (1 << rng.below(8)),
                    _ => rng.next_u64() as u8,
                };
            }
            if rng.chance(0.3) {
                damaged.truncate(rng.below(damaged.len() as u64) as usize);
            }
            walk(&damaged);
        }
    }
}
