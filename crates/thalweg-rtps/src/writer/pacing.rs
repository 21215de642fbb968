//! What the paths of a writer's readers let out, and when the next part may follow.

use super::Writer;
use super::congestion::{Congestion, DATAGRAM};
use super::reader_proxy::ReaderProxy;
use crate::time::Instant;

impl ReaderProxy {
    /// Its path, if what is sent for the first time has to respect it.
    fn shared_path(&mut self) -> Option<&mut Congestion> {
        let follows = self.is_up_to_date();
        self.congestion.as_deref_mut().filter(|_| follows)
    }
}

impl Writer {
    /// A path changed, or which of them count.
    pub(super) fn paths_changed(&mut self) {
        let (mut window, mut interval, mut paced) = (u64::MAX, u64::MAX, false);
        for path in self.readers.iter_mut().filter_map(ReaderProxy::shared_path) {
            window = window.min(path.window());
            interval = interval.min(path.interval());
            paced |= path.is_paced();
        }
        self.flow.bound_for_paths(window, interval, paced);
    }

    /// True when something may be sent to all readers now, as much as the slowest path lets out; else it pauses until then.
    pub(super) fn is_granted(&mut self, now: Instant) -> bool {
        self.flow.start_transmission(now);
        if !self.flow.paced {
            return true;
        }
        let credit = self.readers.iter_mut().filter_map(ReaderProxy::shared_path).map(|path| path.credit(now)).min();
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
        self.readers.iter_mut().filter_map(ReaderProxy::shared_path).for_each(|path| path.charge(cost));
        if self.flow.is_granted_out() {
            self.pause_for_paths(now);
        }
    }

    fn pause_for_paths(&mut self, now: Instant) {
        let paths = self.readers.iter_mut().filter_map(ReaderProxy::shared_path);
        if let Some(until) = paths.filter(|path| path.is_paced()).map(|path| path.resume_at(now)).max() {
            self.flow.pause(until);
        }
    }

    /// Kernel memory of a sample of the usual size on its way, of a large one that of a datagram: how much of it is lost the requests
    /// for its fragments tell.
    pub(super) fn usual_cost(&self) -> u64 {
        ((self.collection.sample_bytes() as u64 + 64) * 7 / 4).min(DATAGRAM)
    }
}
