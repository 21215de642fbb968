//! libcoap over DTLS, TCP and TLS, by OpenSSL and by GnuTLS.

use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::time::Duration;

use thalweg_coap::credentials::{Credentials, OwnCertificate, PresharedKey, Trust};
use thalweg_coap::endpoint::{Confirmability, EndpointEvent};
use thalweg_coap::identity::Transport;
use thalweg_coap::interaction::client::ClientError;
use thalweg_coap::interaction::requester::Requester;
use thalweg_coap::message::{Code, Observe, RequestBuf, Response};

use super::super::body;
use super::super::serving::{IDENTITY, KEY, Serving, certificate};
use crate::program::{PATIENCE, Program};

const LIBRARIES: [&str; 2] = ["openssl", "gnutls"];

#[track_caller]
fn said(library: &str, words: &[&str], uri: &str) -> String {
    let mut command = Command::new(format!("coap-client-{library}"));
    command.args(words).arg(uri);
    Program::start("coap-client", &command).finish().well().lines.join("\n")
}

#[test]
fn its_client_has_sessions_with_our_server_by_a_key_and_by_certificates() {
    let serving = Serving::start();
    let uri = |path: &str| serving.uri_over(Transport::Dtls, path);
    let trust = certificate("authority.pem");
    let trust = trust.to_str().expect("a plain path");
    for library in LIBRARIES {
        let key = ["-u", IDENTITY, "-k", KEY];
        assert_eq!(said(library, &key, &uri("/hello")), "hello world");
        said(library, &[&key[..], &["-m", "put", "-e", library]].concat(), &uri("/note"));
        assert_eq!(serving.note(), library);
        assert_eq!(said(library, &key, &uri("/slow?ms=1500")), "waited");
        assert_eq!(said(library, &["-R", trust, "-C", trust], &uri("/hello")), "hello world", "{library}");
        let wrong = said(library, &["-u", IDENTITY, "-k", "wrong", "-B", "5"], &uri("/hello"));
        assert!(!wrong.contains("hello world"), "{wrong}");
    }
}

#[test]
fn its_client_observes_our_server_within_a_session() {
    let serving = Serving::start();
    serving.change_note("zero");
    let mut command = Command::new("coap-client-openssl");
    command.args(["-u", IDENTITY, "-k", KEY, "-s", "5", "-w"]).arg(serving.uri_over(Transport::Dtls, "/note"));
    let mut observer = Program::start("coap-client", &command);
    observer.expect_text("zero");
    serving.wait_for_observers(1);
    for text in ["one", "two", "three"] {
        serving.change_note(text);
        observer.expect_text(text);
    }
    observer.finish().well();
    serving.wait_for_observers(0);
}

#[test]
fn its_client_uses_our_server_over_tcp_and_tls() {
    let serving = Serving::start();
    let trust = certificate("authority.pem");
    let trust = trust.to_str().expect("a plain path");
    for library in LIBRARIES {
        for transport in [Transport::Tcp, Transport::Tls] {
            let uri = |path: &str| serving.uri_over(transport, path);
            let words = ["-R", trust, "-C", trust];
            assert_eq!(said(library, &words, &uri("/hello")), "hello world", "{library} {transport}");
            said(library, &[&words[..], &["-m", "put", "-e", library]].concat(), &uri("/note"));
            assert_eq!(serving.note(), library);
        }
    }
}

/// A client of libcoap's server at the port of a URI without one: by GnuTLS, that server does not agree on a protocol (ALPN),
/// which port 5684 alone allows (RFC 8323 §8.2).
fn client(server: Ipv4Addr, transport: Transport, key: &str) -> Result<Requester, ClientError> {
    let server = (server, transport.default_port()).into();
    let credentials = match transport {
        Transport::Dtls => {
            let key = PresharedKey { identity: IDENTITY.into(), key: key.as_bytes().to_vec().into() };
            Credentials { keys: [key].into_iter().collect(), ..Credentials::default() }
        }
        _ => Credentials {
            trust: Some(Trust::load(&certificate("authority.pem")).expect("read")),
            ..Credentials::default()
        },
    };
    Requester::open(transport, server, "127.0.0.1", &credentials, PATIENCE)
}

#[track_caller]
fn ask(client: &mut Requester, request: RequestBuf) -> Response {
    let said = format!("{:?} {} with {} bytes", request.code(), request.view().path(), request.view().payload.len());
    let answer = client.exchange(request, Confirmability::Confirmable, PATIENCE);
    answer.unwrap_or_else(|error| panic!("{said}: {error}"))
}

/// Waits until a server of libcoap that says nothing when it listens takes connections.
#[track_caller]
fn connect(server: Ipv4Addr, transport: Transport) -> Requester {
    let start = std::time::Instant::now();
    loop {
        match client(server, transport, KEY) {
            Ok(client) => return client,
            Err(error) => assert!(start.elapsed() < PATIENCE, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn our_client_uses_its_server_over_dtls_tcp_and_tls() {
    for (number, library) in LIBRARIES.into_iter().enumerate() {
        // An address of this host alone, where nothing else has these ports.
        let address = Ipv4Addr::new(127, 83, 23, 1 + number as u8);
        let mut command = Command::new(format!("coap-server-{library}"));
        command.args(["-A", &address.to_string(), "-d", "10", "-k", KEY]);
        command.arg("-c").arg(certificate("server.pem")).arg("-j").arg(certificate("server-key.pem"));
        let server = Program::start("coap-server", &command);
        for transport in [Transport::Tcp, Transport::Dtls, Transport::Tls] {
            let mut client = connect(address, transport);
            let greeting = ask(&mut client, RequestBuf::get("/"));
            assert!(
                String::from_utf8_lossy(&greeting.payload).contains("libcoap"),
                "{library} {transport} {greeting:?}"
            );
            let path = format!("/{transport}-{library}");
            assert_eq!(ask(&mut client, RequestBuf::put(&path, "made")).code, Code::CREATED);
            let large = &body()[..200_000];
            assert_eq!(ask(&mut client, RequestBuf::put(&path, large)).code, Code::CHANGED, "{library} {transport}");
            // By GnuTLS it does not go on with a message of which a part was sent; a record has 16 KiB at most.
            let is_stuck = (library, transport) == ("gnutls", Transport::Tls);
            let large = if is_stuck { &large[..10_000] } else { large };
            assert_eq!(ask(&mut client, RequestBuf::put(&path, large)).code, Code::CHANGED);
            assert!(*ask(&mut client, RequestBuf::get(&path)).payload == *large, "{library} {transport}");
            let request = RequestBuf::get("/time").with_observe(Observe::Register);
            client.send(request, Confirmability::Confirmable).expect("sent");
            for _ in 0..2 {
                let event = client.next(PATIENCE).expect("the transport works");
                assert!(matches!(event, Some(EndpointEvent::Response { .. })), "{event:?}");
            }
        }
        let refused = client(address, Transport::Dtls, "wrong")
            .and_then(|mut client| client.exchange(RequestBuf::get("/"), Confirmability::Confirmable, PATIENCE));
        assert!(refused.is_err(), "{refused:?}");
        server.interrupt();
    }
}

/// A client of libcoap's server with the certificate of the tests' client, which believes the server if this file says so.
#[track_caller]
fn certified(server: Ipv4Addr, trust: &str) -> Requester {
    let own = OwnCertificate::load(&certificate("client.pem"), &certificate("client-key.pem"));
    let trust = Trust::load(&certificate(trust)).expect("read");
    let credentials =
        Credentials { certificate: Some(own.expect("read")), trust: Some(trust), ..Credentials::default() };
    let address = (server, Transport::Dtls.default_port()).into();
    Requester::open(Transport::Dtls, address, "127.0.0.1", &credentials, PATIENCE).expect("a socket")
}

#[test]
fn our_client_has_sessions_with_its_server_by_certificates_and_believes_no_other_authority() {
    for (number, library) in LIBRARIES.into_iter().enumerate() {
        let address = Ipv4Addr::new(127, 83, 24, 1 + number as u8);
        let mut command = Command::new(format!("coap-server-{library}"));
        command.args(["-A", &address.to_string(), "-d", "10"]);
        command.arg("-c").arg(certificate("server.pem")).arg("-j").arg(certificate("server-key.pem"));
        let server = Program::start("coap-server", command.arg("-R").arg(certificate("authority.pem")));
        let start = std::time::Instant::now();
        while let Err(error) = TcpStream::connect((address, Transport::Tcp.default_port())) {
            assert!(start.elapsed() < PATIENCE, "{error}");
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut client = certified(address, "authority.pem");
        let greeting = ask(&mut client, RequestBuf::get("/"));
        assert!(String::from_utf8_lossy(&greeting.payload).contains("libcoap"), "{library} {greeting:?}");
        let large = &body()[..200_000];
        assert_eq!(ask(&mut client, RequestBuf::put("/made", large)).code, Code::CREATED, "{library}");
        assert!(*ask(&mut client, RequestBuf::get("/made")).payload == *large, "{library}");
        let request = RequestBuf::get("/time").with_observe(Observe::Register);
        client.send(request, Confirmability::Confirmable).expect("sent");
        for _ in 0..2 {
            let event = client.next(PATIENCE).expect("the session goes on");
            assert!(matches!(event, Some(EndpointEvent::Response { .. })), "{event:?}");
        }
        let mut wary = certified(address, "client.pem");
        let refused = wary.exchange(RequestBuf::get("/"), Confirmability::Confirmable, PATIENCE);
        assert!(refused.as_ref().is_err_and(|error| error.to_string().contains("not believed")), "{refused:?}");
        server.interrupt();
    }
}
