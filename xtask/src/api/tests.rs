use super::difference;
use super::listing::{ApiListing, ListedItem, ListedKind, paths};
use super::surface::render;

fn line(id: u32, parent: u32, kind: ListedKind, text: &str) -> ListedItem {
    ListedItem { id, parent: (parent > 0).then_some(parent), kind, text: text.to_owned() }
}

fn export(source: &str) -> ListedKind {
    ListedKind::Use { source: source.to_owned(), is_glob: false }
}

/// A crate that exports items of another, which exports one of a third.
fn crates(exports: Vec<ListedItem>) -> Vec<ApiListing> {
    let mut own = vec![line(1, 0, ListedKind::Module, "pub mod front")];
    own.extend(exports);
    let inside = vec![
        line(1, 0, ListedKind::Module, "pub mod inside"),
        line(2, 1, ListedKind::Module, "pub mod inside::qos"),
        line(3, 2, ListedKind::Named, "pub enum inside::qos::History"),
        line(4, 3, ListedKind::Member, "pub inside::qos::History::KeepAll"),
        line(5, 2, ListedKind::Named, "pub struct inside::qos::Limits"),
        line(6, 5, ListedKind::Member, "pub inside::qos::Limits::history: inside::qos::History"),
        line(7, 5, ListedKind::Member, "impl inside::qos::Limits"),
        line(8, 7, ListedKind::Member, "pub fn inside::qos::Limits::now(&self) -> base::time::Instant"),
        line(9, 1, export("base::time"), "pub use inside::time"),
        line(10, 1, ListedKind::Named, "pub struct inside::Unseen"),
    ];
    let base = vec![
        line(1, 0, ListedKind::Module, "pub mod base"),
        line(2, 1, ListedKind::Module, "pub mod base::time"),
        line(3, 2, ListedKind::Named, "pub struct base::time::Instant(_)"),
        line(4, 2, ListedKind::Named, "pub const base::time::INFINITE: core::time::Duration"),
    ];
    [("front", own), ("inside", inside), ("base", base)]
        .into_iter()
        .map(|(name, lines)| ApiListing::new(name.to_owned(), lines))
        .collect()
}

#[track_caller]
fn check(exports: Vec<ListedItem>, parts: &[&str], absent: &[&str]) {
    let text = render("front", &crates(exports));
    for part in parts {
        assert!(text.contains(part), "{part:?} not in {text}");
    }
    for part in absent {
        assert!(!text.contains(part), "{part:?} in {text}");
    }
}

#[test]
fn what_is_exported_is_told_whole_and_by_the_name_that_users_know() {
    let exports = vec![line(2, 1, export("inside::qos::Limits"), "pub use front::Limits")];
    let parts = [
        "\n## front\npub mod front\npub use front::Limits = inside::qos::Limits\n",
        "\n## front::Limits, of inside\npub struct front::Limits\n",
        "pub fn front::Limits::now(&self) -> base::time::Instant\n",
    ];
    check(exports, &parts, &["Unseen", "INFINITE"]);
}

#[test]
fn what_signatures_lead_to_is_told_apart_where_it_has_no_name() {
    let exports = vec![line(2, 1, export("inside::qos::Limits"), "pub use front::Limits")];
    let parts = [
        "\nWhat signatures lead to and front gives no name:\n",
        "\n## base::time::Instant, of base\npub struct base::time::Instant(_)\n",
        "\n## inside::qos::History, of inside\npub enum inside::qos::History\npub inside::qos::History::KeepAll\n",
    ];
    check(exports, &parts, &[]);
    let exports = vec![
        line(2, 1, export("inside::qos::Limits"), "pub use front::Limits"),
        line(3, 1, export("inside::qos::History"), "pub use front::History"),
        line(4, 1, export("inside::time::Instant"), "pub use front::Instant"),
    ];
    check(exports, &["## front::Instant, of base", "-> front::Instant\n"], &["gives no name"]);
}

#[test]
fn modules_and_globs_name_all_their_items() {
    let glob = ListedKind::Use { source: "inside::qos".to_owned(), is_glob: true };
    let exports = vec![
        line(2, 1, ListedKind::Module, "pub mod front::qos"),
        line(3, 2, glob, "pub use front::qos::<<inside::qos::*>>"),
        line(4, 1, export("inside::time"), "pub use front::time"),
    ];
    let parts =
        ["## front::qos::Limits, of inside", "## front::qos::History, of inside", "## front::time::INFINITE, of base"];
    check(exports, &parts, &["gives no name", "Unseen"]);
}

#[test]
fn an_item_in_a_private_module_is_found_by_its_public_path() {
    let exports = vec![line(2, 1, ListedKind::Named, "pub fn front::limits() -> inside::qos::policy::Limits")];
    let parts = ["pub fn front::limits() -> inside::qos::Limits\n", "## inside::qos::Limits, of inside"];
    check(exports, &parts, &["policy"]);
}

#[test]
fn paths_are_words_of_several_segments() {
    let text = "pub fn a::b::c<T: core::fmt::Debug>(&'a self, x::Y<z>) -> <T as e::F>::G";
    let found: Vec<&str> = paths(text).into_iter().map(|range| &text[range]).collect();
    assert_eq!(found, ["a::b::c", "core::fmt::Debug", "x::Y", "e::F"]);
    assert!(paths("pub mod front").is_empty() && paths("::").is_empty() && paths("").is_empty());
}

#[test]
fn a_derive_macro_is_known_by_its_name() {
    let derive = line(2, 1, ListedKind::Named, "pub proc macro inside::#[derive(Topic)]");
    assert_eq!(derive.path("inside").as_deref(), Some("inside::Topic"));
}

#[test]
fn changes_are_told_below_the_section_that_they_are_in() {
    let before = "The API.\n\n## a\npub a::X\npub a::Y\n\n## b\npub b::X\n";
    let after = "The API.\n\n## a\npub a::Y\npub a::Z\n\n## c\npub c::X\n";
    let changes = difference::between(before, after);
    let expect = ["## a", "-pub a::X", "+pub a::Z", "## b", "-## b", "-pub b::X", "## c", "+## c", "+pub c::X"];
    assert_eq!(changes, expect);
    assert!(difference::between(after, after).is_empty());
}
