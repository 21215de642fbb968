//! The state machine of channels and clients.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use thalweg::Payload;
use thalweg::qos::Ownership;
use thalweg::types::{EntityId, Guid, GuidPrefix, KeyHash};
use thalweg_recording::demand::Demand;

use super::schema;
use crate::queue::{SampleQueue, WaitingSample};
use crate::switchboard::{ChannelWriter, DROPPED, Outgoing, Switchboard, SwitchboardOptions, ViewedSample};

const CDR_LE: [u8; 4] = [0, 1, 0, 0];

fn switchboard(client_bytes_max: usize, latched_depth: usize) -> Switchboard {
    let (name, session_id) = ("robot".to_owned(), "7".to_owned());
    Switchboard::new(SwitchboardOptions { name, session_id, client_bytes_max, latched_depth })
}

fn channel(board: &mut Switchboard, topic: &str) -> u64 {
    let (schema, limits) = schema("Reading", "@final struct Reading { long value; };");
    board.create_channel(topic, "Reading", schema, limits)
}

fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 4_711))
}

fn guid(number: u8) -> Guid {
    Guid { prefix: GuidPrefix([number; 12]), entity: EntityId([0, 0, 1, 3]) }
}

fn demand(is_durable: bool) -> Demand {
    Demand { is_reliable: true, is_durable, ownership: Ownership::Shared, partition: Vec::new() }
}

/// Sample `number` of a writer, with `bytes` behind its header.
fn sample(writer: u8, number: u32, bytes: usize) -> ViewedSample {
    let payload = [&CDR_LE[..], &vec![number as u8; bytes]].concat();
    ViewedSample {
        writer: guid(writer),
        sequence: number,
        instance: KeyHash::default(),
        log_time_ns: u64::from(number),
        value: Some(Payload::from(payload)),
    }
}

fn subscribe(board: &mut Switchboard, client: u64, subscriptions: &[(u32, u64)]) {
    let wanted: Vec<Value> =
        subscriptions.iter().map(|(id, channel)| json!({"id": id, "channelId": channel})).collect();
    board.handle_text(client, &json!({"op": "subscribe", "subscriptions": wanted}).to_string());
}

/// All that a client is told now: messages in JSON, samples as their subscription and first value.
fn take(board: &mut Switchboard, client: u64) -> (Vec<Value>, Vec<(u32, u8)>) {
    take_at(board, client, Instant::now())
}

fn take_at(board: &mut Switchboard, client: u64, now: Instant) -> (Vec<Value>, Vec<(u32, u8)>) {
    let (mut texts, mut samples) = (Vec::new(), Vec::new());
    while let Some(outgoing) = board.poll_outgoing(now, client) {
        match outgoing {
            Outgoing::Text(text) => texts.push(serde_json::from_str(&text).expect("JSON")),
            Outgoing::Sample { head, payload } => {
                let subscription = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
                samples.push((subscription, payload.get(4).copied().unwrap_or_default()));
            }
        }
    }
    (texts, samples)
}

fn ops(texts: &[Value]) -> Vec<&str> {
    texts.iter().filter_map(|text| text["op"].as_str()).collect()
}

#[test]
fn messages_are_those_of_foxgloves_own_servers() {
    let mut board = switchboard(1 << 20, 0);
    let (schema, limits) = schema("Reading", "@final struct Reading { long value; };");
    let id = board.create_channel("rt/scan", "Reading", Arc::clone(&schema), limits);
    let client = board.create_client(address());
    let (texts, _) = take(&mut board, client);
    assert_eq!((texts[0]["op"].as_str(), texts[0]["name"].as_str()), (Some("serverInfo"), Some("robot")));
    assert_eq!((&texts[0]["capabilities"], &texts[0]["sessionId"]), (&json!([]), &json!("7")));
    let advertised = json!({
        "op": "advertise",
        "channels": [{
            "id": id,
            "topic": "/scan",
            "encoding": "cdr",
            "schemaName": "Reading",
            "schemaEncoding": "omgidl",
            "schema": schema.text,
            "metadata": {"thalweg.topic": "rt/scan", "thalweg.type": "Reading"},
        }],
    });
    assert_eq!(texts[1..], [advertised]);
    board.delete_channel(id);
    assert_eq!(take(&mut board, client).0, [json!({"op": "unadvertise", "channelIds": [id]})]);
    board.remark("/scan", "type", Some("unknown".to_owned()));
    let told = json!({"op": "status", "level": 1, "message": "unknown", "id": "type /scan"});
    assert_eq!(take(&mut board, client).0, [told]);
    board.remark("/scan", "type", None);
    assert_eq!(take(&mut board, client).0, [json!({"op": "removeStatus", "statusIds": ["type /scan"]})]);
}

#[test]
fn a_client_gets_the_samples_that_it_wants_and_no_others() {
    let mut board = switchboard(1 << 20, 0);
    let (first, second) = (channel(&mut board, "a"), channel(&mut board, "b"));
    let (one, other) = (board.create_client(address()), board.create_client(address()));
    board.handle_sample(first, &demand(false), &sample(1, 1, 4));
    subscribe(&mut board, one, &[(10, first)]);
    subscribe(&mut board, other, &[(20, second)]);
    assert!(board.has_subscribers(first));
    board.handle_sample(first, &demand(false), &sample(1, 2, 4));
    board.handle_sample(second, &demand(false), &sample(2, 3, 4));
    assert_eq!((take(&mut board, one).1, take(&mut board, other).1), (vec![(10, 2)], vec![(20, 3)]));
    board.handle_text(one, r#"{"op":"unsubscribe","subscriptionIds":[10]}"#);
    board.handle_sample(first, &demand(false), &sample(1, 4, 4));
    assert_eq!((take(&mut board, one).1, board.has_subscribers(first)), (vec![], false));
    board.delete_client(other);
    assert!(!board.has_subscribers(second));
    let summary = board.summary();
    assert_eq!((summary.clients, summary.samples, summary.dropped), (2, 2, 0));
}

#[test]
fn what_a_client_cannot_have_is_said_to_it_and_to_nobody_else() {
    let mut board = switchboard(1 << 20, 0);
    let id = channel(&mut board, "a");
    let (client, other) = (board.create_client(address()), board.create_client(address()));
    take(&mut board, client);
    take(&mut board, other);
    subscribe(&mut board, client, &[(1, id), (1, id), (2, id), (1, 99)]);
    board.handle_text(client, "nonsense");
    board.handle_text(client, r#"{"op":"advertise","channels":[]}"#);
    board.handle_binary(client);
    let (texts, _) = take(&mut board, client);
    assert_eq!(ops(&texts), ["status"; 6], "{texts:#?}");
    assert!(texts.iter().all(|text| text["level"] == 2), "{texts:#?}");
    assert_eq!(take(&mut board, other).0, Vec::<Value>::new());
    for _ in 0..1_000 {
        board.handle_text(client, "nonsense");
    }
    assert!(take(&mut board, client).0.len() < 100, "complaints are bounded");
}

#[test]
fn a_late_client_gets_each_latched_sample_once_and_in_order() {
    let mut board = switchboard(1 << 20, 3);
    let id = channel(&mut board, "map");
    let writer = ChannelWriter { demand: demand(true), kept: Some(10) };
    board.set_writers(id, HashMap::from([(guid(1), writer)]));
    (1..=5).for_each(|number| board.handle_sample(id, &demand(true), &sample(1, number, 4)));
    let (first, second) = (board.create_client(address()), board.create_client(address()));
    subscribe(&mut board, first, &[(1, id)]);
    board.handle_sample(id, &demand(true), &sample(1, 6, 4));
    subscribe(&mut board, second, &[(2, id)]);
    board.handle_sample(id, &demand(true), &sample(1, 7, 4));
    assert_eq!(take(&mut board, first).1, [(1, 3), (1, 4), (1, 5), (1, 6), (1, 7)]);
    assert_eq!(take(&mut board, second).1, [(2, 4), (2, 5), (2, 6), (2, 7)]);
}

#[test]
fn latched_samples_go_with_their_instance_and_their_writer_and_are_no_more_than_the_writer_keeps() {
    let mut board = switchboard(1 << 20, 100);
    let id = channel(&mut board, "map");
    let writer = |kept: Option<usize>| ChannelWriter { demand: demand(true), kept };
    let volatile = ChannelWriter { demand: demand(false), kept: None };
    let writers = HashMap::from([(guid(1), writer(Some(1))), (guid(2), writer(Some(1))), (guid(3), volatile.clone())]);
    board.set_writers(id, writers);
    for number in 1..=2 {
        board.handle_sample(id, &demand(true), &sample(1, number, 4));
        board.handle_sample(id, &demand(true), &sample(2, number + 10, 4));
        board.handle_sample(id, &demand(false), &sample(3, number + 20, 4));
    }
    let late = |board: &mut Switchboard| {
        let client = board.create_client(address());
        subscribe(board, client, &[(1, id)]);
        take(board, client).1.into_iter().map(|(_, value)| value).collect::<Vec<_>>()
    };
    assert_eq!(late(&mut board), [2, 12]);
    board.set_writers(id, HashMap::from([(guid(2), writer(Some(1))), (guid(3), volatile)]));
    assert_eq!(late(&mut board), [12], "the first writer has gone");
    board.handle_sample(id, &demand(true), &ViewedSample { value: None, ..sample(2, 13, 0) });
    assert_eq!(late(&mut board), Vec::<u8>::new(), "the instance has ended");
}

#[test]
fn what_a_writer_kept_makes_room_when_it_or_its_channel_goes() {
    let mut board = switchboard(1 << 30, 1);
    // Two of these have no room.
    const BYTES: usize = 40 << 20;
    for channel_number in 1..=2 {
        let id = channel(&mut board, "map");
        for number in 1..=2 {
            let writer = ChannelWriter { demand: demand(true), kept: Some(1) };
            board.set_writers(id, HashMap::from([(guid(number), writer)]));
            board.handle_sample(id, &demand(true), &sample(number, u32::from(number), BYTES));
            let client = board.create_client(address());
            subscribe(&mut board, client, &[(1, id)]);
            assert_eq!(take(&mut board, client).1, [(1, number)], "channel {channel_number}");
            board.delete_client(client);
        }
        board.delete_channel(id);
    }
}

#[test]
fn samples_of_another_definition_are_neither_shown_nor_kept() {
    let mut board = switchboard(1 << 20, 3);
    let id = channel(&mut board, "map");
    // Nobody knows yet what the first writer has.
    (1..=2).for_each(|writer| board.handle_sample(id, &demand(true), &sample(writer, u32::from(writer), 4)));
    board.set_strangers(id, HashSet::from([guid(1)]));
    board.handle_sample(id, &demand(true), &sample(1, 3, 4));
    let client = board.create_client(address());
    subscribe(&mut board, client, &[(1, id)]);
    board.handle_sample(id, &demand(true), &sample(1, 4, 4));
    board.handle_sample(id, &demand(true), &sample(2, 5, 4));
    assert_eq!(take(&mut board, client).1, [(1, 2), (1, 5)]);
}

#[test]
fn a_writer_that_two_readers_match_is_shown_once() {
    let mut board = switchboard(1 << 20, 0);
    let id = channel(&mut board, "a");
    board.set_writers(id, HashMap::from([(guid(1), ChannelWriter { demand: demand(true), kept: None })]));
    let client = board.create_client(address());
    subscribe(&mut board, client, &[(1, id)]);
    for asked in [demand(false), demand(true)] {
        board.handle_sample(id, &asked, &sample(1, 1, 4));
    }
    assert_eq!(take(&mut board, client).1, [(1, 1)]);
}

#[test]
fn a_client_that_reads_nothing_costs_what_it_may_and_holds_up_no_other() {
    let mut board = switchboard(100_000, 0);
    let id = channel(&mut board, "image");
    let (idle, busy) = (board.create_client(address()), board.create_client(address()));
    subscribe(&mut board, idle, &[(1, id)]);
    subscribe(&mut board, busy, &[(1, id)]);
    take(&mut board, idle);
    let mut got = Vec::new();
    for number in 0..200 {
        board.handle_sample(id, &demand(false), &sample(1, number, 10_000));
        got.extend(take(&mut board, busy).1);
    }
    assert_eq!(got.len(), 200);
    let (_, _, waiting, dropped) = board.backlogs().find(|(client, ..)| *client == idle).expect("it is there");
    assert!(waiting <= 100_000, "{waiting}");
    let now = Instant::now();
    let (texts, samples) = take_at(&mut board, idle, now);
    assert_eq!((samples.len() as u64 + dropped, samples.last()), (200, Some(&(1, 199))), "the newest stay");
    assert_eq!((texts.len(), &texts[0]["id"]), (1, &json!(DROPPED)), "{texts:#?}");
    assert!(texts[0]["message"].as_str().is_some_and(|text| text.starts_with(&format!("{dropped} samples"))));
    // It is told again when there is something new, once a second.
    (0..200).for_each(|number| board.handle_sample(id, &demand(false), &sample(1, number, 10_000)));
    assert_eq!(ops(&take_at(&mut board, idle, now + Duration::from_millis(500)).0), Vec::<&str>::new());
    assert_eq!(ops(&take_at(&mut board, idle, now + Duration::from_millis(1_500)).0), ["status"]);
    board.delete_client(idle);
    assert!(board.summary().dropped > dropped);
}

#[test]
fn large_samples_make_room_before_small_ones_of_another_topic() {
    let mut queue = SampleQueue::new(100_000);
    let mut push = |subscription: u32, number: u64, bytes: usize| {
        queue.push(WaitingSample { subscription, log_time_ns: number, payload: Payload::from(vec![0; bytes]) });
    };
    for number in 0..100 {
        push(1, number, 10);
        push(2, number, 20_000);
    }
    push(3, 0, 200_000);
    let left: Vec<(u32, u64)> =
        std::iter::from_fn(|| queue.pop()).map(|sample| (sample.subscription, sample.log_time_ns)).collect();
    let of = |subscription: u32| left.iter().filter(move |(one, _)| *one == subscription).map(|(_, number)| *number);
    assert_eq!(of(1).collect::<Vec<_>>(), (0..100).collect::<Vec<_>>(), "the small ones are all there");
    let large: Vec<u64> = of(2).collect();
    assert!((2..5).contains(&large.len()) && large.last() == Some(&99), "{large:?}");
    assert_eq!(of(3).count(), 0, "one that is larger than all the room");
    assert_eq!((queue.dropped(), queue.bytes()), (101 - large.len() as u64, 0));
}

#[test]
fn what_waits_of_a_channel_that_has_gone_comes_before_it_is_taken_back() {
    let mut board = switchboard(1 << 20, 0);
    let id = channel(&mut board, "a");
    let client = board.create_client(address());
    subscribe(&mut board, client, &[(1, id)]);
    take(&mut board, client);
    board.handle_sample(id, &demand(false), &sample(1, 1, 4));
    board.delete_channel(id);
    board.handle_sample(id, &demand(false), &sample(1, 2, 4));
    let now = Instant::now();
    assert!(matches!(board.poll_outgoing(now, client), Some(Outgoing::Sample { .. })));
    let (texts, samples) = take(&mut board, client);
    assert_eq!((texts, samples), (vec![json!({"op": "unadvertise", "channelIds": [id]})], vec![]));
}

#[test]
fn a_client_that_reads_nothing_has_no_more_to_be_told_than_there_is() {
    let mut board = switchboard(1 << 20, 0);
    let client = board.create_client(address());
    take(&mut board, client);
    for round in 0..10 {
        let ids: Vec<u64> = (0..300).map(|number| channel(&mut board, &format!("t{round}-{number}"))).collect();
        if round < 9 {
            ids.into_iter().for_each(|id| board.delete_channel(id));
        }
    }
    let (texts, _) = take(&mut board, client);
    let told: usize = texts.iter().filter_map(|text| text["channels"].as_array()).map(Vec::len).sum();
    assert_eq!((ops(&texts), told), (vec!["advertise"; 3], 300));
}

#[test]
fn a_client_hears_remarks_as_they_are_when_it_reads() {
    let mut board = switchboard(1 << 20, 0);
    let client = board.create_client(address());
    let mut say = |topic: &str, text: Option<&str>| board.remark(topic, "type", text.map(str::to_owned));
    assert!(say("/a", Some("first")) && say("/b", Some("b")) && !say("/b", Some("b")));
    take(&mut board, client);
    let mut say = |topic: &str, text: Option<&str>| board.remark(topic, "type", text.map(str::to_owned));
    assert!(say("/a", Some("second")) && say("/a", Some("third")), "replaced twice");
    assert!(say("/b", None) && say("/b", Some("again")), "taken back and said again");
    assert!(say("/c", Some("c")) && say("/c", None) && !say("/c", None), "never heard of");
    let (texts, _) = take(&mut board, client);
    let told: Vec<(&Value, &Value)> = texts.iter().map(|text| (&text["id"], &text["message"])).collect();
    assert_eq!(told, [(&json!("type /a"), &json!("third")), (&json!("type /b"), &json!("again"))], "{texts:#?}");
    assert!(board.remark("/a", "type", None));
    assert_eq!(take(&mut board, client).0, [json!({"op": "removeStatus", "statusIds": ["type /a"]})]);
}
