//! Values of discriminators that have no label of their sign.

use super::*;

#[test]
fn the_labels_of_unsigned_numbers_reach_to_their_end() {
    let mut types = Types::default();
    let idl = "@final union U switch (unsigned long) { case 0x80000001: long x; case 4294967295: short z; default: octet y; };
         @final struct T { U u; long after; };";
    types.add_idl(idl).expect("IDL");
    let of = types.find("T").expect("the type");
    for (json, label) in [
        (r#"{"u":{"$discriminator":2147483649,"x":5},"after":6}"#, 0x8000_0001_u32),
        (r#"{"u":{"$discriminator":4294967295,"z":5},"after":6}"#, u32::MAX),
        (r#"{"u":{"$discriminator":1,"y":5},"after":6}"#, 1),
    ] {
        let document = Document::from_json(json.as_bytes()).expect("JSON");
        let bytes = codec::encode(of, &document, Representation::Xcdr2).expect("encoded");
        assert_eq!(bytes[4..8], label.to_le_bytes());
        let read = codec::decode(of, &bytes).expect("decoded");
        assert_eq!(as_json(&read.to_json().expect("JSON")), as_json(json.as_bytes()));
    }
    let by_name = Document::from_json(br#"{"u":{"x":5},"after":6}"#).expect("JSON");
    let bytes = codec::encode(of, &by_name, Representation::Xcdr2).expect("encoded");
    assert_eq!(bytes[4..8], 0x8000_0001_u32.to_le_bytes());
    let text = idl::to_idl([&Type::Structure(std::sync::Arc::clone(of))]);
    assert!(text.contains("case 2147483649:") && text.contains("case 4294967295:"), "{text}");
    let error = Types::default().add_idl("union U switch (unsigned long) { case -1: long x; };").expect_err("signed");
    assert!(error.to_string().contains("does not fit"), "{error}");
}
