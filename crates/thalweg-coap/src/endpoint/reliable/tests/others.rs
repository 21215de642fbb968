//! Answers that belong to another request than they seem to.

use super::*;

/// A client to whose requests the test answers by itself.
struct Asker {
    client: ReliableEndpoint,
    end: ConnectionId,
}

impl Asker {
    fn new() -> Asker {
        let mut client = ReliableEndpoint::new(ReliableLimits::default(), [1, 2]);
        let end = client.open(at(0), caller(), Framing::Stream);
        let mut asker = Asker { client, end };
        asker.hear(signal::CSM, Token::EMPTY);
        asker.last_token();
        asker
    }

    fn hear(&mut self, code: Code, token: Token) {
        let mut bytes = Vec::new();
        let message = ReliableMessage { code, token, options: Options::new(&[]), payload: &[] };
        FrameWriter::default().message(&mut bytes, Framing::Stream, &message);
        self.client.handle_bytes(at(0), self.end, &bytes);
    }

    /// The token of the last message that leaves.
    fn last_token(&mut self) -> Token {
        let bytes = self.client.outgoing(self.end).to_vec();
        self.client.handle_sent(at(0), self.end, bytes.len());
        let mut rest = &bytes[..];
        let mut last = Token::EMPTY;
        while let Ok(Some(count)) = message_len(rest) {
            last = ReliableMessage::parse(&rest[..count], Framing::Stream).unwrap().token;
            rest = &rest[count..];
        }
        last
    }

    fn events(&mut self) -> Vec<EndpointEvent> {
        std::iter::from_fn(|| self.client.poll_event()).collect()
    }
}

#[test]
fn a_pong_answers_no_request_and_a_response_no_ping() {
    let mut asker = Asker::new();
    let asked = asker.client.request(asker.end, RequestBuf::get("/a")).unwrap();
    let token = asker.last_token();
    asker.hear(signal::PONG, token);
    asker.hear(Code::CONTENT, token);
    let events = asker.events();
    assert!(matches!(&events[..], [EndpointEvent::Response { request, .. }] if *request == asked), "{events:?}");
    let asked = asker.client.ping(asker.end).unwrap();
    let token = asker.last_token();
    asker.hear(Code::CONTENT, token);
    asker.hear(signal::PONG, token);
    let events = asker.events();
    assert!(matches!(&events[..], [EndpointEvent::Pong { request, .. }] if *request == asked), "{events:?}");
}

#[test]
fn a_request_that_changes_something_is_not_run_again_when_its_response_changes_under_way() {
    let limits = ReliableLimits { message_bytes_max: 1152, ..ReliableLimits::default() };
    let mut pair = Pair::new(Framing::Stream, limits);
    let ask = |pair: &mut Pair| pair.client.request(pair.ends.0, RequestBuf::post("/body", "x")).unwrap();
    let asked = [ask(&mut pair), ask(&mut pair)];
    let mut runs = 0_u8;
    let mut events = Vec::new();
    for _ in 0..20 {
        pair.client.begin_turn(pair.now);
        pair.server.begin_turn(pair.now);
        pair.carry(true);
        while let Some(EndpointEvent::Request { exchange, .. }) = pair.server.poll_event() {
            runs += 1;
            pair.server.respond(pair.now, exchange, Response::content(vec![runs; 2500], 42)).unwrap();
        }
        pair.carry(false);
        events.extend(std::iter::from_fn(|| pair.client.poll_event()));
    }
    assert_eq!(runs, 2);
    let [one, other] = &events[..] else { panic!("{events:?}") };
    let is_changed = |event: &EndpointEvent| matches!(event, EndpointEvent::Failed { request, error: RequestError::BodyChanged, .. } if *request == asked[0]);
    let is_whole = |event: &EndpointEvent| {
        matches!(event, EndpointEvent::Response { request, response, .. }
            if *request == asked[1] && *response.payload == [2; 2500])
    };
    assert!(is_changed(one) && is_whole(other), "{events:?}");
}
