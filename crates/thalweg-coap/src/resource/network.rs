//! The network store: representations of other things, kept while they are fresh. No clock, no socket.

use std::collections::BTreeMap;
use std::time::Duration;

use thalweg_base::time::Instant;

use crate::message::{ETag, OptionNumber};
use crate::resource::{ResourceError, ResourceRepresentation};

/// A resource of another thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteName {
    /// The other thing: host and port.
    pub thing: String,
    /// Path and query, without the slash in front.
    pub path: String,
}

/// A resource of another thing in one of its formats.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteKey {
    /// The resource.
    pub name: RemoteName,
    /// The requested format; `None` leaves the choice to the other.
    pub accept: Option<u16>,
}

/// The answer of another thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// A representation, perhaps with a tag (2.05).
    Content(ResourceRepresentation, Option<ETag>),
    /// The one that is in the store is still right, for so long (2.03); these options replace its own of the same numbers
    /// (RFC 7252 §5.9.1.3).
    Valid(Duration, Vec<(OptionNumber, Vec<u8>)>),
}

/// Resources of other things within a budget of bytes; the one that was not requested for longest leaves first. `W` is the one that
/// waits for an answer.
///
/// Requests for the same resource at the same time become one.
#[derive(Debug)]
pub struct NetworkStore<W> {
    bytes_max: usize,
    bytes: usize,
    entries: BTreeMap<RemoteKey, Entry>,
    /// The keys by the time of their last use, oldest first.
    used: BTreeMap<u64, RemoteKey>,
    uses: u64,
    flights: BTreeMap<RemoteKey, Flight<W>>,
    counters: NetworkStoreCounters,
}

/// Counts of requests to other things, by the kind of their answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkStoreCounters {
    /// From the store.
    pub hits: u64,
    /// By a request that was under way already.
    pub joined: u64,
    /// By a request of their own.
    pub requests: u64,
    /// Of those, how many found that the store was still right.
    pub validated: u64,
    /// Representations that left for want of room.
    pub evicted: u64,
}

#[derive(Debug)]
struct Entry {
    representation: ResourceRepresentation,
    etag: Option<ETag>,
    fresh_until: Instant,
    used: u64,
}

#[derive(Debug)]
struct Flight<W> {
    waiters: Vec<W>,
    /// The resource was told something meanwhile, so that the answer may be old.
    outdated: bool,
}

/// The outcome of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum RemoteAsked {
    /// It is answered from the store.
    Known(ResourceRepresentation),
    /// It waits for a request that is under way.
    Joined,
    /// It waits for a request that the caller must send now, with this tag if there is one.
    Begin(Option<ETag>),
    /// Too much is under way.
    Refused,
}

/// The effects of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct RemoteAnswer<W> {
    /// The answered waiters.
    pub waiters: Vec<W>,
    /// With what.
    pub outcome: Result<ResourceRepresentation, ResourceError>,
}

impl<W> NetworkStore<W> {
    /// An empty store; `bytes_max` bounds its content, names and an overhead of 256 bytes each included.
    pub fn new(bytes_max: usize) -> NetworkStore<W> {
        NetworkStore {
            bytes_max,
            bytes: 0,
            entries: BTreeMap::new(),
            used: BTreeMap::new(),
            uses: 0,
            flights: BTreeMap::new(),
            counters: NetworkStoreCounters::default(),
        }
    }

    /// Handles a request for a resource. `waiter` makes the receiver of a later answer; it is called only if the request has to wait.
    pub fn handle_request(&mut self, now: Instant, key: &RemoteKey, waiter: impl FnOnce() -> W) -> RemoteAsked {
        if let Some(representation) = self.fresh(now, key) {
            self.counters.hits += 1;
            return RemoteAsked::Known(representation);
        }
        if let Some(flight) = self.flights.get_mut(key) {
            if flight.waiters.len() >= WAITERS_MAX {
                return RemoteAsked::Refused;
            }
            flight.waiters.push(waiter());
            self.counters.joined += 1;
            return RemoteAsked::Joined;
        }
        if self.flights.len() >= FLIGHTS_MAX {
            return RemoteAsked::Refused;
        }
        self.flights.insert(key.clone(), Flight { waiters: vec![waiter()], outdated: false });
        self.counters.requests += 1;
        RemoteAsked::Begin(self.entries.get(key).and_then(|entry| entry.etag))
    }

    /// The request for a resource has ended; the outcome answers all waiters.
    pub fn handle_answer(
        &mut self,
        now: Instant,
        key: &RemoteKey,
        outcome: Result<Fetched, ResourceError>,
    ) -> RemoteAnswer<W> {
        let Flight { waiters, outdated } =
            self.flights.remove(key).unwrap_or(Flight { waiters: Vec::new(), outdated: false });
        let outcome = match outcome {
            Ok(Fetched::Content(representation, etag)) => {
                if !outdated {
                    self.store(now, key, representation.clone(), etag);
                }
                Ok(representation)
            }
            Ok(Fetched::Valid(max_age, options)) => match self.entries.get(key) {
                Some(entry) => {
                    self.counters.validated += 1;
                    let (mut representation, etag) = (entry.representation.clone(), entry.etag);
                    representation.max_age = max_age;
                    representation.options.retain(|(number, _)| options.iter().all(|(new, _)| new != number));
                    representation.options.extend(options);
                    representation.options.sort_by_key(|(number, _)| *number);
                    self.store(now, key, representation.clone(), etag);
                    Ok(representation)
                }
                None => {
                    let reason = format!("{} confirms what is not in the store any more; ask again", key.name.thing);
                    Err(ResourceError::BadAnswer(reason))
                }
            },
            Err(error) => Err(error),
        };
        RemoteAnswer { waiters, outcome }
    }

    /// A notification of an observed resource came.
    pub fn handle_notification(
        &mut self,
        now: Instant,
        key: &RemoteKey,
        content: ResourceRepresentation,
        etag: Option<ETag>,
    ) {
        self.store(now, key, content, etag);
    }

    /// The resource was written: its stored representations are stale (RFC 7252 §5.6).
    pub fn handle_action(&mut self, name: &RemoteName) {
        let first = RemoteKey { name: name.clone(), accept: None };
        for (_, flight) in self.flights.range_mut(first.clone()..).take_while(|(key, _)| key.name == *name) {
            flight.outdated = true;
        }
        let old: Vec<RemoteKey> =
            self.entries.range(first..).map(|(key, _)| key).take_while(|key| key.name == *name).cloned().collect();
        old.iter().for_each(|key| self.forget(key));
    }

    /// The tag of a stored representation.
    pub fn etag(&self, key: &RemoteKey) -> Option<ETag> {
        self.entries.get(key).and_then(|entry| entry.etag)
    }

    /// Counts of requests, by the kind of their answer.
    pub fn counters(&self) -> NetworkStoreCounters {
        self.counters
    }

    /// Bytes that it keeps.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// A representation that needs no question, with the rest of its time.
    fn fresh(&mut self, now: Instant, key: &RemoteKey) -> Option<ResourceRepresentation> {
        let entry = self.entries.get_mut(key)?;
        // Stale ones that are being requested stay as well: their tag may save a transfer.
        self.used.remove(&entry.used);
        self.uses += 1;
        entry.used = self.uses;
        self.used.insert(self.uses, key.clone());
        let max_age = entry.fresh_until.since(now);
        (!max_age.is_zero()).then(|| ResourceRepresentation { max_age, ..entry.representation.clone() })
    }

    fn store(&mut self, now: Instant, key: &RemoteKey, representation: ResourceRepresentation, etag: Option<ETag>) {
        self.forget(key);
        let bytes = entry_bytes(key, &representation);
        if bytes > self.bytes_max {
            return;
        }
        while self.bytes + bytes > self.bytes_max {
            let Some(oldest) = self.used.values().next().cloned() else { break };
            self.forget(&oldest);
            self.counters.evicted += 1;
        }
        self.uses += 1;
        self.used.insert(self.uses, key.clone());
        self.bytes += bytes;
        let fresh_until = now + representation.max_age;
        self.entries.insert(key.clone(), Entry { representation, etag, fresh_until, used: self.uses });
    }

    fn forget(&mut self, key: &RemoteKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.used.remove(&entry.used);
            self.bytes -= entry_bytes(key, &entry.representation);
        }
    }
}

fn entry_bytes(key: &RemoteKey, representation: &ResourceRepresentation) -> usize {
    // The key is kept twice.
    let options: usize = representation.options.iter().map(|(_, value)| OPTION_BYTES + value.len()).sum();
    ENTRY_BYTES + 2 * (key.name.thing.len() + key.name.path.len()) + representation.payload.len() + options
}

/// Bytes of an entry besides its names and payload, counted generously.
const ENTRY_BYTES: usize = 256;
/// Bytes of an option besides its value.
const OPTION_BYTES: usize = 64;
/// Most requests that may wait for one answer.
const WAITERS_MAX: usize = 65_536;
/// Most resources that may be requested at once.
const FLIGHTS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::content_format;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn key(path: &str) -> RemoteKey {
        let name = RemoteName { thing: "h:5683".to_owned(), path: path.to_owned() };
        RemoteKey { name, accept: None }
    }

    fn content(text: &str, max_age: u64) -> ResourceRepresentation {
        let payload = text.as_bytes().to_vec();
        ResourceRepresentation::new(content_format::TEXT, payload, Duration::from_secs(max_age))
    }

    fn tag() -> Option<ETag> {
        ETag::new(&[7])
    }

    /// Asks and answers at once.
    fn fetch(store: &mut NetworkStore<u32>, now: u64, path: &str, answer: ResourceRepresentation) {
        let asked = store.handle_request(at(now), &key(path), || 0);
        assert!(matches!(asked, RemoteAsked::Begin(_)), "{asked:?}");
        store.handle_answer(at(now), &key(path), Ok(Fetched::Content(answer, tag())));
    }

    #[test]
    fn one_request_answers_all_who_ask_at_the_same_time() {
        let mut store = NetworkStore::new(10_000);
        assert_eq!(store.handle_request(at(0), &key("a"), || 0), RemoteAsked::Begin(None));
        for waiter in 1..100 {
            assert_eq!(store.handle_request(at(0), &key("a"), || waiter), RemoteAsked::Joined);
        }
        assert_eq!(store.handle_request(at(0), &key("b"), || 100), RemoteAsked::Begin(None), "another resource");
        let failed = ResourceError::NoAnswer("x".to_owned());
        let answer = store.handle_answer(at(1), &key("a"), Err(failed.clone()));
        assert_eq!(answer, RemoteAnswer { waiters: (0..100).collect(), outcome: Err(failed) });
        assert_eq!(store.handle_request(at(1), &key("a"), || 0), RemoteAsked::Begin(None), "a failure is not kept");
    }

    #[test]
    fn what_is_fresh_needs_no_request_and_what_is_stale_is_validated() {
        let mut store = NetworkStore::new(10_000);
        fetch(&mut store, 0, "a", content("x", 60));
        assert_eq!(store.handle_request(at(59), &key("a"), || 0), RemoteAsked::Known(content("x", 1)));
        assert_eq!(store.handle_request(at(60), &key("a"), || 0), RemoteAsked::Begin(tag()));
        let answer = store.handle_answer(at(60), &key("a"), Ok(Fetched::Valid(Duration::from_secs(30), Vec::new())));
        assert_eq!(answer.outcome, Ok(content("x", 30)));
        assert_eq!(store.handle_request(at(89), &key("a"), || 0), RemoteAsked::Known(content("x", 1)));
        let expect = NetworkStoreCounters { hits: 2, joined: 0, requests: 2, validated: 1, evicted: 0 };
        assert_eq!(store.counters(), expect);
    }

    #[test]
    fn a_confirmation_replaces_the_options_that_it_has() {
        let mut store = NetworkStore::new(10_000);
        let option = |number: u16, value: &str| (OptionNumber(number), value.as_bytes().to_vec());
        let options = vec![option(2049, "a"), option(2049, "b"), option(2052, "c")];
        fetch(&mut store, 0, "a", ResourceRepresentation { options, ..content("x", 1) });
        assert_eq!(store.handle_request(at(1), &key("a"), || 0), RemoteAsked::Begin(tag()));
        let confirmed = Fetched::Valid(Duration::from_secs(5), vec![option(2049, "longer"), option(2056, "d")]);
        store.handle_answer(at(1), &key("a"), Ok(confirmed));
        let options = vec![option(2049, "longer"), option(2052, "c"), option(2056, "d")];
        let expect = ResourceRepresentation { options, ..content("x", 5) };
        assert_eq!(store.bytes(), entry_bytes(&key("a"), &expect));
        assert_eq!(store.handle_request(at(1), &key("a"), || 0), RemoteAsked::Known(expect));
    }

    #[test]
    fn the_budget_holds_and_the_longest_unused_leaves() {
        let one = entry_bytes(&key("a"), &content("x", 60));
        let mut store = NetworkStore::new(3 * one);
        for path in ["a", "b", "c"] {
            fetch(&mut store, 0, path, content("x", 60));
        }
        assert_eq!(store.bytes(), 3 * one);
        assert!(matches!(store.handle_request(at(1), &key("a"), || 0), RemoteAsked::Known(_)));
        fetch(&mut store, 1, "d", content("x", 60));
        assert_eq!((store.bytes(), store.counters().evicted), (3 * one, 1));
        assert!(matches!(store.handle_request(at(1), &key("a"), || 0), RemoteAsked::Known(_)));
        assert!(matches!(store.handle_request(at(1), &key("b"), || 0), RemoteAsked::Begin(None)), "b has left");
        fetch(&mut store, 1, "e", content(&"x".repeat(3 * one), 60));
        assert_eq!(store.bytes(), 3 * one, "what is larger than the budget is not kept, and drives nobody out");
    }

    #[test]
    fn an_action_makes_old_what_is_known() {
        let mut store = NetworkStore::new(10_000);
        let json = RemoteKey { accept: Some(content_format::JSON), ..key("a") };
        fetch(&mut store, 0, "a", content("x", 60));
        fetch(&mut store, 0, "ab", content("y", 60));
        assert_eq!(store.handle_request(at(0), &json, || 0), RemoteAsked::Begin(None));
        store.handle_action(&key("a").name);
        store.handle_answer(at(1), &json, Ok(Fetched::Content(content("old", 60), None)));
        assert_eq!(store.handle_request(at(1), &json, || 0), RemoteAsked::Begin(None));
        assert_eq!(store.handle_request(at(1), &key("a"), || 0), RemoteAsked::Begin(None));
        assert!(matches!(store.handle_request(at(1), &key("ab"), || 0), RemoteAsked::Known(_)));
    }

    #[test]
    fn a_notification_is_as_good_as_an_answer() {
        let mut store = NetworkStore::<u32>::new(10_000);
        store.handle_notification(at(0), &key("a"), content("x", 5), None);
        assert_eq!(store.handle_request(at(1), &key("a"), || 0), RemoteAsked::Known(content("x", 4)));
        store.handle_notification(at(2), &key("a"), content("y", 5), None);
        assert_eq!(store.handle_request(at(2), &key("a"), || 0), RemoteAsked::Known(content("y", 5)));
    }

    #[test]
    fn a_confirmation_of_what_has_left_is_an_error() {
        let mut store = NetworkStore::new(10_000);
        store.handle_request(at(0), &key("a"), || 0);
        let answer = store.handle_answer(at(0), &key("a"), Ok(Fetched::Valid(Duration::from_secs(1), Vec::new())));
        assert!(matches!(answer.outcome, Err(ResourceError::BadAnswer(_))));
    }
}
