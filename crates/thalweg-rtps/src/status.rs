//! Communication statuses with their changes since they were last reported (DDS 1.4 §2.2.4.1).

/// The counts of a status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusCounts {
    /// Number of occurrences so far; never falls.
    pub total: u64,
    /// Number at present; zero where only occurrences count.
    pub current: u64,
}

impl StatusCounts {
    /// Occurrences since `told`.
    pub fn total_change(&self, told: StatusCounts) -> u64 {
        self.total.saturating_sub(told.total)
    }

    /// Increase, or decrease, of the present number since `told`.
    pub fn current_change(&self, told: StatusCounts) -> i64 {
        self.current.wrapping_sub(told.current).cast_signed()
    }
}

/// A report of a status, as listeners and applications get it.
pub trait Told: Clone + Default {
    /// Its present counts.
    fn counts(&self) -> StatusCounts;

    /// The same report with its changes since `told` was reported.
    fn since(&self, told: StatusCounts) -> Self;
}

/// A status and its counts when it was last reported, to a listener or to an application that asked.
#[derive(Clone, Debug, Default)]
pub struct Status<T> {
    now: T,
    told: StatusCounts,
    has_changed: bool,
}

impl<T: Told> Status<T> {
    /// Its present report, which does not count as reported.
    #[inline]
    pub fn now(&self) -> &T {
        &self.now
    }

    /// Applies `change`. The status has changed if its counts have.
    pub fn change(&mut self, change: impl FnOnce(&mut T)) {
        let before = self.now.counts();
        change(&mut self.now);
        self.has_changed |= self.now.counts() != before;
    }

    /// Whether it has changed since it was last reported.
    #[inline]
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Reports it with its changes, which start from zero again.
    pub fn tell(&mut self) -> T {
        let told = self.now.since(self.told);
        self.told = self.now.counts();
        self.has_changed = false;
        told
    }

    /// As [`Status::tell`] if it has changed.
    #[inline]
    pub fn tell_changed(&mut self) -> Option<T> {
        self.has_changed.then(|| self.tell())
    }
}

/// A bare count, reported as its growth.
impl Told for u64 {
    fn counts(&self) -> StatusCounts {
        StatusCounts { total: *self, current: 0 }
    }

    fn since(&self, told: StatusCounts) -> u64 {
        self.counts().total_change(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    struct Present {
        ever: u64,
        now: u64,
        came: u64,
        more: i64,
    }

    impl Told for Present {
        fn counts(&self) -> StatusCounts {
            StatusCounts { total: self.ever, current: self.now }
        }

        fn since(&self, told: StatusCounts) -> Present {
            let counts = self.counts();
            Present { came: counts.total_change(told), more: counts.current_change(told), ..self.clone() }
        }
    }

    #[test]
    fn changes_count_from_the_last_time_they_were_told() {
        let mut status = Status::<Present>::default();
        assert!(status.tell_changed().is_none());
        status.change(|present| (present.ever, present.now) = (2, 2));
        assert_eq!(status.tell(), Present { ever: 2, now: 2, came: 2, more: 2 });
        status.change(|present| present.now = 1);
        assert_eq!(status.now().more, 0, "a look tells nothing");
        assert_eq!(status.tell_changed(), Some(Present { ever: 2, now: 1, came: 0, more: -1 }));
        assert!(!status.has_changed());
    }

    #[test]
    fn one_that_came_and_went_is_a_change() {
        let mut status = Status::<Present>::default();
        status.change(|present| (present.ever, present.now) = (1, 1));
        status.change(|present| present.now = 0);
        assert_eq!(status.tell_changed(), Some(Present { ever: 1, now: 0, came: 1, more: 0 }));
        status.change(|_| ());
        assert!(!status.has_changed(), "nothing has happened");
    }

    #[test]
    fn a_bare_count_tells_its_growth() {
        let mut count = Status::<u64>::default();
        count.change(|count| *count = 5);
        assert_eq!((count.tell(), count.tell()), (5, 0));
    }
}
