//! The entry point of the API: a participant of a domain.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Once};
use std::time::Duration;

use thalweg_rtps::discovery::Known;
use thalweg_rtps::discovery::endpoint_data::{PublicationData, SubscriptionData};
use thalweg_rtps::discovery::groups::{Groups, GroupsError};
use thalweg_rtps::discovery::participant_data::ParticipantData;
use thalweg_rtps::participant::{IgnoredParticipant, KeyOf, Participant, ParticipantConfig, ParticipantCounters};
use thalweg_rtps::qos::check_participant_data;
use thalweg_rtps::types::{GuidPrefix, Keyed};
use thalweg_transport::interfaces::InterfaceSelection;
use thalweg_transport::ports;
use thalweg_transport::udp::{self, Notice, ReceiveCounts, SendCounts, UdpConfig};
use thalweg_transport::{clock, entropy, host};

use crate::explain::{self, ParticipantExplanation, TopicExplanation};
use crate::runtime::{AddressPlan, IoOptions, Runtime, local_addresses};
use crate::topic::{TopicDescription, TopicKeys};
use crate::{Error, ErrorKind, Publisher, PublisherQos, Raw, Subscriber, SubscriberQos, Topic, TopicType};

/// A member of a domain (DDS 1.4 §2.2.2.2.1): owns the sockets and the I/O thread, discovers the others.
///
/// It leaves the domain, telling its peers, when it and all publishers, subscribers, writers and readers made from it are
/// dropped.
pub struct DomainParticipant {
    runtime: Arc<Runtime>,
    domain_id: u32,
    notices: Vec<Notice>,
}

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
    lease_duration: Option<Duration>,
    io: IoOptions,
}

impl DomainParticipantBuilder {
    /// A name that people see in `thalweg ls`. Default empty.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// USER_DATA: bytes announced with the participant. Default empty, at most 65,000.
    pub fn user_data(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.user_data = bytes.into();
        self
    }

    /// Communication groups: this participant and others that share none of them ignore each other after the first
    /// announcement. Default none, which is the group `default`; `*` meets everybody. At most 64 names of at most 64 bytes
    /// without comma, semicolon and equals sign. They are announced in USER_DATA behind what the application puts there, as
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

    /// A property announced to peers; may be called several times.
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((name.into(), value.into()));
        self
    }

    /// DOMAIN_TAG: only participants with the same tag meet. Default empty.
    pub fn domain_tag(mut self, tag: impl Into<String>) -> Self {
        self.domain_tag = tag.into();
        self
    }

    /// A host to announce the participant to where multicast does not reach it: a name or address, alone (its well-known
    /// ports of participants 0 to 32 are tried) or with the port of one participant. May be called several times.
    pub fn peer(mut self, peer: impl Into<String>) -> Self {
        self.peers.push(peer.into());
        self
    }

    /// Uses this interface (name or address) and others that are allowed, instead of all; loopback stays in use.
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

    /// How long peers keep this participant after its last sign of life. Default 20 s (RTPS 2.5 §8.5.3.2).
    pub fn lease_duration(mut self, lease: Duration) -> Self {
        self.lease_duration = Some(lease);
        self
    }

    /// Lets the I/O thread poll without ever sleeping: the lowest latency for the price of one processor.
    pub fn busy_poll(mut self) -> Self {
        self.io.busy_poll = true;
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
    /// [`ErrorKind::BadParameter`] for a domain above 232, a peer that cannot be resolved or data that is too long;
    /// [`ErrorKind::Error`] when the system refuses sockets, entropy or a thread.
    pub fn create(self) -> Result<DomainParticipant, Error> {
        const OPERATION: &str = "create_participant";
        let domain_id = self.udp.domain_id;
        let groups = self.checked_groups()?;
        let peers = self.resolve_peers()?;
        let transport = udp::open(&self.udp).map_err(|error| match error {
            udp::OpenError::DomainTooLarge(_) => {
                Error::new(ErrorKind::BadParameter, OPERATION, format!("failed: {error}"))
            }
            udp::OpenError::System { .. } => Error::system(OPERATION, error),
        })?;
        log_notices(&transport.notices);
        let plan = AddressPlan { domain_id, ports: transport.ports, peers };
        let prefix = entropy::guid_prefix().map_err(|error| Error::system(OPERATION, error))?;
        let mut config = ParticipantConfig::new(domain_id, prefix, local_addresses(&plan, &transport.interfaces));
        config.domain_tag = self.domain_tag;
        config.seed = entropy::seed().map_err(|error| Error::system(OPERATION, error))?;
        config.entity_name = self.name;
        config.user_data = self.user_data;
        config.groups = groups;
        config.inspector = self.inspector;
        config.properties = self.properties;
        config.receive_buffer_bytes = u32::try_from(transport.receive_buffer_bytes).unwrap_or(u32::MAX);
        config.host = host::id();
        config.household = crate::runtime::household();
        if let Some(lease) = self.lease_duration {
            config.lease_duration = lease;
        }
        let participant = Participant::new(clock::now(), config);
        let notices = transport.notices;
        let runtime = Runtime::start(participant, transport.sender, transport.receiver, plan, self.io)?;
        Ok(DomainParticipant { runtime, domain_id, notices })
    }

    /// The groups, if USER_DATA can carry them beside what the application puts there.
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
            if let Ok(with_port) = peer.to_socket_addrs() {
                peers.extend(with_port);
                continue;
            }
            let host = peer.trim_start_matches('[').trim_end_matches(']');
            for address in (host, 0).to_socket_addrs().map_err(failed)? {
                let indices = 0..=ports::PARTICIPANT_INDEX_MAX;
                let port = |index| SocketAddr::new(address.ip(), ports::metatraffic_unicast(domain, index));
                peers.extend(indices.map(port));
            }
        }
        Ok(peers)
    }
}

impl DomainParticipant {
    /// Settings of a participant of `domain_id` (0 to 232), all at their defaults.
    pub fn builder(domain_id: u32) -> DomainParticipantBuilder {
        DomainParticipantBuilder {
            udp: UdpConfig { domain_id, ..UdpConfig::default() },
            name: String::new(),
            user_data: Vec::new(),
            groups: Vec::new(),
            inspector: false,
            properties: Vec::new(),
            domain_tag: String::new(),
            peers: Vec::new(),
            lease_duration: None,
            io: IoOptions::default(),
        }
    }

    /// A participant with default settings.
    ///
    /// # Errors
    /// As [`DomainParticipantBuilder::create`].
    pub fn new(domain_id: u32) -> Result<DomainParticipant, Error> {
        DomainParticipant::builder(domain_id).create()
    }

    /// A topic whose samples are values of `T`.
    pub fn create_topic<T: TopicType>(&self, name: &str) -> Topic<T> {
        Topic::typed(name)
    }

    /// A topic whose samples the application serializes itself, for tools and bridges. `key_of` tells the instance of a
    /// serialized sample or key; without it, writers must name the instance and readers rely on the hashes that writers send.
    ///
    /// `key_of` may take its time: each reader of the topic calls it on a thread of its own, and only the samples of that
    /// reader wait, in order and unacknowledged. A panic in it counts as a sample whose key cannot be told. Writers call it
    /// in `write`, where a panic is the caller's.
    pub fn create_raw_topic(&self, name: &str, type_name: &str, keyed: Keyed, key_of: Option<KeyOf>) -> Topic<Raw> {
        Topic::from_description(TopicDescription {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            keyed,
            keys: key_of.map_or(TopicKeys::Wire, TopicKeys::Application),
        })
    }

    /// A publisher, to create writers with.
    pub fn create_publisher(&self, qos: PublisherQos) -> Publisher {
        Publisher::new(Arc::clone(&self.runtime), qos)
    }

    /// A subscriber, to create readers with.
    pub fn create_subscriber(&self, qos: SubscriberQos) -> Subscriber {
        Subscriber::new(Arc::clone(&self.runtime), qos)
    }

    /// A writer of a publisher with default QoS.
    ///
    /// # Errors
    /// As [`Publisher::create_writer`].
    pub fn create_writer<T>(
        &self,
        topic: &Topic<T>,
        qos: crate::qos::WriterQos,
    ) -> Result<crate::DataWriter<T>, Error> {
        self.create_publisher(PublisherQos::default()).create_writer(topic, qos)
    }

    /// A reader of a subscriber with default QoS.
    ///
    /// # Errors
    /// As [`Subscriber::create_reader`].
    pub fn create_reader<T>(
        &self,
        topic: &Topic<T>,
        qos: crate::qos::ReaderQos,
    ) -> Result<crate::DataReader<T>, Error> {
        self.create_subscriber(SubscriberQos::default()).create_reader(topic, qos)
    }

    pub(crate) fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// The domain.
    pub fn domain_id(&self) -> u32 {
        self.domain_id
    }

    /// First half of the GUIDs of everything in this participant.
    pub fn guid_prefix(&self) -> GuidPrefix {
        self.runtime.view(Participant::guid_prefix)
    }

    /// What a user should know although the participant works: a small receive buffer, no multicast. Logged at creation
    /// as well.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The other participants known now, as they announced themselves.
    pub fn discovered_participants(&self) -> Vec<ParticipantData> {
        self.runtime
            .view(|participant| participant.participants().map(|known| ParticipantData::clone(&known.data)).collect())
    }

    /// The writers of the domain known now, this participant's included, and which local readers each is matched with.
    pub fn publications(&self) -> Vec<Known<PublicationData>> {
        self.runtime.view(|participant| participant.publications().cloned().collect())
    }

    /// The readers of the domain known now, this participant's included, and which local writers each is matched with.
    pub fn subscriptions(&self) -> Vec<Known<SubscriptionData>> {
        self.runtime.view(|participant| participant.subscriptions().cloned().collect())
    }

    /// Takes no notice of another participant any more, until this one ends (DDS 1.4 §2.2.2.2.1.14).
    pub fn ignore_participant(&self, prefix: GuidPrefix) {
        self.runtime.command(|now, participant| participant.ignore_participant(now, prefix));
    }

    /// The communication groups of this participant; empty for the group `default`.
    pub fn groups(&self) -> Groups {
        self.runtime.view(|participant| participant.groups().clone())
    }

    /// Changes the communication groups: participants that share none any more are dropped, on both sides, and those that
    /// share one now are met.
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`] for names that cannot be announced, or when the application's USER_DATA names groups.
    pub fn set_groups(&self, names: impl IntoIterator<Item = impl Into<String>>) -> Result<(), Error> {
        let groups = Groups::new(names).map_err(|error| bad_groups("set_groups", error))?;
        self.runtime.command(|now, participant| {
            let mut user_data = participant.config().user_data.clone();
            groups.add_to_user_data(&mut user_data).map_err(|error| bad_groups("set_groups", error))?;
            participant.set_groups(now, groups);
            Ok(())
        })
    }

    /// The other participants that are ignored because of their communication groups, while they announce themselves.
    pub fn ignored_participants(&self) -> Vec<IgnoredParticipant> {
        self.runtime.view(|participant| participant.ignored_participants(clock::now()).cloned().collect())
    }

    /// What the writers of a topic in all Thalweg participants of the domain do, and why, and what its readers received and did
    /// not hand over: those of other processes are asked and have `patience` to answer. Endpoints that did not answer in time are
    /// missing; compare [`DomainParticipant::publications`] and [`DomainParticipant::subscriptions`].
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] unless the participant is an [inspector](DomainParticipantBuilder::inspector).
    pub fn explain_topic(&self, topic: &str, patience: Duration) -> Result<TopicExplanation, Error> {
        explain::topic(&self.runtime, topic, patience)
    }

    /// What this participant refused of what came in the names of others, as `thalweg why` and `thalweg ls` show it.
    pub fn explain(&self) -> ParticipantExplanation {
        self.runtime.view(Participant::explain)
    }

    /// What was refused or ignored of the bytes that arrived.
    pub fn counters(&self) -> ParticipantCounters {
        self.runtime.view(Participant::counters)
    }

    /// What the sockets sent; system calls and losses on this side.
    pub fn send_counts(&self) -> SendCounts {
        self.runtime.state().sender.counts()
    }

    /// What the sockets received; system calls, and what the kernel dropped because a buffer was full.
    pub fn receive_counts(&self) -> ReceiveCounts {
        self.runtime.received()
    }
}

fn bad_groups(operation: &'static str, error: GroupsError) -> Error {
    Error::new(ErrorKind::BadParameter, operation, format!("failed: {error}")).because(error)
}

/// Once a process: every participant would say the same.
fn log_notices(notices: &[Notice]) {
    static LOGGED: Once = Once::new();
    if notices.is_empty() {
        return;
    }
    LOGGED.call_once(|| {
        for notice in notices {
            if tracing::dispatcher::has_been_set() {
                tracing::warn!("{notice}");
            } else if matches!(notice, Notice::ReceiveBuffer { .. }) {
                // Lost samples puzzle people most; this one is told even where nobody listens to the log.
                eprintln!("thalweg: {notice}");
            }
        }
    });
}
