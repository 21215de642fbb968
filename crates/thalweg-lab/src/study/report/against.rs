//! Throughput and latency against the properties that the matrix varies: offered load and number of endpoints.

use std::collections::BTreeMap;

use super::distinct;
use super::latency::QUANTILES;
use super::source::{CellData, Source};
use crate::figures::{or_dash, rounded};
use crate::peers::CellMiddleware;
use crate::plot::{Axis, BESIDE, COLOURS, Chart, Form, Layer, Size};
use crate::report::{Figure, FigureLayout, Section};
use crate::scenario::{Cell, Topics};
use crate::study::cells::CellResult;
use crate::table::Table;

/// Cells that differ in one thing and in how the data are sent.
type Group<'a> = Vec<Point<'a>>;

#[derive(Clone)]
struct Point<'a> {
    x: f64,
    mode: String,
    cell: &'a CellResult,
    data: &'a CellData,
}

/// Throughput and latency against the offered load, where rate or size varies.
pub(super) fn load(source: &Source<'_>) -> Option<Section> {
    let rates = groups(source, |cell| (offered(cell), format!("{} {}", ends(cell), cell.load)));
    let sizes = groups(source, |cell| (offered(cell), format!("{} {} Hz", ends(cell), cell.rate_hz)));
    let all: Vec<(String, Group<'_>)> = rates.into_iter().chain(sizes).collect();
    if all.is_empty() {
        return None;
    }
    let throughput = all.iter().map(|(name, group)| throughput(name, group)).collect();
    let latency = all.iter().map(|(name, group)| percentiles(name, group, Axis::logarithmic(OFFERED))).collect();
    let points = all.iter().flat_map(|(_, group)| group);
    let seen = knee(points.map(|point| (point.x, delivered(point), point.cell.name.as_str())));
    Some(Section {
        title: "Offered load".to_owned(),
        lead: "Load is what all publishers together offer to each subscriber, payload only. The schedule is open: a middleware that cannot \
               keep up falls below the line, it does not slow the offer down."
            .to_owned(),
        seen: seen.into_iter().collect(),
        figures: vec![
            Figure::of_many("On the grey line everything offered was delivered; where a curve leaves it is the knee.", FigureLayout::Grid, throughput)
                .resting_on(format!("{}; mean over the subscribers.", source.amount()))
                .with_table(table(&all, "offered, Mbit/s")),
            Figure::of_many("Latency that climbs before the knee is queueing.", FigureLayout::Grid, latency)
                .resting_on(format!("{}; whiskers are 95 % intervals, from eight runs on.", source.amount())),
        ],
        ..Section::default()
    })
}

/// Which load is the least that was not delivered, or that all were but for 1 %, where all were counted. Each load is what was offered and
/// what was delivered, in Mbit/s, the second missing where it was not counted, and the name of its cell.
fn knee<'a>(loads: impl Iterator<Item = (f64, Option<f64>, &'a str)>) -> Option<String> {
    let (mut least, mut is_counted): (Option<(f64, &str)>, bool) = (None, true);
    for (offered, delivered, cell) in loads {
        is_counted &= delivered.is_some();
        let is_short = delivered.is_some_and(|delivered| delivered < KNEE * offered);
        if is_short && least.is_none_or(|(known, _)| offered < known) {
            least = Some((offered, cell));
        }
    }
    match least {
        Some((offered, cell)) => Some(format!(
            "The least load of which more than 1 % was not delivered within the measured time is {} Mbit/s, in {cell}.",
            rounded(offered)
        )),
        None => is_counted.then(|| "Of every load at least 99 % was delivered within the measured time.".to_owned()),
    }
}

/// Percentiles against the number of endpoints, where it varies.
pub(super) fn endpoints(source: &Source<'_>) -> Option<Section> {
    let rest = |cell: &Cell| format!("{} {} Hz", cell.load, cell.rate_hz);
    let mut titled = Vec::new();
    let readers = groups(source, |cell| (f64::from(cell.subscribers), format!("{}–N {}", cell.publishers, rest(cell))));
    titled.extend(readers.into_iter().map(|group| ("subscribers N", group)));
    let writers = groups(source, |cell| (f64::from(cell.publishers), format!("N–{} {}", cell.subscribers, rest(cell))));
    titled.extend(writers.into_iter().map(|group| ("publishers N", group)));
    if titled.is_empty() {
        let both = groups(source, |cell| (f64::from(cell.publishers + cell.subscribers), rest(cell)));
        titled.extend(both.into_iter().map(|group| ("endpoints", group)));
    }
    if titled.is_empty() {
        return None;
    }
    let picture = |(title, (name, group)): &(&str, (String, Group<'_>))| percentiles(name, group, Axis::count(*title));
    let pictures = titled.iter().map(picture).collect();
    let all: Vec<(String, Group<'_>)> = titled.into_iter().map(|(_, group)| group).collect();
    Some(Section {
        title: "Number of endpoints".to_owned(),
        lead: "The cost of one more subscriber or publisher for the others.".to_owned(),
        figures: vec![
            Figure::of_many(
                "A flat curve scales; where curves cross, another way of sending becomes the better one.",
                FigureLayout::Grid,
                pictures,
            )
            .resting_on(format!("{}; whiskers are 95 % intervals, from eight runs on.", source.amount()))
            .with_table(table(&all, "N")),
        ],
        ..Section::default()
    })
}

/// The cells by what `of` calls the rest, where at least two of them differ in its number.
fn groups<'a>(source: &'a Source<'_>, of: impl Fn(&Cell) -> (f64, String)) -> Vec<(String, Group<'a>)> {
    let name = |cell: &Cell| format!("{}{}", of(cell).1, cell.conditions());
    let order = distinct(source.result.cells.iter().map(|cell| name(&cell.cell)));
    let mut out: BTreeMap<String, Group<'a>> = BTreeMap::new();
    let is_mixed = source.result.cells.iter().any(|cell| cell.cell.middleware != CellMiddleware::Thalweg);
    for (cell, data) in source.result.cells.iter().zip(&source.cells) {
        let (x, mode) = (of(&cell.cell).0, mode(&cell.cell, is_mixed));
        out.entry(name(&cell.cell)).or_default().push(Point { x, mode, cell, data });
    }
    let mut groups: Vec<(String, Group<'a>)> = order.into_iter().filter_map(|name| out.remove_entry(&name)).collect();
    groups.iter_mut().for_each(|(_, group)| group.sort_by(|one, other| one.x.total_cmp(&other.x)));
    groups.retain(|(_, group)| group.first().zip(group.last()).is_some_and(|(first, last)| first.x < last.x));
    groups
}

/// The ways of sending that occur in a group, in the order of their first cell.
fn modes<'a>(group: &'a Group<'_>) -> Vec<&'a str> {
    distinct(group.iter().map(|point| point.mode.as_str()))
}

fn throughput(name: &str, group: &Group<'_>) -> String {
    let line = group.iter().map(|point| (point.x, point.x)).collect();
    let beside = Layer::new("", BESIDE, Form::Line, line);
    let modes = modes(group);
    let layer = |(place, mode): (usize, &&str)| {
        let colour = colour(modes.len(), place, 0);
        let own = group.iter().filter(|point| point.mode == *mode);
        let name = if modes.len() > 1 { mode } else { "" };
        Layer::new(name, colour, Form::Marked, own.filter_map(|point| Some((point.x, delivered(point)?))).collect())
    };
    let layers = [beside].into_iter().chain(modes.iter().enumerate().map(layer)).collect();
    let (x, y) = (Axis::logarithmic(OFFERED), Axis::logarithmic("delivered, Mbit/s"));
    Chart { title: name.to_owned(), x, y, layers, size: Size::Small }.to_svg()
}

/// The colour of a way of sending: up to three ways have two each, for two percentiles; the colours of more than six repeat. None is that of
/// the line beside which they are drawn.
fn colour(ways: usize, place: usize, percentile: usize) -> usize {
    if 2 * ways <= COLOURS { 2 * place + percentile } else { place % COLOURS }
}

/// Four percentiles; where there are several ways of sending two of each, and of more than three ways the median.
fn percentiles(name: &str, group: &Group<'_>, x: Axis) -> String {
    let modes = modes(group);
    let mut layers = Vec::new();
    for (place, mode) in modes.iter().enumerate() {
        let is_chosen = |index: usize| match modes.len() {
            1 => true,
            ways if 2 * ways <= COLOURS => index.is_multiple_of(2),
            _ => index == 0,
        };
        let chosen = QUANTILES.iter().enumerate().filter(|(index, _)| is_chosen(*index));
        for (index, (quantile_name, q)) in chosen {
            let own = || group.iter().filter(|point| point.mode == *mode);
            let value = |point: &Point<'_>| Some((point.x, point.data.quantile(point.cell, *q)?));
            layers.push(Layer {
                name: if modes.len() == 1 { (*quantile_name).to_owned() } else { format!("{mode} {quantile_name}") },
                colour: if modes.len() == 1 { index } else { colour(modes.len(), place, index / 2) },
                form: Form::Marked,
                points: own().filter_map(value).map(|(x, (value, _))| (x, value)).collect(),
                band: own()
                    .filter_map(value)
                    .filter_map(|(x, (_, interval))| interval.map(|(low, high)| (x, low, high)))
                    .collect(),
            });
        }
    }
    layers.retain(|layer| !layer.points.is_empty());
    Chart { title: name.to_owned(), x, y: Axis::micros("response latency"), layers, size: Size::Small }.to_svg()
}

fn table(groups: &[(String, Group<'_>)], x: &str) -> Table {
    let points = || groups.iter().flat_map(|(_, group)| group);
    let row = |name: &str| -> Option<Vec<String>> {
        let point = points().find(|point| point.cell.name == name)?;
        let quantile = |(_, q): (&str, f64)| or_dash(point.data.quantile(point.cell, q), |(value, _)| rounded(value));
        let figures = [rounded(point.x), or_dash(delivered(point), rounded)].into_iter().chain(QUANTILES.map(quantile));
        Some([point.cell.name.clone()].into_iter().chain(figures).collect())
    };
    let rows = distinct(points().map(|point| point.cell.name.as_str())).into_iter().filter_map(row);
    Table::of("Response latency in µs", &["cell", x, "delivered, Mbit/s", "p50", "p90", "p99", "p99.9"], rows)
}

/// The load offered to each subscriber, in Mbit/s of payload.
fn offered(cell: &Cell) -> f64 {
    let heard = if cell.topics == Topics::PerPair { 1.0 } else { f64::from(cell.publishers) };
    8e-6 * cell.rate_hz * heard * cell.load.bytes() as f64
}

/// What arrived within the measured time, in Mbit/s of payload, mean over the subscribers and runs.
fn delivered(point: &Point<'_>) -> Option<f64> {
    let (cell, runs) = (&point.cell.cell, &point.cell.runs);
    let each = runs.iter().map(|run| run.received_per_s).collect::<Option<Vec<f64>>>()?;
    let mean = each.iter().sum::<f64>() / each.len().max(1) as f64;
    Some(8e-6 * cell.load.bytes() as f64 * mean / f64::from(cell.subscribers.max(1)))
}

fn ends(cell: &Cell) -> String {
    format!("{}–{}", cell.publishers, cell.subscribers)
}

/// The way of sending; of several middleware, which one.
fn mode(cell: &Cell, is_mixed: bool) -> String {
    match cell.middleware {
        CellMiddleware::Thalweg if is_mixed => format!("thalweg {}", cell.destination),
        CellMiddleware::Thalweg => cell.destination.to_string(),
        peer => peer.to_string(),
    }
}

const OFFERED: &str = "offered, Mbit/s";
/// A load of which less than this share is delivered is beyond the knee.
const KNEE: f64 = 0.99;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_of_which_little_is_missing_is_not_said_to_be_delivered_whole() {
        let told = |delivered: [Option<f64>; 3]| {
            knee(
                [(4.0, "four"), (2.0, "two"), (8.0, "eight")]
                    .into_iter()
                    .zip(delivered)
                    .map(|((offered, cell), delivered)| (offered, delivered, cell)),
            )
        };
        let nearly = "Of every load at least 99 % was delivered within the measured time.";
        assert_eq!(told([Some(3.97), Some(2.0), Some(7.95)]).as_deref(), Some(nearly));
        let short = told([Some(3.9), Some(1.9), Some(1.0)]).expect("a sentence");
        assert!(short.contains("more than 1 %") && short.ends_with("is 2.00 Mbit/s, in two."), "{short}");
        assert!(told([Some(4.0), None, Some(7.0)]).is_some_and(|text| text.ends_with("8.00 Mbit/s, in eight.")));
        assert_eq!(told([Some(4.0), None, Some(8.0)]), None, "nobody counted what came of the second");
    }

    #[test]
    fn ways_of_sending_have_colours_of_their_own_and_not_that_of_the_reference() {
        for ways in 1..=9 {
            let all: Vec<usize> = (0..ways).map(|place| colour(ways, place, 0)).collect();
            assert!(all.iter().all(|one| *one < COLOURS && *one != BESIDE), "{ways} ways: {all:?}");
            assert_eq!(distinct(all.iter().copied()).len(), ways.min(COLOURS), "{ways} ways: {all:?}");
        }
        let two_each: Vec<usize> = (0..3).flat_map(|place| [0, 1].map(|one| colour(3, place, one))).collect();
        assert_eq!(two_each, [0, 1, 2, 3, 4, 5]);
    }
}
