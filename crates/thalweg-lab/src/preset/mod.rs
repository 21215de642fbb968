//! What the presets have in common whose runs are one record in one file: the study, its results and the frame of its page.

mod presentation;
mod result;
mod study;
mod tables;

use std::fmt::{Debug, Display};
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use presentation::{page, to_text};
pub use result::{ContenderFacts, Missing, PresetResult};
pub(crate) use result::{estimate, find, median_of};
#[cfg(test)]
pub(crate) use study::checks;
pub(crate) use study::{PresetStudy, PresetTurn, run};
pub(crate) use tables::{figure, with_interval};

use crate::error::LabError;
use crate::host::{Conditions, HostEnvironment};
use crate::process::{Launcher, Stop};
use crate::report::{Section, Tile};
use crate::study::{CellResult, Column, StudyCell, StudyRun};

/// A plan of cells that are measured in rounds, with programs of other projects among its contenders.
pub trait PresetPlan: Sized {
    /// A measurement.
    type Cell;
    /// Parts of the page.
    type Part: Copy + PartialEq;
    /// A program of another project.
    type Peer: Copy + Display;

    /// Its name on the command line.
    const NAME: &'static str;
    /// The layout of its results.
    const RESULT_SCHEMA: &'static str;

    /// How long and how often is measured.
    fn terms(&self) -> PresetTerms;

    /// Why the plan cannot be carried out, where that is so.
    fn fault(&self) -> Option<&'static str>;

    /// The same with another order of runs.
    fn with_seed(self, seed: u64) -> Self;

    /// The peers that take part.
    fn peers(&self) -> &[Self::Peer];

    /// The same with these peers alone.
    fn with_peers(self, peers: Vec<Self::Peer>) -> Self;

    /// All cells, in the order of the page.
    fn cells(&self) -> Vec<Self::Cell>;

    /// The part that shows a cell.
    fn part_of(cell: &Self::Cell) -> Self::Part;

    /// How many runs a cell has.
    fn runs_of(&self, cell: &Self::Cell) -> u32;

    /// How long a run of a cell takes, with what it starts.
    fn seconds_of(&self, cell: &Self::Cell) -> f64;

    /// What the paper or the preset has and this plan cannot make here, with the reason.
    fn left_out(&self) -> Vec<String>;

    /// The command that repeats the plan, its order of runs included.
    fn command(&self) -> String;

    /// How long all runs take together.
    fn expected(&self) -> Duration {
        let all = self.cells().iter().map(|cell| f64::from(self.runs_of(cell)) * self.seconds_of(cell)).sum();
        self.terms().budget.unwrap_or(Duration::MAX).min(Duration::from_secs_f64(all))
    }
}

/// How long and how often is measured.
#[derive(Clone, Copy, Debug)]
pub struct PresetTerms {
    /// Seed of the order of runs.
    pub seed: u64,
    /// The most runs of a cell.
    pub runs: u32,
    /// Below 1 where everything is smaller than the preset's.
    pub scale: f64,
    /// Whether the form has no time to repeat disturbed runs.
    pub is_quick: bool,
    /// After so long no further round begins a run; `None` for no limit.
    pub budget: Option<Duration>,
}

/// A plan whose results have a page.
pub(crate) trait PresetPage: PresetPlan<Cell: StudyCell + 'static> {
    type Run: StudyRun;

    const WORDS: PresetWords;
    /// The columns of the table for those who watch.
    const OVERVIEW: &'static [Column<Self::Cell, Self::Run>];
    /// Name and median of each quantity for programs that watch.
    const TOLD: &'static [(&'static str, Figure<Self>)];

    fn conditions(run: &Self::Run) -> &Conditions;
    /// Settings that the system refused in a run.
    fn refused(_run: &Self::Run) -> &[String] {
        &[]
    }

    /// The section of a part that has runs.
    fn section(result: &ResultOf<Self>, part: Self::Part) -> Section;
    /// Sentences on the verdicts.
    fn verdicts(_result: &ResultOf<Self>) -> Vec<String> {
        Vec::new()
    }
    /// The section after the verdicts.
    fn closing(result: &ResultOf<Self>) -> Option<Section>;
    fn tiles(_result: &ResultOf<Self>) -> Vec<Tile> {
        Vec::new()
    }
    /// How the figures were obtained.
    fn method(result: &ResultOf<Self>) -> Vec<String>;
}

/// A plan each run of which leaves one record.
pub(crate) trait Preset: PresetPage + Clone + Debug + PartialEq + Serialize + DeserializeOwned {
    /// What the folder of a run keeps.
    type Record: Serialize + DeserializeOwned;
    /// What the runs need beside the peers.
    type Site;

    /// The schema of the text that says what is measured.
    const TEXT_SCHEMA: &'static str;

    /// Cells of a lower stage have their runs of a round before those of a higher one.
    fn stage(&self, cell: &Self::Cell) -> u64;
    /// What identifies the program of a peer, its `version` among it; or why it does not take part.
    fn facts_of(peer: Self::Peer, launcher: &Launcher) -> Result<Vec<(&'static str, String)>, String>;
    /// Where the program of a peer lies that runs start; `None` for one that the system keeps.
    fn program_of(_peer: Self::Peer, _launcher: &Launcher) -> Option<PathBuf> {
        None
    }
    /// The words for a peer that is not there.
    fn missing(peer: Self::Peer, why: String) -> Missing;

    fn prepare(&self, launcher: &Launcher, stop: &Stop) -> Result<Self::Site, LabError>;
    /// Name and value of what results depend on beside the peers.
    fn dependencies(_site: &Self::Site) -> Vec<(String, String)> {
        Vec::new()
    }
    /// The machines beside this one.
    fn machines(_site: &Self::Site) -> Vec<HostEnvironment> {
        Vec::new()
    }
    /// Whether the site still is what it was.
    fn check_site(_site: &Self::Site) -> Result<(), LabError> {
        Ok(())
    }

    fn make(&self, cell: &Self::Cell, turn: &PresetTurn<'_, Self>) -> Result<Self::Record, LabError>;
    fn cell_of(record: &Self::Record) -> &Self::Cell;
    /// Whether the counts of a record add up.
    fn check(record: &Self::Record) -> Result<(), String>;
    fn figures(record: Self::Record) -> Result<Self::Run, String>;
}

/// Something that a run has a figure of.
pub(crate) type Figure<P> = fn(&<P as PresetPage>::Run) -> Option<f64>;
/// The runs of a cell.
pub(crate) type CellOf<P> = CellResult<<P as PresetPlan>::Cell, <P as PresetPage>::Run>;
/// The results.
pub(crate) type ResultOf<P> = PresetResult<P, <P as PresetPlan>::Cell, <P as PresetPage>::Run>;

/// What the page of a preset says in any case.
pub(crate) struct PresetWords {
    pub(crate) title: &'static str,
    /// Authors, year and what of the paper is measured.
    pub(crate) paper: &'static str,
    /// What a scale below 1 makes smaller.
    pub(crate) scaled: &'static str,
    /// The caption of the comparisons.
    pub(crate) compared: &'static str,
    /// What is no gain where less was done.
    pub(crate) not_better: &'static str,
    /// The heading of programs with their versions.
    pub(crate) programs: &'static str,
    /// What each run has of its own.
    pub(crate) of_its_own: &'static str,
}
