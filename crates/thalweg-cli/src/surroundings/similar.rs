//! Topic names that the user may have meant.

use std::collections::BTreeSet;

use serde::Serialize;
use thalweg_lab::nearest::distance;

/// A topic of others whose name is nearly the one that is looked for.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct SimilarTopic {
    /// Its name.
    pub name: String,
    /// Endpoints of others with this name.
    writers: usize,
    readers: usize,
    /// What differs.
    pub why: String,
}

/// The names among those of `writers` and `readers` that are nearly `sought`, the most likely first.
pub fn find(sought: &str, writers: &[String], readers: &[String]) -> Vec<SimilarTopic> {
    let names: BTreeSet<&String> = writers.iter().chain(readers).filter(|name| *name != sought).collect();
    let judged = names.into_iter().filter_map(|name| difference(sought, name).map(|(rank, why)| (rank, name, why)));
    let mut ranked: Vec<(usize, &String, String)> = judged.collect();
    ranked.sort();
    ranked.truncate(SHOWN_MAX);
    let count = |names: &[String], name: &String| names.iter().filter(|other| *other == name).count();
    let similar = ranked.into_iter().map(|(_, name, why)| SimilarTopic {
        name: name.clone(),
        writers: count(writers, name),
        readers: count(readers, name),
        why,
    });
    similar.collect()
}

/// The distance of a name from the requested one, and the likely reason; `None` for a different name.
fn difference(sought: &str, name: &str) -> Option<(usize, String)> {
    let (bare, other) = (without_ros(sought), without_ros(name));
    if bare == other {
        let why = if name.starts_with(ROS_PREFIX) {
            format!("topics of ROS 2 begin with {ROS_PREFIX} here")
        } else {
            "it has no prefix".to_owned()
        };
        return Some((0, why));
    }
    if bare.to_lowercase() == other.to_lowercase() {
        return Some((1, "large and small letters differ".to_owned()));
    }
    let last = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    if last(bare) == last(other) && !last(bare).is_empty() {
        return Some((2, "it is in another namespace".to_owned()));
    }
    let distance = distance(bare, other);
    let allowed = if bare.chars().count() > 4 { 2 } else { 1 };
    (distance <= allowed && distance < bare.chars().count()).then(|| {
        (2 + distance, format!("{distance} letter{} differ{}", plural(distance), if distance == 1 { "s" } else { "" }))
    })
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The name as ROS 2 shows it, without the prefix of its topics and without a leading slash.
fn without_ros(name: &str) -> &str {
    name.strip_prefix(ROS_PREFIX).unwrap_or(name).trim_start_matches('/')
}

/// ROS 2's prefix of topic names on the wire.
const ROS_PREFIX: &str = "rt/";
/// Names that are shown.
const SHOWN_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sought: &str, names: &[&str], expect: &[(&str, &str)]) {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let found = find(sought, &names, &[]);
        let found: Vec<(&str, &str)> = found.iter().map(|one| (&*one.name, &*one.why)).collect();
        assert_eq!(found, expect, "{sought}");
    }

    #[test]
    fn names_that_may_be_meant_are_found_with_what_differs_and_others_are_not() {
        check("chatter", &["chatter", "Square", "rosout"], &[]);
        check("chatter", &["rt/chatter"], &[("rt/chatter", "topics of ROS 2 begin with rt/ here")]);
        check("/chatter", &["rt/chatter"], &[("rt/chatter", "topics of ROS 2 begin with rt/ here")]);
        check("rt/chatter", &["chatter"], &[("chatter", "it has no prefix")]);
        check("square", &["Square"], &[("Square", "large and small letters differ")]);
        check("chatter", &["rt/robot1/chatter"], &[("rt/robot1/chatter", "it is in another namespace")]);
        check("chater", &["chatter"], &[("chatter", "1 letter differs")]);
        check("chtater", &["chatter"], &[("chatter", "2 letters differ")]);
        check("ab", &["xy", "a", "abcd"], &[("a", "1 letter differs")]);
        check("x", &["y"], &[]);
    }

    #[test]
    fn the_likeliest_name_comes_first_and_each_is_counted() {
        let writers = ["chattor".to_owned(), "rt/chatter".to_owned(), "rt/chatter".to_owned()];
        let found = find("chatter", &writers, &["Chatter".to_owned()]);
        let told: Vec<_> = found.iter().map(|one| (&*one.name, one.writers, one.readers)).collect();
        assert_eq!(told, [("rt/chatter", 2, 0), ("Chatter", 0, 1), ("chattor", 1, 0)]);
    }
}
