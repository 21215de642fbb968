use proptest::prelude::*;

use super::*;
use thalweg_types::document::octets;

const JSON: u16 = content_format::SENML_JSON;
const CBOR: u16 = content_format::SENML_CBOR;

/// What a pack in JSON means, a line for each record.
#[track_caller]
fn check(json: &str, expect: &[&str]) {
    let told = match parse(JSON, json.as_bytes()) {
        Ok(records) => records.iter().map(shown).collect(),
        Err(error) => vec![error.to_string()],
    };
    assert_eq!(told, expect, "{json}");
}

fn shown(record: &SenmlRecord) -> String {
    let value = record.value.as_ref().map_or("-".to_owned(), ToString::to_string);
    let sum = record.sum.map(|sum| format!(" sum {sum}")).unwrap_or_default();
    format!("{} {value} {}@{}{sum}", record.name, record.unit, record.time)
}

#[test]
fn examples_of_the_standard_are_resolved() {
    // RFC 8428 §5.1.1 to §5.1.4.
    check(r#"[{"n":"urn:dev:ow:10e2073a01080063","u":"Cel","v":23.1}]"#, &["urn:dev:ow:10e2073a01080063 23.1 Cel@0"]);
    check(
        r#"[{"bn":"urn:dev:ow:10e2073a0108006:","bt":1.276020076001e+09,"bu":"A","bver":5,"n":"voltage","u":"V","v":120.1},
            {"n":"current","t":-5,"v":1.2},{"n":"current","t":-4,"v":1.3}]"#,
        &[
            "urn:dev:ow:10e2073a0108006:voltage 120.1 V@1276020076.001",
            "urn:dev:ow:10e2073a0108006:current 1.2 A@1276020071.001",
            "urn:dev:ow:10e2073a0108006:current 1.3 A@1276020072.001",
        ],
    );
    check(
        r#"[{"bn":"urn:dev:ow:10e2073a01080063:","n":"temp","u":"Cel","v":23.1},{"n":"label","vs":"Machine Room"},
            {"n":"open","vb":false},{"n":"nfc-reader","vd":"aGkgCg"}]"#,
        &[
            "urn:dev:ow:10e2073a01080063:temp 23.1 Cel@0",
            "urn:dev:ow:10e2073a01080063:label Machine Room @0",
            "urn:dev:ow:10e2073a01080063:open false @0",
            "urn:dev:ow:10e2073a01080063:nfc-reader 0x6869200a @0",
        ],
    );
    check(r#"[{"bn":"a","bv":10,"v":1},{"v":2.5},{"n":"b","s":4}]"#, &["a 11 @0", "a 12.5 @0", "ab 10 @0 sum 4"]);
    check(r#"[{"bn":"a"},{"n":"b","v":1}]"#, &["ab 1 @0"]);
}

#[test]
fn what_breaks_a_rule_is_refused_with_its_record() {
    check("[]", &["the payload is no SenML pack: 1 to 4096 records are needed, not 0"]);
    check("{}", &["the payload is no SenML pack: an array of records is needed"]);
    check(r#"[{"n":"a","v":1},1]"#, &["record 1 of the SenML pack: a map is needed"]);
    check(r#"[{"n":"a","v":1,"vs":"x"}]"#, &["record 0 of the SenML pack: it has both \"v\" and \"vs\""]);
    check(r#"[{"n":"a","v":"1"}]"#, &["record 0 of the SenML pack: \"v\" is a number"]);
    check(r#"[{"n":"a","vb":1}]"#, &["record 0 of the SenML pack: \"vb\" has a value of another type"]);
    check(r#"[{"n":"a","vd":"a?"}]"#, &["record 0 of the SenML pack: \"vd\" is not base64url"]);
    check(r#"[{"v":1}]"#, &["record 0 of the SenML pack: \"\" is no name; letters, digits and -:./_ are allowed"]);
    check(
        r#"[{"n":"a b","v":1}]"#,
        &["record 0 of the SenML pack: \"a b\" is no name; letters, digits and -:./_ are allowed"],
    );
    check(r#"[{"bver":11,"n":"a","v":1}]"#, &["record 0 of the SenML pack: it is of version 11; this reads up to 10"]);
    check(r#"[{"n":"a","v":1,"x_":1}]"#, &["record 0 of the SenML pack: \"x_\" is not understood"]);
    check(r#"[{"n":"a","v":1,"x":1}]"#, &["a 1 @0"]);
    assert!(parse(0, b"[]").is_err());
}

#[test]
fn cbor_is_that_of_the_standard() {
    // A name that is no text.
    let error = parse(CBOR, &[0x81, 0xa2, 0x00, 0x01, 0x02, 0x01]).expect_err("a number is no name");
    assert_eq!(error.to_string(), "record 0 of the SenML pack: \"n\" is a text");
    let records =
        [SenmlRecord::new("a:/x", "Cel", Value::Integer(1)), SenmlRecord::new("a:/y", "", Value::Boolean(true))];
    let written = encode(CBOR, &records).expect("written");
    assert_eq!(Some(written), octets("0x82a42163613a2f00617801634365 6c0201a200617904f5".replace(' ', "").as_str()));
    let json = String::from_utf8(encode(JSON, &records).expect("written")).expect("text");
    assert_eq!(json, r#"[{"bn":"a:/","n":"x","u":"Cel","v":1},{"n":"y","vb":true}]"#);
}

#[test]
fn numbers_that_are_none_are_not_written() {
    let error = encode(JSON, &[SenmlRecord::new("a", "", Value::Real(f64::NAN))]).expect_err("no number");
    assert_eq!(error.to_string(), "record 0 of the SenML pack: SenML cannot say NaN");
    assert!(encode(JSON, &[]).is_err());
    assert!(encode(0, &[SenmlRecord::new("a", "", Value::Integer(1))]).is_err());
}

/// Numbers whose decimal digits are exact.
fn eighths() -> impl Strategy<Value = f64> {
    any::<i32>().prop_map(|number| f64::from(number) / 8.0)
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::Integer),
        eighths().prop_map(Value::Real),
        any::<bool>().prop_map(Value::Boolean),
        ".{0,8}".prop_map(Value::Text),
        proptest::collection::vec(any::<u8>(), 0..9).prop_map(Value::Bytes),
    ]
}

fn any_record() -> impl Strategy<Value = SenmlRecord> {
    let name = "[a-z0-9](/[a-z]{1,3}){0,3}";
    (name, "[a-zA-Z/%]{0,4}", any_value(), proptest::option::of(eighths()), eighths()).prop_map(
        |(name, unit, value, sum, time)| SenmlRecord {
            sum,
            time,
            update_time: None,
            ..SenmlRecord::new(name, unit, value)
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(records in proptest::collection::vec(any_record(), 1..6)) {
        for format in [JSON, CBOR] {
            let bytes = encode(format, &records).expect("written");
            prop_assert_eq!(parse(format, &bytes).expect("read"), records.clone());
        }
    }

    #[test]
    fn whatever_comes_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = (parse(JSON, &bytes), parse(CBOR, &bytes));
    }
}
