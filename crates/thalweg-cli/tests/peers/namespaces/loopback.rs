//! A host without a network: loopback is all that it has, and no route leads to a group.

use std::time::Duration;

use serde_json::Value;

use crate::host::Host;
use crate::program::Program;

/// `thalweg video` with these words, on `host`.
fn video(host: &Host, words: &str) -> Program {
    let mut command = host.command(env!("CARGO_BIN_EXE_thalweg"));
    command.arg("video").args(words.split_whitespace()).args(["--interface", "lo", "--json"]);
    Program::start("Thalweg", &command)
}

/// What the program prints when it ends well.
fn printed(program: Program) -> Value {
    serde_json::from_str(&program.finish().well().lines.join("\n")).expect("one value")
}

#[test]
fn a_video_session_is_heard_where_loopback_is_all_there_is() {
    let host = Host::new("alone");
    // The first announcement is sent at once and the next one after half a minute: a listener that a busy host starts late misses it.
    let heard = (0..4).find_map(|_| {
        let listener = video(&host, "sdp --listen 4");
        std::thread::sleep(Duration::from_millis(500));
        let stream = "--to 239.255.77.1:5004 --size 322x182 --rate 5 --seconds 7 --announce";
        let sender = video(&host, &format!("send {stream}"));
        let sessions = printed(listener);
        let report = printed(sender);
        assert!(report["packets_sent"].as_u64() > Some(1_000), "{report}");
        sessions.as_array().and_then(|sessions| sessions.first().cloned())
    });
    let session = heard.expect("a listener that was there in time");
    assert_eq!(session["streams"][0]["to"][0], "239.255.77.1:5004");
}
