//! The chart of the README, drawn from the tables of `docs/results/compare.md`. `THALWEG_WRITE=1` writes it instead of comparing it.

use std::fs;
use std::path::Path;

use thalweg_report::plot::{Axis, BESIDE, PlotRow, RowMark, rows, standalone};

/// The contender of the chart, other methods of Thalweg, and how the names of plain sockets begin.
const OURS: &str = "auto";
const OTHER_METHODS: [&str; 2] = ["batch", "immediate"];
const FLOOR: &str = "sockets";

/// How fast a contender did something: a rate, or the inverse of a time.
#[derive(Debug, PartialEq)]
struct Speed {
    deed: String,
    contender: String,
    speed: f64,
}

/// One row of the chart.
struct Compared {
    deed: String,
    /// The fastest other middleware.
    peer: String,
    /// How many times as fast as that Thalweg is, and plain sockets.
    ours: f64,
    floor: Option<f64>,
}

/// The speeds that a page tells. A table has samples a second or round trips of one deed and contender a row, or, below a caption
/// that ends in `milliseconds`, the times of the deed in that caption by one contender a row.
fn speeds(page: &str) -> Vec<Speed> {
    let (mut section, mut burst, mut found) = ("", None, Vec::new());
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            (section, burst) = (title, None);
        } else if line.starts_with('*') {
            burst = line.trim_matches('*').strip_suffix(", milliseconds");
        } else if let Some(speed) = line.strip_prefix("| ").and_then(|row| speed(row, section, burst)) {
            found.push(speed);
        }
    }
    found
}

/// `None` for headers and other rows.
fn speed(row: &str, section: &str, burst: Option<&str>) -> Option<Speed> {
    let cells: Vec<&str> = row.trim_end_matches(" |").split(" | ").collect();
    let figure = |place: usize| cells.get(place)?.replace(',', "").parse::<f64>().ok();
    let is_trip = cells[0].starts_with("round trip");
    let (deed, contender, speed) = match burst {
        Some(deed) => (format!("burst of {deed}"), cells[0], 1.0 / figure(2)?),
        None if is_trip => {
            let place = section.strip_prefix("Round trips ")?;
            (format!("{}, {place}", cells[0]), cells[1], 1.0 / figure(3)?)
        }
        None if cells[0].starts_with("stream") => (cells[0].to_owned(), cells[1], figure(3)?),
        None => return None,
    };
    Some(Speed { deed, contender: contender.to_owned(), speed })
}

/// Each deed that Thalweg and another middleware did, in the order of the page.
fn compared(speeds: &[Speed]) -> Vec<Compared> {
    let of = |one: &Speed| {
        let others = || speeds.iter().filter(|other| other.deed == one.deed);
        let is_peer = |other: &&Speed| {
            other.contender != OURS
                && !OTHER_METHODS.contains(&other.contender.as_str())
                && !other.contender.starts_with(FLOOR)
        };
        let best = others().filter(is_peer).max_by(|a, b| a.speed.total_cmp(&b.speed))?;
        let floor = others().filter(|other| other.contender.starts_with(FLOOR)).map(|other| other.speed);
        Some(Compared {
            deed: one.deed.clone(),
            peer: best.contender.clone(),
            ours: one.speed / best.speed,
            floor: floor.max_by(f64::total_cmp).map(|floor| floor / best.speed),
        })
    };
    speeds.iter().filter(|one| one.contender == OURS).filter_map(of).collect()
}

fn chart(all: &[Compared]) -> String {
    let mark = |colour, value| RowMark { colour, value, interval: None };
    let row = |one: &Compared| PlotRow {
        name: one.deed.clone(),
        note: format!("{:.2} of {}", one.ours, one.peer),
        marks: one.floor.map(|floor| mark(BESIDE, floor)).into_iter().chain([mark(0, one.ours)]).collect(),
    };
    let axis = Axis::logarithmic("speed in proportion to the peer on the right, which is 1 (logarithmic)");
    let kinds = [("Thalweg, method auto", 0), ("plain UDP sockets without any protocol", BESIDE)];
    standalone(&rows(&axis, &kinds, &all.iter().map(row).collect::<Vec<_>>()))
}

#[test]
fn the_chart_of_the_readme_shows_the_figures_of_the_tables() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = fs::read_to_string(docs.join("results/compare.md")).expect("the page");
    let all = compared(&speeds(&page));
    assert!(all.len() > 10, "only {} measurements were found: the tables are read wrongly", all.len());
    let (drawn, file) = (chart(&all), docs.join("results/compare.svg"));
    if std::env::var_os("THALWEG_WRITE").is_some() {
        fs::write(&file, &drawn).expect("written");
    }
    let shown = fs::read_to_string(&file).expect("the chart");
    assert!(shown == drawn, "docs/results/compare.svg is not that of the tables; write it with THALWEG_WRITE=1");
}

#[test]
fn the_fastest_peer_and_the_floor_stand_beside_ours() {
    let page = "\
## Small streams

*Medians over the runs*

|  | contender | runs | samples a second | writer's CPU a sample, µs |
|---|---|---:|---:|---:|
| stream of 1 KiB | batch | 8 | 9,000 | 0.6 |
| stream of 1 KiB | auto | 8 | 3,000 | 0.6 |
| stream of 1 KiB | cyclone batch | 8 | 1,000 | 1.2 |
| stream of 1 KiB | zenoh tuned | 8 | 1,500 | 1.2 |
| stream of 1 KiB | sockets batch | 8 | 6,000 | 0.3 |

## Round trips in the listener, one core

|  | contender | runs | round trip p50, µs |
|---|---|---:|---:|
| round trip of 64 B | auto | 8 | 10.0 |
| round trip of 64 B | cyclone default | 8 | 5.0 |
| round trip of 64 B | zenoh default | 8 | – |

## Bursts of large samples

*5 × 1 MB, milliseconds*

|  | count | mean | min |
|---|---:|---:|---:|
| auto | 40 | 2.0 | 1.0 |
| cyclone tuned | 40 | 3.0 | 1.0 |

## Expected ratios

*Expected ratios of medians; intervals of 95 % from runs of the same round*

|  | quantity | of | by the best of |
|---|---|---|---|
| Small streams, stream of 1 KiB | rate | auto | cyclone batch |
";
    let all = compared(&speeds(page));
    let told: Vec<_> =
        all.iter().map(|one| (one.deed.as_str(), one.peer.as_str(), (one.ours * 100.0).round(), one.floor)).collect();
    let expected = [
        ("stream of 1 KiB", "zenoh tuned", 200.0, Some(4.0)),
        ("round trip of 64 B, in the listener, one core", "cyclone default", 50.0, None),
        ("burst of 5 × 1 MB", "cyclone tuned", 150.0, None),
    ];
    assert_eq!(told, expected);
}
