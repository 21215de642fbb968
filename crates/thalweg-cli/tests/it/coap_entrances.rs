//! The ways into `coap run`: sessions, connections, what clients have to prove there, and what the gateway proves to others.

use std::net::SocketAddr;
use std::time::Instant;

use thalweg_coap::endpoint::{Config, Confirmability};
use thalweg_coap::interaction::client::Client;
use thalweg_coap::message::{OptionNumber, RequestBuf};

use crate::gateway::{GatewayProcess, wait_for_line};
use crate::program::{PATIENCE, Running, Said, TestFolder, command, run};

/// Writes the gateway's file, with these lines in and behind `[server]`.
fn write_plan(folder: &TestFolder, lines: &str) {
    folder.write("g.toml", &format!("schema = \"thalweg.gateway/1\"\n[server]\nbind = \"127.0.0.1:0\"\n{lines}"));
}

/// A gateway by the plan in `folder`, which serves so many addresses.
#[track_caller]
fn start(folder: &TestFolder, addresses: usize) -> GatewayProcess {
    GatewayProcess::start(&folder.path("g.toml"), addresses)
}

fn ask(verb: &str, uri: &str, path: &str, more: &[&str]) -> Said {
    run(&[&["coap", verb, &format!("{uri}{path}"), "--timeout", "50"], more].concat())
}

#[track_caller]
fn check_refused(said: Said, expect: &str) {
    let said = said.expect_code(1);
    assert!(said.stderr.contains(expect), "{}", said.stderr);
}

/// One pre-shared key as JSON.
fn key(identity: &str, key: &str) -> String {
    format!(r#"{{"identity": "{identity}", "key": "{key}"}}"#)
}

fn certificate(name: &str) -> String {
    format!("{}/../thalweg-coap/testdata/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// One OSCORE context as JSON.
fn context(sender: &str, recipient: &str) -> String {
    let secret = "000102030405060708090a0b0c0d0e0f";
    format!(r#"{{"master_secret": "{secret}", "sender_id": "{sender}", "recipient_id": "{recipient}"}}"#)
}

/// The answer to a request that names another server.
fn proxied(gateway: &str, uri: &str) -> String {
    let server: SocketAddr = gateway.strip_prefix("coap://").and_then(|rest| rest.parse().ok()).expect("an address");
    let mut client = Client::open(server, Config::default()).expect("a client");
    let request = RequestBuf::get("/").with_option(OptionNumber::PROXY_URI, uri.as_bytes());
    let response = client.exchange(server, request, Confirmability::Confirmable, PATIENCE).expect("an answer");
    format!("{} {}", response.code, String::from_utf8_lossy(&response.payload))
}

#[test]
fn sessions_and_connections_are_under_the_rules_and_keys_of_the_file_as_it_is_now() {
    let folder = TestFolder::new();
    let plan = |access: &str| {
        format!(
            "listen = [\"coap+tcp://127.0.0.1:0\", \"coaps+tcp://127.0.0.1:0\"]\n[dtls]\nbind = \"127.0.0.1:0\"\n\
             [credentials]\npsk = \"keys.json\"\ncertificate = \"{}\"\nprivate_key = \"{}\"\n\
             [access]\nallow = [{access}]\n[[resource]]\npath = \"name\"\nvalue = \"old\"\n",
            certificate("server.pem"),
            certificate("server-key.pem"),
        )
    };
    folder.write("keys.json", &format!("[{}, {}]", key("porter", "01"), key("guest", "02")));
    folder.write("porter.json", &key("porter", "01"));
    folder.write("guest.json", &key("guest", "02"));
    write_plan(&folder, &plan("\"/name any psk:porter\", \"/name get transport:coaps+tcp\""));
    let mut gateway = start(&folder, 4);
    let [plain, secure, tcp, tls] = [0, 1, 2, 3].map(|place: usize| gateway.uris[place].clone());
    let (porter, guest) = (folder.path("porter.json"), folder.path("guest.json"));
    let trust = certificate("authority.pem");
    assert_eq!(ask("get", &secure, "/name", &["--psk", &porter]).expect_code(0).stdout, "old\n");
    assert_eq!(ask("get", &tls, "/name", &["--trust", &trust]).expect_code(0).stdout, "old\n");
    check_refused(ask("get", &secure, "/name", &["--psk", &guest]), "4.03");
    check_refused(ask("get", &plain, "/name", &[]), "4.01");
    check_refused(ask("get", &tcp, "/name", &[]), "4.01");

    let observed = ["coap", "observe", &format!("{secure}/name"), "--psk", &porter, "--count", "2", "--timeout", "50"];
    let mut observer = Running::start(command(&observed));
    let mut states = observer.stdout();
    wait_for_line(&mut states, "old");
    // A key that is gone ends its session; the others' rules and keys are the new ones.
    folder.write("keys.json", &format!("[{}]", key("guest", "02")));
    write_plan(&folder, &plan("\"/name get psk:guest\", \"/name get transport:coap+tcp\""));
    gateway.reload();
    let ended = observer.finish().expect_code(1);
    assert!(ended.stderr.contains("ended the session"), "{}", ended.stderr);
    check_refused(ask("get", &secure, "/name", &["--psk", &porter]), "credentials");
    assert_eq!(ask("get", &secure, "/name", &["--psk", &guest]).expect_code(0).stdout, "old\n");
    assert_eq!(ask("get", &tcp, "/name", &[]).expect_code(0).stdout, "old\n");
    check_refused(ask("get", &tls, "/name", &["--trust", &trust]), "4.01");

    // Keys that cannot be read leave those before in force, and the rules that go with them.
    folder.write("keys.json", "{");
    write_plan(&folder, &plan("\"/name get any\""));
    gateway.running.signal("HUP");
    let told = wait_for_line(&mut gateway.errors, "goes on as before");
    assert!(told.contains("credentials: ") && told.contains("keys.json cannot be used"), "{told}");
    assert_eq!(ask("get", &secure, "/name", &["--psk", &guest]).expect_code(0).stdout, "old\n");
    check_refused(ask("get", &plain, "/name", &[]), "4.01");

    // Another address needs a restart.
    folder.write("keys.json", &format!("[{}]", key("guest", "02")));
    write_plan(
        &folder,
        &plan("\"/name get any\"").replace("[dtls]\nbind = \"127.0.0.1:0\"", "[dtls]\nbind = \"127.0.0.1:1\""),
    );
    gateway.reload();
    wait_for_line(&mut gateway.errors, "dtls.bind changes with a restart only");
    assert_eq!(ask("get", &secure, "/name", &["--psk", &guest]).expect_code(0).stdout, "old\n");
    assert_eq!(ask("get", &plain, "/name", &[]).expect_code(0).stdout, "old\n");
    gateway.end();
}

#[test]
fn rules_for_subjects_and_contexts_let_their_clients_in_and_nobody_else() {
    let folder = TestFolder::new();
    folder.write("contexts.json", &format!("[{}, {}]", context("00", "01"), context("03", "02")));
    folder.write("one.json", &context("01", "00"));
    folder.write("two.json", &context("02", "03"));
    let resources =
        ["subject", "other", "id"].map(|path| format!("[[resource]]\npath = \"{path}\"\nvalue = \"{path}\"\n"));
    let lines = format!(
        "listen = \"coaps+tcp://127.0.0.1:0\"\n[dtls]\nbind = \"127.0.0.1:0\"\n\
         [credentials]\ncertificate = \"{}\"\nprivate_key = \"{}\"\ntrust = \"{}\"\n[oscore]\nkeys = \"contexts.json\"\n\
         [access]\nallow = [\"/subject get subject:client\", \"/other any subject:server\", \"/id get oscore:01\"]\n{}",
        certificate("server.pem"),
        certificate("server-key.pem"),
        certificate("authority.pem"),
        resources.concat(),
    );
    write_plan(&folder, &lines);
    let gateway = start(&folder, 3);
    let [plain, secure, tls] = [0, 1, 2].map(|place: usize| gateway.uris[place].clone());
    let (own, key, trust) = (certificate("client.pem"), certificate("client-key.pem"), certificate("authority.pem"));
    let certified = ["--certificate", &own, "--private-key", &key, "--trust", &trust];
    for uri in [&secure, &tls] {
        assert_eq!(ask("get", uri, "/subject", &certified).expect_code(0).stdout, "subject\n", "{uri}");
        check_refused(ask("put", uri, "/subject", &[&["x"], &certified[..]].concat()), "4.03");
        check_refused(ask("get", uri, "/other", &certified), "4.03");
        check_refused(ask("get", uri, "/id", &certified), "4.03");
    }
    let (one, two) = (folder.path("one.json"), folder.path("two.json"));
    assert_eq!(ask("get", &plain, "/id", &["--oscore", &one]).expect_code(0).stdout, "id\n");
    check_refused(ask("get", &plain, "/subject", &["--oscore", &one]), "4.03");
    check_refused(ask("get", &plain, "/id", &["--oscore", &two]), "4.03");
    check_refused(ask("get", &plain, "/id", &[]), "4.01");
    check_refused(ask("get", &plain, "/subject", &[]), "4.01");
    gateway.end();
}

#[test]
fn a_thing_with_keys_is_asked_under_them_and_nobody_borrows_them() {
    let folder = TestFolder::new();
    folder.write("far.json", &format!("[{}, {}]", context("00", "01"), context("03", "02")));
    folder.write("near.json", &context("01", "00"));
    folder.write("own.json", &context("02", "03"));
    let far = TestFolder::new();
    std::fs::rename(folder.path("far.json"), far.path("far.json")).expect("moved");
    write_plan(
        &far,
        "[oscore]\nkeys = \"far.json\"\nprotected = [\"/\"]\n[[device]]\ndriver = \"kit\"\nname = \"lamp\"\nmodel = \"led\"\n",
    );
    let thing = start(&far, 1);
    let thing_uri = thing.uris[0].clone();
    let lines = |keys: &str| {
        format!(
            "[[thing]]\nthing = \"{thing_uri}\"\noscore = \"{keys}\"\n[proxy]\nforward = \"*\"\n\
             [[remote]]\npath = \"far\"\nthing = \"{thing_uri}\"\nresources = \"sensors/lamp/light\"\n"
        )
    };
    write_plan(&folder, &lines("near.json"));
    let mut gateway = start(&folder, 1);
    let near = gateway.uris[0].clone();
    let wait_for = |expect: &str| {
        let start = Instant::now();
        loop {
            let said = ask("get", &near, "/far/sensors/lamp/light", &[]);
            match said.stdout.trim() == expect {
                true => return,
                false => assert!(start.elapsed() < PATIENCE, "{expect}: {} {}", said.stdout, said.stderr),
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    wait_for("false");
    ask("put", &thing_uri, "/sensors/lamp/light", &["on", "--oscore", &folder.path("own.json")]).expect_code(0);
    wait_for("true");
    check_refused(ask("get", &thing_uri, "/sensors/lamp/light", &[]), "4.01");
    let borrowed = proxied(&near, &format!("{thing_uri}/sensors/lamp/light"));
    assert!(borrowed.starts_with("4.03 this proxy does not lend its keys"), "{borrowed}");
    // Without its keys the thing is not asked at all.
    write_plan(&folder, &lines("missing.json"));
    gateway.reload();
    wait_for_line(&mut gateway.errors, "missing.json cannot be used");
    let start = Instant::now();
    while !ask("get", &near, "/far/sensors/lamp/light", &[]).stderr.contains("5.") {
        assert!(start.elapsed() < PATIENCE, "it is still asked");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    gateway.end();
    thing.end();
}

#[test]
fn requests_for_other_servers_are_under_rules_of_their_own_and_never_come_back_by_the_host_itself() {
    let folder = TestFolder::new();
    let plan = |access: &str| {
        format!(
            "[proxy]\nforward = \"*\"\n[access]\nallow = [\"/name get net:127.0.0.0/8\"{access}]\n\
             [[resource]]\npath = \"name\"\nvalue = \"secret\"\n"
        )
    };
    write_plan(&folder, &plan(""));
    let mut gateway = start(&folder, 1);
    let uri = gateway.uris[0].clone();
    let port = uri.rsplit_once(':').expect("a port").1.to_owned();
    for host in ["127.0.0.1", "127.1.2.3", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]"] {
        let said = proxied(&uri, &format!("coap://{host}:{port}/name"));
        assert!(said.starts_with("4.03") && said.contains("this server itself"), "{host}: {said}");
    }
    for (rule, expect) in
        [(", \"proxy get none\"", "4.01"), (", \"/ any none\"", "4.01"), (", \"/other any none\"", "4.03")]
    {
        write_plan(&folder, &plan(rule));
        gateway.reload();
        let said = proxied(&uri, &format!("coap://127.0.0.1:{port}/name"));
        assert!(said.starts_with(expect), "{rule}: {said}");
        assert_eq!(ask("get", &uri, "/name", &[]).expect_code(0).stdout, "secret\n", "{rule}");
    }
    gateway.end();
}

#[test]
fn what_entrances_need_is_told_with_its_place() {
    let folder = TestFolder::new();
    for (lines, expect) in [
        ("[dtls]\n", ":4:1: dtls: needs psk, or certificate and private_key, in [credentials]"),
        ("listen = \"coaps+tcp://127.0.0.1:0\"\n", ":4:10: listen: TLS needs certificate"),
        ("listen = \"coap://127.0.0.1:0\"\n", ":4:10: listen: write coap+tcp://"),
        ("[credentials]\npsk = \"k\"\n", ":4:1: credentials: nothing uses them"),
        (
            "[dtls]\n[credentials]\ncertificate = \"c\"\n",
            ":5:1: credentials: certificate and private_key are needed together",
        ),
        ("[access]\nallow = [\"/a get\"]\n", ":5:10: allow: \"/a get\" is no access rule"),
        ("[access]\nallow = [\"proxi get any\"]\n", ":5:10: allow: the path \"proxi\""),
        ("[[thing]]\nthing = \"coaps://h\"\noscore = \"k\"\n", ":5:9: thing: coaps is not supported"),
    ] {
        write_plan(&folder, lines);
        let said = run(&["coap", "run", &folder.path("g.toml"), "--check"]).expect_code(2);
        assert!(said.stderr.contains(expect), "{lines}: {}", said.stderr);
    }
}
