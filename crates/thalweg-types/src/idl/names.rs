//! The names of IDL and their scopes.

use std::collections::BTreeMap;

use thalweg_cdr::description::Type;

use super::Constant;

/// The meaning of a name.
#[derive(Clone)]
pub(super) enum Named {
    Type(Type),
    Constant(Constant),
    /// Declared, and not defined yet.
    Forward,
    /// Defined with uses of types that are not; until they are, it is used by its name.
    Open(Type),
}

/// The names that are defined so far, and the module that is being read.
#[derive(Default)]
pub(super) struct Names {
    pub scope: Vec<String>,
    pub defined: BTreeMap<String, Named>,
}

impl Names {
    /// The meaning of a name in the innermost scope that defines it.
    pub fn lookup(&self, name: &str) -> Option<&Named> {
        self.find(name).map(|(_, named)| named)
    }

    /// As [`lookup`](Self::lookup), with the whole name.
    pub fn find(&self, name: &str) -> Option<(String, &Named)> {
        if let Some(global) = name.strip_prefix("::") {
            return Some((global.to_owned(), self.defined.get(global)?));
        }
        (0..=self.scope.len()).rev().find_map(|depth| {
            let mut parts: Vec<&str> = self.scope[..depth].iter().map(String::as_str).collect();
            parts.push(name);
            let whole = parts.join("::");
            let named = self.defined.get(&whole)?;
            Some((whole, named))
        })
    }

    pub fn qualified(&self, name: &str) -> String {
        self.scope.iter().map(String::as_str).chain([name]).collect::<Vec<&str>>().join("::")
    }
}
