//! A client that waits for one answer while others come.

use super::*;

#[test]
fn what_comes_for_others_during_an_exchange_is_told_after_it() {
    let (state, (begin, began)) = (Arc::new(AtomicU32::new(1)), channel());
    let seen = Arc::clone(&state);
    let observed = Function::inline(move |_| text(seen.load(Ordering::SeqCst).to_string()).observable());
    let slow = Function::pooled(ClassId::BLOCKING, move |_| {
        begin.send(()).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        text("slow")
    });
    let routes = Routes::new().add("/state", observed).add("/slow", slow);
    let config = ServerConfig::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let server = Server::start(&config, routes).unwrap();
    let mut client = Client::open(server.address(), Config::default()).unwrap();
    let patience = Duration::from_secs(20);
    let request = RequestBuf::get("/state").with_observe(crate::message::Observe::Register);
    let registration = client.send(server.address(), request, Confirmability::Confirmable).unwrap();
    assert!(matches!(client.next(patience).unwrap(), Some(EndpointEvent::Response { .. })));
    let notifier = server.notifier();
    let change = std::thread::spawn(move || {
        began.recv().unwrap();
        state.store(2, Ordering::SeqCst);
        notifier.change("/state");
    });
    let request = RequestBuf::get("/slow");
    let answer = client.exchange(server.address(), request, Confirmability::Confirmable, patience).unwrap();
    assert_eq!(&*answer.payload, b"slow");
    change.join().unwrap();
    let event = client.next(patience).unwrap();
    let Some(EndpointEvent::Response { request, response, .. }) = event else { panic!("{event:?}") };
    assert_eq!((request, &*response.payload), (registration, &b"2"[..]));
}
