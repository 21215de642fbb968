//! The sockets of one participant: opened together, sent through by many threads, received from by one.

mod connections;
mod flight;
mod open;
mod receive;
mod repetitions;
mod send;

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::interfaces::{Interface, InterfaceSelection, ListedInterface};

pub use crate::counters::{ReceiveCounts, SendCounts};
pub use crate::intake::{Waker, Wakeup};
pub use crate::outgo::Sent;
pub use crate::socket::{GROUP_V4, GROUP_V6};
pub use crate::sys::address::Family;
pub use receive::{Datagram, Receiver};
pub use repetitions::RefusedBytes;
pub use send::{Origin, Sender};

/// Settings of a participant's UDP sockets.
#[derive(Clone, Debug)]
pub struct UdpConfig {
    /// DDS domain, 0 to [`crate::ports::DOMAIN_MAX`].
    pub domain_id: u32,
    /// Which interfaces to use. Default: all that are up.
    pub interfaces: InterfaceSelection,
    /// Whether to join and send to multicast groups. Default: yes.
    pub multicast: bool,
    /// Whether to open IPv6 sockets beside the IPv4 ones, where the host has IPv6. Default: yes.
    pub ipv6: bool,
    /// Routers that a multicast datagram may pass, plus one. Default 1, which stays on the link (RTPS 2.5 §9.6.2.2).
    pub multicast_hops: u32,
    /// Bytes to ask for in each receive buffer. Default 8 MiB: a 5 MB sample with the kernel's bookkeeping fits, and
    /// it holds 64 ms of a 1 Gbit/s link while the receiving thread is kept from running.
    pub receive_buffer_bytes: usize,
    /// Bytes to ask for in each send buffer. Default 1 MiB: enough to keep a 10 Gbit/s device busy for a millisecond,
    /// yet below the 1,000 packets at which Linux's default queue would start to drop what the buffer let through.
    pub send_buffer_bytes: usize,
    /// Sockets of discovery refuse datagrams that bear all of these bytes. Default: none, which refuses nothing.
    pub refused_discovery: Vec<RefusedBytes>,
}

impl Default for UdpConfig {
    fn default() -> UdpConfig {
        UdpConfig {
            domain_id: 0,
            interfaces: InterfaceSelection::default(),
            multicast: true,
            ipv6: true,
            multicast_hops: 1,
            receive_buffer_bytes: 8 << 20,
            send_buffer_bytes: 1 << 20,
            refused_discovery: Vec::new(),
        }
    }
}

/// The result of [`open`].
pub struct UdpTransport {
    /// For all threads that send.
    pub sender: Arc<Sender>,
    /// For the one thread that receives.
    pub receiver: Receiver,
    /// Addresses at which the participant can be reached.
    pub ports: Ports,
    /// The interfaces in use when the sockets were opened.
    pub interfaces: Vec<Interface>,
    /// Restrictions under which the participant works, for its user.
    pub notices: Vec<Notice>,
    /// The smallest receive buffer granted, in bytes: what peers may have under way to us.
    pub receive_buffer_bytes: usize,
}

/// Bound UDP ports; `None` where a family is not in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// The participant index whose well-known ports were free; `None` for ports that the system chose.
    pub participant_index: Option<u32>,
    /// Discovery over IPv4.
    pub metatraffic_v4: Option<u16>,
    /// User data over IPv4.
    pub user_v4: Option<u16>,
    /// Discovery over IPv6.
    pub metatraffic_v6: Option<u16>,
    /// User data over IPv6.
    pub user_v6: Option<u16>,
    /// Whether multicast groups are joined, per family: IPv4, IPv6.
    pub multicast: (bool, bool),
}

/// Opens, binds and joins the sockets of one participant.
///
/// # Errors
/// When the domain id is too large, an allowed interface does not exist, or not even one pair of unicast sockets can be opened. Optional parts that are missing (IPv6,
/// multicast, a large buffer) becomes a [`Notice`].
pub fn open(config: &UdpConfig) -> Result<UdpTransport, OpenError> {
    open::open(config)
}

/// Something a user should know, although the participant works.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The kernel granted less receive buffer than asked for.
    ReceiveBuffer {
        /// Bytes asked for.
        asked: usize,
        /// Bytes granted.
        granted: usize,
    },
    /// Sockets of one family could not be opened.
    FamilyUnavailable(Family, String),
    /// Multicast is not available: peers find this participant only by their list of unicast peers.
    MulticastUnavailable(Family, String),
    /// One interface could not join the multicast group.
    NotJoined {
        /// Name of the interface.
        interface: String,
        /// The system's error.
        cause: String,
    },
    /// Changes of interfaces will not be noticed.
    NoInterfaceWatch(String),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::ReceiveBuffer { asked, granted } => write!(
                f,
                "receive buffer is {granted} bytes instead of {asked}: bursts may be lost in the kernel; \
                 run `sysctl -w net.core.rmem_max={asked}`"
            ),
            Notice::FamilyUnavailable(family, cause) => write!(f, "{family} is not used: {cause}"),
            Notice::MulticastUnavailable(family, cause) => {
                write!(f, "multicast over {family} is not used: {cause}; name the peers of this participant")
            }
            Notice::NotJoined { interface, cause } => {
                write!(f, "interface {interface} does not take part in multicast discovery: {cause}")
            }
            Notice::NoInterfaceWatch(cause) => {
                write!(f, "interfaces that appear later will not be used: {cause}")
            }
        }
    }
}

/// Why no participant can be reached by UDP.
#[derive(Debug)]
pub enum OpenError {
    /// The domain's ports would lie beyond 65,535.
    DomainTooLarge(u32),
    /// No interface of this host has this name or address.
    UnknownInterface {
        /// The requested entry.
        entry: String,
        /// The interfaces that there are.
        listed: Vec<ListedInterface>,
    },
    /// A system call failed.
    System {
        /// The attempted operation.
        attempted: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl OpenError {
    fn system(attempted: &'static str) -> impl FnOnce(io::Error) -> OpenError {
        move |source| OpenError::System { attempted, source }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::DomainTooLarge(domain) => {
                write!(f, "domain id {domain} is above {}, the last with UDP ports", crate::ports::DOMAIN_MAX)
            }
            OpenError::UnknownInterface { entry, listed } => {
                write!(f, "no network interface has the name or address {entry:?}; this host has")?;
                for (position, interface) in listed.iter().enumerate() {
                    write!(f, "{} {interface}", if position == 0 { "" } else { "," })?;
                }
                Ok(())
            }
            OpenError::System { attempted, source } => write!(f, "cannot {attempted}: {source}"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::DomainTooLarge(_) | OpenError::UnknownInterface { .. } => None,
            OpenError::System { source, .. } => Some(source),
        }
    }
}

#[cfg(test)]
mod tests;
