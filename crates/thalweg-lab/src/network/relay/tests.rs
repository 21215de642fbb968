//! The switch between real hosts.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use thalweg_transport::stream::{StreamOptions, StreamScratch, StreamSocket};

use super::super::tests::{hosts, inside, socket};
use super::*;
use crate::network::Hosts;
use crate::scenario::{LinkPlan, Switch};

/// Does `work` while a relay joins `hosts`; returns what it counted.
fn relayed(hosts: &Hosts, impairment: Impairment, work: impl FnOnce()) -> Layers {
    let order = RelayOrder {
        ports: vec!["port0".to_owned(), "port1".to_owned()],
        impairment,
        rate_mbit: None,
        queue: Duration::ZERO,
        chance: 5,
        stream: None,
    };
    let (is_over, (ready, begun)) = (AtomicBool::new(false), channel());
    std::thread::scope(|scope| {
        let relay = scope.spawn(|| {
            inside(&hosts.switch, || {
                let mut switch = RelaySwitch::open(&order).expect("opened");
                switch.begin().expect("begun");
                ready.send(()).expect("heard");
                while !is_over.load(Ordering::Relaxed) {
                    switch.turn().expect("forwarded");
                }
                switch.counters().expect("counted")
            })
        });
        begun.recv().expect("it begins");
        work();
        is_over.store(true, Ordering::Relaxed);
        relay.join().expect("ended")
    })
}

fn lossy(loss: f64) -> Impairment {
    Impairment { loss, ..Impairment::default() }
}

const MESSAGES: u64 = 40;
const DATAGRAMS: u64 = 32;

/// The last one of a message is shorter than the others.
fn datagram_of(number: u64) -> Vec<u8> {
    number.to_be_bytes().repeat(if number % DATAGRAMS == DATAGRAMS - 1 { 100 } else { 150 })
}

#[test]
fn datagrams_that_leave_as_one_message_are_lost_singly_and_counted() {
    let link = LinkPlan { switch: Switch::Relay(Impairment::default()), ..LinkPlan::default() };
    let Some(hosts) = hosts(2, &link) else { return };
    let receiver = socket(&hosts, 1);
    let sender = inside(&hosts.hosts[0], || {
        StreamSocket::bind("0.0.0.0:0".parse().expect("an address"), &StreamOptions::default()).expect("bound")
    });
    let mut came = BTreeSet::new();
    let counters = relayed(&hosts, lossy(0.1), || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut datagram = [0; 2_000];
                while let Ok(bytes) = receiver.recv(&mut datagram) {
                    let number = u64::from_be_bytes(*datagram.first_chunk().expect("eight"));
                    assert_eq!(datagram[..bytes], datagram_of(number));
                    assert!(came.insert(number), "{number} came twice");
                }
            });
            let mut scratch = StreamScratch::default();
            for message in 0..MESSAGES {
                let datagrams: Vec<_> = (message * DATAGRAMS..(message + 1) * DATAGRAMS).map(datagram_of).collect();
                let mut burst = sender.burst(&mut scratch, "10.89.0.2:7401".parse().expect("an address"));
                datagrams.iter().for_each(|datagram| burst.push([&datagram[..]]));
                assert_eq!(burst.send(Duration::from_secs(1)).lost, 0);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
    });
    assert_eq!(sender.counts().segmented_messages, MESSAGES, "the kernel was not asked to cut");
    let counted = |name: &str| counters.get(&format!("relay.host0-host1.{name}"));
    // Address resolution may be among the frames.
    let (all, dropped) = (MESSAGES * DATAGRAMS, counted("dropped"));
    assert_eq!(came.len() as u64 + dropped, all, "{counters:?}");
    assert!((all..all + 4).contains(&counted("seen")), "{counters:?}");
    assert!((80..180).contains(&dropped), "a tenth: {dropped}");
    assert!(counted("messages") < counted("forwarded") / 2, "what stays together leaves together: {counters:?}");
    let holes = (1..all).filter(|number| came.contains(&(number - 1)) && !came.contains(number)).count() as u64;
    assert!(holes > dropped * 3 / 4, "each by itself: {holes} holes of {dropped}");
}

#[test]
fn a_connection_across_a_lossy_relay_loses_nothing() {
    const OCTETS: usize = 8 << 20;
    let link = LinkPlan { switch: Switch::Relay(Impairment::default()), ..LinkPlan::default() };
    let Some(hosts) = hosts(2, &link) else { return };
    let octets: Vec<u8> = (0..OCTETS).map(|at| (at * 7 / 3) as u8).collect();
    let listener = inside(&hosts.hosts[1], || TcpListener::bind("0.0.0.0:7402").expect("bound"));
    let mut came = Vec::new();
    let counters = relayed(&hosts, lossy(0.005), || {
        std::thread::scope(|scope| {
            scope.spawn(|| listener.accept().expect("connected").0.read_to_end(&mut came).expect("read"));
            let mut connection = inside(&hosts.hosts[0], || TcpStream::connect("10.89.0.2:7402").expect("connected"));
            connection.write_all(&octets).expect("written");
        });
    });
    assert!(came == octets, "{} of {OCTETS} octets came", came.len());
    assert!(counters.get("relay.host0-host1.dropped") > 5, "{counters:?}");
    assert!(counters.get("relay.host0-host1.seen") >= OCTETS as u64 / 1_500, "{counters:?}");
}
