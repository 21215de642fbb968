//! Which types match, as Cyclone DDS decides: between its own endpoints, and between one of its and one of ours.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ::thalweg::qos::{PolicyId, ReaderQos, Representation, WriterQos};
use ::thalweg::status::IncompatibleQos;
use ::thalweg::types::Keyed;
use ::thalweg::{DataReader, DataWriter, DomainParticipant, Raw, Topic};
use thalweg_types::codec::SampleType;
use thalweg_types::idl;

use crate::bursts;
use crate::program::{PATIENCE, Program};
use crate::{peer, thalweg};

fn table() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../thalweg-types/testdata/assignability/pairs.txt")
}

/// Cyclone with the table, and with what else `pairs.py` is told.
#[track_caller]
fn pairs(domain: u32, side: &[&str]) -> Program {
    let python = std::env::var("THALWEG_PEER_PYTHON").expect("no other vendor's program: run `cargo xtask test`");
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/cyclone-py/pairs.py")).arg(table()).args(side);
    command.env("PAIRS_DOMAIN", domain.to_string()).env("CYCLONEDDS_URI", peer::LOOPBACK);
    Program::start_with_input("Cyclone", &command)
}

#[test]
fn the_table_of_assignable_types_is_what_cyclone_says() {
    let said = pairs(thalweg::domain(), &[]).finish().well();
    let expected = std::fs::read_to_string(table()).expect("the table");
    assert_eq!(said.lines, expected.lines().collect::<Vec<_>>());
}

/// Pairs that we refuse and Cyclone does not: samples of the writer would lack a member, or the key, that the reader counts on.
const REFUSED_HERE: [&str; 2] = [
    "yes | @mutable struct T { @id(1) long a; @id(5) long c; }; | @mutable struct T { @id(2) long a; @id(5) long c; };",
    "yes | @final struct T { @key long a; long b; }; | @final struct T { @key long a; @key long b; };",
];

/// A topic whose type is the T of a text, in a module of its own so that no name says that two are the same.
fn topic(participant: &DomainParticipant, number: usize, module: &str, text: &str) -> Topic<Raw> {
    let types = idl::parse(&format!("module {module} {{ {text} }};")).unwrap_or_else(|error| panic!("{error}: {text}"));
    let name = format!("{module}::T");
    let of = types.find(&name).expect("the type");
    let is_keyed = SampleType::of(of).expect("a type of samples").is_keyed();
    let keyed = if is_keyed { Keyed::Yes } else { Keyed::No };
    let topic = participant.create_raw_topic(&format!("pair{number}"), &name, keyed, None);
    topic.described_as(of).expect("described")
}

/// What became of one end of a pair: `None` as long as the other one is not judged.
fn verdict(matched: usize, incompatible: &IncompatibleQos) -> Option<bool> {
    let is_of_type = incompatible.last_policy() == Some(PolicyId::TYPE_CONSISTENCY);
    assert!(incompatible.total == 0 || is_of_type, "kept apart by another policy: {incompatible:?}");
    (matched > 0).then_some(true).or_else(|| (incompatible.total > 0).then_some(false))
}

/// Our ends of all pairs.
enum PairEnds {
    Writers(Vec<DataWriter<Raw>>),
    Readers(Vec<DataReader<Raw>>),
}

impl PairEnds {
    fn writers(participant: &DomainParticipant, pairs: &[[&str; 3]]) -> PairEnds {
        let qos = WriterQos { data_representation: vec![Representation::Xcdr2], ..WriterQos::default() };
        let writer = |(number, [_, text, _]): (usize, &[&str; 3])| {
            let topic = topic(participant, number, &format!("w{number}"), text);
            participant.create_writer(&topic, qos.clone()).expect("a writer")
        };
        PairEnds::Writers(pairs.iter().enumerate().map(writer).collect())
    }

    fn readers(participant: &DomainParticipant, pairs: &[[&str; 3]]) -> PairEnds {
        let both = vec![Representation::Xcdr1, Representation::Xcdr2];
        let qos = ReaderQos { data_representation: both, ..ReaderQos::default() };
        let reader = |(number, [_, _, text]): (usize, &[&str; 3])| {
            let topic = topic(participant, number, &format!("r{number}"), text);
            participant.create_reader(&topic, qos.clone()).expect("a reader")
        };
        PairEnds::Readers(pairs.iter().enumerate().map(reader).collect())
    }

    fn verdicts(&self) -> Vec<Option<bool>> {
        match self {
            PairEnds::Writers(writers) => writers
                .iter()
                .map(|writer| verdict(writer.matched_readers().len(), &writer.offered_incompatible_qos()))
                .collect(),
            PairEnds::Readers(readers) => readers
                .iter()
                .map(|reader| verdict(reader.matched_writers().len(), &reader.requested_incompatible_qos()))
                .collect(),
        }
    }

    /// The verdicts once all are there.
    #[track_caller]
    fn judged(&self) -> Vec<bool> {
        let end = Instant::now() + PATIENCE;
        loop {
            let verdicts = self.verdicts();
            if let Some(all) = verdicts.iter().copied().collect::<Option<Vec<bool>>>() {
                return all;
            }
            let open = verdicts.iter().enumerate().filter(|(_, verdict)| verdict.is_none()).map(|(number, _)| number);
            assert!(Instant::now() < end, "pairs without a verdict: {:?}", open.collect::<Vec<_>>());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Meets Cyclone's ends of all pairs with ours: each end judges, and both say what the table says.
#[track_caller]
fn check(of_cyclone: &str, make: fn(&DomainParticipant, &[[&str; 3]]) -> PairEnds) {
    let text = std::fs::read_to_string(table()).expect("the table");
    let lines: Vec<&str> = text.lines().collect();
    let parts = lines.iter().map(|line| line.split('|').map(str::trim).collect::<Vec<&str>>());
    let all: Vec<[&str; 3]> = parts.map(|parts| parts.try_into().expect("three parts")).collect();
    let domain = thalweg::domain();
    let mut cyclone = pairs(domain, &[of_cyclone]);
    cyclone.expect_text("ready");
    let participant = bursts::participant(domain);
    let ends = make(&participant, &all);
    let ours = ends.judged();
    std::thread::sleep(SETTLE);
    cyclone.tell("judge");
    let theirs: Vec<String> = cyclone.finish().well().lines.into_iter().filter(|line| line.contains(" | ")).collect();
    assert_eq!(theirs, lines, "as Cyclone judges our ends");
    let differences: Vec<&str> = lines
        .iter()
        .zip(&ours)
        .filter(|(line, is_match)| **is_match != (line.starts_with("yes") && !REFUSED_HERE.contains(*line)))
        .map(|(line, _)| *line)
        .collect();
    assert!(differences.is_empty(), "as we judge Cyclone's ends:\n{}", differences.join("\n"));
}

#[test]
fn writers_of_cyclone_and_our_readers_match_as_the_table_says() {
    check("writers", PairEnds::readers);
}

#[test]
fn our_writers_and_readers_of_cyclone_match_as_the_table_says() {
    check("readers", PairEnds::writers);
}

/// How long Cyclone may take to judge after us, on a loaded machine.
const SETTLE: Duration = Duration::from_secs(5);
