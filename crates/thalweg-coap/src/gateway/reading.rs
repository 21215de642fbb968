//! The sections of a gateway's file.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use thalweg_settings::nearest::nearest;
use thalweg_settings::{SettingsError, SettingsTable, SettingsValue};

use super::entrances::EntrancesPlan;
use super::plan::{
    BridgePlan, DevicePlan, DriverPlan, GatewayPlan, LawPlan, PackPlan, RemotePlan, ReversePlan, ServerBounds,
    ServerPlan, ServicePlan, ServiceRule, ThingPlan, ValuePlan,
};
use crate::device::drivers::KitModel;
use crate::device::{Unit, Value};
use crate::directory::RegistrationPlan;
use crate::endpoint::{EndpointLimits, ObserveConfig};
use crate::identity::{AccessRule, AccessRules, BAD_ESCAPE, unescaped};
use crate::interaction::server::KernelFilter;
use crate::proxy::{Destinations, ProxyUri};
use crate::resource::{AdaptivePolicy, Sampling};
use crate::scheduler::controller::ControlLaw;
use crate::scheduler::priority::Priorities;
use crate::service::ResourceName;

type Read<T> = Result<T, SettingsError>;

/// The first line of a file.
const SCHEMA: &str = "thalweg.gateway/1";

pub(super) fn read(file: &str, text: &str) -> Read<GatewayPlan> {
    let keys = [
        "schema",
        "server",
        "priorities",
        "laws",
        "oscore",
        "access",
        "credentials",
        "thing",
        "device",
        "resource",
        "remote",
        "service",
        "bridge",
        "directory",
        "registration",
        "proxy",
        "reverse",
        "pack",
        "dtls",
        "group_oscore",
        "lwm2m",
        "qblock",
    ];
    thalweg_settings::read(file, text, (&keys, &[]), read_root)
}

fn read_root(root: SettingsTable<'_>) -> Read<GatewayPlan> {
    let schema = root.require("schema")?;
    if schema.text()? != SCHEMA {
        return Err(schema.error(format!("this version reads {SCHEMA:?} only")));
    }
    for (key, reason) in REFUSED {
        if let Some(field) = root.get(key) {
            return Err(field.error(reason));
        }
    }
    let mut server = read_server(&root)?;
    server.priorities = read_priorities(root.get("priorities"))?;
    if let Some(access) = root.get("access") {
        let allow = access.table((&["allow"], &[]))?.require("allow")?;
        let rules = allow.list(RULES_MAX, |one| one.text()?.parse::<AccessRule>().map_err(|error| one.error(error)))?;
        server.access = AccessRules::new(rules);
    }
    if let Some(oscore) = root.get("oscore") {
        let table = oscore.table((&["keys", "protected"], &[]))?;
        server.oscore = Some(PathBuf::from(table.require("keys")?.text()?));
        server.protected = table.or("protected", Vec::new(), |field| {
            field.each(PATHS_MAX, |one| unescaped(one.text()?).ok_or_else(|| one.error(BAD_ESCAPE)))
        })?;
    }
    let plan = GatewayPlan {
        server,
        laws: read_laws(root.get("laws"))?,
        devices: each(&root, "device", read_device)?,
        resources: each(&root, "resource", read_value)?,
        remotes: each(&root, "remote", read_remote)?,
        services: each(&root, "service", read_service)?,
        bridge: root.maybe("bridge", read_bridge)?,
        serves_directory: root
            .or("directory", false, |field| field.table((&["serve"], &[]))?.or("serve", true, SettingsValue::truth))?,
        registrations: each(&root, "registration", read_registration)?,
        forward: root.maybe("proxy", read_forward)?,
        reverse: each(&root, "reverse", read_reverse)?,
        packs: each(&root, "pack", read_pack)?,
        things: each(&root, "thing", read_thing)?,
    };
    if let Some(path) = plan.clash() {
        return Err(root.error(format!("two parts of the file want the path /{path}")));
    }
    Ok(plan)
}

/// A list of tables, which may be left out.
fn each<T>(root: &SettingsTable<'_>, key: &'static str, read: impl Fn(&SettingsValue<'_>) -> Read<T>) -> Read<Vec<T>> {
    match root.get(key) {
        Some(field) => field.each(ENTRIES_MAX, |one| read(one)),
        None => Ok(Vec::new()),
    }
}

fn read_server(root: &SettingsTable<'_>) -> Read<ServerPlan> {
    let mut plan = ServerPlan {
        bind: SocketAddr::from(([127, 0, 0, 1], 5683)),
        loops: 1,
        groups: false,
        peer_rate: None,
        threads_max: 512,
        metrics: None,
        statistics: true,
        priorities: Priorities::default(),
        oscore: None,
        protected: Vec::new(),
        cache_bytes: 4 << 20,
        bounds: ServerBounds {
            peers_max: EndpointLimits::default().peers_max,
            observers_max: ObserveConfig::default().observers_max,
            kernel_filter: KernelFilter::On,
        },
        access: AccessRules::default(),
        entrances: EntrancesPlan::default(),
    };
    let Some(field) = root.get("server") else {
        plan.entrances = EntrancesPlan::read(root, None)?;
        return Ok(plan);
    };
    let keys = [
        "bind",
        "listen",
        "loops",
        "groups",
        "peer_rate",
        "peers_max",
        "observers_max",
        "kernel_filter",
        "threads_max",
        "metrics",
        "statistics",
        "cache_bytes",
    ];
    let server = field.table((&keys, &[]))?;
    plan.entrances = EntrancesPlan::read(root, server.get("listen"))?;
    plan.bind = server.or("bind", plan.bind, read_address)?;
    plan.loops = server.or("loops", 1, |one| one.integer(1, 256))?;
    plan.groups = server.or("groups", false, SettingsValue::truth)?;
    if plan.groups && !plan.bind.ip().is_unspecified() {
        return Err(server.require("groups")?.error("needs bind = \"0.0.0.0:PORT\" or \"[::]:PORT\" to hear groups"));
    }
    plan.peer_rate = server.maybe("peer_rate", |one| one.integer(1, u32::MAX))?;
    let bounds = &mut plan.bounds;
    bounds.peers_max = server.or("peers_max", bounds.peers_max, |one| one.integer(2, PEERS_MAX))?;
    bounds.observers_max = server.or("observers_max", bounds.observers_max, |one| one.integer(1, PEERS_MAX))?;
    bounds.kernel_filter = server.or("kernel_filter", bounds.kernel_filter, |one| {
        one.truth().map(|is_on| if is_on { KernelFilter::On } else { KernelFilter::Off })
    })?;
    plan.threads_max = server.or("threads_max", 512, |one| one.integer(1, 65_535))?;
    plan.metrics = server.maybe("metrics", read_address)?;
    plan.statistics = server.or("statistics", true, SettingsValue::truth)?;
    plan.cache_bytes = server.or("cache_bytes", 4 << 20, |one| one.integer(0, 1 << 34))?;
    Ok(plan)
}

fn read_priorities(field: Option<SettingsValue<'_>>) -> Read<Priorities> {
    let mut priorities = Priorities::default();
    let Some(field) = field else { return Ok(priorities) };
    let table = field.table((&["interaction", "resource", "application", "profile"], &[]))?;
    let nice = |one: &SettingsValue<'_>| one.number(-20.0, 19.0).map(|nice| nice as i32);
    priorities.interaction = table.or("interaction", priorities.interaction, nice)?;
    priorities.resource = table.or("resource", priorities.resource, nice)?;
    priorities.application = table.or("application", priorities.application, nice)?;
    priorities.profile = table.or("profile", priorities.profile, nice)?;
    Ok(priorities)
}

fn read_laws(field: Option<SettingsValue<'_>>) -> Read<LawPlan> {
    let mut plan = LawPlan {
        blocking: ControlLaw::Vta,
        device: ControlLaw::Vta,
        resource: ControlLaw::Vta,
        period: Duration::from_millis(200),
    };
    let Some(field) = field else { return Ok(plan) };
    let table = field.table((&["blocking", "device", "resource", "period_ms"], &[]))?;
    let law = |one: &SettingsValue<'_>| -> Read<ControlLaw> {
        let law: ControlLaw = one.text()?.parse().map_err(|error| one.error(error))?;
        match law {
            ControlLaw::Inline => {
                Err(one.error("a gateway's handlers block, so their pool has threads: use another law"))
            }
            law => Ok(law),
        }
    };
    plan.blocking = table.or("blocking", plan.blocking, law)?;
    plan.device = table.or("device", plan.device, law)?;
    plan.resource = table.or("resource", plan.resource, law)?;
    plan.period = table.or("period_ms", plan.period, |one| milliseconds(one, 10, 60_000))?;
    Ok(plan)
}

fn read_device(field: &SettingsValue<'_>) -> Read<DevicePlan> {
    let keys = ["driver", "name", "model", "count", "root", "on_demand_ms", "period_ms", "adaptive", "timeout_ms"];
    let table = field.table((&keys, &[]))?;
    let of_kit = |plan: DriverPlan| match ["name", "model", "count"].iter().find_map(|key| table.get(key)) {
        Some(field) => Err(field.error("belongs to driver = \"kit\"")),
        None => Ok(plan),
    };
    let driver = match table.require("driver")?.choice(&[("thermal", 0), ("system", 1), ("kit", 2)])? {
        0 => of_kit(DriverPlan::Thermal)?,
        1 => of_kit(DriverPlan::System)?,
        _ => DriverPlan::Kit {
            model: read_model(&table.require("model")?)?,
            name: read_segment(&table.require("name")?)?,
            count: table.or("count", 1, |one| one.integer(1, DEVICES_MAX))?,
        },
    };
    Ok(DevicePlan {
        driver,
        root: table.or("root", "sensors".to_owned(), read_path)?,
        sampling: read_sampling(&table)?,
        timeout: table.or("timeout_ms", Duration::from_secs(2), |one| milliseconds(one, 1, 600_000))?,
    })
}

fn read_model(field: &SettingsValue<'_>) -> Read<KitModel> {
    let name = field.text()?;
    KitModel::named(name).ok_or_else(|| {
        let guess = nearest(name, KitModel::names()).map(|near| format!("did you mean {near:?}? ")).unwrap_or_default();
        let names: Vec<&str> = KitModel::names().collect();
        field.error(format!("{name:?} is no model: {guess}allowed: {}", names.join(", ")))
    })
}

fn read_sampling(table: &SettingsTable<'_>) -> Read<Sampling> {
    let given: Vec<SettingsValue<'_>> =
        ["on_demand_ms", "period_ms", "adaptive"].into_iter().filter_map(|key| table.get(key)).collect();
    if let [_, second, ..] = given.as_slice() {
        return Err(second.error("one of on_demand_ms, period_ms and adaptive says when it is read"));
    }
    if let Some(period) = table.maybe("period_ms", |one| milliseconds(one, 1, 86_400_000))? {
        return Ok(Sampling::Periodic { period });
    }
    if let Some(field) = table.get("adaptive") {
        let adaptive = field.table((&["error", "min_ms", "max_ms"], &[]))?;
        let period_min = adaptive.or("min_ms", Duration::from_millis(100), |one| milliseconds(one, 1, 86_400_000))?;
        let period_max = adaptive.or("max_ms", Duration::from_secs(60), |one| milliseconds(one, 1, 86_400_000))?;
        if period_max < period_min {
            return Err(field.error("max_ms is less than min_ms"));
        }
        let error = adaptive.require("error")?.number(f64::MIN_POSITIVE, f64::MAX)?;
        return Ok(Sampling::Adaptive(AdaptivePolicy { error, period_min, period_max }));
    }
    let max_age = table.or("on_demand_ms", Duration::from_secs(1), |one| milliseconds(one, 0, 86_400_000))?;
    Ok(Sampling::OnDemand { max_age })
}

fn read_value(field: &SettingsValue<'_>) -> Read<ValuePlan> {
    let table = field.table((&["path", "quantity", "unit", "value", "max_age_s"], &[]))?;
    let value = table.require("value")?;
    let value = match (value.truth(), value.text(), value.number(f64::MIN, f64::MAX)) {
        (Ok(truth), ..) => Value::Boolean(truth),
        (_, Ok(text), _) => Value::Text(text.to_owned()),
        (.., Ok(number)) => Value::Real(number),
        (.., Err(_)) => return Err(value.error("text, a number, true or false is needed")),
    };
    Ok(ValuePlan {
        path: read_path(&table.require("path")?)?,
        quantity: table.or("quantity", String::new(), |one| one.text().map(str::to_owned))?,
        unit: table.or("unit", Unit::NONE, |one| Unit::new(one.text()?).map_err(|error| one.error(error)))?,
        value,
        max_age: table
            .or("max_age_s", Duration::from_secs(60), |one| one.integer(0, 86_400).map(Duration::from_secs))?,
    })
}

fn read_remote(field: &SettingsValue<'_>) -> Read<RemotePlan> {
    let table = field.table((&["path", "thing", "resources"], &[]))?;
    let thing = table.require("thing")?;
    let name = read_uri(&thing)?.name();
    if !name.path.is_empty() {
        return Err(thing.error("a thing has no path: name its resources in `resources`"));
    }
    let resources = table.require("resources")?.list(PATHS_MAX, read_path)?;
    Ok(RemotePlan { path: read_path(&table.require("path")?)?, thing: name.thing, resources })
}

fn read_thing(field: &SettingsValue<'_>) -> Read<ThingPlan> {
    let table = field.table((&["thing", "oscore"], &[]))?;
    let thing = table.require("thing")?;
    let name = read_uri(&thing)?.name();
    if !name.path.is_empty() {
        return Err(thing.error("a thing has no path"));
    }
    Ok(ThingPlan { thing: name.thing, oscore: PathBuf::from(table.require("oscore")?.text()?) })
}

fn read_service(field: &SettingsValue<'_>) -> Read<ServicePlan> {
    let table = field.table((&["name", "does", "inputs", "output", "period_ms", "above", "below"], &[]))?;
    let rules = [("mean", 0), ("least", 1), ("greatest", 2), ("copy", 3), ("switch", 4)];
    let does = table.require("does")?;
    let number = |key: &'static str| table.require(key)?.number(f64::MIN, f64::MAX);
    let rule = match does.choice(&rules)? {
        0 => ServiceRule::Mean,
        1 => ServiceRule::Least,
        2 => ServiceRule::Greatest,
        3 => ServiceRule::Copy,
        _ => ServiceRule::Switch { above: number("above")?, below: number("below")? },
    };
    let bounds = ["above", "below"].into_iter().find_map(|key| table.get(key));
    match (rule, bounds) {
        (ServiceRule::Switch { above, below }, _) if below > above => {
            return Err(does.error("below is more than above, so that it would switch without end"));
        }
        (ServiceRule::Switch { .. }, _) | (_, None) => {}
        (_, Some(bound)) => return Err(bound.error("belongs to does = \"switch\"")),
    }
    let inputs = table.require("inputs")?;
    let names = inputs.list(PATHS_MAX, read_name)?;
    if names.len() > 1 && matches!(rule, ServiceRule::Copy | ServiceRule::Switch { .. }) {
        return Err(inputs.error("one input is needed for copy and switch"));
    }
    let output = table.require("output")?;
    let name = read_name(&output)?;
    if matches!(rule, ServiceRule::Mean | ServiceRule::Least | ServiceRule::Greatest) && !name.starts_with('/') {
        return Err(output.error("it publishes a resource of this gateway, such as /house/mean"));
    }
    Ok(ServicePlan {
        name: read_segment(&table.require("name")?)?,
        inputs: names,
        output: name,
        period: table.or("period_ms", Duration::from_secs(1), |one| milliseconds(one, 10, 86_400_000))?,
        rule,
    })
}

fn read_bridge(field: &SettingsValue<'_>) -> Read<BridgePlan> {
    let table = field.table((&["domain", "tag", "interfaces", "peers", "idl", "export"], &[]))?;
    Ok(BridgePlan {
        domain: table.or("domain", 0, |one| one.integer(0, 232))?,
        tag: table.or("tag", String::new(), |one| one.text().map(str::to_owned))?,
        interfaces: table
            .or("interfaces", Vec::new(), |one| one.each(PATHS_MAX, |name| name.text().map(str::to_owned)))?,
        peers: table.or("peers", Vec::new(), |one| one.each(PATHS_MAX, |name| name.text().map(str::to_owned)))?,
        idl: table.or("idl", Vec::new(), |one| one.each(PATHS_MAX, |file| file.text().map(PathBuf::from)))?,
        export: table.or("export", Vec::new(), |one| one.each(PATHS_MAX, read_path))?,
    })
}

fn read_registration(field: &SettingsValue<'_>) -> Read<RegistrationPlan> {
    let table = field.table((&["directory", "endpoint", "sector", "base", "lifetime_s"], &[]))?;
    let directory = table.require("directory")?;
    Ok(RegistrationPlan {
        directory: read_uri(&directory)?.name().thing,
        endpoint: read_segment(&table.require("endpoint")?)?,
        sector: table.or("sector", String::new(), read_segment)?,
        base: table.maybe("base", |one| read_uri(one).map(|_| ()).and_then(|()| one.text().map(str::to_owned)))?,
        lifetime: table.or("lifetime_s", Duration::from_secs(3600), |one| {
            one.integer(60, u32::MAX.into()).map(Duration::from_secs)
        })?,
    })
}

fn read_forward(field: &SettingsValue<'_>) -> Read<Destinations> {
    let forward = field.table((&["forward"], &[]))?.require("forward")?;
    let texts = forward.list(PATHS_MAX, SettingsValue::text)?;
    Destinations::new(texts).map_err(|error| forward.error(error))
}

fn read_reverse(field: &SettingsValue<'_>) -> Read<ReversePlan> {
    let table = field.table((&["path", "to"], &[]))?;
    let to = read_uri(&table.require("to")?)?.name();
    Ok(ReversePlan { path: read_path(&table.require("path")?)?, to })
}

fn read_pack(field: &SettingsValue<'_>) -> Read<PackPlan> {
    let table = field.table((&["path", "root"], &[]))?;
    Ok(PackPlan { path: read_path(&table.require("path")?)?, root: read_path(&table.require("root")?)? })
}

pub(super) fn read_address(field: &SettingsValue<'_>) -> Read<SocketAddr> {
    field.text()?.parse().map_err(|_| field.error("an address with a port is needed, such as 0.0.0.0:5683"))
}

/// A URI of CoAP over UDP.
fn read_uri(field: &SettingsValue<'_>) -> Read<ProxyUri> {
    let uri = ProxyUri::parse(field.text()?).map_err(|error| field.error(error))?;
    match uri.scheme.as_str() {
        "coap" => Ok(uri),
        other => {
            let said = format!("{other} is not supported here; use coap, and oscore in [[thing]] to protect it");
            Err(field.error(said))
        }
    }
}

/// The path of a resource, without the slashes at its ends.
fn read_path(field: &SettingsValue<'_>) -> Read<String> {
    let path = field.text()?.trim_matches('/');
    let is_path = !path.is_empty() && path.len() <= PATH_MAX_BYTES && !path.split('/').any(str::is_empty);
    match is_path && !path.starts_with(".well-known") && !path.contains(['?', '#']) {
        true => Ok(path.to_owned()),
        false => Err(field.error(format!("{path:?} is no path of a resource, such as house/door"))),
    }
}

/// The name of a resource here or elsewhere.
fn read_name(field: &SettingsValue<'_>) -> Read<String> {
    let name = field.text()?;
    name.parse::<ResourceName>().map_err(|error| field.error(error))?;
    Ok(name.to_owned())
}

/// One part of a path.
fn read_segment(field: &SettingsValue<'_>) -> Read<String> {
    let text = field.text()?;
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    match !text.is_empty() && text.len() <= SEGMENT_MAX_BYTES && text.chars().all(is_allowed) {
        true => Ok(text.to_owned()),
        false => Err(field.error(format!("1 to {SEGMENT_MAX_BYTES} letters, digits, '-', '_' and '.' are needed"))),
    }
}

fn milliseconds(field: &SettingsValue<'_>, min: u64, max: u64) -> Read<Duration> {
    field.integer(min, max).map(Duration::from_millis)
}

/// Sections that are known and not supported, and why.
const REFUSED: [(&str, &str); 3] = [
    ("group_oscore", "Group OSCORE is not supported: requests to groups are answered unprotected or not at all"),
    ("lwm2m", "LwM2M is not supported: neither its objects nor its bootstrap; serve devices by [[device]]"),
    ("qblock", "Q-Block (RFC 9177) is not supported: bodies come by Block1 and Block2 (RFC 7959)"),
];
/// Entries of one kind; chosen by us, above the 10,000 things that one gateway is to hold.
const ENTRIES_MAX: usize = 16_384;
/// Paths in one list.
const PATHS_MAX: usize = 1024;
const DEVICES_MAX: usize = 4096;
/// Peers and registrations; chosen by us, above what a host has memory for.
const PEERS_MAX: usize = 1 << 24;
/// Access rules, each of which every request passes.
const RULES_MAX: usize = 256;
const PATH_MAX_BYTES: usize = 200;
const SEGMENT_MAX_BYTES: usize = 63;
