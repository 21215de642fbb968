//! What one text of an API has and another has not.

use std::collections::{BTreeMap, BTreeSet};

/// The lines that `before` alone has with `-`, those that `after` alone has with `+`, each below the heading of its section.
pub(super) fn between(before: &str, after: &str) -> Vec<String> {
    let (before, after) = (sections(before), sections(after));
    let headings: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
    let mut changes = Vec::new();
    let none = BTreeSet::new();
    for heading in headings {
        let (old, new) = (before.get(heading).unwrap_or(&none), after.get(heading).unwrap_or(&none));
        let removed = old.difference(new).map(|line| format!("-{line}"));
        let added = new.difference(old).map(|line| format!("+{line}"));
        let told: Vec<String> = removed.chain(added).collect();
        if !told.is_empty() {
            changes.push(heading.to_owned());
            changes.extend(told);
        }
    }
    changes
}

/// The lines of each section by its heading; of the text in front of the first one by its first line.
fn sections(text: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut sections: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut heading = "";
    for line in text.lines().filter(|line| !line.is_empty()) {
        if line.starts_with("## ") || heading.is_empty() {
            heading = line;
        }
        sections.entry(heading).or_default().insert(line);
    }
    sections
}
