//! Impairment of the frames from one host to another.

use std::time::Duration;

use crate::scenario::Impairment;
use thalweg_base::rng::Rng;

/// Counts of the frames of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Frames that came, exempt ones among them.
    pub(super) seen: u64,
    /// Those that were lost by chance.
    pub(super) dropped: u64,
    /// Samples that were in them: DATA to users and what their batches hold.
    pub(super) dropped_data: u64,
    /// Those that arrive twice.
    pub(super) duplicated: u64,
    /// Those that the next one overtook.
    pub(super) reordered: u64,
    /// Copies that were handed on.
    pub(super) forwarded: u64,
    /// In how many pieces: packets that came uncut and stayed together are one.
    pub(super) messages: u64,
    /// Copies that found a full queue behind the impairment.
    pub(super) refused: u64,
    /// Packets of the stream that the relay looks at.
    pub(super) stream: StreamCounts,
}

/// Packets of a stream, each once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamCounts {
    /// Those that came.
    pub(super) seen: u64,
    /// Those that were lost by chance.
    pub(super) dropped: u64,
    /// Those that were lost between two that passed, which is what a receiver can know of.
    pub(super) gaps: u64,
    /// Those that were lost since the last one that passed.
    since_last: u64,
}

impl StreamCounts {
    /// Counts packets that pass.
    pub(super) fn note_passed(&mut self, packets: u64) {
        if packets == 0 {
            return;
        }
        if self.seen > self.dropped {
            self.gaps += self.since_last;
        }
        self.seen += packets;
        self.since_last = 0;
    }

    /// Counts packets that were lost by chance.
    pub(super) fn note_dropped(&mut self, packets: u64) {
        self.seen += packets;
        self.dropped += packets;
        self.since_last += packets;
    }
}

/// The way from one host to another: the k-th frame meets the same fate whenever chance is the same.
#[derive(Debug)]
pub(super) struct Direction<Frame> {
    impairment: Impairment,
    chance: Rng,
    is_in_burst: bool,
    /// When the latest frame arrives: no other arrives earlier unless it overtakes.
    latest_ns: u64,
    /// A frame that waits for the next one to overtake it, and until when.
    held: Option<(u64, Frame)>,
    pub(super) counts: Counts,
}

impl<Frame: Clone> Direction<Frame> {
    pub(super) fn new(impairment: Impairment, chance: u64) -> Direction<Frame> {
        let chance = Rng::new(chance);
        Direction { impairment, chance, is_in_burst: false, latest_ns: 0, held: None, counts: Counts::default() }
    }

    /// Decides what becomes of a frame, and returns whether it passes; `out` gets each copy with its time of arrival. Only of a lost one
    /// `data` counts the samples.
    pub(super) fn handle_frame(
        &mut self,
        now_ns: u64,
        frame: Frame,
        data: impl FnOnce(&Frame) -> u64,
        out: &mut Vec<(u64, Frame)>,
    ) -> bool {
        self.counts.seen += 1;
        if self.draw_loss() {
            self.counts.dropped += 1;
            self.counts.dropped_data += data(&frame);
            return false;
        }
        let at_ns = self.arrival(now_ns);
        let is_twice = self.chance.chance(self.impairment.duplicate);
        // Only one at a time can wait: the next frame passes in any case.
        if self.chance.chance(self.impairment.reorder) && self.held.is_none() {
            self.held = Some((at_ns + HOLD.as_nanos() as u64, frame));
            return true;
        }
        out.push((at_ns, frame.clone()));
        if is_twice {
            self.counts.duplicated += 1;
            out.push((at_ns, frame));
        }
        if let Some((_, overtaken)) = self.held.take() {
            self.counts.reordered += 1;
            out.push((at_ns, overtaken));
        }
        true
    }

    /// Lets a frame pass that only the delay concerns, and that draws no chance.
    pub(super) fn handle_exempt(&mut self, now_ns: u64, frame: Frame, out: &mut Vec<(u64, Frame)>) {
        self.counts.seen += 1;
        out.push((now_ns + self.impairment.delay.as_nanos() as u64, frame));
    }

    /// When [`Direction::handle_timeout`] is due.
    pub(super) fn poll_timeout(&self) -> Option<u64> {
        self.held.as_ref().map(|(until_ns, _)| *until_ns)
    }

    /// Lets a frame go that nothing overtook in time.
    pub(super) fn handle_timeout(&mut self, now_ns: u64, out: &mut Vec<(u64, Frame)>) {
        if let Some((_, frame)) = self.held.take_if(|(until_ns, _)| *until_ns <= now_ns) {
            out.push((now_ns, frame));
        }
    }

    fn draw_loss(&mut self) -> bool {
        let by_itself = self.chance.chance(self.impairment.loss);
        let Some(bursts) = self.impairment.bursts else { return by_itself };
        let turns = self.chance.chance(if self.is_in_burst { bursts.leave } else { bursts.enter });
        self.is_in_burst ^= turns;
        let in_burst = self.is_in_burst && self.chance.chance(bursts.loss);
        by_itself || in_burst
    }

    fn arrival(&mut self, now_ns: u64) -> u64 {
        let jitter_ns = self.impairment.jitter.as_nanos() as f64 * self.chance.share();
        let at_ns = now_ns + self.impairment.delay.as_nanos() as u64 + jitter_ns as u64;
        let at_ns = match self.impairment.coalesce.as_nanos() as u64 {
            0 => at_ns,
            period_ns => at_ns.next_multiple_of(period_ns),
        };
        self.latest_ns = self.latest_ns.max(at_ns);
        self.latest_ns
    }
}

/// How long a frame waits for another to overtake it; longer than most periods, much shorter than what a repair waits for.
const HOLD: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::LossBursts;

    /// Sends `count` numbered frames a microsecond apart; returns what arrived, by time, and the counts.
    fn pass(impairment: Impairment, chance: u64, count: u64) -> (Vec<(u64, u64)>, Counts) {
        let mut direction = Direction::new(impairment, chance);
        let mut out = Vec::new();
        for number in 0..count {
            direction.handle_frame(number * 1_000, number, |number| u64::from(number % 2 == 0), &mut out);
        }
        let end = count * 1_000 + HOLD.as_nanos() as u64 * 2;
        direction.handle_timeout(end, &mut out);
        out.sort_by_key(|(at_ns, _)| *at_ns);
        (out, direction.counts)
    }

    fn numbers(frames: &[(u64, u64)]) -> Vec<u64> {
        frames.iter().map(|(_, number)| *number).collect()
    }

    #[test]
    fn nothing_happens_where_nothing_is_asked_for() {
        let (frames, counts) = pass(Impairment::default(), 1, 100);
        assert_eq!(frames, (0..100).map(|number| (number * 1_000, number)).collect::<Vec<_>>());
        assert_eq!(counts, Counts { seen: 100, ..Counts::default() });
    }

    #[test]
    fn what_is_counted_as_lost_is_what_is_missing() {
        let impairment = Impairment { loss: 0.1, ..Impairment::default() };
        let (frames, counts) = pass(impairment.clone(), 7, 10_000);
        assert_eq!(frames.len() as u64 + counts.dropped, 10_000);
        assert!((900..1_100).contains(&counts.dropped), "{counts:?}");
        let data = numbers(&frames).iter().filter(|number| *number % 2 == 0).count() as u64;
        assert_eq!(data + counts.dropped_data, 5_000);
        assert_eq!(pass(impairment.clone(), 7, 10_000).0, frames, "chance is repeated");
        assert_ne!(pass(impairment, 8, 10_000).0, frames, "another chance is another one");
    }

    #[test]
    fn gaps_of_a_stream_lie_between_two_packets_that_passed() {
        let mut counts = StreamCounts::default();
        counts.note_dropped(2);
        counts.note_passed(1);
        counts.note_dropped(1);
        counts.note_passed(0);
        counts.note_dropped(1);
        assert_eq!((counts.seen, counts.dropped, counts.gaps), (5, 4, 0), "nobody knows yet that there is more");
        counts.note_passed(3);
        counts.note_dropped(1);
        assert_eq!((counts.seen, counts.dropped, counts.gaps), (9, 5, 2));
    }

    #[test]
    fn what_a_frame_is_said_to_meet_is_what_it_meets() {
        let mut direction = Direction::new(Impairment { loss: 0.2, ..Impairment::default() }, 3);
        let mut out = Vec::new();
        let passed = (0..1_000).filter(|number| direction.handle_frame(0, *number, |_| 0, &mut out)).count();
        assert_eq!((out.len(), direction.counts.dropped), (passed, 1_000 - passed as u64));
    }

    #[test]
    fn an_exempt_frame_is_delayed_alone_and_changes_no_other_ones_fate() {
        let impairment = Impairment { loss: 0.5, delay: Duration::from_micros(5), ..Impairment::default() };
        let mut direction = Direction::new(impairment.clone(), 7);
        let mut out = Vec::new();
        for number in 0..1_000 {
            let before = out.len();
            direction.handle_exempt(number * 1_000, u64::MAX, &mut out);
            assert_eq!(out.split_off(before), [(number * 1_000 + 5_000, u64::MAX)]);
            direction.handle_frame(number * 1_000, number, |_| 0, &mut out);
        }
        assert_eq!(out, pass(impairment, 7, 1_000).0);
    }

    #[test]
    fn bursts_have_their_share_and_their_length() {
        let bursts = LossBursts { enter: 0.01, leave: 0.2, loss: 1.0 };
        let (frames, counts) = pass(Impairment { bursts: Some(bursts), ..Impairment::default() }, 3, 100_000);
        // The bad state holds enter / (enter + leave) of the time, five frames at a time.
        let share = counts.dropped as f64 / 100_000.0;
        assert!((0.04..0.056).contains(&share), "{share}");
        let gaps = numbers(&frames).windows(2).filter(|pair| pair[1] != pair[0] + 1).count() as f64;
        let length = counts.dropped as f64 / gaps;
        assert!((4.5..5.5).contains(&length), "{length}");
    }

    #[test]
    fn delay_and_jitter_keep_the_order() {
        let (delay, jitter) = (Duration::from_micros(200), Duration::from_micros(50));
        let (frames, _) = pass(Impairment { delay, jitter, ..Impairment::default() }, 5, 1_000);
        assert!(frames.is_sorted_by_key(|(_, number)| *number));
        let took: Vec<u64> = frames.iter().map(|(at_ns, number)| at_ns - number * 1_000).collect();
        assert!(took.iter().all(|ns| (200_000..=250_000).contains(ns)));
        assert!(took.iter().any(|ns| *ns > 210_000), "jitter has no effect");
    }

    #[test]
    fn overtaken_frames_come_right_after_the_next_one() {
        let (frames, counts) = pass(Impairment { reorder: 0.1, ..Impairment::default() }, 5, 1_000);
        let late = numbers(&frames).windows(2).filter(|pair| pair[0] > pair[1]).count() as u64;
        assert_eq!((frames.len(), late), (1_000, counts.reordered));
        assert!((60..140).contains(&counts.reordered), "{counts:?}");
        let (alone, counts) = pass(Impairment { reorder: 1.0, ..Impairment::default() }, 5, 1);
        assert_eq!((alone.len(), counts.reordered), (1, 0), "nothing came that could overtake it");
    }

    #[test]
    fn duplicates_and_gathered_frames_are_counted_and_kept() {
        let (frames, counts) = pass(Impairment { duplicate: 0.5, ..Impairment::default() }, 5, 1_000);
        assert_eq!(frames.len() as u64, 1_000 + counts.duplicated);
        assert!((400..600).contains(&counts.duplicated));
        let coalesce = Duration::from_micros(125);
        let (frames, _) = pass(Impairment { coalesce, ..Impairment::default() }, 5, 1_000);
        assert!(frames.iter().all(|(at_ns, number)| at_ns % 125_000 == 0 && at_ns - number * 1_000 < 125_000));
    }
}
