use proptest::prelude::*;

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| byte.is_ascii_hexdigit()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// One line about a message, or the error.
fn describe(bytes: &[u8]) -> String {
    match CoapMessage::parse(bytes) {
        Ok(message) => {
            let kind = match message.message_type {
                MessageType::Confirmable => "CON",
                MessageType::NonConfirmable => "NON",
                MessageType::Acknowledgement => "ACK",
                MessageType::Reset => "RST",
            };
            let mut text = format!("{kind} {:?} {:#06x} {:?}", message.code, message.id.0, message.token);
            for (number, value) in message.options {
                text += &format!(" {number}={}", value.escape_ascii());
            }
            if !message.payload.is_empty() {
                text += &format!(" \"{}\"", message.payload.escape_ascii());
            }
            text
        }
        Err(error) => error.to_string(),
    }
}

/// Writes a message again from what was read.
fn rewrite(message: &CoapMessage<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = MessageWriter::new(&mut out, message.message_type, message.code, message.id, &message.token);
    message.options.for_each(|(number, value)| {
        writer.option(number, value);
    });
    writer.payload(message.payload);
    out
}

#[track_caller]
fn check(hex: &str, expected: &str) {
    let bytes = bytes(hex);
    assert_eq!(describe(&bytes), expected, "input: {hex}");
    if let Ok(message) = CoapMessage::parse(&bytes) {
        assert_eq!(rewrite(&message), bytes, "written again: {hex}");
    }
}

#[test]
fn examples_of_rfc_7252_appendix_a() {
    check("40017d34 bb74656d7065726174757265", "CON 0.01 GET 0x7d34  Uri-Path=temperature");
    check("60457d34 ff32322e332043", "ACK 2.05 Content 0x7d34  \"22.3 C\"");
    check("41017d35 20 bb74656d7065726174757265", "CON 0.01 GET 0x7d35 20 Uri-Path=temperature");
    check("61457d35 20 ff32322e332043", "ACK 2.05 Content 0x7d35 20 \"22.3 C\"");
    check("60007d38", "ACK 0.00 Empty 0x7d38 ");
    check("70007d38", "RST 0.00 Empty 0x7d38 ");
}

#[test]
fn registration_and_notification_of_rfc_7641() {
    check("41011633 4a 60 5b74656d7065726174757265", "CON 0.01 GET 0x1633 4a Observe= Uri-Path=temperature");
    check(
        "6145 1633 4a 610c 810f ff32322e392043656c",
        "ACK 2.05 Content 0x1633 4a Observe=\\x0c Max-Age=\\x0f \"22.9 Cel\"",
    );
}

#[test]
fn blocks_of_rfc_7959() {
    // GET /status with Block2 2/0/64, then PUT /options with Block1 1/1/128 (RFC 7959 §3).
    check("40011636 b6737461747573 c122", "CON 0.01 GET 0x1636  Uri-Path=status Block2=\\\"");
    assert_eq!(Block::parse(&[0x22]), Some(Block { number: 2, more: false, exponent: 2 }));
    check("400304d3 b76f7074696f6e73 d1031b ff00", "CON 0.03 PUT 0x04d3  Uri-Path=options Block1=\\x1b \"\\x00\"");
    assert_eq!(Block::parse(&[0x1b]), Some(Block { number: 1, more: true, exponent: 3 }));
    assert_eq!(Block::parse(&[0x17]), None, "exponent 7 is reserved");
    assert_eq!(Block::parse(&[0x01, 0, 0, 0]), None);
    let last = Block { number: Block::NUMBER_END - 1, more: true, exponent: 6 };
    assert_eq!(Block::parse(encode_uint(last.to_uint(), &mut [0; 4])), Some(last));
    assert_eq!((last.size(), last.offset()), (1024, 1024 * 1_048_575));
}

#[test]
fn long_options_have_long_headers() {
    check("40010000 bd00 61616161616161616161616161", &format!("CON 0.01 GET 0x0000  Uri-Path={}", "a".repeat(13)));
    check(
        &format!("40010000 be0000{}", "61".repeat(269)),
        &format!("CON 0.01 GET 0x0000  Uri-Path={}", "a".repeat(269)),
    );
    check("40010000 d1ef 02", "CON 0.01 GET 0x0000  Echo=\\x02");
    check("40010000 d0f5", "CON 0.01 GET 0x0000  No-Response=");
    check("40010000 e00017", "CON 0.01 GET 0x0000  Request-Tag=");
    check("40010000 e0fef2", "CON 0.01 GET 0x0000  option 65535=");
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    check("", "byte 0: expected header of four bytes");
    check("400100", "byte 3: expected header of four bytes");
    check("80010000", "byte 0: expected version 1");
    check("49010000 000000000000000000", "byte 0: expected token length of at most 8");
    check("42010000 00", "byte 4: expected complete token");
    check("40200000", "byte 1: expected code class 0, 2, 3, 4 or 5");
    check("40000000 ff", "byte 4: expected nothing after the header of an empty message");
    check("41000000 00", "byte 4: expected nothing after the header of an empty message");
    check("40010000 ff", "byte 4: expected payload after the payload marker");
    check("40010000 b161 ff", "byte 6: expected payload after the payload marker");
    check("40010000 b2 61", "byte 4: expected option value within the message");
    check("40010000 0f", "byte 4: expected option delta or length other than 15");
    check("40010000 f0", "byte 4: expected option delta or length other than 15");
    check("40010000 d0", "byte 4: expected complete option header");
    check("40010000 e000", "byte 4: expected complete option header");
    check("40010000 e0ffff", "byte 4: expected option delta or length below 65536");
    check("40010000 e0fef2 10", "byte 7: expected option number below 65536");
}

#[test]
fn numbers_say_how_to_treat_options() {
    let facts = |number: OptionNumber| (number.is_critical(), number.is_unsafe(), number.is_no_cache_key());
    // RFC 7252 Table 4, RFC 7959 Table 1, RFC 9175 Table 1.
    assert_eq!(facts(OptionNumber::URI_PATH), (true, true, false));
    assert_eq!(facts(OptionNumber::ETAG), (false, false, false));
    assert_eq!(facts(OptionNumber::IF_MATCH), (true, false, false));
    assert_eq!(facts(OptionNumber::MAX_AGE), (false, true, false));
    assert_eq!(facts(OptionNumber::BLOCK1), (true, true, false));
    assert_eq!(facts(OptionNumber::SIZE1), (false, false, true));
    assert_eq!(facts(OptionNumber::ECHO), (false, false, true));
    assert!(OptionNumber::URI_PATH.is_repeatable() && !OptionNumber::ACCEPT.is_repeatable());
}

#[test]
fn values_of_a_wrong_form_are_not_accepted() {
    assert!(OptionNumber::URI_PATH.accepts("é".as_bytes()) && !OptionNumber::URI_PATH.accepts(&[0xe9]));
    assert!(
        OptionNumber::ETAG.accepts(&[1; 8]) && !OptionNumber::ETAG.accepts(&[]) && !OptionNumber::ETAG.accepts(&[1; 9])
    );
    assert!(!OptionNumber::OBSERVE.accepts(&[0; 4]) && OptionNumber::OBSERVE.accepts(&[]));
    assert!(!OptionNumber(2049).accepts(&[]), "an option that is not known");
}

#[test]
fn a_request_is_built_from_a_target() {
    let request = RequestBuf::get("/a%2Fb/c?x=1&y&z=%31").with_accept(50).with_observe(Observe::Register);
    let view = request.view();
    assert_eq!(view.path_segments().collect::<Vec<_>>(), ["a/b", "c"]);
    assert_eq!(view.queries().collect::<Vec<_>>(), ["x=1", "y", "z=1"]);
    assert_eq!((view.query("x"), view.query("y"), view.query("q")), (Some("1"), Some(""), None));
    assert_eq!((view.accept(), view.observe()), (Some(50), Some(Observe::Register)));
    assert_eq!(view.to_owned(), request);
    assert_eq!(RequestBuf::get("/").view().path(), "/");
    assert_eq!(RequestBuf::get("").view().path_segments().count(), 0);
    assert_eq!(RequestBuf::get("/100%25/%23").view().path(), "/100%/#");
}

#[test]
fn a_target_that_is_no_path_and_query_is_told_and_never_sent_as_another() {
    let check = |target: &str, expect: &str| {
        let fault = RequestBuf::get(target).fault().unwrap_or_default();
        assert!(fault.contains(expect), "{target}: {fault}");
    };
    check("/a#b", "fragment");
    check("/a?x#", "fragment");
    for target in ["/100%", "/%4", "/%4g", "/a?b=%", "/%%41", "/%\u{e9}1"] {
        check(target, "begins no escape");
    }
    check("/%ff", "no UTF-8");
    check(&format!("/{}", "a".repeat(256)), "longer than 255");
    for target in ["", "/", "/%25", "/a%2fb?c=%C3%A9", "/\u{e9}"] {
        assert_eq!(RequestBuf::get(target).fault(), None, "{target}");
    }
}

#[test]
fn a_path_is_compared_by_segments() {
    let request = RequestBuf::get("/a/b");
    assert!(request.view().is_path("/a/b") && request.view().is_path("a/b"));
    assert!(!request.view().is_path("/a") && !request.view().is_path("/a/b/c") && !request.view().is_path("/"));
    assert!(RequestBuf::get("/").view().is_path("/"));
    assert!(!RequestBuf::get("//").view().is_path("/") && !RequestBuf::get("/a%2Fb").view().is_path("/a/b"));
    assert!(RequestBuf::get("/a/").view().is_path("/a/") && !RequestBuf::get("/a/").view().is_path("/a"));
}

#[test]
fn numbers_have_no_leading_zeros() {
    let expected: [(u32, &[u8]); 5] =
        [(0, &[]), (255, &[255]), (256, &[1, 0]), (0xff_ffff, &[255; 3]), (1 << 24, &[1, 0, 0, 0])];
    for (number, value) in expected {
        assert_eq!(encode_uint(number, &mut [0; 4]), value);
    }
}

#[test]
fn short_bodies_stay_in_place_and_equal_long_ones() {
    for len in [0, 1, 62, 63, 5000] {
        let source = vec![7; len];
        let body = Body::copy_from(&source);
        assert_eq!(&*body, &source[..]);
        assert_eq!(body.clone().into_shared(), Body::from(source.clone()));
        assert_eq!(body.into_vec(), source);
    }
}

fn options() -> impl Strategy<Value = Vec<(u16, Vec<u8>)>> {
    let number = prop_oneof![0u16..40, 240u16..320, any::<u16>()];
    let value =
        prop_oneof![proptest::collection::vec(any::<u8>(), 0..16), proptest::collection::vec(any::<u8>(), 250..300)];
    proptest::collection::vec((number, value), 0..6)
}

proptest! {
    #[test]
    fn what_is_written_reads_the_same(
        mut options in options(),
        token in proptest::collection::vec(any::<u8>(), 0..=8),
        id in any::<u16>(),
        payload in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        options.sort_by_key(|(number, _)| *number);
        let token = Token::new(&token).unwrap();
        let mut out = Vec::new();
        let mut writer = MessageWriter::new(&mut out, MessageType::Confirmable, Code::POST, MessageId(id), &token);
        options.iter().for_each(|(number, value)| { writer.option(OptionNumber(*number), value); });
        writer.payload(&payload);
        let message = CoapMessage::parse(&out).unwrap();
        let read: Vec<(u16, Vec<u8>)> = message.options.map(|(number, value)| (number.0, value.to_vec())).collect();
        prop_assert_eq!(read, options);
        prop_assert_eq!((message.token, message.id, message.payload), (token, MessageId(id), &payload[..]));
    }

    #[test]
    fn inserted_options_end_up_in_order(options in options()) {
        let mut encoded = Vec::new();
        options.iter().for_each(|(number, value)| insert_option(&mut encoded, OptionNumber(*number), value));
        let mut sorted = options;
        sorted.sort_by_key(|(number, _)| *number);
        let read: Vec<(u16, Vec<u8>)> =
            Options::check(&encoded, 0).unwrap().0.map(|(number, value)| (number.0, value.to_vec())).collect();
        prop_assert_eq!(read, sorted);
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..64), valid in any::<bool>()) {
        if valid && bytes.len() > 1 {
            bytes[0] = 0x40 | bytes[0] & 0x31;
            bytes[1] &= 0x5f;
        }
        if let Ok(message) = CoapMessage::parse(&bytes) {
            let again = rewrite(&message);
            let second = CoapMessage::parse(&again).unwrap();
            prop_assert!(message.options.eq(second.options));
            prop_assert_eq!((message.payload, message.token), (second.payload, second.token));
        }
    }

    #[test]
    fn numbers_take_as_few_bytes_as_they_can(number in any::<u32>()) {
        let mut buffer = [0; 4];
        let value = encode_uint(number, &mut buffer);
        prop_assert_eq!(parse_uint(value), Some(number));
        prop_assert_ne!(value.first(), Some(&0));
    }
}

#[test]
fn a_message_has_no_more_options_than_can_be_looked_through() {
    let with =
        |options: usize| -> Vec<u8> { [0x40, 1, 0, 1].into_iter().chain([0xb0]).chain(vec![0; options - 1]).collect() };
    assert_eq!(CoapMessage::parse(&with(OPTIONS_MAX)).map(|message| message.options.count()), Ok(OPTIONS_MAX));
    let error = MessageError { offset: HEADER_LEN + OPTIONS_MAX, expected: "no more than 512 options" };
    assert_eq!(CoapMessage::parse(&with(OPTIONS_MAX + 1)).map(|message| message.options.count()), Err(error));
}

#[test]
fn what_was_created_is_told_by_its_path_and_query_as_a_uri_has_them() {
    let created = |options: &[(OptionNumber, &str)]| {
        let add =
            |response: Response, (number, text): &(OptionNumber, &str)| response.with_option(*number, text.as_bytes());
        options.iter().fold(Response::new(Code::CREATED), add).location()
    };
    let (path, query) = (OptionNumber::LOCATION_PATH, OptionNumber::LOCATION_QUERY);
    assert_eq!(created(&[]), None);
    assert_eq!(created(&[(path, "a b"), (path, "c/d")]).as_deref(), Some("/a%20b/c%2Fd"));
    assert_eq!(created(&[(path, "a"), (query, "x=1"), (query, "y&z")]).as_deref(), Some("/a?x=1&y%26z"));
    assert_eq!(created(&[(query, "x=1")]).as_deref(), Some("?x=1"));
}
