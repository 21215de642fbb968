//! What the paths of a writer's readers let out, and when the next part may follow.

use super::Writer;
use super::charges::worth;
use super::congestion::DATAGRAM;
use super::reader_set::PathBounds;
use crate::time::Instant;

impl Writer {
    /// A path changed, or which of them count.
    pub(super) fn paths_changed(&mut self) {
        let together = self.readers.summary();
        let PathBounds { window, interval, paced } = together.shared_paths();
        self.flow.set_receive_buffer(together.shared_buffer());
        self.flow.bound_for_paths(window, interval, paced);
    }

    /// True when something may be sent to all readers now, as much as the slowest path lets out; else it pauses until then.
    pub(super) fn take_grant(&mut self, now: Instant) -> bool {
        self.flow.start_transmission(now);
        if !self.flow.paced {
            return true;
        }
        let credit = self.readers.shared_paths_mut().map(|path| path.credit(now)).min();
        self.flow.grant(credit.unwrap_or(u64::MAX));
        if self.flow.is_granted_out() {
            self.pause_for_paths(now);
            return false;
        }
        true
    }

    /// `cost` was sent to all readers.
    pub(super) fn charge_paths(&mut self, now: Instant, cost: u64) {
        if !self.flow.paced {
            return;
        }
        self.readers.shared_paths_mut().for_each(|path| path.charge(cost));
        if self.flow.is_granted_out() {
            self.pause_for_paths(now);
        }
    }

    fn pause_for_paths(&mut self, now: Instant) {
        let paths = self.readers.shared_paths_mut();
        if let Some(until) = paths.filter(|path| path.is_paced()).map(|path| path.resume_at(now)).max() {
            self.flow.pause(until);
        }
    }

    /// Kernel memory of a sample of the usual size on its way, of a large one that of a datagram: how much of it is lost the requests
    /// for its fragments tell.
    pub(super) fn usual_cost(&self) -> u64 {
        self.sample_cost().min(DATAGRAM)
    }

    /// Kernel memory of a sample of the usual size with all of its fragments.
    pub(super) fn sample_cost(&self) -> u64 {
        worth(self.collection.sample_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{START, writer};
    use super::*;
    use crate::types::SequenceNumber;

    #[test]
    fn paths_of_readers_that_were_left_behind_count_where_all_of_them_were() {
        let mut writer = writer(2);
        let counts = |writer: &mut Writer| writer.readers.shared_paths_mut().count();
        assert_eq!(counts(&mut writer), 2);
        writer.readers.at_mut(0).joined = SequenceNumber(7);
        assert_eq!(counts(&mut writer), 1, "the other one does not wait for it");
        writer.readers.at_mut(1).joined = SequenceNumber(7);
        assert_eq!(counts(&mut writer), 2);
        writer.readers.change(|_, _| true, |reader| reader.active = false);
        writer.paths_changed();
        assert_eq!(counts(&mut writer), 0);
        assert!(writer.take_grant(START));
    }
}
