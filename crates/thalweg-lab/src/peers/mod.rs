//! The programs that measure other middleware: their names, folders and limits.
//!
//! Their sources are in `peers/` of a checkout, one workspace each; `peers/README.md` describes their interface.

mod limits;
mod setup;

pub(crate) use setup::readiness_of;
pub use setup::{Readiness, install, readiness};

pub use thalweg_lab_station::PeerProfile;

pub(crate) use limits::refusal;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A middleware that there is a program for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeerProgram {
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

impl PeerProgram {
    /// Every peer; the floor comes last.
    pub const ALL: [PeerProgram; 8] = [
        PeerProgram::Cyclone,
        PeerProgram::FastDds,
        PeerProgram::RustDds,
        PeerProgram::Dust,
        PeerProgram::Hdds,
        PeerProgram::Zenoh,
        PeerProgram::Iceoryx2,
        PeerProgram::Raw,
    ];

    /// Its name in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            PeerProgram::Cyclone => "cyclone",
            PeerProgram::FastDds => "fastdds",
            PeerProgram::RustDds => "rustdds",
            PeerProgram::Dust => "dust",
            PeerProgram::Hdds => "hdds",
            PeerProgram::Zenoh => "zenoh",
            PeerProgram::Iceoryx2 => "iceoryx2",
            PeerProgram::Raw => "raw",
        }
    }

    /// Whether it sends by unicast or to groups as it is told.
    pub fn is_told_destinations(self) -> bool {
        matches!(self, PeerProgram::Cyclone | PeerProgram::FastDds)
    }

    /// Whether it has batching of its own, and so the set of settings `batch`.
    pub(crate) fn has_batching(self) -> bool {
        !matches!(self, PeerProgram::FastDds | PeerProgram::RustDds | PeerProgram::Dust | PeerProgram::Hdds)
    }

    /// The measurement, in words.
    pub fn description(self) -> &'static str {
        match self {
            PeerProgram::Cyclone => "Eclipse Cyclone DDS, UDP",
            PeerProgram::FastDds => "eProsima Fast DDS, UDP",
            PeerProgram::RustDds => "RustDDS, UDP",
            PeerProgram::Dust => "Dust DDS, UDP",
            PeerProgram::Hdds => "hdds, UDP",
            PeerProgram::Zenoh => "Eclipse Zenoh, TCP",
            PeerProgram::Iceoryx2 => "Eclipse iceoryx2, shared memory",
            PeerProgram::Raw => "UDP sockets without any protocol: the floor",
        }
    }

    /// The peer of this name.
    pub fn parse(name: &str) -> Option<PeerProgram> {
        PeerProgram::ALL.into_iter().find(|peer| peer.name() == name)
    }

    /// The peer that the program in this file measures, by its name `NAME-perf`.
    pub(crate) fn of_file(program: &Path) -> Option<PeerProgram> {
        let name = program.file_stem()?.to_str()?.strip_suffix("-perf")?;
        PeerProgram::ALL.into_iter().find(|peer| peer.name() == name || peer.source() == name)
    }

    /// What its source folder in `peers/` is called, without `-perf`.
    pub fn source(self) -> &'static str {
        if self == PeerProgram::Iceoryx2 { "iceoryx" } else { self.name() }
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

impl fmt::Display for PeerProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The middleware of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum CellMiddleware {
    /// Thalweg.
    #[default]
    Thalweg,
    /// Another one, by its program.
    Peer(PeerProgram, PeerProfile),
}

impl CellMiddleware {
    /// All names that a scenario may use.
    pub fn all() -> impl Iterator<Item = CellMiddleware> {
        let profiles =
            |peer| [PeerProfile::Default, PeerProfile::Tuned].map(|profile| CellMiddleware::Peer(peer, profile));
        std::iter::once(CellMiddleware::Thalweg).chain(PeerProgram::ALL.into_iter().flat_map(profiles))
    }

    /// The peer, unless it is Thalweg itself.
    pub fn peer(self) -> Option<PeerProgram> {
        match self {
            CellMiddleware::Thalweg => None,
            CellMiddleware::Peer(peer, _) => Some(peer),
        }
    }
}

impl fmt::Display for CellMiddleware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CellMiddleware::Thalweg => f.write_str("thalweg"),
            CellMiddleware::Peer(peer, PeerProfile::Default) => write!(f, "{peer}"),
            CellMiddleware::Peer(peer, profile) => write!(f, "{peer}-{}", profile.name()),
        }
    }
}

impl From<CellMiddleware> for String {
    fn from(middleware: CellMiddleware) -> String {
        middleware.to_string()
    }
}

impl TryFrom<String> for CellMiddleware {
    type Error = String;

    fn try_from(name: String) -> Result<CellMiddleware, String> {
        let found = CellMiddleware::all().find(|one| one.to_string() == name);
        found.ok_or_else(|| format!("{name:?} is no middleware of this version"))
    }
}

/// The environment variable that names the folder of the built programs.
pub const FOLDER: &str = "THALWEG_PEERS";

#[cfg(test)]
mod tests;
