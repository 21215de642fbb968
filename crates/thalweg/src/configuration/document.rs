//! Reading a TOML document with the line of each key.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use thalweg_base::nearest::nearest;
use thalweg_rtps::time::INFINITE;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::profiles::{Profile, QOS_KEYS, TopicRule};
use super::{Parts, SettingOrigin, participant};
use crate::{Error, ErrorKind};

/// Largest accepted document: far more than the settings of any system, and little memory.
const BYTES_MAX: usize = 1 << 20;

/// A document with the place of everything in it.
pub(super) struct Source<'a> {
    text: &'a str,
    path: &'a Path,
}

/// One key with its value.
pub(super) struct Entry<'a> {
    pub(super) key: &'a str,
    pub(super) value: &'a DeValue<'a>,
    pub(super) span: Range<usize>,
}

/// Reads a whole document.
pub(super) fn read(text: &str, path: &Path) -> Result<Parts, Error> {
    let source = Source { text, path };
    if text.len() > BYTES_MAX {
        return Err(source.error(&(0..0), format!("the document has {} bytes, more than {BYTES_MAX}", text.len())));
    }
    let document = DeTable::parse(text)
        .map_err(|error| source.error(&error.span().unwrap_or(0..0), error.message().to_owned()))?;
    let mut parts = Parts::default();
    for entry in entries(document.get_ref()) {
        match entry.key {
            "domain" => participant::read(&source, &entry, "domain", &mut parts.participant)?,
            "participant" | "network" | "limits" => {
                for inner in entries(source.table(&entry)?) {
                    let key = format!("{}.{}", entry.key, inner.key);
                    participant::read(&source, &inner, &key, &mut parts.participant)?;
                }
            }
            "profile" => {
                for inner in entries(source.table(&entry)?) {
                    let profile = read_profile(&source, source.table(&inner)?)?;
                    parts.profiles.profiles.insert(inner.key.to_owned(), profile);
                }
            }
            "topic" => {
                let wrong = || source.error(&entry.span, "topic is a list of tables: write [[topic]]".into());
                for rule in entry.value.as_array().ok_or_else(wrong)?.iter() {
                    let table = rule.get_ref().as_table().ok_or_else(wrong)?;
                    let rule = read_rule(&source, table, &rule.span())?;
                    parts.profiles.topics.push(rule);
                }
            }
            _ => {
                return Err(source.unknown(&entry, &["domain", "participant", "network", "limits", "profile", "topic"]));
            }
        }
    }
    parts.profiles.resolve().map_err(|(span, cause)| source.error(&span, cause))?;
    Ok(parts)
}

fn read_profile<'v>(source: &Source<'_>, table: &'v DeTable<'v>) -> Result<Profile, Error> {
    let mut profile = Profile::default();
    for entry in entries(table) {
        if entry.key == "inherits" {
            profile.inherits = source.texts(&entry)?.into_iter().map(|name| (name, entry.span.clone())).collect();
            continue;
        }
        let Some(key) = QOS_KEYS.iter().find(|key| **key == entry.key) else {
            return Err(source.unknown(&entry, &[QOS_KEYS, &["inherits"]].concat()));
        };
        let value = source.value(&entry)?;
        super::profiles::check(key, &value).map_err(|cause| source.error(&entry.span, format!("{key} {cause}")))?;
        profile.keys.insert(key, super::Sourced { value, origin: source.origin(&entry.span) });
    }
    Ok(profile)
}

fn read_rule<'v>(source: &Source<'_>, table: &'v DeTable<'v>, span: &Range<usize>) -> Result<TopicRule, Error> {
    let mut names = BTreeMap::new();
    for entry in entries(table) {
        const KEYS: &[&str] = &["name", "profile", "reader_profile", "writer_profile"];
        let Some(key) = KEYS.iter().find(|key| **key == entry.key) else { return Err(source.unknown(&entry, KEYS)) };
        names.insert(*key, (source.text(&entry)?, entry.span.clone()));
    }
    let missing = || source.error(span, "a topic needs a name, which is a pattern of topic names".into());
    let name = names.remove("name").ok_or_else(missing)?.0;
    if names.is_empty() {
        let cause = format!("topic {name:?} names no profile: add profile, writer_profile or reader_profile");
        return Err(source.error(span, cause));
    }
    let mut side = |own: &str| names.remove(own).or_else(|| names.get("profile").cloned());
    Ok(TopicRule { name, writer: side("writer_profile"), reader: side("reader_profile"), origin: source.origin(span) })
}

/// The entries of a table.
fn entries<'a>(table: &'a DeTable<'a>) -> impl Iterator<Item = Entry<'a>> {
    table.iter().map(|(key, value)| Entry { key: key.get_ref(), value: value.get_ref(), span: key.span() })
}

impl Source<'_> {
    pub(super) fn origin(&self, span: &Range<usize>) -> SettingOrigin {
        SettingOrigin::File { path: self.path.to_owned(), line: self.line(span) }
    }

    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.as_bytes().get(..span.start).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    /// What is wrong at a place of the document.
    pub(super) fn error(&self, span: &Range<usize>, cause: String) -> Error {
        let cause = format!("failed: {}:{}: {cause}", self.path.display(), self.line(span));
        Error::new(ErrorKind::BadParameter, "configuration", cause)
    }

    /// A key that is not known, with the known one that was most likely meant.
    pub(super) fn unknown(&self, entry: &Entry<'_>, known: &[&str]) -> Error {
        let key = entry.key;
        let guess = match nearest(key, known.iter().copied()) {
            Some(found) => format!("did you mean {found}?"),
            None => format!("known keys: {}", known.join(", ")),
        };
        self.error(&entry.span, format!("unknown key {key:?}; {guess}"))
    }

    fn wrong(&self, entry: &Entry<'_>, wanted: &str) -> Error {
        let found = entry.value.type_str();
        self.error(&entry.span, format!("{} is {wanted}, and a value of type {found} was found", entry.key))
    }

    fn table<'v>(&self, entry: &Entry<'v>) -> Result<&'v DeTable<'v>, Error> {
        entry.value.as_table().ok_or_else(|| self.wrong(entry, "a table"))
    }

    pub(super) fn text(&self, entry: &Entry<'_>) -> Result<String, Error> {
        entry.value.as_str().map(str::to_owned).ok_or_else(|| self.wrong(entry, "a text"))
    }

    pub(super) fn texts(&self, entry: &Entry<'_>) -> Result<Vec<String>, Error> {
        let list = entry.value.as_array().ok_or_else(|| self.wrong(entry, "a list of texts"))?;
        let text = |value: &Spanned<DeValue<'_>>| value.get_ref().as_str().map(str::to_owned);
        list.iter().map(|value| text(value).ok_or_else(|| self.wrong(entry, "a list of texts"))).collect()
    }

    pub(super) fn flag(&self, entry: &Entry<'_>) -> Result<bool, Error> {
        entry.value.as_bool().ok_or_else(|| self.wrong(entry, "true or false"))
    }

    pub(super) fn integer(&self, entry: &Entry<'_>) -> Result<i64, Error> {
        let integer = entry.value.as_integer().ok_or_else(|| self.wrong(entry, "a whole number"))?;
        let too_large = || self.error(&entry.span, format!("{} is too large", entry.key));
        i64::from_str_radix(integer.as_str(), integer.radix()).map_err(|_| too_large())
    }

    /// A whole number from `least` on.
    pub(super) fn count(&self, entry: &Entry<'_>, least: usize) -> Result<usize, Error> {
        let integer = self.integer(entry)?;
        let count = usize::try_from(integer).ok().filter(|count| *count >= least);
        count.ok_or_else(|| self.error(&entry.span, format!("{} is {integer}; the least is {least}", entry.key)))
    }

    pub(super) fn duration(&self, entry: &Entry<'_>) -> Result<Duration, Error> {
        let text = self.text(entry)?;
        duration(&text).map_err(|cause| self.error(&entry.span, format!("{} {cause}", entry.key)))
    }

    fn value(&self, entry: &Entry<'_>) -> Result<Value, Error> {
        Ok(match entry.value {
            DeValue::String(_) => Value::Text(self.text(entry)?),
            DeValue::Integer(_) => Value::Integer(self.integer(entry)?),
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Array(_) => Value::Texts(self.texts(entry)?),
            _ => return Err(self.wrong(entry, "a text, a number, true, false or a list of texts")),
        })
    }
}

/// A value of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Flag(bool),
    Texts(Vec<String>),
}

/// A duration as `250us`, `100ms`, `2s`, `3min`, `1h` or `infinite`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 6] = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("s", 1_000_000_000),
    ];
    if text == "infinite" {
        return Ok(INFINITE);
    }
    let wrong = || {
        format!("is {text:?}; a duration is a whole number with its unit, such as \"100ms\" or \"2s\", or \"infinite\"")
    };
    let (digits, nanos) =
        UNITS.iter().find_map(|(unit, nanos)| Some((text.strip_suffix(unit)?, nanos))).ok_or_else(wrong)?;
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number = digits.parse::<u64>().ok().filter(|_| is_number).ok_or_else(wrong)?;
    number.checked_mul(*nanos).map(Duration::from_nanos).ok_or_else(wrong)
}
