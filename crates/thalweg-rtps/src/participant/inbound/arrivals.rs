//! Gathered samples as one reader gets them.

use super::{Instances, Piece};
use crate::payload::Payload;
use crate::reader::{Arrival, CoherentSets};
use crate::types::SequenceNumber;

/// See `Gathered::arrivals`.
pub(in crate::participant) struct Arrivals<'a> {
    pub(super) pieces: std::slice::Iter<'a, Piece>,
    pub(super) slabs: &'a [Payload],
    pub(super) instances: Instances,
    /// Numbers of samples that the reader does not want.
    pub(super) refused: &'a [SequenceNumber],
    pub(super) sets: CoherentSets,
}

impl Iterator for Arrivals<'_> {
    type Item = Arrival;

    #[inline(always)]
    fn next(&mut self) -> Option<Arrival> {
        Some(match self.pieces.next()? {
            Piece::Sample(head) if !self.refused.is_empty() && self.refused.binary_search(&head.sequence).is_ok() => {
                Arrival::Unwanted(head.sequence)
            }
            Piece::Sample(head) if head.ends_set() => match self.sets {
                CoherentSets::Wanted => Arrival::Sample(head.received(&self.slabs[head.slab as usize])),
                CoherentSets::Ignored => Arrival::Unwanted(head.sequence),
            },
            Piece::Sample(head) if self.instances == Instances::Asked && !(head.is_empty() && head.told) => {
                let hint = head.told.then_some(head.instance);
                Arrival::AwaitsKey { sample: head.received(&self.slabs[head.slab as usize]), hint }
            }
            Piece::Sample(head) if head.keyless => Arrival::Unidentified(head.sequence),
            Piece::Sample(head) => Arrival::Sample(head.received(&self.slabs[head.slab as usize])),
            Piece::Irrelevant { start, end } => Arrival::Irrelevant { start: *start, end: *end },
            Piece::BatchEnd(range) => Arrival::BatchEnd(*range),
            Piece::NextDatagram => Arrival::NextDatagram,
        })
    }
}
