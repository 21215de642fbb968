//! The environment of a result: results are compared only where it is the same.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::LabError;
use crate::host::{Environment, HostFiles};
use crate::peers::PeerProgram;
use crate::process::Launcher;

/// Parts of the environment that a result depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// SHA-256 of everything below.
    pub id: String,
    /// Name and value of each part: the scenario's digest, the program's checksum, CPU, kernel, settings of the network.
    pub parts: BTreeMap<String, String>,
}

/// SHA-256 of `bytes` in hexadecimal.
pub(super) fn hex_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Fingerprint {
    /// That of the experiment with this text on this machine, run by this program, with the name and value of whatever else results
    /// depend on.
    pub(super) fn of_study(text: &str, environment: &Environment, dependencies: Vec<(String, String)>) -> Fingerprint {
        let mut parts = host_parts(environment);
        parts.insert("scenario".to_owned(), hex_digest(text.as_bytes()));
        parts.extend(dependencies);
        Fingerprint::of(parts)
    }

    fn of(parts: BTreeMap<String, String>) -> Fingerprint {
        let text: String = parts.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        Fingerprint { id: hex_digest(text.as_bytes()), parts }
    }

    /// Name and both values of each part in which the other one differs.
    pub fn differences(&self, other: &Fingerprint) -> Vec<(String, String, String)> {
        let value = |parts: &BTreeMap<String, String>, name: &String| {
            parts.get(name).cloned().unwrap_or_else(|| "missing".to_owned())
        };
        let mut names: Vec<&String> = self.parts.keys().chain(other.parts.keys()).collect();
        names.sort();
        names.dedup();
        let both = |name: &String| (name.clone(), value(&self.parts, name), value(&other.parts, name));
        names.into_iter().map(both).filter(|(_, one, two)| one != two).collect()
    }
}

/// Parts of this machine's environment that a result depends on, by name.
pub(crate) fn host_parts(environment: &Environment) -> BTreeMap<String, String> {
    let unknown = || "unknown".to_owned();
    let program = std::env::current_exe().map_or_else(|_| unknown(), |path| checksum(&path));
    let mut parts = BTreeMap::from([
        ("program".to_owned(), program),
        ("cpu".to_owned(), environment.cpu.clone().unwrap_or_else(unknown)),
        ("cores".to_owned(), environment.cores.to_string()),
        ("kernel".to_owned(), environment.kernel.clone().unwrap_or_else(unknown)),
        ("governor".to_owned(), environment.governor.clone().unwrap_or_else(unknown)),
        ("version".to_owned(), format!("{} ({})", environment.version, environment.build)),
    ]);
    let files = HostFiles::here();
    for name in SETTINGS {
        parts.insert(name.to_owned(), files.setting(name).unwrap_or_else(unknown));
    }
    parts
}

/// A checksum of a program, `unknown` if it cannot be read: it recognizes a build, it withstands no forger.
pub(crate) fn checksum(program: &Path) -> String {
    let Ok(bytes) = fs::read(program) else { return "unknown".to_owned() };
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mix = |sum: u64, word: u64| (sum.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    let sum = chunks.iter().fold(bytes.len() as u64, |sum, chunk| mix(sum, u64::from_le_bytes(*chunk)));
    format!("{:016x}", rest.iter().fold(sum, |sum, byte| mix(sum, u64::from(*byte))))
}

/// Name and checksum of each peer's program.
///
/// # Errors
/// One is not there.
pub(crate) fn programs_of(
    peers: impl Iterator<Item = PeerProgram>,
    launcher: &Launcher,
) -> Result<Vec<(String, String)>, LabError> {
    peers.map(|peer| Ok((format!("program of {peer}"), checksum(&launcher.program_of(peer)?)))).collect()
}

/// Settings that change what UDP over this host can carry.
const SETTINGS: [&str; 9] = [
    "net.core.rmem_max",
    "net.core.rmem_default",
    "net.core.wmem_max",
    "net.core.wmem_default",
    "net.core.netdev_max_backlog",
    "net.core.default_qdisc",
    "net.ipv4.udp_mem",
    "net.ipv4.ipfrag_high_thresh",
    "net.ipv4.ipfrag_time",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_scenario_is_another_fingerprint_and_says_where() {
        let environment = Environment::read();
        let one = Fingerprint::of_study("a", &environment, Vec::new());
        let same = Fingerprint::of_study("a", &environment, Vec::new());
        assert_eq!(one, same);
        let other = Fingerprint::of_study("b", &environment, Vec::new());
        assert_ne!(one.id, other.id);
        let differences = one.differences(&other);
        assert_eq!(differences.len(), 1, "{differences:?}");
        assert_eq!(differences[0].0, "scenario");
        assert!(one.parts["program"].len() == 16 && one.differences(&same).is_empty());
    }
}
