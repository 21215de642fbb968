//! `coap serve` and its clients in processes of their own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::ChildStdout;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use thalweg_coap::interaction::handler::Function;
use thalweg_coap::interaction::routes::Routes;
use thalweg_coap::interaction::server::{Server, ServerConfig};
use thalweg_coap::message::{CoapRequest, Code, Response, content_format};

use crate::program::{PATIENCE, Running, command, run};

/// A server on a port of its own.
struct Serving {
    running: Running,
    output: BufReader<ChildStdout>,
    address: String,
}

impl Serving {
    fn start(options: &[&str]) -> Serving {
        let mut running = Running::start(command(&[&["coap", "serve", "--bind", "127.0.0.1:0"], options].concat()));
        let mut output = running.stdout();
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("serving coap://").expect("the address").to_owned();
        Serving { running, output, address }
    }

    fn uri(&self, path: &str) -> String {
        format!("coap://{}{path}", self.address)
    }

    /// What `coap get` prints.
    #[track_caller]
    fn get(&self, path: &str) -> String {
        run(&["coap", "get", &self.uri(path), "--timeout", "50"]).expect_code(0).stdout
    }

    /// A line of statistics that `is_wanted` says yes to.
    #[track_caller]
    fn statistics(&mut self, is_wanted: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        let mut line = String::new();
        while start.elapsed() < PATIENCE {
            line.clear();
            self.output.read_line(&mut line).expect("a line");
            if is_wanted(&line) {
                return line;
            }
        }
        panic!("no such line; the last was {line}");
    }
}

#[test]
fn a_server_greets_lists_its_resources_and_ends_in_order() {
    let server = Serving::start(&[]);
    assert_eq!(server.get("/request"), "hello world\n");
    let non = run(&["coap", "get", &server.uri("/request"), "--non", "--timeout", "50"]).expect_code(0);
    assert_eq!(non.stdout, "hello world\n");
    let told = run(&["coap", "get", &server.uri("/request"), "--json", "--timeout", "50"]).expect_code(0).stdout;
    let told: serde_json::Value = serde_json::from_str(&told).expect("one JSON object");
    assert_eq!((&told["code"], &told["content_format"], &told["hex"]), (&"2.05".into(), &0.into(), &().into()));
    assert_eq!(told["text"], non.stdout.trim_end());
    let listed = run(&["coap", "discover", &server.address, "--json", "--timeout", "50"]).expect_code(0).stdout;
    let links = listed.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let note = links.into_iter().find(|link| link["target"] == "/note").expect("listed");
    assert!(note["attributes"].as_object().expect("attributes").contains_key("obs"), "{note}");
    let found = run(&["coap", "discover", &server.address, "--timeout", "50"]).expect_code(0).stdout;
    for path in ["/request ", "/note ", "/slow ", "/busy "] {
        assert!(found.contains(&server.uri(path)), "{path} is not in\n{found}");
    }
    let observable =
        run(&["coap", "discover", &server.address, "--query", "obs&href=/n*", "--timeout", "50"]).expect_code(0);
    assert_eq!(observable.stdout, format!("{} ct=0 obs\n", server.uri("/note")));
    server.running.signal("INT");
    server.running.finish().expect_code(0);
}

#[test]
fn what_is_put_is_got_and_observed() {
    let server = Serving::start(&[]);
    let words = ["coap", "observe", &server.uri("/note"), "--count", "2", "--timeout", "50"];
    let mut observer = Running::start(command(&words));
    let mut lines = observer.stdout();
    let mut first = String::new();
    lines.read_line(&mut first).expect("a line");
    assert_eq!(first, "\n");
    let said = run(&["coap", "put", &server.uri("/note"), "hello", "--timeout", "50"]).expect_code(0);
    assert!(said.stderr.contains("2.04"), "{}", said.stderr);
    let mut second = String::new();
    lines.read_line(&mut second).expect("a line");
    assert_eq!(second, "hello\n");
    observer.finish().expect_code(0);
    assert_eq!(server.get("/note"), "hello\n");
}

#[test]
fn an_observation_that_the_server_does_not_accept_ends_with_an_error() {
    let server = Serving::start(&[]);
    let said = run(&["coap", "observe", &server.uri("/request"), "--timeout", "50"]).expect_code(1);
    assert_eq!(said.stdout, "hello world\n");
    assert!(said.stderr.contains("tells no further states"), "{}", said.stderr);
}

#[test]
fn every_method_has_a_command_and_bodies_come_from_words_files_and_standard_input() {
    let server = Serving::start(&[]);
    let note = server.uri("/note");
    let ask = |words: &[&str]| run(&[&["coap"], words, &["--timeout", "50"]].concat());
    let body = std::env::temp_dir().join(format!("thalweg-coap-body-{}", std::process::id()));
    std::fs::write(&body, "from a file").expect("written");
    ask(&["put", &note, "--body", &body.display().to_string()]).expect_code(0);
    std::fs::remove_file(&body).expect("removed");
    assert_eq!(server.get("/note"), "from a file\n");
    let mut piped = command(&["coap", "post", &note, "--body", "-", "--timeout", "50"]);
    let input = std::env::temp_dir().join(format!("thalweg-coap-input-{}", std::process::id()));
    std::fs::write(&input, " and from input").expect("written");
    piped.stdin(std::fs::File::open(&input).expect("opened"));
    Running::start(piped).finish().expect_code(0);
    std::fs::remove_file(&input).expect("removed");
    assert_eq!(server.get("/note"), "from a file and from input\n");
    let told = ask(&["post", &note, "!", "--json"]).expect_code(0).stdout;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&told).expect("JSON")["code"], "2.04");
    let deleted = ask(&["delete", &note]).expect_code(0);
    assert!(deleted.stderr.contains("2.02"), "{}", deleted.stderr);
    assert_eq!(server.get("/note"), "\n");
    for method in ["fetch", "patch", "ipatch"] {
        assert!(ask(&[method, &note, "x"]).expect_code(1).stderr.contains("4.05"), "{method}");
    }
    let there = ask(&["ping", &server.address, "--json"]).expect_code(0).stdout;
    assert!(serde_json::from_str::<serde_json::Value>(&there).expect("JSON")["round_trip_ms"].as_f64() > Some(0.0));
    let missing = ask(&["put", &note, "--body", "/nowhere/at/all"]).expect_code(2);
    assert!(missing.stderr.contains("/nowhere/at/all"), "{}", missing.stderr);
}

/// Serves settings that FETCH reads by name, and PATCH and iPATCH change by `NAME=VALUE`; each answer has a body.
fn serve_settings() -> Server {
    let settings: Mutex<BTreeMap<String, String>> = Mutex::default();
    let handler = Function::inline(move |request: &CoapRequest<'_>| {
        let body = String::from_utf8_lossy(request.payload).into_owned();
        let mut settings = settings.lock().expect("a lock");
        match (request.code, body.split_once('=')) {
            (Code::FETCH, None) => {
                Response::content(settings.get(&body).cloned().unwrap_or_default(), content_format::TEXT)
            }
            (Code::PATCH | Code::IPATCH, Some((name, value))) => {
                let before = settings.insert(name.to_owned(), value.to_owned());
                let said = format!("{name} was {}", before.as_deref().unwrap_or("not set"));
                Response { code: Code::CHANGED, ..Response::content(said, content_format::TEXT) }
            }
            _ => Response::new(Code::BAD_REQUEST),
        }
    });
    let routes = Routes::new().add("/settings", handler);
    Server::start(&ServerConfig::new(([127, 0, 0, 1], 0).into()), routes).expect("started")
}

#[test]
fn fetch_patch_and_ipatch_bring_their_bodies_and_print_the_answers() {
    let server = serve_settings();
    let uri = format!("coap://{}/settings", server.address());
    let ask = |words: &[&str]| run(&[&["coap", words[0], &uri], &words[1..], &["--timeout", "50"]].concat());
    for (method, change, expect) in [
        ("ipatch", "color=red", "color was not set\n"),
        ("patch", "color=blue", "color was red\n"),
        ("ipatch", "color=green", "color was blue\n"),
    ] {
        let said = ask(&[method, change]).expect_code(0);
        assert_eq!(said.stdout, expect, "{method}");
        assert!(said.stderr.contains("2.04"), "{method}: {}", said.stderr);
    }
    assert_eq!(ask(&["fetch", "color"]).expect_code(0).stdout, "green\n");
    let told = ask(&["fetch", "color", "--json"]).expect_code(0).stdout;
    let told: serde_json::Value = serde_json::from_str(&told).expect("one JSON object");
    assert_eq!((&told["code"], &told["text"]), (&"2.05".into(), &"green".into()));
    // Bodies that need several blocks, up and down.
    let long = "y".repeat(5000);
    assert_eq!(ask(&["patch", &format!("long={long}")]).expect_code(0).stdout, "long was not set\n");
    assert_eq!(ask(&["fetch", "long"]).expect_code(0).stdout.trim_end(), long);
    let refused = ask(&["patch", "color"]).expect_code(1);
    assert!(refused.stderr.contains("4.00"), "{}", refused.stderr);
}

#[test]
fn observed_states_are_told_as_lines_of_json() {
    let server = Serving::start(&[]);
    let note = server.uri("/note");
    let put = |text: &str| run(&["coap", "put", &note, text, "--timeout", "50"]).expect_code(0);
    put("one");
    let words = ["coap", "observe", &note, "--json", "--count", "2", "--timeout", "50"];
    let mut observer = Running::start(command(&words));
    let mut lines = observer.stdout();
    let mut state = || {
        let mut line = String::new();
        lines.read_line(&mut line).expect("a line");
        serde_json::from_str::<serde_json::Value>(&line).expect("JSON")
    };
    let first = state();
    put("two");
    let second = state();
    for (told, text) in [(&first, "one"), (&second, "two")] {
        let found = (&told["code"], &told["text"], &told["content_format"]);
        assert_eq!(found, (&"2.05".into(), &text.into(), &0.into()), "{told}");
    }
    assert!(first["etag"].is_string() && first["etag"] != second["etag"], "{first} {second}");
    observer.finish().expect_code(0);
}

/// Scrapes until the exposition has all of these lines in it.
#[track_caller]
fn wait_for_figures(address: &str, lines: &[&str]) {
    let start = Instant::now();
    loop {
        let mut stream = TcpStream::connect(address).expect("connected");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let missing = lines.iter().find(|line| !answer.contains(&format!("\n{line}")));
        match missing {
            None => return,
            Some(line) => assert!(start.elapsed() < PATIENCE, "{line:?} is not in\n{answer}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn figures_of_a_server_are_scraped_where_it_says() {
    let mut server = Serving::start(&["--law", "fixed:1", "--metrics", "127.0.0.1:0"]);
    let mut line = String::new();
    server.output.read_line(&mut line).expect("a line");
    let metrics = line.trim().strip_prefix("metrics http://").and_then(|rest| rest.strip_suffix("/metrics"));
    let metrics = metrics.expect("the address").to_owned();
    wait_for_figures(&metrics, &["thalweg_coap_observers 0", "thalweg_coap_refused_total{reason=\"malformed\"} 0"]);
    let words = ["coap", "observe", &server.uri("/note"), "--count", "2", "--timeout", "50"];
    let mut observer = Running::start(command(&words));
    let mut states = observer.stdout();
    states.read_line(&mut String::new()).expect("the first state");
    run(&["coap", "get", &server.uri("/nothing"), "--timeout", "50"]).expect_code(1);
    server.get("/slow?ms=1");
    // A token of fifteen bytes is no message.
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("bound");
    stranger.send_to(b"\x4f\x01\x00\x01", &server.address).expect("sent");
    wait_for_figures(
        &metrics,
        &[
            "thalweg_coap_observers 1",
            "thalweg_coap_answers_total{class=\"4xx\"} 1\n",
            "thalweg_coap_refused_total{reason=\"malformed\"} 1\n",
            "thalweg_coap_queue_delay_seconds_bucket{le=\"+Inf\",pool=\"blocking\"} 1\n",
            "thalweg_coap_queue_delay_seconds_count{pool=\"blocking\"} 1\n",
            "thalweg_coap_network_requests_total{kind=\"hit\"} 0\n",
        ],
    );
    server.running.signal("INT");
    server.running.finish().expect_code(0);
}

#[test]
fn preconditions_and_formats_are_decided_before_the_note_changes() {
    let server = Serving::start(&[]);
    let note = server.uri("/note");
    let ask = |words: &[&str], code: i32, expect: &str| {
        let said = run(&[&["coap"], words, &["--timeout", "50"]].concat()).expect_code(code);
        assert!(said.stderr.contains(expect), "{words:?}: {}", said.stderr);
        said.stdout
    };
    ask(&["put", &note, "one"], 0, "2.04");
    ask(&["put", &note, "two", "--option", "if-none-match"], 1, "4.12");
    ask(&["put", &note, "two", "--option", "if-match=0x01"], 1, "4.12");
    ask(&["delete", &note, "--option", "if-match=0x01"], 1, "4.12");
    ask(&["put", &note, "two", "--format", "9999"], 1, "4.15");
    ask(&["get", &note, "--accept", "json"], 1, "4.06");
    ask(&["get", &server.uri("/request"), "--option", "if-match"], 1, "4.02");
    assert_eq!(server.get("/note"), "one\n");
    let told = ask(&["get", &note, "--json"], 0, "");
    let tag =
        serde_json::from_str::<serde_json::Value>(&told).expect("JSON")["etag"].as_str().expect("a tag").to_owned();
    ask(&["get", &note, "--option", &format!("etag=0x{tag}")], 0, "");
    ask(&["put", &note, "two", "--option", "if-match=0x01", "--option", &format!("if-match=0x{tag}")], 0, "2.04");
    ask(&["put", &note, "three", "--option", &format!("if-match=0x{tag}")], 1, "4.12");
    assert_eq!(server.get("/note"), "two\n");
    let set = server.uri("/sensors/simulated0/mean");
    ask(&["put", &set, r#"[{"bv":20,"v":1.5}]"#, "--format", "senml-json"], 0, "2.04");
    assert_eq!(server.get("/sensors/simulated0/mean"), "21.5\n");
}

#[test]
fn a_server_full_of_observers_serves_others_and_counts_whom_it_did_not_let_observe() {
    let mut server = Serving::start(&["--peers-max", "64", "--statistics", "0.1", "--json"]);
    let sockets: Vec<UdpSocket> = (0..100).map(|_| UdpSocket::bind("127.0.0.1:0").expect("bound")).collect();
    for socket in &sockets {
        socket.connect(&server.address).expect("connected");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        // NON GET, Observe 0, Uri-Path note.
        socket.send(b"\x51\x01\x00\x01\x07\x60\x54note").expect("sent");
        let mut answer = [0; 64];
        assert!(socket.recv(&mut answer).expect("an answer") > 4 && answer[1] == 0x45, "everybody gets the note");
    }
    for _ in 0..3 {
        assert_eq!(server.get("/request"), "hello world\n");
    }
    let line = server.statistics(|line| line.contains("\"observers_refused\":68"));
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(line["peers_refused"], 0, "{line}");
}

#[test]
fn a_handler_that_blocks_holds_nobody_up() {
    let server = Serving::start(&[]);
    let slow = Running::start(command(&["coap", "get", &server.uri("/slow?ms=3000"), "--timeout", "50"]));
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        assert_eq!(server.get("/request"), "hello world\n");
    }
    // Longer than a client waits for an acknowledgement: that came alone, and the response after it.
    assert_eq!(slow.finish().expect_code(0).stdout, "waited 3000 ms\n");
}

#[test]
fn statistics_in_json_are_counts_since_the_start() {
    let mut server = Serving::start(&["--law", "fixed:2", "--statistics", "0.1", "--json"]);
    assert_eq!(server.get("/request"), "hello world\n");
    assert_eq!(server.get("/slow?ms=20"), "waited 20 ms\n");
    let line = server.statistics(|line| line.contains("\"completed\":1"));
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let pool = &line["pools"][0];
    assert_eq!((&line["inline"], &pool["law"], &pool["threads"]), (&1.into(), &"fixed:2".into(), &2.into()));
    assert!(pool["busy_s"].as_f64() >= Some(0.02) && pool["processor_s"].as_f64() < Some(0.02), "{line}");
    assert!(pool["age_s"].as_f64() <= line["at_s"].as_f64(), "{line}");
}

#[test]
fn several_loops_serve_one_address() {
    let server = Serving::start(&["--loops", "2"]);
    for _ in 0..8 {
        assert_eq!(server.get("/request"), "hello world\n");
    }
    assert_eq!(server.get("/slow?ms=1"), "waited 1 ms\n");
}

#[test]
fn errors_are_told_with_the_codes_of_the_server() {
    let server = Serving::start(&[]);
    let check = |arguments: &[&str], code: i32, expect: &str| {
        let said = run(&[&["coap"], arguments, &["--timeout", "1"]].concat()).expect_code(code);
        assert!(said.stderr.contains(expect), "{arguments:?}: {}", said.stderr);
    };
    check(&["get", &server.uri("/nothing")], 1, "4.04");
    check(&["put", &server.uri("/request"), "x"], 1, "4.05");
    check(&["get", &server.uri("/slow?ms=soon")], 1, "?ms=100");
    check(&["get", "coaps://127.0.0.1/request"], 2, "--oscore");
    check(&["get", "coap://host.invalid/request"], 2, "host.invalid");
    check(&["get", &server.uri("/a#b")], 2, "fragment");
    check(&["get", &server.uri("/a%2")], 2, "escape");
    check(&["get", &server.uri("/a"), "--option", "if-mach"], 2, "if-match");
    let gone = UdpSocket::bind("127.0.0.1:0").expect("bound").local_addr().expect("an address").to_string();
    let told = Instant::now();
    let refused = run(&["coap", "get", &gone, "--timeout", "60"]).expect_code(1);
    assert!(refused.stderr.contains("nobody listens") && told.elapsed() < PATIENCE, "{}", refused.stderr);
    // A socket that nobody reads: the port is taken, so that no other process can answer.
    let silent = UdpSocket::bind("127.0.0.1:0").expect("bound");
    let address = silent.local_addr().expect("an address").to_string();
    check(&["get", &address], 3, "no answer");
    let taken = run(&["coap", "serve", "--bind", &server.address]).expect_code(1);
    assert!(taken.stderr.contains("is another server running there?"), "{}", taken.stderr);
    let law = run(&["coap", "serve", "--law", "best"]).expect_code(2);
    assert!(law.stderr.contains("vta-printed"), "{}", law.stderr);
    let class = run(&["coap", "serve", "--law", "slow=vta"]).expect_code(2);
    assert!(class.stderr.contains("blocking, device and resource"), "{}", class.stderr);
}

#[test]
fn a_host_that_asks_too_often_is_told_when_to_come_back() {
    let server = Serving::start(&["--peer-rate", "1"]);
    assert_eq!(server.get("/request"), "hello world\n");
    let refused = (0..50)
        .map(|_| run(&["coap", "get", &server.uri("/request"), "--timeout", "50"]))
        .find(|said| said.code == Some(1))
        .expect("a refusal");
    assert!(refused.stderr.contains("4.29") && refused.stderr.contains("ask again in 1 s"), "{}", refused.stderr);
}

/// A non-confirmable GET with this message ID.
fn non_get(id: u16, path: &str, query: &str) -> Vec<u8> {
    let mut bytes = vec![0x50, 0x01];
    bytes.extend_from_slice(&id.to_be_bytes());
    bytes.push(0xb0 | path.len() as u8);
    bytes.extend_from_slice(path.as_bytes());
    bytes.push(0x40 | query.len() as u8);
    bytes.extend_from_slice(query.as_bytes());
    bytes
}

#[test]
fn the_pool_grows_while_requests_block_and_shrinks_when_they_end() {
    let mut server = Serving::start(&["--statistics", "0.2"]);
    let client = UdpSocket::bind("127.0.0.1:0").expect("bound");
    let threads_of = |line: &str| -> usize {
        let (_, rest) = line.split_once("blocking vta threads ").expect("the pool's part");
        rest.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
    };
    // 200 requests of 20 ms a second need 5 threads at 80 %.
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for id in 0.. {
                if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                client.send_to(&non_get(id, "slow", "ms=20"), &server.address).expect("sent");
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let address = server.address.clone();
        let mut line = String::new();
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            line.clear();
            server.output.read_line(&mut line).expect("a line");
            if threads_of(&line) >= 4 {
                break;
            }
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(threads_of(&line) >= 4, "{address}: {line}");
    });
    server.statistics(|line| threads_of(line) <= 2);
}

#[test]
fn a_load_is_served_verified_and_told_with_what_the_server_used() {
    let server = Serving::start(&[]);
    let process = server.running.id().to_string();
    let load = |options: &[&str]| {
        let words = ["coap", "load", &server.address, "--duration", "0.3", "--warm-up", "0.1"];
        run(&[&words, options].concat())
    };
    let said = load(&["--clients", "8", "--outstanding", "2", "--json", "--server-pid", &process]).expect_code(0);
    let result: serde_json::Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!((&result["schema"], &result["plan"]["clients"]), (&"thalweg.coap-load/1".into(), &8.into()));
    let counts = &result["counts"];
    assert!(counts["served"].as_u64() > Some(16) && counts["served"] == counts["sent"], "{}", said.stdout);
    assert!(result["server"]["resident_kib"].as_u64() > Some(1000), "{}", said.stdout);
    let said = load(&["/slow?ms=1", "--rate", "20", "--con", "--expect", "waited 1 ms", "--self-check", "0.1"]);
    assert!(said.expect_code(0).stdout.contains("sent 6 served 6 rejected 0"));
    let said = load(&["/nothing"]).expect_code(1);
    assert!(said.stderr.contains("4.04"), "{}", said.stderr);
}
