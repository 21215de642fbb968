//! Counts of running commands as OpenMetrics.

use std::io::{BufRead, Read, Write};
use std::net::TcpStream;

use crate::program::{Running, command, run, tag};

/// The address that a command's first line on standard error tells.
#[track_caller]
fn told_address(stderr: &mut impl BufRead) -> String {
    let mut line = String::new();
    stderr.read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("metrics http://").and_then(|rest| rest.strip_suffix("/metrics"));
    address.unwrap_or_else(|| panic!("{line}")).to_owned()
}

/// What is told at an address.
#[track_caller]
fn exposition(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("written");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("text");
    text
}

#[test]
fn a_command_tells_its_counts_while_it_runs() {
    let tag = tag();
    let words = ["sub", "chatter", "--metrics", "127.0.0.1:0", "--timeout", "50", "--domain-tag", &tag];
    let mut subscriber = Running::start(command(&words));
    let mut stderr = subscriber.stderr();
    let address = told_address(&mut stderr);
    let publish =
        ["pub", "chatter", "a", "b", "--count", "2", "--rate", "0", "--match-timeout", "40", "--domain-tag", &tag];
    run(&publish).expect_code(0);
    let text = exposition(&address);
    for line in
        ["thalweg_samples_received_total{topic=\"chatter\"} 2", "thalweg_endpoints{kind=\"reader\"} 1.0", "# EOF"]
    {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let said = run(&["sub", "t", "--metrics", &address, "--timeout", "1", "--domain-tag", &tag]).expect_code(1);
    assert!(said.stderr.contains("no metrics at"), "an address that is taken: {}", said.stderr);
    subscriber.signal("INT");
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("text");
    subscriber.finish().expect_code(0);
}

#[test]
fn the_environment_names_the_address_where_no_option_does() {
    let tag = tag();
    let words = ["sub", "chatter", "--timeout", "50", "--domain-tag", &tag];
    let with = |address: &str, words: &[&str]| {
        let mut command = command(words);
        command.env("THALWEG_METRICS", address);
        Running::start(command)
    };
    check_told(with("127.0.0.1:0", &words));
    // An option is nearer to the user than the environment; an empty variable is none.
    check_told(with("nowhere", &[&words[..], &["--metrics", "127.0.0.1:0"]].concat()));
    let said = with("", &["sub", "t", "--timeout", "1", "--domain-tag", &tag]).finish();
    assert!(!said.stderr.contains("metrics"), "{}", said.stderr);
    let said = with("nowhere", &words).finish().expect_code(2);
    assert!(said.stderr.contains("THALWEG_METRICS is \"nowhere\", which is no address"), "{}", said.stderr);
}

/// That a running command tells its counts, and ends when it is asked to.
#[track_caller]
fn check_told(mut running: Running) {
    let mut stderr = running.stderr();
    let text = exposition(&told_address(&mut stderr));
    assert!(text.contains("thalweg_endpoints{kind=\"reader\"}") && text.contains("# EOF"), "{text}");
    running.signal("INT");
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("text");
    running.finish();
}
