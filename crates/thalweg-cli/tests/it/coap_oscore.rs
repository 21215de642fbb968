//! `coap serve` and its clients with keys in files.

use std::io::{BufRead, BufReader};
use std::process::ChildStdout;

use crate::program::{Running, Said, TestFolder, command, run, tag};

/// Keys of a server with two clients, and of the clients.
fn keys() -> TestFolder {
    let keys = TestFolder::new();
    let context = |secret: &str, own: &str, other: &str| {
        format!(r#"{{"master_secret": "{secret}", "sender_id": "{own}", "recipient_id": "{other}"}}"#)
    };
    let secrets = ["000102030405060708090a0b0c0d0e0f", "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"];
    keys.write("server.json", &format!("[{}, {}]", context(secrets[0], "00", "01"), context(secrets[1], "00", "02")));
    keys.write("first.json", &context(secrets[0], "01", "00"));
    keys.write("second.json", &context(secrets[1], "02", "00"));
    keys.write("stranger.json", &context(secrets[1], "01", "00"));
    keys
}

struct Serving {
    running: Running,
    _output: BufReader<ChildStdout>,
    address: String,
}

impl Serving {
    fn start(keys: &TestFolder) -> Serving {
        Serving::start_as(keys, &["serve"])
    }

    /// `coap` with these words, and with `/note` and `/sensors` protected.
    fn start_as(keys: &TestFolder, words: &[&str]) -> Serving {
        let options = ["--bind", "127.0.0.1:0", "--protected", "/note", "--protected", "/sensors"];
        let oscore = ["--oscore", &keys.path("server.json")];
        let mut running = Running::start(command(&[&["coap"], words, &options, &oscore].concat()));
        let mut output = running.stdout();
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let address = line.trim().split_once(" coap://").expect("the address").1.to_owned();
        Serving { running, _output: output, address }
    }

    /// `coap VERB` of a path; without the name of a file unprotected.
    fn ask(&self, keys: &TestFolder, file: Option<&str>, verb: &str, path: &str, more: &[&str]) -> Said {
        let uri = format!("coap://{}{path}", self.address);
        let keys = file.map(|file| keys.path(file));
        let protection: Vec<&str> = keys.iter().flat_map(|keys| ["--oscore", keys]).collect();
        run(&[&["coap", verb, &uri], more, &protection, &["--timeout", "50"]].concat())
    }
}

#[test]
fn what_is_protected_is_for_those_with_the_keys() {
    let keys = keys();
    let server = Serving::start(&keys);
    let stranger = server.ask(&keys, Some("stranger.json"), "get", "/note", &[]).expect_code(1);
    assert!(stranger.stderr.contains("Decryption failed"), "{}", stranger.stderr);
    server.ask(&keys, Some("first.json"), "put", "/note", &["secret"]).expect_code(0);
    let read = server.ask(&keys, Some("second.json"), "get", "/note", &[]).expect_code(0);
    assert_eq!(read.stdout, "secret\n");
    // Again, with the numbers that follow.
    server.ask(&keys, Some("second.json"), "get", "/note", &[]).expect_code(0);
    let refused = server.ask(&keys, None, "get", "/note", &[]).expect_code(1);
    assert!(refused.stderr.contains("4.01") && refused.stderr.contains("OSCORE"), "{}", refused.stderr);
    server.ask(&keys, None, "get", "/sensors/simulated", &[]).expect_code(1);
    assert_eq!(server.ask(&keys, None, "get", "/request", &[]).expect_code(0).stdout, "hello world\n");
    let open = server.ask(&keys, Some("first.json"), "get", "/request", &[]).expect_code(0);
    assert_eq!(open.stdout, "hello world\n");
    let links = server.ask(&keys, None, "get", "/.well-known/core", &[]).expect_code(0).stdout;
    assert!(links.contains("</note>;ct=0;obs;osc,") && !links.contains("</request>;osc"), "{links}");
}

#[test]
fn a_bridge_protects_what_it_offers() {
    let keys = keys();
    let bridge = Serving::start_as(&keys, &["bridge", "--interface", "lo", "--domain-tag", &tag()]);
    let check = |file: Option<&str>, expect: &str| {
        let said = bridge.ask(&keys, file, "get", "/sensors/none", &[]).expect_code(1);
        assert!(said.stderr.contains(expect), "{}", said.stderr);
    };
    check(None, "4.01");
    check(Some("first.json"), "4.04");
}

#[test]
fn a_restarted_server_goes_on_without_accepting_what_is_old() {
    let keys = keys();
    let server = Serving::start(&keys);
    server.ask(&keys, Some("first.json"), "put", "/note", &["one"]).expect_code(0);
    server.running.signal("KILL");
    server.running.finish();
    let server = Serving::start(&keys);
    server.ask(&keys, Some("first.json"), "put", "/note", &["two"]).expect_code(0);
    let mut observer = Running::start(command(&[
        "coap",
        "observe",
        &format!("coap://{}/note", server.address),
        "--count",
        "2",
        "--timeout",
        "50",
        "--oscore",
        &keys.path("second.json"),
    ]));
    let mut lines = observer.stdout();
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line");
    let large = "x".repeat(3000);
    server.ask(&keys, Some("first.json"), "put", "/note", &[&large]).expect_code(0);
    lines.read_line(&mut line).expect("a line");
    assert_eq!(line, format!("two\n{large}\n"));
    observer.finish().expect_code(0);
}

#[test]
fn keys_that_cannot_be_used_are_told_before_anything_is_sent() {
    let keys = keys();
    let server = Serving::start(&keys);
    let check = |file: &str, expect: &str| {
        let said = server.ask(&keys, Some(file), "get", "/request", &[]).expect_code(2);
        assert!(said.stderr.contains(expect) && said.stderr.contains(file), "{}", said.stderr);
    };
    check("nothing.json", "No such file");
    check("server.json", "another process uses this context");
    keys.write("short.json", r#"{"master_secret": "01", "sender_id": "01", "recipient_id": "02"}"#);
    check("short.json", "at least 16 bytes");
    let said = run(&["coap", "serve", "--oscore", "keys.json", "--protected", "/a%2"]).expect_code(2);
    assert!(said.stderr.contains("begins no escape"), "{}", said.stderr);
    let said = run(&["coap", "serve", "--protected", "/note"]).expect_code(2);
    assert!(said.stderr.contains("--oscore"), "{}", said.stderr);
}
