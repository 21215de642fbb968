//! Writers that begin anew under their old GUID, with numbers from 1 on: the GUIDs of some vendors follow from an address.

/// What was met of a writer, so that it is known when it begins anew. The default has met nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterLife {
    /// The low 32 bits of the highest number.
    last: Option<u32>,
    /// The latest time stamp, in nanoseconds since 1970.
    newest_ns: u64,
    /// The latest time stamp of its life before.
    former_ns: Option<u64>,
}

impl WriterLife {
    /// Whether a sample with this time stamp may be one of the life before, such as one that is repeated for late readers.
    pub fn may_be_former(&self, stamp_ns: u64) -> bool {
        self.former_ns.is_some_and(|former_ns| stamp_ns <= former_ns)
    }

    /// Takes a sample into account; true for the first one of a new life. A number that is not above those before is met again, or comes
    /// late, and such a sample was stamped before: where it was stamped later than all others, its writer counts anew.
    pub fn take(&mut self, sequence: u32, stamp_ns: u64) -> bool {
        let is_highest = self.last.is_none_or(|last| sequence.wrapping_sub(last).cast_signed() > 0);
        let is_new_life = !is_highest && stamp_ns > self.newest_ns;
        if is_new_life {
            self.former_ns = Some(self.newest_ns);
        }
        if is_highest || is_new_life {
            self.last = Some(sequence);
        }
        self.newest_ns = self.newest_ns.max(stamp_ns);
        is_new_life
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of these numbers with their time stamps begin a new life.
    fn new_lives<const COUNT: usize>(samples: [(u32, u64); COUNT]) -> [bool; COUNT] {
        let mut life = WriterLife::default();
        samples.map(|(sequence, stamp_ns)| life.take(sequence, stamp_ns))
    }

    #[test]
    fn a_low_number_that_was_stamped_last_begins_a_new_life() {
        assert_eq!(new_lives([(1, 1), (2, 2), (3, 3), (1, 4), (2, 5)]), [false, false, false, true, false]);
        assert_eq!(new_lives([(7, 1), (7, 2), (7, 3)]), [false, true, true], "one sample each");
        assert_eq!(new_lives([(u32::MAX, 1), (0, 2), (1, 3)]), [false; 3], "numbers have 32 bits");
        let mut life = WriterLife::default();
        assert!(!life.take(3, 30) && !life.may_be_former(30) && life.take(1, 40));
        assert!(life.may_be_former(30) && !life.may_be_former(31));
    }

    #[test]
    fn what_a_writer_kept_or_repeats_begins_no_new_life() {
        assert_eq!(new_lives([(101, 50), (1, 10), (2, 20), (102, 60), (2, 20), (102, 60)]), [false; 6]);
        // The clock was set back between the second and the third, and the second is repeated.
        assert_eq!(new_lives([(1, 100), (2, 200), (3, 50), (2, 200)]), [false; 4]);
    }
}
