//! Whether samples wait for each other before they leave, and for how long.

use std::time::Duration;

use crate::qos::{AUTO_FLUSH_DELAY, Limits, Method};
use crate::time::Instant;

/// Samples that were written and not sent yet, and the time at which they have to leave.
#[derive(Debug)]
pub(super) struct Collection {
    method: Method,
    limits: Limits,
    mode: Mode,
    /// Since when something waits.
    since: Option<Instant>,
    samples: usize,
    bytes: usize,
    /// The application has suspended publications: samples wait for its word.
    suspended: bool,
    /// Everything that waits is to leave at the next opportunity, whatever the limits say.
    forced: bool,
    /// It was due and could not leave: the readers or the tokens decide when it will.
    blocked: bool,
    pace: Pace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Nothing ever waits for company.
    Never,
    /// Everything does.
    Always,
    /// Samples wait while they are written faster than datagrams leave.
    Adaptive,
    /// Only the I/O thread sends, by a flow controller's leave.
    Asynchronous,
}

/// How fast samples are written compared with how fast datagrams leave.
#[derive(Debug)]
struct Pace {
    written: Option<Instant>,
    /// Shortest of the last send calls with one small datagram, in nanoseconds.
    send_nanos: u64,
    /// When the last send call ended.
    sent: Option<Instant>,
    /// Writes that came sooner after the one before than a datagram takes to leave, less a part for each that did not.
    streak: u32,
    /// Smoothed time between two writes, in nanoseconds; zero before the second.
    interval_nanos: u64,
    /// Smoothed size of samples.
    sample_bytes: usize,
}

/// Writes in a row that make a stream: shorter bursts leave sample by sample.
const STREAM_WRITES: u32 = 8;
/// Longer streams outlast no more pauses.
const STREAK_MAX: u32 = 64;
/// Assumed duration of a send call before the first measurement.
const SEND_NANOS: u64 = 4_000;
/// A send call lasts at least and at most so long for the purpose of comparing; beyond, the thread was interrupted.
const SEND_NANOS_RANGE: std::ops::RangeInclusive<u64> = 1_000..=20_000;
/// Intervals between writes that a writer may pause for while it still writes at its rate.
const PAUSE_INTERVALS: u32 = 8;

impl Collection {
    pub(super) fn new(method: &Method) -> Collection {
        let auto = Limits { max_flush_delay: AUTO_FLUSH_DELAY, ..Limits::default() };
        let (mode, limits) = match method {
            Method::Auto => (Mode::Adaptive, auto),
            Method::Immediate => (Mode::Never, auto),
            Method::Coalesce(limits) | Method::Batch(limits) => (Mode::Always, *limits),
            Method::Asynchronous { .. } => (Mode::Asynchronous, auto),
        };
        let pace =
            Pace { written: None, send_nanos: SEND_NANOS, sent: None, streak: 0, interval_nanos: 0, sample_bytes: 0 };
        Collection {
            method: method.clone(),
            limits,
            mode,
            since: None,
            samples: 0,
            bytes: 0,
            suspended: false,
            forced: false,
            blocked: false,
            pace,
        }
    }

    /// True when only the I/O thread sends.
    pub(super) fn is_asynchronous(&self) -> bool {
        self.mode == Mode::Asynchronous
    }

    /// True when the next sample is to wait for others.
    pub(super) fn collects(&self) -> bool {
        match self.mode {
            Mode::Always | Mode::Asynchronous => true,
            _ if self.suspended => true,
            Mode::Never => false,
            Mode::Adaptive => self.pace.streak >= STREAM_WRITES || self.blocked,
        }
    }

    /// A sample of `bytes` was written at `now`; call [`Collection::collects`] afterwards.
    pub(super) fn note_written(&mut self, now: Instant, bytes: usize) {
        let pace = &mut self.pace;
        pace.sample_bytes = if pace.written.is_none() { bytes } else { (pace.sample_bytes * 7 + bytes) / 8 };
        if let Some(before) = pace.written {
            let interval = now.since(before).as_nanos() as u64;
            let smoothed = if pace.interval_nanos == 0 { interval } else { pace.interval_nanos };
            pace.interval_nanos = (smoothed * 7 + interval) / 8;
        }
        let before = pace.sent.max(pace.written);
        let pause = before.map_or(Duration::MAX, |before| now.since(before));
        pace.streak = if pause < Duration::from_nanos(pace.send_nanos) {
            (pace.streak + 1).min(STREAK_MAX)
        } else if pause < AUTO_FLUSH_DELAY {
            // Perhaps the thread was interrupted: a stream survives that a few times.
            pace.streak - pace.streak / 4
        } else {
            pace.streak.min(STREAM_WRITES) / 2
        };
        pace.written = Some(now);
    }

    /// The sample waits, as one of `bytes` bytes.
    pub(super) fn add(&mut self, now: Instant, bytes: usize) {
        self.since.get_or_insert(now);
        self.samples += 1;
        self.bytes += bytes;
    }

    /// True when what waits is not to be sent yet.
    pub(super) fn holds(&self, now: Instant) -> bool {
        let Some(since) = self.since else { return false };
        if self.forced || self.blocked || self.is_asynchronous() || !self.collects() {
            return false;
        }
        let full = self.bytes >= self.limits.max_bytes || self.samples >= self.limits.max_samples;
        !full && (self.suspended || now.since(since) < self.limits.max_flush_delay)
    }

    /// When what waits has to leave.
    pub(super) fn due(&self) -> Option<Instant> {
        let waits = !self.forced && !self.blocked && !self.suspended && self.mode != Mode::Asynchronous;
        self.since.filter(|_| waits).map(|since| since + self.limits.max_flush_delay)
    }

    /// Samples wait for [`Collection::resume`], for one that is forced, or until there are as many bytes as the limits allow.
    pub(super) fn suspend(&mut self) {
        self.suspended = true;
    }

    /// What waits leaves at the next opportunity, and later samples as ever.
    pub(super) fn resume(&mut self) {
        self.suspended = false;
        self.force();
    }

    /// Lets waiting samples leave at the next opportunity.
    pub(super) fn force(&mut self) {
        self.forced = self.since.is_some();
    }

    /// Everything has been handed over to be sent.
    pub(super) fn clear(&mut self) {
        self.since = None;
        self.samples = 0;
        self.bytes = 0;
        self.forced = false;
        self.blocked = false;
    }

    /// Something is left behind: the send window is closed, or tokens are missing.
    pub(super) fn mark_blocked(&mut self) {
        self.blocked = true;
    }

    /// Bytes of the samples that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// True when samples that KEEP_LAST overwrites before they were sent are left out: they would only make the newest one
    /// later. While samples merely wait for company, or for the end of a suspension, they are not, since else they would have left.
    pub(super) fn conflates(&self) -> bool {
        let waits_by_suspension = self.suspended || self.since.is_some();
        self.blocked || self.is_asynchronous() || (self.mode == Mode::Never && !waits_by_suspension)
    }

    /// True when what is sent now had been due earlier.
    pub(super) fn was_blocked(&self) -> bool {
        self.blocked
    }

    /// A send call with `datagrams` datagrams lasted from `start` to `end`.
    pub(super) fn note_sent(&mut self, start: Instant, end: Instant, datagrams: usize) {
        self.pace.sent = Some(end);
        if datagrams == 1 && !self.collects() {
            let nanos = (end.since(start).as_nanos() as u64).clamp(*SEND_NANOS_RANGE.start(), *SEND_NANOS_RANGE.end());
            self.pace.send_nanos = nanos.min(self.pace.send_nanos + self.pace.send_nanos / 16);
        }
    }

    /// The configured method.
    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    /// Time between two writes, smoothed over the last eight.
    pub(super) fn write_interval(&self) -> Option<Duration> {
        (self.pace.interval_nanos > 0).then(|| Duration::from_nanos(self.pace.interval_nanos))
    }

    /// As [`Collection::write_interval`] for people who ask at `now`: of a writer that has paused for more than eight of these intervals,
    /// the time since its last write.
    pub(super) fn write_interval_at(&self, now: Instant) -> Option<Duration> {
        let (interval, pause) = (self.write_interval()?, self.pause(now));
        Some(if pause > interval * PAUSE_INTERVALS { pause } else { interval })
    }

    /// As [`Collection::collects`] for one that would be written at `now`: a stream does not outlast a long pause.
    pub(super) fn collects_at(&self, now: Instant) -> bool {
        let is_over =
            self.mode == Mode::Adaptive && !self.suspended && !self.blocked && self.pause(now) >= AUTO_FLUSH_DELAY;
        self.collects() && !is_over
    }

    /// Time since the last write; zero before the first.
    fn pause(&self, now: Instant) -> Duration {
        self.pace.written.map_or(Duration::ZERO, |written| now.since(written))
    }

    /// Bytes of a sample, smoothed over the last eight.
    pub(super) fn sample_bytes(&self) -> usize {
        self.pace.sample_bytes
    }

    /// The duration of a send call.
    pub(super) fn send_time(&self) -> Duration {
        Duration::from_nanos(self.pace.send_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::History;
    use crate::types::SequenceNumber;
    use crate::writer::tests::{START, acknowledge, collecting, drain, write_stamped};

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(1_000_000 + nanos)
    }

    fn write(collection: &mut Collection, now: Instant) -> bool {
        collection.note_written(now, 100);
        let collects = collection.collects();
        if collects {
            collection.add(now, 100);
        }
        collects
    }

    #[test]
    fn auto_waits_only_in_a_stream_and_never_longer_than_fifty_microseconds() {
        let mut collection = Collection::new(&Method::Auto);
        let mut now = 0;
        for number in 0..STREAM_WRITES {
            assert!(!write(&mut collection, at(now)), "write {number} of a burst leaves at once");
            collection.note_sent(at(now), at(now + 4_000), 1);
            now += 4_200;
        }
        let first = now;
        while collection.holds(at(now)) || now == first {
            assert!(write(&mut collection, at(now)));
            now += 200;
        }
        assert_eq!(collection.due(), Some(at(first) + AUTO_FLUSH_DELAY));
        assert!((50_000..50_400).contains(&(now - first)), "{}", now - first);
        collection.clear();
        assert!(write(&mut collection, at(now)), "the stream goes on");
        assert!(write(&mut collection, at(now + 10_000)), "a short pause does not end it");
        assert!(!write(&mut collection, at(now + 100_000)), "a long one does");
        assert!(!collection.holds(at(now + 100_000)), "and what waited leaves");
        let mut now = now + 200_000;
        (0..100).for_each(|_| {
            write(&mut collection, at(now));
            collection.clear();
            now += 200;
        });
        let steps = (0..20).take_while(|_| {
            now += 10_000;
            write(&mut collection, at(now))
        });
        assert!((3..12).contains(&steps.count()), "a slower pace does, soon");
    }

    #[test]
    fn a_writer_that_has_stopped_is_not_said_to_write_as_it_did() {
        let mut collection = Collection::new(&Method::Auto);
        assert_eq!(collection.write_interval_at(at(0)), None);
        (0..=2).for_each(|millis| _ = write(&mut collection, at(millis * 1_000_000)));
        let interval = |millis: u64| collection.write_interval_at(at(millis * 1_000_000));
        let millis = |millis: u64| Some(Duration::from_millis(millis));
        assert_eq!([2, 10, 11, 10_002].map(interval), [millis(1), millis(1), millis(9), millis(10_000)]);
        let mut stream = Collection::new(&Method::Auto);
        (0..20).for_each(|number| _ = write(&mut stream, at(number * 200)));
        assert!(stream.collects_at(at(4_000)) && !stream.collects_at(at(10_000_000)));
        stream.mark_blocked();
        assert!(stream.collects_at(at(10_000_000)), "readers or tokens hold samples back");
    }

    #[test]
    fn a_suspended_writer_holds_samples_until_it_is_resumed_or_has_many() {
        for method in [Method::Immediate, Method::Auto, Method::batch()] {
            let mut collection = Collection::new(&method);
            collection.suspend();
            assert!(write(&mut collection, at(0)), "{method}");
            assert!(collection.holds(at(60_000_000_000)) && collection.due().is_none(), "{method}");
            collection.resume();
            assert!(!collection.holds(at(60_000_000_000)), "{method}");
            collection.clear();
            collection.suspend();
            (0..599).for_each(|_| _ = write(&mut collection, at(0)));
            assert!(collection.holds(at(0)), "{method}");
            write(&mut collection, at(0));
            assert!(!collection.holds(at(0)), "{method}: 60,000 bytes are enough");
        }
    }

    #[test]
    fn all_that_a_suspended_writer_has_written_leaves_although_keep_last_overwrites_it() {
        for method in [Method::Immediate, Method::Auto, Method::batch()] {
            let mut writer = collecting(method.clone(), History::KeepLast(1));
            writer.suspend();
            for number in 0..3 {
                write_stamped(&mut writer, START + Duration::from_nanos(number * 100), 4_096);
            }
            writer.resume();
            for millis in 1..10 {
                let now = START + Duration::from_millis(millis);
                drain(&mut writer, now);
                let next = writer.outgoing.place.sample;
                acknowledge(&mut writer, now, 1, next, &[]);
            }
            assert_eq!(writer.outgoing.place.sample, SequenceNumber(4), "{method}");
            let (sent, fragments) = (writer.counters().transmitted, 3 * 4_096_u64.div_ceil(1_304));
            assert!(sent >= fragments, "{method}: {sent} fragments, three samples have {fragments}");
        }
    }

    #[test]
    fn every_limit_lets_everything_leave() {
        let limits = Limits { max_bytes: 1_000, max_samples: 5, max_flush_delay: Duration::from_millis(1) };
        for (method, writes) in [
            (Method::Batch(limits), 5),
            (Method::Coalesce(Limits { max_samples: 100, ..limits }), 10),
            (Method::Batch(Limits { max_samples: 1, ..limits }), 1),
        ] {
            let mut collection = Collection::new(&method);
            for number in 1..writes {
                assert!(write(&mut collection, at(0)) && collection.holds(at(0)), "{method}: {number}");
            }
            write(&mut collection, at(0));
            assert!(!collection.holds(at(0)), "{method}");
        }
        let mut collection = Collection::new(&Method::Batch(limits));
        write(&mut collection, at(0));
        assert!(collection.holds(at(999_999)) && !collection.holds(at(1_000_000)));
        collection.force();
        assert!(!collection.holds(at(0)));
    }

    #[test]
    fn what_could_not_leave_waits_for_nobody_and_asks_for_no_timer() {
        let mut collection = Collection::new(&Method::batch());
        write(&mut collection, at(0));
        collection.mark_blocked();
        assert!(!collection.holds(at(0)));
        assert_eq!(collection.due(), None);
        collection.clear();
        write(&mut collection, at(0));
        assert!(collection.holds(at(0)));
    }
}
