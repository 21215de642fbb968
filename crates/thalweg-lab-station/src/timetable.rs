//! When each sample is due.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The due times of a run, in nanoseconds since its origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timetable {
    /// Samples a second of each publisher.
    pub rate_hz: f64,
    /// Number of publishers that share the period.
    pub publishers: u32,
    /// Whether their samples are due at the same time.
    pub phase: PublisherPhase,
    /// Samples of the warm-up, which do not count.
    pub first: u64,
    /// Samples that count.
    pub count: u64,
}

/// Whether the publishers' samples are due at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublisherPhase {
    /// Spread evenly over the period.
    Spread,
    /// All at once.
    Together,
}

impl Timetable {
    /// Counts only from later on: so many of the first measured samples do not count either.
    pub fn skip(&mut self, samples: u64) {
        let samples = samples.min(self.count);
        (self.first, self.count) = (self.first + samples, self.count - samples);
    }

    /// When sample `number` of publisher `writer` is due: t0 + k/f, publishers spread over the period or not.
    pub fn due_ns(&self, writer: u32, number: u64) -> u64 {
        let share = match self.phase {
            PublisherPhase::Spread => f64::from(writer) / f64::from(self.publishers),
            PublisherPhase::Together => 0.0,
        };
        ((number as f64 + share) * 1e9 / self.rate_hz) as u64
    }

    /// Numbers of the samples that count.
    pub fn measured(&self) -> Range<u64> {
        self.first..self.first + self.count
    }

    /// When the first measured sample is due.
    pub fn start_ns(&self) -> u64 {
        self.due_ns(0, self.first)
    }

    /// One period after the last measured sample is due.
    pub fn end_ns(&self) -> u64 {
        self.due_ns(0, self.first + self.count)
    }

    /// In which second of the measurement sample `number` of `writer` is due, from 0.
    pub fn second(&self, writer: u32, number: u64) -> u64 {
        self.due_ns(writer, number).saturating_sub(self.start_ns()) / 1_000_000_000
    }

    /// Whole seconds of the measurement, the last one perhaps not.
    pub fn seconds(&self) -> u64 {
        (self.end_ns() - self.start_ns()).div_ceil(1_000_000_000)
    }

    /// The second of the measurement in which a time since the origin lies, from 1: 0 before it, one more than the last after it.
    pub fn second_of(&self, since_ns: u64) -> u64 {
        match since_ns {
            since_ns if since_ns < self.start_ns() => 0,
            since_ns if since_ns < self.end_ns() => 1 + (since_ns - self.start_ns()) / 1_000_000_000,
            _ => 1 + self.seconds(),
        }
    }

    /// One period in nanoseconds.
    pub fn period_ns(&self) -> u64 {
        (1e9 / self.rate_hz) as u64
    }
}
