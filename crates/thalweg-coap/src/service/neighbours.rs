//! The event loop of all remote things.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::clock;

use crate::endpoint::{Config, Confirmability, EndpointEvent, RequestError, RequestId};
use crate::interaction::client::{Client, ClientError};
use crate::message::{Observe, RequestBuf, Response};
use crate::resource::ResourceError;
use crate::service::client::{Order, Reach, Shared, open};
use crate::service::remote::{ResponseCompletion, ResponseListener};
use crate::service::resolver::{Found, Resolver};

/// Requests and observations under way, on the one thread that has the socket.
pub(super) struct Neighbours {
    client: Client,
    reach: Reach,
    config: Config,
    resolver: Resolver,
    asked: HashMap<RequestId, Asked>,
    /// Requests that wait at each thing, so that one that is silent does not use up the places of all.
    waiting: HashMap<SocketAddr, usize>,
    observed: HashMap<u64, Observed>,
    registrations: HashMap<RequestId, u64>,
    /// Observations that are to be registered anew, and when.
    again: BinaryHeap<Reverse<(Instant, u64)>>,
    /// Orders that wait for an address.
    unresolved: HashMap<String, Vec<Order>>,
    counted: Instant,
}

struct Asked {
    thing: SocketAddr,
    completion: ResponseCompletion,
}

struct Observed {
    thing: String,
    request: RequestBuf,
    listener: ResponseListener,
    registration: Option<RequestId>,
    /// Registrations that failed since the last notification.
    failures: u32,
}

impl Neighbours {
    pub(super) fn new((client, reach): (Client, Reach), config: Config, resolver: Resolver) -> Neighbours {
        Neighbours {
            client,
            reach,
            config,
            resolver,
            asked: HashMap::new(),
            waiting: HashMap::new(),
            observed: HashMap::new(),
            registrations: HashMap::new(),
            again: BinaryHeap::new(),
            unresolved: HashMap::new(),
            counted: Instant::ZERO,
        }
    }

    /// Serves until the applications are gone.
    pub(super) fn run(mut self, shared: &Shared) {
        while let Some(orders) = shared.take() {
            let now = clock::now();
            orders.into_iter().for_each(|order| self.handle_order(now, shared, order));
            self.register_due(now, shared);
            if now.since(self.counted) >= COUNT_PERIOD {
                self.counted = now;
                shared.set_counters(self.client.counters());
            }
            let pause = self.again.peek().map_or(LONGEST_WAIT, |Reverse((due, _))| due.since(now).min(LONGEST_WAIT));
            match self.client.next(pause) {
                Ok(Some(event)) => self.handle_event(event),
                Ok(None) => {}
                Err(error) => self.handle_broken_socket(shared, &error),
            }
        }
        let error = ResourceError::Unavailable("this thing ends".to_owned(), LONGEST_WAIT);
        self.asked.drain().for_each(|(_, asked)| (asked.completion)(Err(error.clone())));
        let rest = self.unresolved.drain().flat_map(|(_, orders)| orders).chain(shared.take_rest());
        rest.for_each(|order| order.refuse(error.clone()));
        let registrations: Vec<RequestId> = self.registrations.drain().map(|(registration, _)| registration).collect();
        registrations.into_iter().for_each(|registration| self.client.cancel(registration));
    }

    fn handle_order(&mut self, now: Instant, shared: &Shared, order: Order) {
        match order {
            Order::End { number } => self.end(number),
            Order::Renew { thing } => self.renew(now, &thing),
            Order::Resolved { thing, outcome } => {
                if let Ok(address) = outcome {
                    self.resolver.handle_found(now, &thing, address);
                }
                for order in self.unresolved.remove(&thing).unwrap_or_default() {
                    self.begin(now, shared, order, outcome.clone());
                }
            }
            Order::Ask { ref thing, .. } | Order::Observe { ref thing, .. } => {
                let thing = thing.clone();
                if let Some(waiting) = self.unresolved.get_mut(&thing) {
                    if waiting.len() < ORDERS_PER_THING_MAX {
                        return waiting.push(order);
                    }
                    return order.refuse(too_many(&thing));
                }
                match self.resolver.find(now, &thing) {
                    Found::Address(address) => self.begin(now, shared, order, Ok(address)),
                    Found::Asked => drop(self.unresolved.insert(thing, vec![order])),
                    Found::Refused(error) => order.refuse(error),
                }
            }
        }
    }

    fn begin(&mut self, now: Instant, shared: &Shared, order: Order, address: Result<SocketAddr, ResourceError>) {
        match order {
            Order::Ask { thing, request, completion } => match address {
                Ok(address) => self.ask(shared, &thing, address, request, completion),
                Err(error) => completion(Err(error)),
            },
            Order::Observe { thing, request, listener, number } => {
                let request = request.with_observe(Observe::Register);
                let observed = Observed { thing, request, listener, registration: None, failures: 0 };
                self.observed.insert(number, observed);
                match address {
                    Ok(address) => self.register(now, shared, number, address),
                    Err(error) => self.handle_failed_registration(now, number, error),
                }
            }
            Order::End { .. } | Order::Resolved { .. } | Order::Renew { .. } => {}
        }
    }

    fn ask(
        &mut self,
        shared: &Shared,
        thing: &str,
        address: SocketAddr,
        request: RequestBuf,
        completion: ResponseCompletion,
    ) {
        let waiting = self.waiting.get(&address).copied().unwrap_or_default();
        if waiting >= ORDERS_PER_THING_MAX {
            return completion(Err(too_many(thing)));
        }
        match self.send(shared, thing, address, request) {
            Ok(id) => {
                self.asked.insert(id, Asked { thing: address, completion });
                self.waiting.insert(address, waiting + 1);
            }
            Err(error) => completion(Err(error)),
        }
    }

    /// Sends a request, protected if there are keys for its thing; never to this host's own server.
    fn send(
        &mut self,
        shared: &Shared,
        thing: &str,
        address: SocketAddr,
        request: RequestBuf,
    ) -> Result<RequestId, ResourceError> {
        if let Some(refusal) = shared.refusal(thing, address) {
            return Err(refusal);
        }
        let target = self.reachable(address);
        let sent = match shared.context(thing)? {
            Some(context) => self.client.send_protected(target, request, Confirmability::Confirmable, &context),
            None => self.client.send(target, request, Confirmability::Confirmable),
        };
        sent.map_err(|error| no_answer(thing, &error))
    }

    fn register(&mut self, now: Instant, shared: &Shared, number: u64, address: SocketAddr) {
        let Some(observed) = self.observed.get(&number) else { return };
        let (thing, request) = (observed.thing.clone(), observed.request.clone());
        match self.send(shared, &thing, address, request) {
            Ok(registration) => {
                self.registrations.insert(registration, number);
                if let Some(observed) = self.observed.get_mut(&number) {
                    observed.registration = Some(registration);
                }
            }
            Err(error) => self.handle_failed_registration(now, number, error),
        }
    }

    /// Registers anew what is due.
    fn register_due(&mut self, now: Instant, shared: &Shared) {
        while let Some(Reverse((due, number))) = self.again.peek().copied().filter(|Reverse((due, _))| *due <= now) {
            debug_assert!(due <= now, "only what is due was asked for");
            self.again.pop();
            let Some(observed) = self.observed.get(&number).filter(|observed| observed.registration.is_none()) else {
                continue;
            };
            let thing = observed.thing.clone();
            match self.resolver.find(now, &thing) {
                Found::Address(address) => self.register(now, shared, number, address),
                // The address will be known by then.
                Found::Asked => self.again.push(Reverse((now + RETRY_MIN, number))),
                Found::Refused(error) => self.handle_failed_registration(now, number, error),
            }
        }
    }

    fn handle_event(&mut self, event: EndpointEvent) {
        let now = clock::now();
        match event {
            EndpointEvent::Response { request, response, .. } => match self.registrations.get(&request).copied() {
                Some(number) => self.handle_notification(now, number, request, response),
                None => self.complete(request, Ok(response)),
            },
            EndpointEvent::Failed { request, error, .. } => match self.registrations.remove(&request) {
                Some(number) => {
                    let Some(observed) = self.observed.get(&number) else { return };
                    let error =
                        ResourceError::NoAnswer(format!("{} is not observed any more: {error}", observed.thing));
                    self.handle_failed_registration(now, number, error);
                }
                None => {
                    let Some(asked) = self.asked.get(&request) else { return };
                    let error = no_answer(&asked.thing.to_string(), &ClientError::Request(error));
                    self.complete(request, Err(error));
                }
            },
            _ => {}
        }
    }

    fn complete(&mut self, request: RequestId, outcome: Result<Response, ResourceError>) {
        let Some(asked) = self.asked.remove(&request) else { return };
        if let Some(waiting) = self.waiting.get_mut(&asked.thing) {
            *waiting -= 1;
            if *waiting == 0 {
                self.waiting.remove(&asked.thing);
            }
        }
        (asked.completion)(outcome);
    }

    fn handle_notification(&mut self, now: Instant, number: u64, registration: RequestId, response: Response) {
        let Some(observed) = self.observed.get_mut(&number) else { return };
        let is_last = response.observe.is_none();
        if response.code.is_success() {
            observed.failures = 0;
        }
        let fresh_for = Duration::from_secs(response.max_age.unwrap_or(60).into());
        let is_error = !response.code.is_success();
        (observed.listener)(Ok(response));
        if is_last {
            // The server has no place for this observer, or none at all: it is asked again when its answer gets old.
            self.registrations.remove(&registration);
            observed.registration = None;
            let pause = if is_error { pause_after(&mut observed.failures) } else { fresh_for.max(RETRY_MIN) };
            self.again.push(Reverse((now + pause, number)));
        }
    }

    fn handle_failed_registration(&mut self, now: Instant, number: u64, error: ResourceError) {
        let Some(observed) = self.observed.get_mut(&number) else { return };
        observed.registration = None;
        (observed.listener)(Err(error));
        let pause = pause_after(&mut observed.failures);
        self.again.push(Reverse((now + pause, number)));
    }

    fn end(&mut self, number: u64) {
        for orders in self.unresolved.values_mut() {
            orders.retain(|order| !matches!(order, Order::Observe { number: other, .. } if *other == number));
        }
        let registration = self.observed.remove(&number).and_then(|observed| observed.registration);
        if let Some(registration) = registration {
            self.registrations.remove(&registration);
            self.client.cancel(registration);
        }
    }

    /// Registers anew what is observed of a thing.
    fn renew(&mut self, now: Instant, thing: &str) {
        let is_meant = |(_, observed): &(&u64, &Observed)| observed.thing.eq_ignore_ascii_case(thing);
        let numbers: Vec<u64> = self.observed.iter().filter(is_meant).map(|(number, _)| *number).collect();
        for number in numbers {
            let registration = self.observed.get_mut(&number).and_then(|observed| observed.registration.take());
            // One without a registration waits for its next one already.
            if let Some(registration) = registration {
                self.registrations.remove(&registration);
                self.client.cancel(registration);
                let error = ResourceError::NoAnswer(format!("{thing} is asked anew, under other keys"));
                self.handle_failed_registration(now, number, error);
            }
        }
    }

    /// Whatever the socket was worth, the next requests get a new one.
    fn handle_broken_socket(&mut self, shared: &Shared, error: &ClientError) {
        let error = ResourceError::NoAnswer(error.to_string());
        self.waiting.clear();
        self.asked.drain().for_each(|(_, asked)| (asked.completion)(Err(error.clone())));
        let now = clock::now();
        let numbers: Vec<u64> = self.registrations.drain().map(|(_, number)| number).collect();
        numbers.into_iter().for_each(|number| self.handle_failed_registration(now, number, error.clone()));
        match open(&self.config) {
            Ok((client, reach)) => {
                shared.set_waker(client.waker());
                (self.client, self.reach) = (client, reach);
            }
            Err(_) => std::thread::sleep(RETRY_MIN),
        }
    }

    /// The address as the socket takes it.
    fn reachable(&self, address: SocketAddr) -> SocketAddr {
        match (self.reach, address.ip()) {
            (Reach::Both, IpAddr::V4(ip)) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
            _ => address,
        }
    }
}

/// The pause before the next registration: twice as long after each failure.
fn pause_after(failures: &mut u32) -> Duration {
    let pause = RETRY_MIN * (1 << (*failures).min(RETRY_DOUBLINGS));
    *failures += 1;
    pause
}

fn no_answer(thing: &str, error: &ClientError) -> ResourceError {
    let reason = format!("{thing}: {error}");
    match error {
        ClientError::Request(RequestError::UnknownOption(_)) => ResourceError::BadAnswer(reason),
        _ => ResourceError::NoAnswer(reason),
    }
}

fn too_many(thing: &str) -> ResourceError {
    let reason = format!("{ORDERS_PER_THING_MAX} requests to {thing} wait already");
    ResourceError::Unavailable(reason, Duration::from_secs(1))
}

/// Most requests to one thing that may wait for their turn.
const ORDERS_PER_THING_MAX: usize = 256;
/// A failed observation is registered anew after this time at the earliest, and 64 times as much at the latest.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_DOUBLINGS: u32 = 6;
/// Interval at which the counters are told.
const COUNT_PERIOD: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
