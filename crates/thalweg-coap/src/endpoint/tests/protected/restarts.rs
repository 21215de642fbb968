//! Servers that lose what they knew of their clients.

use super::*;

#[test]
fn an_observation_outlives_every_restart_of_its_server() {
    let (mut client, mut server, context) = ends(Past::Unused);
    ask(&mut client, &context, RequestBuf::get("/a").with_observe(Observe::Register));
    let state = |request: &CoapRequest<'_>| {
        assert!(request.options.values(OptionNumber::ECHO).count() <= 1, "{request:?}");
        Response::content("x", 0).observable().with_max_age(1)
    };
    exchange(&mut client, &mut server, state);
    assert!(response(&mut client).observe.is_some());
    for challenge in [*b"as drawn", *b"anew one"] {
        let (_, mut server, _) = ends(Past::Lost(challenge));
        client.pass(Duration::from_secs(30)); // The state is not fresh any more.
        let lines = exchange(&mut client, &mut server, state);
        assert_eq!(lines.len(), 4, "a challenge and its answer: {lines:?}");
        let answer = response(&mut client);
        assert!(answer.code == Code::CONTENT && answer.observe.is_some(), "{answer:?}");
        assert_eq!(server.endpoint.observers("/a"), 1);
    }
}
