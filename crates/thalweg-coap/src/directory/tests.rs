use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_base::time::Instant;

use super::*;
use crate::message::{Code, OptionNumber, RequestBuf, content_format};

/// A directory with a clock that the test turns.
struct World {
    handler: DirectoryHandler,
    seconds: Arc<AtomicU64>,
}

impl World {
    fn new() -> World {
        let seconds = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&seconds);
        let clock = Arc::new(move || Instant::from_nanos(told.load(Ordering::Relaxed) * 1_000_000_000));
        World { handler: DirectoryHandler::new(clock), seconds }
    }

    fn ask(&self, request: &RequestBuf) -> String {
        let response = self.handler.handle(&request.view(), None).expect("its path");
        let location: Vec<String> = (response.options.iter())
            .filter(|(number, _)| *number == OptionNumber::LOCATION_PATH)
            .map(|(_, value)| String::from_utf8_lossy(value).into_owned())
            .collect();
        let text = String::from_utf8_lossy(&response.payload).into_owned();
        format!("{} {}{text}", response.code, location.join("/"))
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
    assert_eq!(world.ask(&RequestBuf::post("/rd/1", "")), "2.04 ");
    world.seconds.store(100, Ordering::Relaxed);
    assert_eq!(world.register("ep=a&base=coap://h2", "</y>"), "2.01 rd/1", "the same endpoint keeps its place");
    assert_eq!(world.resources(""), "2.05 <coap://h2/y>");
    assert_eq!(world.ask(&RequestBuf::get("/rd/1")), "2.05 </y>");
    assert!(world.ask(&RequestBuf::post("/rd/1?ep=b", "")).starts_with("4.00"));
    assert_eq!(world.ask(&RequestBuf::delete("/rd/1")), "2.02 ");
    for gone in
        [RequestBuf::delete("/rd/1"), RequestBuf::post("/rd/1", ""), RequestBuf::get("/rd/1"), RequestBuf::get("/rd/x")]
    {
        assert!(world.ask(&gone).starts_with("4.04"));
    }
    assert_eq!(world.handler.counts(), DirectoryCounts::default());
}

#[test]
fn a_base_stays_as_it_was_named_and_follows_the_endpoint_where_it_was_not() {
    let world = World::new();
    let ask = |target: &str, source: &str| {
        let response = world.handler.handle(&RequestBuf::post(target, "").view(), Some(source));
        assert!(response.expect("its path").code.is_success(), "{target}");
    };
    world.register("ep=named&base=coap://h", "</x>");
    ask("/rd/1", "coap://other:9");
    assert_eq!(world.resources("ep=named"), "2.05 <coap://h/x>");
    let links = RequestBuf::post("/rd?ep=moved", "</y>").with_content_format(content_format::LINK_FORMAT);
    world.handler.handle(&links.view(), Some("coap://first:7")).expect("its path");
    ask("/rd/2", "coap://second:7");
    assert_eq!(world.resources("ep=moved"), "2.05 <coap://second:7/y>");
    ask("/rd/2?base=coap://n", "coap://third:7");
    ask("/rd/2", "coap://fourth:7");
    assert_eq!(world.resources("ep=moved"), "2.05 <coap://n/y>");
}

#[test]
fn what_is_wrong_is_refused_with_the_reason() {
    let world = World::new();
    let check = |query: &str, links: &str, part: &str| {
        let said = world.register(query, links);
        assert!(said.starts_with("4.00") && said.contains(part), "{query}: {said}");
    };
    check("lt=60&base=coap://h", "", "ep is needed");
    check("ep=a", "", "base is needed");
    check("ep=a&ep=b&base=coap://h", "", "ep stands there twice");
    check("ep=a&lt=0&base=coap://h", "", "lt is a number");
    check("ep=a&base=ftp://h", "", "base is a URI");
    check("ep=a&base=coap://h", "</x", "no link format");
    check("ep=a&base=coap://h&=x", "", "\"\" is no name of an attribute");
    check("ep=a&base=coap://h&a;b=x", "", "\"a;b\" is no name of an attribute");
    let many = (0..33).map(|number| format!("&a{number}=x")).collect::<String>();
    check(&format!("ep=a&base=coap://h{many}"), "", "at most 32 attributes");
    check(&format!("ep={}&base=coap://h", "x".repeat(64)), "", "1 to 63 bytes");
    assert!(world.resources("page=x").starts_with("4.00 page is a whole number"));
    assert!(world.ask(&RequestBuf::get("/rd")).starts_with("4.05"));
    assert!(world.handler.handle(&RequestBuf::get("/rdx").view(), None).is_none());
    let put = RequestBuf::post("/rd?ep=a&base=coap://h", "x").with_content_format(content_format::JSON);
    assert_eq!(
        world.handler.handle(&put.view(), None).map(|response| response.code),
        Some(Code::UNSUPPORTED_CONTENT_FORMAT)
    );
    let source = world.handler.handle(&RequestBuf::post("/rd?ep=a", "</x>").view(), Some("coap://h:7"));
    assert_eq!(source.map(|response| response.code), Some(Code::CREATED));
    assert_eq!(world.resources(""), "2.05 <coap://h:7/x>");
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
    assert_eq!(world.ask(&RequestBuf::post(&format!("/rd/1?et={value}"), "")), "2.04 ");
    assert!(bytes() >= empty + 200);
    assert_eq!(world.ask(&RequestBuf::post("/rd/1?et=x", "")), "2.04 ", "a value takes the place of the old one");
    assert!(bytes() < empty + 200);
    for number in 0..31 {
        assert_eq!(world.ask(&RequestBuf::post(&format!("/rd/1?a{number}={value}"), "")), "2.04 ");
    }
    assert!(world.ask(&RequestBuf::post("/rd/1?one-more=x", "")).starts_with("4.00 at most 32 attributes"));
    assert_eq!(world.ask(&RequestBuf::delete("/rd/1")), "2.02 ");
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
    for number in 0..10 {
        assert_eq!(world.register(&format!("ep=n{number}&base={base}"), &links), format!("2.01 rd/{}", number + 1));
    }
    // 10,000 anchors of 200 bytes for each.
    assert!(world.resources("ep=n0&count=100").len() > 1_000_000);
    let answer = world.resources("");
    assert!(answer.starts_with("4.00 ") && answer.contains("page and count"), "{}", &answer[..answer.len().min(200)]);
    assert!(world.resources("count=50&page=39").starts_with("2.05 <coap"));
}
