//! What the driver of an interface offers and how it is set: offloads, rings, moderation of interrupts (ethtool(8)).
//!
//! The kernel's own structures are asked for, without the program `ethtool`; its crates need an asynchronous runtime for the same.

use std::io;
use std::os::fd::AsFd;

use socket2::{Domain, Socket, Type};

use crate::sys::ethtool::{self, Question};

/// The driver of one interface of this network namespace.
#[derive(Debug)]
pub struct Nic {
    socket: Socket,
    name: String,
}

/// When an interface interrupts (`ethtool -c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coalescing {
    /// Longest wait for more packets before it interrupts for a received one, in microseconds; 0 interrupts at once.
    pub rx_usecs: u32,
    /// Received packets after which it interrupts in any case; 0 leaves that to the time.
    pub rx_frames: u32,
    /// The same wait for sent packets.
    pub tx_usecs: u32,
    /// Whether the driver chooses `rx_usecs` by the rate of packets.
    pub adaptive_rx: bool,
}

/// Packets that a queue of an interface holds (`ethtool -g`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSizes {
    /// Received packets.
    pub rx: u32,
    /// The most that `rx` may be.
    pub rx_max: u32,
    /// Packets to be sent.
    pub tx: u32,
    /// The most that `tx` may be.
    pub tx_max: u32,
}

/// Queues of an interface (`ethtool -l`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueCounts {
    /// Queues that receive.
    pub rx: u32,
    /// The most of them.
    pub rx_max: u32,
    /// Queues that both receive and send.
    pub combined: u32,
    /// The most of them.
    pub combined_max: u32,
}

/// One feature of an interface (`ethtool -k`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicFeature {
    /// The kernel's name, such as `rx-gro`.
    pub name: String,
    /// Whether it works now.
    pub is_on: bool,
    /// Whether it cannot be changed.
    pub is_fixed: bool,
}

impl Nic {
    /// Prepares to ask; whether there is such an interface shows the first answer.
    ///
    /// # Errors
    /// No socket can be opened.
    pub fn open(name: &str) -> io::Result<Nic> {
        let socket =
            Socket::new(Domain::IPV4, Type::DGRAM, None).or_else(|_| Socket::new(Domain::IPV6, Type::DGRAM, None));
        Ok(Nic { socket: socket?, name: name.to_owned() })
    }

    /// Name of the driver, such as `virtio_net`; `None` where the interface has none that tells.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn driver(&self) -> io::Result<Option<String>> {
        let words = self.get::<ethtool::DriverInfo>(ethtool::GET_DRIVER)?;
        // ethtool_drvinfo: command, then the driver's name in 32 bytes.
        Ok(words.and_then(|words| Some(ethtool::text(words.get(1..9)?)).filter(|name| !name.is_empty())))
    }

    /// When it interrupts; `None` where the driver has no such setting.
    ///
    /// # Errors
    /// There is no such interface, or the driver fails.
    pub fn coalescing(&self) -> io::Result<Option<Coalescing>> {
        let words = self.get::<ethtool::Coalesce>(ethtool::GET_COALESCE)?;
        Ok(words.map(|words| Coalescing {
            rx_usecs: words[1],
            rx_frames: words[2],
            tx_usecs: words[5],
            adaptive_rx: words[10] != 0,
        }))
    }

    /// Changes when it interrupts and leaves what [`Coalescing`] does not name.
    ///
    /// # Errors
    /// The right is missing (`CAP_NET_ADMIN`), or the driver cannot do it.
    pub fn set_coalescing(&self, wanted: Coalescing) -> io::Result<()> {
        let mut words = self.get::<ethtool::Coalesce>(ethtool::GET_COALESCE)?.ok_or_else(unsupported)?;
        words[0] = ethtool::SET_COALESCE;
        (words[1], words[2], words[5]) = (wanted.rx_usecs, wanted.rx_frames, wanted.tx_usecs);
        words[10] = u32::from(wanted.adaptive_rx);
        ethtool::ask::<ethtool::Coalesce>(self.socket.as_fd(), &self.name, &mut words)
    }

    /// Sizes of its queues; `None` where the driver has no such setting.
    ///
    /// # Errors
    /// There is no such interface, or the driver fails.
    pub fn rings(&self) -> io::Result<Option<RingSizes>> {
        let words = self.get::<ethtool::Ring>(ethtool::GET_RING)?;
        Ok(words.map(|words| RingSizes { rx: words[5], rx_max: words[1], tx: words[8], tx_max: words[4] }))
    }

    /// Changes the sizes of its queues; the maxima are not looked at. Most drivers take the link down for it.
    ///
    /// # Errors
    /// The right is missing (`CAP_NET_ADMIN`), or the driver cannot do it.
    pub fn set_rings(&self, wanted: RingSizes) -> io::Result<()> {
        let mut words = self.get::<ethtool::Ring>(ethtool::GET_RING)?.ok_or_else(unsupported)?;
        words[0] = ethtool::SET_RING;
        (words[5], words[8]) = (wanted.rx, wanted.tx);
        ethtool::ask::<ethtool::Ring>(self.socket.as_fd(), &self.name, &mut words)
    }

    /// Its queues; `None` where the driver does not tell.
    ///
    /// # Errors
    /// There is no such interface, or the driver fails.
    pub fn queues(&self) -> io::Result<Option<QueueCounts>> {
        let words = self.get::<ethtool::Channels>(ethtool::GET_CHANNELS)?;
        Ok(words.map(|words| QueueCounts {
            rx: words[5],
            rx_max: words[1],
            combined: words[8],
            combined_max: words[4],
        }))
    }

    /// All features that this kernel knows.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn features(&self) -> io::Result<Vec<NicFeature>> {
        let names = ethtool::feature_names(self.socket.as_fd(), &self.name)?;
        let blocks = ethtool::features(self.socket.as_fd(), &self.name)?;
        let feature = |(index, name): (usize, String)| {
            let [available, _, active, never_changed] = *blocks.get(index / 32)?;
            let has = |bits: u32| bits & (1 << (index % 32)) != 0;
            Some(NicFeature { name, is_on: has(active), is_fixed: !has(available) || has(never_changed) })
        };
        Ok(names.into_iter().enumerate().filter_map(feature).filter(|feature| !feature.name.is_empty()).collect())
    }

    /// Switches a feature.
    ///
    /// # Errors
    /// There is none of this name, the right is missing (`CAP_NET_ADMIN`), or the interface refuses: the kernel reports success then,
    /// and the feature is read again to find out.
    pub fn set_feature(&self, name: &str, wanted: FeatureState) -> io::Result<()> {
        let names = ethtool::feature_names(self.socket.as_fd(), &self.name)?;
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("this kernel has no feature {name}"));
        let index = names.iter().position(|known| known == name).ok_or_else(missing)?;
        let is_on = wanted == FeatureState::On;
        ethtool::set_feature(self.socket.as_fd(), &self.name, names.len().div_ceil(32), (index, is_on))?;
        let now = self.features()?.into_iter().find(|feature| feature.name == name);
        if now.is_some_and(|feature| feature.is_on == is_on) { Ok(()) } else { Err(unsupported()) }
    }

    fn get<Q: Question>(&self, command: u32) -> io::Result<Option<Vec<u32>>> {
        let mut words = vec![0; Q::WORDS];
        words[0] = command;
        match ethtool::ask::<Q>(self.socket.as_fd(), &self.name, &mut words) {
            Ok(()) => Ok(Some(words)),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The state to which a feature is switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureState {
    /// It works.
    On,
    /// It does not.
    Off,
}

fn unsupported() -> io::Error {
    io::Error::from_raw_os_error(libc::EOPNOTSUPP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_features_and_no_moderation() {
        let nic = Nic::open("lo").unwrap();
        assert_eq!((nic.coalescing().unwrap(), nic.rings().unwrap()), (None, None));
        let features = nic.features().unwrap();
        let find = |name: &str| features.iter().find(|feature| feature.name == name).unwrap();
        assert!(find("loopback").is_on && find("loopback").is_fixed);
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        let nic = Nic::open("thalweg-none").unwrap();
        assert_eq!(nic.features().unwrap_err().raw_os_error(), Some(libc::ENODEV));
        assert_eq!(nic.rings().unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
