use std::sync::{Arc, Mutex, OnceLock};

use thalweg_coap::interaction::handler::Function;
use thalweg_coap::interaction::routes::Routes;
use thalweg_coap::interaction::server::{Notifier, Server, ServerConfig};
use thalweg_coap::message::{CoapRequest, Response, content_format};

use super::*;

fn plan(target: SocketAddr, resource: &str) -> ObserverLoadPlan {
    ObserverLoadPlan {
        target,
        resource: resource.to_owned(),
        observers: 300,
        changes: 2,
        time_limit: Duration::from_secs(20),
        server_process: Some(std::process::id()),
    }
}

/// A server with a text that clients observe and change.
fn server(observers_max: usize) -> Server {
    let (text, notifier) = (Mutex::new(Vec::new()), Arc::new(OnceLock::<Notifier>::new()));
    let told = Arc::clone(&notifier);
    let note = move |request: &CoapRequest<'_>| {
        let mut text = text.lock().expect("no handler panics");
        if request.code == Code::PUT {
            *text = request.payload.to_vec();
            told.get().into_iter().for_each(|notifier| notifier.change("/note"));
            return Response::new(Code::CHANGED);
        }
        Response::content(text.clone(), content_format::TEXT).observable()
    };
    let routes = Routes::new()
        .add("/note", Function::inline(note))
        .add("/fixed", Function::inline(|_: &CoapRequest<'_>| Response::content("x", content_format::TEXT)));
    let mut config = ServerConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    config.endpoint.observe.observers_max = observers_max;
    let server = Server::start(&config, routes).expect("started");
    assert!(notifier.set(server.notifier()).is_ok());
    server
}

#[test]
fn every_observer_is_told_of_every_change_and_leaves() {
    let server = server(10_000);
    let plan = plan(server.address(), "/note");
    let result = run_observers(&plan, &AtomicBool::new(false)).expect("a result");
    assert_eq!((result.told_apart_by, result.registered, result.refused), (ObserverIdentity::Address, 300, 0));
    assert_eq!(result.changes.len(), 2);
    for change in &result.changes {
        assert_eq!((change.reached, change.missing), (300, 0));
        assert!(change.p50_us <= change.p99_us && change.p99_us <= change.max_us, "{change:?}");
        assert!(change.max_us.is_some_and(f64::is_finite), "{change:?}");
    }
    assert!(result.memory.is_some_and(|memory| memory.before_kib > 0));
    let end = clock::now() + Duration::from_secs(20);
    while server.snapshot().protocol[0].observers > 0 {
        assert!(clock::now() < end, "all have left");
        std::thread::sleep(Duration::from_millis(10));
    }
    let written = serde_json::to_string(&result).expect("JSON");
    let read: ObserverLoadResult = serde_json::from_str(&written).expect("it can be read");
    assert_eq!((read.schema, read.registered), ("thalweg.coap-observer-load/1".to_owned(), 300));
}

#[test]
fn registrations_that_a_server_refuses_are_counted_and_a_resource_that_cannot_be_observed_is_told() {
    let server = server(100);
    let result = run_observers(&plan(server.address(), "/note"), &AtomicBool::new(false)).expect("a result");
    // Hosts with one registration each do not make room for each other.
    assert_eq!((result.registered, result.refused), (100, 200));
    assert!(result.changes.iter().all(|change| (change.reached, change.missing) == (100, 0)));
    let error = run_observers(&plan(server.address(), "/fixed"), &AtomicBool::new(false)).expect_err("nobody observes");
    assert!(error.to_string().contains("name a resource that can be observed"), "{error}");
}

#[test]
fn observers_that_were_not_told_count_as_never() {
    let mut seats = ObserverSeats::new(4);
    seats.registered = 4;
    for (seat, millis) in seats.all.iter_mut().zip([3, 1, 2]) {
        seat.reached = Some(Duration::from_millis(millis));
    }
    seats.reached = 3;
    let figures = seats.figures();
    assert_eq!((figures.reached, figures.missing, figures.p50_us), (3, 1, Some(2000.0)));
    assert_eq!((figures.p99_us, figures.max_us), (Some(f64::INFINITY), Some(f64::INFINITY)));
}
