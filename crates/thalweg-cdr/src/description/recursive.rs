//! Types that contain themselves, alone or several each other (DDS-XTypes 1.3 §7.3.4.9).

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Weak};

use super::{Structure, Type, Union, UnionCase};

/// A use of a type that contains itself, or of one of several that contain each other.
///
/// A use from outside holds all of them. The uses among them do not, since they would keep each other for ever: what is taken out of
/// such a type can be followed as long as a use from outside is kept; [`held`](Self::held) makes one.
#[derive(Clone)]
pub struct Recursive {
    pub(super) name: Arc<str>,
    pub(super) index: usize,
    pub(super) link: Link,
}

#[derive(Clone)]
pub(super) enum Link {
    /// To a name whose definition is still to come.
    Open,
    /// From one type of a component to another.
    Within(Weak<Component>),
    /// From outside.
    Whole(Arc<Component>),
}

/// A type that contains itself, or types of which each contains each other, in the order of their names.
#[derive(Debug, PartialEq, Eq)]
pub struct Component {
    pub(super) types: Vec<Type>,
    pub(super) measures: Vec<Measure>,
}

/// What the values of a type of a component are like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Measure {
    /// How deep the least deep value nests within the component.
    pub levels: u32,
    /// Whether the default value ends, if each union has the case that the rule gives it.
    pub has_finite_default: bool,
}

impl Component {
    /// The types: structures, unions and other names, in the order of their names.
    pub fn types(&self) -> &[Type] {
        &self.types
    }
}

impl Recursive {
    /// A use of a type that is declared by this name and not defined yet; [`tie`](super::tie()) puts the definition in its place.
    pub fn open(name: &str) -> Recursive {
        Recursive { name: name.into(), index: 0, link: Link::Open }
    }

    /// A use of one of the types, from outside; `None` where there is none at this index.
    pub fn of(component: &Arc<Component>, index: usize) -> Option<Recursive> {
        let name = component.types.get(index)?.name()?.into();
        Some(Recursive { name, index, link: Link::Whole(Arc::clone(component)) })
    }

    /// The name of the type.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its place among the types of its component.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Whether the use is one among the types of the component.
    pub fn is_within(&self) -> bool {
        matches!(self.link, Link::Within(_))
    }

    /// The name of a type that is declared and not defined yet.
    pub(super) fn open_name(&self) -> Option<&str> {
        matches!(self.link, Link::Open).then_some(&*self.name)
    }

    /// All types that it is used with; `None` when nothing from outside holds them, or the type is not defined yet.
    pub fn component(&self) -> Option<Arc<Component>> {
        match &self.link {
            Link::Open => None,
            Link::Within(component) => component.upgrade(),
            Link::Whole(component) => Some(Arc::clone(component)),
        }
    }

    /// The structure, union or other name that it stands for; `None` as [`component`](Self::component).
    pub fn definition(&self) -> Option<Type> {
        self.component()?.types.get(self.index).cloned()
    }

    /// The same use from outside, which holds the types; `None` as [`component`](Self::component).
    pub fn held(&self) -> Option<Recursive> {
        Recursive::of(&self.component()?, self.index)
    }

    /// The definition, where this use holds the component, or is one of the component that is looked into; that is noted.
    pub(super) fn definition_in<'a>(&'a self, within: &mut Option<&'a Component>) -> Option<&'a Type> {
        match &self.link {
            Link::Open => return None,
            Link::Within(_) => {}
            Link::Whole(component) => *within = Some(component),
        }
        within.and_then(|component| component.types.get(self.index))
    }

    fn measure(&self) -> Measure {
        let measure = self.component().and_then(|component| component.measures.get(self.index).copied());
        measure.unwrap_or(Measure { levels: u32::MAX, has_finite_default: false })
    }
}

impl PartialEq for Recursive {
    /// Types of components are the same when all types of the components are; within one, the place says which.
    fn eq(&self, other: &Recursive) -> bool {
        let is_same_place = self.index == other.index && self.name == other.name;
        is_same_place
            && match (&self.link, &other.link) {
                (Link::Open, Link::Open) | (Link::Within(_), Link::Within(_)) => true,
                (Link::Open, _) | (_, Link::Open) => false,
                _ => match (self.component(), other.component()) {
                    (Some(one), Some(other)) => Arc::ptr_eq(&one, &other) || one == other,
                    _ => false,
                },
            }
    }
}

impl Eq for Recursive {}

impl fmt::Debug for Recursive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the definition, which leads here again.
        f.debug_tuple("Recursive").field(&self.name).finish()
    }
}

impl Type {
    /// The type behind all its names, also where it contains itself: then it is made of the component that the use holds.
    ///
    /// [`Type::Recursive`] is left only where [`Recursive::definition`] gives nothing.
    pub fn followed(&self) -> Cow<'_, Type> {
        match self.resolved() {
            Type::Recursive(part) => match part.definition() {
                Some(definition) => Cow::Owned(definition.followed().into_owned()),
                None => Cow::Borrowed(self),
            },
            found => Cow::Borrowed(found),
        }
    }

    /// Whether the default value ends, if each union within has the case that [`Union::default_case`] gives it.
    pub fn has_finite_default(&self) -> bool {
        match self {
            Type::Recursive(part) => part.measure().has_finite_default,
            Type::Alias(alias) => alias.aliased.has_finite_default(),
            Type::Array { element, .. } => element.has_finite_default(),
            _ => true,
        }
    }

    /// How deep the least deep value nests in types that contain each other; 0 where it need not.
    pub fn levels_min(&self) -> u32 {
        match self {
            Type::Recursive(part) => part.measure().levels,
            Type::Alias(alias) => alias.aliased.levels_min(),
            Type::Array { element, .. } => element.levels_min(),
            _ => 0,
        }
    }

    /// The uses of types that contain themselves, not those within other types that have names.
    pub fn recursive_uses(&self) -> Vec<&Recursive> {
        let (mut found, mut open) = (Vec::new(), vec![self]);
        while let Some(next) = open.pop() {
            match next {
                Type::Recursive(part) => found.push(part),
                Type::Sequence { element, .. } | Type::Array { element, .. } => open.push(element),
                Type::Map { key, element, .. } => open.extend([&**key, &**element]),
                _ => {}
            }
        }
        found
    }
}

impl Structure {
    /// The type that this structure is: a part of its component where it contains itself, which its members tell.
    pub fn to_type(self: &Arc<Structure>) -> Type {
        for part in self.members.iter().flat_map(|member| member.member_type.recursive_uses()) {
            let Some(component) = part.component() else { continue };
            let is_own = |of: &Type| matches!(of, Type::Structure(other) if other.name == self.name);
            if let Some(index) = component.types.iter().position(is_own) {
                return Type::Recursive(Recursive { name: (&*self.name).into(), index, link: part.link.clone() });
            }
        }
        Type::Structure(Arc::clone(self))
    }
}

impl Union {
    /// The value that the discriminator has by default, with its case: that of the discriminator's own default, or else of the first
    /// case (DDS-XTypes 1.3 §7.2.2.4.4.4.7).
    pub fn default_case(&self) -> (i64, Option<&UnionCase>) {
        let own = match self.discriminator.resolved() {
            Type::Enumeration(enumeration) => {
                enumeration.literals.get(enumeration.default).map_or(0, |literal| i64::from(literal.value))
            }
            _ => 0,
        };
        if let Some(case) = self.case_of(own) {
            return (own, Some(case));
        }
        let first = self.cases.first().and_then(|case| case.labels.first()).map_or(own, |label| self.selecting(*label));
        (first, self.case_of(first))
    }
}
