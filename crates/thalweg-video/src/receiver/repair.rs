//! Missing packets that are asked for again (RFC 4585 §6.2.1).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use thalweg_base::time::Instant;

use super::sequence::SequenceWindow;

/// Missing packets that are remembered at most, those that were asked for already among them; what a burst loses beyond them is
/// concealed.
const MISSING_MAX: usize = 8192;
/// Entries of a list of missing packets at most: one RTCP packet of about 1 KB.
pub const NACK_ITEMS_MAX: usize = 256;
/// The shortest time between two requests for one packet: a paced sender hears them between its batches, and whoever gathers
/// arrivals reads the answer as late. It doubles with each one, since an end that is not scheduled answers none.
const ASK_AGAIN_MIN: Duration = Duration::from_millis(1);
/// How often that time doubles: to 4 ms.
const MIN_DOUBLINGS_MAX: u32 = 2;
/// The time before a second request while no round trip is known; it doubles with each one.
const ASK_AGAIN_UNKNOWN: Duration = Duration::from_millis(5);
/// How often that time doubles.
const DOUBLINGS_MAX: u32 = 3;
/// The time without requests after which one is made though its answer would be too late by the known round trip: nothing
/// else may tell that it is short again.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// Requests are due at multiples of this time, so that each lost packet does not take a message of its own.
const GRID: Duration = Duration::from_micros(250);

/// One entry of a generic NACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NackItem {
    /// The number of a missing packet (PID).
    pub packet: u16,
    /// A bit for each of the 16 packets that follow, the lowest for the next one: 1 if it is missing as well (BLP).
    pub following: u16,
}

impl NackItem {
    /// The numbers that the entry names.
    pub fn sequences(self) -> impl Iterator<Item = u16> {
        let following = (0..16).filter(move |bit| self.following >> bit & 1 != 0);
        [self.packet].into_iter().chain(following.map(move |bit| self.packet.wrapping_add(bit + 1)))
    }
}

/// A packet that is missing. What is due earlier comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MissingPacket {
    due: Instant,
    number: u64,
    /// The frame that it belongs to, or the one after it.
    timestamp: i64,
    /// When it is useless at the latest, whatever its time stamp says.
    expires: Instant,
    asks: u32,
}

/// What is asked for, and when.
#[derive(Clone, Debug)]
pub(crate) struct Repairs {
    reorder_window: Duration,
    playout: Duration,
    /// By the time at which each is asked for, the first time or again. One that came meanwhile leaves when it is the first one.
    missing: BinaryHeap<Reverse<MissingPacket>>,
    round_trip: Option<Duration>,
    /// A number asked for once, and when: its arrival measures the round trip.
    probe: Option<(u64, Instant)>,
    last_list: Option<Instant>,
    numbers: Vec<u64>,
    items: Vec<NackItem>,
    pub(crate) counters: RepairCounters,
}

/// What was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RepairCounters {
    pub(crate) lists: u64,
    pub(crate) requests: u64,
    pub(crate) given_up: u64,
}

impl Repairs {
    pub(crate) fn new(reorder_window: Duration, playout: Duration) -> Repairs {
        Repairs {
            reorder_window,
            playout,
            missing: BinaryHeap::with_capacity(MISSING_MAX),
            round_trip: None,
            probe: None,
            last_list: None,
            numbers: Vec::with_capacity(NACK_ITEMS_MAX),
            items: Vec::with_capacity(NACK_ITEMS_MAX),
            counters: RepairCounters::default(),
        }
    }

    /// Notes numbers that are missing since `now`.
    pub(crate) fn handle_gap(&mut self, now: Instant, gap: std::ops::Range<u64>, timestamp: i64) {
        let room = (MISSING_MAX - self.missing.len()) as u64;
        self.counters.given_up += (gap.end - gap.start).saturating_sub(room);
        let due = on_grid(now + self.reorder_window);
        // No frame waits longer after the arrival of its first packet, which is not later than this one's.
        let expires = now + self.playout;
        let newest = gap.start.max(gap.end.saturating_sub(room))..gap.end;
        let missing = |number| Reverse(MissingPacket { due, number, timestamp, expires, asks: 0 });
        self.missing.extend(newest.map(missing));
    }

    /// Takes a round trip that reports measured.
    pub(crate) fn handle_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = Some(match self.round_trip {
            // A mean would keep a single slow answer for many round trips.
            Some(known) if round_trip >= known / 2 => known.saturating_mul(7).saturating_add(round_trip) / 8,
            _ => round_trip,
        });
    }

    /// Notes that a packet was sent again.
    pub(crate) fn handle_repetition(&mut self, now: Instant, number: u64) {
        if let Some((_, asked)) = self.probe.take_if(|(probe, _)| *probe == number) {
            self.handle_round_trip(now.since(asked));
        }
    }

    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// The list of what is asked for now.
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        window: &mut SequenceWindow,
        deadline: impl Fn(i64) -> Option<Instant>,
    ) -> Option<&[NackItem]> {
        self.numbers.clear();
        if self.due(window) > now {
            return None;
        }
        let tries_again = self.last_list.is_none_or(|last| now.since(last) >= TRY_AGAIN);
        // What is asked for now is due later, and visited no more.
        while self.numbers.len() < NACK_ITEMS_MAX && self.due(window) <= now {
            let Some(Reverse(mut missing)) = self.missing.pop() else { break };
            let answer = now + self.round_trip.unwrap_or_default();
            let deadline = deadline(missing.timestamp).unwrap_or(Instant::NEVER).min(missing.expires);
            let is_late = now > deadline || (answer > deadline && !tries_again);
            if is_late {
                self.counters.given_up += 1;
                continue;
            }
            self.numbers.push(missing.number);
            window.mark_asked(missing.number);
            self.aim_probe(now, missing);
            missing.due = on_grid(now + self.ask_again(missing.asks));
            missing.asks += 1;
            self.missing.push(Reverse(missing));
        }
        if !self.numbers.is_empty() {
            self.last_list = Some(now);
        }
        self.pack()
    }

    /// When the next list is due; [`Instant::NEVER`] without anything missing.
    pub(crate) fn due(&mut self, window: &SequenceWindow) -> Instant {
        while let Some(Reverse(missing)) = self.missing.peek() {
            if window.is_missing(missing.number) {
                return missing.due;
            }
            self.missing.pop();
        }
        Instant::NEVER
    }

    /// Forgets everything: the sender began anew.
    pub(crate) fn reset(&mut self) {
        self.missing.clear();
        (self.probe, self.last_list) = (None, None);
    }

    /// Only the answer to a first request tells the round trip: another one may answer either.
    fn aim_probe(&mut self, now: Instant, missing: MissingPacket) {
        match self.probe {
            Some((number, _)) if number == missing.number => self.probe = None,
            // A probe that nothing answered makes room.
            Some((_, asked)) if now.since(asked) < Duration::from_secs(1) => {}
            _ if missing.asks == 0 => self.probe = Some((missing.number, now)),
            _ => {}
        }
    }

    /// The time until a packet is asked for again.
    fn ask_again(&self, asks: u32) -> Duration {
        match self.round_trip {
            // A quarter more: an answer that is under way needs no second one.
            Some(round_trip) => {
                (round_trip.saturating_mul(5) / 4).max(ASK_AGAIN_MIN * 2_u32.pow(asks.min(MIN_DOUBLINGS_MAX)))
            }
            None => ASK_AGAIN_UNKNOWN * 2_u32.pow(asks.min(DOUBLINGS_MAX)),
        }
    }

    fn pack(&mut self) -> Option<&[NackItem]> {
        self.items.clear();
        self.numbers.sort_unstable();
        let mut first = None;
        for number in &self.numbers {
            let distance = first.map_or(u64::MAX, |first| number - first);
            match self.items.last_mut() {
                Some(item) if distance <= 16 => {
                    item.following |= if distance == 0 { 0 } else { 1 << (distance - 1) };
                }
                _ => {
                    first = Some(*number);
                    self.items.push(NackItem { packet: *number as u16, following: 0 });
                }
            }
        }
        if self.items.is_empty() {
            return None;
        }
        self.counters.lists += 1;
        self.counters.requests += self.items.iter().map(|item| 1 + u64::from(item.following.count_ones())).sum::<u64>();
        Some(&self.items)
    }
}

/// The next multiple of [`GRID`].
fn on_grid(at: Instant) -> Instant {
    let grid = thalweg_base::time::nanos(GRID);
    Instant::from_nanos(at.as_nanos().checked_next_multiple_of(grid).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    /// A window in which the numbers from 1 to 99 are missing but for some, and the requests for them since 1 ms.
    fn missing(numbers: &[u64]) -> (SequenceWindow, Repairs) {
        let mut window = SequenceWindow::new(1);
        window.insert(0);
        for number in (1..100).filter(|number| !numbers.contains(number)) {
            window.insert(number);
        }
        window.insert(100);
        let mut repairs = Repairs::new(Duration::from_micros(500), Duration::from_secs(1));
        numbers.iter().for_each(|number| repairs.handle_gap(at(1000), *number..*number + 1, 7));
        (window, repairs)
    }

    /// When each list is given out until `end`, and the numbers in it; frames are due at `deadline`.
    fn lists(window: &mut SequenceWindow, repairs: &mut Repairs, deadline: u64, end: u64) -> Vec<(u64, Vec<u16>)> {
        let mut out = Vec::new();
        loop {
            let due = repairs.due(window);
            if due > at(end) {
                return out;
            }
            while let Some(items) = repairs.poll(due, window, |timestamp| (timestamp == 7).then_some(at(deadline))) {
                let numbers = items.iter().flat_map(|item| item.sequences()).collect();
                out.push((due.as_nanos() / 1000, numbers));
            }
        }
    }

    #[test]
    fn a_gap_is_asked_for_after_the_reorder_window_and_again_after_each_round_trip() {
        let (mut window, mut repairs) = missing(&[3, 4, 20, 50]);
        repairs.handle_round_trip(Duration::from_millis(2));
        let all = vec![3, 4, 20, 50];
        let expect = [1500, 4000, 6500, 10_500].map(|time| (time, all.clone()));
        assert_eq!(lists(&mut window, &mut repairs, 13_200, 100_000), expect, "until an answer would be too late");
        assert_eq!(repairs.counters, RepairCounters { lists: 4, requests: 16, given_up: 4 });
        assert_eq!(repairs.due(&window), Instant::NEVER);
    }

    #[test]
    fn a_sender_that_does_not_answer_in_a_short_round_trip_is_asked_less_and_less() {
        let (mut window, mut repairs) = missing(&[9]);
        repairs.handle_round_trip(Duration::from_micros(100));
        let times: Vec<u64> = lists(&mut window, &mut repairs, 999_000, 30_000).iter().map(|list| list.0).collect();
        assert_eq!(times, [1500, 2500, 4500, 8500, 12_500, 16_500, 20_500, 24_500, 28_500]);
    }

    #[test]
    fn each_packet_is_asked_for_when_it_is_due_whatever_was_asked_for_before_it() {
        let (mut window, mut repairs) = missing(&[3, 20]);
        repairs.missing.clear();
        repairs.handle_round_trip(Duration::from_micros(100));
        repairs.handle_gap(at(1000), 3..4, 7);
        repairs.handle_gap(at(9000), 20..21, 7);
        let lists = lists(&mut window, &mut repairs, 999_000, 14_000);
        let times = |number| lists.iter().filter(move |list| list.1.contains(&number)).map(|list| list.0);
        assert_eq!(times(3).collect::<Vec<_>>(), [1500, 2500, 4500, 8500, 12_500]);
        assert_eq!(
            times(20).collect::<Vec<_>>(),
            [9500, 10_500, 12_500],
            "one asked for five times before is due later"
        );
    }

    #[test]
    fn what_came_is_not_asked_for() {
        let (mut window, mut repairs) = missing(&[3, 4, 20]);
        repairs.handle_round_trip(Duration::from_millis(2));
        window.insert(4);
        assert_eq!(lists(&mut window, &mut repairs, 99_000, 2000), [(1500, vec![3, 20])]);
        window.insert_again(3);
        assert_eq!(lists(&mut window, &mut repairs, 99_000, 5000), [(4000, vec![20])]);
        window.insert_again(20);
        assert_eq!(repairs.due(&window), Instant::NEVER);
    }

    #[test]
    fn without_a_round_trip_requests_become_rarer_and_the_first_answer_tells_it() {
        let (mut window, mut repairs) = missing(&[9]);
        let times: Vec<u64> = lists(&mut window, &mut repairs, 999_000, 120_000).iter().map(|list| list.0).collect();
        assert_eq!(times, [1500, 6500, 16_500, 36_500, 76_500, 116_500]);
        repairs.handle_repetition(at(117_000), 9);
        assert_eq!(repairs.round_trip(), None, "it may answer any of six requests");
        let (mut window, mut repairs) = missing(&[9]);
        lists(&mut window, &mut repairs, 999_000, 2000);
        repairs.handle_repetition(at(3700), 9);
        assert_eq!(repairs.round_trip(), Some(Duration::from_micros(2200)));
    }

    #[test]
    fn one_slow_answer_does_not_end_requests() {
        let (mut window, _) = missing(&[3, 20, 50]);
        let mut repairs = Repairs::new(Duration::from_micros(500), Duration::from_millis(60));
        repairs.handle_gap(at(1000), 3..4, 7);
        assert_eq!(lists(&mut window, &mut repairs, 61_000, 2000), [(1500, vec![3])]);
        // It waited in the sender's queue, as repetitions do beyond a tenth of the stream.
        window.insert_again(3);
        repairs.handle_repetition(at(801_500), 3);
        repairs.handle_gap(at(900_000), 20..21, 7);
        assert_eq!(lists(&mut window, &mut repairs, 960_000, 950_000), [], "the answer would be too late");
        repairs.handle_gap(at(2_000_000), 50..51, 7);
        assert_eq!(lists(&mut window, &mut repairs, 2_060_000, 2_001_000), [(2_000_500, vec![50])], "once a second");
        window.insert_again(50);
        repairs.handle_repetition(at(2_002_500), 50);
        assert_eq!(repairs.round_trip(), Some(Duration::from_millis(2)));
        repairs.handle_round_trip(Duration::MAX);
        assert!(repairs.round_trip() > Some(Duration::from_secs(3600)), "no time is too long to be reckoned with");
        let (mut window, mut repairs) = missing(&[9]);
        repairs.handle_round_trip(Duration::MAX);
        assert_eq!(lists(&mut window, &mut repairs, 999_000, 2000), [(1500, vec![9])], "nor before any other");
    }

    #[test]
    fn a_time_stamp_from_far_ahead_is_not_asked_for_for_ever() {
        let (mut window, mut repairs) = missing(&[9]);
        repairs.handle_round_trip(Duration::from_millis(100));
        let times: Vec<u64> =
            lists(&mut window, &mut repairs, u64::MAX / 1000, u64::MAX / 1000).iter().map(|list| list.0).collect();
        assert_eq!(times, (0..8).map(|ask| 1500 + 125_000 * ask).collect::<Vec<_>>(), "for a second");
    }

    #[test]
    fn lists_and_memory_are_bounded() {
        let mut window = SequenceWindow::new(1 << 15);
        for number in (0..10_000).step_by(20) {
            window.insert(number);
        }
        let mut repairs = Repairs::new(Duration::ZERO, Duration::from_secs(1));
        repairs.handle_gap(at(0), 0..10_000, 7);
        assert_eq!(repairs.missing.len(), MISSING_MAX);
        assert_eq!(repairs.counters.given_up, 10_000 - MISSING_MAX as u64);
        let mut lists = 0;
        while let Some(items) = repairs.poll(at(0), &mut window, |_| None) {
            assert!(items.len() <= NACK_ITEMS_MAX);
            let count = items.iter().map(|item| item.sequences().count()).sum::<usize>();
            assert!(count <= NACK_ITEMS_MAX);
            lists += 1;
        }
        assert!(lists > 0 && repairs.missing.len() < MISSING_MAX);
        repairs.reset();
        assert_eq!(repairs.due(&window), Instant::NEVER);
    }

    #[test]
    fn entries_name_seventeen_packets_across_the_end_of_the_numbers() {
        let mut window = SequenceWindow::new(1);
        window.insert(0x1_fffe);
        window.insert(0x2_0020);
        let mut repairs = Repairs::new(Duration::ZERO, Duration::from_secs(1));
        repairs.handle_gap(at(0), 0x1_ffff..0x2_0020, 7);
        let items = repairs.poll(at(0), &mut window, |_| None).unwrap().to_vec();
        let pairs: Vec<(u16, u16)> = items.iter().map(|item| (item.packet, item.following)).collect();
        assert_eq!(pairs, [(0xffff, 0xffff), (0x10, 0x7fff)]);
        let numbers: Vec<u16> = items.iter().flat_map(|item| item.sequences()).collect();
        assert_eq!(numbers, (0..33).map(|step| 0xffff_u16.wrapping_add(step)).collect::<Vec<_>>());
    }
}
