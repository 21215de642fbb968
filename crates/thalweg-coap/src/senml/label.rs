//! The names of fields in JSON and their numbers in CBOR (RFC 8428 §4.3, §6).

use thalweg_types::document::MapKey;

/// A field of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    BaseVersion,
    BaseName,
    BaseTime,
    BaseUnit,
    BaseValue,
    BaseSum,
    Name,
    Unit,
    Value,
    StringValue,
    BooleanValue,
    Sum,
    Time,
    UpdateTime,
    DataValue,
}

const LABELS: [(Label, &str, i64); 15] = [
    (Label::BaseVersion, "bver", -1),
    (Label::BaseName, "bn", -2),
    (Label::BaseTime, "bt", -3),
    (Label::BaseUnit, "bu", -4),
    (Label::BaseValue, "bv", -5),
    (Label::BaseSum, "bs", -6),
    (Label::Name, "n", 0),
    (Label::Unit, "u", 1),
    (Label::Value, "v", 2),
    (Label::StringValue, "vs", 3),
    (Label::BooleanValue, "vb", 4),
    (Label::Sum, "s", 5),
    (Label::Time, "t", 6),
    (Label::UpdateTime, "ut", 7),
    (Label::DataValue, "vd", 8),
];

impl Label {
    pub(super) fn of(key: &MapKey) -> Option<Label> {
        let is_meant = |(_, name, number): &&(Label, &str, i64)| match key {
            MapKey::Text(text) => **text == **name,
            MapKey::Label(label) => label == number,
        };
        LABELS.iter().find(is_meant).map(|(label, ..)| *label)
    }

    pub(super) fn name(self) -> &'static str {
        self.entry().1
    }

    pub(super) fn number(self) -> i64 {
        self.entry().2
    }

    fn entry(self) -> &'static (Label, &'static str, i64) {
        LABELS.iter().find(|(label, ..)| *label == self).expect("each label stands in the table")
    }
}
