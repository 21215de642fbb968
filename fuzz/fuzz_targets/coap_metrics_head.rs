//! What a client of `/metrics` says over HTTP, in pieces: it gets one answer of a known kind, and the next client gets the figures.
#![no_main]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use thalweg_coap::statistics::MetricsServer;

/// Ends of connections keep their ports for a minute: so many clients have one server.
const CLIENTS_MAX: usize = 8192;
const STATUSES: [&str; 5] = ["200 ", "404 ", "405 ", "431 ", "503 "];

static SERVER: Mutex<Option<(MetricsServer, usize)>> = Mutex::new(None);

fn address() -> SocketAddr {
    let mut server = SERVER.lock().expect("one thread");
    let (running, clients) = match server.take() {
        Some((running, clients)) if clients < CLIENTS_MAX => (running, clients),
        _ => {
            let read = || Some("figure 1\n# EOF\n".to_owned());
            let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
            (MetricsServer::start(any_port, read, MetricsServer::spawn).expect("a server"), 0)
        }
    };
    let address = running.address();
    *server = Some((running, clients + 2));
    address
}

/// Says these pieces and reads the answer; empty when the server has ended the connection before.
fn ask(address: SocketAddr, pieces: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
    stream.set_nodelay(true).expect("set");
    // A server that has answered already may not read the rest.
    let _ = pieces.iter().try_for_each(|piece| stream.write_all(piece));
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) => assert!(error.kind() == std::io::ErrorKind::ConnectionReset, "{error}"),
    }
    String::from_utf8(answer).expect("answers are text")
}

fuzz_target!(|pieces: Vec<Vec<u8>>| {
    let address = address();
    let answer = ask(address, &pieces.iter().map(Vec::as_slice).collect::<Vec<&[u8]>>());
    let status = answer.strip_prefix("HTTP/1.1 ");
    assert!(
        answer.is_empty() || status.is_some_and(|rest| STATUSES.iter().any(|status| rest.starts_with(status))),
        "{answer}"
    );
    assert_eq!(answer.matches("HTTP/1.1 ").count(), usize::from(!answer.is_empty()));
    let figures = ask(address, &[b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"]);
    assert!(figures.ends_with("\r\n\r\nfigure 1\n# EOF\n"), "{figures}");
});
