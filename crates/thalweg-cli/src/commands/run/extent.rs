//! What a preset makes before it makes it: how long it takes, and what it leaves out.

use std::time::Duration;

use serde::Serialize;
use thalweg_report::figures::about;

use crate::outcome::remark;

/// Two forms of a preset on this machine.
#[derive(Debug, Serialize)]
pub struct PresetOutline {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it measures, in a few words.
    pub about: &'static str,
    /// With `--quick`.
    pub quick: Extent,
    /// Without options.
    pub usual: Extent,
}

/// One form of a preset on this machine.
#[derive(Debug, Serialize)]
pub struct Extent {
    /// Expected seconds; other load makes them more.
    pub seconds: u64,
    /// What the paper has or the options ask for and this machine does not make, with the reason.
    pub left_out: Vec<String>,
    /// Peers that are not set up.
    pub missing_peers: Vec<String>,
}

impl Extent {
    /// An extent of this length, with all peers.
    pub fn new(expected: Duration, left_out: Vec<String>) -> Extent {
        Extent { seconds: expected.as_secs().max(1), left_out, missing_peers: Vec::new() }
    }

    /// The same without these peers.
    pub fn without_peers(self, missing: impl IntoIterator<Item = impl ToString>) -> Extent {
        Extent { missing_peers: missing.into_iter().map(|peer| peer.to_string()).collect(), ..self }
    }

    /// Its length in words.
    pub fn length(&self) -> String {
        about(Duration::from_secs(self.seconds))
    }

    /// Tells the user before the first measurement.
    pub fn announce(&self, name: &str) {
        remark(format_args!("{name}: this takes {}.", self.length()));
        for peer in &self.missing_peers {
            remark(format_args!("MISSING: the peer {peer}: `thalweg lab peers install {peer}` builds it"));
        }
        for line in &self.left_out {
            remark(format_args!("LEFT OUT: {line}"));
        }
    }

    /// A few lines on what is not made.
    pub fn remarks(&self) -> Vec<String> {
        let mut out: Vec<String> =
            self.left_out.iter().take(LINES_MAX).map(|line| format!("leaves out {line}")).collect();
        if self.left_out.len() > LINES_MAX {
            out.push(format!("leaves out {} more; --json lists them", self.left_out.len() - LINES_MAX));
        }
        if !self.missing_peers.is_empty() {
            let peers = self.missing_peers.join(", ");
            out.push(format!("without the peers {peers}, which are not set up (`thalweg lab peers install`)"));
        }
        out
    }
}

/// More would hide the presets.
const LINES_MAX: usize = 3;
