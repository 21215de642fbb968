//! Clients and servers of other CoAP middleware for the tests, by the programs in `peers/coap-tests`.

use std::ffi::OsString;

use super::{californium, coap, debian_package, folder};
use crate::Outcome;
use crate::workspace::{has, root};

/// One of the middleware that the tests meet.
pub struct CoapPeer {
    /// The name of its tests.
    pub name: &'static str,
    /// Sets it up and names it in environment variables.
    pub prepare: fn() -> Outcome<Vec<(&'static str, OsString)>>,
}

/// All of them.
pub const PEERS: [CoapPeer; 3] = [
    CoapPeer { name: "libcoap", prepare: libcoap },
    CoapPeer { name: "aiocoap", prepare: aiocoap },
    CoapPeer { name: "californium", prepare: californium },
];

fn libcoap() -> Outcome<Vec<(&'static str, OsString)>> {
    if !has("coap-client-notls") || !has("coap-server-notls") {
        debian_package("libcoap3-bin")?;
    }
    Ok(Vec::new())
}

fn aiocoap() -> Outcome<Vec<(&'static str, OsString)>> {
    Ok(vec![("THALWEG_AIOCOAP_PYTHON", coap::aiocoap()?.into())])
}

fn californium() -> Outcome<Vec<(&'static str, OsString)>> {
    let source = root().join("peers/coap-tests");
    let sources = ["Body.java", "Client.java", "Server.java"].map(|name| source.join(name));
    let class_path = californium::compile(&sources, &folder().join("coap-tests/classes"))?;
    Ok(vec![("THALWEG_CALIFORNIUM", class_path.into())])
}
