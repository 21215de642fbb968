//! The addresses that a participant announces, and those that it announces itself to.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use thalweg_rtps::discovery::LocalAddresses;
use thalweg_rtps::discovery::participant_data::LinkMtu;
use thalweg_rtps::types::Locator;
use thalweg_rtps::writer::neighbourhood::{
    LOOPBACK_BYTES_PER_SECOND, WIRED_BYTES_PER_SECOND, WIRELESS_BYTES_PER_SECOND, same_subnet,
};
use thalweg_rtps::writer::{Link, Medium};
use thalweg_transport::interfaces::{Interface, is_link_local};
use thalweg_transport::ports::{PARTICIPANT_INDEX_MAX, metatraffic_multicast, metatraffic_unicast, user_multicast};
use thalweg_transport::udp::{GROUP_V4, GROUP_V6, Ports};

/// Settings that stay the same when interfaces change.
#[derive(Clone, Debug)]
pub(crate) struct AddressPlan {
    pub(crate) domain_id: u32,
    pub(crate) ports: Ports,
    /// Unicast peers that the application named, with their ports.
    pub(crate) peers: Vec<SocketAddr>,
}

/// Most addresses of one kind that are announced; peers read 32, and each one makes every announcement longer.
const ANNOUNCED_MAX: usize = 16;

/// The addresses for these interfaces.
pub(crate) fn local_addresses(plan: &AddressPlan, interfaces: &[Interface]) -> LocalAddresses {
    let unicast = |v4: Option<u16>, v6: Option<u16>| announced(interfaces, v4, v6);
    let ports = &plan.ports;
    let groups = |port: u16| -> Vec<Locator> {
        let v4 = ports.multicast.0.then_some(IpAddr::V4(GROUP_V4));
        // Linux does not route IPv6 multicast through loopback.
        let v6_leaves = interfaces.iter().any(|interface| !interface.loopback && interface.v6().is_some());
        let v6 = (ports.multicast.1 && v6_leaves).then_some(IpAddr::V6(GROUP_V6));
        [v4, v6].into_iter().flatten().map(|group| SocketAddr::new(group, port).into()).collect()
    };
    let metatraffic_multicast = groups(metatraffic_multicast(plan.domain_id));
    let mut announce_to = metatraffic_multicast.clone();
    announce_to.extend(plan.peers.iter().copied().map(Locator::from));
    announce_to.extend(same_host(plan));
    let mut seen = std::collections::HashSet::new();
    announce_to.retain(|locator| seen.insert(*locator));
    LocalAddresses {
        metatraffic_unicast: unicast(ports.metatraffic_v4, ports.metatraffic_v6),
        metatraffic_multicast,
        default_unicast: one_for_each_network(interfaces, unicast(ports.user_v4, ports.user_v6)),
        default_multicast: groups(user_multicast(plan.domain_id)),
        interfaces: interfaces
            .iter()
            .flat_map(|interface| interface.addresses.iter().map(|address| (address.ip, address.prefix_bits)))
            .collect(),
        links: interfaces.iter().map(|interface| link(interface, ports.multicast.0 || ports.multicast.1)).collect(),
        announce_to,
        link_mtus: link_mtus(interfaces),
    }
}

/// The data of an interface for the choice between unicast and multicast.
fn link(interface: &Interface, multicast: bool) -> Link {
    let (medium, assumed) = match interface {
        _ if interface.loopback => (Medium::Loopback, LOOPBACK_BYTES_PER_SECOND),
        _ if interface.is_wireless() => (Medium::Wireless, WIRELESS_BYTES_PER_SECOND),
        _ => (Medium::Wired, WIRED_BYTES_PER_SECOND),
    };
    Link {
        name: interface.name.clone(),
        addresses: interface.addresses.iter().map(|address| (address.ip, address.prefix_bits)).collect(),
        medium,
        multicast: multicast && interface.multicast,
        bytes_per_second: interface.bits_per_second().map_or(assumed, |bits| bits / 8),
    }
}

/// The MTUs to announce: those that differ from Ethernet's 1500 bytes, which peers assume.
fn link_mtus(interfaces: &[Interface]) -> Vec<LinkMtu> {
    let mut mtus = Vec::new();
    for interface in interfaces.iter().filter(|interface| !interface.loopback) {
        let Some(bytes) = interface.mtu_bytes.filter(|bytes| *bytes != ETHERNET_MTU_BYTES) else { continue };
        let announced = interface.ips().filter(|ip| !is_link_local(ip));
        mtus.extend(announced.map(|ip| LinkMtu { address: Locator::from(SocketAddr::new(ip, 0)).address, bytes }));
    }
    mtus.truncate(ANNOUNCED_MAX);
    mtus
}

/// The MTU that peers assume for a link without an announced one.
const ETHERNET_MTU_BYTES: u32 = 1500;

/// The addresses to announce, loopback last: peers on this host prefer that, others must not use it.
fn announced(interfaces: &[Interface], v4: Option<u16>, v6: Option<u16>) -> Vec<Locator> {
    let port_of = |ip: &IpAddr| if ip.is_ipv4() { v4 } else { v6 };
    let usable = |ip: &IpAddr| !is_link_local(ip) && (!ip.is_loopback() || ip.is_ipv4() || v4.is_none());
    let mut ips: Vec<IpAddr> = interfaces.iter().flat_map(Interface::ips).filter(usable).collect();
    ips.sort_by_key(|ip| (ip.is_loopback(), ip.is_ipv6()));
    let mut locators: Vec<Locator> =
        ips.iter().filter_map(|ip| Some(SocketAddr::new(*ip, port_of(ip)?).into())).collect();
    if locators.len() > ANNOUNCED_MAX {
        let loopback = locators.pop();
        locators.truncate(ANNOUNCED_MAX - 1);
        locators.extend(loopback);
    }
    locators
}

/// Leaves out addresses that reach no further participant: all but the first that an interface has in one network, and loopback
/// where this host has another IPv4 address. Fast DDS sends every sample to every address that it can reach, so that its writers on
/// this host would send each sample once more for each of them. Thalweg's participants on this host use loopback all the same,
/// since it is announced for discovery.
fn one_for_each_network(interfaces: &[Interface], mut announced: Vec<Locator>) -> Vec<Locator> {
    let has_v4 = announced.iter().filter_map(Locator::socket_address).any(|a| a.is_ipv4() && !a.ip().is_loopback());
    let is_further = |ip: IpAddr| {
        let of_interface = |interface: &&Interface| interface.ips().any(|own| own == ip);
        let Some(interface) = interfaces.iter().find(of_interface) else { return false };
        let mut same = interface.addresses.iter().filter(|own| same_subnet(own.ip, ip, own.prefix_bits));
        same.next().is_some_and(|first| first.ip != ip)
    };
    announced.retain(|locator| {
        let Some(ip) = locator.socket_address().map(|address| address.ip()) else { return true };
        if ip.is_loopback() { ip.is_ipv6() || !has_v4 } else { !is_further(ip) }
    });
    announced
}

/// The well-known ports of other participants of this host: some listen on loopback only and receive no multicast.
fn same_host(plan: &AddressPlan) -> impl Iterator<Item = Locator> {
    let (domain, own) = (plan.domain_id, plan.ports.participant_index);
    let v4 = plan.ports.metatraffic_v4.is_some();
    (0..=PARTICIPANT_INDEX_MAX)
        .filter(move |index| v4 && Some(*index) != own)
        .map(move |index| SocketAddr::from((Ipv4Addr::LOCALHOST, metatraffic_unicast(domain, index))).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_transport::interfaces::InterfaceAddress;

    fn interface(name: &str, ips: &[&str]) -> Interface {
        let address = |ip: &&str| InterfaceAddress { ip: ip.parse().unwrap(), prefix_bits: 24 };
        let addresses = ips.iter().map(address).collect();
        Interface { name: name.into(), index: 1, addresses, loopback: name == "lo", multicast: true, mtu_bytes: None }
    }

    #[track_caller]
    fn check(interfaces: &[Interface], expect: &[&str]) {
        let ports = Ports { user_v4: Some(7411), user_v6: Some(7411), metatraffic_v4: Some(7410), ..Ports::default() };
        let plan = AddressPlan { domain_id: 0, ports, peers: Vec::new() };
        let told = local_addresses(&plan, interfaces).default_unicast;
        let expect: Vec<Locator> = expect.iter().map(|text| text.parse::<SocketAddr>().unwrap().into()).collect();
        assert_eq!(told, expect);
    }

    #[test]
    fn loopback_stands_in_for_a_missing_network_and_link_local_addresses_are_not_told() {
        let lo = interface("lo", &["127.0.0.1", "::1"]);
        check(std::slice::from_ref(&lo), &["127.0.0.1:7411"]);
        let eth = interface("eth0", &["10.0.0.1", "fd00::2", "fe80::1"]);
        check(&[lo, eth], &["10.0.0.1:7411", "[fd00::2]:7411"]);
    }

    #[test]
    fn user_data_have_one_address_for_each_network_and_discovery_has_loopback_too() {
        let lo = interface("lo", &["127.0.0.1"]);
        let eth = interface("eth0", &["10.0.0.1", "10.0.0.9", "10.0.1.1", "fd00::2"]);
        let wlan = interface("wlan0", &["10.0.0.3"]);
        let expect = ["10.0.0.1:7411", "10.0.1.1:7411", "10.0.0.3:7411", "[fd00::2]:7411"];
        check(&[lo.clone(), eth.clone(), wlan], &expect);
        let only_v6 = interface("eth0", &["fd00::2"]);
        check(&[lo.clone(), only_v6], &["[fd00::2]:7411", "127.0.0.1:7411"]);
        let plan = AddressPlan {
            domain_id: 0,
            ports: Ports { user_v4: Some(7411), metatraffic_v4: Some(7410), ..Ports::default() },
            peers: Vec::new(),
        };
        let loopback = Locator::from("127.0.0.1:7410".parse::<SocketAddr>().unwrap());
        assert!(local_addresses(&plan, &[lo, eth]).metatraffic_unicast.contains(&loopback));
    }

    #[test]
    fn only_links_that_are_no_ordinary_ethernet_are_described() {
        let told = |mtu_bytes| {
            let eth = Interface { mtu_bytes, ..interface("eth0", &["10.0.0.1", "fd00::2", "fe80::1"]) };
            let lo = Interface { mtu_bytes: Some(65_536), ..interface("lo", &["127.0.0.1"]) };
            link_mtus(&[lo, eth]).iter().map(|link| (link.address[15], link.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(told(Some(9000)), [(1, 9000), (2, 9000)]);
        assert_eq!((told(Some(1500)), told(None)), (vec![], vec![]));
    }

    #[test]
    fn announcements_go_to_groups_peers_and_the_other_ports_of_this_host() {
        let ports = Ports {
            participant_index: Some(3),
            metatraffic_v4: Some(7416),
            multicast: (true, false),
            ..Ports::default()
        };
        let peer: SocketAddr = "192.0.2.9:7410".parse().unwrap();
        let to = local_addresses(&AddressPlan { domain_id: 0, ports, peers: vec![peer, peer] }, &[]).announce_to;
        assert_eq!(to.len(), 1 + 1 + 32);
        assert!(to[0].is_multicast() && to[1] == peer.into());
        assert!(!to.contains(&"127.0.0.1:7416".parse::<SocketAddr>().unwrap().into()), "not to ourselves");
    }
}
