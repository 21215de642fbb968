//! A host as it is set now.

mod nics;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thalweg_host::{HostFiles, Layers, NetworkDevice, ProcessorRules};

pub use nics::{
    LiveNics, NicChange, NicCoalescing, NicFeatureSetting, NicQueue, NicQueueCounts, NicRings, NicSettings, Nics,
    RecordedNics,
};

/// How a host is set, as far as streams depend on it; what it does not show is missing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostSettings {
    /// Settings below `/proc/sys`.
    pub settings: BTreeMap<String, KernelSetting>,
    /// The interface of the stream.
    pub device: Option<NetworkDevice>,
    /// What its driver says.
    pub nic: Option<NicSettings>,
    /// Physical interfaces of the host.
    pub physical_devices: usize,
    /// Processors and how they are shared.
    pub processors: ProcessorRules,
    /// Counters by layer since the host was started.
    pub counters: Layers,
    /// Seconds since then.
    pub uptime_s: Option<f64>,
    /// All memory of the host.
    pub memory_bytes: Option<u64>,
    /// What the control groups of this process leave it of that at most; `None` where none is limited.
    pub group_memory_bytes: Option<u64>,
    /// When the kernel moves memory about for a program that asks for a huge page (`transparent_hugepage/defrag`).
    pub compaction: Option<String>,
    /// Whether this network namespace is the first one, where alone some settings can be changed.
    pub is_first_namespace: Option<bool>,
    /// Whether bpftune(8) runs, which changes some of the same settings all the time.
    pub has_bpftune: bool,
}

/// One setting below `/proc/sys`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSetting {
    /// Its words.
    pub value: String,
    /// Whether the system lets its owner change it.
    pub is_writable: bool,
}

/// The setting that checks the way back of what comes in at an interface. A dot of its name, as of a VLAN's, is a slash (sysctl(8)).
pub(crate) fn reverse_path_filter(device: &str) -> String {
    format!("net.ipv4.conf.{}.rp_filter", device.replace('.', "/"))
}

impl HostSettings {
    /// Reads the settings of a host for a stream that uses this interface.
    pub fn read(files: &HostFiles, nics: &dyn Nics, device: Option<&str>) -> HostSettings {
        let setting = |name: &&str| {
            let value = files.setting(name)?;
            Some(((*name).to_owned(), KernelSetting { value, is_writable: files.is_setting_writable(name) }))
        };
        let rp_filter = device.map(reverse_path_filter);
        let device = device.and_then(|name| NetworkDevice::read(files, name));
        HostSettings {
            settings: SETTINGS.iter().copied().chain(rp_filter.as_deref()).filter_map(|name| setting(&name)).collect(),
            nic: device.as_ref().and_then(|device| nics.read(&device.name).ok()),
            device,
            physical_devices: NetworkDevice::all(files).iter().filter(|device| device.is_physical).count(),
            processors: ProcessorRules::read(files),
            counters: Layers::read(files),
            uptime_s: files.uptime_s(),
            memory_bytes: files.memory_kib().map(|(all, _)| all.saturating_mul(1024)),
            group_memory_bytes: files.group_memory_bytes(),
            compaction: files.compaction(),
            is_first_namespace: files.is_first_network_namespace(),
            has_bpftune: files.has_process_named("bpftune"),
        }
    }

    /// The interface that a stream without a named one uses: the first physical one that is up, else another
    /// that is up, else loopback.
    pub fn usual_device(files: &HostFiles) -> Option<String> {
        let all = NetworkDevice::all(files);
        let is_up = |device: &&NetworkDevice| {
            files.device_entry(&device.name, "operstate").is_none_or(|state| matches!(state.as_str(), "up" | "unknown"))
        };
        let is_other = |device: &&NetworkDevice| {
            device.name != "lo" && !WITHOUT_LINK.iter().any(|prefix| device.name.starts_with(prefix))
        };
        let mut physical = all.iter().filter(|device| device.is_physical);
        let found = physical.clone().find(is_up).or_else(|| physical.next());
        let found = found.or_else(|| all.iter().filter(is_other).find(is_up));
        found.or_else(|| all.iter().find(|device| device.name == "lo")).map(|device| device.name.clone())
    }

    /// The words of a setting.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(|setting| setting.value.as_str())
    }

    /// A setting that is one number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.setting(name)?.parse().ok()
    }

    /// Whether hardware stands behind the stream's interface, by which its rules make sense.
    pub fn has_hardware(&self) -> bool {
        self.device.as_ref().is_some_and(|device| device.is_physical)
    }

    /// The name of the stream's interface.
    pub fn device_name(&self) -> &str {
        self.device.as_ref().map_or("no interface", |device| &device.name)
    }

    /// The largest packet on the stream's interface; 1500 where it does not tell.
    pub fn mtu_bytes(&self) -> u32 {
        self.device.as_ref().and_then(|device| device.mtu_bytes).unwrap_or(1500)
    }

    /// The kind of interface, in words.
    pub fn kind(&self) -> &'static str {
        let driver = self.nic.as_ref().and_then(|nic| nic.driver.as_deref());
        match (driver, self.has_hardware(), self.device_name()) {
            (_, _, "lo") => "loopback",
            (Some("veth"), ..) => "a veth pair",
            (Some("virtio_net" | "vmxnet3" | "ena" | "hv_netvsc" | "gve" | "xen-netfront"), ..) => VIRTUAL,
            (_, true, _) => "hardware",
            _ => "an interface without hardware",
        }
    }
}

/// An interface that a hypervisor makes.
pub(crate) const VIRTUAL: &str = "a virtual machine's interface";
/// Beginnings of the names of interfaces that carry no stream.
const WITHOUT_LINK: [&str; 7] = ["dummy", "erspan", "gre", "ifb", "ip6", "sit", "tunl"];

/// Settings that the rules look at.
const SETTINGS: [&str; 24] = [
    "kernel.osrelease",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.rps_sock_flow_entries",
    "net.core.wmem_max",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.igmp_max_memberships",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ipfrag_high_thresh",
    "net.ipv4.ipfrag_low_thresh",
    "net.ipv4.ipfrag_max_dist",
    "net.ipv4.ipfrag_time",
    "net.ipv4.udp_mem",
    "net.ipv6.ip6frag_high_thresh",
    "net.ipv6.ip6frag_low_thresh",
    "net.ipv6.ip6frag_time",
];
