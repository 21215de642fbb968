//! The paper's protocol adapter: between the endpoint of one loop and the handlers.

use std::sync::Arc;
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::clock;

use super::counts::LoopCounts;
use super::handler::Class;
use super::handler_pool::{Job, later, refusal};
use super::line::Line;
use super::rate_limit::RateLimit;
use super::routes::{Routes, Target};
use super::send_handler::{Inbox, SendHandler};
use super::source::RequestSource;
use crate::endpoint::{Confirmability, EndpointEvent, ExchangeId, Peer};
use crate::message::{CoapMessage, CoapRequest, Code, MessageType, OptionNumber, RequestBuf, Response};
use crate::scheduler::admission::AdmissionRank;
use crate::scheduler::queue::{JobOffer, Refused};

/// Sends requests where they are handled, and answers where they came from.
pub(super) struct Adapter {
    home: usize,
    routes: Arc<Routes>,
    homes: Arc<[SendHandler]>,
    lines: Vec<Line>,
    /// Whether a pool lacks room.
    is_short: bool,
    rate_limit: Option<RateLimit>,
    inline: Inline,
    inbox: Inbox,
}

/// Whether handlers that run inline keep to their time. The clock is read once for all of a batch; only when they took too
/// long together is each measured for a while.
struct Inline {
    time_max: Duration,
    /// Calls in this batch.
    calls: u32,
    /// Calls that are still to be measured one by one.
    suspicious: u32,
}

/// A request that has arrived.
struct Arrived {
    exchange: ExchangeId,
    peer: Peer,
    rank: AdmissionRank,
    request: RequestBuf,
}

impl Adapter {
    pub(super) fn new(
        home: usize,
        routes: Arc<Routes>,
        homes: Arc<[SendHandler]>,
        lines: Vec<Line>,
        (rate_limit, inline_max): (Option<RateLimit>, Duration),
    ) -> Adapter {
        let inline = Inline { time_max: inline_max, calls: 0, suspicious: 0 };
        Adapter { home, routes, homes, lines, is_short: false, rate_limit, inline, inbox: Inbox::default() }
    }

    /// Hands the answers of the pools and the changed resources to the endpoint.
    pub(super) fn handle_inbox(&mut self, now: Instant, endpoint: &mut impl RequestSource, counts: &mut LoopCounts) {
        self.homes[self.home].take(&mut self.inbox);
        for (job, response) in self.inbox.answers.drain(..) {
            counts.answers.note(response.code);
            // The client may have given up meanwhile; then the answer is dropped.
            endpoint.answer(now, job.exchange, response);
            endpoint.recycle(job.request);
        }
        for refused in self.inbox.expired.drain(..) {
            turn_away(now, endpoint, refused, counts);
        }
        for path in self.inbox.changed.drain(..) {
            endpoint.notify(now, &path);
        }
    }

    /// Prepares for a batch: pools that had no room for all of the one before are asked how much they have.
    pub(super) fn begin_batch(&mut self) {
        if self.is_short || self.has_refused() {
            self.lines.iter_mut().for_each(Line::begin_batch);
            self.is_short = self.lines.iter().any(Line::is_short);
        }
    }

    /// Whether a datagram is to be dropped where it arrives: a plain non-confirmable request for a pool that has no room
    /// for it. No state is kept of it, and no memory is touched except its own.
    #[inline]
    pub(super) fn drops(&mut self, bytes: &[u8]) -> bool {
        self.is_short && self.drop_for_full_pool(bytes)
    }

    fn drop_for_full_pool(&mut self, bytes: &[u8]) -> bool {
        let Ok((MessageType::NonConfirmable, code, _)) = CoapMessage::parse_header(bytes) else { return false };
        let Some(message) = CoapMessage::parse(bytes).ok().filter(|message| code.is_request() && is_plain(message))
        else {
            return false;
        };
        let request = CoapRequest { code, options: message.options, payload: message.payload, caller: None };
        if self.routes.needs_protection(&request) {
            return false;
        }
        let target = self.routes.find(&request);
        self.line(target).is_some_and(Line::drops)
    }

    /// The name of the pool that a request is for; empty for none.
    pub(super) fn pool_of(&mut self, bytes: &[u8]) -> String {
        let Ok(CoapMessage { code, options, payload, .. }) = CoapMessage::parse(bytes) else { return String::new() };
        let target = self.routes.find(&CoapRequest { code, options, payload, caller: None });
        self.line(target).map(|line| line.pool_name().to_owned()).unwrap_or_default()
    }

    /// The line to the pool of `target`; `None` for inline handlers.
    fn line(&mut self, target: Target) -> Option<&mut Line> {
        match self.routes.class(target) {
            Class::Inline => None,
            Class::Pooled(class) => {
                // A class that was not configured shares the pool of the last one that was.
                let last = self.lines.len().saturating_sub(1);
                self.lines.get_mut(usize::from(class.0).min(last)).filter(|line| line.has_pool())
            }
        }
    }

    /// Whether the last batch brought a pool more than it has room for.
    pub(super) fn has_refused(&self) -> bool {
        self.lines.iter().any(Line::has_refused)
    }

    /// Answers the requests of a batch or sends them to their pools.
    pub(super) fn handle_events(&mut self, now: Instant, endpoint: &mut impl RequestSource, counts: &mut LoopCounts) {
        while let Some(event) = endpoint.poll_event() {
            let (exchange, peer, delivery, request) = match event {
                EndpointEvent::Request { exchange, peer, delivery, request } => (exchange, peer, delivery, request),
                EndpointEvent::Observers { path, count } => {
                    self.routes.handle_observers(self.home, &path, count);
                    continue;
                }
                _ => continue,
            };
            let rank = match delivery {
                Confirmability::Confirmable => AdmissionRank::Kept,
                Confirmability::NonConfirmable => AdmissionRank::Droppable,
            };
            self.handle_request(now, endpoint, Arrived { exchange, peer, rank, request }, counts);
        }
        for line in self.lines.iter_mut().filter(|line| line.is_busy()) {
            for refused in line.end_batch(now) {
                refuse(now, endpoint, refused, counts);
            }
        }
        self.inline.end_batch(now);
    }

    fn handle_request(
        &mut self,
        now: Instant,
        endpoint: &mut impl RequestSource,
        arrived: Arrived,
        counts: &mut LoopCounts,
    ) {
        let Arrived { exchange, peer, rank, request } = arrived;
        // How often the state of what a client observes changes is not its doing; and an error would end the observation.
        if let Some(limit) = &mut self.rate_limit
            && !endpoint.is_notification(exchange)
            && let Err(retry_after) = limit.take(now, peer.address.ip())
        {
            counts.limited += 1;
            counts.answers.note(Code::TOO_MANY_REQUESTS);
            endpoint.answer(now, exchange, later(Code::TOO_MANY_REQUESTS, retry_after));
            return endpoint.recycle(request);
        }
        let caller = endpoint.caller(exchange, peer);
        if let Some(refusal) = self.routes.refuse(&request.view(), &caller) {
            counts.answers.note(refusal.code);
            endpoint.answer(now, exchange, refusal);
            return endpoint.recycle(request);
        }
        let target = self.routes.find(&request.view());
        if endpoint.is_for_group(exchange) && !self.routes.is_for_groups(target, &request.view()) {
            endpoint.abandon(now, exchange);
            return endpoint.recycle(request);
        }
        let unread = endpoint.unread_option(exchange);
        if let Some(number) = unread.filter(|_| !self.routes.forwards(target, &request.view())) {
            match rank {
                AdmissionRank::Kept => {
                    counts.answers.note(Code::BAD_OPTION);
                    endpoint.answer(now, exchange, not_understood(number));
                }
                // Rejected in silence (RFC 7252 §5.4.1).
                AdmissionRank::Droppable => endpoint.abandon(now, exchange),
            }
            return endpoint.recycle(request);
        }
        let home = self.home;
        match self.line(target) {
            Some(line) => {
                let bytes = size_of::<Job>() + request.capacity();
                let job = Job { home, exchange, rank, target, request, caller };
                if !endpoint.may_wait(exchange) {
                    return refuse(now, endpoint, Refused { job, retry_after: Duration::from_secs(1) }, counts);
                }
                counts.pooled += 1;
                line.offer(JobOffer { rank, bytes, job });
            }
            None => {
                counts.inline += 1;
                let response = self.inline.call(&self.routes, target, &request.view().of(&caller), counts);
                counts.answers.note(response.code);
                endpoint.answer(now, exchange, response);
                endpoint.recycle(request);
            }
        }
    }
}

impl Inline {
    fn call(
        &mut self,
        routes: &Routes,
        target: Target,
        request: &CoapRequest<'_>,
        counts: &mut LoopCounts,
    ) -> Response {
        self.calls += 1;
        if self.suspicious == 0 {
            return routes.handle(target, request);
        }
        self.suspicious -= 1;
        let start = clock::now();
        let response = routes.handle(target, request);
        if clock::now().since(start) <= self.time_max {
            routes.handle_kept(target);
        } else if routes.handle_breach(target) {
            counts.demoted += 1;
        }
        response
    }

    /// Looks at how long a batch took that began at `start`.
    fn end_batch(&mut self, start: Instant) {
        let calls = std::mem::take(&mut self.calls);
        if calls > 0 && clock::now().since(start) > self.time_max * calls {
            self.suspicious = SUSPICIOUS_CALLS;
        }
    }
}

/// Turns a request away at the entrance of its pool.
fn refuse(now: Instant, endpoint: &mut impl RequestSource, refused: Refused<Job>, counts: &mut LoopCounts) {
    if !endpoint.is_notification(refused.job.exchange) {
        match refused.job.rank {
            AdmissionRank::Kept => counts.unavailable += 1,
            AdmissionRank::Droppable => counts.dropped += 1,
        }
    }
    turn_away(now, endpoint, refused, counts);
}

/// Answers a request for which there is no time. A notification is put off instead: the answer would end the observation.
fn turn_away(now: Instant, endpoint: &mut impl RequestSource, refused: Refused<Job>, counts: &mut LoopCounts) {
    let Refused { job, retry_after } = refused;
    let is_notification = endpoint.is_notification(job.exchange);
    counts.put_off += u64::from(is_notification);
    match refusal(job.rank, retry_after).filter(|_| !is_notification) {
        Some(response) => {
            counts.answers.note(response.code);
            endpoint.answer(now, job.exchange, response);
        }
        None => endpoint.abandon(now, job.exchange),
    }
    endpoint.recycle(job.request);
}

fn not_understood(number: OptionNumber) -> Response {
    Response::error(Code::BAD_OPTION, format!("{number} is not understood"))
}

/// Whether a request asks nothing of the message layer itself: no observation, no block, no protection.
fn is_plain(message: &CoapMessage<'_>) -> bool {
    message.options.into_iter().all(|(number, _)| {
        let target = [OptionNumber::URI_HOST, OptionNumber::URI_PORT, OptionNumber::URI_PATH, OptionNumber::URI_QUERY];
        target.contains(&number) || [OptionNumber::CONTENT_FORMAT, OptionNumber::ACCEPT].contains(&number)
    })
}

/// Calls that are measured one by one after a batch that took too long.
const SUSPICIOUS_CALLS: u32 = 256;

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use thalweg_transport::batch::{BatchOptions, BatchSocket};

    use super::super::handler::{ClassId, Function, Terms};
    use super::super::handler_pool::Handlers;
    use super::*;
    use crate::endpoint::{Config, Endpoint};
    use crate::message::{MessageId, MessageWriter, Token};
    use crate::scheduler::admission::Patience;
    use crate::scheduler::controller::ControlLaw;
    use crate::scheduler::thread_pool::ThreadGroup;
    use crate::scheduler::{PoolConfig, Scheduler, SchedulerConfig};

    const CON: MessageType = MessageType::Confirmable;
    const NON: MessageType = MessageType::NonConfirmable;

    /// An adapter before a pool of one thread and room for one request.
    struct World {
        adapter: Adapter,
        endpoint: Endpoint,
        counts: LoopCounts,
        next_id: u16,
        /// Says that the handler of `/gate` began.
        began: Receiver<()>,
        /// Lets it go on.
        go_on: Sender<()>,
        _scheduler: Scheduler,
    }

    impl World {
        fn new() -> World {
            let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let socket = BatchSocket::bind(any_port, &BatchOptions::default()).unwrap();
            let homes: Arc<[SendHandler]> = Arc::new([SendHandler::new(socket.waker())]);
            let ((begin, began), (go_on, wait)) = (channel(), channel());
            let gate = Mutex::new((begin, wait));
            let block = move |_: &CoapRequest<'_>| {
                let (begin, wait): &(Sender<()>, Receiver<()>) = &gate.lock().unwrap();
                // The test may be over.
                let _ = (begin.send(()), wait.recv());
                Response::new(Code::CONTENT)
            };
            let inline = |_: &CoapRequest<'_>| Response::new(Code::CONTENT);
            let seen = |_: &CoapRequest<'_>| Response::new(Code::CONTENT).observable();
            let routes = Routes::new()
                .add("/gate", Function::pooled(ClassId::BLOCKING, block))
                .add("/secret/gate", Function::pooled(ClassId::BLOCKING, inline))
                .add("/inline", Function::inline(inline))
                .add("/seen", Function::pooled(ClassId::BLOCKING, seen))
                .protect("/secret");
            let routes = Arc::new(routes);
            let scheduler = Scheduler::start(SchedulerConfig::default()).unwrap();
            let patience = Patience { length_max: 1, ..Patience::default() };
            let config = PoolConfig {
                name: "gate".to_owned(),
                group: ThreadGroup::Interaction,
                law: ControlLaw::Fixed(1),
                patience,
            };
            let crew = Handlers { routes: Arc::clone(&routes), homes: Arc::clone(&homes) };
            let pool = scheduler.add_pool(config, Box::new(crew)).unwrap();
            let lines = vec![Line::new(Some(pool))];
            let adapter = Adapter::new(0, routes, homes, lines, (None, Duration::from_secs(1)));
            let (endpoint, counts) = (Endpoint::new(Config::default(), [1, 2]), LoopCounts::default());
            World { adapter, endpoint, counts, next_id: 0, began, go_on, _scheduler: scheduler }
        }

        fn request(&mut self, message_type: MessageType, path: &str, other: Option<OptionNumber>) -> Vec<u8> {
            self.next_id += 1;
            let mut bytes = Vec::new();
            let id = MessageId(self.next_id);
            let mut writer = MessageWriter::new(&mut bytes, message_type, Code::GET, id, &Token::default());
            let mut options: Vec<(OptionNumber, &str)> = other.map(|number| (number, "")).into_iter().collect();
            options.extend(path.split('/').map(|segment| (OptionNumber::URI_PATH, segment)));
            options.sort_by_key(|(number, _)| *number);
            for (number, value) in options {
                writer.option(number, value.as_bytes());
            }
            writer.payload(&[]);
            bytes
        }

        /// A batch of one; true when it was dropped where it arrived.
        fn batch(&mut self, message_type: MessageType, path: &str, other: Option<OptionNumber>) -> bool {
            let (now, bytes) = (clock::now(), self.request(message_type, path, other));
            self.adapter.begin_batch();
            let is_dropped = self.adapter.drops(&bytes);
            if !is_dropped {
                self.endpoint.handle_datagram(now, Peer::from(([127, 0, 0, 1], 40_000)), &bytes);
            }
            self.adapter.handle_events(now, &mut self.endpoint, &mut self.counts);
            is_dropped
        }

        /// One request in the handler, one that waits, and one that was refused.
        fn full() -> World {
            let mut world = World::new();
            assert!(!world.batch(NON, "gate", None));
            world.began.recv().unwrap();
            for has_refused in [false, true] {
                assert!(!world.batch(NON, "gate", None), "nobody was refused before");
                assert_eq!(world.adapter.has_refused(), has_refused);
            }
            world
        }
    }

    #[test]
    fn what_a_full_pool_would_refuse_is_dropped_where_it_arrives() {
        let mut world = World::full();
        for _ in 0..3 {
            assert!(world.batch(NON, "gate", None));
            assert!(world.adapter.has_refused(), "the loop shall rest");
        }
        assert_eq!((world.counts.pooled, world.counts.dropped), (3, 1), "the pool did not see them");
        world.go_on.send(()).unwrap();
        world.began.recv().unwrap();
        assert!(!world.batch(NON, "gate", None), "there is room again");
        assert!(!world.adapter.has_refused());
    }

    #[test]
    fn a_notification_that_finds_no_room_is_put_off_and_ends_no_observation() {
        let mut world = World::new();
        world.batch(CON, "seen", Some(OptionNumber::OBSERVE));
        let is_observed = |world: &mut World| {
            world.adapter.handle_inbox(clock::now(), &mut world.endpoint, &mut world.counts);
            world.endpoint.observers("/seen") == 1
        };
        while !is_observed(&mut world) {
            std::thread::sleep(Duration::from_millis(1));
        }
        world.batch(CON, "gate", None);
        world.began.recv().unwrap();
        world.batch(CON, "gate", None);
        let now = clock::now();
        world.endpoint.notify(now, "/seen");
        world.adapter.handle_events(now, &mut world.endpoint, &mut world.counts);
        assert_eq!((world.counts.put_off, world.counts.unavailable), (1, 0));
        assert!(is_observed(&mut world));
        for _ in 0..2 {
            world.go_on.send(()).unwrap();
        }
        world.began.recv().unwrap();
        world.endpoint.handle_timeout(now + Duration::from_secs(2));
        let before = world.counts.answers.success;
        world.adapter.handle_events(clock::now(), &mut world.endpoint, &mut world.counts);
        // Both of the gate, and the notification.
        while world.counts.answers.success < before + 3 {
            assert!(is_observed(&mut world));
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(world.counts.put_off, 1);
    }

    #[test]
    fn a_request_to_a_group_runs_only_where_its_handler_agrees() {
        let runs = Arc::new(Mutex::new(Vec::new()));
        let noting = |name: &'static str, for_groups: bool| {
            let runs = Arc::clone(&runs);
            let note = move |_: &CoapRequest<'_>| {
                runs.lock().unwrap().push(name);
                Response::new(Code::CHANGED)
            };
            Function::inline(note).with_terms(Terms { for_groups, ..Terms::default() })
        };
        let routes = Routes::new().add("/own", noting("own", false)).add("/all", noting("all", true));
        let mut world = World::new();
        world.adapter.routes = Arc::new(routes);
        for path in ["own", "all"] {
            for code in [0x01, 0x03] {
                let mut bytes = world.request(NON, path, None);
                bytes[1] = code;
                let now = clock::now();
                world.endpoint.handle_multicast(now, Peer::from(([127, 0, 0, 1], 40_000)), &bytes);
                world.adapter.handle_events(now, &mut world.endpoint, &mut world.counts);
            }
        }
        assert_eq!(*runs.lock().unwrap(), ["all", "all"]);
    }

    #[test]
    fn nothing_else_is_dropped_where_it_arrives() {
        for (message_type, path, other) in [
            (CON, "gate", None),
            (NON, "inline", None),
            (NON, "nothing", None),
            (NON, "secret/gate", None),
            (NON, "gate", Some(OptionNumber::OBSERVE)),
            (NON, "gate", Some(OptionNumber::OSCORE)),
            (NON, "gate", Some(OptionNumber::BLOCK1)),
        ] {
            let mut world = World::full();
            assert!(!world.batch(message_type, path, other), "{message_type:?} {path} {other:?}");
        }
        let mut world = World::full();
        world.adapter.begin_batch();
        assert!(!world.adapter.drops(&[0x50, 1, 0, 0, 0xb4]), "cut off");
    }
}
