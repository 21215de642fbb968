//! Places in which a host keeps its settings, read and written as text.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thalweg_host::HostFiles;
use thalweg_transport::nic::FeatureState;

use crate::system::{LiveNics, NicChange, NicSettings, Nics, RecordedNics};

/// A place that holds one value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum SettingPlace {
    /// A setting below `/proc/sys`, such as `net.core.rmem_max`.
    Sysctl {
        /// Its name.
        name: String,
    },
    /// A file below `/sys/class/net/<device>`, such as `mtu`.
    Device {
        /// The interface.
        device: String,
        /// The file.
        entry: String,
    },
    /// A feature of an interface; `on` or `off`.
    Feature {
        /// The interface.
        device: String,
        /// The kernel's name of the feature.
        feature: String,
    },
    /// When an interface interrupts; see [`CoalescingKnob`].
    Coalescing {
        /// The interface.
        device: String,
        /// Which part.
        knob: CoalescingKnob,
    },
    /// Packets that an interface's ring of received packets holds.
    ReceiveRing {
        /// The interface.
        device: String,
    },
    /// The root queueing discipline of an interface; the kernel's own choice is `default`.
    RootQueue {
        /// The interface.
        device: String,
    },
    /// The governor of a processor's clock.
    Governor {
        /// Number of the processor.
        processor: usize,
    },
    /// A whole file, made with its folder if it is missing.
    File {
        /// Its absolute path.
        path: PathBuf,
    },
}

/// A part of [`SettingPlace::Coalescing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoalescingKnob {
    /// Microseconds.
    RxUsecs,
    /// `on` or `off`.
    AdaptiveRx,
}

impl fmt::Display for SettingPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingPlace::Sysctl { name } => f.write_str(name),
            SettingPlace::Device { device, entry } => write!(f, "{device} {entry}"),
            SettingPlace::Feature { device, feature } => write!(f, "{device} feature {feature}"),
            SettingPlace::Coalescing { device, knob: CoalescingKnob::RxUsecs } => write!(f, "{device} rx-usecs"),
            SettingPlace::Coalescing { device, knob: CoalescingKnob::AdaptiveRx } => write!(f, "{device} adaptive-rx"),
            SettingPlace::ReceiveRing { device } => write!(f, "{device} rx ring"),
            SettingPlace::RootQueue { device } => write!(f, "{device} root qdisc"),
            SettingPlace::Governor { processor } => write!(f, "cpu{processor} scaling_governor"),
            SettingPlace::File { path } => write!(f, "{}", path.display()),
        }
    }
}

impl SettingPlace {
    /// The command by which a person does the same.
    pub fn command(&self, value: &str) -> String {
        match self {
            SettingPlace::Sysctl { name } => format!("sysctl -w {name}='{value}'"),
            SettingPlace::Device { device, entry } if entry == "mtu" => format!("ip link set {device} mtu {value}"),
            SettingPlace::Device { device, entry } if entry == "tx_queue_len" => {
                format!("ip link set {device} txqueuelen {value}")
            }
            SettingPlace::Device { device, entry } => format!("echo {value} > /sys/class/net/{device}/{entry}"),
            SettingPlace::Feature { device, feature } => format!("ethtool -K {device} {feature} {value}"),
            SettingPlace::Coalescing { device, knob: CoalescingKnob::RxUsecs } => {
                format!("ethtool -C {device} rx-usecs {value}")
            }
            SettingPlace::Coalescing { device, knob: CoalescingKnob::AdaptiveRx } => {
                format!("ethtool -C {device} adaptive-rx {value}")
            }
            SettingPlace::ReceiveRing { device } => format!("ethtool -G {device} rx {value}"),
            SettingPlace::RootQueue { device } => format!("tc qdisc replace dev {device} root {value}"),
            SettingPlace::Governor { processor } => format!("cpupower -c {processor} frequency-set -g {value}"),
            SettingPlace::File { path } => format!("edit {}", path.display()),
        }
    }
}

/// Reads and writes places.
///
/// `None` is a place that is not there: a file, an interface that is gone. Writing `None` removes a file.
pub trait SettingPlaces {
    /// The value of a place.
    ///
    /// # Errors
    /// It is there and cannot be read.
    fn read(&self, place: &SettingPlace) -> io::Result<Option<String>>;

    /// Changes a place.
    ///
    /// # Errors
    /// The right is missing, the place is not there, or the system refuses the value.
    fn write(&mut self, place: &SettingPlace, value: Option<&str>) -> io::Result<()>;
}

/// The places of a host.
pub struct HostPlaces {
    files: HostFiles,
    root: PathBuf,
    nics: Box<dyn Nics>,
}

impl HostPlaces {
    /// Those of this host.
    pub fn here() -> HostPlaces {
        HostPlaces { files: HostFiles::here(), root: PathBuf::from("/"), nics: Box::new(LiveNics) }
    }

    /// Those of a recorded host: `proc`, `sys` and any other files below `root`, and the answers of drivers in its folder `nic`.
    pub fn recorded(root: &Path) -> HostPlaces {
        HostPlaces {
            files: HostFiles::at(root),
            root: root.to_owned(),
            nics: Box::new(RecordedNics::at(root.join("nic"))),
        }
    }

    /// The kernel's files.
    pub fn files(&self) -> &HostFiles {
        &self.files
    }

    /// The drivers.
    pub fn nics(&self) -> &dyn Nics {
        &*self.nics
    }

    fn nic(&self, device: &str) -> io::Result<Option<NicSettings>> {
        match self.nics.read(device) {
            Ok(settings) => Ok(Some(settings)),
            // ENODEV: gone between two questions.
            Err(error) if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(19) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn below(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }
}

impl SettingPlaces for HostPlaces {
    fn read(&self, place: &SettingPlace) -> io::Result<Option<String>> {
        let switch = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
        Ok(match place {
            SettingPlace::Sysctl { name } => self.files.setting(name),
            SettingPlace::Device { device, entry } => self.files.device_entry(device, entry),
            SettingPlace::Governor { processor } => self.files.governor(*processor),
            SettingPlace::File { path } => match fs::read_to_string(self.below(path)) {
                Ok(text) => Some(text),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            },
            SettingPlace::Feature { device, feature } => {
                self.nic(device)?.and_then(|nic| Some(switch(nic.features.get(feature)?.is_on)))
            }
            SettingPlace::Coalescing { device, knob } => {
                self.nic(device)?.and_then(|nic| nic.coalescing).map(|now| match knob {
                    CoalescingKnob::RxUsecs => now.rx_usecs.to_string(),
                    CoalescingKnob::AdaptiveRx => switch(now.adaptive_rx),
                })
            }
            SettingPlace::ReceiveRing { device } => {
                self.nic(device)?.and_then(|nic| nic.rings).map(|now| now.rx.to_string())
            }
            SettingPlace::RootQueue { device } => self.nic(device)?.map(|nic| {
                nic.root_queue.filter(|queue| !queue.is_default).map_or_else(|| DEFAULT.to_owned(), |queue| queue.kind)
            }),
        })
    }

    fn write(&mut self, place: &SettingPlace, value: Option<&str>) -> io::Result<()> {
        if let SettingPlace::File { path } = place {
            let path = self.below(path);
            return match value {
                Some(text) => write_whole(&path, text),
                None => remove(&path),
            };
        }
        let Some(value) = value else {
            return Err(invalid(format!("{place} cannot be removed")));
        };
        // A list of the kernel's may be empty, and is emptied so.
        let may_be_empty = matches!(place, SettingPlace::Sysctl { .. });
        if value.is_empty() && !may_be_empty || value.contains(['\n', '\0']) {
            return Err(invalid(format!("{value:?} is no value for {place}")));
        }
        match place {
            SettingPlace::Sysctl { name } => self.files.write_setting(name, value),
            SettingPlace::Device { device, entry } => self.files.write_device_entry(device, entry, value),
            SettingPlace::Governor { processor } => self.files.write_governor(*processor, value),
            SettingPlace::Feature { device, feature } => {
                let change = NicChange::Feature(feature.clone(), switch_state(value)?);
                self.nics.change(device, &change)
            }
            SettingPlace::Coalescing { device, knob } => {
                let mut wanted = self.nics.read(device)?.coalescing.ok_or(io::ErrorKind::Unsupported)?;
                match knob {
                    CoalescingKnob::RxUsecs => wanted.rx_usecs = number(value)?,
                    CoalescingKnob::AdaptiveRx => wanted.adaptive_rx = switch_state(value)? == FeatureState::On,
                }
                self.nics.change(device, &NicChange::Coalescing(wanted))
            }
            SettingPlace::ReceiveRing { device } => {
                let mut wanted = self.nics.read(device)?.rings.ok_or(io::ErrorKind::Unsupported)?;
                wanted.rx = number(value)?;
                self.nics.change(device, &NicChange::Rings(wanted))
            }
            SettingPlace::RootQueue { device } => {
                let kind = (value != DEFAULT).then(|| value.to_owned());
                self.nics.change(device, &NicChange::RootQueue(kind))
            }
            SettingPlace::File { .. } => Ok(()),
        }
    }
}

/// Writes a file so that it is there as a whole or not at all, whatever happens meanwhile. A file that was there keeps its mode.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| invalid(format!("{} has no folder", path.display())))?;
    fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    let name = path.file_name().ok_or_else(|| invalid(format!("{} is no file", path.display())))?;
    let mode = existing_file(path)?.map(|there| there.permissions());
    let temporary = folder.join(temporary_name(name));
    // A writer that was killed may have left it. It is made anew: whoever may write to the folder can guess the name, and put
    // a link to another file there.
    remove_if_there(&temporary)?;
    let written = File::create_new(&temporary).and_then(|mut file| {
        if let Some(mode) = mode {
            file.set_permissions(mode)?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    });
    written.inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })?;
    File::open(folder)?.sync_all()
}

/// What is at the place of a file. A symbolic link is refused: replaced by a file, it could not be put back.
fn existing_file(path: &Path) -> io::Result<Option<fs::Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_symlink() => {
            Err(invalid(format!("{} is a symbolic link; name its target", path.display())))
        }
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Hidden, and without an ending that any program looks for.
fn temporary_name(name: &std::ffi::OsStr) -> String {
    format!(".{}.thalweg", name.to_string_lossy())
}

fn remove(path: &Path) -> io::Result<()> {
    // A writer that was killed may have left it.
    if let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
        let _ = fs::remove_file(folder.join(temporary_name(name)));
    }
    if existing_file(path)?.is_none() {
        return Ok(());
    }
    remove_if_there(path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn switch_state(value: &str) -> io::Result<FeatureState> {
    match value {
        "on" => Ok(FeatureState::On),
        "off" => Ok(FeatureState::Off),
        _ => Err(invalid(format!("{value:?} is neither on nor off"))),
    }
}

fn number(value: &str) -> io::Result<u32> {
    value.parse().map_err(|_| invalid(format!("{value:?} is no number")))
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// The root queueing discipline that the kernel chooses.
pub(crate) const DEFAULT: &str = "default";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A folder of its own for `test`; gone when dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Folder {
            let folder = std::env::temp_dir().join(format!("thalweg-place-{test}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).expect("made");
            Folder(folder)
        }

        fn write(&self, name: &str, text: Option<&str>) -> io::Result<()> {
            let place = SettingPlace::File { path: Path::new("/").join(name) };
            HostPlaces::recorded(&self.0).write(&place, text)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_link_in_place_of_the_temporary_file_is_not_followed() {
        let folder = Folder::new("temporary");
        let victim = folder.0.join("victim");
        fs::write(&victim, "precious").expect("written");
        symlink(&victim, folder.0.join(".stream.toml.thalweg")).expect("linked");
        folder.write("stream.toml", Some("profile")).expect("written");
        assert_eq!(fs::read_to_string(&victim).expect("read"), "precious");
        let written = folder.0.join("stream.toml");
        assert_eq!(fs::read_to_string(&written).expect("read"), "profile");
        assert!(fs::symlink_metadata(&written).expect("there").is_file());
    }

    #[test]
    fn a_link_in_place_of_the_file_is_refused_and_stays() {
        let folder = Folder::new("link");
        let victim = folder.0.join("victim");
        fs::write(&victim, "precious").expect("written");
        symlink(&victim, folder.0.join("stream.toml")).expect("linked");
        for text in [Some("profile"), None] {
            let error = folder.write("stream.toml", text).expect_err("refused").to_string();
            assert!(error.contains("symbolic link"), "{error}");
        }
        assert_eq!(fs::read_link(folder.0.join("stream.toml")).expect("a link"), victim);
        assert_eq!(fs::read_to_string(&victim).expect("read"), "precious");
    }

    #[test]
    fn a_file_keeps_its_mode() {
        let folder = Folder::new("mode");
        let path = folder.0.join("stream.toml");
        fs::write(&path, "secret").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
        folder.write("stream.toml", Some("profile")).expect("written");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    }
}
