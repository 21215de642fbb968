use super::*;
use crate::fixtures;

#[test]
fn every_middleware_survives_its_name() {
    let all: Vec<CellMiddleware> = CellMiddleware::all().collect();
    assert_eq!(all.len(), 17);
    for one in all {
        assert_eq!(CellMiddleware::try_from(one.to_string()), Ok(one));
    }
    assert!(CellMiddleware::try_from("cyclone-batch".to_owned()).is_err());
}

/// What is said of a scenario with these lines in its matrix and after it.
#[track_caller]
fn check(matrix: &str, more: &str, expect: &str) {
    let matrix = format!("payload_bytes = 1\nrate_hz = 10\n{matrix}");
    let said = fixtures::parse(&matrix, &format!("seconds = 1\nruns = 1\n{more}")).err().unwrap_or_default();
    assert!(if expect.is_empty() { said.is_empty() } else { said.contains(expect) }, "{said}");
}

#[test]
fn what_a_peer_cannot_do_is_refused_before_the_run() {
    const HOSTS: &str = "[hosts]\non = \"netns:2\"";
    const BEST_EFFORT: &str = "[qos]\nreliability = \"best-effort\"";
    check("middleware = [\"thalweg\", \"cyclone\", \"cyclone-tuned\"]", "", "");
    check("middleware = \"zenoh\"\ndestination = \"multicast\"", "", "leave `destination` to \"auto\"");
    check("middleware = [\"cyclone\", \"fastdds-tuned\"]\ndestination = [\"unicast\", \"multicast\"]", "", "");
    check(
        "middleware = \"zenoh\"",
        "[process]\nmodel = \"single\"",
        "zenoh cannot measure 1–1 1 B 10 Hz zenoh: its processes",
    );
    const BUFFER: &str = "[process]\nreceive_buffer_bytes = 8388608";
    check("middleware = [\"thalweg\", \"cyclone\"]", BUFFER, "it decides on its sockets' receive buffers itself");
    check("middleware = \"thalweg\"", BUFFER, "");
    check("middleware = [\"cyclone\", \"zenoh-tuned\"]", HOSTS, "");
    check("middleware = \"raw\"", &format!("{HOSTS}\n{BEST_EFFORT}"), "");
    check("middleware = \"iceoryx2\"", HOSTS, "its data lie in memory that hosts do not share");
    check("middleware = \"iceoryx2\"", "", "");
    check("middleware = \"raw\"", "", "plain sockets send nothing again");
    check("middleware = \"raw\"", BEST_EFFORT, "");
    check("middleware = \"raw\"\nendpoints = \"2-1\"", BEST_EFFORT, "its readers read from one writer each");
    check("middleware = \"raw\"\nendpoints = \"2-1\"\ntopics = \"per-publisher\"", BEST_EFFORT, "");
    check("middleware = \"cyclon\"", "", "did you mean \"cyclone\"");
}
