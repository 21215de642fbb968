//! The counters by which repeated HEARTBEATs, ACKNACKs and their like are told from new ones.

/// Tells new messages of one kind from repeated ones by their counts, which grow by serial-number arithmetic, so that they may
/// wrap (RTPS 2.5 §8.3.8.1).
///
/// A count that is refused is remembered: another one that is newer than it says that the sender does count from there, and that
/// the higher ones before were not its own, or that it has begun anew. So a forged count costs one message, and does not deafen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CountFilter {
    last: Option<u32>,
    refused: Option<u32>,
}

impl CountFilter {
    /// False for a message that is repeated.
    pub(crate) fn accept(&mut self, count: u32) -> bool {
        let follows = |before: Option<u32>| before.is_none_or(|before| is_newer(count, before));
        if self.last == Some(count) {
            return false;
        }
        let is_next = follows(self.last);
        let resumes = !is_next && self.refused.is_some() && follows(self.refused);
        if !is_next && !resumes {
            self.refused = Some(count);
            return false;
        }
        if resumes || self.last.is_some_and(|last| count.wrapping_sub(last) < STEP_MAX) {
            self.refused = None;
        }
        self.last = Some(count);
        true
    }
}

/// A count so much higher than the one before says nothing against lower ones: far more than are lost in a row.
const STEP_MAX: u32 = 1 << 16;

/// Whether `count` was given after `before`, as far as serial numbers tell.
pub(crate) fn is_newer(count: u32, before: u32) -> bool {
    count.wrapping_sub(before).wrapping_sub(1) < u32::MAX / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(steps: &[(u32, bool)]) {
        let mut filter = CountFilter::default();
        for (step, (count, accepted)) in steps.iter().enumerate() {
            assert_eq!(filter.accept(*count), *accepted, "step {step}: count {count}");
        }
    }

    #[test]
    fn counts_may_wrap_but_not_repeat() {
        check(&[(5, true), (5, false), (4, false), (6, true), (u32::MAX - 1, false), (7, true)]);
        check(&[(u32::MAX, true), (1, true), (1, false), (u32::MAX, false), (2, true)]);
    }

    #[test]
    fn messages_that_arrive_in_another_order_or_twice_are_told_once() {
        check(&[(1, true), (3, true), (2, false), (3, false), (2, false), (4, true), (2, false), (5, true)]);
    }

    #[test]
    fn a_forged_count_deafens_for_one_message() {
        for forged in [1 << 30, u32::MAX / 2, 12, 1_000] {
            check(&[(10, true), (forged, true), (11, false), (if forged == 12 { 13 } else { 12 }, true)]);
        }
        check(&[(10, true), (1 << 30, true), (11, false), ((1 << 30) + (1 << 20), true), (12, true), (13, true)]);
    }

    #[test]
    fn a_sender_that_counts_anew_is_heard_again() {
        check(&[(1_000, true), (1, false), (2, true), (3, true), (3, false)]);
    }
}
