//! The parameters that go with a sample: inline QoS (RTPS 2.5 §8.7).

use super::ParameterWriter;
use crate::types::{KeyHash, SampleIdentity, SequenceNumber};
use crate::wire::pid;

/// Appends the list that goes with a sample, as [`crate::wire::write::DataHead`] wants it; nothing at all when there is nothing to
/// say. `status` has the flags [`super::STATUS_DISPOSED`] and [`super::STATUS_UNREGISTERED`].
pub fn inline_qos(status: Option<u32>, key: Option<KeyHash>, out: &mut Vec<u8>) {
    inline_qos_with(status, key, Belonging::default(), out);
}

/// What a sample belongs to besides its writer and its instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Belonging {
    /// The coherent set, as [`super::ParameterList::coherent_set`] tells it.
    pub coherent_set: Option<SequenceNumber>,
    /// The sample that it is related to.
    pub related: Option<SampleIdentity>,
    /// Its place among the samples of its publisher.
    pub group: Option<GroupPlace>,
}

/// The place of a sample among those of all writers of its publisher (RTPS 2.5 §8.7.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupPlace {
    /// Its number within the publisher, at least 1.
    pub number: SequenceNumber,
    /// The publisher's coherent set: the number with which that began. Zero for none, [`SequenceNumber::UNKNOWN`] for one that the
    /// writer's other samples tell.
    pub set: SequenceNumber,
}

/// As [`inline_qos`], with what the sample belongs to.
pub fn inline_qos_with(status: Option<u32>, key: Option<KeyHash>, belonging: Belonging, out: &mut Vec<u8>) {
    if status.is_none() && key.is_none() && belonging == Belonging::default() {
        return;
    }
    let mut list = ParameterWriter::new(out);
    if let Some(key) = key {
        list.put(pid::KEY_HASH, |value| value.extend_from_slice(&key.0));
    }
    if let Some(status) = status {
        list.put(pid::STATUS_INFO, |value| value.extend_from_slice(&status.to_be_bytes()));
    }
    if let Some(set) = belonging.coherent_set {
        put_number(&mut list, pid::COHERENT_SET, set);
    }
    if let Some(SampleIdentity { writer, sequence }) = belonging.related {
        list.put(pid::RELATED_SAMPLE_IDENTITY, |value| {
            value.guid(writer);
            value.sequence_number(sequence);
        });
    }
    if let Some(GroupPlace { number, set }) = belonging.group {
        if set != SequenceNumber::ZERO {
            put_number(&mut list, pid::GROUP_COHERENT_SET, set);
        }
        put_number(&mut list, pid::GROUP_SEQUENCE_NUMBER, number);
    }
    list.finish();
}

fn put_number(list: &mut ParameterWriter<'_>, id: u16, SequenceNumber(number): SequenceNumber) {
    list.put(id, |value| {
        value.i32((number >> 32) as i32);
        value.u32(number as u32);
    });
}

/// Bytes of the parameters of a [`Belonging`], with the sentinel of their list.
pub const BELONGING_MAX_BYTES: usize = 3 * 12 + 28 + 4;
