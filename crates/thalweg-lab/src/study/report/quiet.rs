//! Other load on the machine in each measured second.

use super::source::Source;
use crate::figures::{or_dash, percent, rounded};
use crate::host::SecondConditions;
use crate::plot::{Axis, BESIDE, Chart, Form, Layer, Size};
use crate::report::{Figure, FigureLayout, Section};
use crate::scenario::Gate;
use crate::table::Table;

/// A share of a second, where the kernel tells it.
type Share = fn(&SecondConditions) -> Option<f64>;

pub(super) fn section(source: &Source<'_>) -> Section {
    let gate = &source.scenario.gate;
    let bad = source.seconds.iter().filter(|second| second.bad).count();
    let kinds: [(&str, Share, Option<f64>); 4] = [
        ("taken by others, %", |second| Some(second.others()), Some(gate.others * Gate::SECOND_FACTOR)),
        ("by other programs, %", |second| second.foreign_cpu, None),
        ("by the hypervisor, %", |second| second.steal, None),
        ("waiting for a CPU (PSI some), %", |second| second.pressure, gate.pressure),
    ];
    let pictures: Vec<String> = kinds.iter().map(|(name, of, limit)| picture(source, name, *of, *limit)).collect();
    let mut table = Table::new("Share of each second", &["", "median", "p99", "largest", "limit", "seconds beyond"]);
    for (name, of, limit) in kinds {
        let mut shares: Vec<f64> = source.seconds.iter().filter_map(of).collect();
        shares.sort_by(f64::total_cmp);
        let at = |share: f64| or_dash(shares.get((share * shares.len() as f64) as usize).copied(), percent);
        let beyond = limit.map(|limit| shares.iter().filter(|share| **share > limit).count());
        table.rows.push(vec![
            name.trim_end_matches(", %").to_owned(),
            at(0.5),
            at(0.99),
            or_dash(shares.last().copied(), percent),
            limit.map_or_else(|| "none".to_owned(), percent),
            or_dash(beyond, |count| count.to_string()),
        ]);
    }
    let standstills = source.seconds.iter().map(|second| second.lasted_s).fold(0.0, f64::max);
    let marked = source.result.contaminated();
    Section {
        title: "How quiet the machine was".to_owned(),
        lead: "Every second of the runs that count, one run after the other in the order in which they were made; the grey line is the limit \
               beyond which a second is bad."
            .to_owned(),
        seen: vec![format!(
            "{bad} of {} seconds were disturbed, {marked} runs are marked; the longest second lasted {} s.",
            source.seconds.len(),
            rounded(standstills)
        )],
        figures: vec![
            Figure::of_many("A dot above the grey line is a second in which other load disturbed the measurement.", FigureLayout::Column, pictures)
                .resting_on(format!("n = {} seconds; of neighbouring seconds the worst is drawn.", source.seconds.len()))
                .with_table(table),
        ],
        ..Section::default()
    }
}

/// One quantity over all seconds.
fn picture(source: &Source<'_>, name: &str, of: Share, limit: Option<f64>) -> String {
    let step = source.seconds.len().div_ceil(DOTS_MAX).max(1);
    let worst = |(place, seconds): (usize, &[SecondConditions])| {
        let worst = seconds.iter().filter_map(of).reduce(f64::max)?;
        Some(((place * step) as f64, 100.0 * worst))
    };
    let dots = source.seconds.chunks(step).enumerate().filter_map(worst).collect();
    let end = source.seconds.len() as f64;
    let line = limit.map_or_else(Vec::new, |limit| vec![(0.0, 100.0 * limit), (end, 100.0 * limit)]);
    let layers = vec![Layer::new("", BESIDE, Form::Line, line), Layer::new("", 1, Form::Dots, dots)];
    let (x, y) = (Axis::count("measured second"), Axis::linear(name));
    Chart { title: String::new(), x, y, layers, size: Size::Strip }.to_svg()
}

/// More dots than this cannot be told apart.
const DOTS_MAX: usize = 500;
