//! How a remote participant is reached best: which of its announced addresses, and whether it runs on this host.

use std::net::{IpAddr, SocketAddr};

use super::participant_data::ParticipantData;
use crate::types::{ETHERNET_V4_DATAGRAM_BYTES, ETHERNET_V6_DATAGRAM_BYTES, Locator, ON_HOST_DATAGRAM_BYTES};
use crate::writer::neighbourhood::{Link, same_subnet};

/// The addresses of this participant, as its transport bound them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalAddresses {
    /// Unicast addresses of discovery and other built-in traffic.
    pub metatraffic_unicast: Vec<Locator>,
    /// Multicast groups of discovery.
    pub metatraffic_multicast: Vec<Locator>,
    /// Unicast addresses of user data.
    pub default_unicast: Vec<Locator>,
    /// Multicast groups of user data.
    pub default_multicast: Vec<Locator>,
    /// Address and prefix length of every interface in use, loopback included.
    pub interfaces: Vec<(IpAddr, u8)>,
    /// The interfaces once more, with what the choice between unicast and multicast needs; empty when nothing is known.
    pub links: Vec<Link>,
    /// Where participant announcements go to: discovery's multicast groups, the well-known ports of configured peers and of
    /// 127.0.0.1.
    pub announce_to: Vec<Locator>,
}

/// The addresses of a remote participant that this one uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// For built-in traffic; best first.
    pub metatraffic: Vec<Locator>,
    /// For user data to endpoints without addresses of their own; best first.
    pub user: Vec<Locator>,
    /// A group for user data.
    pub user_multicast: Option<Locator>,
    /// Whether it runs on this host.
    pub on_this_host: bool,
    /// Where its announcement came from.
    source: Option<IpAddr>,
}

/// Addresses used when nothing tells which of them works.
const GUESSES_MAX: usize = 4;

impl Reach {
    /// Chooses among what `data` announces. `source`: where the announcement came from, which is known to work.
    pub fn new(local: &LocalAddresses, host: [u8; 16], data: &ParticipantData, source: SocketAddr) -> Reach {
        let on_this_host = match data.host {
            Some(theirs) => theirs == host,
            None => is_own(local, source.ip()),
        };
        let mut reach = Reach { on_this_host, source: Some(source.ip()), ..Reach::default() };
        reach.metatraffic = reach.choose(local, &data.locators.metatraffic_unicast);
        reach.user = reach.choose(local, &data.locators.default_unicast);
        reach.user_multicast = reach.choose_group(local, &data.locators.default_multicast);
        reach
    }

    /// The largest UDP payload that reaches it in one packet.
    pub fn datagram_bytes(&self) -> usize {
        match self.user.first() {
            _ if self.on_this_host => ON_HOST_DATAGRAM_BYTES,
            Some(locator) if locator.kind == Locator::UDP_V6 => ETHERNET_V6_DATAGRAM_BYTES,
            _ => ETHERNET_V4_DATAGRAM_BYTES,
        }
    }

    /// The best of `candidates`; several only when none is known to work.
    pub fn choose(&self, local: &LocalAddresses, candidates: &[Locator]) -> Vec<Locator> {
        let mut ranked: Vec<(u8, Locator)> =
            candidates.iter().filter_map(|locator| Some((self.rank(local, locator)?, *locator))).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        let certain = ranked.first().is_some_and(|(rank, _)| *rank < UNCERTAIN);
        ranked.truncate(if certain { 1 } else { GUESSES_MAX });
        ranked.into_iter().map(|(_, locator)| locator).collect()
    }

    /// Lower is better; `None` cannot work.
    fn rank(&self, local: &LocalAddresses, locator: &Locator) -> Option<u8> {
        let ip = locator.socket_address()?.ip();
        if ip.is_multicast() || ip.is_unspecified() || !has_family(local, ip) {
            return None;
        }
        if ip.is_loopback() {
            return self.on_this_host.then_some(0);
        }
        let rank = if self.source == Some(ip) || self.on_this_host && is_own(local, ip) {
            1
        } else if local.interfaces.iter().any(|(own, bits)| !own.is_loopback() && same_subnet(*own, ip, *bits)) {
            2
        } else {
            UNCERTAIN
        };
        Some(rank)
    }

    /// The first group of a family that we speak.
    pub fn choose_group(&self, local: &LocalAddresses, candidates: &[Locator]) -> Option<Locator> {
        let mut groups = candidates.iter().filter(|locator| locator.is_multicast());
        groups.find(|locator| locator.socket_address().is_some_and(|address| has_family(local, address.ip()))).copied()
    }
}

const UNCERTAIN: u8 = 3;

fn has_family(local: &LocalAddresses, ip: IpAddr) -> bool {
    local.interfaces.iter().any(|(own, _)| own.is_ipv4() == ip.is_ipv4())
}

fn is_own(local: &LocalAddresses, ip: IpAddr) -> bool {
    ip.is_loopback() || local.interfaces.iter().any(|(own, _)| *own == ip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::GuidPrefix;

    fn locators(addresses: &[&str]) -> Vec<Locator> {
        addresses.iter().map(|text| Locator::from(text.parse::<SocketAddr>().expect("an address"))).collect()
    }

    #[track_caller]
    fn check(own: &[(&str, u8)], source: &str, announced: &[&str], expect: &[&str]) {
        let interfaces = own.iter().map(|(ip, bits)| (ip.parse().expect("an address"), *bits)).collect();
        let local = LocalAddresses { interfaces, ..LocalAddresses::default() };
        let mut data = ParticipantData::new(GuidPrefix([1; 12]));
        data.locators.default_unicast = locators(announced);
        let reach = Reach::new(&local, [0; 16], &data, source.parse().expect("an address"));
        assert_eq!(reach.user, locators(expect));
    }

    const LAN: [(&str, u8); 2] = [("127.0.0.1", 8), ("10.0.0.1", 24)];

    #[test]
    fn peers_on_this_host_are_reached_by_loopback() {
        check(&LAN, "10.0.0.1:9", &["10.0.0.1:7411", "127.0.0.1:7411"], &["127.0.0.1:7411"]);
        check(&LAN, "10.0.0.1:9", &["192.168.9.9:7411", "10.0.0.1:7411"], &["10.0.0.1:7411"]);
        check(&[("127.0.0.1", 8)], "127.0.0.1:9", &["127.0.0.1:7411"], &["127.0.0.1:7411"]);
    }

    #[test]
    fn loopback_of_another_host_is_not_ours() {
        check(&LAN, "10.0.0.2:9", &["127.0.0.1:7411", "10.0.0.2:7411"], &["10.0.0.2:7411"]);
    }

    #[test]
    fn the_address_that_was_heard_from_wins_then_the_subnet_then_all() {
        check(&LAN, "172.16.0.9:9", &["10.0.0.2:7411", "172.16.0.9:7411"], &["172.16.0.9:7411"]);
        check(&LAN, "172.16.0.9:9", &["10.9.0.2:7411", "10.0.0.2:7411"], &["10.0.0.2:7411"]);
        check(&LAN, "172.16.0.9:9", &["10.9.0.2:1", "10.8.0.2:1"], &["10.9.0.2:1", "10.8.0.2:1"]);
        check(&LAN, "172.16.0.9:9", &["[fe80::1]:7411"], &[]);
    }
}
