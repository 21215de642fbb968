//! The sender's sequence numbers, none of which may be used twice (RFC 8613 §7.2, Appendix B.1.1).

use std::fmt;
use std::io;

use super::partial_iv::PartialIv;

/// Persistent record of sequence numbers that may have been used, so that none is used again after a restart.
pub trait SequenceStore: Send {
    /// Remembers that all numbers below `end` may have been used. When this returns, that has to outlive a crash.
    ///
    /// # Errors
    /// When it cannot be remembered; then no number is used.
    fn reserve(&mut self, end: u64) -> io::Result<()>;
}

/// Remembers nothing: for keys that are used in one run of the program only.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneRun;

impl SequenceStore for OneRun {
    fn reserve(&mut self, _end: u64) -> io::Result<()> {
        Ok(())
    }
}

/// Gives out sequence numbers.
pub(super) struct Sequence {
    next: u64,
    reserved: u64,
    store: Box<dyn SequenceStore>,
}

/// Why a message cannot be protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SequenceError {
    /// All numbers were used: the keys are at their end.
    Exhausted,
    /// The state cannot be stored; with the system's error.
    NotStored(String),
}

impl fmt::Display for SequenceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SequenceError::Exhausted => {
                formatter.write_str("all sequence numbers of the OSCORE context were used; give both ends new keys")
            }
            SequenceError::NotStored(reason) => {
                write!(
                    formatter,
                    "the state of the OSCORE context cannot be stored ({reason}); nothing is sent without"
                )
            }
        }
    }
}

impl std::error::Error for SequenceError {}

impl Sequence {
    /// Numbers from `next` on.
    pub fn new(next: u64, store: Box<dyn SequenceStore>) -> Sequence {
        Sequence { next, reserved: next, store }
    }

    /// A number that was never used.
    pub fn take(&mut self) -> Result<PartialIv, SequenceError> {
        let partial_iv = PartialIv::new(self.next).ok_or(SequenceError::Exhausted)?;
        if self.next == self.reserved {
            let end = (self.next + RESERVED_AHEAD).min(PartialIv::END);
            self.store.reserve(end).map_err(|error| SequenceError::NotStored(error.to_string()))?;
            self.reserved = end;
        }
        self.next += 1;
        Ok(partial_iv)
    }
}

/// Numbers that are reserved at once: a crash wastes so many of 2⁴⁰, and the state is written once for so many messages. Strangers can have
/// one sent for each copy of a request that they captured, after a restart.
pub(super) const RESERVED_AHEAD: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// The last stored number, and whether storing works.
    #[derive(Clone)]
    struct Disk(Arc<Mutex<Option<u64>>>);

    impl SequenceStore for Disk {
        fn reserve(&mut self, end: u64) -> io::Result<()> {
            match &mut *self.0.lock().unwrap() {
                Some(stored) => *stored = end,
                None => return Err(io::Error::other("disk full")),
            }
            Ok(())
        }
    }

    #[test]
    fn no_number_is_used_twice_across_crashes() {
        let disk = Disk(Arc::new(Mutex::new(Some(0))));
        let mut used = std::collections::HashSet::new();
        let ahead = RESERVED_AHEAD;
        for messages in [1, 0, ahead - 1, ahead, ahead + 1, 3 * ahead] {
            let next = disk.0.lock().unwrap().unwrap();
            let mut sequence = Sequence::new(next, Box::new(disk.clone()));
            for _ in 0..messages {
                let number = sequence.take().unwrap().number();
                assert!(used.insert(number), "{number} was used twice");
                assert!(number < disk.0.lock().unwrap().unwrap(), "{number} was not reserved");
            }
        }
    }

    #[test]
    fn without_a_reservation_or_at_the_end_there_is_no_number() {
        let disk = Disk(Arc::new(Mutex::new(None)));
        let mut sequence = Sequence::new(5, Box::new(disk.clone()));
        assert_eq!(sequence.take(), Err(SequenceError::NotStored("disk full".to_owned())));
        *disk.0.lock().unwrap() = Some(0);
        assert_eq!(sequence.take().unwrap().number(), 5, "the number that failed was not used");
        let mut sequence = Sequence::new(PartialIv::END - 2, Box::new(OneRun));
        assert_eq!((sequence.take().is_ok(), sequence.take().is_ok()), (true, true));
        assert_eq!(sequence.take(), Err(SequenceError::Exhausted));
    }
}
