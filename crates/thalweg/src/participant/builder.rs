//! The settings of a participant, and its creation.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::{Arc, Once};
use std::time::Duration;

use thalweg_rtps::discovery::DiscoveryLimits;
use thalweg_rtps::discovery::groups::Groups;
use thalweg_rtps::participant::{Participant, ParticipantConfig};
use thalweg_rtps::qos::check_participant_data;
use thalweg_rtps::time::INFINITE;
use thalweg_rtps::wire::write;
use thalweg_transport::interfaces::{InterfaceSelection, is_link_local};
use thalweg_transport::ports;
use thalweg_transport::udp::{self, Notice, UdpConfig};
use thalweg_transport::{clock, entropy, host};

use super::announcement::check_announcement;
use super::listening::Listening;
use super::{DomainParticipant, ProcessDescription, bad_groups};
use crate::conditions::StatusKinds;
use crate::configuration::{Configuration, ParticipantSettings};
use crate::explain::{self, Diagnosis};
use crate::runtime::{AddressPlan, Delivery, IoOptions, Process, Runtime, local_addresses, warn};
use crate::status::ParticipantStatus;
use crate::store::{Restorable, Store};
use crate::type_store::{self, TypeStore};
use crate::{Error, ErrorKind};

/// Default lease of a participant, and the limits of others; see
/// [`DomainParticipantBuilder::lease_duration`].
const LEASE_DEFAULT: Duration = Duration::from_secs(20);
const LEASE_MIN: Duration = Duration::from_secs(1);
const LEASE_MAX: Duration = Duration::from_secs(3_600);

/// Settings of a participant to be created; see [`DomainParticipant::builder`].
#[derive(Clone, Debug)]
pub struct DomainParticipantBuilder {
    udp: UdpConfig,
    name: String,
    user_data: Vec<u8>,
    groups: Vec<String>,
    inspector: bool,
    properties: Vec<(String, String)>,
    domain_tag: String,
    peers: Vec<String>,
    describes_types: bool,
    describes_process: bool,
    lease_duration: Duration,
    limits: DiscoveryLimits,
    io: IoOptions,
    listening: Listening,
    configuration: Option<Configuration>,
    store: Option<PathBuf>,
}

impl DomainParticipantBuilder {
    /// All settings at their defaults.
    pub(super) fn new(domain_id: u32) -> DomainParticipantBuilder {
        DomainParticipantBuilder {
            udp: UdpConfig { domain_id, ..UdpConfig::default() },
            name: String::new(),
            user_data: Vec::new(),
            groups: Vec::new(),
            inspector: false,
            properties: Vec::new(),
            describes_types: true,
            describes_process: true,
            domain_tag: String::new(),
            peers: Vec::new(),
            lease_duration: LEASE_DEFAULT,
            limits: DiscoveryLimits::default(),
            io: IoOptions::default(),
            listening: Listening::default(),
            configuration: None,
            store: None,
        }
    }

    /// Takes the settings that the program leaves open from `configuration`, instead of the file that `THALWEG_CONFIG` names and the
    /// environment. A [`Configuration::new`] leaves all at their defaults.
    pub fn configuration(mut self, configuration: Configuration) -> Self {
        self.configuration = Some(configuration);
        self
    }

    /// A name that people see in `thalweg ls`, without NUL. Default empty.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// USER_DATA: bytes announced with the participant. Default empty, at most 60,000 together with name, domain tag, properties and
    /// groups, since one datagram announces them.
    pub fn user_data(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.user_data = bytes.into();
        self
    }

    /// Communication groups: this participant and others that share none of them ignore each other after the first
    /// announcement. Default none, which is the group `default`; `*` shares a group with every participant. At most 64 names of at most 64 bytes
    /// without comma, semicolon and equals sign. They are announced in USER_DATA behind the application's own data, as
    /// `groups=radar,ops;`, so that programs of other vendors can take part; those that do not are in the group `default`.
    pub fn groups(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.groups = names.into_iter().map(Into::into).collect();
        self
    }

    /// Makes it able to ask other Thalweg participants about their endpoints with [`DomainParticipant::explain_topic`]. It
    /// announces so; at most eight inspectors are answered by a participant. Default off.
    pub fn inspector(mut self) -> Self {
        self.inspector = true;
        self
    }

    /// A property announced to peers, without NUL; may be called several times, at least 58 times.
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((name.into(), value.into()));
        self
    }

    /// Does not announce on which host, in which process and by which program the participant runs; by default it does, for
    /// `thalweg ls` and the tools of other vendors ([`ProcessDescription`](crate::discovery::ProcessDescription)).
    pub fn without_process_description(mut self) -> Self {
        self.describes_process = false;
        self
    }

    /// DOMAIN_TAG: only participants with the same tag meet. Default empty, at most 255 bytes without NUL.
    pub fn domain_tag(mut self, tag: impl Into<String>) -> Self {
        self.domain_tag = tag.into();
        self
    }

    /// A host to announce the participant to where multicast does not reach it: a name or address, alone (its well-known
    /// ports of participants 0 to 32 are tried) or with the port of one participant. IPv6's link-local addresses are refused,
    /// since they mean nothing without an interface, which no locator names. May be called several times.
    pub fn peer(mut self, peer: impl Into<String>) -> Self {
        self.peers.push(peer.into());
        self
    }

    /// Uses this interface (name or address) and others that are allowed, instead of all; loopback stays in use. Creating the
    /// participant fails when this host has no such interface; one that is down is used once it is up.
    pub fn allow_interface(mut self, interface: impl Into<String>) -> Self {
        self.udp.interfaces.allow.push(interface.into());
        self
    }

    /// Does not use this interface (name or address).
    pub fn deny_interface(mut self, interface: impl Into<String>) -> Self {
        self.udp.interfaces.deny.push(interface.into());
        self
    }

    /// Uses loopback only: nothing leaves the host.
    pub fn loopback_only(mut self) -> Self {
        self.udp.interfaces = InterfaceSelection { allow: vec!["lo".into()], deny: Vec::new() };
        self
    }

    /// Neither joins nor sends to multicast groups: only peers named by either side, and those on this host, are found.
    pub fn without_multicast(mut self) -> Self {
        self.udp.multicast = false;
        self
    }

    /// Opens no IPv6 sockets.
    pub fn without_ipv6(mut self) -> Self {
        self.udp.ipv6 = false;
        self
    }

    /// Bytes to ask for in each socket's receive buffer; the system may grant less, see [`DomainParticipant::notices`].
    /// Default 8 MiB.
    pub fn receive_buffer(mut self, bytes: usize) -> Self {
        self.udp.receive_buffer_bytes = bytes;
        self
    }

    /// Time for which peers keep this participant after its last message. Default 20 s (RTPS 2.5 §8.5.3.2); allowed 1 s, since a
    /// busy machine may keep its threads from running for a part of that, to 1 h, beyond which peers believe no lease. It
    /// announces itself at least three times in a lease.
    pub fn lease_duration(mut self, lease: Duration) -> Self {
        self.lease_duration = lease;
        self
    }

    /// Limits on known participants and endpoints and on their memory: further ones are refused, counted
    /// ([`DomainParticipant::explain`]) and told by a warning. Default 2,000 participants, 16,384 writers and as many readers of
    /// each, 16 MiB for each, 128 MiB for all; allowed 1 and more.
    pub fn discovery_limits(mut self, limits: DiscoveryLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Calls `listener` for everything that happens to the participant from its creation on: others that come and go, limits that
    /// are met, topics with inconsistent types; of its writers and readers what [`DomainParticipantBuilder::endpoint_statuses`] names.
    /// It may be called before [`DomainParticipantBuilder::create`] has returned. A listener that keeps the participant, a writer or
    /// a reader of it alive keeps it alive for ever; let it hold a [`Weak`](std::sync::Weak) one. Default none.
    ///
    /// Copies of these settings share the listener. Its calls then follow each other: news of a participant that come during a call for
    /// another one are told behind that call, on that one's thread.
    pub fn on_status(mut self, delivery: Delivery, listener: impl FnMut(ParticipantStatus) + Send + 'static) -> Self {
        self.listening.set_listener(delivery, Box::new(listener));
        self
    }

    /// Tells the participant's [listener](DomainParticipantBuilder::on_status) also the statuses of `kinds` of those writers and readers
    /// that have no status listener of their own (DDS 1.4 §2.2.4.2.3). What it is told counts as told: it makes no condition true, and
    /// neither `until_status` nor the change counts of the endpoint tell it again. DATA_AVAILABLE is told to readers' own listeners
    /// alone. Default [`StatusKinds::NONE`].
    pub fn endpoint_statuses(mut self, kinds: StatusKinds) -> Self {
        self.listening.set_endpoint_kinds(kinds);
        self
    }

    /// Neither tells others its types nor asks for theirs: names alone decide, and readers that force type validation match with nobody.
    /// By default types are told, asked for and compared (DDS-XTypes 1.3 §7.6.3).
    pub fn without_type_description(mut self) -> Self {
        self.describes_types = false;
        self
    }

    /// Lets the I/O thread poll without ever sleeping: the lowest latency for the price of one processor.
    pub fn busy_poll(mut self) -> Self {
        self.io.busy_poll = true;
        self
    }

    /// The file that keeps the histories of PERSISTENT writers; it is created where it does not exist. Those that it holds for this domain
    /// serve readers at once. One participant uses it at a time. Default none: PERSISTENT writers are refused.
    pub fn store(mut self, path: impl Into<PathBuf>) -> Self {
        self.store = Some(path.into());
        self
    }

    /// Binds the I/O thread to these processors, numbered from 0. Default: any.
    pub fn affinity(mut self, processors: &[usize]) -> Self {
        self.io.affinity = processors.to_vec();
        self
    }

    /// Opens the sockets, starts the I/O thread and announces the participant.
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`] for a configuration that cannot be used, a domain above 232, a peer that cannot be resolved or has a link-local address only, an allowed interface that this host does not
    /// have, a lease that is too short or too long, a limit of 0, or a name, tag, property or data that cannot be announced;
    /// [`ErrorKind::PreconditionNotMet`] when another participant uses the store, [`ErrorKind::OutOfResources`] when it cannot be written;
    /// [`ErrorKind::Error`] when the system refuses sockets, entropy or a thread.
    pub fn create(mut self) -> Result<DomainParticipant, Error> {
        const OPERATION: &str = "create_participant";
        let configuration = self.configuration.take().map_or_else(Configuration::from_environment, Ok)?;
        self.use_settings(configuration.participant());
        let domain_id = self.udp.domain_id;
        let groups = self.checked_groups()?;
        self.check_lease()?;
        self.check_limits()?;
        let peers = self.resolve_peers()?;
        let no_entropy = |error| Error::system(OPERATION, error);
        let store = self.store.take().map(|path| Store::open(&path, domain_id)).transpose()?;
        let process = Process::this().map_err(no_entropy)?;
        let prefix = process.new_prefix().map_err(no_entropy)?;
        let refused_discovery = write::repetition_marks(prefix).to_vec();
        let transport =
            udp::open(&UdpConfig { refused_discovery, ..self.udp.clone() }).map_err(|error| match error {
                udp::OpenError::DomainTooLarge(_) | udp::OpenError::UnknownInterface { .. } => {
                    Error::new(ErrorKind::BadParameter, OPERATION, format!("failed: {error}"))
                }
                udp::OpenError::System { .. } => Error::system(OPERATION, error),
            })?;
        log_notices(&transport.notices);
        let plan = AddressPlan { domain_id, ports: transport.ports, peers };
        let mut config = ParticipantConfig::new(domain_id, prefix, local_addresses(&plan, &transport.interfaces));
        config.domain_tag = self.domain_tag;
        config.household = process.household;
        config.seed = entropy::seed().map_err(no_entropy)?;
        config.entity_name = self.name;
        config.user_data = self.user_data;
        config.groups = groups;
        config.services = explain::services(self.inspector);
        config.properties = self.properties;
        if self.inspector {
            config.properties.push(explain::inspector_property());
        }
        if self.describes_process {
            ProcessDescription::of_this_process().add_to(&mut config.properties);
        }
        config.receive_buffer_bytes = u32::try_from(transport.receive_buffer_bytes).unwrap_or(u32::MAX);
        config.host = host::id();
        config.lease_duration = self.lease_duration;
        config.limits = self.limits;
        check_announcement(OPERATION, &config, &config.groups)?;
        let types = Arc::new(TypeStore::new(prefix));
        if self.describes_types {
            config.services.extend(type_store::services());
            config.types = Some(Arc::clone(&types) as _);
        }
        let mut participant = Participant::new(clock::now(), config);
        // What the store holds has aged while no process ran.
        participant.set_wall_clock(clock::now(), clock::wall_clock());
        let restore = |(store, found): (Arc<Store>, Restorable)| store.restore(found, &mut participant).map(|()| store);
        let store = store.map(restore).transpose()?;
        let participant = (participant, Diagnosis::new(self.inspector), types);
        let notices = transport.notices;
        let listener = self.listening.into_callback();
        let runtime = Runtime::start(
            participant,
            transport.sender,
            transport.receiver,
            plan,
            self.io,
            listener,
            (configuration, store),
        )?;
        Ok(DomainParticipant { runtime, udp: self.udp, notices })
    }

    /// Sets what the program has left at its default. Peers of both are used.
    fn use_settings(&mut self, settings: &ParticipantSettings) {
        fn take<T: Clone + PartialEq>(place: &mut T, default: T, setting: Option<&T>) {
            if let Some(value) = setting.filter(|_| *place == default) {
                *place = value.clone();
            }
        }
        let (udp, limits, network) = (UdpConfig::default(), DiscoveryLimits::default(), &settings.network);
        take(&mut self.name, String::new(), settings.name.set());
        take(&mut self.domain_tag, String::new(), settings.domain_tag.set());
        take(&mut self.groups, Vec::new(), settings.groups.set());
        self.store = self.store.take().or_else(|| settings.store.set().map(PathBuf::from));
        take(&mut self.lease_duration, LEASE_DEFAULT, settings.lease.set());
        self.peers.extend(settings.peers.value.iter().cloned());
        if settings.is_alone {
            self.peers.clear();
            // Not even with another participant of the same settings.
            self.domain_tag = format!("{} {:x}", settings.domain_tag.value, clock::now().as_nanos());
        }
        if self.udp.interfaces.allow.is_empty() && self.udp.interfaces.deny.is_empty() {
            if network.loopback_only.value {
                self.udp.interfaces.allow = vec!["lo".into()];
            } else {
                self.udp.interfaces.allow.clone_from(&network.interfaces.value);
                self.udp.interfaces.deny.clone_from(&network.deny_interfaces.value);
            }
        }
        self.udp.multicast &= network.multicast.value;
        self.udp.ipv6 &= network.ipv6.value;
        take(&mut self.udp.receive_buffer_bytes, udp.receive_buffer_bytes, network.receive_buffer_bytes.set());
        let (own, told) = (&mut self.limits, &settings.limits);
        take(&mut own.participants_max, limits.participants_max, told.participants.set());
        take(
            &mut own.endpoints_per_participant_max,
            limits.endpoints_per_participant_max,
            told.endpoints_per_participant.set(),
        );
        take(&mut own.bytes_per_participant_max, limits.bytes_per_participant_max, told.bytes_per_participant.set());
        take(&mut own.bytes_max, limits.bytes_max, told.bytes.set());
    }

    /// The groups, if USER_DATA can carry them beside the application's data.
    fn checked_groups(&self) -> Result<Groups, Error> {
        let groups =
            Groups::new(self.groups.iter().cloned()).map_err(|error| bad_groups("create_participant", error))?;
        let mut user_data = self.user_data.clone();
        groups.add_to_user_data(&mut user_data).map_err(|error| bad_groups("create_participant", error))?;
        check_participant_data(&user_data).map_err(|error| {
            Error::new(ErrorKind::BadParameter, "create_participant", format!("failed: {error}")).because(error)
        })?;
        Ok(groups)
    }

    fn check_limits(&self) -> Result<(), Error> {
        let DiscoveryLimits { participants_max, endpoints_per_participant_max, bytes_per_participant_max, bytes_max } =
            self.limits;
        if [participants_max, endpoints_per_participant_max, bytes_per_participant_max, bytes_max].contains(&0) {
            let cause = "failed: a limit of discovery is 0, so that no participant could be discovered";
            return Err(Error::new(ErrorKind::BadParameter, "create_participant", cause).advise("choose 1 or more"));
        }
        Ok(())
    }

    fn check_lease(&self) -> Result<(), Error> {
        if (LEASE_MIN..=LEASE_MAX).contains(&self.lease_duration) {
            return Ok(());
        }
        let asked =
            if self.lease_duration == INFINITE { "infinite".into() } else { format!("{:?}", self.lease_duration) };
        let cause = format!("failed: the lease is {asked}");
        Err(Error::new(ErrorKind::BadParameter, "create_participant", cause).advise("choose a lease of 1 s to 1 h"))
    }

    fn resolve_peers(&self) -> Result<Vec<SocketAddr>, Error> {
        let domain = self.udp.domain_id.min(ports::DOMAIN_MAX);
        let mut peers = Vec::new();
        for peer in &self.peers {
            let failed = |error: std::io::Error| {
                let cause = format!("cannot find the peer {peer:?}: {error}");
                Error::new(ErrorKind::BadParameter, "create_participant", cause)
                    .because(error)
                    .advise("name a host or address, with or without a port")
            };
            let host = peer.trim_start_matches('[').trim_end_matches(']');
            // The last group of an IPv6 address is no port.
            let is_address = host.parse::<IpAddr>().is_ok();
            let (found, has_port) = match peer.to_socket_addrs() {
                Ok(found) if !is_address => (found, true),
                _ => ((host, 0).to_socket_addrs().map_err(failed)?, false),
            };
            let found: Vec<SocketAddr> = found.filter(|address| !is_link_local(&address.ip())).collect();
            if found.is_empty() {
                let cause = format!("cannot use the peer {peer:?}: a link-local address names no interface");
                let refused = Error::new(ErrorKind::BadParameter, "create_participant", cause);
                return Err(refused.advise("use a global, unique-local or IPv4 address"));
            }
            if has_port {
                peers.extend(found);
                continue;
            }
            for address in found {
                let indices = 0..=ports::PARTICIPANT_INDEX_MAX;
                let port = |index| SocketAddr::new(address.ip(), ports::metatraffic_unicast(domain, index));
                peers.extend(indices.map(port));
            }
        }
        Ok(peers)
    }
}

/// Once a process: every participant would say the same.
fn log_notices(notices: &[Notice]) {
    static LOGGED: Once = Once::new();
    if notices.is_empty() {
        return;
    }
    LOGGED.call_once(|| {
        for notice in notices {
            // Lost samples puzzle users most; this warning goes to standard error where no subscriber takes the log.
            if matches!(notice, Notice::ReceiveBuffer { .. }) {
                warn(&notice.to_string());
            } else {
                tracing::warn!("{notice}");
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_alone_names_no_port() {
        let resolved = |peer: &str| DomainParticipant::builder(3).peer(peer).resolve_peers().expect("an address");
        for alone in ["fd00::5054:ff:fe12:3456", "[fd00::5054:ff:fe12:3456]", "192.0.2.1"] {
            let peers = resolved(alone);
            let expected: std::net::IpAddr = alone.trim_matches(['[', ']']).parse().expect("an address");
            assert_eq!(peers.len(), ports::PARTICIPANT_INDEX_MAX as usize + 1, "{peers:?}");
            assert!(peers.iter().all(|peer| peer.ip() == expected), "{peers:?}");
        }
        assert_eq!(resolved("[fd00::1]:7410"), ["[fd00::1]:7410".parse().expect("an address")]);
    }

    #[test]
    fn a_peer_with_a_link_local_address_is_refused() {
        for peer in ["fe80::1", "[fe80::1]", "fe80::1%lo", "[fe80::1]:7410", "[fe80::1%2]:7410"] {
            let error = DomainParticipant::builder(3).peer(peer).resolve_peers().expect_err(peer);
            assert_eq!(error.kind(), ErrorKind::BadParameter, "{error}");
        }
    }

    /// What a program's settings are where the environment has this discovery range.
    fn within_range(range: &str, builder: &DomainParticipantBuilder) -> DomainParticipantBuilder {
        let variables = [("ROS_AUTOMATIC_DISCOVERY_RANGE", range), ("ROS_STATIC_PEERS", "192.0.2.2")];
        let variable = |name: &str| variables.iter().find(|(of, _)| *of == name).map(|(_, value)| *value);
        let configuration = Configuration::new().with_variables(|name| variable(name).map(Into::into));
        let configuration = configuration.expect("they can be used");
        let mut builder = builder.clone();
        builder.use_settings(configuration.participant());
        builder
    }

    #[test]
    fn peers_of_a_program_are_reached_where_discovery_is_local() {
        let local = within_range("LOCALHOST", &DomainParticipant::builder(3).peer("192.0.2.1"));
        assert_eq!(local.peers, ["192.0.2.1", "192.0.2.2"]);
        assert!(local.udp.interfaces.allow.is_empty() && !local.udp.multicast, "all interfaces, without multicast");
        let alone = DomainParticipant::builder(3).loopback_only();
        assert_eq!(within_range("LOCALHOST", &alone).udp.interfaces.allow, ["lo"], "what the program says stays");
    }

    #[test]
    fn without_discovery_nobody_is_met_whatever_the_program_says() {
        let builder = DomainParticipant::builder(3).peer("192.0.2.1").domain_tag("together");
        let [one, other] = [(); 2].map(|()| within_range("OFF", &builder));
        assert!(one.peers.is_empty() && one.udp.interfaces.allow == ["lo"] && !one.udp.multicast);
        assert!(one.domain_tag != "together" && one.domain_tag != other.domain_tag);
        assert_eq!(within_range("SUBNET", &builder).domain_tag, "together");
    }
}
