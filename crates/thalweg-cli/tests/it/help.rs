//! What the command line says about itself.

use crate::program::{Running, command, run};

const COMMANDS: [&[&str]; 74] = [
    &[],
    &["pub"],
    &["sub"],
    &["ls"],
    &["topic"],
    &["topic", "list"],
    &["topic", "type"],
    &["topic", "echo"],
    &["topic", "hz"],
    &["topic", "bw"],
    &["topic", "delay"],
    &["topic", "pub"],
    &["record"],
    &["replay"],
    &["idl"],
    &["completions"],
    &["man"],
    &["why"],
    &["config"],
    &["doctor"],
    &["perf"],
    &["perf", "latency"],
    &["perf", "throughput"],
    &["perf", "burst"],
    &["perf", "udp"],
    &["perf", "tcp"],
    &["perf", "serve"],
    &["shapes"],
    &["sim"],
    &["lab"],
    &["lab", "quick"],
    &["lab", "run"],
    &["lab", "run", "paper1"],
    &["lab", "run", "paper2"],
    &["lab", "run", "paper3"],
    &["lab", "run", "paper4"],
    &["lab", "run", "paper5"],
    &["lab", "profile"],
    &["lab", "page"],
    &["lab", "list"],
    &["lab", "peers"],
    &["lab", "peers", "list"],
    &["lab", "peers", "install"],
    &["lab", "resume"],
    &["lab", "verify"],
    &["lab", "report"],
    &["lab", "top"],
    &["lab", "agent"],
    &["lab", "compare"],
    &["coap"],
    &["coap", "serve"],
    &["coap", "get"],
    &["coap", "put"],
    &["coap", "post"],
    &["coap", "delete"],
    &["coap", "fetch"],
    &["coap", "patch"],
    &["coap", "ipatch"],
    &["coap", "ping"],
    &["coap", "observe"],
    &["coap", "discover"],
    &["coap", "bridge"],
    &["coap", "load"],
    &["video"],
    &["video", "send"],
    &["video", "recv"],
    &["video", "analyse"],
    &["video", "sdp"],
    &["advisor"],
    &["advisor", "advise"],
    &["advisor", "apply"],
    &["advisor", "verify"],
    &["advisor", "revert"],
    &["help", "pub"],
];

#[test]
fn the_help_of_every_command_has_an_example_and_the_exit_codes() {
    for words in COMMANDS {
        let arguments: Vec<&str> =
            if words.first() == Some(&"help") { words.to_vec() } else { [words, &["--help"]].concat() };
        let said = run(&arguments).expect_code(0);
        assert!(said.stdout.contains("Example:\n  thalweg "), "{words:?}:\n{}", said.stdout);
        assert!(said.stdout.contains("Exit codes: 0"), "{words:?}");
    }
}

#[test]
fn every_option_says_its_default_or_is_a_switch_or_a_limit_of_its_own() {
    for words in COMMANDS {
        let text = run(&[words, &["--help"]].concat()).stdout;
        for option in options(&text) {
            let is_limit_of_its_own = option.starts_with("--seed <S>");
            let is_of_the_parser = option.starts_with("-h") || option.starts_with("-V");
            assert!(option.contains("(default:") || is_limit_of_its_own || is_of_the_parser, "{words:?} {option}");
        }
    }
}

/// The texts of the options in a help, each from its dashes on.
fn options(help: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in
        help.lines().skip_while(|line| !line.starts_with("Options:")).take_while(|line| !line.starts_with("Example:"))
    {
        let text = line.trim_start();
        if text.starts_with('-') && line.len() - text.len() <= 6 && !text.starts_with("- ") {
            out.push(text.to_owned());
        } else if let Some(option) = out.last_mut() {
            option.push(' ');
            option.push_str(text);
        }
    }
    out
}

#[test]
fn the_experiments_own_sub_command_is_not_shown() {
    assert!(!run(&["--help"]).stdout.contains("worker"));
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_error() {
    for words in [&["--help"][..], &["pub", "--help"], &["sim", "--seeds", "1"], &["ls", "--settle", "0", "--json"]] {
        let mut running = Running::start(command(words));
        drop(running.stdout());
        let said = running.finish().expect_code(0);
        assert!(said.stderr.is_empty(), "{words:?}: {}", said.stderr);
    }
}

#[test]
fn wrong_usage_is_told_with_the_way_out() {
    let check = |arguments: &[&str], expect: &[&str]| {
        let said = run(arguments).expect_code(2);
        for part in expect {
            assert!(said.stderr.contains(part), "{part:?} not in {}", said.stderr);
        }
    };
    check(
        &["pub", "t", "x", "--qos", "relyability=reliable"],
        &["did you mean \"reliability\"", "durability", "max_blocking_ms"],
    );
    check(&["sub", "t", "--qos", "durability=transientlocal"], &["did you mean \"transient-local\"", "volatile"]);
    check(&["pub", "t", "--type", "ShapeType", "RED"], &["color,x,y,size"]);
    check(&["pub", "t", "x", "--dispose"], &["--type ShapeType"]);
    check(&["sub", "t", "--domain", "233"], &["0..=232"]);
    check(&["perf", "latency", "--cpu", "0"], &["--cpu 0,1"]);
    check(&["perf", "throughput", "--max-bytes", "5"], &["--method coalesce or batch"]);
    check(&["perf", "throughput", "--flush-delay", "5"], &["us, ms or s"]);
    check(&["lab", "run", "paper1", "--peers", "cyclon"], &["'cyclone'", "iceoryx2"]);
    check(&["lab", "run", "paper1", "--peers", "none,cyclone"], &["none stands alone"]);
    check(&["lab", "run", "paper9"], &["did you mean \"paper1\""]);
    check(&["lab", "run", "--out", "/tmp", "paper1"], &["name the preset before its options"]);
    check(&["lab", "run"], &["<FILE>"]);
    let of_file = "Options of `thalweg lab run`: --out, --against, --seed, --peer-dir, --ssh, --live, --json.";
    check(&["lab", "run", "s.toml", "--quick"], &["'--quick'", of_file]);
    let of_paper2 = "Options of `thalweg lab run paper2`: --quick, --full, --counts, --parts, --peers, --runs, --peer-dir, --out, --seed, --json.";
    check(&["lab", "run", "paper2", "--quick", "--tables", "2"], &["'--tables'", of_paper2]);
    check(
        &["lab", "run", "paper4", "--live"],
        &["'--live'", "Options of `thalweg lab run paper4`: --quick, --full, --parts, --peers"],
    );
    check(
        &["lab", "run", "paper5", "--key", "x"],
        &["'--key'", "Options of `thalweg lab run paper5`: --quick, --full"],
    );
    check(&["advisor", "advise", "--profile", "vidio"], &["'vidio'", "'video'", "telemetry"]);
    check(&["sbu", "t"], &["sub"]);
}

#[test]
fn qos_that_contradicts_itself_or_the_system_is_explained() {
    let said = run(&["sub", "t", "--qos", "depth=10", "--qos", "max_samples=5"]).expect_code(1);
    assert!(said.stderr.contains("HISTORY") && said.stderr.contains("lower it"), "{}", said.stderr);
}
