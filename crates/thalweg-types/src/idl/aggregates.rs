//! Structures and unions.

use std::ops::RangeInclusive;
use std::sync::Arc;

use thalweg_cdr::Extensibility;
use thalweg_cdr::description::{Annotations, Primitive, Structure, StructureMember, Type, Union, UnionCase};

use super::annotations::Applied;
use super::constants::{Constant, expression};
use super::defaults::default_of;
use super::{IdlError, Named, Parser, id_of_name};

/// The greatest id of a member: its header has room for 28 bits.
const ID_MAX: u32 = (1 << 28) - 1;

impl Parser {
    pub(super) fn structure(&mut self, applied: &Applied) -> Result<(), IdlError> {
        let name = self.words.identifier()?;
        if self.forward(&name) {
            return Ok(());
        }
        self.begin(&name);
        let whole = self.document(&name, applied);
        let base = if self.words.try_take(":") { Some(self.base(&name)?) } else { None };
        let mut members = base.as_ref().map_or_else(Vec::new, |base| base.members.clone());
        let has_hashed_ids = self.has_hashed_ids(applied);
        self.words.take("{")?;
        while !self.words.try_take("}") {
            let known = members.len();
            self.member(&whole, has_hashed_ids, &mut members)?;
            let keys = members[known..].iter().filter(|member| member.is_key);
            let placed = keys.map(|key| {
                let place = self.words.error_before(String::new());
                (self.names.qualified(&name), Arc::clone(&key.name), place)
            });
            self.keys.extend(placed);
        }
        let extensibility = applied.extensibility()?.unwrap_or(self.extensibility);
        if base.as_ref().is_some_and(|base| base.extensibility != extensibility) {
            return Err(self.words.error_before(format!("{name} and its base differ in extensibility")));
        }
        let is_nested = self.is_nested(applied);
        let name_of_all = self.names.qualified(&name);
        let structure = Structure { name: name_of_all, extensibility, base, members, is_nested, has_hashed_ids };
        self.define(&name, Named::Type(Type::Structure(Arc::new(structure))))
    }

    /// A type is known by its name while it is read, since it may use itself.
    fn begin(&mut self, name: &str) {
        let qualified = self.names.qualified(name);
        self.names.defined.entry(qualified).or_insert(Named::Forward);
    }

    fn base(&mut self, name: &str) -> Result<Arc<Structure>, IdlError> {
        let mut base = self.type_specification()?;
        loop {
            base = match base.resolved() {
                Type::Structure(base) => return Ok(Arc::clone(base)),
                Type::Recursive(part) => match self.names.defined.get(part.name()) {
                    Some(Named::Open(definition)) => definition.clone(),
                    _ => {
                        let problem = format!("the base {} is declared and not defined before here", part.name());
                        return Err(self.words.error_before(problem));
                    }
                },
                _ => return Err(self.words.error_before(format!("the base of {name} is no structure"))),
            };
        }
    }

    fn member(&mut self, of: &str, by_hash: bool, members: &mut Vec<StructureMember>) -> Result<(), IdlError> {
        let applied = Applied::read(&mut self.words)?;
        let base = self.type_specification()?;
        let annotations = applied.descriptive(&self.names)?;
        loop {
            let (name, member_type) = self.declarator(base.clone())?;
            self.docs.add(of, Some(&name), applied.docs().unwrap_or_default());
            let next = members.last().map_or(0, |last| last.id + 1);
            let id = self.id(&applied, &name, by_hash, next)?;
            if members.iter().any(|member| *member.name == *name || member.id == id) {
                return Err(self
                    .words
                    .error_before(format!("there is a member {name}, or one with the id {id}, already")));
            }
            let (is_key, is_optional) = (applied.has("key") || applied.has("Key"), applied.has("optional"));
            if is_key && is_optional {
                return Err(self.words.error_before(format!("the key member {name} must not be optional")));
            }
            let default = default_of(&applied, &member_type, &self.names)?;
            members.push(StructureMember {
                is_key,
                is_optional,
                must_understand: applied.has("must_understand"),
                is_external: applied.has("external"),
                try_construct: applied.try_construct()?,
                annotations: Annotations { default, ..annotations.clone() },
                ..StructureMember::new(&name, id, member_type)
            });
            if !self.words.try_take(",") {
                return self.words.take(";");
            }
        }
    }

    fn id(&self, applied: &Applied, name: &str, by_hash: bool, next: u32) -> Result<u32, IdlError> {
        let given = match applied.integer("id", &self.names)? {
            Some(id) => id,
            None => match applied.value("hashid", "value", &self.names)? {
                Some(Constant::Text(text)) if !text.is_empty() => id_of_name(&text),
                _ if applied.has("hashid") || by_hash => id_of_name(name),
                _ => next,
            },
        };
        if given <= ID_MAX {
            return Ok(given);
        }
        Err(self.words.error_before(format!("{given} is no member id; they end at {ID_MAX}")))
    }

    pub(super) fn union(&mut self, applied: &Applied) -> Result<(), IdlError> {
        let name = self.words.identifier()?;
        if self.forward(&name) {
            return Ok(());
        }
        self.begin(&name);
        let whole = self.document(&name, applied);
        self.words.take("switch")?;
        self.words.take("(")?;
        let on_label = Applied::read(&mut self.words)?;
        let discriminator = self.type_specification()?;
        let is_fine = match discriminator.resolved() {
            Type::Primitive(primitive) => {
                primitive.is_integer() || matches!(primitive, Primitive::Boolean | Primitive::Char8 | Primitive::Char16)
            }
            Type::Enumeration(_) => true,
            _ => false,
        };
        if !is_fine {
            let problem = "the discriminator of a union is a whole number, boolean, character or enumeration";
            return Err(self.words.error_before(problem.to_owned()));
        }
        self.words.take(")")?;
        self.words.take("{")?;
        let mut cases: Vec<UnionCase> = Vec::new();
        let by_hash = self.has_hashed_ids(applied);
        let extensibility = applied.extensibility()?.unwrap_or(self.extensibility);
        // In a mutable union the discriminator has the id 0; elsewhere ids do not travel, and Cyclone DDS counts from 0.
        let first_id = u32::from(extensibility == Extensibility::Mutable);
        while !self.words.try_take("}") {
            let (case, docs) = self.case(&discriminator, by_hash, first_id, &cases)?;
            self.docs.add(&whole, Some(&case.name), docs.as_deref().unwrap_or_default());
            cases.push(case);
        }
        if cases.is_empty() {
            return Err(self.words.error_before(format!("the union {name} has no case")));
        }
        let union = Union {
            name: self.names.qualified(&name),
            extensibility,
            discriminator,
            is_keyed: on_label.has("key"),
            cases,
            is_nested: self.is_nested(applied),
            has_hashed_ids: by_hash,
        };
        self.define(&name, Named::Type(Type::Union(Arc::new(union))))
    }

    fn case(
        &mut self,
        discriminator: &Type,
        by_hash: bool,
        first_id: u32,
        before: &[UnionCase],
    ) -> Result<(UnionCase, Option<Arc<str>>), IdlError> {
        let in_front = self.words.docs();
        let (mut labels, mut is_default) = (Vec::new(), false);
        loop {
            let at_case = self.words.peek() == Some("case");
            if at_case {
                self.words.take("case")?;
                let label = self.label(discriminator)?;
                let is_taken = before.iter().any(|case| case.labels.contains(&label)) || labels.contains(&label);
                if is_taken {
                    return Err(self.words.error_before(format!("the label {label} is taken")));
                }
                labels.push(label);
            } else if self.words.try_take("default") {
                if is_default || before.iter().any(|case| case.is_default) {
                    return Err(self.words.error_before("a union has one default case".to_owned()));
                }
                is_default = true;
            } else if labels.is_empty() && !is_default {
                return Err(self.words.error("expected \"case\" or \"default\"".to_owned()));
            } else {
                break;
            }
            self.words.take(":")?;
        }
        let applied = Applied::read(&mut self.words)?;
        let base = self.type_specification()?;
        let (name, case_type) = self.declarator(base)?;
        let next = before.last().map_or(first_id, |last| last.id + 1);
        let id = self.id(&applied, &name, by_hash, next)?;
        if id < first_id || before.iter().any(|case| case.name == name || case.id == id) {
            return Err(self.words.error_before(format!("there is a member {name}, or one with the id {id}, already")));
        }
        if applied.has("key") || applied.has("optional") {
            return Err(self.words.error_before(format!("the case {name} cannot be key or optional")));
        }
        self.words.take(";")?;
        let default = default_of(&applied, &case_type, &self.names)?;
        let case = UnionCase {
            name,
            id,
            labels,
            is_default,
            case_type: Some(case_type),
            is_external: applied.has("external"),
            try_construct: applied.try_construct()?,
            annotations: Annotations { default, ..applied.descriptive(&self.names)? },
        };
        Ok((case, in_front.or_else(|| applied.docs().map(Arc::from))))
    }

    /// The value of the discriminator behind `case`.
    fn label(&mut self, discriminator: &Type) -> Result<i32, IdlError> {
        if let Type::Enumeration(enumeration) = discriminator.resolved() {
            let name = self.words.scoped_name()?;
            let last = name.rsplit("::").next().unwrap_or(&name);
            let literal = enumeration.literal_named(last);
            return literal
                .map(|literal| literal.value)
                .ok_or_else(|| self.words.error_before(format!("{last} is no literal of {}", enumeration.name)));
        }
        match expression(&mut self.words, &self.names)? {
            Constant::Integer(label) => {
                if let Type::Primitive(primitive) = discriminator.resolved()
                    && !values_of(*primitive).contains(&label)
                {
                    let (values, of) = (values_of(*primitive), primitive.idl());
                    let (least, greatest) = (values.start(), values.end());
                    let problem = format!("the label {label} does not fit into {of}, which is {least} to {greatest}");
                    return Err(self.words.error_before(problem));
                }
                let fitting = match discriminator.resolved() {
                    Type::Primitive(Primitive::UInt32) => u32::try_from(label).map(u32::cast_signed),
                    _ => i32::try_from(label),
                };
                fitting.map_err(|_| self.words.error_before(format!("the label {label} does not fit into 32 bits")))
            }
            _ => Err(self.words.error_before("a label is a value of the discriminator".to_owned())),
        }
    }
}

/// The values of a discriminator.
fn values_of(of: Primitive) -> RangeInclusive<i128> {
    let bits = 8 * of.size_bytes();
    match of {
        Primitive::Boolean => 0..=1,
        Primitive::Int8 | Primitive::Int16 | Primitive::Int32 | Primitive::Int64 => {
            -(1 << (bits - 1))..=(1 << (bits - 1)) - 1
        }
        _ => 0..=(1 << bits) - 1,
    }
}
