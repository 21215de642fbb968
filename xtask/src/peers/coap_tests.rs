//! Clients and servers of other CoAP middleware for the tests, by the programs in `peers/coap-tests`.

use std::ffi::OsString;
use std::process::Command;

use super::{TestPeer, californium, coap, debian_package, folder};
use crate::Outcome;
use crate::workspace::{has, root, run};

/// All of them.
pub const PEERS: [TestPeer; 5] = [
    TestPeer { name: "libcoap", prepare: libcoap },
    TestPeer { name: "aiocoap", prepare: aiocoap },
    TestPeer { name: "californium", prepare: californium },
    TestPeer { name: "node_coap", prepare: node_coap },
    TestPeer { name: "go_coap", prepare: go_coap },
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

/// The package `coap` for Node.js.
fn node_coap() -> Outcome<Vec<(&'static str, OsString)>> {
    let (folder, modules) = (folder().join("node-coap"), folder().join("node-coap/node_modules"));
    if !modules.join("coap").exists() {
        if !has("node") || !has("npm") {
            return Err("node or npm is missing: apt-get install nodejs npm".to_owned());
        }
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut command = Command::new("npm");
        run(command.args(["install", "--silent", "--no-save", "--prefix"]).arg(&folder).arg(NODE_COAP))?;
    }
    Ok(vec![("THALWEG_NODE_COAP", modules.into())])
}

const NODE_COAP: &str = "coap@1.5.0";

fn californium() -> Outcome<Vec<(&'static str, OsString)>> {
    let source = root().join("peers/coap-tests");
    let sources = ["Body.java", "Client.java", "Dtls.java", "Server.java"].map(|name| source.join(name));
    let class_path = californium::compile(&sources, &folder().join("coap-tests/classes"))?;
    Ok(vec![("THALWEG_CALIFORNIUM", class_path.into())])
}

/// The program with go-coap, by the Go compiler in the search path or where Go's own packages put it.
fn go_coap() -> Outcome<Vec<(&'static str, OsString)>> {
    let program = folder().join("go-coap/coap-go");
    let compilers = ["go", "/usr/local/go/bin/go"];
    let go =
        compilers.into_iter().find(|go| has(go)).ok_or("go is missing: Go 1.26 or later from https://go.dev/dl")?;
    let mut command = Command::new(go);
    command.arg("-C").arg(root().join("peers/coap-go")).args(["build", "-mod=readonly", "-trimpath", "-o"]);
    // Its version control is not asked for the state of the whole repository.
    run(command.arg(&program).arg(".").env("GOFLAGS", "-buildvcs=false"))?;
    Ok(vec![("THALWEG_GO_COAP", program.into())])
}
