//! Ranges of members: kept when a value is written, and not asked for when one is read.

use thalweg_cdr::Representation;

use crate::codec::{self, SampleType};
use crate::document::Document;
use crate::idl;

const RANGES: &str = "
    @final union Choice switch (long) { case 0: @max(9) long small; default: string text; };
    @final struct Inner { @range(min = -1, max = 1.5) double ratio; };
    @final struct T {
      @key @min(1) long id; @max(10) uint64 count; @optional @range(min = 0, max = 5) float maybe;
      sequence<Inner> inners; Choice choice; @min(3) string free;
    };";

/// The same on the wire, without ranges.
const FREE: &str = "
    @final union Choice switch (long) { case 0: long small; default: string text; };
    @final struct Inner { double ratio; };
    @final struct T {
      @key long id; uint64 count; @optional float maybe; sequence<Inner> inners; Choice choice; string free;
    };";

fn sample(id: &str, count: &str, maybe: &str, ratio: &str, small: &str) -> Document {
    let text = format!(
        r#"{{"id":{id},"count":{count},"maybe":{maybe},"inners":[{{"ratio":0}},{{"ratio":{ratio}}}],
        "choice":{{"$discriminator":0,"small":{small}}},"free":"a"}}"#
    );
    Document::from_json(text.as_bytes()).expect("JSON")
}

/// Checks that a value is written without ranges, what is said of it with them, and that it is read all the same.
#[track_caller]
fn check(value: &Document, path: &str, problem: &str) {
    let (ranges, free) = (idl::parse(RANGES).expect("IDL"), idl::parse(FREE).expect("IDL"));
    let of = |types: &idl::Definitions| types.find("T").expect("T").clone();
    let (ranges, free) = (of(&ranges), of(&free));
    let ranges = SampleType::of(&ranges).expect("a structure");
    let free = SampleType::of(&free).expect("a structure");
    let payload = codec::encode(free, value, Representation::Xcdr2).expect("written without ranges");
    let read = codec::decode(ranges, &payload).expect("delivered as it is");
    let key = codec::key_hash(ranges, &read).expect("its instance is known");
    assert_eq!(Ok(key), codec::key_hash(free, value));
    let said = codec::encode(ranges, value, Representation::Xcdr2);
    match said {
        Ok(bytes) => assert_eq!((bytes, ""), (payload, path)),
        Err(error) => assert_eq!((error.path(), error.problem()), (path, problem)),
    }
}

#[test]
fn a_number_outside_of_its_range_is_refused_with_member_value_and_range() {
    check(&sample("1", "10", "5", "1.5", "9"), "", "");
    check(&sample("1", "0", "null", "-1", "-5"), "", "");
    check(&sample("0", "0", "null", "0", "0"), "id", "0 is less than the least value, 1");
    check(&sample("1", "11", "null", "0", "0"), "count", "11 is more than the greatest value, 10");
    check(&sample("1", "0", "5.5", "0", "0"), "maybe", "5.5 is outside of the range from 0 to 5");
    check(&sample("1", "0", "null", "2", "0"), "inners[1].ratio", "2 is outside of the range from -1 to 1.5");
    check(&sample("1", "0", "null", "\"NaN\"", "0"), "inners[1].ratio", "NaN is outside of the range from -1 to 1.5");
    check(&sample("1", "0", "null", "0", "10"), "choice.small", "10 is more than the greatest value, 9");
}

#[test]
fn an_instance_whose_key_is_outside_of_its_range_can_be_ended() {
    let types = idl::parse(RANGES).expect("IDL");
    let of = types.find("T").and_then(SampleType::of).expect("a structure");
    let key = codec::encode_key(of, &sample("0", "0", "null", "0", "0"), Representation::Xcdr2).expect("written");
    assert_eq!(codec::decode_key(of, &key), Ok(Document::from_json(br#"{"id":0}"#).expect("JSON")));
}

#[test]
fn a_range_is_that_of_the_numbers_which_a_member_holds() {
    let types = idl::parse("@final struct T { @max(0.1) float x; @max(9) string text; };").expect("IDL");
    let of = types.find("T").and_then(SampleType::of).expect("a structure");
    let value = |x: &str, text: &str| Document::from_json(format!(r#"{{"x":{x},"text":"{text}"}}"#).as_bytes());
    let written = |x, text| codec::encode(of, &value(x, text).expect("JSON"), Representation::Xcdr2);
    let read = codec::decode(of, &written("0.1", "NaN").expect("no number, and so no range")).expect("read");
    assert!(codec::encode(of, &read, Representation::Xcdr2).is_ok(), "0.1 of 32 bits is more than that of 64");
    assert_eq!(written("0.1000001", "").expect_err("outside").path(), "x");
}
