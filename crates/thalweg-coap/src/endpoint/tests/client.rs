//! What becomes of a client's requests.

use super::*;
use crate::message::{ETag, MessageId, MessageWriter, Token};
use crate::oscore::{Context, ContextParameters, Past, SequenceStore};

fn get(client: &mut Host, target: &str, delivery: Confirmability) -> RequestId {
    client.endpoint.request(client.now, peer(SERVER), RequestBuf::get(target), delivery).unwrap()
}

/// A datagram of a server: the response to `request` with its token, and its ID if it is an acknowledgement.
fn answer(
    request: &[u8],
    message_type: MessageType,
    id: u16,
    code: Code,
    options: &[(OptionNumber, &[u8])],
) -> Vec<u8> {
    let request = CoapMessage::parse(request).unwrap();
    let is_acknowledgement = message_type == MessageType::Acknowledgement;
    let id = if is_acknowledgement { request.id } else { MessageId(id) };
    let mut out = Vec::new();
    let mut writer = MessageWriter::new(&mut out, message_type, code, id, &request.token);
    options.iter().for_each(|(number, value)| {
        writer.option(*number, value);
    });
    writer.payload(b"x");
    out
}

#[track_caller]
fn failure(client: &mut Host) -> RequestError {
    match client.events().as_slice() {
        [EndpointEvent::Failed { error, .. }] => error.clone(),
        other => panic!("expected one failure: {other:?}"),
    }
}

#[test]
fn a_request_that_nobody_acknowledges_is_repeated_with_growing_pauses_and_fails() {
    let mut client = Host::new(Config::default());
    get(&mut client, "/a", Confirmability::Confirmable);
    let first = client.sent();
    let mut at = vec![0];
    for tenth in 1..=930 {
        client.pass(Duration::from_millis(100));
        let sent = client.sent();
        assert!(sent.is_empty() || sent == first, "the very same message");
        at.extend(sent.iter().map(|_| tenth));
    }
    let pauses: Vec<i32> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses.len(), 4, "MAX_RETRANSMIT");
    assert!((20..=31).contains(&pauses[0]), "ACK_TIMEOUT to half more: {pauses:?}");
    assert!(pauses.windows(2).all(|pair| (pair[1] - 2 * pair[0]).abs() <= 2), "doubled: {pauses:?}");
    assert_eq!(failure(&mut client), RequestError::TimedOut);
    assert_eq!((client.endpoint.poll_timeout(), client.endpoint.counters().requests), (None, 0));
}

#[test]
fn a_separate_response_is_acknowledged_each_time_and_told_once() {
    let mut client = Host::new(Config::default());
    get(&mut client, "/a", Confirmability::Confirmable);
    let request = client.sent().remove(0);
    client.receive(SERVER, &[0x60, 0, request[2], request[3]]);
    client.pass(Duration::from_secs(60));
    assert!(client.sent().is_empty(), "acknowledged, so not repeated");
    let separate = answer(&request, MessageType::Confirmable, 77, Code::CONTENT, &[]);
    client.receive(SERVER, &separate);
    client.receive(SERVER, &separate);
    assert_eq!(client.lines(), ["ACK 0.00", "ACK 0.00"]);
    assert_eq!(response(&mut client).code, Code::CONTENT);
}

#[test]
fn a_response_that_overtakes_its_acknowledgement_counts() {
    let mut client = Host::new(Config::default());
    get(&mut client, "/a", Confirmability::Confirmable);
    let request = client.sent().remove(0);
    client.receive(SERVER, &answer(&request, MessageType::NonConfirmable, 77, Code::CONTENT, &[]));
    client.receive(SERVER, &[0x60, 0, request[2], request[3]]);
    client.pass(Duration::from_secs(60));
    assert!(client.sent().is_empty());
    assert_eq!(response(&mut client).code, Code::CONTENT);
}

#[test]
fn an_acknowledged_request_without_response_fails_in_time() {
    let mut client = Host::new(Config::default());
    get(&mut client, "/a", Confirmability::Confirmable);
    let request = client.sent().remove(0);
    client.receive(SERVER, &[0x60, 0, request[2], request[3]]);
    client.pass(Duration::from_secs(92));
    assert!(client.events().is_empty());
    client.pass(Duration::from_secs(2));
    assert_eq!(failure(&mut client), RequestError::TimedOut);
}

#[test]
fn only_the_right_peer_token_and_id_answer() {
    let mut client = Host::new(Config::default());
    get(&mut client, "/a", Confirmability::Confirmable);
    let request = client.sent().remove(0);
    let right = answer(&request, MessageType::Acknowledgement, 0, Code::CONTENT, &[]);
    client.receive(SERVER + 1, &right);
    client.receive(SERVER + 1, &answer(&request, MessageType::NonConfirmable, 7, Code::CONTENT, &[]));
    let mut wrong = right.clone();
    wrong[11] ^= 1;
    client.receive(SERVER, &wrong);
    wrong = right.clone();
    wrong[3] ^= 1;
    client.receive(SERVER, &wrong);
    assert!(client.events().is_empty() && client.sent().is_empty());
    client.receive(SERVER, &right);
    assert_eq!(&*response(&mut client).payload, b"x");
}

#[test]
fn a_reset_ends_a_request_and_answers_a_ping() {
    for delivery in [Confirmability::Confirmable, Confirmability::NonConfirmable] {
        let mut client = Host::new(Config::default());
        get(&mut client, "/a", delivery);
        let request = client.sent().remove(0);
        client.receive(SERVER, &[0x70, 0, request[2], request[3]]);
        assert_eq!(failure(&mut client), RequestError::Reset);
    }
    let mut client = Host::new(Config::default());
    let mut server = Host::new(Config::default());
    let ping = client.endpoint.ping(client.now, peer(SERVER)).unwrap();
    assert_eq!(exchange(&mut client, &mut server, nobody), ["> CON 0.00", "< RST 0.00"]);
    assert_eq!(client.events(), [EndpointEvent::Pong { request: ping, peer: peer(SERVER) }]);
    client.endpoint.ping(client.now, peer(SERVER)).unwrap();
    client.pass(Duration::from_secs(100));
    (0..10).for_each(|_| client.pass(Duration::from_secs(100)));
    assert_eq!(failure(&mut client), RequestError::TimedOut);
}

#[test]
fn requests_to_one_peer_wait_for_their_turn() {
    let mut client = Host::new(Config { nstart: 2, ..Config::default() });
    for number in 0..5 {
        get(&mut client, &format!("/{number}"), Confirmability::Confirmable);
    }
    let other = client.endpoint.request(client.now, peer(9), RequestBuf::get("/x"), Confirmability::Confirmable);
    assert!(other.is_ok());
    let sent = client.sent();
    let lines: Vec<String> = sent.iter().map(|bytes| describe(bytes)).collect();
    assert_eq!(lines, ["CON 0.01 /0", "CON 0.01 /1", "CON 0.01 /x"]);
    client.receive(SERVER, &answer(&sent[1], MessageType::Acknowledgement, 0, Code::CONTENT, &[]));
    client.receive(SERVER, &[0x60, 0, sent[0][2], sent[0][3]]);
    assert_eq!(client.lines(), ["CON 0.01 /2", "CON 0.01 /3"], "an acknowledgement is enough");
    get(&mut client, "/non", Confirmability::NonConfirmable);
    assert_eq!(client.lines(), ["NON 0.01 /non"], "what is sent once need not wait");
}

#[test]
fn cancelled_requests_give_their_turn_away() {
    let mut client = Host::new(Config::default());
    let first = get(&mut client, "/0", Confirmability::Confirmable);
    let second = get(&mut client, "/1", Confirmability::Confirmable);
    get(&mut client, "/2", Confirmability::Confirmable);
    client.sent();
    client.endpoint.cancel(client.now, second);
    client.endpoint.cancel(client.now, first);
    assert_eq!(client.lines(), ["CON 0.01 /2"]);
    assert!(client.events().is_empty());
}

struct FullDisk;

impl SequenceStore for FullDisk {
    fn reserve(&mut self, _end: u64) -> std::io::Result<()> {
        Err(std::io::Error::other("disk full"))
    }
}

/// Each failed within the one before, as deep as the queue was long.
#[test]
fn requests_that_wait_and_cannot_leave_fail_one_after_the_other() {
    let run = || {
        let mut client = Host::new(Config::default());
        let parameters = ContextParameters::new(&[7; 16], b"c", b"s").unwrap();
        let context = Context::new(&parameters, 0, Box::new(FullDisk), Past::Unused);
        let first = get(&mut client, "/0", Confirmability::Confirmable);
        for _ in 0..5_000 {
            let request = RequestBuf::get("/1");
            let delivery = Confirmability::Confirmable;
            client.endpoint.request_protected(client.now, peer(SERVER), request, delivery, &context).unwrap();
        }
        get(&mut client, "/2", Confirmability::Confirmable);
        client.sent();
        client.endpoint.cancel(client.now, first);
        let is_failed =
            |event: &EndpointEvent| matches!(event, EndpointEvent::Failed { error: RequestError::NotProtected(_), .. });
        assert_eq!(client.events().iter().filter(|event| is_failed(event)).count(), 5_000);
        assert_eq!(client.lines(), ["CON 0.01 /2"]);
    };
    // As small as that of the thread which asks all remote things.
    std::thread::Builder::new().stack_size(512 << 10).spawn(run).unwrap().join().unwrap();
}

#[test]
fn the_caller_learns_at_once_that_message_ids_have_run_out() {
    let mut client = Host::new(Config { probing_burst: u32::MAX, ..Config::default() });
    let mut until = None;
    for number in 0..70_000 {
        match client.endpoint.request(client.now, peer(SERVER), RequestBuf::get("/a"), Confirmability::NonConfirmable) {
            Ok(id) => client.endpoint.cancel(client.now, id),
            Err(RequestError::MessageIdsExhausted { until: at }) => {
                assert!(number > 60_000, "{number}");
                until = Some(at);
                break;
            }
            Err(other) => panic!("{other}"),
        }
    }
    let until = until.expect("65,536 IDs are not enough for 70,000 requests at once");
    assert!(
        client.endpoint.request(client.now, peer(9), RequestBuf::get("/a"), Confirmability::NonConfirmable).is_ok()
    );
    client.now = until;
    get(&mut client, "/a", Confirmability::NonConfirmable);
}

#[test]
fn a_critical_option_that_is_not_understood_rejects_the_response() {
    let strange = (OptionNumber(2049), &b""[..]);
    let mut client = Host::new(Config::default());
    get(&mut client, "/a", Confirmability::Confirmable);
    let request = client.sent().remove(0);
    client.receive(SERVER, &answer(&request, MessageType::Confirmable, 5, Code::CONTENT, &[strange]));
    assert_eq!(client.lines(), ["RST 0.00"]);
    assert_eq!(failure(&mut client), RequestError::UnknownOption(OptionNumber(2049)));
    get(&mut client, "/a", Confirmability::Confirmable);
    let request = client.sent().remove(0);
    let elective = (OptionNumber(2050), &b"e"[..]);
    client.receive(SERVER, &answer(&request, MessageType::Acknowledgement, 0, Code::CONTENT, &[elective]));
    assert_eq!(response(&mut client).options, [(OptionNumber(2050), b"e".to_vec())]);
}

#[test]
fn who_forwards_a_response_takes_what_is_safe_to_forward() {
    let [critical, elective, hidden] = [2049, 2050, 2051].map(OptionNumber);
    let ask = |options: &[(OptionNumber, &[u8])]| {
        let mut client = Host::new(Config::default());
        let (request, delivery) = (RequestBuf::get("/a").forwarded(), Confirmability::Confirmable);
        client.endpoint.request(client.now, peer(SERVER), request, delivery).unwrap();
        let request = client.sent().remove(0);
        client.receive(SERVER, &answer(&request, MessageType::Acknowledgement, 0, Code::CONTENT, options));
        client
    };
    let oscore = (OptionNumber::OSCORE, &b""[..]);
    let mut client = ask(&[oscore, (critical, b"x"), (critical, b"y")]);
    let expected = [(OptionNumber::OSCORE, vec![]), (critical, b"x".to_vec()), (critical, b"y".to_vec())];
    assert_eq!(response(&mut client).options, expected);
    for number in [elective, hidden] {
        assert_eq!(failure(&mut ask(&[(critical, b"x"), (number, b"")])), RequestError::UnknownOption(number));
    }
}

#[test]
fn a_server_that_asks_for_a_pause_gets_it() {
    let mut client = Host::new(Config::default());
    get(&mut client, "/a", Confirmability::Confirmable);
    let request = client.sent().remove(0);
    let age = (OptionNumber::MAX_AGE, &[30][..]);
    client.receive(SERVER, &answer(&request, MessageType::Acknowledgement, 0, Code::TOO_MANY_REQUESTS, &[age]));
    assert_eq!(response(&mut client).code, Code::TOO_MANY_REQUESTS);
    let ask = |client: &mut Host| {
        client.endpoint.request(client.now, peer(SERVER), RequestBuf::get("/a"), Confirmability::Confirmable)
    };
    assert_eq!(ask(&mut client), Err(RequestError::Paused { until: client.now + Duration::from_secs(30) }));
    client.pass(Duration::from_secs(30));
    assert!(ask(&mut client).is_ok());
}

#[test]
fn fresh_responses_are_used_again_and_stale_ones_confirmed() {
    let mut client = Host::new(Config::default());
    let mut server = Host::new(Config::default());
    let tag = ETag::new(b"v1").unwrap();
    let handler = |request: &CoapRequest<'_>| match request.etags().any(|found| found == tag) {
        true => Response::new(Code::VALID).with_etag(tag).with_max_age(5),
        false => Response::content("state", 0).with_etag(tag).with_max_age(10),
    };
    get(&mut client, "/a", Confirmability::Confirmable);
    assert_eq!(exchange(&mut client, &mut server, handler)[0], "> CON 0.01 /a");
    assert_eq!(&*response(&mut client).payload, b"state");
    client.pass(Duration::from_secs(4));
    get(&mut client, "/a", Confirmability::Confirmable);
    assert!(client.sent().is_empty());
    assert_eq!(response(&mut client).max_age, Some(6), "what is left");
    client.pass(Duration::from_secs(7));
    get(&mut client, "/a", Confirmability::Confirmable);
    assert_eq!(exchange(&mut client, &mut server, handler), ["> CON 0.01 ETag /a", "< ACK 2.03 ETag Max-Age=5"]);
    let confirmed = response(&mut client);
    assert_eq!((confirmed.code, &*confirmed.payload), (Code::CONTENT, &b"state"[..]));
    assert_eq!(confirmed.max_age, Some(5), "for as long as the server says now");
    get(&mut client, "/a", Confirmability::Confirmable);
    assert!(client.sent().is_empty(), "fresh again");
    client.events();
    let put = RequestBuf::put("/a", "new");
    client.endpoint.request(client.now, peer(SERVER), put, Confirmability::Confirmable).unwrap();
    exchange(&mut client, &mut server, |_| Response::new(Code::CHANGED));
    client.events();
    get(&mut client, "/a", Confirmability::Confirmable);
    assert_eq!(client.lines(), ["CON 0.01 /a"], "a change makes it stale");
}

#[test]
fn a_group_may_answer_more_than_once() {
    let mut client = Host::new(Config::default());
    let group = Peer::from(([224, 0, 1, 187], SERVER));
    let ask = |client: &mut Host, request, delivery| client.endpoint.request(client.now, group, request, delivery);
    let refused = ask(&mut client, RequestBuf::get("/a"), Confirmability::Confirmable);
    assert_eq!(refused, Err(RequestError::NotForGroups));
    let refused = ask(&mut client, RequestBuf::put("/a", "x"), Confirmability::NonConfirmable);
    assert_eq!(refused, Err(RequestError::NotForGroups));
    let id = ask(&mut client, RequestBuf::get("/a"), Confirmability::NonConfirmable).unwrap();
    let request = client.sent().remove(0);
    for port in [1, 2, 2, 3] {
        client.receive(port, &answer(&request, MessageType::NonConfirmable, 5, Code::CONTENT, &[]));
    }
    let from = |event: &EndpointEvent| match event {
        EndpointEvent::Response { request, peer, .. } if *request == id => peer.address.port(),
        other => panic!("{other:?}"),
    };
    assert_eq!(client.events().iter().map(from).collect::<Vec<_>>(), [1, 2, 3], "a duplicate is not told");
    client.pass(Duration::from_millis(9002));
    assert_eq!(client.events(), [EndpointEvent::Finished { request: id }]);
}

#[test]
fn requests_that_cannot_be_sent_are_refused() {
    let mut client = Host::new(Config {
        limits: EndpointLimits { requests_max: 1, ..EndpointLimits::default() },
        ..Config::default()
    });
    let mut ask = |request| client.endpoint.request(Instant::ZERO, peer(SERVER), request, Confirmability::Confirmable);
    assert!(matches!(ask(RequestBuf::new(Code::CONTENT, "/")), Err(RequestError::Malformed(_))));
    assert!(matches!(ask(RequestBuf::get("/").with_uint(OptionNumber::BLOCK1, 0)), Err(RequestError::Malformed(_))));
    assert!(ask(RequestBuf::get("/")).is_ok());
    assert_eq!(ask(RequestBuf::get("/")), Err(RequestError::TooManyRequests));
}

#[test]
fn tokens_cannot_be_told_from_those_before() {
    let mut client = Host::new(Config { nstart: 100, ..Config::default() });
    let tokens: Vec<Token> = (0..100)
        .map(|number| {
            get(&mut client, &format!("/{number}"), Confirmability::Confirmable);
            CoapMessage::parse(&client.sent()[0]).unwrap().token
        })
        .collect();
    // Twenty of the forty secret bits agree for one pair in a million.
    let alike = |a: &Token, b: &Token| a[3..6] == b[3..6];
    let pairs = tokens.iter().enumerate().flat_map(|(at, a)| tokens[at + 1..].iter().map(move |b| (a, b)));
    assert!(pairs.filter(|(a, b)| alike(a, b)).count() <= 1);
}

#[test]
fn an_answer_that_asks_for_more_of_a_request_that_has_no_more_is_an_error() {
    let mut client = Host::new(Config::default());
    for request in [RequestBuf::get("/a"), RequestBuf::get("/a").with_uint(OptionNumber::BLOCK2, 0)] {
        client.endpoint.request(client.now, peer(SERVER), request, Confirmability::Confirmable).unwrap();
        let sent = client.sent().pop().unwrap();
        let token = CoapMessage::parse(&sent).unwrap().token;
        let mut answer = vec![0x60 | token.len() as u8, 0x5f, sent[2], sent[3]];
        answer.extend_from_slice(&token);
        client.receive(SERVER, &answer);
        let events = client.events();
        let is_told =
            matches!(&events[..], [EndpointEvent::Failed { error: RequestError::Unexpected(Code::CONTINUE), .. }]);
        assert!(is_told, "{events:?}");
    }
}

#[test]
fn what_cannot_be_sent_is_refused_and_what_is_sent_to_nobody_fails_and_others_wait() {
    let mut client = Host::new(Config::default());
    let ask = |client: &mut Host, port, target: &str| {
        client.endpoint.request(client.now, peer(port), RequestBuf::get(target), Confirmability::Confirmable)
    };
    for target in ["/a#b", "/%2"] {
        assert!(matches!(ask(&mut client, 1, target), Err(RequestError::Malformed(_))), "{target}");
    }
    let (one, other) = (ask(&mut client, 1, "/a").unwrap(), ask(&mut client, 2, "/a").unwrap());
    client.endpoint.handle_unreachable(client.now, peer(1));
    client.endpoint.handle_unreachable(client.now, peer(3));
    let events = client.events();
    let gone = EndpointEvent::Failed { request: one, peer: peer(1), error: RequestError::Unreachable };
    assert_eq!(events, [gone]);
    client.endpoint.cancel(client.now, other);
    assert_eq!(client.endpoint.counters().requests, 0);
}

#[test]
fn a_change_drops_what_is_kept_of_its_resource_in_every_format() {
    let (mut client, mut server) = (Host::new(Config::default()), Host::new(trusting()));
    let state = std::cell::Cell::new(1_u8);
    let mut ask = |request: RequestBuf| {
        client.endpoint.request(client.now, peer(SERVER), request, Confirmability::Confirmable).unwrap();
        exchange(&mut client, &mut server, |request| {
            state.set(state.get() + u8::from(request.code == Code::PUT));
            Response::content(vec![state.get()], request.accept().unwrap_or(0)).with_max_age(60)
        });
        response(&mut client).payload[0]
    };
    for accept in [0, 50, 60] {
        assert_eq!(ask(RequestBuf::get("/a?b").with_accept(accept)), 1);
        assert_eq!(ask(RequestBuf::get("/other").with_accept(accept)), 1);
    }
    assert_eq!(ask(RequestBuf::put("/a?b", "")), 2);
    for accept in [0, 50, 60] {
        assert_eq!(ask(RequestBuf::get("/a?b").with_accept(accept)), 2);
        assert_eq!(ask(RequestBuf::get("/other").with_accept(accept)), 1, "it is still kept");
    }
}

#[test]
fn a_response_from_before_a_change_is_told_and_not_kept() {
    let mut client = Host::new(Config::default());
    let acknowledged = ["/a", "/other"].map(|target| {
        get(&mut client, target, Confirmability::Confirmable);
        let request = client.sent().remove(0);
        client.receive(SERVER, &[0x60, 0, request[2], request[3]]);
        request
    });
    let put = RequestBuf::put("/a", "new");
    client.endpoint.request(client.now, peer(SERVER), put, Confirmability::Confirmable).unwrap();
    let put = client.sent().remove(0);
    client.receive(SERVER, &answer(&put, MessageType::Acknowledgement, 0, Code::CHANGED, &[]));
    assert_eq!(response(&mut client).code, Code::CHANGED);
    for (request, id) in acknowledged.iter().zip(1..) {
        client.receive(SERVER, &answer(request, MessageType::NonConfirmable, id, Code::CONTENT, &[]));
        assert_eq!(response(&mut client).code, Code::CONTENT);
    }
    get(&mut client, "/other", Confirmability::Confirmable);
    assert!(client.sent().is_empty(), "nothing changed there");
    get(&mut client, "/a", Confirmability::Confirmable);
    assert_eq!(client.lines(), ["CON 0.01 /a"]);
}

/// A request for `/a` whose kept response is not fresh any more, and the answer "v1 is still right" to it, which is not here yet.
fn validated_later() -> (Host, Host, Vec<Vec<u8>>) {
    let (mut client, mut server) = (Host::new(Config::default()), Host::new(Config::default()));
    get(&mut client, "/a", Confirmability::NonConfirmable);
    exchange(&mut client, &mut server, tagged(b"v1"));
    client.events();
    client.pass(Duration::from_secs(11));
    get(&mut client, "/a", Confirmability::NonConfirmable);
    client.sent().iter().for_each(|bytes| server.receive(CLIENT, bytes));
    server.serve(tagged(b"v1"));
    let late = server.sent();
    assert_eq!(describe(&late[0]), "NON 2.03 ETag Max-Age=10");
    (client, server, late)
}

/// A handler whose state is its own tag.
fn tagged(state: &'static [u8]) -> impl Fn(&CoapRequest<'_>) -> Response {
    let tag = ETag::new(state).unwrap();
    move |request| match request.etags().any(|found| found == tag) {
        true => Response::new(Code::VALID).with_etag(tag).with_max_age(10),
        false => Response::content(state, 0).with_etag(tag).with_max_age(10),
    }
}

#[test]
fn a_confirmation_of_what_is_not_kept_any_more_is_followed_by_a_whole_answer() {
    let (mut client, mut server, late) = validated_later();
    let put = RequestBuf::put("/a", "v2");
    client.endpoint.request(client.now, peer(SERVER), put, Confirmability::NonConfirmable).unwrap();
    exchange(&mut client, &mut server, |_| Response::new(Code::CHANGED));
    client.events();
    client.receive(SERVER, &late[0]);
    assert!(client.events().is_empty(), "2.03 alone says nothing to who named no tag");
    assert_eq!(exchange(&mut client, &mut server, tagged(b"v2"))[0], "> NON 0.01 /a");
    assert_eq!(&*response(&mut client).payload, b"v2");
}

#[test]
fn a_confirmation_of_an_older_state_does_not_confirm_the_newer_one_that_was_kept_meanwhile() {
    let (mut client, mut server, late) = validated_later();
    get(&mut client, "/a", Confirmability::NonConfirmable);
    exchange(&mut client, &mut server, tagged(b"v2"));
    assert_eq!(&*response(&mut client).payload, b"v2");
    client.receive(SERVER, &late[0]);
    assert!(client.events().is_empty(), "it is not about what is kept");
    exchange(&mut client, &mut server, tagged(b"v2"));
    let answer = response(&mut client);
    assert_eq!((&*answer.payload, answer.etag), (&b"v2"[..], ETag::new(b"v2")));
}
