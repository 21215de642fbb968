//! Packs of measurements: SenML in JSON and CBOR (RFC 8428), read with base values resolved, and written with names shortened.

mod base64;
mod label;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::device::Value;
use crate::message::content_format;
use label::Label;
use thalweg_types::document::{Document, MapKey};

/// A record whose base values are resolved (RFC 8428 §4.6).
#[derive(Clone, Debug, PartialEq)]
pub struct SenmlRecord {
    /// The whole name.
    pub name: String,
    /// The symbol of the unit; empty for none.
    pub unit: String,
    /// The value; a record may have a sum alone.
    pub value: Option<Value>,
    /// The integral of the value over time.
    pub sum: Option<f64>,
    /// Seconds since 1970 from 2^28 on, else seconds from now, negative ones in the past (RFC 8428 §4.5.3).
    pub time: f64,
    /// The longest time in seconds until the next reading.
    pub update_time: Option<f64>,
}

/// Why a payload is no pack of SenML, or cannot be written as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenmlError {
    /// The record, from 0; `None` for the pack.
    pub record: Option<usize>,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for SenmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.record {
            Some(record) => write!(f, "record {record} of the SenML pack: {}", self.reason),
            None => write!(f, "the payload is no SenML pack: {}", self.reason),
        }
    }
}

impl std::error::Error for SenmlError {}

impl SenmlRecord {
    /// A reading of now.
    pub fn new(name: impl Into<String>, unit: impl Into<String>, value: Value) -> SenmlRecord {
        SenmlRecord {
            name: name.into(),
            unit: unit.into(),
            value: Some(value),
            sum: None,
            time: 0.0,
            update_time: None,
        }
    }
}

/// Base values that hold from one record on.
#[derive(Default)]
struct Bases {
    name: String,
    time: f64,
    unit: String,
    value: Option<f64>,
    sum: Option<f64>,
}

/// Reads a pack in [`content_format::SENML_JSON`] or [`content_format::SENML_CBOR`], of at most 4096 records.
///
/// # Errors
/// When the payload is no pack, a record breaks a rule of RFC 8428 §4, or it has a field that must be understood and is not.
pub fn parse(format: u16, payload: &[u8]) -> Result<Vec<SenmlRecord>, SenmlError> {
    parse_for("", format, payload)
}

/// As [`parse`], where records without a name are those of the resource that the pack is sent to.
///
/// # Errors
/// As [`parse`].
pub fn parse_for(resource: &str, format: u16, payload: &[u8]) -> Result<Vec<SenmlRecord>, SenmlError> {
    let no_pack = |reason: String| SenmlError { record: None, reason };
    let document = match format {
        content_format::SENML_JSON => Document::from_json(payload),
        content_format::SENML_CBOR => Document::from_cbor(payload),
        other => return Err(no_pack(format!("content format {other} is not SenML"))),
    };
    let document = document.map_err(|error| no_pack(error.to_string()))?;
    let Document::Array(records) = document else { return Err(no_pack("an array of records is needed".to_owned())) };
    if records.is_empty() || records.len() > RECORDS_MAX {
        return Err(no_pack(format!("1 to {RECORDS_MAX} records are needed, not {}", records.len())));
    }
    let mut bases = Bases::default();
    let mut resolved = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let wrong = |reason: String| SenmlError { record: Some(at), reason };
        let fields = Fields::of(record, format).map_err(wrong)?;
        bases.take(&fields).map_err(wrong)?;
        // A record may hold base values alone.
        resolved.extend(bases.resolve(&fields, resource).map_err(wrong)?);
    }
    Ok(resolved)
}

/// Writes a pack: what all names have in common becomes the base name.
///
/// # Errors
/// When there is no record, a name or number that SenML does not allow, or another format is asked for.
pub fn encode(format: u16, records: &[SenmlRecord]) -> Result<Vec<u8>, SenmlError> {
    let wrong = |reason: String| SenmlError { record: None, reason };
    let is_json = match format {
        content_format::SENML_JSON => true,
        content_format::SENML_CBOR => false,
        other => return Err(wrong(format!("content format {other} is not SenML"))),
    };
    if records.is_empty() {
        return Err(wrong("a pack has at least one record".to_owned()));
    }
    let base = common_name(records);
    let mut written = Vec::with_capacity(records.len());
    for (at, record) in records.iter().enumerate() {
        let wrong = |reason: String| SenmlError { record: Some(at), reason };
        check_name(&record.name).map_err(wrong)?;
        let mut fields = Vec::new();
        let mut put = |label: Label, value: Document| {
            fields.push((if is_json { MapKey::from(label.name()) } else { MapKey::Label(label.number()) }, value));
        };
        if at == 0 && !base.is_empty() {
            put(Label::BaseName, Document::Text(base.to_owned()));
        }
        let rest = &record.name[base.len()..];
        if !rest.is_empty() {
            put(Label::Name, Document::Text(rest.to_owned()));
        }
        if !record.unit.is_empty() {
            put(Label::Unit, Document::Text(record.unit.clone()));
        }
        if let Some(value) = &record.value {
            let (label, value) = of_value(value, is_json).map_err(wrong)?;
            put(label, value);
        } else if record.sum.is_none() {
            return Err(wrong("a value or a sum is needed".to_owned()));
        }
        let numbers = [(Label::Sum, record.sum), (Label::Time, Some(record.time).filter(|time| *time != 0.0))];
        for (label, number) in numbers.into_iter().chain([(Label::UpdateTime, record.update_time)]) {
            if let Some(number) = number {
                put(label, finite(number).map_err(wrong)?);
            }
        }
        written.push(Document::Map(fields));
    }
    let pack = Document::Array(written);
    let bytes = if is_json { pack.to_json() } else { pack.to_cbor() };
    bytes.map_err(|error| wrong(error.to_string()))
}

impl Bases {
    /// Takes the base values of a record.
    fn take(&mut self, fields: &Fields<'_>) -> Result<(), String> {
        if let Some(version) = fields.number(Label::BaseVersion)?
            && version > VERSION
        {
            return Err(format!("it is of version {version}; this reads up to {VERSION}"));
        }
        if let Some(name) = fields.text(Label::BaseName)? {
            name.clone_into(&mut self.name);
        }
        if let Some(unit) = fields.text(Label::BaseUnit)? {
            unit.clone_into(&mut self.unit);
        }
        self.time = fields.number(Label::BaseTime)?.unwrap_or(self.time);
        self.value = fields.number(Label::BaseValue)?.or(self.value);
        self.sum = fields.number(Label::BaseSum)?.or(self.sum);
        Ok(())
    }

    fn resolve(&self, fields: &Fields<'_>, resource: &str) -> Result<Option<SenmlRecord>, String> {
        let value = fields.value(self.value)?;
        let sum = match (fields.number(Label::Sum)?, self.sum) {
            (None, None) => None,
            // A base sum alone belongs to records with neither value nor sum, too (RFC 8428 §4.5.4 has no other use for it).
            (None, Some(base)) => value.is_none().then_some(base),
            (Some(sum), base) => Some(sum + base.unwrap_or_default()),
        };
        if value.is_none() && sum.is_none() {
            return Ok(None);
        }
        let mut name = format!("{}{}", self.name, fields.text(Label::Name)?.unwrap_or_default());
        if name.is_empty() {
            resource.clone_into(&mut name);
        }
        check_name(&name)?;
        let unit = fields.text(Label::Unit)?.unwrap_or(&self.unit).to_owned();
        let time = self.time + fields.number(Label::Time)?.unwrap_or_default();
        Ok(Some(SenmlRecord { name, unit, value, sum, time, update_time: fields.number(Label::UpdateTime)? }))
    }
}

/// The fields of one record.
struct Fields<'a> {
    members: Vec<(Label, &'a Document)>,
    is_json: bool,
}

impl<'a> Fields<'a> {
    fn of(record: &'a Document, format: u16) -> Result<Fields<'a>, String> {
        let Document::Map(record) = record else { return Err("a map is needed".to_owned()) };
        let mut members: Vec<(Label, &Document)> = Vec::with_capacity(record.len());
        for (key, value) in record {
            match Label::of(key) {
                Some(label) if members.iter().any(|(known, _)| *known == label) => {
                    return Err(format!("{:?} stands there twice", label.name()));
                }
                Some(label) => members.push((label, value)),
                // RFC 8428 §4.4: such a field must be understood.
                None => match key {
                    MapKey::Text(name) if name.ends_with('_') => return Err(format!("{name:?} is not understood")),
                    MapKey::Text(_) | MapKey::Label(_) => {}
                },
            }
        }
        Ok(Fields { members, is_json: format == content_format::SENML_JSON })
    }

    fn get(&self, label: Label) -> Option<&'a Document> {
        self.members.iter().find(|(known, _)| *known == label).map(|(_, value)| *value)
    }

    fn text(&self, label: Label) -> Result<Option<&'a str>, String> {
        match self.get(label) {
            None => Ok(None),
            Some(Document::Text(text)) => Ok(Some(text)),
            Some(_) => Err(format!("{:?} is a text", label.name())),
        }
    }

    fn number(&self, label: Label) -> Result<Option<f64>, String> {
        match self.get(label) {
            None => Ok(None),
            Some(Document::Integer(number)) => Ok(Some(*number as f64)),
            Some(Document::Real(number)) if number.is_finite() => Ok(Some(*number)),
            Some(_) => Err(format!("{:?} is a number", label.name())),
        }
    }

    /// The value, if there is one; at most one is allowed.
    fn value(&self, base: Option<f64>) -> Result<Option<Value>, String> {
        let labels = [Label::Value, Label::StringValue, Label::BooleanValue, Label::DataValue];
        let mut given = labels.into_iter().filter_map(|label| self.get(label).map(|value| (label, value)));
        let Some((label, value)) = given.next() else { return Ok(base.map(Value::Real)) };
        if let Some((second, _)) = given.next() {
            return Err(format!("it has both {:?} and {:?}", label.name(), second.name()));
        }
        let value = match (label, value) {
            (Label::Value, Document::Integer(number)) if base.is_none() && i64::try_from(*number).is_ok() => {
                Value::Integer(i64::try_from(*number).unwrap_or_default())
            }
            (Label::Value, _) => Value::Real(self.number(label)?.unwrap_or_default() + base.unwrap_or_default()),
            (Label::StringValue, Document::Text(text)) => Value::Text(text.clone()),
            (Label::BooleanValue, Document::Boolean(truth)) => Value::Boolean(*truth),
            (Label::DataValue, Document::Bytes(bytes)) if !self.is_json => Value::Bytes(bytes.clone()),
            (Label::DataValue, Document::Text(text)) if self.is_json => {
                Value::Bytes(base64::decode(text).ok_or_else(|| "\"vd\" is not base64url".to_owned())?)
            }
            _ => return Err(format!("{:?} has a value of another type", label.name())),
        };
        Ok(Some(value))
    }
}

fn of_value(value: &Value, is_json: bool) -> Result<(Label, Document), String> {
    Ok(match value {
        Value::Integer(number) => (Label::Value, Document::Integer(i128::from(*number))),
        Value::Real(number) => (Label::Value, finite(*number)?),
        Value::Boolean(truth) => (Label::BooleanValue, Document::Boolean(*truth)),
        Value::Text(text) => (Label::StringValue, Document::Text(text.clone())),
        Value::Bytes(bytes) if is_json => (Label::DataValue, Document::Text(base64::encode(bytes))),
        Value::Bytes(bytes) => (Label::DataValue, Document::Bytes(bytes.clone())),
    })
}

fn finite(number: f64) -> Result<Document, String> {
    if number.is_finite() { Ok(Document::Real(number)) } else { Err(format!("SenML cannot say {number}")) }
}

/// Letters of names (RFC 8428 §4.5.1).
fn check_name(name: &str) -> Result<(), String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-:./_".contains(&byte);
    let is_name =
        name.bytes().all(is_allowed) && name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
    if is_name { Ok(()) } else { Err(format!("{name:?} is no name; letters, digits and -:./_ are allowed")) }
}

/// The beginning that all names have in common, up to its last slash, where there are several.
fn common_name(records: &[SenmlRecord]) -> &str {
    let Some(((first, rest), true)) = records.split_first().map(|split| (split, records.len() > 1)) else { return "" };
    let mut common = first.name.len();
    for record in rest {
        let same = first.name.bytes().zip(record.name.bytes()).take_while(|(one, other)| one == other).count();
        common = common.min(same);
    }
    let end = first.name.as_bytes()[..common].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    first.name.get(..end).unwrap_or_default()
}

/// Most records of a pack; chosen by us: as many as a store has resources.
const RECORDS_MAX: usize = 4096;
/// The version of RFC 8428.
const VERSION: f64 = 10.0;
