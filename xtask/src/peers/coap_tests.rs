//! Clients and servers of other CoAP middleware for the tests, by the programs in `peers/coap-tests`.

use std::ffi::OsString;

use super::{TestPeer, californium, coap, debian_package, folder};
use crate::Outcome;
use crate::workspace::{has, root};

/// All of them.
pub const PEERS: [TestPeer; 3] = [
    TestPeer { name: "libcoap", prepare: libcoap },
    TestPeer { name: "aiocoap", prepare: aiocoap },
    TestPeer { name: "californium", prepare: californium },
];

fn libcoap() -> Outcome<Vec<(&'static str, OsString)>> {
    if !has("coap-client-notls") || !has("coap-server-notls") || !has("coap-client-openssl") {
        debian_package("libcoap3-bin")?;
    }
    Ok(Vec::new())
}

fn aiocoap() -> Outcome<Vec<(&'static str, OsString)>> {
    Ok(vec![("THALWEG_AIOCOAP_PYTHON", coap::aiocoap_with_web_sockets()?.into())])
}

fn californium() -> Outcome<Vec<(&'static str, OsString)>> {
    let source = root().join("peers/coap-tests");
    let sources = ["Body.java", "Client.java", "Dtls.java", "Server.java"].map(|name| source.join(name));
    let class_path = californium::compile(&sources, &folder().join("coap-tests/classes"))?;
    Ok(vec![("THALWEG_CALIFORNIUM", class_path.into())])
}
