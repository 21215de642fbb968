//! What comes over a WebSocket, or before there is one, to a running server: frames of any kind and bytes that are none, in pieces.
//! Its loop goes on, and an honest client is served.
#![no_main]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use thalweg_coap::credentials::Credentials;
use thalweg_coap::identity::Transport;
use thalweg_coap::interaction::handler::Function;
use thalweg_coap::interaction::routes::Routes;
use thalweg_coap::interaction::server::{Server, ServerConfig};
use thalweg_coap::interaction::streams::{StreamClient, StreamsConfig};
use thalweg_coap::message::{CoapRequest, RequestBuf, Response, content_format};

/// Ends of connections keep their ports for a minute: so many clients have one server.
const CLIENTS_MAX: usize = 8192;
const PATIENCE: Duration = Duration::from_secs(10);
const HANDSHAKE: &[u8] = b"GET /.well-known/coap HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: coap\r\n\r\n";

static SERVER: Mutex<Option<(Server, usize)>> = Mutex::new(None);

fn start() -> Server {
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut config = ServerConfig::new(any_port);
    let streams = StreamsConfig::new(Credentials::default());
    config.streams = Some(StreamsConfig { listeners: vec![(Transport::WebSocket, any_port)], ..streams });
    let answer = |request: &CoapRequest<'_>| Response::content(request.payload.to_vec(), content_format::OCTET_STREAM);
    let answer = Function::inline(answer);
    Server::start(&config, Routes::new().add("/a", answer)).expect("a server")
}

/// A frame of a client under a mask that changes nothing; `first` has its kind and whether it is the last of its message.
fn frame(first: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match u16::try_from(content.len()) {
        Ok(len @ 0..126) => bytes.push(0x80 | len as u8),
        Ok(len) => {
            bytes.push(0x80 | 126);
            bytes.extend_from_slice(&len.to_be_bytes());
        }
        Err(_) => {
            bytes.push(0x80 | 127);
            bytes.extend_from_slice(&(content.len() as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(content);
    bytes
}

/// Says everything and listens until the server ends the connection.
fn say(address: SocketAddr, has_handshake: bool, pieces: &[Vec<u8>]) {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    stream.set_nodelay(true).expect("set");
    let handshake = if has_handshake { HANDSHAKE } else { &[] };
    // A server that has given the connection up does not read the rest.
    let _ = stream.write_all(handshake);
    let _ = pieces.iter().try_for_each(|piece| stream.write_all(piece));
    let _ = stream.shutdown(Shutdown::Write);
    if let Err(error) = stream.read_to_end(&mut Vec::new()) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "it is ended in time");
    }
}

fuzz_target!(|input: (bool, Vec<(Option<u8>, Vec<u8>)>)| {
    let (has_handshake, pieces) = input;
    let pieces = pieces.into_iter().map(|(first, bytes)| match first {
        Some(first) => frame(first, &bytes),
        None => bytes,
    });
    let mut held = SERVER.lock().expect("one thread");
    let (server, clients) = held.take().filter(|(_, clients)| *clients < CLIENTS_MAX).unwrap_or_else(|| (start(), 0));
    let (transport, address) = server.stream_addresses()[0];
    say(address, has_handshake, &pieces.collect::<Vec<_>>());
    let nothing = Credentials::default();
    let mut client = StreamClient::connect(address, "localhost", transport, &nothing, PATIENCE).expect("connected");
    let answer = client.exchange(RequestBuf::put("/a", "still there"), PATIENCE).expect("an answer");
    assert_eq!(&*answer.payload, b"still there");
    assert_eq!(server.failure(), None);
    *held = Some((server, clients + 2));
});
