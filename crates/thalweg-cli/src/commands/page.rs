//! `thalweg lab page`: a page from the results of an earlier run.

use std::path::PathBuf;

use clap::Args;
use thalweg_lab::pages;

use super::laboratory::{from_lab, not_written};
use super::run::write;
use crate::outcome::Failure;

/// Options of `lab page`.
#[derive(Args, Debug)]
pub struct PageOptions {
    /// The results.json of a preset or of a scenario's run directory.
    #[arg(value_name = "RESULTS")]
    pub results: PathBuf,

    /// Write the page to FILE and its figures beside it (default: the name of the preset or scenario with .md).
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Put the Markdown in FILE, which needs no heading, before the figures (default: nothing).
    #[arg(long, value_name = "FILE")]
    pub findings: Option<PathBuf>,

    /// Name COMMAND as the origin of the results (default: the command in the results).
    #[arg(long, value_name = "COMMAND")]
    pub command: Option<String>,

    /// Write the report to FILE as well; of a scenario `thalweg lab report` draws more (default: none).
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Draws the page of an earlier run.
///
/// # Errors
/// The results cannot be read, or the files cannot be written.
pub fn run(options: &PageOptions) -> Result<(), Failure> {
    let (name, mut page) = pages::load(&options.results).map_err(from_lab)?;
    if let Some(command) = &options.command {
        page.command.clone_from(command);
    }
    let read = |file: &PathBuf| {
        std::fs::read_to_string(file)
            .map_err(|error| Failure::Failed(format!("{} cannot be read: {error}", file.display())))
    };
    let findings = options.findings.as_ref().map(read).transpose()?;
    let out = options.out.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.md")));
    let stem = out.file_stem().map_or(name.clone(), |stem| stem.to_string_lossy().into_owned());
    let document = page.to_markdown(&stem, findings.as_deref());
    if let Some(folder) = out.parent() {
        std::fs::create_dir_all(folder).map_err(|error| not_written(folder, &error))?;
    }
    write(&out, &document.text)?;
    for (name, svg) in &document.figures {
        write(&out.with_file_name(name), svg)?;
    }
    match &options.html {
        Some(path) => write(path, &page.to_html()),
        None => Ok(()),
    }
}
