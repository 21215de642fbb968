//! A gateway by a file: devices, resources, services, other things, the data space, a directory and proxies in one process.
//!
//! ```
//! use thalweg_coap::gateway::{Gateway, GatewayPlan};
//!
//! let file = r#"
//! schema = "thalweg.gateway/1"
//! server = { bind = "127.0.0.1:0" }
//!
//! [[device]]
//! driver = "kit"
//! name = "hall"
//! model = "temphumi"
//! adaptive = { error = 0.2 }
//!
//! [[resource]]
//! path = "building/name"
//! value = "Main Street 7"
//! "#;
//! let mut gateway = Gateway::start(GatewayPlan::parse("gateway.toml", file)?)?;
//! gateway.start_parts();
//! assert!(gateway.store().paths().contains(&"sensors/hall/temperature".to_owned()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Gateway::reload`] takes over another plan: what is the same goes on undisturbed, its observers included.

mod catalog;
mod entrances;
mod forward;
mod kept;
mod mirror;
mod pack;
mod parts;
mod plan;
mod reading;
mod rules;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use crate::credentials::Credentials;
use crate::endpoint::Config;
use crate::identity::Transport;
use crate::interaction::guard::{Guard, GuardRules};
use crate::interaction::rate_limit::PeerRate;
use crate::interaction::routes::Routes;
use crate::interaction::server::{GroupRequests, Server, ServerConfig};
use crate::oscore::file::{ClientContexts, KeyringFile, ReadContexts};
use crate::proxy::Relay;
use crate::resource::{LocalStore, Sampler, system_clock};
use crate::scheduler::thread_pool::ThreadPoolManager;
use crate::service::{CoapRemote, Remote, Things};
use crate::statistics::{self, FigureSource, Figures, MetricsServer};

use catalog::GatewayCatalog;
pub use entrances::{CredentialFiles, EntrancesPlan};
use forward::GatewayProxy;
use parts::Parts;
pub use plan::{
    BridgePlan, DevicePlan, DriverPlan, GatewayPlan, LawPlan, PackPlan, RemotePlan, ReversePlan, ServerBounds,
    ServerPlan, ServicePlan, ServiceRule, ThingPlan, ValuePlan,
};

/// A running gateway; dropping it ends everything in order.
pub struct Gateway {
    plan: GatewayPlan,
    /// The parts use what stands below, so they end first.
    parts: Parts,
    figures: FigureSource,
    _metrics: Option<MetricsServer>,
    _sampler: Sampler,
    forward: Arc<GatewayProxy>,
    guard: Arc<Guard>,
    store: LocalStore,
    server: Arc<Server>,
    metrics_address: Option<SocketAddr>,
    /// The file of the OSCORE contexts.
    keyring: Option<KeyringFile>,
}

/// What clients have to prove, besides rules.
struct Proofs {
    /// Of transports that the plan has; those of others stay until a restart closes their sockets.
    credentials: Option<Credentials>,
    /// Contexts of OSCORE for a keyring that there is.
    contexts: Option<ReadContexts>,
}

/// Why a gateway cannot be started, or a plan not be taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayError(String);

impl fmt::Display for GatewayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GatewayError {}

/// What a new plan changed, for the one who runs the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayChanges {
    /// Parts that began, such as `device hall`.
    pub started: Vec<String>,
    /// Parts that ended.
    pub ended: Vec<String>,
    /// Parts that could not begin, and why; they cost the others nothing.
    pub failed: Vec<String>,
    /// Settings that need a restart; the old ones hold.
    pub needs_restart: Vec<String>,
}

impl Gateway {
    /// Opens the sockets; [`start_parts`](Self::start_parts) comes next.
    ///
    /// # Errors
    /// When the server cannot be started, or the keys cannot be read.
    pub fn start(plan: GatewayPlan) -> Result<Gateway, GatewayError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: String| GatewayError(format!("{what}: {error}"))
        };
        let (store, figures) = (LocalStore::new(), FigureSource::new());
        let (config, keyring) = server_config(&plan)?;
        let threads = Arc::new(ThreadPoolManager::new(plan.server.threads_max, plan.server.priorities));
        let mut remote_config = Config::default();
        remote_config.limits.peers_max = REMOTE_PEERS_MAX;
        // Things answer one request at a time and notify now and then: few of their messages can arrive twice.
        remote_config.limits.duplicates_max = 8;
        let remote = CoapRemote::start(remote_config, &threads);
        let remote = Arc::new(remote.map_err(|error| failed("no client for other things")(error.to_string()))?);
        let as_remote = Arc::clone(&remote) as Arc<dyn Remote>;
        let things = Things::new(store.clone(), Arc::clone(&as_remote), plan.server.cache_bytes, system_clock());
        let relay = Relay::new(things.clone(), Arc::clone(&as_remote), PROXY_PATIENCE);
        let destinations = plan.forward.clone().unwrap_or_default();
        let guard = Arc::new(Guard::default());
        guard.set(guard_rules(&plan));
        let forward = Arc::new(GatewayProxy::new(relay.clone(), destinations, Arc::clone(&guard)));
        let catalog = Arc::new(GatewayCatalog::new(store.clone(), Arc::clone(&guard)));
        let mut routes = Routes::new().with_guard(Arc::clone(&guard)).with_catalog(Arc::clone(&catalog) as _);
        if plan.forward.is_some() {
            routes = routes.with_proxy(Arc::clone(&forward) as _);
        }
        if plan.server.statistics {
            routes = statistics::add_resources(routes, &figures);
        }
        let server = Server::start_among(&config, routes, threads).map_err(|error| GatewayError(error.to_string()))?;
        let server = Arc::new(server);
        figures.set(&server, &store, Some(&things), Some(&remote));
        remote.set_own_ports(vec![server.address().port()]);
        let manager = server.scheduler().manager();
        let sampler = Sampler::start(store.clone(), system_clock(), manager);
        let sampler = sampler.map_err(|error| failed("no thread samples")(error.to_string()))?;
        let metrics =
            plan.server.metrics.map(|address| statistics::serve_metrics(address, figures.clone(), manager)).transpose();
        let metrics = metrics.map_err(|error| failed("no metrics over HTTP")(error.to_string()))?;
        let parts = Parts::new(parts::Surroundings {
            store: store.clone(),
            things,
            remote,
            relay,
            catalog,
            devices: server.devices().clone(),
            threads: Arc::clone(manager),
            guard: Arc::clone(&guard),
            contexts: Mutex::new(keyring.as_ref().map_or_else(ClientContexts::default, KeyringFile::client_contexts)),
            address: server.address(),
        });
        let metrics_address = metrics.as_ref().map(MetricsServer::address);
        Ok(Gateway {
            plan,
            parts,
            figures,
            _metrics: metrics,
            _sampler: sampler,
            forward,
            guard,
            store,
            server,
            metrics_address,
            keyring,
        })
    }

    /// Starts the parts of the plan; the result says what began and what could not.
    pub fn start_parts(&mut self) -> GatewayChanges {
        let mut changes = GatewayChanges::default();
        let held = self.parts.end(&self.plan, &mut changes);
        self.parts.begin(&self.plan, &mut changes);
        drop(held);
        // The parts know their own plans.
        self.plan.remotes = Vec::new();
        changes
    }

    /// Takes over another plan. Peers, observers and parts that stay the same are not disturbed. Nothing answers without its rules
    /// meanwhile: what is gone ends under the rules and keys before, and what is new begins under its own.
    ///
    /// # Errors
    /// When keys or certificates of the plan cannot be read or used. Nothing changes then: rules are worth what keys prove.
    pub fn reload(&mut self, plan: GatewayPlan) -> Result<GatewayChanges, GatewayError> {
        let proofs = self.read_proofs(&plan)?;
        let mut changes = GatewayChanges { needs_restart: self.fixed_differences(&plan), ..GatewayChanges::default() };
        let laws = [("blocking", plan.laws.blocking), ("device", plan.laws.device), ("resource", plan.laws.resource)];
        for (pool, law) in laws {
            self.server.scheduler().set_law(pool, law);
        }
        let held = self.parts.end(&plan, &mut changes);
        self.take_over_proofs(&plan, proofs, &mut changes);
        self.parts.begin(&plan, &mut changes);
        drop(held);
        let server = self.plan.server.clone();
        let (forward, period) = (self.plan.forward.clone(), self.plan.laws.period);
        self.plan = plan;
        // What was not taken over is compared again at the next reload.
        (self.plan.server, self.plan.laws.period) = (server, period);
        if self.plan.forward.is_some() != forward.is_some() {
            self.plan.forward = forward;
        }
        Ok(changes)
    }

    /// Reads what clients have to prove by another plan; nothing is different yet.
    fn read_proofs(&self, plan: &GatewayPlan) -> Result<Proofs, GatewayError> {
        let failed = |what: &str, reason: &dyn fmt::Display| GatewayError(format!("{what}: {reason}"));
        let files = &plan.server.entrances.files;
        let credentials = (*files != CredentialFiles::default()).then(|| files.load()).transpose();
        let credentials = credentials.map_err(|error| failed("credentials", &error))?;
        let checked = credentials.iter().try_for_each(|credentials| self.server.check_credentials(credentials));
        checked.map_err(|error| failed("credentials", &error))?;
        let contexts = match (&self.keyring, &plan.server.oscore) {
            (Some(keyring), Some(path)) => Some(keyring.read(path).map_err(|error| failed("oscore", &error))?),
            // The first contexts need a restart.
            _ => None,
        };
        Ok(Proofs { credentials, contexts })
    }

    /// Takes over rules, keys, certificates and the destinations of the proxy.
    fn take_over_proofs(&mut self, plan: &GatewayPlan, proofs: Proofs, changes: &mut GatewayChanges) {
        // Whichever keys a request has meanwhile, it passes the rules that go with them.
        self.guard.add(guard_rules(plan));
        let used = proofs.credentials.iter().try_for_each(|credentials| self.server.set_credentials(credentials));
        changes.failed.extend(used.err().map(|error| format!("credentials: {error}")));
        match (&mut self.keyring, proofs.contexts) {
            (Some(keyring), Some(contexts)) => keyring.take_over(contexts),
            (Some(keyring), None) => keyring.clear(),
            (None, _) => {}
        }
        // Without a new [proxy], which needs a restart, the proxy stays and goes nowhere.
        if self.plan.forward.is_some() || plan.forward.is_none() {
            self.forward.set_destinations(plan.forward.clone().unwrap_or_default());
        }
        self.guard.set(guard_rules(plan));
    }

    /// Looks at what changes by itself: topics of the data space. To be called some times a second.
    pub fn refresh(&mut self) -> GatewayChanges {
        let mut changes = GatewayChanges::default();
        self.parts.refresh(&mut changes);
        changes
    }

    /// The address of CoAP.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The address of CoAP over DTLS, where it is served.
    pub fn secure_address(&self) -> Option<SocketAddr> {
        self.server.secure_address()
    }

    /// The addresses for connections, with their transports.
    pub fn stream_addresses(&self) -> &[(Transport, SocketAddr)] {
        self.server.stream_addresses()
    }

    /// The address of the metrics over HTTP.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// The resources.
    pub fn store(&self) -> &LocalStore {
        &self.store
    }

    /// The figures now.
    pub fn figures(&self) -> Figures {
        self.figures.read().unwrap_or_default()
    }

    /// Priorities that the system refused so far.
    pub fn priority_refusals(&self) -> Vec<crate::scheduler::priority::PriorityRefusal> {
        self.server.scheduler().manager().refusals()
    }

    /// Why a loop of the server ended although the gateway runs.
    pub fn failure(&self) -> Option<String> {
        self.server.failure()
    }

    /// The settings of another plan that need a restart.
    fn fixed_differences(&self, plan: &GatewayPlan) -> Vec<String> {
        let (old, new) = (&self.plan.server, &plan.server);
        let differences = [
            ("server.bind", old.bind != new.bind),
            ("server.loops", old.loops != new.loops),
            ("server.groups", old.groups != new.groups),
            ("server.peer_rate", old.peer_rate != new.peer_rate),
            ("server.peers_max", old.bounds.peers_max != new.bounds.peers_max),
            ("server.observers_max", old.bounds.observers_max != new.bounds.observers_max),
            ("server.kernel_filter", old.bounds.kernel_filter != new.bounds.kernel_filter),
            ("server.threads_max", old.threads_max != new.threads_max),
            ("server.metrics", old.metrics != new.metrics),
            ("server.statistics", old.statistics != new.statistics),
            ("server.cache_bytes", old.cache_bytes != new.cache_bytes),
            ("priorities", old.priorities != new.priorities),
            ("server.listen", old.entrances.listeners != new.entrances.listeners),
            ("dtls.bind", old.entrances.secure != new.entrances.secure),
            ("oscore", self.keyring.is_none() && new.oscore.is_some()),
            ("laws.period_ms", self.plan.laws.period != plan.laws.period),
            ("proxy", self.plan.forward.is_none() && plan.forward.is_some()),
        ];
        differences.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned()).collect()
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gateway({})", self.address())
    }
}

fn guard_rules(plan: &GatewayPlan) -> GuardRules {
    GuardRules { protected: plan.server.protected.clone(), access: plan.server.access.clone() }
}

fn server_config(plan: &GatewayPlan) -> Result<(ServerConfig, Option<KeyringFile>), GatewayError> {
    let mut config = ServerConfig::new(plan.server.bind);
    config.loops = plan.server.loops;
    config.groups = if plan.server.groups { GroupRequests::Heard } else { GroupRequests::Ignored };
    config.peer_rate = plan.server.peer_rate.map(|rate| PeerRate { requests_per_second: rate, burst: rate });
    let bounds = plan.server.bounds;
    config.endpoint.limits.peers_max = bounds.peers_max;
    config.endpoint.observe.observers_max = bounds.observers_max;
    config.kernel_filter = bounds.kernel_filter;
    for class in &mut config.classes {
        class.law = if class.name == "blocking" { plan.laws.blocking } else { plan.laws.device };
    }
    config.resource_law = plan.laws.resource;
    config.scheduler.period = plan.laws.period;
    config.scheduler.limits.threads_max = plan.server.threads_max;
    config.scheduler.priorities = plan.server.priorities;
    plan.server.entrances.add_to(&mut config)?;
    let load = |path| KeyringFile::load(path).map_err(|error| GatewayError(error.to_string()));
    let keyring = plan.server.oscore.as_deref().map(load).transpose()?;
    config.keyring = keyring.as_ref().map(|file| Arc::clone(file.keyring()));
    Ok((config, keyring))
}

/// Other things that one gateway may ask at a time.
const REMOTE_PEERS_MAX: usize = 65_536;
/// A proxy's client repeats its request until then (MAX_TRANSMIT_SPAN, RFC 7252 §4.8.2).
const PROXY_PATIENCE: std::time::Duration = std::time::Duration::from_secs(45);
