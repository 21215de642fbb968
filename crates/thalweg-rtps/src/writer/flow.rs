//! How much may be on its way to the slowest reader: a window in units of kernel memory at the receiver.

use std::collections::VecDeque;
use std::time::Duration;

use super::ahead::{CacheWindow, REQUESTS};
use super::charges::Charges;
use super::congestion::Answered;
use super::lowest;
use crate::time::Instant;
use crate::types::SequenceNumber;

/// How far a reader has acknowledged: every sample up to `sample`, and `fragments` fragments of the one after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub sample: SequenceNumber,
    pub fragments: u32,
}

impl Position {
    pub(super) fn whole(sample: SequenceNumber) -> Position {
        Position { sample, fragments: 0 }
    }
}

/// Send window of one writer.
///
/// The unit is the memory that the receiver's kernel charges for a datagram until it is read, because that, not the
/// payload, is what overflows a socket buffer.
#[derive(Debug)]
pub(super) struct Flow {
    window: u64,
    /// Bound on the window, independent of the readers' buffers.
    bound: CacheWindow,
    /// Bytes that may be under way on the narrowest path.
    path_window: u64,
    /// After how much an acknowledgement is asked for, at the latest, to hear often enough how the paths fare.
    path_interval: u64,
    /// Of samples that are not cut.
    pub charges: Charges,
    /// Some path is paced: what may have been sent, in sum, before the next pause.
    pub paced: bool,
    sent_limit: u64,
    sent: u64,
    acknowledged: u64,
    /// `sent` when an acknowledgement was last asked for.
    asked_at: u64,
    /// Bytes sent before each request for an acknowledgement; older ones first.
    checkpoints: VecDeque<Checkpoint>,
    /// Since when something has been on its way, and what had been sent before.
    busy_since: (Instant, u64),
    /// Until when nothing new leaves: on a path that is paced, and between windows of a large sample to readers of other vendors,
    /// which cannot acknowledge part of one.
    paused_until: Option<Instant>,
    /// When something was sent last, and when the transmission under way began.
    sent_at: Instant,
    now: Instant,
    /// When the next repair may leave that had to wait.
    pub repairs_due: Option<Instant>,
    /// When the burst began that a pause may follow, and what had been sent before.
    burst_from: (Instant, u64),
    /// The smallest receive buffer among readers that do not acknowledge.
    unacknowledged_buffer: u64,
    /// Bytes a second at which such readers seem to drain their sockets.
    drain: u64,
    /// Part of the large sample under way had to be sent again.
    lossy: bool,
}

/// A request for an acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    /// The number that it asked about.
    position: Position,
    /// Bytes sent before it, in kernel memory.
    sent: u64,
    /// When it left; `None` when it left several times, or after what it asks about, so that nothing tells what was answered.
    at: Option<Instant>,
}

const UNBOUNDED: CacheWindow = CacheWindow { bytes: u64::MAX, requests: REQUESTS };

/// Checkpoints remembered; beyond it the newest is replaced, which only makes acknowledgements coarser.
const CHECKPOINTS_MAX: usize = 64;

/// Receive buffer assumed of peers that do not announce theirs: the default of Linux, `net.core.rmem_default`.
pub(super) const RECEIVE_BUFFER_ASSUMED_BYTES: u32 = 212_992;

/// Bytes a second at which a reader that cannot report progress within a sample is taken to drain its socket at first.
const DRAIN_START: u64 = 250_000_000;
/// Bytes a second at which a large sample leaves to readers that do not acknowledge, if its period allows that.
const UNACKNOWLEDGED_RATE: u64 = 60_000_000;
/// No reader is taken to be slower or faster.
const DRAIN_RANGE: std::ops::RangeInclusive<u64> = 10_000_000..=4_000_000_000;

impl Flow {
    pub(super) fn new() -> Flow {
        Flow {
            window: u64::MAX,
            charges: Charges::default(),
            bound: UNBOUNDED,
            path_window: u64::MAX,
            path_interval: u64::MAX,
            paced: false,
            sent_limit: u64::MAX,
            sent: 0,
            acknowledged: 0,
            asked_at: 0,
            checkpoints: VecDeque::new(),
            busy_since: (Instant::ZERO, 0),
            paused_until: None,
            sent_at: Instant::ZERO,
            now: Instant::ZERO,
            repairs_due: None,
            burst_from: (Instant::ZERO, 0),
            unacknowledged_buffer: u64::MAX,
            drain: DRAIN_START,
            lossy: false,
        }
    }

    /// Sets the window from the smallest receive buffer among the readers; `None` = no reliable reader, no window.
    pub(super) fn set_receive_buffer(&mut self, bytes: Option<u32>) {
        if self.window == u64::MAX {
            // Samples sent while no reader acknowledged are not under way to readers that do from now on.
            self.acknowledged = self.sent;
            self.asked_at = self.sent;
            self.checkpoints.clear();
        }
        // Two thirds: other writers share the reader's socket.
        self.window = bytes.map_or(u64::MAX, |bytes| (u64::from(bytes) * 2 / 3).max(16_384));
    }

    /// Bounds the window so that what is under way stays in the processor's cache; `None` frees it.
    pub(super) fn bound_for_cache(&mut self, window: Option<CacheWindow>) {
        self.bound = window.unwrap_or(UNBOUNDED);
    }

    /// Bounds the window to what the readers' paths carry, and asks after each `interval`; on one that is `paced`, bursts are
    /// bounded as well.
    pub(super) fn bound_for_paths(&mut self, window: u64, interval: u64, paced: bool) {
        self.path_window = window;
        self.path_interval = interval;
        self.paced = paced;
        if !paced {
            self.sent_limit = u64::MAX;
        }
    }

    fn limit(&self) -> u64 {
        self.window.min(self.bound.bytes).min(self.path_window)
    }

    /// Something is about to be sent.
    pub(super) fn start_transmission(&mut self, now: Instant) {
        self.now = now;
        if self.sent == self.acknowledged {
            self.busy_since = (now, self.sent);
        }
    }

    /// So much may be sent before the next pause.
    pub(super) fn grant(&mut self, credit: u64) {
        self.sent_limit = self.sent.saturating_add(credit);
    }

    /// The grant is used up.
    pub(super) fn is_granted_out(&self) -> bool {
        self.sent >= self.sent_limit
    }

    /// Nothing new leaves until then.
    pub(super) fn pause(&mut self, until: Instant) {
        self.paused_until = Some(until);
    }

    /// Kernel memory charged so far, for comparing.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// When something was sent to all last.
    pub(super) fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// Kernel memory that may still be filled.
    pub(super) fn room(&self) -> u64 {
        self.limit().saturating_sub(self.in_flight())
    }

    /// Kernel memory that a burst of repairs may fill at a reader with this receive buffer: half of what first transmissions
    /// may, since those go on meanwhile.
    pub(super) fn repair_burst(&self, receive_buffer_bytes: Option<u32>) -> u64 {
        u64::from(receive_buffer_bytes.unwrap_or(RECEIVE_BUFFER_ASSUMED_BYTES) / 3).max(16_384)
    }

    /// May another datagram leave? One may always be on its way, however small the window.
    pub(super) fn admits(&self, cost: u64) -> bool {
        let in_flight = self.sent - self.acknowledged;
        in_flight == 0 || in_flight.saturating_add(cost) <= self.limit()
    }

    /// Kernel memory that may be filled at the slowest reader; `None` while no reader acknowledges.
    pub(super) fn window(&self) -> Option<u64> {
        (self.window != u64::MAX).then_some(self.window)
    }

    /// Kernel memory that what is on its way fills there.
    pub(super) fn in_flight(&self) -> u64 {
        if self.window == u64::MAX { 0 } else { self.sent - self.acknowledged }
    }

    pub(super) fn record_sent(&mut self, cost: u64) {
        self.sent += cost;
        self.sent_at = self.now;
    }

    /// True once a quarter of the window (less often in some that the cache bounds), or what the paths ask for, was sent since the last
    /// request for an acknowledgement.
    pub(super) fn wants_acknowledgement(&self) -> bool {
        self.window != u64::MAX && self.sent - self.asked_at >= self.interval().min(self.path_interval)
    }

    fn interval(&self) -> u64 {
        let limit = self.limit();
        // A narrower window asks as often as any.
        limit / if limit == self.bound.bytes { self.bound.requests } else { REQUESTS }
    }

    /// True when something was sent since the last request for an acknowledgement.
    pub(super) fn has_unasked(&self) -> bool {
        self.sent > self.asked_at
    }

    /// Notes that an acknowledgement of everything up to `position` is being asked for.
    pub(super) fn record_request(&mut self, now: Instant, position: Position) {
        self.asked_at = self.sent;
        let full = self.checkpoints.len() >= CHECKPOINTS_MAX;
        // An answer to what left with the request cannot have been on its way before.
        let new = Checkpoint { position, sent: self.sent, at: (self.sent_at == now).then_some(now) };
        match self.checkpoints.back_mut() {
            Some(last) if last.position > position => {}
            Some(last) if last.position == position => *last = Checkpoint { at: None, ..new },
            Some(last) if full => *last = new,
            _ => self.checkpoints.push_back(new),
        }
    }

    /// Evaluates an answer for the path of a reader that has reached `position`; `took` is its round trip, if known.
    pub(super) fn answered(&self, position: Position, took: Option<Duration>) -> Answered {
        let index = self.checkpoints.partition_point(|checkpoint| checkpoint.position <= position);
        let reached = index.checked_sub(1).and_then(|index| self.checkpoints.get(index));
        let reached = reached.map(|checkpoint| checkpoint.sent);
        Answered { sent: self.sent, busy_since: self.busy_since, reached, took, repaired: None, window: self.window }
    }

    /// When the latest request about something beyond `before`, up to `position`, left, if it left once.
    pub(super) fn announced_between(&self, before: Position, position: Position) -> Option<Instant> {
        let index = self.checkpoints.partition_point(|checkpoint| checkpoint.position <= position);
        let latest = self.checkpoints.get(index.checked_sub(1)?)?;
        latest.at.filter(|_| latest.position > before)
    }

    /// The slowest reader has acknowledged up to `position`. Returns whether the window opened.
    pub(super) fn record_acknowledged(&mut self, position: Position, all: bool) -> bool {
        let before = self.acknowledged;
        while let Some(checkpoint) = self.checkpoints.front()
            && checkpoint.position <= position
        {
            self.acknowledged = self.acknowledged.max(checkpoint.sent);
            self.checkpoints.pop_front();
        }
        if all {
            self.acknowledged = self.sent;
            self.checkpoints.clear();
        }
        self.acknowledged > before
    }

    /// True while a pause between the bursts of one large sample lasts.
    pub(super) fn continue_pause(&mut self, now: Instant) -> bool {
        match self.paused_until {
            Some(until) if now < until => true,
            Some(_) => {
                self.paused_until = None;
                self.start_burst(now);
                false
            }
            None => false,
        }
    }

    /// Pauses that are over ask for no timer any more.
    pub(super) fn end_pauses(&mut self, now: Instant) {
        self.continue_pause(now);
        self.repairs_due = self.repairs_due.filter(|due| *due > now);
    }

    /// A repair has to wait until then.
    pub(super) fn note_repairs_due(&mut self, until: Instant) {
        self.repairs_due = lowest(self.repairs_due, Some(until));
    }

    /// When a pause ends, of what is new or of repairs.
    pub(super) fn next_due(&self) -> Option<Instant> {
        lowest(self.paused_until, self.repairs_due)
    }

    pub(super) fn paused_until(&self) -> Option<Instant> {
        self.paused_until
    }

    pub(super) fn start_burst(&mut self, now: Instant) {
        self.burst_from = (now, self.sent);
    }

    /// Part of a large sample was asked for again: the reader drains its socket more slowly than was thought.
    pub(super) fn note_loss(&mut self) {
        if !std::mem::replace(&mut self.lossy, true) {
            self.drain = (self.drain / 10 * 7).max(*DRAIN_RANGE.start());
        }
    }

    /// A large sample was acknowledged: if none of its datagrams was lost, the next one may go a little faster.
    pub(super) fn note_arrival(&mut self) {
        if !std::mem::take(&mut self.lossy) {
            self.drain = (self.drain + self.drain / 4).min(*DRAIN_RANGE.end());
        }
    }

    /// Notes the smallest receive buffer among the readers that do not acknowledge.
    pub(super) fn set_unacknowledged_buffer(&mut self, bytes: Option<u32>) {
        self.unacknowledged_buffer = bytes.map_or(u64::MAX, u64::from);
    }

    /// Pauses within a sample that costs `cost` and has no acknowledging reader, when a third of the smallest receive buffer was
    /// sent; returns whether it did. A sample that fits two thirds of that buffer leaves at once. All pauses of a sample together last at
    /// most about half of `period`, the time between two samples.
    pub(super) fn pause_unacknowledged(&mut self, now: Instant, cost: u64, period: Option<Duration>) -> bool {
        let burst = self.sent - self.burst_from.1;
        if burst < self.unacknowledged_buffer / 3 || cost <= self.unacknowledged_buffer / 3 * 2 {
            return false;
        }
        let nanos = period.map_or(0, |period| u64::try_from(period.as_nanos()).unwrap_or(u64::MAX));
        let needed = cost.saturating_mul(2_000_000_000).checked_div(nanos).unwrap_or(0);
        self.pause_burst(now, needed.max(UNACKNOWLEDGED_RATE))
    }

    /// Pauses when a window's worth was sent in one burst; returns whether it did. All pauses of a sample together last at
    /// most about half of `period`, the time between two samples of `sample_bytes`.
    pub(super) fn pause_after_burst(&mut self, now: Instant, sample_bytes: u64, period: Option<Duration>) -> bool {
        let burst = self.sent - self.burst_from.1;
        if self.window == u64::MAX || burst < self.window {
            return false;
        }
        let needed = period.map_or(0, |period| sample_bytes * 2_000_000_000 / (period.as_nanos() as u64).max(1));
        self.pause_burst(now, self.drain.max(needed))
    }

    /// Pauses until the burst has taken as long as at this rate, or begins another one where it has: what a flow controller spreads need
    /// not wait twice. Returns whether it pauses.
    fn pause_burst(&mut self, now: Instant, bytes_per_second: u64) -> bool {
        let (since, from) = self.burst_from;
        let until = since + Duration::from_nanos((self.sent - from).saturating_mul(1_000_000_000) / bytes_per_second);
        if until <= now {
            self.start_burst(now);
            return false;
        }
        self.paused_until = Some(until);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_closes_when_full_and_opens_with_acknowledgements() {
        let mut flow = Flow::new();
        flow.set_receive_buffer(Some(150_000));
        assert_eq!(flow.window, 100_000);
        let position = |n| Position::whole(SequenceNumber(n));
        for n in 1..=10 {
            assert!(flow.admits(10_000), "datagram {n}");
            flow.record_sent(10_000);
            if flow.wants_acknowledgement() {
                flow.record_request(Instant::ZERO, position(n));
            }
        }
        assert!(!flow.admits(10_000));
        assert!(!flow.record_acknowledged(position(2), false), "no request covers it yet");
        assert!(flow.record_acknowledged(position(3), false));
        assert!(flow.admits(30_000) && !flow.admits(30_001));
        assert!(flow.record_acknowledged(position(10), true));
        assert!(flow.admits(100_000));
    }

    #[test]
    fn what_was_sent_before_anybody_acknowledged_does_not_fill_the_window() {
        let mut flow = Flow::new();
        flow.record_sent(1 << 30);
        flow.set_receive_buffer(Some(150_000));
        assert!(flow.admits(100_000));
        flow.record_sent(100_000);
        assert!(!flow.admits(1));
        flow.set_receive_buffer(Some(150_000));
        assert!(!flow.admits(1), "another reader changes nothing");
    }

    #[test]
    fn pauses_within_large_samples_follow_the_reader_and_the_sample_period() {
        let mut flow = Flow::new();
        flow.set_receive_buffer(Some(150_000));
        let pause = |flow: &mut Flow, period: Option<Duration>| {
            flow.start_burst(Instant::ZERO);
            flow.record_sent(100_000);
            assert!(flow.pause_after_burst(Instant::ZERO, 10_000_000, period));
            flow.paused_until().expect("it has paused").since(Instant::ZERO)
        };
        assert_eq!(pause(&mut flow, None), Duration::from_micros(400));
        flow.note_loss();
        flow.note_loss();
        assert_eq!(pause(&mut flow, None).as_micros(), 571, "one loss counts once");
        flow.note_arrival();
        assert_eq!(pause(&mut flow, None).as_micros(), 571, "the lossy sample itself makes nothing faster");
        (0..100).for_each(|_| flow.note_arrival());
        assert_eq!(pause(&mut flow, None).as_micros(), 25);
        (0..100).for_each(|_| {
            flow.note_loss();
            flow.note_arrival();
        });
        assert_eq!(pause(&mut flow, None), Duration::from_millis(10));
        // 10 MB every 100 ms: half of that for 100 windows.
        assert_eq!(pause(&mut flow, Some(Duration::from_millis(100))).as_micros(), 500);
    }

    #[test]
    fn large_samples_that_nobody_acknowledges_are_spread_over_half_of_their_period() {
        let mut flow = Flow::new();
        flow.set_unacknowledged_buffer(Some(300_000));
        let mut now = Instant::ZERO;
        let mut send = |flow: &mut Flow, cost: u64, period: Option<Duration>| {
            let start = now;
            flow.start_burst(now);
            for _ in 0..cost / 10_000 {
                while flow.continue_pause(now) || flow.pause_unacknowledged(now, cost, period) {
                    now = flow.paused_until().expect("it pauses");
                }
                flow.record_sent(10_000);
            }
            now.since(start)
        };
        let period = Some(Duration::from_millis(100));
        assert_eq!(send(&mut flow, 200_000, period), Duration::ZERO, "it fits");
        assert_eq!(send(&mut flow, 1_000_000, None).as_millis(), 14, "60 MB/s, the last burst without a pause");
        assert_eq!(send(&mut flow, 6_000_000, period).as_millis(), 49);
    }

    #[test]
    fn large_samples_that_leave_slowly_by_themselves_pause_no_longer() {
        let mut flow = Flow::new();
        flow.set_unacknowledged_buffer(Some(300_000));
        let (mut now, period) = (Instant::ZERO, Some(Duration::from_millis(100)));
        flow.start_burst(now);
        // 6 MB within 80 ms, where half of the period would do.
        for _ in 0..600 {
            assert!(!flow.pause_unacknowledged(now, 6_000_000, period));
            flow.record_sent(10_000);
            now += Duration::from_nanos(133_333);
        }
    }

    #[test]
    fn a_window_for_the_cache_says_how_often_to_ask_unless_a_narrower_one_holds() {
        let asks_after = |receive_buffer: u32| {
            let mut flow = Flow::new();
            flow.set_receive_buffer(Some(receive_buffer));
            flow.bound_for_cache(Some(CacheWindow { bytes: 400_000, requests: 2 }));
            while !flow.wants_acknowledgement() {
                flow.record_sent(1_000);
            }
            flow.sent()
        };
        assert_eq!(asks_after(3_000_000), 200_000, "half of the window for the cache");
        assert_eq!(asks_after(300_000), 50_000, "a quarter of what the receive buffer leaves");
    }

    #[test]
    fn one_datagram_may_always_leave() {
        let mut flow = Flow::new();
        flow.set_receive_buffer(Some(0));
        assert!(flow.admits(1 << 30));
        flow.record_sent(1 << 30);
        assert!(!flow.admits(1));
    }
}
