//! What it costs discovery to announce types and to look them up: processes that all meet, with types described and without, in turns.
//! `cargo xtask count types` builds and runs it.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use thalweg::qos::{ReaderQos, WriterQos};
use thalweg::{DomainParticipant, Topic, TopicType};
use thalweg_host::ProcessUsage;

/// As messages of robots are: structures in structures.
#[derive(Topic, Default)]
#[topic(extensibility = "appendable")]
struct Stamp {
    seconds: i32,
    nanoseconds: u32,
    frame: String,
}

#[derive(Topic, Default)]
#[topic(extensibility = "appendable")]
struct Vector {
    x: f64,
    y: f64,
    z: f64,
}

#[derive(Topic, Default)]
#[topic(extensibility = "appendable")]
struct Scan {
    stamp: Stamp,
    angle_min: f32,
    angle_max: f32,
    ranges: Vec<f32>,
    intensities: Vec<f32>,
}

#[derive(Topic, Default)]
#[topic(extensibility = "appendable")]
struct Odometry {
    stamp: Stamp,
    position: Vector,
    velocity: Vector,
    covariance: [f64; 32],
}

#[derive(Topic, Default)]
#[topic(extensibility = "appendable")]
struct Battery {
    stamp: Stamp,
    voltage: f32,
    current: f32,
    cells: Vec<f32>,
    location: String,
}

#[derive(Topic, Default)]
#[topic(extensibility = "appendable")]
struct Picture {
    stamp: Stamp,
    height: u32,
    width: u32,
    encoding: String,
    data: Vec<u8>,
}

#[derive(Topic, Default)]
#[topic(extensibility = "appendable")]
struct Joints {
    stamp: Stamp,
    names: Vec<String>,
    positions: Vec<f64>,
    efforts: Vec<f64>,
}

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const USAGE: &str = "usage: types types [PARTICIPANTS] [ROUNDS]";
const PARTICIPANTS: usize = 50;
/// Eight pairs have an interval of 95 % and more from the least ratio to the greatest.
const ROUNDS: usize = 8;
/// Longer than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Until what was repeated at the start has ended.
const SETTLING: Duration = Duration::from_secs(3);

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["member", domain, place, count, described] => {
            member(domain.parse()?, (place.parse()?, count.parse()?), described.parse()?)
        }
        ["types", rest @ ..] => {
            let number = |at: usize, default| rest.get(at).map_or(Ok(default), |word| word.parse::<usize>());
            compare(number(0, PARTICIPANTS)?.max(2), number(1, ROUNDS)?.max(1))
        }
        _ => {
            println!("{USAGE}");
            Ok(())
        }
    }
}

/// What a meeting cost all processes together.
#[derive(Clone, Copy, Default)]
struct Costs {
    /// Until each endpoint was matched, from when all were told to begin.
    seconds: f64,
    cpu_seconds: f64,
    datagrams: f64,
    bytes: f64,
}

fn compare(participants: usize, rounds: usize) -> Outcome {
    println!("{participants} participants in processes of their own, each with 5 writers and 5 readers of 5 types:");
    println!("{:>5} {:>9} {:>10} {:>10} {:>11} {:>11}", "round", "types", "seconds", "CPU s", "datagrams", "MB");
    let mut ratios: [Vec<f64>; 4] = Default::default();
    for round in 0..rounds {
        let mut costs = [Costs::default(); 2];
        // Each goes first as often as the other.
        for described in if round % 2 == 0 { [false, true] } else { [true, false] } {
            let cost = meet(participants, described)?;
            let name = if described { "described" } else { "names" };
            println!(
                "{round:>5} {name:>9} {:>10.2} {:>10.2} {:>11.0} {:>11.2}",
                cost.seconds,
                cost.cpu_seconds,
                cost.datagrams,
                cost.bytes / 1e6
            );
            costs[usize::from(described)] = cost;
        }
        let [names, types] = costs;
        let pairs = [
            (types.seconds, names.seconds),
            (types.cpu_seconds, names.cpu_seconds),
            (types.datagrams, names.datagrams),
            (types.bytes, names.bytes),
        ];
        ratios.iter_mut().zip(pairs).for_each(|(ratios, (with, without))| ratios.push(with / without));
    }
    println!("described types against names, median of the rounds and their range:");
    for (name, mut ratios) in ["seconds", "CPU seconds", "datagrams", "bytes"].into_iter().zip(ratios) {
        ratios.sort_by(f64::total_cmp);
        let middle = (ratios[(ratios.len() - 1) / 2] + ratios[ratios.len() / 2]) / 2.0;
        println!("  {name:<12} {middle:.3} ({:.3} to {:.3})", ratios[0], ratios[ratios.len() - 1]);
    }
    Ok(())
}

/// A process of this program, which ends when this is dropped.
struct Member {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Member {
    fn start(words: &[String]) -> Outcome<Member> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        let (orders, answers) = (orders.ok_or("no pipe")?, BufReader::new(answers.ok_or("no pipe")?));
        Ok(Member { child, orders, answers })
    }

    fn order(&mut self) -> Outcome {
        Ok(writeln!(self.orders, "go on")?)
    }

    fn answer(&mut self) -> Outcome<Vec<f64>> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        if line.is_empty() {
            return Err("a process ended, see above".into());
        }
        line.split_whitespace().map(|word| Ok(word.parse()?)).collect()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn meet(participants: usize, described: bool) -> Outcome<Costs> {
    // A domain that no other run uses at the same time, most likely.
    let domain = 1 + std::process::id() % 200;
    let mut members = Vec::new();
    for place in 0..participants {
        let words = ["member".to_owned(), domain.to_string(), place.to_string(), participants.to_string()];
        members.push(Member::start(&[&words[..], &[described.to_string()]].concat())?);
    }
    members.iter_mut().try_for_each(|member| member.answer().map(drop))?;
    let start = Instant::now();
    members.iter_mut().try_for_each(Member::order)?;
    members.iter_mut().try_for_each(|member| member.answer().map(drop))?;
    let seconds = start.elapsed().as_secs_f64();
    std::thread::sleep(SETTLING);
    members.iter_mut().try_for_each(Member::order)?;
    let mut costs = Costs { seconds, ..Costs::default() };
    for member in &mut members {
        let [cpu_seconds, datagrams, bytes] = member.answer()?[..] else {
            return Err("three figures are wanted".into());
        };
        costs.cpu_seconds += cpu_seconds;
        costs.datagrams += datagrams;
        costs.bytes += bytes;
    }
    Ok(costs)
}

/// Something that waits until an endpoint has a match.
type Wait = Box<dyn Fn() -> Result<(), thalweg::Error>>;

/// A participant that writes topics of its own and reads those of the next one.
fn member(domain: u32, (place, count): (usize, usize), described: bool) -> Outcome {
    let mut orders = std::io::stdin().lock().lines();
    println!();
    orders.next().ok_or("no orders")??;
    let mut builder = DomainParticipant::builder(domain).loopback_only();
    if !described {
        builder = builder.without_type_description();
    }
    let participant = builder.create()?;
    let places = (place, (place + 1) % count);
    let waits = [
        join::<Scan>(&participant, "scan", places)?,
        join::<Odometry>(&participant, "odometry", places)?,
        join::<Battery>(&participant, "battery", places)?,
        join::<Picture>(&participant, "picture", places)?,
        join::<Joints>(&participant, "joints", places)?,
    ];
    waits.iter().flatten().try_for_each(|wait| wait())?;
    println!("0");
    orders.next().ok_or("no orders")??;
    let received = participant.receive_counts();
    let cpu_seconds = ProcessUsage::read().cpu_seconds();
    println!("{cpu_seconds} {} {}", received.datagrams, received.bytes);
    // Ends with its orders, when all have told.
    while orders.next().is_some() {}
    Ok(())
}

fn join<T: TopicType + 'static>(
    participant: &DomainParticipant,
    name: &str,
    (own, next): (usize, usize),
) -> Result<[Wait; 2], thalweg::Error> {
    let topic = |place: usize| participant.create_topic::<T>(&format!("robot/{place}/{name}"));
    let writer = participant.create_writer(&topic(own), WriterQos::default())?;
    let reader = participant.create_reader(&topic(next), ReaderQos::default())?;
    Ok([Box::new(move || writer.wait_for_matched(1, PATIENCE)), Box::new(move || reader.wait_for_matched(1, PATIENCE))])
}
