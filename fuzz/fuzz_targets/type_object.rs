//! Type objects, type information and types made of them: no panic, no memory beyond bounds, and what is read is written as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_types::type_object::lookup::{LookupReply, LookupRequest};
use thalweg_types::type_object::{Equivalence, TypeIdentifier, TypeInformation, TypeLibrary, TypeObject, describe};

fuzz_target!(|input: &[u8]| {
    if let Ok(request) = LookupRequest::from_payload(input) {
        let payload = request.to_payload().expect("written");
        assert_eq!(LookupRequest::from_payload(&payload).expect("read again"), request);
    }
    if let Ok(reply) = LookupReply::from_payload(input) {
        let payload = reply.to_payload().expect("written");
        assert_eq!(LookupReply::from_payload(&payload).expect("read again"), reply);
    }
    if let Ok(information) = TypeInformation::from_bytes(input) {
        let bytes = information.to_bytes().expect("written");
        assert_eq!(TypeInformation::from_bytes(&bytes).expect("read again"), information);
    }
    let Ok(object) = TypeObject::from_bytes(input) else { return };
    if let Ok(bytes) = object.to_bytes() {
        let again = TypeObject::from_bytes(&bytes).expect("read again");
        assert_eq!(again.dependencies(), object.dependencies());
    }
    let hash = TypeObject::hash_of(input);
    let mut library = TypeLibrary::default();
    library.insert(hash, input).expect("it was read");
    use_type(&library, &TypeIdentifier::Hash(object.equivalence, hash));
    let whole = insert_alone(&mut library, object.equivalence, input);
    use_type(&library, &whole);
});

fn use_type(library: &TypeLibrary, of: &TypeIdentifier) {
    let Ok(made) = library.resolve(of) else { return };
    let _ = describe(&made);
    let _ = thalweg_types::idl::to_idl([&made]);
    let _ = thalweg_types::assign::check(&made, &made.clone(), thalweg_types::assign::Permitted::default());
    if let Some(of) = thalweg_types::codec::SampleType::of(&made) {
        let empty = thalweg_types::document::Document::Map(Vec::new());
        let _ = thalweg_types::codec::completed(of, empty);
        let _ = thalweg_types::codec::decode(of, &[0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
    }
}

/// Takes an object in as the only type of a component: where it names a component of one type with the hash zero, it names itself.
fn insert_alone(library: &mut TypeLibrary, equivalence: Equivalence, input: &[u8]) -> TypeIdentifier {
    let hash = TypeObject::hash_of_component(&[input.to_vec()]).expect("a hash");
    let mut object = input.to_vec();
    for at in 0..object.len().saturating_sub(19) {
        let is_own = object[at] == equivalence.octet()
            && object[at + 1..at + 15] == [0; 14]
            && object[at + 16..at + 20] == 1_i32.to_le_bytes();
        if is_own {
            object[at + 1..at + 15].copy_from_slice(&hash.0);
        }
    }
    let whole = TypeIdentifier::Component { equivalence, hash, length: 1, index: 0 };
    // Refused where the bytes that were zero were none of an identifier.
    let _ = library.insert_component(&whole, &[object]);
    whole
}
