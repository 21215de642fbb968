//! Two sockets on the loopback interface.

use std::net::Ipv4Addr;
use std::time::Duration;

use socket2::SockRef;
use thalweg_base::time::Instant;

use super::*;
use crate::clock;

fn bind(address: &str, options: &StreamOptions) -> StreamSocket {
    StreamSocket::bind(address.parse().unwrap(), options).unwrap()
}

fn local() -> StreamSocket {
    bind("127.0.0.1:0", &StreamOptions::default())
}

/// A socket that hears what becomes of what it sends.
fn hearing() -> StreamSocket {
    bind("127.0.0.1:0", &StreamOptions { icmp: IcmpNews::Heard, ..StreamOptions::default() })
}

/// Sends datagrams of these lengths, each cut into a head of 12 bytes and the rest.
fn send(from: &StreamSocket, to: SocketAddr, lengths: &[usize]) -> Sent {
    let bytes: Vec<Vec<u8>> = lengths.iter().enumerate().map(|(number, len)| vec![number as u8; *len]).collect();
    let mut scratch = StreamScratch::default();
    let mut burst = from.burst(&mut scratch, to);
    for datagram in &bytes {
        let (head, rest) = datagram.split_at(datagram.len().min(12));
        burst.push([head, rest]);
    }
    burst.send(Duration::from_millis(5))
}

/// Takes everything that is queued: the lengths of the datagrams of each message; they must be numbered as [`send`] does.
fn receive(receiver: &mut StreamReceiver) -> Vec<Vec<usize>> {
    let (mut all, mut number) = (Vec::new(), 0_u8);
    while receiver.receive(0).unwrap() > 0 {
        while let Some(arrival) = receiver.next_arrival() {
            for datagram in arrival.datagrams() {
                assert!(datagram.iter().all(|byte| *byte == number), "datagram {number} is whole and in its place");
                number += 1;
            }
            all.push(arrival.datagrams().map(<[u8]>::len).collect());
        }
    }
    all
}

/// Datagrams of these lengths must arrive as these messages, sent by so many calls.
#[track_caller]
fn check(lengths: &[usize], calls: usize, messages: &[&[usize]]) {
    let (here, there) = (local(), local());
    let mut receiver = StreamReceiver::new(&[&there]).unwrap();
    let sent = send(&here, there.local_address(), lengths);
    assert_eq!(sent, Sent { datagrams: lengths.len(), lost: 0, calls });
    assert_eq!(receive(&mut receiver), messages);
    assert!(here.cuts());
}

#[test]
fn equal_datagrams_of_two_pieces_are_one_message_on_both_ways() {
    check(&[1220; 16], 1, &[&[1220; 16]]);
    check(&[1220, 1220, 600], 1, &[&[1220, 1220, 600]]);
    check(&[1220; 60], 1, &[&[1220; 53], &[1220; 7]]);
    check(&[7226; 8], 1, &[&[7226; 8]]);
}

#[test]
fn datagrams_of_any_lengths_arrive_as_they_were() {
    check(&[8973, 8957, 8973], 1, &[&[8973, 8957], &[8973]]);
    check(&[20, 1200, 1200, 20], 1, &[&[20], &[1200, 1200, 20]]);
}

#[test]
fn without_segmentation_the_datagrams_leave_singly() {
    let (here, there) = (local(), local());
    let mut receiver = StreamReceiver::new(&[&there]).unwrap();
    // Without checksums the kernel cuts nothing (EIO).
    options::set(here.socket.as_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
    for (calls, joined) in [(2, "asked to cut"), (1, "known not to")] {
        let sent = send(&here, there.local_address(), &[1220; 5]);
        assert_eq!(sent, Sent { datagrams: 5, lost: 0, calls }, "{joined}");
        assert_eq!(receive(&mut receiver).concat(), [1220; 5], "{joined}");
        assert!(!here.cuts());
    }
    assert_eq!((here.counts().segmented_messages, here.counts().datagrams), (0, 10));
}

/// Calls and messages that arrive of eight equal datagrams between sockets of these settings.
#[track_caller]
fn check_joining(sender: KernelJoining, receiver: KernelJoining, messages: usize) {
    let with = |joining| bind("127.0.0.1:0", &StreamOptions { joining, ..StreamOptions::default() });
    let (here, there) = (with(sender), with(receiver));
    let mut receiver = StreamReceiver::new(&[&there]).unwrap();
    send(&here, there.local_address(), &[1220; 8]);
    assert_eq!(receive(&mut receiver).len(), messages);
    assert_eq!(
        here.counts().segmented_messages,
        u64::from(matches!(sender, KernelJoining::Both | KernelJoining::Sent))
    );
}

#[test]
fn each_way_is_joined_only_where_it_is_asked_for() {
    check_joining(KernelJoining::Sent, KernelJoining::Received, 1);
    check_joining(KernelJoining::Sent, KernelJoining::Sent, 8);
    check_joining(KernelJoining::Received, KernelJoining::Both, 8);
    check_joining(KernelJoining::Neither, KernelJoining::Neither, 8);
}

#[test]
fn what_is_larger_than_its_path_travels_in_fragments_where_it_may() {
    // The path of loopback: 65,507 bytes with the heads of UDP and IPv4 are its whole MTU, so that nothing larger can be tried here; the
    // kernel's setting is what decides.
    for (oversize, expect) in [(Oversize::Refuse, libc::IP_PMTUDISC_DO), (Oversize::Cut, libc::IP_PMTUDISC_DONT)] {
        let socket = bind("127.0.0.1:0", &StreamOptions { oversize, ..StreamOptions::default() });
        assert_eq!(options::get(socket.socket.as_fd(), libc::IPPROTO_IP, libc::IP_MTU_DISCOVER).unwrap(), expect);
    }
}

#[test]
fn what_is_too_large_is_refused_and_does_not_end_segmentation() {
    let (here, there) = (hearing(), local());
    let mut receiver = StreamReceiver::new(&[&there]).unwrap();
    let sent = send(&here, there.local_address(), &[70_000]);
    assert_eq!((sent.datagrams, sent.lost, here.counts().refused), (0, 1, 1));
    assert_eq!(send(&here, there.local_address(), &[1220; 3]).calls, 1);
    assert!(here.cuts());
    assert_eq!(receive(&mut receiver), [[1220; 3]]);
}

#[test]
fn nobody_listening_stops_no_stream_and_is_counted() {
    let (here, socket) = (hearing(), std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    // Connected to somebody else it refuses all others, and nobody takes its port meanwhile.
    socket.connect("127.0.0.1:9").unwrap();
    let closed = socket.local_addr().unwrap();
    for _ in 0..50 {
        let sent = send(&here, closed, &[1220; 4]);
        assert_eq!((sent.datagrams, sent.lost), (4, 0));
    }
    let counts = here.counts();
    assert!(counts.asynchronous_errors > 0 && counts.refused == 0, "{counts:?}");
    let deaf = local();
    send(&deaf, closed, &[1220]);
    assert_eq!((send(&deaf, closed, &[1220]).calls, deaf.counts().asynchronous_errors), (1, 0));
}

/// What is read of the error queue makes the next entry the pending error, and only so many are read at a time.
#[test]
fn a_long_queue_of_refusals_stops_no_stream() {
    let (here, socket) = (hearing(), std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    socket.connect("127.0.0.1:9").unwrap();
    let closed = socket.local_addr().unwrap();
    // Past the stream's own way, which would read the queue. Every other call only meets the refusal of the one before.
    let direct = SockRef::from(&*here.socket);
    (0..600).for_each(|_| _ = direct.send_to(&[0], &closed.into()));
    let sent = send(&here, closed, &[1220]);
    assert_eq!((sent.datagrams, sent.lost, here.counts().refused), (1, 0, 0));
}

#[test]
fn messages_that_found_no_room_are_told() {
    let options = StreamOptions { receive_buffer_bytes: 16 << 10, ..StreamOptions::default() };
    let (here, there) = (local(), bind("127.0.0.1:0", &options));
    assert!((16 << 10..64 << 10).contains(&there.receive_buffer_bytes()));
    let mut receiver = StreamReceiver::new(&[&there]).unwrap();
    // Each is a message of its own, since it is longer than the one before.
    let lengths: Vec<usize> = (1220..1320).collect();
    send(&here, there.local_address(), &lengths);
    let queued = receive(&mut receiver);
    send(&here, there.local_address(), &[1]);
    receiver.receive(0).unwrap();
    let told = receiver.next_arrival().unwrap().kernel_drops as usize;
    assert!(told > 0 && told == 100 - queued.len(), "{told} of {}", 100 - queued.len());
}

#[test]
fn the_time_of_arrival_is_the_kernels() {
    let (here, there) = (local(), local());
    let mut receiver = StreamReceiver::new(&[&there]).unwrap();
    // The first one may come before the kernel has begun to take times, which it does on a thread of its own.
    for _ in 0..20 {
        let before = clock::now();
        send(&here, there.local_address(), &[1220; 2]);
        let after = clock::now();
        std::thread::sleep(Duration::from_millis(20));
        receiver.receive(0).unwrap();
        let arrived = receiver.next_arrival().unwrap().arrived;
        // The two clocks are read one after the other.
        let slack = Duration::from_millis(5);
        if (before - slack..=after + slack).contains(&arrived) {
            return;
        }
    }
    panic!("no time of arrival lay between the calls that sent");
}

#[test]
fn a_clock_that_was_set_does_not_move_an_arrival() {
    let wall = Duration::from_secs(1000);
    let of = |seconds| receive::age(wall, Duration::from_secs(seconds));
    assert_eq!([999, 1000, 1001, 900].map(of), [1, 0, 0, 0].map(Duration::from_secs));
}

/// A member of `group`, which hears everybody or `source` alone.
fn member(group: &str, source: Option<&str>) -> StreamSocket {
    let group: IpAddr = group.parse().unwrap();
    let options = StreamOptions { sharing: PortSharing::Shared, ..StreamOptions::default() };
    let member = StreamSocket::bind(SocketAddr::new(group, 0), &options).unwrap();
    match source {
        Some(source) => member.join_source(group, source.parse().unwrap(), LOOPBACK).unwrap(),
        None => member.join(group, LOOPBACK).unwrap(),
    }
    member
}

/// Whether a member of `group` hears somebody on this host.
fn hears(group: &str, source: Option<&str>) -> bool {
    let member = member(group, source);
    let mut receiver = StreamReceiver::new(&[&member]).unwrap();
    let options = StreamOptions { multicast_interface: Some(LOOPBACK), ..StreamOptions::default() };
    let here = bind("127.0.0.1:0", &options);
    assert_eq!(send(&here, member.local_address(), &[1220; 3]).datagrams, 3);
    receiver.wait_until(clock::now() + Duration::from_millis(100)).unwrap();
    !receive(&mut receiver).is_empty()
}

#[test]
fn a_member_of_a_group_hears_all_senders_or_one() {
    assert!(hears("239.77.1.1", None));
    assert!(hears("232.77.1.1", Some("127.0.0.1")));
    assert!(!hears("232.77.1.2", Some("127.0.0.2")));
    // IPv6 has no route for groups over loopback; that the kernel takes the requests is seen all the same.
    member("ff15::77:1", None);
    member("ff35::8000:1", Some("::1"));
}

#[test]
fn an_address_that_is_no_group_and_an_interface_that_is_none_are_refused() {
    let socket = local();
    assert!(socket.join(Ipv4Addr::LOCALHOST.into(), LOOPBACK).is_err());
    assert!(socket.join_source("232.1.1.1".parse().unwrap(), "::1".parse().unwrap(), LOOPBACK).is_err());
    let options = StreamOptions { multicast_interface: Some(u32::MAX), ..StreamOptions::default() };
    assert!(StreamSocket::bind("127.0.0.1:0".parse().unwrap(), &options).is_err());
}

#[test]
fn class_and_hops_are_those_asked_for() {
    let options = StreamOptions { traffic_class: TrafficClass::of(34), hops: Some(5), ..StreamOptions::default() };
    let (v4, v6) = (bind("127.0.0.1:0", &options), bind("[::1]:0", &options));
    let (v4, v6) = (SockRef::from(&*v4.socket), SockRef::from(&*v6.socket));
    assert_eq!((v4.tos_v4().unwrap(), v4.ttl_v4().unwrap(), v4.multicast_ttl_v4().unwrap()), (136, 5, 5));
    let hops = (v6.unicast_hops_v6().unwrap(), v6.multicast_hops_v6().unwrap());
    assert_eq!((v6.tclass_v6().unwrap(), hops), (136, (5, 5)));
}

#[test]
fn the_path_of_loopback_is_its_interface() {
    let there = local().local_address();
    assert_eq!(path_mtu(there, None).unwrap(), 65_535);
    assert_eq!((payload_max(1500, there.ip()), payload_max(1500, "::1".parse().unwrap())), (1472, 1452));
}

#[test]
fn a_wait_ends_by_arrival_waker_and_deadline() {
    let (here, there) = (local(), local());
    let mut receiver = StreamReceiver::new(&[&there]).unwrap();
    send(&here, there.local_address(), &[10]);
    assert!(receiver.wait_until(Instant::NEVER).unwrap().readable);
    assert!(receiver.is_ready(0) && receiver.receive(0).unwrap() == 1 && !receiver.is_ready(0));
    receiver.waker().wake();
    assert!(receiver.wait_until(Instant::NEVER).unwrap().woken);
    let deadline = clock::now() + Duration::from_millis(1);
    assert_eq!(receiver.wait_until(deadline).unwrap(), Wakeup::default());
    assert!(clock::now() >= deadline);
}

/// The index of the loopback interface in every network namespace.
const LOOPBACK: u32 = 1;
