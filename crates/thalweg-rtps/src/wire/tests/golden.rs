//! Datagrams that other implementations sent (see `testdata/README.md`), and hand-made ones in big endian.

use super::*;

/// A file of `testdata/`: its name, its content, what it says.
pub(crate) struct Golden {
    pub(crate) name: &'static str,
    pub(crate) hex: &'static str,
    told: &'static str,
}

macro_rules! golden {
    ($($name:literal: $told:literal;)*) => {
        &[$(Golden { name: $name, hex: include_str!(concat!("../../../testdata/", $name, ".hex")), told: $told },)*]
    };
}

/// The bytes of the file `name`.
pub(crate) fn golden(name: &str) -> Vec<u8> {
    bytes_of(GOLDEN.iter().find(|golden| golden.name == name).unwrap().hex)
}

/// The payloads of all DATA in `message`.
pub(crate) fn payloads(message: &[u8]) -> Vec<Vec<u8>> {
    let submessages = Message::parse(message).unwrap().submessages();
    let payload = |submessage| match submessage {
        Ok(Submessage::Data(Data { content: Content::Data(range) | Content::Key(range), .. })) => {
            Some(message[range].to_vec())
        }
        _ => None,
    };
    submessages.filter_map(payload).collect()
}

#[test]
fn datagrams_of_other_vendors_say_what_their_senders_meant() {
    for Golden { name, hex, told: expect } in GOLDEN {
        assert_eq!(told(&bytes_of(hex)), *expect, "{name}");
    }
}

#[test]
fn the_vendor_is_known_from_the_header() {
    for Golden { name, hex, .. } in GOLDEN {
        let bytes = bytes_of(hex);
        let header = Message::parse(&bytes).unwrap().header;
        let (product, minor) = if name.starts_with("cyclone") { ("Cyclone DDS", 5) } else { ("Fast DDS", 3) };
        assert_eq!((header.vendor.name(), header.version.minor), (Some(product), minor), "{name}");
        assert_eq!(header.vendor, header.prefix.vendor(), "{name}");
    }
}

#[test]
fn big_endian_messages_say_the_same() {
    let message = message_of(
        "
        0e 00 000c 0101010101010101 01010101
        09 00 0008 6b000001 80000000
        15 06 0038 0000 0010 00000107 00000202 00000001 00000002
            0070 0010 000102030405060708090a0b0c0d0e0f 0071 0004 00000001 0001 0000 00010000
        16 02 0030 0000 001c 00000107 00000202 00000000 00000007 00000002 0001 0004 00000006
            0071 0004 00000000 0001 0000 aabb0000
        07 02 001c 00000107 00000202 00000000 00000003 00000000 00000009 00000005
        13 00 0018 00000107 00000202 00000000 00000003 00000009 00000005
        06 00 001c 00000107 00000202 00000000 00000003 00000002 40000000 00000005
        12 00 0020 00000107 00000202 00000000 00000003 00000004 00000003 a0000000 00000005
        08 00 0020 00000107 00000202 00000000 00000003 00000000 00000007 00000001 80000000
        0c 00 0014 00000000 0203 0101 0101010101010101 01010101
        0f 02 0038 00000001 00000001 00001cf2 000000000000000000000000 7f000001
            00000001 00000001 00001ce8 000000000000000000000000 efff0001
        0d 00 0008 7f000001 00001cf2",
    );
    check(
        &message,
        "INFO_DST 010101010101010101010101
INFO_TS 1795162113
DATA 4294967298 00000202>00000107 qos 0070 0071 status 1 data 104..108
DATA_FRAG 7 00000202>00000107 qos 0071 2+1/2 of 4 in 6 data 156..158 at 4
HEARTBEAT 3..=9 #5 00000202>00000107 final
HEARTBEAT_FRAG 3 ..=9 #5 00000202>00000107
ACKNACK 3/2 {4} #5 00000107>00000202
NACK_FRAG 3 4/3 {4, 6} #5 00000107>00000202
GAP 3.. 7/1 {7} 00000202>00000107
INFO_SRC 2.3 RTI Connext 010101010101010101010101
INFO_REPLY [udp/127.0.0.1:7410] [udp/239.255.0.1:7400]
INFO_REPLY_IP4 udp/127.0.0.1:7410 None",
    );
}

pub(crate) const GOLDEN: &[Golden] = golden! {
    "cyclone-11.0.1-acknack": "INFO_DST 01101d8baab35a09fcbdd63a
ACKNACK 2/0 {} #2 00000207>00000202 final";
    "cyclone-11.0.1-data": "INFO_TS 1795295706
DATA 1 00000202>00000000 data 56..88
HEARTBEAT 1..=1 #2 00000202>00000000";
    "cyclone-11.0.1-data-frag": "INFO_DST 0110c5c34bb8fb8c28023203
INFO_TS 1795295534
DATA_FRAG 2 00000403>00000404 1+1/4 of 260 in 908 data 84..344 at 0
HEARTBEAT 2..=2 #13 00000403>00000404";
    "cyclone-11.0.1-data-frag-repair": "INFO_DST 0110c5c34bb8fb8c28023203
DATA_FRAG 2 00000403>00000404 2+1/4 of 260 in 908 data 72..332 at 260
DATA_FRAG 2 00000403>00000404 3+1/4 of 260 in 908 data 368..628 at 520
DATA_FRAG 2 00000403>00000404 4+1/4 of 260 in 908 data 664..792 at 780
HEARTBEAT 2..=2 #18 00000403>00000404";
    "cyclone-11.0.1-data-unkeyed": "INFO_TS 1795295706
DATA 1 00000403>00000000 data 56..164
HEARTBEAT 1..=1 #2 00000403>00000000";
    "cyclone-11.0.1-dispose": "INFO_TS 1795295707
DATA 6 00000202>00000000 qos 0071 status 1 key 68..88
HEARTBEAT 5..=6 #8 00000202>00000000";
    "cyclone-11.0.1-first-acknacks": "INFO_DST 01109c1806bc3ef306cac550
ACKNACK 1/0 {} #1 000003c7>000003c2 final
ACKNACK 1/2 {1, 2} #1 000004c7>000004c2 final
ACKNACK 1/1 {1} #1 000200c7>000200c2 final
ACKNACK 1/0 {} #1 000300c4>000300c3 final
ACKNACK 1/0 {} #1 000301c4>000301c3 final";
    "cyclone-11.0.1-first-heartbeats": "INFO_DST 01101d8baab35a09fcbdd63a
HEARTBEAT 1..=0 #1 000003c2>00000000
HEARTBEAT 1..=2 #1 000004c2>00000000
HEARTBEAT 1..=1 #1 000200c2>00000000
HEARTBEAT 1..=0 #1 000300c3>00000000
HEARTBEAT 1..=0 #1 000301c3>00000000";
    "cyclone-11.0.1-gap": "INFO_DST 011067c62b0eb77efe18e2af
INFO_TS 1795295723
DATA 1 00000202>00000207 data 72..100
INFO_TS 1795295723
DATA 6 00000202>00000207 data 136..168
GAP 2.. 6/0 {} 00000202>00000207
HEARTBEAT 1..=6 #2 00000202>00000207";
    "cyclone-11.0.1-heartbeat-frag": "HEARTBEAT_FRAG 1 ..=1 #1 000003c2>00000000";
    "cyclone-11.0.1-nack-frag": "INFO_DST 011085c6e91a4c8f2fd5f3f6
ACKNACK 2/0 {} #7 00000404>00000403 final
NACK_FRAG 2 2/3 {2, 3, 4} #2 00000404>00000403";
    "cyclone-11.0.1-participant": "INFO_DST 000000000000000000000000
INFO_TS 1795295704
DATA 1 000100c2>00000000 data 72..472
INFO_TS 1795295704
DATA 1 000100c2>00000000 data 508..908";
    "cyclone-11.0.1-participant-gone": "INFO_DST 000000000000000000000000
INFO_TS 1795295709
DATA 2 000100c2>00000000 qos 0071 status 3 key 84..112";
    "cyclone-11.0.1-publication": "INFO_TS 1795295704
DATA 1 000003c2>00000000 data 56..500";
    "cyclone-11.0.1-publication-default": "INFO_TS 1795295704
DATA 2 000003c2>00000000 data 56..272";
    "cyclone-11.0.1-publication-gone": "INFO_TS 1795295709
DATA 3 000003c2>00000000 qos 0071 status 3 key 68..96";
    "cyclone-11.0.1-subscriptions": "INFO_DST 01101d8baab35a09fcbdd63a
INFO_TS 1795295704
DATA 1 000004c2>000004c7 data 72..428
INFO_TS 1795295704
DATA 2 000004c2>000004c7 data 464..692
INFO_TS 1795295704
DATA 1 000200c2>000200c7 data 728..756
HEARTBEAT 1..=2 #2 000004c2>000004c7
HEARTBEAT 1..=1 #2 000200c2>000200c7";
    "cyclone-11.0.1-unregister": "INFO_TS 1795295708
DATA 7 00000202>00000000 qos 0071 status 3 key 68..88
HEARTBEAT 7..=7 #9 00000202>00000000";
    "fastdds-2.9.1-data": "INFO_DST 010f7f01dd27a32000000000
INFO_TS 1795295675
DATA 3 00000102>00000107 data 72..100
HEARTBEAT 2..=3 #3 00000102>00000107
unknown 80";
    "fastdds-2.9.1-data-frag": "INFO_DST 010f7f01dd27a32000000000
INFO_TS 1795295675
DATA_FRAG 1 00000203>00000204 1+1/3 of 1124 in 3008 data 84..1208 at 0
unknown 80";
    "fastdds-2.9.1-data-frag-last": "INFO_DST 010f7f01dd27a32000000000
INFO_TS 1795295675
DATA_FRAG 1 00000203>00000204 3+1/3 of 1124 in 3008 data 84..844 at 2248
unknown 80";
    "fastdds-2.9.1-dispose": "INFO_DST 010f7f01dd27a32000000000
INFO_TS 1795295676
DATA 7 00000102>00000107 qos 0070 0071 status 1 nothing
unknown 80";
    "fastdds-2.9.1-first-acknack": "INFO_DST 010f7f01dd27a32000000000
ACKNACK 1/0 {} #1 000003c7>000003c2 final
unknown 80";
    "fastdds-2.9.1-first-heartbeat": "INFO_DST 010f7f01dd27a32000000000
HEARTBEAT 1..=2 #1 000003c2>000003c7
unknown 80";
    "fastdds-2.9.1-participant": "INFO_TS 1795295673
DATA 1 000100c2>000100c7 data 56..456
unknown 80";
    "fastdds-2.9.1-participant-gone": "INFO_TS 1795295677
DATA 2 000100c2>000100c7 qos 800f 0070 0071 status 3 nothing
unknown 80";
    "fastdds-2.9.1-publication-gone": "INFO_DST 010f7f01dd27a32000000000
INFO_TS 1795295676
DATA 3 000003c2>000003c7 qos 0070 0071 status 3 nothing
unknown 80";
    "fastdds-2.9.1-publications": "INFO_DST 010f7f01dd27a32000000000
INFO_TS 1795295673
DATA 1 000003c2>000003c7 data 72..448
INFO_TS 1795295673
DATA 2 000003c2>000003c7 data 484..816
unknown 80";
    "fastdds-2.9.1-subscriptions": "INFO_DST 010f7f01de27784400000000
INFO_TS 1795295673
DATA 1 000004c2>000004c7 data 72..436
INFO_TS 1795295673
DATA 2 000004c2>000004c7 data 472..804
unknown 80";
    "fastdds-2.9.1-unregister": "INFO_DST 010f7f01dd27a32000000000
INFO_TS 1795295676
DATA 8 00000102>00000107 qos 0070 0071 status 3 nothing
unknown 80";
};
