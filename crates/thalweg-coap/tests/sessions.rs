//! What thousands of DTLS sessions hold, and what half-open handshakes can take; counted by the allocator of this binary.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_coap::credentials::{Credentials, PresharedKey};
use thalweg_coap::dtls::{ClientSession, ClockOrigin, SessionLimits, SessionState, Sessions};
use thalweg_coap::endpoint::CoapOutbox;
use thalweg_testing::allocations::{self, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Held by the test that counts: bytes are those of the whole process.
static TURN: Mutex<()> = Mutex::new(());

/// Clients at the same time; fewer without optimisation, where a handshake takes a hundred times as long.
const CLIENTS: u32 = if cfg!(debug_assertions) { 100 } else { 5000 };
/// Bytes of a session, its places in the tables included.
const SESSION_BYTES_MAX: i64 = 12 << 10;
/// Bytes of a handshake under way.
const HANDSHAKE_BYTES_MAX: i64 = 24 << 10;

/// A server and the network before it, which loses nothing.
struct World {
    now: Instant,
    origin: ClockOrigin,
    server: Sessions,
    outbox: CoapOutbox,
    /// What the server was told.
    heard: usize,
}

fn keys() -> Credentials {
    let key = PresharedKey { identity: b"thing".to_vec(), key: b"secret".to_vec().into() };
    Credentials { keys: [key].into_iter().collect(), ..Credentials::default() }
}

impl World {
    fn new(limits: SessionLimits) -> World {
        let now = Instant::from_nanos(1_000_000_000_000);
        let origin = ClockOrigin::at(now);
        let server = Sessions::new(&keys(), limits, [1, 2], origin).expect("usable keys");
        World { now, origin, server, outbox: CoapOutbox::default(), heard: 0 }
    }

    fn client(&self) -> ClientSession {
        ClientSession::connect(&keys(), "server", self.origin, self.now).expect("usable keys")
    }

    /// One way there and back; false when neither end had anything to say.
    fn turn(&mut self, client: &mut ClientSession, from: SocketAddr) -> bool {
        let outgoing = client.take_outgoing();
        for datagram in &outgoing {
            self.server.handle_datagram(self.now, from, datagram);
            self.heard += self.server.plain().len();
        }
        self.server.poll_transmit(&mut self.outbox);
        let back = self.outbox.iter().filter(|transmit| transmit.peer.address == from);
        let back: Vec<Vec<u8>> = back.map(|transmit| transmit.bytes.to_vec()).collect();
        back.iter().for_each(|datagram| client.handle_datagram(self.now, datagram));
        !outgoing.is_empty() || !back.is_empty()
    }

    /// A client in a session.
    fn establish(&mut self, from: SocketAddr) -> ClientSession {
        let mut client = self.client();
        while self.turn(&mut client, from) {}
        assert_eq!(*client.state(), SessionState::Established, "{from}");
        client
    }

    /// A client that has proved its address and then says nothing more.
    fn begin_handshake(&mut self, from: SocketAddr) {
        let mut client = self.client();
        self.turn(&mut client, from);
        client.take_outgoing().iter().for_each(|hello| self.server.handle_datagram(self.now, from, hello));
        self.server.poll_transmit(&mut self.outbox);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.server.handle_timeout(self.now);
        self.server.poll_transmit(&mut self.outbox);
    }
}

/// The address of the host with a number.
fn host(number: u32) -> SocketAddr {
    (Ipv4Addr::from_bits(0x0a00_0000 | number), 5683).into()
}

fn port(port: u32) -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, 1), 1024 + port as u16).into()
}

#[test]
fn thousands_of_sessions_hold_little_each_and_nothing_of_them_stays_once_they_are_idle() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut world = World::new(SessionLimits::default());
    let before = allocations::bytes_held();
    let mut first = world.establish(host(0));
    for number in 1..CLIENTS {
        let mut client = world.establish(host(number));
        client.send(world.now, b"here");
        world.turn(&mut client, host(number));
    }
    first.send(world.now, b"still here");
    world.turn(&mut first, host(0));
    drop(first);
    let counts = world.server.counts();
    assert_eq!((counts.sessions, counts.handshakes, world.heard), (CLIENTS as usize, 0, CLIENTS as usize));
    let each = (allocations::bytes_held() - before) / i64::from(CLIENTS);
    println!("{each} bytes a session");
    assert!(each <= SESSION_BYTES_MAX, "{each} bytes a session");
    world.pass(SessionLimits::default().idle_max);
    assert_eq!(world.server.counts().sessions, 0);
    let left = (allocations::bytes_held() - before) / i64::from(CLIENTS);
    println!("{left} bytes a session that is over");
    assert!(left <= SESSION_BYTES_MAX / 8, "{left} bytes a session that is over");
}

#[test]
fn half_open_handshakes_take_their_places_only_and_an_honest_client_gets_its_session_meanwhile() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // A part of the default places, so that an attack is soon above them.
    let limits = SessionLimits { handshakes_max: 128, handshakes_per_host_max: 32, ..SessionLimits::default() };
    let before = allocations::bytes_held();
    let mut world = World::new(limits);
    // One host that is at its address, by all of its ports: before each flight of the honest client it begins more
    // handshakes than there are places.
    let mut honest = world.client();
    let mut attacked = 0;
    let attacks = limits.handshakes_max / 2 + 1;
    while *honest.state() == SessionState::Handshake {
        for _ in 0..attacks {
            world.begin_handshake(port(attacked % 60_000));
            attacked += 1;
        }
        assert!(world.server.counts().handshakes <= limits.handshakes_per_host_max + 1);
        assert!(world.turn(&mut honest, host(1)), "it is not forgotten");
    }
    assert_eq!(*honest.state(), SessionState::Established);
    // Many hosts.
    for number in 2..2 + 2 * limits.handshakes_max as u32 {
        world.begin_handshake(host(number));
        assert!(world.server.counts().handshakes <= limits.handshakes_max);
    }
    let each = (allocations::bytes_held() - before) / limits.handshakes_max as i64;
    println!("{each} bytes a handshake");
    assert!(each <= HANDSHAKE_BYTES_MAX, "{each} bytes a handshake");
    world.pass(limits.handshake_max);
    let counts = world.server.counts();
    assert_eq!((counts.handshakes, counts.sessions), (0, 1), "the honest one is still there");
    assert!(counts.evicted as usize > limits.handshakes_max, "others made room: {counts:?}");
}

#[test]
fn above_the_bound_the_session_that_was_silent_longest_makes_room_and_all_others_go_on() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let limits = SessionLimits { sessions_max: CLIENTS as usize, ..SessionLimits::default() };
    let mut world = World::new(limits);
    let mut clients: Vec<ClientSession> = (0..CLIENTS).map(|number| world.establish(host(number))).collect();
    // The second is the oldest then.
    world.now += Duration::from_secs(1);
    clients[0].send(world.now, b"here");
    world.turn(&mut clients[0], host(0));
    let mut one_more = world.establish(host(CLIENTS));
    let counts = world.server.counts();
    assert_eq!((counts.sessions, counts.evicted), (CLIENTS as usize, 1));
    world.heard = 0;
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(world.now, b"still here");
        world.turn(client, host(number as u32));
        assert_eq!(world.heard, number + usize::from(number == 0), "client {number}");
    }
    one_more.send(world.now, b"here too");
    world.turn(&mut one_more, host(CLIENTS));
    assert_eq!(world.heard, CLIENTS as usize);
    // The one that made room gets a session again, in place of another one.
    let mut again = world.establish(host(1));
    again.send(world.now, b"back");
    world.turn(&mut again, host(1));
    assert_eq!((world.heard, world.server.counts().sessions), (CLIENTS as usize + 1, CLIENTS as usize));
}
