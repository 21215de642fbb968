//! Rust types that contain themselves, described once.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::tie::{is_open, parts};
use super::{Recursive, Type, tie};

/// Describes a Rust type that has a name, once: within its own description, it is a use of itself.
///
/// `None` where a part cannot be described. `rust_name` tells the type from all others: [`std::any::type_name`].
pub fn once(rust_name: &'static str, describe: impl FnOnce() -> Option<Type>) -> Option<Type> {
    let is_known = DESCRIBING.with_borrow_mut(|describing| describing.begin(rust_name));
    if is_known {
        return Some(Type::Recursive(Recursive::open(rust_name)));
    }
    let described = describe();
    DESCRIBING.with_borrow_mut(|describing| describing.end(rust_name, described))
}

/// The Rust types that are being described.
struct Describing {
    open: Vec<&'static str>,
    /// Definitions that use types which are open.
    pending: BTreeMap<&'static str, Type>,
}

thread_local! {
    static DESCRIBING: RefCell<Describing> =
        const { RefCell::new(Describing { open: Vec::new(), pending: BTreeMap::new() }) };
}

impl Describing {
    /// Whether the type is being described, or waits for one that is.
    fn begin(&mut self, rust_name: &'static str) -> bool {
        let is_known = self.open.contains(&rust_name) || self.pending.contains_key(rust_name);
        if !is_known {
            self.open.push(rust_name);
        }
        is_known
    }

    fn end(&mut self, rust_name: &'static str, described: Option<Type>) -> Option<Type> {
        self.open.pop();
        let outcome = described.and_then(|described| self.closed(rust_name, described));
        if self.open.is_empty() {
            // Left behind by what could not be described.
            self.pending.clear();
        }
        outcome
    }

    fn closed(&mut self, rust_name: &'static str, described: Type) -> Option<Type> {
        if !is_open(&described) {
            return Some(described);
        }
        self.pending.insert(rust_name, described);
        let needed = self.needed(rust_name);
        if needed.iter().any(|name| self.open.contains(name)) {
            return Some(Type::Recursive(Recursive::open(rust_name)));
        }
        let taken = needed.iter().filter_map(|name| Some(((*name).to_owned(), self.pending.remove(name)?)));
        let definitions: Vec<(String, Type)> = taken.collect();
        let at = definitions.iter().position(|(key, _)| key == rust_name)?;
        tie(definitions).ok()?.into_iter().nth(at)
    }

    /// The types that one needs, itself among them.
    fn needed(&self, rust_name: &'static str) -> BTreeSet<&'static str> {
        let (mut needed, mut open) = (BTreeSet::new(), vec![rust_name]);
        while let Some(name) = open.pop() {
            if !needed.insert(name) {
                continue;
            }
            let Some(definition) = self.pending.get(name) else { continue };
            let used = parts(definition).into_iter().flat_map(Type::recursive_uses).filter_map(Recursive::open_name);
            let known = |used: &str| {
                let all = self.pending.keys().chain(&self.open);
                all.copied().find(|known| *known == used)
            };
            open.extend(used.filter_map(known));
        }
        needed
    }
}
