//! All that users of a crate depend on: its own items, those of other crates that it exports, and those that signatures lead to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::listing::{ApiListing, ListedItem, ListedKind, first_segment, paths};

/// The API of the crate `root` as a text: one item a line, in sections.
pub(super) fn render(root: &str, listings: &[ApiListing]) -> String {
    let mut surface = Surface::new(root, listings);
    surface.name_exports();
    let sections = surface.reach_all();
    let mut out = format!("The public API of {root}, recorded by `cargo xtask api --write`.\n");
    surface.write_root(&mut out);
    let (exported, reached): (Vec<_>, Vec<_>) =
        sections.into_iter().partition(|place| surface.names.contains_key(place));
    for place in &exported {
        surface.write_section(&mut out, *place);
    }
    if !reached.is_empty() {
        let _ = writeln!(out, "\nWhat signatures lead to and {root} gives no name:");
    }
    for place in &reached {
        surface.write_section(&mut out, *place);
    }
    out
}

/// An item of one of the crates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place<'a> {
    of: &'a str,
    id: u32,
}

struct Surface<'a> {
    root: &'a str,
    listings: BTreeMap<&'a str, &'a ApiListing>,
    /// What the root crate calls items of others.
    names: BTreeMap<Place<'a>, String>,
}

impl<'a> Surface<'a> {
    fn new(root: &'a str, listings: &'a [ApiListing]) -> Surface<'a> {
        let listings = listings.iter().map(|listing| (listing.name.as_str(), listing)).collect();
        Surface { root, listings, names: BTreeMap::new() }
    }

    fn root_lines(&self) -> &'a [ListedItem] {
        self.listings.get(self.root).map(|listing| listing.lines.as_slice()).unwrap_or_default()
    }

    /// Finds the names of everything that the root crate exports.
    fn name_exports(&mut self) {
        for line in self.root_lines() {
            let (ListedKind::Use { source, is_glob }, Some(name)) = (&line.kind, line.path(self.root)) else {
                continue;
            };
            let Some(place) = self.resolve_exact(source, LINKS_MAX) else { continue };
            match is_glob {
                true => self.name_members(place, &name),
                false => self.name(place, name),
            }
        }
    }

    fn name(&mut self, place: Place<'a>, name: String) {
        if self.names.contains_key(&place) {
            return;
        }
        let is_module = self.is_module(place);
        self.names.insert(place, name.clone());
        if is_module {
            self.name_members(place, &name);
        }
    }

    fn name_members(&mut self, module: Place<'a>, name: &str) {
        let listing = self.listings[module.of];
        for line in listing.members(module.id) {
            let last = |path: String| path.rsplit("::").next().map(|last| format!("{name}::{last}"));
            let Some(called) = line.path(&listing.name).and_then(last) else { continue };
            match &line.kind {
                ListedKind::Module | ListedKind::Named => self.name(Place { of: module.of, id: line.id }, called),
                ListedKind::Use { source, is_glob: false } => {
                    if let Some(place) = self.resolve_exact(source, LINKS_MAX) {
                        self.name(place, called);
                    }
                }
                ListedKind::Use { .. } | ListedKind::Member => {}
            }
        }
    }

    /// Every item of other crates that users may meet, in the order of their names.
    fn reach_all(&self) -> Vec<Place<'a>> {
        let is_item = |place: &Place<'a>| !self.is_module(*place);
        let mut open: Vec<Place<'a>> = self.names.keys().copied().filter(is_item).collect();
        let mentioned = |line: &ListedItem| self.mentions(&line.text);
        open.extend(self.root_lines().iter().flat_map(mentioned));
        let mut reached: BTreeSet<Place<'a>> = BTreeSet::new();
        while let Some(place) = open.pop() {
            if reached.insert(place) {
                open.extend(self.listings[place.of].block(place.id).into_iter().flat_map(mentioned));
            }
        }
        let mut sections: Vec<Place<'a>> = reached.into_iter().filter(is_item).collect();
        sections.sort_by_cached_key(|place| self.called(*place));
        sections
    }

    /// The items of other crates in a text.
    fn mentions(&self, text: &str) -> Vec<Place<'a>> {
        let places = paths(text).into_iter().filter_map(|range| self.item_in(&text[range]));
        places.map(|(place, _)| place).collect()
    }

    /// The item of another crate that a path leads to or through, and the length of the path to it.
    fn item_in(&self, path: &str) -> Option<(Place<'a>, usize)> {
        if first_segment(path) == self.root {
            return None;
        }
        let exact = |end: usize| self.resolve_exact(&path[..end], LINKS_MAX).map(|place| (place, end));
        let is_item = |(place, _): &(Place<'a>, usize)| !self.is_module(*place);
        let ends = || prefix_ends(path).into_iter().rev();
        let named = ends().filter_map(exact).find(is_item);
        named.or_else(|| ends().find_map(|end| self.resolve_defined(&path[..end]).map(|place| (place, end))))
    }

    /// The item with this path, which may be that of an export.
    fn resolve_exact(&self, path: &str, links_left: u32) -> Option<Place<'a>> {
        let (&of, &listing) = self.listings.get_key_value(first_segment(path))?;
        if let Some(id) = listing.by_path.get(path) {
            return Some(Place { of, id: *id });
        }
        let links_left = links_left.checked_sub(1)?;
        listing.exports.iter().find_map(|(exported, source, is_glob)| {
            let rest = path.strip_prefix(exported.as_str())?;
            let continues = if rest.is_empty() { !is_glob } else { rest.starts_with("::") };
            continues.then(|| self.resolve_exact(&format!("{source}{rest}"), links_left))?
        })
    }

    /// The item that is defined at this path, which may lead through private modules.
    fn resolve_defined(&self, path: &str) -> Option<Place<'a>> {
        let (&of, &listing) = self.listings.get_key_value(first_segment(path))?;
        let last = path.rsplit("::").next()?;
        let is_like = |public: &&String| public.rsplit("::").next() == Some(last) && is_subsequence(public, path);
        let public = listing.by_path.keys().filter(is_like).max_by_key(|public| public.len())?;
        let place = Place { of, id: listing.by_path[public] };
        (!self.is_module(place)).then_some(place)
    }

    fn is_module(&self, place: Place<'a>) -> bool {
        self.listings[place.of].item(place.id).is_some_and(|line| line.kind == ListedKind::Module)
    }

    /// What an item is called here: as the root crate calls it, else as its own crate does.
    fn called(&self, place: Place<'a>) -> String {
        let own = || self.listings[place.of].item(place.id).and_then(|line| line.path(place.of));
        self.names.get(&place).cloned().or_else(own).unwrap_or_default()
    }

    /// A text with every item called by its name.
    fn renamed(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::new(), 0);
        for range in paths(text) {
            if let Some((place, length)) = self.item_in(&text[range.clone()]) {
                out.push_str(&text[rest..range.start]);
                out.push_str(&self.called(place));
                rest = range.start + length;
            }
        }
        out.push_str(&text[rest..]);
        out
    }

    fn write_root(&self, out: &mut String) {
        let _ = writeln!(out, "\n## {}", self.root);
        for line in self.root_lines() {
            let _ = match &line.kind {
                ListedKind::Use { source, .. } => writeln!(out, "{} = {source}", line.text),
                _ => writeln!(out, "{}", self.renamed(&line.text)),
            };
        }
    }

    fn write_section(&self, out: &mut String, place: Place<'a>) {
        let _ = writeln!(out, "\n## {}, of {}", self.called(place), place.of);
        let mut written = BTreeSet::new();
        for line in self.listings[place.of].block(place.id) {
            let text = self.renamed(&line.text);
            // An item that its crate exports twice is listed twice.
            if written.insert(text.clone()) {
                let _ = writeln!(out, "{text}");
            }
        }
    }
}

/// Exports of exports that are followed.
const LINKS_MAX: u32 = 8;

/// Where each path ends that a path begins with, the shortest first.
fn prefix_ends(path: &str) -> Vec<usize> {
    let inner = path.match_indices("::").map(|(end, _)| end);
    inner.chain(std::iter::once(path.len())).collect()
}

/// Whether the segments of `short` are among those of `long`, in this order.
fn is_subsequence(short: &str, long: &str) -> bool {
    let mut segments = long.split("::");
    short.split("::").all(|wanted| segments.any(|segment| segment == wanted))
}
