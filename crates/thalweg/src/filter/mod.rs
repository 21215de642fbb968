//! Content filters: conditions over the members of samples, in the language of DDS (DDS 1.4, Annex B).
//!
//! ```
//! use thalweg::filter::Filter;
//!
//! let filter = Filter::parse("color LIKE 'R%' AND NOT (size BETWEEN 10 AND %0)", &["20"])?;
//! # Ok::<(), thalweg::filter::FilterError>(())
//! ```

mod compare;
mod parse;

use std::fmt;

use thalweg_cdr::{Encode, FieldKind, FieldStep, FieldValue};

use compare::{Like, Relation};

/// Longest expression or parameter in bytes, ours or a peer's. Chosen by Thalweg.
pub const EXPRESSION_MAX_BYTES: usize = 8_192;
/// Most bytes of an expression and its parameters together: one parameter of discovery data carries them. Chosen by Thalweg.
const FILTER_MAX_BYTES: usize = 60_000;
/// Most bytes of an expression and of its parameters, each counted as often as it is used: every use is kept and compared on its own, so
/// that few bytes of discovery data would become very many. Long parameters may still be used a few times each. Chosen by Thalweg.
const USES_MAX_BYTES: usize = 4 * FILTER_MAX_BYTES;
/// Most parameters: `%0` to `%99` (DDS 1.4, Annex B).
pub const PARAMETERS_MAX: usize = 100;
/// Deepest nesting of parentheses and NOT, so that an expression of a peer cannot exhaust the stack. Chosen by Thalweg.
pub const NESTING_MAX: usize = 64;

/// A condition over the members of a sample.
///
/// Comparisons with `=`, `<>`, `!=`, `<`, `<=`, `>`, `>=`, `LIKE` (with `%` or `*` for any text and `_` or `?` for one character) and
/// `BETWEEN`, of members with each other, with numbers, `'texts'`, `'LITERALS'` of enums, TRUE, FALSE, and parameters `%0` to `%99`;
/// joined by AND, OR, NOT and parentheses. Members are named as in IDL: `position.x`, `samples[3].level`. A comparison with an absent
/// member is false. A number is rounded to the precision of the member beside it, so that `level = 0.1` holds for a `float` of 0.1.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    expression: String,
    parameters: Vec<String>,
    condition: Condition,
}

/// Why an expression is none, or does not fit a type; displays as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterError {
    /// The place in the expression, counted in bytes from 0; `None` for a parameter.
    pub offset: Option<usize>,
    /// What is wrong.
    pub cause: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "{} at byte {offset} of the filter", self.cause),
            None => f.write_str(&self.cause),
        }
    }
}

impl std::error::Error for FilterError {}

#[derive(Clone, Debug, PartialEq)]
enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Compare { left: Operand, relation: Relation, right: Operand, offset: usize },
    Like { text: Operand, pattern: Like, offset: usize },
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Field { name: String, path: Vec<FieldStep> },
    Given(Given),
}

/// A value in the expression.
#[derive(Clone, Debug, PartialEq)]
enum Given {
    Boolean(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    /// A parameter without quotes that reads as a number or a boolean, and may be a text as well: the member beside it decides.
    Unquoted {
        value: Box<Given>,
        text: Box<Given>,
    },
}

impl Given {
    /// What it is beside a member of this kind.
    fn beside(&self, member: FieldKind) -> &Given {
        match (self, member) {
            (Given::Unquoted { text, .. }, FieldKind::Text) => text,
            (Given::Unquoted { value, text }, FieldKind::Literal(_)) if !matches!(**value, Given::Integer(_)) => text,
            (Given::Unquoted { value, .. }, _) => value,
            (given, _) => given,
        }
    }

    /// Its value beside a member's.
    fn value_beside(&self, member: FieldValue<'_>) -> FieldValue<'_> {
        let value = self.beside(kind_of(member)).value();
        match (member, value) {
            // In the member's own precision: no number of 32 bits is the 0.1 of 64.
            (FieldValue::Single(_), FieldValue::Float(number)) if (number as f32).is_finite() => {
                FieldValue::Single(number as f32)
            }
            (FieldValue::Single(_), FieldValue::Integer(number)) => FieldValue::Single(number as f32),
            _ => value,
        }
    }

    fn value(&self) -> FieldValue<'_> {
        match self {
            Given::Boolean(value) => FieldValue::Boolean(*value),
            Given::Integer(value) => FieldValue::Integer(*value),
            Given::Float(value) => FieldValue::Float(*value),
            Given::Text(value) => FieldValue::Text(value),
            Given::Unquoted { value, .. } => value.value(),
        }
    }

    /// The text, where it can be one.
    fn text(&self) -> Option<&str> {
        match self {
            Given::Text(text) => Some(text),
            Given::Unquoted { text, .. } => text.text(),
            _ => None,
        }
    }
}

fn kind_of(value: FieldValue<'_>) -> FieldKind {
    match value {
        FieldValue::Boolean(_) => FieldKind::Boolean,
        FieldValue::Integer(_) => FieldKind::Integer,
        FieldValue::Float(_) | FieldValue::Single(_) => FieldKind::Float,
        FieldValue::Text(_) | FieldValue::Character(_) => FieldKind::Text,
        FieldValue::Literal { .. } => FieldKind::Literal(&[]),
    }
}

impl Filter {
    /// Reads an expression and the values of its parameters, each written as it would be in the expression; a text may lack its quotes,
    /// also one such as `42`: the member that it is compared with decides.
    ///
    /// # Errors
    /// Where the expression is none of the language, is longer or nested deeper than the bounds of this module, has a NUL in a text, or
    /// names a parameter that is not given; where it has more than 60,000 bytes together with its parameters, or more than 240,000 with
    /// each of them as often as it is used.
    pub fn parse<P: AsRef<str>>(expression: &str, parameters: &[P]) -> Result<Filter, FilterError> {
        let parameters: Vec<String> = parameters.iter().map(|value| value.as_ref().to_owned()).collect();
        let condition = parse::condition(expression, &parameters)?;
        Ok(Filter { expression: expression.to_owned(), parameters, condition })
    }

    /// The expression.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// The values of its parameters.
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// Tells whether the filter can be applied to samples of this type.
    ///
    /// # Errors
    /// For a member that the type does not have or that is no number, text, boolean or enum, and for values that cannot be compared.
    pub fn check<T: Encode>(&self) -> Result<(), FilterError> {
        self.condition.check::<T>()
    }

    /// Whether a sample meets the condition.
    pub fn accepts<T: Encode>(&self, sample: &T) -> bool {
        let mut steps = u64::MAX;
        self.accepts_within(sample, &mut steps).unwrap_or(true)
    }

    /// As [`accepts`](Self::accepts), in so many steps at most, from which it takes those that it makes: one for each comparison of a
    /// character with a pattern, and of two values, where long texts take more. `None` when they are used up before it is known.
    pub(crate) fn accepts_within<T: Encode>(&self, sample: &T, steps: &mut u64) -> Option<bool> {
        self.condition.holds(sample, steps)
    }
}

impl Condition {
    fn check<T: Encode>(&self) -> Result<(), FilterError> {
        match self {
            Condition::All(conditions) | Condition::Any(conditions) => {
                conditions.iter().try_for_each(Condition::check::<T>)
            }
            Condition::Not(condition) => condition.check::<T>(),
            Condition::Compare { left, relation, right, offset } => {
                let (left, right) = (left.kind::<T>(*offset)?, right.kind::<T>(*offset)?);
                let error = |cause| FilterError { offset: Some(*offset), cause };
                compare::check(&left, *relation, &right).map_err(error)
            }
            Condition::Like { text, offset, .. } => match text.kind::<T>(*offset)? {
                Kind::Field(FieldKind::Text | FieldKind::Literal(_)) => Ok(()),
                _ => Err(FilterError { offset: Some(*offset), cause: "LIKE compares texts only".to_owned() }),
            },
        }
    }

    /// Whether a sample meets it; `None` when the steps are used up before it is known.
    fn holds<T: Encode>(&self, sample: &T, steps: &mut u64) -> Option<bool> {
        match self {
            Condition::All(conditions) => {
                for condition in conditions {
                    if !condition.holds(sample, steps)? {
                        return Some(false);
                    }
                }
                Some(true)
            }
            Condition::Any(conditions) => {
                for condition in conditions {
                    if condition.holds(sample, steps)? {
                        return Some(true);
                    }
                }
                Some(false)
            }
            Condition::Not(condition) => condition.holds(sample, steps).map(|holds| !holds),
            Condition::Compare { left, relation, right, .. } => {
                let values = compared(left, right, sample);
                *steps = steps.checked_sub(values.map_or(1, |(left, right)| compare::steps(left, right)))?;
                Some(values.is_some_and(|(left, right)| compare::holds(left, *relation, right)))
            }
            Condition::Like { text, pattern, .. } => match text.value(sample) {
                Some(FieldValue::Text(text) | FieldValue::Literal { name: text, .. }) => pattern.fits(text, steps),
                Some(FieldValue::Character(character)) => pattern.fits(character.encode_utf8(&mut [0; 4]), steps),
                _ => Some(false),
            },
        }
    }
}

/// What an operand is before there is a sample.
#[derive(Clone, Debug)]
enum Kind<'a> {
    Field(FieldKind),
    Given(&'a Given),
}

impl Operand {
    fn kind<T: Encode>(&self, offset: usize) -> Result<Kind<'_>, FilterError> {
        match self {
            Operand::Given(given) => Ok(Kind::Given(given)),
            Operand::Field { name, path } => T::field_kind(path).map(Kind::Field).ok_or_else(|| {
                let cause = format!("the type has no member {name:?} that can be compared");
                FilterError { offset: Some(offset), cause }
            }),
        }
    }

    fn value<'a, T: Encode>(&'a self, sample: &'a T) -> Option<FieldValue<'a>> {
        match self {
            Operand::Field { path, .. } => sample.field(path),
            Operand::Given(given) => Some(given.value()),
        }
    }
}

/// Both values of a comparison; `None` where a member is absent.
fn compared<'a, T: Encode>(
    left: &'a Operand,
    right: &'a Operand,
    sample: &'a T,
) -> Option<(FieldValue<'a>, FieldValue<'a>)> {
    let (first, second) = (left.value(sample)?, right.value(sample)?);
    Some(match (left, right) {
        (Operand::Given(given), Operand::Field { .. }) => (given.value_beside(second), second),
        (Operand::Field { .. }, Operand::Given(given)) => (first, given.value_beside(first)),
        _ => (first, second),
    })
}

#[cfg(test)]
mod tests;
