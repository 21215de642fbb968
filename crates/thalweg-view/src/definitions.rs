//! The definitions that writers of a shown topic have of its type, under one name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg::discovery::PublicationData;
use thalweg::types::GuidPrefix;
use thalweg::{DomainParticipant, ErrorKind};
use thalweg_recording::schema::TypeSchema;
use thalweg_recording::type_identity::TypeIdentity;

/// Which definitions are the one that a topic is shown with.
pub struct TypeDefinitions {
    /// What clients are told of the type.
    schema: Arc<TypeSchema>,
    verdicts: BTreeMap<TypeIdentity, Verdict>,
}

/// What is known of a definition that writers announce.
enum Verdict {
    /// It is asked for since then.
    Asked { since: Instant, owner: GuidPrefix, information: Arc<[u8]> },
    /// Clients read its samples by the schema that they have; so they do, for all that is known, where nobody answers.
    Same,
    /// They do not.
    Other,
}

impl TypeDefinitions {
    /// Those of a topic that is shown with this schema, which is that of these definitions.
    pub fn new(schema: Arc<TypeSchema>, own: impl IntoIterator<Item = TypeIdentity>) -> TypeDefinitions {
        TypeDefinitions { schema, verdicts: own.into_iter().map(|own| (own, Verdict::Same)).collect() }
    }

    /// Takes note of what a writer announces.
    pub fn add_writer(&mut self, data: &PublicationData, now: Instant) {
        let Some(information) = &data.type_information else { return };
        let Some(identity) = TypeIdentity::announced(Some(information)) else { return };
        if self.verdicts.len() < DEFINITIONS_MAX {
            self.verdicts.entry(identity).or_insert_with(|| Verdict::Asked {
                since: now,
                owner: data.guid.prefix,
                information: Arc::clone(information),
            });
        }
    }

    /// Whether a writer has another definition.
    pub fn is_other(&self, data: &PublicationData) -> bool {
        let identity = TypeIdentity::announced(data.type_information.as_deref());
        identity.is_some_and(|identity| matches!(self.verdicts.get(&identity), Some(Verdict::Other)))
    }

    /// Whether something is asked for.
    pub fn is_pending(&self) -> bool {
        self.verdicts.values().any(|verdict| matches!(verdict, Verdict::Asked { .. }))
    }

    /// Asks for what is not known, and waits up to `patience` for each answer; true when there is another definition among what was found.
    pub fn look(&mut self, now: Instant, participant: &DomainParticipant, type_name: &str, patience: Duration) -> bool {
        let mut has_other = false;
        for verdict in self.verdicts.values_mut() {
            let Verdict::Asked { since, owner, information } = verdict else { continue };
            *verdict = match participant.type_of(*owner, information, patience) {
                // Definitions that differ in what a schema does not tell are read alike.
                Ok(of) if TypeSchema::of(type_name, &of) == *self.schema => Verdict::Same,
                Ok(_) => {
                    has_other = true;
                    Verdict::Other
                }
                Err(error) if error.kind() == ErrorKind::Timeout && now.duration_since(*since) < ANSWER_TIME => {
                    continue;
                }
                Err(_) => Verdict::Same,
            };
        }
        has_other
    }
}

/// Definitions of a topic's type that are told apart, chosen by us: versions of a program that run at the same time are two or three.
const DEFINITIONS_MAX: usize = 16;
/// Longest wait for a definition.
const ANSWER_TIME: Duration = Duration::from_secs(2);
