//! The test vectors of RFC 8613 Appendix C, byte for byte.

use std::sync::Arc;

use crate::message::{CoapMessage, Token};
use crate::oscore::association::{ClientAssociation, ServerAssociation};
use crate::oscore::context::{Age, Context, Nonce, Past};
use crate::oscore::keys::{Keys, RequestName, Sealed, authenticated, expand, info};
use crate::oscore::{ContextParameters, Keyring, OneRun, PartialIv};

use super::{bytes, hex};

/// One end of a vector: salt, sender ID, recipient ID, ID context.
type End<'a> = (&'a str, &'a str, &'a str, Option<&'a str>);

const SECRET: &str = "0102030405060708090a0b0c0d0e0f10";
const SALT: &str = "9e7ca92223786340";
const ID_CONTEXT: &str = "37cbf3210017a2d3";

fn parameters((salt, sender_id, recipient_id, id_context): End<'_>) -> ContextParameters {
    let parameters = ContextParameters::new(&bytes(SECRET), &bytes(sender_id), &bytes(recipient_id)).unwrap();
    let parameters = parameters.with_salt(&bytes(salt));
    id_context.map_or(parameters.clone(), |context| parameters.with_id_context(&bytes(context)).unwrap())
}

/// What an end has to derive: info, key and nonce of both directions, info and value of the common IV.
struct Derived<'a> {
    sender: [&'a str; 3],
    recipient: [&'a str; 3],
    common_iv: [&'a str; 2],
}

#[track_caller]
fn check(end: End<'_>, derived: &Derived<'_>) {
    let parameters = parameters(end);
    let keys = Keys::derive(&parameters);
    for (id, [expect_info, expect_key, expect_nonce]) in
        [(parameters.sender_id(), derived.sender), (parameters.recipient_id(), derived.recipient)]
    {
        assert_eq!(hex(&info(id, parameters.id_context(), "Key", 16)), expect_info);
        let mut key = [0; 16];
        expand(&parameters, id, "Key", &mut key);
        assert_eq!(hex(&key), expect_key);
        let partial_iv = PartialIv::new(0).unwrap();
        let sealed = Sealed { id, partial_iv, request: RequestName { kid: id, partial_iv } };
        assert_eq!(hex(&keys.nonce(&sealed)), expect_nonce);
    }
    let [expect_info, expect_iv] = derived.common_iv;
    assert_eq!(hex(&info(&[], parameters.id_context(), "IV", 13)), expect_info);
    let mut common_iv = [0; 13];
    expand(&parameters, &[], "IV", &mut common_iv);
    assert_eq!(hex(&common_iv), expect_iv);
}

/// Both ends of a vector: the server's is the client's the other way round.
#[track_caller]
fn check_both((salt, client, server, id_context): End<'_>, derived: &Derived<'_>) {
    check((salt, client, server, id_context), derived);
    let Derived { sender, recipient, common_iv } = *derived;
    check((salt, server, client, id_context), &Derived { sender: recipient, recipient: sender, common_iv });
}

#[test]
fn c_1_keys_with_a_salt() {
    let derived = Derived {
        sender: ["8540f60a634b657910", "f0910ed7295e6ad4b54fc793154302ff", "4622d4dd6d944168eefb54987c"],
        recipient: ["854101f60a634b657910", "ffb14e093c94c9cac9471648b4f98710", "4722d4dd6d944169eefb54987c"],
        common_iv: ["8540f60a6249560d", "4622d4dd6d944168eefb54987c"],
    };
    check_both((SALT, "", "01", None), &derived);
}

#[test]
fn c_2_keys_without_a_salt() {
    let derived = Derived {
        sender: ["854100f60a634b657910", "321b26943253c7ffb6003b0b64d74041", "bf35ae297d2dace910c52e99f9"],
        recipient: ["854101f60a634b657910", "e57b5635815177cd679ab4bcec9d7dda", "bf35ae297d2dace810c52e99f9"],
        common_iv: ["8540f60a6249560d", "be35ae297d2dace910c52e99f9"],
    };
    check_both(("", "00", "01", None), &derived);
}

#[test]
fn c_3_keys_with_an_id_context() {
    let derived = Derived {
        sender: [
            "85404837cbf3210017a2d30a634b657910",
            "af2a1300a5e95788b356336eeecd2b92",
            "2ca58fb85ff1b81c0b7181b85e",
        ],
        recipient: [
            "8541014837cbf3210017a2d30a634b657910",
            "e39a0c7c77b43f03b4b39ab9a268699f",
            "2da58fb85ff1b81d0b7181b85e",
        ],
        common_iv: ["85404837cbf3210017a2d30a6249560d", "2ca58fb85ff1b81c0b7181b85e"],
    };
    check_both((SALT, "", "01", Some(ID_CONTEXT)), &derived);
}

fn context(end: End<'_>, next: u64) -> Arc<Context> {
    Context::new(&parameters(end), next, Box::new(OneRun), Past::Unused)
}

/// The client protects a request as the vector does, and the server reads it.
#[track_caller]
fn check_request((salt, client, server, id_context): End<'_>, plain: &str, aad: &str, protected: &str) {
    let (plain, expect) = (bytes(plain), bytes(protected));
    let request = CoapMessage::parse(&plain).unwrap();
    let mut association = ClientAssociation::new(context((salt, client, server, id_context), 20));
    assert_eq!(hex(&association.protect(&request, request.token).unwrap()), protected);
    let name = RequestName { kid: &bytes(client), partial_iv: PartialIv::new(20).unwrap() };
    assert_eq!(hex(&authenticated(&name)), aad);
    let keyring = Keyring::new([context((salt, server, client, id_context), 0)]).unwrap();
    let verified = keyring.verify(&CoapMessage::parse(&expect).unwrap()).unwrap();
    assert_eq!(verified.age, Age::New);
    let opened = verified.request.view();
    assert_eq!((opened.code, opened.options.as_bytes()), (request.code, request.options.as_bytes()));
    assert_eq!(opened.payload, request.payload);
}

#[test]
fn c_4_a_request() {
    check_request(
        (SALT, "", "01", None),
        "44015d1f00003974396c6f63616c686f737483747631",
        "8368456e63727970743040488501810a40411440",
        "44025d1f00003974396c6f63616c686f7374620914ff612f1092f1776f1c1668b3825e",
    );
}

#[test]
fn c_5_a_request_with_another_sender() {
    check_request(
        ("", "00", "01", None),
        "440171c30000b932396c6f63616c686f737483747631",
        "8368456e63727970743040498501810a4100411440",
        "440271c30000b932396c6f63616c686f737463091400ff4ed339a5a379b0b8bc731fffb0",
    );
}

#[test]
fn c_6_a_request_with_an_id_context() {
    check_request(
        (SALT, "", "01", Some(ID_CONTEXT)),
        "44012f8eef9bbf7a396c6f63616c686f737483747631",
        "8368456e63727970743040488501810a40411440",
        "44022f8eef9bbf7a396c6f63616c686f73746b19140837cbf3210017a2d3ff72cd7273fd331ac45cffbe55c3",
    );
}

/// The server protects the response to the request of C.4 as the vector does, and the client reads it.
#[track_caller]
fn check_response(nonce: Nonce, protected: &str) {
    let plain = bytes("64455d1f00003974ff48656c6c6f20576f726c6421");
    let response = CoapMessage::parse(&plain).unwrap();
    let request = PartialIv::new(20).unwrap();
    let server = context((SALT, "01", "", None), 0);
    let mut association = ServerAssociation::new(&server, request, Age::New);
    if nonce == Nonce::Fresh {
        association = association.for_notifications();
    }
    assert_eq!(hex(&association.protect(&response).unwrap()), protected);
    let mut client = ClientAssociation::new(context((SALT, "", "01", None), 20));
    let asked = bytes("44015d1f00003974396c6f63616c686f737483747631");
    client.protect(&CoapMessage::parse(&asked).unwrap(), Token::new(&bytes("00003974")).unwrap()).unwrap();
    let expect = bytes(protected);
    let opened = client.open(&CoapMessage::parse(&expect).unwrap()).unwrap();
    assert_eq!((opened.view().code, opened.view().payload), (response.code, response.payload));
}

#[test]
fn c_7_a_response() {
    check_response(Nonce::OfRequest, "64445d1f0000397490ffdbaad1e9a7e7b2a813d3c31524378303cdafae119106");
}

#[test]
fn c_8_a_response_with_a_partial_iv() {
    check_response(Nonce::Fresh, "64445d1f00003974920100ff4d4c13669384b67354b2b6175ff4b8658c666a6cf88e");
}
