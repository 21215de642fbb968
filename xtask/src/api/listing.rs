//! The public items of one crate, as rustdoc describes them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};
use std::path::Path;

use public_api::Builder;
use serde_json::Value;

use crate::Outcome;

/// The formats of rustdoc's JSON that `public-api` reads here: what was added in 58 and 59 may be absent.
const FORMATS: RangeInclusive<u64> = 57..=59;

/// The public items of a crate, in the order in which they are shown.
#[derive(Debug, Default)]
pub(super) struct ApiListing {
    /// Its name in paths.
    pub name: String,
    pub lines: Vec<ListedItem>,
    /// The items that have a path of their own.
    pub by_path: BTreeMap<String, u32>,
    /// What it exports of other crates: its path, the exported one, and whether that is all of a module.
    pub exports: Vec<(String, String, bool)>,
    first: BTreeMap<u32, usize>,
    children: BTreeMap<u32, Vec<usize>>,
}

/// One item: a type, a field, a method, an implementation.
#[derive(Clone, Debug)]
pub(super) struct ListedItem {
    pub id: u32,
    /// The item that it belongs to.
    pub parent: Option<u32>,
    pub kind: ListedKind,
    pub text: String,
}

/// What an item is, as far as that counts here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ListedKind {
    Module,
    /// A type, trait, function, constant or macro.
    Named,
    /// An item of another crate; of a module all items.
    Use {
        source: String,
        is_glob: bool,
    },
    /// Anything that belongs to a named item.
    Member,
}

impl ApiListing {
    /// Reads what rustdoc has written.
    pub fn read(file: &Path) -> Outcome<ApiListing> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
        let described: Value = serde_json::from_str(&text).map_err(|error| failed(&error))?;
        let format = described["format_version"].as_u64().unwrap_or_default();
        if !FORMATS.contains(&format) {
            let cause = format!("rustdoc's format {format} is not read by this version of the crate public-api");
            return Err(failed(&cause));
        }
        let api = Builder::from_rustdoc_json(file).omit_blanket_impls(true).build().map_err(|error| failed(&error))?;
        let index = &described["index"];
        let root = described["root"].as_u64().unwrap_or_default();
        let name = index[root.to_string()]["name"].as_str().unwrap_or_default().to_owned();
        let lines =
            api.items().filter_map(|item| line(index, item.id().0, item.parent_id().map(|id| id.0), item.to_string()));
        Ok(ApiListing::new(name, lines.collect()))
    }

    pub fn new(name: String, lines: Vec<ListedItem>) -> ApiListing {
        let mut listing = ApiListing { name, ..ApiListing::default() };
        for (place, line) in lines.iter().enumerate() {
            listing.first.entry(line.id).or_insert(place);
            if let Some(parent) = line.parent {
                listing.children.entry(parent).or_default().push(place);
            }
            let Some(path) = line.path(&listing.name) else { continue };
            match &line.kind {
                // One item may have several paths; a macro and a type may share one.
                ListedKind::Module | ListedKind::Named => _ = listing.by_path.entry(path).or_insert(line.id),
                ListedKind::Use { source, is_glob } => listing.exports.push((path, source.clone(), *is_glob)),
                ListedKind::Member => {}
            }
        }
        ApiListing { lines, ..listing }
    }

    /// The lines of an item and of everything that belongs to it, in order.
    pub fn block(&self, id: u32) -> Vec<&ListedItem> {
        let mut chosen: BTreeSet<usize> = self.first.get(&id).copied().into_iter().collect();
        let mut open = vec![id];
        while let Some(parent) = open.pop() {
            for place in self.children.get(&parent).into_iter().flatten() {
                if chosen.insert(*place) {
                    open.push(self.lines[*place].id);
                }
            }
        }
        chosen.into_iter().map(|place| &self.lines[place]).collect()
    }

    /// The items of a module.
    pub fn members(&self, module: u32) -> impl Iterator<Item = &ListedItem> {
        self.children.get(&module).into_iter().flatten().map(|place| &self.lines[*place])
    }

    /// An item, as it is listed first.
    pub fn item(&self, id: u32) -> Option<&ListedItem> {
        self.first.get(&id).map(|place| &self.lines[*place])
    }
}

impl ListedItem {
    /// The path of a module, a named item or an exported one; of a glob, that of its module.
    pub fn path(&self, krate: &str) -> Option<String> {
        if self.kind == ListedKind::Module {
            return self.text.rsplit(' ').next().map(str::to_owned);
        }
        if let Some((_, name)) = self.text.split_once("#[derive(") {
            return Some(format!("{krate}::{}", name.trim_end_matches(")]")));
        }
        let own = |range: &Range<usize>| first_segment(&self.text[range.clone()]) == krate;
        paths(&self.text).into_iter().find(own).map(|range| self.text[range].to_owned())
    }
}

/// The line of an item; `None` where it says nothing that users rely on.
fn line(index: &Value, id: u32, parent: Option<u32>, text: String) -> Option<ListedItem> {
    let inner = |id: u32| index[id.to_string()]["inner"].as_object().and_then(|inner| inner.iter().next());
    let is_module = |id: Option<u32>| id.and_then(inner).is_none_or(|(kind, _)| kind == "module");
    let kind = match inner(id).map(|(kind, body)| (kind.as_str(), body))? {
        ("module", _) => ListedKind::Module,
        ("use", body) => ListedKind::Use {
            source: body["source"].as_str().unwrap_or_default().to_owned(),
            is_glob: body["is_glob"].as_bool().unwrap_or_default(),
        },
        ("function", _) if is_module(parent) => ListedKind::Named,
        // The functions of a trait are told with the trait.
        ("function", _)
            if parent.and_then(inner).is_some_and(|(kind, of)| kind == "impl" && !of["trait"].is_null()) =>
        {
            return None;
        }
        ("struct" | "enum" | "union" | "trait" | "type_alias" | "constant" | "static" | "macro" | "proc_macro", _) => {
            ListedKind::Named
        }
        // Of the traits that the compiler implements, users rely on those that let a value go to another thread.
        ("impl", body) if body["is_synthetic"] == true && !SHARED.iter().any(|name| text.contains(name)) => {
            return None;
        }
        _ => ListedKind::Member,
    };
    Some(ListedItem { id, parent, kind, text })
}

/// The traits that let a value go to another thread.
const SHARED: [&str; 2] = ["core::marker::Send ", "core::marker::Sync "];

/// The words of a text that are paths of several segments.
pub(super) fn paths(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let is_word = |place: usize| bytes.get(place).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let (mut found, mut place) = (Vec::new(), 0);
    while place < bytes.len() {
        if !is_word(place) {
            place += 1;
            continue;
        }
        let (start, mut segments) = (place, 1);
        loop {
            while is_word(place) {
                place += 1;
            }
            if bytes[place..].starts_with(b"::") && is_word(place + 2) {
                place += 2;
                segments += 1;
            } else {
                break;
            }
        }
        if segments > 1 {
            found.push(start..place);
        }
    }
    found
}

/// The crate that a path begins with.
pub(super) fn first_segment(path: &str) -> &str {
    path.split("::").next().unwrap_or_default()
}
