//! Questions about the writers and readers of a topic, and answers: how `thalweg why` learns what those in other processes do.
//!
//! Both travel through built-in endpoints of Thalweg's own, reliable and volatile. They are matched only with participants that
//! announce that they ask ([`INSPECTOR_PROPERTY`]), so that between all others nothing is exchanged. Whoever is asked answers
//! one sample for each of its readers and writers of the topic, at most [`ANSWERS_MAX`], and nothing when it has none. Each answer
//! says as well what its participant refused.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::builtin::{builtin_reader, builtin_writer};
use super::{KnownParticipant, Participant, ParticipantExplanation};
use crate::discovery::participant_data::ParticipantData;
use crate::history::{ChangeKind, TakenSample};
use crate::payload::Payload;
use crate::qos::{Durability, History, ReaderQos, WriterQos};
use crate::reader::ReaderExplanation;
use crate::time::Instant;
use crate::types::{EntityId, Guid, GuidPrefix, KeyHash};
use crate::wire::WireError;
use crate::wire::parameters::{ParameterList, ParameterReader, ParameterWriter};
use crate::writer::{NewChange, WriterExplanation};

/// The writers with the readers that go with them.
pub(super) const PAIRS: [(EntityId, EntityId); 2] =
    [(EntityId::QUESTION_WRITER, EntityId::QUESTION_READER), (EntityId::ANSWER_WRITER, EntityId::ANSWER_READER)];

/// Property by which a participant announces that it will ask.
pub const INSPECTOR_PROPERTY: (&str, &str) = ("thalweg.inspector", "1");

/// Explanations in one answer: endpoints of one topic in one participant beyond this are left out, readers first.
pub const ANSWERS_MAX: usize = 64;
/// Participants that may ask at the same time; answers go to all of them.
const INSPECTORS_MAX: usize = 8;
/// Questions answered in a second; more are dropped and counted, whoever asks repeats them.
const QUESTIONS_PER_SECOND: u32 = 20;
/// Explanations that an inspector keeps, of all participants together.
const KEPT_MAX: usize = 4_096;
/// Longest name of a topic that is asked for, in bytes, as names of topics are limited by DDS.
const TOPIC_MAX_BYTES: usize = 255;

const QUESTION: u16 = 0x8180;
const ANSWER: u16 = 0x8181;
/// As [`ANSWER`], about a reader.
const READER_ANSWER: u16 = 0x8182;

/// What was asked and answered last, and how much was answered lately.
#[derive(Debug, Default)]
pub(super) struct Inquiry {
    number: u32,
    answers: BTreeMap<Guid, WriterExplanation>,
    reader_answers: BTreeMap<Guid, ReaderExplanation>,
    /// No more than there are answers.
    participant_answers: BTreeMap<GuidPrefix, ParticipantExplanation>,
    /// Participants whose last explanation has come.
    complete: BTreeSet<GuidPrefix>,
    /// Questions answered since this time.
    answered: (Instant, u32),
}

impl Inquiry {
    /// Whether one more question may be answered.
    fn admit(&mut self, now: Instant) -> bool {
        let (since, count) = &mut self.answered;
        if now.since(*since) >= Duration::from_secs(1) {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count <= QUESTIONS_PER_SECOND
    }
}

/// RELIABLE, VOLATILE, as deep as one answer: at most 1 MiB, since an explanation is smaller than 16 KiB.
pub(super) fn writer_qos() -> WriterQos {
    let history = History::KeepLast(ANSWERS_MAX as u32);
    WriterQos { history, durability: Durability::Volatile, ..super::builtin::writer_qos() }
}

pub(super) fn reader_qos() -> ReaderQos {
    let history = History::KeepLast(ANSWERS_MAX as u32);
    ReaderQos { history, durability: Durability::Volatile, ..super::builtin::reader_qos() }
}

fn is_inspector(data: &ParticipantData) -> bool {
    let (name, value) = INSPECTOR_PROPERTY;
    data.properties.iter().any(|(n, v)| n == name && v == value)
}

/// Number of the question, position of the explanation, and how many there are.
struct AnswerHead {
    inspector: GuidPrefix,
    number: u32,
    position: u32,
    total: u32,
}

impl AnswerHead {
    fn read(value: &mut ParameterReader<'_>) -> Result<AnswerHead, WireError> {
        Ok(AnswerHead {
            inspector: GuidPrefix(value.array()?),
            number: value.u32()?,
            position: value.u32()?,
            total: value.u32()?,
        })
    }
}

/// One endpoint's explanation.
enum Told {
    Writer(WriterExplanation),
    Reader(ReaderExplanation),
}

impl Told {
    fn guid(&self) -> Guid {
        match self {
            Told::Writer(told) => told.guid,
            Told::Reader(told) => told.guid,
        }
    }
}

fn encode_answer(head: &AnswerHead, told: &Told, participant: &ParticipantExplanation) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut list = ParameterWriter::encapsulated(&mut bytes);
    let id = if matches!(told, Told::Writer(_)) { ANSWER } else { READER_ANSWER };
    list.put(id, |value| {
        value.extend_from_slice(&head.inspector.0);
        value.u32(head.number);
        value.u32(head.position);
        value.u32(head.total);
    });
    match told {
        Told::Writer(told) => told.put(&mut list),
        Told::Reader(told) => told.put(&mut list),
    }
    participant.put(&mut list);
    list.finish();
    bytes
}

fn decode_answer(list: &ParameterList<'_>) -> Result<(AnswerHead, Told), WireError> {
    if let Some(head) = list.find(READER_ANSWER) {
        let head = AnswerHead::read(&mut head.reader())?;
        let mut told = ReaderExplanation::blank();
        for parameter in list.iter() {
            told.apply(&parameter?)?;
        }
        return Ok((head, Told::Reader(told)));
    }
    let head = list.find(ANSWER).ok_or(list.missing("head of an answer"))?;
    let head = AnswerHead::read(&mut head.reader())?;
    let mut told = WriterExplanation::blank();
    for parameter in list.iter() {
        told.apply(&parameter?)?;
    }
    Ok((head, Told::Writer(told)))
}

fn decode_question(payload: &[u8]) -> Result<(u32, String), WireError> {
    let list = ParameterList::from_payload(payload)?;
    let question = list.find(QUESTION).ok_or(list.missing("question"))?;
    let mut value = question.reader();
    let number = value.u32()?;
    let error = value.error("name of a topic");
    let topic = value.string()?;
    if topic.len() > TOPIC_MAX_BYTES { Err(error) } else { Ok((number, topic.to_owned())) }
}

impl Participant {
    /// Asks every Thalweg participant that is known now about its writers and readers of a topic; what was answered before is forgotten.
    /// Does nothing unless `ParticipantConfig::inspector` is set.
    pub fn ask(&mut self, now: Instant, topic: &str) {
        self.inquiry.number = self.inquiry.number.wrapping_add(1);
        self.inquiry.answers.clear();
        self.inquiry.reader_answers.clear();
        self.inquiry.participant_answers.clear();
        self.inquiry.complete.clear();
        let number = self.inquiry.number;
        let mut bytes = Vec::new();
        let mut list = ParameterWriter::encapsulated(&mut bytes);
        list.put(QUESTION, |value| {
            value.u32(number);
            value.string(topic);
        });
        list.finish();
        self.write_inquiry(now, EntityId::QUESTION_WRITER, bytes);
    }

    /// What was answered since [`Participant::ask`], in the order of the writers' GUIDs.
    pub fn answers(&self) -> impl Iterator<Item = &WriterExplanation> {
        self.inquiry.answers.values()
    }

    /// As [`Participant::answers`], of readers.
    pub fn reader_answers(&self) -> impl Iterator<Item = &ReaderExplanation> {
        self.inquiry.reader_answers.values()
    }

    /// As [`Participant::answers`], of the participants that answered.
    pub fn participant_answers(&self) -> impl Iterator<Item = &ParticipantExplanation> {
        self.inquiry.participant_answers.values()
    }

    /// Whether a participant has answered completely.
    pub fn has_answered(&self, prefix: GuidPrefix) -> bool {
        self.inquiry.complete.contains(&prefix)
    }

    /// What this participant's own writers of a topic do, and why.
    pub fn explain_writers(&self, topic: &str) -> Vec<WriterExplanation> {
        let own = self.database.publications.of_participant(self.config.prefix);
        let of_topic = own
            .filter(|guid| self.database.publications.get(*guid).is_some_and(|known| known.data.topic_name == topic));
        let explained = of_topic.filter_map(|guid| {
            let told = self.endpoints.writer(guid.entity)?.lock().explain();
            Some(WriterExplanation { topic: topic.to_owned(), ..told })
        });
        explained.take(ANSWERS_MAX).collect()
    }

    /// What this participant's own readers of a topic received and did not hand over.
    pub fn explain_readers(&self, topic: &str) -> Vec<ReaderExplanation> {
        let own = self.database.subscriptions.of_participant(self.config.prefix);
        let of_topic = own
            .filter(|guid| self.database.subscriptions.get(*guid).is_some_and(|known| known.data.topic_name == topic));
        let explained = of_topic.filter_map(|guid| {
            let told = self.endpoints.reader(guid.entity)?.lock().explain();
            Some(ReaderExplanation { topic: topic.to_owned(), ..told })
        });
        explained.take(ANSWERS_MAX).collect()
    }

    fn write_inquiry(&mut self, now: Instant, via: EntityId, bytes: Vec<u8>) {
        let Some(writer) = self.endpoints.writer(via) else { return };
        let change = NewChange {
            kind: ChangeKind::Write,
            instance: KeyHash::default(),
            timestamp: self.timestamp(now),
            payload: Payload::from(bytes),
        };
        let written = writer.lock().write(now, change);
        if let Ok(written) = written {
            self.rearm(via, written.arm.unwrap_or(Instant::NEVER));
        }
    }

    /// Matches the endpoints of questions and answers where one side asks.
    pub(super) fn match_inquiry(&mut self, now: Instant, prefix: GuidPrefix) {
        let Some(known) = self.database.participants.get(&prefix) else { return };
        if !known.data.vendor.traits().answers_questions {
            return;
        }
        let (mut asks, known) = (is_inspector(&known.data), known.clone());
        let answers = Guid::new(prefix, EntityId::ANSWER_READER);
        if asks && let Some(writer) = self.endpoints.writer(EntityId::ANSWER_WRITER) {
            let writer = writer.lock();
            let is_new = !writer.matched_readers().any(|reader| reader == answers);
            if is_new && writer.matched_readers().len() >= INSPECTORS_MAX {
                asks = false;
                self.counters.over_limit += 1;
            }
        }
        if asks {
            self.match_halves(now, &known, EntityId::ANSWER_WRITER, EntityId::QUESTION_READER);
        }
        if self.config.inspector {
            self.match_halves(now, &known, EntityId::QUESTION_WRITER, EntityId::ANSWER_READER);
        }
    }

    /// Matches one of our writers and one of our readers with their counterparts.
    fn match_halves(&mut self, now: Instant, known: &KnownParticipant, writer: EntityId, reader: EntityId) {
        for (their_writer, their_reader) in PAIRS {
            if their_writer == writer
                && let Some(shared) = self.endpoints.writer(writer)
            {
                shared.lock().match_reader(now, builtin_reader(known, their_reader));
                self.schedule.make_ready(writer);
            }
            if their_reader == reader
                && let Some(shared) = self.endpoints.reader(reader)
            {
                shared.lock().match_writer(now, builtin_writer(known, their_writer));
                self.schedule.make_ready(reader);
            }
        }
    }

    /// Answers a question, unless too many were answered within this second.
    pub(super) fn handle_question(&mut self, now: Instant, sample: &TakenSample) {
        if !sample.info.valid {
            return;
        }
        let Ok((number, topic)) = decode_question(&sample.payload) else {
            self.counters.unusable_announcements += 1;
            return;
        };
        if !self.inquiry.admit(now) {
            self.counters.over_limit += 1;
            return;
        }
        let writers = self.explain_writers(&topic);
        let readers = self.explain_readers(&topic).into_iter().take(ANSWERS_MAX - writers.len()).map(Told::Reader);
        // Writers last: those who know of no answers about readers wait for the last one.
        let explained: Vec<Told> = readers.chain(writers.into_iter().map(Told::Writer)).collect();
        let total = explained.len() as u32;
        let participant = self.explain();
        for (position, told) in (0..).zip(&explained) {
            let head = AnswerHead { inspector: sample.info.writer.prefix, number, position, total };
            self.write_inquiry(now, EntityId::ANSWER_WRITER, encode_answer(&head, told, &participant));
        }
    }

    /// Keeps an answer to our last question.
    pub(super) fn handle_answer(&mut self, sample: &TakenSample) {
        if !sample.info.valid {
            return;
        }
        let source = sample.info.writer.prefix;
        let decoded = ParameterList::from_payload(&sample.payload)
            .and_then(|list| Ok((decode_answer(&list)?, ParticipantExplanation::find(&list, source)?)));
        let ((head, told), participant) = match decoded {
            Ok((answer, participant)) if answer.1.guid().prefix == source => (answer, participant),
            _ => {
                self.counters.unusable_announcements += 1;
                return;
            }
        };
        if head.inspector != self.config.prefix || head.number != self.inquiry.number {
            return;
        }
        if self.inquiry.answers.len() + self.inquiry.reader_answers.len() >= KEPT_MAX {
            self.counters.over_limit += 1;
            return;
        }
        if let Some(participant) = participant {
            self.inquiry.participant_answers.insert(source, participant);
        }
        match told {
            Told::Writer(told) => drop(self.inquiry.answers.insert(told.guid, told)),
            Told::Reader(told) => drop(self.inquiry.reader_answers.insert(told.guid, told)),
        }
        if head.position + 1 >= head.total {
            self.inquiry.complete.insert(source);
        }
    }
}
