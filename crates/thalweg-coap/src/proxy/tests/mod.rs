mod hops;
mod options;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::interaction::handler::Handler;
use crate::message::{Code, ETag, OptionNumber, RequestBuf, Response, content_format};
use crate::resource::{LocalStore, RemoteName, system_clock};
use crate::service::{Remote, RemoteObservation, ResponseCompletion, ResponseListener, Things};

/// Another thing that answers at once and remembers what it was asked.
#[derive(Default)]
struct Origin {
    asked: Mutex<Vec<(String, RequestBuf)>>,
}

struct Nothing;

impl RemoteObservation for Nothing {}

impl Remote for Origin {
    fn request(&self, thing: &str, request: RequestBuf, completion: ResponseCompletion) {
        let path = request.view().path();
        self.asked.lock().expect("a lock").push((thing.to_owned(), request.clone()));
        completion(Ok(match (request.code(), path.as_str()) {
            (Code::GET, "/gone") => Response::error(Code::NOT_FOUND, "gone"),
            (Code::GET, _) => {
                let etag = ETag::new(&[7]).expect("a tag");
                let text = format!("{path} {}", request.view().queries().collect::<Vec<_>>().join("&"));
                Response::content(text, content_format::TEXT).with_max_age(60).with_etag(etag).observable()
            }
            // The payload is the location of what was made.
            (Code::POST, _) => {
                let location = String::from_utf8_lossy(request.view().payload).into_owned();
                let (place, query) = location.split_once('?').unwrap_or((&location, ""));
                let add = |response: Response, segment: &str| {
                    response.with_option(OptionNumber::LOCATION_PATH, segment.as_bytes())
                };
                let response = Response::new(Code::CREATED).with_option(OptionNumber(2052), b"x");
                let segments = place.split('/').filter(|segment| !segment.is_empty());
                let response = segments.fold(response, add);
                match query {
                    "" => response,
                    _ => response.with_option(OptionNumber::LOCATION_QUERY, query.as_bytes()),
                }
            }
            _ => Response::new(Code::CHANGED),
        }));
    }

    fn observe(&self, _thing: &str, _request: RequestBuf, _listener: ResponseListener) -> Box<dyn RemoteObservation> {
        Box::new(Nothing)
    }
}

fn relay() -> (Relay, Arc<Origin>) {
    let origin = Arc::new(Origin::default());
    let things = Things::new(LocalStore::new(), Arc::clone(&origin) as Arc<dyn Remote>, 100_000, system_clock());
    (Relay::new(things, Arc::clone(&origin) as Arc<dyn Remote>, Duration::from_secs(5)), origin)
}

fn shown(response: &Response) -> String {
    format!("{} {}", response.code, String::from_utf8_lossy(&response.payload))
}

fn proxied(code: Code, uri: &str) -> RequestBuf {
    RequestBuf::new(code, "/").with_option(OptionNumber::PROXY_URI, uri.as_bytes())
}

#[track_caller]
fn check(uri: &str, expect: Option<(&str, &str)>) {
    let name = ProxyUri::parse(uri).map(|uri| uri.name());
    match (name, expect) {
        (Ok(name), Some(expect)) => assert_eq!((name.thing.as_str(), name.path.as_str()), expect),
        (Err(_), None) => {}
        (name, expect) => panic!("{uri}: {name:?}, expected {expect:?}"),
    }
}

#[test]
fn uris_to_ask_for_are_read_whole_or_not_at_all() {
    check("coap://h/a/b?c=d&e", Some(("h:5683", "a/b?c=d&e")));
    check("coap://[2001:DB8::1]:99", Some(("[2001:db8::1]:99", "")));
    check("coap://h?x", Some(("h:5683", "?x")));
    check("coap://h/a..b/...?..", Some(("h:5683", "a..b/...?..")));
    for wrong in
        ["", "h/a", "coap://", "coap://h:0/", "coap://h:x/", "coap://h/%4", "coap://h/#f", "coap://u@h/", "coap://[::1"]
    {
        check(wrong, None);
    }
    for step in [".", "..", "a/../b", "a/.%2E?x", "%2e/a"] {
        check(&format!("coap://h/{step}"), None);
    }
}

#[test]
fn a_forward_proxy_asks_once_while_the_answer_is_fresh() {
    let (relay, origin) = relay();
    let proxy = ForwardProxy::new(relay, Destinations::new(["10.0.0.0/8", "lamp"]).expect("destinations"));
    let get = proxied(Code::GET, "coap://10.1.2.3:99/t?unit=Cel");
    for _ in 0..3 {
        let response = proxy.handle(&get.view());
        assert_eq!(shown(&response), "2.05 /t unit=Cel");
        assert!(response.max_age.is_some_and(|age| (58..=60).contains(&age)) && response.observe.is_none());
        assert_eq!(response.etag, ETag::new(&[7]), "the origin's tag, for conditional requests");
    }
    assert_eq!(origin.asked.lock().expect("a lock").len(), 1);
    let with_tag = get.clone().with_option(OptionNumber::ETAG, &[7]);
    assert_eq!(shown(&proxy.handle(&with_tag.view())), "2.03 ");
    let put =
        proxied(Code::PUT, "coap://10.1.2.3:99/t?unit=Cel").with_payload("1").with_option(OptionNumber::IF_MATCH, &[7]);
    assert_eq!(shown(&proxy.handle(&put.view())), "2.04 ");
    let (thing, onward) = origin.asked.lock().expect("a lock").last().cloned().expect("asked");
    let view = onward.view();
    assert_eq!((thing.as_str(), view.payload, view.if_match().count()), ("10.1.2.3:99", &b"1"[..], 1));
    assert_eq!(view.options.value(OptionNumber::HOP_LIMIT), Some(&[15][..]));
    assert!(view.options.value(OptionNumber::PROXY_URI).is_none());
    proxy.handle(&get.view());
    assert_eq!(origin.asked.lock().expect("a lock").len(), 3, "what was written is asked for again");
    assert_eq!(shown(&proxy.handle(&proxied(Code::GET, "coap://lamp/gone").view())), "4.04 gone");
}

#[test]
fn a_forward_proxy_goes_nowhere_else() {
    let (relay, origin) = relay();
    let proxy =
        ForwardProxy::new(relay, Destinations::new(["10.0.0.0/8", "lamp", "2001:db8::/32"]).expect("destinations"));
    let said = |uri: &str| shown(&proxy.handle(&proxied(Code::GET, uri).view()));
    for uri in
        ["coap://127.0.0.1/", "coap://11.0.0.1/", "coap://lamp.example/", "coap://[::1]/", "coap://[::ffff:127.0.0.1]/"]
    {
        assert!(said(uri).starts_with("4.03 this proxy does not go to"), "{uri}: {}", said(uri));
    }
    assert!(said("http://lamp/").starts_with("5.05"));
    assert!(said("lamp").starts_with("4.02"));
    assert_eq!(origin.asked.lock().expect("a lock").len(), 0);
    assert!(said("coap://[2001:db8:1::5]/x").starts_with("2.05"));
    let by_scheme = RequestBuf::get("/x%2Fy?q")
        .with_option(OptionNumber::PROXY_SCHEME, b"coap")
        .with_option(OptionNumber::URI_HOST, b"lamp")
        .with_uint(OptionNumber::URI_PORT, 99);
    assert_eq!(shown(&proxy.handle(&by_scheme.view())), "2.05 /x/y q");
    assert_eq!(origin.asked.lock().expect("a lock").last().expect("asked").0, "lamp:99");
    for wrong in ["10.0.0.0/33", "a b", "", "x/8"] {
        assert!(Destinations::new([wrong]).is_err(), "{wrong}");
    }
}

#[test]
fn a_reverse_proxy_stands_for_the_paths_of_another_thing() {
    let (relay, origin) = relay();
    let target = RemoteName { thing: "10.0.0.7:5683".to_owned(), path: "v1".to_owned() };
    let proxy = ReverseProxy::new(relay, "/house/boiler/", target);
    let said = |path: &str| proxy.handle(&RequestBuf::get(path).view()).map(|response| shown(&response));
    assert_eq!(said("/house/boiler/temp?x=1"), Some("2.05 /v1/temp x=1".to_owned()));
    assert_eq!(said("/house/boiler"), Some("2.05 /v1 ".to_owned()));
    assert_eq!(said("/house/boil"), None);
    assert_eq!(said("/house"), None);
    assert!(origin.asked.lock().expect("a lock").iter().all(|(thing, _)| thing == "10.0.0.7:5683"));
}

#[test]
fn a_reverse_proxy_asks_once_while_the_answer_is_fresh_and_again_after_a_change() {
    let (relay, origin) = relay();
    let target = RemoteName { thing: "10.0.0.7:5683".to_owned(), path: "v1".to_owned() };
    let proxy = ReverseProxy::new(relay, "/house", target);
    let ask = |request: &RequestBuf| shown(&proxy.handle(&request.view()).expect("its path"));
    let asked = || origin.asked.lock().expect("a lock").len();
    for _ in 0..3 {
        assert_eq!(ask(&RequestBuf::get("/house/temp?x=1")), "2.05 /v1/temp x=1");
        assert_eq!(asked(), 1);
    }
    assert_eq!(ask(&RequestBuf::get("/house/temp?x=2")), "2.05 /v1/temp x=2");
    assert_eq!(asked(), 2, "another query is another resource");
    assert_eq!(ask(&RequestBuf::put("/house/temp?x=1", "1")), "2.04 ");
    assert_eq!(ask(&RequestBuf::get("/house/temp?x=1")), "2.05 /v1/temp x=1");
    assert_eq!(asked(), 4, "what was written is asked for again");
}

/// The location of a response, behind its code.
fn located(response: &Response) -> String {
    let of = |wanted: OptionNumber, mark: &str| {
        let values = response.options.iter().filter(move |(number, _)| *number == wanted);
        values.map(|(_, value)| format!("{mark}{}", String::from_utf8_lossy(value))).collect::<String>()
    };
    let rest = response.options.iter().filter(|(number, _)| *number == OptionNumber(2052)).count();
    let (path, query) = (of(OptionNumber::LOCATION_PATH, "/"), of(OptionNumber::LOCATION_QUERY, "?"));
    format!("{} {path}{query} {rest}", response.code)
}

#[test]
fn what_is_made_behind_a_reverse_proxy_has_its_location_there_or_none() {
    let (relay, _) = relay();
    let made = |root: &str, there: &str, location: &str| {
        let target = RemoteName { thing: "10.0.0.7:5683".to_owned(), path: there.to_owned() };
        let proxy = ReverseProxy::new(relay.clone(), root, target);
        let request = RequestBuf::post(&format!("{root}/items"), location);
        located(&proxy.handle(&request.view()).expect("its path"))
    };
    assert_eq!(made("/house/boiler", "v1", "/v1/items/7"), "2.01 /house/boiler/items/7 1");
    assert_eq!(made("/house/boiler", "/v%31/", "/v1/items/7?a=b"), "2.01 /house/boiler/items/7?a=b 1");
    assert_eq!(made("/house/boiler", "", "/items/7"), "2.01 /house/boiler/items/7 1");
    assert_eq!(made("/house/boiler", "v1", "/v1"), "2.01 /house/boiler 1");
    assert_eq!(
        made("/house/boiler", "v1", "?a=b"),
        "2.01 ?a=b 1",
        "a query alone is one of the path that was asked for"
    );
    assert_eq!(made("/house/boiler", "v1", ""), "2.01  1");
    for elsewhere in ["/v2/items/7", "/v1x/7", "/items/7?a=b", "/v1/../items"] {
        assert_eq!(made("/house/boiler", "v1", elsewhere), "2.01  1", "{elsewhere}");
    }
    let (relay, _) = self::relay();
    let proxy = ForwardProxy::new(relay, Destinations::new(["*"]).expect("destinations"));
    let post = proxied(Code::POST, "coap://lamp/v1/items").with_payload("/v1/items/7?a=b");
    assert_eq!(located(&proxy.handle(&post.view())), "2.01 /v1/items/7?a=b 1", "the client knows whose it is");
}

proptest::proptest! {
    #[test]
    fn a_uri_that_is_read_names_what_is_read_again(text in "(coap|http)://[a-z0-9:\\[\\].~-]{0,12}[/?][a-z0-9%/?&=:@-]{0,16}") {
        if let Ok(uri) = ProxyUri::parse(&text) {
            let name = uri.name();
            let again = ProxyUri::parse(&format!("{}://{}/{}", uri.scheme, name.thing, name.path));
            proptest::prop_assert_eq!(again, Ok(uri));
        }
    }
}

#[test]
fn a_host_that_is_known_by_a_name_is_called_by_it() {
    let (relay, origin) = relay();
    let proxy = ForwardProxy::new(relay, Destinations::new(["*"]).expect("destinations"));
    for code in [Code::GET, Code::PUT] {
        for (uri, expect) in [
            ("coap://lamp/t", Some(&b"lamp"[..])),
            ("coap://lamp:99/t", Some(b"lamp")),
            ("coap://192.0.2.1/t", None),
            ("coap://[2001:db8::1]/t", None),
        ] {
            proxy.handle(&proxied(code, uri).view());
            let (_, onward) = origin.asked.lock().expect("a lock").pop().expect("asked");
            assert_eq!(onward.view().options.value(OptionNumber::URI_HOST), expect, "{code} {uri}");
        }
    }
}

/// A thing that does not say what its payload is.
struct Silent;

impl Remote for Silent {
    fn request(&self, _thing: &str, _request: RequestBuf, completion: ResponseCompletion) {
        completion(Ok(Response { content_format: None, ..Response::content(vec![0xff, 0], content_format::TEXT) }));
    }

    fn observe(&self, _thing: &str, _request: RequestBuf, _listener: ResponseListener) -> Box<dyn RemoteObservation> {
        Box::new(Nothing)
    }
}

#[test]
fn a_payload_whose_format_nobody_names_gets_none() {
    let origin: Arc<dyn Remote> = Arc::new(Silent);
    let things = Things::new(LocalStore::new(), Arc::clone(&origin), 100_000, system_clock());
    let relay = Relay::new(things, origin, Duration::from_secs(5));
    let proxy = ForwardProxy::new(relay, Destinations::new(["*"]).expect("destinations"));
    for _ in 0..2 {
        let response = proxy.handle(&proxied(Code::GET, "coap://lamp/t").view());
        assert_eq!((response.content_format, &*response.payload), (None, &[0xff, 0][..]));
    }
}

/// A thing that has no time, and says so in a format of its own.
struct Busy;

impl Remote for Busy {
    fn request(&self, _thing: &str, _request: RequestBuf, completion: ResponseCompletion) {
        let busy = Response::error(Code::SERVICE_UNAVAILABLE, vec![0xa1, 1, 2]).with_max_age(7);
        let busy = Response { content_format: Some(content_format::CBOR), observe: Some(3), ..busy };
        completion(Ok(busy.with_option(OptionNumber(2052), b"x")));
    }

    fn observe(&self, _thing: &str, _request: RequestBuf, _listener: ResponseListener) -> Box<dyn RemoteObservation> {
        Box::new(Nothing)
    }
}

#[test]
fn an_error_goes_on_as_it_came_whatever_was_asked() {
    let origin: Arc<dyn Remote> = Arc::new(Busy);
    let things = Things::new(LocalStore::new(), Arc::clone(&origin), 100_000, system_clock());
    let relay = Relay::new(things, origin, Duration::from_secs(5));
    let proxy = ForwardProxy::new(relay, Destinations::new(["*"]).expect("destinations"));
    for code in [Code::GET, Code::PUT] {
        let response = proxy.handle(&proxied(code, "coap://lamp/t").view());
        assert_eq!((response.code, response.max_age), (Code::SERVICE_UNAVAILABLE, Some(7)), "{code}");
        assert_eq!(&*response.payload, [0xa1, 1, 2], "{code}");
        assert_eq!((response.content_format, response.observe), (Some(content_format::CBOR), None), "{code}");
        assert_eq!(response.options, [(OptionNumber(2052), b"x".to_vec())], "{code}");
    }
}

/// A thing that answers all but GET when the test says so.
#[derive(Default)]
struct Slow {
    completions: Mutex<Vec<ResponseCompletion>>,
    gets: AtomicUsize,
}

impl Remote for Slow {
    fn request(&self, _thing: &str, request: RequestBuf, completion: ResponseCompletion) {
        if request.code() == Code::GET {
            let get = self.gets.fetch_add(1, Ordering::Relaxed);
            return completion(Ok(Response::content(get.to_string(), content_format::TEXT).with_max_age(60)));
        }
        self.completions.lock().expect("a lock").push(completion);
    }

    fn observe(&self, _thing: &str, _request: RequestBuf, _listener: ResponseListener) -> Box<dyn RemoteObservation> {
        Box::new(Nothing)
    }
}

#[test]
fn what_is_written_is_asked_for_again_however_late_the_answer_is() {
    let origin = Arc::new(Slow::default());
    let as_remote = Arc::clone(&origin) as Arc<dyn Remote>;
    let things = Things::new(LocalStore::new(), Arc::clone(&as_remote), 100_000, system_clock());
    let relay = Relay::new(things, as_remote, Duration::from_millis(10));
    let proxy = ForwardProxy::new(relay, Destinations::new(["*"]).expect("destinations"));
    let said = |code| shown(&proxy.handle(&proxied(code, "coap://lamp/t").view()));
    assert_eq!((said(Code::GET), said(Code::GET)), ("2.05 0".to_owned(), "2.05 0".to_owned()));
    assert!(said(Code::PUT).starts_with("5.04"), "it takes too long");
    assert_eq!((said(Code::GET), said(Code::GET)), ("2.05 1".to_owned(), "2.05 1".to_owned()));
    let completion = origin.completions.lock().expect("a lock").pop().expect("a request");
    completion(Ok(Response::new(Code::CHANGED)));
    assert_eq!(said(Code::GET), "2.05 2", "the change may have come after the last state");
    // A FETCH reads only.
    assert!(said(Code::FETCH).starts_with("5.04"));
    let completion = origin.completions.lock().expect("a lock").pop().expect("a request");
    completion(Ok(Response::new(Code::CONTENT)));
    assert_eq!(said(Code::GET), "2.05 2");
    assert!(said(Code::PUT).starts_with("5.04"));
    let way = Arc::downgrade(&origin);
    drop((proxy, origin));
    assert!(way.upgrade().is_none(), "it ends with the proxy, whatever is under way");
}
