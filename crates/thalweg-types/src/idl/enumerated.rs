//! Enumerations, bit masks and bit sets.

use std::sync::Arc;

use thalweg_cdr::Extensibility;
use thalweg_cdr::description::{Bitfield, Bitmask, Bitset, Enumeration, Literal, Primitive, Type};

use super::annotations::Applied;
use super::constants::Constant;
use super::{IdlError, Named, Parser};

impl Parser {
    pub(super) fn enumeration(&mut self, applied: &Applied) -> Result<(), IdlError> {
        let name = self.words.identifier()?;
        let bit_bound = applied.integer("bit_bound", &self.names)?.unwrap_or(32);
        if !(1..=32).contains(&bit_bound) {
            let problem = format!("an enumeration of {bit_bound} bits; 1 to 32 are allowed");
            return Err(self.words.error_before(problem));
        }
        self.words.take("{")?;
        let whole = self.document(&name, applied);
        let mut literals: Vec<Literal> = Vec::new();
        let mut default = None;
        let (mut least, mut greatest) = (0, 0);
        loop {
            let own = Applied::read(&mut self.words)?;
            let literal = self.words.identifier()?;
            self.docs.add(&whole, Some(&literal), own.docs().unwrap_or_default());
            let next = literals.last().map_or(0, |last| last.value.wrapping_add(1));
            let value = own.integer("value", &self.names)?.unwrap_or(next);
            if literals.iter().any(|other| other.name == literal || other.value == value) {
                return Err(self
                    .words
                    .error_before(format!("there is a literal {literal}, or one with the value {value}, already")));
            }
            (least, greatest) = (value.min(least), value.max(greatest));
            self.check_value(least, greatest, bit_bound)?;
            if own.has("default_literal") {
                default = Some(literals.len());
            }
            self.define_literal(&literal, value);
            literals.push(Literal { name: literal, value });
            if !self.words.try_take(",") || self.words.peek() == Some("}") {
                break;
            }
        }
        self.words.take("}")?;
        let extensibility = Some(self.of_enumerated(applied)?);
        let name_of_all = self.names.qualified(&name);
        let default = default.unwrap_or(0);
        let enumeration = Enumeration { name: name_of_all, literals, default, bit_bound, extensibility };
        self.define(&name, Named::Type(Type::Enumeration(Arc::new(enumeration))))
    }

    /// Whether the values of an enumeration fit into its bits, of which one is the sign where a value is negative.
    fn check_value(&self, least: i32, greatest: i32, bit_bound: u16) -> Result<(), IdlError> {
        let (lowest, bits) = match least {
            0.. => (0, bit_bound),
            _ => (-(1_i64 << (bit_bound - 1)), bit_bound - 1),
        };
        let highest = (1_i64 << bits) - 1;
        let beyond = [least, greatest].into_iter().find(|value| !(lowest..=highest).contains(&i64::from(*value)));
        let Some(value) = beyond else { return Ok(()) };
        let signed = if least < 0 { ", one of them for the sign" } else { "" };
        let problem = format!("the value {value} does not fit into the {bit_bound} bits of the enumeration{signed}");
        Err(self.words.error_before(problem))
    }

    /// A literal is a constant in the scope of its enumeration; where two have one name, the type tells them apart.
    fn define_literal(&mut self, name: &str, value: i32) {
        let qualified = self.names.qualified(name);
        self.names.defined.entry(qualified).or_insert(Named::Constant(Constant::Integer(value.into())));
    }

    /// Enumerations and bit masks that are not annotated are as final or appendable as other types.
    fn of_enumerated(&self, applied: &Applied) -> Result<Extensibility, IdlError> {
        match applied.extensibility()?.unwrap_or(self.extensibility) {
            Extensibility::Mutable => {
                Err(self.words.error_before("an enumeration or bit mask is never mutable".to_owned()))
            }
            other => Ok(other),
        }
    }

    pub(super) fn bitmask(&mut self, applied: &Applied) -> Result<(), IdlError> {
        let name = self.words.identifier()?;
        let bit_bound = applied.integer("bit_bound", &self.names)?.unwrap_or(32);
        if !(1..=64).contains(&bit_bound) {
            return Err(self.words.error_before(format!("a bit mask of {bit_bound} bits; 1 to 64 are allowed")));
        }
        self.words.take("{")?;
        let mut flags: Vec<(String, u16)> = Vec::new();
        while !self.words.try_take("}") {
            let own = Applied::read(&mut self.words)?;
            let flag = self.words.identifier()?;
            let next = flags.last().map_or(0, |(_, last)| last + 1);
            let position = own.integer("position", &self.names)?.unwrap_or(next);
            if position >= bit_bound || flags.iter().any(|(other, taken)| *other == flag || *taken == position) {
                return Err(self.words.error_before(format!("{flag} has no bit of its own among {bit_bound}")));
            }
            flags.push((flag, position));
            if !self.words.try_take(",") {
                self.words.take("}")?;
                break;
            }
        }
        let extensibility = self.of_enumerated(applied)?;
        let bitmask = Bitmask { name: self.names.qualified(&name), bit_bound, flags, extensibility };
        self.define(&name, Named::Type(Type::Bitmask(Arc::new(bitmask))))
    }

    pub(super) fn bitset(&mut self) -> Result<(), IdlError> {
        let name = self.words.identifier()?;
        let (mut fields, mut bits) = (Vec::new(), 0_u16);
        if self.words.try_take(":") {
            match self.type_specification()?.resolved() {
                Type::Bitset(base) => (fields, bits) = (base.fields.clone(), base.bits),
                _ => return Err(self.words.error_before(format!("the base of {name} is no bit set"))),
            }
        }
        self.words.take("{")?;
        while !self.words.try_take("}") {
            Applied::read(&mut self.words)?;
            self.words.take("bitfield")?;
            self.words.take("<")?;
            let size = self.positive()?;
            let Some(size) = u8::try_from(size).ok().filter(|size| *size <= 64) else {
                return Err(self.words.error_before(format!("a field of {size} bits; 1 to 64 are allowed")));
            };
            let holder = self.holder(size)?;
            self.words.take(">")?;
            if self.words.peek() == Some(";") {
                bits += u16::from(size);
            }
            while self.words.peek() != Some(";") {
                let field = self.words.identifier()?;
                if fields.iter().any(|other: &Bitfield| other.name == field) {
                    return Err(self.words.error_before(format!("there is a field {field} already")));
                }
                fields.push(Bitfield { name: field, position: bits, bits: size, holder });
                bits += u16::from(size);
                self.check_bits(&name, bits)?;
                if !self.words.try_take(",") {
                    break;
                }
            }
            self.words.take(";")?;
            self.check_bits(&name, bits)?;
        }
        if bits == 0 {
            return Err(self.words.error_before(format!("the bit set {name} has no bits")));
        }
        let bitset = Bitset { name: self.names.qualified(&name), fields, bits };
        self.define(&name, Named::Type(Type::Bitset(Arc::new(bitset))))
    }

    fn check_bits(&self, name: &str, bits: u16) -> Result<(), IdlError> {
        match bits {
            0..=64 => Ok(()),
            _ => Err(self.words.error_before(format!("the bit set {name} has more than 64 bits"))),
        }
    }

    /// The type of a field's value: given, or the smallest unsigned one (IDL 4.2 §7.4.13.4.3.2).
    fn holder(&mut self, bits: u8) -> Result<Primitive, IdlError> {
        if !self.words.try_take(",") {
            return Ok(match bits {
                1 => Primitive::Boolean,
                2..=8 => Primitive::Byte,
                9..=16 => Primitive::UInt16,
                17..=32 => Primitive::UInt32,
                _ => Primitive::UInt64,
            });
        }
        match self.type_specification()?.resolved() {
            Type::Primitive(holder) if holder.is_integer() && holder.size_bytes() * 8 >= usize::from(bits) => {
                Ok(*holder)
            }
            Type::Primitive(Primitive::Boolean) if bits == 1 => Ok(Primitive::Boolean),
            _ => Err(self.words.error_before(format!("a field of {bits} bits needs a whole number that has them"))),
        }
    }
}
