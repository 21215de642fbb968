//! In what form bursts travel.

use super::{ACKNACK, DATA, HEARTBEAT, Packets, start_capture};
use crate::host::Host;
use crate::{peer, thalweg};

const ACKNACK_BATCH: (&str, u8) = ("ACKNACK_BATCH", 0x17);
const DATA_BATCH: (&str, u8) = ("DATA_BATCH", 0x18);
const HEARTBEAT_BATCH: (&str, u8) = ("HEARTBEAT_BATCH", 0x19);

impl Packets {
    /// The submessages of each packet.
    #[track_caller]
    fn submessages(&self) -> Vec<Vec<u8>> {
        let id = |text: &str| u8::from_str_radix(text.trim_start_matches("0x"), 16).expect("an id");
        self.select("rtps", "rtps.sm.id").iter().map(|line| line.split('|').map(id).collect()).collect()
    }
}

fn count(submessages: &[u8], (_, id): (&str, u8)) -> usize {
    submessages.iter().filter(|other| **other == id).count()
}

/// So many samples of 100 octets by this method.
fn publish(method: &str, count: u32) -> String {
    let file = thalweg::octets_file(1, 100);
    format!("pub burst --type bytes --rate 0 --count {count} --method {method} @{}", file.display())
}

/// A burst to Cyclone DDS is many DATA and at most one HEARTBEAT, the last, in one datagram.
#[track_caller]
fn check_to_cyclone(method: &str) {
    let host = Host::new(method);
    let capture = start_capture(&host, "lo", &format!("{method}-to-cyclone"));
    let subscriber = peer::start(Some(&host), 0, "sub --topic burst --type bytes --count 10000 --timeout 80");
    thalweg::start(Some(&host), 0, &publish(method, 10_000)).finish().well();
    subscriber.finish().well();
    let packets = capture.stop();
    packets.check_submessages(&[DATA, HEARTBEAT, ACKNACK]);
    let packets = packets.submessages();
    let full: Vec<&Vec<u8>> = packets.iter().filter(|packet| count(packet, DATA) > 5).collect();
    let carried: usize = full.iter().map(|packet| count(packet, DATA)).sum();
    assert!(carried > 5_000, "{method}: {carried} samples in {} full datagrams", full.len());
    // Those of discovery included.
    let carriers = packets.iter().filter(|packet| count(packet, DATA) > 0).count();
    assert!(carriers < 300, "{method}: {carriers} datagrams with DATA");
    // Of several datagrams that leave together the last one asks for all, once in a thousand samples at least.
    let asking =
        full.iter().filter(|packet| count(packet, HEARTBEAT) == 1 && packet.last() == Some(&HEARTBEAT.1)).count();
    let silent = full.iter().filter(|packet| count(packet, HEARTBEAT) == 0).count();
    assert!(asking > 0 && asking + silent == full.len(), "{method}: {asking} of {} end in a HEARTBEAT", full.len());
    for id in [DATA_BATCH, HEARTBEAT_BATCH, ACKNACK_BATCH] {
        assert!(packets.iter().all(|packet| count(packet, id) == 0), "{method}: {} to Cyclone DDS", id.0);
    }
}

#[test]
fn coalesced_samples_and_their_heartbeat_share_a_datagram_to_cyclone() {
    check_to_cyclone("coalesce");
}

#[test]
fn cyclone_gets_no_batches() {
    check_to_cyclone("batch");
}

#[test]
fn immediate_samples_have_a_datagram_each() {
    let host = Host::new("immediate");
    let capture = start_capture(&host, "lo", "immediate-to-cyclone");
    let subscriber = peer::start(Some(&host), 0, "sub --topic burst --type bytes --count 2000 --timeout 80");
    thalweg::start(Some(&host), 0, &publish("immediate", 2000)).finish().well();
    subscriber.finish().well();
    let packets = capture.stop();
    packets.check_submessages(&[DATA, HEARTBEAT, ACKNACK]);
    let alone = packets.submessages().iter().filter(|packet| count(packet, DATA) == 1).count();
    assert!(alone > 1_800, "{alone} of 2000 samples have a datagram of their own");
}

#[test]
fn batches_between_thalweg_programs_are_well_formed() {
    let host = Host::new("batches");
    let capture = start_capture(&host, "lo", "batches");
    let subscriber = thalweg::start(Some(&host), 0, "sub burst --type bytes --count 2000 --timeout 80");
    thalweg::start(Some(&host), 0, &publish("batch", 2000)).finish().well();
    subscriber.finish().well();
    let packets = capture.stop();
    packets.check(&[DATA_BATCH, HEARTBEAT_BATCH, ACKNACK_BATCH]);
    let batches: usize = packets.submessages().iter().map(|packet| count(packet, DATA_BATCH)).sum();
    assert!((1..=400).contains(&batches), "2000 samples in {batches} batches");
}

#[test]
fn cyclone_packs_what_it_batches() {
    let host = Host::new("cyclone-batch");
    let capture = start_capture(&host, "lo", "cyclone-batch");
    let subscriber = thalweg::start(Some(&host), 0, "sub burst --type bytes --count 2000 --timeout 80");
    let words = "pub --topic burst --type bytes --size 100 --batch --count 2000 --linger 1";
    peer::start(Some(&host), 0, words).finish().well();
    subscriber.finish().well();
    let packets = capture.stop().submessages();
    let most = packets.iter().map(|packet| count(packet, DATA)).max();
    assert!(most > Some(5), "no datagram of Cyclone DDS carries several samples: {most:?}");
}
