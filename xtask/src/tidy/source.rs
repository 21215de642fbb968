//! Rust sources: unsafe code, length of files, words that must not be there.

use super::{File, Findings};

/// Folders that may contain unsafe code. All others forbid it.
const UNSAFE_ALLOWED: [&str; 2] = ["crates/thalweg-transport/src/sys/", "crates/thalweg-testing/src/allocations.rs"];

/// A production file longer than this deserves a split by responsibility.
const LINES_WARN: usize = 500;

/// A production file longer than this is refused.
const LINES_MAX: usize = 1000;

pub fn check(files: &[File], findings: &mut Findings) {
    for file in files.iter().filter(|file| file.is_production()) {
        check_length(file, findings);
        check_unsafe(file, findings);
        check_words(file, findings);
    }
    for crate_root in files.iter().filter(|file| is_crate_root(&file.path)) {
        let holds_unsafe = UNSAFE_ALLOWED.iter().any(|place| place.starts_with(crate_folder(&crate_root.path)));
        if !holds_unsafe && !crate_root.text.contains("#![forbid(unsafe_code)]") {
            findings.error(&crate_root.path, "lacks #![forbid(unsafe_code)]");
        }
    }
    check_fuzz_targets(files, findings);
}

fn is_crate_root(path: &str) -> bool {
    path.starts_with("crates/") && (path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs"))
}

fn crate_folder(path: &str) -> &str {
    path.split("src/").next().unwrap_or(path)
}

fn check_length(file: &File, findings: &mut Findings) {
    let lines = file.production_lines().count();
    if lines > LINES_MAX {
        findings.error(&file.path, format!("{lines} lines; the limit is {LINES_MAX}"));
    } else if lines > LINES_WARN {
        findings.warning(&file.path, format!("{lines} lines; split it by responsibility above {LINES_WARN}"));
    }
}

fn check_unsafe(file: &File, findings: &mut Findings) {
    let allowed = UNSAFE_ALLOWED.iter().any(|place| file.path.starts_with(place));
    let mut explained = false;
    for (number, line) in file.production_lines() {
        let code = line.split("//").next().unwrap_or_default();
        let is_unsafe =
            ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"].iter().any(|word| code.contains(word));
        if is_unsafe && !allowed && !line.contains('"') {
            findings.error(format!("{}:{number}", file.path), "unsafe code is not allowed here");
        } else if is_unsafe && allowed && !explained && !code.contains("unsafe fn") && !code.contains("unsafe extern") {
            findings.error(format!("{}:{number}", file.path), "unsafe without a SAFETY line above it");
        }
        // The explanation may be several lines long, and the statement may start above the block.
        explained = line.contains("SAFETY:") || (explained && !line.trim().is_empty() && !is_unsafe);
    }
}

fn check_words(file: &File, findings: &mut Findings) {
    let words = [concat!("#[", "allow("), concat!("dbg", "!("), concat!("todo", "!("), concat!("unimplemented", "!(")];
    for (number, line) in file.production_lines() {
        for word in words.iter().filter(|word| line.contains(**word)) {
            findings.error(format!("{}:{number}", file.path), format!("{word}…) has no place in production code"));
        }
        if line.contains("TODO") && !line.contains("TODO(when") && !file.path.starts_with("xtask/") {
            findings.error(format!("{}:{number}", file.path), "a TODO names its condition: TODO(when …)");
        }
    }
}

/// Each file in `fuzz/fuzz_targets` is a program of `fuzz/Cargo.toml`; otherwise it would never run.
fn check_fuzz_targets(files: &[File], findings: &mut Findings) {
    let manifest = files.iter().find(|file| file.path == "fuzz/Cargo.toml").map_or("", |file| file.text.as_str());
    for file in files.iter().filter(|file| file.path.starts_with("fuzz/fuzz_targets/") && file.is("rs")) {
        let path = file.path.trim_start_matches("fuzz/");
        // A module that targets share declares no target.
        if file.text.contains("fuzz_target!") && !manifest.contains(&format!("path = \"{path}\"")) {
            findings.error(&file.path, "is not listed in fuzz/Cargo.toml");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(path: &str, text: &str) -> Vec<String> {
        let mut findings = Findings::default();
        check(&[File { path: path.to_owned(), text: text.to_owned() }], &mut findings);
        findings.errors
    }

    #[test]
    fn unsafe_stays_in_its_place_and_is_explained() {
        let block = concat!("// SAFETY: checked.\nlet x = ", "unsafe", " { f() };\n");
        assert_eq!(errors("crates/thalweg-rtps/src/x.rs", block).len(), 1);
        assert_eq!(errors("crates/thalweg-transport/src/sys/x.rs", block).len(), 0);
        let bare = concat!("let x = ", "unsafe", " { f() };\n");
        assert_eq!(errors("crates/thalweg-transport/src/sys/x.rs", bare).len(), 1);
    }

    #[test]
    fn a_crate_forbids_unsafe_code() {
        assert_eq!(errors("crates/thalweg-cdr/src/lib.rs", "//! Doc.\n").len(), 1);
        assert_eq!(errors("crates/thalweg-cdr/src/lib.rs", "#![forbid(unsafe_code)]\n").len(), 0);
        assert_eq!(errors("crates/thalweg-transport/src/lib.rs", "//! Doc.\n").len(), 0);
    }

    #[test]
    fn a_file_is_not_endless() {
        assert_eq!(errors("crates/thalweg-cdr/src/x.rs", &"\n".repeat(LINES_MAX + 1)).len(), 1);
    }
}
