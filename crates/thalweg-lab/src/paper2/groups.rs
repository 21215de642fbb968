//! Cells that differ in nothing but the destination.

use super::plan::SAME_RATE;
use crate::figures::size;
use crate::parts::PartResult;
use crate::peers::CellMiddleware;
use crate::plot::{Series, ecdf};
use crate::scenario::{Cell, ReliabilitySetting};
use crate::station::Addressing;
use crate::statistics::Buckets;
use crate::study::{CellResult, Measure, Side};

/// A cell of each destination.
pub(super) struct Group<'a> {
    /// Unicast and multicast, and of Thalweg `auto`.
    pub(super) cells: Vec<&'a CellResult>,
    /// Theirs, where the runs are at hand.
    pub(super) latencies: Option<Vec<&'a Buckets>>,
}

impl<'a> Group<'a> {
    /// What its cells have in common.
    pub(super) fn cell(&self) -> &'a Cell {
        &self.cells[0].cell
    }

    /// Unicast and multicast.
    pub(super) fn ways(&self) -> [&'a CellResult; 2] {
        [self.cells[0], self.cells[1]]
    }

    /// Where the middleware chooses.
    pub(super) fn auto(&self) -> Option<&'a CellResult> {
        self.cells.get(2).copied()
    }

    /// Whether Thalweg is what is measured.
    pub(super) fn is_ours(&self) -> bool {
        self.cell().middleware == CellMiddleware::Thalweg
    }

    /// Whether the machine was not quiet in some run that counts.
    pub(super) fn is_disturbed(&self) -> bool {
        self.cells.iter().any(|cell| cell.is_disturbed())
    }

    pub(super) fn name(&self) -> String {
        let cell = self.cell();
        let best_effort = if cell.reliability == Some(ReliabilitySetting::BestEffort) { ", best effort" } else { "" };
        let whose = cell.middleware.peer().map(|_| format!("{}, ", cell.middleware)).unwrap_or_default();
        format!("{whose}{}–{}, {}{best_effort}", cell.publishers, cell.subscribers, size(cell.load.bytes()))
    }

    /// A curve for the latencies of each cell, where the runs are at hand.
    pub(super) fn latency_curves(&self, title: &str) -> Option<String> {
        Some(curves(title, self.latencies.as_ref()?.iter().map(|all| all.steps())))
    }

    /// A curve for the seconds of each cell of closed loops.
    pub(super) fn throughput_curves(&self, title: &str) -> String {
        curves(title, self.cells.iter().map(|cell| cell.seconds_mbit()))
    }
}

/// A curve for the values of each way.
fn curves(title: &str, values: impl Iterator<Item = Vec<f64>>) -> String {
    let ways = WAYS.into_iter().map(str::to_owned).enumerate();
    let series = ways.zip(values).map(|((colour, name), values)| Series { name, colour, values });
    ecdf(title, &series.collect::<Vec<_>>())
}

impl PartResult {
    /// Cells that differ only in the destination.
    pub(super) fn groups(&self) -> Vec<Group<'_>> {
        groups(self)
    }
}

/// The groups of a part that have both ways, in the order of its cells.
fn groups(part: &PartResult) -> Vec<Group<'_>> {
    if part.name == SAME_RATE {
        // Its ways have the rates that each of them reached.
        return Vec::new();
    }
    let cells = &part.study.cells;
    let like = |first: &CellResult, destination: Addressing| {
        let wanted = Cell { destination, ..first.cell.clone() };
        cells.iter().position(|other| other.cell == wanted)
    };
    let group = |first: &CellResult| {
        let of = |destination| like(first, destination);
        let mut places = vec![of(Addressing::Unicast)?, of(Addressing::Multicast)?];
        places.extend(of(Addressing::Auto));
        let latencies = part.raw.as_ref().map(|raw| places.iter().map(|place| &raw[*place].all).collect());
        Some(Group { cells: places.into_iter().map(|place| &cells[place]).collect(), latencies })
    };
    cells.iter().filter(|cell| cell.cell.destination == Addressing::Unicast).filter_map(group).collect()
}

/// The ways of sending, in the order of their colours.
pub(super) const WAYS: [&str; 3] = ["unicast", "multicast", "auto"];
pub(super) const P90: Measure =
    Measure { name: "response p90, µs", of: |run| run.totals.response.p90_us, more_is: Side::Worse, margin: 1.05 };
pub(super) const RECEIVED: Measure = Measure {
    name: "samples received",
    of: |run| Some(run.totals.received() as f64),
    more_is: Side::Better,
    margin: 1.03,
};
pub(super) const WIRE: Measure = Measure {
    name: "bytes sent on the links for each sample received",
    of: |run| run.wire?.sent_per_sample,
    more_is: Side::Worse,
    margin: 1.03,
};
