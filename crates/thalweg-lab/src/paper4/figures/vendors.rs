//! Figures 8 and 9 and the losses: the comparison of vendors.

use super::{View, kinds, seen, span};
use crate::figures::{grouped, or_dash, percent};
use crate::parts::PartResult;
use crate::plot::{self, Axis, BoxRow, Chart, Form, Layer, Size};
use crate::report::{Figure, FigureLayout, Section};
use crate::scenario::{Load, ReliabilitySetting};
use crate::statistics::{Buckets, Verdict};
use crate::study::{self, P50};
use crate::table::Table;

/// Figure 8: latency over time by contender.
pub(super) fn over_time(part: &PartResult) -> Option<Section> {
    let views = View::all(part);
    let medians: Vec<(String, f64)> =
        views.iter().filter_map(|view| Some((view.result.name.clone(), view.p50_us()?))).collect();
    let below = medians.iter().filter(|(_, us)| *us < PAPER_MOST_US).count();
    let largest: Vec<(String, f64)> = views
        .iter()
        .filter(|view| view.cell().subscribers > 1 && view.cell().load == Load::PointCloud1m)
        .filter_map(|view| Some((format!("{}, {}", view.middleware(), reliability(view)), view.p50_us()?)))
        .collect();
    let here = [
        format!("{below} of {} cells have a median below 2 ms, {}.", medians.len(), span(&medians)?),
        span(&largest).map_or_else(String::new, |span| format!("1 MiB to 31 subscribers takes {span} in the median.")),
        verdicts(part),
    ];
    let differs = largest.iter().any(|(_, us)| !PAPER_LARGE_US.contains(us));
    let cores = part.study.environment.cores;
    let why = differs.then(|| {
        format!(
            "31 subscribers are 31 copies of each MiB, and their processes share {cores} CPUs here and 16 threads there; medians count from when a \
             sample was due, and no client library lies above the middleware in either measurement."
        )
    });
    let caption = "Each picture is a middleware with a number of subscribers: the median of each second, all runs together, and the range of what arrived in it. A second of which half never arrived has no median.";
    Some(Section {
        title: "Figure 8: latency of the vendors over time".to_owned(),
        lead: "1–1 and 1–31, 10 Hz, the three types of the paper's Table 1.".to_owned(),
        seen: seen(
            "most cells lie below 2 ms; 1 MiB to 31 subscribers takes at least 8 ms and 15 to 20 ms on the average.",
            here.into_iter().filter(|sentence| !sentence.is_empty()),
            why,
        ),
        figures: Figure::of_any(caption, FigureLayout::Grid, panels(&views)).into_iter().collect(),
        tables: study::differences_tables(
            "Each middleware against Thalweg",
            &part.study.differences.iter().filter(|one| one.quantity == P50.name).cloned().collect::<Vec<_>>(),
        ),
        ..Section::default()
    })
}

/// What the runs tell of the medians of peers against Thalweg's.
fn verdicts(part: &PartResult) -> String {
    let all = || part.study.differences.iter().filter(|difference| difference.quantity == P50.name);
    let count = |verdict| all().filter(|difference| difference.verdict == verdict).count();
    match all().count() {
        0 => String::new(),
        pairs => format!(
            "of {pairs} comparisons of a peer's median with Thalweg's the peer's is longer in {}, shorter in {}, equivalent in {}; {} are not judged.",
            count(Verdict::Worse),
            count(Verdict::Better),
            count(Verdict::Equivalent),
            count(Verdict::Inconclusive)
        ),
    }
}

/// A picture for each middleware and shape, with a curve for each type.
fn panels(views: &[View<'_>]) -> Vec<String> {
    let kind = |view: &View<'_>| (view.cell().subscribers, reliability(view), view.middleware());
    let panel = |(subscribers, reliability, middleware): (u32, &'static str, String)| {
        let own = views.iter().filter(|view| kind(view) == (subscribers, reliability, middleware.clone()));
        let layers: Vec<Layer> = own.enumerate().filter_map(|(colour, view)| layer(colour, view)).collect();
        let picture = Chart {
            title: format!("{middleware}, 1–{subscribers}, {reliability}"),
            x: Axis::linear("s"),
            y: Axis::micros("latency"),
            layers,
            size: Size::Small,
        };
        (!picture.layers.is_empty()).then(|| picture.to_svg())
    };
    kinds(views, kind).into_iter().filter_map(panel).collect()
}

fn layer(colour: usize, view: &View<'_>) -> Option<Layer> {
    let seconds = || view.raw.into_iter().flat_map(|raw| &raw.course).filter(|(_, latencies)| latencies.count() > 0);
    let middle = |(second, latencies): (&u64, &Buckets)| Some((*second as f64, median_of_due(latencies)?));
    let range = |(second, latencies): (&u64, &Buckets)| {
        (*second as f64, latencies.at_rank(1), latencies.at_rank(latencies.count()))
    };
    let points: Vec<(f64, f64)> = seconds().filter_map(middle).collect();
    let name = view.cell().load.to_string();
    (!points.is_empty()).then(|| Layer { name, colour, form: Form::Line, points, band: seconds().map(range).collect() })
}

/// The median in microseconds of the samples that were due; `None` where half of them never arrived.
fn median_of_due(latencies: &Buckets) -> Option<f64> {
    Some(latencies.at_rank(latencies.due().div_ceil(2))).filter(|us| us.is_finite())
}

/// The share of samples that were lost.
pub(super) fn losses(part: &PartResult) -> Option<Section> {
    let views = View::all(part);
    let lost = |view: &View<'_>| {
        (view.result.sum(|totals| totals.lost), view.result.sum(|totals| totals.lost + totals.received()))
    };
    let share = |view: &View<'_>| {
        let (lost, sent) = lost(view);
        lost as f64 / sent.max(1) as f64
    };
    let worst = views.iter().max_by(|one, other| share(one).total_cmp(&share(other)))?;
    let losing = views.iter().filter(|view| lost(view).0 > 0).count();
    let of_type = |load: Load| {
        let own = views.iter().filter(|view| view.cell().load == load && view.cell().subscribers > 1);
        let counts: Vec<u64> = own.map(|view| lost(view).0).collect();
        (!counts.is_empty()).then(|| format!("{load} {}", grouped(counts.iter().sum())))
    };
    let by_type: Vec<String> = kinds(&views, |view| view.cell().load).into_iter().filter_map(of_type).collect();
    let mut here = match losing {
        0 => vec![format!("nothing was lost in any of {} cells.", views.len())],
        _ => vec![format!(
            "{losing} of {} cells lose samples, {} loses most: {}.",
            views.len(),
            worst.result.name,
            percent(share(worst))
        )],
    };
    if losing > 0 && !by_type.is_empty() {
        here.push(format!("samples lost on the way to 31 subscribers: {}.", by_type.join(", ")));
    }
    let why = (share(worst) > PAPER_LOSS_MAX).then(|| {
        "a large sample is lost with any one of its datagrams, which wait in the receive buffer of a process that must get a CPU first; the \
         paper's machine has a CPU for every other process. Its reliability is not stated; both are measured here."
            .to_owned()
    });
    let middleware = kinds(&views, View::middleware);
    let row = |data: String| {
        let of = |name: &String| {
            let own = views.iter().find(|view| view.cell().data() == data && view.middleware() == *name);
            or_dash(own, |view| percent(share(view)))
        };
        [data.clone()].into_iter().chain(middleware.iter().map(of)).collect()
    };
    let header: Vec<&str> = ["cell"].into_iter().chain(middleware.iter().map(String::as_str)).collect();
    let rows = kinds(&views, |view| view.cell().data()).into_iter().map(row);
    let table = Table::of("Samples lost, as a share of those sent", &header, rows);
    Some(Section {
        title: "Loss of the vendors".to_owned(),
        lead: "The paper's table of lost messages.".to_owned(),
        seen: seen(
            "at most 0.88 % are lost and mostly none; to 31 subscribers Cyclone DDS and Fast DDS lose predominantly Struct16.",
            here,
            why,
        ),
        tables: vec![table],
        ..Section::default()
    })
}

/// Figure 9: box plots by size and vendor.
pub(super) fn boxes(part: &PartResult) -> Option<Section> {
    let views = View::all(part);
    let middleware = kinds(&views, View::middleware);
    let colour =
        |view: &View<'_>| middleware.iter().position(|name| *name == view.middleware()).unwrap_or(0) % plot::COLOURS;
    let shape = |view: &View<'_>| (view.cell().subscribers, reliability(view));
    let picture = |kind: (u32, &'static str)| {
        let own = views.iter().filter(|view| shape(view) == kind);
        let rows: Vec<BoxRow> = own.filter_map(|view| row(view, colour(view))).collect();
        let axis = Axis::micros(format!("latency, 1–{}, {}", kind.0, kind.1));
        (!rows.is_empty()).then(|| plot::boxes(&axis, &rows))
    };
    let pictures = kinds(&views, shape).into_iter().filter_map(picture).collect();
    let figure = Figure::of_any("Boxes of all samples of all runs.", FigureLayout::Column, pictures)?;
    let widths: Vec<(String, f64)> = views
        .iter()
        .filter_map(|view| view.quartiles_us().map(|(low, high)| (view.result.name.clone(), high - low)))
        .collect();
    let narrow = widths.iter().filter(|(_, us)| *us < PAPER_SPREAD_US).count();
    let wide = narrow < widths.len();
    let why = wide.then(|| {
        "subscribers of one sample take it one after the other on each CPU, so that its latencies to 31 of them spread over the time that all of \
         them take; the fewer CPUs, the longer."
            .to_owned()
    });
    Some(Section {
        title: "Figure 9: latency of the vendors by size".to_owned(),
        lead: "The same runs as boxes.".to_owned(),
        seen: seen(
            "boxes and whiskers are narrow: the spread is below 1 ms everywhere but in one vendor's 1 MiB to 31 subscribers.",
            [format!(
                "half of the samples lie within 1 ms in {narrow} of {} cells that have samples enough for quartiles; the widths reach {}.",
                widths.len(),
                span(&widths)?
            )],
            why,
        ),
        figures: vec![figure],
        ..Section::default()
    })
}

fn row(view: &View<'_>, colour: usize) -> Option<BoxRow> {
    let (low, high) = view.quartiles_us()?;
    let all = &view.raw?.all;
    let reach = 1.5 * (high - low);
    let within =
        || all.iter().map(|(edge, _)| edge as f64 / 1e3).filter(|us| (low - reach..=high + reach).contains(us));
    Some(BoxRow {
        name: format!("{} {}", view.cell().load, view.middleware()),
        colour,
        whiskers: (within().fold(low, f64::min), within().fold(high, f64::max)),
        quartiles: (low, high),
        median: all.quantile(0.5)?,
    })
}

fn reliability(view: &View<'_>) -> &'static str {
    match view.cell().reliability {
        Some(ReliabilitySetting::BestEffort) => "best effort",
        _ => "reliable",
    }
}

/// Most of the paper's cells lie below.
const PAPER_MOST_US: f64 = 2_000.0;
/// The paper's latencies of 1 MiB to 31 subscribers.
const PAPER_LARGE_US: std::ops::RangeInclusive<f64> = 8_000.0..=20_000.0;
const PAPER_SPREAD_US: f64 = 1_000.0;
const PAPER_LOSS_MAX: f64 = 0.0088;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::parts::Part;
    use crate::study::RunSummary;
    use crate::trial::Totals;

    #[test]
    fn losses_are_told_of_the_types_that_were_measured() {
        let matrix = "type = [\"Struct16\", \"PointCloud1m\"]\nrate_hz = 10\nsubscribers = [1, 31]";
        let mut scenario = fixtures::scenario(matrix);
        // What a small machine leaves out.
        scenario.cells.retain(|cell| cell.load == Load::Struct16 || cell.subscribers == 1);
        let study = fixtures::study(&scenario, 1, |_, _| RunSummary {
            totals: Totals { due: 10, in_time: 9, lost: 1, ..Totals::default() },
            ..RunSummary::default()
        });
        let part = PartResult::of(&Part { name: "vendors", title: "x", text: String::new() }, study);
        let seen = losses(&part).expect("a section").seen;
        let told = "Here: samples lost on the way to 31 subscribers: Struct16 1.";
        assert!(seen.iter().any(|sentence| sentence == told), "{seen:?}");
    }

    #[test]
    fn a_sample_that_never_arrived_is_late_in_the_median_of_its_second() {
        let mut second = Buckets::default();
        (1..=10).for_each(|ms| second.record(ms * 1_000_000));
        let ms = |buckets: &Buckets| median_of_due(buckets).map(|us| (us / 1e3).round());
        assert_eq!(ms(&second), Some(5.0));
        second.record_never(8);
        assert_eq!(ms(&second), Some(9.0));
        second.record_never(3);
        assert_eq!(ms(&second), None);
    }
}
