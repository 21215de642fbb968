//! A network of hosts that loses, delays, repeats and splits: given a datagram it says who gets it when.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use thalweg_rtps::rng::Rng;
use thalweg_rtps::time::Instant;

use crate::lane::{BusyLane, HostLink, LaneCounters};
use crate::plan::Cut;
use crate::process::DISCOVERY_PORT;

/// How the network between hosts behaves. Within a host nothing is lost and everything takes [`LOOPBACK_LATENCY`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weather {
    /// Probability that an IP packet is lost, for each receiving host.
    pub loss: f64,
    /// So many datagrams that leave a host for another at one time share their fate, as those that a device cuts from one message
    /// (GSO) and a queue drops as one. One by default: each has its own.
    pub loss_run: u32,
    /// Probability that a datagram arrives twice.
    pub duplication: f64,
    /// Probability that a datagram is held up by ten times the jitter, so that later ones overtake it.
    pub reordering: f64,
    /// Probability that a datagram arrives with a few of its bits flipped.
    pub corruption: f64,
    /// Least time from host to host.
    pub latency: Duration,
    /// Random time on top, evenly spread from zero.
    pub jitter: Duration,
}

impl Weather {
    /// A good wired network: 100 µs from host to host, nothing lost.
    pub const CLEAR: Weather = Weather {
        loss: 0.0,
        loss_run: 1,
        duplication: 0.0,
        reordering: 0.0,
        corruption: 0.0,
        latency: Duration::from_micros(100),
        jitter: Duration::ZERO,
    };

    /// True when every datagram arrives once and in order.
    pub fn is_clear(&self) -> bool {
        self.loss == 0.0 && self.corruption == 0.0 && self.duplication == 0.0 && self.jitter.is_zero()
    }
}

/// Time between two processes of one host.
pub const LOOPBACK_LATENCY: Duration = Duration::from_micros(15);
/// Payload of a UDP datagram that fits one Ethernet frame; longer ones travel in several IP packets.
pub const PACKET_BYTES: usize = 1472;
/// The largest IP packet of Ethernet.
pub const MTU_BYTES: u32 = 1500;
/// The largest payload that UDP over IPv4 carries.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;

/// Which multicast the network between hosts does not carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupFilter {
    /// All groups pass.
    #[default]
    Nothing,
    /// No group passes, and hosts know it.
    Everything,
    /// User data to groups is dropped although hosts take their links to carry it: a switch that snoops without a querier.
    UserData,
}

/// Which internet protocol a world speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4: hosts are 10.0.x.y, the group is 239.255.0.1.
    #[default]
    V4,
    /// IPv6: hosts are fd00::n, the group is ff02::ffff:239.255.0.1.
    V6,
}

impl IpVersion {
    /// The address of a host.
    pub fn address_of(self, host: usize) -> IpAddr {
        let number = u16::try_from(host + 1).unwrap_or(u16::MAX);
        let [high, low] = number.to_be_bytes();
        match self {
            IpVersion::V4 => IpAddr::V4(Ipv4Addr::new(10, 0, high, low)),
            IpVersion::V6 => IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number)),
        }
    }

    /// The address by which a host reaches itself.
    pub fn loopback(self) -> IpAddr {
        match self {
            IpVersion::V4 => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpVersion::V6 => IpAddr::V6(Ipv6Addr::LOCALHOST),
        }
    }

    /// The multicast group of DDS.
    pub fn group(self) -> IpAddr {
        match self {
            IpVersion::V4 => IpAddr::V4(Ipv4Addr::new(239, 255, 0, 1)),
            IpVersion::V6 => IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xffff, 0xefff, 1)),
        }
    }
}

/// What becomes of one copy of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It reaches this process at this time.
    Arrives {
        /// Receiving process.
        process: usize,
        /// When.
        at: Instant,
    },
    /// It reaches the lane into this host at this time: ask [`Network::enter`] then.
    Enters {
        /// Receiving host.
        host: usize,
        /// When.
        at: Instant,
    },
    /// A queue on its way to this process was full.
    Dropped {
        /// Who would have received it.
        process: usize,
    },
    /// It is larger than the path to this process carries, which the sending host does not know.
    TooLarge {
        /// Who would have received it.
        process: usize,
    },
    /// The network lost it on its way to this process.
    Lost {
        /// Who would have received it.
        process: usize,
    },
    /// The hosts cannot reach each other at the moment.
    Separated {
        /// Who would have received it.
        process: usize,
    },
}

#[derive(Clone, Copy, Debug)]
struct Socket {
    process: usize,
    host: usize,
    address: SocketAddr,
}

/// Who listens where, and how datagrams travel between them.
#[derive(Debug)]
pub struct Network {
    rng: Rng,
    weather: Weather,
    family: IpVersion,
    filter: GroupFilter,
    /// The address of each host.
    addresses: Vec<IpAddr>,
    /// Group of hosts that each host is in; hosts of different groups cannot reach each other.
    sides: Vec<u32>,
    /// In which direction the groups are cut off.
    cut: Cut,
    /// The largest IP packet between hosts.
    mtu_bytes: u32,
    /// What each host knows of that.
    mtus_known: Vec<u32>,
    sockets: Vec<Socket>,
    /// Outbound and inbound lane of each host.
    lanes: Vec<(BusyLane, BusyLane)>,
    /// Hosts with a limited inbound lane that the datagram at hand was sent to.
    entered: Vec<usize>,
    /// The last datagrams that share a fate.
    run: Option<LossRun>,
    moved: usize,
    unroutable: u64,
}

/// Datagrams that leave a host for another at one time, and whether they are lost.
#[derive(Clone, Copy, Debug)]
struct LossRun {
    at: Instant,
    hosts: (usize, usize),
    length: u32,
    is_lost: bool,
}

impl Network {
    /// A network of `hosts` hosts without sockets. Filtered groups reach only processes of the same host.
    pub fn new(seed: u64, hosts: usize, weather: Weather, family: IpVersion, filter: GroupFilter) -> Network {
        Network {
            rng: Rng::new(seed),
            weather,
            family,
            filter,
            addresses: (0..hosts).map(|host| family.address_of(host)).collect(),
            sides: vec![0; hosts],
            cut: Cut::BothWays,
            mtu_bytes: MTU_BYTES,
            mtus_known: vec![MTU_BYTES; hosts],
            sockets: Vec::new(),
            lanes: (0..hosts).map(|_| busy(HostLink::UNLIMITED)).collect(),
            entered: Vec::new(),
            run: None,
            moved: 0,
            unroutable: 0,
        }
    }

    /// Gives a host's link its rates and queues; without it nothing is limited.
    pub fn set_link(&mut self, host: usize, link: HostLink) {
        self.lanes[host] = busy(link);
    }

    /// What passed the outbound and the inbound lane of a host so far, and what did not.
    pub fn lane_counters(&self, host: usize) -> (LaneCounters, LaneCounters) {
        let (outbound, inbound) = &self.lanes[host];
        (outbound.counters(), inbound.counters())
    }

    /// Opens a port of `host` for `process`; a group address joins that group.
    pub fn listen(&mut self, process: usize, host: usize, address: SocketAddr) {
        self.sockets.push(Socket { process, host, address });
    }

    /// Closes all sockets of `process`.
    pub fn close(&mut self, process: usize) {
        self.sockets.retain(|socket| socket.process != process);
    }

    /// The address of a host at the moment.
    pub fn address_of(&self, host: usize) -> IpAddr {
        self.addresses[host]
    }

    /// Gives a host an address that nobody had before; nothing reaches it under the old one.
    pub fn move_host(&mut self, host: usize) {
        self.moved += 1;
        self.addresses[host] = self.family.address_of(self.addresses.len() + self.moved);
    }

    /// From now on the paths between hosts carry IP packets of so many bytes.
    pub fn set_mtu(&mut self, mtu_bytes: u32) {
        self.mtu_bytes = mtu_bytes;
    }

    /// A host learns how wide the paths are. Returns that.
    pub fn tell_mtu(&mut self, host: usize) -> u32 {
        self.mtus_known[host] = self.mtu_bytes;
        self.mtu_bytes
    }

    /// How wide a host takes the paths for.
    pub fn mtu_known(&self, host: usize) -> u32 {
        self.mtus_known[host]
    }

    /// Puts each host on the side that `side_of` says; [`Network::heal`] joins them again.
    pub fn split(&mut self, cut: Cut, side_of: impl Fn(usize) -> u32) {
        self.cut = cut;
        for (host, side) in self.sides.iter_mut().enumerate() {
            *side = side_of(host);
        }
    }

    /// Lets all hosts reach each other.
    pub fn heal(&mut self) {
        self.split(Cut::BothWays, |_| 0);
    }

    /// Changes the weather from now on.
    pub fn set_weather(&mut self, weather: Weather) {
        self.weather = weather;
    }

    /// Datagrams that nobody could receive: no such port, or longer than UDP carries.
    pub fn unroutable(&self) -> u64 {
        self.unroutable
    }

    /// Sends a datagram from `host` and appends what becomes of each copy to `fates`.
    pub fn send(&mut self, now: Instant, host: usize, to: SocketAddr, bytes: usize, fates: &mut Vec<Fate>) {
        let before = fates.len();
        self.entered.clear();
        let mut departs = Some(now);
        if bytes <= DATAGRAM_BYTES_MAX {
            let leaves = !to.ip().is_loopback() && to.ip() != self.addresses[host];
            departs = if leaves { self.lanes[host].0.admit(now, bytes) } else { Some(now) };
            // One packet reaches a host or not: what it meets on its way is the same for all processes there.
            let mut last_host = None;
            for index in 0..self.sockets.len() {
                let socket = self.sockets[index];
                if !self.is_addressed(host, to, &socket) {
                    continue;
                }
                if host == socket.host {
                    fates.push(Fate::Arrives { process: socket.process, at: now + LOOPBACK_LATENCY });
                    continue;
                }
                if self.is_too_large(host, bytes) {
                    fates.push(Fate::TooLarge { process: socket.process });
                    continue;
                }
                let Some(departs) = departs else {
                    fates.push(Fate::Dropped { process: socket.process });
                    continue;
                };
                let lost = match last_host {
                    Some((known, lost)) if known == socket.host => lost,
                    _ => self.is_swallowed(to) || self.draw_loss(now, (host, socket.host), bytes),
                };
                last_host = Some((socket.host, lost));
                self.deliver(departs, host, &socket, lost, fates);
            }
        }
        if fates.len() == before {
            self.unroutable += 1;
            self.lanes[host].0.forgive(bytes, departs);
        }
    }

    /// A datagram reaches the lane into `host`: appends what becomes of its copies there.
    pub fn enter(&mut self, now: Instant, host: usize, to: SocketAddr, bytes: usize, fates: &mut Vec<Fate>) {
        let passed = self.lanes[host].1.admit(now, bytes);
        for socket in self.sockets.iter().filter(|socket| socket.host == host) {
            // Sent from elsewhere, it is multicast that the network carries or meant for this host.
            let addressed = match to.ip().is_multicast() {
                true => socket.address == to,
                false => socket.address.port() == to.port() && !socket.address.ip().is_multicast(),
            };
            if addressed {
                fates.push(match passed {
                    Some(at) => Fate::Arrives { process: socket.process, at },
                    None => Fate::Dropped { process: socket.process },
                });
            }
        }
    }

    fn is_addressed(&self, from_host: usize, to: SocketAddr, socket: &Socket) -> bool {
        if to.port() != socket.address.port() {
            return false;
        }
        if to.ip().is_multicast() {
            return to.ip() == socket.address.ip()
                && (from_host == socket.host || self.filter != GroupFilter::Everything);
        }
        let reaches =
            if to.ip().is_loopback() { from_host == socket.host } else { to.ip() == self.addresses[socket.host] };
        reaches && !socket.address.ip().is_multicast()
    }

    fn is_swallowed(&self, to: SocketAddr) -> bool {
        self.filter == GroupFilter::UserData && to.ip().is_multicast() && to.port() != DISCOVERY_PORT
    }

    fn draw_loss(&mut self, now: Instant, hosts: (usize, usize), bytes: usize) -> bool {
        if self.weather.loss == 0.0 || self.entered.contains(&hosts.1) {
            return false;
        }
        let together = |run: &LossRun| (run.at, run.hosts) == (now, hosts) && run.length < self.weather.loss_run;
        if let Some(run) = self.run.as_mut().filter(|run| together(run)) {
            run.length += 1;
            return run.is_lost;
        }
        let packets = i32::try_from(bytes.div_ceil(PACKET_BYTES).max(1)).unwrap_or(i32::MAX);
        let is_lost = self.rng.chance(1.0 - (1.0 - self.weather.loss).powi(packets));
        self.run = Some(LossRun { at: now, hosts, length: 1, is_lost });
        is_lost
    }

    fn deliver(&mut self, departs: Instant, from_host: usize, socket: &Socket, lost: bool, fates: &mut Vec<Fate>) {
        let (process, host) = (socket.process, socket.host);
        if self.entered.contains(&host) {
            return; // All processes of the host are found when the datagram enters it.
        }
        if self.is_cut_off(from_host, host) {
            fates.push(Fate::Separated { process });
            return;
        }
        if lost {
            fates.push(Fate::Lost { process });
            return;
        }
        let limited = !self.lanes[host].1.is_unlimited();
        let arrival = |at| if limited { Fate::Enters { host, at } } else { Fate::Arrives { process, at } };
        if limited {
            self.entered.push(host);
        }
        fates.push(arrival(departs + self.travel_time()));
        if self.weather.duplication > 0.0 && self.rng.chance(self.weather.duplication) {
            fates.push(arrival(departs + self.travel_time()));
        }
    }

    fn is_cut_off(&self, from_host: usize, to_host: usize) -> bool {
        let (from, to) = (self.sides[from_host], self.sides[to_host]);
        match self.cut {
            Cut::BothWays => from != to,
            Cut::FromHosts => from == 1 && to == 0,
            Cut::ToHosts => from == 0 && to == 1,
        }
    }

    /// Whether a datagram is refused on its way because its host takes the paths for wider than they are. Once it knows, the
    /// datagram is cut into IP packets.
    fn is_too_large(&self, host: usize, bytes: usize) -> bool {
        let headers = if self.family == IpVersion::V4 { 28 } else { 48 };
        bytes + headers > self.mtu_bytes as usize && self.mtus_known[host] > self.mtu_bytes
    }

    fn travel_time(&mut self) -> Duration {
        if self.weather.jitter.is_zero() {
            return self.weather.latency;
        }
        let jitter_nanos = u64::try_from(self.weather.jitter.as_nanos()).unwrap_or(u64::MAX);
        let held_up = if self.rng.chance(self.weather.reordering) { 10 } else { 0 };
        let extra = self.rng.below(jitter_nanos).saturating_add(jitter_nanos.saturating_mul(held_up));
        self.weather.latency + Duration::from_nanos(extra)
    }
}

fn busy(link: HostLink) -> (BusyLane, BusyLane) {
    (BusyLane::new(link.outbound), BusyLane::new(link.inbound))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::Lane;

    const GROUP: &str = "239.255.0.1:7400";

    fn three_hosts(weather: Weather) -> Network {
        let mut network = Network::new(1, 3, weather, IpVersion::V4, GroupFilter::Nothing);
        for host in 0..3 {
            network.listen(host, host, SocketAddr::new(IpVersion::V4.address_of(host), 7411));
            network.listen(host, host, GROUP.parse().unwrap());
        }
        network
    }

    /// Sends from host 0 and shows who gets it: number and microseconds, `x` for lost, `/` for separated.
    fn send(network: &mut Network, to: &str, bytes: usize) -> String {
        let mut fates = Vec::new();
        network.send(Instant::ZERO, 0, to.parse().unwrap(), bytes, &mut fates);
        let show = |fate: &Fate| match fate {
            Fate::Arrives { process, at } => format!("{process}:{}", at.as_nanos() / 1000),
            Fate::Enters { host, at } => format!("{host}>{}", at.as_nanos() / 1000),
            Fate::Dropped { process } => format!("{process}#"),
            Fate::TooLarge { process } => format!("{process}!"),
            Fate::Lost { process } => format!("{process}x"),
            Fate::Separated { process } => format!("{process}/"),
        };
        fates.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_datagram_reaches_whom_it_addresses() {
        let mut network = three_hosts(Weather::CLEAR);
        assert_eq!(send(&mut network, "10.0.0.2:7411", 100), "1:100");
        assert_eq!(send(&mut network, "127.0.0.1:7411", 100), "0:15");
        assert_eq!(send(&mut network, GROUP, 100), "0:15 1:100 2:100");
        assert_eq!(network.unroutable(), 0);
        assert_eq!(send(&mut network, "10.0.0.2:7412", 100), "");
        assert_eq!(send(&mut network, "10.0.0.2:7400", 100), "", "the group's port is not the host's");
        assert_eq!(send(&mut network, "10.0.0.2:7411", 65_508), "");
        assert_eq!(network.unroutable(), 3);
        network.close(1);
        assert_eq!(send(&mut network, GROUP, 100), "0:15 2:100");
    }

    #[test]
    fn a_split_separates_until_it_heals() {
        let mut network = three_hosts(Weather::CLEAR);
        network.split(Cut::BothWays, |host| u32::from(host == 2));
        assert_eq!(send(&mut network, GROUP, 100), "0:15 1:100 2/");
        network.heal();
        assert_eq!(send(&mut network, GROUP, 100), "0:15 1:100 2:100");
    }

    #[test]
    fn a_split_can_be_deaf_on_one_side_only() {
        let mut network = three_hosts(Weather::CLEAR);
        network.split(Cut::ToHosts, |host| u32::from(host == 2));
        assert_eq!(send(&mut network, GROUP, 100), "0:15 1:100 2/");
        network.split(Cut::FromHosts, |host| u32::from(host == 2));
        assert_eq!(send(&mut network, GROUP, 100), "0:15 1:100 2:100");
        network.split(Cut::FromHosts, |host| u32::from(host == 0));
        assert_eq!(send(&mut network, GROUP, 100), "0:15 1/ 2/");
    }

    #[test]
    fn a_host_that_moves_is_reached_at_its_new_address_only() {
        let mut network = three_hosts(Weather::CLEAR);
        network.move_host(1);
        assert_eq!(send(&mut network, "10.0.0.2:7411", 100), "");
        let moved = SocketAddr::new(network.address_of(1), 7411).to_string();
        assert_eq!(send(&mut network, &moved, 100), "1:100");
        assert_eq!(send(&mut network, GROUP, 100), "0:15 1:100 2:100");
    }

    #[test]
    fn a_narrow_path_refuses_until_its_sender_knows() {
        let mut network = three_hosts(Weather::CLEAR);
        network.set_mtu(1_000);
        assert_eq!(send(&mut network, "10.0.0.2:7411", 972), "1:100");
        assert_eq!(send(&mut network, "10.0.0.2:7411", 973), "1!");
        assert_eq!(network.tell_mtu(0), 1_000);
        assert_eq!(send(&mut network, "10.0.0.2:7411", 973), "1:100", "it is cut into packets");
    }

    #[test]
    fn a_lane_delays_and_drops_what_leaves_the_host() {
        let mut network = three_hosts(Weather::CLEAR);
        let lane = Lane { bits_per_second: 8_000_000, queue_bytes: 1_000 };
        network.set_link(0, HostLink { outbound: lane, ..HostLink::UNLIMITED });
        assert_eq!(send(&mut network, "10.0.0.2:7411", 958), "1:1100");
        assert_eq!(send(&mut network, GROUP, 958), "0:15 1# 2#");
        assert_eq!(send(&mut network, "127.0.0.1:7411", 958), "0:15");
        let (outbound, inbound) = network.lane_counters(0);
        assert_eq!((outbound.datagrams, outbound.dropped, inbound.datagrams), (1, 1, 0));
    }

    #[test]
    fn a_lane_into_a_host_is_shared_by_all_who_send_there() {
        let mut network = three_hosts(Weather::CLEAR);
        network.listen(3, 1, GROUP.parse().unwrap());
        network.set_link(
            1,
            HostLink { inbound: Lane { bits_per_second: 8_000_000, queue_bytes: 2_000 }, ..HostLink::UNLIMITED },
        );
        assert_eq!(send(&mut network, GROUP, 958), "0:15 1>100 2:100");
        let mut fates = Vec::new();
        for _ in 0..3 {
            network.enter(Instant::from_nanos(100_000), 1, GROUP.parse().unwrap(), 958, &mut fates);
        }
        let shown: Vec<String> = fates.iter().map(|fate| format!("{fate:?}")).collect();
        let arrives = fates.iter().filter(|fate| matches!(fate, Fate::Arrives { .. })).count();
        assert_eq!((arrives, fates.len()), (4, 6), "{shown:?}");
        assert_eq!(network.lane_counters(1).1.dropped, 1);
    }

    #[test]
    fn groups_stay_on_the_host_where_multicast_is_blocked() {
        let mut network = Network::new(1, 2, Weather::CLEAR, IpVersion::V4, GroupFilter::Everything);
        network.listen(0, 0, GROUP.parse().unwrap());
        network.listen(1, 1, GROUP.parse().unwrap());
        assert_eq!(send(&mut network, GROUP, 100), "0:15");
    }

    #[test]
    fn loss_and_repetition_come_as_often_as_asked() {
        let weather = Weather { loss: 0.2, duplication: 0.1, ..Weather::CLEAR };
        let mut network = three_hosts(weather);
        let mut fates = Vec::new();
        for _ in 0..10_000 {
            network.send(Instant::ZERO, 0, "10.0.0.2:7411".parse().unwrap(), 100, &mut fates);
        }
        let lost = fates.iter().filter(|fate| matches!(fate, Fate::Lost { .. })).count();
        assert!((1_850..2_150).contains(&lost), "{lost} of 10000 lost at 20 %");
        let repeated = fates.len() - 10_000;
        assert!((700..900).contains(&repeated), "{repeated} of 8000 repeated at 10 %");
    }

    #[test]
    fn a_datagram_in_many_packets_is_lost_more_often() {
        let mut network = three_hosts(Weather { loss: 0.01, ..Weather::CLEAR });
        let mut fates = Vec::new();
        for _ in 0..5_000 {
            network.send(Instant::ZERO, 0, "10.0.0.2:7411".parse().unwrap(), 65_000, &mut fates);
        }
        let lost = fates.iter().filter(|fate| matches!(fate, Fate::Lost { .. })).count();
        assert!((1_600..2_000).contains(&lost), "{lost} of 5000 lost, 36 % expected");
    }

    #[test]
    fn jitter_reorders() {
        let jitter = Duration::from_millis(1);
        let mut network = three_hosts(Weather { jitter, reordering: 0.1, ..Weather::CLEAR });
        let mut fates = Vec::new();
        for _ in 0..1_000 {
            network.send(Instant::ZERO, 0, "10.0.0.2:7411".parse().unwrap(), 100, &mut fates);
        }
        let times: Vec<u64> = fates
            .iter()
            .map(|fate| match fate {
                Fate::Arrives { at, .. } => at.as_nanos(),
                _ => 0,
            })
            .collect();
        assert!(times.iter().all(|at| (100_000..11_200_000).contains(at)));
        assert!(times.iter().filter(|at| **at > 10_000_000).count() > 50);
    }
}
