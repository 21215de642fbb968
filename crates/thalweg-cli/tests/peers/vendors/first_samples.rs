//! The first samples of a writer, written while a reader of another vendor may not have matched it yet.
//!
//! A round makes one new endpoint on participants that know each other already. `THALWEG_ROUNDS` is another number of rounds
//! than [`ROUNDS`].

use std::process::Command;
use std::time::{Duration, Instant};

use ::thalweg::qos::{Durability, History, Reliability, WriterQos};
use ::thalweg::{DataWriter, DomainParticipant};
use serde_json::Value;

use super::{Burst, program};
use crate::program::{PATIENCE, Program};
use crate::{bursts, thalweg};

/// How many rounds a test makes.
const ROUNDS: u64 = 40;
/// Samples that are written together.
const SAMPLES: u64 = 5;
/// Between the writer's match and its first sample; the reader's own match falls into this time.
const GAPS_MS: [u64; 12] = [0, 1, 0, 2, 0, 3, 0, 5, 0, 10, 0, 20];
/// Between two samples, in turns of all gaps.
const PAUSES_MS: [u64; 2] = [0, 1];
/// One round in so many stops the peer from before the new endpoint until after the samples, so that it finds all of it in
/// its sockets at once.
const STOPS_EVERY: u64 = 5;
/// How long such a peer stands still after the last sample: longer than the first HEARTBEATs are apart.
const STOP: Duration = Duration::from_millis(30);
/// How long acknowledgements may take: longer than any pause between two HEARTBEATs.
const ACKNOWLEDGING: Duration = Duration::from_secs(10);
/// How long acknowledged samples may take to be told by the peer.
const TELLING: Duration = Duration::from_secs(3);

/// A participant of another vendor that creates readers when it is asked to.
struct Peer {
    program: Program,
    /// What came before the answer to a request: a reader may get samples before the thread that creates it says so.
    early: Vec<Value>,
}

impl Peer {
    #[track_caller]
    fn start(name: &str, variable: &str, domain: u32) -> Peer {
        let mut command = Command::new(program(variable));
        command.args(["listen", "--domain", &domain.to_string()]);
        let mut program = Program::start_with_input(name, &command);
        program.expect_text("\"ready\":true");
        Peer { program, early: Vec::new() }
    }

    #[track_caller]
    fn create_reader(&mut self, topic: &str, durability: Durability) {
        let durable = durability == Durability::TransientLocal;
        self.program.tell(&serde_json::json!({ "reader": topic, "durable": durable }).to_string());
        let Peer { program, early } = self;
        early.clear();
        program.expect("new reader", |line| {
            let told: Value = serde_json::from_str(line).unwrap_or_default();
            let created = told["reader"] == topic;
            early.push(told);
            created
        });
    }

    /// The numbers that a reader of the topic gets next, up to the last of so many or until it gets no more.
    fn numbers(&mut self, topic: &str, count: u64) -> Vec<u64> {
        let number = |told: &Value| told["number"].as_u64().filter(|_| told["topic"] == topic);
        let (end, mut numbers) = (Instant::now() + TELLING, Vec::new());
        numbers.extend(self.early.drain(..).filter_map(|told| number(&told)));
        while numbers.len() < count as usize {
            let Some(line) = self.program.next_line(end.saturating_duration_since(Instant::now())) else { break };
            numbers.extend(number(&serde_json::from_str(&line).unwrap_or_default()));
        }
        numbers
    }
}

/// What is new in a round.
#[derive(Clone, Copy, PartialEq)]
enum New {
    /// The writer: the peer's reader was there before it.
    Writer,
    /// The reader, which is owed what is written after the match.
    VolatileReader,
    /// The reader, which is owed all of the history, too.
    DurableReader,
}

#[track_caller]
fn check(name: &str, variable: &str, new: New) {
    let rounds = std::env::var("THALWEG_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"));
    let domain = thalweg::domain();
    let mut peer = Peer::start(name, variable, domain);
    let participant = bursts::participant(domain);
    make_acquaintance(&mut peer, &participant);
    let mut failures = Vec::new();
    for round in 0..rounds {
        let gap = Duration::from_millis(GAPS_MS[round as usize % GAPS_MS.len()]);
        let pause = Duration::from_millis(PAUSES_MS[round as usize / GAPS_MS.len() % PAUSES_MS.len()]);
        // RustDDS 0.15.1 hears nothing any more once it has stood still.
        let stops = new == New::Writer && name != "RustDDS" && round % STOPS_EVERY == STOPS_EVERY - 1;
        let played = play(&mut peer, &participant, new, Round { number: round, gap, pause, stops });
        failures.extend(played.err().map(|failure| {
            let stopped = if stops { ", the peer stopped" } else { "" };
            format!("round {round}, {gap:?} after the match, {pause:?} between samples{stopped}: {failure}")
        }));
    }
    println!("{name}: {} of {rounds} rounds complete", rounds - failures.len() as u64);
    assert!(failures.is_empty(), "{name}: {} of {rounds} rounds failed\n{}", failures.len(), failures.join("\n"));
}

/// The participants find each other, and the reader of all rounds with a new writer is there.
#[track_caller]
fn make_acquaintance(peer: &mut Peer, participant: &DomainParticipant) {
    peer.create_reader("first", Durability::Volatile);
    let writer = writer(participant, "first", Durability::Volatile);
    writer.wait_for_matched(1, PATIENCE).expect("the peer's reader appears");
    let end = Instant::now() + PATIENCE;
    while peer.numbers("first", 1).is_empty() {
        assert!(Instant::now() < end, "the peer gets nothing");
        write(&writer, 0..1, Duration::ZERO);
    }
}

/// One time around.
struct Round {
    number: u64,
    gap: Duration,
    pause: Duration,
    stops: bool,
}

fn play(peer: &mut Peer, participant: &DomainParticipant, new: New, round: Round) -> Result<(), String> {
    let topic = if new == New::Writer { "first".to_owned() } else { format!("first-{}", round.number) };
    let durability = if new == New::DurableReader { Durability::TransientLocal } else { Durability::Volatile };
    if round.stops {
        peer.program.suspend();
    }
    let writer = writer(participant, &topic, durability);
    let first = (round.number + 1) << 32;
    let mut owed = first + SAMPLES..first + 2 * SAMPLES;
    if new != New::Writer {
        write(&writer, first..first + SAMPLES, Duration::ZERO);
        peer.create_reader(&topic, durability);
    }
    if new == New::DurableReader {
        owed.start = first;
    }
    writer.wait_for_matched(1, PATIENCE).map_err(|error| error.to_string())?;
    std::thread::sleep(round.gap);
    write(&writer, first + SAMPLES..owed.end, round.pause);
    if round.stops {
        std::thread::sleep(STOP);
        peer.program.resume();
    }
    let acknowledged = writer.wait_for_acknowledgments(ACKNOWLEDGING).map_err(|error| error.to_string());
    let owed: Vec<u64> = owed.collect();
    let came: Vec<u64> = peer.numbers(&topic, owed.len() as u64);
    if came == owed {
        return acknowledged;
    }
    let came: Vec<String> = came.iter().map(|number| format!("{}", number.wrapping_sub(first))).collect();
    Err(format!("of {} samples came [{}]; acknowledged: {acknowledged:?}", owed.len(), came.join(", ")))
}

fn writer(participant: &DomainParticipant, topic: &str, durability: Durability) -> DataWriter<Burst> {
    let qos = WriterQos {
        reliability: Reliability::Reliable { max_blocking_time: PATIENCE },
        history: History::KeepAll,
        durability,
        ..WriterQos::default()
    };
    participant.create_writer(&participant.create_topic::<Burst>(topic), qos).expect("writer")
}

#[track_caller]
fn write(writer: &DataWriter<Burst>, numbers: std::ops::Range<u64>, pause: Duration) {
    for number in numbers {
        writer.write(&Burst { number, bytes: vec![7; 40] }).expect("room in time");
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    }
}

#[test]
fn cyclone_gets_the_first_samples_of_every_new_writer() {
    check("Cyclone DDS", "THALWEG_CYCLONE", New::Writer);
}

#[test]
fn fast_dds_gets_the_first_samples_of_every_new_writer() {
    check("Fast DDS", "THALWEG_FASTDDS", New::Writer);
}

#[test]
fn rustdds_gets_the_first_samples_of_every_new_writer() {
    check("RustDDS", "THALWEG_RUSTDDS", New::Writer);
}

#[test]
fn a_new_reader_of_cyclone_gets_what_is_written_after_the_match() {
    check("Cyclone DDS", "THALWEG_CYCLONE", New::VolatileReader);
}

#[test]
fn a_new_reader_of_fast_dds_gets_what_is_written_after_the_match() {
    check("Fast DDS", "THALWEG_FASTDDS", New::VolatileReader);
}

#[test]
fn a_new_reader_of_rustdds_gets_what_is_written_after_the_match() {
    check("RustDDS", "THALWEG_RUSTDDS", New::VolatileReader);
}

#[test]
fn a_late_reader_of_cyclone_gets_all_of_the_history() {
    check("Cyclone DDS", "THALWEG_CYCLONE", New::DurableReader);
}

#[test]
fn a_late_reader_of_fast_dds_gets_all_of_the_history() {
    check("Fast DDS", "THALWEG_FASTDDS", New::DurableReader);
}

#[test]
fn a_late_reader_of_rustdds_gets_all_of_the_history() {
    check("RustDDS", "THALWEG_RUSTDDS", New::DurableReader);
}
