//! How many proxies a request may pass (RFC 8768).

use super::*;

/// A proxy to anywhere.
fn forward(relay: Relay) -> ForwardProxy {
    ForwardProxy::new(relay, Destinations::new(["*"]).expect("destinations"))
}

fn with_hops(code: Code, uri: &str, hops: &[u8]) -> RequestBuf {
    proxied(code, uri).with_option(OptionNumber::HOP_LIMIT, hops)
}

#[test]
fn every_request_goes_on_with_one_hop_less() {
    let (relay, origin) = relay();
    let reverse = RemoteName { thing: "10.0.0.7:5683".to_owned(), path: String::new() };
    let reverse = ReverseProxy::new(relay.clone(), "/far", reverse);
    let proxy = forward(relay);
    let went_on_with = || {
        let (_, onward) = origin.asked.lock().expect("a lock").pop().expect("asked");
        onward.view().options.values(OptionNumber::HOP_LIMIT).map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    for code in [Code::GET, Code::PUT, Code::POST, Code::DELETE, Code::FETCH] {
        proxy.handle(&proxied(code, &format!("coap://lamp/{}", code.byte())).view());
        assert_eq!(went_on_with(), [vec![15]], "{code} without a limit");
        for hops in [2, 5, 255] {
            let uri = format!("coap://lamp/{}/{hops}", code.byte());
            proxy.handle(&with_hops(code, &uri, &[hops]).view());
            assert_eq!(went_on_with(), [vec![hops - 1]], "{code} {hops}");
            let far = RequestBuf::new(code, &format!("/far/{}/{hops}", code.byte()));
            reverse.handle(&far.with_option(OptionNumber::HOP_LIMIT, &[hops]).view()).expect("its path");
            assert_eq!(went_on_with(), [vec![hops - 1]], "{code} {hops} reverse");
        }
    }
}

#[test]
fn the_last_hop_is_told_of_and_no_hop_is_wrong_also_where_the_answer_is_known() {
    let (relay, origin) = relay();
    let proxy = forward(relay.with_identifier("p 1"));
    let uri = "coap://lamp/t";
    assert_eq!(shown(&proxy.handle(&proxied(Code::GET, uri).view())), "2.05 /t ");
    for code in [Code::GET, Code::PUT] {
        assert_eq!(shown(&proxy.handle(&with_hops(code, uri, &[1]).view())), "5.08 p-1");
        for wrong in [&[0][..], &[], &[1, 0]] {
            let said = shown(&proxy.handle(&with_hops(code, uri, wrong).view()));
            assert!(said.starts_with("4.00 Hop-Limit"), "{code} {wrong:?}: {said}");
        }
    }
    assert_eq!(shown(&proxy.handle(&with_hops(Code::GET, uri, &[2]).view())), "2.05 /t ");
    assert_eq!(origin.asked.lock().expect("a lock").len(), 1, "nothing else went on, and the answer was kept");
}

/// A thing behind another proxy, which says that the limit was reached.
struct Exhausted(&'static str);

impl Remote for Exhausted {
    fn request(&self, _thing: &str, _request: RequestBuf, completion: ResponseCompletion) {
        completion(Ok(Response::error(Code::HOP_LIMIT_REACHED, self.0)));
    }

    fn observe(&self, _thing: &str, _request: RequestBuf, _listener: ResponseListener) -> Box<dyn RemoteObservation> {
        Box::new(Nothing)
    }
}

/// A relay named `p1`.
fn relay_to(remote: Arc<dyn Remote>) -> Relay {
    let things = Things::new(LocalStore::new(), Arc::clone(&remote), 100_000, system_clock());
    Relay::new(things, remote, Duration::from_secs(5)).with_identifier("p1")
}

#[test]
fn each_proxy_on_the_way_back_names_itself_once() {
    for code in [Code::GET, Code::PUT] {
        let said = |others: &'static str| {
            let proxy = forward(relay_to(Arc::new(Exhausted(others))));
            shown(&proxy.handle(&proxied(code, "coap://lamp/t").view()))
        };
        assert_eq!(said("p2 p3"), "5.08 p1 p2 p3");
        assert_eq!(said(""), "5.08 p1");
        let loops = said("p2 p1");
        assert!(loops.starts_with("5.02 ") && loops.ends_with("loop of proxies: p2 p1"), "{loops}");
    }
    let things = Things::new(LocalStore::new(), Arc::new(Exhausted("p2 p3")), 100_000, system_clock());
    let error = things.request("coap://lamp/t").expect_err("it was not reached").to_string();
    assert_eq!(error, "the request passed too many proxies: p2 p3");
}

/// A thing for which the proxy asks itself.
#[derive(Default)]
struct Circle {
    proxy: Mutex<Option<Arc<ForwardProxy>>>,
    asked: AtomicUsize,
}

impl Remote for Circle {
    fn request(&self, _thing: &str, request: RequestBuf, completion: ResponseCompletion) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let proxy = self.proxy.lock().expect("a lock").clone().expect("a proxy");
        let hops = request.view().options.value(OptionNumber::HOP_LIMIT).map(<[u8]>::to_vec);
        // Without a limit it would never end.
        let again = with_hops(request.code(), "coap://lamp/t", &hops.expect("a limit"));
        std::thread::spawn(move || completion(Ok(proxy.handle(&again.view()))));
    }

    fn observe(&self, _thing: &str, _request: RequestBuf, _listener: ResponseListener) -> Box<dyn RemoteObservation> {
        Box::new(Nothing)
    }
}

#[test]
fn a_loop_of_proxies_ends_whatever_is_asked() {
    for code in [Code::GET, Code::PUT] {
        let circle = Arc::new(Circle::default());
        let proxy = Arc::new(forward(relay_to(Arc::clone(&circle) as Arc<dyn Remote>)));
        *circle.proxy.lock().expect("a lock") = Some(Arc::clone(&proxy));
        let said = shown(&proxy.handle(&proxied(code, "coap://lamp/t").view()));
        assert!(said.starts_with("5.02 ") && said.ends_with("loop of proxies: p1"), "{code}: {said}");
        assert_eq!(circle.asked.load(Ordering::Relaxed), 15, "{code}");
        *circle.proxy.lock().expect("a lock") = None;
    }
}
