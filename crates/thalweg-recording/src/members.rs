//! The participants of a replay: each of them has one definition of a topic's type.

use std::collections::BTreeMap;

use thalweg::types::Keyed;
use thalweg::{DomainParticipant, Type};
use thalweg_types::type_object::{TypeInformation, describe};

use crate::error::RecordingError;

/// Makes a participant of the domain in which is replayed.
pub type JoinDomain<'a> = dyn Fn() -> Result<DomainParticipant, RecordingError> + 'a;

/// Participants that join as they are needed: a recording may have writers of one topic with different definitions of its type, and a
/// participant announces one for all of them.
pub struct Members<'a> {
    join: &'a JoinDomain<'a>,
    members: Vec<Member>,
}

struct Member {
    participant: DomainParticipant,
    /// By the names of topics.
    types: BTreeMap<String, WrittenType>,
}

/// The type of a writer, as others are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenType {
    name: String,
    keyed: Keyed,
    information: Option<TypeInformation>,
}

impl WrittenType {
    /// One of this name, with its definition where that is known.
    pub fn new(name: &str, keyed: Keyed, of: Option<&Type>) -> WrittenType {
        let information = of.and_then(|of| describe(of).ok()).map(|described| described.information);
        WrittenType { name: name.to_owned(), keyed, information }
    }
}

impl<'a> Members<'a> {
    /// Nobody yet.
    pub fn new(join: &'a JoinDomain<'a>) -> Members<'a> {
        Members { join, members: Vec::new() }
    }

    /// The participant that writes to a topic with this type.
    ///
    /// # Errors
    /// No further participant can join, or the topic has many types already.
    pub fn writing(&mut self, topic: &str, written: WrittenType) -> Result<&DomainParticipant, String> {
        let fits = |member: &Member| member.types.get(topic).is_none_or(|known| *known == written);
        let place = match self.members.iter().position(fits) {
            Some(place) => place,
            None if self.members.len() >= MEMBERS_MAX => {
                return Err(format!("its topic has {MEMBERS_MAX} types already"));
            }
            None => {
                let participant = (self.join)().map_err(|error| error.to_string())?;
                self.members.push(Member { participant, types: BTreeMap::new() });
                self.members.len() - 1
            }
        };
        let member = &mut self.members[place];
        member.types.insert(topic.to_owned(), written);
        Ok(&member.participant)
    }
}

/// Participants of a replay, chosen by us: as many definitions of a type as a recorder takes.
const MEMBERS_MAX: usize = 16;
