//! Bodies that are longer than a datagram, over loopback.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use thalweg_coap::endpoint::{Config, Confirmability};
use thalweg_coap::interaction::client::Client;
use thalweg_coap::interaction::handler::Function;
use thalweg_coap::interaction::routes::Routes;
use thalweg_coap::interaction::server::{Server, ServerConfig};
use thalweg_coap::message::{CoapRequest, Code, OptionNumber, RequestBuf, Response};

/// Longer than anything takes on a loaded machine; nothing waits for it when all is well.
const PATIENCE: Duration = Duration::from_secs(20);
/// Q-Block1 and Q-Block2 (RFC 9177 §12.1), which are critical.
const Q_BLOCKS: [OptionNumber; 2] = [OptionNumber(19), OptionNumber(31)];

#[test]
fn a_body_in_q_blocks_is_refused_before_its_handler_and_comes_whole_by_blocks() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let handler = Function::inline(move |request: &CoapRequest<'_>| {
        counted.fetch_add(1, Ordering::SeqCst);
        Response::content(request.payload.len().to_string(), 0)
    });
    let routes = Routes::new().add("/body", handler);
    let server = Server::start(&ServerConfig::new(([127, 0, 0, 1], 0).into()), routes).expect("started");
    let mut client = Client::open(server.address(), Config::default()).expect("a client");
    let mut ask = |request: RequestBuf| {
        client.exchange(server.address(), request, Confirmability::Confirmable, PATIENCE).expect("an answer")
    };
    for option in Q_BLOCKS {
        // The first block of 1,024 bytes, and more follow.
        for request in [RequestBuf::put("/body", vec![7; 1024]), RequestBuf::get("/body")] {
            let refused = ask(request.with_option(option, &[0x0e]));
            assert_eq!(refused.code, Code::BAD_OPTION, "{option}");
        }
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0, "its handler hears nothing of them");
    let answer = ask(RequestBuf::put("/body", vec![7; 20_000]));
    assert_eq!((&*answer.payload, asked.load(Ordering::SeqCst)), (&b"20000"[..], 1));
}
