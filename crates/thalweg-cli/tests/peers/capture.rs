//! What Thalweg puts on the wire, as Wireshark's dissector reads it.

mod methods;

use std::collections::BTreeSet;

use crate::dissector::{Capture, Packets};
use crate::host::{Addresses, Host};
use crate::thalweg;

impl Packets {
    /// Fails unless every packet is RTPS, none is malformed, and the named submessages are there.
    #[track_caller]
    fn check(&self, submessages: &[(&str, u8)]) {
        self.check_submessages(submessages);
        self.check_all_are("rtps");
    }

    /// As [`Packets::check`], where another vendor's program sends packets that are not RTPS as well.
    #[track_caller]
    fn check_submessages(&self, submessages: &[(&str, u8)]) {
        self.check_well_formed();
        let ids: BTreeSet<u8> = self
            .select("rtps", "rtps.sm.id")
            .iter()
            .flat_map(|line| line.split('|'))
            .filter_map(|id| u8::from_str_radix(id.trim_start_matches("0x"), 16).ok())
            .collect();
        for (name, id) in submessages {
            assert!(ids.contains(id), "no {name} among {ids:02x?}");
        }
    }
}

/// Captures all UDP datagrams.
#[track_caller]
fn start_capture(host: &Host, interface: &str, name: &str) -> Capture {
    Capture::start(Some(host), interface, name, "udp")
}

const DATA: (&str, u8) = ("DATA", 0x15);
const HEARTBEAT: (&str, u8) = ("HEARTBEAT", 0x07);
const ACKNACK: (&str, u8) = ("ACKNACK", 0x06);
const GAP: (&str, u8) = ("GAP", 0x08);
const INFO_TS: (&str, u8) = ("INFO_TS", 0x09);
const INFO_DST: (&str, u8) = ("INFO_DST", 0x0e);
const DATA_FRAG: (&str, u8) = ("DATA_FRAG", 0x16);
const NACK_FRAG: (&str, u8) = ("NACK_FRAG", 0x12);

#[test]
fn random_bytes_are_not_taken_for_a_malformed_packet_of_some_protocol() {
    let host = Host::new("random");
    let capture = start_capture(&host, "lo", "random");
    // Sixteen bytes that begin as a receiver report of RTCP does, which would be longer.
    let say = r"printf '\x81\xc9\x00\x07abcdefghijkl' > /dev/udp/127.0.0.1/40000";
    assert!(host.command("bash").args(["-c", say]).status().expect("bash").success());
    let packets = capture.stop();
    assert_eq!(packets.select("udp.dstport == 40000", "udp.length"), ["24"]);
    packets.check_well_formed();
}

#[test]
fn discovery_and_samples_on_loopback_are_well_formed() {
    let host = Host::new("capture");
    let capture = start_capture(&host, "lo", "loopback");
    let subscriber = thalweg::start(Some(&host), 0, "sub Square --type ShapeType --count 22 --timeout 80");
    let words = "pub Square --type ShapeType RED,1,2,3 BLUE,4,5,6 --count 20 --rate 50 --dispose";
    let publisher = thalweg::start(Some(&host), 0, words);
    publisher.finish().well();
    subscriber.finish().well();
    let packets = capture.stop();
    packets.check(&[DATA, HEARTBEAT, ACKNACK, INFO_TS, INFO_DST]);
    let disposals = packets.select("rtps.param.status_info", "frame.number");
    assert!(!disposals.is_empty(), "no change carries PID_STATUS_INFO");
}

#[test]
fn fragments_and_their_repair_are_well_formed() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    right.drop_incoming("meta l4proto udp numgen random mod 100 < 5");
    left.send_one_by_one("eth0");
    let capture = start_capture(&left, "eth0", "fragments");
    let subscriber = thalweg::start(Some(&right), 0, "sub large --type bytes --count 10 --timeout 80");
    let file = thalweg::octets_file(3, 200_000);
    let words = format!("pub large --type bytes --count 10 --rate 20 @{}", file.display());
    let publisher = thalweg::start(Some(&left), 0, &words);
    subscriber.finish().well();
    publisher.finish();
    let packets = capture.stop();
    packets.check(&[DATA, DATA_FRAG, NACK_FRAG, HEARTBEAT, ACKNACK, INFO_TS]);
    let longest = packets.select("rtps", "udp.length").iter().filter_map(|length| length.parse::<u32>().ok()).max();
    assert!(longest.is_some_and(|length| length <= 1480), "a datagram needs IP fragments: {longest:?}");
}

#[test]
fn history_with_holes_is_announced_by_gaps() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    let capture = start_capture(&left, "eth0", "gaps");
    // KEEP_LAST 1 of two instances: once RED stands still, the numbers between the two held samples are gone.
    let values: String = (0..50).map(|x| format!(" BLUE,{x},0,1")).collect();
    let words = format!(
        "pub Square --type ShapeType RED,0,0,1 {values} --rate 100 --readers 0 --qos durability=transient-local --qos depth=1"
    );
    let publisher = thalweg::start(Some(&left), 0, &words);
    std::thread::sleep(std::time::Duration::from_millis(800));
    let words = "sub Square --type ShapeType --json --count 60 --timeout 80 --qos durability=transient-local";
    thalweg::start(Some(&right), 0, words).finish().well();
    publisher.interrupt();
    capture.stop().check(&[DATA, HEARTBEAT, ACKNACK, GAP]);
}

#[test]
fn ipv6_packets_are_well_formed() {
    let (left, right) = Host::pair(9000, Addresses::V6Only);
    left.send_one_by_one("eth0");
    let capture = start_capture(&left, "eth0", "ipv6");
    let subscriber = thalweg::start(Some(&right), 0, "sub large --type bytes --count 3 --timeout 80");
    let file = thalweg::octets_file(4, 100_000);
    let publisher = thalweg::start(Some(&left), 0, &format!("pub large --type bytes --count 3 @{}", file.display()));
    subscriber.finish().well();
    publisher.finish().well();
    capture.stop().check(&[DATA, DATA_FRAG, HEARTBEAT, ACKNACK]);
}
