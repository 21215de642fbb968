//! Network options: domain, interfaces, peers.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use thalweg::discovery::DiscoveryLimits;
use thalweg::{Configuration, DomainParticipant, DomainParticipantBuilder};
use thalweg_lab::profile::Profile;
use thalweg_lab::station::{Multicast, StationNetwork};
use thalweg_metrics::{MetricsServer, participant_metrics};

use crate::outcome::{Failure, remark};

/// Options of every command that takes part in a domain.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Network")]
pub struct NetworkOptions {
    /// Join domain N, 0 to 232; only participants of the same domain discover each other (default: THALWEG_DOMAIN, else ROS_DOMAIN_ID,
    /// else the domain in the file of THALWEG_CONFIG, else 0).
    #[arg(long, value_name = "N", default_value_t = configured_domain(), hide_default_value = true, value_parser = clap::value_parser!(u32).range(0..=232))]
    pub domain: u32,

    /// Discover only participants that announce the same TAG; use it to keep experiments apart within a domain (default: none).
    #[arg(long, value_name = "TAG", default_value = "", hide_default_value = true)]
    pub domain_tag: String,

    /// Announce this participant to ADDRESS as well, an IP address with or without a port; use it where multicast is blocked,
    /// and once for each peer (default: none).
    #[arg(long = "peer", value_name = "ADDRESS")]
    pub peers: Vec<String>,

    /// Use only the network interface NAME, such as eth0 or lo; may be given several times (default: all that are up).
    #[arg(long = "interface", value_name = "NAME")]
    pub interfaces: Vec<String>,

    /// Neither send nor receive multicast; participants are discovered on this host and through --peer only (default: multicast is used).
    #[arg(long)]
    pub no_multicast: bool,
}

/// Options of commands that are members of the domain themselves, rather than the processes that they start.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Network")]
pub struct MemberOptions {
    #[command(flatten)]
    /// The domain and the ways into it.
    pub network: NetworkOptions,

    /// Join communication group NAME, once for each; participants that share no group ignore each other, and '*' shares
    /// a group with all (default: the group `default`, as participants that name no group).
    #[arg(long = "group", value_name = "NAME")]
    pub groups: Vec<String>,

    /// Let the others drop this participant after DURATION of silence, with ms or s as its unit, 1s to 3600s; a short lease shows a
    /// crash sooner, a busy machine or lossy network needs a long one (default: 20s).
    #[arg(long, value_name = "DURATION", value_parser = crate::parse::lease)]
    pub lease: Option<Duration>,

    /// Remember at most N writers and as many readers of each participant; further ones are refused with a warning (default: 16384).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub endpoints_max: Option<u32>,

    /// Tell the counts of the participant and its endpoints as OpenMetrics at http://ADDRESS/metrics, such as 127.0.0.1:9464; port 0
    /// lets the system choose (default: THALWEG_METRICS, else none).
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
}

/// The domain that the environment names. What is wrong there is told when a participant is created, with the rest.
fn configured_domain() -> u32 {
    Configuration::from_environment().map_or(0, |configuration| configuration.domain())
}

/// Limits of discovery that let each participant have so many endpoints, with memory for them.
fn limits_with(endpoints: usize) -> DiscoveryLimits {
    let usual = DiscoveryLimits::default();
    let bytes = usual.bytes_per_participant_max.max(endpoints.saturating_mul(ENDPOINT_BYTES));
    DiscoveryLimits {
        endpoints_per_participant_max: endpoints,
        bytes_per_participant_max: bytes,
        bytes_max: usual.bytes_max.max(bytes),
        ..usual
    }
}

/// Memory for a writer and a reader of ordinary size.
const ENDPOINT_BYTES: usize = 4 << 10;

impl MemberOptions {
    /// A participant of the network, as this member.
    ///
    /// # Errors
    /// The system refuses sockets or threads, or a peer, interface or group cannot be used.
    pub fn participant(&self) -> Result<DomainParticipant, Failure> {
        self.participant_with(&Profile::empty())
    }

    /// As [`MemberOptions::participant`], with the settings of a profile.
    ///
    /// # Errors
    /// As [`MemberOptions::participant`].
    pub fn participant_with(&self, profile: &Profile) -> Result<DomainParticipant, Failure> {
        let participant = profile.apply_to_participant(self.builder()).create().map_err(Failure::from_cause)?;
        self.serve_metrics(&participant)?;
        Ok(participant)
    }

    /// Tells the counts of a participant until the process ends, if the options or the environment say so.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn serve_metrics(&self, participant: &DomainParticipant) -> Result<(), Failure> {
        let of_environment = std::env::var("THALWEG_METRICS").ok().filter(|address| !address.is_empty());
        let address = match (self.metrics, of_environment) {
            (Some(address), _) => address,
            (None, None) => return Ok(()),
            (None, Some(text)) => text.parse().map_err(|_| {
                Failure::Usage(format!("THALWEG_METRICS is {text:?}, which is no address such as 127.0.0.1:9464"))
            })?,
        };
        let source = participant.figure_source();
        let read = move || source.read().map(|figures| participant_metrics(&figures));
        let server = MetricsServer::start(address, read, MetricsServer::spawn);
        let server = server.map_err(|error| Failure::Failed(format!("no metrics at {address}: {error}")))?;
        remark(format_args!("metrics http://{}/metrics", server.address()));
        server.detach();
        Ok(())
    }

    /// A participant before it is created.
    pub fn builder(&self) -> DomainParticipantBuilder {
        let mut builder = self.network.builder();
        if let Some(lease) = self.lease {
            builder = builder.lease_duration(lease);
        }
        if let Some(count) = self.endpoints_max {
            builder = builder.discovery_limits(limits_with(count as usize));
        }
        builder.groups(&self.groups)
    }
}

impl NetworkOptions {
    /// A participant of the network before it is created.
    fn builder(&self) -> DomainParticipantBuilder {
        let mut builder = DomainParticipant::builder(self.domain).name("thalweg").domain_tag(&self.domain_tag);
        for peer in &self.peers {
            builder = builder.peer(peer);
        }
        for interface in &self.interfaces {
            builder = builder.allow_interface(interface);
        }
        if self.no_multicast {
            builder = builder.without_multicast();
        }
        builder
    }

    /// The same for an experiment's processes.
    pub fn to_lab(&self) -> StationNetwork {
        StationNetwork {
            domain: self.domain,
            domain_tag: self.domain_tag.clone(),
            peers: self.peers.clone(),
            interfaces: self.interfaces.clone(),
            multicast: if self.no_multicast { Multicast::Avoided } else { Multicast::Used },
            receive_buffer_bytes: None,
        }
    }
}
