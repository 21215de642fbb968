use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;
use crate::credentials::{Credentials, PresharedKey};
use crate::dtls::SessionLimits;
use crate::endpoint::Confirmability;
use crate::endpoint::reliable::ReliableCounts;
use crate::identity::Transport;
use crate::interaction::client::Client;
use crate::interaction::counts::LoopCounts;
use crate::interaction::handler::{ClassId, Function};
use crate::interaction::routes::Routes;
use crate::interaction::server::{ClassConfig, SecureConfig, ServerConfig};
use crate::interaction::streams::StreamsConfig;
use crate::message::{CoapRequest, Observe, RequestBuf, Response};
use crate::scheduler::controller::ControlLaw;

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

/// The samples of a metric: labels in braces, or nothing, and the value.
fn samples<'a>(exposition: &'a str, name: &str) -> Vec<(&'a str, f64)> {
    let of = |line: &'a str| {
        let (labels, value) = line.strip_prefix(name)?.rsplit_once(' ')?;
        let is_it = labels.is_empty() || labels.starts_with('{');
        if is_it { Some((labels, value.parse::<f64>().ok()?)) } else { None }
    };
    exposition.lines().filter_map(of).collect()
}

#[test]
fn each_reason_kind_and_gauge_has_its_own_number_and_that_of_all_loops() {
    let counts = LoopCounts { unavailable: 1, limited: 2, ..LoopCounts::default() };
    let counters = Counters {
        peers_refused: 3,
        observers_refused: 4,
        bytes_refused: 5,
        protected_refused: 6,
        malformed: 7,
        observers: 8,
        peers: 9,
        ..Counters::default()
    };
    let server = ServerSnapshot {
        loops: vec![counts; 2],
        protocol: vec![counters; 2],
        connections: ReliableCounts { observers: 10, ..ReliableCounts::default() },
        ..ServerSnapshot::default()
    };
    let network = NetworkStoreCounters { hits: 11, joined: 12, requests: 13, validated: 14, evicted: 15 };
    let exposition = to_open_metrics(&Figures { server, network, ..Figures::default() });
    for (name, labels, expect) in [
        ("refused_total", "{reason=\"overload\"}", 2.0),
        ("refused_total", "{reason=\"rate\"}", 4.0),
        ("refused_total", "{reason=\"peers\"}", 6.0),
        ("refused_total", "{reason=\"observers\"}", 8.0),
        ("refused_total", "{reason=\"bytes\"}", 10.0),
        ("refused_total", "{reason=\"protection\"}", 12.0),
        ("refused_total", "{reason=\"malformed\"}", 14.0),
        ("observers", "", 26.0),
        ("peers", "", 18.0),
        ("network_requests_total", "{kind=\"hit\"}", 11.0),
        ("network_requests_total", "{kind=\"joined\"}", 12.0),
        ("network_requests_total", "{kind=\"request\"}", 13.0),
        ("network_validated_total", "", 14.0),
    ] {
        let found = samples(&exposition, &format!("thalweg_coap_{name}"));
        assert!(found.contains(&(labels, expect)), "{name}{labels} is not {expect}: {found:?}");
    }
}

/// What the histogram of waits of the pool `blocking` says: each bound and how many waited no longer, the sum, and the count.
fn waits(exposition: &str) -> (Vec<(f64, f64)>, f64, f64) {
    let of = |part: &str| {
        let found = samples(exposition, &format!("thalweg_coap_queue_delay_seconds_{part}"));
        found.into_iter().filter(|(labels, _)| labels.contains("pool=\"blocking\"")).collect::<Vec<_>>()
    };
    let bound = |labels: &str| -> f64 {
        let (_, rest) = labels.split_once("le=\"").expect("a bucket has a bound");
        let text = rest.split('"').next().expect("a text");
        if text == "+Inf" { f64::INFINITY } else { text.parse().expect("a number") }
    };
    let buckets = of("bucket").into_iter().map(|(labels, count)| (bound(labels), count)).collect();
    (buckets, of("sum")[0].1, of("count")[0].1)
}

#[test]
fn waits_in_a_queue_are_a_histogram_whose_last_bucket_holds_all() {
    let (is_open, source) = (Arc::new(AtomicBool::new(false)), FigureSource::new());
    let held = Arc::clone(&is_open);
    let handler = Function::pooled(ClassId::BLOCKING, move |_: &CoapRequest<'_>| {
        while !held.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Response::content("x", 0)
    });
    let mut config = ServerConfig::new(([127, 0, 0, 1], 0).into());
    config.classes = vec![ClassConfig::new("blocking", ControlLaw::Fixed(1))];
    let server = Arc::new(Server::start(&config, Routes::new().add("/held", handler)).expect("started"));
    source.set(&server, &LocalStore::new(), None, None);
    let end = std::time::Instant::now() + PATIENCE;
    let until = |what: &str, seen: &dyn Fn() -> bool| {
        while !seen() {
            // The clients end in any case, for the test to tell what failed.
            if std::time::Instant::now() >= end {
                is_open.store(true, Ordering::SeqCst);
                panic!("{what}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(ask(&server, "/held").0, 2));
        }
        let pooled = || server.snapshot().loops.iter().map(|counts| counts.pooled).sum::<u64>() == 3;
        until("three are in the pool", &pooled);
        std::thread::sleep(Duration::from_millis(30));
        is_open.store(true, Ordering::SeqCst);
    });
    let read = || to_open_metrics(&source.read().expect("figures"));
    until("all are counted", &|| waits(&read()).2 == 3.0);
    let (buckets, sum, count) = waits(&read());
    assert!(buckets.is_sorted_by(|one, next| one.0 < next.0 && one.1 <= next.1), "{buckets:?}");
    assert_eq!((buckets.len(), buckets.last()), (13, Some(&(f64::INFINITY, count))));
    let short = buckets.iter().rfind(|(bound, _)| *bound <= 0.025).expect("a bucket").1;
    assert!(short <= 1.0 && sum >= 0.06, "two waited for the one before: {buckets:?} {sum}");
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
