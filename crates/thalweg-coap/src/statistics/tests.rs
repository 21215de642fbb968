use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::credentials::{Credentials, PresharedKey};
use crate::dtls::SessionLimits;
use crate::endpoint::Confirmability;
use crate::identity::Transport;
use crate::interaction::client::Client;
use crate::interaction::handler::Function;
use crate::interaction::routes::Routes;
use crate::interaction::server::{SecureConfig, ServerConfig};
use crate::interaction::streams::StreamsConfig;
use crate::message::{CoapRequest, Observe, RequestBuf, Response};

const PATIENCE: Duration = Duration::from_secs(20);

fn started() -> (FigureSource, Arc<Server>) {
    let source = FigureSource::new();
    let routes = add_resources(Routes::new(), &source);
    let server = Arc::new(Server::start(&ServerConfig::new(([127, 0, 0, 1], 0).into()), routes).expect("started"));
    (source, server)
}

fn ask(server: &Server, path: &str) -> (u8, String) {
    let mut client = Client::open(server.address(), crate::endpoint::Config::default()).expect("a client");
    let request = RequestBuf::get(path);
    let answer = client.exchange(server.address(), request, Confirmability::Confirmable, PATIENCE).expect("an answer");
    (answer.code.class(), String::from_utf8_lossy(&answer.payload).into_owned())
}

fn scrape(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

use std::net::SocketAddr;

#[test]
fn figures_are_told_over_coap_and_http_alike() {
    let (source, server) = started();
    assert_eq!(ask(&server, STATISTICS_PATH).0, 5, "there is no server yet");
    source.set(&server, &LocalStore::new(), None, None);
    assert_eq!(ask(&server, "/nothing").0, 4);
    let (class, told) = ask(&server, STATISTICS_PATH);
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!((class, &told["loops"]["answers_4xx"], &told["loops"]["answers_5xx"]), (2, &1.into(), &1.into()));
    assert!(told["protocol"]["peers"].as_u64() >= Some(1), "{told}");
    let threads = told["threads"].as_array().expect("threads");
    // Servers of other tests run in this process, too.
    let has = |name: &str, group: &str, nice: i64| {
        threads.iter().any(|thread| {
            let is_named = thread["name"].as_str().is_some_and(|found| found.starts_with(name));
            is_named && thread["group"] == group && thread["nice"] == nice
        })
    };
    let base = thalweg_host::TaskStat::read(&HostFiles::here(), Task::ThisThread).expect("this thread").nice;
    let (first, later) = (i64::from(base), i64::from((base + 5).min(19)));
    assert!(has("receiver-0", "interaction", first) && has("resource-0", "resource", later), "{told}");
    let (_, over_coap) = ask(&server, METRICS_PATH);
    let metrics = serve_metrics(([127, 0, 0, 1], 0).into(), source, server.scheduler().manager()).expect("started");
    let answer = scrape(metrics.address(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, over_http) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains("application/openmetrics-text"), "{head}");
    for exposition in [&over_coap, over_http] {
        for line in [
            "# TYPE thalweg_coap_answers counter",
            "thalweg_coap_answers_total{class=\"4xx\"} 1",
            "thalweg_coap_threads{group=\"resource\"} 1",
            "thalweg_coap_queue_delay_seconds_count{pool=\"blocking\"} ",
            "# EOF",
        ] {
            assert!(exposition.contains(line), "{line} is not in\n{exposition}");
        }
    }
    drop(metrics);
}

/// Waits until `seen` finds what it looks for in the statistics.
fn eventually(server: &Server, seen: impl Fn(&serde_json::Value) -> bool) {
    let end = std::time::Instant::now() + PATIENCE;
    loop {
        let told = serde_json::from_str(&ask(server, STATISTICS_PATH).1).expect("JSON");
        if seen(&told) {
            return;
        }
        assert!(std::time::Instant::now() < end, "{told}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn sessions_connections_and_what_was_refused_over_them_are_told() {
    let source = FigureSource::new();
    let state = |_: &CoapRequest<'_>| Response::content("x", 0).observable();
    let routes = add_resources(Routes::new(), &source).add("/state", Function::inline(state));
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut config = ServerConfig::new(any_port);
    // One of them may observe.
    config.endpoint.limits.peers_max = 2;
    let key = PresharedKey { identity: b"porter".to_vec(), key: b"a key of sixteen".to_vec().into() };
    let credentials = Credentials { keys: [key].into_iter().collect(), ..Credentials::default() };
    config.secure =
        Some(SecureConfig { address: any_port, credentials: credentials.clone(), limits: SessionLimits::default() });
    config.streams = Some(StreamsConfig {
        listeners: vec![(Transport::Tcp, any_port)],
        ..StreamsConfig::new(Credentials::default())
    });
    let server = Arc::new(Server::start(&config, routes).expect("started"));
    source.set(&server, &LocalStore::new(), None, None);

    let connection = TcpStream::connect(server.stream_addresses()[0].1).expect("connected");
    let secure = server.secure_address().expect("an address");
    let clients = [(); 2].map(|()| {
        let config = crate::endpoint::Config::default();
        let mut client = Client::open_secure(secure, "localhost", config, &credentials).expect("a client");
        let request = RequestBuf::get("/state").with_observe(Observe::Register);
        let answer = client.exchange(secure, request, Confirmability::Confirmable, PATIENCE).expect("an answer");
        assert_eq!(answer.code.class(), 2);
        client
    });
    eventually(&server, |told| {
        told["sessions"]["sessions"] == 2
            && told["sessions"]["established"] == 2
            && told["connections"]["connections"] == 1
            && (&told["protocol"]["observers"], &told["protocol"]["observers_refused"]) == (&1.into(), &1.into())
    });
    let exposition = ask(&server, METRICS_PATH).1;
    for line in [
        "thalweg_coap_sessions 2",
        "thalweg_coap_connections 1",
        "thalweg_coap_refused_total{reason=\"observers\"} 1",
        "thalweg_coap_handshakes_total{outcome=\"established\"} 2",
    ] {
        assert!(exposition.contains(line), "{line} is not in\n{exposition}");
    }
    let refused: u64 = server.snapshot().loops.iter().map(|counts| counts.observers_refused).sum();
    assert_eq!(refused, 1, "each loop tells it, too");
    drop((clients, connection));
    eventually(&server, |told| told["connections"]["connections"] == 0);
}

#[test]
fn what_is_no_scrape_is_refused_and_holds_nobody_up_for_long() {
    let (source, server) = started();
    source.set(&server, &LocalStore::new(), None, None);
    let metrics = serve_metrics(([127, 0, 0, 1], 0).into(), source, server.scheduler().manager()).expect("started");
    let address = metrics.address();
    assert!(scrape(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(scrape(address, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    let silent = TcpStream::connect(address).expect("connected");
    let answer = scrape(address, "GET /metrics HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200"), "the silent one lost its turn: {answer}");
    drop(silent);
    let mut endless = TcpStream::connect(address).expect("connected");
    // The server may close before all of it is sent.
    let _ = endless.write_all(&[b'x'; 20_000]);
    assert!(scrape(address, "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
}
