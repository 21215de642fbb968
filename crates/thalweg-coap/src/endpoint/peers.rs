//! State of each peer; a bounded number of peers, found and forgotten at a constant cost.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

use thalweg_base::rng::Rng;
use thalweg_base::time::Instant;

use super::Peer;
use super::ids::{MessageIds, seconds};
use super::probing::Silence;
use super::secret::TableState;
use super::seen::Seen;

const NONE: u32 = u32::MAX;
/// Slots of an endpoint with few peers.
const SLOTS_MIN: usize = 16;

/// One peer.
#[derive(Debug)]
pub struct PeerState {
    pub peer: Peer,
    /// Never given twice, unlike the place.
    pub serial: u32,
    pub ids: MessageIds,
    pub seen: Seen,
    /// Whether the peer has proved its address.
    pub verified: bool,
    /// Acknowledgements of what it was not sent, lately.
    pub guesses: Guesses,
    /// Requests of the peer that handlers work on.
    pub exchanges: usize,
    /// Names the peer in the keys of answers; `None` until one is needed.
    pub answer_seed: Option<u64>,
    /// Registrations of the peer.
    pub observers: u32,
    /// `None` for a peer that was never asked anything.
    requests: Option<Box<RequestQueue>>,
    links: Links,
}

impl PeerState {
    /// State of this endpoint's own requests to the peer; `None` for one that was never asked anything.
    pub fn requests(&self) -> Option<&RequestQueue> {
        self.requests.as_deref()
    }

    /// The same for a peer that is asked now.
    pub fn requests_mut(&mut self) -> &mut RequestQueue {
        self.requests.get_or_insert_with(Box::default)
    }

    /// The next request that waits for its turn.
    pub fn take_waiting(&mut self) -> Option<u64> {
        self.requests.as_mut()?.waiting.pop_front()
    }

    /// The peer was heard.
    pub fn end_silence(&mut self) {
        if let Some(requests) = &mut self.requests {
            requests.silence.end();
        }
    }
}

/// Acknowledgements of what a peer was not sent: a client sends next to none, and whoever guesses a message ID thousands. Others may send
/// them in its name, so that they are forgotten after some time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Guesses {
    count: u8,
    /// The second in which they began to be counted.
    since: u32,
}

impl Guesses {
    /// Beyond so many an acknowledgement that is right may be a guess.
    const MAX: u8 = 8;
    /// For how long they count, in seconds.
    const PERIOD: u32 = 128;

    /// One that was wrong came.
    pub fn note(&mut self, now: Instant) {
        if seconds(now).saturating_sub(self.since) >= Guesses::PERIOD {
            *self = Guesses { count: 0, since: seconds(now) };
        }
        self.count = self.count.saturating_add(1);
    }

    /// Whether one that is right is hardly a guess.
    pub fn are_few(self, now: Instant) -> bool {
        self.count <= Guesses::MAX || seconds(now).saturating_sub(self.since) >= Guesses::PERIOD
    }
}

/// State of this endpoint's own requests to the peer.
#[derive(Debug, Default)]
pub struct RequestQueue {
    /// Number of messages that wait for an acknowledgement.
    pub in_flight: u16,
    /// Those that wait for their turn.
    pub waiting: VecDeque<u64>,
    /// The peer asked for a pause until then.
    pub paused_until: Instant,
    /// Bytes sent to it without an answer.
    pub silence: Silence,
}

/// Number of holders of the peer, and its place among those that may be forgotten and in the list of its slot.
#[derive(Debug)]
struct Links {
    pins: u32,
    previous: u32,
    next: u32,
    /// The next peer whose address leads to the same slot.
    same_slot: u32,
}

/// All peers, by address.
#[derive(Debug)]
pub struct Peers {
    places: Vec<PeerState>,
    slots: Slots,
    /// The ends of the list of peers that nothing holds: used last, and silent longest.
    newest: u32,
    oldest: u32,
    serial: u32,
    peers_max: usize,
    /// Peers that something holds.
    held: usize,
}

/// The peers by address: lists that go through the peers themselves, so that a peer costs four bytes here and not a second copy of
/// its address. As many slots as a power of two, and at least as many as peers.
#[derive(Debug)]
struct Slots {
    table: TableState,
    heads: Vec<u32>,
}

impl Slots {
    #[inline]
    fn of(&self, key: Key) -> usize {
        self.table.hash_one(key) as usize & (self.heads.len() - 1)
    }
}

/// An address in a form that is quick to hash and compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    high: u64,
    low: u64,
    port: u64,
    /// The link of an address that is unique on its link alone (RFC 4007).
    zone: u32,
    local: Option<IpAddr>,
}

impl Key {
    #[inline]
    fn new(peer: Peer) -> Key {
        // Session and family have bits of their own behind the port's.
        let port = u64::from(peer.address.port()) | u64::from(peer.session) << 17;
        let local = peer.local;
        match peer.address {
            SocketAddr::V4(v4) => Key { high: 0, low: u64::from(v4.ip().to_bits()), port, zone: 0, local },
            SocketAddr::V6(v6) => {
                let bits = v6.ip().to_bits();
                let zone = if v6.ip().is_unicast_link_local() { v6.scope_id() } else { 0 };
                Key { high: (bits >> 64) as u64, low: bits as u64, port: port | 1 << 16, zone, local }
            }
        }
    }
}

impl Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Parts that a sender chooses would cancel each other in one word, whatever the key of the table is.
        state.write_u64(self.high);
        state.write_u64(self.low);
        state.write_u64(self.port);
        if self.zone != 0 {
            state.write_u64(u64::from(self.zone));
        }
        match self.local {
            None => {}
            Some(IpAddr::V4(ip)) => state.write_u64(u64::from(ip.to_bits())),
            Some(IpAddr::V6(ip)) => {
                state.write_u64((ip.to_bits() >> 64) as u64);
                state.write_u64(ip.to_bits() as u64);
            }
        }
    }
}

impl Peers {
    pub fn new(peers_max: usize, table: TableState) -> Peers {
        let slots = Slots { table, heads: vec![NONE; SLOTS_MIN] };
        Peers { places: Vec::new(), slots, newest: NONE, oldest: NONE, serial: 0, peers_max: peers_max.max(1), held: 0 }
    }

    /// Number of peers.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The place of a peer, held until [`Peers::release`]. A new peer takes a free place, or that of the one that was
    /// silent longest; `None` when all are held.
    #[inline]
    pub fn hold(&mut self, peer: Peer, rng: &mut Rng) -> Option<u32> {
        let key = Key::new(peer);
        let place = match self.find(key) {
            Some(place) => place,
            None => self.admit(peer, key, rng)?,
        };
        if self.places[place as usize].links.pins == 0 {
            self.unlink(place);
            self.held += 1;
        }
        self.places[place as usize].links.pins += 1;
        Some(place)
    }

    /// Holds a peer that is held already once more.
    pub fn hold_again(&mut self, place: u32) {
        self.places[place as usize].links.pins += 1;
    }

    /// Ends one hold; a peer that nothing holds may be forgotten.
    #[inline]
    pub fn release(&mut self, place: u32) {
        let links = &mut self.places[place as usize].links;
        links.pins -= 1;
        if links.pins == 0 {
            self.held -= 1;
            self.link(place);
        }
    }

    /// Whether a peer, which one thing holds now, may go on being held for longer than it takes to answer: newcomers always
    /// find a quarter of the places free, or at least an eighth that only peers at proved addresses get below.
    pub fn may_stay(&self, place: u32) -> bool {
        let state = self.get(place);
        let kept_free = self.peers_max / if state.verified { 8 } else { 4 };
        state.links.pins > 1 || self.held <= self.peers_max - kept_free
    }

    pub fn get(&self, place: u32) -> &PeerState {
        &self.places[place as usize]
    }

    pub fn get_mut(&mut self, place: u32) -> &mut PeerState {
        &mut self.places[place as usize]
    }

    #[cold]
    fn admit(&mut self, peer: Peer, key: Key, rng: &mut Rng) -> Option<u32> {
        self.serial = self.serial.wrapping_add(1);
        let mut state = PeerState {
            peer,
            serial: self.serial,
            ids: MessageIds::new(rng.next_u64() as u16),
            seen: Seen::default(),
            // A handshake has proved the address; those of loopback cannot be forged from outside (RFC 1122 §3.2.1.3).
            verified: peer.session != 0 || peer.address.ip().to_canonical().is_loopback(),
            guesses: Guesses::default(),
            exchanges: 0,
            answer_seed: None,
            observers: 0,
            requests: None,
            links: Links { pins: 0, previous: NONE, next: NONE, same_slot: NONE },
        };
        let place = if self.places.len() < self.peers_max {
            self.places.push(state);
            (self.places.len() - 1) as u32
        } else {
            let place = self.oldest;
            let old = self.places.get_mut(place as usize)?;
            // The buffers go to the new peer: a flood of addresses allocates nothing.
            std::mem::swap(&mut state.seen, &mut old.seen);
            state.seen.clear();
            self.leave_slot(place);
            self.unlink(place);
            self.places[place as usize] = state;
            place
        };
        self.link(place);
        self.enter_slot(place, key);
        Some(place)
    }

    #[inline]
    fn find(&self, key: Key) -> Option<u32> {
        let mut place = self.slots.heads[self.slots.of(key)];
        while let Some(state) = self.places.get(place as usize) {
            if Key::new(state.peer) == key {
                return Some(place);
            }
            place = state.links.same_slot;
        }
        None
    }

    /// Makes the peer at a place findable; where peers have become more than slots, all of them anew.
    fn enter_slot(&mut self, place: u32, key: Key) {
        if self.places.len() <= self.slots.heads.len() {
            let slot = self.slots.of(key);
            self.places[place as usize].links.same_slot = std::mem::replace(&mut self.slots.heads[slot], place);
            return;
        }
        self.slots.heads = vec![NONE; self.slots.heads.len() * 2];
        for (place, state) in self.places.iter_mut().enumerate() {
            let slot = self.slots.of(Key::new(state.peer));
            state.links.same_slot = std::mem::replace(&mut self.slots.heads[slot], place as u32);
        }
    }

    fn leave_slot(&mut self, place: u32) {
        let state = &self.places[place as usize];
        let (slot, next) = (self.slots.of(Key::new(state.peer)), state.links.same_slot);
        let mut before = self.slots.heads[slot];
        if before == place {
            self.slots.heads[slot] = next;
            return;
        }
        while let Some(state) = self.places.get_mut(before as usize) {
            if state.links.same_slot == place {
                state.links.same_slot = next;
                return;
            }
            before = state.links.same_slot;
        }
    }

    fn link(&mut self, place: u32) {
        let next = self.newest;
        let links = &mut self.places[place as usize].links;
        links.previous = NONE;
        links.next = next;
        match next {
            NONE => self.oldest = place,
            _ => self.places[next as usize].links.previous = place,
        }
        self.newest = place;
    }

    fn unlink(&mut self, place: u32) {
        let Links { previous, next, .. } = self.places[place as usize].links;
        match previous {
            NONE => self.newest = next,
            _ => self.places[previous as usize].links.next = next,
        }
        match next {
            NONE => self.oldest = previous,
            _ => self.places[next as usize].links.previous = previous,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV6};

    use super::super::secret::EndpointSecret;
    use super::*;

    fn peer(port: u16) -> Peer {
        Peer::from(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    #[test]
    fn the_peer_that_was_silent_longest_makes_room() {
        let mut rng = Rng::new(1);
        let mut peers = Peers::new(3, TableState::new(&EndpointSecret::new([1, 2])));
        let held = peers.hold(peer(1), &mut rng).unwrap();
        let mut visit = |peers: &mut Peers, port| {
            let place = peers.hold(peer(port), &mut rng);
            place.inspect(|place| peers.release(*place)).map(|place| peers.get(place).serial)
        };
        let second = visit(&mut peers, 2);
        let third = visit(&mut peers, 3);
        visit(&mut peers, 1);
        assert_eq!(visit(&mut peers, 2), second, "remembered");
        visit(&mut peers, 4);
        assert_ne!(visit(&mut peers, 3), third, "3 was silent longest and made room for 4");
        assert_ne!(visit(&mut peers, 2), second, "then 2 made room for 3");
        assert_eq!((peers.get(held).peer, peers.len()), (peer(1), 3), "who is held stays");
    }

    #[test]
    fn sources_whose_parts_cancel_each_other_have_hashes_of_their_own() {
        let table = TableState::new(&EndpointSecret::new([1, 2]));
        let hash = |address: u128, port: u16, session: u32, local: Option<u128>| {
            let peer = Peer::from(SocketAddr::from((Ipv6Addr::from_bits(address), port)));
            let local = local.map(|bits| Ipv6Addr::from_bits(bits).into());
            table.hash_one(Key::new(Peer { session, local, ..peer }))
        };
        let network = 0x2001_0db8 << 96 | 1;
        let ports = [1, 2, 3, 0x1001].map(|port| hash(network ^ u128::from(port) << 96, port, 0, None));
        let sessions = [1, 2, 3].map(|session| hash(network ^ u128::from(session) << (96 + 17), 0, session, None));
        let locals = [1, 2, 3].map(|half| hash(network, 1, 0, Some(half << 64 | half)));
        let own = [hash(network, 0, 0, None), hash(network, 1, 0, None), hash(network, 1, 0, Some(0))];
        let hashes: Vec<u64> = ports.into_iter().chain(sessions).chain(locals).chain(own).collect();
        let different: HashSet<u64> = hashes.iter().copied().collect();
        assert_eq!(different.len(), hashes.len(), "{hashes:x?}");
    }

    #[test]
    fn equal_addresses_on_two_links_are_two_peers() {
        let key = |address: &str, zone: u32| {
            Key::new(Peer::from(SocketAddrV6::new(address.parse().expect("an address"), 5683, 0, zone)))
        };
        assert_ne!(key("fe80::1", 2), key("fe80::1", 3));
        assert_eq!(key("fd00::1", 2), key("fd00::1", 0), "who is known everywhere answers from no zone");
    }

    #[test]
    fn every_peer_is_found_again_however_many_come_and_go() {
        let mut rng = Rng::new(1);
        let mut peers = Peers::new(1000, TableState::new(&EndpointSecret::new([1, 2])));
        for port in 0..5000 {
            let place = peers.hold(peer(port), &mut rng).unwrap();
            peers.release(place);
            let first = port.saturating_sub(999);
            // The last thousand are there, each once and at a place of its own; those before are gone.
            if port % 500 == 499 {
                let mut known: Vec<u32> = (first..=port).filter_map(|port| peers.find(Key::new(peer(port)))).collect();
                known.sort_unstable();
                assert!(known.iter().copied().eq(0..=u32::from(port - first)), "{port}: {known:?}");
                assert_eq!((0..first).find_map(|port| peers.find(Key::new(peer(port)))), None);
            }
        }
        assert_eq!(peers.len(), 1000);
    }

    #[test]
    fn nobody_is_admitted_while_all_are_held() {
        let mut rng = Rng::new(1);
        let mut peers = Peers::new(2, TableState::new(&EndpointSecret::new([1, 2])));
        let first = peers.hold(peer(1), &mut rng).unwrap();
        peers.hold_again(first);
        peers.hold(peer(2), &mut rng).unwrap();
        assert_eq!(peers.hold(peer(3), &mut rng), None);
        peers.release(first);
        assert_eq!(peers.hold(peer(3), &mut rng), None, "held twice, released once");
        peers.release(first);
        assert!(peers.hold(peer(3), &mut rng).is_some());
    }
}
