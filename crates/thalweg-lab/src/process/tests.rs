use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use super::*;
use crate::error::LabError;

/// A worker played by the shell.
fn worker(script: &str) -> Supervised {
    let launcher = Launcher::new("/bin/sh", ["-c", script]);
    Supervised::start(&launcher, "sending process", &json!({"order": 1})).expect("the shell starts")
}

fn hear(worker: &mut Supervised) -> Result<WorkerMessage, LabError> {
    worker.hear(Duration::from_secs(5), &Stop::default())
}

#[test]
fn progress_and_result_arrive_in_order() {
    let mut worker = worker(r#"read order; echo '{"progress":{"run":1}}'; echo "{\"done\":$order}""#);
    assert_eq!(hear(&mut worker).expect("progress"), WorkerMessage::Progress(json!({"run": 1})));
    assert_eq!(hear(&mut worker).expect("result"), WorkerMessage::Done(json!({"order": 1})));
    worker.finish().expect("a peaceful end");
}

#[test]
fn a_worker_may_end_after_its_result_was_heard_and_not_before() {
    let mut good = worker("read order; echo '{\"done\":7}'");
    let mut bad = worker("read order");
    let until = |worker: &mut Supervised| loop {
        match worker.try_hear() {
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            other => return other,
        }
    };
    assert_eq!(until(&mut good).expect("a result"), Some(WorkerMessage::Done(json!(7))));
    assert!(matches!(until(&mut bad), Err(LabError::Died { .. })));
    std::thread::sleep(Duration::from_millis(50));
    good.check_alive().expect("its end is no failure");
    good.finish().expect("a peaceful end");
}

#[test]
fn a_worker_that_dies_is_named_with_its_last_words() {
    let error = hear(&mut worker("read order; echo out of memory >&2; kill -9 $$")).expect_err("dead");
    let text = error.to_string();
    assert!(text.contains("sending process") && text.contains("signal: 9") && text.contains("out of memory"), "{text}");
}

#[test]
fn a_worker_that_fails_gives_its_reason() {
    let error = hear(&mut worker(r#"read order; echo '{"failed":"no reader matched"}'; exit 1"#)).expect_err("failed");
    assert_eq!(error.to_string(), "the sending process gave up: no reader matched");
}

#[test]
fn a_worker_that_hangs_is_given_up_after_the_patience() {
    let mut worker = worker("read order; exec sleep 60");
    let started = Instant::now();
    let error = worker.hear(Duration::from_millis(200), &Stop::default()).expect_err("silence");
    assert!(matches!(error, LabError::Silent { .. }), "{error}");
    drop(worker);
    assert!(started.elapsed() < Duration::from_secs(10), "dropping a hanging worker kills it");
}

#[test]
fn what_is_tied_to_its_input_ends_with_it_and_with_all_that_it_started() {
    let mut shell = Command::new("/bin/sh");
    tie_to_input(&mut shell, "/bin/sh", ["-c", "(while :; do :; done) & echo $!; while :; do :; done"]);
    let mut busy = Supervised::spawn(shell, &[], "busy program").expect("the shell starts");
    let line = busy.hear_line(Duration::from_secs(5), &Stop::default()).expect("the number of a process");
    let all = [busy.id().expect("a child"), line.text.parse().expect("a number")];
    assert!(all.into_iter().all(is_running));
    busy.close();
    let deadline = Instant::now() + Duration::from_secs(5);
    while all.into_iter().any(is_running) {
        assert!(Instant::now() < deadline, "{all:?} go on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_end_of_what_is_tied_to_its_input_is_noticed_while_that_is_open() {
    let mut shell = Command::new("/bin/sh");
    tie_to_input(&mut shell, "/bin/sh", ["-c", "echo said; echo why >&2; exit 3"]);
    let mut short = Supervised::spawn(shell, &[], "short program").expect("the shell starts");
    assert_eq!(short.hear_line(Duration::from_secs(5), &Stop::default()).expect("a line").text, "said");
    let error = short.hear_line(Duration::from_secs(5), &Stop::default()).expect_err("its end").to_string();
    assert!(error.contains("exit status: 3") && error.contains("why"), "{error}");
}

/// Whether a process is there that has not ended.
fn is_running(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| !['Z', 'X'].contains(&state))
}

#[test]
fn a_request_to_stop_ends_the_wait() {
    let stop = Stop::default();
    stop.request();
    let error = worker("read order; exec sleep 60").hear(Duration::from_secs(60), &stop).expect_err("stopped");
    assert!(matches!(error, LabError::Interrupted));
}

#[test]
fn nonsense_is_no_result() {
    let error = hear(&mut worker("read order; echo hello")).expect_err("nonsense");
    assert!(error.to_string().contains("hello"), "{error}");
}

#[test]
fn an_exit_code_after_the_result_is_an_error() {
    let mut worker = worker(r#"read order; echo '{"done":null}'; exit 4"#);
    hear(&mut worker).expect("result");
    assert!(matches!(worker.finish(), Err(LabError::Died { .. })));
}

#[test]
fn a_program_that_does_not_exist_is_named() {
    let error =
        Supervised::start(&Launcher::new("/nonexistent", [""; 0]), "receiver", &json!(null)).expect_err("missing");
    assert!(error.to_string().starts_with("the receiver could not be started"), "{error}");
}

#[test]
fn words_of_workers_and_of_other_programs_are_heard_alike_and_remarks_are_not() {
    let mut worker = worker(
        r#"read order; echo hello; echo 7; echo '{"runs_ms":[1.5]}'; echo '{"progress":{"runs_ms":[2.5]}}'; echo '{"failed":"no more"}'; exit 1"#,
    );
    let mut word = || worker.hear_word::<serde_json::Value>(Duration::from_secs(5), &Stop::default());
    assert_eq!(word().expect("an object"), json!({"runs_ms": [1.5]}));
    assert_eq!(word().expect("the content of a progress"), json!({"runs_ms": [2.5]}));
    assert_eq!(word().expect_err("a failure").to_string(), "the sending process gave up: no more");
}

#[test]
fn of_two_processes_the_one_that_gave_up_first_tells_why() {
    let process = |name: &str, script: &str| {
        let launcher = Launcher::new("/bin/sh", ["-c", script]);
        Supervised::start_without_order(&launcher, name).expect("the shell starts")
    };
    let receiver = process("receiver", r#"echo '{"failed":"sample 3 is damaged"}'; exit 1"#);
    let sender = process("sender", r#"sleep 0.3; echo '{"failed":"no echo came"}'; exit 1"#);
    let mut pair = ProcessPair::new(receiver, sender);
    let error = pair.hear::<u64>(Duration::from_secs(5), &Stop::default()).expect_err("both failed");
    assert_eq!(error.to_string(), "the receiver gave up: sample 3 is damaged");
}
