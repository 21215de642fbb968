//! In steady state a request that is answered inline allocates nothing; counted by the allocator of this binary.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use thalweg_coap::interaction::handler::Function;
use thalweg_coap::interaction::routes::Routes;
use thalweg_coap::interaction::server::{Server, ServerConfig};
use thalweg_coap::message::{Response, content_format};
use thalweg_testing::allocations::{self, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Asks `rounds` times for `/request` in batches of 32, and waits for the answers; allocates nothing.
fn ask(socket: &UdpSocket, rounds: u16, id: &mut u16) {
    for _ in 0..rounds {
        for _ in 0..32 {
            let [high, low] = id.to_be_bytes();
            *id = id.wrapping_add(1);
            // NON GET, token of four bytes, Uri-Path: 16 bytes.
            let request = [0x54, 0x01, high, low, 1, 2, high, low, 0xb7, b'r', b'e', b'q', b'u', b'e', b's', b't'];
            socket.send(&request).unwrap();
        }
        let mut buffer = [0; 64];
        for _ in 0..32 {
            let count = socket.recv(&mut buffer).expect("an answer");
            assert!(buffer[..count].ends_with(b"hello world"));
        }
    }
}

#[test]
fn a_request_in_steady_state_allocates_nothing() {
    let hello = Function::inline(|_| Response::content("hello world", content_format::TEXT));
    let config = ServerConfig::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let server = Server::start(&config, Routes::new().add("/request", hello)).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.connect(server.address()).unwrap();
    let mut id = 0;
    ask(&socket, 100, &mut id);
    let before = allocations::of_all_threads();
    ask(&socket, 200, &mut id);
    let allocated = allocations::of_all_threads() - before;
    assert!(allocated < 20, "{allocated} allocations for 6400 requests");
}
