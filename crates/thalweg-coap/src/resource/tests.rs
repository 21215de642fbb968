use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use super::*;
use crate::device::drivers::{Simulated, Simulation};
use crate::device::tests::{PATIENCE, SHORT, Scripted, Step, linker};
use crate::device::{Completion, DeviceError, DeviceHandle, Finder, Unit, Value};
use crate::link_format::WebLink;
use crate::message::{Code, content_format};
use crate::scheduler::priority::Priorities;
use crate::scheduler::thread_pool::ThreadPoolManager;

fn on_demand(path: &str, max_age: Duration) -> PropertyDescription {
    PropertyDescription::new(path, "level", Unit::CELSIUS, Sampling::OnDemand { max_age })
}

fn channel(handler: &DeviceHandle, channel: usize) -> DeviceChannel {
    DeviceChannel { handler: handler.clone(), channel }
}

/// Starts so many requests and returns their outcomes, given what the device does once all of them are there.
fn ask_at_once(property: &Property, count: usize, then: impl FnOnce()) -> Vec<Result<Value, DeviceError>> {
    let ready = Barrier::new(count + 1);
    std::thread::scope(|scope| {
        let ask = || {
            ready.wait();
            property.read().map(|sampled| sampled.value)
        };
        let requests: Vec<_> = (0..count).map(|_| scope.spawn(ask)).collect();
        ready.wait();
        then();
        requests.into_iter().map(|request| request.join().expect("an outcome")).collect()
    })
}

/// Counts how often a source is read.
struct Counting(DeviceChannel, Arc<AtomicUsize>);

impl Source for Counting {
    fn read(&self, completion: Completion) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.read(completion);
    }
}

#[test]
fn a_hundred_requests_to_a_sensor_of_50_ms_cause_one_read() {
    let simulation = Simulation { latency: Duration::from_millis(50), ..Simulation::default() };
    let found = Finder::new().with(Simulated::new(simulation)).find(PATIENCE);
    let sensor = linker().link(&found.devices[0]).expect("linked");
    let reads = Arc::new(AtomicUsize::new(0));
    let source = Counting(channel(&sensor, 0), Arc::clone(&reads));
    // Requests that come late, on a busy machine, find the reading fresh.
    let property = Property::measured(on_demand("t", PATIENCE), source, None, system_clock());
    let outcomes = ask_at_once(&property, 100, || ());
    assert!(outcomes.iter().all(|outcome| outcome.is_ok() && *outcome == outcomes[0]), "{outcomes:?}");
    assert_eq!(reads.load(Ordering::SeqCst), 1);
}

#[test]
fn the_failure_of_the_one_read_answers_all() {
    let (driver, script) = Scripted::new("failing");
    let commands = Arc::clone(&driver.commands);
    let device = driver.link();
    let description = PropertyDescription { read_timeout: PATIENCE, ..on_demand("t", Duration::ZERO) };
    let joined = Arc::new(AtomicUsize::new(0));
    // The clock is read once when a request comes and once when it waits: then it is in.
    let counted = Arc::clone(&joined);
    let clock: Clock = Arc::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        thalweg_base::time::Instant::ZERO
    });
    let property = Property::measured(description, channel(&device, 0), None, clock);
    let failure = DeviceError::Failed("no contact".to_owned());
    let outcomes = ask_at_once(&property, 100, || {
        while joined.load(Ordering::SeqCst) < 200 {
            std::thread::yield_now();
        }
        script.send(Step::Give(Err(failure.clone()))).expect("sent");
    });
    assert!(outcomes.iter().all(|outcome| *outcome == Err(failure.clone())), "{outcomes:?}");
    assert_eq!(commands.load(Ordering::SeqCst), 1);
}

#[test]
fn a_device_that_hangs_answers_with_when_to_ask_again() {
    let (driver, _script) = Scripted::new("hanging");
    let device = driver.link();
    let description = PropertyDescription { read_timeout: SHORT, ..on_demand("t", Duration::ZERO) };
    let store = LocalStore::new();
    let property = Property::measured(description, channel(&device, 0), None, system_clock());
    store.insert(Arc::new(property)).expect("inserted");
    for reason in ["gave no answer within 1 ms", "still works on an earlier command"] {
        let error = store.find("t").expect("there").get(&Get::default()).expect_err("an error");
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(error.code(), Code::SERVICE_UNAVAILABLE);
    }
}

#[test]
fn an_actuator_is_driven_and_read_again() {
    let found = Finder::new().with(Simulated::new(Simulation::default())).find(PATIENCE);
    let device = linker().link(&found.devices[0]).expect("linked");
    let instruction = Instruction::new("mean", device.clone(), 1, PATIENCE);
    let mean = Property::measured(on_demand("mean", PATIENCE), channel(&device, 1), Some(instruction), system_clock());
    let get = |accept| mean.get(&Get { accept, ..Get::default() }).map(|representation| representation.payload);
    assert_eq!(get(None), Ok(b"20".to_vec()));
    let put = |payload: &str| mean.put(&Put { content_format: None, payload: payload.as_bytes(), queries: &[] });
    assert_eq!(put("35.5"), Ok(()));
    assert_eq!(get(None), Ok(b"35.5".to_vec()), "although the old reading would be fresh");
    assert_eq!(get(Some(content_format::JSON)), Ok(br#"{"value":35.5,"unit":"Cel"}"#.to_vec()));
    assert_eq!(get(Some(9999)), Err(ResourceError::NotAcceptable));
    assert!(matches!(put("warm"), Err(ResourceError::BadRequest(_))));
    let sensor = Property::measured(on_demand("t", PATIENCE), channel(&device, 0), None, system_clock());
    let refused = sensor.put(&Put { content_format: None, payload: b"1", queries: &[] });
    assert_eq!(refused.expect_err("an error").code(), Code::METHOD_NOT_ALLOWED);
}

#[test]
fn a_constant_may_be_kept_for_its_time_whenever_it_is_asked_for() {
    let seconds = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&seconds);
    let now = move || thalweg_base::time::Instant::from_nanos(told.load(Ordering::SeqCst) * 1_000_000_000);
    let (minute, value) = (Duration::from_secs(60), Value::Text("Main Street 7".to_owned()));
    let name = Property::constant("name", "text", Unit::NONE, minute, value, Arc::new(now));
    for second in [0, 30, 600] {
        seconds.store(second, Ordering::SeqCst);
        let response = respond(&name, &crate::message::RequestBuf::get("/name").view());
        assert_eq!((response.code, response.max_age), (Code::CONTENT, Some(60)), "after {second} s");
    }
    assert!(!name.is_timed() && !name.blocks());
}

/// A source that gives these values one after the other, at once.
struct Given(Mutex<std::vec::IntoIter<f64>>);

impl Source for Given {
    fn read(&self, completion: Completion) {
        let next = self.0.lock().expect("a lock").next();
        completion(next.map(Value::Real).ok_or_else(|| DeviceError::Failed("no more".to_owned())));
    }
}

#[test]
fn observers_hear_of_changes_only() {
    let clock = Arc::new(AtomicU64::new(0));
    let now = Arc::clone(&clock);
    let now = move || thalweg_base::time::Instant::from_nanos(now.load(Ordering::SeqCst));
    let second = Duration::from_secs(1);
    let description = PropertyDescription::new("p", "level", Unit::NONE, Sampling::Periodic { period: second });
    let source = Given(Mutex::new(vec![1.0, 1.0, 2.0].into_iter()));
    let property = Property::measured(description, source, None, Arc::new(now.clone()));
    let store = LocalStore::new();
    store.insert(Arc::new(property.clone())).expect("inserted");
    let changes = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&changes);
    let _watch = store.on_change(Arc::new(move |path| heard.lock().expect("a lock").push(path.to_owned())));
    let mut heard = Vec::new();
    for _ in 0..4 {
        assert_eq!(store.handle_timeout(now()), Some(now() + second));
        heard.push(changes.lock().expect("a lock").len());
        clock.fetch_add(1_000_000_000, Ordering::SeqCst);
    }
    assert_eq!(heard, [1, 1, 2, 2], "the second value is the first, and the fourth sample fails");
    assert_eq!(*changes.lock().expect("a lock"), ["p", "p"]);
    assert_eq!(property.read().map(|sampled| sampled.value), Ok(Value::Real(2.0)));
}

#[test]
fn published_values_are_resources_too() {
    let store = LocalStore::new();
    let published = Property::pushed("news", "text", Unit::NONE, Duration::from_secs(5), system_clock());
    store.insert(Arc::new(published.clone())).expect("inserted");
    let get = || store.find("news").expect("there").get(&Get::default());
    assert_eq!(get().expect_err("nothing yet").code(), Code::SERVICE_UNAVAILABLE);
    published.push(Value::Text("rain".to_owned()));
    assert_eq!(get().expect("published").payload, b"rain");
    assert!(store.remove("news"));
    assert_eq!(store.find("news").err(), Some(ResourceError::NotFound("news".to_owned())));
}

#[test]
fn paths_are_checked_and_unique() {
    let store = LocalStore::new();
    let insert =
        |path: &str| store.insert(Arc::new(Property::pushed(path, "text", Unit::NONE, Duration::ZERO, system_clock())));
    assert_eq!(insert("a/b"), Ok(()));
    assert_eq!(insert("größe 1"), Ok(()));
    assert_eq!(insert("a/b"), Err(StoreError::Taken("a/b".to_owned())));
    for path in ["", "/a", "a//b", "a/"] {
        assert_eq!(insert(path), Err(StoreError::BadPath(path.to_owned())));
    }
    let paths: Vec<String> = store.links().into_iter().map(|link| link.target).collect();
    assert_eq!(paths, ["/a/b", "/gr%C3%B6%C3%9Fe%201"]);
}

#[test]
fn the_sampler_measures_by_itself_and_ends() {
    let found = Finder::new().with(Simulated::new(Simulation::default())).find(PATIENCE);
    let device = linker().link(&found.devices[0]).expect("linked");
    let store = LocalStore::new();
    let threads = Arc::new(ThreadPoolManager::new(1, Priorities::default()));
    let sampler = Sampler::start(store.clone(), system_clock(), &threads).expect("a thread");
    let sampling = Sampling::Periodic { period: Duration::from_millis(1) };
    let description = PropertyDescription::new("t", "temperature", Unit::CELSIUS, sampling);
    let property = Property::measured(description, channel(&device, 0), None, system_clock());
    let (sender, changes) = std::sync::mpsc::channel();
    let watch = store.on_change(Arc::new(move |path| sender.send(path.to_owned()).unwrap_or_default()));
    store.insert(Arc::new(property)).expect("inserted");
    for _ in 0..3 {
        assert_eq!(changes.recv_timeout(PATIENCE), Ok("t".to_owned()), "noise makes each reading another");
    }
    drop(watch);
    drop(sampler);
    changes.try_iter().for_each(drop);
    assert!(changes.recv().is_err(), "nobody is left to send");
}

#[test]
fn devices_that_were_found_are_resources() {
    let (scripted, script) = Scripted::new("door");
    let found = Finder::new().with(Simulated::new(Simulation::default())).with(scripted).find(PATIENCE);
    let store = LocalStore::new();
    let policy = ChannelPolicy { timeout: PATIENCE, ..ChannelPolicy::default() };
    assert_eq!(add_devices(&store, &found, &linker(), &policy, &system_clock()), []);
    let targets: Vec<String> = store.links().into_iter().map(|link| link.target).collect();
    assert_eq!(
        targets,
        ["/sensors/door/level", "/sensors/door/switch", "/sensors/simulated0/mean", "/sensors/simulated0/temperature",]
    );
    let switch = store.find("sensors/door/switch").expect("there");
    assert_eq!(switch.get(&Get::default()).expect_err("no state").code(), Code::METHOD_NOT_ALLOWED);
    script.send(Step::Give(Ok(Value::Boolean(true)))).expect("sent");
    assert_eq!(switch.put(&Put { content_format: None, payload: b"on", queries: &[] }), Ok(()));
    let again = add_devices(&store, &found, &linker(), &policy, &system_clock());
    assert_eq!(again.len(), 2, "each path is there once: {again:?}");
}

#[test]
fn a_property_is_sampled_while_somebody_observes_it() {
    let source = Given(Mutex::new(vec![1.0, 2.0, 3.0].into_iter()));
    let store = LocalStore::new();
    let property = Property::measured(on_demand("p", PATIENCE), source, None, system_clock());
    store.insert(Arc::new(property)).expect("inserted");
    let due = || store.handle_timeout(system_clock()());
    assert_eq!(due(), None);
    let watch = store.observe("p", || ()).expect("there");
    assert!(due().is_some(), "this thing observes");
    store.set_network_observers(0, "p", 2);
    store.set_network_observers(1, "p", 1);
    drop(watch);
    store.set_network_observers(0, "p", 0);
    assert!(due().is_some(), "a client of the other loop observes");
    store.set_network_observers(1, "p", 0);
    assert_eq!(due(), None);
}

/// While it hears that nobody observes it any more, a client of another loop begins to, and is told first.
struct OvertakenResource {
    store: LocalStore,
    is_observed: AtomicBool,
}

impl Resource for OvertakenResource {
    fn path(&self) -> &str {
        "p"
    }

    fn link(&self) -> WebLink {
        WebLink::new("/p")
    }

    fn blocks(&self) -> bool {
        false
    }

    fn get(&self, _request: &Get<'_>) -> Result<ResourceRepresentation, ResourceError> {
        Ok(ResourceRepresentation::new(content_format::TEXT, Vec::new(), Duration::ZERO))
    }

    fn put(&self, _request: &Put<'_>) -> Result<(), ResourceError> {
        Ok(())
    }

    fn set_observed(&self, observed: bool) {
        if !observed {
            self.store.set_network_observers(1, "p", 1);
        }
        self.is_observed.store(observed, Ordering::SeqCst);
    }
}

#[test]
fn a_resource_knows_of_its_observers_whichever_loop_tells_it_last() {
    let store = LocalStore::new();
    let resource = Arc::new(OvertakenResource { store: store.clone(), is_observed: AtomicBool::new(false) });
    store.insert(Arc::clone(&resource) as Arc<dyn Resource>).expect("inserted");
    store.set_network_observers(0, "p", 1);
    store.set_network_observers(0, "p", 0);
    assert!(resource.is_observed.load(Ordering::SeqCst), "the client of the other loop still observes");
}

#[test]
fn observers_of_a_replaced_resource_hear_of_it_once_and_it_knows_of_them() {
    let store = LocalStore::new();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&heard);
    let _watch = store.on_change(Arc::new(move |path| told.lock().expect("a lock").push(path.to_owned())));
    let insert = |values: Vec<f64>| {
        let source = Given(Mutex::new(values.into_iter()));
        let property = Property::measured(on_demand("p", PATIENCE), source, None, system_clock());
        store.insert(Arc::new(property)).expect("inserted");
    };
    insert(vec![1.0]);
    store.set_network_observers(0, "p", 1);
    let held = store.hold_changes();
    assert!(store.remove("p"));
    insert(vec![2.0]);
    assert_eq!(*heard.lock().expect("a lock"), Vec::<String>::new(), "nobody heard that it was gone");
    drop(held);
    assert_eq!(*heard.lock().expect("a lock"), ["p"]);
    assert!(store.handle_timeout(system_clock()()).is_some(), "it is sampled for its observer");
    assert!(store.remove("p"));
    assert_eq!(
        heard.lock().expect("a lock").last().map(String::as_str),
        Some("p"),
        "its observers hear that it is gone"
    );
}
