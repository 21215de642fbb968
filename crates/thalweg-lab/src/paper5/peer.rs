//! Other middleware with a CoAP server.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::peers::{Readiness, find_program, readiness_of};

/// A middleware that there is a CoAP server for in `peers/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoapPeer {
    /// libcoap, C.
    Libcoap,
    /// Eclipse Californium, Java.
    Californium,
    /// aiocoap, Python.
    Aiocoap,
    /// The crate `coap`, Rust.
    CoapRs,
}

/// Whether a server recognizes requests that arrive twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Deduplication {
    /// As the middleware is shipped.
    Shipped,
    /// Switched off.
    Off,
}

impl CoapPeer {
    /// Every peer.
    pub const ALL: [CoapPeer; 4] = [CoapPeer::Libcoap, CoapPeer::Californium, CoapPeer::Aiocoap, CoapPeer::CoapRs];

    /// What it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            CoapPeer::Libcoap => "libcoap",
            CoapPeer::Californium => "californium",
            CoapPeer::Aiocoap => "aiocoap",
            CoapPeer::CoapRs => "coap-rs",
        }
    }

    /// The measurement, in words.
    pub fn description(self) -> &'static str {
        match self {
            CoapPeer::Libcoap => "CoAP server with libcoap (C)",
            CoapPeer::Californium => "CoAP server with Eclipse Californium (Java)",
            CoapPeer::Aiocoap => "CoAP server with aiocoap (Python)",
            CoapPeer::CoapRs => "CoAP server with the crate coap (Rust)",
        }
    }

    /// Whether it compiles while it runs, so that the first seconds say little.
    pub fn needs_heating(self) -> bool {
        self == CoapPeer::Californium
    }

    /// Its variants; the first is as shipped.
    pub fn variants(self) -> &'static [Deduplication] {
        match self {
            CoapPeer::Californium => &[Deduplication::Shipped, Deduplication::Off],
            CoapPeer::Libcoap | CoapPeer::Aiocoap | CoapPeer::CoapRs => &[Deduplication::Shipped],
        }
    }

    /// The peer of this name.
    pub fn named(name: &str) -> Option<CoapPeer> {
        CoapPeer::ALL.into_iter().find(|peer| peer.name() == name)
    }

    /// Its program, looked for as those of other peers ([`PeerProgram::find`](crate::peers::PeerProgram::find)).
    pub fn find(self, folder: Option<&Path>) -> Option<PathBuf> {
        let program = match self {
            CoapPeer::CoapRs => "coap-rs".to_owned(),
            other => format!("coap-{}", other.name()),
        };
        find_program(&[program], folder)
    }

    /// How far it is, its program looked for as in [`CoapPeer::find`].
    pub fn readiness(self, folder: Option<&Path>) -> Readiness {
        readiness_of(self.find(folder))
    }
}

impl fmt::Display for CoapPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
