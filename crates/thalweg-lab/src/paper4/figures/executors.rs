//! Figure 13 with executors of one and of several threads, and work in the callback.

use super::{View, kinds, seen, shown_or_dash};
use crate::figures::rounded;
use crate::parts::PartResult;
use crate::report::Section;
use crate::scenario::Topics;
use crate::statistics::median;
use crate::study::P99;
use crate::table::Table;

/// What threads and work do to the latency at the callback.
pub(super) fn threads(part: &PartResult) -> Option<Section> {
    let views = View::all(part);
    let shapes = kinds(&views, |view| (view.cell().topics, view.others()));
    let work = kinds(&views, work_ms);
    let most = kinds(&views, threads_of).into_iter().max().filter(|most| *most > 1)?;
    let told = |(topics, count): (Topics, u32), work: f64| {
        let own: Vec<&View<'_>> = views
            .iter()
            .filter(|view| (view.cell().topics, view.others(), work_ms(view)) == (topics, count, work))
            .collect();
        let ratios = own.iter().filter(|view| threads_of(view) == most).filter_map(|several| {
            let is_other =
                |view: &&&View<'_>| threads_of(view) == 1 && view.cell().middleware == several.cell().middleware;
            Some(several.p50_us()? / own.iter().find(is_other)?.p50_us()?)
        });
        let ratio = median(ratios.filter(|ratio| ratio.is_finite()).collect::<Vec<f64>>())?;
        let doing = if work > 0.0 { format!("{work} ms of work for each sample") } else { "no work".to_owned() };
        Some(format!(
            "with {count} publishers to one node and {doing}, an executor of {most} threads has {} times the median latency of one of a single \
             thread; the median over middleware.",
            rounded(ratio)
        ))
    };
    let to_one = || shapes.iter().copied().filter(|(topics, _)| *topics == Topics::PerPublisher);
    let here: Vec<String> = to_one().flat_map(|shape| work.iter().filter_map(move |work| told(shape, *work))).collect();
    if here.is_empty() {
        return None;
    }
    Some(Section {
        title: "Figure 13: executors of one and of several threads".to_owned(),
        lead: format!(
            "All publishers send 64 KiB at 10 Hz at once. The threads of a node's executor take one sample at a time of each topic, and spend \
             the CPU time of the callback on it; latency ends where the callback begins. The middleware may keep 10 samples of each topic. \
             {} CPUs; not judged, for few runs.",
            part.study.environment.cores
        ),
        seen: seen(
            "the variance of N–1 is much larger, which the paper ascribes to the executor of one thread; executors of several threads are its \
             future work.",
            here,
            None,
        ),
        tables: vec![table(&views)],
        ..Section::default()
    })
}

fn table(views: &[View<'_>]) -> Table {
    let header = ["cell", "threads", "work", "p50", "p99", "mean", "in time"];
    let row = |view: &View<'_>| {
        let name = match view.cell().topics {
            Topics::One => format!("one to {}", view.others()),
            _ => format!("{} to one", view.others()),
        };
        vec![
            format!("{name} {}", view.middleware()),
            threads_of(view).to_string(),
            format!("{} ms", work_ms(view)),
            shown_or_dash(view.p50_us()),
            shown_or_dash(P99.median(view.result)),
            shown_or_dash(view.mean_us()),
            view.in_time(),
        ]
    };
    let caption = "Latency at the beginning of the callback, medians over the runs";
    Table { folded: format!("{} cells", views.len()), ..Table::of(caption, &header, views.iter().map(row)) }
}

fn threads_of(view: &View<'_>) -> u32 {
    view.cell().executor.map_or(1, |executor| executor.threads)
}

fn work_ms(view: &View<'_>) -> f64 {
    view.cell().executor.map_or(0.0, |executor| executor.work.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, check_contains};
    use crate::length::Length;
    use crate::paper4::{MachineSize, Paper4Plan};
    use crate::scenario::{Cell, Scenario};
    use crate::study::RunSummary;
    use crate::trial::{LatencyFigures, Totals};

    /// The part with a median of so many µs for each cell.
    fn part(us: impl Fn(&Cell) -> f64) -> PartResult {
        let machine = MachineSize { cores: 2, memory_bytes: 16 << 30 };
        let plan = Paper4Plan::new((Length::Usual, 5), &machine, &[], &["executors".to_owned()]);
        let scenario = Scenario::parse("x", &plan.parts[0].text).unwrap_or_else(|error| panic!("{error}"));
        let study = fixtures::study(&scenario, 1, |cell, _| {
            let us = us(cell);
            let (p50_us, p99_us) = (Some(us), Some(us));
            let response = LatencyFigures { count: 100, mean_us: us, p50_us, p99_us, ..LatencyFigures::default() };
            let totals = Totals { due: 100, in_time: 100, response, ..Totals::default() };
            RunSummary { totals, cpu: 0.5, ..RunSummary::default() }
        });
        PartResult::of(&plan.parts[0], study)
    }

    #[test]
    fn what_threads_are_worth_is_told_for_each_shape_and_amount_of_work() {
        let us = |cell: &Cell| {
            let executor = cell.executor.expect("an executor");
            let is_worked = !executor.work.is_zero();
            if is_worked && executor.threads > 1 {
                15_000.0
            } else if is_worked {
                30_000.0
            } else {
                1_000.0
            }
        };
        let section = threads(&part(us)).expect("a section");
        let seen = section.seen.join("\n");
        check_contains(
            &seen,
            &[
                "with 31 publishers to one node and 2 ms of work for each sample, an executor of 2 threads has 0.500 times",
                "with 7 publishers to one node and no work, an executor of 2 threads has 1.00 times",
            ],
        );
        // For 7 and for 31: one to many by one thread, many to one by one and by two, each without and with work.
        assert_eq!(section.tables[0].rows.len(), 2 * 6);
    }
}
