//! The preprocessor of IDL texts (IDL 4.2 §7.3; ISO/IEC 14882 clause 15): conditions, and macros without parameters.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;

/// What the directives so far have said.
#[derive(Default)]
pub(super) struct Preprocessor {
    macros: BTreeMap<String, Macro>,
    /// The conditions that are open in the file that is read.
    branches: Vec<Branch>,
}

#[derive(Clone)]
pub(super) enum Macro {
    /// It stands for this text.
    Text(Arc<str>),
    /// Its uses are refused: IDL has none in practice.
    WithParameters,
}

/// A part between `#if` and `#endif`.
#[derive(Clone, Copy)]
pub(super) struct Branch {
    is_read: bool,
    /// A branch was read, or none is to be.
    is_decided: bool,
    has_else: bool,
}

/// Deepest nesting of conditions, of parentheses in one, and of macros; chosen for the stack of a thread.
pub(super) const NESTING_MAX: usize = 64;

impl Preprocessor {
    /// Knows these macros, each as `NAME` (1) or `NAME=TEXT`, as compilers' `-D` has it.
    pub(super) fn with(defines: &[String]) -> Result<Preprocessor, String> {
        let mut known = Preprocessor::default();
        for define in defines {
            let (name, text) = define.split_once('=').unwrap_or((define, "1"));
            if !is_name(name) {
                return Err(format!("{define:?} defines no macro: it is to be NAME or NAME=TEXT"));
            }
            known.macros.insert(name.to_owned(), Macro::Text(text.into()));
        }
        Ok(known)
    }

    /// Whether what comes next belongs to a branch that is not read.
    pub(super) fn skips(&self) -> bool {
        self.branches.last().is_some_and(|branch| !branch.is_read)
    }

    /// Another file begins; give back what this returns to [`Preprocessor::end_file`].
    pub(super) fn begin_file(&mut self) -> Vec<Branch> {
        std::mem::take(&mut self.branches)
    }

    /// The file has ended.
    pub(super) fn end_file(&mut self, outer: Vec<Branch>) -> Result<(), String> {
        match std::mem::replace(&mut self.branches, outer).is_empty() {
            true => Ok(()),
            false => Err("an #if without its #endif".to_owned()),
        }
    }

    /// What a word stands for.
    pub(super) fn find(&self, word: &str) -> Option<&Macro> {
        self.macros.get(word)
    }

    /// Follows a directive, with the lines that continue it. Returns the name of a file to be included.
    pub(super) fn handle(&mut self, line: &str) -> Result<Option<String>, String> {
        let line = plain(line);
        let line = line.trim_start_matches('#').trim();
        let (directive, rest) = split_word(line);
        match directive {
            "ifdef" | "ifndef" => {
                let (name, _) = split_word(rest);
                let holds = self.skips() || self.macros.contains_key(named(directive, name)?) == (directive == "ifdef");
                return self.open(holds).map(|()| None);
            }
            "if" => {
                let holds = self.skips() || self.holds(rest)?;
                return self.open(holds).map(|()| None);
            }
            "elif" | "else" | "endif" => return self.go_on(directive, rest).map(|()| None),
            _ if self.skips() => return Ok(None),
            _ => {}
        }
        match directive {
            "define" => {
                let (name, text) = split_word(rest);
                named(directive, name)?;
                let meaning = match text.starts_with('(') && rest[name.len()..].starts_with('(') {
                    true => Macro::WithParameters,
                    false => Macro::Text(text.into()),
                };
                self.macros.insert(name.to_owned(), meaning);
            }
            "undef" => {
                let (name, _) = split_word(rest);
                self.macros.remove(named(directive, name)?);
            }
            "include" => return included(rest).map(Some),
            "error" => return Err(format!("#error {rest}")),
            // What compilers leave behind begins with the number of a line.
            "pragma" => refuse_key_list(rest)?,
            "" | "line" | "warning" | "ident" => {}
            number if number.starts_with(|first: char| first.is_ascii_digit()) => {}
            other => return Err(format!("#{other} is no directive")),
        }
        Ok(None)
    }

    fn open(&mut self, holds: bool) -> Result<(), String> {
        if self.branches.len() >= NESTING_MAX {
            return Err(format!("more than {NESTING_MAX} conditions within each other"));
        }
        let is_read = holds && !self.skips();
        let is_decided = holds || self.skips();
        self.branches.push(Branch { is_read, is_decided, has_else: false });
        Ok(())
    }

    fn go_on(&mut self, directive: &str, rest: &str) -> Result<(), String> {
        let Some(mut branch) = self.branches.pop() else { return Err(format!("#{directive} without an #if")) };
        if directive == "endif" {
            return Ok(());
        }
        if branch.has_else {
            return Err(format!("#{directive} behind the #else of its #if"));
        }
        branch.has_else = directive == "else";
        branch.is_read = !branch.is_decided && (branch.has_else || self.holds(rest)?);
        branch.is_decided |= branch.is_read;
        self.branches.push(branch);
        Ok(())
    }

    /// Whether the condition of an `#if` is not zero.
    fn holds(&self, condition: &str) -> Result<bool, String> {
        let mut expanded = Expanded::default();
        self.expand(condition, &mut Vec::new(), &mut expanded)?;
        let mut condition = Condition { tokens: expanded.tokens.into_iter().peekable(), depth: 0 };
        let value = condition.choice(true)?;
        match condition.tokens.next() {
            None => Ok(value != 0),
            Some(token) => Err(format!("{token:?} in a condition")),
        }
    }

    /// The tokens of a condition, with macros in the place of their names.
    fn expand(&self, text: &str, hidden: &mut Vec<String>, into: &mut Expanded) -> Result<(), String> {
        let mut tokens = tokens(text)?.into_iter().peekable();
        while let Some(token) = tokens.next() {
            if token == "defined" {
                let is_enclosed = tokens.next_if_eq("(").is_some();
                let name = tokens.next().unwrap_or_default();
                let is_known = self.macros.contains_key(named("if defined", &name)?);
                if is_enclosed && tokens.next_if_eq(")").is_none() {
                    return Err(format!("defined({name} without \")\""));
                }
                into.tokens.push(u8::from(is_known).to_string());
                continue;
            }
            match self.macros.get(&token) {
                Some(Macro::Text(text)) if !hidden.contains(&token) && hidden.len() < NESTING_MAX => {
                    into.macros += 1;
                    hidden.push(token);
                    self.expand(text, hidden, into)?;
                    hidden.pop();
                }
                _ => into.tokens.push(token),
            }
            if into.tokens.len() + into.macros > TOKENS_MAX {
                return Err(format!("a condition of more than {TOKENS_MAX} tokens"));
            }
        }
        Ok(())
    }
}

/// Pragmas with which older tools mark keys; without them the type would be another one.
fn refuse_key_list(pragma: &str) -> Result<(), String> {
    let (name, list) = split_word(pragma);
    let (of, members) = split_word(list.trim_start_matches('"'));
    if ["keylist", "DCPS_DATA_KEY"].contains(&name) && !(name == "keylist" && members.is_empty()) {
        return Err(format!("#pragma {name} is not followed; mark the key members of {of} with @key"));
    }
    Ok(())
}

/// The tokens of a condition whose macros are replaced.
#[derive(Default)]
struct Expanded {
    tokens: Vec<String>,
    /// The macros that were replaced.
    macros: usize,
}

/// Most tokens of a condition whose macros stand for others, with those macros; chosen by us.
const TOKENS_MAX: usize = 4_096;

/// The tokens of a condition that are not read yet.
struct Condition {
    tokens: Peekable<IntoIter<String>>,
    depth: usize,
}

/// Operators of two operands, the loosest first.
const OPERATORS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Condition {
    /// `a ? b : c`. What does not count (`counts` is false) may be senseless, such as a division by zero.
    fn choice(&mut self, counts: bool) -> Result<i64, String> {
        let condition = self.operation(0, counts)?;
        if self.tokens.next_if_eq("?").is_none() {
            return Ok(condition);
        }
        let first = self.choice(counts && condition != 0)?;
        if self.tokens.next_if_eq(":").is_none() {
            return Err("\"?\" without \":\" in a condition".to_owned());
        }
        let second = self.choice(counts && condition == 0)?;
        Ok(if condition != 0 { first } else { second })
    }

    fn operation(&mut self, level: usize, counts: bool) -> Result<i64, String> {
        let Some(operators) = OPERATORS.get(level) else { return self.operand(counts) };
        let mut value = self.operation(level + 1, counts)?;
        while let Some(operator) = self.tokens.next_if(|token| operators.contains(&token.as_str())) {
            let decides = (operator == "||" && value != 0) || (operator == "&&" && value == 0);
            let right = self.operation(level + 1, counts && !decides)?;
            value = match calculate(&operator, value, right) {
                Some(value) => value,
                None if !counts => 0,
                None => return Err(format!("{value} {operator} {right} has no value")),
            };
        }
        Ok(value)
    }

    fn operand(&mut self, counts: bool) -> Result<i64, String> {
        let token = self.tokens.next().ok_or("a condition that lacks an operand")?;
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(format!("more than {NESTING_MAX} operands within each other"));
        }
        let value = match token.as_str() {
            "!" => i64::from(self.operand(counts)? == 0),
            "-" => self.operand(counts)?.wrapping_neg(),
            "+" => self.operand(counts)?,
            "~" => !self.operand(counts)?,
            "(" => {
                let value = self.choice(counts)?;
                if self.tokens.next_if_eq(")").is_none() {
                    return Err("\"(\" without \")\" in a condition".to_owned());
                }
                value
            }
            // Whatever is no macro is zero.
            name if is_name(name) => i64::from(name == "true"),
            number => value_of(number).ok_or_else(|| format!("{number:?} in a condition"))?,
        };
        self.depth -= 1;
        Ok(value)
    }
}

fn calculate(operator: &str, left: i64, right: i64) -> Option<i64> {
    let shift = u32::try_from(right).ok();
    Some(match operator {
        "||" => i64::from(left != 0 || right != 0),
        "&&" => i64::from(left != 0 && right != 0),
        "|" => left | right,
        "^" => left ^ right,
        "&" => left & right,
        "==" => i64::from(left == right),
        "!=" => i64::from(left != right),
        "<=" => i64::from(left <= right),
        ">=" => i64::from(left >= right),
        "<" => i64::from(left < right),
        ">" => i64::from(left > right),
        "<<" => left.checked_shl(shift?)?,
        ">>" => left.checked_shr(shift?)?,
        "+" => left.checked_add(right)?,
        "-" => left.checked_sub(right)?,
        "*" => left.checked_mul(right)?,
        "/" => left.checked_div(right)?,
        _ => left.checked_rem(right)?,
    })
}

fn value_of(number: &str) -> Option<i64> {
    let digits = number.trim_end_matches(['u', 'U', 'l', 'L']);
    let lower = digits.to_ascii_lowercase();
    match lower.strip_prefix("0x") {
        Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16).ok(),
        None if digits.len() > 1 && digits.starts_with('0') => i64::from_str_radix(digits, 8).ok(),
        None => digits.parse().ok(),
    }
}

fn tokens(mut text: &str) -> Result<Vec<String>, String> {
    let mut tokens = Vec::new();
    while let Some(first) = text.trim_start().chars().next() {
        text = text.trim_start();
        let two =
            OPERATORS.iter().copied().flatten().find(|operator| operator.len() == 2 && text.starts_with(**operator));
        let length = match two {
            Some(operator) => operator.len(),
            None if first.is_alphanumeric() || first == '_' => split_word(text).0.len(),
            None if "+-*/%<>&|^!~()?:".contains(first) => 1,
            None => return Err(format!("{first:?} in a condition")),
        };
        tokens.push(text[..length].to_owned());
        text = &text[length..];
    }
    Ok(tokens)
}

/// A directive without comments, on one line.
fn plain(line: &str) -> String {
    let (mut plain, mut rest) = (String::new(), line);
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            break;
        } else if rest.starts_with("/*") {
            plain.push(' ');
            rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
            continue;
        } else if first == '"' || first == '\'' {
            super::words::quoted_on_line(rest, first).unwrap_or(1)
        } else {
            first.len_utf8()
        };
        plain.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    plain.replace("\\\r\n", " ").replace("\\\n", " ")
}

/// The first word of a text, which may be none, and what follows it.
fn split_word(text: &str) -> (&str, &str) {
    let end = text.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_') && split_word(text).0 == text
}

fn named<'a>(directive: &str, name: &'a str) -> Result<&'a str, String> {
    if is_name(name) { Ok(name) } else { Err(format!("#{directive} without a name")) }
}

/// The name in `"name"` or `<name>`.
fn included(rest: &str) -> Result<String, String> {
    let end = match rest.chars().next() {
        Some('<') => '>',
        Some('"') => '"',
        _ => return Err("#include names no file: it is to be \"NAME\" or <NAME>".to_owned()),
    };
    let name = &rest[1..];
    name.find(end).map(|length| name[..length].to_owned()).ok_or_else(|| format!("#include without {end:?} at its end"))
}
