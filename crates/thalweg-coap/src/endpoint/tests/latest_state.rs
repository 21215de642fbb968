//! Every observer knows the latest state in the end, whatever changes while handlers work (RFC 7641 §1.3).

use super::*;

/// A confirmable request to observe `/a`, always under the same token.
fn registration(id: u8) -> Vec<u8> {
    bytes(&format!("410100{id:02x} 07 60 5161"))
}

fn state(text: &'static str) -> Response {
    Response::content(text, 0).observable()
}

impl Host {
    /// The one request that waits for its handler.
    #[track_caller]
    fn asked(&mut self) -> ExchangeId {
        let exchanges = self.exchanges();
        assert_eq!(exchanges.len(), 1);
        exchanges[0]
    }

    fn answer(&mut self, exchange: ExchangeId, text: &'static str) {
        self.endpoint.respond(self.now, exchange, state(text)).unwrap();
    }

    /// Acknowledges the confirmable messages that are ready; gives the payloads of all that are.
    fn told(&mut self) -> Vec<String> {
        let sent = self.sent();
        let mut payloads = Vec::new();
        for bytes in &sent {
            let message = CoapMessage::parse(bytes).unwrap();
            payloads.push(String::from_utf8(message.payload.to_vec()).unwrap());
            if message.message_type == MessageType::Confirmable {
                self.receive(CLIENT, &[0x60, 0, bytes[2], bytes[3]]);
            }
        }
        payloads
    }

    /// An endpoint with one observer of `/a`, which knows the state "0" and acknowledged it.
    fn observed() -> Host {
        let mut server = Host::new(trusting());
        server.receive(CLIENT, &registration(1));
        let exchange = server.asked();
        server.answer(exchange, "0");
        assert_eq!(server.told(), ["0"]);
        server.events();
        server
    }
}

#[test]
fn a_change_between_the_look_of_the_handler_and_the_registration_is_told() {
    let mut server = Host::new(trusting());
    server.receive(CLIENT, &registration(1));
    let first = server.asked();
    server.endpoint.notify(server.now, "/b");
    server.endpoint.notify(server.now, "/a");
    server.answer(first, "before");
    assert_eq!(server.told(), ["before"]);
    let again = server.asked();
    server.answer(again, "after");
    assert_eq!(server.told(), ["after"]);
    assert!(server.exchanges().is_empty());
}

#[test]
fn a_change_before_the_look_of_the_handler_is_not_told_twice() {
    let mut server = Host::new(trusting());
    server.endpoint.notify(server.now, "/a");
    server.receive(CLIENT, &registration(1));
    let first = server.asked();
    server.endpoint.notify(server.now, "/b");
    server.answer(first, "0");
    assert_eq!(server.told(), ["0"]);
    assert!(server.exchanges().is_empty());
}

#[test]
fn an_older_state_that_renews_a_registration_is_followed_by_the_newer_one() {
    let mut server = Host::observed();
    server.receive(CLIENT, &registration(2));
    let renewal = server.asked();
    server.endpoint.notify(server.now, "/a");
    let notification = server.asked();
    server.answer(notification, "new");
    assert_eq!(server.told(), ["new"]);
    server.answer(renewal, "old");
    let again = server.asked();
    server.answer(again, "new");
    assert_eq!(server.told(), ["old", "new"]);
    assert!(server.exchanges().is_empty());
}

#[test]
fn a_notification_that_is_left_out_is_tried_again() {
    let mut server = Host::observed();
    for round in 0..5 {
        if round == 0 {
            server.endpoint.notify(server.now, "/a");
        }
        let exchange = server.asked();
        server.endpoint.abandon(server.now, exchange);
        assert!(server.exchanges().is_empty(), "not at once");
        server.pass(Duration::from_millis(999));
        assert!(server.exchanges().is_empty(), "not yet");
        server.pass(Duration::from_millis(20));
    }
    let exchange = server.asked();
    server.answer(exchange, "1");
    assert_eq!(server.told(), ["1"]);
    assert_eq!(server.endpoint.observers("/a"), 1);
    server.pass(Duration::from_secs(60));
    assert!(server.exchanges().is_empty(), "it is done");
}

#[test]
fn a_change_does_not_wait_for_a_notification_that_was_left_out() {
    let mut server = Host::observed();
    server.endpoint.notify(server.now, "/a");
    let exchange = server.asked();
    server.endpoint.notify(server.now, "/a");
    server.endpoint.abandon(server.now, exchange);
    server.endpoint.notify(server.now, "/a");
    let exchange = server.asked();
    server.answer(exchange, "2");
    assert_eq!(server.told(), ["2"]);
}

#[test]
fn observers_that_leave_while_their_notifications_are_left_out_give_their_places_back() {
    let mut server = Host::observed();
    server.endpoint.notify(server.now, "/a");
    let exchange = server.asked();
    server.receive(CLIENT, &bytes("41010003 07 6101 5161"));
    server.serve(hello);
    assert_eq!(server.endpoint.observers("/a"), 0);
    server.endpoint.abandon(server.now, exchange);
    server.pass(Duration::from_secs(2));
    assert_eq!((server.exchanges().len(), server.endpoint.counters().exchanges), (0, 0));
}
