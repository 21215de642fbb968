//! Histories that outlive their writers, their participants and their processes.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use thalweg::qos::{Durability, DurabilityService, History, ReaderQos, Reliability, WriterQos};
use thalweg::{DataReader, DataWriter, DomainParticipant, ErrorKind, WriterOptions};

use crate::fixture::*;

const ROLE: &str = "THALWEG_TEST_DURABILITY";

/// Ends the other side also when the test fails.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A directory of one test; it goes with this.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("thalweg-durability-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

fn command(role: &str, domain: u32, topic: &str, place: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    configure(&mut command, role, domain, topic, place);
    command
}

fn configure(command: &mut Command, role: &str, domain: u32, topic: &str, place: &Path) {
    command
        .args(["--exact", "durability::other_side", "--nocapture"])
        .env(ROLE, role)
        .env("THALWEG_TEST_DOMAIN", domain.to_string())
        .env("THALWEG_TEST_TOPIC", topic)
        .env("THALWEG_TEST_PLACE", place)
        .stdout(Stdio::piped());
}

fn keeping(durability: Durability, history: History) -> WriterQos {
    let durability_service = DurabilityService { history, ..DurabilityService::default() };
    WriterQos { durability, durability_service, ..reliable_writer() }
}

fn late(durability: Durability) -> ReaderQos {
    ReaderQos { durability, ..reliable_reader() }
}

fn with_store(domain: u32, place: &Path) -> Result<DomainParticipant, thalweg::Error> {
    DomainParticipant::builder(domain).loopback_only().store(place.join("store")).create()
}

fn numbers(samples: &[thalweg::Sample<Shape>]) -> Vec<i32> {
    samples.iter().map(|sample| sample.data().unwrap().x).collect()
}

/// What a started process does; without a role, in the test run itself, nothing.
#[test]
fn other_side() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let domain = std::env::var("THALWEG_TEST_DOMAIN").unwrap().parse().unwrap();
    let name = std::env::var("THALWEG_TEST_TOPIC").unwrap();
    let place = PathBuf::from(std::env::var("THALWEG_TEST_PLACE").unwrap());
    match role.split_once(' ').unwrap_or((&role, "")) {
        ("transient", _) => {
            let participant = participant(domain);
            let topic = participant.create_topic::<Shape>(&name);
            let qos = keeping(Durability::Transient, History::KeepLast(3));
            let writer = participant.create_writer(&topic, qos).unwrap();
            (0..5).for_each(|x| _ = writer.write(&Shape::new("RED", x)).unwrap());
            drop(writer);
            println!("dropped");
            wait_to_be_killed();
        }
        ("stream", first) => {
            stream(&with_store(domain, &place).unwrap(), &name, History::KeepAll, first.parse().unwrap())
        }
        ("newest", first) => {
            stream(&with_store(domain, &place).unwrap(), &name, History::KeepLast(NEWEST), first.parse().unwrap())
        }
        ("serve", _) => {
            let _participant = with_store(domain, &place).unwrap();
            wait_to_be_killed();
        }
        ("fill", _) => fill_the_disk(domain, &name, &place),
        other => panic!("no such role: {other:?}"),
    }
}

fn wait_to_be_killed() {
    std::thread::sleep(Duration::from_secs(120));
}

/// Writes from number `first` on until it is killed, and prints what is confirmed.
fn stream(participant: &DomainParticipant, name: &str, history: History, first: i32) {
    let qos = keeping(Durability::Persistent, history);
    let writer = participant.create_writer(&participant.create_topic::<Shape>(name), qos).unwrap();
    for x in first.. {
        writer.write(&Shape { payload: vec![x as u8; 200], ..Shape::new("RED", x) }).unwrap();
        if x % 50 == 49 && writer.wait_for_acknowledgments(PATIENCE).is_ok() {
            println!("confirmed {x}");
        }
    }
}

#[test]
fn a_reader_gets_the_history_of_a_writer_that_was_dropped() {
    let (domain, name) = (domain(), unique("transient"));
    let place = Place::new("transient");
    let mut other = Other(command("transient", domain, &name, &place.0).spawn().unwrap());
    let mut lines = BufReader::new(other.0.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("dropped")), "the other side ended by itself");
    let participant = participant(domain);
    let topic = participant.create_topic::<Shape>(&name);
    let reader = participant.create_reader(&topic, late(Durability::Transient)).unwrap();
    assert_eq!(numbers(&take(&reader, 3)), [2, 3, 4]);
}

/// Lets a process write from `first` on, kills it once it has confirmed enough, and returns the last number that it confirmed.
fn stream_and_kill(domain: u32, name: &str, place: &Path, role: &str, first: i32, enough: i32) -> i32 {
    let mut child = Other(command(&format!("{role} {first}"), domain, name, place).spawn().unwrap());
    let mut confirmed = first;
    for line in BufReader::new(child.0.stdout.take().unwrap()).lines() {
        let Some(number) = line.unwrap().strip_prefix("confirmed ").map(|number| number.parse::<i32>().unwrap()) else {
            continue;
        };
        confirmed = number;
        if confirmed - first > enough {
            child.0.kill().unwrap();
        }
    }
    assert!(confirmed - first > enough, "the other side ended by itself");
    confirmed
}

fn take_until(reader: &DataReader<Shape>, last: i32, into: &mut Vec<i32>) {
    let start = Instant::now();
    while into.last().is_none_or(|got| *got < last) {
        assert!(start.elapsed() < PATIENCE * 2, "{:?} of {last} came", into.last());
        reader.wait(Duration::from_millis(100));
        into.extend(numbers(&reader.take(usize::MAX).into_iter().filter(|one| one.is_valid()).collect::<Vec<_>>()));
    }
}

#[test]
fn a_kill_loses_nothing_confirmed_and_delivers_nothing_twice() {
    let (domain, name) = (domain(), unique("kill"));
    let place = Place::new("kill");
    let here = participant(domain);
    let topic = here.create_topic::<Shape>(&name);
    let reader = here.create_reader(&topic, late(Durability::Persistent)).unwrap();
    let (mut lived_through, mut ranges) = (Vec::new(), Vec::new());
    for round in 0..4 {
        let first = round * 1_000_000;
        let confirmed = stream_and_kill(domain, &name, &place.0, "stream", first, 137 + 211 * round);
        ranges.push((first, confirmed));
        take_until(&reader, confirmed, &mut lived_through);
    }
    let _serving = Other(command("serve", domain, &name, &place.0).spawn().unwrap());
    let late = here.create_reader(&topic, late(Durability::Persistent)).unwrap();
    let mut served = Vec::new();
    take_until(&late, ranges[3].1, &mut served);
    for got in [&lived_through, &served] {
        assert!(got.is_sorted_by(|before, after| before < after), "something came twice, or out of order");
        let got: BTreeSet<i32> = got.iter().copied().collect();
        for (first, confirmed) in &ranges {
            assert!(
                (*first..=*confirmed).all(|x| got.contains(&x)),
                "something confirmed is missing before {confirmed}"
            );
        }
    }
    assert_eq!(reader.counters().lost, 0);
}

/// Samples that the role `newest` keeps: no multiple of those between two confirmations, so that pages go in parts.
const NEWEST: u32 = 715;

#[test]
fn a_kill_leaves_the_newest_samples_of_a_history_that_forgets() {
    let (domain, name) = (domain(), unique("newest"));
    let place = Place::new("newest");
    let mut confirmed = -1;
    for round in 0..3 {
        confirmed = stream_and_kill(domain, &name, &place.0, "newest", confirmed + 1, 1_000 + 390 * round);
        let serving = with_store(domain, &place.0).unwrap();
        assert_eq!(serving.histories()[0].samples, NEWEST as usize);
        let here = participant(domain);
        let reader = here.create_reader(&here.create_topic::<Shape>(&name), late(Durability::Persistent)).unwrap();
        let got = numbers(&take(&reader, NEWEST as usize));
        let last = got[got.len() - 1];
        assert!(last >= confirmed, "{last} of {confirmed}");
        assert_eq!(got, (last + 1 - NEWEST as i32..=last).collect::<Vec<_>>());
    }
}

#[test]
fn a_participant_goes_on_with_the_histories_of_its_store() {
    let (domain, name) = (domain(), unique("again"));
    let place = Place::new("again");
    let write = |count: std::ops::Range<i32>| {
        let participant = with_store(domain, &place.0).unwrap();
        let topic = participant.create_topic::<Shape>(&name);
        let qos = keeping(Durability::Persistent, History::KeepLast(4));
        let writer = participant.create_writer(&topic, qos).unwrap();
        let written = count.fold(0, |_, x| writer.write(&Shape::new("RED", x)).unwrap().0);
        writer.wait_for_acknowledgments(PATIENCE).unwrap();
        written
    };
    assert_eq!(write(0..10), 10);
    assert_eq!(write(10..12), 12, "no number is left out where nothing was killed");
    let _serving = with_store(domain, &place.0).unwrap();
    let here = participant(domain);
    let reader = here.create_reader(&here.create_topic::<Shape>(&name), late(Durability::Persistent)).unwrap();
    assert_eq!(numbers(&take(&reader, 4)), [8, 9, 10, 11]);
}

#[test]
fn what_was_written_so_far_is_confirmed_while_more_is_written() {
    let (domain, name) = (domain(), unique("flow"));
    let place = Place::new("flow");
    let participant = with_store(domain, &place.0).unwrap();
    let topic = participant.create_topic::<Shape>(&name);
    let writer = participant.create_writer(&topic, keeping(Durability::Persistent, History::KeepLast(100))).unwrap();
    let (count, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                writer.write(&Shape::new("RED", 1)).unwrap();
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let confirm = |round: u32| {
            eventually("it is being written", || count.load(Ordering::Relaxed) > 100 * round);
            writer.wait_for_acknowledgments(Duration::from_secs(2))
        };
        let confirmed: Vec<Result<(), thalweg::Error>> = (1..6).map(confirm).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(confirmed.iter().all(Result::is_ok), "{confirmed:?}");
    });
}

/// Much longer than a restart takes.
const SHORT_LIFE: Duration = Duration::from_secs(2);

#[test]
fn a_restart_ends_no_life_and_no_delay_early_or_late() {
    let (domain, name) = (domain(), unique("lives"));
    let place = Place::new("lives");
    let service = DurabilityService { cleanup_delay: Duration::from_secs(60), ..DurabilityService::default() };
    let qos = WriterQos { durability_service: service, ..keeping(Durability::Persistent, History::KeepAll) };
    let mut short = qos.clone();
    short.timing.lifespan = SHORT_LIFE;
    {
        let participant = with_store(domain, &place.0).unwrap();
        let ending = participant.create_writer(&participant.create_topic::<Shape>(&name), qos).unwrap();
        ending.write(&Shape::new("RED", 1)).unwrap();
        ending.unregister(&Shape::new("RED", 1)).unwrap();
        let dying = participant.create_writer(&participant.create_topic::<Shape>(&format!("{name}-short")), short);
        let dying = dying.unwrap();
        dying.write(&Shape::new("RED", 1)).unwrap();
        ending.wait_for_acknowledgments(PATIENCE).unwrap();
        dying.wait_for_acknowledgments(PATIENCE).unwrap();
    }
    std::thread::sleep(SHORT_LIFE);
    let restarted = Instant::now();
    let participant = with_store(domain, &place.0).unwrap();
    let samples = || {
        let mut histories = participant.histories();
        histories.sort_by(|one, other| one.topic_name.cmp(&other.topic_name));
        histories.iter().map(|history| history.samples).collect::<Vec<usize>>()
    };
    eventually("the sample's life is over", || samples() == [2, 0]);
    assert!(restarted.elapsed() < SHORT_LIFE, "it went on while no process ran");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(samples(), [2, 0], "the ended instance stays for a minute");
}

#[test]
fn histories_are_told_apart_by_name() {
    let (domain, name) = (domain(), unique("names"));
    let place = Place::new("names");
    let participant = with_store(domain, &place.0).unwrap();
    let topic = participant.create_topic::<Shape>(&name);
    let create = |history_name: &str| {
        let options = WriterOptions { history_name: history_name.into(), ..WriterOptions::default() };
        let qos = keeping(Durability::Persistent, History::KeepLast(1));
        participant.create_publisher(Default::default()).create_writer_with(&topic, qos, options)
    };
    let (first, second) = (create("a").unwrap(), create("b").unwrap());
    assert_ne!(first.guid(), second.guid());
    let error = create("a").expect_err("it has a writer");
    assert!(error.to_string().contains("history_name"), "{error}");
    let guid = first.guid();
    drop(first);
    assert_eq!(create("a").unwrap().guid(), guid);
}

#[test]
fn persistent_needs_a_store_of_its_own() {
    let (domain, name) = (domain(), unique("none"));
    let place = Place::new("none");
    let here = participant(domain);
    let qos = keeping(Durability::Persistent, History::KeepLast(1));
    let error = here.create_writer(&here.create_topic::<Shape>(&name), qos).expect_err("there is no store");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("DomainParticipantBuilder::store"), "{error}");
    let _first = with_store(domain, &place.0).unwrap();
    let error = with_store(domain, &place.0).expect_err("it is in use");
    assert_eq!(error.kind(), ErrorKind::PreconditionNotMet);
    std::fs::write(place.0.join("text"), "no store at all").unwrap();
    let broken = DomainParticipant::builder(domain).loopback_only().store(place.0.join("text")).create();
    let error = broken.expect_err("it is no store").to_string();
    assert!(error.contains("damaged, or no store") && error.contains("text"), "{error}");
}

#[test]
fn a_condition_that_outlives_its_participant_keeps_no_store() {
    let (domain, name) = (domain(), unique("outlived"));
    let place = Place::new("outlived");
    let participant = with_store(domain, &place.0).unwrap();
    let qos = keeping(Durability::Persistent, History::KeepLast(4));
    let writer = participant.create_writer(&participant.create_topic::<Shape>(&name), qos).unwrap();
    let _condition = writer.status_condition(thalweg::conditions::StatusKinds::ANY);
    writer.write(&Shape::new("RED", 1)).unwrap();
    drop((writer, participant));
    let again = with_store(domain, &place.0).unwrap();
    assert_eq!(again.histories().len(), 1);
}

#[test]
fn a_deleted_history_is_gone_for_good() {
    let (domain, name) = (domain(), unique("deleted"));
    let place = Place::new("deleted");
    let here = participant(domain);
    let reader = here.create_reader(&here.create_topic::<Shape>(&name), late(Durability::Persistent)).unwrap();
    for durability in [Durability::Persistent, Durability::Transient] {
        let participant = with_store(domain, &place.0).unwrap();
        let topic = participant.create_topic::<Shape>(&name);
        let create = || participant.create_writer(&topic, keeping(durability, History::KeepLast(4))).unwrap();
        let writer = create();
        let is_read = || durability == Durability::Transient || !writer.matched_readers().is_empty();
        eventually("the reader is found", is_read);
        (0..5).for_each(|x| _ = writer.write(&Shape::new("RED", x)).unwrap());
        writer.wait_for_acknowledgments(PATIENCE).unwrap();
        let guid = writer.guid();
        let error = participant.delete_history(guid).expect_err("it has a writer");
        assert_eq!(error.kind(), ErrorKind::PreconditionNotMet, "{error}");
        assert!(error.to_string().contains("drop the writer first"), "{error}");
        drop(writer);
        let histories = participant.histories();
        let [history] = histories.as_slice() else { panic!("{histories:?}") };
        assert_eq!((history.writer, history.samples, history.is_in_use), (guid, 4, false));
        assert_eq!((&history.topic_name, history.durability), (&name, durability));
        assert_eq!(participant.delete_history(guid).unwrap(), *history);
        assert_eq!(participant.histories(), []);
        let error = participant.delete_history(guid).expect_err("it is gone");
        assert_eq!(error.kind(), ErrorKind::BadParameter, "{error}");
        let writer = create();
        assert_ne!(writer.guid(), guid);
        assert_eq!((writer.held(), writer.write(&Shape::new("RED", 77)).unwrap().0), (0, 1), "a new history");
        let late = here.create_reader(&here.create_topic::<Shape>(&name), late(durability)).unwrap();
        assert_eq!(numbers(&take(&late, 1)), [77]);
        writer.wait_for_acknowledgments(PATIENCE).unwrap();
        let guid = writer.guid();
        drop(writer);
        participant.delete_history(guid).unwrap();
        drop(participant);
        assert_eq!(with_store(domain, &place.0).unwrap().histories(), [], "the store has forgotten it");
    }
    let mut got = Vec::new();
    take_until(&reader, 77, &mut got);
    assert_eq!(got, [0, 1, 2, 3, 4, 77], "what a reader has got stays with it");
}

#[test]
fn a_history_that_is_deleted_while_others_are_written_does_not_come_back() {
    let (domain, name) = (domain(), unique("busy"));
    let place = Place::new("busy");
    let participant = with_store(domain, &place.0).unwrap();
    let topic = participant.create_topic::<Shape>(&name);
    let publisher = participant.create_publisher(Default::default());
    let create = |history_name: &str| {
        let options = WriterOptions { history_name: history_name.into(), ..WriterOptions::default() };
        let qos = keeping(Durability::Persistent, History::KeepLast(1_000));
        publisher.create_writer_with(&topic, qos, options).unwrap()
    };
    let (kept, is_over) = (create("kept"), std::sync::atomic::AtomicBool::new(false));
    let write = |writer: &DataWriter<Shape>, x| _ = writer.write(&Shape::new("RED", x)).unwrap();
    let last = std::thread::scope(|scope| {
        let busy = scope.spawn(|| {
            (0..)
                .take_while(|_| !is_over.load(std::sync::atomic::Ordering::Relaxed))
                .inspect(|x| write(&kept, *x))
                .last()
        });
        for round in 0..30 {
            let writer = create(if round % 2 == 0 { "goes" } else { "goes too" });
            (0..300).for_each(|x| write(&writer, x));
            let guid = writer.guid();
            drop(writer);
            participant.delete_history(guid).unwrap();
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        busy.join().unwrap()
    });
    kept.wait_for_acknowledgments(PATIENCE).unwrap();
    drop((kept, publisher, participant));
    let again = with_store(domain, &place.0).unwrap();
    let histories: Vec<_> = again.histories().into_iter().map(|history| (history.name, history.samples)).collect();
    assert_eq!(histories, [("kept".to_owned(), 1_000.min(last.unwrap() as usize + 1))]);
}

/// In a file system of a few MiB: writes until it is full, makes room, and goes on.
fn fill_the_disk(domain: u32, name: &str, place: &Path) {
    let ballast = place.join("ballast");
    std::fs::write(&ballast, vec![1; 3 << 20]).unwrap();
    let participant = with_store(domain, place).unwrap();
    let mut qos = keeping(Durability::Persistent, History::KeepAll);
    qos.reliability = Reliability::Reliable { max_blocking_time: Duration::from_secs(5) };
    let writer = participant.create_writer(&participant.create_topic::<Shape>(name), qos).unwrap();
    let write = |x: i32| writer.write(&Shape { payload: vec![x as u8; 20_000], ..Shape::new("RED", x) });
    let (mut written, mut confirmed) = (0, -1);
    let error = loop {
        if let Err(error) = write(written) {
            break error;
        }
        if writer.wait_for_acknowledgments(PATIENCE).is_ok() {
            confirmed = written;
        }
        written += 1;
        assert!(written < 5_000, "the disk takes everything");
    };
    assert_eq!(error.kind(), ErrorKind::OutOfResources, "{error}");
    let told = error.to_string();
    assert!(told.contains("No space left") && told.contains(place.to_str().unwrap()), "{told}");
    assert_eq!(writer.wait_for_acknowledgments(PATIENCE).unwrap_err().kind(), ErrorKind::OutOfResources);
    assert!(confirmed > 10, "{confirmed}");
    std::fs::remove_file(&ballast).unwrap();
    let start = Instant::now();
    while let Err(error) = write(written) {
        assert!(start.elapsed() < PATIENCE, "{error}");
        std::thread::sleep(Duration::from_millis(50));
    }
    // The store's thread tries again now and then; until it has, the failure is told.
    eventually("all is stored", || writer.wait_for_acknowledgments(PATIENCE).is_ok());
    drop((writer, participant));
    serve_all(domain, name, place, written);
    println!("whole");
    std::io::stdout().flush().unwrap();
}

fn serve_all(domain: u32, name: &str, place: &Path, written: i32) {
    let _serving = with_store(domain, place).unwrap();
    let here = participant(domain);
    let reader = here.create_reader(&here.create_topic::<Shape>(name), late(Durability::Persistent)).unwrap();
    assert_eq!(numbers(&take(&reader, written as usize + 1)), (0..=written).collect::<Vec<_>>());
}

#[test]
fn a_full_disk_fails_writes_and_loses_nothing_confirmed() {
    let place = Place::new("full");
    let mount = format!("mount -t tmpfs -o size=9m tmpfs {} && exec \"$0\" \"$@\"", place.0.display());
    let is_allowed = Command::new("unshare").args(["-m", "sh", "-c", &mount, "true"]).status();
    if !is_allowed.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: this user may not mount a file system of its own, so that no disk can be filled");
        return;
    }
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &mount]).arg(std::env::current_exe().unwrap());
    configure(&mut command, "fill", domain(), &unique("full"), &place.0);
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("whole"), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn samples_of_an_instance_that_has_ended_go_after_the_cleanup_delay() {
    let (domain, name) = (domain(), unique("cleanup"));
    let here = participant(domain);
    let mut qos = keeping(Durability::Transient, History::KeepLast(1));
    qos.durability_service.cleanup_delay = Duration::from_millis(400);
    let writer: DataWriter<Shape> = here.create_writer(&here.create_topic::<Shape>(&name), qos).unwrap();
    writer.write(&Shape::new("RED", 1)).unwrap();
    writer.write(&Shape::new("BLUE", 2)).unwrap();
    let start = Instant::now();
    writer.unregister(&Shape::new("RED", 1)).unwrap();
    assert_eq!(writer.held(), 3);
    eventually("the samples go", || writer.held() == 1);
    assert!(start.elapsed() >= Duration::from_millis(400));
}
