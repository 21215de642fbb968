//! When each sample of a cell is due.

use thalweg_lab_station::Timetable;

use crate::scenario::{Cell, Schedule};

/// The timetable of a cell.
pub(crate) fn timetable(cell: &Cell, schedule: &Schedule) -> Timetable {
    // The allowance keeps 0.1 s of 10 Hz from being 0.99… samples.
    let samples = |seconds: f64| (seconds * cell.rate_hz + 1e-6) as u64;
    Timetable {
        rate_hz: cell.rate_hz,
        publishers: cell.publishers,
        phase: cell.flow.as_ref().and_then(|flow| flow.phase).unwrap_or(schedule.phase),
        first: samples(schedule.warm_up.as_secs_f64()),
        count: samples(schedule.measured.as_secs_f64()),
    }
}
