//! Names: a public type has a name of its own in the workspace, and a function that changes state is not named like a question.

use std::collections::BTreeMap;

use super::{File, Findings};

/// Names that several crates give to a public type, each with the reason.
const SHARED: [(&str, &str); 3] = [
    ("Passage", "what a state machine reports of a sample, and the same with the time that the sink adds"),
    ("Representation", "the encoding of XTypes, and the QoS policy DATA_REPRESENTATION that lists it"),
    ("Topic", "the DDS entity, and the trait that `#[derive(Topic)]` implements for its type"),
];

/// Prefixes of the names of questions.
const QUESTIONS: [&str; 9] = ["is_", "has_", "can_", "may_", "wants_", "are_", "was_", "needs_", "should_"];

/// Questions that change state, each with the reason.
const REMEMBERED: [(&str, &str); 0] = [];

pub fn check(files: &[File], findings: &mut Findings) {
    check_types(files, findings);
    for file in files.iter().filter(|file| file.is_production()) {
        check_questions(file, findings);
    }
}

/// Reports each public type whose name another file has given away before, in the same crate or in another one.
fn check_types(files: &[File], findings: &mut Findings) {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_production()) {
        for (number, name) in file.production_lines().filter_map(|(number, line)| Some((number, public_type(line)?))) {
            let earlier = *first.entry(name).or_insert(&file.path);
            let is_shared =
                SHARED.iter().any(|(shared, _)| *shared == name) && crate_of(earlier) != crate_of(&file.path);
            // Twice in one file is the same type for two platforms; the compiler refuses anything else.
            if earlier != file.path && !is_shared {
                findings.error(format!("{}:{number}", file.path), format!("{earlier} has a type {name} as well"));
            }
        }
    }
}

/// The folder of the crate that a file belongs to.
fn crate_of(path: &str) -> &str {
    path.split("/src/").next().unwrap_or(path)
}

/// The name of the public type that a line at the margin defines.
fn public_type(line: &str) -> Option<&str> {
    let definition = line.strip_prefix("pub ")?;
    let definition = definition.strip_prefix("unsafe ").unwrap_or(definition);
    let (keyword, rest) = definition.split_once(' ')?;
    ["struct", "enum", "trait", "union", "type"].contains(&keyword).then(|| identifier(rest))
}

/// Reports each function that is named like a question and may change state.
fn check_questions(file: &File, findings: &mut Findings) {
    let lines: Vec<(usize, &str)> = file.production_lines().collect();
    for (index, (number, line)) in lines.iter().enumerate() {
        let Some((_, rest)) = line.split_once("fn ").filter(|(before, _)| !before.contains("//")) else { continue };
        let name = identifier(rest);
        if !QUESTIONS.iter().any(|question| name.starts_with(question)) {
            continue;
        }
        // The receiver stands on the line of the name or, where the parameters do not fit there, on the next one.
        let following = lines.get(index + 1).map_or("", |(_, line)| line.trim());
        let parameters = rest.split_once('(').map_or("", |(_, parameters)| parameters);
        let receiver = if parameters.is_empty() { following } else { parameters };
        let changes = receiver.starts_with("&mut self") || receiver.starts_with("mut self");
        if changes && !REMEMBERED.iter().any(|(remembered, _)| *remembered == name) {
            let complaint = format!("{name} asks and takes &mut self; name it by a verb");
            findings.error(format!("{}:{number}", file.path), complaint);
        }
    }
}

/// The identifier that a text begins with.
fn identifier(text: &str) -> &str {
    let end = text.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn expect_errors(sources: &[(&str, &str)], errors: usize) {
        let file = |(path, text): &(&str, &str)| File { path: (*path).to_owned(), text: (*text).to_owned() };
        let files: Vec<File> = sources.iter().map(file).collect();
        let mut findings = Findings::default();
        check(&files, &mut findings);
        assert_eq!(findings.errors.len(), errors, "{:?}", findings.errors);
    }

    #[test]
    fn two_crates_do_not_share_the_name_of_a_type() {
        let rtps = ("crates/thalweg-rtps/src/link.rs", "pub struct Link;\n");
        expect_errors(&[rtps, ("crates/thalweg-lab/src/report.rs", "pub enum Link<'a> {\n")], 1);
        expect_errors(&[rtps, ("xtask/src/main.rs", "pub type Link = u8;\n")], 1);
        expect_errors(&[rtps, ("crates/thalweg-lab/src/a.rs", "#[cfg(test)]\nmod tests;\n\npub struct Link;\n")], 1);
        expect_errors(&[rtps, ("crates/thalweg-lab/src/report.rs", "pub trait Linked {\n")], 0);
    }

    #[test]
    fn two_modules_of_a_crate_do_not_share_the_name_of_a_type() {
        let rtps = ("crates/thalweg-rtps/src/link.rs", "pub struct Link;\npub trait Topic {\n");
        expect_errors(&[rtps, ("crates/thalweg-rtps/src/other.rs", "pub struct Link;\n")], 1);
        expect_errors(&[rtps, ("crates/thalweg-rtps/src/other.rs", "pub(super) struct Link;\n")], 0);
        expect_errors(&[rtps, ("crates/thalweg-rtps/src/other.rs", "pub trait Topic {\n")], 1);
    }

    #[test]
    fn private_types_tests_and_listed_names_may_be_shared() {
        let rtps = ("crates/thalweg-rtps/src/link.rs", "pub struct Link;\npub trait Topic {\n");
        expect_errors(&[rtps, ("crates/thalweg-lab/src/a.rs", "struct Link;\npub(crate) struct Link;\n")], 0);
        expect_errors(&[rtps, ("crates/thalweg-lab/src/a.rs", "#[cfg(test)]\nmod tests {\npub struct Link;\n")], 0);
        expect_errors(&[rtps, ("crates/thalweg-lab/tests/it/a.rs", "pub struct Link;\n")], 0);
        expect_errors(&[rtps, ("crates/thalweg-lab/src/a.rs", "pub trait Topic {\n")], 0);
        expect_errors(
            &[("crates/thalweg-rtps/src/link.rs", "#[cfg(a)]\npub struct Link;\n#[cfg(b)]\npub struct Link;\n")],
            0,
        );
    }

    #[test]
    fn what_changes_state_is_not_named_like_a_question() {
        let source = |text| [("crates/thalweg-rtps/src/a.rs", text)];
        expect_errors(&source("    fn is_sent(&mut self, number: u64) {\n"), 1);
        expect_errors(&source("    pub(crate) fn wants_more(&mut self) -> bool {\n"), 1);
        expect_errors(&source("    fn has_room(\n        &mut self,\n        now: Instant,\n    ) -> bool {\n"), 1);
        expect_errors(&source("    fn is_sent(&self) -> bool {\n    fn mark_sent(&mut self) {\n"), 0);
        expect_errors(&source("    // A fn is_sent(&mut self) would lie.\n"), 0);
    }
}
