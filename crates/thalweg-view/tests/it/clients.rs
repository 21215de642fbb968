//! Clients that read slowly, come from anywhere, or speak nonsense.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;
use thalweg_testing::program::PATIENCE;
use thalweg_testing::viewer::{PROTOCOLS, ViewMessage, Viewer};
use thalweg_view::ViewNews;

use crate::{BYTES, LONG, Scene, blob, reading, volatile, writer};

#[test]
fn a_client_that_reads_nothing_holds_up_no_other_and_its_samples_are_counted() {
    let scene = Scene::new(|_| ());
    let far = scene.participant();
    let source = writer(&far, "image", BYTES, volatile());
    let (mut idle, mut busy) = (Viewer::connect(scene.address), Viewer::connect(scene.address));
    let channel = busy.expect_channel("image");
    let same = idle.expect_channel("image");
    idle.subscribe(1, &same);
    busy.subscribe(2, &channel);
    source.wait_for_matched(1, PATIENCE).expect("the view reads the topic");
    // More than the buffers of both sockets and the client's memory take.
    const SAMPLES: u32 = 400;
    for number in 0..SAMPLES {
        source.write_serialized(&blob(number, 100_000)).expect("written");
        let (subscription, bytes) = busy.expect_sample();
        assert_eq!((subscription, bytes.len(), &bytes[8..12]), (2, 100_008, &number.to_le_bytes()[..]));
    }
    let slow = scene.expect("the slow client", |news| matches!(news, ViewNews::Slow { .. }));
    let ViewNews::Slow { waiting_bytes, .. } = slow else { unreachable!("it was looked for") };
    assert!(waiting_bytes <= 1 << 20, "{waiting_bytes}");
    // It is told when it reads again, and goes on with the newest.
    let (mut got, mut told) = (0, None);
    loop {
        match idle.read() {
            ViewMessage::Sample { bytes, .. } => {
                got += 1;
                if bytes[8..12] == (SAMPLES - 1).to_le_bytes() {
                    break;
                }
            }
            ViewMessage::Message(message) if message["id"] == "dropped" => told = Some(message),
            ViewMessage::Message(_) => {}
            ViewMessage::Goodbye => panic!("the server has gone"),
        }
    }
    let told = told.expect("it is told");
    let summary = scene.finish();
    assert_eq!(summary.samples, u64::from(SAMPLES) + got);
    assert_eq!(summary.dropped, u64::from(SAMPLES) - got, "{told:#}");
}

#[test]
fn pages_of_strangers_and_other_protocols_are_refused_with_the_reason() {
    let scene = Scene::new(|_| ());
    for protocol in PROTOCOLS {
        assert!(Viewer::connect_as(scene.address, protocol, None).is_ok(), "{protocol}");
    }
    assert!(Viewer::connect_as(scene.address, PROTOCOLS[0], Some("https://app.foxglove.dev")).is_ok());
    let refused = Viewer::connect_as(scene.address, PROTOCOLS[0], Some("https://evil.example"));
    let (status, text) = refused.err().expect("a page of strangers");
    assert_eq!(status, 403);
    let news = scene.expect("the page", |news| matches!(news, ViewNews::Refused { .. }));
    assert!(news.to_string().contains("--origin https://evil.example"), "{news}; {text}");
    let (status, _) = Viewer::connect_as(scene.address, "mqtt", None).err().expect("another protocol");
    assert_eq!(status, 400);
    let mut browser = TcpStream::connect(scene.address).expect("connected");
    browser.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    browser.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("written");
    let mut answer = String::new();
    browser.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("Foxglove"), "{answer}");
}

#[test]
fn nonsense_is_answered_and_ends_no_connection_but_its_own() {
    let scene = Scene::new(|_| ());
    let far = scene.participant();
    let source = writer(&far, "scan", LONG, volatile());
    let mut viewer = Viewer::connect(scene.address);
    let channel = viewer.expect_channel("scan");
    viewer.subscribe(1, &channel);
    source.wait_for_matched(1, PATIENCE).expect("the view reads the topic");
    let mut strange = Viewer::connect(scene.address);
    strange.say(
        &json!({"op": "advertise", "channels": [{"id": 1, "topic": "cmd", "encoding": "json", "schemaName": ""}]}),
    );
    strange.expect_remark("takes nothing");
    strange.say(&json!({"op": "subscribe", "subscriptions": [{"id": 1, "channelId": 4711}]}));
    strange.expect_remark("channel 4711 is not there");
    // Larger than any message of a client.
    strange.say(&json!({"op": "subscribe", "subscriptions": [], "pad": "x".repeat(1 << 20)}));
    assert!(matches!(strange.read(), ViewMessage::Goodbye));
    // Bytes that are no frames, and a handshake that never ends.
    let mut rude = TcpStream::connect(scene.address).expect("connected");
    rude.write_all(&[0xff; 10_000]).expect("written");
    let _slow: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(scene.address).expect("connected")).collect();
    source.write_serialized(&reading(1)).expect("written");
    assert_eq!(viewer.expect_sample(), (1, reading(1)));
    assert!(Viewer::connect_as(scene.address, PROTOCOLS[0], None).is_ok(), "who decides finds room");
}

#[test]
fn a_view_that_ends_waits_for_no_client() {
    let scene = Scene::new(|_| ());
    let far = scene.participant();
    let source = writer(&far, "image", BYTES, volatile());
    let (mut idle, mut other) = (Viewer::connect(scene.address), Viewer::connect(scene.address));
    let channel = idle.expect_channel("image");
    idle.subscribe(1, &channel);
    other.expect_channel("image");
    source.wait_for_matched(1, PATIENCE).expect("the view reads the topic");
    for number in 0..200 {
        source.write_serialized(&blob(number, 100_000)).expect("written");
    }
    let begun = Instant::now();
    scene.finish();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    loop {
        match other.read() {
            ViewMessage::Goodbye => break,
            ViewMessage::Message(_) => {}
            ViewMessage::Sample { .. } => panic!("it asked for none"),
        }
    }
}
