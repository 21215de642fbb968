//! Views of topics of Thalweg and of Cyclone DDS, with a client by Python's websockets and the decoders of Foxglove and Lichtblick on
//! Node.js.

mod recorded;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ::thalweg::cdr::Representation;
use serde_json::{Value, json};
use thalweg_recording::schema::TypeSchema;
use thalweg_types::codec::{SampleType, encode};
use thalweg_types::document::Document;
use thalweg_types::idl;
use thalweg_view::decoders::DecoderLimits;

use crate::program::{Program, Said};
use crate::{peer, thalweg};

/// A view that listens, and its address.
#[track_caller]
fn start(domain: u32, words: &str) -> (Program, String) {
    let mut view = thalweg::start(None, domain, &format!("view --listen 127.0.0.1:0 {words}"));
    let line = view.expect_text("clients connect to ws://");
    let address = line.split("ws://").nth(1).unwrap_or_default().trim().to_owned();
    (view, address)
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/foxglove").join(name)
}

/// A client that takes so many samples of a topic.
#[track_caller]
fn client(address: &str, topic: &str, count: u32, protocol: &str) -> Program {
    let python = std::env::var("THALWEG_WEBSOCKETS_PYTHON").expect("run `cargo xtask test recording`");
    let mut command = Command::new(python);
    command.arg("-u").arg(script("client.py")).args([address, topic, &count.to_string(), protocol]);
    Program::start("the client", &command)
}

/// The bytes of the samples that a client got.
fn samples(said: &Said) -> Vec<Vec<u8>> {
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16).expect("hex");
    let samples = said.objects().filter_map(|object| object["sample"].as_str().map(str::to_owned));
    samples.map(|hex| hex.as_bytes().chunks(2).map(octet).collect()).collect()
}

/// The decoders of viewers.
#[track_caller]
fn decoders() -> Command {
    let modules = std::env::var("THALWEG_FOXGLOVE_NODE").expect("run `cargo xtask test recording`");
    let mut command = Command::new("node");
    command.arg(script("decode.js")).env("NODE_PATH", modules);
    command
}

/// What the decoders of viewers make of what a client got, by whose they are: values, or errors.
#[track_caller]
fn decoded<'a>(told: impl IntoIterator<Item = &'a Value>) -> Vec<Value> {
    let mut command = decoders();
    let mut node = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Node.js is there");
    let mut input = node.stdin.take().expect("piped");
    let lines: String = told.into_iter().map(|object| format!("{object}\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = node.wait_with_output().expect("it ends with its input");
    writer.join().expect("written").expect("written");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The values of each sample, which all decoders agree on.
#[track_caller]
fn values(said: &Said) -> Vec<Value> {
    let told: Vec<Value> = said.objects().collect();
    let all = decoded(&told).into_iter().map(|by| {
        assert!(by["foxglove"].get("value").is_some() && by["foxglove"] == by["lichtblick"], "{by:#}");
        by["foxglove"]["value"].clone()
    });
    all.collect()
}

#[test]
fn what_we_write_is_seen_byte_for_byte_and_decoded_by_foxglove() {
    for protocol in ["foxglove.sdk.v1", "foxglove.websocket.v1"] {
        let domain = thalweg::domain();
        let (_view, address) = start(domain, "");
        let client = client(&address, "/chatter", 4, protocol);
        thalweg::start(None, domain, "pub rt/chatter hello --count 4 --rate 20").finish().well();
        let said = client.finish().well();
        let expected = [&[0, 1, 0, 0, 6, 0, 0, 0][..], b"hello\0"].concat();
        for sample in samples(&said) {
            assert_eq!(sample[..expected.len()], expected, "{sample:?}");
        }
        let channel = said.objects().find_map(|object| object.get("channel").cloned()).expect("a channel");
        assert_eq!(
            (&channel["schemaName"], &channel["schemaEncoding"]),
            (&json!("std_msgs/msg/String"), &json!("ros2msg"))
        );
        assert_eq!(values(&said), vec![json!({"data": "hello"}); 4]);
    }
}

#[test]
fn what_cyclone_writes_is_decoded_by_foxglove() {
    let domain = thalweg::domain();
    let (_view, address) = start(domain, "");
    let client = client(&address, "Square", 5, "foxglove.sdk.v1");
    let words = "pub --topic Square --type shape --count 40 --rate 20 --color RED --linger 2";
    let publisher = peer::start(None, domain, words);
    let said = client.finish().well();
    publisher.finish().well();
    let values = values(&said);
    assert_eq!(values.len(), 5, "{values:#?}");
    for value in &values {
        assert_eq!(value["color"], "RED", "{values:#?}");
    }
    let xs: Vec<i64> = values.iter().filter_map(|value| value["x"].as_i64()).collect();
    assert!(xs.windows(2).all(|pair| pair[1] == pair[0] + 1), "{xs:?}");
}

/// Whether a value that was read has all that was written; unions tell their discriminator beside it.
fn has(read: &Value, written: &Value) -> bool {
    match (read, written) {
        (Value::Object(read), Value::Object(written)) => {
            written.iter().all(|(name, value)| read.get(name).is_some_and(|read| has(read, value)))
        }
        (Value::Array(read), Value::Array(written)) => {
            read.len() == written.len() && read.iter().zip(written).all(|(read, written)| has(read, written))
        }
        _ => read == written || read.as_f64().is_some_and(|read| Some(read) == written.as_f64()),
    }
}

/// A sample of a type as a view shows it.
struct Shown {
    about: String,
    remark: Option<String>,
    read: Value,
    lines: [Value; 2],
}

/// A type and samples of it.
struct Example {
    name: &'static str,
    idl: &'static str,
    /// What is written, and what viewers are to read.
    samples: Vec<(&'static str, &'static str)>,
    /// Whether decoders misread it that are newer than those of the tests (omgidl-serialization 1.2).
    is_misread_elsewhere: bool,
}

/// Types of many kinds: a line for each with its name and definition, and lines below that begin with spaces for its samples.
fn examples() -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    for line in include_str!("types.txt").lines() {
        if let Some(sample) = line.strip_prefix("  ") {
            let example = examples.last_mut().expect("a type is above its samples");
            example.samples.push(sample.split_once(" => ").unwrap_or((sample, sample)));
            continue;
        }
        let (line, is_misread_elsewhere) = line.strip_prefix("newer ").map_or((line, false), |rest| (rest, true));
        let (name, idl) = line.split_once(' ').expect("a name and a definition");
        examples.push(Example { name, idl, samples: Vec::new(), is_misread_elsewhere });
    }
    examples
}

/// The samples of a type in an encoding.
fn shown(example: &Example, representation: Representation) -> Vec<Shown> {
    let types = idl::parse(example.idl).unwrap_or_else(|error| panic!("{}: {error}", example.idl));
    let of = types.find(example.name).expect("the type");
    let schema = TypeSchema::of(example.name, of);
    let limits = DecoderLimits::of(&schema, of);
    let channel = json!({"schemaName": schema.name, "schemaEncoding": schema.encoding, "schema": schema.text});
    let shown = example.samples.iter().map(|(written, read)| {
        let value = Document::from_json(written.as_bytes()).expect("JSON");
        let sample = SampleType::of(of).expect("a type of topics");
        let bytes = encode(sample, &value, representation).unwrap_or_else(|error| panic!("{}: {error}", example.idl));
        let hex: String = bytes.iter().map(|octet| format!("{octet:02x}")).collect();
        Shown {
            about: format!("{} {written} in {representation:?}", example.idl),
            remark: limits.of_type().or_else(|| limits.of_sample(&bytes)).map(str::to_owned),
            read: serde_json::from_str(read).expect("JSON"),
            lines: [json!({"channel": channel}), json!({"sample": hex})],
        }
    });
    shown.collect()
}

#[test]
fn what_decoders_misread_is_remarked_and_nothing_else() {
    let examples = examples();
    let representations = [Representation::Xcdr1, Representation::Xcdr2];
    let all: Vec<(&Example, Vec<Shown>)> =
        examples.iter().flat_map(|of| representations.map(|representation| (of, shown(of, representation)))).collect();
    let mut results = decoded(all.iter().flat_map(|(_, shown)| shown).flat_map(|one| &one.lines)).into_iter();
    let (mut remarked, mut read) = (0, 0);
    for (example, shown) in &all {
        let results: Vec<Value> = results.by_ref().take(shown.len()).collect();
        let is_read = |one: &Shown, by: &Value| by.get("value").is_some_and(|value| has(value, &one.read));
        let is_misread = |one: &Shown, by: &Value| !is_read(one, &by["foxglove"]) || !is_read(one, &by["lichtblick"]);
        let misread = shown.iter().zip(&results).find(|(one, by)| is_misread(one, by));
        match (shown.iter().find_map(|one| one.remark.as_deref()), misread) {
            (None, None) => read += 1,
            (None, Some((one, by))) => panic!("{}: {by}", one.about),
            (Some(remark), found) => {
                assert!(found.is_some() || example.is_misread_elsewhere, "{}: {remark}", shown[0].about);
                remarked += 1;
            }
        }
    }
    assert_eq!(results.next(), None);
    assert!(remarked > 40 && read > 60, "{remarked} {read}");
}
