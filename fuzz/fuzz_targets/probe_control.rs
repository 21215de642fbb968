//! What the other end of a probe may say: either end as a state machine. No panic, bounded memory; only what is due is heard, only
//! orders of the right shape begin anything, texts are fit for a terminal, and a message that is heard can be written and read again.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use thalweg_base::time::Instant;
use thalweg_probe::control::{Begin, ControlMessage, Conversation, EndRole, LINE_MAX, Ready};
use thalweg_probe::{EndReport, ProbeOrder, ReceivedReport, SentReport};

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let role = if first & 1 == 0 { EndRole::Server } else { EndRole::Client };
    let mut now = Instant::from_nanos(1);
    let mut end = Conversation::new(role, now);
    let mut order = None;
    if role == EndRole::Client
        && let Ok(ControlMessage::Order(asked)) =
            ControlMessage::from_line(ORDERS[usize::from(first >> 1) % ORDERS.len()])
    {
        end.create_message(now, &ControlMessage::Order(asked.clone())).expect("the client begins");
        order = Some(asked);
    }
    // A chunk ends at a byte that no line holds, and time passes.
    for chunk in rest.split(|byte| *byte == 0xff) {
        if end.handle_bytes(chunk).is_err() {
            assert!(rest.len() > LINE_MAX);
            return;
        }
        loop {
            match end.poll_message(now) {
                Ok(Some(message)) => {
                    check(&message);
                    if let ControlMessage::Order(asked) = &message {
                        order = asked.clone().checked().ok();
                        let Some(order) = &order else { return };
                        assert!(
                            order.streams <= thalweg_probe::STREAMS_MAX
                                && order.duration() <= thalweg_probe::DURATION_MAX
                        );
                    }
                    answer(&mut end, now, order.as_ref());
                }
                Ok(None) => break,
                Err(error) => {
                    assert!(!error.to_string().contains(char::is_control), "{error}");
                    return;
                }
            }
        }
        now += Duration::from_secs(1);
        if end.handle_timeout(now).is_err() {
            assert!(now >= end.poll_timeout());
            return;
        }
    }
});

/// What is heard is written and reads the same, and is fit for a terminal.
fn check(message: &ControlMessage) {
    let line = message.to_line();
    let (end, text) = line.split_last().expect("a line is not empty");
    assert_eq!(*end, b'\n');
    assert!(!text.contains(&b'\n'));
    let again = ControlMessage::from_line(text).expect("what is written can be read");
    // Not the same to the last digit: JSON's numbers are read quickly, and not exactly.
    assert_eq!(std::mem::discriminant(&again), std::mem::discriminant(message));
    if let ControlMessage::Ended(report) | ControlMessage::Report(report) = message {
        assert!(report.layers.iter().all(|(name, _)| !name.contains(char::is_control)));
    }
}

/// Says whatever is due at this end; most of it is not.
fn answer(end: &mut Conversation, now: Instant, order: Option<&ProbeOrder>) {
    let streams = order.map_or(0, |order| order.streams as usize);
    let sent = SentReport { offered: vec![1; streams], ..SentReport::default() };
    let received = ReceivedReport { received: vec![1; streams], ..ReceivedReport::default() };
    let says = [
        ControlMessage::Ready(Ready { token: 1, ports: vec![1; streams] }),
        ControlMessage::Begin(Begin { ports: vec![1; streams] }),
        ControlMessage::Begin(Begin { ports: Vec::new() }),
        ControlMessage::Begun,
        ControlMessage::Ended(EndReport { sent: Some(sent), ..EndReport::default() }),
        ControlMessage::Report(EndReport { received: Some(received), ..EndReport::default() }),
    ];
    for message in &says {
        // One that is not due changes nothing.
        let _ = end.create_message(now, message);
    }
}

/// A stream each way and round trips.
const ORDERS: [&[u8]; 3] = [
    br#"{"order":{"version":1,"protocol":"udp","shape":{"stream":{"direction":"to-server","rate_bit_per_s":1e9}},"size_bytes":1472,"streams":2,"duration_ms":1000,"joining":"both","fragments":"refused","receive_buffer_bytes":null,"segment_mtu_bytes":null}}"#,
    br#"{"order":{"version":1,"protocol":"udp","shape":{"stream":{"direction":"to-client","rate_bit_per_s":null}},"size_bytes":1472,"streams":2,"duration_ms":1000,"joining":"both","fragments":"refused","receive_buffer_bytes":null,"segment_mtu_bytes":null}}"#,
    br#"{"order":{"version":1,"protocol":"tcp","shape":"round-trips","size_bytes":64,"streams":1,"duration_ms":1000,"joining":"both","fragments":"refused","receive_buffer_bytes":null,"segment_mtu_bytes":null}}"#,
];
