//! What answers take, where readers name the request that they answer: Thalweg's readers do, by an ECHO ahead of their ACKNACKs and
//! NACK_FRAGs. Of others, only what nothing else could have caused tells that (`ReaderProxy::take_answer`).

use std::collections::VecDeque;
use std::time::Duration;

use super::HEARTBEAT_PERIOD_MAX;
use super::Writer;
use crate::time::Instant;
use crate::types::{Guid, VendorId};
use crate::wire::{AskedBy, Echo};

/// Runs of requests that are remembered.
const REMEMBERED_MAX: usize = 128;

/// Round trips for which an answer may be held back: clocks that are being set differ by a thousandth, which is then a tenth of what is
/// measured.
const HELD_MAX: u32 = 100;

/// Requests of one kind that left at one time, one for each reader or for all.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: AskedBy,
    length: u32,
    at: Instant,
}

impl Run {
    fn contains(&self, request: AskedBy) -> bool {
        match (self.first, request) {
            (AskedBy::Heartbeat(first), AskedBy::Heartbeat(count))
            | (AskedBy::HeartbeatFrag(first), AskedBy::HeartbeatFrag(count)) => count.wrapping_sub(first) < self.length,
            _ => false,
        }
    }

    /// Whether a request is the next of the run.
    fn is_followed_by(&self, next: &Run) -> bool {
        let longer = Run { length: self.length.saturating_add(1), ..*self };
        self.at == next.at && longer.contains(next.first)
    }
}

/// When the latest requests for an answer left.
#[derive(Debug, Default)]
pub(super) struct LatelyAsked(VecDeque<Run>);

impl LatelyAsked {
    pub(super) fn note(&mut self, at: Instant, first: AskedBy) {
        let run = Run { first, length: 1, at };
        // Within a large sample each reader is asked by one of either kind.
        let mut together = self.0.iter_mut().rev().take_while(|known| known.at == at);
        if let Some(known) = together.find(|known| known.is_followed_by(&run)) {
            known.length = known.length.saturating_add(1);
            return;
        }
        if self.0.len() >= REMEMBERED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(run);
    }

    /// The run that a request was in, as far as that is remembered.
    fn run_of(&self, request: AskedBy) -> Option<&Run> {
        self.0.iter().rev().find(|run| run.contains(request))
    }

    #[cfg(test)]
    pub(super) fn latest(&self) -> Option<AskedBy> {
        let run = self.0.back()?;
        Some(match run.first {
            AskedBy::Heartbeat(first) => AskedBy::Heartbeat(first.wrapping_add(run.length - 1)),
            AskedBy::HeartbeatFrag(first) => AskedBy::HeartbeatFrag(first.wrapping_add(run.length - 1)),
        })
    }
}

/// What the ECHOes of a reader have told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Echoes {
    /// Its answers are named, and the last request that it named was remembered: nothing else measures its round trips.
    pub measure: bool,
    /// When the latest request left that it has named.
    latest: Option<Instant>,
    /// When it has named one: the answer comes behind that.
    named_at: Option<Instant>,
}

impl Echoes {
    /// Whether the answer that is handled now says to what it is one; once.
    pub(super) fn take_name(&mut self, now: Instant) -> bool {
        self.named_at.take() == Some(now)
    }
}

impl Writer {
    /// A reader names the request that it answers. What the answer took without the time that the reader held it back is a round trip.
    /// An ECHO that is repeated, and one that others have overtaken, tell nothing.
    pub fn handle_echo(&mut self, now: Instant, reader: Guid, echo: &Echo) {
        let Some(proxy) = self.readers.get(reader) else { return };
        if !proxy.matched.reliable || proxy.matched.vendor != VendorId::THALWEG || echo.held_micros == u32::MAX {
            return;
        }
        let latest = proxy.echoes.latest;
        let Some(run) = self.heartbeat.lately_asked.run_of(echo.asked_by) else {
            // It counts as an answer without a name.
            if let Some(mut proxy) = self.readers.get_mut(reader) {
                proxy.echoes.measure = false;
            }
            return;
        };
        let held = Duration::from_micros(echo.held_micros.into());
        let Some(took) = now.since(run.at).checked_sub(held) else { return };
        if latest.is_some_and(|latest| run.at <= latest) || held > took.saturating_mul(HELD_MAX) {
            return;
        }
        let took = took.min(HEARTBEAT_PERIOD_MAX);
        let echoes = Echoes { measure: true, latest: Some(run.at), named_at: Some(now) };
        if let Some(mut proxy) = self.readers.get_mut(reader) {
            proxy.echoes = echoes;
            proxy.round_trip.measured(took);
        }
        self.heartbeat.round_trip.measured(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_left_together_are_remembered_together() {
        let mut asked = LatelyAsked::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        for turn in 0..1_000_u32 {
            let count = (u32::MAX - 499).wrapping_add(turn);
            asked.note(at(u64::from(turn) / 100), AskedBy::Heartbeat(count));
        }
        asked.note(at(10), AskedBy::HeartbeatFrag(3));
        asked.note(at(10), AskedBy::HeartbeatFrag(4));
        assert_eq!(asked.0.len(), 11, "{asked:?}");
        (5..100).for_each(|count| {
            asked.note(at(10), AskedBy::HeartbeatFrag(count));
            asked.note(at(10), AskedBy::Heartbeat(500 + count - 5));
        });
        assert_eq!(asked.0.len(), 12, "one after the other, each of its kind: {asked:?}");
        let left = |request| asked.run_of(request).map(|run| run.at);
        assert_eq!(left(AskedBy::HeartbeatFrag(3)), Some(at(10)));
        assert_eq!(left(AskedBy::HeartbeatFrag(4)), Some(at(10)));
        assert_eq!(left(AskedBy::Heartbeat(3)), Some(at(5)));
        (0..REMEMBERED_MAX as u32).for_each(|count| asked.note(at(11), AskedBy::HeartbeatFrag(7 * count)));
        assert_eq!(asked.0.len(), REMEMBERED_MAX);
        assert!(asked.run_of(AskedBy::Heartbeat(3)).is_none(), "it is forgotten");
    }
}
