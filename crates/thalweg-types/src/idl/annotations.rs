//! Annotations (IDL 4.2 §8, DDS-XTypes 1.3 §7.3.1.2).

use std::sync::Arc;

use thalweg_cdr::Extensibility;
use thalweg_cdr::description::{Annotations, TryConstruct};

use super::constants::{Constant, expression};
use super::words::{Word, Words, error_at};
use super::{IdlError, Names};

/// The annotations in front of something, and what the comments there say.
#[derive(Default)]
pub(super) struct Applied(Vec<Annotation>, Option<Arc<str>>);

struct Annotation {
    name: String,
    /// The words between the brackets.
    arguments: Vec<Word>,
    place: Word,
}

impl Applied {
    /// Reads the annotations that come next.
    pub(super) fn read(words: &mut Words) -> Result<Applied, IdlError> {
        let in_front = words.docs();
        let mut applied = Vec::new();
        while words.try_take("@") {
            let place = words.next_word("the name of an annotation")?;
            let mut name = place.text.to_string();
            while words.try_take("::") {
                name = words.identifier()?;
            }
            let mut arguments = Vec::new();
            if words.try_take("(") {
                let mut open = 1;
                loop {
                    let word = words.next_word("\")\"")?;
                    match &*word.text {
                        "(" => open += 1,
                        ")" => open -= 1,
                        _ => {}
                    }
                    if open == 0 {
                        break;
                    }
                    arguments.push(word);
                }
            }
            applied.push(Annotation { name, arguments, place });
        }
        let docs = in_front.or_else(|| words.docs());
        Ok(Applied(applied, docs))
    }

    /// What the comments in front of it say.
    pub(super) fn docs(&self) -> Option<&str> {
        self.1.as_deref()
    }

    fn find(&self, name: &str) -> Option<&Annotation> {
        self.0.iter().find(|annotation| annotation.name == name)
    }

    /// Whether there is one of this name that is not switched off.
    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_some_and(|found| found.word() != Some("FALSE"))
    }

    /// Whether there is one of this name, whatever its value.
    pub(super) fn is_given(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The last part of the name that is the argument of an annotation; `None` where the argument is no name.
    pub(super) fn last_name(&self, name: &str) -> Option<String> {
        let mut words = Words::of_part(self.find(name)?.argument("value")?);
        let whole = words.scoped_name().ok()?;
        let last = whole.rsplit("::").next().map(str::to_owned);
        last.filter(|_| words.peek().is_none())
    }

    /// The value of a switch, where it is given.
    pub(super) fn switch(&self, name: &str) -> Option<bool> {
        self.find(name).map(|found| found.word() != Some("FALSE"))
    }

    /// The value of the argument of an annotation: its only one, or that with this name.
    pub(super) fn value(&self, name: &str, argument: &str, names: &Names) -> Result<Option<Constant>, IdlError> {
        let Some(found) = self.find(name) else { return Ok(None) };
        let Some(words) = found.argument(argument) else { return Ok(None) };
        let mut words = Words::of_part(words);
        let value = expression(&mut words, names)?;
        match words.peek() {
            None => Ok(Some(value)),
            Some(_) => Err(words.error(format!("one value is enough for @{name}"))),
        }
    }

    /// A whole number among the arguments.
    pub(super) fn integer<T: TryFrom<i128>>(&self, name: &str, names: &Names) -> Result<Option<T>, IdlError> {
        match self.value(name, "value", names)? {
            None if self.find(name).is_some() => Err(self.error(name, format!("@{name} needs a value"))),
            None => Ok(None),
            Some(Constant::Integer(number)) => match T::try_from(number) {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(self.error(name, format!("{number} does not fit @{name}"))),
            },
            Some(_) => Err(self.error(name, format!("@{name} needs a whole number"))),
        }
    }

    /// The extensibility that is given.
    pub(super) fn extensibility(&self) -> Result<Option<Extensibility>, IdlError> {
        let mut given = None;
        for annotation in &self.0 {
            let word = match annotation.name.as_str() {
                "final" => "FINAL",
                "appendable" => "APPENDABLE",
                "mutable" => "MUTABLE",
                "extensibility" => annotation.word().unwrap_or_default(),
                _ => continue,
            };
            given = Some(match word {
                "FINAL" | "FINAL_EXTENSIBILITY" => Extensibility::Final,
                "APPENDABLE" | "EXTENSIBLE_EXTENSIBILITY" => Extensibility::Appendable,
                "MUTABLE" | "MUTABLE_EXTENSIBILITY" => Extensibility::Mutable,
                other => {
                    let problem = format!("{other:?} is no extensibility; there are FINAL, APPENDABLE and MUTABLE");
                    return Err(error_at(Some(&annotation.place), problem));
                }
            });
        }
        Ok(given)
    }

    /// Whether the ids of members come from their names; `None` where nothing says so.
    pub(super) fn hashed_ids(&self) -> Option<bool> {
        self.find("autoid").map(|found| found.word() != Some("SEQUENTIAL"))
    }

    /// What a receiver does with a value that it cannot hold.
    pub(super) fn try_construct(&self) -> Result<TryConstruct, IdlError> {
        match self.find("try_construct").map(|found| found.word()) {
            None | Some(Some("DISCARD")) => Ok(TryConstruct::Discard),
            Some(None | Some("USE_DEFAULT")) => Ok(TryConstruct::UseDefault),
            Some(Some("TRIM")) => Ok(TryConstruct::Trim),
            Some(Some(other)) => {
                Err(self.error("try_construct", format!("{other:?} is none of DISCARD, USE_DEFAULT and TRIM")))
            }
        }
    }

    /// The annotations that describe a member and change nothing on the wire.
    pub(super) fn descriptive(&self, names: &Names) -> Result<Annotations, IdlError> {
        let text = |value: Option<Constant>| {
            value.map(|value| match value {
                Constant::Integer(number) => number.to_string(),
                Constant::Real(number) => format!("{number:?}"),
                Constant::Text(text) => text,
            })
        };
        let of = |name: &str, argument: &str| self.value(name, argument, names).map(text);
        let or_range = |own: Option<String>, argument: &str| match own {
            None if self.find("range").is_some() => of("range", argument),
            own => Ok(own),
        };
        let hash_id = match self.find("hashid") {
            None => None,
            Some(_) => Some(of("hashid", "value")?.unwrap_or_default()),
        };
        Ok(Annotations {
            unit: of("unit", "value")?,
            min: or_range(of("min", "value")?, "min")?,
            max: or_range(of("max", "value")?, "max")?,
            hash_id,
            // Depends on the type of each member.
            default: None,
        })
    }

    /// Refuses annotations where they would be lost.
    pub(super) fn refuse(&self, place: &str) -> Result<(), IdlError> {
        match self.0.first() {
            None => Ok(()),
            Some(found) => Err(error_at(Some(&found.place), format!("@{} is not supported on {place}", found.name))),
        }
    }

    /// An error at an annotation.
    pub(super) fn error(&self, name: &str, problem: String) -> IdlError {
        error_at(self.find(name).map(|found| &found.place), problem)
    }
}

impl Annotation {
    /// The only argument, if it is a single word.
    fn word(&self) -> Option<&str> {
        match &self.arguments[..] {
            [only] => Some(&only.text),
            [name, sign, only] if &*name.text == "value" && &*sign.text == "=" => Some(&only.text),
            _ => None,
        }
    }

    /// The words of the argument with this name, or of all if none has a name.
    fn argument(&self, name: &str) -> Option<&[Word]> {
        let parts = self.arguments.split(|word| &*word.text == ",");
        let mut named = parts.filter_map(|part| match part {
            [first, sign, rest @ ..] if &*sign.text == "=" => Some((first, rest)),
            _ => None,
        });
        let has_names = self.arguments.get(1).is_some_and(|sign| &*sign.text == "=");
        match has_names {
            true => named.find(|(first, _)| &*first.text == name).map(|(_, rest)| rest),
            false => (!self.arguments.is_empty()).then_some(&self.arguments[..]),
        }
    }
}
