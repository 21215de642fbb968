//! To whom registrations belong.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::identity::SessionIdentity;
use crate::message::Response;
use crate::oscore::{Context, ContextParameters, OneRun, Past};
use crate::service::{Remote, RemoteObservation, ResponseCompletion, ResponseListener};

fn session(address: &str, identity: SessionIdentity) -> Caller {
    Caller { session: Some(Arc::new(identity)), transport: Transport::Dtls, ..at(address) }
}

/// A client with the key of this identity.
fn psk(address: &str, identity: &str) -> Caller {
    session(address, SessionIdentity::PresharedKey(identity.as_bytes().to_vec()))
}

fn subject(address: &str, subject: &str) -> Caller {
    session(address, SessionIdentity::Certificate { subject: subject.to_owned() })
}

/// The same client with an OSCORE context of its own.
fn with_oscore(caller: &Caller, id: &[u8]) -> Caller {
    let parameters = ContextParameters::new(&[7; 16], b"server", id).expect("parameters");
    Caller { oscore: Some(Context::new(&parameters, 0, Box::new(OneRun), Past::Unused)), ..caller.clone() }
}

fn registering(name: &str, links: &str) -> RequestBuf {
    RequestBuf::post(&format!("/rd?ep={name}&lt=60"), links)
}

#[test]
fn a_name_is_its_first_registrants_until_the_registration_ends() {
    let world = World::new();
    let (first, other) = (at("192.0.2.1:7"), at("192.0.2.2:7"));
    assert_eq!(world.ask_as(&first, &registering("a", "</x>")), "2.01 rd/1");
    for refused in [
        registering("a", "</evil>"),
        RequestBuf::post("/rd?ep=a&base=coap://evil", "</x>"),
        RequestBuf::post("/rd/1?base=coap://evil", ""),
        RequestBuf::delete("/rd/1"),
    ] {
        let said = world.ask_as(&other, &refused);
        assert!(said.starts_with("4.03 "), "{said}");
    }
    for unknown in [RequestBuf::post("/rd/1/0000000000000000", ""), RequestBuf::delete("/rd/1/0")] {
        let said = world.ask_as(&other, &unknown);
        assert!(said.starts_with("4.04 "), "{said}");
    }
    assert_eq!(world.resources(""), "2.05 <coap://192.0.2.1:7/x>");
    assert_eq!(world.ask_as(&other, &registering("a&d=another", "</y>")), "2.01 rd/2", "names are those of a sector");
    assert_eq!(world.ask_as(&at("192.0.2.1:8"), &registering("a", "</z>")), "2.01 rd/1", "ports change");
    assert_eq!(world.resources("href=/rd/1"), "2.05 <coap://192.0.2.1:8/z>");
    world.seconds.store(60, Ordering::Relaxed);
    assert_eq!(world.ask_as(&other, &registering("a", "</x>")), "2.01 rd/3");
}

#[test]
fn lookups_do_not_tell_where_a_registration_is_changed() {
    let world = World::new();
    world.register("ep=a", "</x>");
    world.register("ep=b", "</x>");
    let (one, other) = (world.location("1"), world.location("2"));
    let key = |location: &str| location.rsplit('/').next().expect("a key").to_owned();
    assert!(key(&one).len() == 16 && key(&one) != key(&other));
    for path in ["/rd-lookup/ep", "/rd-lookup/res", "/rd/1"] {
        assert!(!world.ask(&RequestBuf::get(path)).contains(&key(&one)), "{path}");
    }
    let again = World::new();
    again.register("ep=a", "</x>");
    assert_ne!(again.location("1"), one, "nobody refreshes what is another's after a restart");
}

#[track_caller]
fn check(owner: &Caller, others: &[(&Caller, &str)], same: &Caller) {
    let world = World::new();
    assert_eq!(world.ask_as(owner, &registering("a", "</x>")), "2.01 rd/1");
    let location = world.location("1");
    for (other, expect) in others {
        for request in [registering("a", "</evil>"), RequestBuf::post(&location, ""), RequestBuf::delete(&location)] {
            let said = world.ask_as(other, &request);
            assert!(said.starts_with(*expect), "{:?} of {other:?}: {said}", request.code());
        }
    }
    // Whoever is the same may do so from anywhere, and the base follows.
    assert_eq!(world.ask_as(same, &RequestBuf::post(&location, "")), "2.04 ");
    let base = format!("{}://{}", same.transport.scheme(), same.address);
    assert_eq!(world.resources(""), format!("2.05 <{base}/x>"));
    assert_eq!(world.ask_as(same, &registering("a", "</y>")), "2.01 rd/1");
    assert_eq!(world.location("1"), location);
    // The more it proved since is not asked for.
    assert_eq!(world.ask_as(owner, &RequestBuf::post(&location, "")), "2.04 ");
    assert_eq!(world.ask_as(same, &RequestBuf::delete(&location)), "2.02 ");
}

#[test]
fn what_was_proved_once_is_proved_for_each_change() {
    let here = "192.0.2.1:7";
    let there = "198.51.100.1:7";
    let (plain, elsewhere) = (at(here), at(there));
    let (porter, guest) = (psk(here, "porter"), psk(here, "guest"));
    let named = subject(here, "CN=porter");
    let context = with_oscore(&plain, b"porter");
    let other_context = with_oscore(&plain, b"guest");
    check(
        &porter,
        &[(&plain, "4.01"), (&elsewhere, "4.01"), (&guest, "4.03"), (&named, "4.03"), (&context, "4.03")],
        &psk(there, "porter"),
    );
    check(
        &named,
        &[(&plain, "4.01"), (&porter, "4.03"), (&subject(here, "CN=x"), "4.03")],
        &subject(there, "CN=porter"),
    );
    check(
        &context,
        &[(&plain, "4.01"), (&other_context, "4.03"), (&porter, "4.03")],
        &with_oscore(&elsewhere, b"porter"),
    );
    let both = with_oscore(&porter, b"porter");
    check(
        &both,
        &[(&porter, "4.03"), (&context, "4.03"), (&plain, "4.01")],
        &with_oscore(&psk(there, "porter"), b"porter"),
    );
    check(&porter, &[(&plain, "4.01")], &with_oscore(&psk(there, "porter"), b"porter"));
}

#[test]
fn a_proof_goes_before_an_address_and_not_the_other_way_round() {
    let world = World::new();
    let plain = at("192.0.2.1:7");
    assert_eq!(world.ask_as(&plain, &registering("a", "</x>")), "2.01 rd/1");
    assert_eq!(world.ask_as(&psk("192.0.2.2:7", "porter"), &registering("a", "</y>")), "2.01 rd/1");
    let location = world.location("1");
    for request in [registering("a", "</x>"), RequestBuf::post(&location, ""), RequestBuf::delete(&location)] {
        let said = world.ask_as(&plain, &request);
        assert!(said.starts_with("4.01 "), "{said}");
    }
    assert_eq!(world.resources(""), "2.05 <coaps://192.0.2.2:7/y>");
}

#[test]
fn what_a_client_proved_counts_as_memory() {
    let world = World::new();
    world.ask_as(&psk("192.0.2.1:7", "x"), &registering("a", ""));
    let bytes = world.handler.counts().bytes;
    world.ask_as(&psk("192.0.2.1:7", &"x".repeat(1000)), &registering("b", ""));
    assert!(world.handler.counts().bytes >= 2 * bytes + 999);
}

/// The way from a host whose address changes to a directory.
struct Roaming {
    handler: DirectoryHandler,
    address: Mutex<SocketAddr>,
    asked: Mutex<Vec<Code>>,
}

struct Nothing;

impl RemoteObservation for Nothing {}

impl Remote for Roaming {
    fn request(&self, _thing: &str, request: RequestBuf, completion: ResponseCompletion) {
        let caller = Caller::anonymous(*self.address.lock().expect("a lock"), Transport::Udp);
        let response = self.handler.handle(&request.view().of(&caller));
        let response = response.unwrap_or_else(|| Response::new(Code::NOT_FOUND));
        self.asked.lock().expect("a lock").push(response.code);
        completion(Ok(response));
    }

    fn observe(&self, _thing: &str, _request: RequestBuf, _listener: ResponseListener) -> Box<dyn RemoteObservation> {
        Box::new(Nothing)
    }
}

#[test]
fn a_thing_stays_registered_where_its_address_changes() {
    let world = World::new();
    let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
    let way = Arc::new(Roaming {
        handler: world.handler.clone(),
        address: Mutex::new(address("192.0.2.1:40000")),
        asked: Mutex::default(),
    });
    let plan = RegistrationPlan {
        directory: "directory:5683".to_owned(),
        endpoint: "a".to_owned(),
        sector: String::new(),
        base: Some("coap://h".to_owned()),
        lifetime: Duration::from_secs(60),
    };
    let mut registration = Registration::new(plan, Arc::clone(&way) as Arc<dyn Remote>);
    let mut renew = |links: &str| {
        let outcome = registration.renew(links.to_owned());
        (outcome.map_err(|error| error.code()), std::mem::take(&mut *way.asked.lock().expect("a lock")))
    };
    assert_eq!(renew("</x>"), (Ok(()), vec![Code::CREATED]));
    *way.address.lock().expect("a lock") = address("192.0.2.2:40000");
    assert_eq!(renew("</x>"), (Ok(()), vec![Code::CHANGED]));
    *way.address.lock().expect("a lock") = address("192.0.2.3:40000");
    assert_eq!(renew("</x>,</y>"), (Ok(()), vec![Code::CHANGED, Code::CREATED]));
    assert_eq!(world.resources(""), "2.05 <coap://h/x>,<coap://h/y>");
    world.seconds.store(60, Ordering::Relaxed);
    assert_eq!(renew("</x>"), (Ok(()), vec![Code::NOT_FOUND, Code::CREATED]), "it was forgotten");
    world.seconds.store(120, Ordering::Relaxed);
    assert_eq!(world.ask_as(&at("192.0.2.9:7"), &registering("a", "</z>")), "2.01 rd/3");
    assert_eq!(renew("</x>"), (Err(Code::FORBIDDEN), vec![Code::NOT_FOUND, Code::FORBIDDEN]));
    assert_eq!(renew("</x>"), (Err(Code::FORBIDDEN), vec![Code::FORBIDDEN]));
}
