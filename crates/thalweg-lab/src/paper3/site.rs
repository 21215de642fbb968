//! What the machine has.

use serde::{Deserialize, Serialize};
use thalweg_host::{Environment, HostFiles, NetworkDevice, may_make_namespaces};

use super::load;

/// What a machine offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HdtvSite {
    /// Logical CPUs.
    pub cpus: usize,
    /// Whether hosts can be made.
    pub has_namespaces: bool,
    /// Names of NICs, which this preset leaves alone.
    pub nics: Vec<String>,
    /// The version of the compiler of C, `cc`, which computes beside a picture for minutes; missing where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler: Option<String>,
}

impl HdtvSite {
    /// What this machine offers.
    pub fn here() -> HdtvSite {
        let nics = NetworkDevice::all(&HostFiles::here()).into_iter().filter(|device| device.is_physical);
        HdtvSite {
            cpus: Environment::read().cores,
            has_namespaces: may_make_namespaces(),
            nics: nics.map(|device| device.name).collect(),
            compiler: load::compiler(),
        }
    }
}
