//! What a newcomer is told who sees nothing.

use serde_json::Value;

use crate::program::{Running, command, run, tag};

#[test]
fn an_unknown_interface_is_an_error_that_lists_the_interfaces_there_are() {
    for words in [
        &["ls"][..],
        &["why", "chatter"],
        &["sub", "chatter"],
        &["pub", "chatter", "x"],
        &["perf", "latency"],
        &["perf", "throughput"],
        &["perf", "burst"],
    ] {
        let said = run(&[words, &["--interface", "eth7x", "--domain-tag", &tag()]].concat());
        assert!(said.code.is_some_and(|code| code != 0), "{words:?}: {} {}", said.stdout, said.stderr);
        for part in ["\"eth7x\"", "lo (127.0.0.1", "up, multicast)"] {
            assert!(said.stderr.contains(part), "{words:?}: {part:?} not in {}", said.stderr);
        }
    }
}

#[test]
fn ls_tells_host_process_and_program_of_each_participant_and_the_lease_that_it_was_given() {
    let tag = tag();
    let reader = Running::start(command(&["sub", "chatter", "--lease", "30s", "--domain-tag", &tag]));
    let listed = run(&["ls", "--json", "--domain-tag", &tag]).expect_code(0).stdout;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let [member] = listed["participants"].as_array().expect("a list").as_slice() else { panic!("{listed:#}") };
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    assert_eq!(member["process_id"], reader.id().to_string());
    assert_eq!((&member["program"], &member["host"]), (&"thalweg".into(), &host.trim().into()));
    assert_eq!(member["lease_s"], 30.0);
    let text = run(&["ls", "--domain-tag", &tag]).expect_code(0).stdout;
    let expect = format!("\n  program thalweg, process {}, host {}\n", reader.id(), host.trim());
    assert!(text.contains(&expect), "{expect:?} not in {text}");
    reader.signal("TERM");
    reader.finish();
}

#[test]
fn an_impossible_lease_is_a_mistake_of_the_command_line() {
    for lease in ["500ms", "2000000s", "30", "soon"] {
        let said = run(&["ls", "--lease", lease]).expect_code(2);
        assert!(said.stderr.contains("--lease"), "{}", said.stderr);
    }
}
