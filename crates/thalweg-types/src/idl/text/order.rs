//! The order of types that contain each other: all are declared before, but not every use takes a type that is only declared.

use thalweg_cdr::description::{Structure, Type};

/// The types of a component, each behind its base and the other names that it uses, which cannot be declared. The types of its members
/// come before it too where that is possible: IDL 4.2 takes types that are only declared as elements of sequences, and Thalweg and
/// DDS-XTypes anywhere.
pub(super) fn of_component(types: &[Type]) -> Vec<&Type> {
    let mut ordering =
        Ordering { types, is_begun: vec![false; types.len()], is_done: vec![false; types.len()], done: Vec::new() };
    (0..types.len()).for_each(|index| ordering.visit(index));
    ordering.done
}

struct Ordering<'a> {
    types: &'a [Type],
    is_begun: Vec<bool>,
    is_done: Vec<bool>,
    done: Vec<&'a Type>,
}

impl Ordering<'_> {
    fn visit(&mut self, index: usize) {
        let types = self.types;
        let Some(of) = types.get(index) else { return };
        if std::mem::replace(&mut self.is_begun[index], true) {
            return;
        }
        let Uses { needed, wanted } = Uses::of(of, types);
        needed.into_iter().for_each(|needed| self.visit(needed));
        for wanted in wanted {
            if !self.waits(wanted) {
                self.visit(wanted);
            }
        }
        self.is_done[index] = true;
        self.done.push(of);
    }

    /// Whether a type needs one that is begun, so that it has to come behind that.
    fn waits(&self, index: usize) -> bool {
        let (mut open, mut seen) = (vec![index], vec![false; self.types.len()]);
        while let Some(next) = open.pop() {
            let Some(of) = self.types.get(next) else { continue };
            if self.is_done[next] || std::mem::replace(&mut seen[next], true) {
                continue;
            }
            if self.is_begun[next] {
                return true;
            }
            open.extend(Uses::of(of, self.types).needed);
        }
        false
    }
}

/// The types of its component that a definition uses, by their indices.
#[derive(Default)]
struct Uses {
    /// Those that have to be defined before it.
    needed: Vec<usize>,
    /// Those of its members.
    wanted: Vec<usize>,
}

impl Uses {
    fn of(of: &Type, types: &[Type]) -> Uses {
        let mut uses = Uses::default();
        match of {
            Type::Alias(alias) => uses.add(&alias.aliased, types),
            Type::Structure(structure) => {
                uses.needed.extend(structure.base.as_ref().and_then(|base| place_of(base, types)));
                structure.own_members().iter().for_each(|member| uses.add(&member.member_type, types));
            }
            Type::Union(union) => {
                union.cases.iter().filter_map(|case| case.case_type.as_ref()).for_each(|case| uses.add(case, types));
            }
            _ => {}
        }
        uses
    }

    fn add(&mut self, member: &Type, types: &[Type]) {
        let (mut is_element, mut next) = (false, member);
        loop {
            next = match next {
                Type::Array { element, .. } => element,
                Type::Sequence { element, .. } | Type::Map { element, .. } => {
                    is_element = true;
                    element
                }
                Type::Recursive(part) if part.is_within() => {
                    let place = part.index();
                    match types.get(place) {
                        Some(Type::Alias(_)) => self.needed.push(place),
                        Some(_) if !is_element => self.wanted.push(place),
                        _ => {}
                    }
                    return;
                }
                _ => return,
            }
        }
    }
}

fn place_of(base: &Structure, types: &[Type]) -> Option<usize> {
    types.iter().position(|of| matches!(of, Type::Structure(of) if of.name == base.name))
}
