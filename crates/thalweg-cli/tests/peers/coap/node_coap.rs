//! node-coap, by `peers/coap-tests/client.js` and `server.js`.

use std::process::Command;

use thalweg_coap::message::Code;

use super::{asking, free_address, setting, source, steps};
use crate::program::Program;

fn node(script: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(source(script)).env("NODE_PATH", setting("THALWEG_NODE_COAP"));
    command
}

#[test]
fn its_client_uses_our_server() {
    steps::check("node-coap", |uri| {
        let mut command = node("client.js");
        command.args(["all", uri]);
        command
    });
}

#[test]
fn our_client_uses_its_server() {
    let address = free_address();
    let mut command = node("server.js");
    command.arg(address.to_string());
    let mut server = Program::start_with_input("node-coap's server", &command);
    server.expect_text("serving");
    // It leaves the critical options of a request to its applications.
    asking::check("node-coap", address, Code::CONTENT, asking::Conduct::NodeCoap);
    server.finish();
}
