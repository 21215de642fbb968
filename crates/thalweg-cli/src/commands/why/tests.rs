use std::sync::Arc;

use thalweg::qos::{ReaderQos, WriterQos};
use thalweg::types::{EntityId, Keyed};
use thalweg_types::type_object::{
    Equivalence, TypeHash, TypeIdentifier, TypeInformation, TypeWithDependencies, TypeWithSize,
};

use super::*;

/// What a participant announces of a type that it never tells.
fn untold(number: u8) -> Option<Arc<[u8]>> {
    let identifier = TypeIdentifier::Hash(Equivalence::Complete, TypeHash([number; 14]));
    let of = TypeWithSize { identifier, object_bytes: 100 };
    let complete = TypeWithDependencies { of, ..TypeWithDependencies::default() };
    let information = TypeInformation { complete, ..TypeInformation::default() };
    Some(information.to_bytes().expect("bytes").into())
}

#[test]
fn types_that_are_never_told_keep_all_pairs_together_waiting_until_the_deadline_only() {
    let tag = format!("why-{}", std::process::id());
    let participant = DomainParticipant::builder(0).loopback_only().domain_tag(tag).create().expect("a participant");
    let guid = |entity: EntityId| Guid::new(GuidPrefix([9; 12]), entity);
    let reader = guid(EntityId::user_reader(1, Keyed::No));
    let reader = SubscriptionData::new(reader, "t", "T", ReaderQos::default()).with_type_information(untold(100));
    let comparison = EndpointComparison::new(&participant);
    let begun = Instant::now();
    for number in 1..=8 {
        let writer = guid(EntityId::user_writer(u32::from(number), Keyed::No));
        let writer = PublicationData::new(writer, "t", "T", WriterQos::default()).with_type_information(untold(number));
        let deadline = begun + Duration::from_millis(700);
        let (matching, mismatches) = compare_with_all(&comparison, &writer, &[&reader], deadline);
        assert_eq!((matching.len(), mismatches.len()), (1, 0), "the names decide");
    }
    let elapsed = begun.elapsed();
    assert!((Duration::from_millis(500)..Duration::from_secs(2)).contains(&elapsed), "{elapsed:?}");
}
