//! Links that are cut and processes that stand still: what was written meanwhile arrives afterwards, and Ok means that it did.

use std::time::{Duration, Instant};

use crate::host::{Addresses, Host};
use crate::program::{Program, Said};
use crate::thalweg;

/// Samples that are written in five seconds.
const SAMPLES: usize = 10_000;

fn subscribe(host: &Host) -> Program {
    thalweg::start(Some(host), 0, &format!("sub stream --type bytes --json --count {SAMPLES} --timeout 80"))
}

/// A KEEP_ALL writer for three readers; it says well when all is acknowledged.
fn publish(host: &Host, more: &str) -> Program {
    let file = thalweg::octets_file(3, 100);
    let words = format!(
        "pub stream --type bytes --rate 2000 --count {SAMPLES} --readers 3 --qos max_blocking_ms=60000 {more} @{}",
        file.display()
    );
    thalweg::start(Some(host), 0, &words)
}

/// Every number from 1 on, once and in order.
#[track_caller]
fn check_everything(said: &Said, reader: &str) {
    let numbers = said.objects().filter_map(|object| object["sequence"].as_i64());
    let wrong = numbers.zip(1..).find(|(number, expected)| number != expected);
    assert_eq!(wrong, None, "{reader}");
}

#[test]
fn what_is_written_while_a_link_is_cut_arrives_afterwards() {
    for cut in [1_300, 3_000] {
        let (left, right) = Host::pair(1500, Addresses::Both);
        let (near, other, far) = (subscribe(&left), subscribe(&left), subscribe(&right));
        let publisher = publish(&left, "");
        std::thread::sleep(Duration::from_millis(1_500));
        for host in [&left, &right] {
            host.drop_incoming("iifname eth0 meta l4proto udp");
        }
        std::thread::sleep(Duration::from_millis(cut));
        for host in [&left, &right] {
            host.accept_incoming();
        }
        for (reader, name) in [(near, "near"), (other, "other"), (far, "far")] {
            check_everything(&reader.finish().well(), &format!("{name}, cut for {cut} ms"));
        }
        publisher.finish().well();
    }
}

#[test]
fn a_host_that_moves_to_other_addresses_is_found_again_and_misses_nothing() {
    for reader_moves in [true, false] {
        let (left, right) = Host::pair(1500, Addresses::Both);
        let (near, other, far) = (subscribe(&left), subscribe(&left), subscribe(&right));
        let publisher = publish(&left, "");
        std::thread::sleep(Duration::from_millis(1_500));
        // Nobody has the old addresses any more, so that only announcements of the new ones help.
        let moves = if reader_moves { &right } else { &left };
        moves.move_to("eth0", &["10.77.0.9/24", "fd77:0::9/64"]);
        for (reader, name) in [(near, "near"), (other, "other"), (far, "far")] {
            check_everything(&reader.finish().well(), &format!("{name}, the reader moves: {reader_moves}"));
        }
        publisher.finish().well();
    }
}

#[test]
fn what_is_written_while_a_process_stands_still_arrives_afterwards() {
    let host = Host::new("still");
    let readers = [(); 3].map(|()| subscribe(&host));
    let publisher = publish(&host, "");
    std::thread::sleep(Duration::from_millis(1_500));
    readers[1].suspend();
    std::thread::sleep(Duration::from_secs(4));
    readers[1].resume();
    for (number, reader) in readers.into_iter().enumerate() {
        check_everything(&reader.finish().well(), &format!("reader {number}"));
    }
    publisher.finish().well();
}

#[test]
fn everything_crosses_a_link_that_loses_most_packets() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    let words = "sub stream --type bytes --json --count 2000 --timeout 80";
    let readers = [(); 3].map(|()| thalweg::start(Some(&right), 0, words));
    for host in [&left, &right] {
        host.drop_incoming("meta l4proto udp numgen random mod 100 < 60");
    }
    let file = thalweg::octets_file(3, 100);
    let words = "pub stream --type bytes --rate 1000 --count 2000 --readers 3 --qos max_blocking_ms=60000";
    let publisher = thalweg::start(Some(&left), 0, &format!("{words} @{}", file.display()));
    for (number, reader) in readers.into_iter().enumerate() {
        check_everything(&reader.finish().well(), &format!("reader {number}"));
    }
    publisher.finish().well();
}

/// Whether somebody listens to the group of discovery on a link.
fn is_in_group(host: &Host, link: &str) -> bool {
    let listed = host.command("cat").arg("/proc/net/igmp").output().expect("read");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let devices = listed.lines().skip_while(|line| line.split_whitespace().nth(1) != Some(link));
    devices.skip(1).take_while(|line| line.starts_with('\t')).any(|line| line.contains("0100FFEF"))
}

/// The kernel lets a socket take part in 20 groups, and counts those on links that are gone.
#[test]
fn links_that_come_and_go_leave_room_for_the_next_ones() {
    let host = Host::new("guests");
    let reader = thalweg::start(Some(&host), 0, "sub chatter --json --count 1 --timeout 80");
    for number in 0..30 {
        host.plug_in("guest", &format!("10.78.{number}.1/24"));
        let deadline = Instant::now() + Duration::from_secs(10);
        while !is_in_group(&host, "guest") {
            assert!(
                Instant::now() < deadline,
                "the group is not joined on the link that came as number {}",
                number + 1
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        host.unplug("guest");
    }
    thalweg::start(Some(&host), 0, "pub chatter --count 1 --readers 1 hello").finish().well();
    reader.finish().well();
}
