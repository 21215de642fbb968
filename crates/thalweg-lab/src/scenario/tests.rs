use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::fixtures::check_contains;

const SMALLEST: &str = r#"schema = "thalweg.scenario/1"
name = "small"
[matrix]
payload_bytes = 100
rate_hz = 10
[schedule]
seconds = 5
runs = 2
"#;

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse("s.toml", text).map_err(|error| error.to_string())
}

/// Checks the error that one changed or added line of the smallest scenario gives.
#[track_caller]
fn check(before: &str, after: &str, expect: &[&str]) {
    check_changed(SMALLEST, before, after, expect);
}

/// The same of another scenario.
#[track_caller]
fn check_changed(text: &str, before: &str, after: &str, expect: &[&str]) {
    let changed = text.replacen(before, after, 1);
    assert_ne!(changed, text, "{before:?} is not in the text");
    check_contains(&parse(&changed).expect_err(after), expect);
}

#[test]
fn the_smallest_scenario_has_the_documented_defaults() {
    let scenario = parse(SMALLEST).expect("a scenario");
    let cell = Cell::new(Load::Octets(100), 10.0, 1, 1, Topics::One);
    assert_eq!((scenario.name.as_str(), scenario.seed, scenario.cells), ("small", 1, vec![cell]));
    assert_eq!(scenario.qos.history, HistorySetting::KeepAll(256));
    assert_eq!(scenario.process.model, ProcessModel::PerEndpoint);
    assert_eq!(scenario.schedule.measured, Duration::from_secs(5));
    let schedule = &scenario.schedule;
    assert_eq!((schedule.runs.min, schedule.runs.max, schedule.design), (2, 2, Design::Abba));
    assert_eq!(schedule.settle, Settle::No);
    assert_eq!((scenario.gate.others, scenario.gate.attempts), (0.01, 3));
}

#[test]
fn everything_that_can_be_said_is_read() {
    let text = r#"
        schema = "thalweg.scenario/1"
        name = "all-1_x.y"
        seed = 42
        [matrix]
        middleware = ["thalweg"]
        type = ["Struct16", "PointCloud1m"]
        payload_bytes = [524_288]
        rate_hz = [10, 100.5]
        endpoints = ["2-2"]
        destination = ["unicast", "multicast"]
        topics = "per-pair"
        [qos]
        reliability = "best-effort"
        history = { keep_last = 10 }
        max_blocking_ms = 100
        [process]
        model = "single"
        affinity = { publishers = 0, subscribers = [0] }
        wait = "block"
        [schedule]
        seconds = 3
        runs = { min = 4, max = 30 }
        precision = { p99 = 0.05 }
        settle = "mser"
        warm_up_s = 0.5
        design = "sequential"
        in_time_ms = 2.5
        behind_max_ms = 20
        phase = "together"
        wake = "spin"
        drain_s = 2
        [expect]
        in_time_pct = ">= 99.9"
        lost = "== 0"
        [system]
        others_max_pct = 50
        psi_cpu_max_pct = 5
        attempts = 1
        [trace]
        layers = true
        sample = 50
    "#;
    let scenario = parse(text).expect("a scenario");
    assert_eq!(scenario.trace.map(std::num::NonZeroU32::get), Some(50));
    let off = parse(&text.replace("layers = true", "layers = false")).expect("a scenario");
    assert_eq!(off.trace, None);
    assert_eq!(scenario.cells.len(), 3 * 2 * 2);
    assert_eq!(scenario.cells[0].to_string(), "2–2 Struct16 10 Hz unicast per-pair thalweg");
    assert_eq!(scenario.cells[0].pairs().collect::<Vec<_>>(), [(0, 0), (1, 1)]);
    assert_eq!(scenario.cells[11].to_string(), "2–2 512 KiB 100.5 Hz multicast per-pair thalweg");
    assert_eq!(
        scenario.qos,
        Qos {
            reliability: ReliabilitySetting::BestEffort,
            history: HistorySetting::KeepLast(10),
            max_blocking: Duration::from_millis(100)
        }
    );
    assert_eq!(scenario.process.affinity, Affinity::Lists { publishers: vec![0], subscribers: vec![0] });
    assert_eq!((scenario.process.model, scenario.process.wait), (ProcessModel::Single, crate::station::Wait::Block));
    let schedule = &scenario.schedule;
    let precision = Precision { p50: None, p99: Some(0.05) };
    assert_eq!((schedule.runs, schedule.settle), (Runs { min: 4, max: 30, precision }, Settle::Mser));
    assert_eq!(
        (schedule.in_time, schedule.behind_max),
        (Some(Duration::from_micros(2_500)), Duration::from_millis(20))
    );
    assert_eq!(
        (schedule.phase, schedule.wake, schedule.design),
        (PublisherPhase::Together, Wake::Spin, Design::Sequential)
    );
    assert_eq!((schedule.warm_up, schedule.drain), (Duration::from_millis(500), Duration::from_secs(2)));
    let told: Vec<String> = scenario.expectations.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["in_time_pct >= 99.9", "lost == 0"]);
    assert_eq!((scenario.gate.others, scenario.gate.pressure, scenario.gate.attempts), (0.5, Some(0.05), 1));
    assert_eq!(scenario.seed, 42);
}

#[test]
fn several_matrices_stand_one_after_the_other() {
    let second = "[[matrix]]\nmiddleware = [\"thalweg\", \"zenoh-tuned\"]\ntype = \"Struct16\"\nrate_hz = 5\nendpoints = \"3-1\"\n\
                  topics = \"per-publisher\"\nreliability = [\"reliable\", \"best-effort\"]\n[schedule]";
    let text =
        SMALLEST.replacen("[matrix]", "notes = [\"one\", \"two\"]\n[[matrix]]", 1).replacen("[schedule]", second, 1);
    let scenario = parse(&text).expect("a scenario");
    let names: Vec<String> = scenario.cells.iter().map(ToString::to_string).collect();
    let expect = [
        "1–1 100 B 10 Hz auto thalweg",
        "3–1 Struct16 5 Hz auto per-publisher reliable thalweg",
        "3–1 Struct16 5 Hz per-publisher reliable zenoh-tuned",
        "3–1 Struct16 5 Hz auto per-publisher best-effort thalweg",
        "3–1 Struct16 5 Hz per-publisher best-effort zenoh-tuned",
    ];
    assert_eq!((names, scenario.notes), (expect.map(str::to_owned).to_vec(), vec!["one".to_owned(), "two".to_owned()]));
    assert_eq!(scenario.cells[1].pairs().collect::<Vec<_>>(), [(0, 0), (1, 0), (2, 0)]);
    let twice = text.replacen("[schedule]", "[[matrix]]\npayload_bytes = 100\nrate_hz = [10, 20]\n[schedule]", 1);
    assert!(parse(&twice).expect_err("twice").contains("1–1 100 B 10 Hz auto thalweg stands twice"));
    let block = text.replacen("[schedule]", "[process]\nwait = \"block\"\n[schedule]", 1);
    assert!(parse(&block).expect_err("block").contains("use wait = \"listener\""));
}

#[test]
fn errors_name_the_place_and_the_nearest_word() {
    check(
        "rate_hz",
        "rate_khz",
        &["s.toml:5:1: \"rate_khz\" is unknown in [matrix]", "did you mean \"rate_hz\"", "publishers"],
    );
    check("[schedule]", "[shedule]", &["s.toml:6:2:", "did you mean \"schedule\""]);
    check(
        "runs = 2",
        "runs = \"2\"",
        &["s.toml:8:8: runs: a whole number from 1 to 1000 is needed, not the text \"2\""],
    );
    check(
        "runs = 2",
        "runs = 2\ndesign = \"abab\"",
        &["s.toml:9:10: design: \"abab\" is no choice: did you mean \"abba\"? allowed: abba, sequential"],
    );
    check("= 10\n", "= [10, 0]\n", &["s.toml:5:16: rate_hz: 0 is not within 0.1 to 100000"]);
    check("= 10\n", "= [10, 10.0]\n", &["s.toml:5:16:", "twice"]);
    check("= 10\n", "= nan\n", &["s.toml:5:11:", "not within"]);
    check("= 100\n", "= -1\n", &["s.toml:4:17: payload_bytes: -1 is not within 0 to 67108864"]);
    check("= 100\n", "= 0xffff_ffff_ffff_ffff_ff\n", &["s.toml:4:17:"]);
    check("= 100\n", "= 1979-05-27\n", &["a whole number", "not a date"]);
    check("scenario/1", "scenario/2", &["s.toml:1:10: schema: this version reads \"thalweg.scenario/1\" only"]);
    check("\"small\"", "\"a/b\"", &["s.toml:2:8: name:"]);
    check("name = \"small\"\n", "", &["the file needs \"name\""]);
    check("payload_bytes = 100\n", "", &["payload_bytes", "type"]);
    check("seconds = 5", "seconds = 5\nseconds = 6", &["s.toml:8:1:", "duplicate key"]);
    check("[matrix]", "[matrix", &["s.toml:3:"]);
}

#[test]
fn what_is_not_built_is_refused_in_clear_words() {
    check("runs = 2", "runs = 2\n[paper]\nname = 1", &["s.toml:9:2: \"paper\" is not supported yet"]);
    check(
        "runs = 2",
        "runs = 2\n[qos]\ndeadline_ms = 5",
        &["s.toml:10:1: \"deadline_ms\" in [qos] is not supported yet"],
    );
    check("rate_hz", "middleware = \"thalwag\"\nrate_hz", &["did you mean \"thalweg\""]);
}

#[test]
fn combinations_that_cannot_be_run_are_refused() {
    check("rate_hz", "topics = \"per-pair\"\nsubscribers = 3\nrate_hz", &["s.toml:5:10: topics:", "1 and 3"]);
    check(
        "rate_hz",
        "endpoints = \"1-2\"\nsubscribers = 3\nrate_hz",
        &["s.toml:6:15: subscribers: not beside `endpoints`"],
    );
    check("rate_hz", "endpoints = [\"1-1\", \"100-20\"]\nrate_hz", &["s.toml:5:21: endpoints:"]);
    check("rate_hz", "publishers = 100\nsubscribers = 20\nrate_hz", &["120 endpoints"]);
    check("= 10\n", "= 100000\nsubscribers = 50\n", &["delivers 30000000 samples", "lower rate_hz"]);
    check("seconds = 5", "seconds = 1\n[matrix.x]", &["s.toml:8:9: \"x\" is unknown in [matrix]"]);
    check("rate_hz = 10", "rate_hz = 0.1", &["no sample within the measured time"]);
    check(
        "runs = 2",
        "runs = 2\n[qos]\nhistory = { keep_last = 1, keep_all = 1 }",
        &["s.toml:10:11: history:", "keep_all = N"],
    );
    check(
        "runs = 2",
        "runs = 2\n[process]\naffinity = { publishers = [0], subscribers = [4096] }",
        &["4096 is not within"],
    );
    check("runs = 2", "runs = { min = 8, max = 30 }", &["runs: min and max need `precision`"]);
    check("runs = 2", "runs = 8\nprecision = { p50 = 0.03 }", &["precision: needs runs = { min"]);
    check("runs = 2", "runs = { min = 8, max = 7 }\nprecision = { p50 = 0.03 }", &["7 is not within 8 to 1000"]);
    check("runs = 2", "runs = { min = 8, max = 9 }\nprecision = {}", &["p50 or p99 is needed"]);
    check("runs = 2", "runs = 2\n[expect]\nlost = \"= 0\"", &["s.toml:10:8: lost: a bound such as"]);
    check("runs = 2", "runs = 2\n[expect]\nlast = \"== 0\"", &["did you mean \"lost\""]);
}

#[test]
fn hosts_are_taken_in_turns_or_as_the_file_says() {
    let scenario = |hosts: &str| {
        let text = SMALLEST.replacen("[matrix]", &format!("{hosts}\n[matrix]\nendpoints = \"3-3\""), 1);
        parse(&text).unwrap_or_else(|error| panic!("{error}")).hosts
    };
    let places = |hosts: &str| {
        let hosts = scenario(hosts).expect("hosts");
        let publishers: Vec<u32> = (0..3).map(|index| hosts.of_publisher(index)).collect();
        let subscribers: Vec<u32> = (0..3).map(|index| hosts.of_subscriber(3, index)).collect();
        (publishers, subscribers)
    };
    assert_eq!(scenario(""), None);
    assert_eq!(places("hosts = \"netns:4\""), (vec![0, 1, 2], vec![3, 0, 1]));
    let placed = "hosts = { on = \"netns:3\", publishers = [2], subscribers = [0, 1] }";
    assert_eq!(places(placed), (vec![2, 2, 2], vec![0, 1, 0]));
    let crowded = "endpoints = \"119-357\"\nrate_hz";
    check("rate_hz", crowded, &["together up to 119 on one host"]);
    let text = format!("hosts = \"netns:4\"\n{}", SMALLEST.replacen("rate_hz", crowded, 1));
    assert!(parse(&text).is_ok(), "four hosts have room for four times as many");
    let placed = text.replacen("\"netns:4\"", "{ on = \"netns:4\", publishers = [0], subscribers = [0] }", 1);
    assert!(parse(&placed).is_err(), "one of them has not");
}

#[test]
fn links_are_read_and_what_they_lack_is_told() {
    let with = |lines: &str| format!("hosts = \"netns:2\"\n{SMALLEST}[link]\n{lines}\n");
    let link = |lines: &str| parse(&with(lines)).unwrap_or_else(|error| panic!("{error}")).link;
    assert_eq!(link(""), LinkPlan::default());
    assert_eq!(
        link("rate_mbit = 100\nmtu_bytes = 9000\nqueue_ms = 5"),
        LinkPlan { rate_mbit: Some(100.0), mtu_bytes: 9000, queue: Duration::from_millis(5), ..LinkPlan::default() }
    );
    assert_eq!(link("switch = \"relay\"").switch, Switch::Relay(Impairment::default()));
    assert_eq!(link("snooping = true"), LinkPlan { snooping: true, ..LinkPlan::default() });
    let all = "delay_us = 200\njitter_us = 50\nloss_pct = 1\nreorder_pct = 2\nduplicate_pct = 3\ncoalesce_us = 125\n\
               loss_bursts = { enter_pct = 0.5, leave_pct = 20 }";
    let expect = Impairment {
        delay: Duration::from_micros(200),
        jitter: Duration::from_micros(50),
        loss: 0.01,
        bursts: Some(LossBursts { enter: 0.005, leave: 0.2, loss: 1.0 }),
        reorder: 0.02,
        duplicate: 0.03,
        coalesce: Duration::from_micros(125),
    };
    assert_eq!(link(all).switch, Switch::Relay(expect));
    check("runs = 2", "runs = 2\n[link]\nrate_mbit = 1", &["s.toml:9:1: link: hosts = \"netns:2\""]);
    for (lines, part) in [
        ("loss_pct = 1\nswitch = \"bridge\"", "s.toml:11:12: loss_pct: needs switch = \"relay\""),
        ("loss_pct = 1\nsnooping = true", "s.toml:12:12: snooping: needs switch = \"bridge\""),
        ("switch = \"routed\"", "s.toml:11:10: switch: routed trees cannot be measured"),
        ("los_pct = 1", "did you mean \"loss_pct\""),
        ("mtu_bytes = 100", "100 is not within 576 to 9000"),
        ("loss_bursts = { enter_pct = 1 }", "[loss_bursts] needs \"leave_pct\""),
    ] {
        check_contains(&parse(&with(lines)).expect_err(lines), &[part]);
    }
    check("schema", "hosts = \"netns:17\"\nschema", &["s.toml:1:9: hosts: \"netns:N\" is needed"]);
    check("schema", "hosts = { a = \"10.0.0.1:7000\" }\nschema", &["\"a\" is unknown in [hosts]"]);
}

#[test]
fn machines_are_those_that_ssh_reaches() {
    let plan = |hosts: &str| {
        let hosts = parse(&format!("hosts = {hosts}\n{SMALLEST}")).unwrap_or_else(|error| panic!("{error}")).hosts;
        hosts.expect("hosts")
    };
    let two = plan("[\"here\", \"ssh://user@[fd00::2]:2222\"]");
    let there = SshMachine::new("ssh://user@[fd00::2]:2222");
    assert_eq!(two.kind, HostKind::Machines(vec![Machine::Here, Machine::Ssh(there)]));
    assert_eq!((two.count, two.clock_span), (2, Duration::from_secs(3)));
    let one = plan(
        "{ on = { ssh = \"user@lab2\", address = \"10.0.0.2\", program = \"~/b/thalweg\", peer_dir = \"/p\" }, clock_s = 0.5 }",
    );
    let own = |text: &str| Some(text.to_owned());
    let (address, program, peer_dir) = ("10.0.0.2".parse().ok(), own("~/b/thalweg"), own("/p"));
    let there = SshMachine { address, program, peer_dir, ..SshMachine::new("user@lab2") };
    assert_eq!((one.kind, one.clock_span), (HostKind::Machines(vec![Machine::Ssh(there)]), Duration::from_millis(500)));
    for (hosts, part) in [
        ("\"10.0.0.2:7300\"", "s.toml:1:9: hosts: \"netns:N\" is needed"),
        ("\"agent:10.0.0.2:7300\"", "s.toml:1:9: hosts: \"netns:N\" is needed"),
        (
            "[\"here\", \"ssh:-oProxyCommand=reboot\"]",
            "s.toml:1:18: hosts: \"-oProxyCommand=reboot\" is no destination",
        ),
        ("\"ssh:a@-b\"", "is no destination"),
        ("\"ssh://-a@b\"", "is no destination"),
        ("\"ssh:a b\"", "is no destination"),
        ("\"ssh:\"", "is no destination"),
        ("{ on = { ssh = \"a\", address = \"lab2\" } }", "address: an IP address of that machine"),
        ("{ on = { ssh = \"a\", program = \"-c\" } }", "program: a path is needed, not \"-c\""),
        ("{ on = { ssh = \"a\", peer_dir = \"a\\nb\" } }", "peer_dir: a path is needed"),
        ("{ on = { address = \"10.0.0.2\" } }", "needs \"ssh\""),
        ("[\"here\", \"here\"]", "stands here twice"),
        ("[\"ssh:a\", { ssh = \"a\", program = \"b\" }]", "the machine a stands here twice"),
        ("{ on = \"netns:2\", clock_s = 1 }", "share its clock"),
        ("[\"here\", \"ssh:a\"]\nlink = { rate_mbit = 1 }", "links between machines cannot be changed"),
    ] {
        check("schema", &format!("hosts = {hosts}\nschema"), &[part]);
    }
}

#[test]
fn a_rate_of_deliveries_is_shared_by_all_pairs() {
    let text = SMALLEST.replacen("rate_hz = 10", "deliveries_hz = 1000\nendpoints = [\"1-1\", \"10-10\", \"3-7\"]", 1);
    let rates: Vec<f64> = parse(&text).expect("a scenario").cells.iter().map(|cell| cell.rate_hz).collect();
    assert_eq!(rates, [1000.0, 10.0, 47.62]);
    check("rate_hz = 10", "rate_hz = 10\ndeliveries_hz = 10", &["s.toml:6:17: deliveries_hz: not beside `rate_hz`"]);
    check("rate_hz = 10", "deliveries_hz = 1\nsubscribers = 100", &["would need 0.01 samples a second"]);
}

#[test]
fn closed_loops_have_no_rate_and_stand_alone() {
    let closed = |more: &str| SMALLEST.replacen("rate_hz = 10", more, 1);
    let text = closed("latency_count = [1000, 10]\nendpoints = \"3-3\"\ndestination = \"unicast\"");
    let cells = parse(&text).unwrap_or_else(|error| panic!("{error}")).cells;
    let names: Vec<String> = cells.iter().map(ToString::to_string).collect();
    let expect = ["3–3 100 B closed-loop/1000 unicast thalweg", "3–3 100 B closed-loop/10 unicast thalweg"];
    assert_eq!(names, expect);
    assert_eq!((cells[0].latency_count, cells[0].rate_hz), (Some(1_000), 0.0));
    for (instead, part) in [
        ("rate_hz = 10\nlatency_count = 5", "s.toml:6:17: latency_count: not beside `rate_hz`"),
        ("deliveries_hz = 10\nlatency_count = 5", "s.toml:6:17: latency_count: not beside `deliveries_hz`"),
        ("latency_count = 0", "s.toml:5:17: latency_count: 0 is not within 1 to 1000000"),
        ("latency_count = 5\nsubscribers = 2\ntopics = \"per-publisher\"", "needs topics = \"one\""),
        ("latency_count = 5\nmiddleware = \"raw\"\n[qos]\nreliability = \"best-effort\"", "all subscribers answer"),
    ] {
        check("rate_hz = 10", instead, &[part]);
    }
    let both =
        closed("latency_count = 5\n[[matrix]]\npayload_bytes = 1\nrate_hz = 1").replacen("[matrix]", "[[matrix]]", 1);
    assert!(parse(&both).expect_err("both").contains("make two scenarios"));
    let settled = closed("latency_count = 5").replacen("seconds = 5", "seconds = 5\nsettle = \"mser\"", 1);
    assert!(parse(&settled).expect_err("settled").contains("which a closed loop does not have"));
}

#[test]
fn executors_have_threads_and_work_and_cells_of_their_own() {
    let text = SMALLEST.replacen("rate_hz = 10", "rate_hz = 10\nexecutor_threads = [1, 4]\nwork_ms = [0, 2.5]", 1);
    let cells = parse(&text).unwrap_or_else(|error| panic!("{error}")).cells;
    let names: Vec<String> = cells.iter().map(Cell::data).collect();
    let expect = ["executor/1", "executor/1 work 2.5 ms", "executor/4", "executor/4 work 2.5 ms"];
    assert_eq!(names, expect.map(|executor| format!("1–1 100 B 10 Hz {executor}")));
    let last = cells[3].executor.expect("an executor");
    assert_eq!((last.threads, last.work), (4, Duration::from_micros(2_500)));
    check("rate_hz = 10", "rate_hz = 10\nwork_ms = 1", &["s.toml:6:11: work_ms", "give `executor_threads` too"]);
    check("rate_hz = 10", "rate_hz = 10\nexecutor_threads = 0", &["executor_threads: 0 is not within 1 to 256"]);
    check("rate_hz = 10", "latency_count = 5\nexecutor_threads = 1", &["answer where they receive"]);
}

#[test]
fn bounds_hold_on_their_side() {
    let holds = |text, value| {
        let one = Expectation::parse(Quantity::Lost, text).expect(text);
        one.comparison.holds(value, one.bound)
    };
    assert!(holds("<= 5", 5.0) && !holds("< 5", 5.0) && holds("== 5", 5.0) && !holds("== 5", 5.5));
    assert!(holds(">= 5", 5.0) && !holds("> 5", 5.0) && holds(">-1.5", 0.0));
    assert!(Expectation::parse(Quantity::Lost, "<= inf").is_err());
}

/// Any bytes end in a scenario or an error whose place lies in the file: pieces of a good file are cut, doubled and changed.
#[test]
fn damaged_files_never_panic() {
    let mut order = thalweg_base::rng::Rng::new(7);
    let pieces = [
        "=",
        "[",
        "]",
        "\n",
        "\"",
        "{",
        "}",
        "0",
        "-",
        "é",
        "\u{0}",
        "1e999",
        "'''",
        "keep_last",
        "matrix.",
        ",",
        "inf",
    ];
    let mut scenarios = 0;
    for _ in 0..20_000 {
        let mut text: Vec<char> = SMALLEST.chars().collect();
        for _ in 0..=order.below(3) {
            if text.len() < 2 {
                break;
            }
            let at = order.below(text.len() as u64) as usize;
            match order.below(3) {
                0 => drop(text.remove(at)),
                1 => text.truncate(at.max(1)),
                _ => {
                    let piece = pieces[order.below(pieces.len() as u64) as usize];
                    text.splice(at..at, piece.chars());
                }
            }
        }
        let text: String = text.into_iter().collect();
        match Scenario::parse("s.toml", &text) {
            Ok(_) => scenarios += 1,
            Err(error) => {
                assert!(
                    error.line >= 1 && error.line <= text.matches('\n').count() + 1 && error.column >= 1,
                    "{error}"
                );
            }
        }
    }
    assert!(scenarios > 100, "some damage is harmless: {scenarios}");
}

#[test]
fn another_build_is_the_baseline_of_each_cell_of_its_middleware() {
    let of = |program: &str| {
        let text = SMALLEST.replace("[matrix]", "[matrix]\nmiddleware = [\"thalweg\", \"cyclone-tuned\"]");
        let scenario = parse(&Scenario::text_against(&text, Path::new(program)));
        scenario.map(|scenario| scenario.cells.iter().map(Cell::way).collect::<Vec<_>>())
    };
    assert_eq!(of("/old/thalweg").expect("cells"), ["thalweg auto (other build)", "thalweg auto"]);
    assert_eq!(of("/old/cyclone-perf").expect("cells"), ["cyclone-tuned (other build)", "cyclone-tuned"]);
    let error = of("/old/zenoh-perf").expect_err("no such cell");
    assert!(error.contains("measures zenoh, of which the matrix has no cell"), "{error}");
    let text = Scenario::text_against(SMALLEST, Path::new("/a \"b\""));
    assert_eq!(parse(&text).expect("a scenario").against, Some(PathBuf::from("/a \"b\"")));
    let agents = SMALLEST.replace("[matrix]", "hosts = [\"here\", \"ssh:lab2\"]\n[matrix]");
    let error = parse(&Scenario::text_against(&agents, Path::new("/old/thalweg"))).expect_err("agents");
    assert!(error.contains("on this machine only"), "{error}");
}

const FLOWS: &str = r#"schema = "thalweg.scenario/1"
name = "flows"
[matrix]
destination = ["unicast", "multicast"]
[[flow]]
name = "lidar"
type = "PointCloud1m"
rate_hz = 10
publishers = 3
subscribers = 0
topics = "per-publisher"
phase = "together"
reliability = "best-effort"
history = { keep_last = 10 }
[[flow]]
name = "plan"
after = "lidar"
work_ms = 2.5
payload_bytes = 100
subscribers = 2
in_time_ms = 50
transport_priority = 46
[[flow]]
name = "backup"
payload_bytes = 1000000
rate_hz = 1
flow_controller = { bytes = 32768 }
[schedule]
seconds = 5
runs = 2
"#;

#[test]
fn the_flows_of_a_run_are_cells_of_their_own() {
    let scenario = parse(FLOWS).expect("a scenario");
    let names: Vec<String> = scenario.cells.iter().map(ToString::to_string).collect();
    let expect = [
        "lidar: 3–1 PointCloud1m 10 Hz unicast per-publisher best-effort thalweg",
        "plan: 1–2 100 B 10 Hz unicast thalweg",
        "backup: 1–1 1,000,000 B 1 Hz unicast thalweg",
    ];
    assert_eq!(names[..3], expect, "the process that plans is the LIDARs' subscriber");
    assert_eq!((names.len(), scenario.run_of(4), scenario.leader_of(2)), (6, 3..6, 0));
    let flow = |cell: usize| scenario.cells[cell].flow.clone().expect("a flow");
    let stage = ChainStage { source: 0, subscriber: 0, work: Duration::from_micros(2_500) };
    assert_eq!((flow(1).after, flow(1).in_time), (Some(stage), Some(Duration::from_millis(50))));
    assert_eq!((flow(1).transport_priority, flow(0).phase), (46, Some(PublisherPhase::Together)));
    assert_eq!(flow(0).history, Some(HistorySetting::KeepLast(10)));
    let bounds = FLOWS.replacen("rate_hz = 1\n", "rate_hz = 1\nexpect = { lost = \"< 9\", late = \"== 0\" }\n", 1);
    let bound = parse(&format!("{bounds}[expect]\nlost = \"== 0\"\njain = \"> 0.9\"\n")).expect("a scenario");
    let of = |cell: usize| bound.expectations_of(&bound.cells[cell]).map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        (of(0), of(5)),
        (
            vec!["lost == 0".into(), "jain > 0.9".into()],
            vec!["jain > 0.9".into(), "lost < 9".into(), "late == 0".into()]
        )
    );
    let rate = flow(2).flow_controller.and_then(|bucket| bucket.bytes_per_second());
    assert_eq!(rate, Some(3_276_800.0));
    assert_eq!(scenario.duration(), 4 * scenario.duration_of_run(), "a run measures all flows");
    let builds = parse(&format!("against = \"/old/thalweg\"\n{FLOWS}")).expect("a scenario");
    let of: Vec<Build> = builds.cells.iter().map(|cell| cell.build).collect();
    assert_eq!(of[..6], [[Build::Other; 3], [Build::This; 3]].concat());
}

#[test]
fn flows_that_cannot_be_run_are_refused_with_line_and_key() {
    let refused = |before: &str, after: &str, expect: &[&str]| check_changed(FLOWS, before, after, expect);
    refused(
        "rate_hz = 10",
        "rat_hz = 10",
        &["s.toml:8:1", "\"rat_hz\" is unknown in [flow]", "did you mean \"rate_hz\""],
    );
    refused("name = \"plan\"", "name = \"lidar\"", &["s.toml:16:8", "name: another flow has this name"]);
    refused("after = \"lidar\"", "after = \"radar\"", &["s.toml:17:9", "did you mean \"lidar\""]);
    refused("work_ms = 2.5", "expect = { lust = \"> 0\" }", &["s.toml:18:12", "did you mean \"lost\""]);
    refused("work_ms = 2.5", "rate_hz = 5", &["s.toml:18:11", "rate_hz: not beside `after`"]);
    refused("after = \"lidar\"", "rate_hz = 10", &["s.toml:18:11", "work_ms: is the work of a process"]);
    refused("transport_priority = 46", "transport_priority = 64", &["is not within 0 to 63"]);
    refused("{ bytes = 32768 }", "{ tokens = 3 }", &["\"tokens\" is unknown in [flow_controller]"]);
    refused("payload_bytes = 100\n", "type = \"Struct16\"\n", &["a process of a chain publishes octets"]);
    refused("rate_hz = 1\n", "rate_hz = 0.1\n", &["the flow \"backup\" has no sample within the measured time"]);
    refused("publishers = 3", "publishers = 115", &["119 on one host"]);
    refused("payload_bytes = 100\n", "payload_bytes = [1, 2]\n", &["a flow has one size or type"]);
    refused("after = \"lidar\"\nwork_ms = 2.5", "rate_hz = 1", &["nobody hears the flow \"lidar\""]);
    refused("topics = \"per-publisher\"", "topics = \"per-pair\"", &["needs as many subscribers as publishers"]);
    refused("destination = [\"unicast\", \"multicast\"]", "rate_hz = 1", &["\"rate_hz\" is unknown in [matrix]"]);
    refused("destination = [\"unicast\", \"multicast\"]", "middleware = \"cyclone\"", &["are Thalweg's"]);
    let raw = "middleware = \"raw\"\n[qos]\nreliability = \"best-effort\"";
    let plain = FLOWS.replace("transport_priority = 46\n", "").replace("flow_controller = { bytes = 32768 }\n", "");
    let error = parse(&plain.replace("destination = [\"unicast\", \"multicast\"]", raw)).expect_err("raw");
    assert!(error.contains("ports for the topics of one flow"), "{error}");
}
