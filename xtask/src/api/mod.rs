//! The public API of `thalweg` as a text in the repository, so that each change of it is seen and meant.
//!
//! The text has what the crate itself defines, every item of our other crates that it exports, and every further one that signatures
//! lead to: users depend on all of it.

mod difference;
mod listing;
mod surface;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use crate::Outcome;
use crate::workspace::{cargo, root, run as run_command, target};
use listing::ApiListing;

/// The crate that users depend on, and those whose items it exports.
const CRATES: [&str; 7] =
    ["thalweg", "thalweg-base", "thalweg-cdr", "thalweg-derive", "thalweg-rtps", "thalweg-transport", "thalweg-types"];
const RECORD: &str = "docs/api/thalweg.txt";
/// Lines of a difference that are printed.
const LINES_MAX: usize = 200;

/// Compares the public API with the recorded one, or records it.
pub fn run(arguments: &[String]) -> Outcome {
    let writes = match arguments {
        [] => false,
        [option] if option == "--write" => true,
        _ => return Err("usage: cargo xtask api [--write]".to_owned()),
    };
    let listings =
        CRATES.iter().map(|name| ApiListing::read(&document(name)?)).collect::<Outcome<Vec<ApiListing>>>()?;
    let now = surface::render("thalweg", &listings);
    let path = root().join(RECORD);
    if writes {
        let folder = path.parent().ok_or("the record has no folder")?;
        return std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, &now))
            .map_err(|error| format!("{}: {error}", path.display()));
    }
    let recorded = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let changes = difference::between(&recorded, &now);
    if changes.is_empty() {
        println!("api: {} lines, as recorded", now.lines().count());
        return Ok(());
    }
    changes.iter().take(LINES_MAX).for_each(|change| println!("{change}"));
    if let Some(more) = changes.len().checked_sub(LINES_MAX).filter(|more| *more > 0) {
        println!("… and {more} more lines");
    }
    Err(format!(
        "the public API is not the one of {RECORD}: if that is meant, run `cargo xtask api --write` and tell users in CHANGELOG.md"
    ))
}

/// Has rustdoc describe a crate; returns the file.
fn document(package: &str) -> Outcome<PathBuf> {
    // A folder of its own: build scripts look at RUSTC_BOOTSTRAP, and would have everything else built anew.
    let folder = target().join("api");
    let mut command = cargo(&["rustdoc", "--quiet", "--package", package, "--lib", "--target-dir"]);
    command
        .arg(&folder)
        .args(["--", "-Z", "unstable-options", "--output-format", "json", "--cap-lints", "allow"])
        // The format is no stable one yet; the toolchain is pinned.
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove("RUSTDOCFLAGS");
    run_command(&mut command)?;
    Ok(folder.join("doc").join(format!("{}.json", package.replace('-', "_"))))
}
