//! Figure 13 with executors of one and of several threads, and work in the callback.

use super::{View, kinds, seen, shown_or_dash};
use crate::figures::{percent, rounded};
use crate::parts::PartResult;
use crate::report::Section;
use crate::scenario::Topics;
use crate::statistics::median;
use crate::study::P99;
use crate::table::Table;

/// What threads and work do to the latency at the callback.
pub(super) fn threads(part: &PartResult) -> Option<Section> {
    let views = View::all(part);
    let shapes = kinds(&views, |view| (view.cell().topics, others(view)));
    let work = kinds(&views, work_ms);
    let most = kinds(&views, threads_of).into_iter().max().filter(|most| *most > 1)?;
    let told = |(topics, count): (Topics, u32), work: f64| {
        let own: Vec<&View<'_>> = views
            .iter()
            .filter(|view| (view.cell().topics, others(view), work_ms(view)) == (topics, count, work))
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
    let mut table = Table::new("Latency at the beginning of the callback, medians over the runs", &header);
    for view in views {
        let (mut due, mut in_time) = (0, 0);
        for run in &view.result.runs {
            due += run.totals.due;
            in_time += run.totals.in_time;
        }
        let name = match view.cell().topics {
            Topics::One => format!("one to {}", others(view)),
            _ => format!("{} to one", others(view)),
        };
        table.rows.push(vec![
            format!("{name} {}", view.middleware()),
            threads_of(view).to_string(),
            format!("{} ms", work_ms(view)),
            shown_or_dash(view.p50_us()),
            shown_or_dash(P99.median(view.result)),
            shown_or_dash(view.mean_us()),
            percent(in_time as f64 / due.max(1) as f64),
        ]);
    }
    table.folded = format!("{} cells", views.len());
    table
}

fn others(view: &View<'_>) -> u32 {
    view.cell().publishers.max(view.cell().subscribers)
}

fn threads_of(view: &View<'_>) -> u32 {
    view.cell().executor.map_or(1, |executor| executor.threads)
}

fn work_ms(view: &View<'_>) -> f64 {
    view.cell().executor.map_or(0.0, |executor| executor.work.as_secs_f64() * 1e3)
}
