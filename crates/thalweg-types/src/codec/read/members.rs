//! The members of structures: in their order, and by their ids.

use std::sync::Arc;

use thalweg_cdr::description::{Structure, StructureMember, TryConstruct};
use thalweg_cdr::{DecodeError, Decoder, Extensibility};

use super::construct::read_tried;
use super::id_lookup::IdLookup;
use super::{Part, ends_before};
use crate::document::{Document, MapKey};

pub(in crate::codec) fn structure(
    of: &Structure,
    decoder: &mut Decoder<'_>,
    part: Part,
) -> Result<Document, DecodeError> {
    match of.extensibility {
        Extensibility::Final => members(of, decoder, part),
        Extensibility::Appendable => decoder.appendable_type(|decoder| members(of, decoder, part)),
        Extensibility::Mutable => members_by_id(of, decoder, part),
    }
}

/// The members of a final or appendable structure, without its frame.
pub(in crate::codec) fn members(
    of: &Structure,
    decoder: &mut Decoder<'_>,
    part: Part,
) -> Result<Document, DecodeError> {
    refuse_optional_key(of, decoder, part)?;
    if part.is_element {
        decoder.charge(of.members.len(), 1)?;
    }
    let is_all = !part.is_key || !of.is_keyed();
    // No more than there are bytes: optional members that are absent take no memory.
    let mut found = Vec::with_capacity(of.members.len().min(decoder.remaining()));
    for member in of.members.iter().filter(|member| is_all || member.is_key) {
        // An older sender's type ends before the newer members; where it may not, as at a member of the key, reading them finds that they
        // are missing.
        let ends = || match member.is_optional {
            true => decoder.ends_before(4),
            false => ends_before(&member.member_type, decoder, part),
        };
        let may_end = member.is_optional || (of.extensibility != Extensibility::Final && !member.is_key);
        let at = decoder.offset();
        let is_missing = may_end && ends();
        let value = match is_missing {
            true if member.is_optional => None,
            true => Some(part.default_of(&member.member_type, &member.annotations, decoder)?),
            false if member.is_optional => {
                decoder.optional(member.id, |decoder| read_member(member, decoder, part))?.flatten()
            }
            false => match read_member(member, decoder, part)? {
                None => Some(part.default_of(&member.member_type, &member.annotations, decoder)?),
                value => value,
            },
        };
        // An element's structures without members take memory and no bytes; a default has been charged.
        if part.is_element && !is_missing && value.is_some() && decoder.offset() == at {
            decoder.charge(1, size_of::<(MapKey, Document)>())?;
        }
        found.extend(value.map(|value| (MapKey::Text(Arc::clone(&member.name)), value)));
    }
    Ok(Document::Map(found))
}

/// A mutable structure.
fn members_by_id(of: &Structure, decoder: &mut Decoder<'_>, part: Part) -> Result<Document, DecodeError> {
    refuse_optional_key(of, decoder, part)?;
    if part.is_element {
        decoder.charge(of.members.len(), 1)?;
    }
    let is_all = !part.is_key || !of.is_keyed();
    let mut places = IdLookup::of(&of.members, |member| member.id);
    let mut found: Vec<Option<Document>> = vec![None; of.members.len()];
    decoder.mutable_type(|decoder, id| {
        let Some(place) = places.take_place_of(id) else { return Ok(false) };
        let member = &of.members[place];
        if is_all || member.is_key {
            found[place] = read_member(member, decoder, part)?;
        }
        Ok(true)
    })?;
    let valued = of.members.iter().zip(found).filter_map(|(member, value)| {
        let is_wanted = !member.is_optional && (is_all || member.is_key);
        let value = match value {
            // What names an instance cannot be guessed.
            None if is_wanted && member.is_key => Err(decoder.error(format!("key member {}", member.id))),
            None if is_wanted => part.default_of(&member.member_type, &member.annotations, decoder),
            value => Ok(value?),
        };
        Some(value.map(|value| (MapKey::Text(Arc::clone(&member.name)), value)))
    });
    valued.collect::<Result<_, _>>().map(Document::Map)
}

/// The value of a member; `None` for its default, which is absence where that is possible. What names an instance is neither cut nor
/// guessed.
fn read_member(
    member: &StructureMember,
    decoder: &mut Decoder<'_>,
    part: Part,
) -> Result<Option<Document>, DecodeError> {
    let try_construct = if member.is_key { TryConstruct::Discard } else { member.try_construct };
    read_tried(&member.member_type, try_construct, decoder, part)
}

/// Refuses a part of a key that has an optional member, as a type object of others may (DDS-XTypes 1.3 §7.2.2.4.4.4.8).
fn refuse_optional_key(of: &Structure, decoder: &Decoder<'_>, part: Part) -> Result<(), DecodeError> {
    match part.is_key && of.key_members().any(|member| member.is_optional) {
        true => Err(decoder.error(format!("a key without optional members, unlike {}", of.name))),
        false => Ok(()),
    }
}
