//! What an instance costs among a thousand others and among a million: created, written again, disposed and forgotten by a writer and a
//! reader that meet over loopback. `cargo xtask count instances` builds and runs it.

use std::error::Error;
use std::ops::Range;
use std::time::Duration;

use thalweg::qos::{History, ReaderLifecycle, ReaderQos, Reliability, WriterQos};
use thalweg::types::SequenceNumber;
use thalweg::{DataReader, DataWriter, DomainParticipant, Topic};
use thalweg_host::{ProcessUsage, cpu_time};

#[derive(Topic)]
struct Track {
    #[topic(key)]
    number: u64,
    value: u64,
}

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Numbers of instances.
const COUNTS: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// A round of few instances is repeated until so many were there.
const INSTANCES_MIN: u64 = 100_000;
/// Samples that are written before the reader takes them.
const BLOCK: u64 = 500;
/// Longer than a block takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Outcome {
    println!(
        "A writer and a reader over loopback, reliable, KEEP_LAST 1; processor time of both in nanoseconds an instance:"
    );
    println!(
        "{:>10} {:>9} {:>9} {:>9} {:>9} {:>16} {:>14}",
        "instances", "create", "write", "dispose", "forget", "bytes of each", "growth"
    );
    let domain = 1 + std::process::id() % 230;
    let mut rows: Vec<[f64; PHASES]> = Vec::new();
    for count in COUNTS {
        let Costs { nanos, bytes, growth } = measure(domain, count)?;
        let [create, write, dispose, forget] = nanos;
        println!("{count:>10} {create:>9.0} {write:>9.0} {dispose:>9.0} {forget:>9.0} {bytes:>16.0} {growth:>14.0}");
        rows.push(nanos);
    }
    let ratios: Vec<String> =
        (0..PHASES).map(|phase| format!("{:.2}", rows[rows.len() - 1][phase] / rows[0][phase])).collect();
    println!("the last row by the first: {}", ratios.join(" "));
    Ok(())
}

/// Creating, writing again, disposing, forgetting.
const PHASES: usize = 4;

struct Costs {
    nanos: [f64; PHASES],
    /// Memory of both ends while all instances live.
    bytes: f64,
    /// By how much memory grows with each instance of a second generation, when both are forgotten.
    growth: f64,
}

/// Runs rounds of so many instances, each with endpoints of its own.
fn measure(domain: u32, count: u64) -> Outcome<Costs> {
    let rounds = INSTANCES_MIN.div_ceil(count);
    let mut sums = [0.0; PHASES];
    let (mut bytes, mut growth) = (0.0, 0.0);
    for round in 0..rounds {
        let before = resident_bytes();
        let mut pair = Pair::new(domain, &format!("{count} {round}"))?;
        let costs = pair.generation(0..count)?;
        sums.iter_mut().zip(costs.nanos).for_each(|(sum, nanos)| *sum += nanos);
        // What an earlier round has let go of is used again.
        bytes = f64::max(bytes, (costs.resident - before) / count as f64);
        let left = resident_bytes();
        pair.generation(count..2 * count)?;
        growth = (resident_bytes() - left) / count as f64;
    }
    Ok(Costs { nanos: sums.map(|sum| sum / rounds as f64), bytes, growth })
}

fn resident_bytes() -> f64 {
    ProcessUsage::read().resident_kib as f64 * 1024.0
}

/// What the lives of some instances cost.
struct Generation {
    nanos: [f64; PHASES],
    /// Memory of the process while all of them live.
    resident: f64,
}

/// A writer and a reader of two participants.
struct Pair {
    writer: DataWriter<Track>,
    reader: DataReader<Track>,
    _participants: [DomainParticipant; 2],
}

impl Pair {
    fn new(domain: u32, name: &str) -> Outcome<Pair> {
        let participants = [participant(domain)?, participant(domain)?];
        let [first, second] = &participants;
        let name = format!("tracks {} {name}", std::process::id());
        let at_once = ReaderLifecycle {
            autopurge_nowriter_samples_delay: Duration::ZERO,
            autopurge_disposed_samples_delay: Duration::ZERO,
        };
        let reader_qos = ReaderQos {
            reliability: Reliability::RELIABLE,
            history: History::KeepLast(1),
            lifecycle: at_once,
            ..ReaderQos::default()
        };
        let writer_qos = WriterQos { history: History::KeepLast(1), autodispose: false, ..WriterQos::default() };
        let reader = second.create_reader(&second.create_topic::<Track>(&name), reader_qos)?;
        let writer = first.create_writer(&first.create_topic::<Track>(&name), writer_qos)?;
        writer.wait_for_matched(1, PATIENCE)?;
        Ok(Pair { writer, reader, _participants: participants })
    }

    /// The lives of these instances.
    fn generation(&mut self, numbers: Range<u64>) -> Outcome<Generation> {
        let create = self.each(&numbers, |writer, number| writer.write(&Track { number, value: 1 }))?;
        let write = self.each(&numbers, |writer, number| writer.write(&Track { number, value: 2 }))?;
        let resident = resident_bytes();
        let dispose = self.each(&numbers, |writer, number| writer.dispose(&Track { number, value: 0 }))?;
        let forget = self.each(&numbers, |writer, number| writer.unregister(&Track { number, value: 0 }))?;
        let left = self.reader.next_instance(None);
        assert!(left.is_none(), "the reader still knows {left:?}");
        Ok(Generation { nanos: [create, write, dispose, forget], resident })
    }

    /// Does something with each instance, block by block; returns nanoseconds of processor time an instance.
    fn each(
        &mut self,
        numbers: &Range<u64>,
        act: impl Fn(&DataWriter<Track>, u64) -> Result<SequenceNumber, thalweg::Error>,
    ) -> Outcome<f64> {
        let before = cpu_time();
        for first in numbers.clone().step_by(BLOCK as usize) {
            let mut block = first..numbers.end.min(first + BLOCK);
            block.try_for_each(|number| act(&self.writer, number).map(drop))?;
            self.writer.wait_for_acknowledgments(PATIENCE)?;
            while !self.reader.take(BLOCK as usize).is_empty() {}
        }
        Ok((cpu_time() - before).as_nanos() as f64 / (numbers.end - numbers.start) as f64)
    }
}

fn participant(domain: u32) -> Result<DomainParticipant, thalweg::Error> {
    DomainParticipant::builder(domain).loopback_only().create()
}
