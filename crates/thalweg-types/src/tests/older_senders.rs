//! Samples of senders whose types lack the newer members.

use super::*;

#[test]
fn an_older_sender_leaves_newer_members_at_their_default() {
    let mut types = Types::default();
    types.add_idl("struct Old { long a; }; struct New { long a; string b; sequence<octet> c; };").expect("IDL");
    let [old, new] = ["Old", "New"].map(|name| types.find(name).expect("the type"));
    let document = Document::from_json(br#"{"a":1}"#).expect("JSON");
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let bytes = codec::encode(old, &document, representation).expect("encoded");
        let read = codec::decode(new, &bytes).expect("decoded").to_json().expect("JSON");
        assert_eq!(String::from_utf8(read).expect("text"), r#"{"a":1,"b":"","c":"0x"}"#);
    }
}

#[test]
fn elements_of_an_older_sender_have_their_defaults() {
    let mut types = Types::default();
    let idl = "struct Old { long a; }; struct Olds { sequence<Old> of; };
         struct New { long a; string b; long c[3]; }; struct News { sequence<New> of; };";
    types.add_idl(idl).expect("IDL");
    let [old, new] = ["Olds", "News"].map(|name| types.find(name).expect("the type"));
    let elements = vec![Document::Map(vec![("a".into(), Document::Integer(1))]); 10_000];
    let document = Document::Map(vec![("of".into(), Document::Array(elements))]);
    let bytes = codec::encode(old, &document, Representation::Xcdr2).expect("encoded");
    let read = codec::decode(new, &bytes).expect("decoded");
    let last = read.member("of").and_then(|of| of.item(9_999)).expect("it is there").to_json().expect("JSON");
    assert_eq!(last, br#"{"a":1,"b":"","c":[0,0,0]}"#);
}

#[test]
fn a_member_of_the_key_is_never_guessed() {
    let mut types = Types::default();
    let idl = "struct Old { long a; }; struct New { long a; @key long k; };
         @mutable struct OldM { long a; }; @mutable struct NewM { long a; @key long k; };
         struct Olds { Old of; }; struct News { New of; };";
    types.add_idl(idl).expect("IDL");
    for (old, new, given) in
        [("Old", "New", r#"{"a":1}"#), ("OldM", "NewM", r#"{"a":1}"#), ("Olds", "News", r#"{"of":{"a":1}}"#)]
    {
        let [old, new] = [old, new].map(|name| types.find(name).expect("the type"));
        let given = Document::from_json(given.as_bytes()).expect("JSON");
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            let bytes = codec::encode(old, &given, representation).expect("encoded");
            assert!(codec::decode(new, &bytes).is_err(), "{}", new.name);
        }
    }
}

#[derive(Topic, Debug)]
#[topic(crate = "thalweg_cdr", extensibility = "appendable")]
struct Cut {
    a: i32,
    #[topic(key)]
    k: i32,
}

#[derive(Topic, Debug)]
#[topic(crate = "thalweg_cdr", extensibility = "mutable")]
struct CutMutable {
    a: i32,
    #[topic(key, must_understand)]
    k: i32,
}

#[test]
fn derived_and_dynamic_types_refuse_a_missing_key_member_alike() {
    let mut types = Types::default();
    let idl = "struct Old { long a; }; struct Cut { long a; @key long k; };
         @mutable struct OldMutable { long a; }; @mutable struct CutMutable { long a; @key @must_understand long k; };";
    types.add_idl(idl).expect("IDL");
    let given = Document::from_json(br#"{"a":1}"#).expect("JSON");
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let check = |old: &str, new: &str, derived: fn(&[u8]) -> cdr::DecodeError, expect: &str| {
            let [old, of] = [old, new].map(|name| types.find(name).expect("the type"));
            let bytes = codec::encode(old, &given, representation).expect("encoded");
            let (derived, dynamic) = (derived(&bytes), codec::decode(of, &bytes).expect_err("no key"));
            assert_eq!((dynamic.offset(), dynamic.expected()), (derived.offset(), derived.expected()));
            assert!(dynamic.expected().starts_with(expect), "{dynamic}");
        };
        check("Old", "Cut", |bytes| cdr::decode::<Cut>(bytes).expect_err("no key"), "4 bytes of i32");
        check(
            "OldMutable",
            "CutMutable",
            |bytes| cdr::decode::<CutMutable>(bytes).expect_err("no key"),
            "key member 1",
        );
    }
}

#[test]
fn newer_members_have_the_defaults_that_their_definition_gives_them() {
    let mut types = Types::default();
    let idl = "@mutable struct OldM { long a; }; @mutable struct NewM { long a; @default(7) long b; @default(\"x\") string c; };
         struct Old { long a; }; struct Inner { @default(\"[1,2]\") octet d[2]; };
         struct New { long a; @default(7) long b; @default(\"x\") string c; Inner inner; @optional long e; };
         struct Olds { sequence<Old> of; }; struct News { sequence<New> of; };
         union NewU switch (long) { case 0: @default(4) long x; };
         @mutable struct OldUs { long a; }; @mutable struct NewUs { long a; NewU u; };";
    types.add_idl(idl).expect("IDL");
    let all = r#"{"a":1,"b":7,"c":"x","inner":{"d":"0x0102"}}"#;
    let check = |old: &str, new: &str, given: &str, expect: &str| {
        let [old, new] = [old, new].map(|name| types.find(name).expect("the type"));
        let given = Document::from_json(given.as_bytes()).expect("JSON");
        let bytes = codec::encode(old, &given, Representation::Xcdr2).expect("encoded");
        let read = codec::decode(new, &bytes).expect("decoded").to_json().expect("JSON");
        assert_eq!(String::from_utf8(read).expect("text"), expect);
        // What a person leaves out is the same.
        let told = codec::completed(new, given).to_json().expect("JSON");
        assert_eq!(String::from_utf8(told).expect("text"), expect);
    };
    check("OldM", "NewM", r#"{"a":1}"#, r#"{"a":1,"b":7,"c":"x"}"#);
    check("Old", "New", r#"{"a":1}"#, all);
    check("OldUs", "NewUs", r#"{"a":1}"#, r#"{"a":1,"u":{"$discriminator":0,"x":4}}"#);
    check("Olds", "News", r#"{"of":[{"a":1},{"a":1}]}"#, &format!(r#"{{"of":[{all},{all}]}}"#));
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr", extensibility = "appendable")]
struct Text {
    s: String,
    #[topic(default = 7)]
    x: i32,
    y: Option<i16>,
    z: Vec<i32>,
}

#[test]
fn the_padding_of_an_older_sender_is_no_member() {
    let mut types = Types::default();
    let idl = "struct OldText { string s; }; struct Text { string s; long x; @optional short y; sequence<long> z; };";
    types.add_idl(idl).expect("IDL");
    let [old, new] = ["OldText", "Text"].map(|name| types.find(name).expect("the type"));
    for length in 0..9 {
        let text = "abcdefghi"[..length].to_owned();
        let document = Document::Map(vec![("s".into(), Document::Text(text.clone()))]);
        let mut bytes = codec::encode(old, &document, Representation::Xcdr1).expect("encoded");
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let read = codec::decode(new, &bytes).expect("decoded").to_json().expect("JSON");
        assert_eq!(String::from_utf8(read).expect("text"), format!(r#"{{"s":"{text}","x":0,"z":[]}}"#));
        let mut derived = Text { s: String::new(), x: 1, y: Some(1), z: vec![1] };
        let expect = Text { s: text, x: 7, y: None, z: Vec::new() };
        assert_eq!(cdr::decode::<Text>(&bytes).expect("decoded"), expect);
        cdr::decode_into(&mut derived, &bytes).expect("decoded");
        assert_eq!(derived, expect);
    }
}
