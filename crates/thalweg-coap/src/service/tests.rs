use std::sync::mpsc;
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use super::*;
use crate::device::tests::{PATIENCE, SHORT};
use crate::device::{Unit, Value};
use crate::interaction::handler::Catalog;
use crate::message::{Code, OptionNumber, RequestBuf, Response};
use crate::resource::{Get, LocalStore, RemoteName, ResourceError, WatchGuard, system_clock};
use crate::scheduler::priority::Priorities;
use crate::scheduler::thread_pool::ThreadPoolManager;
use crate::service::remote::ResponseCompletion;

const HOUR: Duration = Duration::from_secs(3600);

/// Another thing without a network in between: its requests are answered when the test says so.
struct Neighbour {
    store: LocalStore,
    asked: Mutex<mpsc::Sender<(RequestBuf, ResponseCompletion)>>,
}

struct Registered(#[expect(dead_code, reason = "it ends when it is dropped")] WatchGuard);

impl RemoteObservation for Registered {}

impl Remote for Neighbour {
    fn request(&self, thing: &str, request: RequestBuf, completion: ResponseCompletion) {
        if thing != "neighbour:5683" {
            return completion(Err(ResourceError::NoAnswer(format!("there is no {thing}"))));
        }
        self.asked.lock().expect("a lock").send((request, completion)).expect("the test answers");
    }

    fn observe(&self, _thing: &str, request: RequestBuf, mut listener: ResponseListener) -> Box<dyn RemoteObservation> {
        let (store, path) = (self.store.clone(), request.view().path());
        listener(Ok(answer(&store, &request)));
        let listener = Mutex::new(listener);
        let notify = move || (listener.lock().expect("a lock"))(Ok(answer(&store, &request)));
        let watch = self.store.observe(path.trim_start_matches('/'), notify).expect("there");
        Box::new(Registered(watch))
    }
}

fn answer(store: &LocalStore, request: &RequestBuf) -> Response {
    store.handle(&request.view()).unwrap_or_else(|| Response::new(Code::NOT_FOUND))
}

type Asked = mpsc::Receiver<(RequestBuf, ResponseCompletion)>;

/// A thing and its neighbour's store, with the requests that the neighbour gets.
fn neighbours() -> (Things, LocalStore, Asked) {
    let (asked, requests) = mpsc::channel();
    let theirs = LocalStore::new();
    let remote = Neighbour { store: theirs.clone(), asked: Mutex::new(asked) };
    let things = Things::new(LocalStore::new(), Arc::new(remote), 100_000, system_clock()).with_patience(PATIENCE);
    (things, theirs, requests)
}

/// Their own view of the neighbour's store, to publish there.
fn at(store: &LocalStore) -> Things {
    let (asked, _) = mpsc::channel();
    let remote = Neighbour { store: store.clone(), asked: Mutex::new(asked) };
    Things::new(store.clone(), Arc::new(remote), 0, system_clock())
}

/// Runs `ask` and answers the one request that it causes.
fn answered<T: Send>(asked: &Asked, store: &LocalStore, ask: impl FnOnce() -> T + Send) -> (T, RequestBuf, Code) {
    std::thread::scope(|scope| {
        let result = scope.spawn(ask);
        let (request, completion) = asked.recv_timeout(PATIENCE).expect("a request");
        let response = answer(store, &request);
        let code = response.code;
        completion(Ok(response));
        (result.join().expect("a result"), request, code)
    })
}

#[test]
fn own_and_other_resources_are_used_alike() {
    let (things, theirs, asked) = neighbours();
    let own = things.publish("/level", "level", Unit::CELSIUS, HOUR).expect("published");
    own.push(Value::Real(1.5));
    let other = at(&theirs).publish("/level", "level", Unit::CELSIUS, HOUR).expect("published");
    other.push(Value::Real(2.5));
    assert_eq!(things.value("/level"), Ok((Value::Real(1.5), "Cel".to_owned())));
    let (value, _, _) = answered(&asked, &theirs, || things.value("coap://neighbour/level"));
    assert_eq!(value, Ok((Value::Real(2.5), "Cel".to_owned())));
    other.push(Value::Real(3.5));
    assert_eq!(things.value("coap://neighbour/level"), Ok((Value::Real(2.5), "Cel".to_owned())), "from the store");
    assert_eq!(things.counters().hits, 1);
    drop(own);
    assert_eq!(things.request("/level"), Err(ResourceError::NotFound("level".to_owned())));
    assert!(matches!(things.request("level"), Err(ResourceError::BadRequest(_))));
    assert!(matches!(things.request("coap://nobody/x"), Err(ResourceError::NoAnswer(_))));
}

#[test]
fn what_is_stale_is_validated_by_its_tag() {
    let (things, theirs, asked) = neighbours();
    let other = at(&theirs).publish("level", "level", Unit::NONE, Duration::ZERO).expect("published");
    other.push(Value::Integer(1));
    let ask = || things.request("coap://neighbour/level").map(|representation| representation.payload);
    let (first, request, _) = answered(&asked, &theirs, ask);
    assert_eq!(request.view().options.value(OptionNumber::ETAG), None);
    let (second, request, code) = answered(&asked, &theirs, ask);
    assert!(request.view().options.value(OptionNumber::ETAG).is_some());
    assert_eq!((&first, &second, code), (&Ok(b"1".to_vec()), &Ok(b"1".to_vec()), Code::VALID));
    assert_eq!(things.counters().validated, 1);
}

#[test]
fn requests_for_the_same_resource_are_one() {
    let (things, theirs, asked) = neighbours();
    let other = at(&theirs).publish("level", "level", Unit::NONE, HOUR).expect("published");
    other.push(Value::Integer(7));
    let ready = Barrier::new(50);
    std::thread::scope(|scope| {
        let ask = || {
            ready.wait();
            things.request("coap://neighbour/level").map(|representation| representation.payload)
        };
        let asking: Vec<_> = (0..50).map(|_| scope.spawn(ask)).collect();
        let (request, completion) = asked.recv_timeout(PATIENCE).expect("a request");
        completion(Ok(answer(&theirs, &request)));
        for one in asking {
            assert_eq!(one.join().expect("a result"), Ok(b"7".to_vec()));
        }
    });
    assert!(asked.try_recv().is_err(), "there was one request");
}

#[test]
fn control_reaches_the_other_thing_and_outdates_the_store() {
    let (things, theirs, asked) = neighbours();
    let other = at(&theirs).publish("level", "level", Unit::NONE, HOUR).expect("published");
    other.push(Value::Integer(1));
    let name = "coap://neighbour/level?mode=fast";
    answered(&asked, &theirs, || things.request(name)).0.expect("an answer");
    let (refused, request, code) = answered(&asked, &theirs, || things.set(name, &Value::Integer(5)));
    assert_eq!((request.code(), request.view().payload, code), (Code::PUT, b"5".as_slice(), Code::METHOD_NOT_ALLOWED));
    assert_eq!(request.view().query("mode"), Some("fast"));
    let error = refused.expect_err("a sensor takes no value");
    assert!(error.to_string().contains("neighbour:5683 answered 4.05"), "{error}");
    let (_, request, _) = answered(&asked, &theirs, || things.request(name));
    assert_eq!(request.code(), Code::GET, "what was in the store was forgotten");
}

#[test]
fn a_thing_that_is_known_by_a_name_is_called_by_it_whatever_it_is_asked() {
    let (things, theirs, asked) = neighbours();
    let name = "coap://neighbour/level";
    let (_, get, _) = answered(&asked, &theirs, || things.request(name));
    let (_, put, _) = answered(&asked, &theirs, || things.set(name, &Value::Integer(5)));
    for request in [&get, &put] {
        let host = request.view().options.value(OptionNumber::URI_HOST);
        assert_eq!(host, Some(&b"neighbour"[..]), "{:?}", request.code());
    }
    for thing in ["192.0.2.1:5683", "[2001:db8::1]:5683", "[fe80::1%2]:5683"] {
        let name = RemoteName { thing: thing.to_owned(), path: String::new() };
        let request = with_host(&name, RequestBuf::get("/"));
        assert_eq!(request.view().options.value(OptionNumber::URI_HOST), None, "{thing}");
    }
}

#[test]
fn observers_get_the_present_state_and_the_newest_one_after_changes() {
    let (things, theirs, _asked) = neighbours();
    let own = things.publish("level", "level", Unit::NONE, HOUR).expect("published");
    let other = at(&theirs).publish("level", "level", Unit::NONE, HOUR).expect("published");
    for (publication, name) in [(&own, "/level"), (&other, "coap://neighbour/level")] {
        publication.push(Value::Integer(1));
        let observation = things.observe(name).expect("observed");
        let next = |patience| observation.next(patience).map(|state| state.map(|state| state.payload));
        assert_eq!(next(PATIENCE), Ok(Some(b"1".to_vec())), "{name}");
        assert_eq!(next(SHORT), Ok(None));
        publication.push(Value::Integer(2));
        publication.push(Value::Integer(3));
        assert_eq!(next(PATIENCE), Ok(Some(b"3".to_vec())), "{name}");
        assert_eq!(next(SHORT), Ok(None), "{name}");
    }
    assert!(things.observe("/nothing").is_err());
}

#[test]
fn services_run_until_they_are_stopped() {
    let (things, _, _) = neighbours();
    let threads = Arc::new(ThreadPoolManager::new(2, Priorities::default()));
    let mut services = Services::new(things.clone(), threads);
    let (sender, count) = mpsc::channel();
    services
        .start("counter", move |things, stop| {
            let count = things.publish("count", "count", Unit::COUNT, HOUR).expect("published");
            count.push(Value::Integer(1));
            sender.send(()).expect("the test listens");
            while !stop.wait(PATIENCE) {}
        })
        .expect("started");
    count.recv_timeout(PATIENCE).expect("it runs");
    assert_eq!(things.value("/count"), Ok((Value::Integer(1), "count".to_owned())));
    assert_eq!(services.running(), ["counter"]);
    assert!(services.start("counter", |_, _| ()).is_err(), "its name is taken");
    assert!(services.stop("counter"));
    assert!(things.local().find("count").is_err_and(|error| error.code() == Code::NOT_FOUND));
    assert!(!services.stop("counter"));
    assert!(
        services.start("counter", |things, _| drop(things.local().find("x").map(|x| x.get(&Get::default())))).is_ok()
    );
}
