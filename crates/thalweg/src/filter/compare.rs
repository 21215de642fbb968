//! Comparisons of two values.

use std::cmp::Ordering;

use thalweg_cdr::{FieldKind, FieldValue};

use super::{Given, Kind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Relation {
    fn allows(self, ordering: Ordering) -> bool {
        match self {
            Relation::Equal => ordering == Ordering::Equal,
            Relation::NotEqual => ordering != Ordering::Equal,
            Relation::Less => ordering == Ordering::Less,
            Relation::LessOrEqual => ordering != Ordering::Greater,
            Relation::Greater => ordering == Ordering::Greater,
            Relation::GreaterOrEqual => ordering != Ordering::Less,
        }
    }

    fn is_equality(self) -> bool {
        matches!(self, Relation::Equal | Relation::NotEqual)
    }
}

/// Whether the relation holds. Values that have no order, as NaN has none, are only not equal.
pub(super) fn holds(left: FieldValue<'_>, relation: Relation, right: FieldValue<'_>) -> bool {
    order(left, right).map_or(relation == Relation::NotEqual, |ordering| relation.allows(ordering))
}

fn order(left: FieldValue<'_>, right: FieldValue<'_>) -> Option<Ordering> {
    use FieldValue::{Boolean, Character, Float, Integer, Literal, Text};
    match (widened(left), widened(right)) {
        (Boolean(left), Boolean(right)) => Some(left.cmp(&right)),
        (Integer(left), Integer(right)) => Some(left.cmp(&right)),
        (Float(left), Float(right)) => left.partial_cmp(&right),
        // Both are then rounded alike, since no wire type has more digits.
        (Integer(left), Float(right)) => (left as f64).partial_cmp(&right),
        (Float(left), Integer(right)) => left.partial_cmp(&(right as f64)),
        (Boolean(left), Integer(right)) => Some(i128::from(left).cmp(&right)),
        (Integer(left), Boolean(right)) => Some(left.cmp(&i128::from(right))),
        (Text(left), Text(right)) => Some(left.cmp(right)),
        (Character(left), Character(right)) => Some(left.cmp(&right)),
        (Character(left), Text(right)) => Some(left.encode_utf8(&mut [0; 4]).as_bytes().cmp(right.as_bytes())),
        (Text(left), Character(right)) => Some(left.as_bytes().cmp(right.encode_utf8(&mut [0; 4]).as_bytes())),
        (Literal { number, .. }, Integer(right)) => Some(i128::from(number).cmp(&right)),
        (Integer(left), Literal { number, .. }) => Some(left.cmp(&i128::from(number))),
        (Literal { number: left, .. }, Literal { number: right, .. }) => Some(left.cmp(&right)),
        // Texts name literals; which one is greater is not asked.
        (Literal { name, .. }, Text(text)) | (Text(text), Literal { name, .. }) => Some(name.cmp(text)),
        _ => None,
    }
}

/// Bytes of two texts that are compared in one step.
const BYTES_OF_STEP: usize = 16;

/// The steps of a comparison: texts take one for every 16 bytes of the shorter one, and each comparison one.
pub(super) fn steps(left: FieldValue<'_>, right: FieldValue<'_>) -> u64 {
    let bytes = |value: FieldValue<'_>| match value {
        FieldValue::Text(text) | FieldValue::Literal { name: text, .. } => text.len(),
        _ => 0,
    };
    1 + (bytes(left).min(bytes(right)) / BYTES_OF_STEP) as u64
}

/// Without a loss.
fn widened(value: FieldValue<'_>) -> FieldValue<'_> {
    match value {
        FieldValue::Single(number) => FieldValue::Float(f64::from(number)),
        value => value,
    }
}

/// Whether values of these kinds can be compared.
pub(super) fn check(left: &Kind<'_>, relation: Relation, right: &Kind<'_>) -> Result<(), String> {
    match (left, right) {
        (Kind::Given(_), Kind::Given(_)) => Err("one side is a member of the type".to_owned()),
        (Kind::Field(left), Kind::Field(right)) => check_fields(*left, *right),
        (Kind::Field(field), Kind::Given(given)) | (Kind::Given(given), Kind::Field(field)) => {
            check_given(*field, relation, given.beside(*field))
        }
    }
}

fn check_fields(left: FieldKind, right: FieldKind) -> Result<(), String> {
    use FieldKind::{Boolean, Float, Integer, Literal, Text};
    match (left, right) {
        (Integer | Float, Integer | Float) | (Boolean, Boolean | Integer) | (Integer, Boolean) | (Text, Text) => Ok(()),
        (Literal(left), Literal(right)) if left == right => Ok(()),
        (Literal(_), Integer) | (Integer, Literal(_)) => Ok(()),
        _ => Err(format!("{} is not compared with {}", name_of(left), name_of(right))),
    }
}

fn check_given(field: FieldKind, relation: Relation, given: &Given) -> Result<(), String> {
    match (field, given) {
        (FieldKind::Integer | FieldKind::Float, Given::Integer(_) | Given::Float(_))
        | (FieldKind::Boolean, Given::Boolean(_) | Given::Integer(0 | 1))
        | (FieldKind::Text, Given::Text(_))
        | (FieldKind::Literal(_), Given::Integer(_)) => Ok(()),
        (FieldKind::Literal(names), Given::Text(text)) if !names.contains(&text.as_str()) => {
            Err(format!("the enum has no literal {text:?}, only {}", names.join(", ")))
        }
        (FieldKind::Literal(_), Given::Text(_)) if !relation.is_equality() => {
            Err("literals are equal or not; compare their numbers for an order".to_owned())
        }
        (FieldKind::Literal(_), Given::Text(_)) => Ok(()),
        (field, given) => Err(format!("{} is not compared with {}", name_of(field), name_of_given(given))),
    }
}

fn name_of(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Boolean => "a boolean",
        FieldKind::Integer | FieldKind::Float => "a number",
        FieldKind::Text => "a text",
        FieldKind::Literal(_) => "an enum",
    }
}

fn name_of_given(given: &Given) -> &'static str {
    match given {
        Given::Boolean(_) => "a boolean",
        Given::Integer(_) | Given::Float(_) => "a number",
        Given::Text(_) => "a text",
        Given::Unquoted { value, .. } => name_of_given(value),
    }
}

/// A pattern of LIKE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Like(Vec<Token>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Any,
    One,
    Exactly(char),
}

impl Like {
    pub(super) fn new(pattern: &str) -> Like {
        let (mut tokens, mut is_open) = (Vec::new(), false);
        for character in pattern.chars() {
            match character {
                '%' | '*' => is_open = true,
                // In front of an `Any` before it, which means the same: there it is tried once, and not at each place of the text.
                '_' | '?' => tokens.push(Token::One),
                character => {
                    if std::mem::take(&mut is_open) {
                        tokens.push(Token::Any);
                    }
                    tokens.push(Token::Exactly(character));
                }
            }
        }
        if is_open {
            tokens.push(Token::Any);
        }
        Like(tokens)
    }

    /// Whether the whole text fits, in at most about as many steps as the product of both lengths; `None` when they are used up before.
    pub(super) fn fits(&self, text: &str, steps: &mut u64) -> Option<bool> {
        let (mut token, mut rest) = (0, text.chars());
        // Where to go on when what follows the last `Any` does not fit: one character further.
        let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            *steps = steps.checked_sub(1)?;
            let mut after = rest.clone();
            match (self.0.get(token), after.next()) {
                (Some(Token::Any), _) => {
                    token += 1;
                    retry = Some((token, rest.clone()));
                    continue;
                }
                (Some(Token::One), Some(_)) => (token, rest) = (token + 1, after),
                (Some(Token::Exactly(wanted)), Some(found)) if *wanted == found => (token, rest) = (token + 1, after),
                (None, None) => return Some(true),
                _ => {
                    let Some((from, place)) = &mut retry else { return Some(false) };
                    if place.next().is_none() {
                        return Some(false);
                    }
                    (token, rest) = (*from, place.clone());
                }
            }
        }
    }
}
