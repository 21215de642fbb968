mod ending;
mod ownership;
mod strangers;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_base::time::Instant;

use super::*;
use crate::identity::{Caller, Transport};
use crate::message::{Code, OptionNumber, RequestBuf, content_format};

/// A directory with a clock that the test turns.
struct World {
    handler: DirectoryHandler,
    seconds: Arc<AtomicU64>,
    /// Where registrations are kept up, by their numbers.
    locations: RefCell<HashMap<String, String>>,
}

/// A client that proves nothing but that it is there.
fn at(address: &str) -> Caller {
    Caller { has_proved_address: true, ..unproved(address) }
}

/// One whose address may be forged.
fn unproved(address: &str) -> Caller {
    Caller::anonymous(address.parse().expect("an address"), Transport::Udp)
}

impl World {
    fn new() -> World {
        let seconds = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&seconds);
        let clock = Arc::new(move || Instant::from_nanos(told.load(Ordering::Relaxed) * 1_000_000_000));
        World { handler: DirectoryHandler::new(clock), seconds, locations: RefCell::default() }
    }

    /// The answer to a client, with its location but for the key.
    fn ask_as(&self, caller: &Caller, request: &RequestBuf) -> String {
        let response = self.handler.handle(&request.view().of(caller)).expect("its path");
        let location: Vec<String> = (response.options.iter())
            .filter(|(number, _)| *number == OptionNumber::LOCATION_PATH)
            .map(|(_, value)| String::from_utf8_lossy(value).into_owned())
            .collect();
        if let [_, number, _] = location.as_slice() {
            self.locations.borrow_mut().insert(number.clone(), format!("/{}", location.join("/")));
        }
        let text = String::from_utf8_lossy(&response.payload).into_owned();
        format!("{} {}{text}", response.code, location[..location.len().min(2)].join("/"))
    }

    fn ask(&self, request: &RequestBuf) -> String {
        self.ask_as(&at("192.0.2.1:5683"), request)
    }

    /// Where the registration of this number is kept up.
    fn location(&self, number: &str) -> String {
        self.locations.borrow()[number].clone()
    }

    fn update(&self, number: &str, query: &str) -> String {
        self.ask(&RequestBuf::post(&format!("{}?{query}", self.location(number)), ""))
    }

    fn register(&self, query: &str, links: &str) -> String {
        self.ask(&RequestBuf::post(&format!("/rd?{query}"), links).with_content_format(content_format::LINK_FORMAT))
    }

    fn resources(&self, query: &str) -> String {
        self.ask(&RequestBuf::get(&format!("/rd-lookup/res?{query}")))
    }
}

#[test]
fn what_is_registered_is_found_until_its_lifetime_is_over() {
    let world = World::new();
    let links =
        "</sensors/temp>;rt=\"temperature\";ct=\"0 50\",</light>;rt=\"lamp\",<http://example.org/>;anchor=\"/light\"";
    assert_eq!(world.register("ep=node1&lt=60&base=coap://[2001:db8::1]&et=oic", links), "2.01 rd/1");
    assert_eq!(world.register("ep=node2&lt=600&base=coap://h:61616/&d=floor2", "</light>;rt=lamp"), "2.01 rd/2");
    assert_eq!(
        world.resources("rt=lamp"),
        "2.05 <coap://[2001:db8::1]/light>;rt=\"lamp\",<coap://h:61616/light>;rt=\"lamp\""
    );
    assert_eq!(world.resources("rt=lamp&ep=node2"), "2.05 <coap://h:61616/light>;rt=\"lamp\"");
    assert_eq!(world.resources("d=floor2&rt=temperature"), "2.05 ");
    assert_eq!(
        world.resources("et=oic&rt=temp*"),
        "2.05 <coap://[2001:db8::1]/sensors/temp>;rt=\"temperature\";ct=\"0 50\""
    );
    assert!(world.resources("href=http*").ends_with("anchor=\"coap://[2001:db8::1]/light\""));
    assert_eq!(world.resources("rt=lamp&count=1&page=1"), "2.05 <coap://h:61616/light>;rt=\"lamp\"");
    let endpoints = |query: &str| world.ask(&RequestBuf::get(&format!("/rd-lookup/ep?{query}")));
    assert_eq!(
        endpoints("rt=temperature"),
        "2.05 </rd/1>;ep=\"node1\";base=\"coap://[2001:db8::1]\";rt=\"core.rd-ep\";et=\"oic\""
    );
    world.seconds.store(60, Ordering::Relaxed);
    assert_eq!(world.resources("ep=node1"), "2.05 ");
    assert!(endpoints("").starts_with("2.05 </rd/2>"));
    assert_eq!(world.handler.counts().registrations, 1);
}

#[test]
fn a_registration_is_refreshed_replaced_read_and_removed_under_its_number() {
    let world = World::new();
    world.register("ep=a&lt=60&base=coap://h", "</x>");
    world.seconds.store(50, Ordering::Relaxed);
    let location = world.location("1");
    assert_eq!(world.ask(&RequestBuf::post(&location, "")), "2.04 ");
    world.seconds.store(100, Ordering::Relaxed);
    assert_eq!(world.register("ep=a&base=coap://h2", "</y>"), "2.01 rd/1", "the same endpoint keeps its place");
    assert_eq!(world.location("1"), location);
    assert_eq!(world.resources(""), "2.05 <coap://h2/y>");
    assert_eq!(world.ask(&RequestBuf::get("/rd/1")), "2.05 </y>");
    assert_eq!(world.ask(&RequestBuf::get(&location)), "2.05 </y>");
    for wrong in ["ep=b", "d=b", "lt=1&lt=2", "base=coap://h&base=coap://h2"] {
        assert!(world.update("1", wrong).starts_with("4.00"), "{wrong}");
    }
    let with_links = world.ask(&RequestBuf::post(&location, "</z>"));
    assert!(with_links.starts_with("4.00 an update has no payload"), "{with_links}");
    assert_eq!(world.ask(&RequestBuf::delete(&location)), "2.02 ");
    for gone in [&*location, "/rd/1", "/rd/x", "/rd/1/x"] {
        for request in [RequestBuf::delete(gone), RequestBuf::post(gone, ""), RequestBuf::get(gone)] {
            assert!(world.ask(&request).starts_with("4.04"), "{gone}");
        }
    }
    assert_eq!(world.handler.counts(), DirectoryCounts::default());
}

#[test]
fn a_base_stays_as_it_was_named_and_follows_the_endpoint_where_it_was_not() {
    let world = World::new();
    let refresh = |number: &str, query: &str, from: &str| {
        let request = RequestBuf::post(&format!("{}?{query}", world.location(number)), "");
        assert_eq!(world.ask_as(&at(from), &request), "2.04 ", "{from}");
    };
    world.register("ep=named&base=coap://h", "</x>");
    refresh("1", "", "198.51.100.1:9");
    assert_eq!(world.resources("ep=named"), "2.05 <coap://h/x>");
    world.register("ep=moved", "</y>");
    assert_eq!(world.resources("ep=moved"), "2.05 <coap://192.0.2.1/y>");
    refresh("2", "", "198.51.100.1:7");
    assert_eq!(world.resources("ep=moved"), "2.05 <coap://198.51.100.1:7/y>");
    refresh("2", "base=coap://n", "198.51.100.1:8");
    refresh("2", "", "198.51.100.1:9");
    assert_eq!(world.resources("ep=moved"), "2.05 <coap://n/y>");
}

#[test]
fn a_base_that_nobody_names_is_scheme_address_and_port_of_the_request() {
    for (transport, address, expect) in [
        (Transport::Udp, "192.0.2.1:5683", "coap://192.0.2.1"),
        (Transport::Udp, "[2001:db8::1]:61616", "coap://[2001:db8::1]:61616"),
        (Transport::Dtls, "[::ffff:192.0.2.1]:5684", "coaps://192.0.2.1"),
        (Transport::Dtls, "192.0.2.1:5683", "coaps://192.0.2.1:5683"),
        (Transport::Tcp, "[2001:db8::1]:40000", "coap+tcp://[2001:db8::1]:40000"),
        (Transport::Tls, "192.0.2.1:5684", "coaps+tcp://192.0.2.1"),
        (Transport::WebSocket, "192.0.2.1:81", "coap+ws://192.0.2.1:81"),
        (Transport::SecureWebSocket, "192.0.2.1:443", "coaps+ws://192.0.2.1"),
    ] {
        let world = World::new();
        let caller = Caller { transport, ..at(address) };
        assert_eq!(world.ask_as(&caller, &RequestBuf::post("/rd?ep=a", "</x>")), "2.01 rd/1");
        assert_eq!(world.resources(""), format!("2.05 <{expect}/x>"));
        let endpoint = world.ask(&RequestBuf::get("/rd-lookup/ep"));
        assert!(endpoint.contains(&format!("base=\"{expect}\"")), "{endpoint}");
    }
}

#[test]
fn a_link_local_address_is_told_on_its_link_alone() {
    let world = World::new();
    let here = at("[fe80::1%2]:7");
    let register =
        |caller: &Caller, query: &str| world.ask_as(caller, &RequestBuf::post(&format!("/rd?{query}"), "</x>"));
    assert_eq!(register(&here, "ep=a"), "2.01 rd/1");
    assert_eq!(register(&here, "ep=b&base=coap://[fe80::2]"), "2.01 rd/2");
    assert_eq!(register(&at("169.254.1.1:5683"), "ep=c"), "2.01 rd/3");
    assert_eq!(register(&here, "ep=d&base=coap://[2001:db8::1]"), "2.01 rd/4");
    let seen = |from: &str, kind: &str| {
        let links = world.ask_as(&at(from), &RequestBuf::get(&format!("/rd-lookup/{kind}")));
        links.matches("coap://[fe80::1]:7").count() * 1000
            + links.matches("coap://[fe80::2]").count() * 100
            + links.matches("coap://169.254.1.1").count() * 10
            + links.matches("coap://[2001:db8::1]").count()
    };
    for kind in ["res", "ep"] {
        assert_eq!(seen("[fe80::9%2]:1", kind), 1101);
        assert_eq!(seen("[fe80::9%3]:1", kind), 1);
        assert_eq!(seen("192.0.2.1:1", kind), 1);
        assert_eq!(seen("169.254.7.7:1", kind), 11);
    }
    let elsewhere = register(&at("192.0.2.1:1"), "ep=e&base=coap://[fe80::2]");
    assert!(elsewhere.starts_with("4.00 a link-local base"), "{elsewhere}");
    let zone = register(&here, "ep=e&base=coap://[fe80::2%252]");
    assert!(zone.starts_with("4.00 base is a URI"), "{zone}");
}

#[test]
fn references_are_resolved_against_the_base() {
    let world = World::new();
    let links = "<x>,<../y>;anchor=\"?q\",</a/./b>,<//o/p>,<http://e/a/../b>;anchor=\"\",<>";
    assert_eq!(world.register("ep=a&base=coap://h/dir/sub", links), "2.01 rd/1");
    let expect = "2.05 <coap://h/dir/x>,<coap://h/y>;anchor=\"coap://h/dir/sub?q\",<coap://h/a/b>,<coap://o/p>,\
        <http://e/a/../b>;anchor=\"coap://h/dir/sub\",<coap://h/dir/sub>";
    assert_eq!(world.resources(""), expect);
    assert_eq!(world.resources("href=coap://h/y"), "2.05 <coap://h/y>;anchor=\"coap://h/dir/sub?q\"");
    assert_eq!(world.resources("anchor=coap://h/dir/sub"), "2.05 <http://e/a/../b>;anchor=\"coap://h/dir/sub\"");
    assert_eq!(world.update("1", "base=coap://n"), "2.04 ");
    assert!(world.resources("").starts_with("2.05 <coap://n/x>,<coap://n/y>;anchor=\"coap://n?q\""));
}

#[test]
fn lookups_ask_for_what_the_endpoint_or_its_links_have() {
    let world = World::new();
    world.register("ep=a&base=coap://a&et=oic&et=core.rd-group", "</x>;rt=\"one two\";rev=\"up next\"");
    world.register("ep=b&base=coap://b", "</y>;rt=one");
    let both = "2.05 <coap://a/x>;rt=\"one two\";rev=\"up next\",<coap://b/y>;rt=\"one\"";
    let (first, second) = ("2.05 <coap://a/x>;rt=\"one two\";rev=\"up next\"", "2.05 <coap://b/y>;rt=\"one\"");
    for (query, expect) in [
        ("rt=one", both),
        ("rt=core.rd-ep", both),
        ("rt=two", first),
        ("rev=next", first),
        ("et=oic", first),
        ("et=core.rd-*", first),
        ("et", first),
        ("href=/rd/2", second),
        ("href=/rd/*", both),
        ("href=coap://b/y", second),
        ("count=1&page=1", second),
        ("count=1", first),
        ("count=0", "2.05 "),
        ("ep=a&ep=b", "2.05 "),
        ("lt", "2.05 "),
    ] {
        assert_eq!(world.resources(query), expect, "{query}");
    }
    let endpoint = world.ask(&RequestBuf::get("/rd-lookup/ep?href=coap://b/y"));
    assert_eq!(endpoint, "2.05 </rd/2>;ep=\"b\";base=\"coap://b\";rt=\"core.rd-ep\"");
    assert!(world.resources("page=0").starts_with("4.00 page needs count"));
}

#[test]
fn what_is_wrong_is_refused_with_the_reason() {
    let world = World::new();
    let check = |query: &str, links: &str, part: &str| {
        let said = world.register(query, links);
        assert!(said.starts_with("4.00") && said.contains(part), "{query}: {said}");
    };
    check("lt=60&base=coap://h", "", "ep is needed");
    check("d=a", "", "ep is needed");
    check("ep=a&ep=b&base=coap://h", "", "ep stands there twice");
    check("ep=a&lt=0&base=coap://h", "", "lt is a number");
    for wrong in [
        "ftp://h",
        "h",
        "/h",
        "coap:h",
        "coap://",
        "coap://h?q",
        "coap://h%23f",
        "coap://[::1",
        "coap://:7",
        "coap://h:x",
    ] {
        check(&format!("ep=a&base={wrong}"), "", "base is a URI");
    }
    check("ep=a&base=coap://h", "</x", "no link format");
    check("ep=a&base=coap://h&=x", "", "\"\" is no name of an attribute");
    check("ep=a&base=coap://h&a;b=x", "", "\"a;b\" is no name of an attribute");
    let many = (0..33).map(|number| format!("&a{number}=x")).collect::<String>();
    check(&format!("ep=a&base=coap://h{many}"), "", "at most 32 attributes");
    check(&format!("ep={}&base=coap://h", "x".repeat(64)), "", "1 to 63 bytes");
    assert!(world.resources("page=x").starts_with("4.00 page is a whole number"));
    assert!(world.ask(&RequestBuf::get("/rd")).starts_with("4.05"));
    for other in ["/rdx", "/rd/1/2/3", "/rd-lookup/x"] {
        let request = RequestBuf::get(other);
        assert!(world.handler.handle(&request.view()).is_none() && !world.handler.has(&request.view()), "{other}");
    }
    let said = world.handler.handle(&RequestBuf::post("/rd?ep=a", "").view()).expect("its path");
    assert!(said.payload.starts_with(b"base is needed"), "a program has no address");
    let put = RequestBuf::post("/rd?ep=a&base=coap://h", "x").with_content_format(content_format::JSON);
    assert!(world.ask(&put).starts_with(&Code::UNSUPPORTED_CONTENT_FORMAT.to_string()));
    assert_eq!(world.handler.counts(), DirectoryCounts::default());
}

#[test]
fn attributes_and_short_links_count_as_the_memory_they_take() {
    let world = World::new();
    let bytes = || world.handler.counts().bytes;
    world.register("ep=a&base=coap://h", "");
    let empty = bytes();
    world.register("ep=a&base=coap://h", &["</>"; 1000].join(","));
    assert!(bytes() >= empty + 1000 * size_of::<crate::link_format::WebLink>());
    world.register("ep=a&base=coap://h", "");
    let value = "v".repeat(200);
    assert_eq!(world.update("1", &format!("et={value}")), "2.04 ");
    assert!(bytes() >= empty + 200);
    assert_eq!(world.update("1", "et=x"), "2.04 ", "a value takes the place of the old one");
    assert!(bytes() < empty + 200);
    for number in 0..31 {
        assert_eq!(world.update("1", &format!("a{number}={value}")), "2.04 ");
    }
    assert!(world.update("1", "one-more=x").starts_with("4.00 at most 32 attributes"));
    assert_eq!(world.ask(&RequestBuf::delete(&world.location("1"))), "2.02 ");
    assert_eq!(world.handler.counts(), DirectoryCounts::default());
}

#[test]
fn strangers_cannot_fill_the_memory() {
    let world = World::new();
    let links = format!("</{}>", "x".repeat(60_000));
    let mut accepted = 0;
    while world.register(&format!("ep={accepted}&lt=60&base=coap://h"), &links).starts_with("2.01") {
        accepted += 1;
        assert!(accepted < 1000, "there is a bound");
    }
    let said = world.register("ep=one-more&base=coap://h", &links);
    assert!(said.starts_with("5.03 the directory is full"), "{said}");
    assert!(world.handler.counts().bytes <= 16 << 20 && world.handler.counts().refused == 2);
    world.seconds.store(60, Ordering::Relaxed);
    assert!(world.register("ep=later&base=coap://h", &links).starts_with("2.01"));
}

#[test]
fn an_answer_has_a_bounded_number_of_bytes_however_links_grow_with_their_base() {
    let world = World::new();
    let base = format!("coap://{}", "h".repeat(200));
    let link = format!("</>{}", ";anchor=\"/\"".repeat(50));
    let links = vec![link; 200].join(",");
    for number in 0..7 {
        assert_eq!(world.register(&format!("ep=n{number}&base={base}"), &links), format!("2.01 rd/{}", number + 1));
    }
    // 10,000 anchors of 200 bytes for each.
    assert!(world.resources("ep=n0&count=100").len() > 1_000_000);
    let answer = world.resources("");
    assert!(answer.starts_with("4.00 ") && answer.contains("page and count"), "{}", &answer[..answer.len().min(200)]);
    assert!(world.resources("count=50&page=27").starts_with("2.05 <coap"));
}
