//! What the streams of a receiving end add up to, while they run and in the end.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_base::time::Instant;

use crate::account::ArrivalCounts;
use crate::reports::{ProbeSecond, ReceivedReport};

/// One stream at its receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamReceived {
    pub(super) counts: ArrivalCounts,
    pub(super) span: Option<(Instant, Instant)>,
    pub(super) jitter_us: f64,
    pub(super) calls: u64,
    pub(super) joined_messages: u64,
    pub(super) overflow_drops: u64,
}

impl ReceivedReport {
    /// Sums; `buffers` are bytes of receive buffer asked for and granted. Of TCP bytes are what each stream received.
    pub(super) fn of(streams: &[StreamReceived], buffers: (u64, u64)) -> ReceivedReport {
        let sum = |part: fn(&StreamReceived) -> u64| streams.iter().map(part).sum();
        let spans = || streams.iter().filter_map(|stream| stream.span);
        let first = spans().map(|(first, _)| first).min().unwrap_or_default();
        let last = spans().map(|(_, last)| last).max().unwrap_or_default();
        ReceivedReport {
            received: streams.iter().map(|stream| stream.counts.received).collect(),
            bytes: sum(|stream| stream.counts.bytes),
            duplicates: sum(|stream| stream.counts.duplicates),
            reordered: sum(|stream| stream.counts.reordered),
            outdated: sum(|stream| stream.counts.outdated),
            foreign: sum(|stream| stream.counts.foreign),
            seconds: last.since(first).as_secs_f64(),
            jitter_us: streams.iter().map(|stream| stream.jitter_us).sum::<f64>() / streams.len().max(1) as f64,
            receive_buffer_asked_bytes: buffers.0,
            receive_buffer_granted_bytes: buffers.1,
            calls: sum(|stream| stream.calls),
            joined_messages: sum(|stream| stream.joined_messages),
            overflow_drops: sum(|stream| stream.overflow_drops),
        }
    }
}

/// What receiving threads tell while they run, and what they are told.
#[derive(Debug)]
pub(super) struct ReceiveProgress {
    streams: Vec<StreamProgress>,
    /// Datagrams that were sent in each stream, once that is known.
    offered: OnceLock<Vec<u64>>,
}

#[derive(Debug, Default)]
struct StreamProgress {
    bytes: AtomicU64,
    datagrams: AtomicU64,
    next: AtomicU64,
}

impl ReceiveProgress {
    pub(super) fn new(streams: u32) -> ReceiveProgress {
        let streams = (0..streams).map(|_| StreamProgress::default()).collect();
        ReceiveProgress { streams, offered: OnceLock::new() }
    }

    /// Notes what arrived in a stream so far.
    #[inline]
    pub(super) fn note(&self, stream: usize, counts: &ArrivalCounts) {
        let StreamProgress { bytes, datagrams, next } = &self.streams[stream];
        bytes.store(counts.bytes, Ordering::Relaxed);
        datagrams.store(counts.received, Ordering::Relaxed);
        next.store(counts.next, Ordering::Relaxed);
    }

    /// Tells the receiving threads how much was sent; only the first word counts.
    pub(super) fn tell_offered(&self, offered: Vec<u64>) {
        let _ = self.offered.set(offered);
    }

    /// Datagrams that were sent in a stream, once that is known.
    pub(super) fn offered(&self, stream: usize) -> Option<u64> {
        self.offered.get().and_then(|offered| offered.get(stream)).copied()
    }

    fn sums(&self) -> [u64; 3] {
        self.streams.iter().fold([0; 3], |[bytes, datagrams, next], stream| {
            let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
            let [more_bytes, more_datagrams, more_next] = [&stream.bytes, &stream.datagrams, &stream.next].map(of);
            // A forged number may be the highest that there is.
            [bytes + more_bytes, datagrams + more_datagrams, next.saturating_add(more_next)]
        })
    }
}

/// Cuts a receiving end's progress into seconds.
pub(super) struct SecondCutter {
    start: Instant,
    last: Instant,
    before: [u64; 3],
}

impl SecondCutter {
    pub(super) fn new(now: Instant) -> SecondCutter {
        SecondCutter { start: now, last: now, before: [0; 3] }
    }

    /// When the present second ends.
    pub(super) fn next(&self) -> Instant {
        let seconds = self.last.since(self.start).as_secs_f64().round() as u64 + 1;
        self.start + std::time::Duration::from_secs(seconds)
    }

    /// Ends the present second.
    pub(super) fn cut(&mut self, now: Instant, progress: &ReceiveProgress) -> ProbeSecond {
        let sums = progress.sums();
        let [bytes, datagrams, next] = [0, 1, 2].map(|at| sums[at].saturating_sub(self.before[at]));
        let second = ProbeSecond {
            start_s: self.last.since(self.start).as_secs_f64(),
            seconds: now.since(self.last).as_secs_f64(),
            bytes,
            datagrams,
            missing: next.saturating_sub(datagrams),
        };
        (self.last, self.before) = (now, sums);
        second
    }
}
