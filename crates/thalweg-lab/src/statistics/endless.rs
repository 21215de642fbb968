//! Numbers in JSON that may be infinite: the latency of a sample that never arrived.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Number(f64),
    Word(Word),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Never,
    Minus,
}

fn written(value: f64) -> Written {
    match value {
        f64::INFINITY => Written::Word(Word::Never),
        f64::NEG_INFINITY => Written::Word(Word::Minus),
        value => Written::Number(value),
    }
}

fn read(written: Written) -> f64 {
    match written {
        Written::Number(value) => value,
        Written::Word(Word::Never) => f64::INFINITY,
        Written::Word(Word::Minus) => f64::NEG_INFINITY,
    }
}

/// For a number: infinity is the word `never`, its opposite `minus`.
pub(crate) mod number {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        written(*value).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Written::deserialize(deserializer).map(read)
    }
}

/// For a number that may be missing.
pub(crate) mod option {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(written).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
        Option::<Written>::deserialize(deserializer).map(|value| value.map(read))
    }
}

/// For two numbers.
pub(crate) mod pair {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(value: &(f64, f64), serializer: S) -> Result<S::Ok, S::Error> {
        (written(value.0), written(value.1)).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(f64, f64), D::Error> {
        <(Written, Written)>::deserialize(deserializer).map(|(one, other)| (read(one), read(other)))
    }
}

/// For three numbers that may be missing.
pub(crate) mod three {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(value: &[Option<f64>; 3], serializer: S) -> Result<S::Ok, S::Error> {
        value.map(|one| one.map(written)).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[Option<f64>; 3], D::Error> {
        <[Option<Written>; 3]>::deserialize(deserializer).map(|three| three.map(|one| one.map(read)))
    }
}

/// For a list of numbers.
pub(crate) mod list {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|value| written(*value)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        Vec::<Written>::deserialize(deserializer).map(|all| all.into_iter().map(read).collect())
    }
}
