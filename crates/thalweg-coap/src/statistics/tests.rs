use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::endpoint::Confirmability;
use crate::interaction::client::Client;
use crate::interaction::routes::Routes;
use crate::interaction::server::ServerConfig;
use crate::message::RequestBuf;

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
    let metrics =
        MetricsServer::start(([127, 0, 0, 1], 0).into(), source, server.scheduler().manager()).expect("started");
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

#[test]
fn what_is_no_scrape_is_refused_and_holds_nobody_up_for_long() {
    let (source, server) = started();
    source.set(&server, &LocalStore::new(), None, None);
    let metrics =
        MetricsServer::start(([127, 0, 0, 1], 0).into(), source, server.scheduler().manager()).expect("started");
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
