//! Network interfaces, and which of them a participant uses.

use std::fmt;
use std::fs;
use std::io;
use std::net::IpAddr;

use crate::sys::interfaces as system;

/// One network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name, such as `eth0`.
    pub name: String,
    /// The kernel's number of the interface; it changes when the interface is made anew.
    pub index: u32,
    /// Its addresses of both families, IPv4 first.
    pub addresses: Vec<InterfaceAddress>,
    /// True for `lo`.
    pub loopback: bool,
    /// True when multicast reaches its neighbours; loopback counts, since Linux delivers multicast there.
    pub multicast: bool,
    /// Largest IP packet in bytes, where the system tells.
    pub mtu_bytes: Option<u32>,
}

/// An address of an interface and how much of it names the subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The address.
    pub ip: IpAddr,
    /// Leading bits that all hosts of the subnet share.
    pub prefix_bits: u8,
}

impl Interface {
    /// The first IPv4 address.
    pub fn v4(&self) -> Option<IpAddr> {
        self.ips().find(IpAddr::is_ipv4)
    }

    /// The first IPv6 address, link-local ones last.
    pub fn v6(&self) -> Option<IpAddr> {
        let routable = self.ips().find(|ip| ip.is_ipv6() && !is_link_local(ip));
        routable.or_else(|| self.ips().find(IpAddr::is_ipv6))
    }

    /// True for radio: the kernel shows a `wireless` or `phy80211` entry. Read from the system at each call.
    pub fn is_wireless(&self) -> bool {
        ["wireless", "phy80211"].iter().any(|entry| fs::exists(self.system_file(entry)).unwrap_or(false))
    }

    /// Bits that it carries in a second, where its driver tells: most wired ones while they are connected.
    pub fn bits_per_second(&self) -> Option<u64> {
        let text = fs::read_to_string(self.system_file("speed")).ok()?;
        // Drivers that do not know say -1, some kernels without its sign.
        let megabits: u64 = text.trim().parse().ok()?;
        (1..u64::from(u32::MAX)).contains(&megabits).then_some(megabits * 1_000_000)
    }

    fn system_file(&self, entry: &str) -> String {
        format!("/sys/class/net/{}/{entry}", self.name)
    }

    /// The addresses without their subnets.
    pub fn ips(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.iter().map(|address| address.ip)
    }
}

/// True for IPv6 addresses that mean nothing without naming an interface, as locators cannot (RTPS 2.5 §9.3.2.4).
pub fn is_link_local(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// Which interfaces a participant uses: those that `allow` names (all when it is empty) and `deny` does not.
///
/// An entry is an interface's name or one of its addresses; the label of an address, such as `eth0:1`, means its interface.
/// Loopback stays in use for peers on the same host as long as `deny` does not name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceSelection {
    /// Names or addresses to use; empty means every interface.
    pub allow: Vec<String>,
    /// Names or addresses not to use; wins over `allow`.
    pub deny: Vec<String>,
}

impl InterfaceSelection {
    /// True when nothing is left out.
    pub fn is_everything(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    /// The first entry of `allow` that no interface of `listed` has as its name or address. Entries of `deny` may name interfaces that are
    /// not there: they are obeyed all the same.
    pub fn unknown(&self, listed: &[ListedInterface]) -> Option<&str> {
        let is_known = |entry: &&String| listed.iter().any(|listed| is_named(&listed.interface, entry));
        self.allow.iter().find(|entry| !is_known(entry)).map(String::as_str)
    }

    /// Whether `interface` is used.
    pub fn selects(&self, interface: &Interface) -> bool {
        let named = |entries: &[String]| entries.iter().any(|entry| is_named(interface, entry));
        !named(&self.deny) && (self.allow.is_empty() || interface.loopback || named(&self.allow))
    }
}

/// Whether `entry` is the name or an address of `interface`, or the label of one.
fn is_named(interface: &Interface, entry: &str) -> bool {
    entry == interface.name
        || match entry.parse::<IpAddr>() {
            Ok(ip) => interface.ips().any(|own| own == ip),
            Err(_) => without_label(entry) == interface.name,
        }
}

/// The name of the interface in the label of an address, such as `eth0:1`; other names as they are, since none has a colon.
fn without_label(name: &str) -> &str {
    name.split_once(':').map_or(name, |(interface, _)| interface)
}

/// An interface of this host, whether it can be used or not. Displays with what decides that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedInterface {
    /// The interface; without addresses when it has none.
    pub interface: Interface,
    /// Whether it is switched on.
    pub up: bool,
}

impl fmt::Display for ListedInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<String> = self.interface.ips().map(|ip| ip.to_string()).collect();
        let addresses = if addresses.is_empty() { "no address".to_owned() } else { addresses.join(" ") };
        let up = if self.up { "up" } else { "down" };
        let multicast = if self.interface.multicast { "multicast" } else { "no multicast" };
        write!(f, "{} ({addresses}, {up}, {multicast})", self.interface.name)
    }
}

/// All interfaces of this host, in the kernel's order.
///
/// # Errors
/// The system's error, such as too many open files.
pub fn list() -> io::Result<Vec<ListedInterface>> {
    Ok(gather(system::addresses()?))
}

/// Each interface once, with its addresses, whatever labels these have.
fn gather(entries: Vec<system::InterfaceAddress>) -> Vec<ListedInterface> {
    let mut listed: Vec<ListedInterface> = Vec::new();
    for entry in entries {
        let name = without_label(&entry.name);
        let position = listed.iter().position(|known| known.interface.name == name);
        let position = position.unwrap_or_else(|| {
            let up = entry.flags & libc::IFF_UP as u32 != 0;
            listed.push(ListedInterface { interface: new_interface(name, &entry), up });
            listed.len() - 1
        });
        if let Some((ip, netmask)) = entry.address {
            let address = InterfaceAddress { ip, prefix_bits: prefix_bits(ip, netmask) };
            listed[position].interface.addresses.push(address);
        }
    }
    listed.iter_mut().for_each(|listed| listed.interface.addresses.sort_by_key(|address| address.ip.is_ipv6()));
    listed
}

/// The interfaces that are up, have an address and are selected, in the kernel's order.
///
/// # Errors
/// As [`list`].
pub fn enumerate(selection: &InterfaceSelection) -> io::Result<Vec<Interface>> {
    Ok(usable(list()?, selection))
}

/// Those of `listed` that are up, have an address and are selected.
pub(crate) fn usable(listed: Vec<ListedInterface>, selection: &InterfaceSelection) -> Vec<Interface> {
    let up = listed.into_iter().filter(|listed| listed.up).map(|listed| listed.interface);
    up.filter(|interface| !interface.addresses.is_empty() && selection.selects(interface)).collect()
}

/// Ones of the netmask; without one the address stands alone.
fn prefix_bits(ip: IpAddr, netmask: Option<IpAddr>) -> u8 {
    let bits = match netmask {
        Some(IpAddr::V4(mask)) => mask.to_bits().leading_ones(),
        Some(IpAddr::V6(mask)) => mask.to_bits().leading_ones(),
        None if ip.is_ipv4() => u32::BITS,
        None => u128::BITS,
    };
    bits as u8
}

fn new_interface(name: &str, entry: &system::InterfaceAddress) -> Interface {
    let loopback = entry.flags & libc::IFF_LOOPBACK as u32 != 0;
    Interface {
        name: name.to_owned(),
        index: entry.index,
        addresses: Vec::new(),
        loopback,
        multicast: loopback || entry.flags & libc::IFF_MULTICAST as u32 != 0,
        mtu_bytes: system::mtu(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, address: &str, loopback: bool) -> Interface {
        let addresses = vec![InterfaceAddress { ip: address.parse().unwrap(), prefix_bits: 24 }];
        Interface { name: name.into(), index: 1, addresses, loopback, multicast: true, mtu_bytes: Some(1500) }
    }

    #[test]
    fn deny_wins_over_allow_and_loopback_stays_unless_denied() {
        let select = |allow: &[&str], deny: &[&str]| InterfaceSelection {
            allow: allow.iter().map(ToString::to_string).collect(),
            deny: deny.iter().map(ToString::to_string).collect(),
        };
        let (lo, eth) = (interface("lo", "127.0.0.1", true), interface("eth0", "192.0.2.7", false));
        let check = |selection: InterfaceSelection, expect: (bool, bool)| {
            assert_eq!((selection.selects(&lo), selection.selects(&eth)), expect, "{selection:?}");
        };
        check(select(&[], &[]), (true, true));
        check(select(&["eth0"], &[]), (true, true));
        check(select(&["192.0.2.7"], &["lo"]), (false, true));
        check(select(&["lo"], &[]), (true, false));
        check(select(&["eth0"], &["eth0"]), (true, false));
    }

    #[test]
    fn an_allowed_interface_that_is_not_there_is_found_out_and_a_denied_one_is_not() {
        let lo = ListedInterface { interface: interface("lo", "127.0.0.1", true), up: true };
        let eth = ListedInterface { interface: interface("eth0", "192.0.2.7", false), up: false };
        assert_eq!(eth.to_string(), "eth0 (192.0.2.7, down, multicast)");
        let listed = [lo, eth];
        let check = |allow: &[&str], expect: Option<&str>| {
            let allow = allow.iter().map(ToString::to_string).collect();
            let selection = InterfaceSelection { allow, deny: vec!["docker0".into()] };
            assert_eq!(selection.unknown(&listed), expect);
        };
        check(&[], None);
        check(&["lo", "eth0", "192.0.2.7"], None);
        check(&["lo", "eth7"], Some("eth7"));
        check(&["192.0.2.8"], Some("192.0.2.8"));
    }

    #[test]
    fn an_address_with_a_label_belongs_to_its_interface() {
        let entry = |name: &str, address: &str| system::InterfaceAddress {
            name: name.into(),
            index: 2,
            flags: libc::IFF_UP as u32,
            address: Some((address.parse().unwrap(), None)),
        };
        let listed = gather(vec![entry("eth0", "192.0.2.7"), entry("eth0:1", "198.51.100.7")]);
        let [ListedInterface { interface: eth, up: true }] = listed.as_slice() else { panic!("{listed:?}") };
        assert_eq!((eth.name.as_str(), eth.index), ("eth0", 2));
        assert_eq!(eth.ips().map(|ip| ip.to_string()).collect::<Vec<_>>(), ["192.0.2.7", "198.51.100.7"]);
        for named in ["eth0", "eth0:1", "198.51.100.7"] {
            let denied = InterfaceSelection { allow: Vec::new(), deny: vec![named.into()] };
            assert_eq!(usable(listed.clone(), &denied), [], "{named}");
            let allowed = InterfaceSelection { allow: vec![named.into()], deny: Vec::new() };
            assert_eq!((allowed.unknown(&listed), allowed.selects(eth)), (None, true), "{named}");
        }
    }

    #[test]
    fn loopback_is_listed_with_its_address() {
        let all = enumerate(&InterfaceSelection::default()).unwrap();
        let lo = all.iter().find(|interface| interface.loopback).expect("a loopback interface");
        let address = InterfaceAddress { ip: "127.0.0.1".parse().unwrap(), prefix_bits: 8 };
        assert!(lo.addresses.contains(&address), "{lo:?}");
        assert!(lo.multicast && lo.index > 0);
        assert!(!lo.is_wireless());
        assert_eq!(lo.bits_per_second(), None, "loopback has no speed");
        assert!(lo.mtu_bytes.is_some_and(|bytes| bytes >= 576), "{lo:?}");
    }
}
