//! Values of devices: typed, with units.

use std::fmt;

/// A measured or commanded value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// On or off.
    Boolean(bool),
    /// A count or a register.
    Integer(i64),
    /// A physical quantity.
    Real(f64),
    /// A line of text.
    Text(String),
    /// Octets that only the device understands.
    Bytes(Vec<u8>),
}

/// The type of a [`Value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// [`Value::Boolean`].
    Boolean,
    /// [`Value::Integer`].
    Integer,
    /// [`Value::Real`].
    Real,
    /// [`Value::Text`].
    Text,
    /// [`Value::Bytes`].
    Bytes,
}

/// The unit of a value, by its symbol in the registry of SenML units (RFC 8428 §12.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit(&'static str);

impl Value {
    /// Its type.
    pub fn kind(&self) -> ValueKind {
        match self {
            Value::Boolean(_) => ValueKind::Boolean,
            Value::Integer(_) => ValueKind::Integer,
            Value::Real(_) => ValueKind::Real,
            Value::Text(_) => ValueKind::Text,
            Value::Bytes(_) => ValueKind::Bytes,
        }
    }

    /// The same value as another type, where nothing is lost: whole numbers as real ones below 2^53, and back.
    pub fn into_kind(self, kind: ValueKind) -> Option<Value> {
        match (self, kind) {
            (Value::Integer(number), ValueKind::Real) => {
                let real = number as f64;
                (number.unsigned_abs() <= EXACT_IN_REAL).then_some(Value::Real(real))
            }
            (Value::Real(number), ValueKind::Integer) => {
                let is_whole = number.fract() == 0.0 && number.abs() <= EXACT_IN_REAL as f64;
                is_whole.then_some(Value::Integer(number as i64))
            }
            (Value::Integer(number @ (0 | 1)), ValueKind::Boolean) => Some(Value::Boolean(number == 1)),
            (value, kind) => (value.kind() == kind).then_some(value),
        }
    }
}

impl fmt::Display for Value {
    /// As people write it; bytes as `0x…`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Boolean(value) => value.fmt(f),
            Value::Integer(value) => value.fmt(f),
            Value::Real(value) => value.fmt(f),
            Value::Text(value) => value.fmt(f),
            Value::Bytes(bytes) => {
                f.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ValueKind::Boolean => "boolean",
            ValueKind::Integer => "whole number",
            ValueKind::Real => "number",
            ValueKind::Text => "text",
            ValueKind::Bytes => "bytes",
        })
    }
}

impl Unit {
    /// No unit: text, switches.
    pub const NONE: Unit = Unit("");
    /// A ratio or a count, `1` is the whole.
    pub const RATIO: Unit = Unit("/");
    /// A number of things.
    pub const COUNT: Unit = Unit("count");
    /// Degrees Celsius.
    pub const CELSIUS: Unit = Unit("Cel");
    /// Seconds.
    pub const SECOND: Unit = Unit("s");
    /// Bytes.
    pub const BYTE: Unit = Unit("B");
    /// Volts.
    pub const VOLT: Unit = Unit("V");
    /// Relative humidity in percent.
    pub const HUMIDITY: Unit = Unit("%RH");
    /// Pascals.
    pub const PASCAL: Unit = Unit("Pa");

    /// The symbol; empty for none.
    pub const fn symbol(self) -> &'static str {
        self.0
    }
}

/// Whole numbers up to here are exact as real ones.
const EXACT_IN_REAL: u64 = 1 << 53;
