//! The searches: all trials, and the best settings.

use super::super::result::Paper1Result;
use super::super::search::Search;
use super::ms;
use crate::figures::percent;
use crate::report::Section;
use crate::table::Table;

/// One table for each search.
pub(super) fn section(result: &Paper1Result) -> Section {
    let best = |search: &Search| format!("{}: {}.", search.subject, search.best.to_text());
    Section {
        title: "The search before the measurement".to_owned(),
        lead: "As in the paper, each method's parameters were tried until the best was found: one parameter after the other over a grid, \
               the candidates in turns, then values between the best and its neighbours. The first value of a grid, the default, stays unless \
               another is faster by more than 2 % and by more than twice the standard error of their difference."
            .to_owned(),
        seen: result.searches.iter().map(best).collect(),
        tables: result.searches.iter().filter(|search| !search.trials.is_empty()).map(table).collect(),
        ..Section::default()
    }
}

fn table(search: &Search) -> Table {
    let mut out = Table::new(
        format!("{} ({})", search.subject, search.objective),
        &["tried", "varied", "pass", "ms", "± standard error"],
    );
    for trial in &search.trials {
        let mark = if trial.settings == search.best { " ← best" } else { "" };
        out.rows.push(vec![
            format!("{}{mark}", trial.settings.to_text()),
            trial.parameter.text().to_owned(),
            trial.pass.clone(),
            ms(trial.measured.map(|measured| measured.ms)),
            trial.measured.map_or_else(|| "–".to_owned(), |measured| percent(measured.error)),
        ]);
    }
    out
}
