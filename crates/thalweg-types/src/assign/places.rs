//! What ids and names stand for on one side.

use std::collections::BTreeMap;

use thalweg_cdr::Extensibility;
use thalweg_cdr::description::Union;

use super::{Fits, differ};
use crate::type_object::name_hash;

/// Where members or cases stand, by their ids and by the hashes of their names.
pub(super) struct MemberPlaces<'a> {
    by_id: BTreeMap<u32, (usize, [u8; 4], &'a str)>,
    by_name: BTreeMap<[u8; 4], u32>,
}

impl<'a> MemberPlaces<'a> {
    pub(super) fn of(members: impl Iterator<Item = (u32, &'a str)>) -> MemberPlaces<'a> {
        let mut places = MemberPlaces { by_id: BTreeMap::new(), by_name: BTreeMap::new() };
        for (place, (id, name)) in members.enumerate() {
            let hash = hash_of(name);
            places.by_id.entry(id).or_insert((place, hash, name));
            places.by_name.entry(hash).or_insert(id);
        }
        places
    }

    pub(super) fn with_id(&self, id: u32) -> Option<usize> {
        self.by_id.get(&id).map(|(place, ..)| *place)
    }

    /// Whether what has this id and name at the writer has the same here, where ids are greater by `shift`.
    pub(super) fn check(&self, id: u32, name: &str, shift: i64) -> Fits {
        let hash = hash_of(name);
        let here = u32::try_from(i64::from(id) + shift).ok();
        let called = here.and_then(|here| self.by_id.get(&here));
        if let Some((.., other)) = called.filter(|(_, other, _)| *other != hash) {
            return differ(format!("the reader calls member {id} {other:?}"));
        }
        match self.by_name.get(&hash).filter(|other| Some(**other) != here) {
            Some(other) => differ(format!("it has the id {id}, that of the reader {other}")),
            None => Ok(()),
        }
    }
}

/// The id from which the cases of a union are counted. Where it is not mutable ids do not travel, and vendors begin with 0 or with 1.
pub(super) fn first_id(of: &Union) -> i64 {
    let counts_from_one = of.cases.iter().zip(1..).all(|(case, id)| case.id == id);
    i64::from(of.extensibility != Extensibility::Mutable && counts_from_one)
}

/// By what names are compared: their hashes are all that a minimal type object has.
pub(super) fn hash_of(name: &str) -> [u8; 4] {
    match name.strip_prefix('#').and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
        Some(hash) => hash.to_be_bytes(),
        None => name_hash(name),
    }
}
