//! Two sockets on the loopback interface.

use super::*;

fn local() -> BatchSocket {
    BatchSocket::bind("127.0.0.1:0".parse().unwrap(), &BatchOptions::default()).unwrap()
}

fn with_room_for(datagram_bytes: usize) -> BatchSocket {
    let options = BatchOptions { datagram_bytes, ..BatchOptions::default() };
    BatchSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap()
}

/// Takes one batch: how many came, and each with its source.
fn receive(socket: &mut BatchSocket) -> (usize, Vec<(Vec<u8>, SocketAddr)>) {
    let (count, mut all) = (socket.receive().unwrap(), Vec::new());
    while let Some(arrived) = socket.next_arrival() {
        all.push((arrived.bytes.to_vec(), arrived.source));
    }
    (count, all)
}

fn departure(to: &BatchSocket, bytes: &'static [u8]) -> Departure<'static> {
    Departure { to: to.local_address(), from: None, bytes }
}

fn send<'a>(from: &BatchSocket, departures: impl IntoIterator<Item = Departure<'a>>) -> Sent {
    from.send(&mut BatchScratch::default(), departures)
}

#[test]
fn a_batch_arrives_in_order_and_answers_go_back() {
    let (mut here, mut there) = (local(), local());
    assert_eq!((here.is_ready(), receive(&mut here).0, here.is_ready()), (true, 0, false), "nothing has come yet");
    let numbers: Vec<[u8; 20]> = (0..100).map(|number| [number; 20]).collect();
    let sent = send(&here, numbers.iter().map(|bytes| Departure { bytes, ..departure(&there, b"") }));
    assert_eq!(sent, Sent { datagrams: 100, lost: 0, calls: 1 }, "two messages, of 64 and 36");
    assert!(there.wait(None).unwrap().readable);
    let (count, first) = receive(&mut there);
    assert_eq!((count, there.is_ready()), (64, true));
    for (number, (bytes, source)) in first.iter().enumerate() {
        assert_eq!((&bytes[..], *source), (&[number as u8; 20][..], here.local_address()));
    }
    let back = first.iter().map(|(bytes, source)| Departure { to: *source, from: None, bytes: &bytes[..1] });
    assert_eq!(send(&there, back).datagrams, 64);
    assert_eq!(receive(&mut there).0, 36);
    assert!(there.next_arrival().is_none(), "each is handed over once");
    assert_eq!((receive(&mut there).0, there.is_ready()), (0, false));
    let (count, back) = receive(&mut here);
    assert_eq!(count, 64);
    assert!(back.iter().map(|(bytes, _)| bytes[0]).eq(0..64));
    let counts = there.counts();
    assert_eq!((counts.datagrams, counts.calls, counts.empty_calls, counts.waits), (100, 3, 1, 1));
}

/// Sends datagrams with a length and an addressee each; they must arrive as they were.
fn check_runs(here: &BatchSocket, runs: &[(usize, usize)]) {
    let mut peers = [local(), local()];
    let bytes: Vec<u8> = (0..=255).cycle().take(2000).collect();
    let departures = runs.iter().enumerate().map(|(index, (len, peer))| Departure {
        to: peers[*peer].local_address(),
        from: None,
        bytes: &bytes[index..index + len],
    });
    let sent = send(here, departures);
    assert_eq!((sent.datagrams, sent.lost), (runs.len(), 0), "{runs:?}");
    for (number, peer) in peers.iter_mut().enumerate() {
        let (count, arrived) = receive(peer);
        let expected: Vec<&[u8]> = runs
            .iter()
            .enumerate()
            .filter(|(_, (_, peer))| *peer == number)
            .map(|(index, (len, _))| &bytes[index..index + len])
            .collect();
        let found: Vec<&[u8]> = arrived.iter().map(|(bytes, _)| &bytes[..]).collect();
        assert_eq!((found, count), (expected.clone(), expected.len()), "{runs:?}");
    }
}

#[test]
fn neighbours_of_any_lengths_and_addressees_arrive_as_they_were() {
    let here = local();
    check_runs(&here, &[(20, 0), (20, 0), (20, 0), (20, 1), (20, 0)]);
    check_runs(&here, &[(20, 0), (20, 0), (7, 0), (20, 0), (7, 0), (7, 0), (9, 0)]);
    check_runs(&here, &[(20, 0), (0, 0), (20, 0), (0, 0), (0, 0), (1, 1)]);
    check_runs(&here, &[(1200, 0), (1200, 0), (1000, 0), (1000, 0)]);
    assert!(here.cuts.load(Ordering::Relaxed), "the kernel cut what was joined");
    let raw = here.socket.as_fd();
    // Without checksums the kernel cuts nothing (EIO).
    options::set(raw, libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
    check_runs(&here, &[(20, 0), (20, 0), (20, 1)]);
    assert!(!here.cuts.load(Ordering::Relaxed), "and is not asked to any more");
    check_runs(&here, &[(20, 0), (20, 0), (20, 1), (7, 0)]);
}

#[test]
fn a_message_of_a_plain_socket_is_cut_as_it_was_told() {
    let (here, mut there) = (std::net::UdpSocket::bind("127.0.0.1:0").unwrap(), local());
    cut_sends(&here, 20).unwrap();
    here.send_to(&[7; 50], there.local_address()).unwrap();
    let (count, arrived) = receive(&mut there);
    assert_eq!(count, 3, "the kernel joins nothing for this socket");
    assert!(arrived.iter().map(|(bytes, _)| bytes.len()).eq([20, 20, 10]));
}

#[test]
fn what_cannot_be_sent_is_counted_and_the_rest_goes_out() {
    let (here, there) = (local(), local());
    let sent = send(&here, [departure(&there, &[0; 70_000]), departure(&there, &[1])]);
    assert_eq!((sent.datagrams, sent.lost), (1, 1));
}

#[test]
fn a_datagram_longer_than_its_slot_is_refused_whole() {
    let (here, mut there) = (local(), with_room_for(10));
    send(&here, [departure(&there, &[0; 11]), departure(&there, &[0; 10])]);
    let (count, arrived) = receive(&mut there);
    assert_eq!((count, arrived.len(), arrived[0].0.len()), (2, 1, 10));
    assert_eq!(there.counts().truncated, 1);
    let oversized = there.next_oversized().map(|oversized| (oversized.beginning.len(), oversized.source));
    assert_eq!(oversized, Some((10, here.local_address())), "but its beginning is told");
    assert_eq!(there.next_oversized(), None);
}

#[test]
fn a_port_at_which_nobody_listens_is_told_by_its_address() {
    let options = BatchOptions { hears_refusals: true, ..BatchOptions::default() };
    let mut here = BatchSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
    let gone = local().local_address();
    send(&here, [Departure { to: gone, from: None, bytes: &[1] }]);
    let mut refused = None;
    while refused.is_none() {
        here.receive().unwrap();
        refused = here.next_refusal();
    }
    assert_eq!((refused, here.next_refusal()), (Some(gone), None));
}

#[test]
fn datagrams_that_found_no_room_are_told_once_with_the_next_one() {
    let options = BatchOptions { receive_buffer_bytes: 4096, ..BatchOptions::default() };
    let mut there = BatchSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
    let here = local();
    let mut told = Vec::new();
    for _ in 0..2 {
        // Too long to be joined, so that each is queued by itself.
        send(&here, (0..20).map(|_| departure(&there, &[0; 1100])));
        let queued = there.receive().unwrap();
        send(&here, [departure(&there, &[1])]);
        there.receive().unwrap();
        let drops = there.next_arrival().unwrap().kernel_drops;
        told.push((drops as usize, 20 - queued));
    }
    assert!(told.iter().all(|(drops, missing)| drops == missing && *drops > 0), "{told:?}");
    assert_eq!(there.counts().kernel_drops as usize, told.iter().map(|(drops, _)| drops).sum::<usize>());
}

#[test]
fn a_socket_of_every_address_knows_where_datagrams_were_sent_to_and_answers_from_there() {
    let mut here = local();
    let mut there = BatchSocket::bind("0.0.0.0:0".parse().unwrap(), &BatchOptions::default()).unwrap();
    let second: SocketAddr = ([127, 0, 0, 2], there.local_address().port()).into();
    send(&here, [Departure { to: second, from: None, bytes: &[1] }]);
    there.receive().unwrap();
    let arrived = there.next_arrival().unwrap();
    let (to, from) = (arrived.source, arrived.destination);
    assert_eq!(from, Some(second.ip()));
    send(&there, [Departure { to, from, bytes: &[2] }]);
    here.receive().unwrap();
    assert_eq!(here.next_arrival().unwrap().source, second);
}

#[test]
fn sockets_that_share_a_port_must_agree() {
    let shared = BatchOptions { sharing: PortSharing::Shared, ..BatchOptions::default() };
    let first = BatchSocket::bind("127.0.0.1:0".parse().unwrap(), &shared).unwrap();
    assert!(BatchSocket::bind(first.local_address(), &shared).is_ok());
    assert!(BatchSocket::bind(first.local_address(), &BatchOptions::default()).is_err());
}

#[test]
fn a_wait_ends_by_a_waker_and_by_a_deadline() {
    let mut socket = local();
    socket.waker().wake();
    assert_eq!(socket.wait(None).unwrap(), Wakeup { woken: true, ..Wakeup::default() });
    let deadline = crate::clock::now() + Duration::from_millis(1);
    assert_eq!(socket.wait(Some(deadline)).unwrap(), Wakeup::default());
    assert!(crate::clock::now() >= deadline);
}
