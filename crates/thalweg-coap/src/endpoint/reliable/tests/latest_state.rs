//! Every observer knows the latest state in the end, as over UDP (RFC 7641 §1.3).

use super::*;

impl Pair {
    /// A client that observes `/a` and knows the state "0".
    fn observed(limits: ReliableLimits) -> Pair {
        let mut pair = Pair::new(Framing::Stream, limits);
        let exchange = pair.register();
        assert_eq!(pair.told(exchange, "0"), ["0"]);
        pair
    }

    /// Asks to observe; the request waits for its handler.
    fn register(&mut self) -> ExchangeId {
        self.client.request(self.ends.0, RequestBuf::get("/a").with_observe(Observe::Register)).unwrap();
        self.meet();
        self.asked_one()
    }

    /// Moves bytes until there are no more.
    fn meet(&mut self) {
        while self.carry(true) | self.carry(false) {}
    }

    fn exchanges(&mut self) -> Vec<ExchangeId> {
        let exchange = |event| match event {
            EndpointEvent::Request { exchange, .. } => Some(exchange),
            _ => None,
        };
        std::iter::from_fn(|| self.server.poll_event()).filter_map(exchange).collect()
    }

    /// The one request that waits for its handler.
    #[track_caller]
    fn asked_one(&mut self) -> ExchangeId {
        let exchanges = self.exchanges();
        assert_eq!(exchanges.len(), 1);
        exchanges[0]
    }

    /// A second passes, and the next tick of the timers.
    fn wait_a_second(&mut self) {
        let end = self.now + Duration::from_millis(1_100);
        while let Some(due) = self.server.poll_timeout().filter(|due| *due <= end) {
            self.server.handle_timeout(due);
        }
        self.now = end;
    }

    /// Answers; gives the payloads that leave for the client.
    fn sent(&mut self, exchange: ExchangeId, text: &'static str) -> Vec<String> {
        let response = Response::content(text, content_format::TEXT).observable();
        self.server.respond(self.now, exchange, response).unwrap();
        let sent = self.server.outgoing(self.ends.1).to_vec();
        self.server.handle_sent(self.now, self.ends.1, sent.len());
        let (mut payloads, mut rest) = (Vec::new(), &sent[..]);
        while let Ok(Some(len)) = message_len(rest) {
            let message = ReliableMessage::parse(&rest[..len], Framing::Stream).unwrap();
            payloads.push(String::from_utf8(message.payload.to_vec()).unwrap());
            rest = &rest[len..];
        }
        payloads
    }

    /// Answers; gives the payloads that the client got.
    fn told(&mut self, exchange: ExchangeId, text: &'static str) -> Vec<String> {
        let response = Response::content(text, content_format::TEXT).observable();
        self.server.respond(self.now, exchange, response).unwrap();
        self.meet();
        let payload = |event| match event {
            EndpointEvent::Response { response, .. } => String::from_utf8(response.payload.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        };
        std::iter::from_fn(|| self.client.poll_event()).map(payload).collect()
    }
}

#[test]
fn a_change_between_the_look_of_the_handler_and_the_registration_is_told() {
    let mut pair = Pair::new(Framing::Stream, ReliableLimits::default());
    let first = pair.register();
    pair.server.notify(pair.now, "/a");
    assert_eq!(pair.told(first, "before"), ["before"]);
    let again = pair.asked_one();
    assert_eq!(pair.told(again, "after"), ["after"]);
    assert!(pair.exchanges().is_empty());
}

#[test]
fn what_was_asked_for_before_a_registration_was_renewed_is_not_told_after_it() {
    // GET /a with Observe 0, always under the same token.
    const REGISTRATION: [u8; 6] = [0x31, 0x01, 0x07, 0x60, 0x51, 0x61];
    let mut pair = Pair::new(Framing::Stream, ReliableLimits::default());
    pair.meet();
    let register = |pair: &mut Pair| {
        pair.server.handle_bytes(pair.now, pair.ends.1, &REGISTRATION);
        pair.asked_one()
    };
    let first = register(&mut pair);
    assert_eq!(pair.sent(first, "0"), ["0"]);
    pair.server.notify(pair.now, "/a");
    let notification = pair.asked_one();
    let renewal = register(&mut pair);
    assert_eq!(pair.sent(renewal, "2"), ["2"]);
    assert!(pair.sent(notification, "1").is_empty());
    pair.server.notify(pair.now, "/a");
    let next = pair.asked_one();
    assert_eq!(pair.sent(next, "3"), ["3"]);
}

#[test]
fn a_notification_that_is_left_out_is_tried_again() {
    let mut pair = Pair::observed(ReliableLimits::default());
    pair.server.notify(pair.now, "/a");
    for _ in 0..5 {
        let exchange = pair.asked_one();
        pair.server.abandon(pair.now, exchange);
        pair.meet();
        assert!(pair.exchanges().is_empty(), "not at once");
        pair.wait_a_second();
    }
    let exchange = pair.asked_one();
    assert_eq!(pair.told(exchange, "1"), ["1"]);
    assert_eq!(pair.server.counts().observers, 1);
    pair.wait_a_second();
    assert!(pair.exchanges().is_empty(), "it is done");
}

#[test]
fn a_connection_that_is_full_of_notifications_left_out_does_not_ask_without_end() {
    let limits = ReliableLimits { exchanges_per_connection_max: 1, ..ReliableLimits::default() };
    let mut pair = Pair::observed(limits);
    pair.server.notify(pair.now, "/a");
    let exchange = pair.asked_one();
    pair.server.abandon(pair.now, exchange);
    assert!(pair.exchanges().is_empty());
    pair.wait_a_second();
    let exchange = pair.asked_one();
    assert_eq!(pair.told(exchange, "1"), ["1"]);
}

#[test]
fn a_notification_in_another_format_ends_the_registration() {
    let mut pair = Pair::observed(ReliableLimits::default());
    pair.server.notify(pair.now, "/a");
    let exchange = pair.asked_one();
    let other = Response::content("{}", content_format::JSON).observable();
    pair.server.respond(pair.now, exchange, other).unwrap();
    pair.meet();
    match pair.client.poll_event() {
        Some(EndpointEvent::Response { response, .. }) => {
            assert_eq!((response.code, response.observe), (Code::NOT_ACCEPTABLE, None));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(pair.server.counts().observers, 0);
}
