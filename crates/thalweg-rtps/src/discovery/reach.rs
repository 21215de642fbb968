//! The best path to a remote participant: the usable ones of its announced addresses, and whether it runs on this host.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::participant_data::{LinkMtu, ParticipantData};
use super::senders::Senders;
use crate::types::{
    DATAGRAM_MIN_BYTES, ETHERNET_V4_DATAGRAM_BYTES, ETHERNET_V6_DATAGRAM_BYTES, Locator, ON_HOST_DATAGRAM_BYTES,
};
use crate::writer::neighbourhood::{Link, same_subnet};

/// The addresses that the transport of this participant is bound to.
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
    /// The same interfaces, with the data for the choice between unicast and multicast; empty when unknown.
    pub links: Vec<Link>,
    /// Destinations of participant announcements: discovery's multicast groups, the well-known ports of configured peers and of
    /// 127.0.0.1.
    pub announce_to: Vec<Locator>,
    /// MTUs of our links to announce: those that are not Ethernet's 1500 bytes.
    pub link_mtus: Vec<LinkMtu>,
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
    /// Source addresses of its datagrams.
    pub senders: Senders,
    /// Source address of its announcement.
    source: Option<IpAddr>,
    /// The largest IP packet that its end of the path is known to take; `None` is Ethernet's.
    their_mtu: Option<u32>,
    /// The largest IP packet that leaves towards it, by the driver's measurement; `None` before that.
    our_mtu: Option<u32>,
    /// Its addresses that have answered; others are used only within this host. `None` allows any.
    proved: Option<Vec<IpAddr>>,
}

/// Most addresses used when nothing tells which of them works.
const GUESSES_MAX: usize = 4;

impl Reach {
    /// Chooses among the addresses that `data` announces. The source address of the announcement, `source`, is likely to work.
    pub fn new(local: &LocalAddresses, host: [u8; 16], data: &ParticipantData, source: SocketAddr) -> Reach {
        Reach::within(local, host, data, source, None)
    }

    /// As [`Reach::new`], among addresses that have answered, and this host's own if the participant runs here: it says so itself, and
    /// one of those that have answered is this host's.
    pub fn within(
        local: &LocalAddresses,
        host: [u8; 16],
        data: &ParticipantData,
        source: SocketAddr,
        proved: Option<Vec<IpAddr>>,
    ) -> Reach {
        let is_here = match &proved {
            Some(proved) => proved.iter().any(|ip| is_own(local, *ip)),
            None => is_own(local, source.ip()),
        };
        let on_this_host = is_here && data.host.is_none_or(|theirs| theirs == host);
        let mut reach = Reach { on_this_host, source: Some(source.ip()), proved, ..Reach::default() };
        reach.senders = Senders::new(data);
        reach.metatraffic = reach.choose(local, &data.locators.metatraffic_unicast);
        reach.user = reach.choose(local, &user_locators(data, on_this_host));
        reach.user_multicast = reach.choose_group(local, &data.locators.default_multicast);
        reach.their_mtu = reach.mtu_announced(local, data);
        reach
    }

    /// Sets the driver's measurement; true when [`Reach::datagram_bytes`] changed.
    pub fn set_path_mtu(&mut self, mtu_bytes: u32) -> bool {
        let before = self.datagram_bytes();
        self.our_mtu = Some(mtu_bytes);
        self.datagram_bytes() != before
    }

    /// Keeps earlier measurements of the path to the same address.
    pub fn keeping_path_of(mut self, before: &Reach) -> Reach {
        if self.user == before.user {
            self.our_mtu = before.our_mtu;
        }
        self.senders.keep_further_of(&before.senders);
        self
    }

    /// Whether a datagram from `ip` may be its own. Participants of this host may send from any of the host's addresses.
    pub fn sends_from(&self, local: &LocalAddresses, ip: IpAddr) -> bool {
        let is_here = || self.on_this_host || self.senders.any_announced(|announced| is_own(local, announced));
        self.senders.contains(ip) || is_own(local, ip.to_canonical()) && is_here()
    }

    /// The largest UDP payload that reaches it in one packet: what both ends of the path take, never more than
    /// [`ON_HOST_DATAGRAM_BYTES`]. Before the path was measured it counts as Ethernet, within this host as unlimited.
    pub fn datagram_bytes(&self) -> usize {
        let v6 = self.user.first().is_some_and(|locator| locator.kind == Locator::UDP_V6);
        let headers = if v6 { V6_HEADERS_BYTES } else { V4_HEADERS_BYTES };
        let unmeasured = if self.on_this_host { u32::MAX } else { ETHERNET_MTU_BYTES };
        let theirs = if self.on_this_host { u32::MAX } else { self.their_mtu.unwrap_or(ETHERNET_MTU_BYTES) };
        let packet = self.our_mtu.unwrap_or(unmeasured).min(theirs) as usize;
        packet.saturating_sub(headers).clamp(DATAGRAM_MIN_BYTES, ON_HOST_DATAGRAM_BYTES)
    }

    /// The MTU at the other end. A switch silently drops frames that are too large for the port behind it, so more than Ethernet's
    /// is used only where the other end announced it and no router is in between.
    fn mtu_announced(&self, local: &LocalAddresses, data: &ParticipantData) -> Option<u32> {
        let locator = self.user.first()?;
        let announced = data.locators.link_mtus.iter().find(|link| link.address == locator.address)?.bytes;
        let neighbour = locator.socket_address().is_some_and(|address| is_neighbour(local, address.ip()));
        Some(if neighbour { announced } else { announced.min(ETHERNET_MTU_BYTES) })
    }

    /// Its addresses that have answered.
    pub fn proved(&self) -> &[IpAddr] {
        self.proved.as_deref().unwrap_or_default()
    }

    /// Whether it is known to be at `source`: an address that has answered, one of this host if it runs here, or any where none had
    /// to answer.
    pub fn is_at(&self, local: &LocalAddresses, source: IpAddr) -> bool {
        match &self.proved {
            Some(proved) => proved.contains(&source) || self.on_this_host && is_own(local, source),
            None => true,
        }
    }

    /// Number of `candidates` that are not used because they have not answered.
    pub fn count_unproved(&self, local: &LocalAddresses, candidates: &[Locator]) -> usize {
        let ips = candidates.iter().filter_map(|locator| locator.socket_address()).map(|address| address.ip());
        ips.filter(|ip| !ip.is_multicast() && !self.is_at(local, *ip)).count()
    }

    /// The best of `candidates`; several when none is known to work.
    pub fn choose(&self, local: &LocalAddresses, candidates: &[Locator]) -> Vec<Locator> {
        let mut ranked: Vec<(u8, Locator)> =
            candidates.iter().filter_map(|locator| Some((self.rank(local, locator)?, *locator))).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        let certain = ranked.first().is_some_and(|(rank, _)| *rank < UNCERTAIN);
        ranked.truncate(if certain { 1 } else { GUESSES_MAX });
        ranked.into_iter().map(|(_, locator)| locator).collect()
    }

    /// The preference for an address, lower is better; `None` cannot work.
    fn rank(&self, local: &LocalAddresses, locator: &Locator) -> Option<u8> {
        let ip = locator.socket_address()?.ip();
        if ip.is_multicast() || ip.is_unspecified() || !has_family(local, ip) {
            return None;
        }
        if ip.is_loopback() {
            return self.on_this_host.then_some(0);
        }
        if !self.is_at(local, ip) {
            return None;
        }
        let rank = if self.source == Some(ip) || self.on_this_host && is_own(local, ip) {
            1
        } else if is_neighbour(local, ip) {
            2
        } else {
            UNCERTAIN
        };
        Some(rank)
    }

    /// The first group of the family that reaches it by unicast, or else of a family that can reach it: a host without an IPv4
    /// network still has 127.0.0.1, from which an IPv4 group reaches no other host.
    pub fn choose_group(&self, local: &LocalAddresses, candidates: &[Locator]) -> Option<Locator> {
        let ip = |locator: &Locator| Some(locator.socket_address()?.ip());
        let leaves = |group: IpAddr| {
            let carries = |own: IpAddr| own.is_ipv4() == group.is_ipv4() && (self.on_this_host || !own.is_loopback());
            local.interfaces.iter().any(|(own, _)| carries(*own))
        };
        let speaks = |locator: &&Locator| locator.is_multicast() && ip(locator).is_some_and(leaves);
        let kind = self.user.first().map(|locator| locator.kind);
        let mut groups = candidates.iter().filter(speaks);
        let of_its_family = groups.clone().find(|group| Some(group.kind) == kind);
        of_its_family.or_else(|| groups.next()).copied()
    }
}

/// The unicast addresses for user data. Thalweg's participants listen there on loopback if they do for discovery, and do not
/// announce it: Fast DDS would send everything twice.
fn user_locators(data: &ParticipantData, on_this_host: bool) -> Vec<Locator> {
    let mut locators = data.locators.default_unicast.clone();
    let ip = |locator: &Locator| locator.socket_address().map(|address| address.ip());
    let has_loopback = |list: &[Locator]| list.iter().filter_map(ip).any(|ip| ip.is_ipv4() && ip.is_loopback());
    let unsaid = on_this_host
        && data.vendor.traits().listens_on_loopback
        && has_loopback(&data.locators.metatraffic_unicast)
        && !has_loopback(&locators);
    let v4 = locators.iter().find_map(|locator| locator.socket_address().filter(SocketAddr::is_ipv4));
    if unsaid && let Some(v4) = v4 {
        locators.push(Locator::from(SocketAddr::from((Ipv4Addr::LOCALHOST, v4.port()))));
    }
    locators
}

const UNCERTAIN: u8 = 3;

/// MTU of an ordinary Ethernet link, assumed for every link whose end announces no other.
const ETHERNET_MTU_BYTES: u32 = 1500;
/// Headers of IPv4 and UDP.
const V4_HEADERS_BYTES: usize = 1500 - ETHERNET_V4_DATAGRAM_BYTES;
/// Headers of IPv6 and UDP.
const V6_HEADERS_BYTES: usize = 1500 - ETHERNET_V6_DATAGRAM_BYTES;

/// Whether `ip` is reached without a router.
fn is_neighbour(local: &LocalAddresses, ip: IpAddr) -> bool {
    local.interfaces.iter().any(|(own, bits)| !own.is_loopback() && same_subnet(*own, ip, *bits))
}

fn has_family(local: &LocalAddresses, ip: IpAddr) -> bool {
    local.interfaces.iter().any(|(own, _)| own.is_ipv4() == ip.is_ipv4())
}

pub(crate) fn is_own(local: &LocalAddresses, ip: IpAddr) -> bool {
    ip.is_loopback() || local.interfaces.iter().any(|(own, _)| *own == ip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{GuidPrefix, VendorId};

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

    /// A path to `to` on a link whose end there announced `theirs` (0: nothing), and that measures `ours` here.
    #[track_caller]
    fn check_path(to: &str, theirs: u32, ours: u32, expect: usize) {
        let own = [("127.0.0.1", 8), ("10.0.0.1", 24), ("fd00::1", 64)];
        let interfaces = own.iter().map(|(ip, bits)| (ip.parse().expect("an address"), *bits)).collect();
        let local = LocalAddresses { interfaces, ..LocalAddresses::default() };
        let mut data = ParticipantData::new(GuidPrefix([1; 12]));
        data.locators.default_unicast = locators(&[to]);
        if theirs > 0 {
            let address = data.locators.default_unicast[0].address;
            data.locators.link_mtus = vec![LinkMtu { address, bytes: theirs }];
        }
        let mut reach = Reach::new(&local, [0; 16], &data, to.parse().expect("an address"));
        let before = reach.datagram_bytes();
        let changed = reach.set_path_mtu(ours);
        assert_eq!((reach.datagram_bytes(), changed), (expect, before != expect));
        assert_eq!(Reach::new(&local, [0; 16], &data, to.parse().unwrap()).keeping_path_of(&reach), reach);
    }

    #[test]
    fn a_path_carries_what_both_of_its_ends_take() {
        for (theirs, ours, expect) in [
            (0, 1500, 1472),
            (0, 9000, 1472),
            (9000, 9000, 8972),
            (9000, 1500, 1472),
            (1280, 1500, 1252),
            (0, 1400, 1372),
        ] {
            check_path("10.0.0.2:7411", theirs, ours, expect);
            check_path("[fd00::2]:7411", theirs, ours, expect - 20);
        }
        check_path("127.0.0.1:7411", 0, 65_536, 65_000);
        check_path("127.0.0.1:7411", 0, 1500, 1472);
        // A forged or absurd report leaves room for a fragment.
        check_path("10.0.0.2:7411", 0, 68, 548);
    }

    #[test]
    fn a_group_is_of_the_family_that_reaches_the_participant() {
        let groups = locators(&["239.255.0.1:7401", "[ff02::ffff:efff:1]:7401"]);
        let both = [("127.0.0.1", 8), ("10.0.0.1", 24), ("fd00::1", 64)];
        let v6_alone = [("127.0.0.1", 8), ("fd00::1", 64)];
        let v4_alone = [("127.0.0.1", 8), ("::1", 128), ("10.0.0.1", 24)];
        let check = |own: &[(&str, u8)], at: &str, host: u8, announced: &[Locator], expect: Option<&Locator>| {
            let interfaces = own.iter().map(|(ip, bits)| (ip.parse().expect("an address"), *bits)).collect();
            let local = LocalAddresses { interfaces, ..LocalAddresses::default() };
            let mut data = ParticipantData::new(GuidPrefix([1; 12]));
            data.host = Some([host; 16]);
            data.locators.default_unicast = locators(&[at]);
            data.locators.default_multicast = announced.to_vec();
            let reach = Reach::new(&local, [0; 16], &data, at.parse().expect("an address"));
            assert_eq!(reach.user_multicast.as_ref(), expect, "{own:?} {at} {host}");
        };
        check(&both, "10.0.0.2:7411", 1, &groups, Some(&groups[0]));
        check(&both, "[fd00::2]:7411", 1, &groups, Some(&groups[1]));
        check(&both, "[fd00::2]:7411", 1, &groups[..1], Some(&groups[0]));
        check(&v6_alone, "[fd00::2]:7411", 1, &groups, Some(&groups[1]));
        check(&v6_alone, "[fd00::2]:7411", 1, &groups[..1], None);
        check(&v4_alone, "10.0.0.2:7411", 1, &groups[1..], None);
        check(&v6_alone, "127.0.0.1:7411", 0, &groups, Some(&groups[0]));
    }

    #[test]
    fn large_packets_are_not_trusted_to_routers() {
        check_path("10.9.0.2:7411", 9000, 9000, 1472);
        check_path("10.9.0.2:7411", 1300, 9000, 1272);
    }

    const LAN: [(&str, u8); 2] = [("127.0.0.1", 8), ("10.0.0.1", 24)];

    #[test]
    fn peers_on_this_host_are_reached_by_loopback() {
        check(&LAN, "10.0.0.1:9", &["10.0.0.1:7411", "127.0.0.1:7411"], &["127.0.0.1:7411"]);
        check(&LAN, "10.0.0.1:9", &["192.168.9.9:7411", "10.0.0.1:7411"], &["10.0.0.1:7411"]);
        check(&[("127.0.0.1", 8)], "127.0.0.1:9", &["127.0.0.1:7411"], &["127.0.0.1:7411"]);
    }

    /// The identity of a host is no secret: whoever hears announcements can repeat it.
    #[test]
    fn a_participant_elsewhere_that_claims_this_host_is_not_reached_by_loopback() {
        let interfaces = LAN.iter().map(|(ip, bits)| (ip.parse().expect("an address"), *bits)).collect();
        let local = LocalAddresses { interfaces, ..LocalAddresses::default() };
        let mut data = ParticipantData { host: Some([0; 16]), ..ParticipantData::new(GuidPrefix([1; 12])) };
        data.locators.default_unicast = locators(&["127.0.0.1:22", "10.0.0.1:22", "10.0.0.2:7411"]);
        let proved = |ip: &str| Some(vec![ip.parse().expect("an address")]);
        let reach =
            |source: &str, proved| Reach::within(&local, [0; 16], &data, source.parse().expect("an address"), proved);
        for source in ["10.0.0.2:9", "127.0.0.1:9"] {
            let elsewhere = reach(source, proved("10.0.0.2"));
            assert_eq!((elsewhere.on_this_host, elsewhere.user), (false, locators(&["10.0.0.2:7411"])), "{source}");
        }
        let here = reach("10.0.0.2:9", proved("10.0.0.1"));
        assert_eq!((here.on_this_host, here.user), (true, locators(&["127.0.0.1:22"])));
    }

    #[test]
    fn loopback_is_used_though_it_is_announced_for_discovery_alone() {
        let reached = |vendor: VendorId, source: &str, host: [u8; 16], discovery: &[&str]| {
            let interfaces = LAN.iter().map(|(ip, bits)| (ip.parse().expect("an address"), *bits)).collect();
            let local = LocalAddresses { interfaces, ..LocalAddresses::default() };
            let mut data = ParticipantData { vendor, host: Some(host), ..ParticipantData::new(GuidPrefix([1; 12])) };
            data.locators.default_unicast = locators(&["10.0.0.1:7413"]);
            data.locators.metatraffic_unicast = locators(discovery);
            Reach::new(&local, [0; 16], &data, source.parse().expect("an address")).user
        };
        let both = ["10.0.0.1:7412", "127.0.0.1:7412"];
        let ours = VendorId::THALWEG;
        assert_eq!(reached(ours, "10.0.0.1:9", [0; 16], &both), locators(&["127.0.0.1:7413"]));
        assert_eq!(reached(ours, "10.0.0.1:9", [0; 16], &both[..1]), locators(&["10.0.0.1:7413"]));
        assert_eq!(reached(ours, "10.0.0.2:9", [1; 16], &both), locators(&["10.0.0.1:7413"]));
        assert_eq!(reached(VendorId([1, 16]), "10.0.0.1:9", [0; 16], &both), locators(&["10.0.0.1:7413"]));
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
