//! Counters of every layer below the middleware, in a network namespace.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::files::HostFiles;

/// Counters of the kernel by `layer.name`, such as `udp.RcvbufErrors` or `device.lo.rx_drop`; counters that the kernel lacks are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Layers(BTreeMap<String, u64>);

impl Layers {
    /// The counters of now: devices, IP with reassembly, UDP, and the queues between device and protocol (softnet).
    pub fn read(files: &HostFiles) -> Layers {
        Layers::read_in(files, "proc/net")
    }

    /// The counters of now in the network namespace of a process.
    pub fn read_of(files: &HostFiles, process: u32) -> Layers {
        Layers::read_in(files, &format!("proc/{process}/net"))
    }

    fn read_in(files: &HostFiles, folder: &str) -> Layers {
        let mut out = Layers::default();
        let read = |name: &str| files.text(format!("{folder}/{name}")).unwrap_or_default();
        out.add_devices(&read("dev"));
        out.add_titled(&read("snmp"), &[("Ip", "ip"), ("Udp", "udp")]);
        out.add_titled(&read("netstat"), &[("IpExt", "ip")]);
        out.add_listed(&read("snmp6"), &[("Ip6", "ip6"), ("Udp6", "udp6")]);
        out.add_softnet(&read("softnet_stat"));
        out
    }

    /// These counters with those of `other` added.
    pub fn plus(mut self, other: &Layers) -> Layers {
        for (name, value) in &other.0 {
            *self.0.entry(name.clone()).or_default() += value;
        }
        self
    }

    /// These counters without those of the queues between device and protocol, which all hosts of a machine share.
    pub fn without_softnet(mut self) -> Layers {
        self.0.retain(|name, _| !name.starts_with("softnet."));
        self
    }

    /// Differences since `before`; counters that did not move are left out.
    pub fn since(&self, before: &Layers) -> Layers {
        let grown = |(name, value): (&String, &u64)| {
            let by = value.saturating_sub(before.get(name));
            (by > 0).then(|| (name.clone(), by))
        };
        Layers(self.0.iter().filter_map(grown).collect())
    }

    /// A counter; 0 where it is missing.
    pub fn get(&self, name: &str) -> u64 {
        self.find(name).unwrap_or(0)
    }

    pub(crate) fn find(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Bytes that all interfaces but loopback have sent so far, headers included; of loopback where there is no other. `None` where
    /// the kernel does not tell.
    pub fn transmitted_bytes(&self) -> Option<u64> {
        let sent = self
            .iter()
            .filter_map(|(name, bytes)| Some((name.strip_prefix("device.")?.strip_suffix(".tx_bytes")?, bytes)));
        let (loopback, others): (Vec<_>, Vec<_>) = sent.partition(|(interface, _)| *interface == "lo");
        let counted = if others.is_empty() { loopback } else { others };
        (!counted.is_empty()).then(|| counted.iter().map(|(_, bytes)| bytes).sum())
    }

    /// Name and value of every counter, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// Those that count datagrams, fragments or packets that got lost here.
    pub fn losses(&self) -> impl Iterator<Item = (&str, u64)> {
        self.iter().filter(|(name, _)| LOSSES.contains(&Layers::last_word(name)))
    }

    /// The meaning of a counter, without its layer and the same for both versions of IP.
    pub fn last_word(name: &str) -> &str {
        name.rsplit('.').next().unwrap_or_default().trim_start_matches("Ip6").trim_start_matches("Udp6")
    }

    fn add(&mut self, layer: &str, name: &str, value: u64) {
        let layer = if name.contains("Reasm") || name.starts_with("Frag") { "reassembly" } else { layer };
        self.0.insert(format!("{layer}.{name}"), value);
    }

    fn add_devices(&mut self, text: &str) {
        for (name, figures) in text.lines().filter_map(|line| line.split_once(':')) {
            let values = figures.split_whitespace().map_while(|word| word.parse::<u64>().ok());
            for (column, value) in DEVICE_COLUMNS.iter().zip(values).filter(|(column, _)| !column.is_empty()) {
                self.0.insert(format!("device.{}.{column}", name.trim()), value);
            }
        }
    }

    /// Files in which a line of titles stands above a line of values, both after the same word.
    fn add_titled(&mut self, text: &str, layers: &[(&str, &str)]) {
        for (word, layer) in layers {
            for (name, value) in titled(text, word) {
                self.add(layer, name, value);
            }
        }
    }

    /// Files with one name and value in each line.
    fn add_listed(&mut self, text: &str, layers: &[(&str, &str)]) {
        for line in text.lines() {
            let Some((name, value)) = line.split_once(char::is_whitespace) else { continue };
            let layer = layers.iter().find(|(word, _)| name.starts_with(word));
            if let (Some((_, layer)), Ok(value)) = (layer, value.trim().parse()) {
                self.add(layer, name, value);
            }
        }
    }

    /// Packets, drops and exhausted time slices of all CPUs together.
    fn add_softnet(&mut self, text: &str) {
        for (column, name) in ["packets", "dropped", "time_squeeze"].into_iter().enumerate() {
            let values = text.lines().filter_map(|line| line.split_whitespace().nth(column));
            let values: Vec<u64> = values.filter_map(|word| u64::from_str_radix(word, 16).ok()).collect();
            if !values.is_empty() {
                self.0.insert(format!("softnet.{name}"), values.iter().sum());
            }
        }
    }
}

impl FromIterator<(String, u64)> for Layers {
    fn from_iter<Counters: IntoIterator<Item = (String, u64)>>(counters: Counters) -> Layers {
        Layers(counters.into_iter().collect())
    }
}

/// Titles and values of the lines that begin with `word` and a colon.
fn titled<'a>(text: &'a str, word: &str) -> Vec<(&'a str, u64)> {
    let mut lines =
        text.lines().filter_map(|line| line.split_once(':')).filter(|(first, _)| *first == word).map(|(_, rest)| rest);
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return Vec::new() };
    // A value that is no counter, such as a negative one, keeps its place and counts nothing.
    let pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect()
}

const DEVICE_COLUMNS: [&str; 13] = [
    "rx_bytes",
    "rx_packets",
    "rx_errors",
    "rx_drop",
    "rx_fifo",
    "rx_frame",
    "",
    "rx_multicast",
    "tx_bytes",
    "tx_packets",
    "tx_errors",
    "tx_drop",
    "tx_fifo",
];

/// Names of counters whose growth is a loss.
const LOSSES: [&str; 19] = [
    "rx_errors",
    "rx_drop",
    "rx_fifo",
    "tx_errors",
    "tx_drop",
    "tx_fifo",
    "InDiscards",
    "OutDiscards",
    "ReasmFails",
    "ReasmTimeout",
    "FragFails",
    "RcvbufErrors",
    "SndbufErrors",
    "InCsumErrors",
    "MemErrors",
    "dropped",
    "missed",
    "overflowed",
    "refused",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Tree;

    #[test]
    fn counters_are_read_from_the_files_of_a_process() {
        let tree = Tree::new("layers")
            .with("proc/7/net/dev", "Inter-| Receive\n face |bytes\n    lo: 100 2 0 3 0 0 0 0 200 4 0 5 0 0 0 0\n")
            .with(
                "proc/7/net/snmp",
                "Ip: Forwarding InDiscards ReasmFails\nIp: 2 7 1\nUdp: InDatagrams RcvbufErrors\nUdp: 50 6\n",
            )
            .with("proc/7/net/snmp6", "Ip6ReasmFails 4\nUdp6RcvbufErrors   8\nIcmp6InMsgs 1\n")
            .with(
                "proc/7/net/softnet_stat",
                "0000000a 00000001 00000000 00000000\n00000010 00000002 00000001 00000000\n",
            );
        let layers = Layers::read_of(&tree.files(), 7);
        for (name, expect) in [
            ("device.lo.rx_drop", 3),
            ("device.lo.tx_packets", 4),
            ("device.lo.tx_drop", 5),
            ("ip.InDiscards", 7),
            ("reassembly.ReasmFails", 1),
            ("reassembly.Ip6ReasmFails", 4),
            ("udp.RcvbufErrors", 6),
            ("udp6.Udp6RcvbufErrors", 8),
            ("softnet.packets", 26),
            ("softnet.dropped", 3),
            ("icmp6.Icmp6InMsgs", 0),
        ] {
            assert_eq!(layers.get(name), expect, "{name}");
        }
    }

    #[test]
    fn only_what_moved_is_told_and_losses_are_named() {
        let of =
            |pairs: &[(&str, u64)]| Layers(pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect());
        let before = of(&[("udp.InDatagrams", 5), ("udp.RcvbufErrors", 1), ("ip.InDiscards", 2)]);
        let after =
            of(&[("udp.InDatagrams", 9), ("udp.RcvbufErrors", 4), ("ip.InDiscards", 2), ("udp6.Udp6RcvbufErrors", 1)]);
        let grown = after.since(&before);
        assert_eq!(grown, of(&[("udp.InDatagrams", 4), ("udp.RcvbufErrors", 3), ("udp6.Udp6RcvbufErrors", 1)]));
        assert_eq!(grown.losses().collect::<Vec<_>>(), [("udp.RcvbufErrors", 3), ("udp6.Udp6RcvbufErrors", 1)]);
    }

    #[test]
    fn loopback_counts_as_transmitted_only_where_it_is_alone() {
        let head = "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes packets\n";
        let line = |name: &str, sent: u64| format!("{name}: 9 9 9 9 9 9 9 9 {sent} 8 7 6 5 4 3 2\n");
        let check = |lines: &[String], expect| {
            let tree = Tree::new("transmitted").with("proc/net/dev", &format!("{head}{}", lines.concat()));
            assert_eq!(Layers::read(&tree.files()).transmitted_bytes(), expect, "{lines:?}");
        };
        check(&[line("  lo", 5), line("eth0", 70), line("eth0.100", 600)], Some(670));
        check(&[line("  lo", 5)], Some(5));
        check(&[], None);
    }

    #[test]
    fn this_machine_has_a_loopback_device() {
        assert!(Layers::read(&HostFiles::here()).iter().any(|(name, _)| name == "device.lo.rx_packets"));
    }
}
