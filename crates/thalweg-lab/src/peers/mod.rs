//! The programs that measure other middleware: which there are, where they lie, what they cannot do.
//!
//! Their sources are in `peers/` of a checkout, one workspace each; `peers/README.md` describes what they understand.

mod limits;
mod setup;

pub use setup::{Readiness, install, readiness};

pub use thalweg_lab_station::Profile;

pub(crate) use limits::refusal;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A middleware that there is a program for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    /// Eclipse Cyclone DDS.
    Cyclone,
    /// eProsima Fast DDS.
    FastDds,
    /// RustDDS.
    RustDds,
    /// Dust DDS.
    Dust,
    /// hdds.
    Hdds,
    /// Eclipse Zenoh, over TCP.
    Zenoh,
    /// Eclipse iceoryx2: shared memory by nature, no comparison for what goes over sockets.
    Iceoryx2,
    /// UDP sockets without any protocol: the floor.
    Raw,
}

impl Peer {
    /// Every peer; the floor comes last.
    pub const ALL: [Peer; 8] =
        [Peer::Cyclone, Peer::FastDds, Peer::RustDds, Peer::Dust, Peer::Hdds, Peer::Zenoh, Peer::Iceoryx2, Peer::Raw];

    /// What it is called in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Cyclone => "cyclone",
            Peer::FastDds => "fastdds",
            Peer::RustDds => "rustdds",
            Peer::Dust => "dust",
            Peer::Hdds => "hdds",
            Peer::Zenoh => "zenoh",
            Peer::Iceoryx2 => "iceoryx2",
            Peer::Raw => "raw",
        }
    }

    /// What is measured, in words.
    pub fn description(self) -> &'static str {
        match self {
            Peer::Cyclone => "Eclipse Cyclone DDS, UDP",
            Peer::FastDds => "eProsima Fast DDS, UDP",
            Peer::RustDds => "RustDDS, UDP",
            Peer::Dust => "Dust DDS, UDP",
            Peer::Hdds => "hdds, UDP",
            Peer::Zenoh => "Eclipse Zenoh, TCP",
            Peer::Iceoryx2 => "Eclipse iceoryx2, shared memory",
            Peer::Raw => "UDP sockets without any protocol: the floor",
        }
    }

    /// The peer of this name.
    pub fn parse(name: &str) -> Option<Peer> {
        Peer::ALL.into_iter().find(|peer| peer.name() == name)
    }

    /// What its source folder in `peers/` is called, without `-perf`.
    pub fn source(self) -> &'static str {
        if self == Peer::Iceoryx2 { "iceoryx" } else { self.name() }
    }

    /// Its program: below `folder` if one is given, else below the folder that `THALWEG_PEERS` names, else below the `target` folder that
    /// this program or the current directory lies in.
    pub fn find(self, folder: Option<&Path>) -> Option<PathBuf> {
        find_program(&[format!("{}-perf", self.name()), format!("{}-perf", self.source())], folder)
    }
}

/// The first of `programs` that is there: below `folder` if one is given, else below the folder that `THALWEG_PEERS` names, else below
/// the `target` folder that this program or the current directory lies in.
pub(crate) fn find_program(programs: &[String], folder: Option<&Path>) -> Option<PathBuf> {
    let below = |folder: &PathBuf| {
        let folder = folder.clone();
        let of = move |program: &String| {
            let own = folder.join(program);
            [own.join("release").join(program), own.join(program), own]
        };
        programs.iter().flat_map(of).collect::<Vec<_>>()
    };
    let named = folder.map(Path::to_path_buf).or_else(|| std::env::var_os(FOLDER).map(PathBuf::from));
    let folders = match named {
        Some(folder) => vec![folder],
        None => {
            let own = std::env::current_exe().ok();
            let own = own.iter().flat_map(|path| path.ancestors().skip(1).take(3)).map(|folder| folder.join("peers"));
            own.chain([PathBuf::from("target/peers")]).collect()
        }
    };
    folders.iter().flat_map(below).find(|path| path.is_file())
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who moves the data of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Middleware {
    /// Thalweg.
    #[default]
    Thalweg,
    /// Another one, by its program.
    Peer(Peer, Profile),
}

impl Middleware {
    /// Everything that a scenario may name.
    pub fn all() -> impl Iterator<Item = Middleware> {
        let profiles = |peer| [Profile::Default, Profile::Tuned].map(|profile| Middleware::Peer(peer, profile));
        std::iter::once(Middleware::Thalweg).chain(Peer::ALL.into_iter().flat_map(profiles))
    }

    /// The peer, unless it is Thalweg itself.
    pub fn peer(self) -> Option<Peer> {
        match self {
            Middleware::Thalweg => None,
            Middleware::Peer(peer, _) => Some(peer),
        }
    }
}

impl fmt::Display for Middleware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Middleware::Thalweg => f.write_str("thalweg"),
            Middleware::Peer(peer, Profile::Default) => write!(f, "{peer}"),
            Middleware::Peer(peer, Profile::Tuned) => write!(f, "{peer}-tuned"),
        }
    }
}

impl From<Middleware> for String {
    fn from(middleware: Middleware) -> String {
        middleware.to_string()
    }
}

impl TryFrom<String> for Middleware {
    type Error = String;

    fn try_from(name: String) -> Result<Middleware, String> {
        let found = Middleware::all().find(|one| one.to_string() == name);
        found.ok_or_else(|| format!("{name:?} is no middleware of this version"))
    }
}

/// The environment variable that names the folder of the built programs.
pub const FOLDER: &str = "THALWEG_PEERS";

#[cfg(test)]
mod tests;
