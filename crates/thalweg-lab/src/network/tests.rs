//! Hosts that are really made. Without root or iproute2 only the refusal can be seen.

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::*;
use crate::scenario::Impairment;

/// Hosts, or `None` where this machine cannot have them and says so.
pub(super) fn hosts(count: u32, link: &LinkPlan) -> Option<Hosts> {
    match Hosts::new(count, link) {
        Ok(hosts) => Some(hosts),
        Err(error) => {
            let error = error.to_string();
            assert!(
                error.contains("need root") || error.contains("not installed") || error.contains("CAP_"),
                "{error}"
            );
            None
        }
    }
}

fn names(hosts: &Hosts) -> Vec<String> {
    hosts.hosts.iter().chain([&hosts.switch]).map(|namespace| namespace.name().to_owned()).collect()
}

/// Those of `names` that the system knows.
fn known(names: &[String]) -> usize {
    let listed = Command::new("ip").args(["netns", "list"]).output().expect("iproute2");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let listed: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    names.iter().filter(|name| listed.contains(&name.as_str())).count()
}

/// What `make` gives inside a namespace: sockets belong to the one that they were made in.
pub(super) fn inside<T: Send>(namespace: &Namespace, make: impl FnOnce() -> T + Send) -> T {
    let path = format!("/run/netns/{}", namespace.name());
    std::thread::scope(|scope| {
        let made = scope.spawn(|| {
            let file = std::fs::File::open(&path).expect("the namespace is there");
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("root");
            make()
        });
        made.join().expect("made")
    })
}

/// A socket on the host `index`.
pub(super) fn socket(hosts: &Hosts, index: usize) -> UdpSocket {
    let socket = inside(&hosts.hosts[index], || UdpSocket::bind("0.0.0.0:7401").expect("bound"));
    socket.set_read_timeout(Some(Duration::from_millis(500))).expect("set");
    socket
}

/// Whether a datagram from host 0 reaches host 1.
fn is_reached(hosts: &Hosts) -> bool {
    let (sender, receiver) = (socket(hosts, 0), socket(hosts, 1));
    sender.send_to(b"x", "10.89.0.2:7401").expect("sent");
    receiver.recv(&mut [0; 9]).is_ok()
}

#[test]
fn hosts_reach_each_other_and_are_gone_when_dropped() {
    let link = LinkPlan { rate_mbit: Some(100.0), ..LinkPlan::default() };
    let Some(hosts) = hosts(2, &link) else { return };
    let names = names(&hosts);
    assert_eq!((names.len(), known(&names)), (3, 3));
    assert!(is_reached(&hosts));
    assert_eq!(
        hosts.queues(1).expect("told").iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>(),
        ["queue.from_host1.dropped", "queue.to_host1.dropped"]
    );
    drop(hosts);
    assert_eq!(known(&names), 0);
}

#[test]
fn a_namespace_that_exists_is_named_with_its_remedy() {
    let Some(_root) = hosts(2, &LinkPlan::default()) else { return };
    let first = Namespace::new("twice").expect("made");
    let error = Namespace::new("twice").expect_err("it exists").to_string();
    assert!(error.contains(&format!("`ip netns delete {}`", first.name())), "{error}");
    drop(first);
}

#[test]
fn what_dead_processes_left_is_removed() {
    let Some(_root) = hosts(2, &LinkPlan::default()) else { return };
    let mut dead = Command::new("true").spawn().expect("started");
    let name = format!("thalweg-{}-lab0-1", dead.id());
    dead.wait().expect("ended");
    let added = Command::new("ip").args(["netns", "add", &name]).status().expect("iproute2");
    assert!(added.success());
    let _hosts = hosts(2, &LinkPlan::default());
    assert_eq!(known(&[name]), 0);
}

#[test]
fn hosts_behind_a_relay_have_links_without_a_bridge() {
    let link = LinkPlan { switch: Switch::Relay(Impairment::default()), ..LinkPlan::default() };
    let Some(hosts) = hosts(2, &link) else { return };
    assert!(!is_reached(&hosts), "nobody forwards yet");
    assert!(hosts.queues(0).expect("told").iter().next().is_none());
}

/// Bytes that have reached a host.
fn received_bytes(host: &Namespace) -> u64 {
    let said =
        Command::new("ip").args(["-n", host.name(), "-s", "-j", "link", "show", "eth0"]).output().expect("iproute2");
    let links: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
    links[0]["stats64"]["rx"]["bytes"].as_u64().expect("a number")
}

#[test]
fn a_snooping_bridge_hands_a_group_to_its_members_only() {
    const GROUP: std::net::Ipv4Addr = std::net::Ipv4Addr::new(239, 255, 7, 7);
    const DATAGRAMS: u64 = 200;
    for snooping in [false, true] {
        let Some(hosts) = hosts(3, &LinkPlan { snooping, ..LinkPlan::default() }) else { return };
        let (sender, member) = (socket(&hosts, 0), socket(&hosts, 1));
        let own = hosts.addresses();
        member.join_multicast_v4(&GROUP, &own[1]).expect("joined");
        rustix::net::sockopt::set_ip_multicast_if(&sender, &own[0]).expect("set");
        // A bridge floods until it has asked for members.
        std::thread::sleep(Duration::from_millis(500));
        let before = received_bytes(&hosts.hosts[2]);
        for _ in 0..DATAGRAMS {
            sender.send_to(&[7; 1_000], (GROUP, 7401)).expect("sent");
            let mut datagram = [0; 1_500];
            assert_eq!(member.recv(&mut datagram).expect("a member hears its group"), 1_000);
        }
        let flooded = received_bytes(&hosts.hosts[2]) - before > DATAGRAMS * 1_000;
        assert_eq!(flooded, !snooping, "the third host, which is no member");
    }
}
