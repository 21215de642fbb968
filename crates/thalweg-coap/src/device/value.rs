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

/// The unit of a value, by its symbol: one of SenML's registries (RFC 8428 §12.1, RFC 8798) or one of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    length: u8,
    letters: [u8; UNIT_MAX_BYTES],
}

/// A text that is no symbol of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadUnit(String);

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
    pub const NONE: Unit = Unit::fixed("");
    /// A ratio, `1` is the whole.
    pub const RATIO: Unit = Unit::fixed("/");
    /// A number of things.
    pub const COUNT: Unit = Unit::fixed("count");
    /// Metres.
    pub const METRE: Unit = Unit::fixed("m");
    /// Kilograms.
    pub const KILOGRAM: Unit = Unit::fixed("kg");
    /// Seconds.
    pub const SECOND: Unit = Unit::fixed("s");
    /// Amperes.
    pub const AMPERE: Unit = Unit::fixed("A");
    /// Kelvins.
    pub const KELVIN: Unit = Unit::fixed("K");
    /// Candelas.
    pub const CANDELA: Unit = Unit::fixed("cd");
    /// Hertz.
    pub const HERTZ: Unit = Unit::fixed("Hz");
    /// Radians.
    pub const RADIAN: Unit = Unit::fixed("rad");
    /// Degrees of an angle.
    pub const DEGREE: Unit = Unit::fixed("deg");
    /// Newtons.
    pub const NEWTON: Unit = Unit::fixed("N");
    /// Pascals.
    pub const PASCAL: Unit = Unit::fixed("Pa");
    /// Joules.
    pub const JOULE: Unit = Unit::fixed("J");
    /// Watts.
    pub const WATT: Unit = Unit::fixed("W");
    /// Volts.
    pub const VOLT: Unit = Unit::fixed("V");
    /// Ohms.
    pub const OHM: Unit = Unit::fixed("Ohm");
    /// Teslas.
    pub const TESLA: Unit = Unit::fixed("T");
    /// Lux.
    pub const LUX: Unit = Unit::fixed("lx");
    /// Degrees Celsius.
    pub const CELSIUS: Unit = Unit::fixed("Cel");
    /// Relative humidity in percent.
    pub const HUMIDITY: Unit = Unit::fixed("%RH");
    /// Metres a second.
    pub const METRE_PER_SECOND: Unit = Unit::fixed("m/s");
    /// Metres a second squared.
    pub const METRE_PER_SECOND_SQUARED: Unit = Unit::fixed("m/s2");
    /// Radians a second.
    pub const RADIAN_PER_SECOND: Unit = Unit::fixed("rad/s");
    /// Decibels.
    pub const DECIBEL: Unit = Unit::fixed("dB");
    /// Bytes.
    pub const BYTE: Unit = Unit::fixed("B");
    /// Parts in a million.
    pub const PARTS_PER_MILLION: Unit = Unit::fixed("ppm");
    /// Micrograms in a cubic metre.
    pub const MICROGRAM_PER_CUBIC_METRE: Unit = Unit::fixed("ug/m3");
    /// Hectopascals.
    pub const HECTOPASCAL: Unit = Unit::fixed("hPa");

    /// The unit of this symbol, registered or not; empty for none.
    ///
    /// # Errors
    /// When it has more than 23 bytes, or others than printable ASCII, quotes and backslashes.
    pub fn new(symbol: &str) -> Result<Unit, BadUnit> {
        let is_allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        if symbol.len() > UNIT_MAX_BYTES || !symbol.bytes().all(is_allowed) {
            return Err(BadUnit(symbol.to_owned()));
        }
        Ok(Unit::fixed(symbol))
    }

    /// The unit of a symbol that is short enough.
    pub(super) const fn fixed(symbol: &str) -> Unit {
        let (bytes, mut letters, mut at) = (symbol.as_bytes(), [0; UNIT_MAX_BYTES], 0);
        while at < bytes.len() {
            letters[at] = bytes[at];
            at += 1;
        }
        Unit { length: at as u8, letters }
    }

    /// The symbol; empty for none.
    pub fn symbol(&self) -> &str {
        // Only texts are put in.
        std::str::from_utf8(&self.letters[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl fmt::Debug for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unit({:?})", self.symbol())
    }
}

impl fmt::Display for BadUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no unit; use up to {UNIT_MAX_BYTES} letters of ASCII without spaces and quotes", self.0)
    }
}

impl std::error::Error for BadUnit {}

/// Longer than any registered symbol; a unit is copied with each description of a resource.
const UNIT_MAX_BYTES: usize = 23;
/// Whole numbers up to here are exact as real ones.
const EXACT_IN_REAL: u64 = 1 << 53;
