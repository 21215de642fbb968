//! aiocoap over TCP and WebSocket.

use std::net::SocketAddr;

use thalweg_coap::credentials::Credentials;
use thalweg_coap::endpoint::{Confirmability, EndpointEvent};
use thalweg_coap::identity::Transport;
use thalweg_coap::interaction::requester::Requester;
use thalweg_coap::message::{Code, Observe, RequestBuf};

use super::super::{body, free_address, steps};
use super::python;
use crate::program::{PATIENCE, Program};

#[test]
fn its_client_uses_our_server_over_tcp_and_web_sockets() {
    for transport in [Transport::Tcp, Transport::WebSocket] {
        steps::check_over("aiocoap", transport, |uri| {
            let mut command = python(None, "client.py");
            command.args(["all", uri]);
            command
        });
    }
}

/// A free port of loopback, not above `port_max`.
fn address_below(port_max: u16) -> SocketAddr {
    std::iter::repeat_with(free_address).find(|address| address.port() <= port_max).expect("there are many")
}

/// How far above the port that it is given it serves WebSocket.
const WEB_ABOVE: u16 = 3000;

#[test]
fn our_client_uses_its_server_over_tcp_and_web_sockets() {
    for (transport, name, above) in [(Transport::Tcp, "tcpserver", 0), (Transport::WebSocket, "ws", WEB_ABOVE)] {
        let address = address_below(u16::MAX - above);
        let mut command = python(None, "server.py");
        command.arg(address.to_string()).env("AIOCOAP_SERVER_TRANSPORT", name);
        let mut server = Program::start_with_input("aiocoap's server", &command);
        server.expect_text("serving");
        let at = (address.ip(), address.port() + above).into();
        let mut client =
            Requester::open(transport, at, "127.0.0.1", &Credentials::default(), PATIENCE).expect("connected");
        let mut ask = |request: RequestBuf| {
            let answer = client.exchange(request, Confirmability::Confirmable, PATIENCE);
            answer.unwrap_or_else(|error| panic!("{transport}: {error}"))
        };
        assert_eq!(&*ask(RequestBuf::get("/hello")).payload, b"hello world");
        assert_eq!(&*ask(RequestBuf::get("/slow?ms=1500")).payload, b"waited");
        assert_eq!(ask(RequestBuf::get("/missing")).code, Code::NOT_FOUND);
        assert_eq!(ask(RequestBuf::put("/body", body())).code, Code::CHANGED);
        assert!(*ask(RequestBuf::get("/body")).payload == body()[..]);
        let request = RequestBuf::get("/note").with_observe(Observe::Register);
        let id = client.send(request, Confirmability::Confirmable).expect("sent");
        for text in ["", "one", "two"] {
            loop {
                match client.next(PATIENCE).expect("the connection works") {
                    Some(EndpointEvent::Response { request, response, .. }) if request == id => {
                        assert_eq!(&*response.payload, text.as_bytes());
                        break;
                    }
                    Some(_) => {}
                    None => panic!("no state came"),
                }
            }
            let next = if text.is_empty() { "one" } else { "two" };
            client.send(RequestBuf::put("/note", next), Confirmability::Confirmable).expect("sent");
        }
        drop(client);
        server.finish();
    }
}
