//! What a driver knows of types: which it announces, and whether one is assignable to another (DDS-XTypes 1.3 §7.6.3).

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use super::Participant;
use crate::discovery::endpoint_data::{PublicationData, SubscriptionData, match_endpoints};
use crate::qos::{MatchResult, Mismatch, PolicyId, told_name};
use crate::time::Instant;
use crate::types::{EntityId, Guid};

/// Whether the samples of a writer fit the type of a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeVerdict {
    /// Nobody can tell, for the reason of this sentence: the names decide, see [`match_by_name`].
    ByName(Cow<'static, str>),
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

/// What a reader asks for that matches no writer whose type cannot be compared with its own.
pub(super) const FORCED: &str = "force_type_validation";
/// Why a participant whose driver has no [`TypeDirectory`] compares no types.
const NO_DIRECTORY: &str = "this participant compares no types";

/// Compares a writer with a reader on one topic where their types cannot be compared, for the reason `why`: the types' names decide, and a
/// reader that forces type validation matches with nobody (DDS-XTypes 1.3 §7.6.3.7).
pub fn match_by_name(writer: &PublicationData, reader: &SubscriptionData, why: &str) -> MatchResult {
    validated(match_endpoints(writer, reader), writer, reader, why)
}

/// What becomes of the result of the names and the QoS where the types cannot be compared.
fn validated(result: MatchResult, writer: &PublicationData, reader: &SubscriptionData, why: &str) -> MatchResult {
    if result != MatchResult::Match || !reader.qos.type_consistency.forces_validation {
        return result;
    }
    let offered = format!("{:?}, but its type cannot be validated: {why}", told_name(&writer.type_name));
    let (policy, requested) = (PolicyId::TYPE_CONSISTENCY, FORCED.to_owned());
    let rule =
        "a reader that forces type validation matches where both types can be compared (DDS-XTypes 1.3 §7.6.3.7)";
    MatchResult::Incompatible(vec![Mismatch { policy, offered, requested, rule }])
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
        if !names_count && result != MatchResult::Match {
            return Some(result);
        }
        let types = self.config.types.as_ref();
        match types.map_or(TypeVerdict::ByName(NO_DIRECTORY.into()), |types| types.judge(writer, reader)) {
            TypeVerdict::ByName(why) => Some(validated(result, writer, reader, &why)),
            TypeVerdict::Unknown => None,
            TypeVerdict::Different(why) => {
                let requested = format!("{:?}, which has a difference: {why}", told_name(&reader.type_name));
                let (policy, offered) = (PolicyId::TYPE_CONSISTENCY, format!("{:?}", told_name(&writer.type_name)));
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

    /// Compares the pairs of endpoints anew whose types were not known: some are now, or the driver waits no longer. So are those that
    /// do not match for their types: a reader that forces type validation may have waited for nothing but a description.
    pub fn handle_types(&mut self, now: Instant) {
        let mut pairs = std::mem::take(&mut self.undecided);
        pairs.extend(self.refusals.for_types());
        for (local, remote) in pairs {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::{ReaderQos, TypeConsistency, WriterQos};
    use crate::types::{GuidPrefix, Keyed};

    #[test]
    fn of_a_long_name_of_a_type_that_cannot_be_validated_the_beginning_is_told() {
        let type_consistency = TypeConsistency { forces_validation: true, ..TypeConsistency::default() };
        let qos = ReaderQos { type_consistency, ..ReaderQos::default() };
        let name = "x".repeat(60_000);
        let guid = |entity| Guid::new(GuidPrefix([1; 12]), entity);
        let information: Arc<[u8]> = Arc::from([0; 4]);
        let writer = PublicationData::new(guid(EntityId::user_writer(1, Keyed::No)), "T", &name, WriterQos::default())
            .with_type_information(Some(information));
        let reader = SubscriptionData::new(guid(EntityId::user_reader(1, Keyed::No)), "T", &name, qos);
        let result = match_by_name(&writer, &reader, "nobody knows it");
        let MatchResult::Incompatible(mismatches) = &result else { panic!("{result}") };
        let expected = format!("\"{}…\", but its type cannot be validated: nobody knows it", "x".repeat(256));
        assert_eq!(mismatches[0].offered, expected);
    }
}
