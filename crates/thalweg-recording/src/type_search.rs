//! The search for the type of a topic: files first, then a participant that describes it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg::types::GuidPrefix;
use thalweg::{DomainParticipant, ErrorKind, Type};

use crate::error::RecordingError;

/// Finds the type of a name where the domain is not asked, such as in files.
pub type TypeSource<'a> = dyn Fn(&str) -> Result<Option<Type>, RecordingError> + 'a;

/// A search that never waits longer than it is told to.
#[derive(Debug)]
pub struct TypeSearch {
    began: Instant,
    has_asked_files: bool,
    /// Participants that describe the type, with what they announce of it.
    descriptions: Vec<(GuidPrefix, Arc<[u8]>)>,
}

/// The type with its origin, or why it is not found.
pub type FoundType = Result<(Type, String), String>;

impl TypeSearch {
    /// A search that nobody was asked in yet; it lasts two seconds from `now` on at most.
    pub fn new(now: Instant) -> TypeSearch {
        TypeSearch { began: now, has_asked_files: false, descriptions: Vec::new() }
    }

    /// Takes a participant that describes the type; of many, the first ones.
    pub fn add_description(&mut self, owner: GuidPrefix, information: &Arc<[u8]>) {
        if self.descriptions.len() < DESCRIPTIONS_MAX {
            self.descriptions.push((owner, Arc::clone(information)));
        }
    }

    /// Asks for the type; `None` while somebody may still answer. Waits up to `patience` for each who describes it.
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
                Ok(Some(of)) => return Some(Ok((of, "files".to_owned()))),
                Ok(None) => {}
                Err(error) => return Some(Err(error.to_string())),
            }
        }
        let mut problem = "nobody describes it".to_owned();
        let mut may_come = false;
        for (owner, information) in &self.descriptions {
            match participant.type_of(*owner, information, patience) {
                Ok(of) => return Some(Ok((of, format!("participant {owner}")))),
                Err(error) => {
                    may_come |= error.kind() == ErrorKind::Timeout;
                    problem = error.to_string();
                }
            }
        }
        let is_over = !may_come || now.saturating_duration_since(self.began) >= TYPE_PATIENCE;
        is_over.then_some(Err(problem))
    }
}

/// Longest wait for a type.
const TYPE_PATIENCE: Duration = Duration::from_secs(2);
/// Participants that are asked for one type, chosen by us.
const DESCRIPTIONS_MAX: usize = 16;
