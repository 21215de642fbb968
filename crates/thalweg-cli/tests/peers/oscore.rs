//! OSCORE between Thalweg and aiocoap, in both roles: plain and separate responses, observation, bodies in blocks, a
//! restart of the server; and before a dissector that has the keys. `peers/README.md` says what the peer does. libcoap
//! 4.3.1, which Debian packages, has no OSCORE.

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::Program;

const SECRET: &str = "101112131415161718191a1b1c1d1e1f";
const SALT: &str = "9e7ca92223786340";

/// Keys of two ends, in the forms of both programs.
struct Keys(PathBuf);

impl Keys {
    fn new(name: &str) -> Keys {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("oscore-{name}"));
        let _ = fs::remove_dir_all(&folder);
        let keys = Keys(folder);
        let (secret, salt) = (SECRET, SALT);
        for (file, own, other) in [("server", "01", ""), ("client", "", "01")] {
            let directory = keys.0.join(file);
            fs::create_dir_all(&directory).expect("the test's folder is writable");
            let theirs = format!(
                r#"{{"secret_hex": "{secret}", "salt_hex": "{salt}", "sender-id_hex": "{own}",
                "recipient-id_hex": "{other}", "id-context_hex": "37cb"}}"#
            );
            fs::write(directory.join("settings.json"), theirs).expect("written");
            let ours = format!(
                r#"{{"master_secret": "{secret}", "master_salt": "{salt}", "sender_id": "{own}",
                "recipient_id": "{other}", "id_context": "37cb"}}"#
            );
            fs::write(keys.0.join(format!("{file}.json")), ours).expect("written");
        }
        keys
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a name").to_owned()
    }
}

fn aiocoap(arguments: &[&str]) -> Program {
    let python = std::env::var("THALWEG_AIOCOAP_PYTHON").expect("no aiocoap: run `cargo xtask test oscore`");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/oscore-aiocoap/peer.py");
    let mut command = Command::new(python);
    command.arg("-u").arg(script).args(arguments);
    Program::start_with_input("aiocoap", &command)
}

fn thalweg(arguments: &[&str]) -> Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command.arg("coap").args(arguments);
    Program::start("Thalweg", &command)
}

/// A server with everything protected, and its address.
fn serve(keys: &Keys) -> (Program, String) {
    let mut server =
        thalweg(&["serve", "--bind", "127.0.0.1:0", "--oscore", &keys.path("server.json"), "--protected", "/"]);
    let line = server.expect_text("serving coap://");
    (server, line.trim().trim_start_matches("serving ").to_owned())
}

#[test]
fn aiocoap_asks_thalweg() {
    let keys = Keys::new("aiocoap-asks");
    let (server, base) = serve(&keys);
    let size = 2 * 20_000;
    let check = || {
        let said = aiocoap(&["ask", &base, &keys.path("client")]).finish().well();
        let lines: Vec<&str> = said.lines.iter().filter(|line| !line.starts_with("! ")).map(String::as_str).collect();
        let body = format!("body {size}");
        assert_eq!(
            lines,
            [
                "get 2.05 hello world",
                "put 2.04 ",
                "slow 2.05 waited 1500 ms",
                "missing 4.04 no such resource",
                "observe start",
                "notification one",
                "notification two",
                "notification three",
                "up 2.04 ",
                &format!("down 2.05 {body}"),
            ]
        );
    };
    check();
    // Again with the state that the client kept.
    check();
    server.kill();
}

#[test]
fn aiocoap_proves_its_requests_to_a_server_that_was_restarted() {
    let keys = Keys::new("aiocoap-proves");
    // The state of the first server stays, so the second does not know what the first accepted.
    serve(&keys).0.interrupt().well();
    let (server, base) = serve(&keys);
    let said = aiocoap(&["ask", &base, &keys.path("client")]).finish().well();
    assert!(said.lines.iter().any(|line| line == "get 2.05 hello world"), "{:?}", said.lines);
    server.kill();
}

#[test]
fn thalweg_asks_aiocoap() {
    let keys = Keys::new("thalweg-asks");
    let probe = UdpSocket::bind("127.0.0.1:0").expect("bound");
    let port = probe.local_addr().expect("an address").port();
    drop(probe);
    let mut server = aiocoap(&["serve", &port.to_string(), &keys.path("server")]);
    server.expect_text("serving");
    let ask = |verb: &str, path: &str, more: &[&str]| {
        let (uri, file) = (format!("coap://127.0.0.1:{port}{path}"), keys.path("client.json"));
        let said = thalweg(&[&[verb, &uri], more, &["--oscore", &file]].concat()).finish().well();
        said.lines.into_iter().filter(|line| !line.starts_with("! ")).collect::<Vec<_>>().join("\n")
    };
    // aiocoap starts without a replay window and asks for a proof first.
    assert_eq!(ask("get", "/hello", &[]), "hello protected");
    ask("put", "/note", &["start"]);
    assert_eq!(ask("get", "/note", &[]), "start");
    let body = ask("get", "/body", &[]);
    assert_eq!(body.len(), 2 * 20_000);
    ask("put", "/body", &[&body]);
    let unprotected = thalweg(&["get", &format!("coap://127.0.0.1:{port}/hello")]).finish().well();
    assert_eq!(unprotected.lines, ["hello unprotected"]);
}

#[test]
fn thalweg_observes_aiocoap() {
    let keys = Keys::new("thalweg-observes");
    let probe = UdpSocket::bind("127.0.0.1:0").expect("bound");
    let port = probe.local_addr().expect("an address").port();
    drop(probe);
    let mut server = aiocoap(&["serve", &port.to_string(), &keys.path("server")]);
    server.expect_text("serving");
    let uri = format!("coap://127.0.0.1:{port}/note");
    let file = keys.path("client.json");
    let mut observer = thalweg(&["observe", &uri, "--count", "3", "--timeout", "25", "--oscore", &file]);
    observer.expect("the empty state", str::is_empty);
    // Another client, without keys: the server lets it write.
    for state in ["one", "two"] {
        thalweg(&["put", &uri, state]).finish().well();
        observer.expect_text(state);
    }
    observer.finish().well();
}

#[test]
fn a_dissector_reads_what_is_protected_if_it_has_the_keys() {
    let keys = Keys::new("dissected");
    let (server, base) = serve(&keys);
    let port = base.rsplit(':').next().expect("a port").to_owned();
    let tshark = std::env::var("THALWEG_TSHARK").expect("no dissector: run `cargo xtask test oscore`");
    let file = keys.path("oscore.pcapng");
    let mut command = Command::new(&tshark);
    command.args(["-i", "lo", "-f", &format!("udp port {port}"), "-q", "-w", &file]);
    let mut capture = Program::start("tshark", &command);
    capture.expect_text("Capturing on");
    // It says so shortly before it listens.
    std::thread::sleep(std::time::Duration::from_millis(700));
    for words in [&["put", "secret word"][..], &["get"]] {
        let uri = format!("{base}/note");
        thalweg(&[&[words[0], &uri], &words[1..], &["--oscore", &keys.path("client.json")]].concat()).finish().well();
    }
    server.interrupt().well();
    std::thread::sleep(std::time::Duration::from_millis(500));
    capture.interrupt();
    let contexts = format!(r#"uat:oscore_contexts:"","01","{SECRET}","{SALT}","37cb","AES-CCM-16-64-128 (CCM*)""#);
    let dissect = |more: &[&str]| {
        let mut command = Command::new(&tshark);
        command.args(["-r", &file, "-d", &format!("udp.port=={port},coap"), "-V"]).args(more);
        String::from_utf8_lossy(&command.output().expect("tshark runs").stdout).into_owned()
    };
    let (blind, seeing) = (dissect(&[]), dissect(&["-o", &contexts]));
    assert_eq!(blind.matches("Encrypted OSCORE Data").count(), 4, "{blind}");
    assert!(!blind.contains("secret word") && !blind.contains("note") && !blind.contains("Malformed"), "{blind}");
    assert_eq!((seeing.matches("secret word").count(), seeing.contains("Malformed")), (2, false), "{seeing}");
}
