//! Questions about the endpoints of a topic, and their answers, by which `thalweg why` learns of endpoints in other processes.
//!
//! Both are [services](BuiltinService) of the participant. They are matched only with inspectors, participants that announce that
//! they ask ([`INSPECTOR_PROPERTY`]); others exchange nothing. A participant answers a question by one sample for each of its
//! readers and writers of the topic, at most [`ANSWERS_MAX`], and not at all when it has none. Each answer also has the counts of
//! what its participant refused.

use std::collections::{BTreeMap, BTreeSet};

use thalweg_cdr::{Representation, decode, encode};
use thalweg_rtps::participant::{
    BuiltinService, Participant, ParticipantExplanation, ServiceBounds, ServicePeers, ServiceRefusal,
};
use thalweg_rtps::reader::ReaderExplanation;
use thalweg_rtps::types::{EntityId, Guid, GuidPrefix};
use thalweg_rtps::writer::WriterExplanation;
use thalweg_transport::clock;

use super::TopicExplanation;
use super::wire::{TopicAnswer, TopicQuestion};

/// Property by which a participant announces that it asks. Versions that ask in another form announce the value 1, and are not
/// matched.
const INSPECTOR_PROPERTY: (&str, &str) = ("thalweg.inspector", "2");

// 0x8f01 and 0x8f02 belonged to the earlier form.
pub(super) const QUESTION_WRITER: EntityId = EntityId([0x8f, 3, 0, 0x43]);
pub(super) const QUESTION_READER: EntityId = EntityId([0x8f, 3, 0, 0x44]);
pub(super) const ANSWER_WRITER: EntityId = EntityId([0x8f, 4, 0, 0x43]);
pub(super) const ANSWER_READER: EntityId = EntityId([0x8f, 4, 0, 0x44]);

/// Most answers of one participant to a question. Of more endpoints of the topic, readers are left out before writers.
pub(super) const ANSWERS_MAX: usize = 64;
/// Most participants that may ask at the same time; answers go to all of them.
const INSPECTORS_MAX: usize = 8;
/// Most questions answered in a second; others are dropped and counted, and their inspectors repeat them.
const QUESTIONS_PER_SECOND: u32 = 20;
/// Room for the number of a question and a name of 255 bytes.
const QUESTION_MAX_BYTES: usize = 512;
/// Most bytes of an answer, whose texts and lists are bounded.
pub(super) const ANSWER_MAX_BYTES: usize = 16 << 10;
/// Most explanations that an inspector keeps, of all participants together.
pub(super) const KEPT_MAX: usize = 4_096;
/// Room for as many answers as are kept to both questions of a second, and for as many to earlier ones.
const ANSWERS_PER_SECOND: u32 = 4 * KEPT_MAX as u32;

/// The services by which a participant answers and, as an inspector, asks.
pub(crate) fn services(is_inspector: bool) -> Vec<BuiltinService> {
    let everybody = || if is_inspector { ServicePeers::Everybody } else { ServicePeers::Nobody };
    let (name, value) = INSPECTOR_PROPERTY;
    let inspectors = || ServicePeers::Announcing { name: name.into(), value: value.into(), count_max: INSPECTORS_MAX };
    let question = BuiltinService {
        writer: QUESTION_WRITER,
        reader: QUESTION_READER,
        writes_to: everybody(),
        reads_from: inspectors(),
        bounds: ServiceBounds {
            samples_max: ANSWERS_MAX as u32,
            sample_bytes_max: QUESTION_MAX_BYTES,
            samples_per_second_max: QUESTIONS_PER_SECOND,
        },
    };
    let answer = BuiltinService {
        writer: ANSWER_WRITER,
        reader: ANSWER_READER,
        writes_to: inspectors(),
        reads_from: everybody(),
        bounds: ServiceBounds {
            samples_max: ANSWERS_MAX as u32,
            sample_bytes_max: ANSWER_MAX_BYTES,
            samples_per_second_max: ANSWERS_PER_SECOND,
        },
    };
    vec![question, answer]
}

/// The property that an inspector announces.
pub(crate) fn inspector_property() -> (String, String) {
    let (name, value) = INSPECTOR_PROPERTY;
    (name.to_owned(), value.to_owned())
}

/// The last question, and the answers to it.
#[derive(Debug, Default)]
pub(crate) struct Inquiry {
    number: u32,
    writers: BTreeMap<Guid, WriterExplanation>,
    readers: BTreeMap<Guid, ReaderExplanation>,
    /// The refusals of each participant; no more entries than answers.
    participants: BTreeMap<GuidPrefix, ParticipantExplanation>,
    /// Participants that have answered completely.
    complete: BTreeSet<GuidPrefix>,
}

impl Inquiry {
    /// Starts a new question about a topic, without the earlier answers, and returns its payload; `None` for a name that no topic
    /// can have.
    pub(super) fn ask(&mut self, topic: &str) -> Option<Vec<u8>> {
        *self = Inquiry { number: self.number.wrapping_add(1), ..Inquiry::default() };
        let mut payload = Vec::new();
        let question = TopicQuestion { number: self.number, topic: topic.to_owned() };
        encode(&question, Representation::Xcdr2, &mut payload).ok().map(|()| payload)
    }

    /// Whether a participant has answered completely.
    pub(super) fn has_answered(&self, prefix: GuidPrefix) -> bool {
        self.complete.contains(&prefix)
    }

    /// Adds the answers to `found`. They replace earlier ones of the same endpoints; other earlier ones stay.
    pub(super) fn add_to(&self, found: &mut TopicExplanation) {
        found.writers.retain(|earlier| !self.writers.contains_key(&earlier.guid));
        found.writers.extend(self.writers.values().cloned());
        found.readers.retain(|earlier| !self.readers.contains_key(&earlier.guid));
        found.readers.extend(self.readers.values().cloned());
        found.participants.retain(|earlier| !self.participants.contains_key(&earlier.guid_prefix));
        found.participants.extend(self.participants.values());
    }

    /// Keeps an answer of `source` to the last question of `own`.
    ///
    /// # Errors
    /// When it cannot be read, describes an endpoint of another participant, or there are too many.
    pub(super) fn handle_answer(
        &mut self,
        own: GuidPrefix,
        source: GuidPrefix,
        payload: &[u8],
    ) -> Result<(), ServiceRefusal> {
        let answer: TopicAnswer = decode(payload).map_err(|_| ServiceRefusal::Unreadable)?;
        let writer = answer.writer.map(WriterExplanation::from);
        let reader = answer.reader.map(ReaderExplanation::from);
        let mut told = writer.iter().map(|told| told.guid).chain(reader.iter().map(|told| told.guid));
        if told.any(|guid| guid.prefix != source) {
            return Err(ServiceRefusal::Unreadable);
        }
        if answer.inspector != own.0 || answer.number != self.number {
            return Ok(());
        }
        if self.writers.len() + self.readers.len() >= KEPT_MAX {
            return Err(ServiceRefusal::OverLimit);
        }
        if writer.is_some() || reader.is_some() {
            self.participants.insert(source, answer.refused.of(source));
        }
        self.writers.extend(writer.map(|told| (told.guid, told)));
        self.readers.extend(reader.map(|told| (told.guid, told)));
        if answer.position.saturating_add(1) >= answer.total {
            self.complete.insert(source);
        }
        Ok(())
    }
}

/// The topic that `payload` asks about, and the number of the question.
///
/// # Errors
/// When it cannot be read.
pub(super) fn read_question(payload: &[u8]) -> Result<(u32, String), ServiceRefusal> {
    let question: TopicQuestion = decode(payload).map_err(|_| ServiceRefusal::Unreadable)?;
    Ok((question.number, question.topic))
}

/// The endpoints of a participant on a topic.
pub(super) fn own_endpoints(participant: &Participant, topic: &str) -> TopicExplanation {
    let mut writers = participant.explain_writers(clock::now(), topic);
    let mut readers = participant.explain_readers(topic);
    writers.truncate(ANSWERS_MAX);
    readers.truncate(ANSWERS_MAX);
    TopicExplanation { writers, readers, participants: vec![participant.explain()] }
}

/// The answers to a question of `inspector`.
pub(super) fn answers(inspector: GuidPrefix, number: u32, told: &TopicExplanation) -> Vec<Vec<u8>> {
    let Some(participant) = told.participants.first() else { return Vec::new() };
    let readers = told.readers.iter().take(ANSWERS_MAX.saturating_sub(told.writers.len()));
    let readers = readers.map(|reader| (None, Some(reader.into())));
    let endpoints: Vec<_> = readers.chain(told.writers.iter().map(|writer| (Some(writer.into()), None))).collect();
    let total = endpoints.len() as u32;
    let answers = (0..).zip(endpoints).filter_map(|(position, (writer, reader))| {
        let refused = participant.into();
        let answer = TopicAnswer { inspector: inspector.0, number, position, total, refused, writer, reader };
        let mut payload = Vec::new();
        encode(&answer, Representation::Xcdr2, &mut payload).ok().map(|()| payload)
    });
    answers.collect()
}
