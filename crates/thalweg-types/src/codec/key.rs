//! The key of a sample alone: what names an instance that ends (RTPS 2.5 §9.6.4.9).

use std::sync::Arc;

use thalweg_cdr::{EncodeError, Representation};

use crate::codec;
use crate::types::{Structure, StructureMember, Type};
use crate::document::{Document, MapKey};

/// Writes the key members of a sample as the payload of a change that ends its instance.
///
/// # Errors
/// As [`codec::encode`].
pub fn encode_key(structure: &Structure, value: &Document) -> Result<Vec<u8>, EncodeError> {
    let (key_type, key) = (key_type(structure), key_of(structure, value));
    codec::encode(&key_type, &key, Representation::Xcdr1)
}

/// Of a structure that marks no member as key all members are, where it is itself a member of a key.
fn key_members(structure: &Structure) -> impl Iterator<Item = &StructureMember> {
    let is_keyed = structure.is_keyed();
    structure.members.iter().filter(move |member| member.is_key || !is_keyed)
}

fn key_type(structure: &Structure) -> Structure {
    let of_key = |member: &StructureMember| match &member.member_type {
        Type::Structure(nested) => {
            StructureMember { member_type: Type::Structure(Arc::new(key_type(nested))), ..member.clone() }
        }
        _ => member.clone(),
    };
    Structure { members: key_members(structure).map(of_key).collect(), ..structure.clone() }
}

fn key_of(structure: &Structure, value: &Document) -> Document {
    let given = key_members(structure).filter_map(|member| {
        let found = value.member(&member.name)?;
        let key = match &member.member_type {
            Type::Structure(nested) => key_of(nested, found),
            _ => found.clone(),
        };
        Some((MapKey::from(member.name.as_str()), key))
    });
    Document::Map(given.collect())
}
