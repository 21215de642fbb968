//! `shapes` in processes of their own, read as the interoperability suite reads it.

use std::io::BufRead;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use crate::program::{PATIENCE, Running, command, run};

/// A domain of this test alone: the suite's options have no domain tag.
fn domain() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    (100 + (std::process::id().wrapping_mul(17) + NEXT.fetch_add(1, Ordering::Relaxed)) % 130).to_string()
}

fn shapes(domain: &str, options: &str) -> Running {
    let mut words = vec!["shapes", "-d", domain, "-t", "Square"];
    words.extend(options.split_whitespace());
    Running::start(command(&words))
}

/// Reads lines of a program until one has `wanted`; returns all of them.
#[track_caller]
fn read_until(lines: &mut impl Iterator<Item = String>, wanted: &str) -> Vec<String> {
    let (mut seen, start) = (Vec::new(), Instant::now());
    for line in lines {
        let is_last = line.contains(wanted);
        seen.push(line);
        if is_last {
            return seen;
        }
        assert!(start.elapsed() < PATIENCE, "no {wanted:?}: {seen:#?}");
    }
    panic!("it ended without {wanted:?}: {seen:#?}");
}

fn lines(running: &mut Running) -> impl Iterator<Item = String> + use<> {
    running.stdout().lines().map(|line| line.expect("text"))
}

/// The size of a printed sample.
fn size(line: &str) -> Option<u32> {
    line.split_once('[')?.1.split_once(']')?.0.parse().ok()
}

#[test]
fn both_sides_say_what_the_suite_waits_for() {
    let domain = domain();
    let mut publisher = shapes(&domain, "-P -r -c RED -w -x 2 -z 0 --additional-payload-size 3");
    let mut subscriber = shapes(&domain, "-S -r -x 2 --num-iterations 600");
    let (mut said, mut heard) = (lines(&mut publisher), lines(&mut subscriber));
    let seen = read_until(&mut said, "on_publication_matched() topic: 'Square'  type: 'ShapeType' : matched readers 1");
    assert_eq!(seen[..2], ["Create topic: Square", "Create writer for topic: Square color: RED"]);
    let seen =
        read_until(&mut heard, "on_subscription_matched() topic: 'Square'  type: 'ShapeType' : matched writers 1");
    assert_eq!(seen[..2], ["Create topic: Square", "Create reader for topic: Square"]);
    let sample = read_until(&mut heard, "[").pop().expect("a sample");
    let words: Vec<&str> = sample.split_whitespace().collect();
    assert!(matches!(words[..], ["Square", "RED", x, y, _, "{255}"] if x.len() == 3 && y.len() == 3), "{sample}");
    publisher.signal("INT");
    read_until(&mut said, "Done.");
    read_until(&mut heard, "NOT_ALIVE_NO_WRITERS_INSTANCE_STATE");
}

#[test]
fn deadlines_that_pass_are_told_on_both_sides() {
    let domain = domain();
    let mut publisher = shapes(&domain, "-P -w -f 300 --write-period 1000 -c RED");
    let mut subscriber = shapes(&domain, "-S -f 300");
    // A publisher whose output is closed ends.
    let mut said = lines(&mut publisher);
    read_until(&mut said, "on_offered_deadline_missed() topic: 'Square'");
    let mut heard = lines(&mut subscriber);
    read_until(&mut heard, "[");
    read_until(&mut heard, "on_requested_deadline_missed() topic: 'Square'");
}

#[test]
fn a_subscriber_gets_what_it_asks_for_by_color_and_by_expression() {
    let domain = domain();
    let _publisher = shapes(&domain, "-P -c RED --num-instances 2 -z 0 --write-period 20");
    let mut by_color = shapes(&domain, "-S -c RED1");
    let mut heard = lines(&mut by_color);
    read_until(&mut heard, "Create reader for topic: Square_filtered");
    let samples: Vec<String> = heard.filter(|line| line.contains('[')).take(10).collect();
    assert!(samples.iter().all(|line| line.contains("RED1 ")), "{samples:#?}");
    let said = run(&["shapes", "-S", "-d", &domain, "-t", "Square", "--cft", "shapesize <>"]).expect_code(2);
    assert!(said.stdout.contains("failed to create content filtered topic"), "{}", said.stdout);
}

#[test]
fn coherent_sets_are_read_as_wholes_and_instance_by_instance() {
    let domain = domain();
    let policies = "-r -k 0 --coherent --access-scope t";
    let _publisher =
        shapes(&domain, &format!("-P {policies} --num-instances 2 --coherent-sample-count 3 --write-period 30 -z 0"));
    let mut subscriber = shapes(&domain, &format!("-S {policies} --take-read --read-period 40"));
    let heard: Vec<String> = lines(&mut subscriber).take_while(|line| !line.ends_with("iteration 60")).collect();
    let mut sets = 0;
    for read in heard.split(|line| line.starts_with("Reading coherent sets")) {
        let samples: Vec<&String> = read.iter().filter(|line| line.contains('[')).collect();
        assert_eq!(samples.len() % 6, 0, "{samples:#?}");
        for own in samples.chunks(samples.len().max(2) / 2) {
            let sizes: Vec<u32> = own.iter().filter_map(|line| size(line)).collect();
            assert!(sizes.windows(2).all(|two| two[1] == two[0] + 1), "{samples:#?}");
        }
        sets += samples.len() / 6;
    }
    assert!(sets >= 5, "{heard:#?}");
}

/// The suite's own cases of group access: 36 samples a set, as its function `coherent_sets_w_instances` counts them.
#[test]
fn coherent_sets_of_three_topics_are_read_at_once() {
    for durability in ["v", "l"] {
        let domain = domain();
        let policies = format!("-r -k 0 -D {durability} --coherent --access-scope g --num-topics 3");
        let options = format!("-P {policies} --num-instances 4 --coherent-sample-count 3 --write-period 30 -z 0");
        let _publisher = shapes(&domain, &options);
        let mut subscriber = shapes(&domain, &format!("-S {policies} --take-read --read-period 30"));
        let heard: Vec<String> = lines(&mut subscriber).take_while(|line| !line.ends_with("iteration 100")).collect();
        let mut sets = 0;
        for read in heard.split(|line| line.starts_with("Reading coherent sets")) {
            let samples: Vec<&String> = read.iter().filter(|line| line.contains('[')).collect();
            assert_eq!(samples.len() % 36, 0, "-D {durability}: {samples:#?}");
            for topic in ["Square ", "Square1 ", "Square2 "] {
                let count = samples.iter().filter(|line| line.starts_with(topic)).count();
                assert_eq!(3 * count, samples.len(), "-D {durability}, {topic}: {samples:#?}");
            }
            sets += samples.len() / 36;
        }
        assert!(sets >= 5, "-D {durability}: {heard:#?}");
    }
}

#[test]
fn ordered_access_matches_as_its_scopes_do() {
    for (offered, requested, matches) in [("g", "g", true), ("g", "t", true), ("g", "i", true), ("t", "g", false)] {
        let domain = domain();
        let _publisher = shapes(&domain, &format!("-P -c RED -r -k 0 --ordered --access-scope {offered}"));
        let mut subscriber = shapes(&domain, &format!("-S -r -k 0 --ordered --access-scope {requested}"));
        let wanted = if matches { "Square     RED" } else { "on_requested_incompatible_qos()" };
        read_until(&mut lines(&mut subscriber), wanted);
    }
}

#[test]
fn persistent_shapes_outlive_their_publisher() {
    let domain = domain();
    let folder = std::env::temp_dir().join(format!("thalweg-shapes-state-{}", std::process::id()));
    let publisher = |options: &str| {
        let words = format!("shapes -P -d {domain} -t Square -c RED -r -k 0 -D p --write-period 10 {options}");
        let mut command = command(&words.split(' ').collect::<Vec<_>>());
        command.env("XDG_STATE_HOME", &folder);
        Running::start(command)
    };
    publisher("-z 7 --num-iterations 5 --final-instance-state u").finish().expect_code(0);
    // Each of two has a store of its own, one of them that of the first.
    let _others = [publisher("-z 9"), publisher("-z 11")];
    let mut subscriber = shapes(&domain, "-S -r -k 0 -D p --num-iterations 600");
    let mut counts = [0; 3];
    for size in lines(&mut subscriber).filter_map(|line| size(&line)) {
        counts[[7, 9, 11].iter().position(|known| *known == size).expect("a size")] += 1;
        if counts[0] >= 5 && !counts.contains(&0) {
            break;
        }
    }
    assert!(counts[0] == 5 && !counts.contains(&0), "{counts:?} of 7, 9 and 11");
    std::fs::remove_dir_all(&folder).expect("our own");
}

#[test]
fn what_is_not_effective_is_said_in_front_of_everything_else() {
    let domain = domain();
    for (options, expect) in [
        ("-P -b -c RED --coherent --access-scope g", "    Presentation Coherent Access = not supported\n"),
        ("-S -b --ordered --access-scope g", "    Presentation Ordered Access = not supported\n"),
    ] {
        let words: Vec<&str> =
            ["shapes", "-d", &domain, "-t", "Square"].into_iter().chain(options.split(' ')).collect();
        let said = run(&words).expect_code(2);
        assert_eq!(said.stdout, expect, "{options}");
    }
}

#[test]
fn a_program_whose_name_has_shape_main_in_it_takes_the_options_alone() {
    let folder = std::env::temp_dir().join(format!("thalweg-shapes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let name = folder.join("thalweg-0.1.0_shape_main_linux");
    _ = std::fs::remove_file(&name);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_thalweg"), &name).expect("a link");
    let mut other = Command::new(&name);
    other.args(["-S", "-t", "Square", "-d", &domain(), "--num-iterations", "1"]).stdin(Stdio::null());
    other.stdout(Stdio::piped()).stderr(Stdio::piped());
    let said = Running::start(other).finish().expect_code(0);
    assert_eq!(said.stdout, "Create topic: Square\nCreate reader for topic: Square\nDone.\n");
    std::fs::remove_dir_all(&folder).expect("our own");
}
