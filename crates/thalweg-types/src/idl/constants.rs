//! Constant expressions (IDL 4.2 §7.4.1.4.3).

use super::words::Words;
use super::{IdlError, Named, Names};

/// The value of a constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// A whole number; true and false are 1 and 0, a character is its code, a literal its number.
    Integer(i128),
    /// Any other number.
    Real(f64),
    /// A text.
    Text(String),
}

/// Reads an expression.
pub(super) fn expression(words: &mut Words, names: &Names) -> Result<Constant, IdlError> {
    binary(words, names, 0)
}

/// Operators by rank, the loosest first.
const OPERATORS: [&[&str]; 6] = [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "%"]];

fn binary(words: &mut Words, names: &Names, rank: usize) -> Result<Constant, IdlError> {
    let Some(operators) = OPERATORS.get(rank) else { return unary(words, names) };
    let mut left = binary(words, names, rank + 1)?;
    while let Some(operator) = words.peek().and_then(|next| operators.iter().find(|operator| **operator == next)) {
        words.take(operator)?;
        let right = binary(words, names, rank + 1)?;
        left = computed(operator, &left, &right)
            .ok_or_else(|| words.error_before(format!("{operator:?} cannot be computed here")))?;
    }
    Ok(left)
}

fn computed(operator: &str, left: &Constant, right: &Constant) -> Option<Constant> {
    use Constant::{Integer, Real};
    if let (Integer(left), Integer(right)) = (left, right) {
        let shift = u32::try_from(*right).ok().filter(|shift| *shift < 64);
        return match operator {
            "|" => Some(left | right),
            "^" => Some(left ^ right),
            "&" => Some(left & right),
            "<<" => left.checked_shl(shift?),
            ">>" => left.checked_shr(shift?),
            "+" => left.checked_add(*right),
            "-" => left.checked_sub(*right),
            "*" => left.checked_mul(*right),
            "/" => left.checked_div(*right),
            _ => left.checked_rem(*right),
        }
        .map(Integer);
    }
    let (left, right) = (real(left)?, real(right)?);
    match operator {
        "+" => Some(Real(left + right)),
        "-" => Some(Real(left - right)),
        "*" => Some(Real(left * right)),
        "/" => Some(Real(left / right)),
        _ => None,
    }
}

fn real(value: &Constant) -> Option<f64> {
    match value {
        Constant::Integer(number) => Some(*number as f64),
        Constant::Real(number) => Some(*number),
        Constant::Text(_) => None,
    }
}

fn unary(words: &mut Words, names: &Names) -> Result<Constant, IdlError> {
    words.descend()?;
    let value = if words.try_take("-") {
        match unary(words, names)? {
            Constant::Integer(number) => Constant::Integer(number.wrapping_neg()),
            Constant::Real(number) => Constant::Real(-number),
            Constant::Text(_) => return Err(words.error_before("a text has no sign".to_owned())),
        }
    } else if words.try_take("+") {
        unary(words, names)?
    } else if words.try_take("~") {
        match unary(words, names)? {
            Constant::Integer(number) => Constant::Integer(!number),
            _ => return Err(words.error_before("only a whole number has bits".to_owned())),
        }
    } else if words.try_take("(") {
        let value = expression(words, names)?;
        words.take(")")?;
        value
    } else {
        primary(words, names)?
    };
    words.ascend();
    Ok(value)
}

fn primary(words: &mut Words, names: &Names) -> Result<Constant, IdlError> {
    let next = words.peek().unwrap_or_default().to_owned();
    match next.chars().next() {
        Some('0'..='9') => {
            words.next("a number")?;
            number(&next).ok_or_else(|| words.error_before(format!("{next:?} is no number")))
        }
        Some('"') => text(words),
        Some('\'') => {
            words.next("a character")?;
            let character = unescaped(&next[1..next.len() - 1]);
            let mut characters = character.chars();
            match (characters.next(), characters.next()) {
                (Some(character), None) => Ok(Constant::Integer(u32::from(character).into())),
                _ => Err(words.error_before(format!("{next} is not one character"))),
            }
        }
        Some('L') if words.peek_second().is_some_and(|second| second.starts_with(['"', '\''])) => {
            words.next("a wide literal")?;
            primary(words, names)
        }
        _ => match &*next {
            "TRUE" | "FALSE" => {
                words.next("a boolean")?;
                Ok(Constant::Integer((next == "TRUE").into()))
            }
            _ => {
                let name = words.scoped_name()?;
                match names.lookup(&name) {
                    Some(Named::Constant(value)) => Ok(value.clone()),
                    _ => Err(words.error_before(format!("there is no constant {name} before here"))),
                }
            }
        },
    }
}

/// A text, of several pieces perhaps.
fn text(words: &mut Words) -> Result<Constant, IdlError> {
    let mut text = String::new();
    while words.peek().is_some_and(|next| next.starts_with('"')) {
        let piece = words.next("a text")?;
        text.push_str(&unescaped(&piece[1..piece.len() - 1]));
    }
    Ok(Constant::Text(text))
}

fn number(text: &str) -> Option<Constant> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    if let Some(digits) = hexadecimal {
        return i128::from_str_radix(digits, 16).ok().map(Constant::Integer);
    }
    if text.contains(['.', 'e', 'E']) || text.ends_with(['d', 'D', 'f', 'F']) {
        return text.trim_end_matches(['d', 'D', 'f', 'F']).parse().ok().map(Constant::Real);
    }
    let octal = text.strip_prefix('0').filter(|digits| !digits.is_empty());
    match octal {
        Some(digits) => i128::from_str_radix(digits, 8).ok().map(Constant::Integer),
        None => text.parse().ok().map(Constant::Integer),
    }
}

/// A text without its escapes; one that is not understood stays as it is.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match rest.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('a') => out.push('\u{7}'),
            Some('b') => out.push('\u{8}'),
            Some('v') => out.push('\u{b}'),
            Some('f') => out.push('\u{c}'),
            Some('x') => out.extend(code(&mut rest, 16, 2)),
            Some('u') => out.extend(code(&mut rest, 16, 4)),
            Some(first @ '0'..='7') => {
                let mut digits = first.to_string();
                while let Some(digit) = rest.next_if(|next| digits.len() < 3 && next.is_digit(8)) {
                    digits.push(digit);
                }
                out.extend(u32::from_str_radix(&digits, 8).ok().and_then(char::from_u32));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

fn code(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, radix: u32, digits_max: usize) -> Option<char> {
    let mut digits = String::new();
    while let Some(digit) = rest.next_if(|next| digits.len() < digits_max && next.is_digit(radix)) {
        digits.push(digit);
    }
    u32::from_str_radix(&digits, radix).ok().and_then(char::from_u32)
}
