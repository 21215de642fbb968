//! The networks around a writer and their listeners: the input of the choice between unicast and multicast.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::types::Locator;

/// The medium of a link, as far as it decides the cost of multicast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Medium {
    /// Within this host.
    Loopback,
    /// Multicast is as fast as unicast.
    #[default]
    Wired,
    /// Multicast travels at the basic rate of the radio cell, without acknowledgement (RFC 9119 §3.1).
    Wireless,
}

/// A network interface of this host with the subnets behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The interface's name, such as `eth0`.
    pub name: String,
    /// Own addresses with the length of their subnets' prefix.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Its medium.
    pub medium: Medium,
    /// Whether datagrams to groups leave by it.
    pub multicast: bool,
    /// Bytes that it carries in a second to one receiver.
    pub bytes_per_second: u64,
}

/// Speed assumed of wired links that do not tell theirs: 1 Gbit/s.
pub const WIRED_BYTES_PER_SECOND: u64 = 125_000_000;
/// Speed assumed of radio links to one receiver: 150 Mbit/s.
pub const WIRELESS_BYTES_PER_SECOND: u64 = 18_750_000;
/// Speed of the loopback link; an order of magnitude is enough here, because no radio or wire is kept busy.
pub const LOOPBACK_BYTES_PER_SECOND: u64 = 4_000_000_000;
/// Speed of multicast on radio links: the lowest mandatory rate of 802.11a/g/n, 6 Mbit/s.
pub const WIRELESS_GROUP_BYTES_PER_SECOND: u64 = 750_000;

impl Link {
    /// Bytes that it carries in a second to a group.
    pub fn group_bytes_per_second(&self) -> u64 {
        match self.medium {
            Medium::Wireless => self.bytes_per_second.min(WIRELESS_GROUP_BYTES_PER_SECOND),
            Medium::Loopback | Medium::Wired => self.bytes_per_second,
        }
    }

    /// Whether an address lies in one of its subnets.
    pub fn has(&self, ip: IpAddr) -> bool {
        self.addresses.iter().any(|(own, bits)| same_subnet(*own, ip, *bits))
    }

    /// Whether a datagram to a group of this family leaves by it. Linux routes no IPv6 multicast through loopback.
    pub fn carries_group(&self, group: IpAddr) -> bool {
        let speaks = self.addresses.iter().any(|(own, _)| own.is_ipv4() == group.is_ipv4());
        self.multicast && speaks && (group.is_ipv4() || self.medium != Medium::Loopback)
    }

    /// A wired network of all participants: assumed while the links are unknown.
    fn assumed() -> Link {
        Link {
            name: "assumed".to_owned(),
            addresses: vec![(Ipv4Addr::UNSPECIFIED.into(), 0), (Ipv6Addr::UNSPECIFIED.into(), 0)],
            medium: Medium::Wired,
            multicast: true,
            bytes_per_second: WIRED_BYTES_PER_SECOND,
        }
    }
}

/// The links of this host, and how many participants listen to which group on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbourhood {
    links: Vec<Link>,
    /// Participants that a datagram to the group reaches, for each link.
    listeners: BTreeMap<Locator, Vec<u32>>,
}

/// Groups whose listeners are counted; peers choose them, and hardly ever more than one for each family.
const GROUPS_MAX: usize = 256;

impl Default for Neighbourhood {
    fn default() -> Neighbourhood {
        Neighbourhood { links: vec![Link::assumed()], listeners: BTreeMap::new() }
    }
}

impl Neighbourhood {
    /// Nobody listens on these links yet; without any, one wired network is assumed.
    pub fn new(links: &[Link]) -> Neighbourhood {
        let assumed = Neighbourhood::default();
        if links.is_empty() { assumed } else { Neighbourhood { links: links.to_vec(), ..assumed } }
    }

    /// Whether an address lies in a subnet of a link, given by its number.
    pub fn is_on(&self, link: usize, locator: &Locator) -> bool {
        locator.socket_address().is_some_and(|address| self.links[link].has(address.ip()))
    }

    /// Counts one participant that listens to a group on these links.
    pub fn count(&mut self, group: Locator, places: &[usize]) {
        if !self.listeners.contains_key(&group) && self.listeners.len() >= GROUPS_MAX {
            return;
        }
        let links = self.links.len();
        let counts = self.listeners.entry(group).or_insert_with(|| vec![0; links]);
        places.iter().for_each(|place| counts[*place] += 1);
    }

    /// This host's links.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Number of the link whose subnet an address lies in; `None` behind a router.
    pub fn link_of(&self, locator: &Locator) -> Option<usize> {
        (0..self.links.len()).find(|link| self.is_on(*link, locator))
    }

    /// Participants that listen to a group on a link, those of this host and ourselves included.
    pub fn listeners(&self, group: &Locator, link: usize) -> u32 {
        self.listeners.get(group).and_then(|counts| counts.get(link)).copied().unwrap_or(0)
    }
}

/// Whether both addresses share the leading bits.
pub fn same_subnet(own: IpAddr, other: IpAddr, prefix_bits: u8) -> bool {
    match (own, other) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix_bits.min(32))).unwrap_or(0);
            (a.to_bits() ^ b.to_bits()) & mask == 0
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix_bits.min(128))).unwrap_or(0);
            (a.to_bits() ^ b.to_bits()) & mask == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str, address: &str, medium: Medium) -> Link {
        let addresses = vec![(address.parse().unwrap(), 24)];
        Link { name: name.into(), addresses, medium, multicast: true, bytes_per_second: WIRED_BYTES_PER_SECOND }
    }

    #[test]
    fn radio_carries_groups_slowly_and_loopback_no_ipv6_groups() {
        let mut radio = link("wlan0", "10.0.0.1", Medium::Wireless);
        assert_eq!(radio.group_bytes_per_second(), WIRELESS_GROUP_BYTES_PER_SECOND);
        radio.medium = Medium::Wired;
        assert_eq!(radio.group_bytes_per_second(), WIRED_BYTES_PER_SECOND);
        let loopback =
            Link { addresses: vec![("::1".parse().unwrap(), 128)], ..link("lo", "127.0.0.1", Medium::Loopback) };
        assert!(!loopback.carries_group("ff02::1".parse().unwrap()));
        assert!(link("lo", "127.0.0.1", Medium::Loopback).carries_group("239.255.0.1".parse().unwrap()));
    }
}
