//! Bounds of one subscriber over all publishers.

use super::*;
use crate::history::{CachedSample, ChangeKind, PayloadKind};
use crate::payload::Payload;
use crate::qos::AccessScope;
use crate::reader::GroupMark;
use crate::types::{KeyHash, Keyed};
use crate::wire::parameters::GroupPlace;

fn guid(publisher: usize, number: u32) -> Guid {
    let mut prefix = [7; 12];
    prefix[..8].copy_from_slice(&publisher.to_be_bytes());
    Guid::new(GuidPrefix(prefix), EntityId::user_writer(number, Keyed::No))
}

fn open_sample(writer: Guid, sequence: i64, payload: Payload) -> GroupArrival {
    let sequence = SequenceNumber(sequence);
    let place = GroupPlace { number: sequence, set: SequenceNumber(1) };
    let sample = CachedSample {
        related: None,
        payload,
        payload_kind: PayloadKind::Data,
        valid: true,
        writer,
        sequence,
        source_timestamp: None,
        received: Instant::ZERO,
        expires: Instant::NEVER,
        instance: KeyHash::default(),
        coherent_set: SequenceNumber(1),
        change: ChangeKind::Write,
    };
    GroupArrival { sample, mark: GroupMark { sequence, place, is_empty_part: false } }
}

#[test]
fn publishers_whose_sets_never_end_hold_no_more_than_one_may() {
    let presentation = Presentation { access_scope: AccessScope::Group, coherent: true, ordered: true };
    let mut access = SubscriberAccess::new(presentation);
    let reader = EntityId::user_reader(1, Keyed::No);
    let payload = Payload::from(vec![0; 10_000]);
    let (publishers, samples, bytes_max) = (50, 10, 1_000_000);
    let mut lost = 0;
    for sequence in 1..=samples {
        for publisher in 0..publishers {
            let order = access.publishers.entry((guid(publisher, 0).prefix, EntityId::user_publisher(1)));
            let order = order.or_insert_with(|| PublisherOrder::new(presentation, BYTES_DEFAULT));
            order.add_pair((guid(publisher, 1), reader), false);
            // One that never says anything: no set is whole.
            order.add_pair((guid(publisher, 2), reader), false);
            order.handle(reader, open_sample(guid(publisher, 1), sequence, payload.clone()));
            let mut released = Vec::new();
            access.give_up_beyond(bytes_max, &mut released);
            lost += released.iter().map(|one| if let Released::Lost(_, count) = one { *count } else { 0 }).sum::<u64>();
            let held: usize = access.publishers.values().map(PublisherOrder::bytes).sum();
            assert!(held <= bytes_max, "{held} bytes");
        }
    }
    assert!(lost >= 500 - 100, "what is given up is counted: {lost}");
}
