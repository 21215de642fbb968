//! Type objects against those of other vendors, and against all that a peer may send.

use std::collections::BTreeMap;

use thalweg_cdr::description::Type;
use thalweg_cdr::{ByteOrder, Decode, Decoder, Extensibility, Representation};

use super::*;
use crate::idl::{self, Reading};

const IDL: &str = include_str!("../../testdata/type_objects/cyclone.idl");
const MADE_BY_CYCLONE: &str = include_str!("../../testdata/type_objects/cyclone.txt");

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("digits")).collect()
}

/// A type, what Cyclone announces of it, the bytes of that, and its objects.
type Made = (Type, TypeInformation, Vec<u8>, BTreeMap<TypeHash, Vec<u8>>);

/// Cyclone's types: each with its information and the objects of its type map.
fn of_cyclone() -> Vec<Made> {
    let reading = Reading { extensibility: Extensibility::Final, ..Reading::default() };
    let types = idl::parse_as(IDL, &reading).unwrap_or_else(|error| panic!("{error}"));
    let of_line = |line: &str| {
        let parts: Vec<&str> = line.split(' ').collect();
        let found = types.find(parts[0]).unwrap_or_else(|| panic!("{} is in the IDL", parts[0]));
        let (information, map) = (hex(parts[1]), hex(parts[2]));
        let read = TypeInformation::from_bytes(&information).unwrap_or_else(|error| panic!("{}: {error}", parts[0]));
        (found.clone(), read, information, type_map(&map))
    };
    MADE_BY_CYCLONE.lines().map(of_line).collect()
}

/// The objects in Cyclone's `TypeMapping`, with their bytes as they are.
fn type_map(bytes: &[u8]) -> BTreeMap<TypeHash, Vec<u8>> {
    let mut decoder = Decoder::new(bytes, Representation::Xcdr2, ByteOrder::Little);
    let mut objects = BTreeMap::new();
    for _ in 0..2 {
        decoder
            .collection(false, |decoder| {
                for _ in 0..decoder.length(1)? {
                    let TypeIdentifier::Hash(_, hash) = TypeIdentifier::decode(decoder)? else { panic!("a hash") };
                    decoder.align(4);
                    let start = decoder.offset();
                    TypeObject::decode(decoder)?;
                    objects.insert(hash, bytes[start..decoder.offset()].to_vec());
                }
                Ok(())
            })
            .expect("a type map");
    }
    objects
}

#[test]
fn type_objects_are_those_of_cyclone() {
    let mut failed = Vec::new();
    let all = of_cyclone();
    let of_all: BTreeMap<&TypeHash, &Vec<u8>> = all.iter().flat_map(|(.., objects)| objects).collect();
    assert!(of_all.len() >= 2 * 150, "{} objects, two of each type that has a name", of_all.len());
    for (found, theirs, information, objects) in &all {
        let name = found.name().expect("a name");
        let ours = describe(found).unwrap_or_else(|error| panic!("{name}: {error}"));
        let ours_by_hash: BTreeMap<TypeHash, Vec<u8>> = ours.objects.iter().cloned().collect();
        let same =
            (ours.information.minimal.of == theirs.minimal.of, ours.information.complete.of == theirs.complete.of);
        if same != (true, true) || ours_by_hash != *objects {
            failed.push((name, same));
            let (own, other) = (&ours.information.complete.of, &theirs.complete.of);
            if failed.len() < 4 && same != (true, true) {
                let read = |map: &BTreeMap<TypeHash, Vec<u8>>, with: &TypeWithSize| match &with.identifier {
                    TypeIdentifier::Hash(_, hash) => TypeObject::from_bytes(&map[hash]).expect("an object"),
                    other => panic!("{other:?}"),
                };
                println!("{name}\n ours   {:?}\n theirs {:?}", read(&ours_by_hash, own), read(objects, other));
            }
            continue;
        }
        let sorted = |information: &TypeInformation| {
            let mut sorted = information.clone();
            sorted.minimal.dependencies.sort_by(|a, b| a.identifier.cmp(&b.identifier));
            sorted.complete.dependencies.sort_by(|a, b| a.identifier.cmp(&b.identifier));
            sorted
        };
        assert_eq!(sorted(&ours.information), sorted(theirs), "{name}");
        assert_eq!(ours.information.to_bytes().expect("written").len(), information.len(), "{name}");
        assert_eq!(theirs.to_bytes().expect("written"), *information, "{name}");
    }
    assert!(failed.is_empty(), "{} of {} differ: {failed:?}", failed.len(), all.len());
}

#[test]
fn a_type_is_made_again_of_its_objects() {
    for (found, theirs, _, objects) in of_cyclone() {
        let mut library = TypeLibrary::default();
        objects.iter().for_each(|(hash, bytes)| library.insert(*hash, bytes).expect("room"));
        let made = library.resolve(theirs.identifier()).unwrap_or_else(|error| panic!("{error}"));
        let again = describe(&made).expect("described");
        assert_eq!(again.information.complete.of, theirs.complete.of, "{}", idl::to_idl([&found]));
        assert!(library.resolve(&theirs.minimal.of.identifier).is_ok());
    }
}

#[test]
fn each_object_is_written_as_it_was_read() {
    for (.., objects) in of_cyclone() {
        for bytes in objects.values() {
            let object = TypeObject::from_bytes(bytes).expect("an object");
            assert_eq!(object.to_bytes().expect("written"), *bytes);
            for length in 0..bytes.len() {
                // Whatever is cut off, it is an error and no panic.
                assert!(TypeObject::from_bytes(&bytes[..length]).is_err());
            }
        }
    }
}

#[test]
fn an_object_is_known_whatever_a_peer_leaves_in_its_padding() {
    let mut padding = 0;
    for (.., objects) in of_cyclone().into_iter().take(20) {
        for (hash, bytes) in objects {
            let object = TypeObject::from_bytes(&bytes).expect("an object");
            for place in 0..bytes.len() {
                let mut dirty = bytes.clone();
                dirty[place] ^= 0x6d;
                if TypeObject::from_bytes(&dirty).is_ok_and(|read| read == object) {
                    let mut library = TypeLibrary::default();
                    assert_eq!(library.insert(hash, &dirty), Ok(()), "octet {place} of {}", bytes.len());
                    assert_eq!(
                        library.get(&hash).map(|kept| kept.to_vec()),
                        Some(bytes.clone()),
                        "as others are told it"
                    );
                    padding += 1;
                }
            }
        }
    }
    assert!(padding > 20, "{padding} octets of padding");
}

#[test]
fn an_object_under_a_false_name_is_refused() {
    let (_, _, _, objects) = of_cyclone().swap_remove(0);
    let (hash, bytes) = objects.into_iter().next().expect("an object");
    let mut library = TypeLibrary::default();
    assert_eq!(library.insert(TypeHash([0; 14]), &bytes), Err(LibraryError::WrongHash));
    let garbage = [1, 2, 3];
    let named = library.insert(TypeObject::hash_of(&garbage), &garbage);
    assert!(matches!(named, Err(LibraryError::Malformed(_))), "{named:?}");
    library.insert(hash, &bytes).expect("the first");
    assert_eq!(library.insert(hash, &bytes), Ok(()), "it is there already");
    assert_eq!((library.len(), library.refused()), (1, 2));
    let mut small = TypeLibrary::new(LibraryBounds { bytes_max: bytes.len() - 1, ..LibraryBounds::default() });
    assert_eq!(small.insert(hash, &bytes), Err(LibraryError::Full));
    assert_eq!((small.len(), small.refused()), (0, 1));
}

#[test]
fn own_objects_take_no_room_of_others_and_stay_when_those_are_forgotten() {
    let mut library = TypeLibrary::new(LibraryBounds { objects_max: 4, ..LibraryBounds::default() });
    let mut others: Vec<TypeIdentifier> =
        (0..4).map(|count| inserted(&mut library, structure_of(TypeIdentifier::None, vec![number(); count]))).collect();
    let own = describe(&idl::parse("struct S { long x; };").expect("IDL").iter().next().expect("S").clone());
    for (hash, bytes) in own.expect("described").objects {
        assert_eq!(library.insert_own(hash, &bytes), Ok(()));
        assert_eq!(library.insert(hash, &bytes), Ok(()), "others have it, too");
        assert!(library.get(&hash).is_some());
    }
    assert_eq!((library.len(), others.iter().all(|other| library.contains(other))), (6, true));
    // The second of them is our own, too, which leaves room for one.
    let TypeIdentifier::Hash(_, hash) = others.remove(1) else { panic!("a hash") };
    let bytes = library.get(&hash).expect("it is there").to_vec();
    assert_eq!(library.insert_own(hash, &bytes), Ok(()));
    others.push(inserted(&mut library, structure_of(TypeIdentifier::None, vec![number(); 4])));
    assert_eq!((library.len(), others.iter().all(|other| library.contains(other))), (7, true));
    let last = inserted(&mut library, structure_of(TypeIdentifier::None, vec![number(); 5]));
    assert!(library.contains(&last) && library.get(&hash).is_some());
    assert_eq!((library.len(), others.iter().any(|other| library.contains(other))), (4, false));
    assert_eq!(library.refused(), 0);
}

#[test]
fn own_components_stay_when_others_are_forgotten() {
    let text = "struct Node; @final struct Tree { sequence<Node> all; }; @final struct Node { @optional Tree tree; };";
    let described = describe(idl::parse(text).expect("IDL").find("Tree").expect("Tree")).expect("described");
    let [one, other] = &described.components[..] else { panic!("minimal and complete") };
    let mut library = TypeLibrary::new(LibraryBounds { objects_max: 2, ..LibraryBounds::default() });
    assert_eq!(library.insert_own_component(&one.identifier, &one.objects), Ok(()));
    assert_eq!(library.insert_component(&other.identifier, &other.objects), Ok(()));
    let last = inserted(&mut library, structure_of(TypeIdentifier::None, [number()]));
    let has = [&one.identifier, &other.identifier, &last].map(|of| library.contains(of));
    assert_eq!((has, library.len()), ([true, false, true], 3));
}

#[test]
fn a_type_that_needs_more_than_half_of_the_room_is_refused_before_its_objects_are_asked_for() {
    let mut there = TypeLibrary::default();
    let parts: Vec<TypeIdentifier> =
        (0..4).map(|count| inserted(&mut there, structure_of(TypeIdentifier::None, vec![number(); count]))).collect();
    for (count, is_refused) in [(3, false), (4, true)] {
        let mut library = TypeLibrary::new(LibraryBounds { objects_max: 8, ..LibraryBounds::default() });
        let of = inserted(&mut library, structure_of(TypeIdentifier::None, parts[..count].to_vec()));
        match library.resolve(&of) {
            Err(LibraryError::Missing(missing)) => assert_eq!((missing.len(), is_refused), (count, false)),
            other => assert!(is_refused && matches!(other, Err(LibraryError::Refused(_))), "{other:?}"),
        }
    }
}

#[test]
fn dependencies_of_many_types_are_looked_at_once_and_within_a_bound() {
    let mut library = TypeLibrary::default();
    let mut chain = Vec::new();
    for _ in 0..2_000 {
        let last = chain.last().cloned().unwrap_or_else(number);
        chain.push(inserted(&mut library, structure_of(TypeIdentifier::None, [last])));
    }
    let bytes: usize = chain.iter().filter_map(|of| library.object_bytes(of)).sum();
    let found = library.dependencies(&chain[1_744..], bytes).expect("within the bound");
    assert_eq!((found.objects.len(), found.bytes), (1_999, bytes));
    assert_eq!(library.dependencies(&chain[1_744..], bytes - 1), None);
}

#[test]
fn few_bytes_that_would_make_a_huge_type_are_refused() {
    // Each structure has the one before it twice: 2^40 members.
    let mut library = TypeLibrary::default();
    let mut last = TypeIdentifier::Primitive(thalweg_cdr::description::Primitive::Int32);
    for _ in 0..40 {
        let member = |id: u32| ObjectMember {
            id,
            flags: 1,
            member_type: last.clone(),
            labels: Vec::new(),
            name: MemberName::Hash([id as u8; 4]),
        };
        let body = ObjectBody::Structure { base: TypeIdentifier::None, members: vec![member(0), member(1)] };
        let object = TypeObject { equivalence: Equivalence::Minimal, flags: 1, header: TypeHeader(None), body };
        let bytes = object.to_bytes().expect("written");
        let hash = TypeObject::hash_of(&bytes);
        library.insert(hash, &bytes).expect("room");
        last = TypeIdentifier::Hash(Equivalence::Minimal, hash);
    }
    assert!(matches!(library.resolve(&last), Err(LibraryError::Refused(_))));
    let header = CollectionHeader { equivalence: None, element_flags: 1 };
    let array = TypeIdentifier::Array { header, bounds: vec![u32::MAX; 3], element: Box::new(last) };
    assert!(library.resolve(&array).is_err());
}

/// Takes in a minimal object of this body.
fn inserted(library: &mut TypeLibrary, body: ObjectBody) -> TypeIdentifier {
    let object = TypeObject { equivalence: Equivalence::Minimal, flags: 1, header: TypeHeader(None), body };
    let bytes = object.to_bytes().expect("written");
    let hash = TypeObject::hash_of(&bytes);
    library.insert(hash, &bytes).expect("room");
    TypeIdentifier::Hash(Equivalence::Minimal, hash)
}

fn structure_of(base: TypeIdentifier, types: impl IntoIterator<Item = TypeIdentifier>) -> ObjectBody {
    let member = |(id, member_type): (u32, TypeIdentifier)| ObjectMember {
        id,
        flags: 1,
        member_type,
        labels: Vec::new(),
        name: MemberName::Hash(id.to_be_bytes()),
    };
    ObjectBody::Structure { base, members: (0..).zip(types).map(member).collect() }
}

fn number() -> TypeIdentifier {
    TypeIdentifier::Primitive(thalweg_cdr::description::Primitive::Int32)
}

/// Holds that the type is made where nothing is expected, and else why it is refused.
#[track_caller]
fn check_refused(library: &TypeLibrary, of: &TypeIdentifier, part: Option<&str>) {
    match (library.resolve(of), part) {
        (Ok(_), None) => {}
        (Err(LibraryError::Refused(why)), Some(part)) => assert!(why.contains(part), "{part:?} not in {why:?}"),
        (other, _) => panic!("{part:?} is expected, not {:?}", other.map(drop)),
    }
}

#[test]
fn each_dimension_of_an_array_is_a_level() {
    let mut library = TypeLibrary::default();
    let header = CollectionHeader { equivalence: None, element_flags: 1 };
    for (count, part) in [(60, None), (64, Some("levels")), (100_000, Some("levels"))] {
        let body = ObjectBody::Array { bounds: vec![1; count], element: (1, number()) };
        let of = inserted(&mut library, body);
        check_refused(&library, &of, part);
    }
    let array = |element| TypeIdentifier::Array { header, bounds: vec![1; 60], element: Box::new(element) };
    check_refused(&library, &array(number()), None);
    check_refused(&library, &array(array(number())), Some("levels"));
}

#[test]
fn a_type_that_is_known_nests_as_deep_as_where_it_was_made() {
    // All structures of a chain, the innermost first: each is made of one that is there.
    for (count, part) in [(60, None), (100, Some("levels"))] {
        let mut library = TypeLibrary::default();
        let mut all = Vec::new();
        let mut last = number();
        for _ in 0..count {
            last = inserted(&mut library, structure_of(TypeIdentifier::None, [last]));
            all.push(last.clone());
        }
        let root = inserted(&mut library, structure_of(TypeIdentifier::None, all));
        check_refused(&library, &root, part);
    }
}

#[test]
fn what_structures_have_from_their_bases_is_bounded() {
    for (count, part) in [(5, None), (40, Some("too many members"))] {
        let mut library = TypeLibrary::default();
        let mut last = inserted(&mut library, structure_of(TypeIdentifier::None, vec![number(); 10_000]));
        for _ in 0..count {
            last = inserted(&mut library, structure_of(last, [number()]));
        }
        check_refused(&library, &last, part);
    }
}

#[test]
fn messages_of_type_lookup_come_back() {
    use super::lookup::{LookupAnswer, LookupCall, LookupReply, LookupRequest, RequestIdentity, instance_name};
    let identity = RequestIdentity { writer: [7; 16], number: 5 << 32 | 9 };
    let (_, information, _, objects) = of_cyclone().swap_remove(0);
    let types = vec![information.identifier().clone(), TypeIdentifier::String { is_wide: false, bound: 7 }];
    for call in [LookupCall::Types(types.clone()), LookupCall::Dependencies(types, vec![1, 2, 3])] {
        let request = LookupRequest { identity, instance: instance_name(&[0xab; 16]), call };
        let payload = request.to_payload().expect("written");
        assert_eq!(LookupRequest::from_payload(&payload), Ok(request));
        for length in 0..payload.len() - 4 {
            let _ = LookupRequest::from_payload(&payload[..length]);
        }
    }
    let pairs = vec![(information.complete.of.identifier.clone(), information.minimal.of.identifier.clone())];
    let named = |(hash, bytes): (TypeHash, Vec<u8>)| (TypeIdentifier::Hash(Equivalence::Complete, hash), bytes);
    let objects: Vec<(TypeIdentifier, Vec<u8>)> = objects.into_iter().map(named).collect();
    let dependencies = LookupAnswer::Dependencies(vec![information.minimal.of.clone()], vec![9]);
    for answer in [Some(LookupAnswer::Types(objects, pairs)), Some(dependencies), None] {
        let reply = LookupReply { identity, answer };
        let payload = reply.to_payload().expect("written");
        assert_eq!(LookupReply::from_payload(&payload), Ok(reply));
        for length in 0..payload.len() - 4 {
            let _ = LookupReply::from_payload(&payload[..length]);
        }
    }
}
