use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_recording::schema::TypeSchema;
use thalweg_types::idl;

use crate::decoders::DecoderLimits;
use crate::protocol::{ClientMessage, sample_head};
use crate::visitors::Visitors;

mod board;

fn schema(type_name: &str, text: &str) -> (Arc<TypeSchema>, DecoderLimits) {
    let types = idl::parse(text).expect("IDL");
    let of = types.find(type_name).expect("the type");
    let schema = TypeSchema::of(type_name, of);
    let limits = DecoderLimits::of(&schema, of);
    (Arc::new(schema), limits)
}

#[test]
fn a_sample_has_its_opcode_subscription_and_time_in_front() {
    let head = sample_head(0x0102_0304, 0x1112_1314_1516_1718);
    assert_eq!(head, [1, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11]);
}

#[test]
fn messages_of_clients_are_read_and_others_have_a_reason() {
    #[track_caller]
    fn check(text: &str, expect: &str) {
        let got = ClientMessage::parse(text).map_or_else(|error| error, |message| format!("{message:?}"));
        assert!(got.contains(expect), "{text}: {got}");
    }
    check(
        r#"{"op":"subscribe","subscriptions":[{"id":1,"channelId":9007199254740992}]}"#,
        "channel_id: 9007199254740992",
    );
    check(r#"{"op":"unsubscribe","subscriptionIds":[1,2]}"#, "[1, 2]");
    check(r#"{"op":"advertise","channels":[{"id":1}]}"#, "Unoffered");
    check(r#"{"op":"clientInfo","name":"x"}"#, "Unoffered");
    check(r#"{"op":"subscribe","subscriptions":[{"id":-1,"channelId":1}]}"#, "not understood");
    check(r#"{"op":"subscribe"}"#, "not understood");
    check("[", "not understood");
}

#[test]
fn pages_connect_that_are_trusted_and_programs_without_an_origin() {
    #[track_caller]
    fn check(trusted: &[&str], origin: Option<&str>, host: Option<&str>, expect: bool) {
        let visitors = Visitors::new(trusted.iter().map(|one| (*one).to_owned()).collect());
        assert_eq!(visitors.has(origin, host), expect, "{origin:?} at {host:?}, trusted {trusted:?}");
    }
    check(&[], None, None, true);
    for trusted in
        ["https://app.foxglove.dev", "file://", "http://localhost:8080", "http://127.0.0.1", "http://[::1]:9"]
    {
        check(&[], Some(trusted), Some("127.0.0.1:8765"), true);
    }
    for strange in [
        "https://evil.example",
        "null",
        "",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example:80",
        "chrome-extension://x",
        "https://app.foxglove.dev.evil.example",
    ] {
        check(&[], Some(strange), Some("127.0.0.1:8765"), false);
        check(&["*"], Some(strange), Some("127.0.0.1:8765"), true);
    }
    // A page that this host serves, by its address; a name may have been led here.
    check(&[], Some("http://192.0.2.7:8080"), Some("192.0.2.7:8765"), true);
    check(&[], Some("http://192.0.2.8:8080"), Some("192.0.2.7:8765"), false);
    check(&[], Some("http://robot.example:8765"), Some("robot.example:8765"), false);
    check(&["http://robot.*:8080"], Some("http://robot.example:8080"), Some("robot.example:8765"), true);
    // What a browser sends is no pattern.
    check(&["*"], Some("http://[fd00::2]:8080"), Some("127.0.0.1:8765"), true);
    check(&["http://[fd00::?]:8080"], Some("http://[fd00::2]:8080"), Some("127.0.0.1:8765"), true);
    check(&["http://lab.local:8080"], Some("http://*.local:8080"), Some("127.0.0.1:8765"), false);
}

#[test]
fn what_foxgloves_decoders_do_not_read_is_named() {
    #[track_caller]
    fn check(text: &str, encoding: u8, expect: &str) {
        let (_, limits) = schema("T", text);
        let of_sample = limits.of_sample(&[0, encoding, 0, 0]);
        let got = limits.of_type().or(of_sample).unwrap_or_default();
        assert!(if expect.is_empty() { got.is_empty() } else { got.contains(expect) }, "{text} in {encoding}: {got}");
    }
    let inner = "@final struct I { long x; };";
    check("@final struct T { long x; sequence<double> y; string z; };", 1, "");
    check("@final struct T { long x; sequence<double> y; string z; };", 7, "");
    check("@appendable struct T { long x; sequence<double> y; string z; };", 9, "");
    check(&format!("{inner} @final struct T {{ sequence<I> y; }};"), 1, "");
    check(&format!("{inner} @final struct T {{ sequence<I> y; }};"), 7, "member y");
    check(&format!("{inner} @mutable struct T {{ sequence<I> y; }};"), 3, "");
    check(&format!("{inner} @mutable struct T {{ sequence<I> y; }};"), 11, "");
    check("@mutable struct T { sequence<string> y; };", 11, "sequences of strings");
    check("@appendable struct I { long x; }; @final struct T { I i; };", 7, "extensible types");
    check("@mutable struct I { long x; }; @final struct T { I i; };", 1, "mutable types");
    check("@final struct T { map<long, long> m; };", 1, "maps");
    check("@final struct T { wstring w; };", 1, "wide characters");
    check("@final struct T { sequence<sequence<long>> s; };", 1, "sequences of sequences");
    check(
        "@final struct I { @optional long x; }; @final struct T { sequence<I> s; };",
        1,
        "optional members (member x)",
    );
    check("@final struct B { long x; }; @final struct T : B { long y; };", 1, "extend others (type T)");
    check("@final struct T { long x; sequence<T> parts; };", 1, "contain themselves");
    check("struct B; struct T { sequence<B> parts; }; struct B { sequence<T> whole; };", 1, "contain themselves");
    check("@final struct T { long x; };", 5, "none of CDR's");
    let (_, limits) = schema("T", "@final struct T { long x; };");
    assert!(limits.of_sample(&[0]).is_some());
    // The decoder of ROS 2's messages reads XCDR2 as well, but nothing extensible.
    let (ros, limits) =
        schema("p::msg::dds_::T_", "module p { module msg { module dds_ { @final struct T_ { long x; }; }; }; };");
    assert_eq!((ros.encoding.as_str(), limits.of_sample(&[0, 1, 0, 0])), ("ros2msg", None));
    assert_eq!(limits.of_sample(&[0, 7, 0, 0]), None);
    assert!(limits.of_sample(&[0, 9, 0, 0]).is_some_and(|why| why.contains("extensible")));
}

#[test]
fn a_type_whose_members_are_of_each_other_many_times_is_looked_at_once() {
    let mut text = "@final struct T0 { long x; };".to_owned();
    for number in 1..60 {
        let before = number - 1;
        text += &format!("@final struct T{number} {{ T{before} a; T{before} b; }};");
    }
    let types = idl::parse(&text).expect("IDL");
    let of = types.find("T59").expect("the type");
    let begun = Instant::now();
    let limits = DecoderLimits::of(&TypeSchema::of("T59", of), of);
    assert_eq!(limits.of_type(), None);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}
