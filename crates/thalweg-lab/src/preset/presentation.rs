//! The result as text for the terminal and as a page: the same sections in both.

use std::time::Duration;

use super::{PresetPage, ResultOf};
use crate::circumstances;
use crate::figures::{duration, utc};
use crate::host::Conditions;
use crate::report::{Page, Section};
use crate::study::{StudyRun, comparison_cards, differences_tables, distinct, failures_table};
use crate::table::Table;

/// Tables and sentences for the terminal.
pub(crate) fn to_text<P: PresetPage>(result: &ResultOf<P>) -> String {
    let (sections, warnings, conditions) =
        (measured(result), warnings(result), circumstances::sentences(&result.conditions));
    let cards = comparison_cards(&result.differences);
    Page { cards, sections, warnings, conditions, ..Page::default() }.to_text()
}

/// The report.
pub(crate) fn page<P: PresetPage>(result: &ResultOf<P>) -> Page {
    let mut sections = measured(result);
    sections.push(participants(result));
    Page {
        title: P::WORDS.title.to_owned(),
        subtitle: format!(
            "{} · {} · {}",
            utc(result.started_unix_s),
            duration(Duration::from_secs_f64(result.conditions.seconds)),
            P::WORDS.paper
        ),
        cards: comparison_cards(&result.differences),
        tiles: P::tiles(result),
        warnings: warnings(result),
        sections,
        facts: circumstances::facts(&result.environment),
        conditions: conditions(result),
        method: P::method(result),
        command: result.plan.command(),
    }
}

fn measured<P: PresetPage>(result: &ResultOf<P>) -> Vec<Section> {
    let shown = result.cells.iter().filter(|cell| !cell.runs.is_empty());
    let parts = distinct(shown.map(|cell| P::part_of(&cell.cell)));
    let mut out: Vec<Section> = parts.into_iter().map(|part| P::section(result, part)).collect();
    let tables = differences_tables(P::WORDS.compared, &result.differences);
    out.extend((!tables.is_empty()).then(|| Section {
        title: "Verdicts".to_owned(),
        lead: format!(
            "Sign tests on the ratios of runs of the same round, corrected for the number of comparisons in one quantity. {} is better in \
             nothing else.",
            P::WORDS.not_better
        ),
        seen: P::verdicts(result),
        tables,
        ..Section::default()
    }));
    out.extend(P::closing(result));
    out
}

/// Contenders, failures and missing parts.
fn participants<P: PresetPage>(result: &ResultOf<P>) -> Section {
    let contenders = result.contenders.iter().map(|one| vec![one.name.clone(), one.version.clone()]);
    let there = Table { words: vec![1], ..Table::of(P::WORDS.programs, &["", "version"], contenders) };
    let missing = result.missing.iter().map(|one| vec![one.what.clone(), one.why.clone(), one.remedy.clone()]);
    let missing = Table::of("Not measured", &["", "why", "what would help"], missing);
    let failed = failures_table("Cells that failed", &result.failures);
    Section {
        title: "Contenders".to_owned(),
        lead: P::WORDS.of_its_own.to_owned(),
        tables: [there, missing, failed].into_iter().filter(|table| !table.rows.is_empty()).collect(),
        ..Section::default()
    }
}

fn warnings<P: PresetPage>(result: &ResultOf<P>) -> Vec<String> {
    let mut out = circumstances::warnings(&result.environment, &result.conditions);
    let scale = result.plan.terms().scale;
    if scale < 1.0 {
        out.push(format!(
            "{} and times are {scale} of the preset's: this shows that the preset works, and no more.",
            P::WORDS.scaled
        ));
    }
    out.extend(result.missing.iter().map(|one| format!("Missing: {}: {}; {}.", one.what, one.why, one.remedy)));
    out.extend(result.left_out.iter().map(|text| format!("Left out: {text}.")));
    let mut refused: Vec<&String> = result.runs().flat_map(P::refused).collect();
    refused.sort();
    refused.dedup();
    out.extend(refused.into_iter().map(|text| format!("Refused by the system: {text}.")));
    out.extend(result.failures.iter().map(|failure| format!("Failed: {failure}")));
    out
}

fn conditions<P: PresetPage>(result: &ResultOf<P>) -> Vec<String> {
    let disturbed = result.runs().filter(|run| run.is_disturbed()).count();
    let mut out = circumstances::sentences(&result.conditions);
    out.push(format!(
        "During {disturbed} of {} runs other programs and a hypervisor together took more than {} % of the processor time.",
        result.runs().count(),
        100.0 * Conditions::OTHERS_MAX
    ));
    out
}
