//! `cargo xtask tidy`: checks beyond those of the compiler.

mod items;
mod layers;
mod names;
mod source;
mod texts;

use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::workspace::{output, root};

/// The findings of the checks.
#[derive(Default)]
pub struct Findings {
    errors: Vec<String>,
    warnings: Vec<String>,
}

impl Findings {
    fn error(&mut self, place: impl std::fmt::Display, what: impl std::fmt::Display) {
        self.errors.push(format!("{place}: {what}"));
    }

    fn warning(&mut self, place: impl std::fmt::Display, what: impl std::fmt::Display) {
        self.warnings.push(format!("{place}: {what}"));
    }
}

/// A text file of the repository.
pub struct File {
    /// Relative to the repository, with `/` between the parts.
    pub path: String,
    pub text: String,
}

impl File {
    fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    /// Rust that is built into a product: no tests, benches, examples, fuzz targets or peers.
    fn is_production(&self) -> bool {
        self.is("rs")
            && (self.path.starts_with("crates/") || self.path.starts_with("xtask/"))
            && !["/tests/", "/benches/", "/examples/"].iter().any(|folder| self.path.contains(folder))
            && !self.path.ends_with("tests.rs")
    }

    /// The lines before the unit tests at the end of the file.
    fn production_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        // Other items may be for tests as well: `mod tests;` at the head of a file ends nothing.
        let end = self.text.find("#[cfg(test)]\nmod tests {").unwrap_or(self.text.len());
        self.text[..end].lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// Runs every check; an error lists the required changes.
pub fn run() -> Outcome {
    let files = files()?;
    let mut findings = Findings::default();
    items::check(&files, &mut findings);
    layers::check_crates(&files, &mut findings);
    layers::check_modules(&files, &mut findings);
    layers::check_middleware(&files, &mut findings);
    names::check(&files, &mut findings);
    source::check(&files, &mut findings);
    texts::check(&files, &root(), &mut findings);
    for warning in &findings.warnings {
        println!("warning: {warning}");
    }
    for error in &findings.errors {
        println!("error: {error}");
    }
    println!("tidy: {} files, {} errors, {} warnings", files.len(), findings.errors.len(), findings.warnings.len());
    if findings.errors.is_empty() { Ok(()) } else { Err("the repository is not tidy".to_owned()) }
}

/// The text files that git knows or would add.
fn files() -> Outcome<Vec<File>> {
    let root = root();
    let mut git = std::process::Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(&root);
    let list = output(&mut git)?;
    let read = |path: &str| {
        let text = std::fs::read_to_string::<PathBuf>(root.join(path)).ok()?;
        Some(File { path: path.to_owned(), text })
    };
    Ok(list.lines().filter_map(read).collect())
}
