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
/// Requests for the same resource at the same time become one, unless they may pass different numbers of proxies: one of
/// them may then be the other, that came back in a loop, and would wait for its own answer (RFC 8768).
#[derive(Debug)]
pub struct NetworkStore<W> {
    bytes_max: usize,
    bytes: usize,
    entries: BTreeMap<RemoteKey, Entry>,
    /// The keys by the time of their last use, oldest first.
    used: BTreeMap<u64, RemoteKey>,
    uses: u64,
    flights: BTreeMap<FlightId, Flight<W>>,
    /// Bytes of what the flights validate.
    validated_bytes: usize,
    /// The flights that newcomers may join.
    current: BTreeMap<FlightKey, FlightId>,
    next_flight: u64,
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

/// A request that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlightId(u64);

/// What is asked for, and the Hop-Limit of the request if it has one.
type FlightKey = (RemoteKey, Option<u8>);

#[derive(Debug)]
struct Flight<W> {
    place: FlightKey,
    waiters: Vec<W>,
    /// What its tag is of, which may leave the store meanwhile.
    validates: Option<Validated>,
}

type Validated = (ResourceRepresentation, ETag);

/// A representation, and the tag that the other gave it.
pub type Tagged = (ResourceRepresentation, Option<ETag>);

/// The outcome of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum RemoteAsked {
    /// It is answered from the store.
    Known(Tagged),
    /// It waits for a request that is under way.
    Joined,
    /// It waits for a request that the caller must send now.
    Begin {
        /// For [`NetworkStore::handle_answer`].
        flight: FlightId,
        /// The request's tag, if it has one.
        etag: Option<ETag>,
    },
    /// Too much is under way.
    Refused,
}

/// The effects of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct RemoteAnswer<W> {
    /// The answered waiters.
    pub waiters: Vec<W>,
    /// With what.
    pub outcome: Result<Tagged, ResourceError>,
}

impl<W> NetworkStore<W> {
    /// An empty store; `bytes_max` bounds its content, names and an overhead of 256 bytes each included. Requests under way hold
    /// as much again at most of what they ask to be confirmed.
    pub fn new(bytes_max: usize) -> NetworkStore<W> {
        NetworkStore {
            bytes_max,
            bytes: 0,
            entries: BTreeMap::new(),
            used: BTreeMap::new(),
            uses: 0,
            flights: BTreeMap::new(),
            validated_bytes: 0,
            current: BTreeMap::new(),
            next_flight: 0,
            counters: NetworkStoreCounters::default(),
        }
    }

    /// Handles a request for a resource. `waiter` makes the receiver of a later answer; it is called only if the request has to wait.
    pub fn handle_request(&mut self, now: Instant, key: &RemoteKey, waiter: impl FnOnce() -> W) -> RemoteAsked {
        self.handle_relayed(now, key, None, waiter)
    }

    /// The same for a request of a client behind this one, which goes on with `hops` as its Hop-Limit (RFC 8768).
    pub fn handle_relayed(
        &mut self,
        now: Instant,
        key: &RemoteKey,
        hops: Option<u8>,
        waiter: impl FnOnce() -> W,
    ) -> RemoteAsked {
        if let Some(known) = self.fresh(now, key) {
            self.counters.hits += 1;
            return RemoteAsked::Known(known);
        }
        let place = (key.clone(), hops);
        let current = self.current.get(&place);
        if let Some(flight) = current.and_then(|id| self.flights.get_mut(id)) {
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
        let flight = FlightId(self.next_flight);
        self.next_flight += 1;
        let validates = self.validates(key);
        self.validated_bytes += validated_bytes(key, &validates);
        let etag = validates.as_ref().map(|(_, etag)| *etag);
        self.flights.insert(flight, Flight { place: place.clone(), waiters: vec![waiter()], validates });
        self.current.insert(place, flight);
        self.counters.requests += 1;
        RemoteAsked::Begin { flight, etag }
    }

    /// A request has ended; the outcome answers all its waiters.
    pub fn handle_answer(
        &mut self,
        now: Instant,
        flight: FlightId,
        outcome: Result<Fetched, ResourceError>,
    ) -> RemoteAnswer<W> {
        let Some(Flight { place, waiters, validates }) = self.flights.remove(&flight) else {
            let outcome = Err(ResourceError::BadAnswer("the request has ended before".to_owned()));
            return RemoteAnswer { waiters: Vec::new(), outcome };
        };
        let key = &place.0;
        self.validated_bytes -= validated_bytes(key, &validates);
        let outcome = match (outcome, validates) {
            (Ok(Fetched::Content(representation, etag)), _) => Ok((representation, etag)),
            (Ok(Fetched::Valid(max_age, options)), Some((mut representation, etag))) => {
                self.counters.validated += 1;
                representation.max_age = max_age;
                representation.options.retain(|(number, _)| options.iter().all(|(new, _)| new != number));
                representation.options.extend(options);
                representation.options.sort_by_key(|(number, _)| *number);
                Ok((representation, Some(etag)))
            }
            (Ok(Fetched::Valid(..)), None) => {
                let reason = format!("{} confirms what it was not asked to", key.name.thing);
                Err(ResourceError::BadAnswer(reason))
            }
            (Err(error), _) => Err(error),
        };
        // The resource may have been told something meanwhile: then the answer may be old.
        if self.current.get(&place) == Some(&flight) {
            self.current.remove(&place);
            if let Ok((representation, etag)) = &outcome {
                self.store(now, key, representation.clone(), *etag);
            }
        }
        RemoteAnswer { waiters, outcome }
    }

    /// A notification of an observed resource came. When it tells another state than the store has, the other formats of the resource
    /// are stale, and so are answers that are under way.
    pub fn handle_notification(
        &mut self,
        now: Instant,
        key: &RemoteKey,
        content: ResourceRepresentation,
        etag: Option<ETag>,
    ) {
        let has = |entry: &Entry| {
            let known = &entry.representation;
            known.payload == content.payload && known.content_format == content.content_format
        };
        if !self.entries.get(key).is_some_and(has) {
            self.handle_action(&key.name);
        }
        self.store(now, key, content, etag);
    }

    /// The resource was written: its stored representations are stale, and so are answers that are under way (RFC 7252 §5.6).
    /// So are those of its queries.
    pub fn handle_action(&mut self, name: &RemoteName) {
        let query = RemoteName { path: format!("{}?", name.path), ..name.clone() };
        self.outdate(name, |other| other == name);
        self.outdate(&query, |other| other.thing == query.thing && other.path.starts_with(&query.path));
    }

    /// Forgets the names from `first` on that are `meant`, which follow each other.
    fn outdate(&mut self, first: &RemoteName, meant: impl Fn(&RemoteName) -> bool) {
        let first = RemoteKey { name: first.clone(), accept: None };
        let under_way = self.current.range((first.clone(), None)..).map(|(place, _)| place);
        let under_way: Vec<FlightKey> = under_way.take_while(|(key, _)| meant(&key.name)).cloned().collect();
        under_way.iter().for_each(|place| _ = self.current.remove(place));
        let old = self.entries.range(first..).map(|(key, _)| key);
        let old: Vec<RemoteKey> = old.take_while(|key| meant(&key.name)).cloned().collect();
        old.iter().for_each(|key| self.forget(key));
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
    fn fresh(&mut self, now: Instant, key: &RemoteKey) -> Option<Tagged> {
        let entry = self.entries.get_mut(key)?;
        // Stale ones that are being requested stay as well: their tag may save a transfer.
        self.used.remove(&entry.used);
        self.uses += 1;
        entry.used = self.uses;
        self.used.insert(self.uses, key.clone());
        let max_age = entry.fresh_until.since(now);
        let known = || (ResourceRepresentation { max_age, ..entry.representation.clone() }, entry.etag);
        (!max_age.is_zero()).then(known)
    }

    /// What a new flight may ask to be confirmed; nothing where the flights hold too much already.
    fn validates(&self, key: &RemoteKey) -> Option<Validated> {
        let entry = self.entries.get(key)?;
        let etag = entry.etag?;
        let bytes = self.validated_bytes + entry_bytes(key, &entry.representation);
        (bytes <= self.bytes_max).then(|| (entry.representation.clone(), etag))
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

fn validated_bytes(key: &RemoteKey, validates: &Option<Validated>) -> usize {
    validates.as_ref().map_or(0, |(representation, _)| entry_bytes(key, representation))
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
        let (flight, _) = begun(store.handle_request(at(now), &key(path), || 0));
        store.handle_answer(at(now), flight, Ok(Fetched::Content(answer, tag())));
    }

    #[track_caller]
    fn begun(asked: RemoteAsked) -> (FlightId, Option<ETag>) {
        match asked {
            RemoteAsked::Begin { flight, etag } => (flight, etag),
            other => panic!("a request should begin: {other:?}"),
        }
    }

    #[test]
    fn one_request_answers_all_who_ask_at_the_same_time() {
        let mut store = NetworkStore::new(10_000);
        let (flight, etag) = begun(store.handle_request(at(0), &key("a"), || 0));
        assert_eq!(etag, None);
        for waiter in 1..100 {
            assert_eq!(store.handle_request(at(0), &key("a"), || waiter), RemoteAsked::Joined);
        }
        begun(store.handle_request(at(0), &key("b"), || 100));
        let failed = ResourceError::NoAnswer("x".to_owned());
        let answer = store.handle_answer(at(1), flight, Err(failed.clone()));
        assert_eq!(answer, RemoteAnswer { waiters: (0..100).collect(), outcome: Err(failed) });
        // A failure is not kept.
        begun(store.handle_request(at(1), &key("a"), || 0));
    }

    #[test]
    fn a_request_that_may_be_another_in_a_loop_does_not_wait_for_it() {
        let mut store = NetworkStore::new(10_000);
        let ask = |store: &mut NetworkStore<u32>, hops: Option<u8>, waiter: u32| {
            store.handle_relayed(at(0), &key("a"), hops, || waiter)
        };
        let (first, _) = begun(ask(&mut store, Some(15), 0));
        assert_eq!(ask(&mut store, Some(15), 1), RemoteAsked::Joined);
        let (second, _) = begun(ask(&mut store, Some(13), 2));
        begun(ask(&mut store, None, 3));
        store.handle_action(&key("a").name);
        let (new, _) = begun(ask(&mut store, Some(15), 4));
        let answer = |text: &str| Ok(Fetched::Content(content(text, 60), None));
        assert_eq!(store.handle_answer(at(0), second, answer("old")).waiters, [2]);
        assert_eq!(store.handle_answer(at(0), first, answer("old")).waiters, [0, 1]);
        assert_eq!(ask(&mut store, Some(15), 5), RemoteAsked::Joined, "no answer from before the action is kept");
        assert_eq!(store.handle_answer(at(0), new, answer("new")).waiters, [4, 5]);
        assert_eq!(ask(&mut store, Some(13), 6), RemoteAsked::Known((content("new", 60), None)));
    }

    #[test]
    fn what_is_fresh_needs_no_request_and_what_is_stale_is_validated() {
        let mut store = NetworkStore::new(10_000);
        fetch(&mut store, 0, "a", content("x", 60));
        assert_eq!(store.handle_request(at(59), &key("a"), || 0), RemoteAsked::Known((content("x", 1), tag())));
        let (flight, etag) = begun(store.handle_request(at(60), &key("a"), || 0));
        assert_eq!(etag, tag());
        let answer = store.handle_answer(at(60), flight, Ok(Fetched::Valid(Duration::from_secs(30), Vec::new())));
        assert_eq!(answer.outcome, Ok((content("x", 30), tag())));
        assert_eq!(store.handle_request(at(89), &key("a"), || 0), RemoteAsked::Known((content("x", 1), tag())));
        let expect = NetworkStoreCounters { hits: 2, joined: 0, requests: 2, validated: 1, evicted: 0 };
        assert_eq!(store.counters(), expect);
    }

    #[test]
    fn a_confirmation_replaces_the_options_that_it_has() {
        let mut store = NetworkStore::new(10_000);
        let option = |number: u16, value: &str| (OptionNumber(number), value.as_bytes().to_vec());
        let options = vec![option(2049, "a"), option(2049, "b"), option(2052, "c")];
        fetch(&mut store, 0, "a", ResourceRepresentation { options, ..content("x", 1) });
        let (flight, _) = begun(store.handle_request(at(1), &key("a"), || 0));
        let confirmed = Fetched::Valid(Duration::from_secs(5), vec![option(2049, "longer"), option(2056, "d")]);
        store.handle_answer(at(1), flight, Ok(confirmed));
        let options = vec![option(2049, "longer"), option(2052, "c"), option(2056, "d")];
        let expect = ResourceRepresentation { options, ..content("x", 5) };
        assert_eq!(store.bytes(), entry_bytes(&key("a"), &expect));
        assert_eq!(store.handle_request(at(1), &key("a"), || 0), RemoteAsked::Known((expect, tag())));
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
        assert_eq!(begun(store.handle_request(at(1), &key("b"), || 0)).1, None, "b has left");
        fetch(&mut store, 1, "e", content(&"x".repeat(3 * one), 60));
        assert_eq!(store.bytes(), 3 * one, "what is larger than the budget is not kept, and drives nobody out");
    }

    #[test]
    fn an_action_makes_old_what_is_known() {
        let mut store = NetworkStore::new(10_000);
        let json = RemoteKey { accept: Some(content_format::JSON), ..key("a") };
        fetch(&mut store, 0, "a", content("x", 60));
        fetch(&mut store, 0, "ab", content("y", 60));
        let (old, _) = begun(store.handle_request(at(0), &json, || 0));
        store.handle_action(&key("a").name);
        // Who asks after the action gets no answer from before it.
        let (new, _) = begun(store.handle_request(at(0), &json, || 1));
        let answer = store.handle_answer(at(1), old, Ok(Fetched::Content(content("old", 60), None)));
        assert_eq!(answer.waiters, [0]);
        assert_eq!(store.handle_request(at(1), &json, || 2), RemoteAsked::Joined);
        let answer = store.handle_answer(at(1), new, Ok(Fetched::Content(content("new", 60), None)));
        assert_eq!(answer.waiters, [1, 2]);
        assert_eq!(store.handle_request(at(1), &json, || 0), RemoteAsked::Known((content("new", 60), None)));
        begun(store.handle_request(at(1), &key("a"), || 0));
        assert!(matches!(store.handle_request(at(1), &key("ab"), || 0), RemoteAsked::Known(_)));
    }

    #[test]
    fn what_is_being_confirmed_costs_as_much_as_the_store_at_most() {
        let one = entry_bytes(&key("a"), &content("x", 1));
        let mut store = NetworkStore::new(2 * one);
        let mut flights = Vec::new();
        for (path, expect) in [("a", tag()), ("b", tag()), ("c", None)] {
            fetch(&mut store, 0, path, content("x", 1));
            let (flight, etag) = begun(store.handle_request(at(1), &key(path), || 0));
            assert_eq!(etag, expect, "{path}");
            flights.push(flight);
        }
        let gone = || Err(ResourceError::NoAnswer(String::new()));
        store.handle_action(&key("a").name);
        store.handle_answer(at(1), flights[0], gone());
        store.handle_answer(at(1), flights[2], gone());
        assert_eq!(begun(store.handle_request(at(1), &key("c"), || 0)).1, tag(), "there is room again");
        let answer = store.handle_answer(at(1), flights[1], Ok(Fetched::Valid(Duration::from_secs(1), Vec::new())));
        assert_eq!(answer.outcome, Ok((content("x", 1), tag())));
    }

    #[test]
    fn a_notification_is_as_good_as_an_answer() {
        let mut store = NetworkStore::<u32>::new(10_000);
        store.handle_notification(at(0), &key("a"), content("x", 5), None);
        assert_eq!(store.handle_request(at(1), &key("a"), || 0), RemoteAsked::Known((content("x", 4), None)));
        store.handle_notification(at(2), &key("a"), content("y", 5), None);
        assert_eq!(store.handle_request(at(2), &key("a"), || 0), RemoteAsked::Known((content("y", 5), None)));
    }

    #[test]
    fn a_notification_makes_old_what_was_asked_before_it_in_any_format() {
        let mut store = NetworkStore::new(10_000);
        let json = RemoteKey { accept: Some(content_format::JSON), ..key("a") };
        let (flight, _) = begun(store.handle_request(at(0), &json, || 0));
        store.handle_answer(at(0), flight, Ok(Fetched::Content(content("old", 60), None)));
        let (late, _) = begun(store.handle_request(at(0), &key("a"), || 1));
        store.handle_notification(at(1), &key("a"), content("new", 60), None);
        let answer = store.handle_answer(at(1), late, Ok(Fetched::Content(content("old", 60), None)));
        assert_eq!(answer.waiters, [1]);
        assert_eq!(store.handle_request(at(1), &key("a"), || 0), RemoteAsked::Known((content("new", 60), None)));
        let (flight, _) = begun(store.handle_request(at(1), &json, || 2));
        store.handle_notification(at(2), &key("a"), content("new", 60), None);
        store.handle_answer(at(2), flight, Ok(Fetched::Content(content("json", 60), None)));
        let known = RemoteAsked::Known((content("json", 60), None));
        assert_eq!(store.handle_request(at(2), &json, || 0), known, "what is told again outdates nothing");
    }

    #[test]
    fn a_confirmation_is_of_what_was_asked_about_whatever_is_in_the_store() {
        let mut store = NetworkStore::new(10_000);
        let valid = || Ok(Fetched::Valid(Duration::from_secs(1), Vec::new()));
        let (flight, _) = begun(store.handle_request(at(0), &key("b"), || 0));
        assert!(matches!(store.handle_answer(at(0), flight, valid()).outcome, Err(ResourceError::BadAnswer(_))));
        fetch(&mut store, 0, "a", content("x", 1));
        let (flight, _) = begun(store.handle_request(at(1), &key("a"), || 0));
        store.handle_action(&key("a").name);
        assert_eq!(store.handle_answer(at(1), flight, valid()).outcome, Ok((content("x", 1), tag())));
        begun(store.handle_request(at(1), &key("a"), || 0));
    }

    #[test]
    fn an_action_outdates_the_queries_of_its_resource_and_no_other() {
        let mut store = NetworkStore::new(10_000);
        let names = ["a", "a/b", "a0", "a?n=1", "a?n=2", "ab?n=1"];
        names.iter().for_each(|name| fetch(&mut store, 0, name, content("old", 60)));
        let (flight, _) = begun(store.handle_request(at(0), &key("a?n=3"), || 0));
        store.handle_action(&key("a").name);
        store.handle_answer(at(0), flight, Ok(Fetched::Content(content("old", 60), None)));
        let mut is_known = |name: &&str| matches!(store.handle_request(at(0), &key(name), || 0), RemoteAsked::Known(_));
        let known: Vec<&str> = names.into_iter().chain(["a?n=3"]).filter(&mut is_known).collect();
        assert_eq!(known, ["a/b", "a0", "ab?n=1"]);
    }
}
