//! Figures 10 and 13: nodes, sizes, rates and topologies.

use super::{View, kinds, seen, shown, shown_or_dash};
use crate::figures::{grouped, or_dash, rounded};
use crate::parts::PartResult;
use crate::plot::{self, Axis, Chart, Form, Layer, Size};
use crate::report::{Figure, FigureLayout, Section};
use crate::scenario::Topics;
use crate::statistics::median;
use crate::table::Table;

/// Figure 10: 1–N by N, size and rate.
pub(super) fn by_size(part: &PartResult) -> Option<Section> {
    let views: Vec<View<'_>> = View::all(part).into_iter().filter(|view| view.cell().topics == Topics::One).collect();
    let of_rate = |rate_hz: f64| views.iter().filter(move |view| view.cell().rate_hz == rate_hz);
    let period_us = |view: &View<'_>| 1e6 / view.cell().rate_hz;
    let beyond = |rate_hz: f64| {
        let over = of_rate(rate_hz).filter(|view| view.mean_us().is_none_or(|mean| mean > period_us(view)));
        over.map(|view| format!("{} ({})", view.result.name, shown_or_dash(view.mean_us()))).collect::<Vec<_>>()
    };
    let told = |rate_hz: f64| {
        let (beyond, all) = (beyond(rate_hz), of_rate(rate_hz).count());
        match beyond.as_slice() {
            [] => format!("at {rate_hz} Hz the means of all {all} cells lie below the period."),
            _ => format!("at {rate_hz} Hz {} of {all} means exceed the period: {}.", beyond.len(), beyond.join(", ")),
        }
    };
    let faster = faster_at_100_hz(&views);
    let not_sent: u64 = faster.iter().map(|(_, not_sent)| not_sent).sum();
    let here_faster = format!(
        "at 100 Hz the mean is below that at 10 Hz in {} cells, whose publishers did not send {} samples.",
        faster.len(),
        grouped(not_sent)
    );
    let why = (!faster.is_empty() && not_sent == 0).then(|| {
        "samples that follow one another faster find processors, caches and sockets awake; latency counts from when a sample was due, so that one \
         that is sent late does not look fast."
            .to_owned()
    });
    Some(Section {
        title: "Figure 10: latency by number of subscribers, size and rate".to_owned(),
        lead: "1–N; the paper has Cyclone DDS alone.".to_owned(),
        seen: seen(
            "at 10 Hz means stay below 100 ms; at 100 Hz 2 MB exceed 10 ms already at 1–1, and 512 kB and 1 MB with more subscribers; 63 \
             subscribers look better at 100 Hz than at 10 Hz because messages were not sent.",
            kinds(&views, |view| view.cell().rate_hz).into_iter().map(told).chain([here_faster]),
            why,
        ),
        figures: figure("Means by number of subscribers, with the quartiles.", &views, |view| {
            (view.middleware(), format!("{} Hz", view.cell().rate_hz))
        }),
        tables: vec![table("Mean latency of samples that arrived, 1–N", &views)],
        ..Section::default()
    })
}

/// Cells that are faster at the higher rate, with the samples that their publishers did not send.
fn faster_at_100_hz(views: &[View<'_>]) -> Vec<(String, u64)> {
    let slow = |view: &View<'_>| {
        let same = |other: &&View<'_>| {
            let (a, b) = (view.cell(), other.cell());
            b.rate_hz < a.rate_hz && (a.middleware, a.load, a.subscribers) == (b.middleware, b.load, b.subscribers)
        };
        views.iter().find(same).and_then(View::mean_us)
    };
    let faster = |view: &&View<'_>| slow(view).zip(view.mean_us()).is_some_and(|(slow, fast)| fast < slow);
    let not_sent = |view: &View<'_>| view.result.runs.iter().map(|run| run.publishers.not_sent).sum();
    views.iter().filter(faster).map(|view| (view.result.name.clone(), not_sent(view))).collect()
}

/// Figure 13: 1–N beside N–1.
pub(super) fn by_topology(part: &PartResult) -> Option<Section> {
    let views: Vec<View<'_>> =
        View::all(part).into_iter().filter(|view| view.others() > 1 && view.cell().topics != Topics::PerPair).collect();
    let told = |others: u32| {
        let pairs: Vec<(&View<'_>, View<'_>)> =
            views.iter().filter_map(|view| Some((view, twin(&views, view, others)?))).collect();
        let ratio = |of: fn(&View<'_>) -> Option<f64>| {
            let ratios = pairs.iter().filter_map(|(one, other)| Some(of(other)? / of(one)?));
            median(ratios.filter(|ratio| ratio.is_finite()).collect::<Vec<f64>>()).map(rounded)
        };
        let spread =
            ratio(width).map(|spread| format!(", and the middle half of the samples spreads {spread} times as far"));
        Some(format!(
            "with {others} publishers to one node the median latency is {} times that of one publisher to {others} nodes{}; the median over \
             sizes, rates and middleware.",
            ratio(|view| view.p50_us())?,
            spread.unwrap_or_default()
        ))
    };
    let counts = kinds(&views, View::others);
    let here: Vec<String> = counts.into_iter().filter_map(told).collect();
    if here.is_empty() {
        return None;
    }
    Some(Section {
        title: "Figure 13: one to many beside many to one".to_owned(),
        lead: "All publishers send at once; the one node of N–1 handles samples one at a time, as an executor of one thread does.".to_owned(),
        seen: seen(
            "both are the same for 7 and 31 others and differ visibly for 63; the variance of N–1 is much larger, which the paper ascribes to the \
             executor of one thread.",
            here,
            Some(format!(
                "N samples that are due at once wait for each other at the one node, and N processes for {} CPUs at the other end; which wait is \
                 longer depends on the number of CPUs.",
                part.study.environment.cores
            )),
        ),
        figures: figure("1–N and N–1, means with the quartiles.", &views, |view| {
            let shape = if view.cell().topics == Topics::One { "1–N" } else { "N–1" };
            (format!("{} {shape}", view.middleware()), format!("{} Hz", view.cell().rate_hz))
        }),
        tables: vec![table("Mean latency of samples that arrived, 1–N and N–1", &views)],
        ..Section::default()
    })
}

/// The N–1 cell that is the other one of this 1–N cell.
fn twin<'a>(views: &[View<'a>], view: &View<'a>, others: u32) -> Option<View<'a>> {
    let one = view.cell();
    let is_twin = |other: &&View<'_>| {
        let other = other.cell();
        let is_same = (other.middleware, other.load, other.rate_hz) == (one.middleware, one.load, one.rate_hz);
        is_same && other.topics == Topics::PerPublisher && other.publishers == others
    };
    (one.topics == Topics::One && one.subscribers == others).then(|| views.iter().find(is_twin).copied())?
}

fn width(view: &View<'_>) -> Option<f64> {
    view.quartiles_us().map(|(low, high)| high - low)
}

/// A picture for each kind, with a line for each size.
fn figure<'a>(caption: &str, views: &[View<'a>], kind: impl Fn(&View<'a>) -> (String, String)) -> Vec<Figure> {
    let loads = kinds(views, |view| view.cell().load);
    let picture = |of: (String, String)| {
        let layer = |(colour, load)| {
            let own = || views.iter().filter(|view| kind(view) == of && view.cell().load == load);
            let others = |view: &View<'_>| f64::from(view.others());
            Layer {
                name: load.to_string(),
                colour: colour % plot::COLOURS,
                form: Form::Marked,
                points: own().filter_map(|view| Some((others(view), view.mean_us()?))).collect(),
                band: own()
                    .filter_map(|view| view.quartiles_us().map(|(low, high)| (others(view), low, high)))
                    .collect(),
            }
        };
        let layers: Vec<Layer> =
            loads.iter().copied().enumerate().map(layer).filter(|layer| !layer.points.is_empty()).collect();
        let chart = Chart {
            title: format!("{}, {}", of.0, of.1),
            x: Axis::logarithmic("N"),
            y: Axis::micros("latency"),
            layers,
            size: Size::Small,
        };
        (!chart.layers.is_empty()).then(|| chart.to_svg())
    };
    let pictures = kinds(views, &kind).into_iter().filter_map(picture).collect();
    Figure::of_any(caption, FigureLayout::Grid, pictures).into_iter().collect()
}

/// The numbers behind a figure: with the share of the samples due that came in time, since means know nothing of the others.
fn table(caption: &str, views: &[View<'_>]) -> Table {
    let row = |view: &View<'_>| {
        let quartiles = or_dash(view.quartiles_us(), |(low, high)| format!("{} to {}", shown(low), shown(high)));
        vec![view.result.name.clone(), shown_or_dash(view.mean_us()), quartiles, view.in_time()]
    };
    let folded = format!("{} cells", views.len());
    Table { folded, ..Table::of(caption, &["cell", "mean", "quartiles", "in time"], views.iter().map(row)) }
}
