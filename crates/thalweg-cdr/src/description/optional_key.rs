//! Optional members within keys, which no key may have (DDS-XTypes 1.3 §7.2.2.4.4.4.8).

use std::collections::BTreeSet;

use super::{StructureMember, Type};

impl StructureMember {
    /// The first optional member that is part of the key if this member is, as `Type.member`: in a structure without key members, all
    /// members are.
    pub fn optional_in_key(&self) -> Option<String> {
        self.member_type.optional_in_key(&mut BTreeSet::new())
    }
}

impl Type {
    /// `known` has the names of the types that were looked into.
    fn optional_in_key(&self, known: &mut BTreeSet<String>) -> Option<String> {
        let is_new = self.name().is_none_or(|name| known.insert(name.to_owned()));
        match self {
            _ if !is_new => None,
            Type::Recursive(part) => part.definition()?.optional_within(known),
            of => of.optional_within(known),
        }
    }

    fn optional_within(&self, known: &mut BTreeSet<String>) -> Option<String> {
        match self {
            Type::Alias(alias) => alias.aliased.optional_in_key(known),
            Type::Sequence { element, .. } | Type::Array { element, .. } => element.optional_in_key(known),
            Type::Map { key, element, .. } => key.optional_in_key(known).or_else(|| element.optional_in_key(known)),
            Type::Structure(structure) => {
                let optional = structure.key_members().find(|member| member.is_optional);
                optional
                    .map(|member| format!("{}.{}", structure.name, member.name))
                    .or_else(|| structure.key_members().find_map(|member| member.member_type.optional_in_key(known)))
            }
            Type::Union(union) if !union.is_keyed => {
                let mut cases = union.cases.iter().filter_map(|case| case.case_type.as_ref());
                cases.find_map(|case_type| case_type.optional_in_key(known))
            }
            _ => None,
        }
    }
}
