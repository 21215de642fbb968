//! Two sockets on the loopback interface.

use super::*;

fn local() -> BatchSocket {
    BatchSocket::bind("127.0.0.1:0".parse().unwrap(), &BatchOptions::default()).unwrap()
}

fn departure(to: &BatchSocket, bytes: &'static [u8]) -> Departure<'static> {
    Departure { to: to.local_address(), from: None, bytes }
}

fn send<'a>(from: &BatchSocket, departures: impl IntoIterator<Item = Departure<'a>>) -> Sent {
    from.send(&mut BatchScratch::default(), departures)
}

#[test]
fn a_batch_arrives_in_order_and_answers_go_back() {
    let (here, there) = (local(), local());
    let watch = Watch::new(&there).unwrap();
    let mut arrivals = Arrivals::new(1500);
    let numbers: Vec<[u8; 20]> = (0..100).map(|number| [number; 20]).collect();
    let sent = send(&here, numbers.iter().map(|bytes| Departure { bytes, ..departure(&there, b"") }));
    assert_eq!(sent, Sent { datagrams: 100, lost: 0, calls: 1 }, "two messages, of 64 and 36");
    assert!(watch.wait(None).unwrap().readable);
    assert_eq!(there.receive(&mut arrivals).unwrap(), 64);
    for (number, arrived) in arrivals.iter().enumerate() {
        let arrived = arrived.unwrap();
        assert_eq!((arrived.bytes, arrived.source), (&[number as u8; 20][..], here.local_address()));
    }
    let back = arrivals.iter().flatten().map(|arrived| Departure {
        to: arrived.source,
        from: None,
        bytes: &arrived.bytes[..1],
    });
    assert_eq!(send(&there, back).datagrams, 64);
    assert_eq!(there.receive(&mut arrivals).unwrap(), 36);
    assert_eq!(there.receive(&mut arrivals).unwrap(), 0);
    assert_eq!(here.receive(&mut arrivals).unwrap(), 64);
    assert!(arrivals.iter().flatten().map(|arrived| arrived.bytes[0]).eq(0..64));
}

/// Sends datagrams with a length and an addressee each; they must arrive as they were.
fn check_runs(here: &BatchSocket, runs: &[(usize, usize)]) {
    let peers = [local(), local()];
    let bytes: Vec<u8> = (0..=255).cycle().take(2000).collect();
    let departures = runs.iter().enumerate().map(|(index, (len, peer))| Departure {
        to: peers[*peer].local_address(),
        from: None,
        bytes: &bytes[index..index + len],
    });
    let sent = send(here, departures);
    assert_eq!((sent.datagrams, sent.lost), (runs.len(), 0), "{runs:?}");
    for (number, peer) in peers.iter().enumerate() {
        let mut arrivals = Arrivals::new(2000);
        let count = peer.receive(&mut arrivals).unwrap();
        let expected: Vec<&[u8]> = runs
            .iter()
            .enumerate()
            .filter(|(_, (_, peer))| *peer == number)
            .map(|(index, (len, _))| &bytes[index..index + len])
            .collect();
        let found: Vec<&[u8]> = arrivals.iter().flatten().map(|arrived| arrived.bytes).collect();
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
    let (here, there) = (std::net::UdpSocket::bind("127.0.0.1:0").unwrap(), local());
    cut_sends(&here, 20).unwrap();
    here.send_to(&[7; 50], there.local_address()).unwrap();
    let mut arrivals = Arrivals::new(100);
    assert_eq!(there.receive(&mut arrivals).unwrap(), 3);
    assert!(arrivals.iter().flatten().map(|arrived| arrived.bytes.len()).eq([20, 20, 10]));
}

#[test]
fn what_cannot_be_sent_is_counted_and_the_rest_goes_out() {
    let (here, there) = (local(), local());
    let sent = send(&here, [departure(&there, &[0; 70_000]), departure(&there, &[1])]);
    assert_eq!((sent.datagrams, sent.lost), (1, 1));
}

#[test]
fn a_datagram_longer_than_its_slot_is_refused_whole() {
    let (here, there) = (local(), local());
    let mut arrivals = Arrivals::new(10);
    send(&here, [departure(&there, &[0; 11]), departure(&there, &[0; 10])]);
    assert_eq!(there.receive(&mut arrivals).unwrap(), 2);
    let bytes: Vec<_> = arrivals.iter().map(|arrived| arrived.map(|arrived| arrived.bytes.len())).collect();
    assert_eq!(bytes, [None, Some(10)]);
}

#[test]
fn a_socket_of_every_address_knows_where_datagrams_were_sent_to_and_answers_from_there() {
    let here = local();
    let there = BatchSocket::bind("0.0.0.0:0".parse().unwrap(), &BatchOptions::default()).unwrap();
    let mut arrivals = Arrivals::new(100);
    let second: SocketAddr = ([127, 0, 0, 2], there.local_address().port()).into();
    send(&here, [Departure { to: second, from: None, bytes: &[1] }]);
    there.receive(&mut arrivals).unwrap();
    let arrived = arrivals.iter().next().unwrap().unwrap();
    assert_eq!(arrived.destination, Some(second.ip()));
    send(&there, [Departure { to: arrived.source, from: arrived.destination, bytes: &[2] }]);
    here.receive(&mut arrivals).unwrap();
    assert_eq!(arrivals.iter().next().unwrap().unwrap().source, second);
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
    let socket = local();
    let watch = Watch::new(&socket).unwrap();
    watch.waker().wake();
    assert_eq!(watch.wait(None).unwrap(), Woken { woken: true, ..Woken::default() });
    let deadline = crate::clock::now() + Duration::from_millis(1);
    assert_eq!(watch.wait(Some(deadline)).unwrap(), Woken { due: true, ..Woken::default() });
    assert!(crate::clock::now() >= deadline);
}
