//! Links of other sizes than Ethernet's, and what their packets look like: as large as the path allows, not cut by IP.

use std::time::Duration;

use super::{check_megabyte, check_strings};
use crate::host::{Addresses, Host};
use crate::thalweg;

/// Datagrams of user data that are larger than an Ethernet frame takes.
const LARGE: &str = "meta l4proto udp meta length > 1500";
/// Packets that IP has cut, before they are put together again.
const CUT: &str = "ip frag-off & 0x3fff != 0";
const CUT_V6: &str = "exthdr frag exists";

/// Two hosts that a router joins; its second link carries `second_mtu` in this direction, the others 9000.
fn routed(second_mtu: u32, addresses: Addresses) -> (Host, Host, Host) {
    let (left, router, right) = (Host::new("left"), Host::new("router"), Host::new("right"));
    left.join(&router, 1, 9000, addresses);
    router.join(&right, 2, 9000, addresses);
    router.set_mtu("eth2", second_mtu);
    router.forward();
    for (host, own, via, to) in [(&left, 1, 2, 2), (&right, 2, 1, 1)] {
        if addresses == Addresses::Both {
            host.route(&format!("10.77.{to}.0/24"), &format!("10.77.{own}.{via}"));
        }
        host.route(&format!("fd77:{to}::/64"), &format!("fd77:{own}::{via}"));
    }
    (left, router, right)
}

#[test]
fn jumbo_frames_are_filled() {
    for addresses in [Addresses::Both, Addresses::V6Only] {
        let (left, right) = Host::pair(9000, addresses);
        left.send_one_by_one("eth0");
        right.count_incoming("large", LARGE);
        right.count_incoming("cut", CUT);
        right.count_incoming("cut6", CUT_V6);
        check_megabyte(&left, &right);
        // Five samples of a megabyte in datagrams of 8,972 bytes at most.
        let large = right.counted("large");
        assert!((550..700).contains(&large), "{large} large datagrams");
        assert_eq!((right.counted("cut"), right.counted("cut6")), (0, 0));
    }
}

#[test]
fn a_link_below_ethernet_is_not_cut_by_ip() {
    let (left, right) = Host::pair(1280, Addresses::Both);
    left.send_one_by_one("eth0");
    right.count_incoming("full", "meta l4proto udp meta length 1100-1280");
    right.count_incoming("cut", CUT);
    check_megabyte(&left, &right);
    assert!(right.counted("full") > 4000, "{} full datagrams", right.counted("full"));
    assert_eq!(right.counted("cut"), 0);
}

#[test]
fn large_frames_need_both_ends() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    left.set_mtu("eth0", 9000);
    // Without it, the link would hand segmented sends over whole, whatever its size.
    left.send_one_by_one("eth0");
    right.count_incoming("full", "meta l4proto udp meta length 1400-1500");
    check_megabyte(&left, &right);
    check_megabyte(&right, &left);
    assert!(right.counted("full") > 3000, "{} full datagrams", right.counted("full"));
    assert_eq!(left.dropped_outgoing("eth0"), 0, "frames too large for the other end");
}

#[test]
fn a_router_that_tells_its_smaller_link_is_heard() {
    for addresses in [Addresses::Both, Addresses::V6Only] {
        let (left, router, right) = routed(1300, addresses);
        left.send_one_by_one("eth1");
        router.count_incoming("tried", "meta l4proto udp meta length > 1000");
        router.count_incoming("too_large", "meta l4proto udp meta length > 1300");
        right.count_incoming("cut", CUT);
        right.count_incoming("cut6", CUT_V6);
        let peer = if addresses == Addresses::Both { "10.77.1.1" } else { "fd77:1::1" };
        let subscriber = thalweg::start(
            Some(&right),
            0,
            &format!("sub large --type bytes --json --count 5 --timeout 80 --peer {peer}"),
        );
        let file = thalweg::octets_file(7, 1_000_000);
        let words = format!("pub large --type bytes --count 5 --rate 2 @{}", file.display());
        let publisher = thalweg::start(Some(&left), 0, &words);
        assert_eq!(thalweg::samples(&subscriber.finish().well()).len(), 5);
        publisher.finish().well();
        let (tried, too_large) = (router.counted("tried"), router.counted("too_large"));
        let cut = right.counted("cut") + right.counted("cut6");
        // The sample under way when the news came keeps its fragments, which IP has to cut; the other four fit.
        assert!(too_large > 0, "nothing tried the path");
        assert!(tried > 4000 && too_large <= 800 && cut <= 1600, "{tried} datagrams, {too_large} too large, {cut} cut");
    }
}

#[test]
fn a_router_that_drops_large_packets_silently_is_survived() {
    let (left, router, right) = routed(1300, Addresses::Both);
    left.send_one_by_one("eth1");
    router.drop_outgoing("icmp type destination-unreachable");
    let words = "sub large --type bytes --json --count 3 --timeout 80 --peer 10.77.1.1";
    let subscriber = thalweg::start(Some(&right), 0, words);
    let file = thalweg::octets_file(5, 100_000);
    let words = format!("pub large --type bytes --count 3 --rate 10 @{}", file.display());
    let publisher = thalweg::start(Some(&left), 0, &words);
    assert_eq!(thalweg::samples(&subscriber.finish().well()).len(), 3);
    publisher.finish().well();
}

#[test]
fn a_path_that_becomes_narrower_carries_on() {
    let (left, router, right) = routed(9000, Addresses::Both);
    left.send_one_by_one("eth1");
    let words = "sub large --type bytes --json --timeout 80 --peer 10.77.1.1";
    let mut subscriber = thalweg::start(Some(&right), 0, words);
    let file = thalweg::octets_file(6, 40_000);
    let words = format!("pub large --type bytes --rate 20 --match-timeout 80 @{}", file.display());
    let publisher = thalweg::start(Some(&left), 0, &words);
    (0..10).for_each(|_| drop(subscriber.expect_text("0x0607")));
    router.set_mtu("eth2", 1300);
    (0..10).for_each(|_| drop(subscriber.expect_text("0x0607")));
    right.count_incoming("full", "meta l4proto udp meta length 1100-1300");
    right.count_incoming("cut", CUT);
    // Samples that came before the counting began are heard of after it.
    let are_full = (0..60).any(|_| {
        drop(subscriber.expect_text("0x0607"));
        right.counted("full") > 500
    });
    assert!(are_full, "{} full datagrams", right.counted("full"));
    assert_eq!(right.counted("cut"), 0, "IP still cuts what the writer should have cut");
    publisher.interrupt();
    subscriber.interrupt();
}

#[test]
fn a_link_whose_size_changes_is_measured_anew() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    left.send_one_by_one("eth0");
    let mut subscriber = thalweg::start(Some(&right), 0, "sub large --type bytes --json --timeout 80");
    let file = thalweg::octets_file(8, 40_000);
    let words = format!("pub large --type bytes --rate 20 --match-timeout 80 @{}", file.display());
    let publisher = thalweg::start(Some(&left), 0, &words);
    subscriber.expect_text("0x0809");
    right.set_mtu("eth0", 9000);
    left.set_mtu("eth0", 9000);
    // Both ends notice, and the reader's end announces it.
    std::thread::sleep(Duration::from_secs(1));
    right.count_incoming("large", LARGE);
    // What came during the pause waits to be read as well.
    (0..50).for_each(|_| drop(subscriber.expect_text("0x0809")));
    assert!(right.counted("large") > 60, "{} large datagrams", right.counted("large"));
    publisher.interrupt();
    subscriber.interrupt();
}

#[test]
fn datagrams_of_a_writer_carry_its_transport_priority() {
    for addresses in [Addresses::Both, Addresses::V6Only] {
        let (left, right) = Host::pair(1500, addresses);
        // A peer with addresses of both families is reached at the one that has answered first.
        let count = |name: &str, words: &str| {
            right.count_incoming(name, &format!("ip {words}"));
            right.count_incoming(&format!("{name}6"), &format!("ip6 {words}"));
        };
        let counted = |name: &str| right.counted(name) + right.counted(&format!("{name}6"));
        count("marked", "dscp 46");
        count("large", "dscp 46 meta length > 1000");
        check_strings(&left, &right, "", "");
        assert_eq!(counted("marked"), 0);
        check_strings(&left, &right, "--qos transport_priority=46", "");
        assert!(counted("marked") >= 3, "{} marked datagrams", counted("marked"));
        // Fragments leave together, and repairs from another thread and socket.
        right.drop_incoming("meta l4proto udp numgen random mod 100 < 5");
        count("unmarked", "dscp 0 meta l4proto udp meta length > 1000");
        left.send_one_by_one("eth0");
        let subscriber = thalweg::start(Some(&right), 0, "sub large --type bytes --json --count 5 --timeout 80");
        let file = thalweg::octets_file(9, 200_000);
        let words =
            format!("pub large --type bytes --count 5 --rate 0 --qos transport_priority=46 @{}", file.display());
        let publisher = thalweg::start(Some(&left), 0, &words);
        assert_eq!(thalweg::samples(&subscriber.finish().well()).len(), 5);
        publisher.finish().well();
        assert!(counted("large") > 750, "{} marked fragments", counted("large"));
        assert_eq!(counted("unmarked"), 0);
    }
}
