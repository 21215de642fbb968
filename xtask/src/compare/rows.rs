//! The measurements, and the project's aims.
//!
//! Aims are ratios to another program of the same row: absolute figures do not carry over between machines. A ratio written
//! as a fraction is the figure aimed at, divided by the best peer's where the aim was set (Cyclone DDS, Fast DDS and Zenoh on two
//! cores of an AMD EPYC).

use serde_json::Value;

use super::contestant::Entry;
use crate::Outcome;

/// Rows that are requested together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowGroup {
    SmallStreams,
    LargeStreams,
    RoundTrips,
    Bursts,
    Crowd,
    Veth,
}

impl RowGroup {
    pub const ALL: [RowGroup; 6] = [
        RowGroup::SmallStreams,
        RowGroup::LargeStreams,
        RowGroup::RoundTrips,
        RowGroup::Bursts,
        RowGroup::Crowd,
        RowGroup::Veth,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            RowGroup::SmallStreams => "small-streams",
            RowGroup::LargeStreams => "large-streams",
            RowGroup::RoundTrips => "round-trips",
            RowGroup::Bursts => "bursts",
            RowGroup::Crowd => "crowd",
            RowGroup::Veth => "veth",
        }
    }

    /// The rows, in the order they are measured.
    pub fn rows(self) -> Vec<ComparisonRow> {
        match self {
            RowGroup::SmallStreams => small_streams(),
            RowGroup::LargeStreams => large_streams(),
            RowGroup::RoundTrips => round_trips(),
            RowGroup::Bursts => bursts(),
            RowGroup::Crowd => crowd(),
            RowGroup::Veth => veth(),
        }
    }
}

/// A measurement that several programs take in turns.
pub struct ComparisonRow {
    pub what: What,
    /// Bytes of payload a sample.
    pub size: usize,
    pub place: Place,
    pub entries: Vec<Entry>,
    pub aims: Vec<Aim>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Round trips; how both ends wait.
    Latency { wait: &'static str },
    /// Samples one way, to so many readers.
    Throughput { readers: usize },
    /// So many samples, and the echo of the last.
    Burst { count: usize },
}

/// The processors of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Both on core 0.
    OneCore,
    /// The writer on core 0, the reader on 1.
    TwoCores,
    /// The writer on core 0, the readers on the others in turn.
    AllCores,
    /// As [`Place::TwoCores`], on two hosts with a link between them.
    Link,
}

/// The project's aim for one of its entries.
pub struct Aim {
    pub figure: PrintedFigure,
    pub ours: Entry,
    /// Compared with the best of these.
    pub against: Vec<Entry>,
    pub limit: RatioAim,
}

/// The aimed ratio of our figure to the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RatioAim {
    AtLeast(f64),
    AtMost(f64),
}

/// A figure that programs print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintedFigure {
    RoundTrip,
    Rate,
    WriterTime,
    ReaderTime,
    Burst,
}

impl PrintedFigure {
    /// The key under which it is printed, and its unit there.
    pub fn key(self) -> (&'static str, &'static str) {
        match self {
            PrintedFigure::RoundTrip => ("p50_us", "µs"),
            PrintedFigure::Rate => ("received_per_s", "/s"),
            // Seconds for a million samples are microseconds for one.
            PrintedFigure::WriterTime => ("cpu_s_per_million_writer", "µs"),
            PrintedFigure::ReaderTime => ("cpu_s_per_million_reader", "µs"),
            PrintedFigure::Burst => ("burst_ms", "ms"),
        }
    }

    /// The figure of a run; an error without one, as when no sample arrived in time.
    pub fn of(self, run: &Value) -> Outcome<f64> {
        let key = self.key().0;
        run[key].as_f64().filter(|value| *value > 0.0).ok_or_else(|| format!("no {key} in {run}"))
    }

    pub fn name(self) -> &'static str {
        match self {
            PrintedFigure::RoundTrip => "round trip",
            PrintedFigure::Rate => "samples a second",
            PrintedFigure::WriterTime => "writer's processor time a sample",
            PrintedFigure::ReaderTime => "reader's processor time a sample",
            PrintedFigure::Burst => "first write to echo",
        }
    }

    /// Whether more is better.
    pub fn is_rate(self) -> bool {
        self == PrintedFigure::Rate
    }
}

impl ComparisonRow {
    /// The figure that is shown of each entry.
    pub fn figure(&self) -> PrintedFigure {
        match self.what {
            What::Latency { .. } => PrintedFigure::RoundTrip,
            What::Throughput { .. } => PrintedFigure::Rate,
            What::Burst { .. } => PrintedFigure::Burst,
        }
    }

    pub fn label(&self) -> String {
        let size = match self.size {
            mebi if mebi % (1 << 20) == 0 => format!("{} MiB", mebi >> 20),
            kibi if kibi % 1024 == 0 => format!("{} KiB", kibi >> 10),
            mega if mega % 1_000_000 == 0 => format!("{} MB", mega / 1_000_000),
            bytes => format!("{bytes} B"),
        };
        let what = match self.what {
            What::Latency { wait } => format!("round trip of {size}, {wait}"),
            What::Throughput { readers: 1 } => format!("stream of {size}"),
            What::Throughput { readers } => format!("stream of {size} to {readers} readers"),
            What::Burst { count } => format!("burst of {count} x {size}"),
        };
        let place = match self.place {
            Place::OneCore => "one core",
            Place::TwoCores => "two cores",
            Place::AllCores => "writer on core 0",
            Place::Link => "link with an MTU of 1500",
        };
        let way = if self.entries.contains(&OURS_IMMEDIATE) { ", each sample sent at once" } else { "" };
        format!("{what}{way}, {place}")
    }

    fn new(what: What, size: usize, place: Place, entries: &[Entry]) -> ComparisonRow {
        ComparisonRow { what, size, place, entries: entries.to_vec(), aims: Vec::new() }
    }

    /// Adds an aim for the figure of the row.
    fn aim(self, ours: Entry, against: &[Entry], limit: RatioAim) -> ComparisonRow {
        let figure = self.figure();
        self.aim_at(figure, ours, against, limit)
    }

    fn aim_at(mut self, figure: PrintedFigure, ours: Entry, against: &[Entry], limit: RatioAim) -> ComparisonRow {
        self.aims.push(Aim { figure, ours, against: against.to_vec(), limit });
        self
    }
}

const STREAM: What = What::Throughput { readers: 1 };
const OURS: Entry = Entry::thalweg("auto");
const OURS_BATCH: Entry = Entry::thalweg("batch");
const OURS_IMMEDIATE: Entry = Entry::thalweg("immediate");
const RAW: Entry = Entry::raw("default");
const RAW_BATCH: Entry = Entry::raw("batch");
const CYCLONE: Entry = Entry::cyclone("default");
const CYCLONE_TUNED: Entry = Entry::cyclone("tuned");
const CYCLONE_BATCH: Entry = Entry::cyclone("batch");
const FASTDDS_TUNED: Entry = Entry::fastdds("tuned");
const ZENOH: Entry = Entry::zenoh("default");
const ZENOH_TUNED: Entry = Entry::zenoh("tuned");

fn small_streams() -> Vec<ComparisonRow> {
    let mut rows = Vec::new();
    for size in [256, 1024] {
        let peers = [CYCLONE_BATCH, ZENOH, ZENOH_TUNED];
        let entries = [&[OURS_BATCH, OURS], &peers[..], &[RAW_BATCH]].concat();
        let mut row = ComparisonRow::new(STREAM, size, Place::TwoCores, &entries);
        row = row.aim(OURS_BATCH, &peers, RatioAim::AtLeast(1.8));
        row = row.aim(OURS, &[CYCLONE_BATCH], RatioAim::AtLeast(1.0));
        if size == 256 {
            row = row.aim(OURS, &[ZENOH, ZENOH_TUNED], RatioAim::AtLeast(1.0));
        } else {
            let (writer, reader) = (RatioAim::AtMost(0.5 / 1.14), RatioAim::AtMost(0.5 / 1.00));
            row = row.aim_at(PrintedFigure::WriterTime, OURS_BATCH, &[CYCLONE_BATCH], writer);
            row = row.aim_at(PrintedFigure::ReaderTime, OURS_BATCH, &[CYCLONE_BATCH], reader);
        }
        rows.push(row);
        let one_by_one = ComparisonRow::new(STREAM, size, Place::TwoCores, &[OURS_IMMEDIATE, CYCLONE, RAW]);
        let one_by_one = one_by_one.aim(OURS_IMMEDIATE, &[RAW], RatioAim::AtLeast(0.9));
        rows.push(one_by_one.aim(OURS_IMMEDIATE, &[CYCLONE], RatioAim::AtLeast(1.0)));
    }
    rows
}

fn large_streams() -> Vec<ComparisonRow> {
    let peers = [CYCLONE_TUNED, FASTDDS_TUNED, ZENOH_TUNED];
    let entries = [&[OURS], &peers[..], &[RAW]].concat();
    let row = |size, limit| ComparisonRow::new(STREAM, size, Place::TwoCores, &entries).aim(OURS, &peers, limit);
    vec![row(64 << 10, RatioAim::AtLeast(26.0 / 16.3)), row(1 << 20, RatioAim::AtLeast(26.0 / 20.0))]
}

fn round_trips() -> Vec<ComparisonRow> {
    let at_most = RatioAim::AtMost;
    let mut rows = Vec::new();
    for (place, limit) in [(Place::OneCore, 15.0 / 17.5), (Place::TwoCores, 52.0 / 57.5)] {
        let row = ComparisonRow::new(What::Latency { wait: "listener" }, 64, place, &[OURS, CYCLONE, RAW]);
        rows.push(row.aim(OURS, &[CYCLONE], at_most(limit)));
    }
    let busy = ComparisonRow::new(What::Latency { wait: "busy" }, 64, Place::TwoCores, &[OURS, RAW]);
    rows.push(busy.aim(OURS, &[RAW], at_most(1.5)));
    for (size, wait) in [(64, "block"), (1024, "listener"), (1024, "block")] {
        for place in [Place::OneCore, Place::TwoCores] {
            let row = ComparisonRow::new(What::Latency { wait }, size, place, &[OURS, CYCLONE, RAW]);
            rows.push(row.aim(OURS, &[CYCLONE], at_most(1.0)));
        }
    }
    let tuned = [CYCLONE_TUNED, FASTDDS_TUNED];
    for (size, place, limit) in [
        (64 << 10, Place::OneCore, Some(0.5)),
        (64 << 10, Place::TwoCores, None),
        (1 << 20, Place::OneCore, None),
        (1 << 20, Place::TwoCores, Some(650.0 / 968.0)),
    ] {
        let entries = [OURS, CYCLONE, CYCLONE_TUNED, FASTDDS_TUNED, RAW];
        let row = ComparisonRow::new(What::Latency { wait: "listener" }, size, place, &entries);
        let row = row.aim(OURS, &[CYCLONE], at_most(0.7));
        rows.push(match limit {
            Some(limit) => row.aim(OURS, &tuned, at_most(limit)),
            None => row,
        });
    }
    rows
}

fn bursts() -> Vec<ComparisonRow> {
    let peers = [CYCLONE_TUNED, CYCLONE_BATCH, FASTDDS_TUNED, ZENOH_TUNED];
    let row = |count, size, ours: Entry, raw, limit| {
        let mut entries = [&[OURS], &peers[..], &[raw]].concat();
        if ours != OURS {
            entries.insert(0, ours);
        }
        let row = ComparisonRow::new(What::Burst { count }, size, Place::TwoCores, &entries);
        row.aim(ours, &peers, RatioAim::AtMost(limit))
    };
    vec![
        row(10_000, 256, OURS_BATCH, RAW_BATCH, 0.5),
        row(3000, 1024, OURS_BATCH, RAW_BATCH, 2.5 / 4.5),
        row(1, 5_000_000, OURS, RAW, 2.4 / 3.5),
        row(5, 1_000_000, OURS, RAW, 1.8 / 2.6),
    ]
}

fn crowd() -> Vec<ComparisonRow> {
    let row = |readers, limit| {
        let entries = [OURS_BATCH, CYCLONE_BATCH, RAW_BATCH];
        let row = ComparisonRow::new(What::Throughput { readers }, 1024, Place::AllCores, &entries);
        row.aim(OURS_BATCH, &[CYCLONE_BATCH], RatioAim::AtLeast(limit))
    };
    vec![row(4, 500.0 / 257.0), row(16, 140.0 / 71.0)]
}

fn veth() -> Vec<ComparisonRow> {
    let row = ComparisonRow::new(STREAM, 1024, Place::Link, &[OURS_BATCH, CYCLONE_BATCH, RAW_BATCH]);
    vec![row.aim(OURS_BATCH, &[CYCLONE_BATCH], RatioAim::AtLeast(1.5 / 0.33))]
}
