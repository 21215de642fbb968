//! `coap serve` and its clients over DTLS, TCP, TLS and WebSocket, in processes of their own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::ChildStdout;
use std::time::Duration;

use crate::program::{Running, Said, TestFolder, command, run};

/// Files with keys.
fn keys() -> TestFolder {
    let keys = TestFolder::new();
    let key = |identity: &str, key: &str| format!(r#"{{"identity": "{identity}", "key": "{key}"}}"#);
    keys.write("all.json", &format!("[{}, {}]", key("porter", "01"), key("guest", "02")));
    keys.write("porter.json", &key("porter", "01"));
    keys.write("guest.json", &key("guest", "02"));
    keys.write("forger.json", &key("porter", "02"));
    keys.write("moving.json", r#"{"identity": "a", "key": "01", "connection_id": "01"}"#);
    keys.write(
        "context.json",
        r#"{"master_secret": "000102030405060708090a0b0c0d0e0f", "sender_id": "00", "recipient_id": "01"}"#,
    );
    keys
}

fn certificate(name: &str) -> String {
    format!("{}/../thalweg-coap/testdata/{name}", env!("CARGO_MANIFEST_DIR"))
}

struct Serving {
    running: Running,
    output: BufReader<ChildStdout>,
    uris: Vec<String>,
}

impl Serving {
    /// A server with `options` beside plain CoAP, which serves so many addresses.
    #[track_caller]
    fn start(options: &[&str], addresses: usize) -> Serving {
        let mut running = Running::start(command(&[&["coap", "serve", "--bind", "127.0.0.1:0"], options].concat()));
        let mut output = running.stdout();
        let mut uri = || {
            let mut line = String::new();
            output.read_line(&mut line).expect("a line");
            line.trim().strip_prefix("serving ").expect("an address").to_owned()
        };
        let uris = (0..addresses).map(|_| uri()).collect();
        Serving { running, output, uris }
    }

    /// With every transport and the certificates of the tests.
    #[track_caller]
    fn everywhere() -> Serving {
        let (own, key) = (certificate("server.pem"), certificate("server-key.pem"));
        let schemes = ["coap+tcp", "coaps+tcp", "coap+ws", "coaps+ws"];
        let uris = schemes.map(|scheme| format!("{scheme}://127.0.0.1:0"));
        let listeners: Vec<&str> = uris.iter().flat_map(|uri| ["--listen", uri]).collect();
        Serving::start(&[&["--certificate", &own, "--private-key", &key], &listeners[..]].concat(), 5)
    }

    fn end(self) {
        self.running.signal("INT");
        self.running.finish().expect_code(0);
    }
}

fn ask(verb: &str, uri: &str, path: &str, more: &[&str]) -> Said {
    run(&[&["coap", verb, &format!("{uri}{path}"), "--timeout", "50"], more].concat())
}

#[test]
fn a_session_is_for_those_with_a_key_and_rules_tell_them_apart() {
    let keys = keys();
    let all = keys.path("all.json");
    let rules = ["--allow", "/note any psk:porter", "--allow", "/note get known"];
    let server = Serving::start(&[&["--coaps", "127.0.0.1:0", "--psk", &all], &rules[..]].concat(), 2);
    let [plain, secure] = [&server.uris[0], &server.uris[1]];
    let with = |name: &str| ["--psk".to_owned(), keys.path(name)];
    let ask_as = |name: &str, verb: &str, more: &[&str]| {
        let with = with(name);
        ask(verb, secure, "/note", &[&[&*with[0], &*with[1]], more].concat())
    };
    ask_as("porter.json", "put", &["hello"]).expect_code(0);
    assert_eq!(ask_as("guest.json", "get", &[]).expect_code(0).stdout, "hello\n");
    let refused = ask_as("guest.json", "put", &["no"]).expect_code(1);
    assert!(refused.stderr.contains("4.03"), "{}", refused.stderr);
    let refused = ask("get", plain, "/note", &[]).expect_code(1);
    assert!(refused.stderr.contains("4.01"), "{}", refused.stderr);
    assert_eq!(ask("get", plain, "/request", &[]).expect_code(0).stdout, "hello world\n");
    let refused = ask_as("forger.json", "get", &[]).expect_code(1);
    assert!(refused.stderr.contains("credentials"), "{}", refused.stderr);
    let refused = ask_as("moving.json", "get", &[]).expect_code(2);
    assert!(refused.stderr.contains("connection_id is not supported"), "{}", refused.stderr);
    server.end();
}

#[test]
fn strangers_at_the_port_for_sessions_disturb_nobody() {
    let keys = keys();
    let server = Serving::start(&["--coaps", "127.0.0.1:0", "--psk", &keys.path("all.json")], 2);
    let secure = &server.uris[1];
    let porter = keys.path("porter.json");
    let observed = ["coap", "observe", &format!("{secure}/note"), "--psk", &porter, "--count", "2", "--timeout", "50"];
    let mut observer = Running::start(command(&observed));
    let mut states = observer.stdout();
    let mut state = String::new();
    states.read_line(&mut state).expect("the first state");
    let address = secure.strip_prefix("coaps://").expect("the scheme");
    for port in 0..50 {
        let stranger = UdpSocket::bind("127.0.0.1:0").expect("a port");
        for kind in 18..64_u8 {
            let mut datagram = vec![kind, 0xfe, 0xfd, 0, port % 3, 0, 0, 0, 0, 0, kind, 0, 40];
            datagram.extend_from_slice(&[port; 40]);
            // What does not fit into the server's buffer is lost.
            let _ = stranger.send_to(&datagram, address);
        }
    }
    ask("put", secure, "/note", &["new", "--psk", &porter]).expect_code(0);
    state.clear();
    states.read_line(&mut state).expect("the second state");
    assert_eq!(state, "new\n");
    observer.finish().expect_code(0);
    server.end();
}

#[test]
fn every_connection_carries_requests_bodies_and_observations() {
    let server = Serving::everywhere();
    let trust = ["--trust", &certificate("authority.pem")];
    let large = "y".repeat(100_000);
    for uri in &server.uris[1..] {
        assert_eq!(ask("get", uri, "/request", &trust).expect_code(0).stdout, "hello world\n", "{uri}");
        assert_eq!(ask("get", uri, "/slow?ms=50", &trust).expect_code(0).stdout, "waited 50 ms\n", "{uri}");
        ask("put", uri, "/note", &[&[&*large], &trust[..]].concat()).expect_code(0);
        assert_eq!(ask("get", uri, "/note", &trust).expect_code(0).stdout.trim_end(), large, "{uri}");
        let words = ["coap", "observe", &format!("{uri}/note"), "--count", "2", "--timeout", "50", trust[0], trust[1]];
        let mut observer = Running::start(command(&words));
        let mut states = observer.stdout();
        let mut state = String::new();
        states.read_line(&mut state).expect("the first state");
        ask("put", uri, "/note", &[&["new"], &trust[..]].concat()).expect_code(0);
        state.clear();
        states.read_line(&mut state).expect("the second state");
        assert_eq!(state, "new\n", "{uri}");
        observer.finish().expect_code(0);
        let missing = ask("get", uri, "/missing", &trust).expect_code(1);
        assert!(missing.stderr.contains("4.04"), "{}", missing.stderr);
    }
    let refused = ask("get", &server.uris[2], "/request", &["--trust", &certificate("client.pem")]).expect_code(1);
    assert!(refused.stderr.contains("certificate"), "{}", refused.stderr);
    server.end();
}

#[test]
fn connections_that_say_nothing_or_nonsense_disturb_nobody() {
    let server = Serving::everywhere();
    let address = |uri: &str| uri.split_once("://").expect("a scheme").1.to_owned();
    let mut silent = Vec::new();
    for uri in &server.uris[1..] {
        silent.extend((0..50).map(|_| TcpStream::connect(address(uri)).expect("connected")));
        let mut nonsense = TcpStream::connect(address(uri)).expect("connected");
        nonsense.write_all(&[0x5a; 5000]).expect("sent");
        nonsense.set_read_timeout(Some(Duration::from_secs(50))).expect("set");
        let mut said = Vec::new();
        // It is closed, in order or not; a timeout would be an error of another kind.
        if let Err(error) = nonsense.read_to_end(&mut said) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{uri}");
        }
    }
    let trust = ["--trust", &certificate("authority.pem")];
    for uri in &server.uris[1..] {
        assert_eq!(ask("get", uri, "/request", &trust).expect_code(0).stdout, "hello world\n", "{uri}");
    }
    drop(silent);
    server.end();
}

#[test]
fn what_a_transport_cannot_do_is_refused_with_the_reason() {
    let keys = keys();
    let server = Serving::start(&["--listen", "coap+tcp://127.0.0.1:0"], 2);
    let protected = ask("get", &server.uris[1], "/request", &["--oscore", &keys.path("context.json")]).expect_code(2);
    assert!(protected.stderr.contains("OSCORE is not supported over coap+tcp"), "{}", protected.stderr);
    let bare = run(&["coap", "serve", "--bind", "127.0.0.1:0", "--coaps", "127.0.0.1:0"]).expect_code(1);
    assert!(bare.stderr.contains("pre-shared keys or a certificate"), "{}", bare.stderr);
    let listen = ["coap", "serve", "--bind", "127.0.0.1:0", "--listen", "coaps+tcp://127.0.0.1:0"];
    let bare = run(&[&listen[..], &["--psk", &keys.path("all.json")]].concat()).expect_code(1);
    assert!(bare.stderr.contains("TLS needs a certificate"), "{}", bare.stderr);
    let unknown = run(&["coap", "get", "http://127.0.0.1/"]).expect_code(2);
    assert!(unknown.stderr.contains("the scheme http is not supported"), "{}", unknown.stderr);
    server.end();
}

#[test]
fn sessions_and_connections_are_in_the_statistics() {
    let keys = keys();
    let all = keys.path("all.json");
    let listen = ["--listen", "coap+tcp://127.0.0.1:0", "--statistics", "0.1", "--json"];
    let mut server = Serving::start(&[&["--coaps", "127.0.0.1:0", "--psk", &all], &listen[..]].concat(), 3);
    ask("get", &server.uris[1], "/request", &["--psk", &keys.path("porter.json")]).expect_code(0);
    ask("get", &server.uris[2], "/request", &[]).expect_code(0);
    let mut line = String::new();
    while !(line.contains("\"established\":1") && line.contains("\"opened\":1")) {
        line.clear();
        assert!(server.output.read_line(&mut line).expect("a line") > 0, "it goes on");
    }
    server.end();
}
