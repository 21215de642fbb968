//! Network interfaces as `/sys/class/net` shows them, with the bus that a physical one is on.

use serde::{Deserialize, Serialize};

use crate::files::HostFiles;
use crate::processor_set::ProcessorSet;

/// A network interface and its settings; what the kernel does not show is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkDevice {
    /// Its name.
    pub name: String,
    /// Whether hardware, or a machine's imitation of it, stands behind it: a driver on a bus.
    pub is_physical: bool,
    /// Largest IP packet in bytes.
    pub mtu_bytes: Option<u32>,
    /// Packets that its queue holds at most, where its queueing discipline asks for that.
    pub queue_packets: Option<u32>,
    /// Bits that it carries in a second, as its driver says; a veth pair says 10 Gbit/s whatever it carries.
    pub bits_per_second: Option<u64>,
    /// Settings of its receive polling.
    pub polling: PollingSettings,
    /// Receive queues, each with the processors that share its work (`rps_cpus`, a mask; zeros mean the one that was interrupted).
    pub receive_queues: Vec<String>,
    /// Entries of the table by which each of them sends flows to their readers (`rps_flow_cnt`); 0 for none.
    pub flow_entries: Vec<Option<u32>>,
    /// Its interrupts.
    pub interrupts: Vec<DeviceInterrupt>,
    /// Its bus, where configuration space shows it.
    pub bus: Option<BusReads>,
}

/// When the kernel polls an interface for received packets (NAPI).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollingSettings {
    /// `gro_flush_timeout`: nanoseconds for which packets wait to be joined or polled.
    pub flush_timeout_ns: Option<u64>,
    /// `napi_defer_hard_irqs`: empty polls before interrupts are switched on again.
    pub deferred_interrupts: Option<u32>,
    /// `threaded`: whether a thread of its own polls.
    pub is_threaded: Option<bool>,
}

/// An interrupt of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInterrupt {
    /// Its number, as in `/proc/interrupts`.
    pub number: u32,
    /// The processors that handle it.
    pub processors: ProcessorSet,
}

/// How much an interface reads from memory at a time: what the paper of 2006 calls MMRBC, and its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BusReads {
    /// PCI-X: maximum memory read byte count (PCI-X 2.0 §7.2.3), 512 to 4096.
    PciX {
        /// Bytes of one read.
        bytes: u32,
    },
    /// PCI Express: maximum read request size (PCIe 5.0 §7.5.3.4), 128 to 4096.
    PciExpress {
        /// Bytes of one read.
        bytes: u32,
        /// Bytes of one packet on the bus (maximum payload size).
        payload_bytes: u32,
    },
}

impl NetworkDevice {
    /// The interface of this name; `None` where there is none.
    pub fn read(files: &HostFiles, name: &str) -> Option<NetworkDevice> {
        let folder = format!("{FOLDER}/{name}");
        if name.contains('/') || !files.has(&folder) {
            return None;
        }
        let text = |entry: &str| files.text(format!("{folder}/{entry}")).map(|text| text.trim().to_owned());
        fn number<Number: std::str::FromStr>(text: Option<String>) -> Option<Number> {
            text?.parse().ok()
        }
        // Drivers that do not know say -1, some kernels without its sign.
        let is_known = |megabits: &u64| (1..u64::from(u32::MAX)).contains(megabits);
        let megabits: Option<u64> = number(text("speed")).filter(is_known);
        let mut queues = files.entries(format!("{folder}/queues"));
        queues.retain(|queue| queue.starts_with("rx-"));
        let of_queue = |queue: &String, entry: &str| text(&format!("queues/{queue}/{entry}"));
        Some(NetworkDevice {
            name: name.to_owned(),
            is_physical: files.has(format!("{folder}/device")),
            mtu_bytes: number(text("mtu")),
            queue_packets: number(text("tx_queue_len")),
            bits_per_second: megabits.map(|megabits| megabits * 1_000_000),
            polling: PollingSettings {
                flush_timeout_ns: number(text("gro_flush_timeout")),
                deferred_interrupts: number(text("napi_defer_hard_irqs")),
                is_threaded: text("threaded").map(|text| text != "0"),
            },
            receive_queues: queues.iter().map(|queue| of_queue(queue, "rps_cpus").unwrap_or_default()).collect(),
            flow_entries: queues.iter().map(|queue| number(of_queue(queue, "rps_flow_cnt"))).collect(),
            interrupts: interrupts(files, &format!("{folder}/device")),
            bus: files.bytes(format!("{folder}/device/config")).and_then(|config| BusReads::parse(&config)),
        })
    }

    /// Every interface, by name.
    pub fn all(files: &HostFiles) -> Vec<NetworkDevice> {
        let names = files.entries(FOLDER);
        names.iter().filter_map(|name| NetworkDevice::read(files, name)).collect()
    }
}

impl BusReads {
    /// Reads the configuration space of a PCI function; without rights the kernel shows its first 64 bytes only, which do not tell.
    pub fn parse(config: &[u8]) -> Option<BusReads> {
        let byte = |at: usize| config.get(at).copied();
        let short = |at: usize| Some(u16::from_le_bytes([byte(at)?, byte(at + 1)?]));
        // Status: whether there is a list of capabilities.
        if short(0x06)? & 0x10 == 0 {
            return None;
        }
        let mut at = usize::from(byte(0x34)? & !3);
        for _ in 0..CAPABILITIES_MAX {
            let next = usize::from(byte(at + 1)? & !3);
            match byte(at)? {
                PCI_X => return Some(BusReads::PciX { bytes: 512 << ((short(at + 2)? >> 2) & 3) }),
                PCI_EXPRESS => {
                    let control = short(at + 8)?;
                    let size = |field: u16| 128 << (field & 7).min(5);
                    return Some(BusReads::PciExpress {
                        bytes: size(control >> 12),
                        payload_bytes: size(control >> 5),
                    });
                }
                _ if next < HEADER => return None,
                _ => at = next,
            }
        }
        None
    }
}

/// The interrupts of the device in this folder.
fn interrupts(files: &HostFiles, device: &str) -> Vec<DeviceInterrupt> {
    // What a machine imitates by virtio has the interrupts of the device that carries it.
    let is_carried =
        files.link(device).is_some_and(|path| path.rsplit('/').next().is_some_and(|name| name.starts_with("virtio")));
    let folder = if is_carried { format!("{device}/../msi_irqs") } else { format!("{device}/msi_irqs") };
    let mut numbers: Vec<u32> = files.entries(folder).iter().filter_map(|name| name.parse().ok()).collect();
    if numbers.is_empty() {
        // One by a wire; 0 for none.
        let wired: Option<u32> = files.text(format!("{device}/irq")).and_then(|text| text.trim().parse().ok());
        numbers.extend(wired.filter(|number| *number != 0));
    }
    numbers.sort_unstable();
    let placed = |number: u32| {
        let list = |entry: &str| ProcessorSet::parse(&files.text(format!("proc/irq/{number}/{entry}"))?);
        let processors = list("effective_affinity_list").or_else(|| list("smp_affinity_list"))?;
        Some(DeviceInterrupt { number, processors })
    };
    numbers.into_iter().filter_map(placed).collect()
}

const FOLDER: &str = "sys/class/net";
/// Numbers of capabilities (PCI Code and ID Assignment 1.11 §2).
const PCI_X: u8 = 0x07;
const PCI_EXPRESS: u8 = 0x10;
/// As many as fit behind the header; a list that is longer runs in a circle.
const CAPABILITIES_MAX: usize = 48;
const HEADER: usize = 0x40;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Tree;

    /// Configuration space with these capabilities, each at its place: number, and the 12 bytes behind number and next.
    fn config(capabilities: &[(u8, usize, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        bytes[6] = 0x10;
        let mut pointer = 0x34;
        for (number, at, rest) in capabilities {
            bytes[pointer] = *at as u8;
            bytes[*at] = *number;
            bytes[at + 2..at + 2 + rest.len()].copy_from_slice(rest);
            pointer = at + 1;
        }
        bytes
    }

    #[test]
    fn the_size_of_reads_stands_behind_any_other_capabilities() {
        let check = |bytes: &[u8], expect: Option<BusReads>| assert_eq!(BusReads::parse(bytes), expect);
        let power = (0x01, 0x40, &[0_u8; 6][..]);
        check(&config(&[power, (PCI_X, 0x50, &[0x0a, 0])]), Some(BusReads::PciX { bytes: 2048 }));
        let express = [0, 0, 0, 0, 0, 0, 0x20, 0x50];
        let expect = BusReads::PciExpress { bytes: 4096, payload_bytes: 256 };
        check(&config(&[power, (PCI_EXPRESS, 0x60, &express)]), Some(expect));
        check(&config(&[power]), None);
        check(&config(&[power, (PCI_X, 0x50, &[0x0a, 0])])[..64], None);
        check(&[], None);
        let mut circle = config(&[power]);
        circle[0x41] = 0x40;
        check(&circle, None);
    }

    #[test]
    fn an_interface_is_what_its_files_say() {
        let tree = Tree::new("devices")
            .with("sys/class/net/eth0/mtu", "1500\n")
            .with("sys/class/net/eth0/tx_queue_len", "1000\n")
            .with("sys/class/net/eth0/speed", "10000\n")
            .with("sys/class/net/eth0/threaded", "0\n")
            .with("sys/class/net/eth0/queues/rx-0/rps_cpus", "03\n")
            .with("sys/class/net/eth0/queues/tx-0/xps_cpus", "00\n")
            .with("sys/class/net/eth0/device/vendor", "0x8086\n")
            .with("sys/class/net/veth1/speed", "-1\n");
        let all = NetworkDevice::all(&tree.files());
        assert_eq!(all.len(), 2);
        let (eth, veth) = (&all[0], &all[1]);
        assert_eq!(
            (eth.mtu_bytes, eth.queue_packets, eth.bits_per_second),
            (Some(1500), Some(1000), Some(10_000_000_000))
        );
        assert_eq!((eth.is_physical, veth.is_physical), (true, false));
        assert_eq!((eth.receive_queues.as_slice(), eth.polling.is_threaded), (&["03".to_owned()][..], Some(false)));
        assert_eq!((veth.bits_per_second, veth.mtu_bytes, &veth.bus), (None, None, &None));
        assert_eq!(eth.flow_entries, [None]);
        assert_eq!(NetworkDevice::read(&tree.files(), "../net/eth0"), None);
        tree.write("sys/class/net/veth1/speed", "4294967295\n");
        assert_eq!(NetworkDevice::read(&tree.files(), "veth1").and_then(|veth| veth.bits_per_second), None);
    }

    #[test]
    fn interrupts_are_those_of_the_device_or_of_what_carries_it() {
        let tree = Tree::new("interrupts")
            .with("sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n")
            .with("sys/class/net/eth0/queues/rx-0/rps_flow_cnt", "32768\n")
            .with("sys/class/net/eth0/device/msi_irqs/125", "msix\n")
            .with("sys/class/net/eth0/device/msi_irqs/40", "msix\n")
            .with("sys/class/net/eth1/device/irq", "11\n")
            .with("sys/class/net/eth1/device/msi_irqs/41", "msix\n")
            .with("sys/devices/pci0/virtio3/vendor", "0x1af4\n")
            .with("sys/devices/pci0/msi_irqs/26", "msix\n")
            .link("sys/class/net/eth2/device", "../../../devices/pci0/virtio3")
            .with("sys/class/net/eth3/device/irq", "11\n")
            .with("proc/irq/11/smp_affinity_list", "0-1\n")
            .with("proc/irq/26/smp_affinity_list", "3\n")
            .with("proc/irq/40/smp_affinity_list", "0-3\n")
            .with("proc/irq/40/effective_affinity_list", "2\n")
            .with("proc/irq/125/smp_affinity_list", "0-3\n")
            .with("proc/irq/125/effective_affinity_list", "\n");
        let check = |device: &str, expect: &[(u32, &str)]| {
            let device = NetworkDevice::read(&tree.files(), device).expect("an interface");
            let seen: Vec<_> = device.interrupts.iter().map(|one| (one.number, one.processors.to_string())).collect();
            let seen: Vec<_> = seen.iter().map(|(number, list)| (*number, list.as_str())).collect();
            assert_eq!(seen, expect, "{}", device.name);
        };
        check("eth0", &[(40, "2"), (125, "0-3")]);
        check("eth1", &[]);
        check("eth2", &[(26, "3")]);
        check("eth3", &[(11, "0-1")]);
        let eth0 = NetworkDevice::read(&tree.files(), "eth0").expect("an interface");
        assert_eq!(eth0.flow_entries, [Some(32_768)]);
    }
}
