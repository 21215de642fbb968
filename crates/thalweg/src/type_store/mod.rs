//! The types of a participant's topics and of others': what is announced, asked for, answered and compared (DDS-XTypes 1.3 §7.6.3).

#[cfg(test)]
mod flood_tests;
mod judging;
mod lookup_end;
mod questions;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod validation_tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thalweg_rtps::discovery::endpoint_data::{PublicationData, SubscriptionData};
use thalweg_rtps::participant::{
    BuiltinService, Participant, ServiceBounds, ServicePeers, ServiceRefusal, TypeDirectory, TypeVerdict,
};
use thalweg_rtps::qos::{Representation, TypeConsistency};
use thalweg_rtps::shared::Shared;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{EntityId, GuidPrefix};
use thalweg_types::Type;
use thalweg_types::assign::{self, Permitted};
use thalweg_types::type_object::lookup::{LookupReply, LookupRequest};
use thalweg_types::type_object::{LibraryError, TypeIdentifier, TypeInformation, TypeLibrary, TypeWithDependencies};

use crate::runtime::RuntimeState;
use crate::topic::TopicDescription;
use judging::JudgingRoom;
pub use lookup_end::LookupEnd;
use questions::Questions;

const REQUEST_WRITER: EntityId = EntityId([0, 3, 0, 0xc3]);
const REQUEST_READER: EntityId = EntityId([0, 3, 0, 0xc4]);
const REPLY_WRITER: EntityId = EntityId([0, 3, 1, 0xc3]);
const REPLY_READER: EntityId = EntityId([0, 3, 1, 0xc4]);
/// Bits of the four endpoints in what a participant announces (DDS-XTypes 1.3 §7.6.3.3.1): a writer, and its reader beside it.
const REQUEST_BIT: u32 = 12;
const REPLY_BIT: u32 = 14;

/// Most bytes of a message, chosen by us: the objects of hundreds of types.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Most messages handled in a second: a robot with a thousand topics starts within two.
const MESSAGES_PER_SECOND: u32 = 1_000;
/// Bytes of answers in a second, and of objects that are looked at for them, beyond which no other question is answered in it: each answer
/// goes to all participants, however short the question of one of them was, and all else waits meanwhile. Chosen by us: the types of some
/// thousand topics; whoever is not answered asks again.
const ANSWER_BYTES_PER_SECOND: usize = 8 << 20;
/// Messages kept for peers that are slow to acknowledge.
const MESSAGES_MAX: u32 = 64;
/// Most bytes of TYPE_INFORMATION: a parameter's length is a multiple of four in 16 bits (RTPS 2.5 §9.4.2.11).
const INFORMATION_BYTES_MAX: usize = u16::MAX as usize - 3;
/// Most verdicts kept; when there are more, all are found anew.
const VERDICTS_MAX: usize = 8_192;
/// Most characters of a verdict's reason: it tells names out of others' type objects, which have no bound of their own.
const REASON_MAX: usize = 1_000;

/// The two topics of the TypeLookup service.
pub(crate) fn services() -> Vec<BuiltinService> {
    let service = |writer, reader, bit| BuiltinService {
        writer,
        reader,
        writes_to: ServicePeers::WithEndpoint(bit + 1),
        reads_from: ServicePeers::WithEndpoint(bit),
        bounds: ServiceBounds {
            samples_max: MESSAGES_MAX,
            sample_bytes_max: MESSAGE_BYTES_MAX,
            samples_per_second_max: MESSAGES_PER_SECOND,
        },
    };
    vec![service(REQUEST_WRITER, REQUEST_READER, REQUEST_BIT), service(REPLY_WRITER, REPLY_READER, REPLY_BIT)]
}

/// What a participant knows of types.
pub(crate) struct TypeStore {
    own: GuidPrefix,
    /// Held briefly; no other lock is taken under it.
    state: Mutex<State>,
    /// When the questions of `state` have something to do, in nanoseconds: the I/O thread asks in each of its turns.
    due: AtomicU64,
}

#[derive(Default)]
struct State {
    library: TypeLibrary,
    /// The values of TYPE_INFORMATION of the topics that endpoints of ours use, with the names of their types, by the names of the topics.
    announced: BTreeMap<String, (String, Arc<[u8]>)>,
    verdicts: BTreeMap<VerdictKey, TypeVerdict>,
    judging: JudgingRoom,
    questions: Questions,
    /// Start of the present second, and the bytes of the answers and for them in it.
    answered: (Instant, usize),
}

/// The state while nobody else has it; when it is given back, the store knows when its questions are due.
struct HeldState<'a> {
    state: MutexGuard<'a, State>,
    due: &'a AtomicU64,
}

impl Deref for HeldState<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for HeldState<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for HeldState<'_> {
    fn drop(&mut self) {
        let due = self.state.questions.due().min(self.state.judging.due());
        self.due.store(due.as_nanos(), Ordering::Release);
    }
}

/// A writer's type, a reader's, and the differences that the reader permits.
type VerdictKey = (TypeIdentifier, TypeIdentifier, Permitted);

impl fmt::Debug for TypeStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TypeStore({} objects)", self.state().library.len())
    }
}

impl TypeStore {
    pub(crate) fn new(own: GuidPrefix) -> TypeStore {
        TypeStore { own, state: Mutex::default(), due: AtomicU64::new(Instant::NEVER.as_nanos()) }
    }

    fn state(&self) -> HeldState<'_> {
        HeldState { state: self.state.lock().unwrap_or_else(PoisonError::into_inner), due: &self.due }
    }

    /// Makes the type of a topic known: its endpoints announce it, and its objects are given to those that ask.
    pub(crate) fn register(&self, topic: &TopicDescription) {
        let Some(described) = &topic.described else { return };
        let information = match described.information.to_bytes() {
            Ok(information) if information.len() <= INFORMATION_BYTES_MAX => information,
            _ => {
                tracing::warn!(
                    "the type of topic {:?} is not announced: the list of types that it refers to has more than the {} bytes of a \
                     parameter; peers know it by its name alone",
                    topic.name,
                    INFORMATION_BYTES_MAX
                );
                return;
            }
        };
        let mut state = self.state();
        let library = &mut state.library;
        let mut objects = described.objects.iter();
        let objects = objects.try_for_each(|(hash, bytes)| library.insert_own(*hash, bytes));
        let mut components = described.components.iter();
        let components = components.try_for_each(|one| library.insert_own_component(&one.identifier, &one.objects));
        if let Err(error) = objects.and(components) {
            tracing::warn!("the type of topic {:?} is not announced: {error}", topic.name);
            return;
        }
        state.announced.insert(topic.name.clone(), (topic.type_name.clone(), information.into()));
    }

    /// No endpoint describes the type of this topic any more: those to come announce their own, or none. Its objects stay, as others may
    /// still ask for them.
    pub(crate) fn forget(&self, topic_name: &str) {
        self.state().announced.remove(topic_name);
    }

    /// The type that an endpoint of a participant announces, if all its objects are here; else they are asked for.
    ///
    /// # Errors
    /// When objects are missing, or the type is beyond what is supported.
    pub(crate) fn type_of(&self, participant: GuidPrefix, information: &[u8]) -> Result<Type, LibraryError> {
        let malformed = |error: thalweg_cdr::DecodeError| LibraryError::Malformed(error.to_string());
        let information = TypeInformation::from_bytes(information).map_err(malformed)?;
        let mut state = self.state();
        state.resolve(participant, better(&information))
    }

    /// Asks a participant once more for objects that it did not give in time before.
    pub(crate) fn ask_again(&self, participant: GuidPrefix, missing: &[TypeIdentifier]) {
        self.state().questions.ask_again(participant, missing);
    }

    /// When [`look_up`](Self::look_up) has something to do.
    #[inline]
    pub(crate) fn due(&self) -> Instant {
        Instant::from_nanos(self.due.load(Ordering::Acquire))
    }

    /// Asks for the objects that are missing, and lets the participant compare again what waited for answers; true when there is
    /// something to send.
    pub(crate) fn look_up(&self, now: Instant, participant: &Shared<Participant>) -> bool {
        let (requests, has_news) = {
            let mut state = self.state();
            let requests = state.questions.poll(now, self.own);
            let (has_answers, has_room) = (state.questions.take_news(), state.judging.take_news(now));
            (requests, has_answers || has_room)
        };
        if requests.is_empty() && !has_news {
            return false;
        }
        let mut participant = participant.lock();
        for request in &requests {
            if let Ok(payload) = request.to_payload() {
                participant.write_service(now, REQUEST_WRITER, payload);
            }
        }
        if has_news {
            participant.handle_types(now);
        }
        true
    }

    /// Answers a question, or takes an answer; false for a sample of another service. Runs on the I/O thread, with no lock of the
    /// participant held.
    pub(crate) fn handle_service_data(
        &self,
        runtime: &RuntimeState,
        reader: EntityId,
        from: GuidPrefix,
        payload: &[u8],
    ) -> bool {
        let refusal = match reader {
            REQUEST_READER => match LookupRequest::from_payload(payload) {
                Ok(request) => {
                    let now = thalweg_transport::clock::now();
                    match self.answer(now, &request) {
                        Ok(Some(reply)) => {
                            runtime.participant.lock().write_service(now, REPLY_WRITER, reply);
                            runtime.alarm.wake();
                            None
                        }
                        Ok(None) => None,
                        Err(refusal) => Some(refusal),
                    }
                }
                Err(_) => Some(ServiceRefusal::Unreadable),
            },
            REPLY_READER => match LookupReply::from_payload(payload) {
                Ok(reply) => {
                    self.handle_reply(from, reply);
                    runtime.alarm.wake();
                    None
                }
                Err(_) => Some(ServiceRefusal::Unreadable),
            },
            _ => return false,
        };
        if let Some(refusal) = refusal {
            runtime.participant.lock().refuse_service_data(refusal);
        }
        true
    }

    /// The payload of the answer to a request; `None` where the request is for another participant.
    ///
    /// # Errors
    /// [`ServiceRefusal::OverLimit`] when the answers of this second took as much as they may together.
    fn answer(&self, now: Instant, request: &LookupRequest) -> Result<Option<Vec<u8>>, ServiceRefusal> {
        let mut state = self.state();
        if now.since(state.answered.0) >= Duration::from_secs(1) {
            state.answered = (now, 0);
        }
        let mut room = ANSWER_BYTES_PER_SECOND.saturating_sub(state.answered.1);
        if room == 0 {
            return Err(ServiceRefusal::OverLimit);
        }
        let answer = questions::answer_within(&mut room, &state.library, self.own, request, MESSAGE_BYTES_MAX / 2);
        state.answered.1 = ANSWER_BYTES_PER_SECOND - room;
        let reply = answer?.map(|answer| LookupReply { identity: request.identity, answer: Some(answer) });
        let payload = reply.and_then(|reply| reply.to_payload().ok());
        state.answered.1 += payload.as_ref().map_or(0, Vec::len);
        Ok(payload)
    }

    fn handle_reply(&self, from: GuidPrefix, reply: LookupReply) {
        let mut state = self.state();
        let State { library, questions, .. } = &mut *state;
        questions.handle_reply(library, from, reply);
    }
}

/// What is asked for: the complete type where there is one.
fn better(information: &TypeInformation) -> &TypeWithDependencies {
    match information.complete.of.identifier {
        TypeIdentifier::None => &information.minimal,
        _ => &information.complete,
    }
}

impl State {
    /// The type, or what is missing of it, which is then asked of this participant.
    fn resolve(&mut self, participant: GuidPrefix, of: &TypeWithDependencies) -> Result<Type, LibraryError> {
        let resolved = self.library.resolve(&of.of.identifier);
        if let Err(LibraryError::Missing(missing)) = &resolved {
            self.want(participant, of, missing);
        }
        resolved
    }

    /// What is missing of a type, which is then asked of this participant; `None` where all is here, or it would be too much.
    fn ask_for_missing(&mut self, participant: GuidPrefix, of: &TypeWithDependencies) -> Option<Vec<TypeIdentifier>> {
        let (ready, steps) = self.library.prepare(&of.of.identifier);
        self.judging.note(steps);
        let Err(LibraryError::Missing(missing)) = ready else { return None };
        self.want(participant, of, &missing);
        Some(missing)
    }

    fn want(&mut self, participant: GuidPrefix, of: &TypeWithDependencies, missing: &[TypeIdentifier]) {
        let told = of.dependencies.iter().flat_map(|dependency| dependency.identifier.objects());
        let told = told.filter(|object| !self.library.contains(object));
        self.questions.want(participant, missing.iter().cloned().chain(told));
    }

    fn verdict(
        &mut self,
        writer: (GuidPrefix, &TypeInformation),
        reader: (GuidPrefix, &TypeInformation),
        (consistency, representation): (TypeConsistency, Representation),
    ) -> TypeVerdict {
        let (one, other) = (better(writer.1), better(reader.1));
        let is_same = one.of.identifier == other.of.identifier
            || (writer.1.minimal.of.identifier == reader.1.minimal.of.identifier
                && writer.1.minimal.of.identifier != TypeIdentifier::None);
        if is_same {
            return TypeVerdict::Assignable;
        }
        if !consistency.allows_coercion {
            return TypeVerdict::Different(
                "the types are not the same, and the reader permits no difference".to_owned(),
            );
        }
        let permitted = Permitted {
            sequence_bounds: consistency.ignores_sequence_bounds,
            string_bounds: consistency.ignores_string_bounds,
            member_names: consistency.ignores_member_names,
            widening: !consistency.prevents_widening,
            nested_differences: representation != Representation::Xcdr1,
        };
        let key = (one.of.identifier.clone(), other.of.identifier.clone(), permitted);
        if let Some(known) = self.verdicts.get(&key) {
            return known.clone();
        }
        if !self.judging.admit() {
            return TypeVerdict::Unknown;
        }
        let missing = [(writer.0, one), (reader.0, other)].map(|(from, of)| self.ask_for_missing(from, of));
        for (whose, missing) in ["writer", "reader"].into_iter().zip(missing) {
            if let Some(missing) = missing {
                return self.without_objects(whose, &missing);
            }
        }
        let verdict = self.compare(&key.0, &key.1, permitted);
        if is_short(&key.0) && is_short(&key.1) {
            if self.verdicts.len() >= VERDICTS_MAX {
                self.verdicts.clear();
            }
            self.verdicts.insert(key, verdict.clone());
        }
        verdict
    }

    /// Compares types whose objects are here.
    fn compare(&mut self, writer: &TypeIdentifier, reader: &TypeIdentifier, permitted: Permitted) -> TypeVerdict {
        let [(one, of_one), (other, of_other)] = [writer, reader].map(|of| self.library.resolve_counted(of));
        self.judging.note(of_one.saturating_add(of_other));
        match (one, other) {
            (Ok(one), Ok(other)) => {
                let (fits, steps) = assign::check_counted(&one, &other, permitted);
                self.judging.note(steps);
                match fits {
                    Ok(()) => TypeVerdict::Assignable,
                    Err(difference) => TypeVerdict::Different(reason(difference.to_string())),
                }
            }
            (Err(error), _) => not_comparable("writer", &error),
            (_, Err(error)) => not_comparable("reader", &error),
        }
    }

    /// What is known of the type of a writer or a reader while these objects are missing.
    fn without_objects(&self, whose: &str, missing: &[TypeIdentifier]) -> TypeVerdict {
        if !missing.iter().any(|object| self.questions.gave_up(object)) {
            return TypeVerdict::Unknown;
        }
        // A peer that does not answer is known by names, as one that tells nothing.
        TypeVerdict::ByName(format!("type objects of the {whose} did not come or were malformed").into())
    }
}

fn not_comparable(whose: &str, error: &LibraryError) -> TypeVerdict {
    TypeVerdict::ByName(reason(format!("that of the {whose} cannot be compared: {error}")).into())
}

/// Whether an identifier is that of a type with a name, as those of topics are. Others may be as long as a parameter.
fn is_short(of: &TypeIdentifier) -> bool {
    matches!(of, TypeIdentifier::Hash(..) | TypeIdentifier::Component { .. })
}

/// The beginning of a reason that is too long to be kept.
fn reason(text: String) -> String {
    let end = text.char_indices().nth(REASON_MAX).map(|(end, _)| end);
    match end {
        None => text,
        Some(end) => format!("{}…", &text[..end]),
    }
}

/// Why nothing is known of the type of a writer that announces no TYPE_INFORMATION.
fn why_undescribed(writer: &PublicationData) -> &'static str {
    if writer.describes_type {
        "the writer announces a type object of an earlier edition (PID 0x0072) alone"
    } else {
        "the writer announces no type information"
    }
}

impl TypeDirectory for TypeStore {
    fn information(&self, topic_name: &str, type_name: &str) -> Option<Arc<[u8]>> {
        let state = self.state();
        let (of_type, information) = state.announced.get(topic_name)?;
        (of_type == type_name).then(|| Arc::clone(information))
    }

    fn judge(&self, writer: &PublicationData, reader: &SubscriptionData) -> TypeVerdict {
        let Some(one) = &writer.type_information else { return TypeVerdict::ByName(why_undescribed(writer).into()) };
        let Some(other) = &reader.type_information else {
            return TypeVerdict::ByName("the reader announces no type information".into());
        };
        if one == other {
            return TypeVerdict::Assignable;
        }
        let malformed =
            |whose: &str| TypeVerdict::ByName(Cow::from(format!("the {whose}'s type information is malformed")));
        let Ok(one) = TypeInformation::from_bytes(one) else { return malformed("writer") };
        let Ok(other) = TypeInformation::from_bytes(other) else { return malformed("reader") };
        let (from_writer, from_reader) = (writer.guid.prefix, reader.guid.prefix);
        let rules = (reader.qos.type_consistency, writer.qos.representation());
        let mut state = self.state();
        let remote = if from_writer == self.own { from_reader } else { from_writer };
        state.judging.turn_to(thalweg_transport::clock::now(), remote);
        state.verdict((from_writer, &one), (from_reader, &other), rules)
    }
}
