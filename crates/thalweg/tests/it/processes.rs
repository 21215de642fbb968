//! The same between processes: this test binary starts itself as the other side.

use std::process::{Child, Command, Stdio};

use thalweg::{DataReader, Delivery};

use crate::fixture::*;

const ROLE: &str = "THALWEG_TEST_ROLE";

/// Ends the other side also when the test fails.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn start(role: &str, domain: u32, topic: &str) -> Other {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::other_side", "--nocapture"])
        .env(ROLE, role)
        .env("THALWEG_TEST_DOMAIN", domain.to_string())
        .env("THALWEG_TEST_TOPIC", topic)
        .stdout(Stdio::null())
        .spawn();
    Other(child.unwrap())
}

/// What a started process does; without a role, in the test run itself, nothing.
#[test]
fn other_side() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let domain = std::env::var("THALWEG_TEST_DOMAIN").unwrap().parse().unwrap();
    let topic_name = std::env::var("THALWEG_TEST_TOPIC").unwrap();
    let participant = participant(domain);
    let topic = participant.create_topic::<Shape>(&topic_name);
    match role.as_str() {
        "echo" => {
            let back = participant.create_topic::<Shape>(&format!("{topic_name} back"));
            let writer = participant.create_writer(&back, late_writer()).unwrap();
            let reader = participant.create_reader(&topic, late_reader()).unwrap();
            let echo = move |reader: &DataReader<Shape>| {
                for sample in reader.take(usize::MAX).iter().filter(|sample| sample.is_valid()) {
                    writer.write(&sample.data().unwrap()).unwrap();
                }
            };
            reader.on_data(Delivery::Thread, echo).unwrap();
            // The parent ends this process; should the parent die first, its lease ends and so does this loop.
            reader.wait_for_matched(1, PATIENCE).unwrap();
            eventually_idle(&reader);
        }
        "publish" => {
            let writer = participant.create_writer(&topic, late_writer()).unwrap();
            (0..50).for_each(|x| _ = writer.write(&Shape::new("CHILD", x)).unwrap());
            writer.wait_for_matched(1, PATIENCE).unwrap();
            writer.wait_for_acknowledgments(PATIENCE).unwrap();
        }
        other => panic!("no such role: {other}"),
    }
}

fn eventually_idle(reader: &DataReader<Shape>) {
    while !reader.matched_writers().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn samples_go_to_another_process_and_back() {
    let (domain, name) = (domain(), unique("echo"));
    let _other = start("echo", domain, &name);
    let participant = participant(domain);
    let writer = participant.create_writer(&participant.create_topic::<Shape>(&name), late_writer()).unwrap();
    let back = participant.create_topic::<Shape>(&format!("{name} back"));
    let reader = participant.create_reader(&back, late_reader()).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    for x in 0..300 {
        let payload = vec![x as u8; if x % 50 == 0 { 200_000 } else { 100 }];
        writer.write(&Shape { payload, ..Shape::new("RED", x) }).unwrap();
    }
    for (x, sample) in take(&reader, 300).iter().enumerate() {
        assert_eq!(sample.data().unwrap().x, x as i32);
    }
}

#[test]
fn a_process_that_ends_properly_is_missed_at_once_and_its_samples_stay() {
    let (domain, name) = (domain(), unique("publish"));
    let participant = participant(domain);
    let reader = participant.create_reader(&participant.create_topic::<Shape>(&name), late_reader()).unwrap();
    let mut other = start("publish", domain, &name);
    let samples = take(&reader, 50);
    assert!(samples.iter().enumerate().all(|(x, sample)| sample.data().unwrap().x == x as i32));
    assert!(other.0.wait().unwrap().success());
    eventually("its writer is gone", || reader.matched_writers().is_empty());
}

#[test]
fn a_killed_and_restarted_process_is_found_again() {
    let (domain, name) = (domain(), unique("restart"));
    let participant = participant(domain);
    let writer = participant.create_writer(&participant.create_topic::<Shape>(&name), late_writer()).unwrap();
    let back = participant.create_topic::<Shape>(&format!("{name} back"));
    let reader = participant.create_reader(&back, late_reader()).unwrap();
    writer.write(&Shape::new("RED", 1)).unwrap();
    let first = start("echo", domain, &name);
    assert_eq!(take(&reader, 1)[0].data().unwrap().x, 1);
    drop(first);
    let _second = start("echo", domain, &name);
    let again = take(&reader, 1);
    assert!(again[0].info().writer.prefix != writer.guid().prefix);
    assert_eq!(again[0].data().or_else(|_| again[0].key()).unwrap().color, "RED");
}
