//! go-coap, by `peers/coap-go`.

use std::net::SocketAddr;
use std::process::Command;

use thalweg_coap::credentials::{Credentials, PresharedKey};
use thalweg_coap::endpoint::{Confirmability, EndpointEvent};
use thalweg_coap::identity::Transport;
use thalweg_coap::interaction::requester::Requester;
use thalweg_coap::message::{Code, Observe, RequestBuf};

use super::serving::{IDENTITY, KEY};
use super::{asking, body, check_amplification, command, free_address, put_long_note, served_pair, setting, steps};
use crate::dissector::Capture;
use crate::host::Host;
use crate::program::{PATIENCE, Program};

fn ask(host: Option<&Host>, steps: &str, uri: &str) -> Command {
    let mut command = command(host, &setting("THALWEG_GO_COAP"));
    command.args(["ask", steps, uri, IDENTITY, KEY]);
    command
}

#[track_caller]
fn serve(transport: Transport, address: SocketAddr) -> Program {
    let mut command = Command::new(setting("THALWEG_GO_COAP"));
    command.args(["serve", &transport.to_string(), &address.to_string(), IDENTITY, KEY]);
    let mut server = Program::start_with_input("go-coap's server", &command);
    server.expect_text("serving");
    server
}

#[test]
fn its_client_uses_our_server() {
    let (others, _) = steps::check("go-coap", |uri| ask(None, "all", uri));
    assert_eq!(others, ["ping 0.00 true"]);
}

#[test]
fn its_client_uses_our_server_over_tcp_and_dtls() {
    for transport in [Transport::Tcp, Transport::Dtls] {
        steps::check_over("go-coap", transport, |uri| ask(None, "all", uri));
    }
}

#[test]
fn our_client_uses_its_server() {
    let address = free_address();
    let server = serve(Transport::Udp, address);
    asking::check("go-coap", address, Code::BAD_OPTION, asking::Conduct::Standard);
    server.finish();
}

#[test]
fn our_client_uses_its_server_over_tcp_and_dtls() {
    let key = PresharedKey { identity: IDENTITY.into(), key: KEY.as_bytes().to_vec().into() };
    let credentials = Credentials { keys: [key].into_iter().collect(), ..Credentials::default() };
    for transport in [Transport::Tcp, Transport::Dtls] {
        let address = free_address();
        let server = serve(transport, address);
        let mut client = Requester::open(transport, address, "127.0.0.1", &credentials, PATIENCE).expect("opened");
        let mut ask = |request: RequestBuf| {
            let answer = client.exchange(request, Confirmability::Confirmable, PATIENCE);
            answer.unwrap_or_else(|error| panic!("{transport}: {error}"))
        };
        assert_eq!(&*ask(RequestBuf::get("/hello")).payload, b"hello world");
        assert_eq!(&*ask(RequestBuf::get("/slow?ms=1500")).payload, b"waited");
        assert_eq!(ask(RequestBuf::get("/missing")).code, Code::NOT_FOUND);
        assert_eq!(ask(asking::unknown_option("/hello", 65_001)).code, Code::BAD_OPTION);
        assert_eq!(ask(RequestBuf::put("/body", body())).code, Code::CHANGED);
        assert!(*ask(RequestBuf::get("/body")).payload == body()[..]);
        observe(&mut client, transport);
        drop(client);
        server.finish();
    }
}

/// Fails unless each text that is put comes as a state.
#[track_caller]
fn observe(client: &mut Requester, transport: Transport) {
    let request = RequestBuf::get("/note").with_observe(Observe::Register);
    let id = client.send(request, Confirmability::Confirmable).expect("sent");
    for (text, next) in [("", "one"), ("one", "two"), ("two", "three")] {
        loop {
            match client.next(PATIENCE).expect("the connection works") {
                Some(EndpointEvent::Response { request, response, .. }) if request == id => {
                    assert_eq!(&*response.payload, text.as_bytes(), "{transport}");
                    break;
                }
                Some(_) => {}
                None => panic!("{transport}: no state came"),
            }
        }
        client.send(RequestBuf::put("/note", next), Confirmability::Confirmable).expect("sent");
    }
}

#[test]
fn its_client_reads_a_long_text_over_a_network_within_the_bound_for_unproved_addresses() {
    let (left, right, server) = served_pair();
    let text = put_long_note(&left);
    let capture = Capture::start(Some(&right), "eth0", "coap-go-network", "udp port 5683");
    let said = Program::start("go-coap", &ask(Some(&right), "get", "coap://10.77.0.1:5683/note")).finish().well();
    assert_eq!(said.lines, [format!("get\t2.05\t{text}")]);
    let packets = capture.stop();
    packets.check_well_formed();
    check_amplification(&packets);
    server.interrupt().well();
}
