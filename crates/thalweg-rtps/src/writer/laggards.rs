//! Readers that have fallen behind: the others do not wait for them, and a path that cannot carry what is new beside what its reader
//! misses is not sent it.

use std::time::Duration;

use super::Writer;
use super::flow::Position;
use super::reader_proxy::{Owed, ReaderProxy};
use super::reader_set::AnyReader;
use crate::time::Instant;
use crate::types::Guid;

/// How long a reader may stand still, at least, before the send window goes on without it; four round trips where that is
/// longer.
const LAG_MIN: Duration = Duration::from_millis(50);

impl ReaderProxy {
    /// How long it may stand still before it is left behind.
    pub(super) fn lag_patience(&self) -> Duration {
        LAG_MIN.max(self.round_trip.estimate() * 4)
    }

    /// What it lacks up to there, when everything up to `sent` was sent, tells nothing of its path.
    pub(super) fn excused(&self, sent: Position) -> Position {
        if self.repairs_only.is_some() { self.slowed_at.max(sent) } else { self.slowed_at }
    }

    /// Whether it is to get nothing but repairs, when what it lacks is `lag` in kernel memory: its path is sent to at a rate that it needs
    /// for what it misses, and does not lose much by itself. That ends once it lacks no more than is on its way at that rate anyway.
    fn needs_its_path(&self, lag: u64) -> bool {
        let Some(path) = self.congestion.as_deref().filter(|path| path.is_paced() && !path.is_lossy()) else {
            return false;
        };
        match self.repairs_only {
            Some(_) => lag > path.window() / 2,
            None => self.is_awaited() && !self.is_up_to_date() && lag > path.window(),
        }
    }
}

impl Writer {
    /// The send window no longer waits for readers that stand still while others are ahead of them, until they have caught up:
    /// what they miss is repaired from the history, which still waits for them. Returns whether there are any.
    pub(super) fn leave_laggards_behind(&mut self, now: Instant) -> bool {
        let sent = self.outgoing.place.sample.previous();
        let ahead = self.readers.summary().furthest;
        let (last, cost) = (self.history.last(), self.sample_cost());
        let (mut any, mut slow) = (false, Vec::new());
        self.readers.change(
            |readers, timers| timers.left_at <= now && readers.slowest < ahead,
            |reader| {
                let is_left = reader.behind_since.is_some_and(|since| now.since(since) >= reader.lag_patience());
                if reader.is_awaited() && Some(reader.acknowledged) < ahead && is_left {
                    reader.joined = sent;
                    any = true;
                    // All that was kept back for it leaves now.
                    let lacking = u64::try_from(last - reader.acknowledged.sample).unwrap_or(0);
                    if reader.repairs_only.is_none() && reader.needs_its_path(lacking.saturating_mul(cost)) {
                        slow.push(reader.matched.guid);
                    }
                }
            },
        );
        slow.into_iter().for_each(|reader| self.spare(reader));
        any
    }

    /// From now on a reader gets nothing but repairs, if others follow.
    fn spare(&mut self, reader: Guid) {
        if self.readers.summary().following.is_some() && self.route.spare(reader, true) {
            let sent = self.flow.sent();
            self.readers.get_mut(reader).expect("it was looked at").repairs_only = Some(sent);
            self.paths_changed();
        }
    }

    /// A reader has answered: one that is behind gets nothing but repairs at its path's rate until it has caught up, as long as others
    /// follow. What is new would leave at their pace, and most of it would be lost on the way to it.
    pub(super) fn settle_laggard(&mut self, now: Instant, reader: Guid) {
        let Some(proxy) = self.readers.get(reader) else { return };
        let lacking = u64::try_from(self.outgoing.place.sample.previous() - proxy.acknowledged.sample).unwrap_or(0);
        let lag = lacking.saturating_mul(self.sample_cost());
        let was = proxy.repairs_only.is_some();
        let needs = proxy.needs_its_path(lag) && self.readers.summary().following.is_some();
        if needs == was {
            return;
        }
        if was {
            self.readmit(now, reader);
            self.paths_changed();
        } else {
            self.spare(reader);
        }
    }

    /// What is new is sent to it again.
    fn readmit(&mut self, now: Instant, reader: Guid) {
        self.route.spare(reader, false);
        let sent = self.outgoing.place.position();
        let Some(mut proxy) = self.readers.get_mut(reader) else { return };
        let answered = self.flow.answered(proxy.acknowledged, None);
        proxy.repairs_only = None;
        (proxy.joined, proxy.slowed_at, proxy.heard) = (sent.sample, sent, None);
        if let Some(path) = proxy.congestion.as_deref_mut() {
            path.count_from(now, &answered);
        }
        if proxy.repairs.is_empty() && proxy.acknowledged < sent {
            proxy.owed = proxy.owed.max_with(Owed::Heartbeat);
        }
    }

    /// Where nobody follows, what is new goes to all at the pace of the slowest.
    pub(super) fn readmit_where_none_follows(&mut self, now: Instant) {
        let together = self.readers.summary();
        if !together.any.repairs_only || together.following.is_some() {
            return;
        }
        let only = |any: &AnyReader| any.repairs_only;
        while let Some(place) = self.readers.next_with(0, only) {
            self.readmit(now, self.readers.at(place).matched.guid);
        }
    }
}
