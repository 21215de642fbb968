//! All text files: no paths of the machine they were written on, and no broken links.

use std::path::Path;

use super::{File, Findings};

/// Places that exist on one machine only, and registry hosts, which a mirror may replace. Written in two halves so
/// that this file does not contain them.
const PRIVATE: [&str; 9] = [
    concat!("/work", "/main"),
    concat!("/work", "/shared"),
    concat!("/work", "/tmp"),
    concat!("../", "shared/"),
    concat!("/home", "/"),
    concat!("index.", "crates.io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("deb.", "debian.org"),
];

pub fn check(files: &[File], root: &Path, findings: &mut Findings) {
    for file in files.iter().filter(|file| !file.path.ends_with("Cargo.lock")) {
        for (index, line) in file.text.lines().enumerate() {
            for private in PRIVATE.iter().filter(|private| line.contains(**private)) {
                findings.error(format!("{}:{}", file.path, index + 1), format!("{private} exists elsewhere only"));
            }
        }
        if file.is("md") {
            check_links(file, files, root, findings);
        }
    }
}

/// Relative links `[text](path)` and the source files that a document names in backticks.
fn check_links(file: &File, files: &[File], root: &Path, findings: &mut Findings) {
    let folder = root.join(&file.path).parent().map(Path::to_path_buf).unwrap_or_default();
    for (index, line) in file.text.lines().enumerate() {
        let place = format!("{}:{}", file.path, index + 1);
        for target in line.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next()) {
            let is_relative = !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:");
            if is_relative && !folder.join(target).exists() {
                findings.error(&place, format!("links to {target}, which is not there"));
            }
        }
        for name in line.split('`').skip(1).step_by(2).filter(|name| is_source_path(name)) {
            let ending = format!("/{name}");
            let known = files.iter().any(|other| other.path == *name || other.path.ends_with(&ending));
            let found = known || root.join(name).exists() || folder.join(name).exists();
            if !found {
                findings.error(&place, format!("names {name}, which is not there"));
            }
        }
    }
}

fn is_source_path(name: &str) -> bool {
    let plain = name.chars().all(|character| character.is_alphanumeric() || "/._-".contains(character));
    plain && name.contains('/') && (name.ends_with(".rs") || name.ends_with(".md") || name.ends_with(".py"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(path: &str, text: &str) -> usize {
        let mut findings = Findings::default();
        let root = crate::workspace::root();
        check(&[File { path: path.to_owned(), text: text.to_owned() }], &root, &mut findings);
        findings.errors.len()
    }

    #[test]
    fn a_document_links_to_what_is_there() {
        assert_eq!(errors("README.md", "[x](Cargo.toml) [y](https://example.org/z) [a](#b)\n"), 0);
        assert_eq!(errors("README.md", "[x](nowhere.md)\n"), 1);
        assert_eq!(errors("README.md", "see `xtask/src/main.rs` and `crates/none/src/gone.rs`\n"), 1);
    }

    #[test]
    fn a_text_names_no_private_place() {
        assert_eq!(errors("x.toml", concat!("path = \"/work", "/main/x\"\n")), 1);
        assert_eq!(errors("x.toml", "path = \"crates/x\"\n"), 0);
    }
}
