//! Gathered samples, and which of them are for which reader.

use super::arrivals::Arrivals;
use super::{Gathered, Instances, Piece};
use crate::history::ChangeKind;
use crate::participant::SampleFilter;
use crate::reader::{CoherentSets, GroupMark};
use crate::types::{Guid, SequenceNumber};

impl Gathered {
    /// The samples as one reader gets them.
    pub(in crate::participant) fn arrivals(&self, instances: Instances) -> Arrivals<'_> {
        self.arrivals_without(instances, &[], CoherentSets::Ignored)
    }

    /// As [`Gathered::arrivals`], but the samples with the numbers in `refused`, which ascend, are told to be unwanted.
    pub(in crate::participant) fn arrivals_without<'a>(
        &'a self,
        instances: Instances,
        refused: &'a [SequenceNumber],
        sets: CoherentSets,
    ) -> Arrivals<'a> {
        Arrivals { pieces: self.pieces.iter(), slabs: &self.slabs, instances, refused, sets }
    }

    /// The places of samples within the writer's publisher.
    pub(in crate::participant) fn marks(&self) -> &[GroupMark] {
        &self.marks
    }

    /// Whether some samples are not for all readers.
    pub(in crate::participant) fn is_any_directed(&self) -> bool {
        !self.directed.is_empty()
    }

    /// The numbers of the samples that are directed to others than `directed_for`, which is `None` for a reader that takes those as well,
    /// and of the values that its filter refuses, in ascending order.
    pub(in crate::participant) fn refused_by(
        &self,
        directed_for: Option<Guid>,
        filter: Option<&SampleFilter>,
    ) -> Vec<SequenceNumber> {
        let is_for_others = |readers: &[Guid]| directed_for.is_some_and(|guid| readers.binary_search(&guid).is_err());
        let to_others = self.directed.iter().filter(|(_, readers)| is_for_others(readers));
        let mut refused: Vec<_> = to_others.map(|(sequence, _)| *sequence).collect();
        if let Some(filter) = filter {
            for piece in &self.pieces {
                if let Piece::Sample(head) = piece
                    && head.kind == ChangeKind::Write
                    && !filter(&self.slabs[head.slab as usize][head.start as usize..head.end as usize])
                {
                    refused.push(head.sequence);
                }
            }
        }
        refused.sort_unstable();
        refused
    }
}
