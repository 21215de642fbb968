mod strangers;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use thalweg_base::rng::Rng;
use thalweg_base::time::Instant;

use super::*;
use crate::credentials::{Credentials, OwnCertificate, PresharedKey, Trust};
use crate::endpoint::{CoapOutbox, Peer};
use crate::identity::SessionIdentity;

const PATIENCE: Duration = Duration::from_secs(60);

fn address(port: u16) -> SocketAddr {
    ([192, 0, 2, 1], port).into()
}

fn key(identity: &str, key: &str) -> PresharedKey {
    PresharedKey { identity: identity.into(), key: key.as_bytes().to_vec().into() }
}

fn keys(keys: &[(&str, &str)]) -> Credentials {
    Credentials {
        keys: keys.iter().map(|(identity, secret)| key(identity, secret)).collect(),
        ..Credentials::default()
    }
}

fn certified(name: &str) -> Credentials {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let own = OwnCertificate::load(&folder.join(format!("{name}.pem")), &folder.join(format!("{name}-key.pem")));
    let trust = Trust::load(&folder.join("authority.pem")).unwrap();
    Credentials { certificate: Some(own.unwrap()), trust: Some(trust), ..Credentials::default() }
}

/// A server and its clients, with a network between them that loses what it is told to.
struct World {
    now: Instant,
    origin: ClockOrigin,
    server: Sessions,
    said: Vec<(Peer, Vec<u8>)>,
    /// What the server sent to addresses without a client.
    stray: Vec<(SocketAddr, Vec<u8>)>,
}

impl World {
    fn new(credentials: &Credentials, limits: SessionLimits) -> World {
        let now = Instant::from_nanos(1_000_000_000_000);
        let origin = ClockOrigin::at(now);
        let server = Sessions::new(credentials, limits, [1, 2], origin).unwrap();
        World { now, origin, server, said: Vec::new(), stray: Vec::new() }
    }

    fn client(&self, credentials: &Credentials) -> ClientSession {
        ClientSession::connect(credentials, "server", self.origin, self.now).unwrap()
    }

    fn feed(&mut self, from: SocketAddr, bytes: &[u8]) {
        self.server.handle_datagram(self.now, from, bytes);
        self.said.extend(self.server.plain().iter().map(|one| (one.peer, one.bytes.to_vec())));
    }

    fn sent(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut outbox = CoapOutbox::default();
        self.server.poll_transmit(&mut outbox);
        outbox.iter().map(|one| (one.peer.address, one.bytes.to_vec())).collect()
    }

    /// Moves datagrams and time until nothing happens for `quiet`; `lose` says which of them are lost.
    fn run(&mut self, client: &mut ClientSession, from: SocketAddr, mut lose: impl FnMut() -> bool) {
        let end = self.now + PATIENCE;
        let mut wire: VecDeque<(bool, Vec<u8>)> = VecDeque::new();
        loop {
            wire.extend(client.take_outgoing().into_iter().map(|bytes| (true, bytes)));
            for (to, bytes) in self.sent() {
                if to == from { wire.push_back((false, bytes)) } else { self.stray.push((to, bytes)) }
            }
            if let Some((is_to_server, bytes)) = wire.pop_front() {
                match (lose(), is_to_server) {
                    (true, _) => {}
                    (false, true) => self.feed(from, &bytes),
                    (false, false) => client.handle_datagram(self.now, &bytes),
                }
                continue;
            }
            let is_done = *client.state() != SessionState::Handshake;
            let next = client.poll_timeout().into_iter().chain(self.server.poll_timeout()).min();
            match next.filter(|next| !is_done && *next < end) {
                Some(next) => self.now = self.now.max(next),
                None => return,
            }
            client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
        }
    }

    /// Lets a client prove its address, and begin a handshake whose answer is lost.
    fn prove(&mut self, client: &mut ClientSession, from: SocketAddr) {
        let hello = client.take_outgoing().remove(0);
        self.feed(from, &hello);
        let request = self.sent().remove(0).1;
        client.handle_datagram(self.now, &request);
        let hello = client.take_outgoing().remove(0);
        self.feed(from, &hello);
        self.sent();
    }

    #[track_caller]
    fn establish(&mut self, credentials: &Credentials, from: SocketAddr) -> ClientSession {
        let mut client = self.client(credentials);
        self.run(&mut client, from, || false);
        assert_eq!(*client.state(), SessionState::Established);
        client
    }

    /// Lets the client say something, and gives the peer that the server heard it from.
    #[track_caller]
    fn check_says(&mut self, client: &mut ClientSession, from: SocketAddr, text: &str) -> Peer {
        client.send(self.now, text.as_bytes());
        self.run(client, from, || false);
        let (peer, said) = self.said.pop().expect("the server heard it");
        assert_eq!((peer.address, said.as_slice()), (from, text.as_bytes()));
        assert!(self.said.is_empty(), "once");
        peer
    }

    #[track_caller]
    fn check_answers(&mut self, client: &mut ClientSession, peer: Peer, text: &str) {
        assert!(self.server.protect(self.now, peer, text.as_bytes()));
        self.run(client, peer.address, || false);
        assert_eq!(client.take_plain(), [text.as_bytes()]);
    }
}

#[test]
fn a_session_by_a_key_carries_datagrams_both_ways_and_names_its_client() {
    let mut world = World::new(&keys(&[("a", "1"), ("b", "2")]), SessionLimits::default());
    for (port, (identity, secret)) in [("a", "1"), ("b", "2")].into_iter().enumerate() {
        let from = address(port as u16);
        let mut client = world.establish(&keys(&[(identity, secret)]), from);
        let peer = world.check_says(&mut client, from, "question");
        world.check_answers(&mut client, peer, "answer");
        let expect = SessionIdentity::PresharedKey(identity.into());
        assert_eq!(world.server.identity(peer), Some(Arc::new(expect)));
        assert!(!client.is_dtls13());
    }
    let counts = world.server.counts();
    assert_eq!((counts.sessions, counts.handshakes, counts.established, counts.failed), (2, 0, 2, 0));
}

#[test]
fn an_identity_that_somebody_names_without_its_key_comes_to_no_other_session() {
    let mut world = World::new(&keys(&[("a", "1"), ("b", "2")]), SessionLimits::default());
    let mut honest = world.establish(&keys(&[("b", "2")]), address(1));
    let peer = world.check_says(&mut honest, address(1), "question");
    let expect = Some(Arc::new(SessionIdentity::PresharedKey("b".into())));
    let mut forger = world.client(&keys(&[("a", "wrong")]));
    for _ in 0..4 {
        for bytes in forger.take_outgoing() {
            world.feed(address(2), &bytes);
            let answers = world.sent().into_iter().filter(|(to, _)| *to == address(2));
            answers.for_each(|(_, bytes)| forger.handle_datagram(world.now, &bytes));
            world.check_says(&mut honest, address(1), "again");
            assert_eq!(world.server.identity(peer), expect);
        }
    }
    assert_ne!(*forger.state(), SessionState::Established);
}

#[test]
fn a_forged_hello_keeps_no_session_from_being_heard() {
    for (server, client) in [(certified("server"), certified("client")), (keys(&[("a", "1")]), keys(&[("a", "1")]))] {
        let mut world = World::new(&server, SessionLimits::default());
        let mut honest = world.establish(&client, address(1));
        let peer = world.check_says(&mut honest, address(1), "question");
        let hello = world.client(&client).take_outgoing().remove(0);
        for text in ["one", "two", "three"] {
            world.feed(address(1), &hello);
            world.sent();
            assert_eq!(world.check_says(&mut honest, address(1), text), peer);
            world.check_answers(&mut honest, peer, text);
        }
    }
}

#[test]
fn a_session_by_certificates_names_the_subject_and_agrees_on_dtls_13() {
    let mut world = World::new(&certified("server"), SessionLimits::default());
    let mut client = world.establish(&certified("client"), address(1));
    let peer = world.check_says(&mut client, address(1), "question");
    world.check_answers(&mut client, peer, "answer");
    let subject = "CN=client,O=Works".to_owned();
    let named = world.server.identity(peer).expect("it showed a certificate");
    let SessionIdentity::Certificate { subject: found } = &*named else { panic!("{named:?}") };
    assert!(*found == subject || *found == "O=Works,CN=client", "{found}");
    assert!(client.is_dtls13());
}

#[test]
fn nobody_gets_a_session_with_a_wrong_key_name_or_certificate() {
    let mut world = World::new(&keys(&[("a", "1")]), SessionLimits::default());
    for wrong in [keys(&[("a", "2")]), keys(&[("c", "1")]), certified("client")] {
        let mut client = world.client(&wrong);
        world.run(&mut client, address(1), || false);
        assert!(matches!(client.state(), SessionState::Failed(_)), "{:?}", client.state());
        assert_eq!(world.server.counts().sessions, 0);
    }
    let stranger = Credentials { trust: certified("server").trust, ..Credentials::default() };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let own = OwnCertificate::load(&folder.join("client.pem"), &folder.join("server-key.pem")).unwrap();
    let stranger = Credentials { certificate: Some(own), ..stranger };
    let mut world = World::new(&certified("server"), SessionLimits::default());
    let mut client = world.client(&stranger);
    world.run(&mut client, address(1), || false);
    assert_eq!(world.server.counts().sessions, 0, "a certificate without its key");
    let mut client = ClientSession::connect(&certified("client"), "elsewhere", world.origin, world.now).unwrap();
    world.run(&mut client, address(1), || false);
    assert!(format!("{:?}", client.state()).contains("elsewhere"), "{:?}", client.state());
}

#[test]
fn a_hello_without_a_cookie_leaves_nothing_behind_and_draws_less_than_it_sent() {
    let mut world = World::new(&keys(&[("a", "1")]), SessionLimits::default());
    let hello = world.client(&keys(&[("a", "1")])).take_outgoing().remove(0);
    for port in 1..10_000 {
        world.feed(address(port), &hello);
        let sent = world.sent();
        assert!(sent.len() == 1 && sent[0].1.len() < hello.len(), "{sent:?}");
    }
    let counts = world.server.counts();
    assert_eq!((counts.challenged, counts.handshakes, counts.sessions), (9999, 0, 0));
    assert!(world.server.poll_timeout().is_none());
}

#[test]
fn a_cookie_is_good_for_its_address_and_a_minute_only() {
    let mut world = World::new(&keys(&[("a", "1")]), SessionLimits::default());
    let mut client = world.client(&keys(&[("a", "1")]));
    let first = client.take_outgoing().remove(0);
    world.feed(address(1), &first);
    let request = world.sent().remove(0).1;
    client.handle_datagram(world.now, &request);
    let second = client.take_outgoing().remove(0);
    world.feed(address(2), &second);
    assert_eq!(world.server.counts().handshakes, 0, "another address");
    world.now += Duration::from_secs(61);
    world.feed(address(1), &second);
    assert_eq!(world.server.counts().handshakes, 0, "too late");
    world.now = Instant::from_nanos(1_000_000_000_000);
    world.feed(address(1), &second);
    assert_eq!(world.server.counts().handshakes, 1);
    world.sent();
    world.feed(address(1), &second);
    assert_eq!(world.server.counts().handshakes, 1, "a repetition belongs to the handshake");
}

#[test]
fn a_handshake_survives_losses() {
    let mut established = 0;
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let mut world = World::new(&keys(&[("a", "1")]), SessionLimits::default());
        let mut client = world.client(&keys(&[("a", "1")]));
        world.run(&mut client, address(1), || rng.below(5) == 0);
        if *client.state() == SessionState::Established {
            established += 1;
            world.check_says(&mut client, address(1), "after losses");
        } else {
            assert!(matches!(client.state(), SessionState::Failed(_)), "seed {seed}: {:?}", client.state());
        }
    }
    assert!(established >= 18, "{established} of 20, where a fifth of all datagrams is lost");
}

#[test]
fn forged_and_repeated_datagrams_harm_no_session() {
    let credentials = [(keys(&[("a", "1")]), keys(&[("a", "1")])), (certified("server"), certified("client"))];
    for (server, own) in credentials {
        let mut world = World::new(&server, SessionLimits::default());
        let mut client = world.establish(&own, address(1));
        let peer = world.check_says(&mut client, address(1), "first");
        client.send(world.now, b"second");
        let record = client.take_outgoing().remove(0);
        world.feed(address(1), &record);
        assert_eq!(world.said.len(), 1);
        world.said.clear();
        let mut rng = Rng::new(7);
        for round in 0..20_000_u32 {
            let mut forged = record.clone();
            match round % 4 {
                0 => {}
                1 => forged.truncate(rng.below(record.len() as u64 + 1) as usize),
                2 => {
                    let at = rng.below(forged.len() as u64) as usize;
                    forged[at] ^= 1 << rng.below(8);
                }
                _ => {
                    // Every kind of record, of every epoch, alone or before another one.
                    let kind = 20 + rng.below(8) as u8;
                    let epoch = rng.below(3) as u8;
                    let content = [2, 40, rng.below(256) as u8];
                    forged = vec![kind, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, rng.below(256) as u8, 0, 0, 3];
                    forged.extend_from_slice(&content);
                    if rng.below(2) == 0 {
                        forged.extend_from_slice(&record);
                    }
                }
            }
            world.feed(address(1), &forged);
            world.sent();
        }
        assert_eq!(world.said, [], "nothing that was forged or said before is heard");
        assert_eq!(world.check_says(&mut client, address(1), "third"), peer);
        world.check_answers(&mut client, peer, "answer");
    }
}

#[test]
fn a_new_handshake_takes_the_place_of_a_session_when_it_is_complete_and_is_another_peer() {
    let mut world = World::new(&keys(&[("a", "1"), ("b", "2")]), SessionLimits::default());
    let mut before = world.establish(&keys(&[("a", "1")]), address(1));
    let old = world.check_says(&mut before, address(1), "before");
    let mut after = world.client(&keys(&[("b", "2")]));
    let hello = after.take_outgoing().remove(0);
    world.feed(address(1), &hello);
    let request = world.sent().remove(0).1;
    after.handle_datagram(world.now, &request);
    let hello = after.take_outgoing().remove(0);
    world.feed(address(1), &hello);
    assert_eq!(world.server.counts().handshakes, 1);
    let flight = world.sent();
    assert_eq!(world.check_says(&mut before, address(1), "still there"), old);
    flight.iter().for_each(|(_, bytes)| after.handle_datagram(world.now, bytes));
    world.run(&mut after, address(1), || false);
    let new = world.check_says(&mut after, address(1), "after");
    assert_ne!(old, new);
    assert!(!world.server.protect(world.now, old, b"for the one before"));
    assert_eq!(*world.server.identity(new).unwrap(), SessionIdentity::PresharedKey(b"b".to_vec()));
    assert_eq!((world.server.identity(old), world.server.counts().sessions), (None, 1));
}

#[test]
fn sessions_and_handshakes_have_bounds_and_the_oldest_make_room() {
    let limits = SessionLimits { sessions_max: 2, handshakes_max: 2, ..SessionLimits::default() };
    let mut world = World::new(&keys(&[("a", "1")]), limits);
    let mut clients: Vec<ClientSession> =
        (0..2).map(|port| world.establish(&keys(&[("a", "1")]), address(port))).collect();
    let first = world.check_says(&mut clients[0], address(0), "used last");
    world.establish(&keys(&[("a", "1")]), address(2));
    assert_eq!(world.server.counts().sessions, 2);
    assert_eq!(world.check_says(&mut clients[0], address(0), "still there"), first);
    clients[1].send(world.now, b"gone");
    world.run(&mut clients[1], address(1), || false);
    assert_eq!(world.said, []);
}

#[test]
fn a_silent_session_ends_and_one_that_says_goodbye_at_once() {
    let limits = SessionLimits { idle_max: Duration::from_secs(100), ..SessionLimits::default() };
    let mut world = World::new(&keys(&[("a", "1")]), limits);
    let mut client = world.establish(&keys(&[("a", "1")]), address(1));
    world.check_says(&mut client, address(1), "here");
    world.now += Duration::from_secs(60);
    world.check_says(&mut client, address(1), "still here");
    world.now += Duration::from_secs(60);
    world.server.handle_timeout(world.now);
    assert_eq!(world.server.counts().sessions, 1);
    world.now += Duration::from_secs(60);
    world.server.handle_timeout(world.now);
    assert_eq!(world.server.counts().sessions, 0);
    let mut client = world.establish(&keys(&[("a", "1")]), address(1));
    client.close();
    world.run(&mut client, address(1), || false);
    assert_eq!(world.server.counts().sessions, 0);
}

#[test]
fn a_host_with_many_handshakes_takes_no_places_of_others() {
    let limits = SessionLimits { handshakes_max: 8, handshakes_per_host_max: 2, ..SessionLimits::default() };
    let mut world = World::new(&keys(&[("a", "1")]), limits);
    let other = SocketAddr::from(([198, 51, 100, 7], 1));
    let mut honest = world.client(&keys(&[("a", "1")]));
    world.prove(&mut honest, other);
    for port in 0..20 {
        let mut client = world.client(&keys(&[("a", "1")]));
        world.prove(&mut client, address(port));
    }
    assert_eq!(world.server.counts().handshakes, 3);
    world.run(&mut honest, other, || false);
    assert_eq!(*honest.state(), SessionState::Established);
}

#[test]
fn new_credentials_end_the_sessions_that_they_do_not_allow_and_no_other() {
    let mut world = World::new(&keys(&[("a", "1"), ("b", "2"), ("c", "3")]), SessionLimits::default());
    let mut clients: Vec<(ClientSession, Peer)> = Vec::new();
    for (port, (identity, secret)) in [("a", "1"), ("b", "2"), ("c", "3")].into_iter().enumerate() {
        let from = address(port as u16);
        let mut client = world.establish(&keys(&[(identity, secret)]), from);
        let peer = world.check_says(&mut client, from, "before");
        clients.push((client, peer));
    }
    world.server.set_credentials(world.now, &keys(&[("a", "1"), ("b", "other")])).unwrap();
    let sent = world.sent();
    assert_eq!(sent.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [address(1), address(2)], "they are told");
    assert_eq!(world.server.counts().sessions, 1);
    let (kept, peer) = &mut clients[0];
    assert_eq!(world.check_says(kept, address(0), "after"), *peer);
    let mut revoked = world.client(&keys(&[("c", "3")]));
    world.run(&mut revoked, address(9), || false);
    assert!(matches!(revoked.state(), SessionState::Failed(_)), "{:?}", revoked.state());
    world.establish(&keys(&[("b", "other")]), address(1));
    assert!(world.server.set_credentials(world.now, &Credentials::default()).is_err());
    assert_eq!(world.server.counts().sessions, 2, "credentials that cannot be used change nothing");
    let mut world = World::new(&certified("server"), SessionLimits::default());
    world.establish(&certified("client"), address(1));
    world.server.set_credentials(world.now, &certified("server")).unwrap();
    assert_eq!(world.server.counts().sessions, 1, "the same");
    let own = certified("server").certificate.unwrap();
    let trusted = Trust::from_der([own.chain()[0].to_vec()]).unwrap();
    let others = Credentials { trust: Some(trusted), ..certified("server") };
    world.server.set_credentials(world.now, &others).unwrap();
    assert_eq!(world.server.counts().sessions, 0, "others are believed");
}

/// What becomes of a client's handshake when the server takes other credentials before its datagram with this number, and how
/// long it takes; `None` when there are fewer.
fn handshake_with_renewal(
    number: usize,
    client: &Credentials,
    before: &Credentials,
    renewed: &Credentials,
) -> Option<(SessionState, usize, Duration)> {
    let mut world = World::new(before, SessionLimits::default());
    let (mut client, from, began) = (world.client(client), address(7), world.now);
    let (mut wire, mut count) = (VecDeque::new(), 0);
    loop {
        wire.extend(client.take_outgoing().into_iter().map(|bytes| (true, bytes)));
        wire.extend(world.sent().into_iter().map(|(_, bytes)| (false, bytes)));
        let Some((is_to_server, bytes)) = wire.pop_front() else { break };
        count += 1;
        if count == number {
            world.server.set_credentials(world.now, renewed).unwrap();
        }
        match is_to_server {
            true => world.feed(from, &bytes),
            false => client.handle_datagram(world.now, &bytes),
        }
    }
    world.run(&mut client, from, || false);
    (count >= number).then(|| (client.state().clone(), world.server.counts().sessions, world.now.since(began)))
}

#[test]
fn a_handshake_goes_on_while_the_server_takes_other_credentials_that_allow_it() {
    let (old, new) = (keys(&[("a", "1"), ("b", "2")]), keys(&[("a", "1"), ("b", "3"), ("c", "4")]));
    let by_key = keys(&[("a", "1")]);
    let (server, client) = (certified("server"), certified("client"));
    for (client, before, renewed) in [(&by_key, &old, &new), (&client, &server, &server)] {
        let outcomes: Vec<_> =
            (1..).map_while(|number| handshake_with_renewal(number, client, before, renewed)).collect();
        assert!(outcomes.len() > 4, "{outcomes:?}");
        for (number, (state, sessions, took)) in outcomes.into_iter().enumerate() {
            assert_eq!((state, sessions), (SessionState::Established, 1), "before datagram {number}");
            assert!(took < Duration::from_secs(1), "{number}: {took:?}");
        }
    }
}

#[test]
fn a_handshake_that_other_credentials_do_not_allow_gives_no_session() {
    let (old, new) = (keys(&[("a", "1"), ("b", "2")]), keys(&[("a", "other")]));
    let by_key = [keys(&[("a", "1")]), keys(&[("b", "2")])];
    let own = certified("server").certificate.unwrap();
    let trust = Trust::from_der([own.chain()[0].to_vec()]).unwrap();
    let (server, client) = (certified("server"), certified("client"));
    let others = Credentials { trust: Some(trust), ..certified("server") };
    let by_key = by_key.iter().map(|client| (client, &old, &new));
    for (client, before, renewed) in by_key.chain([(&client, &server, &others)]) {
        let outcomes: Vec<_> =
            (1..).map_while(|number| handshake_with_renewal(number, client, before, renewed)).collect();
        assert!(outcomes.len() > 4, "{outcomes:?}");
        for (number, (state, sessions, _)) in outcomes.into_iter().enumerate() {
            assert_eq!(sessions, 0, "before datagram {number}: {state:?}");
        }
    }
}
