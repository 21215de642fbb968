//! Type objects, type information and types made of them: no panic, no memory beyond bounds, and what is read is written as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_types::type_object::lookup::{LookupReply, LookupRequest};
use thalweg_types::type_object::{TypeIdentifier, TypeInformation, TypeLibrary, TypeObject, describe};

fuzz_target!(|input: &[u8]| {
    if let Ok(request) = LookupRequest::from_payload(input) {
        let payload = request.to_payload().expect("written");
        assert_eq!(LookupRequest::from_payload(&payload).expect("read again"), request);
    }
    if let Ok(reply) = LookupReply::from_payload(input) {
        let payload = reply.to_payload().expect("written");
        assert!(LookupReply::from_payload(&payload).is_ok());
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
    if let Ok(made) = library.resolve(&TypeIdentifier::Hash(object.equivalence, hash)) {
        let _ = describe(&made);
        let _ = thalweg_types::idl::to_idl([&made]);
    }
});
