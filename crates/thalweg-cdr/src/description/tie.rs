//! Definitions that use each other, made into types.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Weak};

use super::recursive::{Component, Link, Measure, Recursive};
use super::{Alias, Structure, StructureMember, Type, Union, UnionCase};

/// Most types that contain each other, chosen by us: no set of types in use has a quarter of it.
pub const COMPONENT_TYPES_MAX: usize = 256;
/// Deepest nesting of collections that have no name and are defined apart from their use, chosen by us: none is nested at all.
const UNNAMED_LEVELS_MAX: usize = 8;
/// Most collections and elements that are put where collections without a name are used, all uses together. Chosen by us: where each uses
/// another one many times, few definitions would otherwise become more than any memory holds.
const UNNAMED_PARTS_MAX: usize = 1 << 16;

/// Why definitions make no types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TieError {
    /// The definition by its key.
    pub key: String,
    /// The fault; a sentence.
    pub problem: String,
}

impl fmt::Display for TieError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for TieError {}

fn refused<T>(key: &str, problem: String) -> Result<T, TieError> {
    Err(TieError { key: key.to_owned(), problem })
}

/// Types of definitions with keys, which use each other by [`Recursive::open`] with the key; in the same order.
///
/// The base of a structure that has the name of a key stands for that definition: it may lack the members, as the structure then does.
///
/// # Errors
/// When a key is used and not defined, two definitions of one component have one name, every value of a type would contain another one
/// without end, a component has more than [`COMPONENT_TYPES_MAX`] types, or collections without a name nest too deep or have too many parts.
pub fn tie(definitions: Vec<(String, Type)>) -> Result<Vec<Type>, TieError> {
    let definitions = with_unnamed_in_place(definitions)?;
    let mut tying = Tying { by_key: BTreeMap::new(), definitions: &definitions, closed: BTreeMap::new() };
    for (index, (key, _)) in definitions.iter().enumerate() {
        if tying.by_key.insert(key, index).is_some() {
            return refused(key, format!("{key} is defined twice"));
        }
    }
    let uses: Vec<BTreeSet<usize>> = (0..definitions.len()).map(|index| tying.uses(index)).collect::<Result<_, _>>()?;
    for component in components(&uses) {
        match component[..] {
            [only] if !uses[only].contains(&only) => {
                let closed = tying.closed_alone(only);
                tying.closed.insert(only, closed);
            }
            _ => tying.close_component(&component)?,
        }
    }
    Ok((0..definitions.len()).filter_map(|index| tying.closed.remove(&index)).collect())
}

/// Whether a definition uses one that is still open.
pub fn is_open(definition: &Type) -> bool {
    parts(definition).into_iter().flat_map(Type::recursive_uses).any(|part| part.open_name().is_some())
}

/// The types that a definition uses in its members, not those that they use.
pub(super) fn parts(definition: &Type) -> Vec<&Type> {
    match definition {
        Type::Alias(alias) => vec![&alias.aliased],
        Type::Structure(structure) => structure.members.iter().map(|member| &member.member_type).collect(),
        Type::Union(union) => union.cases.iter().filter_map(|case| case.case_type.as_ref()).collect(),
        other => vec![other],
    }
}

struct Tying<'a> {
    by_key: BTreeMap<&'a str, usize>,
    definitions: &'a [(String, Type)],
    /// The types so far, by the index of their definition.
    closed: BTreeMap<usize, Type>,
}

impl Tying<'_> {
    /// The definitions that one uses, its base among them.
    fn uses(&self, index: usize) -> Result<BTreeSet<usize>, TieError> {
        let (_, definition) = &self.definitions[index];
        let mut used: BTreeSet<usize> = self.open_base(definition).into_iter().collect();
        if let Some(base) = used.first()
            && !matches!(self.definitions[*base].1, Type::Structure(_))
        {
            return refused(&self.definitions[index].0, "the base of a structure is none".to_owned());
        }
        for key in parts(definition).into_iter().flat_map(Type::recursive_uses).filter_map(Recursive::open_name) {
            match self.by_key.get(key) {
                Some(other) => used.insert(*other),
                None => return refused(key, format!("{key} is declared and not defined")),
            };
        }
        Ok(used)
    }

    /// The definition that the base of a structure stands for.
    fn open_base(&self, definition: &Type) -> Option<usize> {
        let Type::Structure(structure) = definition else { return None };
        self.by_key.get(structure.base.as_ref()?.name.as_str()).copied()
    }

    /// The type of a definition that is no part of a component.
    fn closed_alone(&self, index: usize) -> Type {
        let link = |part: &Recursive| {
            let used = part.open_name().and_then(|key| self.by_key.get(key));
            used.and_then(|used| self.closed.get(used)).cloned()
        };
        let base = |of: &Arc<Structure>| {
            let found = self.by_key.get(of.name.as_str()).and_then(|base| self.closed.get(base));
            found.and_then(structure_outside).unwrap_or_else(|| Arc::clone(of))
        };
        rebuilt(&self.definitions[index].1, &link, &base)
    }

    fn close_component(&mut self, component: &[usize]) -> Result<(), TieError> {
        let key_of = |index: usize| self.definitions[index].0.as_str();
        let mut by_name = component.to_vec();
        by_name.sort_by_key(|index| self.definitions[*index].1.name().unwrap_or_default());
        let name_of = |index: usize| self.definitions[index].1.name();
        for pair in by_name.windows(2) {
            if name_of(pair[0]) == name_of(pair[1]) {
                let name = name_of(pair[0]).unwrap_or_default();
                return refused(key_of(pair[0]), format!("two types named {name} contain each other"));
            }
        }
        if let [first, ..] = by_name[..]
            && by_name.len() > COMPONENT_TYPES_MAX
        {
            return refused(key_of(first), format!("more than {COMPONENT_TYPES_MAX} types contain each other"));
        }
        let places: BTreeMap<usize, usize> = by_name.iter().enumerate().map(|(place, index)| (*index, place)).collect();
        let measures = self.measures(&by_name, &places)?;
        let order = self.behind_bases(component)?;
        let made = Arc::new_cyclic(|weak| {
            let built = self.built(&order, &places, weak);
            let types = by_name.iter().filter_map(|index| built.get(index).cloned()).collect();
            Component { types, measures }
        });
        for (index, place) in places {
            if let Some(part) = Recursive::of(&made, place) {
                self.closed.insert(index, Type::Recursive(part));
            }
        }
        Ok(())
    }

    /// The definitions of a component, each behind that of its base.
    fn behind_bases(&self, component: &[usize]) -> Result<Vec<usize>, TieError> {
        let (mut order, mut rest) = (Vec::new(), component.to_vec());
        while !rest.is_empty() {
            let is_ready = |index: &usize| {
                let base = self.open_base(&self.definitions[*index].1);
                base.is_none_or(|base| order.contains(&base) || self.closed.contains_key(&base))
            };
            let (ready, other): (Vec<usize>, Vec<usize>) = rest.iter().copied().partition(is_ready);
            if ready.is_empty() {
                let key = &self.definitions[other[0]].0;
                return refused(key, format!("{key} is a base of itself"));
            }
            order.extend(ready);
            rest = other;
        }
        Ok(order)
    }

    fn built(&self, order: &[usize], places: &BTreeMap<usize, usize>, weak: &Weak<Component>) -> BTreeMap<usize, Type> {
        let link = |part: &Recursive| {
            let used = part.open_name().and_then(|key| self.by_key.get(key))?;
            let Some(place) = places.get(used) else { return self.closed.get(used).cloned() };
            let name = self.definitions[*used].1.name().unwrap_or_default().into();
            Some(Type::Recursive(Recursive { name, index: *place, link: Link::Within(Weak::clone(weak)) }))
        };
        let mut built: BTreeMap<usize, Type> = BTreeMap::new();
        for index in order {
            let base = |of: &Arc<Structure>| {
                let found = self.by_key.get(of.name.as_str());
                let found = found.and_then(|base| match built.get(base) {
                    Some(Type::Structure(base)) => Some(Arc::clone(base)),
                    _ => self.closed.get(base).and_then(structure_outside),
                });
                found.unwrap_or_else(|| Arc::clone(of))
            };
            let made = rebuilt(&self.definitions[*index].1, &link, &base);
            built.insert(*index, made);
        }
        built
    }

    /// How deep the values of each type nest at least, and whether the default ends; in the order of their places.
    fn measures(&self, by_name: &[usize], places: &BTreeMap<usize, usize>) -> Result<Vec<Measure>, TieError> {
        let place_of = |key: &str| self.by_key.get(key).and_then(|index| places.get(index)).copied();
        let mut levels: Vec<Option<u32>> = vec![None; by_name.len()];
        loop {
            let known = |key: &str| place_of(key).map_or(Some(0), |place| levels[place]);
            let next: Vec<Option<u32>> =
                by_name.iter().map(|index| levels_of(&self.definitions[*index].1, &known)).collect();
            // What was known stays: a less deep value may be found later, which is of no use.
            let next: Vec<Option<u32>> = levels.iter().zip(next).map(|(old, new)| old.or(new)).collect();
            if next == levels {
                break;
            }
            levels = next;
        }
        let mut ends = vec![false; by_name.len()];
        loop {
            let known = |key: &str| place_of(key).is_none_or(|place| ends[place]);
            let next: Vec<bool> =
                by_name.iter().map(|index| has_finite_default(&self.definitions[*index].1, &known)).collect();
            if next == ends {
                break;
            }
            ends = next;
        }
        let measured = by_name.iter().zip(levels).zip(ends);
        let measured = measured.map(|((index, levels), has_finite_default)| match levels {
            Some(levels) => Ok(Measure { levels, has_finite_default }),
            None => {
                let (key, definition) = &self.definitions[*index];
                let name = definition.name().unwrap_or(key);
                let rule = "a sequence, a map, an optional member or another case of a union has to stand between";
                refused(key, format!("every value of {name} would contain another one without end; {rule}"))
            }
        });
        measured.collect()
    }
}

/// The levels of the least deep value of a definition, as far as those of others are known by their keys.
fn levels_of(definition: &Type, known: &impl Fn(&str) -> Option<u32>) -> Option<u32> {
    let used = |of: &Type| used_levels(of, known);
    let below = match definition {
        Type::Structure(structure) => {
            let base = structure.base.as_ref().map_or(Some(0), |base| known(&base.name))?;
            let required = structure.members.iter().filter(|member| !member.is_optional);
            required.map(|member| used(&member.member_type)).try_fold(base, |most, levels| Some(most.max(levels?)))?
        }
        Type::Union(union) if union.cases.is_empty() => 0,
        Type::Union(union) => {
            union.cases.iter().filter_map(|case| case.case_type.as_ref().map_or(Some(0), used)).min()?
        }
        Type::Alias(alias) => used(&alias.aliased)?,
        _ => 0,
    };
    Some(below.saturating_add(1))
}

fn used_levels(of: &Type, known: &impl Fn(&str) -> Option<u32>) -> Option<u32> {
    match of {
        Type::Recursive(part) => part.open_name().map_or(Some(0), known),
        Type::Array { element, .. } => used_levels(element, known),
        _ => Some(0),
    }
}

/// Whether the default of a definition ends, as far as that is known of others.
fn has_finite_default(definition: &Type, known: &impl Fn(&str) -> bool) -> bool {
    let used = |of: &Type| has_used_finite_default(of, known);
    match definition {
        Type::Structure(structure) => {
            structure.base.as_ref().is_none_or(|base| known(&base.name))
                && structure.members.iter().all(|member| member.is_optional || used(&member.member_type))
        }
        Type::Union(union) => {
            let (_, case) = union.default_case();
            case.and_then(|case| case.case_type.as_ref()).is_none_or(used)
        }
        Type::Alias(alias) => used(&alias.aliased),
        _ => true,
    }
}

fn has_used_finite_default(of: &Type, known: &impl Fn(&str) -> bool) -> bool {
    match of {
        Type::Recursive(part) => part.open_name().is_none_or(known),
        Type::Array { element, .. } => has_used_finite_default(element, known),
        _ => true,
    }
}

impl Type {
    /// The structure behind all its names. Of one that contains itself it is a copy whose members hold the component, so that it can be
    /// kept alone and be the base of others.
    pub fn held_structure(&self) -> Option<Arc<Structure>> {
        structure_outside(self)
    }
}

/// The structure of a base that is used from outside of its component: its members hold that.
fn structure_outside(base: &Type) -> Option<Arc<Structure>> {
    let held = |part: &Recursive| part.held().map(Type::Recursive);
    match base.resolved() {
        Type::Structure(structure) if is_recursive(structure) => {
            let base_of = |of: &Arc<Structure>| {
                structure_outside(&Type::Structure(Arc::clone(of))).unwrap_or_else(|| Arc::clone(of))
            };
            match rebuilt(&Type::Structure(Arc::clone(structure)), &held, &base_of) {
                Type::Structure(made) => Some(made),
                _ => None,
            }
        }
        Type::Structure(structure) => Some(Arc::clone(structure)),
        _ => None,
    }
}

fn is_recursive(structure: &Structure) -> bool {
    structure.members.iter().flat_map(|member| member.member_type.recursive_uses()).any(Recursive::is_within)
}

/// A definition in which each use of a recursive type is replaced, where `link` gives another; its members are those of the base that
/// `base` gives, and its own.
fn rebuilt(
    definition: &Type,
    link: &impl Fn(&Recursive) -> Option<Type>,
    base: &impl Fn(&Arc<Structure>) -> Arc<Structure>,
) -> Type {
    match definition {
        Type::Alias(alias) => {
            let aliased = replaced(&alias.aliased, link);
            Type::Alias(Arc::new(Alias { name: alias.name.clone(), aliased }))
        }
        Type::Structure(structure) => {
            let base = structure.base.as_ref().map(base);
            let mut members = base.as_ref().map_or_else(Vec::new, |base| base.members.clone());
            members.extend(
                structure.own_members().iter().map(|member| StructureMember {
                    member_type: replaced(&member.member_type, link),
                    ..member.clone()
                }),
            );
            Type::Structure(Arc::new(Structure { base, members, ..(**structure).clone() }))
        }
        Type::Union(union) => {
            let cases = union.cases.iter().map(|case| UnionCase {
                case_type: case.case_type.as_ref().map(|of| replaced(of, link)),
                ..case.clone()
            });
            Type::Union(Arc::new(Union { cases: cases.collect(), ..(**union).clone() }))
        }
        other => replaced(other, link),
    }
}

fn replaced(of: &Type, link: &impl Fn(&Recursive) -> Option<Type>) -> Type {
    let boxed = |of: &Type| Box::new(replaced(of, link));
    match of {
        Type::Recursive(part) => link(part).unwrap_or_else(|| of.clone()),
        Type::Sequence { element, bound } => Type::Sequence { element: boxed(element), bound: *bound },
        Type::Array { element, count } => Type::Array { element: boxed(element), count: *count },
        Type::Map { key, element, bound } => Type::Map { key: boxed(key), element: boxed(element), bound: *bound },
        other => other.clone(),
    }
}

/// Puts collections that have a definition and no name where they are used: those that vendors count among the types of a component.
fn with_unnamed_in_place(definitions: Vec<(String, Type)>) -> Result<Vec<(String, Type)>, TieError> {
    if definitions.iter().all(|(_, of)| of.name().is_some()) {
        return Ok(definitions);
    }
    let unnamed = definitions.iter().filter(|(_, of)| of.name().is_none());
    let unnamed: BTreeMap<&str, (&Type, usize)> =
        unnamed.map(|(key, of)| (key.as_str(), (of, parts_without_name(of)))).collect();
    let (is_too_deep, room) = (Cell::new(false), Cell::new(Some(UNNAMED_PARTS_MAX)));
    let mut made = Vec::with_capacity(definitions.len());
    for (key, definition) in &definitions {
        let link = |part: &Recursive| in_place(part, &unnamed, UNNAMED_LEVELS_MAX, (&is_too_deep, &room));
        made.push((key.clone(), rebuilt(definition, &link, &|base| Arc::clone(base))));
        if room.get().is_none() {
            return refused(key, format!("more than {UNNAMED_PARTS_MAX} parts of collections without a name"));
        }
        if is_too_deep.get() {
            return refused(key, format!("more than {UNNAMED_LEVELS_MAX} collections without a name in each other"));
        }
    }
    Ok(made)
}

/// The collections that a type without a name consists of, and what they are of.
fn parts_without_name(of: &Type) -> usize {
    let (mut count, mut open) = (0, vec![of]);
    while let Some(next) = open.pop() {
        count += 1;
        match next {
            Type::Sequence { element, .. } | Type::Array { element, .. } => open.push(element),
            Type::Map { key, element, .. } => open.extend([&**key, &**element]),
            _ => {}
        }
    }
    count
}

/// The collection in the place of a use; notes when collections nest too deep, or no room is left for their parts.
fn in_place(
    part: &Recursive,
    unnamed: &BTreeMap<&str, (&Type, usize)>,
    levels: usize,
    (is_too_deep, room): (&Cell<bool>, &Cell<Option<usize>>),
) -> Option<Type> {
    let (definition, count) = unnamed.get(part.open_name()?)?;
    let Some(levels) = levels.checked_sub(1) else {
        is_too_deep.set(true);
        return None;
    };
    room.set(room.get().and_then(|room| room.checked_sub(*count)));
    room.get()?;
    let link: &dyn Fn(&Recursive) -> Option<Type> = &|part| in_place(part, unnamed, levels, (is_too_deep, room));
    Some(replaced(definition, &link))
}

/// The strongly connected components of a graph: what others lead to comes before them (Kosaraju).
fn components(uses: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); uses.len()];
    for (user, used) in uses.iter().enumerate() {
        used.iter().for_each(|used| users[*used].push(user));
    }
    let mut taken = vec![false; uses.len()];
    let mut found = Vec::new();
    for root in finished(uses).into_iter().rev() {
        if std::mem::replace(&mut taken[root], true) {
            continue;
        }
        let (mut component, mut open) = (Vec::new(), vec![root]);
        while let Some(node) = open.pop() {
            component.push(node);
            for user in &users[node] {
                if !std::mem::replace(&mut taken[*user], true) {
                    open.push(*user);
                }
            }
        }
        component.sort_unstable();
        found.push(component);
    }
    found.reverse();
    found
}

/// The nodes in the order in which a search in depth leaves them; without recursion, since a text may hold a long chain.
fn finished(uses: &[BTreeSet<usize>]) -> Vec<usize> {
    let mut seen = vec![false; uses.len()];
    let mut finished = Vec::with_capacity(uses.len());
    for root in 0..uses.len() {
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        let mut path = vec![(root, uses[root].iter())];
        while let Some((node, rest)) = path.last_mut() {
            let next = rest.find(|next| !seen[**next]).copied();
            match next {
                Some(next) => {
                    seen[next] = true;
                    path.push((next, uses[next].iter()));
                }
                None => {
                    finished.push(*node);
                    path.pop();
                }
            }
        }
    }
    finished
}

#[cfg(test)]
mod tests;
