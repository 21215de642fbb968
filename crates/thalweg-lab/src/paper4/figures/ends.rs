//! Figures 11, 12 and 14: the fates at both ends, the publisher's layers, and subscriber by subscriber.

use thalweg::trace::Point;

use super::{View, kinds, seen, shown};
use crate::figures::{or_dash, percent};
use crate::parts::PartResult;
use crate::plot::{self, Axis, Chart, Form, Layer, Size, Stack};
use crate::report::{Figure, FigureLayout, Section};
use crate::study::{self, distinct};
use crate::table::Table;
use crate::trial::label;

/// Figure 11: in time, late, lost or not sent, at both ends.
pub(super) fn fates(part: &PartResult) -> Option<Section> {
    let views = View::all(part);
    let shares = |view: &View<'_>| {
        let runs = || view.result.runs.iter();
        let written: u64 = runs().map(|run| run.publishers.in_time).sum();
        let due: u64 = runs().map(|run| run.publishers.in_time + run.publishers.late + run.publishers.not_sent).sum();
        let in_time: u64 = runs().map(|run| run.totals.in_time).sum();
        let sent: u64 = runs().map(|run| run.totals.received() + run.totals.lost).sum();
        (written as f64 / due.max(1) as f64, in_time as f64 / sent.max(1) as f64)
    };
    let behind: Vec<&View<'_>> = views.iter().filter(|view| shares(view).0 < BEHIND).collect();
    let told = |view: &&View<'_>| {
        let (publisher, subscribers) = shares(view);
        format!(
            "{}: {} written in time, {} of what was sent arrives in time",
            view.result.name,
            percent(publisher),
            percent(subscribers)
        )
    };
    let listed: Vec<String> = behind.iter().map(told).collect();
    let flattered = behind.iter().filter(|view| shares(view).1 >= BEHIND).count();
    let here = match listed.as_slice() {
        [] => vec![format!("publishers keep up in all {} cells.", views.len())],
        _ => vec![
            format!("publishers fall behind in {} of {} cells. {}.", listed.len(), views.len(), listed.join("; ")),
            format!("in {flattered} of these almost everything that was sent arrives in time, as in the paper."),
        ],
    };
    let why = (flattered < behind.len()).then(|| {
        "latency counts here from when a sample was due, so that what a publisher sends late arrives late, where the paper's stamps are set \
         just before it sends."
            .to_owned()
    });
    let drawn = study::fates_section(&part.study);
    Some(Section {
        title: "Figure 11: in time, late, lost, not sent, at both ends".to_owned(),
        lead: format!("More than the machine carries. {}", drawn.lead),
        seen: seen(
            "all 600 messages are sent only for the two smallest sizes in most cases; from 512 kB up publishers fall behind, even in 1–1, while \
             subscribers see almost every message in time.",
            here.into_iter().chain(drawn.seen),
            why,
        ),
        ..drawn
    })
}

/// Figure 12: the publisher's time by layer and size.
pub(super) fn layers(part: &PartResult) -> Option<Section> {
    let views = View::all(part);
    let own = |view: &View<'_>| {
        let traces = view.raw.map(|raw| raw.traces.range(..Point::Received));
        let medians =
            traces.into_iter().flatten().filter_map(|(point, layer)| Some((label(*point), layer.quantile(0.5)?)));
        medians.collect::<Vec<(&'static str, f64)>>()
    };
    let told = |view: &View<'_>| {
        let medians = own(view);
        let whole: f64 = medians.iter().map(|(_, us)| us).sum();
        let most = medians.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
        Some(format!(
            "{} takes the publisher {}, of which “{}” takes {}.",
            view.cell().load,
            shown(whole),
            most.0,
            percent(most.1 / whole)
        ))
    };
    let here: Vec<String> = views.iter().filter_map(told).collect();
    if here.is_empty() {
        return None;
    }
    let names = distinct(views.iter().flat_map(own).map(|(name, _)| name));
    let loads: Vec<String> = views.iter().map(|view| view.cell().load.to_string()).collect();
    let header: Vec<&str> = ["layer"].into_iter().chain(loads.iter().map(String::as_str)).collect();
    let of_layer = |view: &View<'_>, name: &str| own(view).into_iter().find(|one| one.0 == name).map(|one| one.1);
    let row = |name: &&str| {
        let of = |view: &View<'_>| or_dash(of_layer(view, name), shown);
        [(*name).to_owned()].into_iter().chain(views.iter().map(of)).collect()
    };
    let table = Table::of("The publisher's time in each layer, medians", &header, names.iter().map(row));
    let bar = |view: &View<'_>| {
        let of = |name: &&str| of_layer(view, name).map_or(0, |us| (us * 1e3) as u64);
        Stack { name: view.cell().load.to_string(), counts: names.iter().map(of).collect(), interval: None }
    };
    let bars: Vec<Stack> = views.iter().map(bar).collect();
    let colour = |(index, name)| (name, index % plot::COLOURS);
    let classes: Vec<(&str, usize)> = names.iter().copied().enumerate().map(colour).collect();
    let title = "per cent of the publisher's time, medians of the layers";
    let caption = "Layers of the publisher's time by size; the last one, drawn hollow, is the kernel's. Shares of the first stand at the right.";
    Some(Section {
        title: "Figure 12: the publisher's time by layer and size".to_owned(),
        lead:
            "Thalweg, 1–1, 100 Hz, every sample traced from the call of `write` to the return of the last system call."
                .to_owned(),
        seen: seen(
            "of the publisher's layers the middleware takes most and grows with the size, more than rmw, rcl and rclcpp together.",
            here,
            Some(
                "there are no rmw, rcl and rclcpp here: what the paper shows as one layer, the middleware, is divided."
                    .to_owned(),
            ),
        ),
        figures: vec![Figure::new(caption, plot::stacks(title, &classes, &bars)).with_table(table)],
        ..Section::default()
    })
}

/// Figure 14: the mean of each subscriber.
pub(super) fn subscribers(part: &PartResult) -> Option<Section> {
    let views = View::all(part);
    let means = |view: &View<'_>| {
        let pairs = view.raw.into_iter().flat_map(|raw| &raw.pairs).enumerate();
        pairs.filter_map(|(reader, pair)| Some((reader as f64, pair.mean_us?))).collect::<Vec<(f64, f64)>>()
    };
    let mut table = Table::new(
        "Means of the subscribers",
        &["cell", "least", "largest", "apart", "subscribers that are slower than the one before"],
    );
    let mut apart = Vec::new();
    for view in &views {
        let own = means(view);
        let ends = own.iter().fold(None, |ends: Option<(f64, f64)>, (_, us)| {
            Some(ends.map_or((*us, *us), |(least, most)| (least.min(*us), most.max(*us))))
        });
        let Some((least, most)) = ends else { continue };
        let slower = own.windows(2).filter(|two| two[1].1 > two[0].1).count() as f64 / (own.len().max(2) - 1) as f64;
        apart.push((view.result.name.clone(), most - least, slower));
        table.rows.push(vec![
            view.result.name.clone(),
            shown(least),
            shown(most),
            shown(most - least),
            percent(slower),
        ]);
    }
    let widest = apart.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let near = apart.iter().filter(|(_, us, _)| *us <= PAPER_APART_US).count();
    let stairs: Vec<&str> =
        apart.iter().filter(|(.., slower)| *slower >= STAIRCASE).map(|one| one.0.as_str()).collect();
    let staircase = match stairs.as_slice() {
        [] => "there is no staircase: in no cell nearly every subscriber is slower than the one before.".to_owned(),
        _ => format!(
            "there is a staircase, nearly every subscriber slower than the one before, in {}.",
            stairs.join(", ")
        ),
    };
    let here = [
        format!(
            "the means of the subscribers lie at most 2 ms apart in {near} of {} cells, and {} in {}.",
            apart.len(),
            shown(widest.1),
            widest.0
        ),
        staircase,
    ];
    let why = (near < apart.len() || !stairs.is_empty()).then(|| {
        format!(
            "the copies to the subscribers are sent and taken one after the other on {} CPUs; the one that is served last waits for all others.",
            part.study.environment.cores
        )
    });
    Some(Section {
        title: "Figure 14: latency of each subscriber".to_owned(),
        lead: "1–N, 64 KiB, 10 Hz: the mean of each subscriber, the median over the runs.".to_owned(),
        seen: seen("all subscribers have about 7 ms, at most 2 ms apart, and there is no staircase.", here, why),
        figures: vec![
            Figure::of_many(
                "Each line is a middleware, each mark a subscriber.",
                FigureLayout::Column,
                by_number(&views, &means),
            )
            .with_table(table),
        ],
        ..Section::default()
    })
}

/// A picture for each number of subscribers.
fn by_number(views: &[View<'_>], means: &impl Fn(&View<'_>) -> Vec<(f64, f64)>) -> Vec<String> {
    let middleware = kinds(views, View::middleware);
    let picture = |count: u32| {
        let own = views.iter().filter(|view| view.cell().subscribers == count);
        let layer = |view: &View<'_>| Layer {
            name: view.middleware(),
            colour: middleware.iter().position(|name| *name == view.middleware()).unwrap_or(0) % plot::COLOURS,
            form: Form::Marked,
            points: means(view),
            band: Vec::new(),
        };
        Chart {
            title: format!("1–{count}"),
            x: Axis::count("subscriber"),
            y: Axis::micros_from_zero("mean latency"),
            layers: own.map(layer).filter(|layer| !layer.points.is_empty()).collect(),
            size: Size::Wide,
        }
        .to_svg()
    };
    kinds(views, |view| view.cell().subscribers).into_iter().map(picture).collect()
}

/// The share in time from which on nearly everything is.
const BEHIND: f64 = 0.99;
/// How far apart the paper's subscribers are at most.
const PAPER_APART_US: f64 = 2_000.0;
/// Half are slower than the one before by chance.
const STAIRCASE: f64 = 0.9;
