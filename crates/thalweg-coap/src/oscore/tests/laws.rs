//! Laws of protection under any message, any bit flipped, any order.

use std::sync::Arc;

use proptest::prelude::*;

use super::{bytes, ends};
use crate::message::{CoapMessage, Code, MessageId, MessageType, OptionNumber, RequestBuf, Token};
use crate::oscore::{
    Age, ClientAssociation, Context, ContextParameters, Keyring, KeyringError, OneRun, Opened, OscoreHeader, PartialIv,
    Past, Refusal, ServerAssociation,
};

const TOKEN: [u8; 4] = [1, 2, 3, 4];

fn message<'a>(request: &'a RequestBuf, token: &[u8]) -> CoapMessage<'a> {
    let view = request.view();
    let (message_type, id, token) = (MessageType::Confirmable, MessageId(9), Token::new(token).unwrap());
    CoapMessage { message_type, code: view.code, id, token, options: view.options, payload: view.payload }
}

/// A response to [`TOKEN`] with these options.
fn response(code: Code, options: &[(OptionNumber, &[u8])], payload: &[u8]) -> RequestBuf {
    let response = RequestBuf::new(code, "").with_payload(payload);
    options.iter().fold(response, |response, (number, value)| response.with_option(*number, value))
}

fn protect(client: &mut ClientAssociation, request: &RequestBuf) -> Vec<u8> {
    client.protect(&message(request, &TOKEN), Token::new(&TOKEN).unwrap()).unwrap()
}

fn verify(keyring: &Keyring, datagram: &[u8]) -> Result<(RequestBuf, ServerAssociation, Age), Refusal> {
    let verified = keyring.verify(&CoapMessage::parse(datagram).unwrap())?;
    Ok((verified.request.view().to_owned(), verified.association, verified.age))
}

#[track_caller]
fn refused(keyring: &Keyring, datagram: &[u8], expect: Refusal) {
    assert_eq!(verify(keyring, datagram).map(|(request, ..)| request), Err(expect));
}

fn options() -> impl Strategy<Value = Vec<(u16, Vec<u8>)>> {
    // Not those that have a meaning of their own here: Observe, OSCORE and the block options of proxies.
    let number = prop_oneof![1..6_u16, 7..9_u16, 10..40_u16, Just(258), Just(2049)];
    proptest::collection::vec((number, proptest::collection::vec(any::<u8>(), 0..20)), 0..8)
}

proptest! {
    #[test]
    fn what_is_opened_is_what_was_protected(
        options in options(),
        payload in proptest::collection::vec(any::<u8>(), 0..200),
        answer in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        // Readable options have to be well-formed: they are checked like those of any message.
        let is_sound = |(number, value): &&(u16, Vec<u8>)| match number {
            3 | 35 | 39 => false,
            7 => value.len() <= 2,
            _ => true,
        };
        let mut request = RequestBuf::put("/a/b?c=d", payload);
        let mut ports = 0;
        for (number, value) in options.iter().filter(is_sound) {
            ports += usize::from(*number == 7);
            if *number != 7 || ports == 1 {
                request = request.with_option(OptionNumber(*number), value);
            }
        }
        let (context, keyring) = ends(Past::Unused);
        let mut client = ClientAssociation::new(context);
        let datagram = protect(&mut client, &request);
        let (opened, mut association, age) = verify(&keyring, &datagram).unwrap();
        prop_assert_eq!((&opened, age), (&request, Age::New));
        let response = response(Code::CONTENT, &[(OptionNumber::MAX_AGE, &[5])], &answer);
        for round in 0..2 {
            // With the nonce of the request, then with one of its own.
            let datagram = association.protect(&message(&response, &TOKEN)).unwrap();
            let outer = CoapMessage::parse(&datagram).unwrap();
            prop_assert_eq!(outer.code, Code::CHANGED);
            prop_assert_eq!(outer.options.value(OptionNumber::OSCORE).unwrap().is_empty(), round == 0);
            prop_assert!(outer.options.value(OptionNumber::MAX_AGE).is_none());
            prop_assert_eq!(client.open(&outer).unwrap().view().to_owned(), response.clone());
        }
        prop_assert!(!client.has_refused());
    }

    #[test]
    fn headers_read_as_they_were_written(
        number in proptest::option::of(0..PartialIv::END),
        kid in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..8)),
        kid_context in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..256)),
    ) {
        let partial_iv = number.and_then(PartialIv::new);
        let header = OscoreHeader { partial_iv, kid: kid.as_deref(), kid_context: kid_context.as_deref() };
        let value = header.encode();
        prop_assert_eq!(OscoreHeader::parse(&value), Some(header));
    }

    #[test]
    fn a_header_that_is_read_is_written_the_same(value in proptest::collection::vec(any::<u8>(), 0..20)) {
        if let Some(header) = OscoreHeader::parse(&value) {
            prop_assert_eq!(header.encode(), value);
        }
    }
}

#[test]
fn headers_of_another_form_are_refused() {
    for value in
        ["00", "0000", "01", "0200ff", "020001", "06010203040506", "07", "20", "4900", "8901", "10", "1002aa", "0101ff"]
    {
        assert_eq!(OscoreHeader::parse(&bytes(value)), None, "{value}");
    }
    assert_eq!(OscoreHeader::parse(&bytes("08")), Some(OscoreHeader { kid: Some(&[]), ..OscoreHeader::default() }));
}

#[test]
fn a_request_with_any_bit_flipped_is_refused() {
    let (context, keyring) = ends(Past::Unused);
    let mut client = ClientAssociation::new(context);
    let datagram = protect(&mut client, &RequestBuf::put("/secret", "a body"));
    let start = 4 + TOKEN.len(); // Header and token belong to the message layer.
    for bit in 8 * start..8 * datagram.len() {
        let mut changed = datagram.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let opened = CoapMessage::parse(&changed).ok().and_then(|message| keyring.verify(&message).ok());
        assert!(opened.is_none(), "bit {bit} of {datagram:02x?}");
    }
    assert!(verify(&keyring, &datagram).is_ok(), "and none of them used its number up");
    refused(&keyring, &datagram, Refusal::Replay);
}

#[test]
fn a_response_with_any_bit_flipped_is_refused() {
    let (context, keyring) = ends(Past::Unused);
    let mut client = ClientAssociation::new(context);
    let request = protect(&mut client, &RequestBuf::get("/secret"));
    let (_, mut association, _) = verify(&keyring, &request).unwrap();
    association = association.for_notifications();
    let datagram = association.protect(&message(&response(Code::CONTENT, &[], b"state"), &TOKEN)).unwrap();
    for bit in 8 * (4 + TOKEN.len())..8 * datagram.len() {
        let mut changed = datagram.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let opened = CoapMessage::parse(&changed).ok().and_then(|message| client.open(&message).ok());
        assert!(opened.is_none(), "bit {bit} of {datagram:02x?}");
    }
    assert!(client.has_refused());
    assert!(client.open(&CoapMessage::parse(&datagram).unwrap()).is_ok());
}

#[test]
fn a_response_to_one_request_answers_no_other() {
    let (context, keyring) = ends(Past::Unused);
    let mut clients = [(); 2].map(|()| ClientAssociation::new(context.clone()));
    let answers = clients.each_mut().map(|client| {
        let request = protect(client, &RequestBuf::get("/x"));
        let (_, mut association, _) = verify(&keyring, &request).unwrap();
        association.protect(&message(&response(Code::CONTENT, &[], b"x"), &TOKEN)).unwrap()
    });
    let [first, second] = &mut clients;
    assert_eq!(first.open(&CoapMessage::parse(&answers[1]).unwrap()).map(|_| ()), Err(Refusal::Forged));
    assert_eq!(second.open(&CoapMessage::parse(&answers[0]).unwrap()).map(|_| ()), Err(Refusal::Forged));
    assert!(first.open(&CoapMessage::parse(&answers[0]).unwrap()).is_ok());
}

#[test]
fn requests_that_are_not_believed_are_told_why() {
    let (context, keyring) = ends(Past::Unused);
    let protected = protect(&mut ClientAssociation::new(context), &RequestBuf::get("/x"));
    let check = |name: &[u8], with: &[u8], expect: Refusal, code: &str| {
        let place = protected.windows(name.len()).position(|window| window == name).unwrap();
        let changed = [&protected[..place], with, &protected[place + name.len()..]].concat();
        refused(&keyring, &changed, expect);
        let answer = expect.response();
        assert_eq!((format!("{}", answer.code).as_str(), answer.max_age), (code, Some(0)));
    };
    // The option: delta 9, length 3, Partial IV of one byte with a kid, 0, "c".
    let option = [0x93, 0x09, 0, b'c'];
    check(&option, &[0x93, 0x09, 0, b'd'], Refusal::UnknownContext, "4.01");
    check(&option, &[0x92, 0x01, 0], Refusal::Malformed, "4.02");
    check(&option, &[0x93, 0x09, 9, b'c'], Refusal::Forged, "4.00");
    check(&option, &[0x94, 0x0a, 0, 0, b'c'], Refusal::Malformed, "4.02");
    check(&option, &[0x93, 0x09, 0, b'c', 0x41, 1], Refusal::BadOption(OptionNumber(13)), "4.02");
    check(&option, &[0x93, 0x09, 0, b'c', 0xd1, 1, 0], Refusal::OuterBlocks, "4.02");
    check(&option, &[0x93, 0x09, 0, b'c', 0x03, 0x09, 0, b'c'], Refusal::BadOption(OptionNumber::OSCORE), "4.02");
    let (_, other) = ends(Past::Unused);
    assert!(verify(&other, &protected).is_ok());
    let keys = ContextParameters::new(&[8; 16], b"s", b"c").unwrap();
    let stranger = Keyring::new([Context::new(&keys, 0, Box::new(OneRun), Past::Unused)]).unwrap();
    refused(&stranger, &protected, Refusal::Forged);
}

#[test]
fn what_is_decrypted_has_to_be_a_message_without_protection_of_its_own() {
    for plaintext in ["", "01ff", "01d0", "01b4aa", "0190", "01920900"] {
        let opened = Opened::read(bytes(plaintext), RequestBuf::get("/").view().options);
        assert_eq!(opened.map(|_| ()), Err(Refusal::Malformed), "{plaintext}");
    }
    let opened = Opened::read(bytes("02b161ff62"), RequestBuf::get("/outer").view().options).unwrap();
    let view = opened.view();
    assert_eq!((view.code, view.path().as_str(), view.payload), (Code::POST, "/a", &b"b"[..]));
}

#[test]
fn what_is_readable_leads_what_was_opened_nowhere() {
    let outer = RequestBuf::get("/outer")
        .with_option(OptionNumber::URI_HOST, b"evil")
        .with_uint(OptionNumber::URI_PORT, 9)
        .with_option(OptionNumber::PROXY_URI, b"coap://evil/")
        .with_option(OptionNumber::PROXY_SCHEME, b"coap")
        .with_option(OptionNumber::HOP_LIMIT, &[3]);
    let check = |plaintext: &str, expect: &[(OptionNumber, &[u8])]| {
        let opened = Opened::read(bytes(plaintext), outer.view().options).unwrap();
        let options: Vec<_> = opened.view().options.collect();
        assert_eq!(options, expect, "{plaintext}");
    };
    let (host, port, scheme) = (OptionNumber::URI_HOST, OptionNumber::URI_PORT, OptionNumber::PROXY_SCHEME);
    let hops = OptionNumber::HOP_LIMIT;
    // Nothing, a host, a port, a scheme, and a number of hops that are encrypted.
    check("01", &[(host, b"evil"), (port, &[9]), (hops, &[3])]);
    check("013168", &[(host, b"h"), (hops, &[3])]);
    check("017107", &[(port, &[7]), (hops, &[3])]);
    check("01d41a636f6170", &[(hops, &[3]), (scheme, b"coap")]);
    check("01d10305", &[(host, b"evil"), (port, &[9]), (hops, &[5])]);
}

#[test]
fn what_proxies_must_not_read_is_not_readable() {
    let (context, _) = ends(Past::Unused);
    let request = RequestBuf::put("/door?key=1", "open").with_option(OptionNumber::URI_HOST, b"house");
    let datagram = protect(&mut ClientAssociation::new(context.clone()), &request);
    let outer = CoapMessage::parse(&datagram).unwrap();
    let numbers: Vec<OptionNumber> = outer.options.map(|(number, _)| number).collect();
    assert_eq!((outer.code, numbers), (Code::POST, vec![OptionNumber::URI_HOST, OptionNumber::OSCORE]));
    for secret in ["door", "key", "open"] {
        assert!(!datagram.windows(secret.len()).any(|window| window == secret.as_bytes()), "{secret}");
    }
    let observe = RequestBuf::get("/door").with_observe(crate::message::Observe::Register);
    let datagram = protect(&mut ClientAssociation::new(context), &observe);
    let outer = CoapMessage::parse(&datagram).unwrap();
    assert_eq!((outer.code, outer.options.value(OptionNumber::OBSERVE)), (Code::FETCH, Some(&[][..])));
}

#[test]
fn notifications_are_told_in_the_order_of_their_numbers() {
    let (context, keyring) = ends(Past::Unused);
    let mut client = ClientAssociation::new(context);
    let request = protect(&mut client, &RequestBuf::get("/x").with_observe(crate::message::Observe::Register));
    let (_, mut association, _) = verify(&keyring, &request).unwrap();
    let states: Vec<Vec<u8>> = (0..4)
        .map(|state| {
            let notification = response(Code::CONTENT, &[(OptionNumber::OBSERVE, &[200 - state])], &[state]);
            association.protect(&message(&notification, &TOKEN)).unwrap()
        })
        .collect();
    let mut open = |state: usize| {
        let opened = client.open(&CoapMessage::parse(&states[state]).unwrap())?;
        let view = opened.view();
        Ok((view.payload[0], view.options.uint(OptionNumber::OBSERVE)))
    };
    assert_eq!(open(0), Ok((0, Some(1))), "whatever the readable number says");
    assert_eq!(open(0), Err(Refusal::Replay));
    assert_eq!(open(2), Ok((2, Some(2))));
    assert_eq!(open(1), Err(Refusal::Replay), "older than the latest");
    assert_eq!(open(3), Ok((3, Some(3))));
    assert_eq!(open(3), Err(Refusal::Replay));
}

#[test]
fn a_notification_that_nobody_asked_for_is_refused() {
    let (context, keyring) = ends(Past::Unused);
    let mut client = ClientAssociation::new(context);
    let request = protect(&mut client, &RequestBuf::get("/x"));
    let (_, mut association, _) = verify(&keyring, &request).unwrap();
    let notification = response(Code::CONTENT, &[(OptionNumber::OBSERVE, &[1])], b"x");
    let datagram = association.protect(&message(&notification, &TOKEN)).unwrap();
    assert_eq!(client.open(&CoapMessage::parse(&datagram).unwrap()).map(|_| ()), Err(Refusal::Malformed));
}

#[test]
fn after_a_restart_nothing_old_is_accepted() {
    let challenge = *b"challeng";
    let (context, keyring) = ends(Past::Lost(challenge));
    let mut client = ClientAssociation::new(context.clone());
    let old = protect(&mut client, &RequestBuf::post("/pay", "1"));
    let (_, mut association, age) = verify(&keyring, &old).unwrap();
    assert_eq!(age, Age::Unknown(challenge));
    let demand = association.protect(&message(&response(Code::UNAUTHORIZED, &[], b""), &TOKEN)).unwrap();
    let demand = CoapMessage::parse(&demand).unwrap();
    assert!(!demand.options.value(OptionNumber::OSCORE).unwrap().is_empty(), "it must not take the request's nonce");
    let guess = RequestBuf::post("/pay", "1").with_option(OptionNumber::ECHO, b"a guess?");
    let guess = protect(&mut client, &guess);
    assert_eq!(verify(&keyring, &guess).unwrap().2, Age::Unknown(challenge));
    let proof = RequestBuf::post("/pay", "1").with_option(OptionNumber::ECHO, &challenge);
    let proof = protect(&mut client, &proof);
    assert_eq!(verify(&keyring, &proof).unwrap().2, Age::Proven);
    for replayed in [&old, &guess, &proof] {
        refused(&keyring, replayed, Refusal::Replay);
    }
    let next = protect(&mut client, &RequestBuf::post("/pay", "2"));
    assert_eq!(verify(&keyring, &next).unwrap().2, Age::New);
}

#[test]
fn contexts_are_found_by_id_and_id_context() {
    let secret = [7; 16];
    let with = |sender: &[u8], recipient: &[u8], id_context: Option<&[u8]>| {
        let parameters = ContextParameters::new(&secret, sender, recipient).unwrap();
        let parameters = id_context.map_or(parameters.clone(), |id| parameters.with_id_context(id).unwrap());
        Context::new(&parameters, 0, Box::new(OneRun), Past::Unused)
    };
    let names: [(&[u8], Option<&[u8]>); 4] = [(b"a", None), (b"b", Some(b"1")), (b"b", Some(b"2")), (b"", Some(b"3"))];
    let keyring = Keyring::new(names.map(|(id, id_context)| with(b"s", id, id_context))).unwrap();
    for (id, id_context) in names {
        let datagram = protect(&mut ClientAssociation::new(with(id, b"s", id_context)), &RequestBuf::get("/"));
        let (_, association, _) = verify(&keyring, &datagram).unwrap();
        let found = association.context();
        assert_eq!((found.recipient_id(), found.id_context()), (id, id_context));
    }
    let other_secret = ContextParameters::new(&[8; 16], b"t", b"a").unwrap();
    let twice = [with(b"s", b"a", None), Context::new(&other_secret, 0, Box::new(OneRun), Past::Unused)];
    assert_eq!(Keyring::new(twice).unwrap_err(), KeyringError::SameName { recipient_id: b"a".to_vec() });
}

#[test]
fn contexts_that_would_use_a_nonce_twice_are_refused() {
    let context = |sender: &[u8], recipient: &[u8], salt: &[u8]| {
        let parameters = ContextParameters::new(&[7; 16], sender, recipient).unwrap().with_salt(salt);
        Context::new(&parameters, 0, Box::new(OneRun), Past::Unused)
    };
    let first = context(b"s", b"a", b"");
    for (sender, recipient, id) in [(b"s", b"b", b"s"), (b"t", b"a", b"a"), (b"a", b"b", b"a"), (b"t", b"s", b"s")] {
        // No salt is one of zeros (RFC 5869 §2.2).
        for salt in [&b""[..], &[0; 4]] {
            let error = Keyring::new([Arc::clone(&first), context(sender, recipient, salt)]).unwrap_err();
            let KeyringError::SharedId(shared) = &error else { panic!("{error}") };
            assert_eq!(shared.id, id);
            let said = error.to_string();
            assert!(said.contains("\"73\" and recipient_id \"61\"") && said.contains("used twice"), "{said}");
        }
        assert!(Keyring::new([Arc::clone(&first), context(sender, recipient, b"salt")]).is_ok() || recipient == b"a");
    }
    assert!(Keyring::new([context(b"s", b"a", b""), context(b"a", b"s", b"")]).is_ok(), "both ends of one pair");
    let keyring = Keyring::new([Arc::clone(&first)]).unwrap();
    assert!(keyring.replace([Arc::clone(&first), context(b"s", b"b", b"")]).is_err());
    let request = protect(&mut ClientAssociation::new(context(b"a", b"s", b"")), &RequestBuf::get("/"));
    assert!(verify(&keyring, &request).is_ok(), "the one before holds");
}

#[test]
fn secrets_are_not_printed() {
    let secret = [0xa7; 16];
    let parameters = ContextParameters::new(&secret, b"s", b"c").unwrap();
    let context = Context::new(&parameters, 0, Box::new(OneRun), Past::Lost([0xa7; 8]));
    let text = format!("{parameters:?} {context:?} {:?}", Keyring::new([context.clone()]).unwrap());
    assert!(!text.contains("a7") && !text.contains("167") && text.contains("sender_id"), "{text}");
}

#[test]
fn parameters_that_would_be_unsafe_are_refused() {
    let new = |secret: &[u8], sender: &[u8], recipient: &[u8]| {
        ContextParameters::new(secret, sender, recipient).map(|_| ()).map_err(|error| error.to_string())
    };
    assert!(new(&[1; 15], b"a", b"b").unwrap_err().contains("at least 16"));
    assert!(new(&[1; 16], b"12345678", b"b").unwrap_err().contains("7 bytes"));
    assert!(new(&[1; 16], b"a", b"a").unwrap_err().contains("differ"));
    let parameters = ContextParameters::new(&[1; 16], b"", b"a").unwrap();
    assert!(parameters.clone().with_replay_window(65).is_err() && parameters.clone().with_replay_window(0).is_err());
    assert!(parameters.with_id_context(&[0; 256]).is_err());
}
