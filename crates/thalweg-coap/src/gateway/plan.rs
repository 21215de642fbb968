//! The file of a gateway.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thalweg_settings::SettingsError;

use super::entrances::EntrancesPlan;
use super::reading;
use crate::device::Unit;
use crate::device::Value;
use crate::device::drivers::KitModel;
use crate::directory::RegistrationPlan;
use crate::identity::AccessRules;
use crate::interaction::server::KernelFilter;
use crate::proxy::Destinations;
use crate::resource::{RemoteName, Sampling};
use crate::scheduler::controller::ControlLaw;
use crate::scheduler::priority::Priorities;

/// Everything that a gateway does. Without a file it serves nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayPlan {
    /// The server and its threads; another one needs a restart, except for the laws.
    pub server: ServerPlan,
    /// Laws of the pools.
    pub laws: LawPlan,
    /// Devices that become resources.
    pub devices: Vec<DevicePlan>,
    /// Resources with a value of their own.
    pub resources: Vec<ValuePlan>,
    /// Resources of other things that are observed and served here.
    pub remotes: Vec<RemotePlan>,
    /// Services.
    pub services: Vec<ServicePlan>,
    /// Membership in the data space.
    pub bridge: Option<BridgePlan>,
    /// Whether others may register here.
    pub serves_directory: bool,
    /// Where this gateway registers.
    pub registrations: Vec<RegistrationPlan>,
    /// Where the forward proxy goes; `None` for no proxy.
    pub forward: Option<Destinations>,
    /// Paths that stand for other things.
    pub reverse: Vec<ReversePlan>,
    /// Packs of many readings.
    pub packs: Vec<PackPlan>,
    /// Other things whose requests are protected.
    pub things: Vec<ThingPlan>,
}

/// The server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPlan {
    /// Address of CoAP. Default 127.0.0.1:5683.
    pub bind: SocketAddr,
    /// Event loops. Default 1.
    pub loops: usize,
    /// Whether requests to all CoAP nodes are heard. Default no.
    pub groups: bool,
    /// Requests a second of one host. Default no limit.
    pub peer_rate: Option<u32>,
    /// Threads of a group. Default 512.
    pub threads_max: usize,
    /// Address of the metrics over HTTP. Default none.
    pub metrics: Option<SocketAddr>,
    /// Whether the figures are resources below `/.thalweg`. Default yes.
    pub statistics: bool,
    /// Nice values of the groups.
    pub priorities: Priorities,
    /// The file of the OSCORE contexts, relative to that of the gateway.
    pub oscore: Option<PathBuf>,
    /// Paths that only protected requests reach, without escapes.
    pub protected: Vec<String>,
    /// Bytes of answers of other things that are kept. Default 4 MiB.
    pub cache_bytes: usize,
    /// What clients can make each event loop hold, and where an overload is dropped.
    pub bounds: ServerBounds,
    /// Which clients may do what. Default all to all.
    pub access: AccessRules,
    /// The ways in besides plain datagrams.
    pub entrances: EntrancesPlan,
}

/// What clients can make an event loop hold, and where an overload is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerBounds {
    /// Peers that are remembered, of which half may observe. Default 16,384.
    pub peers_max: usize,
    /// Registrations for observation of all clients together. Default 16,384.
    pub observers_max: usize,
    /// Whether the kernel drops requests that a pool would refuse. Default yes.
    pub kernel_filter: KernelFilter,
}

/// Laws of the pools, and their period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LawPlan {
    /// Handlers that block.
    pub blocking: ControlLaw,
    /// Requests to resources.
    pub device: ControlLaw,
    /// Devices themselves.
    pub resource: ControlLaw,
    /// Time between decisions; another one needs a restart.
    pub period: Duration,
}

/// Devices of one driver.
#[derive(Clone, Debug, PartialEq)]
pub struct DevicePlan {
    /// Which.
    pub driver: DriverPlan,
    /// The first part of their paths. Default `sensors`.
    pub root: String,
    /// When they are read.
    pub sampling: Sampling,
    /// Time limit of a read or an action.
    pub timeout: Duration,
}

/// A driver and its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum DriverPlan {
    /// Thermal zones of this host.
    Thermal,
    /// Load and memory of this host.
    System,
    /// Simulated devices of a model: `name`, or `name-1` and so on for several.
    Kit {
        /// Their name.
        name: String,
        /// Their model.
        model: KitModel,
        /// Their number.
        count: usize,
    },
}

/// A resource with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct ValuePlan {
    /// Its path, without the slash in front.
    pub path: String,
    /// The kind of quantity, its resource type.
    pub quantity: String,
    /// The unit.
    pub unit: Unit,
    /// The value.
    pub value: Value,
    /// Time for which clients may keep it.
    pub max_age: Duration,
}

/// Resources of another thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemotePlan {
    /// The path below which they are served here.
    pub path: String,
    /// The other thing, `host:port`.
    pub thing: String,
    /// Their paths there.
    pub resources: Vec<String>,
}

/// A service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServicePlan {
    /// Its name.
    pub name: String,
    /// Names of the resources it reads.
    pub inputs: Vec<String>,
    /// The resource it publishes or drives.
    pub output: String,
    /// Time from one look to the next.
    pub period: Duration,
    /// What it does with them.
    pub rule: ServiceRule,
}

/// What a service makes of its inputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ServiceRule {
    /// Publishes the mean of those that answer.
    Mean,
    /// Publishes the lowest.
    Least,
    /// Publishes the highest.
    Greatest,
    /// Writes the only input to the output when it changes.
    Copy,
    /// Drives the output on above the first value, and off below the second.
    Switch {
        /// On from here.
        above: f64,
        /// Off from here.
        below: f64,
    },
}

/// Membership in the data space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgePlan {
    /// The domain.
    pub domain: u32,
    /// The tag that keeps it apart from others of the same number; empty for none.
    pub tag: String,
    /// Interfaces that it uses; empty for all.
    pub interfaces: Vec<String>,
    /// Hosts that it asks besides those that multicast finds.
    pub peers: Vec<String>,
    /// Files of IDL, relative to that of the gateway.
    pub idl: Vec<PathBuf>,
    /// Paths whose resources, with all below, become topics.
    pub export: Vec<String>,
}

/// A path that stands for another thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReversePlan {
    /// The path here.
    pub path: String,
    /// The other thing and the path there.
    pub to: RemoteName,
}

/// A resource that is a pack of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackPlan {
    /// Its path.
    pub path: String,
    /// The path whose resources, with all below, it holds.
    pub root: String,
}

/// Another thing that has OSCORE keys (RFC 8613): all requests to it are protected with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThingPlan {
    /// The other thing, `host:port`, as other sections name it.
    pub thing: String,
    /// The file of the context, relative to that of the gateway.
    pub oscore: PathBuf,
}

impl GatewayPlan {
    /// Reads the text of a file; `file` stands in errors.
    ///
    /// # Errors
    /// The text is not TOML, or has keys or values that are not allowed; the error names the place.
    pub fn parse(file: &str, text: &str) -> Result<GatewayPlan, SettingsError> {
        reading::read(file, text)
    }

    /// Reads a file; names of other files in it are relative to its directory.
    ///
    /// # Errors
    /// It cannot be read, or is no plan.
    pub fn load(path: &Path) -> Result<GatewayPlan, String> {
        let text =
            std::fs::read_to_string(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        let mut plan = GatewayPlan::parse(&path.display().to_string(), &text).map_err(|error| error.to_string())?;
        let directory = path.parent().unwrap_or(Path::new(""));
        plan.server.entrances.files.lie_in(directory);
        let keys = plan.server.oscore.iter_mut().chain(plan.things.iter_mut().map(|thing| &mut thing.oscore));
        let files = keys.chain(plan.bridge.iter_mut().flat_map(|bridge| &mut bridge.idl));
        files.for_each(|file| *file = directory.join(&*file));
        Ok(plan)
    }

    /// The first path that two parts of the plan want; found before anything is started.
    pub(super) fn clash(&self) -> Option<String> {
        let values = self.resources.iter().map(|value| value.path.clone());
        let remotes =
            self.remotes.iter().flat_map(|remote| remote.resources.iter().map(|path| remote.local_path(path)));
        let packs = self.packs.iter().map(|pack| pack.path.clone());
        let mut seen = BTreeSet::new();
        values.chain(remotes).chain(packs).find(|path| !seen.insert(path.clone()))
    }
}

impl RemotePlan {
    /// The path here of a resource there.
    pub fn local_path(&self, path: &str) -> String {
        format!("{}/{}", self.path, path.trim_matches('/'))
    }
}
