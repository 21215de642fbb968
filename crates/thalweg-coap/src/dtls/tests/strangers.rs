//! Addresses without proof, crowds of one host, and sessions that make room.

use super::*;

fn at(host: u8, port: u16) -> SocketAddr {
    ([198, 51, 100, host], port).into()
}

/// Servers and clients of DTLS 1.2 and 1.3.
fn versions() -> [(Credentials, Credentials); 2] {
    [(keys(&[("a", "1")]), keys(&[("a", "1")])), (certified("server"), certified("client"))]
}

#[test]
fn a_hello_of_dtls_13_without_a_cookie_leaves_nothing_behind_and_draws_one_datagram_that_is_shorter() {
    let mut world = World::new(&certified("server"), SessionLimits::default());
    let hello = world.client(&certified("client")).take_outgoing().remove(0);
    for port in 1..1000 {
        world.feed(address(port), &hello);
        let sent = world.sent();
        assert!(sent.len() == 1 && sent[0].1.len() < hello.len(), "{sent:?}");
    }
    let counts = world.server.counts();
    assert_eq!((counts.challenged, counts.handshakes, counts.sessions), (999, 0, 0));
    assert_eq!(world.server.poll_timeout(), None, "nothing is repeated");
}

/// Lets the server refuse a ClientHello as one with a cookie that it did not give.
#[track_caller]
fn check_refused(world: &mut World, from: SocketAddr, hello: &[u8]) {
    world.feed(from, hello);
    let sent = world.sent();
    let [(_, alert)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((alert[0], &alert[13..]), (21, &[2, 47][..]), "a fatal alert: illegal_parameter");
    assert_eq!(world.server.counts().handshakes, 0);
}

#[test]
fn a_cookie_of_dtls_13_is_good_for_its_address_its_hello_and_a_minute_only() {
    let limits = SessionLimits { unproved_max: 0, ..SessionLimits::default() };
    let mut world = World::new(&certified("server"), limits);
    let mut client = world.client(&certified("client"));
    let first = client.take_outgoing().remove(0);
    world.feed(address(1), &first);
    let request = world.sent().remove(0).1;
    client.handle_datagram(world.now, &request);
    let second = client.take_outgoing().remove(0);
    check_refused(&mut world, address(2), &second);
    let other = world.client(&certified("client")).take_outgoing().remove(0);
    check_refused(&mut world, address(1), &with_cookie_of(&other, &request));
    world.now += Duration::from_secs(61);
    check_refused(&mut world, address(1), &second);
    world.now = Instant::from_nanos(1_000_000_000_000);
    world.feed(address(1), &second);
    assert_eq!(world.server.counts().handshakes, 1);
    assert!(!world.sent().is_empty());
    world.feed(address(1), &second);
    assert_eq!(world.server.counts().handshakes, 1, "a repetition belongs to the handshake");
}

#[test]
fn a_handshake_of_dtls_13_needs_nothing_that_was_kept() {
    for unproved_max in [0, 128] {
        let limits = SessionLimits { unproved_max, ..SessionLimits::default() };
        let mut world = World::new(&certified("server"), limits);
        let mut client = world.establish(&certified("client"), address(1));
        assert!(client.is_dtls13());
        let peer = world.check_says(&mut client, address(1), "question");
        world.check_answers(&mut client, peer, "answer");
    }
}

#[test]
fn a_handshake_of_dtls_13_survives_the_loss_of_any_datagram_that_proves_an_address() {
    for lost in 1..=3 {
        let limits = SessionLimits { unproved_max: 0, ..SessionLimits::default() };
        let mut world = World::new(&certified("server"), limits);
        let (mut client, mut count) = (world.client(&certified("client")), 0);
        world.run(&mut client, address(1), || {
            count += 1;
            count == lost
        });
        assert_eq!(*client.state(), SessionState::Established, "without datagram {lost}");
    }
}

/// Where the extensions of dimpl's ClientHello begin: their length.
fn extensions_of(hello: &[u8]) -> usize {
    let suites = u16::from_be_bytes([hello[61], hello[62]]);
    63 + usize::from(suites) + 2
}

/// The same ClientHello once more, with the cookie that a HelloRetryRequest ends with.
fn with_cookie_of(hello: &[u8], request: &[u8]) -> Vec<u8> {
    let mut again = hello.to_vec();
    again.extend_from_slice(&[0, 44, 0, 34, 0, 32]);
    again.extend_from_slice(&request[request.len() - 32..]);
    let at = extensions_of(hello);
    let extensions = (again.len() - at - 2) as u16;
    again[at..at + 2].copy_from_slice(&extensions.to_be_bytes());
    let length = (again.len() - 13) as u16;
    let body = (length - 12).to_be_bytes();
    again[11..13].copy_from_slice(&length.to_be_bytes());
    again[15..17].copy_from_slice(&body);
    again[23..25].copy_from_slice(&body);
    // The second record and the second message.
    (again[10], again[18]) = (1, 1);
    again
}

/// The same ClientHello with a key share of a group that the server does not have.
fn with_other_share(hello: &[u8]) -> Vec<u8> {
    let mut changed = hello.to_vec();
    let mut at = extensions_of(hello) + 2;
    while changed[at..at + 2] != [0, 51] {
        at += 4 + usize::from(u16::from_be_bytes([changed[at + 2], changed[at + 3]]));
    }
    changed[at + 6..at + 8].copy_from_slice(&[1, 0]);
    changed
}

#[test]
fn a_client_that_is_asked_for_another_key_share_gets_its_handshake_while_its_first_message_is_kept() {
    for (unproved_max, is_kept) in [(4, true), (0, false)] {
        let limits = SessionLimits { unproved_max, ..SessionLimits::default() };
        let mut world = World::new(&certified("server"), limits);
        let hello = world.client(&certified("client")).take_outgoing().remove(0);
        world.feed(at(7, 1), &with_other_share(&hello));
        let request = world.sent().remove(0).1;
        for port in 0..20 {
            world.feed(address(port), &hello);
            world.sent();
        }
        let again = with_cookie_of(&hello, &request);
        if is_kept {
            world.feed(at(7, 1), &again);
            assert_eq!(world.server.counts().handshakes, 1);
            assert!(world.sent().iter().all(|(_, bytes)| bytes[0] != 21), "no alert");
        } else {
            check_refused(&mut world, at(7, 1), &again);
        }
    }
}

#[test]
fn hellos_and_handshakes_of_one_host_keep_no_other_host_from_a_session_of_dtls_13() {
    let limits =
        SessionLimits { handshakes_max: 8, handshakes_per_host_max: 2, unproved_max: 4, ..SessionLimits::default() };
    let own = certified("client");
    let mut world = World::new(&certified("server"), limits);
    let hello = world.client(&own).take_outgoing().remove(0);
    let mut honest = world.client(&own);
    world.prove(&mut honest, at(7, 1));
    for port in 0..20 {
        let mut client = world.client(&own);
        world.prove(&mut client, address(port));
        world.feed(address(100 + port), &hello);
        world.sent();
    }
    assert_eq!(world.server.counts().handshakes, 3);
    world.run(&mut honest, at(7, 1), || false);
    assert_eq!(*honest.state(), SessionState::Established);
}

#[test]
fn sessions_of_one_host_take_no_places_of_others_and_clients_are_told_that_theirs_end() {
    for (server, own) in versions() {
        let limits = SessionLimits { sessions_max: 4, sessions_per_host_max: 2, ..SessionLimits::default() };
        let mut world = World::new(&server, limits);
        let mut other = world.establish(&own, at(7, 1));
        let peer = world.check_says(&mut other, at(7, 1), "first");
        let mut crowd: Vec<ClientSession> = (0..5).map(|port| world.establish(&own, address(port))).collect();
        let counts = world.server.counts();
        assert_eq!((counts.sessions, counts.evicted), (3, 3));
        for (to, bytes) in std::mem::take(&mut world.stray) {
            if to.ip() == address(0).ip() {
                crowd[usize::from(to.port())].handle_datagram(world.now, &bytes);
            }
        }
        for (number, client) in crowd.iter().enumerate() {
            let expect = if number < 3 { SessionState::Closed } else { SessionState::Established };
            assert_eq!(*client.state(), expect, "client {number}");
        }
        assert_eq!(world.check_says(&mut other, at(7, 1), "still there"), peer);
    }
}

#[test]
fn the_addresses_of_an_ipv6_network_are_one_host() {
    let limits = SessionLimits { sessions_per_host_max: 2, ..SessionLimits::default() };
    let mut world = World::new(&keys(&[("a", "1")]), limits);
    for (network, last, sessions) in [(1, 1, 1), (1, 2, 2), (1, 3, 2), (2, 1, 3)] {
        let from = SocketAddr::from(([0x2001, 0xdb8, 0, network, 0, 0, 0, last], 5684));
        world.establish(&keys(&[("a", "1")]), from);
        assert_eq!(world.server.counts().sessions, sessions, "{from}");
    }
}

#[test]
fn a_client_that_begins_anew_at_its_address_is_told_nothing_of_its_handshake_before() {
    for (server, own) in versions() {
        let mut world = World::new(&server, SessionLimits::default());
        let mut before = world.client(&own);
        world.prove(&mut before, address(1));
        let began = world.now;
        let mut after = world.client(&own);
        world.run(&mut after, address(1), || false);
        assert_eq!((after.state(), world.now), (&SessionState::Established, began), "without a repetition");
    }
}
