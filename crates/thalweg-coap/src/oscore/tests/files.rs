//! Keys and state in files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::message::{CoapMessage, MessageId, MessageType, RequestBuf, Token};
use crate::oscore::file::{ClientContexts, FileError, KeyringFile, load_context, load_keyring};
use crate::oscore::{ClientAssociation, Context, ContextParameters, OneRun, OscoreHeader, Past, Refusal};

/// A directory that is gone at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("thalweg-oscore-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const KEYS: &str = r#"{"master_secret": "0102030405060708090a0b0c0d0e0f10", "sender_id": "", "recipient_id": "01"}"#;
/// With the same secret and other IDs.
const OTHER: &str = r#"{"master_secret": "0102030405060708090a0b0c0d0e0f10", "sender_id": "03", "recipient_id": "02"}"#;

/// The number in the next request of a client.
fn next_number(client: &mut ClientAssociation) -> u64 {
    let request = RequestBuf::get("/");
    let (message_type, id, token) = (MessageType::Confirmable, MessageId(1), Token::EMPTY);
    let message =
        CoapMessage { message_type, code: request.code(), id, token, options: request.view().options, payload: &[] };
    let datagram = client.protect(&message, token).unwrap();
    let outer = CoapMessage::parse(&datagram).unwrap();
    let value = outer.options.value(crate::message::OptionNumber::OSCORE).unwrap();
    OscoreHeader::parse(value).unwrap().partial_iv.unwrap().number()
}

#[test]
fn a_number_is_never_used_again_after_a_crash() {
    let directory = Directory::new("numbers");
    let path = directory.write("keys.json", KEYS);
    let mut highest = None;
    for messages in [3, 1500, 1] {
        // Nothing is written when it ends: that is a crash.
        let mut client = ClientAssociation::new(load_context(&path).unwrap());
        for _ in 0..messages {
            let number = next_number(&mut client);
            assert!(highest.is_none_or(|highest| number > highest), "{number} after {highest:?}");
            highest = Some(number);
        }
    }
    assert!(directory.0.join("keys.json.-01.state").exists());
}

#[test]
fn a_context_has_one_user_at_a_time() {
    let directory = Directory::new("users");
    let path = directory.write("keys.json", KEYS);
    let first = load_context(&path).unwrap();
    let second = load_context(&path).unwrap_err().to_string();
    assert!(second.contains("another process uses this context"), "{second}");
    drop(first);
    assert!(load_context(&path).is_ok());
}

#[test]
fn a_server_that_was_restarted_does_not_know_what_it_accepted() {
    let directory = Directory::new("restart");
    let path = directory.write("keys.json", KEYS);
    let parameters = ContextParameters::new(&super::bytes("0102030405060708090a0b0c0d0e0f10"), &[1], &[]).unwrap();
    let mut client = ClientAssociation::new(Context::new(&parameters, 0, Box::new(OneRun), Past::Unused));
    let request = RequestBuf::get("/");
    let (message_type, id, token) = (MessageType::Confirmable, MessageId(1), Token::EMPTY);
    let view = request.view();
    let message = CoapMessage { message_type, code: view.code, id, token, options: view.options, payload: &[] };
    let datagram = client.protect(&message, token).unwrap();
    let age = |path: &Path| load_keyring(path).unwrap().verify(&CoapMessage::parse(&datagram).unwrap()).unwrap().age;
    assert_eq!(format!("{:?}", age(&path)), "New");
    let challenges = [format!("{:?}", age(&path)), format!("{:?}", age(&path))];
    assert!(challenges.iter().all(|challenge| challenge.starts_with("Unknown")), "{challenges:?}");
    assert_ne!(challenges[0], challenges[1], "nobody can guess it");
}

#[track_caller]
fn check(name: &str, text: &str, expect: &str) {
    let directory = Directory::new(name);
    let path = directory.write("keys.json", text);
    let error = load_context(&path).unwrap_err().to_string();
    assert!(error.contains(expect) && error.contains("keys.json"), "{error}");
    assert!(!error.contains("0102030405"), "the secret is in {error}");
}

#[test]
fn files_that_cannot_be_used_are_told_what_is_wrong() {
    let with = |more: &str| KEYS.replace('}', &format!(", {more}}}"));
    check("form", "{", "EOF");
    check("missing", r#"{"master_secret": "01020304050607080910111213141516"}"#, "sender_id is missing");
    check("digits", &KEYS.replace("\"01\"", "\"1\""), "two for each byte");
    check("short", &KEYS.replace("0a0b0c0d0e0f10", ""), "at least 16 bytes");
    check("algorithm", &with(r#""algorithm": "ChaCha20/Poly1305""#), "\"ChaCha20/Poly1305\" is not built in");
    check("hkdf", &with(r#""hkdf": "HKDF-SHA-512""#), "use HKDF-SHA-256");
    check("unknown", &with(r#""master_secert": """#), "master_secert is no key");
    check("window", &with(r#""replay_window": 0"#), "from 1 to 64");
    check("several", &format!("[{KEYS}, {OTHER}]"), "exactly one context");
    check("none", "[]", "exactly one context");
    check("state", &with(r#""state": "nowhere/x""#), "nowhere/x");
    let directory = Directory::new("damaged");
    directory.write("keys.json.-01.state", "{\"next_sequence_");
    let path = directory.write("keys.json", KEYS);
    let error = load_context(&path).unwrap_err().to_string();
    assert!(error.contains("damaged") && error.contains("new master_secret"), "{error}");
}

#[test]
fn everything_that_can_be_said_is_understood() {
    let directory = Directory::new("all");
    let all = r#"[{"master_secret": "0102030405060708090a0b0c0d0e0f10", "master_salt": "9e7ca92223786340",
        "sender_id": "", "recipient_id": "01", "id_context": "37cbf3210017a2d3", "algorithm": "AES-CCM-16-64-128",
        "hkdf": "HKDF-SHA-256", "replay_window": 64, "state": "my.state"}]"#;
    let context = load_context(&directory.write("keys.json", all)).unwrap();
    assert_eq!((context.recipient_id(), context.id_context()), (&[1][..], Some(&super::bytes("37cbf3210017a2d3")[..])));
    assert!(directory.0.join("my.state").exists());
    assert!(load_keyring(&directory.write("two.json", &format!("[{KEYS}, {OTHER}]"))).is_ok());
    let same = format!("[{KEYS}, {}]", KEYS.replace("0102", "ffff").replace(": \"\"", ": \"03\""));
    let error = load_keyring(&directory.write("same.json", &same)).unwrap_err().to_string();
    assert!(error.contains("same id_context"), "{error}");
}

#[test]
fn contexts_with_one_secret_have_no_id_in_common_wherever_they_stand() {
    let directory = Directory::new("ids");
    let with = |sender: &str, recipient: &str| {
        let secret = "0102030405060708090a0b0c0d0e0f10";
        format!(r#"{{"master_secret": "{secret}", "sender_id": "{sender}", "recipient_id": "{recipient}"}}"#)
    };
    let check = |error: FileError, names: [&str; 2]| {
        let error = error.to_string();
        assert!(names.iter().all(|name| error.contains(name)) && error.contains("used twice"), "{error}");
    };
    let names = ["sender_id \"\" and recipient_id \"01\"", "sender_id \"\" and recipient_id \"02\""];
    let keys = |first: &str, second: &str| directory.write("keys.json", &format!("[{first}, {second}]"));
    check(load_keyring(&keys(KEYS, &with("", "02"))).unwrap_err(), names);
    // The peers have a key in common, and this end has that of a peer.
    check(load_keyring(&keys(KEYS, &with("03", "01"))).unwrap_err(), [names[0], "recipient_id \"01\" in"]);
    check(load_keyring(&keys(KEYS, &with("01", "02"))).unwrap_err(), [names[0], "sender_id \"01\" and"]);
    for beside in [with("03", "02"), with("", "02").replace("0102", "ffff"), with("01", "")] {
        assert!(load_keyring(&keys(KEYS, &beside)).is_ok(), "{beside}");
    }
    let id_context = with("", "02").replace('}', ", \"id_context\": \"aa\"}");
    assert!(load_keyring(&keys(KEYS, &id_context)).is_ok());
    // Nor in files of their own, of a server and of a client beside it, now and when they are read again.
    let mut server = KeyringFile::load(&directory.write("server.json", KEYS)).unwrap();
    let mut contexts = server.client_contexts();
    let thing = directory.write("thing.json", &with("", "02"));
    check(contexts.load(&thing).unwrap_err(), ["server.json", "thing.json"]);
    directory.write("thing.json", &with("05", "06"));
    let held = contexts.load(&thing).unwrap();
    let second = directory.write("second.json", &with("05", "07"));
    check(contexts.load(&second).unwrap_err(), ["thing.json", "second.json"]);
    let path = directory.write("server.json", &format!("[{KEYS}, {}]", with("05", "07")));
    check(server.reload(&path).unwrap_err(), ["thing.json", "server.json"]);
    drop(held);
    assert!(server.reload(&path).is_ok(), "nobody uses it any more");
    let moved = format!("[{}]", KEYS.replace('}', ", \"state\": \"moved\"}"));
    check(server.reload(&directory.write("server.json", &moved)).unwrap_err(), [names[0], names[0]]);
}

#[test]
fn a_file_that_is_read_again_keeps_contexts_that_stay_and_retires_those_that_are_gone() {
    let directory = Directory::new("again");
    let path = directory.write("keys.json", &format!("[{KEYS}, {OTHER}]"));
    let mut file = KeyringFile::load(&path).unwrap();
    let keyring = std::sync::Arc::clone(file.keyring());
    let secret: Vec<u8> = (1..=16).collect();
    let own = ContextParameters::new(&secret, b"\x01", b"").unwrap();
    let own = Context::new(&own, 0, Box::new(OneRun), Past::Unused);
    let request = || {
        let request = RequestBuf::get("/");
        let (message_type, id, token) = (MessageType::Confirmable, MessageId(1), Token::EMPTY);
        let options = request.view().options;
        let message = CoapMessage { message_type, code: request.code(), id, token, options, payload: &[] };
        ClientAssociation::new(own.clone()).protect(&message, token).unwrap()
    };
    let said = |datagram: &[u8]| keyring.verify(&CoapMessage::parse(datagram).unwrap());
    let first = request();
    let association = said(&first).unwrap().association;
    directory.write("keys.json", &format!("[{KEYS}]"));
    file.reload(&path).unwrap();
    assert_eq!(said(&first).unwrap_err(), Refusal::Replay, "what came before is known");
    assert!(said(&request()).is_ok() && !association.context().is_retired());
    // The numbers of the context are in use.
    directory.write("keys.json", &KEYS.replace("0102", "ffff"));
    let error = file.reload(&path).unwrap_err().to_string();
    assert!(error.contains("needs another state"), "{error}");
    assert!(said(&request()).is_ok(), "the contexts before hold");
    directory.write("keys.json", &format!("[{OTHER}]"));
    file.reload(&path).unwrap();
    assert_eq!(said(&request()).unwrap_err(), Refusal::UnknownContext);
    assert!(association.context().is_retired());
}

#[test]
fn a_client_takes_a_context_for_another_server_while_requests_to_the_first_are_under_way() {
    let directory = Directory::new("servers");
    let path = directory.write("keys.json", KEYS);
    let mut contexts = ClientContexts::default();
    let first = contexts.load(&path).unwrap();
    let error = contexts.load(&path).unwrap_err().to_string();
    assert!(error.contains("another server has this context"), "{error}");
    let mut under_way = ClientAssociation::new(first.context().clone());
    let number = next_number(&mut under_way);
    drop(first);
    let second = contexts.load(&path).unwrap();
    assert_eq!(next_number(&mut ClientAssociation::new(second.context().clone())), number + 1);
    drop(second);
    directory.write("keys.json", &KEYS.replace("0102", "ffff"));
    assert!(contexts.load(&path).unwrap_err().to_string().contains("needs another state"));
    drop(under_way);
    assert!(contexts.load(&path).is_ok(), "nobody uses it any more");
}
