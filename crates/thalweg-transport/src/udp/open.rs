//! Finds free ports, opens the sockets and joins the groups.

use std::io;
use std::sync::Arc;

use super::receive::Receiver;
use super::repetitions::{self, RefusedBytes};
use super::send::{PerFamily, Sender};
use super::{Notice, OpenError, Ports, UdpConfig, UdpTransport};
use crate::interfaces::{self, Interface};
use crate::ports;
use crate::socket::{Oversize, PortSharing, UdpSocket};
use crate::sys::address::Family;
use crate::sys::interfaces::Watcher;

/// Unicast sockets of one family.
struct Pair {
    metatraffic: Arc<UdpSocket>,
    user: Arc<UdpSocket>,
}

pub(super) fn open(config: &UdpConfig) -> Result<UdpTransport, OpenError> {
    if config.domain_id > ports::DOMAIN_MAX {
        return Err(OpenError::DomainTooLarge(config.domain_id));
    }
    let mut notices = Vec::new();
    // From before they are listed: one that comes up meanwhile is noticed.
    let watcher = Watcher::new().map_err(|error| notices.push(Notice::NoInterfaceWatch(error.to_string()))).ok();
    let listed = interfaces::list().map_err(OpenError::system("list network interfaces"))?;
    if let Some(unknown) = config.interfaces.unknown(&listed) {
        return Err(OpenError::UnknownInterface { entry: unknown.to_owned(), listed });
    }
    let interfaces = interfaces::usable(listed, &config.interfaces);
    let families = usable_families(config, &mut notices);
    let (participant_index, pairs) = open_unicast(config, &families)?;
    let mut sockets: Vec<Arc<UdpSocket>> = Vec::new();
    for pair in &pairs {
        sockets.extend([Arc::clone(&pair.user), Arc::clone(&pair.metatraffic)]);
    }
    let mut ports = ports_of(participant_index, &pairs);
    if config.multicast {
        let shared = open_multicast(config, &families, &interfaces, &mut notices);
        let joined = |family| shared.iter().any(|socket: &Arc<UdpSocket>| socket.family() == family);
        ports.multicast = (joined(Family::V4), joined(Family::V6));
        sockets.extend(shared);
    }
    let mut discovery_ports = vec![ports::metatraffic_multicast(config.domain_id)];
    discovery_ports.extend(pairs.iter().map(|pair| pair.metatraffic.port()));
    refuse_repetitions(&sockets, &discovery_ports, &config.refused_discovery);
    let receive_buffer_bytes = sockets.iter().map(|socket| socket.receive_buffer_bytes()).min().unwrap_or(0);
    if receive_buffer_bytes < config.receive_buffer_bytes {
        notices.push(Notice::ReceiveBuffer { asked: config.receive_buffer_bytes, granted: receive_buffer_bytes });
    }
    let sender = Arc::new(sender_of(pairs, &interfaces, config.send_buffer_bytes));
    let receiver = Receiver::new(sockets, watcher, config, &interfaces, &discovery_ports)
        .map_err(OpenError::system("watch the sockets"))?;
    Ok(UdpTransport { sender, receiver, ports, interfaces, notices, receive_buffer_bytes })
}

/// Announcements that tell this process nothing do not wake it; where the kernel takes no filter, they do.
fn refuse_repetitions(sockets: &[Arc<UdpSocket>], discovery_ports: &[u16], refused: &[RefusedBytes]) {
    let discovers = |socket: &&Arc<UdpSocket>| !refused.is_empty() && discovery_ports.contains(&socket.port());
    for socket in sockets.iter().filter(discovers) {
        let _ = repetitions::refuse(socket, refused);
    }
}

/// Families that this host can bind; a host without IPv4 is as welcome as one without IPv6.
fn usable_families(config: &UdpConfig, notices: &mut Vec<Notice>) -> Vec<Family> {
    let wanted = if config.ipv6 { vec![Family::V4, Family::V6] } else { vec![Family::V4] };
    let usable = |family: &Family| match UdpSocket::open(config, *family, 0, PortSharing::Exclusive, Oversize::Refuse) {
        Ok(_) => true,
        Err(error) => {
            notices.push(Notice::FamilyUnavailable(*family, error.to_string()));
            false
        }
    };
    let mut families = wanted.clone();
    families.retain(usable);
    // If neither works, opening them for good reports the error.
    if families.is_empty() { wanted } else { families }
}

/// The first participant index whose ports are all free, else ports that the system chooses.
fn open_unicast(config: &UdpConfig, families: &[Family]) -> Result<(Option<u32>, Vec<Pair>), OpenError> {
    let attempt = |metatraffic: u16, user: u16| -> io::Result<Vec<Pair>> {
        let open = |family: &Family| -> io::Result<Pair> {
            let socket =
                |port, oversize| UdpSocket::open(config, *family, port, PortSharing::Exclusive, oversize).map(Arc::new);
            Ok(Pair { metatraffic: socket(metatraffic, Oversize::Cut)?, user: socket(user, Oversize::Refuse)? })
        };
        families.iter().map(open).collect()
    };
    for index in 0..=ports::PARTICIPANT_INDEX_MAX {
        let domain = config.domain_id;
        if let Ok(pairs) = attempt(ports::metatraffic_unicast(domain, index), ports::user_unicast(domain, index)) {
            return Ok((Some(index), pairs));
        }
    }
    let pairs = attempt(0, 0).map_err(OpenError::system("open UDP sockets"))?;
    Ok((None, pairs))
}

fn ports_of(participant_index: Option<u32>, pairs: &[Pair]) -> Ports {
    let pair = |family| pairs.iter().find(|pair| pair.user.family() == family);
    Ports {
        participant_index,
        metatraffic_v4: pair(Family::V4).map(|pair| pair.metatraffic.port()),
        user_v4: pair(Family::V4).map(|pair| pair.user.port()),
        metatraffic_v6: pair(Family::V6).map(|pair| pair.metatraffic.port()),
        user_v6: pair(Family::V6).map(|pair| pair.user.port()),
        multicast: (false, false),
    }
}

fn open_multicast(
    config: &UdpConfig,
    families: &[Family],
    interfaces: &[Interface],
    notices: &mut Vec<Notice>,
) -> Vec<Arc<UdpSocket>> {
    let mut sockets = Vec::new();
    for family in families {
        for port in [ports::metatraffic_multicast(config.domain_id), ports::user_multicast(config.domain_id)] {
            match UdpSocket::open(config, *family, port, PortSharing::Shared, Oversize::Refuse) {
                Ok(socket) => {
                    join_all(&socket, interfaces, notices);
                    sockets.push(Arc::new(socket));
                }
                Err(error) => {
                    let notice = Notice::MulticastUnavailable(*family, format!("port {port}: {error}"));
                    notices.push(notice);
                }
            }
        }
    }
    sockets
}

/// Joins the discovery group on every interface that has an address of the socket's family.
pub(super) fn join_all(socket: &UdpSocket, interfaces: &[Interface], notices: &mut Vec<Notice>) {
    for interface in interfaces.iter().filter(|interface| interface.multicast) {
        let has_family = interface.ips().any(|ip| Family::of(&ip) == socket.family());
        if !has_family {
            continue;
        }
        if let Err(error) = socket.join_discovery(interface) {
            let notice = Notice::NotJoined { interface: interface.name.clone(), cause: error.to_string() };
            if !notices.contains(&notice) {
                notices.push(notice);
            }
        }
    }
}

fn sender_of(pairs: Vec<Pair>, interfaces: &[Interface], send_buffer_bytes: usize) -> Sender {
    let (mut metatraffic, mut user) = (PerFamily::default(), PerFamily::default());
    for pair in pairs {
        metatraffic.set(pair.metatraffic);
        user.set(pair.user);
    }
    Sender::new(metatraffic, user, interfaces, send_buffer_bytes)
}
