//! Members of a value by their names, as content filters look at them (DDS 1.4, Annex B).

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FieldStep {
    /// To a member of a struct, by its name in IDL.
    Member(String),
    /// To an element of a sequence or array, counted from 0.
    Element(usize),
}

/// A part of a value that can be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldValue<'a> {
    /// A boolean.
    Boolean(bool),
    /// Any integer.
    Integer(i128),
    /// A floating-point number of 64 bits.
    Float(f64),
    /// A floating-point number of 32 bits.
    Single(f32),
    /// A string or a character.
    Text(&'a str),
    /// A character.
    Character(char),
    /// A literal of an enum.
    Literal {
        /// Its name.
        name: &'static str,
        /// Its number.
        number: i64,
    },
}

/// The kind of a [`FieldValue`] that a type has at some place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A boolean.
    Boolean,
    /// Any integer.
    Integer,
    /// Any floating-point number.
    Float,
    /// A string or a character.
    Text,
    /// A literal of an enum with these names.
    Literal(&'static [&'static str]),
}
