mod conditions;
mod services;
mod units;

use std::time::Duration;

use super::*;
use crate::device::{Unit, Value};
use crate::identity::{AccessRules, Caller};
use crate::interaction::handler::{Catalog, Handler};
use crate::interaction::server::KernelFilter;
use crate::message::{Code, OptionNumber, RequestBuf, content_format};
use crate::proxy::{Destinations, ReverseProxy};
use crate::resource::{Get, Property, RemoteName, Resource, respond};
use crate::scheduler::priority::Priorities;

/// What a file is refused with.
#[track_caller]
fn refused(lines: &str, expect: &str) {
    let text = format!("schema = \"thalweg.gateway/1\"\n{lines}");
    let error = GatewayPlan::parse("g.toml", &text).expect_err("it is wrong").to_string();
    assert!(error.starts_with(expect), "{expect:?} is not what was said: {error}");
}

#[test]
fn errors_name_file_line_and_the_nearest_key() {
    refused("[servr]\n", "g.toml:2:2: \"servr\" is unknown: did you mean \"server\"?");
    refused("[server]\nbnd = 1\n", "g.toml:3:1: \"bnd\" is unknown in [server]: did you mean \"bind\"?");
    refused("[server]\nbind = \"x\"", "g.toml:3:8: bind: an address with a port is needed");
    refused("[oscore]\nkeys = \"k\"\nprotected = [\"/a%2\"]", "g.toml:4:14: protected: a % begins no escape");
    refused("[laws]\ndevice = \"vat\"", "g.toml:3:10: device: \"vat\" names no thread law");
    refused("[laws]\ndevice = \"inline\"", "g.toml:3:10: device: a gateway's handlers block");
    refused("[[device]]\ndriver = \"kitt\"", "g.toml:3:10: driver: \"kitt\" is no choice: did you mean \"kit\"?");
    refused(
        "[[device]]\ndriver = \"kit\"\nname = \"a\"\nmodel = \"giro\"",
        "g.toml:5:9: model: \"giro\" is no model: did you mean \"gyro\"?",
    );
    refused("[[device]]\ndriver = \"system\"\nmodel = \"gyro\"", "g.toml:4:9: model: belongs to driver = \"kit\"");
    refused(
        "[[device]]\ndriver = \"system\"\nperiod_ms = 5\nadaptive = { error = 1 }",
        "g.toml:5:12: adaptive: one of",
    );
    refused(
        "[[device]]\ndriver = \"system\"\nadaptive = { eror = 1 }",
        "g.toml:4:14: \"eror\" is unknown in [adaptive]",
    );
    refused("[[resource]]\npath = \"a//b\"\nvalue = 1", "g.toml:3:8: path: \"a//b\" is no path");
    refused("[[resource]]\npath = \"a\"\nvalue = []", "g.toml:4:9: value: text, a number, true or false is needed");
    refused("[[resource]]\npath = \"a\"\nvalue = 1\nunit = \"a b\"", "g.toml:5:8: unit: \"a b\" is no unit");
    refused(
        "[[remote]]\npath = \"a\"\nthing = \"coap://h/x\"\nresources = \"t\"",
        "g.toml:4:9: thing: a thing has no path",
    );
    refused(
        "[[remote]]\npath = \"a\"\nthing = \"coaps://h\"\nresources = \"t\"",
        "g.toml:4:9: thing: coaps is not supported",
    );
    refused(
        "[[service]]\nname = \"s\"\ndoes = \"switch\"\nabove = 1\nbelow = 2\ninputs = \"/a\"\noutput = \"/b\"",
        "g.toml:4:8: does: below is more than above",
    );
    refused(
        "[[service]]\nname = \"s\"\ndoes = \"mean\"\ninputs = \"/a\"\noutput = \"coap://h/b\"",
        "g.toml:6:10: output:",
    );
    refused("[proxy]\nforward = \"1.2.3.4/40\"", "g.toml:3:11: forward: \"1.2.3.4/40\" is no destination");
    refused("[dtls]\n", "g.toml:2:1: dtls: needs psk, or certificate and private_key, in [credentials]");
    refused("[lwm2m]\n", "g.toml:2:1: lwm2m: LwM2M is not supported");
    refused("[group_oscore]\n", "g.toml:2:1: group_oscore: Group OSCORE is not supported");
    refused("[qblock]\n", "g.toml:2:1: qblock: Q-Block (RFC 9177) is not supported: bodies come by Block1 and Block2");
    let twice = "[[resource]]\npath = \"a\"\nvalue = 1\n[[resource]]\npath = \"a\"\nvalue = 2";
    refused(twice, "g.toml:1:1: two parts of the file want the path /a");
    let error = GatewayPlan::parse("g.toml", "schema = \"x\"").expect_err("another version").to_string();
    assert!(error.starts_with("g.toml:1:10: schema: this version reads"), "{error}");
}

#[test]
fn the_bounds_of_the_server_are_those_of_its_section() {
    let of = |lines: &str| {
        let text = format!("schema = \"thalweg.gateway/1\"\n[server]\n{lines}");
        let (config, _) = server_config(&GatewayPlan::parse("g.toml", &text).expect("a plan")).expect("settings");
        (config.endpoint.limits.peers_max, config.endpoint.observe.observers_max, config.kernel_filter)
    };
    let given = "peers_max = 250_000\nobservers_max = 120_000\nkernel_filter = false";
    assert_eq!(of(given), (250_000, 120_000, KernelFilter::Off));
    assert_eq!(of(""), (16_384, 16_384, KernelFilter::On));
    refused("[server]\npeers_max = 1", "g.toml:3:13: peers_max: 1 is not within 2 to 16777216");
    let mut gateway = Gateway::start(plan("")).expect("started");
    let other =
        "schema = \"thalweg.gateway/1\"\n[server]\nbind = \"127.0.0.1:0\"\npeers_max = 9\nkernel_filter = false";
    let changes = gateway.reload(GatewayPlan::parse("g.toml", other).expect("a plan")).expect("taken over");
    assert_eq!(changes.needs_restart, ["server.peers_max", "server.kernel_filter"]);
}

fn plan(lines: &str) -> GatewayPlan {
    let text = format!("schema = \"thalweg.gateway/1\"\nserver = {{ bind = \"127.0.0.1:0\" }}\n{lines}");
    GatewayPlan::parse("g.toml", &text).expect("a plan")
}

fn value(gateway: &Gateway, path: &str) -> Option<Value> {
    let resource = gateway.store().find(path).ok()?;
    let accept = Some(crate::message::content_format::CBOR);
    resource.get(&Get { accept, queries: &[] }).ok()?.value().ok().map(|(value, _)| value)
}

#[test]
fn another_plan_changes_what_differs_and_nothing_else() {
    let hall = "[[device]]\ndriver = \"kit\"\nname = \"hall\"\nmodel = \"led\"\n";
    let name = |text: &str| format!("[[resource]]\npath = \"name\"\nvalue = \"{text}\"\n");
    let mut gateway = Gateway::start(plan(&format!("{hall}{}", name("a")))).expect("started");
    let changes = gateway.start_parts();
    assert_eq!((changes.started, changes.failed), (vec!["device hall".to_owned(), "resource name".to_owned()], vec![]));
    let led = gateway.store().find("sensors/hall/light").expect("there");
    led.put(&crate::resource::Put { content_format: None, payload: b"on", queries: &[] }).expect("it shines");
    let other =
        format!("{hall}{}[laws]\nblocking = \"fixed:3\"\n[[pack]]\npath = \"all\"\nroot = \"sensors\"\n", name("b"));
    let changes = gateway.reload(plan(&other)).expect("taken over");
    assert_eq!(changes.ended, ["resource name"]);
    assert_eq!(changes.started, ["resource name", "pack all"]);
    assert_eq!((changes.failed, changes.needs_restart), (vec![], vec![]));
    assert_eq!(value(&gateway, "name"), Some(Value::Text("b".to_owned())));
    assert_eq!(value(&gateway, "sensors/hall/light"), Some(Value::Boolean(true)), "it was not touched");
    let laws: Vec<String> = gateway.figures().server.scheduler.pools.iter().map(|pool| pool.law.to_string()).collect();
    assert_eq!(laws[0], "fixed:3");
    let changes = gateway.reload(plan("[priorities]\nresource = 9\n[proxy]\nforward = \"*\"\n")).expect("taken over");
    assert_eq!(changes.needs_restart, ["priorities", "proxy"]);
    assert_eq!(gateway.store().paths(), Vec::<String>::new());
    assert_eq!(gateway.reload(plan("")).expect("taken over").needs_restart, Vec::<String>::new());
}

#[test]
fn settings_that_need_a_restart_are_told_at_each_reload() {
    let mut gateway = Gateway::start(plan("")).expect("started");
    for _ in 0..2 {
        let other = plan("[laws]\nperiod_ms = 500\n[priorities]\nresource = 9\n[proxy]\nforward = \"*\"\n");
        let changes = gateway.reload(other).expect("taken over");
        assert_eq!(changes.needs_restart, ["priorities", "laws.period_ms", "proxy"]);
    }
}

#[test]
fn a_part_that_cannot_begin_costs_the_others_nothing() {
    let lines = "[[device]]\ndriver = \"kit\"\nname = \"a\"\nmodel = \"led\"\nroot = \"x\"\n\
        [[resource]]\npath = \"x/a/light\"\nvalue = 1\n[[resource]]\npath = \"y\"\nvalue = 2\n";
    let mut gateway = Gateway::start(plan(lines)).expect("started");
    let changes = gateway.start_parts();
    assert_eq!(changes.failed.len(), 1);
    assert!(changes.failed[0].starts_with("resource x/a/light: there is a resource /x/a/light already"), "{changes:?}");
    assert_eq!(value(&gateway, "y"), Some(Value::Real(2.0)));
}

#[test]
fn a_registration_of_a_server_at_every_address_needs_a_base() {
    let lines = "[[registration]]\ndirectory = \"coap://127.0.0.1:9\"\nendpoint = \"a\"\n";
    let text = format!("schema = \"thalweg.gateway/1\"\nserver = {{ bind = \"0.0.0.0:0\" }}\n{lines}");
    let mut gateway = Gateway::start(GatewayPlan::parse("g.toml", &text).expect("a plan")).expect("started");
    let changes = gateway.start_parts();
    let said = "registration a at 127.0.0.1:9: base is needed, such as coap://192.0.2.7";
    assert!(changes.failed.len() == 1 && changes.failed[0].starts_with(said), "{changes:?}");
}

#[test]
fn an_endpoint_is_registered_at_two_directories_and_leaves_silent_ones_at_once() {
    let silent = [(); 2].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket"));
    let at = |socket: &std::net::UdpSocket| {
        let address = socket.local_addr().expect("an address");
        format!("[[registration]]\ndirectory = \"coap://{address}\"\nendpoint = \"a\"\n")
    };
    let lines: String = silent.iter().map(at).collect();
    let mut gateway = Gateway::start(plan(&lines)).expect("started");
    let changes = gateway.start_parts();
    assert_eq!((changes.started.len(), changes.failed), (2, vec![]));
    for socket in &silent {
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a time limit");
        socket.recv_from(&mut [0; 1500]).expect("it is asked");
    }
    let start = std::time::Instant::now();
    assert_eq!(gateway.reload(plan("")).expect("taken over").ended.len(), 2);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn a_pack_holds_all_readings_and_drives_what_it_names() {
    use crate::message::content_format::{SENML_CBOR, SENML_JSON};
    let lines = "[[device]]\ndriver = \"kit\"\nname = \"l\"\nmodel = \"led\"\ncount = 2\n\
        [[device]]\ndriver = \"kit\"\nname = \"t\"\nmodel = \"temphumi\"\n[[pack]]\npath = \"all\"\nroot = \"sensors\"\n";
    let mut gateway = Gateway::start(plan(lines)).expect("started");
    assert_eq!(gateway.start_parts().failed, Vec::<String>::new());
    let pack = gateway.store().find("all").expect("there");
    for format in [SENML_JSON, SENML_CBOR] {
        let got = pack.get(&Get { accept: Some(format), queries: &[] }).expect("a pack");
        let records = crate::senml::parse(format, &got.payload).expect("SenML");
        let names: Vec<&str> = records.iter().map(|record| record.name.as_str()).collect();
        let expect = ["sensors/l-1/light", "sensors/l-2/light", "sensors/t/humidity", "sensors/t/temperature"];
        assert_eq!(names, expect);
        assert_eq!(records[3].unit, "Cel");
    }
    let put = |payload: &str| {
        let put = crate::resource::Put { content_format: Some(SENML_JSON), payload: payload.as_bytes(), queries: &[] };
        pack.put(&put)
    };
    put(r#"[{"bn":"sensors/l-","n":"2/light","vb":true}]"#).expect("driven");
    assert_eq!(value(&gateway, "sensors/l-2/light"), Some(Value::Boolean(true)));
    let wrong =
        put(r#"[{"bn":"sensors/l-","n":"2/light","vb":false},{"n":"3/light","vb":false}]"#).expect_err("no l-3");
    assert!(wrong.to_string().contains("there is no /sensors/l-3/light"), "{wrong}");
    assert_eq!(value(&gateway, "sensors/l-2/light"), Some(Value::Boolean(true)), "nothing moved");
}

#[test]
fn a_value_of_the_file_may_be_kept_for_its_time_whenever_it_is_asked_for_alone_and_in_a_pack() {
    let lines = "[[resource]]\npath = \"a/name\"\nvalue = \"Main Street 7\"\n[[pack]]\npath = \"all\"\nroot = \"a\"\n";
    let mut gateway = Gateway::start(plan(lines)).expect("started");
    assert_eq!(gateway.start_parts().failed, Vec::<String>::new());
    std::thread::sleep(Duration::from_millis(1));
    for path in ["a/name", "all"] {
        let got = gateway.store().find(path).expect("there").get(&Get::default()).expect("a reading");
        assert_eq!(got.max_age, Duration::from_secs(60), "{path}");
    }
}

/// A client that has proved nothing, at this address.
fn caller(address: &str) -> Caller {
    Caller::anonymous(format!("{address}:5683").parse().expect("an address"), Transport::Udp)
}

#[test]
fn a_pack_gives_and_drives_for_a_client_what_it_may_read_and_drive_itself() {
    let lines = "[[device]]\ndriver = \"kit\"\nname = \"l\"\nmodel = \"led\"\ncount = 2\n\
        [[pack]]\npath = \"all\"\nroot = \"sensors\"\n[access]\n\
        allow = [\"/sensors/l-2 get net:192.0.2.1/32\", \"/sensors/l-2 post net:192.0.2.2/32\"]\n";
    let mut gateway = Gateway::start(plan(lines)).expect("started");
    assert_eq!(gateway.start_parts().failed, Vec::<String>::new());
    let pack = gateway.store().find("all").expect("there");
    let ask = |request: &RequestBuf, address: &str| {
        let caller = caller(address);
        let response = respond(&*pack, &request.view().of(&caller));
        format!("{} {}", response.code, String::from_utf8_lossy(&response.payload))
    };
    let get = RequestBuf::get("/all");
    let put = |records: &str| RequestBuf::put("/all", records).with_content_format(content_format::SENML_JSON);
    let read = ask(&get, "192.0.2.1");
    assert!(read.starts_with("2.05") && read.matches("light").count() == 2, "{read}");
    for (request, address) in [(&get, "192.0.2.2"), (&get, "192.0.2.3"), (&put(BOTH), "192.0.2.1")] {
        let refused = ask(request, address);
        assert!(refused.starts_with("4.01 /sensors/l-2/light is in the pack: access needs"), "{address} {refused}");
    }
    assert_eq!(value(&gateway, "sensors/l-1/light"), Some(Value::Boolean(false)), "nothing moved");
    // A tag is compared for those alone who may read what has it.
    let tagged = get.clone().with_option(OptionNumber::ETAG, &pack_tag(&pack));
    assert!(ask(&tagged, "192.0.2.1").starts_with("2.03") && ask(&tagged, "192.0.2.3").starts_with("4.01"));
    assert!(ask(&put(r#"[{"n":"sensors/l-1/light","vb":true}]"#), "192.0.2.3").starts_with("2.04"));
    assert!(ask(&put(BOTH), "192.0.2.2").starts_with("2.04"));
    assert_eq!(value(&gateway, "sensors/l-2/light"), Some(Value::Boolean(true)));
    // The gateway itself, and its services, are no clients.
    assert!(pack.get(&Get::default()).is_ok());
}

/// Orders for both lights.
const BOTH: &str = r#"[{"bn":"sensors/l-","n":"1/light","vb":true},{"n":"2/light","vb":true}]"#;

fn pack_tag(pack: &Arc<dyn Resource>) -> crate::message::ETag {
    pack.get(&Get::default()).expect("a pack").etag()
}

fn rules(access: &str) -> GuardRules {
    GuardRules { access: AccessRules::new([access.parse().expect("a rule")]), ..GuardRules::default() }
}

#[test]
fn a_request_that_waited_passes_the_rules_that_go_with_what_it_finds() {
    let (store, guard) = (LocalStore::new(), Arc::new(Guard::default()));
    let catalog = GatewayCatalog::new(store.clone(), Arc::clone(&guard));
    // It was let in when there was neither a rule nor a resource.
    let (request, caller) = (RequestBuf::get("/new"), caller("192.0.2.1"));
    guard.set(rules("/new any known"));
    let new = Property::pushed("new", "", Unit::NONE, Duration::from_secs(60), system_clock());
    new.push(Value::Boolean(true));
    store.insert(Arc::new(new)).expect("a place");
    let code = |caller: &Caller| catalog.handle(&request.view().of(caller)).expect("an answer").code;
    assert_eq!(code(&caller), Code::UNAUTHORIZED);
    guard.set(GuardRules::default());
    assert_eq!(code(&caller), Code::CONTENT);
}

#[test]
fn a_request_that_waited_for_the_proxy_passes_the_rules_that_go_with_its_destinations() {
    let guard = Arc::new(Guard::default());
    let destinations = |text: &str| Destinations::new([text]).expect("destinations");
    let proxy = GatewayProxy::new(relay(), destinations("192.0.2.9"), Arc::clone(&guard));
    let request = RequestBuf::get("/").with_option(OptionNumber::PROXY_URI, b"coap://lamp.example/");
    let caller = caller("192.0.2.1");
    let said = || String::from_utf8_lossy(&proxy.handle(&request.view().of(&caller)).payload).into_owned();
    assert!(said().contains("does not go to lamp.example"), "{}", said());
    guard.set(rules("proxy any none"));
    proxy.set_destinations(destinations("*"));
    assert!(said().starts_with("access needs an identity"), "{}", said());
}

#[test]
fn what_ends_does_so_under_the_rules_before_and_what_begins_waits_for_its_own() {
    let lines =
        |name: &str| format!("[[resource]]\npath = \"{name}\"\nvalue = 1\n[access]\nallow = [\"/{name} any none\"]\n");
    let mut gateway = Gateway::start(plan(&lines("old"))).expect("started");
    gateway.start_parts();
    let (guard, store) = (Arc::clone(&gateway.guard), gateway.store().clone());
    let (hold, is_held) = std::sync::mpsc::channel();
    let watch = move || {
        guard.hold(|| {
            hold.send(()).expect("the test waits");
            let start = std::time::Instant::now();
            while store.find("old").is_ok() {
                assert!(start.elapsed() < Duration::from_secs(30), "it does not end before its rules do");
                std::thread::sleep(Duration::from_millis(1));
            }
            store.paths()
        })
    };
    let watching = std::thread::spawn(watch);
    is_held.recv().expect("the rules are held");
    let changes = gateway.reload(plan(&lines("new"))).expect("taken over");
    assert_eq!((changes.ended, changes.started), (vec!["resource old".to_owned()], vec!["resource new".to_owned()]));
    assert_eq!(watching.join().expect("it ended"), Vec::<String>::new());
    let refused = |path: &str| gateway.guard.refuse(&RequestBuf::get(path).view(), &caller("192.0.2.1")).is_some();
    assert_eq!(["/old", "/new"].map(refused), [false, true]);
}

#[test]
fn keys_that_cannot_be_read_leave_everything_as_it_was() {
    let name = |text: &str| format!("[[resource]]\npath = \"name\"\nvalue = \"{text}\"\n");
    let closed = format!("{}[access]\nallow = [\"/name any none\"]\n", name("a"));
    let mut gateway = Gateway::start(plan(&closed)).expect("started");
    gateway.start_parts();
    let before = gateway.guard.in_force();
    let open = format!("[dtls]\n[credentials]\npsk = \"/nonexistent/keys.json\"\n{}", name("b"));
    let error = gateway.reload(plan(&open)).expect_err("no keys").to_string();
    assert!(error.starts_with("credentials: ") && error.contains("/nonexistent/keys.json"), "{error}");
    assert_eq!(gateway.guard.in_force(), before);
    assert_eq!(value(&gateway, "name"), Some(Value::Text("a".to_owned())));
    let changes = gateway.reload(plan(&closed)).expect("taken over");
    assert_eq!((changes.ended, changes.started), (vec![], vec![]));
}

/// A relay that has nobody to ask yet.
fn relay() -> Relay {
    let threads = Arc::new(ThreadPoolManager::new(4, Priorities::default()));
    let remote: Arc<dyn Remote> = Arc::new(CoapRemote::start(Config::default(), &threads).expect("a socket"));
    let things = Things::new(LocalStore::new(), Arc::clone(&remote), 1000, system_clock());
    Relay::new(things, remote, PROXY_PATIENCE)
}

#[test]
fn only_what_reverse_proxies_answer_goes_on_to_another_thing() {
    let relay = relay();
    let reverse = |root: &str| {
        let target = RemoteName { thing: "lamp:5683".to_owned(), path: String::new() };
        vec![Arc::new(ReverseProxy::new(relay.clone(), root, target))]
    };
    let catalog = GatewayCatalog::new(LocalStore::new(), Arc::default());
    let forwards = |path: &str| catalog.terms(&RequestBuf::get(path).view()).forwards;
    catalog.set_reverse(reverse("far"));
    assert_eq!(["/far", "/far/a", "/fa", "/rd"].map(forwards), [true, true, false, false]);
    catalog.set_reverse(reverse(""));
    assert_eq!(["/", "/a", "/rd", "/rd-lookup/res"].map(forwards), [true; 4]);
    catalog.set_directory(true);
    assert_eq!(
        ["/", "/rd", "/rd/1", "/rd-lookup/res", "/rd-lookup/x"].map(forwards),
        [true, false, false, false, true]
    );
}

#[test]
fn the_file_of_the_document_is_right() {
    let document = include_str!("../../../../docs/gateway.md");
    let file = document.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block");
    let plan = GatewayPlan::parse("gateway.md", file).expect("a plan");
    assert_eq!((plan.devices.len(), plan.remotes.len(), plan.services.len(), plan.packs.len()), (2, 1, 1, 1));
}

proptest::proptest! {
    #[test]
    fn whatever_is_written_is_a_plan_or_an_error_with_its_place(lines in "([a-z_]{1,9}( = [0-9a-z\"\\[{}]{0,6})?|\\[{1,2}[a-z]{3,8}\\]{1,2}|\n){0,12}") {
        let text = format!("schema = \"thalweg.gateway/1\"\n{lines}");
        if let Err(error) = GatewayPlan::parse("f", &text) {
            proptest::prop_assert!(error.line >= 1 && error.line <= text.matches('\n').count() + 1);
        }
    }
}
