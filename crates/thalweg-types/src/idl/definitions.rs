//! What was read.

use std::collections::BTreeMap;

use thalweg_cdr::description::Type;

use crate::docs::SourceDocs;

/// The types of a text, by their names with modules and in the order of their definition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    pub(super) types: BTreeMap<String, Type>,
    pub(super) order: Vec<String>,
    pub(super) docs: SourceDocs,
}

impl Definitions {
    /// The type of this name.
    pub fn find(&self, name: &str) -> Option<&Type> {
        self.types.get(name)
    }

    /// All types in the order of their definition.
    pub fn iter(&self) -> impl Iterator<Item = &Type> {
        self.order.iter().filter_map(|name| self.types.get(name))
    }

    /// The comments that document the types.
    pub fn docs(&self) -> &SourceDocs {
        &self.docs
    }
}
