//! Other things over CoAP.

use std::collections::HashMap;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thalweg_transport::batch::Waker;

use crate::endpoint::{Config, Confirmability, EndpointEvent, RequestId};
use crate::interaction::client::{Client, ClientError};
use crate::message::{Observe, RequestBuf};
use crate::resource::ResourceError;
use crate::service::remote::{Remote, RemoteObservation, ResponseCompletion, ResponseListener};

/// Reaches other things over UDP. As many requests to one thing are under way as [`Config::nstart`] says, one by default
/// (RFC 7252 §4.7); different things are asked at the same time, each by a thread that ends when it has had nothing to do for
/// a minute.
#[derive(Debug, Default)]
pub struct CoapRemote {
    config: Config,
    lines: Mutex<HashMap<String, Line>>,
}

/// The way to the thread that asks one thing.
#[derive(Debug)]
struct Line {
    orders: SyncSender<Order>,
    /// Ends its wait for answers, once it has a socket to wait on.
    waker: Arc<Mutex<Option<Waker>>>,
}

/// One request and the waiter for its answer.
struct Order {
    request: RequestBuf,
    completion: ResponseCompletion,
}

impl CoapRemote {
    /// Asks with these times and bounds.
    pub fn new(config: Config) -> CoapRemote {
        CoapRemote { config, lines: Mutex::default() }
    }

    /// Hands an order to the thread of its thing, and starts that if need be. Gives the order back when that fails.
    fn submit(&self, thing: &str, order: Order) -> Result<(), (ResourceError, Order)> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        // A thread that ends takes no more orders; there may be one to start anew.
        for _ in 0..2 {
            let Some(line) = lines.get(thing) else {
                if lines.len() >= THINGS_MAX {
                    return Err((unavailable(format!("{THINGS_MAX} things are asked already")), order));
                }
                match self.start(thing) {
                    Ok(line) => lines.insert(thing.to_owned(), line),
                    Err(error) => return Err((unavailable(format!("there is no thread to ask with: {error}")), order)),
                };
                continue;
            };
            return match line.orders.try_send(order) {
                Ok(()) => {
                    // It looks by itself when the answer to its only request has come.
                    if self.config.nstart > 1
                        && let Some(waker) = &*line.waker.lock().unwrap_or_else(PoisonError::into_inner)
                    {
                        waker.wake();
                    }
                    Ok(())
                }
                Err(TrySendError::Full(order)) => {
                    Err((unavailable(format!("{ORDERS_MAX} requests to {thing} wait already")), order))
                }
                Err(TrySendError::Disconnected(order)) => {
                    lines.remove(thing);
                    Err((unavailable(format!("the thread that asks {thing} has just ended")), order))
                }
            };
        }
        Err((unavailable(format!("there is no thread that asks {thing}")), order))
    }

    fn start(&self, thing: &str) -> std::io::Result<Line> {
        let (sender, orders) = mpsc::sync_channel(ORDERS_MAX);
        let waker = Arc::default();
        let line = Line { orders: sender, waker: Arc::clone(&waker) };
        let asking = Asking { orders, thing: thing.to_owned(), config: self.config.clone(), waker };
        std::thread::Builder::new().name("coap-ask".to_owned()).spawn(move || asking.run())?;
        Ok(line)
    }
}

impl Remote for CoapRemote {
    fn request(&self, thing: &str, request: RequestBuf, completion: ResponseCompletion) {
        if let Err((error, order)) = self.submit(thing, Order { request, completion }) {
            (order.completion)(Err(error));
        }
    }

    fn observe(&self, thing: &str, request: RequestBuf, mut listener: ResponseListener) -> Box<dyn RemoteObservation> {
        let ended = Arc::new(AtomicBool::new(false));
        let (is_over, config, observed) = (Arc::clone(&ended), self.config.clone(), thing.to_owned());
        let watch = move || {
            if let Err(error) = watch(&observed, request, &config, &is_over, &mut listener) {
                listener(Err(error));
            }
        };
        if let Err(error) = std::thread::Builder::new().name("coap-observe".to_owned()).spawn(watch) {
            // The listener went with the thread; the observation is silent, and the log says why.
            tracing::warn!("{thing} is not observed: there is no thread for it: {error}");
        }
        Box::new(Registration(ended))
    }
}

/// Ends an observation.
struct Registration(Arc<AtomicBool>);

impl RemoteObservation for Registration {}

impl Drop for Registration {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Sends all requests to one thing.
struct Asking {
    orders: Receiver<Order>,
    thing: String,
    config: Config,
    waker: Arc<Mutex<Option<Waker>>>,
}

/// A client with the address of the one thing that it asks; it stays on its thread.
type Opened = (Client, SocketAddr);

/// The waiters for answers.
type Waiting = HashMap<RequestId, ResponseCompletion>;

impl Asking {
    fn run(self) {
        let mut waiting = Waiting::new();
        let mut client = None;
        while self.begin(&mut client, &mut waiting) {
            if let Err(error) = self.take_answers(&mut client, &mut waiting) {
                // Whatever the socket was worth, the next request gets a new one.
                client = None;
                let error = no_answer(&self.thing, &error);
                waiting.drain().for_each(|(_, completion)| completion(Err(error.clone())));
            }
        }
    }

    /// Begins as many requests as may be under way; false when there was nothing to do for so long that the thread may end.
    fn begin(&self, client: &mut Option<Opened>, waiting: &mut Waiting) -> bool {
        while waiting.len() < usize::from(self.config.nstart.max(1)) {
            let order = if waiting.is_empty() {
                let Ok(order) = self.orders.recv_timeout(IDLE_MAX) else { return false };
                order
            } else {
                let Ok(order) = self.orders.try_recv() else { break };
                order
            };
            match self.send(client, order.request) {
                Ok(request) => {
                    waiting.insert(request, order.completion);
                }
                Err(error) => (order.completion)(Err(error)),
            }
        }
        true
    }

    fn send(&self, client: &mut Option<Opened>, request: RequestBuf) -> Result<RequestId, ResourceError> {
        let (client, address) = match client {
            Some(open) => open,
            None => {
                let opened = open(&self.thing, &self.config)?;
                *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened.0.waker());
                client.insert(opened)
            }
        };
        client.send(*address, request, Confirmability::Confirmable).map_err(|error| no_answer(&self.thing, &error))
    }

    /// Passes answers on until there is room for another request, or news of one.
    fn take_answers(&self, client: &mut Option<Opened>, waiting: &mut Waiting) -> Result<(), ClientError> {
        let Some((client, _)) = client else { return Ok(()) };
        match client.next(LOOK_PERIOD)? {
            Some(EndpointEvent::Response { request, response, .. }) => {
                if let Some(completion) = waiting.remove(&request) {
                    completion(Ok(response));
                }
            }
            Some(EndpointEvent::Failed { request, error, .. }) => {
                if let Some(completion) = waiting.remove(&request) {
                    completion(Err(no_answer(&self.thing, &ClientError::Request(error))));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Passes notifications on until the observation is over.
fn watch(
    thing: &str,
    request: RequestBuf,
    config: &Config,
    is_over: &AtomicBool,
    listener: &mut ResponseListener,
) -> Result<(), ResourceError> {
    let (mut client, address) = open(thing, config)?;
    let registered = client
        .send(address, request.with_observe(Observe::Register), Confirmability::Confirmable)
        .map_err(|error| no_answer(thing, &error))?;
    while !is_over.load(Ordering::Acquire) {
        match client.next(LOOK_PERIOD).map_err(|error| no_answer(thing, &error))? {
            Some(EndpointEvent::Response { response, .. }) => listener(Ok(response)),
            Some(EndpointEvent::Failed { error, .. }) => {
                return Err(ResourceError::NoAnswer(format!("{thing} is not observed any more: {error}")));
            }
            _ => {}
        }
    }
    client.cancel(registered);
    Ok(())
}

fn open(thing: &str, config: &Config) -> Result<Opened, ResourceError> {
    let unknown = |reason: String| ResourceError::NoAnswer(format!("{thing} is no host to reach: {reason}"));
    let mut addresses = thing.to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
    let address = addresses.next().ok_or_else(|| unknown("the resolver knows no address".to_owned()))?;
    let client = Client::open(address, config.clone()).map_err(|error| no_answer(thing, &error))?;
    Ok((client, address))
}

fn no_answer(thing: &str, error: &ClientError) -> ResourceError {
    ResourceError::NoAnswer(format!("{thing}: {error}"))
}

fn unavailable(reason: String) -> ResourceError {
    ResourceError::Unavailable(reason, Duration::from_secs(1))
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

/// Most things that may be asked at the same time, each with a thread and a socket.
const THINGS_MAX: usize = 256;
/// Most requests to one thing that may wait for their turn.
const ORDERS_MAX: usize = 256;
/// After this time without a request the thread of a thing ends.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Interval at which an observation checks whether it is over.
const LOOK_PERIOD: Duration = Duration::from_millis(200);
