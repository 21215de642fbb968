//! Californium over DTLS, by Scandium.

use thalweg_coap::credentials::{Credentials, PresharedKey};
use thalweg_coap::endpoint::Confirmability;
use thalweg_coap::identity::Transport;
use thalweg_coap::interaction::requester::Requester;
use thalweg_coap::message::{Code, RequestBuf};

use super::super::serving::{IDENTITY, KEY};
use super::super::{body, free_address, steps};
use super::java;
use crate::program::{PATIENCE, Program};

#[test]
fn its_client_uses_our_server_over_dtls() {
    steps::check_over("californium", Transport::Dtls, |uri| {
        let mut command = java(None, "Client");
        command.args(["all", uri, IDENTITY, KEY]);
        command
    });
}

#[test]
fn our_client_uses_its_server_over_dtls() {
    let (plain, secure) = (free_address(), free_address());
    let mut command = java(None, "Server");
    command.args([&plain.to_string(), &secure.port().to_string(), IDENTITY, KEY]);
    let mut server = Program::start_with_input("Californium's server", &command);
    server.expect_text("serving");
    let key = PresharedKey { identity: IDENTITY.into(), key: KEY.as_bytes().to_vec().into() };
    let credentials = Credentials { keys: [key].into_iter().collect(), ..Credentials::default() };
    let mut client = Requester::open(Transport::Dtls, secure, "127.0.0.1", &credentials, PATIENCE).expect("opened");
    let mut ask = |request: RequestBuf| {
        let answer = client.exchange(request, Confirmability::Confirmable, PATIENCE);
        answer.unwrap_or_else(|error| panic!("{error}"))
    };
    assert_eq!(&*ask(RequestBuf::get("/hello")).payload, b"hello world");
    assert_eq!(&*ask(RequestBuf::get("/slow?ms=1500")).payload, b"waited");
    assert_eq!(ask(RequestBuf::put("/note", "start")).code, Code::CHANGED);
    assert_eq!(ask(RequestBuf::put("/body", body())).code, Code::CHANGED);
    assert!(*ask(RequestBuf::get("/body")).payload == body()[..]);
    server.finish();
}
