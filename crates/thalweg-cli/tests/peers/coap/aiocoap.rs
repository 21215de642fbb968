//! aiocoap, by `peers/coap-tests/client.py` and `server.py`.

mod connections;

use std::net::SocketAddr;
use std::process::Command;

use thalweg_coap::message::Code;

use super::{
    asking, check_amplification, check_found, command, free_address, put_long_note, served_pair, setting, source, steps,
};
use crate::dissector::Capture;
use crate::host::Host;
use crate::program::Program;

fn python(host: Option<&Host>, script: &str) -> Command {
    let mut command = command(host, &setting("THALWEG_AIOCOAP_PYTHON"));
    command.arg("-u").arg(source(script));
    command
}

#[track_caller]
fn serve(host: Option<&Host>, address: SocketAddr, group_interface: Option<&str>) -> Program {
    let mut command = python(host, "server.py");
    command.arg(address.to_string()).args(group_interface);
    let mut server = Program::start_with_input("aiocoap's server", &command);
    server.expect_text("serving");
    server
}

#[test]
fn its_client_uses_our_server() {
    steps::check("aiocoap", |uri| {
        let mut command = python(None, "client.py");
        command.args(["all", uri]);
        command
    });
}

#[test]
fn our_client_uses_its_server() {
    let address = free_address();
    let server = serve(None, address, None);
    // It leaves the critical options of a request to its applications.
    asking::check("aiocoap", address, Code::CONTENT, asking::Conduct::Standard);
    server.finish();
}

#[test]
fn its_client_reads_a_long_text_over_a_network_within_the_bound_for_unproved_addresses() {
    let (left, right, server) = served_pair();
    let text = put_long_note(&left);
    let capture = Capture::start(Some(&right), "eth0", "coap-aiocoap-network", "udp port 5683");
    let mut client = python(Some(&right), "client.py");
    let said = Program::start("aiocoap", client.args(["get", "coap://10.77.0.1/note"])).finish().well();
    assert_eq!(said.lines, [format!("get\t2.05\t{text}")]);
    let packets = capture.stop();
    packets.check_well_formed();
    check_amplification(&packets);
    server.interrupt().well();
}

#[test]
fn its_server_is_found_by_the_group() {
    let (left, right, server) = served_pair();
    let peer = serve(Some(&right), ([0, 0, 0, 0], 5683).into(), Some("eth0"));
    check_found(&left, "/hello rt=lamp");
    peer.finish();
    server.interrupt().well();
}
