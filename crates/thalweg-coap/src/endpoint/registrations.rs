//! The table of observers, and their places: a part of the peers, shared among hosts.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::observers::Observer;
use super::peer::PeerHost;
use super::slab::Slab;
use crate::message::Token;

/// A registration holds its peer, so observers get at most this part of the places for peers.
const PEERS_PART: usize = 2;
/// Addresses that may be forged get at most this part of them. There the oldest registration makes room.
const UNPROVED_PART: usize = 16;

/// All observers, by resource, by client and by host.
#[derive(Debug)]
pub(super) struct Observers {
    pub observers: Slab<Observer>,
    by_path: HashMap<String, Vec<u64>>,
    by_token: HashMap<(u32, Token), u64>,
    /// Registrations of proved addresses.
    hosts: HashMap<PeerHost, Vec<u64>>,
    /// The same hosts, by the number of their registrations.
    by_count: BTreeSet<(usize, PeerHost)>,
    unproved: Unproved,
    /// Peers that have registrations.
    peers: usize,
    bounds: ObserverBounds,
    /// Observers that are gone while the handler works on a notification to them.
    orphans: usize,
}

/// How many registrations there may be.
#[derive(Clone, Copy, Debug)]
struct ObserverBounds {
    observers: usize,
    peers: usize,
    unproved: usize,
}

/// Registrations of addresses that may be forged, oldest first; those that ended or were proved are passed over.
#[derive(Debug, Default)]
struct Unproved {
    order: VecDeque<u64>,
    count: usize,
}

/// Where an observer stands in the lists that it is in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    of_path: u32,
    /// Among those of its host; `None` as long as its address may be forged.
    of_host: Option<u32>,
}

/// Who wants to observe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Applicant {
    pub host: PeerHost,
    pub is_proved: bool,
    /// Whether its peer has no registration yet.
    pub is_new: bool,
}

/// Whether there is a place for another registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceFate {
    Free,
    /// After this registration ended.
    InPlaceOf(u64),
    Refused,
}

impl Observers {
    pub fn new(observers_max: usize, peers_max: usize) -> Observers {
        let part = |part: usize| peers_max.div_ceil(part);
        let bounds =
            ObserverBounds { observers: observers_max, peers: part(PEERS_PART), unproved: part(UNPROVED_PART) };
        Observers {
            observers: Slab::new(),
            by_path: HashMap::new(),
            by_token: HashMap::new(),
            hosts: HashMap::new(),
            by_count: BTreeSet::new(),
            unproved: Unproved::default(),
            peers: 0,
            bounds,
            orphans: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.observers.len()
    }

    /// Ids of those that observe a path.
    pub fn of_path(&self, path: &str) -> &[u64] {
        self.by_path.get(path).map_or(&[], Vec::as_slice)
    }

    /// The registration that a peer, by its serial number, has under a token.
    pub fn of_token(&self, serial: u32, token: Token) -> Option<u64> {
        self.by_token.get(&(serial, token)).copied()
    }

    /// Whether half of the places for addresses that may be forged are taken: then a registration is worth a proof.
    pub fn wants_proof(&self) -> bool {
        self.unproved.count * 2 >= self.bounds.unproved
    }

    /// Whether another one may register. Those that left during a notification count until the handler has answered, so that
    /// handlers never work on more notifications than there are places.
    ///
    /// A proved address takes the place of one that may be forged, or of a host that has more registrations than its own;
    /// an address that may be forged only that of its like.
    pub fn place(&mut self, applicant: Applicant) -> PlaceFate {
        let Applicant { host, is_proved, is_new } = applicant;
        let is_full =
            self.observers.len() + self.orphans >= self.bounds.observers || (is_new && self.peers >= self.bounds.peers);
        if !is_full && (is_proved || self.unproved.count < self.bounds.unproved) {
            return PlaceFate::Free;
        }
        let heaviest = || {
            let (count, heaviest) = self.by_count.last().filter(|_| is_proved)?;
            let own = self.hosts.get(&host).map_or(0, Vec::len);
            let of_heaviest = self.hosts.get(heaviest).filter(|_| *count > own + 1)?;
            of_heaviest.last().copied()
        };
        let victim = heaviest();
        let victim = self.oldest_unproved().or(victim);
        victim.map_or(PlaceFate::Refused, PlaceFate::InPlaceOf)
    }

    fn oldest_unproved(&mut self) -> Option<u64> {
        while let Some(id) = self.unproved.order.front() {
            if self.observers.get(*id).is_some_and(|observer| observer.standing.of_host.is_none()) {
                return Some(*id);
            }
            self.unproved.order.pop_front();
        }
        None
    }

    /// Takes an observer in; gives its id and how many its path has.
    pub fn insert(&mut self, serial: u32, applicant: Applicant, observer: Observer) -> (u64, usize) {
        let (path, token) = (observer.path().to_owned(), observer.token);
        let id = self.observers.insert(observer);
        self.by_token.insert((serial, token), id);
        self.peers += usize::from(applicant.is_new);
        let of_path = self.by_path.entry(path).or_default();
        of_path.push(id);
        let count = of_path.len();
        let of_host = applicant.is_proved.then(|| self.join_host(applicant.host, id));
        if !applicant.is_proved {
            self.unproved.count += 1;
            self.unproved.order.push_back(id);
            self.forget_passed_over();
        }
        if let Some(observer) = self.observers.get_mut(id) {
            observer.standing = Standing { of_path: count as u32 - 1, of_host };
        }
        (id, count)
    }

    /// The client of a registration is at its address.
    pub fn prove(&mut self, host: PeerHost, id: u64) {
        if self.observers.get(id).is_none_or(|observer| observer.standing.of_host.is_some()) {
            return;
        }
        self.unproved.count -= 1;
        let of_host = self.join_host(host, id);
        if let Some(observer) = self.observers.get_mut(id) {
            observer.standing.of_host = Some(of_host);
        }
    }

    /// Takes an observer out; gives how many the path has left. `is_last` says that its peer has no other.
    pub fn remove(&mut self, serial: u32, host: PeerHost, is_last: bool, id: u64) -> Option<(Observer, usize)> {
        let observer = self.observers.remove(id)?;
        self.by_token.remove(&(serial, observer.token));
        self.peers -= usize::from(is_last);
        self.orphans += usize::from(observer.is_asked());
        match observer.standing.of_host {
            None => self.unproved.count -= 1,
            Some(place) => self.leave_host(host, place),
        }
        let of_path = self.by_path.get_mut(observer.path())?;
        let place = observer.standing.of_path;
        of_path.swap_remove(place as usize);
        let left = of_path.len();
        if let Some(moved) = of_path.get(place as usize).and_then(|moved| self.observers.get_mut(*moved)) {
            moved.standing.of_path = place;
        }
        if left == 0 {
            self.by_path.remove(observer.path());
        }
        Some((observer, left))
    }

    /// The handler answered about an observer that was gone.
    pub fn forget_orphan(&mut self) {
        self.orphans -= 1;
    }

    fn join_host(&mut self, host: PeerHost, id: u64) -> u32 {
        // Most hosts have one.
        let ids = self.hosts.entry(host).or_insert_with(|| Vec::with_capacity(1));
        self.by_count.remove(&(ids.len(), host));
        ids.push(id);
        self.by_count.insert((ids.len(), host));
        ids.len() as u32 - 1
    }

    fn leave_host(&mut self, host: PeerHost, place: u32) {
        let Some(ids) = self.hosts.get_mut(&host) else { return };
        self.by_count.remove(&(ids.len(), host));
        ids.swap_remove(place as usize);
        if let Some(moved) = ids.get(place as usize).and_then(|moved| self.observers.get_mut(*moved)) {
            moved.standing.of_host = Some(place);
        }
        if ids.is_empty() {
            self.hosts.remove(&host);
        } else {
            self.by_count.insert((ids.len(), host));
        }
    }

    /// Keeps the order of the unproved from growing by those that are passed over.
    fn forget_passed_over(&mut self) {
        if self.unproved.order.len() > 2 * self.unproved.count + 16 {
            let is_unproved = |id: &u64| self.observers.get(*id).is_some_and(|one| one.standing.of_host.is_none());
            self.unproved.order.retain(is_unproved);
        }
    }
}
