//! When each sample is due.

use std::ops::Range;

use crate::scenario::{Cell, Phase, Schedule};

/// The due times of a run, in nanoseconds since its origin.
#[derive(Clone, Debug)]
pub(crate) struct Timetable {
    rate_hz: f64,
    publishers: u32,
    phase: Phase,
    first: u64,
    count: u64,
}

impl Timetable {
    /// The timetable of a cell.
    pub(crate) fn new(cell: &Cell, schedule: &Schedule) -> Timetable {
        // The allowance keeps 0.1 s of 10 Hz from being 0.99… samples.
        let samples = |seconds: f64| (seconds * cell.rate_hz + 1e-6) as u64;
        Timetable {
            rate_hz: cell.rate_hz,
            publishers: cell.publishers,
            phase: schedule.phase,
            first: samples(schedule.warm_up.as_secs_f64()),
            count: samples(schedule.measured.as_secs_f64()),
        }
    }

    /// Counts only from later on: so many of the first measured samples do not count either.
    pub(super) fn skip(&mut self, samples: u64) {
        let samples = samples.min(self.count);
        (self.first, self.count) = (self.first + samples, self.count - samples);
    }

    /// When sample `number` of publisher `writer` is due: t0 + k/f, publishers spread over the period or not.
    pub(crate) fn due_ns(&self, writer: u32, number: u64) -> u64 {
        let share = match self.phase {
            Phase::Spread => f64::from(writer) / f64::from(self.publishers),
            Phase::Together => 0.0,
        };
        ((number as f64 + share) * 1e9 / self.rate_hz) as u64
    }

    /// Numbers of the samples that count.
    pub(crate) fn measured(&self) -> Range<u64> {
        self.first..self.first + self.count
    }

    /// When the first measured sample is due.
    pub(crate) fn start_ns(&self) -> u64 {
        self.due_ns(0, self.first)
    }

    /// One period after the last measured sample is due.
    pub(crate) fn end_ns(&self) -> u64 {
        self.due_ns(0, self.first + self.count)
    }

    /// In which second of the measurement sample `number` of `writer` is due, from 0.
    pub(crate) fn second(&self, writer: u32, number: u64) -> u64 {
        self.due_ns(writer, number).saturating_sub(self.start_ns()) / 1_000_000_000
    }

    /// One period in nanoseconds.
    pub(crate) fn period_ns(&self) -> u64 {
        (1e9 / self.rate_hz) as u64
    }
}
