use crate::zoo::*;
use thalweg_cdr::*;

#[test]
fn smoke() {
    let s = ShapeType { color: "BLUE".into(), x: 1, y: 2, shapesize: 30, additional_payload_size: vec![1, 2, 3] };
    for r in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut out = vec![];
        encode(&s, r, &mut out).unwrap();
        println!("{out:02x?}");
        assert_eq!(decode::<ShapeType>(&out).unwrap(), s);
        let h = key_hash(&s).unwrap();
        assert_eq!(key_hash_of_payload::<ShapeType>(&out, false).unwrap(), h);
        let mut out = vec![];
        encode_key(&s, r, &mut out).unwrap();
        println!("{out:02x?}");
        assert_eq!(key_hash_of_payload::<ShapeType>(&out, true).unwrap(), h);
    }
}
