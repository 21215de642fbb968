//! Where the raw data lie, as links to the files beside the page.

use super::source::Source;
use crate::report::{PageLink, Section};

pub(super) fn section(source: &Source<'_>) -> Section {
    let link = |text: &str, path: String| PageLink { text: text.to_owned(), path };
    let whole = ["results.json", "results.csv", "scenario.toml", "manifest.json", "events.jsonl"];
    let mut files = vec![("all".to_owned(), whole.map(|name| link(name, name.to_owned())).to_vec())];
    for (index, cell) in source.result.places().zip(&source.result.cells) {
        let leader = source.scenario.leader_of(index);
        let own = source.names.iter().filter(|name| name.cell as usize == leader).take(LINKS_MAX);
        let links = own.map(|name| link(&(name.round + 1).to_string(), name.path())).collect();
        files.push((cell.name.clone(), links));
    }
    Section {
        title: "Raw data".to_owned(),
        lead: "Each number is the folder of a run: result.json, histograms.csv, and every sample in publisher-*.csv and subscriber-*.csv. \
               `thalweg lab verify` computes everything again from them, `thalweg lab report` draws this page again."
            .to_owned(),
        files,
        ..Section::default()
    }
}

/// Runs of a cell that have a link; the folder holds all.
const LINKS_MAX: usize = 30;
