//! Two things that use each other's resources over UDP.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use thalweg_coap::device::drivers::{Simulated, Simulation};
use thalweg_coap::device::{Finder, Linker, Unit, Value};
use thalweg_coap::endpoint::Config;
use thalweg_coap::interaction::handler::{ClassId, Function};
use thalweg_coap::interaction::routes::Routes;
use thalweg_coap::interaction::server::{ClassConfig, Server, ServerConfig};
use thalweg_coap::message::{RequestBuf, Response, content_format};
use thalweg_coap::resource::{ChannelPolicy, LocalStore, Sampler, Sampling, add_devices, system_clock};
use thalweg_coap::scheduler::controller::ControlLaw;
use thalweg_coap::scheduler::priority::Priorities;
use thalweg_coap::scheduler::thread_pool::ThreadPoolManager;
use thalweg_coap::service::{CoapRemote, Remote, Things};

/// Longer than anything takes on a loaded machine; nothing waits for it when all is well.
const PATIENCE: Duration = Duration::from_secs(20);

/// A thing with a simulated thermometer that swings within a tenth of a second.
struct Thing {
    server: Server,
    things: Things,
    _sampler: Sampler,
}

fn thing() -> Thing {
    let store = LocalStore::new();
    let simulation = Simulation { period: Duration::from_millis(100), ..Simulation::default() };
    let found = Finder::new().with(Simulated::new(simulation)).find(PATIENCE);
    let sampling = Sampling::OnDemand { max_age: Duration::from_millis(10) };
    let policy = ChannelPolicy { sampling, timeout: PATIENCE, ..ChannelPolicy::default() };
    let routes = Routes::new().with_catalog(Arc::new(store.clone()));
    let server = Server::start(&ServerConfig::new(([127, 0, 0, 1], 0).into()), routes).expect("started");
    let linker = Linker::new(server.devices().clone());
    assert_eq!(add_devices(&store, &found, &linker, &policy, &system_clock()), []);
    let threads = server.scheduler().manager();
    let sampler = Sampler::start(store.clone(), system_clock(), threads).expect("a thread");
    let remote = Arc::new(CoapRemote::start(Config::default(), server.scheduler().manager()).expect("started"));
    let things = Things::new(store, remote, 100_000, system_clock()).with_patience(PATIENCE);
    Thing { server, things, _sampler: sampler }
}

#[test]
fn a_thing_requests_controls_and_observes_resources_of_another() {
    let (here, there) = (thing(), thing());
    let name = |path: &str| format!("coap://{}/{path}", there.server.address());
    let mean = name("sensors/simulated0/mean");
    assert_eq!(here.things.value(&mean), Ok((Value::Real(20.0), "Cel".to_owned())));
    here.things.set(&mean, &Value::Real(50.0)).expect("set");
    assert_eq!(here.things.value(&mean), Ok((Value::Real(50.0), "Cel".to_owned())));
    assert_eq!(there.things.value("/sensors/simulated0/mean"), Ok((Value::Real(50.0), "Cel".to_owned())));
    assert_eq!(here.things.value("/sensors/simulated0/mean"), Ok((Value::Real(20.0), "Cel".to_owned())));
    let refused = here.things.set(&name("sensors/simulated0/temperature"), &Value::Real(1.0)).expect_err("a sensor");
    assert!(refused.to_string().contains("4.05"), "{refused}");
    let missing = here.things.request(&name("nothing")).expect_err("nothing there");
    assert!(missing.to_string().contains("4.04"), "{missing}");
    let links = here.things.request(&name(".well-known/core?rt=temperature")).expect("links");
    let links = String::from_utf8(links.payload).expect("text");
    assert!(
        links.starts_with("</sensors/simulated0/mean>;title=\"simulated thermometer\";rt=\"temperature\""),
        "{links}"
    );
    // Nobody asks the sensor, but it is sampled because it is observed, and noise makes each sample another.
    let observation = here.things.observe(&name("sensors/simulated0/temperature")).expect("observed");
    let mut states = Vec::new();
    while states.len() < 3 {
        // A change that falls between the registration and its answer is told twice.
        let state = observation.next(PATIENCE).expect("no failure").expect("a state").payload;
        if states.last() != Some(&state) {
            states.push(state);
        }
    }
}

#[test]
fn readings_of_sensors_as_they_are_by_default_come_from_the_cache() {
    let store = LocalStore::new();
    let found = Finder::new().with(Simulated::new(Simulation::default())).find(PATIENCE);
    let routes = Routes::new().with_catalog(Arc::new(store.clone()));
    let server = Server::start(&ServerConfig::new(([127, 0, 0, 1], 0).into()), routes).expect("started");
    let linker = Linker::new(server.devices().clone());
    assert_eq!(add_devices(&store, &found, &linker, &ChannelPolicy::default(), &system_clock()), []);
    let here = thing();
    let name = format!("coap://{}/sensors/simulated0/temperature", server.address());
    for _ in 0..200 {
        here.things.value(&name).expect("a reading");
    }
    let counters = here.things.counters();
    assert!(counters.hits >= 150, "{counters:?}");
}

#[test]
fn what_an_application_publishes_reaches_other_things() {
    let (here, there) = (thing(), thing());
    let published = there.things.publish("news", "text", Unit::NONE, PATIENCE).expect("published");
    let name = format!("coap://{}/news", there.server.address());
    let error = here.things.request(&name).expect_err("nothing yet");
    assert!(error.to_string().contains("5.03"), "{error}");
    published.push(Value::Text("rain".to_owned()));
    let observation = here.things.observe(&name).expect("observed");
    let next = || observation.next(PATIENCE).expect("no failure").expect("a state").payload;
    assert_eq!(next(), b"rain");
    published.push(Value::Text("sun".to_owned()));
    // A state that is set while it is being asked for may be told twice.
    let state = Some(next()).filter(|state| state != b"rain").unwrap_or_else(next);
    assert_eq!(state, b"sun");
}

#[test]
fn responses_are_kept_by_the_store_alone() {
    let state = AtomicUsize::new(0);
    let handler = Function::inline(move |_| {
        let state = state.fetch_add(1, Ordering::Relaxed);
        Response::content(state.to_string(), content_format::TEXT).with_max_age(3600)
    });
    let routes = Routes::new().add("/count", handler);
    let server = Server::start(&ServerConfig::new(([127, 0, 0, 1], 0).into()), routes).expect("started");
    let remote = CoapRemote::start(Config::default(), server.scheduler().manager()).expect("started");
    for expect in ["0", "1"] {
        let (sender, answer) = mpsc::channel();
        let completion = move |outcome| sender.send(outcome).expect("the test waits");
        remote.request(&server.address().to_string(), RequestBuf::get("/count"), Box::new(completion));
        let answer = answer.recv_timeout(PATIENCE).expect("in time").expect("answered");
        assert_eq!(&*answer.payload, expect.as_bytes());
    }
}

#[test]
fn as_many_requests_are_under_way_as_nstart_says() {
    // Each handler waits until all three are at work.
    let meeting = Barrier::new(3);
    let handler = Function::pooled(ClassId::BLOCKING, move |_| {
        meeting.wait();
        Response::content("met", content_format::TEXT)
    });
    let mut config = ServerConfig::new(([127, 0, 0, 1], 0).into());
    config.classes = vec![ClassConfig::new("blocking", ControlLaw::Fixed(3))];
    let server = Server::start(&config, Routes::new().add("/meet", handler)).expect("started");
    let config = Config { nstart: 3, ..Config::default() };
    let remote = CoapRemote::start(config, server.scheduler().manager()).expect("started");
    let (sender, answers) = mpsc::channel();
    for _ in 0..3 {
        let sender = sender.clone();
        let completion = move |outcome| sender.send(outcome).expect("the test waits");
        remote.request(&server.address().to_string(), RequestBuf::get("/meet"), Box::new(completion));
    }
    for _ in 0..3 {
        let answer = answers.recv_timeout(PATIENCE).expect("they meet").expect("answered");
        assert_eq!(&*answer.payload, b"met");
    }
}

/// Threads for clients, and the address of a thing that never answers as long as the socket lives.
fn silence() -> (Arc<ThreadPoolManager>, UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
    let address = socket.local_addr().expect("an address").to_string();
    (Arc::new(ThreadPoolManager::new(8, Priorities::default())), socket, address)
}

#[test]
fn a_client_ends_while_its_requests_wait() {
    let (threads, _socket, silent) = silence();
    let remote = Arc::new(CoapRemote::start(Config::default(), &threads).expect("started"));
    let there = Arc::downgrade(&remote);
    let patience = Duration::from_millis(50);
    let things = Things::new(LocalStore::new(), remote, 100_000, system_clock()).with_patience(patience);
    let name = format!("coap://{silent}/a");
    things.request(&name).expect_err("no answer");
    things.set(&name, &Value::Real(1.0)).expect_err("no answer");
    drop(things);
    assert!(there.upgrade().is_none(), "requests that wait hold it");
}

#[test]
fn a_completion_may_hold_the_last_of_its_client() {
    let (threads, _socket, silent) = silence();
    let handler = Function::inline(|_| Response::content("here", content_format::TEXT));
    let routes = Routes::new().add("/here", handler);
    let server = Server::start(&ServerConfig::new(([127, 0, 0, 1], 0).into()), routes).expect("started");
    let remote = Arc::new(CoapRemote::start(Config::default(), &threads).expect("started"));
    let (sender, answers) = mpsc::channel();
    let waits = sender.clone();
    remote.request(
        &silent,
        RequestBuf::get("/a"),
        Box::new(move |outcome| waits.send(outcome.is_ok()).expect("the test waits")),
    );
    let (go_on, last) = mpsc::channel();
    let held = Arc::clone(&remote);
    let completion = move |outcome: Result<Response, _>| {
        last.recv_timeout(PATIENCE).expect("the test goes on");
        sender.send(outcome.is_ok()).expect("the test waits");
        drop(held);
    };
    remote.request(&server.address().to_string(), RequestBuf::get("/here"), Box::new(completion));
    drop(remote);
    go_on.send(()).expect("the completion waits");
    let told: Vec<bool> = (0..2).map(|_| answers.recv_timeout(PATIENCE).expect("each is told")).collect();
    assert_eq!(told, [true, false], "an answer, and the end of the client");
}
