//! A configuration file: its tables, and where each setting stands.

use std::path::Path;
use std::time::Duration;

use thalweg_rtps::time::INFINITE;
use thalweg_settings::{SettingsError, SettingsTable, SettingsValue};

use super::profiles::{Profile, ProfileName, QOS_KEYS, TopicRule};
use super::{Parts, SettingOrigin, Sourced, participant};
use crate::{Error, ErrorKind};

/// Reads a whole document.
pub(super) fn read(text: &str, path: &Path) -> Result<Parts, Error> {
    const KEYS: &[&str] = &["domain", "participant", "network", "limits", "profile", "topic"];
    let file = path.display().to_string();
    let parts = thalweg_settings::read(&file, text, (KEYS, &[]), |root| {
        let mut parts = read_parts(&root, path)?;
        let refused = |(offset, cause)| SettingsError::at(&file, text, offset, cause);
        parts.profiles.resolve().map_err(refused)?;
        Ok(parts)
    });
    parts.map_err(|error| {
        Error::new(ErrorKind::BadParameter, "configuration", format!("failed: {error}")).because(error)
    })
}

fn read_parts(root: &SettingsTable<'_>, path: &Path) -> Result<Parts, SettingsError> {
    let mut parts = Parts { participant: participant::read(root, path)?, ..Parts::default() };
    if let Some(profiles) = root.get("profile") {
        for (name, profile) in profiles.table_of_names()?.all() {
            parts.profiles.profiles.insert(name.to_owned(), read_profile(&profile, path)?);
        }
    }
    if let Some(rules) = root.get("topic") {
        let wrong = |_| rules.error("a list of tables is needed: write [[topic]]");
        for rule in rules.each(usize::MAX, |rule| Ok(*rule)).map_err(wrong)? {
            parts.profiles.topics.push(read_rule(&rule, path)?);
        }
    }
    Ok(parts)
}

fn read_profile(profile: &SettingsValue<'_>, path: &Path) -> Result<Profile, SettingsError> {
    let table = profile.table((&[QOS_KEYS, &["inherits"]].concat(), &[]))?;
    let inherits = table.or("inherits", Vec::new(), |names| names.each(usize::MAX, profile_name))?;
    let mut read = Profile { inherits, ..Profile::default() };
    for key in QOS_KEYS {
        let Some(field) = table.get(key) else { continue };
        let value = value(&field)?;
        super::profiles::check(key, &value).map_err(|cause| field.error(cause))?;
        read.keys.insert(key, Sourced { value, origin: origin(path, &field) });
    }
    Ok(read)
}

fn read_rule(rule: &SettingsValue<'_>, path: &Path) -> Result<TopicRule, SettingsError> {
    let table = rule.table((&["name", "profile", "reader_profile", "writer_profile"], &[]))?;
    let name = table.require("name")?.text()?.to_owned();
    let both = table.maybe("profile", profile_name)?;
    let writer = table.maybe("writer_profile", profile_name)?.or_else(|| both.clone());
    let reader = table.maybe("reader_profile", profile_name)?.or(both);
    if writer.is_none() && reader.is_none() {
        let cause = format!("{name:?} names no profile: add profile, writer_profile or reader_profile");
        return Err(rule.error(cause));
    }
    Ok(TopicRule { name, writer, reader, origin: origin(path, rule) })
}

fn profile_name(field: &SettingsValue<'_>) -> Result<ProfileName, SettingsError> {
    Ok(ProfileName { name: field.text()?.to_owned(), offset: field.offset() })
}

pub(super) fn origin(path: &Path, field: &SettingsValue<'_>) -> SettingOrigin {
    SettingOrigin::File { path: path.to_owned(), line: field.line() }
}

pub(super) fn texts(field: &SettingsValue<'_>) -> Result<Vec<String>, SettingsError> {
    field.each(usize::MAX, |element| element.text().map(str::to_owned))
}

/// A value of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Flag(bool),
    Texts(Vec<String>),
}

fn value(field: &SettingsValue<'_>) -> Result<Value, SettingsError> {
    let number = || field.integer(i64::MIN, i64::MAX).map(Value::Integer);
    let scalar = field.text().map(|text| Value::Text(text.to_owned())).or_else(|_| field.truth().map(Value::Flag));
    let value = scalar.or_else(|_| number()).or_else(|_| texts(field).map(Value::Texts));
    value.map_err(|_| field.error("a text, a whole number, true, false or a list of texts is needed"))
}

/// Units of durations, in nanoseconds; "s" ends others as well, and is tried last.
const UNITS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("s", 1_000_000_000),
];

const INFINITE_TEXT: &str = "infinite";

/// A duration as [`duration`] reads it, in the largest unit that it is a whole number of.
pub(super) fn duration_text(duration: Duration) -> String {
    if duration == INFINITE {
        return INFINITE_TEXT.to_owned();
    }
    let nanos = duration.as_nanos();
    let whole = UNITS.iter().filter(|(_, unit_nanos)| nanos.is_multiple_of(u128::from(*unit_nanos)));
    let (unit, unit_nanos) = whole.max_by_key(|(_, unit_nanos)| *unit_nanos).copied().unwrap_or(UNITS[0]);
    format!("{}{unit}", nanos / u128::from(unit_nanos))
}

/// A duration as `250us`, `100ms`, `2s`, `3min`, `1h` or `infinite`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    if text == INFINITE_TEXT {
        return Ok(INFINITE);
    }
    let wrong = || {
        let rule = "a duration is a whole number with its unit, such as \"100ms\" or \"2s\", or \"infinite\"";
        format!("{text:?} is none; {rule}")
    };
    let (digits, nanos) =
        UNITS.iter().find_map(|(unit, nanos)| Some((text.strip_suffix(unit)?, nanos))).ok_or_else(wrong)?;
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number = digits.parse::<u64>().ok().filter(|_| is_number).ok_or_else(wrong)?;
    number.checked_mul(*nanos).map(Duration::from_nanos).ok_or_else(wrong)
}
