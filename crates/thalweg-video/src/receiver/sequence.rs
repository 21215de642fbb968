//! Packet numbers: which arrived, which are missing, and what became of each.

use std::ops::Range;

use super::bits::Bits;
use super::extended::Extended;

/// Packets that a window remembers at most: 8 frames of 8K UHD in small packets.
const CAPACITY_MAX: usize = 1 << 20;
/// Packets that a window remembers at least.
const CAPACITY_MIN: usize = 1 << 12;
/// A packet so far ahead is believed once another one has come from there (RFC 3550 §A.1, `MAX_DROPOUT`).
const JUMP_MAX: u64 = 3000;
/// How close to a packet far away the next one must be to confirm it: packets may be lost and reordered there too.
const CONFIRM_MAX: u64 = 64;
/// Packets in a row from far behind that show a restart of the sender.
const RESTART_PACKETS: u32 = 16;

/// How a packet came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// In the stream.
    Stream,
    /// Sent again in a stream of its own.
    Retransmission,
}

/// What the number of a packet tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It was missing until now; the numbers in the range before it are missing since now.
    New(Range<u64>),
    /// It came before.
    Duplicate,
    /// It is too old to tell whether it came before.
    Stale,
    /// It is too far away to be believed yet.
    Held,
}

/// Totals of packets, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketTotals {
    pub(crate) expected: u64,
    pub(crate) received: u64,
    pub(crate) recovered: u64,
    pub(crate) lost: u64,
    /// Missing and not yet given up.
    pub(crate) outstanding: u64,
    pub(crate) duplicates: u64,
    pub(crate) reordered: u64,
    pub(crate) reorder_distance_max: u64,
    pub(crate) stale: u64,
    pub(crate) implausible: u64,
}

/// The newest numbers of a stream, each a bit, and the totals of all. Numbers are counted on beyond their 16 bits.
#[derive(Clone, Debug)]
pub(crate) struct SequenceWindow {
    /// The first number; `next` without any.
    first: u64,
    /// Numbers below have left the window.
    floor: u64,
    /// One beyond the highest number.
    next: u64,
    /// Bits of numbers from `floor` to `next`; the others are 0.
    arrived: Bits,
    asked: Bits,
    /// Bits in `arrived`.
    present: u64,
    /// A number far ahead that no other one has confirmed.
    ahead: Option<u64>,
    /// The last number from far behind, and how many came from there in a row.
    behind: (u64, u32),
    extended: Extended,
    totals: PacketTotals,
}

impl SequenceWindow {
    /// A window over at least `packets` packets.
    pub(crate) fn new(packets: usize) -> SequenceWindow {
        let capacity = packets.next_power_of_two().clamp(CAPACITY_MIN, CAPACITY_MAX);
        SequenceWindow {
            first: 0,
            floor: 0,
            next: 0,
            arrived: Bits::new(capacity),
            asked: Bits::new(capacity),
            present: 0,
            ahead: None,
            behind: (0, 0),
            extended: Extended::default(),
            totals: PacketTotals::default(),
        }
    }

    /// The highest number so far.
    pub(crate) fn newest(&self) -> Option<u64> {
        (self.next > self.first).then(|| self.next - 1)
    }

    /// The lowest number so far.
    pub(crate) fn oldest(&self) -> Option<u64> {
        (self.next > self.first).then_some(self.first)
    }

    /// The number of a packet of the stream: the one closest to `around` that ends in the 16 bits of RTP, or in 32 bits
    /// once the upper half has proved to count (senders that do not count send 0).
    pub(crate) fn number(&mut self, sequence: u16, extended: u16, around: Option<u64>) -> u64 {
        let Some(around) = around.or(self.newest()) else {
            // Room below for packets that were sent before the first one.
            return 1 << 32 | u64::from(extended) << 16 | u64::from(sequence);
        };
        let (value, bits) = match extended != 0 && self.extended.is_trusted() {
            true => (u64::from(extended) << 16 | u64::from(sequence), 32),
            false => (u64::from(sequence), 16),
        };
        // After a long gap the next packet is close to the one that is held, whose time told its number.
        let beside = self.ahead.map(|ahead| (closest(value, bits, ahead), ahead));
        let confirming = beside.filter(|(number, ahead)| number.abs_diff(*ahead) <= CONFIRM_MAX);
        let number = confirming.map_or_else(|| closest(value, bits, around), |(number, _)| number);
        self.extended.record(number, extended);
        number
    }

    /// The number of a packet that was sent again: the highest one up to the newest that ends in these 16 bits. Where that is not missing,
    /// it may be another one up to `beyond_max` numbers beyond the newest. `None` where no such number was counted.
    pub(crate) fn number_of_original(&self, sequence: u16, beyond_max: u16) -> Option<u64> {
        let newest = self.newest()?;
        // A sender that begins anew again and again may have come down to 0.
        let number = newest.checked_sub(u64::from((newest as u16).wrapping_sub(sequence)));
        let beyond = sequence.wrapping_sub(newest as u16);
        let is_missing = number.is_some_and(|number| self.is_missing(number));
        let is_beyond = (1..=beyond_max).contains(&beyond) && !is_missing;
        if is_beyond { Some(newest + u64::from(beyond)) } else { number }
    }

    /// Notes the arrival of a packet of the stream.
    pub(crate) fn insert(&mut self, number: u64) -> Seen {
        if self.newest().is_none() {
            (self.first, self.floor, self.next) = (number, number, number);
        }
        if number < self.lowest() {
            return self.insert_behind(number);
        }
        if self.is_far_ahead(number) {
            return self.insert_ahead(number);
        }
        self.behind.1 = 0;
        let seen = self.insert_near(number, Way::Stream);
        if self.ahead.take_if(|ahead| *ahead < self.next).is_some() {
            self.totals.implausible += 1;
        }
        seen
    }

    /// Whether a number confirms the one far ahead that is held.
    pub(crate) fn is_confirmed_by(&self, number: u64) -> bool {
        let confirms = |held: u64| held != number && held.abs_diff(number) <= CONFIRM_MAX;
        self.is_far_ahead(number) && self.ahead.is_some_and(confirms)
    }

    /// Begins anew with the number that is held, if it is beside this one.
    pub(crate) fn begin_beside(&mut self, number: u64) {
        let held = self.ahead.take_if(|held| held.abs_diff(number) <= CONFIRM_MAX);
        self.finish();
        if let Some(held) = held {
            self.insert(held);
        }
    }

    /// Notes the arrival of a packet that was sent again.
    pub(crate) fn insert_again(&mut self, number: u64) -> Seen {
        if number < self.floor || number < self.first {
            return Seen::Stale;
        }
        self.insert_near(number, Way::Retransmission)
    }

    /// Whether a number of the window is missing.
    pub(crate) fn is_missing(&self, number: u64) -> bool {
        (self.floor..self.next).contains(&number) && !self.arrived.get(number)
    }

    /// How many numbers of a range have not come; those that left the window count as such, and those before the first one do
    /// not.
    pub(crate) fn count_missing(&self, range: Range<u64>) -> u64 {
        let range = range.start.max(self.first)..range.end;
        let inside = range.start.clamp(self.floor, self.next)..range.end.clamp(self.floor, self.next);
        let came = inside.filter(|number| self.arrived.get(*number)).count() as u64;
        range.end.saturating_sub(range.start) - came
    }

    /// Notes that a missing number was asked for.
    pub(crate) fn mark_asked(&mut self, number: u64) {
        if (self.floor..self.next).contains(&number) {
            self.asked.set(number);
        }
    }

    /// Gives up all that is missing: the stream has ended, or begins anew.
    pub(crate) fn finish(&mut self) {
        self.totals.lost += self.next - self.floor - self.present;
        self.totals.expected += self.next - self.first;
        self.totals.implausible += u64::from(self.ahead.take().is_some());
        self.behind.1 = 0;
        (self.first, self.floor, self.next, self.present) = (0, 0, 0, 0);
        self.arrived.clear_all();
        self.asked.clear_all();
        self.extended = Extended::default();
    }

    /// Lets the numbers below `end` leave the window: those that did not come are lost.
    pub(crate) fn give_up_below(&mut self, end: u64) {
        for number in self.floor..end.min(self.next) {
            let has_arrived = self.arrived.take(number);
            self.asked.take(number);
            self.present -= u64::from(has_arrived);
            self.totals.lost += u64::from(!has_arrived);
        }
        self.floor = end.clamp(self.floor, self.next);
    }

    /// The totals of all numbers from the first to the highest one.
    pub(crate) fn totals(&self) -> PacketTotals {
        let outstanding = self.next - self.floor - self.present;
        PacketTotals { expected: self.totals.expected + (self.next - self.first), outstanding, ..self.totals }
    }

    /// The lowest number that can be told apart: numbers before the first one join as long as none has left.
    fn lowest(&self) -> u64 {
        let capacity = self.arrived.capacity();
        if self.floor == self.first { self.next.saturating_sub(capacity) } else { self.floor }
    }

    fn is_far_ahead(&self, number: u64) -> bool {
        number > self.next + JUMP_MAX
    }

    fn insert_near(&mut self, number: u64, way: Way) -> Seen {
        let gap = if number >= self.next {
            let gap = self.next..number;
            self.advance(number + 1);
            gap
        } else {
            // Lower than all: sent before the first one, and overtaken by it.
            self.floor = self.floor.min(number);
            self.first = self.first.min(number);
            if self.arrived.get(number) {
                self.totals.duplicates += 1;
                return Seen::Duplicate;
            }
            self.count_reordered(number, way);
            0..0
        };
        self.arrived.set(number);
        self.present += 1;
        match way {
            Way::Stream => self.totals.received += 1,
            Way::Retransmission => self.totals.recovered += 1,
        }
        Seen::New(gap)
    }

    /// Moves what was counted as received to the recovered ones: it was asked for, and came in the stream.
    pub(crate) fn count_if_asked(&mut self, number: u64) {
        if (self.floor..self.next).contains(&number) && self.asked.get(number) {
            self.totals.received -= 1;
            self.totals.recovered += 1;
        }
    }

    fn count_reordered(&mut self, number: u64, way: Way) {
        if way == Way::Stream {
            self.totals.reordered += 1;
            self.totals.reorder_distance_max = self.totals.reorder_distance_max.max(self.next - 1 - number);
        }
    }

    /// Numbers up to `next` are known of; those that leave the window are lost unless they arrived.
    fn advance(&mut self, next: u64) {
        let floor = next.saturating_sub(self.arrived.capacity()).max(self.floor);
        self.give_up_below(floor);
        // Numbers that leave before they were in.
        self.totals.lost += floor.saturating_sub(self.next);
        (self.floor, self.next) = (floor, next);
    }

    /// Two packets close to each other show that those between were lost.
    fn insert_ahead(&mut self, number: u64) -> Seen {
        let Some(held) = self.ahead.replace(number) else { return Seen::Held };
        if held.abs_diff(number) > CONFIRM_MAX {
            self.totals.implausible += 1;
            return Seen::Held;
        }
        if held == number {
            self.totals.duplicates += 1;
            return Seen::Duplicate;
        }
        self.ahead = None;
        let before = self.next;
        self.insert_near(held, Way::Stream);
        self.insert_near(number, Way::Stream);
        Seen::New(before..held.max(number))
    }

    /// A row of packets from behind shows that the sender began anew.
    fn insert_behind(&mut self, number: u64) -> Seen {
        let (last, count) = self.behind;
        let is_near = count > 0 && last.abs_diff(number) <= CONFIRM_MAX;
        self.behind = (number, if is_near { count + 1 } else { 1 });
        if self.behind.1 < RESTART_PACKETS {
            self.totals.stale += 1;
            return Seen::Stale;
        }
        self.finish();
        (self.first, self.floor, self.next) = (number, number, number);
        self.insert_near(number, Way::Stream)
    }
}

/// The number closest to `around` that ends in the `bits` low bits of `value`.
fn closest(value: u64, bits: u32, around: u64) -> u64 {
    let span = 1_u64 << bits;
    let ahead = value.wrapping_sub(around) & (span - 1);
    let forward = around.saturating_add(ahead);
    if ahead < span / 2 { forward } else { forward.checked_sub(span).unwrap_or(forward) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn window() -> SequenceWindow {
        SequenceWindow::new(1)
    }

    /// The totals of a window after it ended, with their law.
    #[track_caller]
    fn check(window: &mut SequenceWindow, expect: (u64, u64, u64, u64)) {
        let totals = window.totals();
        assert_eq!(totals.received + totals.recovered + totals.lost + totals.outstanding, totals.expected);
        window.finish();
        let totals = window.totals();
        assert_eq!((totals.expected, totals.received, totals.recovered, totals.lost), expect);
        assert_eq!((totals.outstanding, totals.received + totals.recovered + totals.lost), (0, totals.expected));
    }

    #[test]
    fn each_number_has_one_fate_whatever_the_order() {
        for seed in 0..50 {
            let mut rng = thalweg_base::rng::Rng::new(seed);
            let mut window = window();
            let (mut stream, mut again) = (BTreeSet::new(), BTreeSet::new());
            let mut duplicates = 0;
            for step in 0..20_000_u64 {
                // At times 100 numbers back.
                let back = if rng.chance(0.1) { 100 } else { 2 };
                let number = (1 << 32) + step + 100 - rng.below(back);
                if rng.chance(0.2) {
                    continue;
                }
                let is_known = stream.contains(&number) || again.contains(&number);
                duplicates += u64::from(is_known);
                if !is_known {
                    stream.insert(number);
                }
                assert_eq!(window.insert(number) == Seen::Duplicate, is_known);
                let asked = number + 3 - rng.below(200);
                if rng.chance(0.3) && asked > *stream.first().unwrap() {
                    let is_known = stream.contains(&asked) || again.contains(&asked);
                    duplicates += u64::from(is_known);
                    let newest = window.newest().unwrap();
                    assert_eq!(window.is_missing(asked), !is_known && asked < newest);
                    let gap = if asked > newest { newest + 1..asked } else { 0..0 };
                    let seen = if is_known { Seen::Duplicate } else { Seen::New(gap) };
                    assert_eq!(window.insert_again(asked), seen);
                    if !is_known {
                        again.insert(asked);
                    }
                }
            }
            assert_eq!(window.totals().duplicates, duplicates);
            let expected = *stream.last().max(again.last()).unwrap() - stream.first().unwrap() + 1;
            let (received, recovered) = (stream.len() as u64, again.len() as u64);
            check(&mut window, (expected, received, recovered, expected - received - recovered));
        }
    }

    #[test]
    fn gaps_are_told_once_and_packets_before_the_first_one_join() {
        let mut window = window();
        assert_eq!(window.insert(5000), Seen::New(5000..5000));
        assert_eq!(window.insert(5003), Seen::New(5001..5003));
        assert_eq!(window.insert(5001), Seen::New(0..0));
        assert_eq!(window.insert(4998), Seen::New(0..0));
        assert_eq!(window.insert_again(5002), Seen::New(0..0));
        assert_eq!((window.insert_again(5002), window.insert(5002)), (Seen::Duplicate, Seen::Duplicate));
        assert_eq!(window.totals().reordered, 2);
        assert_eq!(window.totals().reorder_distance_max, 5);
        check(&mut window, (6, 4, 1, 1));
    }

    #[test]
    fn one_packet_far_ahead_is_not_believed_and_two_are() {
        let mut window = window();
        window.insert(10_000);
        assert_eq!(window.insert(20_000), Seen::Held);
        assert_eq!(window.insert(10_001), Seen::New(10_001..10_001));
        assert_eq!(window.insert(30_000), Seen::Held);
        assert_eq!(window.totals().implausible, 1);
        // A late one from before the gap does not hide what was held.
        window.insert(10_003);
        assert_eq!(window.insert(29_998), Seen::New(10_004..30_000));
        assert_eq!(window.insert(30_000), Seen::Duplicate);
        check(&mut window, (20_001, 5, 0, 20_001 - 5));
    }

    #[test]
    fn a_row_of_packets_from_behind_is_a_restart() {
        let mut window = window();
        for number in 100_000..100_010 {
            window.insert(number);
        }
        assert_eq!(window.insert(50_000), Seen::Stale);
        window.insert(100_010);
        (50_000..50_015).for_each(|number| assert_eq!(window.insert(number), Seen::Stale));
        assert_eq!(window.insert(50_015), Seen::New(50_015..50_015));
        assert_eq!(window.insert(50_017), Seen::New(50_016..50_017));
        assert_eq!(window.totals().stale, 16);
        check(&mut window, (11 + 3, 11 + 2, 0, 1));
    }

    #[test]
    fn what_leaves_the_window_is_lost() {
        let mut window = window();
        let capacity = CAPACITY_MIN as u64;
        window.insert(0);
        window.insert(2);
        window.insert(2500);
        assert!(window.is_missing(1));
        window.insert(capacity + 1);
        assert_eq!((window.totals().lost, window.is_missing(1)), (1, false));
        assert_eq!(window.insert_again(1), Seen::Stale);
        // A gap longer than the window, confirmed.
        window.insert(10 * capacity);
        window.insert(10 * capacity + 1);
        assert_eq!(window.totals().outstanding, capacity - 2);
        check(&mut window, (10 * capacity + 2, 6, 0, 10 * capacity - 4));
    }

    #[test]
    fn upper_halves_are_used_only_when_they_count() {
        // A sender that sends 0 always, over two turns of the lower half; then it is silent for 40,000 packets, of which
        // the time tells.
        let mut window = window();
        let base = 1_u64 << 32;
        for step in 0..140_000 {
            assert_eq!(window.number(step as u16, 0, None), base + step);
            window.insert(base + step);
        }
        assert_eq!(window.number((180_000_u64) as u16, 0, Some(base + 179_000)), base + 180_000);
        // One that counts: a gap of 100,000 packets is seen without any help.
        let mut window = super::SequenceWindow::new(1);
        for step in 70_000..70_100_u64 {
            window.number(step as u16, (step >> 16) as u16, None);
            window.insert(base + step);
        }
        assert_eq!(window.number(170_000_u64 as u16, (170_000_u64 >> 16) as u16, None), base + 170_000);
    }

    #[test]
    fn repetitions_mean_the_newest_packet_of_their_number() {
        let mut window = window();
        assert_eq!(window.number_of_original(3, 0), None);
        window.insert((1 << 32) + 65_536 + 5);
        let number = |sequence, beyond| window.number_of_original(sequence, beyond).unwrap() - (1 << 32);
        assert_eq!([5, 6, 0xffff].map(|sequence| number(sequence, 0)), [65_541, 6, 65_535]);
        assert_eq!([5, 6, 9, 10].map(|sequence| number(sequence, 4)), [65_541, 65_542, 65_545, 10]);
        // Where a sender comes to that begins anew behind its numbers again and again.
        let mut window = super::SequenceWindow::new(1);
        window.insert(199);
        assert_eq!(window.number_of_original(199, 0), Some(199));
        assert_eq!(window.number_of_original(200, 0), None, "there was none before");
        assert_eq!(window.number_of_original(200, 4), Some(200));
    }
}
