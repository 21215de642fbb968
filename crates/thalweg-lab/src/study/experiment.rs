//! What a study needs of the experiment that it repeats.
//!
//! An experiment is what a file describes: cells, and how one run of a cell is made into a folder and read again. Directories, turns,
//! repetitions of disturbed runs, resumption, verification and verdicts are the study's and the same for all.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::cells::{CellFailure, CellResult};
use super::directory::RunName;
use super::judging::Measure;
use super::manifest::Manifest;
use crate::error::LabError;
use crate::host::HostEnvironment;
use crate::process::{Launcher, Stop};
use crate::scenario::Design;

/// An experiment that a study repeats.
pub(crate) trait Experiment: Sized {
    /// One combination of what it varies.
    type Cell: StudyCell;
    /// What of a run stays in memory.
    type Run: StudyRun;
    /// Where its runs take place, made before the first one.
    type Site;
    /// Its results; `results.json` is this.
    type Result: StudyOutcome;

    /// Reads the text of its file, which is called `file` in errors.
    fn parse(file: &str, text: &str) -> Result<Self, LabError>;

    /// The same with another order of runs.
    fn with_seed(self, seed: u64) -> Self;

    fn name(&self) -> &str;

    fn seed(&self) -> u64;

    /// In the order of the results.
    fn cells(&self) -> &[Self::Cell];

    fn course(&self) -> CoursePlan;

    /// Cells of a lower stage have their runs of a round before those of a higher one, which may need their figures.
    fn stage(&self, _cell: usize) -> u64 {
        0
    }

    /// The cell in whose runs this one is measured: itself, or one before it whose runs measure several cells at once.
    fn leader(&self, cell: usize) -> usize {
        cell
    }

    /// Whether a cell has a run in `round`, from 0.
    fn takes_part(&self, _cell: usize, _round: u32) -> bool {
        true
    }

    /// How long a run of a cell takes.
    fn duration_of(&self, cell: usize) -> Duration;

    /// How well quantities are to be known where the number of runs is open.
    fn precision(&self) -> Vec<(Measure<Self::Run>, f64)> {
        Vec::new()
    }

    /// Makes what the runs need before anything is written: what cannot be had is told at once.
    fn prepare(&self, launcher: &Launcher, stop: &Stop) -> Result<Self::Site, LabError>;

    /// Name and value of what results depend on besides this host, this program and the text.
    fn dependencies(&self, launcher: &Launcher, site: &Self::Site) -> Result<Vec<(String, String)>, LabError>;

    /// Names of the programs on this machine that runs start beside the lab's own, as in the dependencies, and where they lie.
    fn programs(&self, _launcher: &Launcher, _site: &Self::Site) -> Vec<(String, PathBuf)> {
        Vec::new()
    }

    /// The machines beside this one.
    fn machines(&self, _site: &Self::Site) -> Vec<HostEnvironment> {
        Vec::new()
    }

    /// Makes one run and leaves everything that is known of it in `folder`.
    fn make(&self, turn: &StudyTurn<'_, Self>, folder: &Path) -> Result<(), LabError>;

    /// Whether the other cells are measured after `cell` failed with `error`; `has_failed` tells which ones failed before.
    fn goes_on_after(&self, cell: usize, error: &LabError, has_failed: &dyn Fn(usize) -> bool) -> bool;

    /// Whether the site still is what it was.
    fn check_site(&self, _site: &Self::Site) -> Result<(), LabError> {
        Ok(())
    }

    /// Reads a whole run: what it says of each cell that was measured in it.
    fn load(&self, folder: &Path, name: RunName) -> Result<Vec<(usize, Self::Run)>, LabError>;

    /// Computes a whole run of a cell again from its raw data; the text says in what its result differs.
    fn check(&self, folder: &Path, cell: usize) -> Result<(), String>;

    /// Puts all runs together.
    fn conclude(&self, record: &StudyRecord<'_, Self>) -> Result<Self::Result, LabError>;

    /// The cells of its results.
    fn cells_of(result: &Self::Result) -> &[StudyCells<Self>];

    /// Name and text of the files that show the results of `directory`, the report among them.
    fn files(&self, directory: &Path, result: &Self::Result) -> Result<Vec<(&'static str, String)>, LabError>;

    /// Each cell, from the runs that are whole, for those who watch.
    fn overview(cells: &[StudyCells<Self>]) -> Result<Told, LabError>;

    /// What a run that is being made in `folder` shows so far.
    fn so_far(&self, _cell: usize, _folder: &Path) -> Told {
        Told::default()
    }
}

/// The runs of a cell of an experiment.
pub(crate) type StudyCells<E> = CellResult<<E as Experiment>::Cell, <E as Experiment>::Run>;

/// A cell as a study sees it; its text is its name.
pub(crate) trait StudyCell:
    Clone + fmt::Debug + fmt::Display + PartialEq + Serialize + DeserializeOwned
{
    /// What the results of `cell` are compared with.
    fn baseline<'a, R>(cells: &'a [CellResult<Self, R>], cell: &CellResult<Self, R>)
    -> Option<&'a CellResult<Self, R>>;
}

/// A run as a study sees it.
pub(crate) trait StudyRun: Clone + fmt::Debug + PartialEq + Serialize + DeserializeOwned + 'static {
    /// The quantities in which cells are compared, in the order of the tables.
    const MEASURES: &'static [Measure<Self>];

    /// The share of what was asked for that was done; a cell that does less than its baseline is better in nothing else.
    const DONE: Measure<Self>;

    /// Its round, from 0.
    fn round(&self) -> u32;

    /// Whether the machine was not quiet.
    fn is_disturbed(&self) -> bool;

    /// Whether its figures are those of the measuring program, which could do no more.
    fn is_limited(&self) -> bool {
        false
    }
}

/// The results of a study.
pub(crate) trait StudyOutcome: Serialize + DeserializeOwned {
    /// Tables and sentences for a terminal.
    fn to_text(&self) -> String;

    /// Why the results are not what was asked for, where that is so.
    fn shortcoming(&self) -> Option<String>;
}

/// The same for people and for programs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) text: String,
    pub(crate) json: serde_json::Value,
}

/// Numbers and order of the runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CoursePlan {
    /// Rounds in any case, and at most.
    pub(crate) rounds: (u32, u32),
    pub(crate) design: Design,
    /// Attempts at a run that is disturbed; the last one counts.
    pub(crate) attempts_max: u32,
    /// Time from each start after which no run begins but those of the first round.
    pub(crate) budget: Option<Duration>,
}

/// A run that is to be made.
pub(crate) struct StudyTurn<'a, E: Experiment> {
    pub(crate) launcher: &'a Launcher,
    pub(crate) stop: &'a Stop,
    pub(crate) site: &'a E::Site,
    /// Its round, from 0, and its cell.
    pub(crate) round: u32,
    pub(crate) cell: usize,
    /// What decides chance within the run; the cells of a round meet the same.
    pub(crate) chance: u64,
    /// All cells with their runs so far.
    pub(crate) so_far: &'a [StudyCells<E>],
}

/// What a directory holds when all runs are there.
pub(crate) struct StudyRecord<'a, E: Experiment> {
    pub(crate) directory: &'a Path,
    pub(crate) manifest: &'a Manifest,
    /// All cells with all runs, those that failed later too.
    pub(crate) cells: &'a [StudyCells<E>],
    pub(crate) failures: &'a [CellFailure],
}
