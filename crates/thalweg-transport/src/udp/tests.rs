//! Real sockets on loopback. Every test has a domain of its own, so that tests and processes do not hear each other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket as StdSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use thalweg_base::locator::Locator;
use thalweg_base::outbox::Outbox;
use thalweg_base::payload::Payload;

use super::*;
use crate::ports;
use crate::socket::{GROUP_V4, GROUP_V6};
use crate::sys::receive::take_error;

const PATIENCE: Duration = Duration::from_secs(10);

/// A domain that depends on the process, so that test binaries that run at once stay apart.
fn domain(test: u32) -> u32 {
    20 + (std::process::id().wrapping_mul(16) + test) % 200
}

fn transport(test: u32) -> UdpTransport {
    open(&UdpConfig { domain_id: domain(test), ..UdpConfig::default() }).unwrap()
}

/// A transport that hears only what is sent to its own ports, so that it may share a domain.
fn unicast(refused_discovery: Vec<RefusedBytes>) -> UdpTransport {
    let (domain_id, multicast, ipv6) = (domain(13), false, false);
    open(&UdpConfig { domain_id, multicast, ipv6, refused_discovery, ..UdpConfig::default() }).unwrap()
}

fn v4(port: u16) -> Locator {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into()
}

fn v6(port: u16) -> Locator {
    SocketAddr::from((Ipv6Addr::LOCALHOST, port)).into()
}

fn outbox(datagrams: &[(Vec<u8>, Vec<Locator>)]) -> Outbox {
    let mut outbox = Outbox::new();
    for (bytes, destinations) in datagrams {
        outbox.begin(destinations);
        let payload = Payload::from(bytes.clone());
        outbox.push_payload(&payload, 0..bytes.len());
    }
    outbox.finish();
    outbox
}

/// Receives until `count` datagrams that `wanted` accepts have come.
fn receive(receiver: &mut Receiver, count: usize, wanted: impl Fn(&[u8]) -> bool) -> Vec<Datagram> {
    let (mut all, start) = (Vec::new(), Instant::now());
    while all.len() < count {
        assert!(start.elapsed() < PATIENCE, "{} of {count} datagrams came", all.len());
        if receiver.receive(&mut all) == 0 {
            receiver.wait(Some(Duration::from_millis(100))).unwrap();
        }
        all.retain(|datagram| wanted(&datagram.payload));
    }
    all
}

fn numbered(number: usize, bytes: usize) -> Vec<u8> {
    let mut datagram = vec![number as u8; bytes];
    datagram[..4].copy_from_slice(&(number as u32).to_le_bytes());
    datagram
}

#[test]
fn equal_datagrams_leave_as_one_call_and_arrive_whole_and_in_order() {
    let (mut there, here) = (transport(0), transport(0));
    let to = v4(there.ports.user_v4.unwrap());
    let mut batch: Vec<_> = (0..40).map(|number| (numbered(number, 1400), vec![to])).collect();
    batch.push((numbered(40, 99), vec![to]));
    let sent = here.sender.send(Origin::User, &outbox(&batch));
    assert_eq!((sent.datagrams, sent.lost, sent.calls), (41, 0, 1));
    assert_eq!(here.sender.counts().segmented_messages, 1);
    let received = receive(&mut there.receiver, 41, |_| true);
    for (number, datagram) in received.iter().enumerate() {
        assert_eq!(*datagram.payload, *batch[number].0, "datagram {number}");
        assert_eq!(datagram.source.ip(), Ipv4Addr::LOCALHOST);
        assert_eq!(datagram.destination, Some(Ipv4Addr::LOCALHOST.into()));
    }
    assert_eq!(there.receiver.counts().joined_messages, 1, "GRO hands all of them over at once");
}

#[test]
fn runs_are_cut_at_the_limits_of_the_kernel() {
    let (mut there, here) = (transport(1), transport(1));
    let to = v4(there.ports.user_v4.unwrap());
    // More than 64 segments, then more than 64 KiB, then growing sizes that never form a run.
    let sizes = std::iter::repeat_n(100, 150).chain(std::iter::repeat_n(9000, 10)).chain([200, 300, 400]);
    let batch: Vec<_> = sizes.enumerate().map(|(number, size)| (numbered(number, size), vec![to])).collect();
    let sent = here.sender.send(Origin::User, &outbox(&batch));
    assert_eq!((sent.datagrams, sent.lost, sent.calls), (163, 0, 1));
    // 64 + 64 + 22 of 100 bytes, 7 + 3 of 9000, the next one of 200 joins the second run as its last.
    assert_eq!(here.sender.counts().segmented_messages, 5);
    let received = receive(&mut there.receiver, 163, |_| true);
    assert!(received.iter().zip(&batch).all(|(datagram, sent)| *datagram.payload == *sent.0));
}

#[test]
fn without_segmentation_every_datagram_is_a_message_of_one_call() {
    let (mut there, here) = (transport(2), transport(2));
    here.sender.disable_segmentation();
    let to = v4(there.ports.user_v4.unwrap());
    let batch: Vec<_> = (0..10).map(|number| (numbered(number, 500), vec![to])).collect();
    let sent = here.sender.send(Origin::User, &outbox(&batch));
    assert_eq!((sent.datagrams, sent.calls), (10, 1));
    assert_eq!(here.sender.counts().segmented_messages, 0);
    receive(&mut there.receiver, 10, |_| true);
}

#[test]
fn a_refused_segmentation_falls_back_and_is_remembered() {
    let (mut there, here) = (transport(3), transport(3));
    let to = v4(there.ports.user_v4.unwrap());
    // The kernel refuses to cut messages of sockets that send without checksums.
    let socket = here.sender.sockets(Origin::Metatraffic).get(Family::V4).unwrap();
    crate::sys::options::set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
    let batch: Vec<_> = (0..5).map(|number| (numbered(number, 1200), vec![to])).collect();
    let sent = here.sender.send(Origin::Metatraffic, &outbox(&batch));
    assert_eq!((sent.datagrams, sent.lost, sent.calls), (5, 0, 2), "one refusal, then one by one");
    let sent = here.sender.send(Origin::Metatraffic, &outbox(&batch));
    assert_eq!((sent.datagrams, sent.calls), (5, 1), "the refusal is remembered");
    let received = receive(&mut there.receiver, 10, |_| true);
    assert!((0..10).all(|number| *received[number].payload == *batch[number % 5].0));
}

#[test]
fn data_to_one_address_of_this_host_leave_by_a_connected_socket_until_the_interfaces_change() {
    let (mut there, here) = (transport(15), transport(15));
    let to = v4(there.ports.user_v4.unwrap());
    let mut sources = Vec::new();
    for origin in [Origin::User, Origin::User, Origin::Metatraffic] {
        here.sender.send(origin, &outbox(&[(numbered(1, 64), vec![to])]));
        sources.push(receive(&mut there.receiver, 1, |_| true)[0].source.port());
    }
    assert!(sources[0] == sources[1] && Some(sources[0]) != here.ports.user_v4, "{sources:?}");
    assert_eq!(Some(sources[2]), here.ports.metatraffic_v4);
    here.sender.set_interfaces(&here.interfaces);
    here.sender.send(Origin::User, &outbox(&[(numbered(1, 64), vec![to])]));
    assert_ne!(receive(&mut there.receiver, 1, |_| true)[0].source.port(), sources[0]);
}

#[test]
fn the_largest_datagram_passes() {
    let (mut there, here) = (transport(4), transport(4));
    let to = v4(there.ports.user_v4.unwrap());
    let batch = [(numbered(1, 65_507), vec![to])];
    assert_eq!(here.sender.send(Origin::User, &outbox(&batch)).datagrams, 1);
    assert_eq!(*receive(&mut there.receiver, 1, |_| true)[0].payload, *batch[0].0);
    let too_large = [(vec![0; 65_508], vec![to])];
    let sent = here.sender.send(Origin::User, &outbox(&too_large));
    assert_eq!((sent.datagrams, sent.lost), (0, 1));
    assert_eq!(here.sender.counts().refused, 1);
}

#[test]
fn several_destinations_of_both_families_each_get_a_copy() {
    let (mut first, mut second, here) = (transport(5), transport(5), transport(5));
    let to =
        vec![v4(first.ports.user_v4.unwrap()), v6(second.ports.user_v6.unwrap()), v4(second.ports.user_v4.unwrap())];
    let batch: Vec<_> = (0..3).map(|number| (numbered(number, 700), to.clone())).collect();
    let sent = here.sender.send(Origin::User, &outbox(&batch));
    assert_eq!((sent.datagrams, sent.lost), (9, 0));
    assert_eq!(receive(&mut first.receiver, 3, |_| true).len(), 3);
    let at_second = receive(&mut second.receiver, 6, |_| true);
    assert_eq!(at_second.iter().filter(|datagram| datagram.source.is_ipv6()).count(), 3);
}

#[test]
fn multicast_reaches_members_on_loopback() {
    let (mut there, here) = (transport(6), transport(6));
    let v6_leaves = here.interfaces.iter().any(|interface| !interface.loopback && interface.v6().is_some());
    let groups: [(IpAddr, bool); 2] = [(GROUP_V4.into(), true), (GROUP_V6.into(), v6_leaves)];
    for (group, _) in groups.into_iter().filter(|(_, possible)| *possible) {
        let to = Locator::from(SocketAddr::new(group, ports::user_multicast(domain(6))));
        let marked = format!("hello {} {group}", std::process::id()).into_bytes();
        let sent = here.sender.send(Origin::Metatraffic, &outbox(&[(marked.clone(), vec![to])]));
        assert!(sent.datagrams >= 1 && sent.calls == 1 && sent.lost == 0, "{sent:?}");
        let received = receive(&mut there.receiver, 1, |bytes| *bytes == *marked);
        assert_eq!(received[0].destination, Some(group));
        assert!(received[0].interface > 0);
    }
}

#[test]
fn participants_of_a_host_get_increasing_indices_and_then_free_ports() {
    let config = UdpConfig { domain_id: domain(7), multicast: false, ipv6: false, ..UdpConfig::default() };
    let kept: Vec<_> = (0..35).map(|_| open(&config).unwrap()).collect();
    let indices: Vec<_> = kept.iter().map(|transport| transport.ports.participant_index).collect();
    assert!(indices[..33].iter().all(Option::is_some) && indices[34].is_none(), "{indices:?}");
    assert_eq!(kept[1].ports.user_v4, Some(ports::user_unicast(domain(7), kept[1].ports.participant_index.unwrap())));
    assert!(kept[34].ports.user_v4.is_some());
}

#[test]
fn an_unreachable_port_disturbs_neither_later_sends_nor_receives() {
    let (mut there, mut here) = (transport(8), transport(8));
    let closed = StdSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let good = v4(there.ports.user_v4.unwrap());
    // This socket receives as well: the errors lie in front of the datagram that has come.
    (0..3).for_each(|_| _ = here.sender.send(Origin::Metatraffic, &outbox(&[(numbered(1000, 64), vec![v4(closed)])])));
    let discovery = v4(here.ports.metatraffic_v4.unwrap());
    there.sender.send(Origin::Metatraffic, &outbox(&[(numbered(7, 64), vec![discovery])]));
    receive(&mut here.receiver, 1, |_| true);
    assert!(here.receiver.counts().asynchronous_errors > 0);
    for number in 0..20 {
        here.sender.send(Origin::User, &outbox(&[(numbered(1000, 64), vec![v4(closed)])]));
        let sent = here.sender.send(Origin::User, &outbox(&[(numbered(number, 64), vec![good])]));
        assert_eq!((sent.datagrams, sent.lost), (1, 0));
    }
    receive(&mut there.receiver, 20, |_| true);
    let back = v4(here.ports.user_v4.unwrap());
    there.sender.send(Origin::User, &outbox(&[(numbered(7, 64), vec![back])]));
    receive(&mut here.receiver, 1, |_| true);
    assert!(here.receiver.counts().asynchronous_errors + here.sender.counts().asynchronous_errors > 0);
}

#[test]
fn news_of_a_reader_that_is_gone_cost_a_healthy_one_nothing_while_another_thread_reads_them() {
    let (here, there) = (unicast(Vec::new()), StdSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let closed = StdSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let to = |port| outbox(&[(numbered(1, 64), vec![v4(port)])]);
    let (gone, healthy) = (to(closed), to(there.local_addr().unwrap().port()));
    let socket = here.sender.sockets(Origin::Metatraffic).get(Family::V4).unwrap();
    for _ in 0..100 {
        (0..30).for_each(|_| _ = here.sender.send(Origin::Metatraffic, &gone));
        std::thread::scope(|scope| {
            // Whoever takes an entry of the error queue makes the next one the socket's pending error.
            let reading = scope.spawn(|| while take_error(socket.as_fd()).is_some() {});
            while !reading.is_finished() {
                let sent = here.sender.send(Origin::Metatraffic, &healthy);
                assert_eq!((sent.datagrams, sent.lost), (1, 0));
            }
        });
    }
    assert_eq!(here.sender.counts().refused, 0);
}

#[test]
fn what_lies_behind_datagrams_that_are_thrown_away_ends_the_next_wait() {
    let (mut there, here) = (unicast(Vec::new()), StdSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let to = (Ipv4Addr::LOCALHOST, there.ports.user_v4.unwrap());
    // As many as the first call asks for are empty.
    for datagram in [b"".as_slice(), b"", b"", b"", b"x"] {
        here.send_to(datagram, to).unwrap();
    }
    let mut seen = Vec::new();
    assert!(there.receiver.wait(Some(PATIENCE)).unwrap().readable);
    assert_eq!(there.receiver.receive(&mut seen), 0);
    let start = Instant::now();
    assert!(there.receiver.wait_until(crate::clock::now() + PATIENCE).unwrap().readable);
    assert!(there.receiver.wait(Some(PATIENCE)).unwrap().readable);
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    assert_eq!(there.receiver.receive(&mut seen), 1);
    assert_eq!(*seen[0].payload, *b"x");
}

#[test]
fn what_discovery_refuses_is_not_counted_as_lost() {
    let (mut there, here) = (unicast(vec![(0, *b"mark")]), StdSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let to = (Ipv4Addr::LOCALHOST, there.ports.metatraffic_v4.unwrap());
    // The kernel tells with a datagram how many it kept back before it.
    for datagram in [b"mark1".as_slice(), b"mark2", b"mark3", b"mark4", b"mark5", b"plain"] {
        here.send_to(datagram, to).unwrap();
    }
    assert_eq!(*receive(&mut there.receiver, 1, |_| true)[0].payload, *b"plain");
    let counts = there.receiver.counts();
    assert_eq!((counts.kernel_drops, counts.filtered), (0, 5));
}

#[test]
fn a_full_receive_buffer_is_counted() {
    let config = UdpConfig { domain_id: domain(9), receive_buffer_bytes: 4096, ..UdpConfig::default() };
    let (mut there, here) = (open(&config).unwrap(), transport(9));
    let to = v4(there.ports.user_v4.unwrap());
    here.sender.disable_segmentation();
    let batch: Vec<_> = (0..60).map(|number| (numbered(number, 1000), vec![to])).collect();
    let mut seen = Vec::new();
    // The kernel reports with a datagram how many it dropped before it, so one more must follow.
    for _ in 0..3 {
        here.sender.send(Origin::User, &outbox(&batch));
        while there.receiver.receive(&mut seen) > 0 {}
        there.receiver.wait(Some(Duration::from_millis(10))).unwrap();
        there.receiver.receive(&mut seen);
    }
    let drops = there.receiver.counts().kernel_drops;
    assert!(drops > 0 && seen.len() < 180, "{drops} drops, {} seen", seen.len());
}

#[test]
fn a_buffer_below_the_request_is_a_notice_that_names_the_setting() {
    let text = Notice::ReceiveBuffer { asked: 8 << 20, granted: 212_992 }.to_string();
    assert!(text.contains("net.core.rmem_max=8388608") && !text.contains('\n'), "{text}");
    let transport = transport(10);
    let granted = transport.receive_buffer_bytes;
    let noticed = transport.notices.iter().any(|notice| matches!(notice, Notice::ReceiveBuffer { .. }));
    assert_eq!(noticed, granted < 8 << 20);
}

#[test]
fn a_waker_ends_a_wait_from_another_thread_and_only_once() {
    let mut transport = transport(11);
    transport.receiver.wait(Some(Duration::ZERO)).unwrap();
    let waker = transport.receiver.waker();
    let waiting = std::thread::spawn(move || {
        let start = Instant::now();
        while !transport.receiver.wait(Some(PATIENCE)).unwrap().woken {
            assert!(start.elapsed() < PATIENCE);
        }
        transport
    });
    waker.wake();
    let mut transport = waiting.join().unwrap();
    assert!(!transport.receiver.wait(Some(Duration::ZERO)).unwrap().woken);
}

#[test]
fn a_wait_ends_after_its_time_with_microsecond_resolution() {
    let mut transport = transport(12);
    transport.receiver.wait(Some(Duration::ZERO)).unwrap();
    let start = Instant::now();
    // Ends a wait whose timer does not fire, so that the test fails.
    let waker = transport.receiver.waker();
    std::thread::spawn(move || {
        std::thread::sleep(PATIENCE);
        waker.wake();
    });
    // The timer has to be set again each time that it has fired.
    for _ in 0..3 {
        let deadline = crate::clock::now() + Duration::from_micros(300);
        while crate::clock::now() < deadline {
            let wakeup = transport.receiver.wait_until(deadline).unwrap();
            assert!(!wakeup.woken);
        }
    }
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
}

#[test]
fn an_earlier_deadline_moves_the_timer() {
    let mut transport = transport(14);
    transport.receiver.wait(Some(Duration::ZERO)).unwrap();
    let start = crate::clock::now();
    transport.receiver.waker().wake();
    while !transport.receiver.wait_until(start + PATIENCE * 10).unwrap().woken {}
    transport.receiver.wait_until(start + Duration::from_millis(20)).unwrap();
    assert!(crate::clock::now().since(start) < PATIENCE);
}

#[test]
fn small_datagrams_do_not_pin_a_whole_buffer() {
    let (mut there, here) = (transport(13), transport(13));
    let to = v4(there.ports.user_v4.unwrap());
    here.sender.send(Origin::User, &outbox(&[(numbered(1, 1000), vec![to])]));
    let received = receive(&mut there.receiver, 1, |_| true);
    assert!(received[0].payload.pinned_bytes() <= 1024, "{}", received[0].payload.pinned_bytes());
}

#[test]
fn a_domain_without_ports_is_refused() {
    let error = open(&UdpConfig { domain_id: 233, ..UdpConfig::default() }).err().unwrap();
    assert_eq!(error.to_string(), "domain id 233 is above 232, the last with UDP ports");
}
