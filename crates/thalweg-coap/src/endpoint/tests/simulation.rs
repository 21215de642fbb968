//! A client and a server in seeded weather: loss, duplicates, reordering and delay, handlers that take their time.

use std::collections::{BTreeMap, HashMap};

use thalweg_base::rng::Rng;

use super::*;
use crate::message::Observe;

const SEEDS: u64 = 200;
/// Changes and requests happen in this time; then all has to settle.
const BUSY: Duration = Duration::from_secs(120);
const END: Duration = Duration::from_secs(900);
const WAIT: Duration = Duration::from_secs(93);

/// What the network does to a datagram.
struct Weather {
    loss: f64,
    duplicates: f64,
    delay: Duration,
}

/// What happens at an instant.
enum Act {
    ToServer(Vec<u8>),
    ToClient(Vec<u8>),
    /// The client posts the number.
    Post(u32),
    /// The client asks for the value.
    Get,
    /// The value changes.
    Change,
    /// A handler is ready.
    Ready(ExchangeId, Response),
}

/// What the client asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wish {
    Post(u32),
    Get,
    Observe,
    Upload,
    Download,
}

struct World {
    seed: u64,
    rng: Rng,
    weather: Weather,
    now: Instant,
    start: Instant,
    client: Endpoint,
    server: Endpoint,
    outbox: CoapOutbox,
    acts: BTreeMap<(Instant, u64), Act>,
    count: u64,
    app: Application,
}

/// Both applications, and what they saw.
struct Application {
    body: Vec<u8>,
    value: u32,
    /// How often each posted number ran.
    ran: HashMap<u32, u32>,
    uploaded: Option<Vec<u8>>,
    wishes: HashMap<RequestId, (Wish, Instant)>,
    answered: HashMap<u32, bool>,
    observed: Option<u32>,
    downloaded: Option<Vec<u8>>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        // A body of a thousand blocks needs weather in which a thousand exchanges succeed.
        let is_large = seed.is_multiple_of(20);
        let loss = rng.below(if is_large { 3 } else { 30 }) as f64 / 100.0;
        let duplicates = rng.below(20) as f64 / 100.0;
        let delay = Duration::from_millis(1 + if is_large { rng.below(50) } else { rng.below(2000) });
        let client = Config { nstart: 1 + rng.below(4) as u16, ..trusting() };
        let exponent = if is_large { 6 } else { rng.below(7) as u8 };
        let server = Config { block_exponent: exponent, ..trusting() };
        let len = if is_large { 1 << 20 } else { rng.below(16 << exponent) as usize * 20 };
        let start = Instant::from_nanos(1 << 40);
        let app = Application {
            body: (0..len).map(|at| (at as u64 * 31 + seed) as u8).collect(),
            value: 0,
            ran: HashMap::new(),
            uploaded: None,
            wishes: HashMap::new(),
            answered: HashMap::new(),
            observed: None,
            downloaded: None,
        };
        let mut world = World {
            seed,
            weather: Weather { loss, duplicates, delay },
            now: start,
            start,
            client: Endpoint::new(client, [seed, 1]),
            server: Endpoint::new(server, [seed, 2]),
            outbox: CoapOutbox::default(),
            acts: BTreeMap::new(),
            count: 0,
            app,
            rng,
        };
        for number in 0..20 {
            world.plan_within(BUSY, Act::Post(number));
            world.plan_within(BUSY, Act::Get);
            world.plan_within(BUSY, Act::Change);
        }
        world
    }

    fn plan(&mut self, at: Instant, act: Act) {
        self.count += 1;
        self.acts.insert((at, self.count), act);
    }

    fn plan_within(&mut self, time: Duration, act: Act) {
        let after = Duration::from_nanos(self.rng.below(time.as_nanos() as u64));
        self.plan(self.now + after, act);
    }

    fn run(mut self) {
        for wish in [Wish::Observe, Wish::Upload, Wish::Download] {
            self.wish(wish);
        }
        self.settle();
        while let Some(at) = self.next().filter(|at| at.since(self.start) < END) {
            self.now = self.now.max(at);
            while let Some(entry) = self.acts.first_entry().filter(|entry| entry.key().0 <= at) {
                let act = entry.remove();
                self.act(act);
            }
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            self.settle();
        }
        self.check_end();
    }

    fn next(&self) -> Option<Instant> {
        let act = self.acts.first_key_value().map(|((at, _), _)| *at);
        [act, self.client.poll_timeout(), self.server.poll_timeout()].into_iter().flatten().min()
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::ToServer(bytes) => self.server.handle_datagram(self.now, peer(CLIENT), &bytes),
            Act::ToClient(bytes) => self.client.handle_datagram(self.now, peer(SERVER), &bytes),
            Act::Post(number) => self.wish(Wish::Post(number)),
            Act::Get => self.wish(Wish::Get),
            Act::Change => {
                self.app.value += 1;
                self.server.notify(self.now, "/value");
            }
            Act::Ready(exchange, response) => self.server.respond(self.now, exchange, response).unwrap(),
        }
    }

    fn wish(&mut self, wish: Wish) {
        let request = match wish {
            Wish::Post(number) => RequestBuf::post("/post", number.to_be_bytes()),
            Wish::Get => RequestBuf::get("/value"),
            Wish::Observe => RequestBuf::get("/value").with_observe(Observe::Register),
            Wish::Upload => RequestBuf::put("/body", self.app.body.clone()),
            Wish::Download => RequestBuf::get("/body"),
        };
        let id = self.client.request(self.now, peer(SERVER), request, Confirmability::Confirmable);
        self.app.wishes.insert(id.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed)), (wish, self.now));
    }

    /// Lets both endpoints come to rest.
    fn settle(&mut self) {
        loop {
            let mut is_quiet = true;
            while let Some(event) = self.client.poll_event() {
                is_quiet = false;
                self.handle_client_event(event);
            }
            while let Some(event) = self.server.poll_event() {
                is_quiet = false;
                self.handle_server_event(event);
            }
            for is_to_server in [true, false] {
                let endpoint = if is_to_server { &mut self.client } else { &mut self.server };
                let mut outbox = std::mem::take(&mut self.outbox);
                is_quiet &= !endpoint.poll_transmit(&mut outbox);
                outbox.iter().for_each(|datagram| self.carry(is_to_server, datagram.bytes));
                self.outbox = outbox;
            }
            if is_quiet {
                return;
            }
        }
    }

    fn carry(&mut self, is_to_server: bool, bytes: &[u8]) {
        assert!(bytes.len() <= 1152, "seed {}: a datagram of {} bytes (RFC 7252 §4.6)", self.seed, bytes.len());
        let copies = 1 + u64::from(self.rng.chance(self.weather.duplicates));
        for _ in 0..copies {
            if !self.rng.chance(self.weather.loss) {
                let bytes = bytes.to_vec();
                let act = if is_to_server { Act::ToServer(bytes) } else { Act::ToClient(bytes) };
                self.plan_within(self.weather.delay, act);
            }
        }
    }

    fn handle_server_event(&mut self, event: EndpointEvent) {
        let EndpointEvent::Request { exchange, request, .. } = event else { return };
        let view = request.view();
        let response = match (view.code, view.path().as_str()) {
            (Code::POST, "/post") => {
                let number = u32::from_be_bytes(view.payload.try_into().unwrap());
                *self.app.ran.entry(number).or_default() += 1;
                Response::new(Code::CHANGED)
            }
            (Code::GET, "/value") => {
                let value = self.app.value.to_be_bytes();
                Response { payload: value.to_vec().into(), ..Response::new(Code::CONTENT) }
                    .observable()
                    .with_max_age(20)
            }
            (Code::PUT, "/body") => {
                assert_eq!(view.payload, self.app.body, "seed {}: the uploaded body is another", self.seed);
                self.app.uploaded = Some(view.payload.to_vec());
                Response::new(Code::CHANGED)
            }
            (Code::GET, "/body") => Response::content(self.app.body.clone(), 42).with_max_age(0),
            other => panic!("seed {}: {other:?}", self.seed),
        };
        // Half of the handlers answer at once, the others later than their client would wait.
        match self.rng.below(2) {
            0 => self.server.respond(self.now, exchange, response).unwrap(),
            _ => self.plan_within(Duration::from_secs(4), Act::Ready(exchange, response)),
        }
        self.server.recycle(request);
    }

    fn handle_client_event(&mut self, event: EndpointEvent) {
        match event {
            EndpointEvent::Response { request, response, .. } => {
                let (wish, since) = self.end_of(request, response.observe.is_none());
                match wish {
                    Wish::Post(number) => {
                        assert_eq!(response.code, Code::CHANGED, "seed {}", self.seed);
                        self.app.answered.insert(number, true);
                    }
                    Wish::Observe => self.app.observed = Some(value(&response)),
                    Wish::Download => self.app.downloaded = Some(response.payload.to_vec()),
                    Wish::Get | Wish::Upload => {}
                }
                self.check_time(wish, since);
            }
            EndpointEvent::Failed { request, error, .. } => {
                let (wish, since) = self.end_of(request, true);
                self.check_time(wish, since);
                assert!(
                    matches!(error, RequestError::TimedOut | RequestError::BlockMismatch { .. } | RequestError::Reset),
                    "seed {}: {wish:?}: {error}",
                    self.seed
                );
                match wish {
                    Wish::Post(number) => {
                        self.app.answered.insert(number, false);
                    }
                    Wish::Get => {}
                    // An application that still wants it asks again.
                    Wish::Observe | Wish::Upload | Wish::Download => self.wish(wish),
                }
            }
            other => panic!("seed {}: {other:?}", self.seed),
        }
    }

    fn end_of(&mut self, request: RequestId, is_over: bool) -> (Wish, Instant) {
        let wishes = &mut self.app.wishes;
        let found = if is_over { wishes.remove(&request) } else { wishes.get(&request).copied() };
        found.unwrap_or_else(|| panic!("seed {}: an event about a request that is over", self.seed))
    }

    /// Each request ends in an answer or an error in its time; those of many messages take theirs for each of them.
    fn check_time(&self, wish: Wish, since: Instant) {
        if matches!(wish, Wish::Post(_) | Wish::Get) {
            let took = self.now.since(since);
            assert!(took <= WAIT + Duration::from_millis(2), "seed {}: {wish:?} took {took:?}", self.seed);
        }
    }

    fn check_end(&self) {
        let Application { body, value, ran, uploaded, wishes, answered, observed, downloaded } = &self.app;
        let seed = self.seed;
        assert_eq!(answered.len(), 20, "seed {seed}: each request ends");
        for (number, is_answered) in answered {
            let times = ran.get(number).copied().unwrap_or(0);
            assert!(times <= 1, "seed {seed}: request {number} ran {times} times");
            assert!(!is_answered || times == 1, "seed {seed}: request {number} was answered and did not run");
        }
        assert_eq!(observed.as_ref(), Some(value), "seed {seed}: the observer ends at the latest value");
        assert!(downloaded.as_ref() == Some(body), "seed {seed}: the downloaded body arrives intact");
        assert!(uploaded.as_ref() == Some(body), "seed {seed}: the uploaded body arrives intact");
        let left: Vec<&Wish> = wishes.values().map(|(wish, _)| wish).collect();
        assert_eq!(left, [&Wish::Observe], "seed {seed}");
        let (client, server) = (self.client.counters(), self.server.counters());
        assert_eq!((client.requests, client.transfer_bytes), (1, 0), "seed {seed}: only the observation is left");
        assert!(server.exchanges <= 1, "seed {seed}: the observation may just be renewed");
        assert_eq!((client.peers, server.peers, server.answers_evicted), (1, 1, 0), "seed {seed}");
    }
}

fn value(response: &Response) -> u32 {
    u32::from_be_bytes((*response.payload).try_into().unwrap())
}

#[test]
fn in_all_weather_requests_run_once_end_in_time_and_observers_end_at_the_latest_value() {
    for seed in 0..SEEDS {
        World::new(seed).run();
    }
}
