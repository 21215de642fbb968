//! What methods do over real sockets: `perf throughput` with processes of its own.

use serde_json::Value;

use crate::program::run;

const METHODS: [&str; 5] = ["immediate", "coalesce", "batch", "auto", "asynchronous"];

/// A second of samples of 100 bytes by this method; reliable delivery is checked by the command itself.
#[track_caller]
fn measure(method: &str, options: &[&str]) -> Value {
    let fixed =
        ["perf", "throughput", "--role", "both", "--method", method, "--seconds", "1", "--size", "100", "--json"];
    let said = run(&[&fixed[..], options].concat()).expect_code(0);
    serde_json::from_str(&said.stdout).expect("JSON")
}

#[track_caller]
fn assert_shared(method: &str, figures: &Value) {
    let shared = figures["samples_per_datagram"].as_f64().expect("a number");
    match method {
        // Datagrams that carry no sample count as well; on a busy machine what waits for the window shares some.
        "immediate" => assert!((0.95..=2.0).contains(&shared), "{figures}"),
        "asynchronous" => assert!(shared >= 0.95, "{figures}"),
        // It collects only what comes faster than datagrams leave, which a busy machine makes slower.
        "auto" => assert!(shared > 2.0, "{figures}"),
        _ => assert!(shared > 5.0, "{figures}"),
    }
}

#[test]
fn every_method_delivers_all_once_and_in_order() {
    for method in METHODS {
        let figures = measure(method, &[]);
        assert!(figures["sent"].as_u64() > Some(100), "{figures}");
        assert_eq!((&figures["received"], &figures["lost"]), (&figures["sent"], &0.into()), "{method}");
        assert_shared(method, &figures);
    }
}

#[test]
fn every_method_serves_best_effort_readers() {
    for method in METHODS {
        let figures = measure(method, &["--best-effort"]);
        assert!(figures["received"].as_u64() > Some(100), "{figures}");
        if method != "immediate" {
            assert_shared(method, &figures);
        }
    }
}

#[test]
fn every_method_serves_three_readers() {
    for method in METHODS {
        let figures = measure(method, &["--readers", "3"]);
        let sent = figures["sent"].as_u64().expect("a number");
        assert_eq!((figures["received"].as_u64(), &figures["lost"]), (Some(3 * sent), &0.into()), "{method}");
        if method != "immediate" {
            assert_shared(method, &figures);
        }
    }
}
