//! The survey of a participant's network, for cases in which it discovers no other participant.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use thalweg_rtps::discovery::participant_data::ParticipantData;
use thalweg_rtps::history::ChangeKind;
use thalweg_rtps::participant::IgnoredParticipant;
use thalweg_rtps::types::{EntityId, GuidPrefix, VendorId};
use thalweg_rtps::wire::parameters::ParameterList;
use thalweg_rtps::wire::{Content, Data, Message, Submessage};
use thalweg_transport::interfaces::{self, InterfaceSelection};
use thalweg_transport::ports::{DOMAIN_MAX, metatraffic_multicast};
use thalweg_transport::survey::{GroupListener, try_multicast};
use thalweg_transport::udp::UdpConfig;

use crate::DomainParticipant;
use crate::discovery::ProcessDescription;

pub use thalweg_transport::interfaces::{Interface, InterfaceAddress, ListedInterface};
pub use thalweg_transport::survey::MulticastTrial;

/// The findings of a survey, to explain why a participant discovers no other.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Surroundings {
    /// Domain of the participant.
    pub domain_id: u32,
    /// Domain tag of the participant; empty for none.
    pub domain_tag: String,
    /// Whether the participant uses multicast.
    pub multicast: bool,
    /// All interfaces of the host, in the kernel's order.
    pub interfaces: Vec<SurveyedInterface>,
    /// Time for which the survey listened to announcements; zero without multicast.
    pub listened: Duration,
    /// Domains whose announcements were listened for: 0 to 232 but for those whose port something else has.
    pub domains_listened: usize,
    /// Participants that were heard, have not left and that the participant does not know, by domain and tag; see [`HeardDomain`].
    pub heard: Vec<HeardDomain>,
    /// Participants of the domain that are ignored because of their communication groups.
    pub other_groups: Vec<IgnoredParticipant>,
}

/// An interface, and its use by the participant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SurveyedInterface {
    /// The interface.
    pub listed: ListedInterface,
    /// Its use.
    pub usage: InterfaceUsage,
}

/// The use of an interface by a participant, or the reason against it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InterfaceUsage {
    /// It does; what became of a datagram sent to the discovery group there, or `None` where no multicast is used.
    Used(Option<MulticastTrial>),
    /// It is switched off.
    Down,
    /// It has no address.
    NoAddress,
    /// The application named others.
    NotAllowed,
    /// The application does not want it.
    Denied,
}

/// Participants that announce themselves in a domain, with a tag. Where both are the participant's own, announcements come through
/// and the answers do not: a firewall lets multicast pass only, or addresses are announced that cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeardDomain {
    /// The domain, by the port.
    pub domain_id: u32,
    /// Their tag; empty for none.
    pub domain_tag: String,
    /// The participants, in the order of their prefixes.
    pub participants: Vec<HeardParticipant>,
}

/// A participant that announced itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeardParticipant {
    /// Its GUID prefix.
    pub guid_prefix: GuidPrefix,
    /// Its vendor.
    pub vendor: VendorId,
    /// Name that its application gave it; empty for none.
    pub entity_name: String,
    /// Its host, process and program, as far as announced.
    pub process: ProcessDescription,
    /// The source address of its announcement.
    pub address: IpAddr,
}

/// Looks around in the background; see [`DomainParticipant::survey`]. Dropping it ends that.
#[derive(Debug)]
pub struct Survey {
    started: Instant,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<SurveyFindings>>,
}

/// The findings of the background thread.
#[derive(Default)]
struct SurveyFindings {
    interfaces: Vec<SurveyedInterface>,
    domains_listened: usize,
    heard: BTreeMap<(u32, String), BTreeMap<GuidPrefix, HeardParticipant>>,
}

impl Survey {
    pub(crate) fn start(config: UdpConfig, own: GuidPrefix) -> Survey {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || look_around(&config, own, &stopped);
        // Without the thread the facts of the participant itself are told.
        let thread = thread::Builder::new().name("thalweg-survey".into()).spawn(run).ok();
        Survey { started: Instant::now(), stop, thread }
    }

    /// Time that it has listened.
    pub fn listened(&self) -> Duration {
        self.started.elapsed()
    }

    /// Ends it. `participant` is the one that it was started for.
    pub fn finish(mut self, participant: &DomainParticipant) -> Surroundings {
        let listened = self.listened();
        // Those of before the end too: one that leaves while it ends was known.
        let mut known: BTreeSet<GuidPrefix> = known_to(participant).collect();
        let findings = self.end();
        known.extend(known_to(participant));
        let config = participant.udp();
        let domain_tag = participant.runtime().view(|participant| participant.config().domain_tag.clone());
        let other_groups = participant.ignored_participants();
        let is_known = |prefix: GuidPrefix| {
            known.contains(&prefix) || other_groups.iter().any(|other| other.guid_prefix == prefix)
        };
        let heard = findings.heard.into_iter().map(|((domain_id, domain_tag), participants)| {
            let participants = participants.into_values().filter(|one| !is_known(one.guid_prefix)).collect();
            HeardDomain { domain_id, domain_tag, participants }
        });
        Surroundings {
            domain_id: config.domain_id,
            domain_tag,
            multicast: config.multicast,
            interfaces: findings.interfaces,
            listened: if config.multicast { listened } else { Duration::ZERO },
            domains_listened: findings.domains_listened,
            heard: heard.filter(|domain| !domain.participants.is_empty()).collect(),
            other_groups,
        }
    }

    fn end(&mut self) -> SurveyFindings {
        self.stop.store(true, Ordering::Relaxed);
        let findings = self.thread.take().map(|thread| thread.join().unwrap_or_default());
        findings.unwrap_or_default()
    }
}

impl Drop for Survey {
    fn drop(&mut self) {
        self.end();
    }
}

fn known_to(participant: &DomainParticipant) -> impl Iterator<Item = GuidPrefix> {
    participant.discovered_participants().into_iter().map(|data| data.guid_prefix)
}

/// The work of the background thread.
fn look_around(config: &UdpConfig, own: GuidPrefix, stop: &AtomicBool) -> SurveyFindings {
    let listed = interfaces::list().unwrap_or_default();
    let mut findings = SurveyFindings::default();
    let used: Vec<Interface> = listed
        .iter()
        .filter(|listed| matches!(usage(listed, &config.interfaces), InterfaceUsage::Used(_)))
        .map(|listed| listed.interface.clone())
        .collect();
    let domains = if config.multicast { 0..DOMAIN_MAX + 1 } else { 0..0 };
    let listener = GroupListener::open(domains.clone().map(metatraffic_multicast), &used);
    findings.domains_listened = listener.ports().count();
    let domain_of: BTreeMap<u16, u32> = domains.map(|domain| (metatraffic_multicast(domain), domain)).collect();
    for listed in listed {
        let usage = match usage(&listed, &config.interfaces) {
            InterfaceUsage::Used(_) if config.multicast && listed.interface.multicast => {
                InterfaceUsage::Used(Some(try_multicast(&listed.interface, TRIAL_PATIENCE)))
            }
            other => other,
        };
        findings.interfaces.push(SurveyedInterface { listed, usage });
    }
    loop {
        // Once more after the end was requested, so that a survey that ends at once has polled.
        let last = stop.load(Ordering::Relaxed);
        listener.receive(|port, source, bytes| {
            if let Some(domain) = domain_of.get(&port) {
                findings.note_heard(*domain, source, bytes, own);
            }
        });
        if last {
            return findings;
        }
        thread::park_timeout(LOOK_PERIOD);
    }
}

/// Whether the participant uses an interface; it was not tried yet.
fn usage(listed: &ListedInterface, selection: &InterfaceSelection) -> InterfaceUsage {
    let denied = InterfaceSelection { allow: Vec::new(), deny: selection.deny.clone() };
    match &listed.interface {
        interface if !denied.selects(interface) => InterfaceUsage::Denied,
        interface if !selection.selects(interface) => InterfaceUsage::NotAllowed,
        _ if !listed.up => InterfaceUsage::Down,
        interface if interface.addresses.is_empty() => InterfaceUsage::NoAddress,
        _ => InterfaceUsage::Used(None),
    }
}

impl SurveyFindings {
    /// Takes note of the participant that announces itself or takes its leave in a datagram, if one does.
    fn note_heard(&mut self, domain: u32, source: SocketAddr, bytes: &[u8], own: GuidPrefix) {
        let Some((sender, data)) = participant_data(bytes) else { return };
        match data.content {
            Content::Data(range) => match bytes.get(range).map(ParticipantData::decode) {
                Some(Ok(announced)) if announced.guid_prefix != own => self.note_announced(domain, source, announced),
                _ => {}
            },
            Content::Key(range) => match bytes.get(range).map(ParticipantData::decode_key) {
                Some(Ok(gone)) if gone == sender => self.forget(gone),
                _ => {}
            },
            Content::None => {
                let status = data.inline_qos.as_ref().map_or(0, ParameterList::status_info);
                if ChangeKind::from_status_info(status).disposes() {
                    self.forget(sender);
                }
            }
        }
    }

    fn note_announced(&mut self, domain: u32, source: SocketAddr, data: ParticipantData) {
        let participant = HeardParticipant {
            guid_prefix: data.guid_prefix,
            vendor: data.vendor,
            process: ProcessDescription::of(&data),
            entity_name: data.entity_name,
            address: source.ip(),
        };
        let count: usize = self.heard.values().map(BTreeMap::len).sum();
        let key = (domain, data.domain_tag);
        if count < HEARD_MAX || self.heard.get(&key).is_some_and(|known| known.contains_key(&participant.guid_prefix)) {
            self.heard.entry(key).or_default().insert(participant.guid_prefix, participant);
        }
    }

    /// Lets go of a participant that has left.
    fn forget(&mut self, prefix: GuidPrefix) {
        self.heard.retain(|_, participants| {
            participants.remove(&prefix);
            !participants.is_empty()
        });
    }
}

/// What a datagram of discovery tells of a participant, and the participant that sent it.
fn participant_data(bytes: &[u8]) -> Option<(GuidPrefix, Data<'_>)> {
    let message = Message::parse(bytes).ok()?;
    let mut sender = message.header.prefix;
    message.submessages().map_while(Result::ok).find_map(|submessage| match submessage {
        Submessage::Data(data) if data.writer == EntityId::SPDP_WRITER => Some((sender, data)),
        Submessage::InfoSource { prefix, .. } => {
            sender = prefix;
            None
        }
        _ => None,
    })
}

/// Time limit of a datagram from this host to itself.
const TRIAL_PATIENCE: Duration = Duration::from_millis(300);
/// Interval at which arrivals are polled.
const LOOK_PERIOD: Duration = Duration::from_millis(20);
/// Participants that are remembered; chosen for a text that people read.
const HEARD_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use thalweg_rtps::types::SequenceNumber;
    use thalweg_rtps::wire::parameters;
    use thalweg_rtps::wire::write::{self, DataHead, DataKind};

    use super::*;

    /// What a participant says of itself: an announcement, or its leave.
    fn datagram(prefix: GuidPrefix, kind: DataKind) -> Vec<u8> {
        let (mut payload, mut inline_qos) = (Vec::new(), Vec::new());
        match kind {
            DataKind::Data => ParticipantData::new(prefix).encode(&mut payload),
            DataKind::Key => ParticipantData::encode_key(prefix, &mut payload),
            DataKind::None => {}
        }
        if kind != DataKind::Data {
            parameters::inline_qos(ChangeKind::DisposeUnregister.status_info(), None, &mut inline_qos);
        }
        let (reader, writer, sequence) = (EntityId::UNKNOWN, EntityId::SPDP_WRITER, SequenceNumber::FIRST);
        let mut datagram = Vec::new();
        write::header(&mut datagram, prefix);
        let head = DataHead { reader, writer, sequence, inline_qos: &inline_qos, kind };
        write::data(&mut datagram, &head, payload.len());
        datagram.extend_from_slice(&payload);
        datagram
    }

    fn listed(name: &str, addresses: &[&str], up: bool) -> ListedInterface {
        let address = |ip: &&str| InterfaceAddress { ip: ip.parse().unwrap(), prefix_bits: 24 };
        let addresses = addresses.iter().map(address).collect();
        let interface =
            Interface { name: name.into(), index: 1, addresses, loopback: false, multicast: true, mtu_bytes: None };
        ListedInterface { interface, up }
    }

    #[test]
    fn each_interface_that_is_left_out_has_a_reason() {
        let selection =
            InterfaceSelection { allow: vec!["eth0".into(), "docker0".into()], deny: vec!["docker0".into()] };
        let check = |listed: ListedInterface, expect: InterfaceUsage| assert_eq!(usage(&listed, &selection), expect);
        check(listed("eth0", &["192.0.2.7"], true), InterfaceUsage::Used(None));
        check(listed("eth0", &["192.0.2.7"], false), InterfaceUsage::Down);
        check(listed("eth0", &[], true), InterfaceUsage::NoAddress);
        check(listed("eth1", &["192.0.2.8"], true), InterfaceUsage::NotAllowed);
        check(listed("docker0", &["172.17.0.1"], true), InterfaceUsage::Denied);
    }

    #[test]
    fn whatever_is_no_announcement_is_not_heard_and_the_heard_are_bounded() {
        let mut findings = SurveyFindings::default();
        let source = "192.0.2.7:7400".parse().unwrap();
        for bytes in [&b""[..], b"RTPS", &[0xff; 300]] {
            findings.note_heard(0, source, bytes, GuidPrefix([1; 12]));
        }
        assert!(findings.heard.is_empty());
        for n in 0..2_000_u16 {
            let mut prefix = [2; 12];
            prefix[10..].copy_from_slice(&n.to_be_bytes());
            findings.note_heard(3, source, &datagram(GuidPrefix(prefix), DataKind::Data), GuidPrefix([1; 12]));
        }
        assert_eq!(findings.heard[&(3, String::new())].len(), HEARD_MAX);
    }

    #[test]
    fn a_participant_that_takes_its_leave_is_heard_no_longer() {
        let source = "192.0.2.7:7400".parse().unwrap();
        let (own, gone, other) = (GuidPrefix([1; 12]), GuidPrefix([2; 12]), GuidPrefix([3; 12]));
        for farewell in [DataKind::Key, DataKind::None] {
            let mut findings = SurveyFindings::default();
            for prefix in [gone, other] {
                findings.note_heard(3, source, &datagram(prefix, DataKind::Data), own);
            }
            findings.note_heard(3, source, &datagram(gone, farewell), own);
            let left: Vec<GuidPrefix> = findings.heard.values().flat_map(BTreeMap::keys).copied().collect();
            assert_eq!(left, [other], "{farewell:?}");
            findings.note_heard(3, source, &datagram(other, farewell), own);
            assert!(findings.heard.is_empty(), "{farewell:?}: {:?}", findings.heard);
        }
    }
}
