//! Cells that differ in nothing but the destination.

use super::result::PartResult;
use crate::figures::size;
use crate::scenario::Load;
use crate::station::Addressing;
use crate::statistics::Buckets;
use crate::study::{CellResult, RunSummary};

/// A cell of each destination.
pub(super) struct Group<'a> {
    /// Publishers, and as many subscribers.
    pub(super) count: u32,
    pub(super) load: Load,
    /// Unicast, multicast, `auto`.
    pub(super) cells: [&'a CellResult; 3],
    /// Where the runs are at hand.
    pub(super) latencies: Option<[&'a Buckets; 3]>,
}

impl Group<'_> {
    pub(super) fn name(&self) -> String {
        format!("{0}–{0}, {1}", self.count, size(self.load.bytes()))
    }
}

/// The groups of a part that have all three, in the order of its cells.
pub(super) fn groups(part: &PartResult) -> Vec<Group<'_>> {
    let cells = &part.study.cells;
    let like = |first: &CellResult, destination: Addressing| {
        let wanted = crate::scenario::Cell { destination, ..first.cell.clone() };
        cells.iter().position(|other| other.cell == wanted)
    };
    let group = |first: &CellResult| {
        let of = |destination| like(first, destination);
        let places = [of(Addressing::Unicast)?, of(Addressing::Multicast)?, of(Addressing::Auto)?];
        let latencies = part.latencies.as_ref().map(|all| places.map(|place| &all[place]));
        Some(Group {
            count: first.cell.publishers,
            load: first.cell.load,
            cells: places.map(|place| &cells[place]),
            latencies,
        })
    };
    cells.iter().filter(|cell| cell.cell.destination == Addressing::Unicast).filter_map(group).collect()
}

/// Something that a run has a figure of.
pub(super) struct Measure {
    pub(super) name: &'static str,
    pub(super) of: fn(&RunSummary) -> Option<f64>,
    pub(super) more_is: Side,
    /// The ratio below which a difference does not matter.
    pub(super) margin: f64,
}

/// Whether a larger figure is a better one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Better,
    Worse,
}

pub(super) const P50: Measure =
    Measure { name: "latency p50, µs", of: |run| run.totals.response.p50_us, more_is: Side::Worse, margin: 1.03 };
pub(super) const P90: Measure =
    Measure { name: "latency p90, µs", of: |run| run.totals.response.p90_us, more_is: Side::Worse, margin: 1.05 };
pub(super) const P99: Measure =
    Measure { name: "latency p99, µs", of: |run| run.totals.response.p99_us, more_is: Side::Worse, margin: 1.05 };
pub(super) const THROUGHPUT: Measure = Measure {
    name: "samples received",
    of: |run| Some(run.totals.received() as f64),
    more_is: Side::Better,
    margin: 1.03,
};
pub(super) const CPU: Measure =
    Measure { name: "CPUs used", of: |run| Some(run.cpu), more_is: Side::Worse, margin: 1.03 };
pub(super) const WIRE: Measure = Measure {
    name: "bytes sent on the links for each sample received",
    of: |run| Some(run.wire?.sent as f64 / run.totals.received().max(1) as f64),
    more_is: Side::Worse,
    margin: 1.03,
};
