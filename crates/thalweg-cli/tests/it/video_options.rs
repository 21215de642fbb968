//! Options of `video` that contradict each other, and what session descriptions tell of them.

use std::time::{Duration, Instant};

use crate::program::{PATIENCE, Running, command};

#[test]
fn ctrl_c_ends_the_search_for_a_session() {
    let name = format!("a session of nobody {}", std::process::id());
    let receiver = Running::start(command(&["video", "recv", "--session", &name, "--interface", "lo"]));
    let deadline = Instant::now() + PATIENCE;
    while !catches_interrupts(receiver.id()) {
        assert!(Instant::now() < deadline, "the signal is not awaited");
        std::thread::sleep(Duration::from_millis(10));
    }
    receiver.signal("INT");
    receiver.finish().expect_code(130);
}

/// Whether a process has its handlers of SIGINT and of SIGTERM, signal 15, which is the later one.
fn catches_interrupts(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("Linux");
    u64::from_str_radix(caught.trim(), 16).expect("a mask") & (1 << 14) != 0
}
