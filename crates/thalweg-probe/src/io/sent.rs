//! What the streams of a sending end add up to.

use std::time::Duration;

use thalweg_base::time::Instant;

use crate::reports::SentReport;

/// One stream at its sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamSent {
    /// Messages handed to the kernel, and those it did not take.
    pub(super) offered: u64,
    pub(super) not_sent: u64,
    pub(super) bytes: u64,
    pub(super) began: Instant,
    pub(super) ended: Instant,
    pub(super) calls: u64,
    pub(super) segmented_messages: u64,
    pub(super) behind_max: Duration,
}

impl StreamSent {
    pub(super) fn new(began: Instant) -> StreamSent {
        StreamSent {
            offered: 0,
            not_sent: 0,
            bytes: 0,
            began,
            ended: began,
            calls: 0,
            segmented_messages: 0,
            behind_max: Duration::ZERO,
        }
    }
}

impl SentReport {
    pub(super) fn of(streams: &[StreamSent]) -> SentReport {
        let sum = |part: fn(&StreamSent) -> u64| streams.iter().map(part).sum();
        let began = streams.iter().map(|stream| stream.began).min().unwrap_or_default();
        let ended = streams.iter().map(|stream| stream.ended).max().unwrap_or_default();
        let behind = streams.iter().map(|stream| stream.behind_max).max().unwrap_or_default();
        SentReport {
            offered: streams.iter().map(|stream| stream.offered).collect(),
            not_sent: sum(|stream| stream.not_sent),
            bytes: sum(|stream| stream.bytes),
            seconds: ended.since(began).as_secs_f64(),
            calls: sum(|stream| stream.calls),
            segmented_messages: sum(|stream| stream.segmented_messages),
            behind_us_max: behind.as_nanos() as f64 / 1e3,
            retransmitted_segments: None,
        }
    }
}
