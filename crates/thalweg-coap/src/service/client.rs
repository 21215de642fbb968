//! Other things over CoAP: one thread and one socket for all of them.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;

use thalweg_transport::batch::Waker;

use crate::endpoint::{Config, Counters};
use crate::interaction::client::{Client, ClientError};
use crate::message::{Code, RequestBuf};
use crate::oscore::Context;
use crate::resource::ResourceError;
use crate::scheduler::thread_pool::{ThreadGroup, ThreadPoolManager};
use crate::service::neighbours::Neighbours;
use crate::service::remote::{Remote, RemoteObservation, ResponseCompletion, ResponseListener};
use crate::service::resolver::Resolver;

/// Reaches other things over UDP. All requests and observations of all things go by one socket, which one thread of the
/// interaction group drives; a thing costs the memory of its state alone. As many requests to one thing are under way as
/// [`Config::nstart`] says, one by default (RFC 7252 §4.7).
///
/// Host names are resolved on a thread that runs while there are some, and remembered for a minute.
pub struct CoapRemote {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What applications and the thread share.
pub(super) struct Shared {
    inbox: Mutex<Inbox>,
    waker: Mutex<Waker>,
    registrations: AtomicU64,
    counters: Mutex<Counters>,
    /// The keys of things that are asked under keys alone, by their names in lower case; `None` for one whose keys are missing.
    contexts: RwLock<HashMap<String, Option<Arc<Context>>>>,
    /// Ports at which this thing itself serves.
    own_ports: RwLock<Vec<u16>>,
}

/// Orders since the thread last took them.
#[derive(Default)]
struct Inbox {
    orders: Vec<Order>,
    is_over: bool,
}

/// What an application wants.
pub(super) enum Order {
    /// An answer.
    Ask { thing: String, request: RequestBuf, completion: ResponseCompletion },
    /// Notifications, under this number.
    Observe { thing: String, request: RequestBuf, listener: ResponseListener, number: u64 },
    /// No more notifications.
    End { number: u64 },
    /// The resolver found this.
    Resolved { thing: String, outcome: Result<SocketAddr, ResourceError> },
    /// A thing has other keys: its observations begin anew.
    Renew { thing: String },
}

impl CoapRemote {
    /// Opens the socket and starts the thread. Where the host has no IPv6, only things with IPv4 addresses can be reached.
    /// Responses are kept by the [`Things`](crate::service::Things) above it alone: the cache of the endpoint is off.
    ///
    /// # Errors
    /// When the system gives no socket or thread.
    pub fn start(mut config: Config, threads: &Arc<ThreadPoolManager>) -> io::Result<CoapRemote> {
        // It would not hear when the store above forgets a response, and give it again.
        config.limits.cache_bytes_max = 0;
        let opened = open(&config).map_err(|error| io::Error::other(error.to_string()))?;
        let shared = Arc::new(Shared {
            inbox: Mutex::default(),
            waker: Mutex::new(opened.0.waker()),
            registrations: AtomicU64::new(0),
            counters: Mutex::default(),
            contexts: RwLock::default(),
            own_ports: RwLock::default(),
        });
        let resolver = Resolver::new(Arc::clone(&shared), Arc::clone(threads));
        let neighbours = Neighbours::new(opened, config, resolver);
        let for_thread = Arc::clone(&shared);
        let thread = threads.spawn(ThreadGroup::Interaction, "remote-things", move || neighbours.run(&for_thread))?;
        Ok(CoapRemote { shared, thread: Some(thread) })
    }

    /// Asks these things, `host:port`, under keys alone (OSCORE, RFC 8613), and all others without. Keys that a thing has already
    /// stay; one without keys is not asked.
    pub fn set_protected<'a>(&self, things: impl IntoIterator<Item = &'a str>) {
        let mut contexts = self.shared.contexts.write().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *contexts);
        let mut renewed = Vec::new();
        for name in things.into_iter().map(str::to_ascii_lowercase) {
            let held = before.remove(&name);
            renewed.extend(held.is_none().then(|| name.clone()));
            contexts.insert(name, held.flatten());
        }
        drop(contexts);
        renewed.extend(before.into_keys());
        renewed.into_iter().for_each(|thing| self.shared.submit(Order::Renew { thing }));
    }

    /// Gives a protected thing its keys, or takes them away; observations of it begin anew.
    pub fn set_context(&self, thing: &str, context: Option<Arc<Context>>) {
        let thing = thing.to_ascii_lowercase();
        let mut contexts = self.shared.contexts.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = contexts.get_mut(&thing) {
            *held = context;
            drop(contexts);
            self.shared.submit(Order::Renew { thing });
        }
    }

    /// Never asks this host at these ports, whatever name or address it goes by: what comes from there looks as if it came from
    /// the host itself, and not from the client behind it.
    pub fn set_own_ports(&self, ports: Vec<u16>) {
        *self.shared.own_ports.write().unwrap_or_else(PoisonError::into_inner) = ports;
    }

    /// Counters of the protocol, not older than a second while there is traffic.
    pub fn counters(&self) -> Counters {
        self.shared.counters.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Remote for CoapRemote {
    fn request(&self, thing: &str, request: RequestBuf, completion: ResponseCompletion) {
        self.shared.submit(Order::Ask { thing: thing.to_owned(), request, completion });
    }

    fn is_protected(&self, thing: &str) -> bool {
        !matches!(self.shared.context(thing), Ok(None))
    }

    fn observe(&self, thing: &str, request: RequestBuf, listener: ResponseListener) -> Box<dyn RemoteObservation> {
        let number = self.shared.registrations.fetch_add(1, Ordering::Relaxed);
        self.shared.submit(Order::Observe { thing: thing.to_owned(), request, listener, number });
        Box::new(Registration { shared: Arc::clone(&self.shared), number })
    }
}

impl Drop for CoapRemote {
    fn drop(&mut self) {
        self.shared.inbox().is_over = true;
        self.shared.wake();
        // A completion may hold the last of it: then its thread is this one, and ends by itself.
        let is_own = |thread: &JoinHandle<()>| thread.thread().id() == std::thread::current().id();
        if let Some(thread) = self.thread.take().filter(|thread| !is_own(thread)) {
            // A panic there has been reported there.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for CoapRemote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CoapRemote({} requests)", self.counters().requests)
    }
}

/// Ends an observation.
struct Registration {
    shared: Arc<Shared>,
    number: u64,
}

impl RemoteObservation for Registration {}

impl Drop for Registration {
    fn drop(&mut self) {
        self.shared.submit(Order::End { number: self.number });
    }
}

impl Shared {
    /// Leaves an order for the thread, or refuses it at once.
    pub(super) fn submit(&self, order: Order) {
        let mut inbox = self.inbox();
        // Ends and findings are as many as there were orders; refusing them would leave something behind.
        let is_bounded = matches!(order, Order::Ask { .. } | Order::Observe { .. });
        if inbox.is_over || (is_bounded && inbox.orders.len() >= ORDERS_MAX) {
            drop(inbox);
            return order.refuse(ResourceError::Unavailable(
                "too many requests to other things wait already".to_owned(),
                std::time::Duration::from_secs(1),
            ));
        }
        let was_empty = inbox.orders.is_empty();
        inbox.orders.push(order);
        drop(inbox);
        if was_empty {
            self.wake();
        }
    }

    /// The orders since the last call; `None` when the thread is to end.
    pub(super) fn take(&self) -> Option<Vec<Order>> {
        let mut inbox = self.inbox();
        if inbox.is_over { None } else { Some(std::mem::take(&mut inbox.orders)) }
    }

    /// The orders that nobody will carry out any more.
    pub(super) fn take_rest(&self) -> Vec<Order> {
        let mut inbox = self.inbox();
        inbox.is_over = true;
        std::mem::take(&mut inbox.orders)
    }

    /// The keys for a thing, if it is asked under keys.
    pub(super) fn context(&self, thing: &str) -> Result<Option<Arc<Context>>, ResourceError> {
        let contexts = self.contexts.read().unwrap_or_else(PoisonError::into_inner);
        if contexts.is_empty() {
            return Ok(None);
        }
        match contexts.get(&thing.to_ascii_lowercase()) {
            None => Ok(None),
            Some(Some(context)) => Ok(Some(Arc::clone(context))),
            Some(None) => Err(ResourceError::Failed(format!("the OSCORE keys for {thing} are missing"))),
        }
    }

    /// Why a thing at this address is not asked.
    pub(super) fn refusal(&self, thing: &str, address: SocketAddr) -> Option<ResourceError> {
        let is_own_port = self.own_ports.read().unwrap_or_else(PoisonError::into_inner).contains(&address.port());
        // A socket can be bound to the addresses of this host alone, and to groups.
        let is_own = is_own_port && UdpSocket::bind((address.ip().to_canonical(), 0)).is_ok();
        is_own.then(|| ResourceError::Refused(Code::FORBIDDEN, format!("{thing} is this server itself")))
    }

    pub(super) fn set_waker(&self, waker: Waker) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = waker;
    }

    pub(super) fn set_counters(&self, counters: Counters) {
        *self.counters.lock().unwrap_or_else(PoisonError::into_inner) = counters;
    }

    fn wake(&self) {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner).wake();
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Order {
    /// Tells the one who gave the order that nothing comes of it.
    pub(super) fn refuse(self, error: ResourceError) {
        match self {
            Order::Ask { completion, .. } => completion(Err(error)),
            Order::Observe { mut listener, .. } => listener(Err(error)),
            Order::End { .. } | Order::Resolved { .. } | Order::Renew { .. } => {}
        }
    }
}

/// Which addresses a socket reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Both families: IPv4 addresses are mapped into IPv6 ones.
    Both,
    /// IPv4 alone.
    V4,
}

/// A client for any address.
pub(super) fn open(config: &Config) -> Result<(Client, Reach), ClientError> {
    let any = |ip: IpAddr| SocketAddr::new(ip, 0);
    match Client::open(any(Ipv6Addr::LOCALHOST.into()), config.clone()) {
        Ok(client) => Ok((client, Reach::Both)),
        Err(_) => Client::open(any(Ipv4Addr::LOCALHOST.into()), config.clone()).map(|client| (client, Reach::V4)),
    }
}

/// Most orders that may wait for the thread; it takes all of them at once, so this is what comes in one of its turns.
const ORDERS_MAX: usize = 65_536;
