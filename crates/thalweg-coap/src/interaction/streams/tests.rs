use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig as TlsConfig, ServerConnection};

use super::conduit::Heard;
use super::tls::TlsLayer;
use super::web::WebLayer;
use super::*;
use crate::credentials::{OwnCertificate, Trust, provider};
use crate::endpoint::EndpointEvent;
use crate::endpoint::reliable::{FrameWriter, Framing, ReliableCounts, ReliableMessage};
use crate::interaction::handler::{ClassId, Function};
use crate::interaction::routes::Routes;
use crate::interaction::server::{Server, ServerConfig};
use crate::message::{Code, Observe, RequestBuf, Response, Token, content_format};

const PATIENCE: Duration = Duration::from_secs(60);

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

fn own() -> OwnCertificate {
    OwnCertificate::load(&file("server.pem"), &file("server-key.pem")).unwrap()
}

fn trusting() -> Credentials {
    Credentials { trust: Some(Trust::load(&file("authority.pem")).unwrap()), ..Credentials::default() }
}

/// A server at one address for connections.
fn serve(transport: Transport, limits: ReliableLimits) -> (Server, SocketAddr) {
    serve_routes(transport, limits, Routes::new())
}

fn serve_routes(transport: Transport, limits: ReliableLimits, routes: Routes) -> (Server, SocketAddr) {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let credentials = Credentials { certificate: Some(own()), ..Credentials::default() };
    let streams = StreamsConfig::new(credentials);
    let config = ServerConfig {
        streams: Some(StreamsConfig { listeners: vec![(transport, any_port)], limits, ..streams }),
        ..ServerConfig::new(any_port)
    };
    let server = Server::start(&config, routes).unwrap();
    let (_, address) = server.stream_addresses()[0];
    (server, address)
}

#[track_caller]
fn wait_until(server: &Server, what: &str, is_so: impl Fn(&ReliableCounts) -> bool) {
    let start = Instant::now();
    while !is_so(&server.snapshot().connections) {
        assert!(start.elapsed() < PATIENCE, "{what}: {:?}", server.snapshot().connections);
        std::thread::sleep(Duration::from_millis(5));
    }
}

const REQUEST: &[u8] = b"GET /.well-known/coap HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: coap\r\n\r\n";
/// The first message of each end, without options.
const CSM: &[u8] = &[0x00, 0xe1];
const WHOLE: u8 = 0x82;
const FIRST: u8 = 0x02;
const MORE: u8 = 0x00;
const PING: u8 = 0x89;

/// The header of a masked frame, under a mask that changes nothing.
fn header(first: u8, len: u16) -> Vec<u8> {
    let [high, low] = len.to_be_bytes();
    vec![first, 0x80 | 126, high, low, 0, 0, 0, 0]
}

fn frame(first: u8, content: &[u8]) -> Vec<u8> {
    [&header(first, content.len() as u16)[..], content].concat()
}

/// A client whose WebSocket is open and which has said what it can do.
fn open_web(server: SocketAddr) -> TcpStream {
    let mut socket = TcpStream::connect(server).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(REQUEST).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        answer.extend_from_slice(&byte);
    }
    assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
    socket.write_all(&frame(WHOLE, CSM)).unwrap();
    socket
}

#[test]
fn a_message_in_endless_fragments_ends_its_connection() {
    for content in [&b""[..], b"x"] {
        let limits = ReliableLimits { message_time_max: Duration::from_millis(200), ..ReliableLimits::default() };
        let (server, address) = serve(Transport::WebSocket, limits);
        let mut socket = open_web(address);
        socket.write_all(&frame(FIRST, &[0x00, 0x02])).unwrap();
        let start = Instant::now();
        while socket.write_all(&frame(MORE, content)).is_ok() {
            assert!(start.elapsed() < PATIENCE, "the connection goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
        wait_until(&server, "it was too slow", |counts| counts.timed_out == 1 && counts.inbound_bytes == 0);
    }
}

#[test]
fn frames_that_are_announced_and_do_not_come_have_a_bound_for_all_connections() {
    let limits = ReliableLimits { inbound_bytes_max: 100_000, ..ReliableLimits::default() };
    let (server, address) = serve(Transport::WebSocket, limits);
    let mut sockets: Vec<TcpStream> = (0..4).map(|_| open_web(address)).collect();
    for (number, socket) in sockets.iter_mut().enumerate() {
        socket.write_all(&[header(WHOLE, 40_000), vec![0; 10]].concat()).unwrap();
        wait_until(&server, "it has arrived", |counts| {
            counts.inbound_bytes >= 40_000 * (number + 1).min(2) && counts.aborted as usize == number.saturating_sub(1)
        });
        assert!(server.snapshot().connections.inbound_bytes <= 100_000);
    }
}

#[test]
fn a_client_that_has_closed_its_sending_side_gets_the_answers_under_way() {
    let ((begin, began), (go_on, wait)) = (mpsc::channel(), mpsc::channel::<()>());
    let parts = Mutex::new((begin, wait));
    let late = Function::pooled(ClassId::BLOCKING, move |_| {
        let parts = parts.lock().unwrap();
        parts.0.send(()).unwrap();
        parts.1.recv().unwrap();
        Response::content("late", content_format::TEXT)
    });
    let (server, address) = serve_routes(Transport::Tcp, ReliableLimits::default(), Routes::new().add("/late", late));
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = RequestBuf::get("/late");
    let options = request.view().options;
    let message = ReliableMessage { code: Code::GET, token: Token::EMPTY, options, payload: &[] };
    let mut bytes = CSM.to_vec();
    FrameWriter::default().message(&mut bytes, Framing::Stream, &message);
    socket.write_all(&bytes).unwrap();
    began.recv_timeout(PATIENCE).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    // Time in which a server that takes this for the end closes the connection.
    std::thread::sleep(Duration::from_millis(50));
    go_on.send(()).unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).unwrap();
    assert!(answer.ends_with(b"late"), "{answer:?}");
    wait_until(&server, "it is over", |counts| counts.connections == 0);
}

#[test]
fn what_comes_for_others_during_an_exchange_is_told_after_it() {
    let (begin, began) = mpsc::channel();
    let observed = Function::inline(|_| Response::content("state", content_format::TEXT).observable());
    let slow = Function::pooled(ClassId::BLOCKING, move |_| {
        begin.send(()).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        Response::content("slow", content_format::TEXT)
    });
    let routes = Routes::new().add("/state", observed).add("/slow", slow);
    let (server, address) = serve_routes(Transport::Tcp, ReliableLimits::default(), routes);
    let credentials = Credentials::default();
    let mut client = StreamClient::connect(address, "server", Transport::Tcp, &credentials, PATIENCE).unwrap();
    let registration = client.send(RequestBuf::get("/state").with_observe(Observe::Register)).unwrap();
    assert!(matches!(client.next(PATIENCE).unwrap(), Some(EndpointEvent::Response { .. })));
    let notifier = server.notifier();
    let change = std::thread::spawn(move || {
        began.recv().unwrap();
        notifier.change("/state");
    });
    assert_eq!(&*client.exchange(RequestBuf::get("/slow"), PATIENCE).unwrap().payload, b"slow");
    change.join().unwrap();
    let event = client.next(PATIENCE).unwrap();
    let Some(EndpointEvent::Response { request, response, .. }) = event else { panic!("{event:?}") };
    assert_eq!((request, &*response.payload), (registration, &b"state"[..]));
}

#[test]
fn a_client_that_takes_no_answers_to_its_pings_is_given_up() {
    let limits = ReliableLimits { message_time_max: Duration::from_millis(500), ..ReliableLimits::default() };
    let (server, address) = serve(Transport::WebSocket, limits);
    let mut socket = open_web(address);
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    let pings = frame(PING, &[0; 120]).repeat(1000);
    let start = Instant::now();
    while socket.write_all(&pings).is_ok() {
        assert!(start.elapsed() < PATIENCE, "it is read without end");
    }
    wait_until(&server, "it takes nothing", |counts| {
        counts.timed_out > 0 && counts.connections == 0 && counts.outbound_bytes == 0
    });
}

#[test]
fn what_a_websocket_holds_is_told_however_its_bytes_are_cut() {
    let bytes = [REQUEST, &frame(WHOLE, CSM)[..], &frame(FIRST, b"abc")[..]].concat();
    for cut in 0..=bytes.len() {
        let mut web = WebLayer::accept(1000);
        web.handle(&bytes[..cut]).unwrap();
        web.handle(&bytes[cut..]).unwrap();
        assert!(!web.is_handshaking(), "{cut}");
        let Ok(Some(Heard::Bytes(message))) = web.next_message() else { panic!("{cut}") };
        assert_eq!(message, CSM);
        assert!(matches!(web.next_message(), Ok(None)), "{cut}");
        assert_eq!(web.waiting_bytes(), 8 + 3, "{cut}");
        web.handle(&frame(0x80, b"d")).unwrap();
        let Ok(Some(Heard::Bytes(message))) = web.next_message() else { panic!("{cut}") };
        assert_eq!((message.as_slice(), web.waiting_bytes()), (&b"abcd"[..], 0), "{cut}");
    }
}

#[test]
fn messages_that_come_with_the_end_of_the_handshake_are_heard_by_both_ends() {
    let (mut client, mut server) = (WebLayer::connect("a:1", 1000).unwrap(), WebLayer::accept(1000));
    client.go_on().unwrap();
    let (mut request, mut response) = (Vec::new(), Vec::new());
    client.take(&mut request);
    server.handle(&request).unwrap();
    server.wrap(CSM).unwrap();
    server.take(&mut response);
    client.handle(&response).unwrap();
    let Ok(Some(Heard::Bytes(message))) = client.next_message() else { panic!("it has arrived") };
    assert_eq!((message.as_slice(), client.waiting_bytes()), (CSM, 0));
}

#[test]
fn the_http_message_of_a_handshake_has_a_bound() {
    let mut web = WebLayer::accept(1000);
    web.handle(b"GET /.well-known/coap HTTP/1.1\r\nA: ").unwrap();
    let parts = (0..10).map(|_| web.handle(&[b'a'; 1000])).filter(Result::is_ok).count();
    assert_eq!(parts, 8);
}

#[test]
fn a_message_that_is_longer_than_the_csm_allows_ends_a_websocket_before_it_has_arrived() {
    let csm_max = 1000;
    for bytes in [header(WHOLE, 1001), [frame(FIRST, &[0; 600]), frame(MORE, &[0; 401])].concat()] {
        let mut web = WebLayer::accept(csm_max);
        web.handle(REQUEST).unwrap();
        web.handle(&bytes).unwrap();
        assert!(web.next_message().is_err());
    }
}

/// Sets TLS up between a client's layer and a server that knows these protocols.
fn shake_hands(client: &mut TlsLayer, server: &mut ServerConnection) -> io::Result<()> {
    while client.is_handshaking() || server.is_handshaking() {
        let (mut there, mut back, mut plain) = (Vec::new(), Vec::new(), Vec::new());
        client.take(&mut there)?;
        let mut there = &there[..];
        while !there.is_empty() {
            server.read_tls(&mut there)?;
            // What went wrong is told to the client.
            let _ = server.process_new_packets();
        }
        while server.wants_write() {
            server.write_tls(&mut back)?;
        }
        client.open(&back, &mut plain)?;
    }
    Ok(())
}

fn protocols(names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

#[test]
fn a_client_insists_on_the_protocol_coap_at_every_port_but_the_registered_one() {
    let check = |transport: Transport, port: u16, known: &[&str], is_connected: bool| {
        let own = own();
        let builder = TlsConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
        let config = builder.with_no_client_auth().with_single_cert(own.chain().to_vec(), own.key().clone_key());
        let mut config = config.unwrap();
        config.alpn_protocols = protocols(known);
        let mut server = ServerConnection::new(Arc::new(config)).unwrap();
        let mut client = TlsLayer::connect(&trusting(), "server", transport, port).unwrap();
        let outcome = shake_hands(&mut client, &mut server);
        assert_eq!(outcome.is_ok(), is_connected, "{transport} {port} {known:?}: {outcome:?}");
        if known.is_empty()
            && let Err(error) = outcome
        {
            assert!(error.to_string().contains("ALPN"), "{error}");
        }
    };
    for port in [5684, 7000] {
        check(Transport::Tls, port, &["coap"], true);
        check(Transport::Tls, port, &["h2", "coap"], true);
        check(Transport::Tls, port, &["h2"], false);
        check(Transport::SecureWebSocket, port, &[], true);
        check(Transport::SecureWebSocket, port, &["http/1.1"], true);
    }
    check(Transport::Tls, 5684, &[], true);
    check(Transport::Tls, 7000, &[], false);
}

/// Sets TLS up as a client that offers these protocols; tells which one the server agreed on.
fn offer(server: SocketAddr, offered: &[&str]) -> io::Result<Option<Vec<u8>>> {
    use rustls::pki_types::pem::PemObject;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("authority.pem")).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols(offered);
    let mut connection = ClientConnection::new(Arc::new(config), ServerName::try_from("127.0.0.1").unwrap()).unwrap();
    let mut socket = TcpStream::connect(server).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    let mut first = [0];
    rustls::Stream::new(&mut connection, &mut socket).read_exact(&mut first)?;
    Ok(connection.alpn_protocol().map(<[u8]>::to_vec))
}

#[test]
fn a_server_agrees_on_the_protocol_coap_and_lets_clients_without_an_offer_in() {
    let (_server, address) = serve(Transport::Tls, ReliableLimits::default());
    assert_eq!(offer(address, &["coap"]).unwrap().as_deref(), Some(&b"coap"[..]));
    assert_eq!(offer(address, &["h2", "coap"]).unwrap().as_deref(), Some(&b"coap"[..]));
    assert_eq!(offer(address, &[]).unwrap(), None);
    let refused = offer(address, &["h2"]).unwrap_err();
    assert!(refused.to_string().contains("NoApplicationProtocol"), "{refused}");
    let mut client = StreamClient::connect(address, "server", Transport::Tls, &trusting(), PATIENCE).unwrap();
    assert_eq!(client.exchange(RequestBuf::get("/none"), PATIENCE).unwrap().code, Code::NOT_FOUND);
    let (_server, address) = serve(Transport::SecureWebSocket, ReliableLimits::default());
    StreamClient::connect(address, "server", Transport::SecureWebSocket, &trusting(), PATIENCE).unwrap();
}
