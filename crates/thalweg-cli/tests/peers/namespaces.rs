//! Two hosts of our own, joined by links that are as good or bad as a test wants them.

pub mod agents;
mod hosts;
mod links;
mod loopback;
mod methods;
mod outages;
mod paths;

use std::time::Duration;

use crate::host::{Addresses, Host};
use crate::program::Program;
use crate::{peer, thalweg};

const STRING: &str = "--type string";

/// A writer on the left host and a reader on the right one exchange three samples.
#[track_caller]
fn check_strings(left: &Host, right: &Host, writer: &str, reader: &str) {
    let subscriber =
        thalweg::start(Some(right), 0, &format!("sub chatter {STRING} --json --count 3 --timeout 80 {reader}"));
    let publisher =
        thalweg::start(Some(left), 0, &format!("pub chatter one two three {STRING} --count 3 --rate 0 {writer}"));
    let values: Vec<String> = strings(subscriber);
    assert_eq!(values, ["one", "two", "three"]);
    publisher.finish().well();
}

fn strings(subscriber: Program) -> Vec<String> {
    let said = subscriber.finish().well();
    let text = |value: serde_json::Value| value["data"].as_str().unwrap_or_default().to_owned();
    thalweg::samples(&said).into_iter().map(|(value, _)| text(value)).collect()
}

/// Octets of a megabyte arrive unchanged on the right.
#[track_caller]
fn check_megabyte(left: &Host, right: &Host) {
    check_megabytes(left, right, 5, 0);
}

/// `count` samples of a megabyte, `rate` in a second; 0: as fast as they go.
fn check_megabytes(left: &Host, right: &Host, count: usize, rate: u32) {
    let words = format!("sub large --type bytes --json --count {count} --timeout 80");
    let subscriber = thalweg::start(Some(right), 0, &words);
    let file = thalweg::octets_file(7, 1_000_000);
    let words = format!("pub large --type bytes --count {count} --rate {rate} @{}", file.display());
    let publisher = thalweg::start(Some(left), 0, &words);
    let digits: String = thalweg::octets(7, 1_000_000).iter().map(|octet| format!("{octet:02x}")).collect();
    let samples = thalweg::samples(&subscriber.finish().well());
    assert_eq!(samples.len(), count);
    for (value, _) in samples {
        assert!(value["data"] == format!("0x{digits}"), "a megabyte came in another shape");
    }
    publisher.finish().well();
}

#[test]
fn hosts_find_each_other_by_multicast() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    check_strings(&left, &right, "", "");
}

#[test]
fn unicast_peers_alone_are_enough() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    check_strings(&left, &right, "--no-multicast --peer 10.77.0.2", "--no-multicast");
    check_strings(&left, &right, "--no-multicast", "--no-multicast --peer 10.77.0.1");
}

#[test]
fn a_network_that_drops_multicast_needs_one_unicast_peer() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    for host in [&left, &right] {
        host.drop_incoming("ip daddr 224.0.0.0/4");
        host.drop_incoming("ip6 daddr ff00::/8");
    }
    let said = thalweg::start(Some(&left), 0, "pub chatter lonely --count 1 --match-timeout 3").finish();
    assert_eq!(said.status.code(), Some(3), "the filter lets multicast through: {:?}", said.lines);
    check_strings(&left, &right, "--peer 10.77.0.2", "");
}

#[test]
fn a_megabyte_crosses_an_ordinary_link() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    check_megabyte(&left, &right);
}

#[test]
fn a_megabyte_crosses_a_link_of_jumbo_frames() {
    let (left, right) = Host::pair(9000, Addresses::Both);
    check_megabyte(&left, &right);
}

#[test]
fn a_megabyte_crosses_a_link_that_loses_packets() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    for host in [&left, &right] {
        host.drop_incoming("meta l4proto udp numgen random mod 100 < 3");
    }
    check_megabyte(&left, &right);
}

#[test]
fn ipv6_alone_is_enough() {
    let (left, right) = Host::pair(1500, Addresses::V6Only);
    check_strings(&left, &right, "", "");
    check_strings(&left, &right, "--no-multicast --peer fd77:0::2", "--no-multicast");
    // Long enough for the choice between unicast and multicast to be made: IPv4 groups leave by loopback here.
    check_megabytes(&left, &right, 30, 0);
}

#[test]
fn two_programs_meet_on_a_host_without_a_network() {
    let host = Host::new("alone");
    check_strings(&host, &host, "", "");
    check_megabyte(&host, &host);
}

#[test]
fn hosts_with_several_interfaces_meet_over_any_of_them() {
    let (left, right, far) = (Host::new("left"), Host::new("right"), Host::new("far"));
    left.join(&far, 1, 1500, Addresses::Both);
    left.join(&right, 2, 1500, Addresses::Both);
    // Each neighbour shares another link with the one in the middle.
    check_strings(&left, &right, "", "");
    check_strings(&left, &far, "", "");
    check_strings(&right, &left, "", "");
    check_strings(&left, &right, "--interface eth2", "");
}

#[test]
fn a_reader_that_is_killed_and_restarted_is_served_again() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    let words = format!("pub chatter tick {STRING} --rate 50 --readers 0 --acknowledge-timeout 0");
    let publisher = thalweg::start(Some(&left), 0, &words);
    for _ in 0..2 {
        let mut subscriber = thalweg::start(Some(&right), 0, &format!("sub chatter {STRING} --json"));
        for _ in 0..20 {
            subscriber.expect_text("tick");
        }
        subscriber.kill();
    }
    let subscriber = thalweg::start(Some(&right), 0, &format!("sub chatter {STRING} --json --count 20 --timeout 80"));
    assert_eq!(strings(subscriber).len(), 20);
    publisher.interrupt().well();
}

#[test]
fn a_writer_that_is_killed_and_restarted_is_heard_again() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    let mut subscriber = thalweg::start(Some(&right), 0, &format!("sub chatter {STRING} --json"));
    for word in ["first", "second", "third"] {
        let publisher = thalweg::start(Some(&left), 0, &format!("pub chatter {word} {STRING} --rate 50"));
        for _ in 0..10 {
            subscriber.expect_text(word);
        }
        publisher.kill();
    }
    subscriber.interrupt().well();
}

#[test]
fn an_interface_that_comes_later_is_used() {
    let (left, right) = (Host::new("left"), Host::new("right"));
    let mut subscriber = thalweg::start(Some(&right), 0, &format!("sub chatter {STRING} --json"));
    let words = format!("pub chatter tick {STRING} --rate 20 --match-timeout 80");
    let publisher = thalweg::start(Some(&left), 0, &words);
    std::thread::sleep(Duration::from_secs(1));
    left.join(&right, 0, 1500, Addresses::Both);
    subscriber.expect_text("tick");
    publisher.interrupt();
    subscriber.interrupt();
}

#[test]
fn a_host_holds_more_participants_than_there_are_well_known_ports() {
    let host = Host::new("crowd");
    // The default mapping of RTPS knows participants by an index; peers commonly look for the first ten or so.
    let words = format!("sub chatter {STRING} --json --count 1 --timeout 80");
    let subscribers: Vec<Program> = (0..36).map(|_| thalweg::start(Some(&host), 0, &words)).collect();
    let words = format!("pub chatter tick {STRING} --count 1 --readers 36 --match-timeout 80");
    let publisher = thalweg::start(Some(&host), 0, &words);
    for subscriber in subscribers {
        assert_eq!(strings(subscriber), ["tick"]);
    }
    publisher.finish();
}

#[test]
fn participants_with_another_domain_tag_or_domain_do_not_meet() {
    let host = Host::new("tags");
    for (ours, theirs) in [("--domain-tag red", "--domain-tag blue"), ("--domain-tag red", "")] {
        let _subscriber = thalweg::start(Some(&host), 0, &format!("sub chatter {STRING} {theirs}"));
        let words = format!("pub chatter tick {STRING} --count 1 --match-timeout 2 {ours}");
        assert_eq!(thalweg::start(Some(&host), 0, &words).finish().status.code(), Some(3), "{ours} met {theirs:?}");
    }
    check_strings(&host, &host, "--domain-tag red", "--domain-tag red");
    let _elsewhere = thalweg::start(Some(&host), 1, &format!("sub chatter {STRING}"));
    let words = format!("pub chatter tick {STRING} --count 1 --match-timeout 2");
    assert_eq!(thalweg::start(Some(&host), 0, &words).finish().status.code(), Some(3), "two domains met");
}

#[test]
fn a_dead_reader_does_not_stop_a_healthy_one_where_the_patience_ends() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    let mut healthy = thalweg::start(Some(&right), 0, &format!("sub chatter {STRING} --json"));
    let mut doomed = thalweg::start(Some(&right), 0, &format!("sub chatter {STRING} --json"));
    let limits = "--qos max_samples=50 --qos max_blocking_ms=20000 --qos reader_patience_ms=1000";
    let words = format!("pub chatter tick {STRING} --rate 200 --readers 2 {limits}");
    let publisher = thalweg::start(Some(&left), 0, &words);
    healthy.expect_text("tick");
    doomed.expect_text("tick");
    doomed.kill();
    // Far more samples than the history holds: the writer must have given the dead reader up.
    for _ in 0..400 {
        healthy.expect_text("tick");
    }
    publisher.interrupt();
    healthy.interrupt();
}

#[test]
fn a_link_that_was_cut_carries_data_again() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    let mut subscriber = thalweg::start(Some(&right), 0, &format!("sub chatter {STRING} --json"));
    let words = format!("pub chatter tick {STRING} --rate 20 --qos max_blocking_ms=20000");
    let publisher = thalweg::start(Some(&left), 0, &words);
    subscriber.expect_text("tick");
    for host in [&left, &right] {
        host.drop_incoming("meta l4proto udp");
    }
    std::thread::sleep(Duration::from_secs(4));
    for host in [&left, &right] {
        host.accept_incoming();
    }
    for _ in 0..100 {
        subscriber.expect_text("tick");
    }
    publisher.interrupt();
    subscriber.interrupt();
}

#[test]
fn the_hosts_and_the_peer_work_without_thalweg() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    left.drop_incoming("meta l4proto udp numgen random mod 100 < 2");
    let words = "sub --topic large --type bytes --count 3 --timeout 80 --interface eth0";
    let subscriber = peer::start(Some(&right), 0, words);
    let words = "pub --topic large --type bytes --size 300000 --count 3 --linger 1 --interface eth0";
    let publisher = peer::start(Some(&left), 0, words);
    assert_eq!(subscriber.finish().well().objects().filter(|object| object["event"] == "sample").count(), 3);
    publisher.finish().well();
}

#[test]
fn cyclone_on_another_host_is_found_by_multicast_and_by_unicast() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    for (ours, theirs) in [("", ""), ("--no-multicast --peer 10.77.0.2", "--peer 10.77.0.1")] {
        let words = format!("sub --topic large --type bytes --count 3 --timeout 80 --interface eth0 {theirs}");
        let subscriber = peer::start(Some(&right), 0, &words);
        let file = thalweg::octets_file(9, 300_000);
        let words = format!("pub large --type bytes --count 3 --rate 0 {ours} @{}", file.display());
        let publisher = thalweg::start(Some(&left), 0, &words);
        let said = subscriber.finish().well();
        assert_eq!(said.objects().filter(|object| object["data"]["length"] == 300_000).count(), 3);
        publisher.finish().well();

        let subscriber =
            thalweg::start(Some(&left), 0, &format!("sub large --type bytes --json --count 3 --timeout 80 {ours}"));
        let words =
            format!("pub --topic large --type bytes --size 300000 --count 3 --linger 2 --interface eth0 {theirs}");
        let publisher = peer::start(Some(&right), 0, &words);
        assert_eq!(thalweg::samples(&subscriber.finish().well()).len(), 3);
        publisher.finish().well();
    }
}

#[test]
fn cyclone_that_is_killed_and_restarted_is_served_again() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    let words = format!("pub chatter tick {STRING} --rate 20 --readers 0 --acknowledge-timeout 0");
    let publisher = thalweg::start(Some(&left), 0, &words);
    for _ in 0..2 {
        let words = "sub --topic chatter --type string --count 1000 --interface eth0";
        let mut subscriber = peer::start(Some(&right), 0, words);
        for _ in 0..5 {
            subscriber.expect_text("tick");
        }
        subscriber.kill();
    }
    publisher.interrupt();
}
