//! `coap run` in a process of its own: the file, its reload, other things, services, proxies, the directory and the figures.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;
use thalweg_coap::endpoint::{Config, Confirmability};
use thalweg_coap::interaction::client::Client;
use thalweg_coap::message::{
    CoapMessage, Code, MessageId, MessageType, MessageWriter, OptionNumber, RequestBuf, Response, Token, encode_uint,
};
use thalweg_transport::batch::{BatchOptions, BatchScratch, BatchSocket, Departure};
use thalweg_transport::clock;

use crate::gateway::{GatewayProcess, wait_for_line};
use crate::program::{PATIENCE, Running, TestFolder, command, run, tag};

/// A gateway on a port of its own, by a file of its own.
struct Gateway {
    process: GatewayProcess,
    address: String,
    metrics: String,
    folder: TestFolder,
}

impl Gateway {
    #[track_caller]
    fn start(lines: &str) -> Gateway {
        let folder = TestFolder::new();
        write_plan(&folder, lines);
        let process = GatewayProcess::start(&folder.path("g.toml"), 2);
        let [address, metrics] = ["coap://", "http://"].map(|scheme| {
            let uri = process.uris.iter().find_map(|uri| uri.strip_prefix(scheme)).expect("the address");
            uri.trim_end_matches("/metrics").to_owned()
        });
        Gateway { process, address, metrics, folder }
    }

    fn uri(&self, path: &str) -> String {
        format!("coap://{}{path}", self.address)
    }

    /// What `coap get` prints.
    fn get(&self, path: &str) -> String {
        let said = run(&["coap", "get", &self.uri(path), "--timeout", "50"]);
        format!("{}{}", said.stdout.trim_end(), said.stderr.trim_end())
    }

    /// Asks until the answer is this one.
    #[track_caller]
    fn wait_for(&self, path: &str, expect: &str) {
        let start = Instant::now();
        let mut got = String::new();
        while start.elapsed() < PATIENCE {
            got = self.get(path);
            if got == expect {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{path} is not {expect:?} but {got:?}");
    }

    /// Writes the file anew and has it read.
    fn reload(&self, lines: &str) {
        write_plan(&self.folder, lines);
        self.process.running.signal("HUP");
    }

    fn figures(&self) -> Value {
        let told = run(&["coap", "top", &self.address, "--once", "--json"]).expect_code(0).stdout;
        serde_json::from_str(&told).expect("JSON")
    }
}

fn write_plan(folder: &TestFolder, lines: &str) {
    let server = r#"server = { bind = "127.0.0.1:0", metrics = "127.0.0.1:0" }"#;
    folder.write("g.toml", &format!("schema = \"thalweg.gateway/1\"\n{server}\n{lines}"));
}

fn exchange(server: &str, request: RequestBuf) -> Response {
    let server: SocketAddr = server.parse().expect("an address");
    let mut client = Client::open(server, Config::default()).expect("a client");
    client.exchange(server, request, Confirmability::Confirmable, PATIENCE).expect("an answer")
}

fn shown(response: &Response) -> String {
    format!("{} {}", response.code, String::from_utf8_lossy(&response.payload))
}

#[test]
fn a_wrong_file_is_told_with_its_place_and_the_nearest_key() {
    let folder = TestFolder::new();
    write_plan(&folder, "[[device]]\ndriver = \"kit\"\nname = \"a\"\nmodle = \"led\"\n");
    let file = folder.path("g.toml");
    for arguments in [&["coap", "run", &file][..], &["coap", "run", &file, "--check"]] {
        let said = run(arguments).expect_code(2);
        let expect = format!("{file}:6:1: \"modle\" is unknown in [device]: did you mean \"model\"?");
        assert!(said.stderr.contains(&expect), "{}", said.stderr);
    }
    write_plan(&folder, "");
    run(&["coap", "run", &file, "--check"]).expect_code(0);
    let said = run(&["coap", "run", "/nonexistent.toml"]).expect_code(2);
    assert!(said.stderr.contains("/nonexistent.toml cannot be read"), "{}", said.stderr);
}

#[test]
fn a_reload_changes_what_differs_and_keeps_observers() {
    let led = "[[device]]\ndriver = \"kit\"\nname = \"hall\"\nmodel = \"led\"\n";
    let name = |text: &str| format!("{led}[[resource]]\npath = \"name\"\nvalue = \"{text}\"\n");
    let mut gateway = Gateway::start(&name("old"));
    run(&["coap", "put", &gateway.uri("/sensors/hall/light"), "on", "--timeout", "50"]).expect_code(0);
    let words = ["coap", "observe", &gateway.uri("/name"), "--count", "2", "--timeout", "55"];
    let mut observer = Running::start(command(&words));
    let mut states = observer.stdout();
    assert!(wait_for_line(&mut states, "old").contains("old"));
    write_plan(&gateway.folder, "[[resorce]]\npath = \"name\"\n");
    gateway.process.running.signal("HUP");
    let told = wait_for_line(&mut gateway.process.errors, "goes on as before");
    assert!(told.contains(":3:3: \"resorce\" is unknown: did you mean \"resource\"?"), "{told}");
    assert_eq!(gateway.get("/name"), "old");
    gateway.reload(&name("new"));
    wait_for_line(&mut gateway.process.output, "reloaded");
    // The observer was there before the reload, and is told.
    wait_for_line(&mut states, "new");
    observer.finish().expect_code(0);
    assert_eq!(gateway.get("/sensors/hall/light"), "true", "what is the same was not touched");
    gateway.reload(&format!("{}[priorities]\nresource = 7\n", name("new")));
    wait_for_line(&mut gateway.process.errors, "priorities changes with a restart only");
    gateway.process.end();
}

#[test]
fn threads_run_in_their_groups_with_their_priorities() {
    let lines = "[priorities]\nresource = 3\napplication = 8\n[[device]]\ndriver = \"kit\"\nname = \"t\"\nmodel = \"temphumi\"\n\
        period_ms = 50\n[[service]]\nname = \"mean\"\ndoes = \"mean\"\ninputs = [\"/sensors/t/temperature\"]\noutput = \"/mean\"\n";
    let gateway = Gateway::start(lines);
    let folder = format!("/proc/{}/task", gateway.process.running.id());
    let nice = |name: &str| {
        let tasks = std::fs::read_dir(&folder).expect("threads").flatten();
        let found = tasks.filter_map(|task| {
            let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
            let (head, rest) = stat.rsplit_once(')')?;
            let is_named = head.rsplit_once('(').is_some_and(|(_, found)| found == name);
            is_named.then(|| rest.split_whitespace().nth(16)?.parse::<i64>().ok()).flatten()
        });
        found.collect::<Vec<i64>>()
    };
    gateway.wait_for("/.well-known/core?href=/mean", "</mean>;if=\"core.s\";ct=\"0 50 60 110 112\";obs");
    let base = nice("receiver-0")[0];
    let expect =
        [("sampler", 3), ("resource-0", 3), ("mean", 8), ("profile", 0), ("blocking-0", 0), ("remote-things", 0)];
    for (name, steps) in expect {
        assert_eq!(nice(name), [(base + steps).min(19)], "{name}");
    }
    let figures = gateway.figures();
    let threads = figures["threads"].as_array().expect("threads");
    for (name, group) in
        [("sampler", "resource"), ("mean", "application"), ("receiver-0", "interaction"), ("metrics", "profile")]
    {
        let thread = threads.iter().find(|thread| thread["name"] == name).expect(name);
        assert_eq!(thread["group"], group, "{name}");
    }
    let text = run(&["coap", "top", &gateway.address, "--once"]).expect_code(0).stdout;
    for part in ["group resource     nice   3 threads", "  sampler ", "pool resource   vta"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let top = Running::start(command(&["coap", "top", &gateway.address, "--every", "50"]));
    std::thread::sleep(Duration::from_secs(1));
    top.signal("INT");
    top.finish_within(Duration::from_secs(20)).expect_code(0);
}

#[test]
fn resources_of_other_things_are_served_and_their_changes_reach_observers() {
    let other = Gateway::start("[[device]]\ndriver = \"kit\"\nname = \"lamp\"\nmodel = \"led\"\non_demand_ms = 100\n");
    let lines = format!(
        "[[remote]]\npath = \"house\"\nthing = \"coap://{}\"\nresources = [\"sensors/lamp/light\", \"nothing\"]\n\
         [[reverse]]\npath = \"there\"\nto = \"coap://{}/sensors\"\n[proxy]\nforward = \"127.0.0.1\"\n\
         [[service]]\nname = \"follow\"\ndoes = \"copy\"\ninputs = \"/house/sensors/lamp/light\"\noutput = \"/own\"\nperiod_ms = 100\n\
         [[device]]\ndriver = \"kit\"\nname = \"own\"\nmodel = \"led\"\nroot = \"x\"\n",
        other.address, other.address
    );
    let here = Gateway::start(&lines.replace("output = \"/own\"", "output = \"/x/own/light\""));
    here.wait_for("/house/sensors/lamp/light", "false");
    let words = ["coap", "observe", &here.uri("/house/sensors/lamp/light"), "--count", "2", "--timeout", "55"];
    let mut observer = Running::start(command(&words));
    let mut states = observer.stdout();
    wait_for_line(&mut states, "false");
    run(&["coap", "put", &here.uri("/house/sensors/lamp/light"), "on", "--timeout", "50"]).expect_code(0);
    wait_for_line(&mut states, "true");
    observer.finish().expect_code(0);
    assert_eq!(other.get("/sensors/lamp/light"), "true");
    here.wait_for("/x/own/light", "true");
    assert_eq!(here.get("/there/lamp/light"), "true");
    let start = Instant::now();
    let hits = || {
        let told = here.get("/.thalweg/metrics");
        let (_, rest) = told.split_once("thalweg_coap_network_requests_total{kind=\"hit\"} ").expect("a counter");
        rest.lines().next().and_then(|count| count.parse::<u64>().ok()).expect("a number")
    };
    let before = hits();
    while hits() == before {
        assert_eq!(here.get("/there/lamp/light"), "true");
        assert!(start.elapsed() < PATIENCE, "no answer comes from the cache");
    }
    let missing = here.get("/house/nothing");
    assert!(missing.contains("4.04"), "{missing}");
    let forward = |uri: &str| {
        shown(&exchange(&here.address, RequestBuf::get("/").with_option(OptionNumber::PROXY_URI, uri.as_bytes())))
    };
    assert_eq!(forward(&other.uri("/sensors/lamp/light")), "2.05 true");
    assert!(forward("coap://192.0.2.1/").starts_with("4.03"), "{}", forward("coap://192.0.2.1/"));
    let request = RequestBuf::get("/").with_option(OptionNumber::PROXY_URI, b"coap://127.0.0.1/");
    assert!(shown(&exchange(&other.address, request)).starts_with("5.05"), "it is no proxy");
    drop(other);
    // What is not told any more gets old, and is refused rather than told.
    let start = Instant::now();
    while !here.get("/house/sensors/lamp/light").contains("5.0") {
        assert!(start.elapsed() < PATIENCE, "it is still served");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn things_register_at_a_gateway_and_are_found_there() {
    let directory = Gateway::start("[directory]\n");
    let lines = |base: &str| {
        format!(
            "[[device]]\ndriver = \"kit\"\nname = \"t\"\nmodel = \"temperature\"\n[[registration]]\n\
             directory = \"coap://{}\"\nendpoint = \"node1\"\nbase = \"{base}\"\nlifetime_s = 60\n",
            directory.address
        )
    };
    let thing = Gateway::start(&lines("coap://127.0.0.1:7"));
    let link = |base: &str| {
        format!(
            "<{base}/sensors/t/temperature>;title=\"simulated thermometer\";rt=\"temperature\";if=\"core.s\";\
             ct=\"0 50 60 110 112\";obs"
        )
    };
    directory.wait_for("/rd-lookup/res?rt=temperature", &link("coap://127.0.0.1:7"));
    assert_eq!(
        directory.get("/rd-lookup/ep?ep=node1"),
        "</rd/1>;ep=\"node1\";base=\"coap://127.0.0.1:7\";rt=\"core.rd-ep\""
    );
    thing.reload(&lines("coap://127.0.0.1:8"));
    directory.wait_for("/rd-lookup/res?rt=temperature", &link("coap://127.0.0.1:8"));
    thing.process.end();
    assert_eq!(directory.get("/rd-lookup/res"), "", "it has taken its leave");
}

#[test]
fn whoever_posts_is_told_where_it_is() {
    let directory = Gateway::start("[directory]\n");
    let post = |name: &str, more: &[&str]| {
        let uri = directory.uri(&format!("/rd?ep={name}"));
        let words = ["coap", "post", &uri, "</light>", "--format", "link-format", "--timeout", "50"];
        run(&[&words[..], more].concat()).expect_code(0)
    };
    let said = post("one", &[]);
    assert!(said.stderr.contains("2.01 Created at /rd/1/"), "{}", said.stderr);
    let told: Value = serde_json::from_str(&post("other", &["--json"]).stdout).expect("JSON");
    let location = told["location"].as_str().expect("a path");
    assert!(location.starts_with("/rd/2/"), "{told}");
    run(&["coap", "delete", &directory.uri(location), "--timeout", "50"]).expect_code(0);
    let left = directory.get("/rd-lookup/ep");
    assert!(left.contains("ep=\"one\"") && !left.contains("other"), "{left}");
}

#[test]
fn topics_are_resources_of_a_gateway_for_as_long_as_its_file_says() {
    let tag = tag();
    let lines = format!("[bridge]\ninterfaces = [\"lo\"]\ntag = \"{tag}\"\nexport = [\"name\"]\n");
    let name = "[[resource]]\npath = \"name\"\nvalue = \"here\"\n";
    let mut gateway = Gateway::start(&format!("{lines}{name}"));
    let words = [
        "pub",
        "Square",
        "--type",
        "ShapeType",
        "RED,1,2,3",
        "--rate",
        "20",
        "--interface",
        "lo",
        "--domain-tag",
        &tag,
    ];
    let _publisher = Running::start(command(&words));
    wait_for_line(&mut gateway.process.errors, "started: topic /topics/Square");
    gateway.wait_for("/topics/Square", "{\"color\":\"RED\",\"x\":1,\"y\":2,\"shapesize\":3}");
    let topics = run(&["ls", "--interface", "lo", "--domain-tag", &tag, "--settle", "3"]).stdout;
    assert!(topics.contains("coap/name"), "{topics}");
    gateway.reload(name);
    wait_for_line(&mut gateway.process.errors, "ended: bridge to domain 0");
    assert!(gateway.get("/topics/Square").contains("4.04"));
    assert_eq!(gateway.get("/name"), "here");
}

#[test]
fn figures_are_scraped_and_adaptive_sensing_tells_what_it_saves() {
    let lines = "[[device]]\ndriver = \"kit\"\nname = \"t\"\nmodel = \"temperature\"\n\
        adaptive = { error = 1.0, min_ms = 10, max_ms = 1000 }\n[[pack]]\npath = \"all\"\nroot = \"sensors\"\n";
    let gateway = Gateway::start(lines);
    let pack = run(&["coap", "get", &gateway.uri("/all"), "--accept", "110", "--timeout", "50"]).expect_code(0).stdout;
    let pack: Value = serde_json::from_str(&pack).expect("SenML");
    assert_eq!((&pack[0]["n"], &pack[0]["u"]), (&"sensors/t/temperature".into(), &"Cel".into()));
    assert!(gateway.get("/nothing").contains("4.04"));
    let start = Instant::now();
    let report = loop {
        gateway.get("/sensors/t/temperature");
        let report = gateway.figures()["sensing"][0].clone();
        if report["reads_saved"].as_u64() > Some(50) {
            break report;
        }
        assert!(start.elapsed() < PATIENCE, "nothing was saved: {report}");
    };
    assert_eq!((&report["path"], &report["wanted"]), (&"sensors/t/temperature".into(), &true.into()));
    assert!(report["error_max"].as_f64() <= Some(1.0) && report["exceeded"] == 0, "{report}");
    assert!(report["processor_saved_s"].as_f64() > Some(0.0), "{report}");
    let mut stream = TcpStream::connect(&gateway.metrics).expect("connected");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    let mut exposition = String::new();
    stream.read_to_string(&mut exposition).expect("an answer");
    for line in [
        "thalweg_coap_answers_total{class=\"4xx\"} 1\n",
        "thalweg_coap_sensing_reads_saved{path=\"sensors/t/temperature\"} ",
        "thalweg_coap_queue_delay_seconds_count{pool=\"resource\"} ",
        "thalweg_coap_peers ",
        "# EOF\n",
    ] {
        assert!(exposition.contains(line), "{line:?} is not in\n{exposition}");
    }
    let over_coap = gateway.get("/.thalweg/metrics");
    assert!(over_coap.contains("# TYPE thalweg_coap_answers counter"), "{over_coap}");
}

/// Ten thousand things: addresses of the loopback network, each with one value, behind one socket.
struct Crowd {
    socket: BatchSocket,
    /// The registration of each thing: the client and its token.
    registered: HashMap<IpAddr, (SocketAddr, Token)>,
    next_id: u16,
}

impl Crowd {
    fn new() -> Crowd {
        let socket = BatchSocket::bind((Ipv4Addr::UNSPECIFIED, 0).into(), &BatchOptions::default()).expect("bound");
        Crowd { socket, registered: HashMap::new(), next_id: 0 }
    }

    /// Answers requests for so long.
    fn serve(&mut self, version: u32, time: Duration) {
        let mut answers: Vec<(SocketAddr, IpAddr, Vec<u8>)> = Vec::new();
        let deadline = clock::now() + time;
        while clock::now() < deadline {
            self.socket.receive().expect("received");
            while let Some(arrived) = self.socket.next_arrival() {
                let Ok(message) = CoapMessage::parse(arrived.bytes) else { continue };
                let (Some(thing), true) = (arrived.destination, message.code == Code::GET) else { continue };
                let (kind, id) = (MessageType::Acknowledgement, message.id);
                answers.push((arrived.source, thing, notification(kind, id, message.token, version)));
                self.registered.insert(thing, (arrived.source, message.token));
            }
            self.send(&answers);
            answers.clear();
            if !self.socket.is_ready() {
                self.socket.wait(Some(clock::now() + Duration::from_millis(20))).expect("waited");
            }
        }
    }

    /// Tells all observers of a change.
    fn change(&mut self, version: u32) {
        let of = |(at, (thing, (client, token))): (usize, (&IpAddr, &(SocketAddr, Token)))| {
            let id = MessageId(self.next_id.wrapping_add(at as u16));
            (*client, *thing, notification(MessageType::NonConfirmable, id, *token, version))
        };
        let told: Vec<_> = self.registered.iter().enumerate().map(of).collect();
        self.next_id = self.next_id.wrapping_add(told.len() as u16);
        // In parts that the client's buffer holds.
        for part in told.chunks(500) {
            self.send(part);
            self.serve(version, Duration::from_millis(20));
        }
    }

    fn send(&self, messages: &[(SocketAddr, IpAddr, Vec<u8>)]) {
        let departures = messages.iter().map(|(to, from, bytes)| Departure { to: *to, from: Some(*from), bytes });
        self.socket.send(&mut BatchScratch::default(), departures);
    }
}

/// 2.05 with the version as its text and number, fresh for an hour.
fn notification(kind: MessageType, id: MessageId, token: Token, version: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::new(&mut bytes, kind, Code::CONTENT, id, &token);
    writer.option(OptionNumber::OBSERVE, encode_uint(version, &mut [0; 4]));
    writer.option(OptionNumber::MAX_AGE, encode_uint(3600, &mut [0; 4]));
    writer.payload(format!("version {version}").as_bytes());
    bytes
}

#[test]
fn ten_thousand_things_are_observed_by_one_thread_and_few_sockets_in_64_mb() {
    const THINGS: usize = 10_000;
    let mut crowd = Crowd::new();
    let port = crowd.socket.local_address().port();
    let things = (0..THINGS).map(|number| {
        let (high, low) = (1 + number / 250, 1 + number % 250);
        format!("[[remote]]\npath = \"t{number}\"\nthing = \"coap://127.1.{high}.{low}:{port}\"\nresources = \"v\"\n")
    });
    let gateway = Gateway::start(&things.collect::<String>());
    let start = Instant::now();
    while crowd.registered.len() < THINGS {
        crowd.serve(1, Duration::from_millis(200));
        assert!(start.elapsed() < PATIENCE, "{} are observed", crowd.registered.len());
    }
    for number in [0, 4_711, THINGS - 1] {
        gateway.wait_for(&format!("/t{number}/v"), "version 1");
    }
    crowd.change(2);
    for number in [0, 4_711, THINGS - 1] {
        gateway.wait_for(&format!("/t{number}/v"), "version 2");
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.process.running.id())).expect("status");
    let of = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).expect(key);
        line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).expect("a number")
    };
    // Pages of the program's file depend on how it was built, and others share them.
    let (own_kib, threads) = (of("RssAnon:"), of("Threads:"));
    assert!(own_kib <= 64 << 10, "{own_kib} KiB");
    assert!(threads <= 20, "{threads} threads");
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", gateway.process.running.id()));
    let descriptors = descriptors.expect("descriptors").count();
    assert!(descriptors <= 64, "{descriptors} descriptors: things share their sockets");
    println!("{own_kib} KiB, {} KiB at most with the program's file, {threads} threads", of("VmHWM:"));
}
