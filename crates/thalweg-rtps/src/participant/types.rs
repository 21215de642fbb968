//! What a driver knows of types: which it announces, and whether one is assignable to another (DDS-XTypes 1.3 §7.6.3).

use std::fmt::Debug;
use std::sync::Arc;

use super::Participant;
use crate::discovery::endpoint_data::{PublicationData, SubscriptionData, match_endpoints};
use crate::qos::{MatchResult, Mismatch, PolicyId};
use crate::time::Instant;
use crate::types::{EntityId, Guid};

/// Whether the samples of a writer fit the type of a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeVerdict {
    /// Nobody can tell, since one side does not describe its type: the names decide.
    ByName,
    /// They fit, whatever the types are called.
    Assignable,
    /// They do not; the reason in a sentence, with the path of the first member that differs.
    Different(String),
    /// It is not known yet. The pair waits until the driver calls [`Participant::handle_types`](super::Participant::handle_types).
    Unknown,
}

/// The driver's knowledge of types. Both functions are called while all else of the participant waits: they look things up and
/// compute no more than once for each pair of types.
pub trait TypeDirectory: Debug + Send + Sync {
    /// The value of TYPE_INFORMATION that endpoints of this topic announce.
    fn information(&self, topic_name: &str, type_name: &str) -> Option<Arc<[u8]>>;

    /// Compares the types of a writer and a reader on one topic.
    fn judge(&self, writer: &PublicationData, reader: &SubscriptionData) -> TypeVerdict;
}

impl Participant {
    pub(super) fn type_information(&self, topic_name: &str, type_name: &str) -> Option<Arc<[u8]>> {
        self.config.types.as_ref()?.information(topic_name, type_name)
    }

    /// Compares a writer with a reader on one topic: their types, and then all else. `None` while nothing can be said of the types:
    /// the driver is asking for them.
    pub fn compare(&self, writer: &PublicationData, reader: &SubscriptionData) -> Option<MatchResult> {
        let result = match_endpoints(writer, reader);
        let names_count = matches!(result, MatchResult::DifferentType { .. });
        let types = self.config.types.as_ref().filter(|_| names_count || result == MatchResult::Match);
        match types.map_or(TypeVerdict::ByName, |types| types.judge(writer, reader)) {
            TypeVerdict::ByName => Some(result),
            TypeVerdict::Unknown => None,
            TypeVerdict::Different(why) => {
                let requested = format!("{:?}, which has a difference: {why}", reader.type_name);
                let (policy, offered) = (PolicyId::TYPE_CONSISTENCY, format!("{:?}", writer.type_name));
                let rule = "the writer's type must be assignable to the reader's (DDS-XTypes 1.3 §7.2.4)";
                Some(MatchResult::Incompatible(vec![Mismatch { policy, offered, requested, rule }]))
            }
            TypeVerdict::Assignable if names_count => {
                let named = PublicationData { type_name: reader.type_name.clone(), ..writer.clone() };
                Some(match_endpoints(&named, reader))
            }
            TypeVerdict::Assignable => Some(result),
        }
    }

    /// Compares the pairs of endpoints anew whose types were not known: some are now, or the driver waits no longer.
    pub fn handle_types(&mut self, now: Instant) {
        for (local, remote) in std::mem::take(&mut self.undecided) {
            if local.is_writer() {
                self.match_writer_with(now, local, remote);
            } else {
                self.match_reader_with(now, local, remote);
            }
        }
    }

    /// Notes a pair whose types are not known yet. Endpoints of one topic alone are compared, so that the pairs are bounded by what
    /// discovery remembers.
    pub(super) fn note_undecided(&mut self, local: EntityId, remote: Guid) {
        self.undecided.insert((local, remote));
    }
}
