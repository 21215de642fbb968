//! In steady state neither sending nor receiving allocates; counted by the allocator of this binary.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use thalweg_base::locator::Locator;
use thalweg_base::outbox::Outbox;
use thalweg_base::payload::Payload;
use thalweg_testing::allocations::{self, Counting};
use thalweg_transport::clock;
use thalweg_transport::stream::{StreamOptions, StreamReceiver, StreamScratch, StreamSocket};
use thalweg_transport::udp::{self, Datagram, Origin, UdpConfig, UdpTransport};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Sends and receives `rounds` outboxes of `count` datagrams of `bytes` each.
fn exchange(here: &UdpTransport, there: &mut UdpTransport, rounds: usize, count: usize, bytes: usize) {
    let to = [Locator::from(SocketAddr::from((Ipv4Addr::LOCALHOST, there.ports.user_v4.unwrap())))];
    let payload = Payload::from(vec![5; bytes]);
    let mut outbox = Outbox::new();
    let mut received: Vec<Datagram> = Vec::with_capacity(256);
    for _ in 0..rounds {
        outbox.clear();
        for _ in 0..count {
            outbox.begin(&to);
            outbox.push_payload(&payload, 0..bytes);
        }
        outbox.finish();
        assert_eq!(here.sender.send(Origin::User, &outbox).datagrams, count);
        received.clear();
        while received.len() < count {
            if there.receiver.receive(&mut received) == 0 {
                there.receiver.wait(Some(Duration::from_secs(1))).unwrap();
            }
        }
        assert!(received.iter().all(|datagram| datagram.payload.len() == bytes));
    }
}

/// Sends `rounds` bursts of 16 datagrams of two pieces, and reads what arrives where it lies.
fn stream(
    here: &StreamSocket,
    receiver: &mut StreamReceiver,
    scratch: &mut StreamScratch,
    to: SocketAddr,
    rounds: usize,
) {
    let (head, rest) = ([1; 20], [2; 1200]);
    for _ in 0..rounds {
        let mut burst = here.burst(scratch, to);
        (0..16).for_each(|_| burst.push([&head[..], &rest[..]]));
        assert_eq!(burst.send(Duration::from_millis(5)).datagrams, 16);
        let mut arrived = 0;
        while arrived < 16 {
            receiver.wait_until(clock::now() + Duration::from_secs(1)).unwrap();
            receiver.receive(0).unwrap();
            while let Some(message) = receiver.next_arrival() {
                arrived += message.datagrams().filter(|datagram| datagram.len() == 1220).count();
            }
        }
    }
}

/// One test after the other: the allocator counts what all threads do.
#[test]
fn nothing_is_allocated_in_steady_state() {
    one_datagram_is_one_call();
    a_stream_allocates_nothing();
}

fn a_stream_allocates_nothing() {
    let bind = || StreamSocket::bind("127.0.0.1:0".parse().unwrap(), &StreamOptions::default()).unwrap();
    let (here, there) = (bind(), bind());
    let (mut receiver, mut scratch) = (StreamReceiver::new(&[&there]).unwrap(), StreamScratch::default());
    let to = there.local_address();
    stream(&here, &mut receiver, &mut scratch, to, 10);
    let (before, calls) = (allocations::of_all_threads(), here.counts().calls);
    stream(&here, &mut receiver, &mut scratch, to, 500);
    assert_eq!(allocations::of_all_threads() - before, 0);
    assert_eq!(here.counts().calls - calls, 500, "one system call a burst");
}

fn one_datagram_is_one_call() {
    let config = UdpConfig { domain_id: 20 + std::process::id() % 200, ..UdpConfig::default() };
    let (here, mut there) = (udp::open(&config).unwrap(), udp::open(&config).unwrap());
    let shapes = [(1, 64), (1, 4000), (1, 60_000), (20, 1400), (5, 20_000), (3, 300)];
    for (count, bytes) in shapes {
        // The pools fill up to the number of buffers that this shape keeps in use.
        exchange(&here, &mut there, 600, count, bytes);
        let (before, calls) = (allocations::of_all_threads(), here.sender.counts().calls);
        exchange(&here, &mut there, 500, count, bytes);
        // The test's own outbox, payload and list grow anew in each exchange.
        let allocated = allocations::of_all_threads() - before;
        assert!(allocated < 50, "{allocated} allocations in 500 rounds of {count} datagrams of {bytes} bytes");
        assert_eq!(here.sender.counts().calls - calls, 500, "one system call an outbox");
    }
}
