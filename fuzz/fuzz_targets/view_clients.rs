//! Steps of a view without I/O: channels, samples, clients and what they say. No panic; what waits for a client stays within its bound; each
//! client that reads on comes to rest and knows the channels that there are.
#![no_main]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use thalweg::Payload;
use thalweg::qos::Ownership;
use thalweg::types::{EntityId, Guid, GuidPrefix, KeyHash};
use thalweg_recording::demand::Demand;
use thalweg_recording::schema::TypeSchema;
use thalweg_view::Switchboard;
use thalweg_view::decoders::DecoderLimits;
use thalweg_view::switchboard::{ChannelWriter, Outgoing, SwitchboardOptions, ViewedSample};

const CLIENT_BYTES: usize = 4096;

fuzz_target!(|input: &[u8]| {
    let mut board = Switchboard::new(SwitchboardOptions {
        name: "fuzz".to_owned(),
        session_id: "1".to_owned(),
        client_bytes_max: CLIENT_BYTES,
        latched_depth: 2,
    });
    let schema = TypeSchema { name: "T".to_owned(), encoding: "omgidl".to_owned(), text: "struct T {};".to_owned() };
    let (schema, begun) = (Arc::new(schema), Instant::now());
    let (mut channels, mut clients, mut rest) = (Vec::new(), Vec::new(), input);
    // The channels that each client was told of.
    let mut told: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    while let [step, which, tail @ ..] = rest {
        rest = tail;
        let chosen = |of: &[u64]| of.get(usize::from(*which) % of.len().max(1)).copied().unwrap_or(u64::from(*which));
        let demand = |is_durable: bool| Demand {
            is_reliable: true,
            is_durable,
            ownership: Ownership::Shared,
            partition: Vec::new(),
        };
        let writer = Guid { prefix: GuidPrefix([*which % 4; 12]), entity: EntityId([0, 0, 1, 3]) };
        match step % 9 {
            0 if channels.len() < 64 => {
                let limits = DecoderLimits::default();
                channels.push(board.create_channel(&format!("rt/{which}"), "T", Arc::clone(&schema), limits));
            }
            1 => {
                let id = chosen(&channels);
                board.delete_channel(id);
                channels.retain(|channel| *channel != id);
            }
            2 if clients.len() < 8 => clients.push(board.create_client(SocketAddr::from(([127, 0, 0, 1], 1)))),
            3 => {
                let id = chosen(&clients);
                board.delete_client(id);
                clients.retain(|client| *client != id);
            }
            4 => {
                let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                let text = String::from_utf8_lossy(&rest[..end]);
                board.handle_text(chosen(&clients), &text);
                rest = &rest[end..];
            }
            5 => {
                // A sound request, which chance would not find often.
                let text = format!(
                    r#"{{"op":"subscribe","subscriptions":[{{"id":{},"channelId":{}}}]}}"#,
                    which % 8,
                    chosen(&channels)
                );
                clients.iter().for_each(|client| board.handle_text(*client, &text));
            }
            6 => {
                let (bytes, is_value) = (usize::from(*which) * 8, !which.is_multiple_of(7));
                let sample = ViewedSample {
                    writer,
                    sequence: u32::from(*which),
                    instance: KeyHash::default(),
                    log_time_ns: u64::from(*which),
                    value: is_value.then(|| Payload::from(vec![*which; bytes])),
                };
                board.handle_sample(chosen(&channels), &demand(which.is_multiple_of(2)), &sample);
            }
            7 => {
                let known = ChannelWriter { demand: demand(true), kept: which.is_multiple_of(3).then_some(1) };
                board.set_writers(chosen(&channels), HashMap::from([(writer, known)]));
            }
            _ => {
                board.remark(&format!("/{}", which % 8), "type", which.is_multiple_of(2).then(|| "unknown".to_owned()));
                let client = chosen(&clients);
                if let Some(outgoing) = board.poll_outgoing(begun, client) {
                    hear(told.entry(client).or_default(), &outgoing);
                }
            }
        }
        assert!(board.backlogs().all(|(_, _, bytes, _)| bytes <= CLIENT_BYTES));
    }
    clients.push(board.create_client(SocketAddr::from(([127, 0, 0, 1], 2))));
    let there: BTreeSet<u64> = channels.into_iter().collect();
    for client in clients {
        let (told, mut frames) = (told.entry(client).or_default(), 0);
        while let Some(outgoing) = board.poll_outgoing(begun + Duration::from_secs(9), client) {
            hear(told, &outgoing);
            frames += 1;
            assert!(frames < 1_000, "it does not come to rest");
        }
        assert_eq!(*told, there);
    }
});

/// Takes note of channels that come and go.
fn hear(told: &mut BTreeSet<u64>, outgoing: &Outgoing) {
    let Outgoing::Text(text) = outgoing else { return };
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().ok()
    };
    if let Some((_, gone)) = text.split_once("\"channelIds\":[") {
        gone.trim_end_matches("]}").split(',').filter_map(number).for_each(|id| assert!(told.remove(&id), "{text}"));
    } else if text.contains("\"op\":\"advertise\"") {
        let ids = text.match_indices("\"id\":").filter_map(|(place, found)| number(&text[place + found.len()..]));
        ids.for_each(|id| assert!(told.insert(id), "{text}"));
    }
}
