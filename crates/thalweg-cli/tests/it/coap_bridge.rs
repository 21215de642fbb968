//! `coap bridge` between processes of the data space and clients of CoAP.

use std::io::{BufRead, BufReader};
use std::process::{ChildStderr, ChildStdout};
use std::time::Instant;

use crate::gateway::wait_for_line;
use crate::program::{PATIENCE, Running, command, run, tag};

/// A bridge on a port of its own.
struct Bridging {
    _running: Running,
    _stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
    address: String,
}

impl Bridging {
    fn start(tag: &str, options: &[&str]) -> Bridging {
        let fixed = ["coap", "bridge", "--bind", "127.0.0.1:0", "--interface", "lo", "--domain-tag", tag];
        let mut running = Running::start(command(&[&fixed, options].concat()));
        let (mut stdout, stderr) = (running.stdout(), running.stderr());
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("bridging coap://").expect("the address").to_owned();
        Bridging { _running: running, _stdout: stdout, stderr, address }
    }

    fn uri(&self, path: &str) -> String {
        format!("coap://{}{path}", self.address)
    }
}

#[test]
fn what_a_publisher_writes_is_observed_over_coap() {
    let tag = tag();
    let mut bridge = Bridging::start(&tag, &[]);
    let shapes = ["pub", "Square", "--type", "ShapeType", "RED,1,2,3", "RED,4,5,6", "--rate", "20"];
    let _publisher = Running::start(command(&[&shapes, &["--interface", "lo", "--domain-tag", &tag][..]].concat()));
    wait_for_line(&mut bridge.stderr, "/topics/Square is there");
    let uri = bridge.uri("/topics/Square");
    let start = Instant::now();
    // The topic is there before its first sample is.
    while run(&["coap", "get", &uri, "--timeout", "50"]).code != Some(0) {
        assert!(start.elapsed() < PATIENCE, "no sample came");
    }
    let observed = run(&["coap", "observe", &uri, "--count", "4", "--timeout", "50"]).expect_code(0).stdout;
    let shapes: Vec<serde_json::Value> =
        observed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(shapes.len(), 4);
    for x in [1, 4] {
        assert!(shapes.iter().any(|shape| shape["x"] == x && shape["color"] == "RED"), "{observed}");
    }
    let links = run(&["coap", "discover", &bridge.address, "--timeout", "50"]).expect_code(0).stdout;
    assert!(links.contains("/topics/Square") && links.contains("ShapeType"), "{links}");
}

#[test]
fn what_is_put_over_coap_reaches_a_subscriber() {
    let tag = tag();
    let mut bridge = Bridging::start(&tag, &[]);
    let subscribe = |arguments: &[&str]| {
        let network = ["--interface", "lo", "--domain-tag", &tag, "--count", "1", "--timeout", "50"];
        Running::start(command(&[&["sub"], arguments, &network].concat()))
    };
    let root = bridge.uri("/topics/");
    let put = |topic: &str, payload: &str, format: &str| {
        run(&["coap", "put", &format!("{root}{topic}"), payload, "--format", format, "--timeout", "50"])
    };
    let mut squares = subscribe(&["Square", "--type", "ShapeType"]);
    wait_for_line(&mut bridge.stderr, "/topics/Square is there");
    let mut said = squares.stderr();
    wait_for_line(&mut said, "matched a writer");
    let wrong = put("Square", r#"{"color":"RED"}"#, "json").expect_code(1);
    assert!(wrong.stderr.contains("the member \"x\" is missing"), "{}", wrong.stderr);
    put("Square", r#"{"color":"RED","x":7,"y":8,"shapesize":9}"#, "json").expect_code(0);
    wait_for_line(&mut squares.stdout(), "RED,7,8,9");
    let mut chatter = subscribe(&["chatter"]);
    wait_for_line(&mut bridge.stderr, "/topics/chatter is there");
    let mut said = chatter.stderr();
    wait_for_line(&mut said, "matched a writer");
    put("chatter", "hello", "text").expect_code(0);
    wait_for_line(&mut chatter.stdout(), "hello");
}

#[test]
fn an_instance_is_disposed_for_those_alone_that_name_its_state() {
    let tag = tag();
    let mut bridge = Bridging::start(&tag, &[]);
    let words = ["sub", "Square", "--type", "ShapeType", "--interface", "lo", "--domain-tag", &tag, "--timeout", "50"];
    let mut squares = Running::start(command(&words));
    let mut said = squares.stderr();
    wait_for_line(&mut bridge.stderr, "/topics/Square is there");
    wait_for_line(&mut said, "matched a writer");
    let uri = bridge.uri("/topics/Square?color=RED");
    let ask = |words: &[&str]| run(&[&["coap"], words, &["--timeout", "50"]].concat());
    let json = r#"{"color":"RED","x":7,"y":8,"shapesize":9}"#;
    ask(&["put", &uri, json, "--format", "json", "--option", "if-none-match"]).expect_code(0);
    let start = Instant::now();
    let told = loop {
        let said = ask(&["get", &uri, "--json"]);
        if said.code == Some(0) {
            break said.stdout;
        }
        assert!(start.elapsed() < PATIENCE, "what was put did not come back: {}", said.stderr);
    };
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let right = format!("if-match=0x{}", told["etag"].as_str().expect("a tag"));
    let refused = ask(&["delete", &uri, "--option", "if-match=0x01"]).expect_code(1);
    assert!(refused.stderr.contains("4.12"), "{}", refused.stderr);
    assert_eq!(ask(&["get", &uri]).expect_code(0).stdout.trim(), json);
    let deleted = ask(&["delete", &uri, "--option", &right]).expect_code(0);
    assert!(deleted.stderr.contains("2.02"), "{}", deleted.stderr);
    while !ask(&["get", &uri]).stderr.contains("5.03") {
        assert!(start.elapsed() < PATIENCE, "it is still there");
    }
}

#[test]
fn a_bridge_names_what_it_does_not_understand() {
    let file = std::env::temp_dir().join(format!("thalweg-bridge-{}.idl", std::process::id()));
    std::fs::write(&file, "struct A {\n  fixed<3, 2> x;\n};\n").expect("written");
    let path = file.to_str().expect("a plain path");
    let said = run(&["coap", "bridge", "--idl", path]).expect_code(2);
    assert!(said.stderr.contains("line 2, column 3: fixed is no data type of topics"), "{}", said.stderr);
    std::fs::remove_file(&file).expect("removed");
}

#[test]
fn the_sensors_of_a_host_are_served() {
    let mut running = Running::start(command(&["coap", "serve", "--bind", "127.0.0.1:0"]));
    let mut line = String::new();
    running.stdout().read_line(&mut line).expect("a line");
    let uri = line.trim().strip_prefix("serving ").expect("the address").to_owned();
    let get = |path: &str| run(&["coap", "get", &format!("{uri}{path}"), "--timeout", "50"]).expect_code(0).stdout;
    let temperature: f64 = get("/sensors/simulated0/temperature").trim().parse().expect("a number");
    assert!((14.8..25.2).contains(&temperature), "{temperature}");
    let threads: f64 = get("/sensors/process/threads").trim().parse().expect("a number");
    assert!(threads > 3.0, "{threads}");
    let json = run(&["coap", "get", &format!("{uri}/sensors/host/uptime"), "--accept", "json", "--timeout", "50"]);
    let json: serde_json::Value = serde_json::from_str(&json.expect_code(0).stdout).expect("JSON");
    assert_eq!(json["unit"], "s");
}
