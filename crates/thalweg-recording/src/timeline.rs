//! The times of recorded entries on one line, on which clocks that were set move nothing.

use std::collections::BTreeMap;

use crate::player::ReplayClock;

/// Gives each entry, as they stand in the files, its place in time.
///
/// Where the recorder's clock was set back, and where a further file begins before the end of the one in front of it, entries go on from
/// there. The samples of a writer keep the order of their numbers, whatever their stamps.
#[derive(Debug)]
pub struct Timeline {
    clock: ReplayClock,
    writers: BTreeMap<String, WriterLine>,
    /// What is to be added to receptions, in nanoseconds, since the recorder's clock was set last.
    shift_ns: i128,
    /// The first reception.
    begin_ns: Option<u64>,
    /// The latest reception.
    latest_ns: u64,
    is_file_new: bool,
}

/// What an entry says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedTimes {
    /// The low 32 bits of its number; the same for all of a writer whose numbers are not known.
    pub sequence: u32,
    /// Its reception, in nanoseconds since 1970 by the recorder's clock.
    pub log_time_ns: u64,
    /// When it was written, by the writer's clock.
    pub source_ns: u64,
}

/// The entries of a writer so far.
#[derive(Debug)]
struct WriterLine {
    shift_ns: i128,
    /// The one with the highest number.
    head: Option<Placed>,
    /// The one before.
    last: Option<Placed>,
    source: SourceClock,
}

/// An entry in its place.
#[derive(Clone, Copy, Debug)]
struct Placed {
    sequence: u32,
    reception_ns: u64,
    time_ns: u64,
}

impl Timeline {
    /// A line without entries.
    pub fn new(clock: ReplayClock) -> Timeline {
        Timeline { clock, writers: BTreeMap::new(), shift_ns: 0, begin_ns: None, latest_ns: 0, is_file_new: false }
    }

    /// What follows stands in a further file.
    pub fn begin_file(&mut self) {
        self.is_file_new = true;
    }

    /// The time of the next entry, in nanoseconds: with the writers' clocks, each set by the recorder's, between the beginning of the
    /// recording and the entry's reception.
    pub fn place(&mut self, writer: String, stamps: RecordedTimes) -> u64 {
        let is_file_new = std::mem::take(&mut self.is_file_new);
        if is_file_new && is_back(shifted(stamps.log_time_ns, self.shift_ns), self.latest_ns) {
            self.shift_ns = i128::from(self.latest_ns) - i128::from(stamps.log_time_ns);
            self.writers.clear();
        }
        let (shift_ns, latest_ns) = (self.shift_ns, self.latest_ns);
        let line = self.writers.entry(writer).or_insert_with(|| WriterLine::new(shift_ns));
        line.follow(stamps.log_time_ns, shift_ns, latest_ns);
        let is_newest = line.head.is_none_or(|head| is_up_to(head.sequence, stamps.sequence));
        let mut reception_ns = shifted(stamps.log_time_ns, line.shift_ns);
        // What a writer kept may come behind a later sample; other samples come later than those before.
        if is_newest && line.head.is_some_and(|head| is_back(reception_ns, head.reception_ns)) {
            line.shift_ns = i128::from(latest_ns) - i128::from(stamps.log_time_ns);
            self.shift_ns = line.shift_ns;
            reception_ns = latest_ns;
        }
        self.latest_ns = latest_ns.max(reception_ns);
        let begin_ns = *self.begin_ns.get_or_insert(reception_ns);
        let time_ns = match self.clock {
            ReplayClock::Reception => reception_ns,
            ReplayClock::Source => line.source.set(stamps.source_ns, reception_ns, is_newest).max(begin_ns),
        };
        line.put(Placed { sequence: stamps.sequence, reception_ns, time_ns }, is_newest)
    }
}

impl WriterLine {
    fn new(shift_ns: i128) -> WriterLine {
        WriterLine { shift_ns, head: None, last: None, source: SourceClock::default() }
    }

    /// Takes over the shift of the others where a reception fits better with it. Threads that receive may stamp a sample before the clock
    /// is set, and hand it over behind others.
    fn follow(&mut self, log_time_ns: u64, shift_ns: i128, latest_ns: u64) {
        let distance = |shift_ns: i128| shifted(log_time_ns, shift_ns).abs_diff(latest_ns);
        if distance(shift_ns) < distance(self.shift_ns) {
            self.shift_ns = shift_ns;
        }
    }

    /// Puts an entry behind those that have to come before it, and returns its time.
    fn put(&mut self, entry: Placed, is_newest: bool) -> u64 {
        let earlier = [self.head, self.last].into_iter().flatten();
        let earlier = earlier.filter(|earlier| is_up_to(earlier.sequence, entry.sequence));
        let time_ns = earlier.map(|earlier| earlier.time_ns).fold(entry.time_ns, u64::max);
        let entry = Placed { time_ns, ..entry };
        self.last = Some(entry);
        if is_newest {
            self.head = Some(entry);
        }
        time_ns
    }
}

/// How far the clock of a writer is behind the recorder's, at most: the time that the quickest of the latest samples took is in it. Clocks
/// are set while they run, and a stamp may be anything: what is older tells nothing of what comes now.
#[derive(Debug, Default)]
struct SourceClock {
    behind: Option<Behind>,
    /// The stamp of the sample with the highest number.
    newest_ns: u64,
}

/// How far a clock was behind, at least.
#[derive(Clone, Copy, Debug)]
struct Behind {
    /// The number of the period of reception.
    period: u64,
    least: i128,
    /// The least of the period before.
    before: Option<i128>,
}

impl SourceClock {
    /// A source time by the recorder's clock; never after the reception. Where a later sample has an earlier stamp, the clock was set back,
    /// and nothing is known of it any more.
    fn set(&mut self, source_ns: u64, reception_ns: u64, is_newest: bool) -> u64 {
        if is_newest {
            if is_back(source_ns, self.newest_ns) {
                self.behind = None;
            }
            self.newest_ns = source_ns;
        }
        let behind = i128::from(reception_ns) - i128::from(source_ns);
        let period = reception_ns / CLOCK_PERIOD_NS;
        let fresh = Behind { period, least: behind, before: None };
        let known = match self.behind {
            Some(known) if period == known.period + 1 => Behind { before: Some(known.least), ..fresh },
            Some(known) if period.abs_diff(known.period) <= 1 => Behind { least: known.least.min(behind), ..known },
            _ => fresh,
        };
        self.behind = Some(known);
        let least = known.before.map_or(known.least, |before| before.min(known.least));
        u64::try_from(i128::from(source_ns) + least).unwrap_or(reception_ns)
    }
}

fn shifted(time_ns: u64, shift_ns: i128) -> u64 {
    u64::try_from((i128::from(time_ns) + shift_ns).max(0)).unwrap_or(u64::MAX)
}

/// Whether a clock was set back between two looks, the later one of which is the first here.
fn is_back(time_ns: u64, before_ns: u64) -> bool {
    time_ns.saturating_add(STEP_NS) < before_ns
}

/// Whether a number is no higher than another one, by their low 32 bits.
fn is_up_to(sequence: u32, other: u32) -> bool {
    other.wrapping_sub(sequence).cast_signed() >= 0
}

/// A clock that goes back by less was read by several threads, chosen by us.
const STEP_NS: u64 = 1_000_000_000;
/// Two periods tell of a writer's clock; chosen by us: most writers have a quick sample in them, and a clock that is set disturbs no longer.
const CLOCK_PERIOD_NS: u64 = 10_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const MILLISECOND: u64 = 1_000_000;

    /// The seconds from the first of these entries to each: their numbers, receptions and source times in seconds.
    fn seconds(clock: ReplayClock, entries: &[(u32, u64, u64)]) -> Vec<u64> {
        let mut line = Timeline::new(clock);
        let place = |(sequence, log_s, source_s): &(u32, u64, u64)| {
            let stamps =
                RecordedTimes { sequence: *sequence, log_time_ns: log_s * SECOND, source_ns: source_s * SECOND };
            line.place("writer".to_owned(), stamps)
        };
        let times: Vec<u64> = entries.iter().map(place).collect();
        times.iter().map(|time| (time - times[0]) / SECOND).collect()
    }

    #[test]
    fn writers_whose_clocks_are_off_keep_their_distances_and_their_place_among_others() {
        let begin = 1_000 * SECOND;
        for (writer, off_s) in [("exact", 0_i64), ("behind", -5), ("1970", -1_000), ("ahead", 3_600)] {
            let mut clock = SourceClock::default();
            for number in 0..10 {
                // Each takes 1 to 3 ms.
                let (sent, took) = (begin + number * SECOND, (1 + number % 3) * MILLISECOND);
                let source_ns = sent.saturating_add_signed(off_s * SECOND as i64);
                let set = clock.set(source_ns, sent + took, true);
                assert_eq!(set, sent + MILLISECOND, "{writer}, sample {number}");
            }
        }
        // What was kept for late readers tells nothing of the clock.
        let mut clock = SourceClock::default();
        assert_eq!(clock.set(begin - 60 * SECOND, begin, true), begin);
        assert_eq!(clock.set(begin + SECOND, begin + SECOND + 5, true), begin + SECOND + 5);
        assert_eq!(clock.set(begin + 2 * SECOND, begin + 2 * SECOND + 9, true), begin + 2 * SECOND + 5);
    }

    #[test]
    fn a_clock_that_is_set_back_or_a_stamp_in_the_future_disturbs_the_distances_for_seconds_only() {
        let begin = 10_000 * SECOND;
        for (name, source_ns) in [
            ("an hour ahead for a minute", (|number| if number < 60 { 3_600 * SECOND } else { 0 }) as fn(u64) -> u64),
            ("one stamp in the future", |number| if number == 60 { 3_600 * SECOND } else { 0 }),
        ] {
            let mut clock = SourceClock::default();
            for number in 0..300 {
                let (sent, took) = (begin + number * SECOND, (1 + number % 3) * MILLISECOND);
                let set = clock.set(sent + source_ns(number), sent + took, true);
                let is_disturbed = (60..80).contains(&number);
                assert!(is_disturbed || set == sent + MILLISECOND, "{name}, sample {number}: {set}");
                assert!(sent <= set && set <= sent + took, "{name}, sample {number}: {set}");
            }
        }
    }

    #[test]
    fn what_the_quickest_sample_took_is_forgotten_with_it() {
        let mut clock = SourceClock::default();
        let begin = 10_000 * SECOND;
        let mut took = |after_s: u64, took| {
            let sent = begin + after_s * SECOND;
            clock.set(sent, sent + took, true) - sent
        };
        assert_eq!([took(0, 5), took(9, 7), took(11, 8), took(19, 9)], [5; 4]);
        assert_eq!([took(21, 9), took(22, 6), took(50, 9), took(51, 20)], [8, 6, 9, 9]);
    }

    #[test]
    fn a_recorder_whose_clock_is_set_back_neither_reorders_nor_bursts() {
        for clock in [ReplayClock::Reception, ReplayClock::Source] {
            let mut line = Timeline::new(clock);
            let (begin, mut before) = (50_000 * SECOND, None);
            for number in 0..100_u64 {
                let real = begin + number * 100 * MILLISECOND;
                let log = |after_ms: u64| {
                    let now = real + after_ms * MILLISECOND;
                    if number < 50 { now } else { now - 3_600 * SECOND }
                };
                // One has the recorder's clock, one a clock of its own, and one is rare.
                let near = ("near", RecordedTimes { sequence: number as u32, log_time_ns: log(1), source_ns: log(0) });
                let far = (
                    "far",
                    RecordedTimes { sequence: number as u32, log_time_ns: log(11), source_ns: real + 7 * SECOND },
                );
                let rare =
                    ("rare", RecordedTimes { sequence: number as u32, log_time_ns: log(21), source_ns: log(20) });
                let is_there = |(writer, _): &(&str, RecordedTimes)| *writer != "rare" || number % 80 == 10;
                for (writer, stamps) in [near, far, rare].into_iter().filter(is_there) {
                    let time = line.place(writer.to_owned(), stamps);
                    let after = before.map_or(0, |before: u64| time.saturating_sub(before));
                    let is_ahead = before.is_none_or(|before| before <= time + 30 * MILLISECOND);
                    assert!(is_ahead && after <= 100 * MILLISECOND, "{clock:?}, {writer} {number}: {after} ns");
                    before = before.max(Some(time));
                }
            }
            let lasted = before.unwrap_or_default() - begin;
            assert!((9_700..10_000).contains(&(lasted / MILLISECOND)), "{clock:?}: {lasted} ns");
        }
    }

    #[test]
    fn a_sample_that_was_stamped_before_the_clock_was_set_stays_where_it_was_received() {
        let mut line = Timeline::new(ReplayClock::Reception);
        let mut place = |writer: &str, sequence, log_s: u64| {
            let log_time_ns = log_s * SECOND;
            line.place(writer.to_owned(), RecordedTimes { sequence, log_time_ns, source_ns: log_time_ns }) / SECOND
        };
        assert_eq!([place("one", 1, 5_000), place("two", 1, 5_001), place("one", 2, 1_402)], [5_000, 5_001, 5_001]);
        assert_eq!([place("two", 2, 5_002), place("two", 3, 1_403), place("one", 3, 1_404)], [5_002, 5_002, 5_003]);
    }

    #[test]
    fn samples_of_a_writer_keep_the_order_of_their_numbers() {
        // The recorder's clock was read by two threads.
        let mut line = Timeline::new(ReplayClock::Reception);
        let mut place = |sequence, log_time_ns| {
            line.place("writer".to_owned(), RecordedTimes { sequence, log_time_ns, source_ns: 0 })
        };
        assert_eq!([place(1, 50), place(2, 40), place(3, 60)], [50, 50, 60]);
        // The third is the quickest by far.
        let mut line = Timeline::new(ReplayClock::Source);
        let mut place = |sequence, source_ns: u64, took_ns: u64| {
            line.place("writer".to_owned(), RecordedTimes { sequence, log_time_ns: source_ns + took_ns, source_ns })
        };
        let begin = 500 * SECOND;
        let times = [place(1, begin, 9), place(2, begin + 10, 900), place(3, begin + 12, 2), place(4, begin + 20, 800)];
        assert_eq!(times.map(|time| time - begin), [9, 19, 19, 22]);
    }

    #[test]
    fn what_a_writer_kept_comes_before_its_later_sample_by_its_own_time() {
        let kept = [(7, 1_100, 1_050), (8, 1_100, 1_060)];
        let entries = [&[(100, 1_000, 1_000), (101, 1_100, 1_100)][..], &kept, &[(102, 1_110, 1_110)]].concat();
        assert_eq!(seconds(ReplayClock::Source, &entries), [0, 100, 50, 60, 110]);
        assert_eq!(seconds(ReplayClock::Reception, &entries), [0, 100, 100, 100, 110]);
    }

    #[test]
    fn a_file_that_begins_before_the_end_of_the_one_in_front_goes_on_from_there() {
        let mut line = Timeline::new(ReplayClock::Source);
        let mut times = Vec::new();
        for (number, begin) in [9_000, 100, 200].into_iter().enumerate() {
            line.begin_file();
            for second in 0..3 {
                let log_time_ns = (begin + second) * SECOND;
                let stamps = RecordedTimes { sequence: second as u32, log_time_ns, source_ns: log_time_ns };
                times.push(line.place(format!("writer {}", number % 2), stamps) / SECOND);
            }
        }
        assert_eq!(times, [9_000, 9_001, 9_002, 9_002, 9_003, 9_004, 9_102, 9_103, 9_104]);
    }
}
