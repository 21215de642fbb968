//! The paper's protocol adapter: between the endpoint of one loop and the handlers.

use std::sync::Arc;
use std::time::Duration;

use thalweg_rtps::time::Instant;
use thalweg_transport::clock;

use super::counts::LoopCounts;
use super::handler::Class;
use super::handler_pool::{Job, later, refusal};
use super::rate_limit::RateLimit;
use super::routes::{Routes, Target};
use super::send_handler::{Inbox, SendHandler};
use crate::endpoint::{Delivery, Endpoint, Event, ExchangeId, Peer};
use crate::message::{Code, RequestBuf, Response};
use crate::oscore::Refusal;
use crate::scheduler::admission::Rank;
use crate::scheduler::pool::Pool;
use crate::scheduler::queue::{Offer, Refused};

/// Sends requests where they are handled, and answers where they came from.
pub(super) struct Adapter {
    home: usize,
    routes: Arc<Routes>,
    homes: Arc<[SendHandler]>,
    lines: Vec<Line>,
    rate_limit: Option<RateLimit>,
    inline: Inline,
    inbox: Inbox,
}

/// The way to the pool of one class.
pub(super) struct Line {
    /// `None` for a class whose handlers run inline whatever they say.
    pub(super) pool: Option<Pool<Job>>,
    /// What this batch brings it.
    offers: Vec<Offer<Job>>,
    refused: Vec<Refused<Job>>,
}

impl Line {
    pub(super) fn new(pool: Option<Pool<Job>>) -> Line {
        Line { pool, offers: Vec::new(), refused: Vec::new() }
    }
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
    rank: Rank,
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
        Adapter { home, routes, homes, lines, rate_limit, inline, inbox: Inbox::default() }
    }

    /// Hands what the pools answered to the endpoint, and tells it which resources changed.
    pub(super) fn handle_inbox(&mut self, now: Instant, endpoint: &mut Endpoint) {
        self.homes[self.home].take(&mut self.inbox);
        for (job, response) in self.inbox.answers.drain(..) {
            match response {
                // The client may have given up meanwhile; then nobody misses the answer.
                Some(response) => {
                    let _ = endpoint.respond(now, job.exchange, response);
                }
                None => endpoint.abandon(now, job.exchange),
            }
            endpoint.recycle(job.request);
        }
        for path in self.inbox.changed.drain(..) {
            endpoint.notify(now, &path);
        }
    }

    /// Answers the requests of a batch or sends them to their pools.
    pub(super) fn handle_events(&mut self, now: Instant, endpoint: &mut Endpoint, counts: &mut LoopCounts) {
        while let Some(event) = endpoint.poll_event() {
            let (exchange, peer, delivery, request) = match event {
                Event::Request { exchange, peer, delivery, request } => (exchange, peer, delivery, request),
                Event::Observers { path, count } => {
                    self.routes.handle_observers(self.home, &path, count);
                    continue;
                }
                _ => continue,
            };
            let rank = match delivery {
                Delivery::Confirmable => Rank::Kept,
                Delivery::NonConfirmable => Rank::Droppable,
            };
            self.handle_request(now, endpoint, Arrived { exchange, peer, rank, request }, counts);
        }
        for line in &mut self.lines {
            let Some(pool) = line.pool.as_ref().filter(|_| !line.offers.is_empty()) else { continue };
            pool.push(now, &mut line.offers, &mut line.refused);
            for Refused { job, retry_after } in line.refused.drain(..) {
                match refusal(job.rank, retry_after) {
                    Some(response) => {
                        counts.unavailable += 1;
                        let _ = endpoint.respond(now, job.exchange, response);
                    }
                    None => {
                        counts.dropped += 1;
                        endpoint.abandon(now, job.exchange);
                    }
                }
                endpoint.recycle(job.request);
            }
        }
        self.inline.end_batch(now);
    }

    fn handle_request(&mut self, now: Instant, endpoint: &mut Endpoint, arrived: Arrived, counts: &mut LoopCounts) {
        let Arrived { exchange, peer, rank, request } = arrived;
        let limit = self.rate_limit.as_mut().map(|limit| limit.take(now, peer.address.ip()));
        if let Some(Err(retry_after)) = limit {
            counts.limited += 1;
            let _ = endpoint.respond(now, exchange, later(Code::TOO_MANY_REQUESTS, retry_after));
            return endpoint.recycle(request);
        }
        if self.routes.needs_protection(&request.view()) && !endpoint.is_protected(exchange) {
            let _ = endpoint.respond(now, exchange, Refusal::Unprotected.response());
            return endpoint.recycle(request);
        }
        let target = self.routes.find(&request.view());
        let line = match self.routes.class(target) {
            Class::Inline => None,
            Class::Pooled(class) => {
                // A class that was not configured shares the pool of the last one that was.
                let last = self.lines.len().saturating_sub(1);
                self.lines.get_mut(usize::from(class.0).min(last)).filter(|line| line.pool.is_some())
            }
        };
        match line {
            Some(line) => {
                counts.pooled += 1;
                line.offers.push(Offer { rank, job: Job { home: self.home, exchange, rank, target, request } });
            }
            None => {
                counts.inline += 1;
                let response = self.inline.call(&self.routes, target, &request, counts);
                let _ = endpoint.respond(now, exchange, response);
                endpoint.recycle(request);
            }
        }
    }
}

impl Inline {
    fn call(&mut self, routes: &Routes, target: Target, request: &RequestBuf, counts: &mut LoopCounts) -> Response {
        self.calls += 1;
        if self.suspicious == 0 {
            return routes.handle(target, &request.view());
        }
        self.suspicious -= 1;
        let start = clock::now();
        let response = routes.handle(target, &request.view());
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

/// Calls that are measured one by one after a batch that took too long.
const SUSPICIOUS_CALLS: u32 = 256;
