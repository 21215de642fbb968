//! The parts of a running gateway.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg::DomainParticipant;

use super::catalog::GatewayCatalog;
use super::kept::Kept;
use super::mirror::Mirror;
use super::pack::ReadingPack;
use super::plan::{
    BridgePlan, DevicePlan, DriverPlan, GatewayPlan, PackPlan, RemotePlan, ReversePlan, ServicePlan, ThingPlan,
    ValuePlan,
};
use super::{GatewayChanges, rules};
use crate::data_space::{Bridge, Exporter, Types};
use crate::device::drivers::{Kit, System, Thermal};
use crate::device::{DevicePool, Finder, Linker};
use crate::directory::{Registration, RegistrationPlan};
use crate::interaction::guard::Guard;
use crate::oscore::file::{ClientContexts, HeldContext};
use crate::proxy::{Relay, ReverseProxy};
use crate::resource::{
    ChannelPolicy, HeldChanges, LocalStore, Property, RemoteName, Resource, add_devices, system_clock,
};
use crate::scheduler::thread_pool::ThreadPoolManager;
use crate::service::{CoapRemote, Remote, Services, Things};

/// What the parts use.
pub(super) struct Surroundings {
    pub store: LocalStore,
    pub things: Things,
    pub remote: Arc<CoapRemote>,
    pub relay: Relay,
    pub catalog: Arc<GatewayCatalog>,
    pub devices: DevicePool,
    pub threads: Arc<ThreadPoolManager>,
    /// The rules in force.
    pub guard: Arc<Guard>,
    /// Keys of other things, which requests under way may use beyond the end of their part.
    pub contexts: Mutex<ClientContexts>,
    /// Where the server listens for plain datagrams.
    pub address: SocketAddr,
}

/// All parts that a plan may have, by kind.
pub(super) struct Parts {
    surroundings: Surroundings,
    services: Arc<Mutex<Services>>,
    bridge: Kept<BridgePlan, RunningBridge>,
    running_services: Kept<ServicePlan, RunningService>,
    registrations: Kept<RegistrationPlan, RunningService>,
    packs: Kept<PackPlan, StoredPaths>,
    remotes: Kept<RemotePlan, StoredPaths>,
    values: Kept<ValuePlan, StoredPaths>,
    devices: Kept<DevicePlan, StoredPaths>,
    reverse: Kept<ReversePlan, Arc<ReverseProxy>>,
    things: Kept<ThingPlan, ThingKeys>,
}

/// Resources that leave the store with their part.
struct StoredPaths {
    store: LocalStore,
    paths: Vec<String>,
}

impl Drop for StoredPaths {
    fn drop(&mut self) {
        for path in &self.paths {
            self.store.remove(path);
        }
    }
}

/// Keys for a thing, which is not asked without them.
struct ThingKeys {
    remote: Arc<CoapRemote>,
    thing: String,
    _held: HeldContext,
}

impl Drop for ThingKeys {
    fn drop(&mut self) {
        self.remote.set_context(&self.thing, None);
    }
}

/// A service that ends with its part.
struct RunningService {
    services: Arc<Mutex<Services>>,
    name: String,
}

impl RunningService {
    /// Tells the service to end, so that it does so while others are waited for.
    fn announce_stop(&self) {
        self.services.lock().unwrap_or_else(PoisonError::into_inner).announce_stop(&self.name);
    }
}

impl Drop for RunningService {
    fn drop(&mut self) {
        self.services.lock().unwrap_or_else(PoisonError::into_inner).stop(&self.name);
    }
}

/// Membership in the data space.
struct RunningBridge {
    bridge: Bridge,
    store: LocalStore,
    exporter: Exporter,
    export: Vec<String>,
    /// Paths that have a topic.
    exported: Vec<String>,
}

impl Parts {
    pub(super) fn new(surroundings: Surroundings) -> Parts {
        let services = Services::new(surroundings.things.clone(), Arc::clone(&surroundings.threads));
        Parts {
            services: Arc::new(Mutex::new(services)),
            surroundings,
            bridge: Kept::new("bridge"),
            running_services: Kept::new("service"),
            registrations: Kept::new("registration"),
            packs: Kept::new("pack"),
            remotes: Kept::new("remote"),
            values: Kept::new("resource"),
            devices: Kept::new("device"),
            reverse: Kept::new("reverse"),
            things: Kept::new("keys of"),
        }
    }

    /// Ends what the plan does not have. Observers hear of changes when the result is dropped, so that those of a resource that is
    /// replaced hear of its new state alone.
    pub(super) fn end(&mut self, plan: &GatewayPlan, changes: &mut GatewayChanges) -> HeldChanges {
        // A directory may take its time, and nobody's news wait for it: registrations take no resource with them.
        self.registrations.leaving(&plan.registrations).for_each(RunningService::announce_stop);
        self.registrations.end(&plan.registrations, registration_name, changes);
        let held = self.surroundings.store.hold_changes();
        let bridges: Vec<BridgePlan> = plan.bridge.iter().cloned().collect();
        // Who uses others ends before them.
        self.bridge.end(&bridges, bridge_name, changes);
        self.running_services.leaving(&plan.services).for_each(RunningService::announce_stop);
        self.running_services.end(&plan.services, |one| one.name.clone(), changes);
        self.packs.end(&plan.packs, |one| one.path.clone(), changes);
        self.remotes.end(&plan.remotes, |one| one.path.clone(), changes);
        self.values.end(&plan.resources, |one| one.path.clone(), changes);
        self.devices.end(&plan.devices, device_name, changes);
        self.reverse.end(&plan.reverse, |one| one.path.clone(), changes);
        let proxies = self.reverse.holders().map(|proxy| Arc::clone(proxy)).collect();
        self.surroundings.catalog.set_reverse(proxies);
        if !plan.serves_directory {
            self.surroundings.catalog.set_directory(false);
        }
        self.things.end(&plan.things, |one| one.thing.clone(), changes);
        held
    }

    /// Begins what is new in the plan.
    pub(super) fn begin(&mut self, plan: &GatewayPlan, changes: &mut GatewayChanges) {
        let bridges: Vec<BridgePlan> = plan.bridge.iter().cloned().collect();
        let around = &self.surroundings;
        around.remote.set_protected(plan.things.iter().map(|thing| thing.thing.as_str()));
        self.things.begin(&plan.things, |one| one.thing.clone(), changes, |one| around.add_keys(one));
        self.devices.begin(&plan.devices, device_name, changes, |one| around.add_devices(one));
        self.values.begin(&plan.resources, |one| one.path.clone(), changes, |one| around.add_value(one));
        self.remotes.begin(&plan.remotes, |one| one.path.clone(), changes, |one| around.add_remote(one));
        self.packs.begin(&plan.packs, |one| one.path.clone(), changes, |one| around.add_pack(one));
        self.reverse.begin(
            &plan.reverse,
            |one| one.path.clone(),
            changes,
            |one| Ok(Arc::new(ReverseProxy::new(around.relay.clone(), &one.path, one.to.clone()))),
        );
        let proxies = self.reverse.holders().map(|proxy| Arc::clone(proxy)).collect();
        around.catalog.set_reverse(proxies);
        around.catalog.set_directory(plan.serves_directory);
        let services = &self.services;
        self.running_services.begin(
            &plan.services,
            |one| one.name.clone(),
            changes,
            |one| {
                let plan = one.clone();
                start_service(services, &one.name, move |things, stop| rules::run(&plan, things, stop))
            },
        );
        self.registrations.begin(&plan.registrations, registration_name, changes, |one| {
            let plan = RegistrationPlan { base: Some(around.base_of(one)?), ..one.clone() };
            let registration = Registration::new(plan, Arc::clone(&around.remote) as Arc<dyn Remote>);
            let directory = one.directory.clone();
            let tell = move |outcome: &Result<String, _>| match outcome {
                Ok(location) => tracing::info!("registered at {directory} as {location}"),
                Err(error) => tracing::warn!("not registered at {directory}: {error}"),
            };
            let name = format!("register-{} in {:?} at {}", one.endpoint, one.sector, one.directory);
            start_service(services, &name, move |things, stop| registration.run(things, stop, &tell))
        });
        self.bridge.begin(&bridges, bridge_name, changes, |one| RunningBridge::start(one, &around.store));
        self.refresh(changes);
    }

    /// Looks at what changes by itself.
    pub(super) fn refresh(&mut self, changes: &mut GatewayChanges) {
        self.bridge.holders().for_each(|bridge| bridge.refresh(changes));
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.services.lock().unwrap_or_else(PoisonError::into_inner).announce_stops();
    }
}

impl Surroundings {
    /// Where things find this server. The directory cannot tell: requests leave by another port (RFC 9176 §5).
    fn base_of(&self, plan: &RegistrationPlan) -> Result<String, String> {
        match &plan.base {
            Some(base) => Ok(base.clone()),
            None if self.address.ip().is_unspecified() => {
                Err("base is needed, such as coap://192.0.2.7, since the server listens at every address".to_owned())
            }
            None => Ok(format!("coap://{}", self.address)),
        }
    }

    fn add_devices(&self, plan: &DevicePlan) -> Result<StoredPaths, String> {
        let finder = match &plan.driver {
            DriverPlan::Thermal => Finder::new().with(Thermal::default()),
            DriverPlan::System => Finder::new().with(System::default()),
            DriverPlan::Kit { name, model, count } => {
                let names = (1..=*count).map(|number| match count {
                    1 => name.clone(),
                    _ => format!("{name}-{number}"),
                });
                Finder::new().with(names.fold(Kit::new(KIT_SEED), |kit, name| kit.with(name, *model)))
            }
        };
        let policy = ChannelPolicy { root: plan.root.clone(), sampling: plan.sampling, timeout: plan.timeout };
        let before = self.store.paths();
        let linker = Linker::new(self.devices.clone());
        let failures = add_devices(&self.store, &finder.find(FIND_PATIENCE), &linker, &policy, &system_clock());
        // Services may publish meanwhile, elsewhere.
        let below = format!("{}/", plan.root);
        let is_new = |path: &String| path.starts_with(&below) && before.binary_search(path).is_err();
        let new = self.store.paths().into_iter().filter(is_new).collect();
        // Also when some failed: what there is leaves with the part.
        let paths = StoredPaths { store: self.store.clone(), paths: new };
        match failures.first() {
            None => Ok(paths),
            Some((device, reason)) => Err(format!("{device}: {reason}")),
        }
    }

    fn add_keys(&self, plan: &ThingPlan) -> Result<ThingKeys, String> {
        let held = self.contexts.lock().unwrap_or_else(PoisonError::into_inner).load(&plan.oscore);
        let held = held.map_err(|error| error.to_string())?;
        self.remote.set_context(&plan.thing, Some(Arc::clone(held.context())));
        Ok(ThingKeys { remote: Arc::clone(&self.remote), thing: plan.thing.clone(), _held: held })
    }

    fn add_value(&self, plan: &ValuePlan) -> Result<StoredPaths, String> {
        let (max_age, value) = (plan.max_age, plan.value.clone());
        let property = Property::constant(&plan.path, &plan.quantity, plan.unit, max_age, value, system_clock());
        self.add(vec![Arc::new(property)])
    }

    fn add_remote(&self, plan: &RemotePlan) -> Result<StoredPaths, String> {
        let mirror = |path: &String| {
            let name = RemoteName { thing: plan.thing.clone(), path: path.clone() };
            let mirror = Mirror::start(plan.local_path(path), name, &self.things, system_clock());
            Arc::new(mirror) as Arc<dyn Resource>
        };
        self.add(plan.resources.iter().map(mirror).collect())
    }

    fn add_pack(&self, plan: &PackPlan) -> Result<StoredPaths, String> {
        let (path, root) = (plan.path.clone(), plan.root.clone());
        let pack = ReadingPack::new(path, root, self.store.clone(), Arc::clone(&self.guard));
        self.add(vec![Arc::new(pack)])
    }

    /// Puts all of them into the store, or none.
    fn add(&self, resources: Vec<Arc<dyn Resource>>) -> Result<StoredPaths, String> {
        let mut stored = StoredPaths { store: self.store.clone(), paths: Vec::new() };
        for resource in resources {
            let path = resource.path().to_owned();
            self.store.insert(resource).map_err(|error| error.to_string())?;
            stored.paths.push(path);
        }
        Ok(stored)
    }
}

fn start_service(
    services: &Arc<Mutex<Services>>,
    name: &str,
    run: impl FnOnce(&Things, &crate::service::ServiceStop) + Send + 'static,
) -> Result<RunningService, String> {
    let started = services.lock().unwrap_or_else(PoisonError::into_inner).start(name, run);
    started.map_err(|error| error.to_string())?;
    Ok(RunningService { services: Arc::clone(services), name: name.to_owned() })
}

impl RunningBridge {
    fn start(plan: &BridgePlan, store: &LocalStore) -> Result<RunningBridge, String> {
        let mut types = Types::default();
        for path in &plan.idl {
            let text =
                std::fs::read_to_string(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
            types.add_idl(&text).map_err(|error| format!("{}, {error}", path.display()))?;
        }
        let builder = DomainParticipant::builder(plan.domain).name("thalweg-gateway").domain_tag(&plan.tag);
        let builder = plan.peers.iter().fold(builder, |builder, peer| builder.peer(peer));
        let builder = plan.interfaces.iter().fold(builder, |builder, interface| builder.allow_interface(interface));
        let participant = Arc::new(builder.create().map_err(|error| error.to_string())?);
        let exporter = Exporter::start(Arc::clone(&participant), types.clone(), store.clone());
        let exporter = exporter.map_err(|error| error.to_string())?;
        Ok(RunningBridge {
            bridge: Bridge::new(participant, types, store.clone()),
            store: store.clone(),
            exporter,
            export: plan.export.clone(),
            exported: Vec::new(),
        })
    }

    /// Takes topics that came and went, and makes topics of resources that are new.
    fn refresh(&mut self, changes: &mut GatewayChanges) {
        let news = self.bridge.refresh();
        changes.started.extend(news.added.iter().map(|path| format!("topic /{path}")));
        changes.ended.extend(news.removed.iter().map(|path| format!("topic /{path}")));
        changes.failed.extend(news.refused.iter().map(|(name, reason)| format!("topic {name}: {reason}")));
        if self.export.is_empty() {
            return;
        }
        let is_wanted = |path: &String| {
            self.export
                .iter()
                .any(|root| path == root || path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/')))
        };
        let is_new = |path: &String| is_wanted(path) && !self.exported.contains(path);
        let new: Vec<String> = self.store.paths().into_iter().filter(is_new).collect();
        for path in new {
            if let Err(error) = self.exporter.add(&path) {
                changes.failed.push(format!("topic of /{path}: {error}"));
            }
            // One that failed is not tried at each look.
            self.exported.push(path);
        }
    }
}

impl Drop for RunningBridge {
    fn drop(&mut self) {
        for topic in self.bridge.paths() {
            self.store.remove(&topic);
        }
    }
}

fn bridge_name(plan: &BridgePlan) -> String {
    format!("to domain {}", plan.domain)
}

fn registration_name(plan: &RegistrationPlan) -> String {
    format!("{} at {}", plan.endpoint, plan.directory)
}

fn device_name(plan: &DevicePlan) -> String {
    match &plan.driver {
        DriverPlan::Thermal => "thermal".to_owned(),
        DriverPlan::System => "system".to_owned(),
        DriverPlan::Kit { name, .. } => name.clone(),
    }
}

/// Time limit of the search for devices.
const FIND_PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);
/// Simulated devices differ by their places.
const KIT_SEED: u64 = 1;
