//! Typed access to TOML tables with errors that name the place.

use std::fmt;
use std::ops::Range;

use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::nearest::nearest;

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct SettingsError {
    /// The file as it was given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong there and what is allowed.
    pub message: String,
}

impl SettingsError {
    /// What is wrong at this place of a file's text.
    pub fn at(file: &str, text: &str, offset: usize, message: String) -> SettingsError {
        Source { file, text }.error(offset, message)
    }
}

/// Reads a whole file: `keys` are those that it may have, and those that are refused in words of their own; `file` stands in
/// errors. At most 1 MiB is read.
///
/// # Errors
/// The text is not TOML, has other keys, or is refused by `read`; the error names the place.
pub fn read<T>(
    file: &str,
    text: &str,
    keys: (&[&str], &[&str]),
    read: impl FnOnce(SettingsTable<'_>) -> Result<T, SettingsError>,
) -> Result<T, SettingsError> {
    let source = Source { file, text };
    if text.len() > FILE_BYTES_MAX {
        return Err(source.error(0, format!("the file has {} bytes; at most {FILE_BYTES_MAX} are read", text.len())));
    }
    let table = DeTable::parse(text)
        .map_err(|error| source.error(error.span().map_or(0, |span| span.start), error.message()))?;
    read(SettingsTable::new(source, "", table.get_ref(), 0..0, keys)?)
}

/// A file's text, to turn offsets into lines.
#[derive(Clone, Copy)]
struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl<'a> Source<'a> {
    fn before(&self, at: usize) -> &'a str {
        let mut end = at.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        &self.text[..end]
    }

    /// The line of an offset, from 1.
    fn line(&self, at: usize) -> usize {
        self.before(at).matches('\n').count() + 1
    }

    fn error(&self, at: usize, message: impl Into<String>) -> SettingsError {
        let before = self.before(at);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        SettingsError {
            file: self.file.to_owned(),
            line: self.line(at),
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        }
    }
}

/// A value and where it stands.
#[derive(Clone, Copy)]
pub struct SettingsValue<'a> {
    source: Source<'a>,
    name: &'a str,
    value: &'a DeValue<'a>,
    at: usize,
}

/// A table whose keys are all known.
#[derive(Clone)]
pub struct SettingsTable<'a> {
    source: Source<'a>,
    /// As it stands in the file; empty for the whole file.
    name: &'a str,
    table: &'a DeTable<'a>,
    at: usize,
}

impl<'a> SettingsTable<'a> {
    /// The table `name`, whose keys must be among `known`; those of `planned` are refused in words of their own.
    fn new(
        source: Source<'a>,
        name: &'a str,
        table: &'a DeTable<'a>,
        span: Range<usize>,
        (known, planned): (&[&str], &[&str]),
    ) -> Result<SettingsTable<'a>, SettingsError> {
        for key in table.keys() {
            let word: &str = key.get_ref();
            let place = if name.is_empty() { String::new() } else { format!(" in [{name}]") };
            if planned.contains(&word) {
                let message = format!("{word:?}{place} is not supported yet: remove it to go on without it");
                return Err(source.error(key.span().start, message));
            }
            if !known.contains(&word) {
                let message = format!("{word:?} is unknown{place}: {}", advice(word, known));
                return Err(source.error(key.span().start, message));
            }
        }
        Ok(SettingsTable { source, name, table, at: span.start })
    }

    /// An error at the table itself.
    pub fn error(&self, message: impl Into<String>) -> SettingsError {
        self.source.error(self.at, message)
    }

    /// The value of a key, where it is given.
    pub fn get(&self, key: &'a str) -> Option<SettingsValue<'a>> {
        let (_, value) = self.table.iter().find(|(known, _)| known.get_ref() == key)?;
        Some(self.field(key, value))
    }

    /// The value of a key that must be given.
    pub fn require(&self, key: &'a str) -> Result<SettingsValue<'a>, SettingsError> {
        let place = if self.name.is_empty() { "the file".to_owned() } else { format!("[{}]", self.name) };
        self.get(key).ok_or_else(|| self.error(format!("{place} needs {key:?}")))
    }

    /// What `read` makes of the value of a key, or the default where none is given.
    pub fn or<T>(
        &self,
        key: &'a str,
        default: T,
        read: impl FnOnce(&SettingsValue<'a>) -> Result<T, SettingsError>,
    ) -> Result<T, SettingsError> {
        self.get(key).map_or(Ok(default), |field| read(&field))
    }

    /// What `read` makes of the value of a key, where one is given.
    pub fn maybe<T>(
        &self,
        key: &'a str,
        read: impl FnOnce(&SettingsValue<'a>) -> Result<T, SettingsError>,
    ) -> Result<Option<T>, SettingsError> {
        self.get(key).map(|field| read(&field)).transpose()
    }

    /// Every key with its value, in the order of the file.
    pub fn all(&self) -> Vec<(&'a str, SettingsValue<'a>)> {
        let mut out: Vec<(&'a str, SettingsValue<'a>)> = self
            .table
            .iter()
            .map(|(key, value)| {
                let key: &'a str = key.get_ref();
                (key, self.field(key, value))
            })
            .collect();
        out.sort_by_key(|(_, field)| field.at);
        out
    }

    fn field(&self, name: &'a str, value: &'a Spanned<DeValue<'a>>) -> SettingsValue<'a> {
        SettingsValue { source: self.source, name, value: value.get_ref(), at: value.span().start }
    }
}

/// Two values are the same one where they stand at the same place.
impl PartialEq for SettingsValue<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl<'a> SettingsValue<'a> {
    /// An error at this value.
    pub fn error(&self, message: impl fmt::Display) -> SettingsError {
        self.source.error(self.at, format!("{}: {message}", self.name))
    }

    /// Its first byte in the file's text, for [`SettingsError::at`].
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Its line in the file, from 1.
    pub fn line(&self) -> usize {
        self.source.line(self.at)
    }

    /// A table with these keys.
    pub fn table(&self, keys: (&[&str], &[&str])) -> Result<SettingsTable<'a>, SettingsError> {
        SettingsTable::new(self.source, self.name, self.table_of_names()?.table, self.at..self.at, keys)
    }

    /// A table that may have any keys.
    pub fn table_of_names(&self) -> Result<SettingsTable<'a>, SettingsError> {
        match self.value {
            DeValue::Table(table) => Ok(SettingsTable { source: self.source, name: self.name, table, at: self.at }),
            other => Err(self.error(format!("a table is needed, not {}", shown(other)))),
        }
    }

    /// Whether the value is a table.
    pub fn is_table(&self) -> bool {
        self.value.is_table()
    }

    /// Text.
    pub fn text(&self) -> Result<&'a str, SettingsError> {
        self.value.as_str().ok_or_else(|| self.error(format!("text in quotes is needed, not {}", shown(self.value))))
    }

    /// `true` or `false`.
    pub fn truth(&self) -> Result<bool, SettingsError> {
        match self.value {
            DeValue::Boolean(truth) => Ok(*truth),
            other => Err(self.error(format!("true or false is needed, not {}", shown(other)))),
        }
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, SettingsError> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let DeValue::String(text) = self.value else {
            return Err(self.error(format!("{} is no choice: {}", shown(self.value), allowed(&words))));
        };
        let found = choices.iter().find(|(word, _)| word == text).map(|(_, value)| *value);
        found.ok_or_else(|| self.error(format!("{:?} is no choice: {}", text.as_ref(), advice(text, &words))))
    }

    /// A whole number in a range.
    pub fn integer<N>(&self, min: N, max: N) -> Result<N, SettingsError>
    where
        N: TryFrom<i128> + Copy + PartialOrd + fmt::Display,
    {
        let DeValue::Integer(digits) = self.value else {
            return Err(self.error(format!("a whole number from {min} to {max} is needed, not {}", shown(self.value))));
        };
        let number = i128::from_str_radix(digits.as_str(), digits.radix()).ok();
        let number = number.and_then(|number| N::try_from(number).ok()).filter(|number| (min..=max).contains(number));
        number.ok_or_else(|| self.error(format!("{} is not within {min} to {max}", digits.as_str())))
    }

    /// A number in a range, whole or not.
    pub fn number(&self, min: f64, max: f64) -> Result<f64, SettingsError> {
        let text = match self.value {
            DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str(),
            DeValue::Float(digits) => digits.as_str(),
            other => return Err(self.error(format!("a number from {min} to {max} is needed, not {}", shown(other)))),
        };
        let number = text.parse::<f64>().ok().filter(|number| (min..=max).contains(number));
        number.ok_or_else(|| self.error(format!("{text} is not within {min} to {max}")))
    }

    /// What `read` makes of each element of an array of at most `max`, which may be empty.
    ///
    /// # Errors
    /// The value is no array, is longer, or `read` refuses an element.
    pub fn each<T>(
        &self,
        max: usize,
        read: impl Fn(&SettingsValue<'a>) -> Result<T, SettingsError>,
    ) -> Result<Vec<T>, SettingsError> {
        let DeValue::Array(elements) = self.value else {
            return Err(self.error(format!("a list is needed, not {}", shown(self.value))));
        };
        if elements.len() > max {
            return Err(self.error(format!("at most {max} are allowed, not {}", elements.len())));
        }
        elements
            .iter()
            .map(|element| read(&SettingsValue { value: element.get_ref(), at: element.span().start, ..*self }))
            .collect()
    }

    /// The elements of an array, or the value itself as the only one; each once, at least one, at most `max`.
    pub fn list<T: PartialEq>(
        &self,
        max: usize,
        read: impl Fn(&SettingsValue<'a>) -> Result<T, SettingsError>,
    ) -> Result<Vec<T>, SettingsError> {
        let DeValue::Array(elements) = self.value else { return Ok(vec![read(self)?]) };
        if elements.is_empty() || elements.len() > max {
            return Err(self.error(format!("1 to {max} values are needed, not {}", elements.len())));
        }
        let mut out = Vec::with_capacity(elements.len());
        for element in elements {
            let field = SettingsValue { value: element.get_ref(), at: element.span().start, ..*self };
            let value = read(&field)?;
            if out.contains(&value) {
                return Err(field.error("this value stands here twice"));
            }
            out.push(value);
        }
        Ok(out)
    }
}

/// What a value is, for an error.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text {:?}", text.chars().take(40).collect::<String>()),
        DeValue::Integer(digits) => format!("the whole number {}", digits.as_str()),
        DeValue::Float(digits) => format!("the number {}", digits.as_str()),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

fn advice(word: &str, known: &[&str]) -> String {
    let guess = nearest(word, known.iter().copied()).map(|near| format!("did you mean {near:?}? ")).unwrap_or_default();
    format!("{guess}{}", allowed(known))
}

fn allowed(known: &[&str]) -> String {
    format!("allowed: {}", known.join(", "))
}

/// Settings are written by people.
const FILE_BYTES_MAX: usize = 1 << 20;
