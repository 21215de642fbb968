//! What a reader received and what it did not hand over, for those who ask.

use super::shortfall::{LossReason, Losses, Rejections};
use super::{Reader, ReaderCounters};
use crate::history::RejectReason;
use crate::types::{Guid, KeyHash};
use crate::wire::WireError;
use crate::wire::parameters::{Parameter, ParameterReader, ParameterWriter, ValueWriter};

/// What a reader received and what it did not hand over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaderExplanation {
    /// The reader.
    pub guid: Guid,
    /// Its topic.
    pub topic: String,
    /// Matched writers.
    pub writers: usize,
    /// Samples handed to the cache.
    pub received: u64,
    /// Samples that wait to be taken.
    pub held: usize,
    /// Samples that KEEP_LAST replaced before they were taken.
    pub overwritten: u64,
    /// Samples whose LIFESPAN was over before they were taken.
    pub expired: u64,
    /// Samples that will never be taken, by reason.
    pub losses: Losses,
    /// Samples that found no room.
    pub rejections: Rejections,
    /// What it was told and did not believe at once.
    pub doubted: u64,
}

/// Parameters of an explanation; they mean nothing elsewhere.
mod id {
    pub const IDENTITY: u16 = 0x8110;
    pub const SAMPLES: u16 = 0x8111;
    pub const LOSSES: u16 = 0x8112;
    pub const REJECTIONS: u16 = 0x8113;
    pub const DOUBTED: u16 = 0x8114;
}

/// The rejections' reasons by their number on the wire, less one; 0 is none.
const REJECT_REASONS: [RejectReason; 4] =
    [RejectReason::Samples, RejectReason::Instances, RejectReason::SamplesPerInstance, RejectReason::Memory];

/// Longest name of a topic that is told, in bytes, as names of topics are limited by DDS.
const TOPIC_MAX_BYTES: usize = 255;

impl Reader {
    /// What this reader received and did not hand over. `topic` is left empty: the reader does not know it.
    pub fn explain(&self) -> ReaderExplanation {
        let ReaderCounters { received, expired, doubted, .. } = self.counters();
        ReaderExplanation {
            guid: self.guid,
            topic: String::new(),
            writers: self.writers.len(),
            received,
            held: self.handover.cache.len(),
            overwritten: self.handover.cache.overwritten(),
            expired,
            losses: self.losses(),
            rejections: self.rejections(),
            doubted,
        }
    }
}

impl ReaderExplanation {
    /// Knows nothing yet.
    pub(crate) fn blank() -> ReaderExplanation {
        ReaderExplanation {
            guid: Guid::UNKNOWN,
            topic: String::new(),
            writers: 0,
            received: 0,
            held: 0,
            overwritten: 0,
            expired: 0,
            losses: Losses::default(),
            rejections: Rejections::default(),
            doubted: 0,
        }
    }

    /// Appends the parameters of this explanation.
    pub(crate) fn put(&self, list: &mut ParameterWriter<'_>) {
        list.put(id::IDENTITY, |value| {
            value.guid(self.guid);
            value.string(&self.topic[..self.topic.floor_char_boundary(TOPIC_MAX_BYTES)]);
        });
        list.put(id::SAMPLES, |value| {
            let counts = [self.writers as u64, self.received, self.held as u64, self.overwritten, self.expired];
            counts.into_iter().for_each(|count| put_u64(value, count));
        });
        list.put(id::LOSSES, |value| {
            LossReason::ALL.into_iter().for_each(|reason| put_u64(value, self.losses.of(reason)));
            value.u32(self.losses.last_reason().map_or(0, |reason| reason as u32 + 1));
        });
        list.put(id::REJECTIONS, |value| {
            put_u64(value, self.rejections.total);
            let is_last = |reason: &RejectReason| Some(*reason) == self.rejections.last_reason;
            value.u32(REJECT_REASONS.iter().position(is_last).map_or(0, |place| place as u32 + 1));
            value.extend_from_slice(&self.rejections.last_instance.unwrap_or_default().0);
        });
        list.put(id::DOUBTED, |value| put_u64(value, self.doubted));
    }

    /// Takes a parameter that belongs to an explanation; others change nothing.
    ///
    /// # Errors
    /// When its value breaks off.
    pub(crate) fn apply(&mut self, parameter: &Parameter<'_>) -> Result<(), WireError> {
        let mut value = parameter.reader();
        match parameter.id {
            id::IDENTITY => {
                self.guid = value.guid()?;
                self.topic = value.string()?.to_owned();
            }
            id::SAMPLES => {
                self.writers = usize::try_from(u64_of(&mut value)?).unwrap_or(usize::MAX);
                self.received = u64_of(&mut value)?;
                self.held = usize::try_from(u64_of(&mut value)?).unwrap_or(usize::MAX);
                self.overwritten = u64_of(&mut value)?;
                self.expired = u64_of(&mut value)?;
            }
            id::LOSSES => {
                let mut counts = [0; LossReason::ALL.len()];
                for count in &mut counts {
                    *count = u64_of(&mut value)?;
                }
                self.losses = Losses::told(counts, nth(&LossReason::ALL, value.u32()?));
            }
            id::REJECTIONS => {
                let (total, last_reason) = (u64_of(&mut value)?, nth(&REJECT_REASONS, value.u32()?));
                let last_instance = last_reason.map(|_| value.array().map(KeyHash)).transpose()?;
                self.rejections = Rejections { total, last_reason, last_instance };
            }
            id::DOUBTED => self.doubted = u64_of(&mut value)?,
            _ => {}
        }
        Ok(())
    }
}

/// The reason with this number on the wire; none for 0 and for those of later versions.
fn nth<T: Copy>(reasons: &[T], number: u32) -> Option<T> {
    reasons.get((number as usize).checked_sub(1)?).copied()
}

fn put_u64(value: &mut ValueWriter<'_>, number: u64) {
    value.u32((number >> 32) as u32);
    value.u32(number as u32);
}

fn u64_of(value: &mut ParameterReader<'_>) -> Result<u64, WireError> {
    let high = value.u32()?;
    Ok(u64::from(high) << 32 | u64::from(value.u32()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::types::{EntityId, GuidPrefix};
    use crate::wire::parameters::ParameterList;

    fn example() -> ReaderExplanation {
        ReaderExplanation {
            guid: Guid::new(GuidPrefix([7; 12]), EntityId([0, 0, 1, 7])),
            topic: "pose".into(),
            writers: 3,
            received: 1 << 40,
            held: 17,
            overwritten: 5,
            expired: 6,
            losses: Losses::told([1, 2, 3, 4], Some(LossReason::Incomplete)),
            rejections: Rejections {
                total: 9,
                last_reason: Some(RejectReason::SamplesPerInstance),
                last_instance: Some(KeyHash([5; 16])),
            },
            doubted: 1 << 33,
        }
    }

    fn encoded(told: &ReaderExplanation) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut list = ParameterWriter::encapsulated(&mut bytes);
        told.put(&mut list);
        list.finish();
        bytes
    }

    fn decoded(bytes: &[u8]) -> Result<ReaderExplanation, WireError> {
        let mut told = ReaderExplanation::blank();
        for parameter in ParameterList::from_payload(bytes)?.iter() {
            told.apply(&parameter?)?;
        }
        Ok(told)
    }

    #[test]
    fn what_is_told_comes_back() {
        for told in [example(), ReaderExplanation::blank()] {
            assert_eq!(decoded(&encoded(&told)), Ok(told));
        }
    }

    #[test]
    fn damage_is_an_error_or_harmless() {
        let mut rng = Rng::new(5);
        for _ in 0..5_000 {
            let mut bytes = encoded(&example());
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.next_u64() as u8;
            bytes.truncate(bytes.len() - rng.below(9) as usize);
            if let Ok(told) = decoded(&bytes) {
                assert_eq!(decoded(&encoded(&told)), Ok(told));
            }
        }
    }
}
