//! The chart of the README, drawn from the table of `docs/results/compare.md`. `THALWEG_WRITE=1` writes it instead of comparing it.

use std::fs;
use std::path::Path;

use thalweg_report::plot::{Axis, BESIDE, PlotRow, RowMark, rows, standalone};

/// What the table says of a measurement with the method `auto`.
struct Compared {
    label: String,
    /// The fastest other middleware.
    peer: String,
    /// How many times as fast as that Thalweg is, and plain sockets.
    speed: f64,
    floor: Option<f64>,
}

/// A figure with its unit: `2,711,165 /s`, `19.2 µs`.
fn figure(cell: &str) -> Option<(f64, &str)> {
    let (number, unit) = cell.split_once(' ')?;
    Some((number.replace(',', "").parse().ok()?, unit))
}

/// One line of the table; `None` for other lines, other methods, and comparisons with plain sockets alone.
fn compared(line: &str) -> Option<Compared> {
    let cells: Vec<&str> = line.strip_prefix("| ")?.split(" | ").collect();
    let [label, "auto", ours, peer, floor, ..] = cells[..] else { return None };
    let (peer, theirs) = peer.split_once(": ")?;
    let ((ours, unit), (theirs, their_unit)) = (figure(ours)?, figure(theirs)?);
    assert_eq!(unit, their_unit, "{line}");
    let speed = |figure: f64| if unit == "/s" { figure / theirs } else { theirs / figure };
    let floor = figure(floor).map(|(floor, _)| speed(floor));
    (peer != "UDP sockets").then(|| Compared {
        label: label.to_owned(),
        peer: peer.to_owned(),
        speed: speed(ours),
        floor,
    })
}

/// Each measurement once, with the peer that was fastest in it.
fn measurements(document: &str) -> Vec<Compared> {
    let mut found: Vec<Compared> = Vec::new();
    for row in document.lines().filter_map(compared) {
        match found.iter_mut().find(|other| other.label == row.label) {
            Some(other) if row.speed < other.speed => *other = row,
            Some(_) => {}
            None => found.push(row),
        }
    }
    found
}

fn chart(measurements: &[Compared]) -> String {
    let mark = |colour, value| RowMark { colour, value, interval: None };
    let row = |one: &Compared| PlotRow {
        name: one.label.clone(),
        note: format!("{:.2} of {}", one.speed, one.peer),
        marks: one.floor.map(|floor| mark(BESIDE, floor)).into_iter().chain([mark(0, one.speed)]).collect(),
    };
    let axis = Axis::logarithmic("speed in proportion to the peer on the right, which is 1 (logarithmic)");
    let kinds = [("Thalweg, method auto", 0), ("plain UDP sockets without any protocol", BESIDE)];
    standalone(&rows(&axis, &kinds, &measurements.iter().map(row).collect::<Vec<_>>()))
}

#[test]
fn the_chart_of_the_readme_shows_the_figures_of_the_table() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let measurements = measurements(&fs::read_to_string(docs.join("results/compare.md")).expect("the document"));
    assert!(measurements.len() > 10, "only {} measurements were found: the table is read wrongly", measurements.len());
    let (drawn, file) = (chart(&measurements), docs.join("results/compare.svg"));
    if std::env::var_os("THALWEG_WRITE").is_some() {
        fs::write(&file, &drawn).expect("written");
    }
    let shown = fs::read_to_string(&file).expect("the chart");
    assert!(shown == drawn, "docs/results/compare.svg is not that of the table; write it with THALWEG_WRITE=1");
}

#[test]
fn rates_and_times_become_speeds() {
    #[track_caller]
    fn check(line: &str, expect: Option<(&str, f64, Option<f64>)>) {
        let found = compared(line);
        let found = found.as_ref().map(|one| (one.peer.as_str(), one.speed, one.floor));
        assert_eq!(found, expect, "{line}");
    }
    check("| stream | auto | 3,000 /s | Zenoh: 1,500 /s | 6,000 /s | 2.00 | ≥ 1 |", Some(("Zenoh", 2.0, Some(4.0))));
    check("| trip | auto | 10.0 µs | Zenoh: 5.0 µs | – | 2.00 | ≤ 1 |", Some(("Zenoh", 0.5, None)));
    check("| trip | batch | 10.0 µs | Zenoh: 5.0 µs | – | 2.00 | ≤ 1 |", None);
    check("| trip | auto | 12.2 µs | UDP sockets: 6.1 µs | 6.1 µs | 2.00 | ≤ 1 |", None);
    check("|---|---|---:|", None);
}
