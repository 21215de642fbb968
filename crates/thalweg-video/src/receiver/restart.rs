//! Senders that begin anew behind the numbers that came from them.

/// How far a packet may be behind the newest number of its path because the network overtook it (RFC 3550 §A.1, `MAX_MISORDER`).
const MISORDER_MAX: u64 = 100;

/// Packets behind the newest number whose times say that they are newer. Two in a row show that the sender began anew (RFC 3550 §A.1,
/// `bad_seq`). By their numbers alone they would be copies of what came before: 16 bits turn in a second, and what is told apart is up
/// to half of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RestartWatch {
    /// The last one, which the next number confirms.
    held: Option<u64>,
    implausible: u64,
}

impl RestartWatch {
    /// Whether a number is farther behind the newest one of its path than the network brings packets late.
    pub(crate) fn is_behind(number: u64, newest: Option<u64>) -> bool {
        newest.is_some_and(|newest| newest.saturating_sub(number) > MISORDER_MAX)
    }

    /// Whether a number would confirm the one that is held.
    pub(crate) fn is_confirmed_by(&self, number: u64) -> bool {
        self.held.is_some_and(|held| held.checked_add(1) == Some(number))
    }

    /// Takes such a packet. Returns the number before it where the two show a new beginning; nothing counts that is not confirmed.
    pub(crate) fn handle_behind(&mut self, number: u64) -> Option<u64> {
        let is_confirmed = self.is_confirmed_by(number);
        match self.held.replace(number) {
            Some(held) if is_confirmed => {
                self.held = None;
                Some(held)
            }
            Some(held) if held != number => {
                self.implausible += 1;
                None
            }
            // The first one, or its copy on another path.
            _ => None,
        }
    }

    /// Gives up what nothing confirmed.
    pub(crate) fn finish(&mut self) {
        self.implausible += u64::from(self.held.take().is_some());
    }

    /// Numbers that nothing confirmed.
    pub(crate) fn implausible(&self) -> u64 {
        self.implausible
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a row of numbers shows: the beginnings, and how many numbers nothing confirmed.
    #[track_caller]
    fn check(numbers: &[u64], beginnings: &[u64], implausible: u64) {
        let mut watch = RestartWatch::default();
        let shown: Vec<u64> = numbers.iter().filter_map(|number| watch.handle_behind(*number)).collect();
        watch.finish();
        assert_eq!((&shown[..], watch.implausible()), (beginnings, implausible), "{numbers:?}");
    }

    #[test]
    fn two_numbers_in_a_row_are_a_beginning_and_others_are_none() {
        check(&[7, 8], &[7], 0);
        check(&[7, 7, 8], &[7], 0);
        check(&[7], &[], 1);
        check(&[7, 9, 11], &[], 3);
        check(&[7, 30, 31], &[30], 1);
    }

    #[test]
    fn a_hundred_numbers_are_the_networks() {
        assert!(!RestartWatch::is_behind(900, Some(1000)) && RestartWatch::is_behind(899, Some(1000)));
        assert!(!RestartWatch::is_behind(900, None) && !RestartWatch::is_behind(2000, Some(1000)));
    }
}
