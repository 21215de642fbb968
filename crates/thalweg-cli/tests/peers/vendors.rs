//! Bursts by every method to Fast DDS and RustDDS: the programs of `peers/`, whose README says what `burst` sends.

use std::process::Command;
use std::time::{Duration, Instant};

use ::thalweg::{DataReader, DataWriter, Topic};

use crate::program::Program;
use crate::{bursts, thalweg};

/// What travels both ways.
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "ThalwegBurst", extensibility = "final")]
struct Burst {
    /// The run in the high 32 bits, the index in the low.
    number: u64,
    bytes: Vec<u8>,
}

/// Announces a run.
const ANNOUNCEMENT: u64 = 0xffff_ffff;

/// How many samples of which size.
const RUNS: [(u32, u32); 5] = [(2_000, 40), (2_000, 700), (2_000, 3_000), (200, 20_000), (1, 40)];

/// Our end of the conversation.
struct End {
    samples: DataWriter<Burst>,
    echoes: DataReader<Burst>,
}

impl End {
    /// Waits for the echo of this number; returns what it carries.
    fn echo(&self, number: u64, patience: Duration) -> Option<Vec<u8>> {
        let end = Instant::now() + patience;
        while Instant::now() < end {
            self.echoes.wait(Duration::from_millis(20));
            let echoes = self.echoes.take(usize::MAX);
            let mut echoes = echoes.iter().map(|echo| echo.data().expect("a whole echo"));
            if let Some(echo) = echoes.find(|echo| echo.number == number) {
                return Some(echo.bytes);
            }
        }
        None
    }

    fn announce(&self, run: u64, count: u32, size: u32) -> u64 {
        let number = run << 32 | ANNOUNCEMENT;
        let bytes = [count.to_le_bytes(), size.to_le_bytes()].concat();
        self.samples.write(&Burst { number, bytes }).expect("room in time");
        number
    }

    /// Asks until the subscriber answers.
    #[track_caller]
    fn meet(&self, who: &str) {
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            let number = self.announce(0, 0, 0);
            if self.echo(number, Duration::from_millis(100)).is_some() {
                return;
            }
        }
        panic!("{who} does not answer");
    }

    /// One run: the subscriber says whether all came, in order and each once.
    #[track_caller]
    fn run(&self, who: &str, run: u64, count: u32, size: u32) {
        let announced = self.announce(run, count, size);
        assert!(self.echo(announced, Duration::from_secs(10)).is_some(), "{who} does not hear of a run");
        for index in 0..count {
            let mut bytes = vec![0; size as usize];
            bytes[0] = index as u8;
            bytes[size as usize - 1] = index as u8;
            let number = run << 32 | u64::from(index);
            self.samples.write(&Burst { number, bytes }).expect("room in time");
        }
        match self.echo(run << 32, Duration::from_secs(20)) {
            Some(complaint) => {
                assert!(complaint.is_empty(), "{who}, {count} of {size} B: {}", String::from_utf8_lossy(&complaint));
            }
            None => panic!("{who}: not all {count} samples of {size} B arrived"),
        }
    }
}

#[track_caller]
fn check(name: &str, variable: &str) {
    let program = std::env::var(variable).expect("no other vendor's program: run `cargo xtask test vendors`");
    let domain = thalweg::domain();
    let mut command = Command::new(program);
    command.args(["burst", "--role", "sub", "--domain", &domain.to_string()]);
    let subscriber = Program::start_with_input(name, &command);
    let participant = bursts::participant(domain);
    let mut run = 0;
    for method in bursts::methods() {
        let who = format!("{name} ({method})");
        let end = End {
            samples: bursts::writer(&participant, "thalweg_burst", method),
            echoes: bursts::reader(&participant, "thalweg_burst_echo"),
        };
        end.meet(&who);
        for (count, size) in RUNS {
            run += 1;
            end.run(&who, run, count, size);
        }
        assert_eq!(end.samples.counters().batches, 0, "{who} does not understand batches");
    }
    subscriber.finish().well();
}

#[test]
fn fast_dds_gets_bursts_by_every_method() {
    check("Fast DDS", "THALWEG_FASTDDS");
}

#[test]
fn rustdds_gets_bursts_by_every_method() {
    check("RustDDS", "THALWEG_RUSTDDS");
}
