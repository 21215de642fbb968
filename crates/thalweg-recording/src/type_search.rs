//! The search for the type of a topic: files first, then a participant that describes it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg::types::GuidPrefix;
use thalweg::{DomainParticipant, ErrorKind, Type};

use crate::error::RecordingError;
use crate::schema::TypeSchema;
use crate::type_identity::TypeIdentity;

/// Finds the type of a name where the domain is not asked, such as in files.
pub type TypeSource<'a> = dyn Fn(&str) -> Result<Option<Type>, RecordingError> + 'a;

/// A search that never waits longer than it is told to.
#[derive(Debug)]
pub struct TypeSearch {
    began: Instant,
    has_asked_files: bool,
    /// The type of this name in files, with its definition.
    of_files: Option<(Type, Option<TypeIdentity>)>,
    /// Of participants that describe the type.
    descriptions: Vec<TypeDescription>,
    /// What was found, as it is announced.
    found: Option<TypeIdentity>,
}

/// What a participant announces of the type.
#[derive(Debug)]
struct TypeDescription {
    owner: GuidPrefix,
    information: Arc<[u8]>,
    identity: Option<TypeIdentity>,
}

/// The type with its origin, or why it is not found.
pub type FoundType = Result<(Type, String), String>;

impl TypeSearch {
    /// A search that nobody was asked in yet; it lasts two seconds from `now` on at most.
    pub fn new(now: Instant) -> TypeSearch {
        TypeSearch { began: now, has_asked_files: false, of_files: None, descriptions: Vec::new(), found: None }
    }

    /// Takes a participant that describes the type; of many, the first ones.
    pub fn add_description(&mut self, owner: GuidPrefix, information: &Arc<[u8]>) {
        if self.descriptions.len() < DESCRIPTIONS_MAX {
            let identity = TypeIdentity::announced(Some(information));
            self.descriptions.push(TypeDescription { owner, information: Arc::clone(information), identity });
        }
    }

    /// The definition that was found, if somebody announces it.
    pub fn found(&self) -> Option<&TypeIdentity> {
        self.found.as_ref()
    }

    /// Asks for the type; `None` while somebody may still answer. Waits up to `patience` for each who describes it.
    ///
    /// The type of files is taken where nobody describes another one: under its name, a writer may have an older or newer definition.
    pub fn look(
        &mut self,
        now: Instant,
        participant: &DomainParticipant,
        types: &TypeSource<'_>,
        type_name: &str,
        patience: Duration,
    ) -> Option<FoundType> {
        if !std::mem::replace(&mut self.has_asked_files, true) {
            match types(type_name) {
                Ok(found) => {
                    self.of_files = found.map(|of| {
                        let identity = TypeIdentity::of(&of);
                        (of, identity)
                    });
                }
                Err(error) => return Some(Err(error.to_string())),
            }
        }
        if let Some((of, identity)) = &self.of_files {
            let is_announced = identity.is_some() && self.descriptions.iter().any(|told| told.identity == *identity);
            if is_announced || self.descriptions.is_empty() {
                self.found = identity.clone().filter(|_| is_announced);
                return Some(Ok((of.clone(), FILES.to_owned())));
            }
        }
        let mut problem = "nobody describes it".to_owned();
        let mut may_come = false;
        for TypeDescription { owner, information, identity } in &self.descriptions {
            match participant.type_of(*owner, information, patience) {
                Ok(of) => {
                    self.found.clone_from(identity);
                    // Definitions that differ in what a schema does not tell, such as the underscores of rmw_fastrtps, are one.
                    let schema = TypeSchema::of(type_name, &of);
                    let of_files = self.of_files.as_ref().map(|(of, _)| of);
                    let same = of_files.filter(|of| TypeSchema::of(type_name, of) == schema);
                    return Some(Ok(match same {
                        Some(same) => (same.clone(), FILES.to_owned()),
                        None => (of, format!("participant {owner}")),
                    }));
                }
                Err(error) => {
                    may_come |= error.kind() == ErrorKind::Timeout;
                    problem = error.to_string();
                }
            }
        }
        let is_over = !may_come || now.saturating_duration_since(self.began) >= TYPE_PATIENCE;
        is_over.then(|| self.of_files.take().map(|(of, _)| (of, FILES.to_owned())).ok_or(problem))
    }
}

/// What a type comes from that no participant described.
const FILES: &str = "files";
/// Longest wait for a type.
const TYPE_PATIENCE: Duration = Duration::from_secs(2);
/// Participants that are asked for one type, chosen by us.
const DESCRIPTIONS_MAX: usize = 16;
