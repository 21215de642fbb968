//! The language of filters into conditions.

use thalweg_cdr::FieldStep;

use super::compare::{Like, Relation};
use super::{
    Condition, EXPRESSION_MAX_BYTES, FILTER_MAX_BYTES, FilterError, Given, NESTING_MAX, Operand, PARAMETERS_MAX,
    USES_MAX_BYTES,
};

/// Reads an expression.
pub(super) fn condition(expression: &str, parameters: &[String]) -> Result<Condition, FilterError> {
    let bound = |cause: String| FilterError { offset: None, cause };
    if expression.len() > EXPRESSION_MAX_BYTES || parameters.iter().any(|value| value.len() > EXPRESSION_MAX_BYTES) {
        return Err(bound(format!("an expression or parameter has more than {EXPRESSION_MAX_BYTES} bytes")));
    }
    if parameters.len() > PARAMETERS_MAX {
        return Err(bound(format!("there are more than {PARAMETERS_MAX} parameters")));
    }
    if expression.len() + parameters.iter().map(String::len).sum::<usize>() > FILTER_MAX_BYTES {
        return Err(bound(format!(
            "the expression and its parameters have more than {FILTER_MAX_BYTES} bytes together"
        )));
    }
    // An announcement would end the text there: the writer would leave out by another condition than the reader's.
    if expression.contains('\0') || parameters.iter().any(|value| value.contains('\0')) {
        return Err(bound(
            "the expression or a parameter contains a NUL character, which no text of a sample has".to_owned(),
        ));
    }
    let mut parser = Parser { text: expression, offset: 0, depth: 0, parameters, used_bytes: expression.len() };
    let condition = parser.any()?;
    match parser.peek()? {
        None => Ok(condition),
        Some(_) => Err(parser.error("expected AND, OR or the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    offset: usize,
    depth: usize,
    parameters: &'a [String],
    /// Bytes of the expression, and of the parameters as often as they were used.
    used_bytes: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Given(Given),
    Parameter(usize),
    Relation(Relation),
    Open,
    Close,
}

impl<'a> Parser<'a> {
    fn error(&self, cause: impl Into<String>) -> FilterError {
        let skipped = self.rest().len() - self.rest().trim_start().len();
        FilterError { offset: Some(self.offset + skipped), cause: cause.into() }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.offset..]
    }

    /// Condition ::= conditions joined by OR.
    fn any(&mut self) -> Result<Condition, FilterError> {
        let mut conditions = vec![self.all()?];
        while self.take_word("OR")? {
            conditions.push(self.all()?);
        }
        Ok(single_or(conditions, Condition::Any))
    }

    /// Conditions joined by AND, which binds more strongly.
    fn all(&mut self) -> Result<Condition, FilterError> {
        let mut conditions = vec![self.simple()?];
        while self.take_word("AND")? {
            conditions.push(self.simple()?);
        }
        Ok(single_or(conditions, Condition::All))
    }

    fn simple(&mut self) -> Result<Condition, FilterError> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(self.error(format!("more than {NESTING_MAX} conditions within each other")));
        }
        let condition = if self.take_word("NOT")? {
            Condition::Not(Box::new(self.simple()?))
        } else if self.peek()? == Some(Token::Open) {
            self.next()?;
            let inner = self.any()?;
            if self.next()? != Some(Token::Close) {
                return Err(self.error("expected )"));
            }
            inner
        } else {
            self.predicate()?
        };
        self.depth -= 1;
        Ok(condition)
    }

    fn predicate(&mut self) -> Result<Condition, FilterError> {
        let offset = self.offset + (self.rest().len() - self.rest().trim_start().len());
        let left = self.operand()?;
        if self.take_word("LIKE")? {
            return self.like(left, offset);
        }
        let negated = self.take_word("NOT")?;
        if negated && self.take_word("LIKE")? {
            return Ok(Condition::Not(Box::new(self.like(left, offset)?)));
        }
        if self.take_word("BETWEEN")? {
            let between = self.between(left, offset)?;
            return Ok(if negated { Condition::Not(Box::new(between)) } else { between });
        }
        match self.next()? {
            Some(Token::Relation(relation)) if !negated => {
                let right = self.operand()?;
                Ok(Condition::Compare { left, relation, right, offset })
            }
            _ => Err(FilterError { offset: Some(self.offset), cause: "expected a comparison".to_owned() }),
        }
    }

    fn like(&mut self, text: Operand, offset: usize) -> Result<Condition, FilterError> {
        let operand = self.operand()?;
        let pattern = if let Operand::Given(given) = &operand { given.text().map(Like::new) } else { None };
        let pattern = pattern.ok_or_else(|| self.error("expected the pattern of LIKE in quotes"))?;
        Ok(Condition::Like { text, pattern, offset })
    }

    /// Range ::= value AND value, both included.
    fn between(&mut self, left: Operand, offset: usize) -> Result<Condition, FilterError> {
        let least = self.operand()?;
        if !self.take_word("AND")? {
            return Err(self.error("expected AND between the ends of the range"));
        }
        let greatest = self.operand()?;
        let bound = |relation, right| Condition::Compare { left: left.clone(), relation, right, offset };
        Ok(Condition::All(vec![bound(Relation::GreaterOrEqual, least), bound(Relation::LessOrEqual, greatest)]))
    }

    fn operand(&mut self) -> Result<Operand, FilterError> {
        let before = self.offset;
        let token = self.next()?;
        match token {
            Some(Token::Given(given)) => Ok(Operand::Given(given)),
            Some(Token::Parameter(number)) => {
                let error = |cause| FilterError { offset: Some(before), cause };
                let value = self.parameters.get(number);
                let value = value.ok_or_else(|| error(format!("parameter %{number} is not given")))?;
                self.used_bytes += value.len();
                if self.used_bytes > USES_MAX_BYTES {
                    return Err(error(format!(
                        "the expression has more than {USES_MAX_BYTES} bytes with each parameter as often as it is used"
                    )));
                }
                Ok(Operand::Given(given_of(value)))
            }
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("TRUE") => Ok(Operand::Given(Given::Boolean(true))),
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("FALSE") => Ok(Operand::Given(Given::Boolean(false))),
            Some(Token::Word(word)) if !is_reserved(&word) => {
                let path = path_of(&word).ok_or_else(|| FilterError {
                    offset: Some(before),
                    cause: format!("{word:?} is no name of a member"),
                })?;
                Ok(Operand::Field { name: word, path })
            }
            _ => {
                self.offset = before;
                Err(self.error("expected the name of a member or a value"))
            }
        }
    }

    fn take_word(&mut self, wanted: &str) -> Result<bool, FilterError> {
        let is_next = matches!(self.peek()?, Some(Token::Word(word)) if word.eq_ignore_ascii_case(wanted));
        if is_next {
            self.next()?;
        }
        Ok(is_next)
    }

    fn peek(&mut self) -> Result<Option<Token>, FilterError> {
        let offset = self.offset;
        let token = self.next();
        self.offset = offset;
        token
    }

    fn next(&mut self) -> Result<Option<Token>, FilterError> {
        let rest = self.rest().trim_start();
        let start = self.text.len() - rest.len();
        let Some(first) = rest.chars().next() else {
            self.offset = self.text.len();
            return Ok(None);
        };
        let error = |cause: &str| FilterError { offset: Some(start), cause: cause.to_owned() };
        let symbols = [
            ("<>", Token::Relation(Relation::NotEqual)),
            ("!=", Token::Relation(Relation::NotEqual)),
            ("<=", Token::Relation(Relation::LessOrEqual)),
            (">=", Token::Relation(Relation::GreaterOrEqual)),
            ("==", Token::Relation(Relation::Equal)),
            ("=", Token::Relation(Relation::Equal)),
            ("<", Token::Relation(Relation::Less)),
            (">", Token::Relation(Relation::Greater)),
            ("(", Token::Open),
            (")", Token::Close),
        ];
        if let Some((symbol, token)) = symbols.into_iter().find(|(symbol, _)| rest.starts_with(symbol)) {
            self.offset = start + symbol.len();
            return Ok(Some(token));
        }
        let (token, len) = match first {
            // Some vendors open a text with a grave accent, as the standard's own examples do.
            '\'' | '"' | '`' => {
                let close = if first == '"' { '"' } else { '\'' };
                let body = &rest[1..];
                let end = body.find(close).ok_or_else(|| error("a text without its closing quote"))?;
                (Token::Given(Given::Text(body[..end].to_owned())), end + 2)
            }
            '%' => {
                let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
                let number = rest[1..=digits].parse().ok().filter(|number| *number < PARAMETERS_MAX);
                (Token::Parameter(number.ok_or_else(|| error("expected %0 to %99"))?), digits + 1)
            }
            '0'..='9' | '+' | '-' | '.' => {
                let len = number_len(rest);
                let given = number(&rest[..len]).ok_or_else(|| error("this is no number"))?;
                (Token::Given(given), len)
            }
            'a'..='z' | 'A'..='Z' | '_' => {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.[]".contains(byte);
                let len = rest.bytes().take_while(|byte| is_part(byte)).count();
                (Token::Word(rest[..len].to_owned()), len)
            }
            _ => return Err(error("this belongs to no expression")),
        };
        self.offset = start + len;
        Ok(Some(token))
    }
}

fn single_or(mut conditions: Vec<Condition>, join: impl FnOnce(Vec<Condition>) -> Condition) -> Condition {
    match conditions.len() {
        1 => conditions.remove(0),
        _ => join(conditions),
    }
}

fn is_reserved(word: &str) -> bool {
    ["AND", "OR", "NOT", "LIKE", "BETWEEN"].iter().any(|reserved| word.eq_ignore_ascii_case(reserved))
}

/// Bytes of the number at the start of `text`, or of what looks like one.
fn number_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_part = |(place, byte): &(usize, &u8)| {
        let after_exponent = *place > 0 && matches!(bytes[place - 1], b'e' | b'E') && !text.starts_with("0x");
        byte.is_ascii_alphanumeric()
            || **byte == b'.'
            || matches!(**byte, b'+' | b'-') && (*place == 0 || after_exponent)
    };
    bytes.iter().enumerate().take_while(is_part).count()
}

fn number(text: &str) -> Option<Given> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if let Some(hexadecimal) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return u64::from_str_radix(hexadecimal, 16).ok().map(|value| Given::Integer(sign * i128::from(value)));
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.is_empty() {
        return digits.parse::<u64>().ok().map(|value| Given::Integer(sign * i128::from(value)));
    }
    let looks_right = digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let value: f64 = Some(digits).filter(|_| looks_right)?.parse().ok()?;
    value.is_finite().then(|| Given::Float(f64::from(sign as i32) * value))
}

/// The value of a parameter: vendors disagree on whether texts have quotes.
fn given_of(parameter: &str) -> Given {
    let text = parameter.trim();
    let quoted = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    if let Some(inner) = quoted('\'').or_else(|| quoted('"')) {
        return Given::Text(inner.to_owned());
    }
    let value = match text {
        _ if text.eq_ignore_ascii_case("TRUE") => Some(Given::Boolean(true)),
        _ if text.eq_ignore_ascii_case("FALSE") => Some(Given::Boolean(false)),
        _ => number(text),
    };
    let text = Given::Text(text.to_owned());
    match value {
        Some(value) => Given::Unquoted { value: Box::new(value), text: Box::new(text) },
        None => text,
    }
}

/// The steps of a name such as `position.x` or `samples[3].level`.
fn path_of(name: &str) -> Option<Vec<FieldStep>> {
    let mut steps = Vec::new();
    for part in name.split('.') {
        let (member, mut elements) = part.split_at(part.find('[').unwrap_or(part.len()));
        if member.is_empty() || member.contains(']') {
            return None;
        }
        steps.push(FieldStep::Member(member.to_owned()));
        while !elements.is_empty() {
            let (index, rest) = elements.strip_prefix('[')?.split_once(']')?;
            steps.push(FieldStep::Element(index.parse().ok()?));
            elements = rest;
        }
    }
    Some(steps)
}
