//! The participants of a replay: each of them has one definition of a topic's type, and so many TRANSIENT writers.

use std::collections::BTreeMap;

use thalweg::types::Keyed;
use thalweg::{DomainParticipant, Type};
use thalweg_types::type_object::{TypeInformation, describe};

use crate::error::RecordingError;

/// Makes a participant of the domain in which is replayed.
pub type JoinDomain<'a> = dyn Fn() -> Result<DomainParticipant, RecordingError> + 'a;

/// Participants that join as they are needed: a recording may have writers of one topic with different definitions of its type, and a
/// participant announces one for all of them. It may also have more TRANSIENT writers than a participant keeps histories.
pub struct Members<'a> {
    join: &'a JoinDomain<'a>,
    members: Vec<Member>,
}

struct Member {
    participant: DomainParticipant,
    /// By the names of topics.
    types: BTreeMap<String, WrittenType>,
    /// TRANSIENT writers.
    transient: usize,
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

    /// The participant of a further writer of a topic with this type, and whether that writer is TRANSIENT.
    ///
    /// # Errors
    /// No further participant can join, or so many did for the types of the topic and the TRANSIENT writers.
    pub fn writing(
        &mut self,
        topic: &str,
        written: WrittenType,
        is_transient: bool,
    ) -> Result<&DomainParticipant, String> {
        let has_type = |member: &Member| member.types.get(topic).is_none_or(|known| *known == written);
        let has_room = |member: &Member| !is_transient || member.transient < TRANSIENT_MAX;
        let place = match self.members.iter().position(|member| has_type(member) && has_room(member)) {
            Some(place) => place,
            None if self.members.len() >= MEMBERS_MAX => {
                return Err(format!(
                    "{MEMBERS_MAX} participants write already: a topic has at most so many types, and each participant \
                     {TRANSIENT_MAX} TRANSIENT writers"
                ));
            }
            None => {
                let participant = (self.join)().map_err(|error| error.to_string())?;
                self.members.push(Member { participant, types: BTreeMap::new(), transient: 0 });
                self.members.len() - 1
            }
        };
        let member = &mut self.members[place];
        member.types.insert(topic.to_owned(), written);
        member.transient += usize::from(is_transient);
        Ok(&member.participant)
    }
}

/// Participants of a replay, chosen by us: as many definitions of a type as a recorder takes.
const MEMBERS_MAX: usize = 16;
/// TRANSIENT writers of a participant: as many histories as outlive their writers there.
const TRANSIENT_MAX: usize = 1_024;
