//! Types to their objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg_cdr::description::{
    Annotations, Bitmask, Bitset, Component, Enumeration, Primitive, Recursive, Structure, TryConstruct, Type, Union,
};
use thalweg_cdr::{EncodeError, Extensibility};

use super::identifier::{CollectionHeader, Equivalence, TypeHash, TypeIdentifier, octet_of};
use super::object::{MemberName, ObjectBody, ObjectMember, Remarks, TypeHeader, TypeObject, name_hash};
use super::values::AnnotationValue;

// Flags of members (DDS-XTypes 1.3 Annex B, MemberFlag).
pub(super) const TRY_CONSTRUCT: u16 = 0b11;
pub(super) const IS_EXTERNAL: u16 = 1 << 2;
pub(super) const IS_OPTIONAL: u16 = 1 << 3;
pub(super) const IS_MUST_UNDERSTAND: u16 = 1 << 4;
pub(super) const IS_KEY: u16 = 1 << 5;
pub(super) const IS_DEFAULT: u16 = 1 << 6;
// Flags of types (TypeFlag).
pub(super) const IS_FINAL: u16 = 1;
pub(super) const IS_APPENDABLE: u16 = 1 << 1;
pub(super) const IS_MUTABLE: u16 = 1 << 2;
pub(super) const IS_NESTED: u16 = 1 << 3;
pub(super) const IS_AUTOID_HASH: u16 = 1 << 4;

/// Describes types as objects of one kind, each once.
#[derive(Debug)]
pub struct Describing {
    equivalence: Equivalence,
    /// The objects so far with their bytes, in the order in which they were made: what an object refers to comes first.
    objects: Vec<(TypeHash, Vec<u8>)>,
    /// The identifiers of types that have a name.
    named: BTreeMap<String, Vec<(Type, TypeIdentifier)>>,
    components: Vec<DescribedComponent>,
    /// The components that were described, with their hashes.
    hashes: Vec<(Arc<Component>, TypeHash)>,
    /// The components that are being described, with the hash that their types have in the objects.
    open: Vec<(Arc<Component>, TypeHash)>,
}

/// The objects of types that contain each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedComponent {
    /// The identifier of the whole.
    pub identifier: TypeIdentifier,
    /// The objects in the order of the types' names.
    pub objects: Vec<Vec<u8>>,
}

impl Describing {
    /// Nothing yet.
    pub fn new(equivalence: Equivalence) -> Describing {
        Describing {
            equivalence,
            objects: Vec::new(),
            named: BTreeMap::new(),
            components: Vec::new(),
            hashes: Vec::new(),
            open: Vec::new(),
        }
    }

    /// The objects with their bytes: what an object refers to comes before it.
    pub fn objects(&self) -> &[(TypeHash, Vec<u8>)] {
        &self.objects
    }

    /// The objects of types that contain each other: what a component refers to comes before it.
    pub fn components(&self) -> &[DescribedComponent] {
        &self.components
    }

    /// The identifier of a type, whose objects are described now if they were not.
    ///
    /// # Errors
    /// When an annotation is no value of its member, or a bound exceeds 32 bits.
    pub fn identifier(&mut self, of: &Type) -> Result<TypeIdentifier, EncodeError> {
        Ok(match of {
            Type::Primitive(primitive) => TypeIdentifier::Primitive(*primitive),
            Type::String { bound } => TypeIdentifier::String { is_wide: false, bound: bound_of(*bound)? },
            Type::WString { bound } => TypeIdentifier::String { is_wide: true, bound: bound_of(*bound)? },
            Type::Sequence { element, bound } => {
                let element = Box::new(self.identifier(element)?);
                TypeIdentifier::Sequence { header: self.collection(&[&element]), bound: bound_of(*bound)?, element }
            }
            Type::Array { .. } => self.array(of)?,
            Type::Map { key, element, bound } => {
                let (key, element) = (Box::new(self.identifier(key)?), Box::new(self.identifier(element)?));
                let (header, bound) = (self.collection(&[&element, &key]), bound_of(*bound)?);
                TypeIdentifier::Map { header, bound, element, key_flags: 1, key }
            }
            Type::Recursive(part) => self.part(part)?,
            named => self.named(named)?,
        })
    }

    fn array(&mut self, of: &Type) -> Result<TypeIdentifier, EncodeError> {
        let (mut innermost, mut bounds) = (of, Vec::new());
        while let Type::Array { element, count } = innermost {
            bounds.push(bound_of(Some(*count))?);
            innermost = element;
        }
        let element = Box::new(self.identifier(innermost)?);
        Ok(TypeIdentifier::Array { header: self.collection(&[&element]), bounds, element })
    }

    fn collection(&self, elements: &[&TypeIdentifier]) -> CollectionHeader {
        let is_both = elements.iter().all(|element| element.is_fully_descriptive());
        let equivalence = if is_both { None } else { Some(self.equivalence) };
        CollectionHeader { equivalence, element_flags: flag_of(TryConstruct::Discard) }
    }

    fn named(&mut self, of: &Type) -> Result<TypeIdentifier, EncodeError> {
        let name = of.name().unwrap_or_default().to_owned();
        let known = self.named.get(&name).into_iter().flatten();
        if let Some((_, identifier)) = known.into_iter().find(|(known, _)| known == of) {
            return Ok(identifier.clone());
        }
        let bytes = self.object(of, &name)?.to_bytes()?;
        let hash = TypeObject::hash_of(&bytes);
        if !self.objects.iter().any(|(known, _)| *known == hash) {
            self.objects.push((hash, bytes));
        }
        let identifier = TypeIdentifier::Hash(self.equivalence, hash);
        self.named.entry(name).or_default().push((of.clone(), identifier.clone()));
        Ok(identifier)
    }

    fn part(&mut self, part: &Recursive) -> Result<TypeIdentifier, EncodeError> {
        let gone = || EncodeError::new(format!("the definition of {} is gone", part.name()));
        let component = part.component().ok_or_else(gone)?;
        let hash = match self.open.iter().find(|(open, _)| Arc::ptr_eq(open, &component)) {
            Some((_, hash)) => *hash,
            None => self.component(&component)?,
        };
        Ok(self.whole(&component, hash).part(part.index() as i32 + 1))
    }

    fn whole(&self, component: &Component, hash: TypeHash) -> TypeIdentifier {
        // A component has at most `COMPONENT_TYPES_MAX` types.
        let length = component.types().len() as i32;
        TypeIdentifier::Component { equivalence: self.equivalence, hash, length, index: 0 }
    }

    /// The hash of a component, which is made of objects in which it is zero (DDS-XTypes 1.3 §7.3.4.9).
    fn component(&mut self, component: &Arc<Component>) -> Result<TypeHash, EncodeError> {
        let is_known = |known: &Arc<Component>| Arc::ptr_eq(known, component) || known == component;
        if let Some((_, hash)) = self.hashes.iter().find(|(known, _)| is_known(known)) {
            return Ok(*hash);
        }
        let without_hash = self.component_objects(component, TypeHash([0; 14]))?;
        let hash = TypeObject::hash_of_component(&without_hash)?;
        let objects = self.component_objects(component, hash)?;
        self.hashes.push((Arc::clone(component), hash));
        let identifier = self.whole(component, hash);
        self.components.push(DescribedComponent { identifier, objects });
        Ok(hash)
    }

    fn component_objects(&mut self, component: &Arc<Component>, hash: TypeHash) -> Result<Vec<Vec<u8>>, EncodeError> {
        self.open.push((Arc::clone(component), hash));
        let types = component.types().iter();
        let objects = types.map(|of| self.object(of, of.name().unwrap_or_default())?.to_bytes()).collect();
        self.open.pop();
        objects
    }

    fn object(&mut self, of: &Type, name: &str) -> Result<TypeObject, EncodeError> {
        let (flags, body) = match of {
            Type::Alias(alias) => (0, ObjectBody::Alias { aliased: self.identifier(&alias.aliased)? }),
            Type::Structure(structure) => self.structure(structure)?,
            Type::Union(union) => self.union(union)?,
            Type::Enumeration(enumeration) => self.enumeration(enumeration),
            Type::Bitmask(bitmask) => self.bitmask(bitmask),
            Type::Bitset(bitset) => self.bitset(bitset),
            _ => return Err(EncodeError::new("a type without name has no object")),
        };
        let header = TypeHeader((self.equivalence == Equivalence::Complete).then(|| name.to_owned()));
        Ok(TypeObject { equivalence: self.equivalence, flags, header, body })
    }

    fn structure(&mut self, structure: &Structure) -> Result<(u16, ObjectBody), EncodeError> {
        let base = match &structure.base {
            None => TypeIdentifier::None,
            Some(base) => self.identifier(&base.to_type())?,
        };
        let mut members = Vec::new();
        for member in structure.own_members() {
            let mut flags = flag_of(member.try_construct);
            for (is_set, flag) in [
                (member.is_external, IS_EXTERNAL),
                (member.is_optional, IS_OPTIONAL),
                (member.must_understand, IS_MUST_UNDERSTAND),
                (member.is_key, IS_KEY),
            ] {
                flags |= if is_set { flag } else { 0 };
            }
            members.push(ObjectMember {
                id: member.id,
                flags,
                member_type: self.identifier(&member.member_type)?,
                labels: Vec::new(),
                name: self.name(&member.name, &member.annotations),
            });
        }
        let flags = type_flags(structure.extensibility, structure.is_nested, structure.has_hashed_ids);
        Ok((flags, ObjectBody::Structure { base, members }))
    }

    fn union(&mut self, union: &Union) -> Result<(u16, ObjectBody), EncodeError> {
        let discriminator = self.identifier(&union.discriminator)?;
        let key = if union.is_keyed { IS_KEY } else { 0 };
        let discriminator_flags = flag_of(TryConstruct::Discard) | IS_MUST_UNDERSTAND | key;
        let mut cases = Vec::new();
        for case in &union.cases {
            let default = if case.is_default { IS_DEFAULT } else { 0 };
            let external = if case.is_external { IS_EXTERNAL } else { 0 };
            let case_type = case.case_type.clone().unwrap_or(Type::Primitive(Primitive::Byte));
            cases.push(ObjectMember {
                id: case.id,
                flags: flag_of(case.try_construct) | default | external,
                member_type: self.identifier(&case_type)?,
                labels: case.labels.clone(),
                name: self.name(&case.name, &case.annotations),
            });
        }
        let flags = type_flags(union.extensibility, union.is_nested, union.has_hashed_ids);
        Ok((flags, ObjectBody::Union { discriminator_flags, discriminator, cases }))
    }

    fn enumeration(&self, enumeration: &Enumeration) -> (u16, ObjectBody) {
        let literals = enumeration.literals.iter().enumerate().map(|(index, literal)| {
            let flags = if index == enumeration.default { IS_DEFAULT } else { 0 };
            (literal.value, flags, self.plain_name(&literal.name))
        });
        let mut literals: Vec<_> = literals.collect();
        literals.sort_by_key(|(value, _, _)| *value);
        let flags = enumeration.extensibility.map_or(0, |told| type_flags(told, false, false));
        (flags, ObjectBody::Enumeration { bit_bound: enumeration.bit_bound, literals })
    }

    fn bitmask(&self, bitmask: &Bitmask) -> (u16, ObjectBody) {
        let flags = bitmask.flags.iter().map(|(name, position)| (*position, 0, self.plain_name(name)));
        let mut flags: Vec<_> = flags.collect();
        flags.sort_by_key(|(position, _, _)| *position);
        (type_flags(bitmask.extensibility, false, false), ObjectBody::Bitmask { bit_bound: bitmask.bit_bound, flags })
    }

    fn bitset(&self, bitset: &Bitset) -> (u16, ObjectBody) {
        let fields = bitset
            .fields
            .iter()
            .map(|field| (field.position, 0, field.bits, octet_of(field.holder), self.plain_name(&field.name)));
        (0, ObjectBody::Bitset { fields: fields.collect() })
    }

    fn plain_name(&self, name: &str) -> MemberName {
        self.name(name, &Annotations::default())
    }

    fn name(&self, name: &str, annotations: &Annotations) -> MemberName {
        if self.equivalence == Equivalence::Minimal {
            return MemberName::Hash(name_hash(name));
        }
        // A number is told in the type of its literal, as Cyclone DDS does, not in that of the member.
        let number = |text: &Option<String>| {
            let text = text.clone()?;
            let kind = match text.parse::<i128>() {
                Ok(number) if i32::try_from(number).is_ok() => Primitive::Int32,
                Ok(number) if i64::try_from(number).is_ok() => Primitive::Int64,
                Ok(_) => Primitive::UInt64,
                Err(_) => Primitive::Float64,
            };
            Some(AnnotationValue { kind, text })
        };
        let remarks = Remarks {
            unit: annotations.unit.clone(),
            min: number(&annotations.min),
            max: number(&annotations.max),
            hash_id: annotations.hash_id.clone(),
        };
        let remarks = (remarks != Remarks::default()).then(|| Box::new(remarks));
        MemberName::Text { name: name.to_owned(), remarks }
    }
}

fn flag_of(try_construct: TryConstruct) -> u16 {
    match try_construct {
        TryConstruct::Discard => 0b01,
        TryConstruct::UseDefault => 0b10,
        TryConstruct::Trim => 0b11,
    }
}

fn type_flags(extensibility: Extensibility, is_nested: bool, has_hashed_ids: bool) -> u16 {
    let extensibility = match extensibility {
        Extensibility::Final => IS_FINAL,
        Extensibility::Appendable => IS_APPENDABLE,
        Extensibility::Mutable => IS_MUTABLE,
    };
    let nested = if is_nested { IS_NESTED } else { 0 };
    extensibility | nested | if has_hashed_ids { IS_AUTOID_HASH } else { 0 }
}

/// 0 stands for no bound.
fn bound_of(bound: Option<usize>) -> Result<u32, EncodeError> {
    u32::try_from(bound.unwrap_or(0)).map_err(|_| EncodeError::new("a bound of more than 2^32 - 1"))
}
