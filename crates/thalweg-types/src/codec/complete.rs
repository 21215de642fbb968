//! The members that a person leaves out of a value.

use std::sync::Arc;

use thalweg_cdr::description::{Annotations, Structure, StructureMember, Type, Union};

use super::SampleType;
use super::defaults::member_default;
use super::leaf::number_of;
use super::read::default_case;
use super::write::{DISCRIMINATOR, is_named, is_octet};
use crate::document::{Document, MapKey};

/// The same value, in which members that are missing have their default, or else that of their type (DDS-XTypes 1.3 §7.2.2.4.4.4.7).
///
/// Optional members stay absent. Members of the key stay missing too, so that [`encode`](super::encode) refuses the value: a
/// sample is not put into an instance that nobody named, and so do members whose default has too many numbers to be meant. The value
/// is not checked.
#[must_use]
pub fn completed<'a>(of: impl Into<SampleType<'a>>, value: Document) -> Document {
    let of = of.into();
    match of {
        SampleType::Structure(found) => structure(found, value, of.is_keyed()),
        SampleType::Union(found) => union(found, value),
    }
}

/// `is_key` tells that the structure is the sample, or part of the key of one.
fn structure(of: &Structure, value: Document, is_key: bool) -> Document {
    let Document::Map(mut given) = value else { return value };
    let is_keyed = of.is_keyed();
    let names_instance = |member: &StructureMember| is_key && (member.is_key || !is_keyed);
    for (key, value) in &mut given {
        if let Some(member) = of.members.iter().find(|member| is_named(key, &member.name)) {
            let taken = std::mem::replace(value, Document::Null);
            *value = completed_value(&member.member_type, taken, names_instance(member));
        }
    }
    for member in &of.members {
        let is_given = given.iter().any(|(key, _)| is_named(key, &member.name));
        let may_be_missing = !member.is_optional && !names_instance(member);
        if !is_given && may_be_missing && is_meant(&member.member_type, &member.annotations) {
            let value = member_default(&member.member_type, &member.annotations);
            given.push((MapKey::Text(Arc::clone(&member.name)), value));
        }
    }
    Document::Map(given)
}

/// A union needs its discriminator or its member; the discriminator alone selects a member.
fn union(of: &Union, value: Document) -> Document {
    let Document::Map(mut given) = value else { return value };
    for (key, value) in &mut given {
        let case = of.cases.iter().find(|case| is_named(key, &case.name));
        if let Some(case_type) = case.and_then(|case| case.case_type.as_ref()) {
            *value = completed_value(case_type, std::mem::replace(value, Document::Null), false);
        }
    }
    if let [(key, label)] = &given[..]
        && is_named(key, DISCRIMINATOR)
        && let Ok(label) = number_of(&of.discriminator, label)
        && let Some(case) = of.case_of(label)
        && let Some(case_type) = &case.case_type
        && is_meant(case_type, &case.annotations)
    {
        given.push((MapKey::Text(case.name.as_str().into()), member_default(case_type, &case.annotations)));
    }
    Document::Map(given)
}

fn completed_value(of: &Type, value: Document, is_key: bool) -> Document {
    match (&*of.followed(), value) {
        (Type::Structure(found), value) => structure(found, value, is_key),
        (Type::Union(found), value) => union(found, value),
        (Type::Sequence { element, .. } | Type::Array { element, .. }, Document::Array(elements)) => {
            Document::Array(elements.into_iter().map(|value| completed_value(element, value, is_key)).collect())
        }
        (Type::Map { element, .. }, Document::Map(pairs)) => {
            let pairs = pairs.into_iter().map(|(key, value)| (key, completed_value(element, value, is_key)));
            Document::Map(pairs.collect())
        }
        (_, value) => value,
    }
}

/// Whether the default of a member is of a size that a person may mean.
fn is_meant(of: &Type, annotations: &Annotations) -> bool {
    member_leaves(of, annotations, LEAVES_MAX).is_some()
}

/// As [`default_leaves`], of a member, which may have a default of its own.
pub(super) fn member_leaves(of: &Type, annotations: &Annotations, leaves_max: usize) -> Option<usize> {
    member_rest(of, annotations, leaves_max).map(|rest| leaves_max - rest)
}

/// How many leaves the default of a type has; `None` when they are more than these, found in as many steps.
pub(crate) fn default_leaves(of: &Type, leaves_max: usize) -> Option<usize> {
    rest(of, leaves_max).map(|rest| leaves_max - rest)
}

/// How many of so many leaves are left when the default of a type has taken its own; `None` when it takes more, found in as many
/// steps. Numbers and texts are leaves, and 32 octets in a row are one; so are 32 members, or cases and their labels, that are looked at.
fn rest(of: &Type, room: usize) -> Option<usize> {
    match &*of.followed() {
        Type::Array { element, count } if is_octet(element) => room.checked_sub(1 + count / 32),
        Type::Array { element, count } => {
            let room = room.checked_sub(1)?;
            let one = room - rest(element, room)?;
            room.checked_sub(one.checked_mul(*count)?)
        }
        Type::Structure(found) => {
            let mut required = found.members.iter().filter(|member| !member.is_optional);
            required.try_fold(room.checked_sub(1 + found.members.len() / 32)?, |room, member| {
                member_rest(&member.member_type, &member.annotations, room)
            })
        }
        Type::Union(found) => {
            let looked_at: usize = found.cases.iter().map(|case| 1 + case.labels.len()).sum();
            let room = room.checked_sub(1 + looked_at / 32)?;
            let member = default_case(found).1.and_then(|case| Some((case.case_type.as_ref()?, &case.annotations)));
            member.map_or(Some(room), |(case_type, annotations)| member_rest(case_type, annotations, room))
        }
        _ => room.checked_sub(1),
    }
}

/// As [`rest`], of a member: its own default is a leaf, or one for each two letters at most.
fn member_rest(of: &Type, annotations: &Annotations, room: usize) -> Option<usize> {
    match &annotations.default {
        Some(text) => room.checked_sub(1 + text.len() / 2),
        None => rest(of, room),
    }
}

/// Most leaves of a default; chosen by us: tens of MiB, more than a person leaves out.
pub(super) const LEAVES_MAX: usize = 1 << 20;
