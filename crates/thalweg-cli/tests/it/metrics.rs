//! Counts of running commands as OpenMetrics.

use std::io::{BufRead, Read, Write};
use std::net::TcpStream;

use crate::program::{Running, command, run, tag};

#[test]
fn a_command_tells_its_counts_while_it_runs() {
    let tag = tag();
    let words = ["sub", "chatter", "--metrics", "127.0.0.1:0", "--timeout", "50", "--domain-tag", &tag];
    let mut subscriber = Running::start(command(&words));
    let mut stderr = subscriber.stderr();
    let mut line = String::new();
    stderr.read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("metrics http://").and_then(|rest| rest.strip_suffix("/metrics"));
    let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
    let publish =
        ["pub", "chatter", "a", "b", "--count", "2", "--rate", "0", "--match-timeout", "40", "--domain-tag", &tag];
    run(&publish).expect_code(0);
    let mut stream = TcpStream::connect(&address).expect("connected");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("written");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("text");
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
