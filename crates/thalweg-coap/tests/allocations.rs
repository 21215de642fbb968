//! A server allocates nothing for a request in steady state: an allocator that counts watches it.

use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_coap::endpoint::{CoapOutbox, Config, Endpoint, EndpointEvent, Peer};
use thalweg_coap::message::{
    Code, MessageId, MessageType, MessageWriter, OptionNumber, Response, Token, content_format,
};
use thalweg_testing::allocations::{self, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Peers that ask in each batch.
const BATCH: usize = 16;
/// Twice as long as an answer is kept: the tables have their final size then.
const WARM_UP: usize = 2000;
const MEASURED: usize = 1000;
const PAUSE: Duration = Duration::from_millis(300);

/// Batches of requests, each answered; no batch after the first ones may allocate.
#[track_caller]
fn check(message_type: MessageType, code: Code) {
    let mut endpoint = Endpoint::new(Config::default(), [1, 2]);
    let mut outbox = CoapOutbox::default();
    let mut datagram = Vec::new();
    let mut now = Instant::ZERO;
    let mut answered = 0;
    let mut batch = |number: usize| {
        for port in 0..BATCH {
            datagram.clear();
            let id = MessageId(number as u16);
            let mut writer = MessageWriter::new(&mut datagram, message_type, code, id, &Token::from_u64(number as u64));
            writer.option(OptionNumber::URI_PATH, b"request");
            endpoint.handle_datagram(now, Peer::from(([127, 0, 0, 1], 1024 + port as u16)), &datagram);
        }
        while let Some(event) = endpoint.poll_event() {
            let EndpointEvent::Request { exchange, request, .. } = event else { panic!("{event:?}") };
            assert!(request.view().is_path("/request"));
            let response = Response::content("hello world", content_format::TEXT);
            endpoint.respond(now, exchange, response).expect("it is not answered yet");
            endpoint.recycle(request);
        }
        endpoint.poll_transmit(&mut outbox);
        answered += outbox.len();
        now += PAUSE;
        endpoint.handle_timeout(now);
    };
    (0..WARM_UP).for_each(&mut batch);
    let before = allocations::of_this_thread();
    (WARM_UP..WARM_UP + MEASURED).for_each(&mut batch);
    let count = allocations::of_this_thread() - before;
    assert_eq!(answered, (WARM_UP + MEASURED) * BATCH);
    assert_eq!(count, 0, "{count} allocations in {} requests", MEASURED * BATCH);
}

#[test]
fn requests_that_change_nothing_allocate_nothing() {
    check(MessageType::NonConfirmable, Code::GET);
    check(MessageType::Confirmable, Code::GET);
}

#[test]
fn requests_whose_answers_are_kept_allocate_nothing() {
    check(MessageType::Confirmable, Code::POST);
    check(MessageType::NonConfirmable, Code::POST);
}
