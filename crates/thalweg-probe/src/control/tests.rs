use std::time::Duration;

use thalweg_base::time::Instant;

use super::EndRole::{Client, Server};
use super::*;
use crate::order::{Fragments, Joining, ProbeOrder, ProbeProtocol, Shape, StreamDirection, VERSION};
use crate::reports::{EndReport, ProbeSecond, ReceivedReport, SentReport};

fn order(shape: Shape) -> ControlMessage {
    ControlMessage::Order(ProbeOrder {
        version: VERSION,
        protocol: ProbeProtocol::Udp,
        shape,
        size_bytes: 1472,
        streams: 2,
        duration_ms: 5_000,
        joining: Joining::Both,
        fragments: Fragments::Refused,
        receive_buffer_bytes: None,
        segment_mtu_bytes: None,
    })
}

fn stream(direction: StreamDirection) -> Shape {
    Shape::Stream { direction, rate_bit_per_s: Some(1e9) }
}

fn ready() -> ControlMessage {
    ControlMessage::Ready(Ready { token: 9, ports: vec![4_000, 4_001] })
}

fn begin(ports: &[u16]) -> ControlMessage {
    ControlMessage::Begin(Begin { ports: ports.to_vec() })
}

fn ended(streams: usize) -> ControlMessage {
    let sent = Some(SentReport { offered: vec![5; streams], ..SentReport::default() });
    ControlMessage::Ended(EndReport { sent, ..EndReport::default() })
}

fn report() -> ControlMessage {
    let received = Some(ReceivedReport { received: vec![5, 4], ..ReceivedReport::default() });
    ControlMessage::Report(EndReport { received, ..EndReport::default() })
}

const NOW: Instant = Instant::from_nanos(1_000);

/// Lets two ends talk; what the last message met where it is refused, and by whom.
#[track_caller]
fn check(says: &[(EndRole, ControlMessage)], expect: Result<bool, &'static str>) {
    let mut client = Conversation::new(EndRole::Client, NOW);
    let mut server = Conversation::new(EndRole::Server, NOW);
    for (number, (role, message)) in says.iter().enumerate() {
        let (from, to) = match role {
            EndRole::Client => (&mut client, &mut server),
            EndRole::Server => (&mut server, &mut client),
        };
        to.handle_bytes(&message.to_line()).unwrap();
        let made = from.create_message(NOW, message);
        let heard = to.poll_message(NOW);
        if made.is_err() {
            assert_eq!(number + 1, says.len(), "{message:?} is not due");
            assert_eq!(made.err(), heard.err(), "both ends go by the same rules");
            return assert_eq!(expect, Err("refused"));
        }
        assert_eq!(heard, Ok(Some(message.clone())));
    }
    assert_eq!(client.is_over(), server.is_over());
    assert_eq!(Ok(client.is_over()), expect);
}

#[test]
fn a_stream_to_the_server_is_told_by_the_second_and_reported() {
    let second = || ControlMessage::Second(ProbeSecond::default());
    let mut says = vec![
        (Client, order(stream(StreamDirection::ToServer))),
        (Server, ready()),
        (Client, begin(&[])),
        (Server, ControlMessage::Begun),
        (Server, second()),
        (Client, ended(2)),
        (Server, second()),
    ];
    check(&says, Ok(false));
    says.push((Server, report()));
    check(&says, Ok(true));
    says.push((Server, second()));
    check(&says, Err("refused"));
}

#[test]
fn a_stream_to_the_client_needs_its_ports() {
    let head = [(Client, order(stream(StreamDirection::ToClient))), (Server, ready())];
    let then = |more: &[(EndRole, ControlMessage)]| [&head[..], more].concat();
    check(&then(&[(Client, begin(&[]))]), Err("refused"));
    check(&then(&[(Client, begin(&[1, 0]))]), Err("refused"));
    let running = then(&[(Client, begin(&[1, 2])), (Server, ControlMessage::Begun)]);
    check(&[&running[..], &[(Client, ended(2))]].concat(), Err("refused"));
    check(&[&running[..], &[(Server, ended(2)), (Client, report())]].concat(), Ok(true));
}

#[test]
fn what_is_not_due_is_refused() {
    check(&[(Server, ready())], Err("refused"));
    check(&[(Server, order(Shape::RoundTrips))], Err("refused"));
    let one_port = ControlMessage::Ready(Ready { token: 9, ports: vec![4_000] });
    check(&[(Client, order(Shape::RoundTrips)), (Server, one_port)], Err("refused"));
    let running =
        [(Client, order(Shape::RoundTrips)), (Server, ready()), (Client, begin(&[])), (Server, ControlMessage::Begun)];
    check(&[&running[..], &[(Client, ended(3))]].concat(), Err("refused"));
    check(&[&running[..], &[(Client, ControlMessage::Ended(EndReport::default()))]].concat(), Err("refused"));
    check(&[&running[..], &[(Server, report())]].concat(), Err("refused"));
    check(&[&running[..], &[(Client, ended(2)), (Server, report())]].concat(), Ok(true));
}

#[test]
fn an_end_that_gives_up_tells_why_and_cannot_play_with_the_terminal() {
    let mut client = Conversation::new(Client, NOW);
    let reason = format!("no\u{1b}[2J\nroom {}", "x".repeat(1_000));
    client.handle_bytes(&ControlMessage::Failed { reason }.to_line()).unwrap();
    let expect = format!("no [2J room {}", "x".repeat(500 - 12));
    assert_eq!(client.poll_message(NOW), Err(ConversationError::Failed(expect)));
    assert!(client.is_over());
}

#[test]
fn a_line_comes_in_any_pieces_and_has_a_bound() {
    let mut server = Conversation::new(Server, NOW);
    let line = order(Shape::RoundTrips).to_line();
    for byte in &line[..line.len() - 1] {
        server.handle_bytes(&[*byte]).unwrap();
        assert_eq!(server.poll_message(NOW), Ok(None));
    }
    server.handle_bytes(&line[line.len() - 1..]).unwrap();
    assert_eq!(server.poll_message(NOW), Ok(Some(order(Shape::RoundTrips))));
    server.handle_bytes(&vec![b' '; LINE_MAX]).unwrap();
    assert_eq!(server.handle_bytes(b" "), Err(ConversationError::TooLong));
}

#[test]
fn what_is_no_message_is_told() {
    for text in ["GET / HTTP/1.1", "", "{\"order\":{}}", "[[[[[[", "\"begun\" x", "\u{1b}"] {
        let mut server = Conversation::new(Server, NOW);
        server.handle_bytes(format!("{text}\n").as_bytes()).unwrap();
        let Err(ConversationError::Unreadable(reason)) = server.poll_message(NOW) else { panic!("{text} was read") };
        assert!(!reason.contains(char::is_control));
    }
}

#[test]
fn every_phase_has_its_time() {
    let mut server = Conversation::new(Server, NOW);
    let late = |server: &Conversation| server.handle_timeout(server.poll_timeout()).unwrap_err().to_string();
    assert_eq!(server.poll_timeout(), NOW + Duration::from_secs(10));
    assert_eq!(server.handle_timeout(NOW + Duration::from_secs(9)), Ok(()));
    assert_eq!(late(&server), "the other end took too long: its order was due");
    let hear = |server: &mut Conversation, message: ControlMessage| {
        server.handle_bytes(&message.to_line()).unwrap();
        server.poll_message(NOW).unwrap();
    };
    hear(&mut server, order(stream(StreamDirection::ToServer)));
    server.create_message(NOW, &ready()).unwrap();
    hear(&mut server, begin(&[]));
    server.create_message(NOW, &ControlMessage::Begun).unwrap();
    assert_eq!(server.poll_timeout(), NOW + Duration::from_secs(35));
    assert_eq!(late(&server), "the other end took too long: its end of what is sent was due");
    // A chatterbox gains no time.
    for _ in 0..SECONDS_KEPT {
        server.create_message(NOW + Duration::from_secs(9), &ControlMessage::Second(ProbeSecond::default())).unwrap();
    }
    assert_eq!(server.poll_timeout(), NOW + Duration::from_secs(35));
    let more = server.create_message(NOW, &ControlMessage::Second(ProbeSecond::default()));
    assert_eq!(more, Err(ConversationError::Unexpected("second")));
}
