//! Californium over DTLS, by Scandium.

use std::net::SocketAddr;

use thalweg_coap::credentials::{Credentials, OwnCertificate, PresharedKey, Trust};
use thalweg_coap::endpoint::Confirmability;
use thalweg_coap::identity::Transport;
use thalweg_coap::interaction::requester::Requester;
use thalweg_coap::message::{Code, RequestBuf};

use super::super::serving::{IDENTITY, KEY, certificate};
use super::super::{body, free_address, steps};
use super::java;
use crate::program::{PATIENCE, Program};

/// What Californium's ends are told of a certificate of the tests: its file, that of its key, and the authority's.
fn files(name: &str) -> Vec<String> {
    let files = [format!("{name}.pem"), format!("{name}-key.pem"), "authority.pem".to_owned()];
    files.iter().map(|file| certificate(file).to_str().expect("a plain path").to_owned()).collect()
}

fn key() -> Vec<String> {
    vec![IDENTITY.to_owned(), KEY.to_owned()]
}

#[test]
fn its_client_uses_our_server_over_dtls_by_a_key_and_by_certificates() {
    for credentials in [key(), files("client")] {
        steps::check_over("californium", Transport::Dtls, |uri| {
            let mut command = java(None, "Client");
            command.args(["all", uri]).args(&credentials);
            command
        });
    }
}

/// Its server with DTLS under these credentials, and the address.
#[track_caller]
fn serve(credentials: &[String]) -> (Program, SocketAddr) {
    let (plain, secure) = (free_address(), free_address());
    let mut command = java(None, "Server");
    command.args([plain.to_string(), secure.port().to_string()]).args(credentials);
    let mut server = Program::start_with_input("Californium's server", &command);
    server.expect_text("serving");
    (server, secure)
}

fn client(server: SocketAddr, credentials: &Credentials) -> Requester {
    Requester::open(Transport::Dtls, server, "127.0.0.1", credentials, PATIENCE).expect("opened")
}

/// Uses its server within a session.
#[track_caller]
fn check_use(server: SocketAddr, credentials: &Credentials) {
    let mut client = client(server, credentials);
    let mut ask = |request: RequestBuf| {
        let answer = client.exchange(request, Confirmability::Confirmable, PATIENCE);
        answer.unwrap_or_else(|error| panic!("{error}"))
    };
    assert_eq!(&*ask(RequestBuf::get("/hello")).payload, b"hello world");
    assert_eq!(&*ask(RequestBuf::get("/slow?ms=1500")).payload, b"waited");
    assert_eq!(ask(RequestBuf::put("/note", "start")).code, Code::CHANGED);
    assert_eq!(ask(RequestBuf::put("/body", body())).code, Code::CHANGED);
    assert!(*ask(RequestBuf::get("/body")).payload == body()[..]);
}

#[test]
fn our_client_uses_its_server_over_dtls() {
    let (server, address) = serve(&key());
    let key = PresharedKey { identity: IDENTITY.into(), key: KEY.as_bytes().to_vec().into() };
    check_use(address, &Credentials { keys: [key].into_iter().collect(), ..Credentials::default() });
    server.finish();
}

#[test]
fn our_client_uses_its_server_by_certificates_and_believes_no_other_authority() {
    let (server, address) = serve(&files("server"));
    let credentials = |trust: &str| {
        let own = OwnCertificate::load(&certificate("client.pem"), &certificate("client-key.pem"));
        let trust = Trust::load(&certificate(trust)).expect("read");
        Credentials { certificate: Some(own.expect("read")), trust: Some(trust), ..Credentials::default() }
    };
    check_use(address, &credentials("authority.pem"));
    let mut wary = client(address, &credentials("client.pem"));
    let refused = wary.exchange(RequestBuf::get("/hello"), Confirmability::Confirmable, PATIENCE);
    assert!(refused.as_ref().is_err_and(|error| error.to_string().contains("not believed")), "{refused:?}");
    server.finish();
}
