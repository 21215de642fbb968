use super::*;

#[track_caller]
fn check(text: &str, expect: &str) {
    let got = PresharedKeys::parse(text).map(|keys| format!("{keys:?}")).unwrap_or_else(|error| error);
    assert!(got.contains(expect), "{text}: {got}");
}

#[test]
fn keys_are_read_alone_and_in_lists() {
    check(r#"{"identity": "a", "key": "0102"}"#, "PresharedKeys(1)");
    check(r#"[{"identity": "a", "key": "0102"}, {"identity": "b", "key": "03"}]"#, "PresharedKeys(2)");
    let keys = PresharedKeys::parse(r#"{"identity": "a", "key": "0aFF"}"#).unwrap();
    assert_eq!(keys.find(b"a"), Some(&[10, 255][..]));
    assert_eq!(keys.find(b"b"), None);
    assert_eq!(keys.single().unwrap().identity, b"a");
}

#[test]
fn what_is_no_key_is_refused_with_the_reason_and_without_the_secret() {
    check(r#"{"identity": "a"}"#, "key is missing");
    check(r#"{"identity": "a", "key": ""}"#, "hexadecimal");
    check(r#"{"identity": "a", "key": "012"}"#, "hexadecimal");
    check(r#"{"identity": "a", "key": "01", "hint": "x"}"#, "hint is not known");
    check(r#"[{"identity": "a", "key": "01"}, {"identity": "a", "key": "02"}]"#, "key 2: its identity occurred before");
    let error = PresharedKeys::parse(r#"{"identity": "a", "key": "secret"}"#).unwrap_err();
    assert!(!error.contains("secret"), "{error}");
}

#[test]
fn what_dtls_cannot_do_here_is_refused_and_not_ignored() {
    check(r#"{"identity": "a", "key": "01", "connection_id": "01"}"#, "connection_id is not supported");
    check(r#"{"raw_public_key": "01"}"#, "raw_public_key is not supported");
}
