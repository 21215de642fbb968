//! Documents: the items, tests and cargo targets that they name exist in the sources.

use std::collections::BTreeSet;

use super::{File, Findings};

/// Items of other projects that documents name.
const FOREIGN: [&str; 3] = [
    "StatefulReader::process_gap_msg",
    "WriterProxy::next_cache_change_to_be_notified",
    "std_msgs::msg::dds_::String_",
];

/// Keywords in front of the name that they define.
const DEFINITIONS: [&str; 9] = ["fn", "mod", "struct", "enum", "trait", "type", "const", "static", "union"];

pub fn check(files: &[File], findings: &mut Findings) {
    let known = names(files);
    for file in files.iter().filter(|file| file.is("md")) {
        let mut is_block = false;
        for (index, line) in file.text.lines().enumerate() {
            let place = format!("{}:{}", file.path, index + 1);
            let is_fence = line.starts_with("```");
            is_block ^= is_fence;
            if !is_block {
                for path in line.split('`').skip(1).step_by(2).filter(|code| is_item(code)) {
                    let missing = path.split("::").map(|part| part.trim_end_matches("()"));
                    let missing: Vec<&str> = missing.filter(|part| !known.contains(*part)).collect();
                    if !missing.is_empty() && !FOREIGN.contains(&path) {
                        findings.error(&place, format!("names {path}, but no source defines {}", missing.join(", ")));
                    }
                }
            }
            check_targets(line, &place, files, findings);
        }
    }
}

/// Every name that the sources define, at any place: items, members, variants, modules and crates.
fn names(files: &[File]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files.iter().filter(|file| file.is("rs")) {
        names.extend(file.path.trim_end_matches(".rs").split('/').map(|part| part.replace('-', "_")));
        for line in file.text.lines() {
            let mut words =
                line.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')).filter(|word| !word.is_empty());
            let mut defined = words.next().filter(|word| *word != "pub").or_else(|| words.next());
            let mut before = defined;
            for word in words {
                if before.is_some_and(|before| DEFINITIONS.contains(&before)) {
                    defined = Some(word);
                }
                before = Some(word);
                names.extend(defined.take().map(str::to_owned));
            }
            names.extend(defined.map(str::to_owned));
        }
    }
    names
}

/// Whether inline code is the path of an item: `module::name`.
fn is_item(code: &str) -> bool {
    let is_name = |part: &str| {
        let part = part.trim_end_matches("()");
        part.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && part.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    code.contains("::") && code.split("::").all(is_name)
}

/// Reports crates, examples, tests and benches of a `cargo` command that are not there.
fn check_targets(line: &str, place: &str, files: &[File], findings: &mut Findings) {
    for command in line.split("cargo ").skip(1) {
        let words: Vec<&str> =
            command.split(['`', '#', '&', ';']).next().unwrap_or(command).split_whitespace().collect();
        for pair in words.windows(2) {
            let target = pair[1];
            let endings = match pair[0] {
                "-p" => vec![format!("{target}/Cargo.toml")],
                "--example" => vec![format!("examples/{target}.rs"), format!("examples/{target}/main.rs")],
                "--test" => vec![format!("tests/{target}.rs"), format!("tests/{target}/main.rs")],
                "--bench" => vec![format!("benches/{target}.rs"), format!("benches/{target}/main.rs")],
                _ => continue,
            };
            let exists = |ending: &String| {
                files.iter().any(|file| file.path == *ending || file.path.ends_with(&format!("/{ending}")))
            };
            if !endings.iter().any(exists) {
                findings.error(place, format!("{} {target} names nothing in the workspace", pair[0]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn expect_errors(document: &str, errors: usize) {
        let sources = [
            ("crates/thalweg-sim/tests/it/found.rs", "#[test]\nfn a_law_holds() {\n"),
            (
                "crates/thalweg/src/lib.rs",
                "pub struct Writer {\n    pub depth: u32,\n}\npub(crate) enum Kind {\n    Plain,\n}\n",
            ),
            ("crates/thalweg-sim/Cargo.toml", "[package]\n"),
            ("crates/thalweg-sim/tests/it/main.rs", "mod found;\n"),
            ("docs/x.md", document),
        ];
        let files = sources.map(|(path, text)| File { path: path.to_owned(), text: text.to_owned() });
        let mut findings = Findings::default();
        check(&files, &mut findings);
        assert_eq!(findings.errors.len(), errors, "{document}: {:?}", findings.errors);
    }

    #[test]
    fn a_document_names_tests_and_items_that_are_there() {
        expect_errors("`found::a_law_holds`, `Writer::depth`, `Kind::Plain` and `thalweg_sim::found`\n", 0);
        expect_errors("`found::a_law_is_gone`\n", 1);
        expect_errors("`lost::a_law_holds` and `Writer::width`\n", 2);
        expect_errors("`StatefulReader::process_gap_msg` of another vendor\n", 0);
        expect_errors("`https://example.org` and `a :: b`\n```rust\nlet x = Gone::new();\n```\n", 0);
    }

    #[test]
    fn a_document_names_cargo_targets_that_are_there() {
        expect_errors("`cargo test -p thalweg-sim --test it found`\n", 0);
        expect_errors("```sh\ncargo run -p thalweg-gone --example none\n```\n", 2);
    }
}
