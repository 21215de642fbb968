//! Eclipse Californium, by `peers/coap-tests/Client.java` and `Server.java`.

mod sessions;

use std::net::SocketAddr;
use std::process::Command;

use thalweg_coap::message::Code;

use super::{
    asking, check_amplification, check_found, command, free_address, put_long_note, served_pair, setting, steps,
};
use crate::dissector::Capture;
use crate::host::Host;
use crate::program::Program;

fn java(host: Option<&Host>, class: &str) -> Command {
    let mut command = command(host, "java");
    // It lives for seconds: the second compiler would cost more than it gains.
    command.args(["-XX:TieredStopAtLevel=1", "-cp", &setting("THALWEG_CALIFORNIUM"), class]);
    command
}

#[track_caller]
fn serve(host: Option<&Host>, address: SocketAddr, group_interface: Option<&str>) -> Program {
    let mut command = java(host, "Server");
    command.arg(address.to_string()).args(group_interface);
    let mut server = Program::start_with_input("Californium's server", &command);
    server.expect_text("serving");
    server
}

#[test]
fn its_client_uses_our_server() {
    let (others, _) = steps::check("californium", |uri| {
        let mut command = java(None, "Client");
        command.args(["all", uri]);
        command
    });
    assert_eq!(others, ["ping 0.00 true"]);
}

#[test]
fn our_client_uses_its_server() {
    let address = free_address();
    let server = serve(None, address, None);
    asking::check("californium", address, Code::BAD_OPTION, asking::Conduct::Standard);
    server.finish();
}

#[test]
fn its_client_reads_a_long_text_over_a_network_within_the_bound_for_unproved_addresses() {
    let (left, right, server) = served_pair();
    let text = put_long_note(&left);
    let capture = Capture::start(Some(&right), "eth0", "coap-californium-network", "udp port 5683");
    let mut client = java(Some(&right), "Client");
    let said = Program::start("Californium", client.args(["get", "coap://10.77.0.1/note"])).finish().well();
    let lines: Vec<&String> = said.lines.iter().filter(|line| !line.starts_with("! ")).collect();
    assert_eq!(lines, [&format!("get\t2.05\t{text}")]);
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
