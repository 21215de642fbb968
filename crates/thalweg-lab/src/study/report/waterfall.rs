//! Where the time of a sample goes, layer by layer, at the publisher and at the subscriber.

use std::collections::BTreeMap;
use std::path::PathBuf;

use thalweg::trace::Point;

use super::source::Source;
use crate::error::LabError;
use crate::figures::{grouped, or_dash, rounded};
use crate::plot::{WaterfallStep, waterfall};
use crate::report::{Figure, Section};
use crate::statistics::is_supported;
use crate::study::directory::RunName;
use crate::table::Table;
use crate::trial::{label, read_traces, spans};

/// How long samples took to reach one point from the one before, all runs together.
#[derive(Debug, Default)]
pub(crate) struct TracedLayer {
    durations_us: Vec<f64>,
    /// From the call of `write` to the beginning.
    starts_us: Vec<f64>,
}

/// The layers of a cell, in the order of the path.
pub(crate) type Layers = BTreeMap<Point, TracedLayer>;

/// Reads the traces of a cell's runs, if there are any.
pub(super) fn read(runs: &[(RunName, PathBuf)]) -> Result<Layers, LabError> {
    let mut out = Layers::new();
    for (_, folder) in runs {
        let rows = read_traces(folder)?;
        for span in spans(&rows) {
            let layer = out.entry(rows[span.end].point).or_default();
            layer.durations_us.push((span.to_ns - span.from_ns) as f64 / 1e3);
            layer.starts_us.extend(span.since_write_ns.map(|start| start as f64 / 1e3));
        }
    }
    for layer in out.values_mut() {
        layer.durations_us.sort_by(f64::total_cmp);
        layer.starts_us.sort_by(f64::total_cmp);
    }
    Ok(out)
}

/// Two pictures for each of the first cells that were traced; nothing where none was.
pub(super) fn section(source: &Source<'_>) -> Option<Section> {
    let traced: Vec<_> = source.each().filter(|(_, data)| !data.traces.is_empty()).collect();
    if traced.is_empty() {
        return None;
    }
    let shown = source.detail.waterfalls.min(traced.len());
    let figures = traced.iter().take(shown).filter_map(|(cell, data)| figure(&cell.name, &data.traces)).collect();
    let note = match traced.len() - shown {
        0 => String::new(),
        others => format!(" The {others} further cells have theirs in the raw data."),
    };
    Some(Section {
        title: "Layer by layer".to_owned(),
        lead: format!(
            "The path of one sample in {} from `write` to `take`, on the clock that both processes share. Each layer is named after its \
             work; its bar is the median, the thin line reaches to the 99th percentile.{note}",
            source.scenario.trace.map_or(1, std::num::NonZeroU32::get)
        ),
        figures,
        ..Section::default()
    })
}

/// A row for each layer.
fn table(layers: &Layers) -> Table {
    let row = |(point, layer): (&Point, &TracedLayer)| {
        vec![
            label(*point).to_owned(),
            if *point < Point::Received { "publisher" } else { "subscriber" }.to_owned(),
            grouped(layer.durations_us.len() as u64),
            or_dash(layer.quantile(0.5), rounded),
            or_dash(layer.quantile(0.99), rounded),
        ]
    };
    Table::of("Time in each layer", &["layer", "side", "n", "median, µs", "p99, µs"], layers.iter().map(row))
}

fn figure(name: &str, layers: &Layers) -> Option<Figure> {
    let step = |(point, layer): (&Point, &TracedLayer)| {
        Some(WaterfallStep {
            name: label(*point).to_owned(),
            colour: if *point < Point::Received { 0 } else { 1 },
            from_us: layer.starts_us.get(layer.starts_us.len() / 2).copied()?,
            median_us: layer.quantile(0.5)?,
            p99_us: layer.quantile(0.99),
        })
    };
    let steps: Vec<WaterfallStep> = layers.iter().filter_map(step).collect();
    let longest = steps.iter().max_by(|one, other| one.median_us.total_cmp(&other.median_us))?;
    let samples = layers.values().map(|layer| layer.durations_us.len()).max().unwrap_or(0);
    let seen = format!(
        "{name}: most of the time goes into “{}”, {} µs in the median.",
        longest.name,
        rounded(longest.median_us)
    );
    let title = "time since write was called";
    Some(
        Figure::new(seen, waterfall(title, &steps))
            .resting_on(format!(
                "n = {} samples; blue is the publisher, orange the subscriber.",
                grouped(samples as u64)
            ))
            .with_table(table(layers)),
    )
}

impl TracedLayer {
    /// A quantile in microseconds, where enough samples carry it.
    pub(crate) fn quantile(&self, q: f64) -> Option<f64> {
        let count = self.durations_us.len();
        let rank = (q * count as f64).ceil() as usize;
        is_supported(q, count as u64).then(|| self.durations_us.get(rank.max(1) - 1).copied()).flatten()
    }
}
