//! Laws of the caches, first by name, then against naive models over random operations.

mod expiry;
mod kept;
mod purges;
mod reader;
mod reader_model;
mod writer;
mod writer_model;

use super::*;
use crate::qos::ResourceLimits;
use crate::types::{EntityId, Guid, GuidPrefix, KeyHash, Keyed};

fn key(number: u8) -> KeyHash {
    KeyHash([number; 16])
}

fn writer(number: u8) -> Guid {
    Guid::new(GuidPrefix([number; 12]), EntityId::user_writer(1, Keyed::Yes))
}

fn limits(samples: u32, instances: u32, per_instance: u32) -> ResourceLimits {
    let limit = |value: u32| (value > 0).then_some(value);
    ResourceLimits {
        max_samples: limit(samples),
        max_instances: limit(instances),
        max_samples_per_instance: limit(per_instance),
    }
}

#[test]
fn status_flags_and_kinds_tell_the_same() {
    for kind in [ChangeKind::Write, ChangeKind::Dispose, ChangeKind::Unregister, ChangeKind::DisposeUnregister] {
        assert_eq!(ChangeKind::from_status_info(kind.status_info().unwrap_or(0)), kind);
    }
    assert_eq!(ChangeKind::from_status_info(0xffff_fff0), ChangeKind::Write);
}
