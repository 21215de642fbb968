//! Whether a multicast group reaches a reader, judged by what the reader asks for: a switch that snoops without a querier drops
//! what goes to groups, and a radio link may bring little of it.

use super::flow::Position;

/// ACKNACKs that ask, without a complete reception in between, after which the group counts as bringing nothing.
const LOSSES_MAX: u32 = 4;
/// So many fragments are judged together.
const SPAN_FRAGMENTS: u32 = 16;
/// The group brings nothing when more than this share of a span, in percent, is asked for, and that so often in a row. A burst
/// that overflows a queue may lose as much once.
const ASKED_MAX_PERCENT: u32 = 90;
const BARREN_MAX: u32 = 2;

#[derive(Debug, Default)]
pub(super) struct GroupReception {
    /// ACKNACKs that asked for something since the last one that showed that everything had come by itself.
    losses: u32,
    /// Something was asked for since the last ACKNACK that asked for nothing.
    repairing: bool,
    /// Requests told of first transmissions up to here.
    judged: Position,
    /// Fragments of the present span, and how many of them were asked for.
    covered: u32,
    asked: u32,
    /// Spans in a row of which hardly anything came by itself.
    barren: u32,
    has_brought: bool,
}

impl GroupReception {
    /// An ACKNACK that came after `sent` and acknowledges more than the last one where it `progressed`. The samples that it asks for are sent again and may then arrive.
    pub(super) fn note_acknack(&mut self, asks: bool, progressed: bool, sent: Position) {
        self.has_brought |= progressed && !asks && self.losses == 0;
        if asks {
            self.repairing = true;
            self.losses += 1;
            self.judged = self.judged.max(sent);
        } else if !std::mem::take(&mut self.repairing) {
            self.losses = 0;
        }
    }

    /// A NACK_FRAG that tells of all fragments up to `told` and asks for these. ACKNACKs that ask for nothing come between them.
    pub(super) fn note_fragments(&mut self, told: Position, asked: impl Iterator<Item = u32>) {
        let known = if self.judged.sample == told.sample { self.judged.fragments } else { 0 };
        if self.judged >= told {
            return;
        }
        self.judged = told;
        let (covered, asked) =
            (told.fragments.saturating_sub(known), asked.filter(|number| *number > known).count() as u32);
        self.has_brought |= asked < covered;
        self.covered = self.covered.saturating_add(covered);
        self.asked += asked;
        if self.covered >= SPAN_FRAGMENTS {
            let is_barren = u64::from(self.asked) * 100 > u64::from(self.covered) * u64::from(ASKED_MAX_PERCENT);
            self.barren = if is_barren { self.barren + 1 } else { 0 };
            (self.covered, self.asked) = (0, 0);
        }
    }

    /// True when something came by itself: what is lost tells of the path.
    pub(super) fn has_brought_any(&self) -> bool {
        self.has_brought
    }

    pub(super) fn brings_nothing(&self) -> bool {
        self.losses >= LOSSES_MAX || self.barren >= BARREN_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::SequenceNumber;

    #[test]
    fn a_group_is_given_up_after_requests_without_a_complete_reception() {
        let mut group = GroupReception::default();
        let mut note = |asks| {
            group.note_acknack(asks, true, Position::default());
            group.brings_nothing()
        };
        for _ in 0..10 {
            // A loss now and then, repaired, and samples that come by themselves in between.
            assert_eq!([true, false, false].map(&mut note), [false; 3]);
        }
        let given_up = [true, false, true, false, true, false, true].map(note);
        assert_eq!(given_up, [false, false, false, false, false, false, true]);
    }

    #[track_caller]
    fn check_fragments(spans: &[(u32, u32)], expect: bool) {
        let mut group = GroupReception::default();
        let mut told = Position::whole(SequenceNumber::FIRST);
        for (fragments, asked) in spans {
            let first = told.fragments + 1;
            told.fragments += fragments;
            group.note_fragments(told, first..first + asked);
            // Asked for again, they are old news; an ACKNACK that asks for nothing is none.
            group.note_fragments(told, first..first + asked);
            group.note_acknack(false, false, told);
        }
        assert_eq!(group.brings_nothing(), expect);
    }

    #[test]
    fn a_group_is_given_up_when_hardly_a_fragment_comes_by_itself() {
        check_fragments(&[(64, 64), (20, 20)], true);
        check_fragments(&[(8, 8), (8, 8), (8, 8), (8, 8)], true);
        check_fragments(&[(64, 64), (12, 12)], false);
        check_fragments(&[(200, 198), (20, 17), (200, 198), (20, 17)], false);
        check_fragments(&[(100, 30); 20], false);
    }

    #[test]
    fn a_group_has_brought_something_once_a_part_or_a_sample_came_by_itself() {
        let at = |fragments| Position { fragments, ..Position::whole(SequenceNumber::FIRST) };
        let mut group = GroupReception::default();
        group.note_fragments(at(8), 1..=8);
        assert!(!group.has_brought_any());
        group.note_fragments(at(16), 9..=15);
        assert!(group.has_brought_any());
        let mut group = GroupReception::default();
        // It asks, has what was sent again, and only then something of its own.
        for (asks, progressed, has_brought_any) in [
            (false, false, false),
            (true, false, false),
            (false, true, false),
            (false, true, false),
            (false, true, true),
        ] {
            group.note_acknack(asks, progressed, Position::default());
            assert_eq!(group.has_brought_any(), has_brought_any);
        }
    }

    #[test]
    fn fragments_that_came_again_are_no_evidence_for_the_group() {
        let mut group = GroupReception::default();
        let at = |fragments| Position { fragments, ..Position::whole(SequenceNumber::FIRST) };
        group.note_acknack(true, false, at(64));
        group.note_fragments(at(64), std::iter::empty());
        group.note_fragments(at(80), 65..=80);
        group.note_fragments(at(96), 81..=96);
        assert!(group.brings_nothing());
    }
}
