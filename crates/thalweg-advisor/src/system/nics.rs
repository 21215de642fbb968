//! What drivers of interfaces say: of this host, or recorded on another.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thalweg_transport::nic::{Coalescing, FeatureState, Nic, RingSizes};
use thalweg_transport::{interfaces, queueing};

/// Answers of the driver of one interface; a missing one means that the driver has no such setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NicSettings {
    /// Name of the driver.
    pub driver: Option<String>,
    /// Features by the kernel's names.
    pub features: BTreeMap<String, NicFeatureSetting>,
    /// When it interrupts.
    pub coalescing: Option<NicCoalescing>,
    /// Sizes of its queues.
    pub rings: Option<NicRings>,
    /// Its queues.
    pub queues: Option<NicQueueCounts>,
    /// Its root queueing discipline.
    pub root_queue: Option<NicQueue>,
}

/// A feature of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicFeatureSetting {
    /// Whether it works now.
    pub is_on: bool,
    /// Whether it cannot be changed.
    pub is_fixed: bool,
}

/// When an interface interrupts; see [`Coalescing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicCoalescing {
    /// Longest wait for more received packets, in microseconds.
    pub rx_usecs: u32,
    /// Received packets that end the wait; 0 for any number.
    pub rx_frames: u32,
    /// Longest wait for more sent packets, in microseconds.
    pub tx_usecs: u32,
    /// Whether the driver chooses the wait.
    pub adaptive_rx: bool,
}

/// Packets that the queues of an interface hold; see [`RingSizes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicRings {
    /// Received packets.
    pub rx: u32,
    /// The most of them.
    pub rx_max: u32,
    /// Packets to be sent.
    pub tx: u32,
    /// The most of them.
    pub tx_max: u32,
}

/// Queues of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicQueueCounts {
    /// Queues that receive only.
    pub rx: u32,
    /// The most of them.
    pub rx_max: u32,
    /// Queues that receive and send.
    pub combined: u32,
    /// The most of them.
    pub combined_max: u32,
}

/// A root queueing discipline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicQueue {
    /// Its name.
    pub kind: String,
    /// Whether the kernel chose it itself; a configured one could not be put back with its settings.
    pub is_default: bool,
}

/// One change of an interface by its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NicChange {
    /// Switches a feature.
    Feature(String, FeatureState),
    /// Changes when it interrupts.
    Coalescing(NicCoalescing),
    /// Changes the sizes of its queues.
    Rings(NicRings),
    /// Puts a queueing discipline at the root; `None` removes the one that is there, and the kernel chooses.
    RootQueue(Option<String>),
}

/// Access to the drivers of a host.
pub trait Nics {
    /// The answers of the driver of this interface.
    ///
    /// # Errors
    /// There is no such interface, or nothing was recorded of it.
    fn read(&self, device: &str) -> io::Result<NicSettings>;

    /// Makes one change.
    ///
    /// # Errors
    /// The right is missing, or the driver cannot do it.
    fn change(&mut self, device: &str, change: &NicChange) -> io::Result<()>;
}

/// The drivers of this host.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveNics;

impl Nics for LiveNics {
    fn read(&self, device: &str) -> io::Result<NicSettings> {
        let nic = Nic::open(device)?;
        let features = nic
            .features()?
            .into_iter()
            .map(|feature| (feature.name, NicFeatureSetting { is_on: feature.is_on, is_fixed: feature.is_fixed }));
        let index = index(device)?;
        let root = queueing::root_queues()?.into_iter().find(|queue| queue.interface == index);
        Ok(NicSettings {
            driver: nic.driver()?,
            features: features.collect(),
            coalescing: nic.coalescing()?.map(|now| NicCoalescing {
                rx_usecs: now.rx_usecs,
                rx_frames: now.rx_frames,
                tx_usecs: now.tx_usecs,
                adaptive_rx: now.adaptive_rx,
            }),
            rings: nic.rings()?.map(|now| NicRings { rx: now.rx, rx_max: now.rx_max, tx: now.tx, tx_max: now.tx_max }),
            queues: nic.queues()?.map(|now| NicQueueCounts {
                rx: now.rx,
                rx_max: now.rx_max,
                combined: now.combined,
                combined_max: now.combined_max,
            }),
            root_queue: root.map(|queue| NicQueue { kind: queue.kind, is_default: queue.is_default }),
        })
    }

    fn change(&mut self, device: &str, change: &NicChange) -> io::Result<()> {
        let nic = Nic::open(device)?;
        match change {
            NicChange::Feature(name, state) => nic.set_feature(name, *state),
            NicChange::Coalescing(wanted) => nic.set_coalescing(Coalescing {
                rx_usecs: wanted.rx_usecs,
                rx_frames: wanted.rx_frames,
                tx_usecs: wanted.tx_usecs,
                adaptive_rx: wanted.adaptive_rx,
            }),
            NicChange::Rings(wanted) => {
                nic.set_rings(RingSizes { rx: wanted.rx, rx_max: wanted.rx_max, tx: wanted.tx, tx_max: wanted.tx_max })
            }
            NicChange::RootQueue(Some(kind)) => queueing::set_root_queue(index(device)?, kind),
            NicChange::RootQueue(None) => match queueing::remove_root_queue(index(device)?) {
                // The kernel's own is there already.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                result => result,
            },
        }
    }
}

fn index(device: &str) -> io::Result<u32> {
    let listed = interfaces::list()?.into_iter().find(|listed| listed.interface.name == device);
    listed.map(|listed| listed.interface.index).ok_or_else(|| none(device))
}

/// Answers that were recorded, one file of JSON for each interface, in a folder beside the trees `proc` and `sys`; changes go into the
/// files.
#[derive(Clone, Debug)]
pub struct RecordedNics {
    folder: PathBuf,
}

impl RecordedNics {
    /// Those in `folder`, in files such as `eth0.json`.
    pub fn at(folder: impl Into<PathBuf>) -> RecordedNics {
        RecordedNics { folder: folder.into() }
    }

    fn path(&self, device: &str) -> PathBuf {
        self.folder.join(format!("{device}.json"))
    }
}

impl Nics for RecordedNics {
    fn read(&self, device: &str) -> io::Result<NicSettings> {
        Ok(serde_json::from_str(&fs::read_to_string(self.path(device))?)?)
    }

    fn change(&mut self, device: &str, change: &NicChange) -> io::Result<()> {
        let unsupported = || io::Error::from(io::ErrorKind::Unsupported);
        let mut nic = self.read(device)?;
        match change {
            NicChange::Feature(name, state) => {
                let feature = nic.features.get_mut(name).filter(|feature| !feature.is_fixed);
                feature.ok_or_else(unsupported)?.is_on = *state == FeatureState::On;
            }
            NicChange::Coalescing(wanted) => *nic.coalescing.as_mut().ok_or_else(unsupported)? = *wanted,
            NicChange::Rings(wanted) => {
                let rings = nic.rings.as_mut().ok_or_else(unsupported)?;
                if wanted.rx > rings.rx_max || wanted.tx > rings.tx_max {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
                (rings.rx, rings.tx) = (wanted.rx, wanted.tx);
            }
            NicChange::RootQueue(Some(kind)) => {
                nic.root_queue = Some(NicQueue { kind: kind.clone(), is_default: false });
            }
            NicChange::RootQueue(None) => {
                nic.root_queue = Some(NicQueue { kind: "pfifo_fast".to_owned(), is_default: true });
            }
        }
        fs::write(self.path(device), serde_json::to_string_pretty(&nic)?)
    }
}

fn none(device: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("there is no interface {device}"))
}
