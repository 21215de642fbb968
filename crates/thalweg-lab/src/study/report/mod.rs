//! The report of a study, section by section.

mod against;
pub(super) mod cells;
mod closed_loop;
mod drops;
mod fairness;
pub(super) mod fates;
mod latency;
mod quiet;
mod raw;
mod source;
mod verdicts;
mod waterfall;

pub(crate) use verdicts::comparison_cards;

use std::path::{Path, PathBuf};

pub(crate) use self::source::CellData;
use self::source::Source;
use super::cells::CellResult;
use super::course::collect;
use super::directory::{Directory, RESULTS, load_experiment, load_manifest};
use super::error::StudyError;
use super::experiment::Experiment;
use super::manifest::State;
use super::results::{RunSummary, StudyResult};
use crate::circumstances;
use crate::error::LabError;
use crate::figures::{rounded, utc};
use crate::host::HostEnvironment;
use crate::report::{Page, Section};
use crate::scenario::flows_in;
use crate::study::clocks;

/// The sections of a report, those left out that have nothing to show: a closed loop has no samples that were due.
fn sections(source: &Source<'_>) -> Vec<Section> {
    let is_closed_loop = source.result.is_closed_loop();
    let of_schedule = |draw: &dyn Fn() -> Option<Section>| if is_closed_loop { None } else { draw() };
    let all = [
        verdicts::section(source.result),
        is_closed_loop.then(|| closed_loop::section(source)),
        of_schedule(&|| Some(fates::section(source.result))),
        of_schedule(&|| Some(latency::percentiles(source))),
        of_schedule(&|| Some(latency::distribution(source))),
        of_schedule(&|| against::load(source)),
        of_schedule(&|| against::endpoints(source)),
        of_schedule(&|| waterfall::section(source)),
        of_schedule(&|| latency::course(source)),
        of_schedule(&|| fairness::section(source)),
        Some(drops::section(source)),
        Some(quiet::section(source)),
        Some(raw::section(source)),
    ];
    all.into_iter().flatten().collect()
}

/// Each thing once, in the order in which they come first.
pub(crate) fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut out = Vec::new();
    all.for_each(|one| {
        if !out.contains(&one) {
            out.push(one);
        }
    });
    out
}

/// Writes the results and the report of a complete directory again from its raw data, and says where the report is.
///
/// # Errors
/// The directory is none or not complete, raw data are missing or damaged, or one of them cannot be written.
pub(crate) fn rewrite<E: Experiment>(path: &Path) -> Result<PathBuf, LabError> {
    let directory = Directory::open(path)?;
    let manifest = load_manifest(path)?;
    if manifest.state != State::Complete {
        return Err(StudyError::Incomplete { directory: path.to_owned(), state: manifest.state }.into());
    }
    let (experiment, _) = load_experiment::<E>(path, manifest.seed)?;
    let result = collect(path, &experiment, &manifest)?;
    for (name, text) in experiment.files(path, &result)? {
        directory.write(name, &text)?;
    }
    directory.write(RESULTS, &serde_json::to_string_pretty(&result).map_err(LabError::here)?)?;
    Ok(path.join(REPORT))
}

/// What the runs of each cell of the study in `directory` hold.
pub(crate) fn raw(directory: &Path, result: &StudyResult) -> Result<Vec<CellData>, LabError> {
    Source::read(directory, result).map(|source| source.cells)
}

/// The page of a study whose runs lie in `directory`.
pub(super) fn to_html(directory: &Path, result: &StudyResult) -> Result<String, LabError> {
    let source = Source::read(directory, result)?;
    Ok(drawn(&source).to_html())
}

fn drawn(source: &Source<'_>) -> Page {
    let result = source.result;
    let failures = result.failures.iter().map(|failure| format!("No result: {failure}"));
    let shell = shell(result);
    Page {
        cards: verdicts::cards(result),
        warnings: shell.warnings.into_iter().chain(failures).collect(),
        sections: sections(source),
        method: shell.method.into_iter().chain([thinning(source)]).chain(result.notes.clone()).collect(),
        ..shell
    }
}

/// The tables of a report, which need the results only and no raw data.
pub fn page(result: &StudyResult) -> Page {
    let shell = shell(result);
    let disturbances = disturbances([result].into_iter());
    let sections = [cells::failures(result), cells::notes(result)];
    Page {
        cards: verdicts::cards(result),
        warnings: disturbances.into_iter().chain(shell.warnings).collect(),
        sections: [cells::section(result)].into_iter().chain(sections.into_iter().flatten()).collect(),
        ..shell
    }
}

/// Warnings of a debug build, and of a machine that was not quiet.
pub(crate) fn disturbances<'a>(studies: impl Iterator<Item = &'a StudyResult> + Clone) -> Vec<String> {
    let all = studies.clone().flat_map(StudyResult::runs_made).count();
    let disturbed: usize = studies.clone().map(StudyResult::contaminated).sum();
    let debug = studies.clone().any(|study| study.environment.build == "debug");
    let debug = debug.then(|| "This is a debug build, several times slower than a release build.".to_owned());
    let quiet = (disturbed > 0).then(|| {
        format!(
            "In {disturbed} of {all} runs the machine was not quiet in any attempt: they count in no comparison, and maxima are not the middleware's."
        )
    });
    debug.into_iter().chain(quiet).collect()
}

/// Everything of a page but its sections.
fn shell(result: &StudyResult) -> Page {
    let mut facts = circumstances::facts(&result.environment);
    facts.extend(clocks::fact(result).map(|fact| ("clocks", fact)));
    facts.extend(result.hosts.iter().map(machine));
    facts.push(("fingerprint", format!("{:.16}", result.fingerprint)));
    Page {
        title: result.name.clone(),
        subtitle: format!(
            "{} · {} cells · {} runs · seed {} · fingerprint {:.12}",
            utc(result.started_unix_s),
            result.cells.len(),
            result.runs_made().count(),
            result.seed,
            result.fingerprint
        ),
        tiles: verdicts::tiles(result),
        warnings: clocks::remarks(result),
        facts,
        conditions: conditions(result),
        method: method(result),
        command: format!("thalweg lab run scenario.toml --seed {}", result.seed),
        ..Page::default()
    }
}

fn method(result: &StudyResult) -> Vec<String> {
    let procedure = if result.is_closed_loop() { CLOSED_LOOP } else { OPEN_SCHEDULE };
    [procedure].into_iter().chain(METHOD).map(str::to_owned).collect()
}

/// A machine beside the controller's in one line.
fn machine(host: &HostEnvironment) -> (&'static str, String) {
    let facts = circumstances::facts(&host.environment);
    let fact = |(name, value): (&str, String)| format!("{name} {value}");
    ("agent", format!("{}: {}", host.name, facts.into_iter().map(fact).collect::<Vec<_>>().join(", ")))
}

fn runs(result: &StudyResult) -> impl Iterator<Item = &RunSummary> {
    result.cells.iter().flat_map(|cell| &cell.runs)
}

fn conditions(result: &StudyResult) -> Vec<String> {
    let repeated = result.runs_made().filter(|run| run.attempts > 1).count();
    let cpu = cpu_most(result);
    let unsettled = runs(result).map(|run| run.unsettled_s).fold(0.0, f64::max);
    vec![
        format!(
            "At most {} s of a run were dropped because latencies had not settled after the warm-up.",
            rounded(unsettled)
        ),
        format!(
            "{repeated} runs were repeated because the machine was not quiet; {} stayed disturbed.",
            result.contaminated()
        ),
        format!("The run with the most work used {} CPUs for its own processes.", rounded(cpu)),
    ]
}

/// The most CPU time by time of a run, all its flows together.
fn cpu_most(result: &StudyResult) -> f64 {
    let flows = flows_in(result.cells.iter().map(|cell| &cell.cell));
    let of_run = |cells: &[CellResult], round| -> f64 {
        cells.iter().filter_map(|cell| cell.run_of(round)).map(|run| run.cpu).sum()
    };
    let of_cells = |cells: &[CellResult]| cells[0].runs.iter().map(|run| of_run(cells, run.round)).fold(0.0, f64::max);
    result.cells.chunks(flows).map(of_cells).fold(0.0, f64::max)
}

/// The omissions of the page, in a sentence.
fn thinning(source: &Source<'_>) -> String {
    let detail = source.detail;
    format!(
        "So that this page stays small, the distributions of the first {} cells are drawn at {} points each and the course of a measurement at {} at most, for the {} cells \
         whose latency varies most; neighbouring seconds are joined; layers are drawn for the first {} cells. Tables and quantiles come from \
         all samples.",
        detail.distributions, detail.curve_points, detail.course_points, detail.courses, detail.waterfalls
    )
}

/// Name of the file.
pub(super) const REPORT: &str = "report.html";
const CLOSED_LOOP: &str = "The loop is closed: publishers write as fast as the middleware lets them, so that a slow middleware is asked for less; publisher 0 waits for \
     the answer to one sample in so many, and nothing is known of the latency of the others.";
const OPEN_SCHEDULE: &str = "The schedule is open: each sample is due at t0 + k/f, even if those before it were late, and its response latency counts from then.";
const METHOD: [&str; 7] = [
    "Every publisher encodes and every subscriber decodes each sample; Zenoh, iceoryx2 and plain sockets have no types and hand over octets.",
    "The run is the unit: intervals come from runs, not from samples, which resemble their neighbours.",
    "Cells take turns in blocks of two rounds, the second in the reverse order of the first, unless the scenario says otherwise.",
    "A quantile is shown only where ten samples lie beyond it.",
    "A sample that never arrived counts as infinitely late in every quantile.",
    "Intervals are exact ones of the median over the runs, from eight runs on; verdicts are sign tests with Holm's correction for the number of cells.",
    "A run during which other programs used more of the machine than the scenario allows is repeated at the end of its round; if no attempt is quiet its round counts in no comparison.",
];

#[cfg(test)]
mod tests;
