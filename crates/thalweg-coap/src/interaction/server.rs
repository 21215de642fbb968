//! A CoAP server: its sockets, loops, pools and their counters.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use mio::Poll;
use thalweg_transport::batch::BatchSocket;
use thalweg_transport::clock;

use super::adapter::Adapter;
use super::counts::{FilteredRequests, LoopCounts};
pub use super::gate::KernelFilter;
use super::guard::GuardRules;
use super::handler::CatalogAttachment;
use super::handler_pool::{Handlers, Job};
use super::line::Line;
use super::rate_limit::{PeerRate, RateLimit};
use super::receiver::{NetworkReceiver, ProtocolFigures, Shared};
use super::renewal::{CredentialRenewal, RenewalReader};
use super::routes::Routes;
use super::send_handler::SendHandler;
use super::sockets::{Streams, open, open_secure, open_streams};
use super::streams::{Listener, StreamLoop, StreamsConfig, TlsServer};
use crate::credentials::Credentials;
use crate::device::DevicePool;
use crate::dtls::{ClockOrigin, SessionCounts, SessionLimits, Sessions};
use crate::endpoint::reliable::{ReliableCounts, ReliableEndpoint};
use crate::endpoint::{Config, Counters, Endpoint};
use crate::identity::Transport;
use crate::oscore::Keyring;
use crate::scheduler::admission::Patience;
use crate::scheduler::controller::ControlLaw;
use crate::scheduler::pool::Pool;
use crate::scheduler::thread_pool::{ThreadGroup, ThreadPoolManager};
use crate::scheduler::{PoolConfig, Scheduler, SchedulerConfig, Snapshot};

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The address to listen at; port 0 lets the system choose.
    pub address: SocketAddr,
    /// Event loops, each with a socket for the same address; the kernel gives each its peers. Default 1.
    pub loops: usize,
    /// Times and bounds of the protocol, for each loop.
    pub endpoint: Config,
    /// Resource classes in the order of their [`ClassId`](super::handler::ClassId). Default: blocking and device.
    pub classes: Vec<ClassConfig>,
    /// The limit on requests of one host. Default `None`: no limit.
    pub peer_rate: Option<PeerRate>,
    /// Time limit of a handler on the receiving thread. Default 50 µs, the time of ten requests.
    pub inline_max: Duration,
    /// Whether to hear requests to all CoAP nodes (224.0.1.187, ff02::fd, ff05::fd; RFC 7252 §12.8) on every interface.
    /// Possible for an unspecified address. Default no.
    pub groups: GroupRequests,
    /// Whether the kernel drops requests that a pool would refuse. Default yes.
    pub kernel_filter: KernelFilter,
    /// Threads and priorities.
    pub scheduler: SchedulerConfig,
    /// The law for the threads that work with devices. Default `vta`.
    pub resource_law: ControlLaw,
    /// The keys of clients that may send protected requests (OSCORE, RFC 8613). Default `None`: such requests are refused.
    pub keyring: Option<Arc<Keyring>>,
    /// A socket for DTLS beside the one for plain datagrams. Default `None`.
    pub secure: Option<SecureConfig>,
    /// Addresses for TCP, TLS and WebSocket (RFC 8323), all on one thread. Default `None`.
    pub streams: Option<StreamsConfig>,
}

/// A socket for requests over DTLS (`coaps`, RFC 7252 §9).
#[derive(Clone, Debug)]
pub struct SecureConfig {
    /// The address to listen at; port 0 lets the system choose.
    pub address: SocketAddr,
    /// The keys of the clients, or a certificate.
    pub credentials: Credentials,
    /// Bounds of what clients can make it hold.
    pub limits: SessionLimits,
}

/// Whether a server hears requests to groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupRequests {
    /// Only those to itself.
    #[default]
    Ignored,
    /// Also those to all CoAP nodes.
    Heard,
}

/// A resource class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassConfig {
    /// Its name, for threads and statistics.
    pub name: String,
    /// The law for the number of its threads.
    pub law: ControlLaw,
    /// Bounds on the wait of its requests.
    pub patience: Patience,
}

impl ClassConfig {
    /// A class under `law` whose requests wait as long as their clients do.
    pub fn new(name: &str, law: ControlLaw) -> ClassConfig {
        ClassConfig { name: name.to_owned(), law, patience: Patience::default() }
    }
}

impl ServerConfig {
    /// A server with one loop for `address`.
    pub fn new(address: SocketAddr) -> ServerConfig {
        ServerConfig {
            address,
            loops: 1,
            endpoint: Config::default(),
            classes: vec![ClassConfig::new("blocking", ControlLaw::Vta), ClassConfig::new("device", ControlLaw::Vta)],
            peer_rate: None,
            inline_max: Duration::from_micros(50),
            groups: GroupRequests::Ignored,
            kernel_filter: KernelFilter::On,
            scheduler: SchedulerConfig::default(),
            resource_law: ControlLaw::Vta,
            keyring: None,
            secure: None,
            streams: None,
        }
    }
}

/// Why a server cannot be started.
#[derive(Debug)]
pub struct ServerError {
    attempted: String,
    cause: io::Error,
    advice: &'static str,
}

impl ServerError {
    pub(super) fn new(attempted: impl Into<String>, advice: &'static str) -> impl FnOnce(io::Error) -> ServerError {
        move |cause| ServerError { attempted: attempted.into(), cause, advice }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the CoAP server cannot {}: {}; {}", self.attempted, self.cause, self.advice)
    }
}

impl std::error::Error for ServerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// A running server. Dropping it ends its loops and lets handlers that are at work finish by themselves.
pub struct Server {
    address: SocketAddr,
    secure_address: Option<SocketAddr>,
    stream_addresses: Vec<(Transport, SocketAddr)>,
    routes: Arc<Routes>,
    homes: Arc<[SendHandler]>,
    counts: Vec<Arc<Mutex<LoopCounts>>>,
    sessions: Arc<Mutex<SessionCounts>>,
    connections: Arc<Mutex<ReliableCounts>>,
    renewals: Renewals,
    protocol: Vec<Arc<Mutex<ProtocolFigures>>>,
    loops: Vec<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
    failure: Arc<Mutex<Option<String>>>,
    scheduler: Scheduler,
    devices: DevicePool,
    /// Brings changes of the catalog to observers.
    _attachment: Option<CatalogAttachment>,
}

/// Where loops find new credentials.
#[derive(Debug, Default)]
struct Renewals {
    /// The one for DTLS.
    secure: Option<Arc<CredentialRenewal>>,
    /// The one for connections.
    streams: Option<Arc<CredentialRenewal>>,
}

/// Statistics of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerSnapshot {
    /// Counters of each loop since the server started: those of plain datagrams, that of DTLS, that of connections.
    pub loops: Vec<LoopCounts>,
    /// Numbers about DTLS sessions.
    pub sessions: SessionCounts,
    /// Numbers about connections over TCP, TLS and WebSocket.
    pub connections: ReliableCounts,
    /// Counters of the protocol in each loop, as of its last sleep or 64 batches ago.
    pub protocol: Vec<Counters>,
    /// What the filter in the kernel dropped in all loops, by kind, as of the same times.
    pub filtered: Vec<FilteredRequests>,
    /// Statistics of the pools in the last ten seconds.
    pub scheduler: Snapshot,
    /// Paths whose handlers took too long inline and run in a pool now.
    pub demoted: Vec<String>,
}

/// Tells a server that resources changed.
#[derive(Clone)]
pub struct Notifier(Arc<[SendHandler]>);

impl Notifier {
    /// The resource at `path`, such as `/a/b`, changed: its observers are notified of its new state. Changes that follow each
    /// other faster than notifications become one.
    pub fn change(&self, path: &str) {
        let path = Arc::from(path);
        self.0.iter().for_each(|home| home.change(&path));
    }
}

impl Server {
    /// Opens the sockets and starts to serve `routes`.
    ///
    /// # Errors
    /// When the address is taken or not of this host, or the system gives no threads.
    pub fn start(config: &ServerConfig, routes: Routes) -> Result<Server, ServerError> {
        let SchedulerConfig { limits, priorities, .. } = config.scheduler;
        Server::start_among(config, routes, Arc::new(ThreadPoolManager::new(limits.threads_max, priorities)))
    }

    /// The same with threads of this manager, which has some already.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_among(
        config: &ServerConfig,
        routes: Routes,
        threads: Arc<ThreadPoolManager>,
    ) -> Result<Server, ServerError> {
        let mut sockets = open(config)?;
        let address = sockets.first().map_or(config.address, BatchSocket::local_address);
        let secure = config.secure.as_ref().map(open_secure).transpose()?;
        let secure_address = secure.as_ref().map(BatchSocket::local_address);
        sockets.extend(secure);
        let streams = config.streams.as_ref().map(open_streams).transpose()?;
        let stream_addresses = streams.iter().flat_map(|streams| streams.addresses.clone()).collect();
        let mut homes: Vec<SendHandler> = sockets.iter().map(|socket| SendHandler::new(socket.waker())).collect();
        let streams = streams.map(|Streams { poll, waker, listeners, .. }| {
            homes.push(SendHandler::new(waker));
            (poll, listeners)
        });
        let homes: Arc<[SendHandler]> = homes.into();
        let routes = Arc::new(routes);
        let scheduler = Scheduler::start_among(config.scheduler, threads)
            .map_err(ServerError::new("start a thread", NO_THREADS))?;
        let pools = pools(config, &scheduler, &routes, &homes)?;
        let devices = DevicePool::start(&scheduler, config.resource_law)
            .map_err(ServerError::new("start a thread for devices", "give the resource class a law with threads"))?;
        let attachment = routes.attach(Notifier(Arc::clone(&homes)));
        let mut server = Server {
            address,
            secure_address,
            stream_addresses,
            routes,
            homes,
            counts: Vec::new(),
            sessions: Arc::default(),
            connections: Arc::default(),
            renewals: Renewals::default(),
            protocol: Vec::new(),
            loops: Vec::new(),
            is_over: Arc::default(),
            failure: Arc::default(),
            scheduler,
            devices,
            _attachment: attachment,
        };
        for (home, socket) in sockets.into_iter().enumerate() {
            server.add_loop(config, home, socket, &pools)?;
        }
        if let Some((poll, listeners)) = streams {
            server.add_stream_loop(config, poll, listeners, &pools)?;
        }
        Ok(server)
    }

    fn add_loop(
        &mut self,
        config: &ServerConfig,
        home: usize,
        socket: BatchSocket,
        pools: &[Option<Pool<Job>>],
    ) -> Result<(), ServerError> {
        let secret = || super::secret().map_err(ServerError::new("draw random numbers", "allow it getrandom"));
        // The socket for DTLS is the last one.
        let secure = config.secure.as_ref().filter(|_| home == config.loops.max(1));
        // A handshake has proved the address.
        let amplification_max = if secure.is_some() { 0 } else { config.endpoint.amplification_max };
        let (proxying, forwarding) = (self.routes.has_proxy(), self.routes.may_forward());
        let settings = Config { amplification_max, proxying, forwarding, ..config.endpoint.clone() };
        let mut endpoint = Endpoint::new(settings, secret()?);
        if let Some(keyring) = &config.keyring {
            endpoint.set_keyring(Arc::clone(keyring));
        }
        let adapter = self.adapter(config, home, pools);
        let mut receiver = NetworkReceiver::new(socket, endpoint, adapter);
        if config.kernel_filter == KernelFilter::Off {
            receiver = receiver.without_filter();
        }
        if let Some(SecureConfig { credentials, limits, .. }) = secure {
            let sessions = Sessions::new(credentials, *limits, secret()?, ClockOrigin::at(clock::now()));
            let failed =
                |error| ServerError::new("use its DTLS credentials", "see the reason")(io::Error::other(error));
            let renewal = self.renewals.secure.insert(CredentialRenewal::new(credentials.clone()));
            receiver = receiver.with_sessions(sessions.map_err(failed)?, RenewalReader::new(renewal));
        }
        let shared = self.shared(home);
        self.spawn(&format!("receiver-{home}"), move || receiver.run(&shared))
    }

    /// The loop for all connections.
    fn add_stream_loop(
        &mut self,
        config: &ServerConfig,
        poll: Poll,
        listeners: Vec<Listener>,
        pools: &[Option<Pool<Job>>],
    ) -> Result<(), ServerError> {
        let Some(limits) = &config.streams else { return Ok(()) };
        let home = self.homes.len() - 1;
        let secret = super::secret().map_err(ServerError::new("draw random numbers", "allow it getrandom"))?;
        let mut endpoint = ReliableEndpoint::new(limits.limits, secret);
        endpoint.set_forwarding(self.routes.may_forward());
        endpoint.set_proxying(self.routes.has_proxy());
        let (adapter, told) = (self.adapter(config, home, pools), Arc::clone(&self.connections));
        let renewal = self.renewals.streams.insert(CredentialRenewal::new(limits.credentials.clone()));
        let renewal = RenewalReader::new(renewal);
        let streams = StreamLoop::new(poll, listeners, endpoint, adapter, (limits.clone(), renewal), told);
        let streams = streams.map_err(ServerError::new("wait for connections", "allow it more descriptors"))?;
        let shared = self.shared(home);
        self.spawn("receiver-streams", move || streams.run(&shared))
    }

    fn adapter(&self, config: &ServerConfig, home: usize, pools: &[Option<Pool<Job>>]) -> Adapter {
        let lines = pools.iter().map(|pool| Line::new(pool.clone())).collect();
        let limits = (config.peer_rate.map(RateLimit::new), config.inline_max);
        Adapter::new(home, Arc::clone(&self.routes), Arc::clone(&self.homes), lines, limits)
    }

    /// What a loop shares with the server.
    fn shared(&mut self, home: usize) -> Shared {
        let counts: Arc<Mutex<LoopCounts>> = Arc::default();
        self.counts.push(Arc::clone(&counts));
        let protocol: Arc<Mutex<ProtocolFigures>> = Arc::default();
        self.protocol.push(Arc::clone(&protocol));
        let (homes, is_over) = (Arc::clone(&self.homes), Arc::clone(&self.is_over));
        Shared { home, homes, counts, protocol, is_over, sessions: Arc::clone(&self.sessions) }
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() -> io::Result<()> + Send + 'static) -> Result<(), ServerError> {
        let failure = Arc::clone(&self.failure);
        let run = move || {
            if let Err(error) = run() {
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error.to_string());
            }
        };
        let manager = self.scheduler.manager();
        let spawned = manager.spawn(ThreadGroup::Interaction, name, run);
        self.loops.push(spawned.map_err(ServerError::new("start a thread", NO_THREADS))?);
        Ok(())
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address that it listens on for DTLS.
    pub fn secure_address(&self) -> Option<SocketAddr> {
        self.secure_address
    }

    /// The addresses that it listens on for connections.
    pub fn stream_addresses(&self) -> &[(Transport, SocketAddr)] {
        &self.stream_addresses
    }

    /// The reason why a loop ended although the server runs: the system's error.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes other credentials for new sessions over DTLS and TLS. Sessions whose client could not begin one now end: those of a
    /// pre-shared key that is gone or another one, and those of certificates where others are believed.
    ///
    /// # Errors
    /// When they cannot be used by a transport that it serves; the ones before hold then.
    pub fn set_credentials(&self, credentials: &Credentials) -> Result<(), ServerError> {
        self.check_credentials(credentials)?;
        let renewals = self.renewals.secure.iter().chain(&self.renewals.streams);
        if renewals.filter(|renewal| renewal.renew(credentials)).count() > 0 {
            self.homes.iter().for_each(SendHandler::wake);
        }
        Ok(())
    }

    /// Whether every transport that it serves can use other credentials.
    pub(crate) fn check_credentials(&self, credentials: &Credentials) -> Result<(), ServerError> {
        let refused = |transport: &str, error: io::Error| {
            ServerError::new(format!("use the credentials for {transport}"), "the ones before hold")(error)
        };
        if self.secure_address.is_some() {
            Sessions::check(credentials).map_err(|error| refused("DTLS", io::Error::other(error)))?;
        }
        if let Some((transport, _)) = self.stream_addresses.iter().find(|(transport, _)| transport.is_secure()) {
            TlsServer::new(credentials, *transport).map_err(|error| refused("TLS", error))?;
        }
        Ok(())
    }

    /// Takes other rules about what requests have to prove, for those that arrive from now on.
    pub fn set_guard(&self, rules: GuardRules) {
        self.routes.set_guard(rules);
    }

    /// The threads of this server.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// The threads that work with devices, for a [`Linker`](crate::device::Linker).
    pub fn devices(&self) -> &DevicePool {
        &self.devices
    }

    /// A handle to report changed resources.
    pub fn notifier(&self) -> Notifier {
        Notifier(Arc::clone(&self.homes))
    }

    /// Its statistics; may be read at any time.
    pub fn snapshot(&self) -> ServerSnapshot {
        let read = |counts: &Arc<Mutex<LoopCounts>>| *counts.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut protocol, mut filtered) = (Vec::new(), Vec::new());
        for told in &self.protocol {
            let told = told.lock().unwrap_or_else(PoisonError::into_inner);
            protocol.push(told.counters.clone());
            told.filtered.iter().for_each(|kind| kind.add_to(&mut filtered, kind.count));
        }
        ServerSnapshot {
            loops: self.counts.iter().map(read).collect(),
            sessions: *self.sessions.lock().unwrap_or_else(PoisonError::into_inner),
            connections: *self.connections.lock().unwrap_or_else(PoisonError::into_inner),
            protocol,
            filtered,
            scheduler: self.scheduler.snapshot(),
            demoted: self.routes.demoted(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.homes.iter().for_each(SendHandler::wake);
        for thread in self.loops.drain(..) {
            // A panic of a loop was told when it happened.
            let _ = thread.join();
        }
    }
}

/// The pool of each class, `None` for those that run inline.
fn pools(
    config: &ServerConfig,
    scheduler: &Scheduler,
    routes: &Arc<Routes>,
    homes: &Arc<[SendHandler]>,
) -> Result<Vec<Option<Pool<Job>>>, ServerError> {
    let pool = |class: &ClassConfig| {
        if class.law == ControlLaw::Inline {
            return Ok(None);
        }
        let crew = Handlers { routes: Arc::clone(routes), homes: Arc::clone(homes) };
        let (name, law, patience) = (class.name.clone(), class.law, class.patience);
        let pool = PoolConfig { name, group: ThreadGroup::Interaction, law, patience };
        scheduler.add_pool(pool, Box::new(crew)).map(Some).map_err(ServerError::new("start a thread", NO_THREADS))
    };
    config.classes.iter().map(pool).collect()
}

const NO_THREADS: &str = "allow the process more threads";
