//! Explanations of writers and readers: transmission methods, destinations, their reasons, and the fate of samples.

mod inquiry;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use thalweg_rtps::participant::{Participant, ServiceRefusal};
use thalweg_rtps::types::{EntityId, GuidPrefix, VendorId};
use thalweg_transport::clock;

pub use thalweg_rtps::participant::ParticipantExplanation;
pub use thalweg_rtps::reader::ReaderExplanation;
pub use thalweg_rtps::writer::{
    DROP_COST_PER_MILLE, GroupExplanation, LinkExplanation, Medium, RouteExplanation, WriterExplanation,
};

use crate::runtime::{Deadline, Runtime, RuntimeState, on_io_thread};
use crate::{Error, ErrorKind};
use inquiry::{ANSWER_READER, ANSWER_WRITER, Inquiry, QUESTION_READER, QUESTION_WRITER};
pub(crate) use inquiry::{inspector_property, services};

/// Interval at which answers are polled.
const LOOK_PERIOD: Duration = Duration::from_millis(5);
/// Time without all answers after which the question is repeated: some participants may have been discovered since.
const REPEAT_PERIOD: Duration = Duration::from_millis(500);

/// The explanations of Thalweg's endpoints of one topic, and their participants' refusals, each in the order of their GUIDs.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TopicExplanation {
    /// Its writers.
    pub writers: Vec<WriterExplanation>,
    /// Its readers.
    pub readers: Vec<ReaderExplanation>,
    /// The participants that have described an endpoint, and the one that asked.
    pub participants: Vec<ParticipantExplanation>,
}

/// A participant's part in asking and answering.
#[derive(Debug)]
pub(crate) struct Diagnosis {
    is_inspector: bool,
    /// Held briefly, and with no other lock.
    inquiry: Mutex<Inquiry>,
    /// Held by who asks, until all have answered: there is one question at a time.
    asking: Mutex<()>,
}

impl Diagnosis {
    /// The part of a participant that answers and, as an inspector, asks.
    pub(crate) fn new(is_inspector: bool) -> Diagnosis {
        Diagnosis { is_inspector, inquiry: Mutex::default(), asking: Mutex::default() }
    }

    fn inquiry(&self) -> MutexGuard<'_, Inquiry> {
        self.inquiry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a question, or keeps an answer. Runs on the I/O thread; encodes and decodes with no lock of the participant held.
    pub(crate) fn handle_service_data(&self, state: &RuntimeState, reader: EntityId, from: GuidPrefix, payload: &[u8]) {
        let handled = match reader {
            QUESTION_READER => answer_question(state, from, payload),
            ANSWER_READER => {
                let own = state.participant.lock().guid_prefix();
                self.inquiry().handle_answer(own, from, payload)
            }
            _ => Ok(()),
        };
        if let Err(refusal) = handled {
            state.participant.lock().refuse_service_data(refusal);
        }
    }
}

fn answer_question(state: &RuntimeState, from: GuidPrefix, payload: &[u8]) -> Result<(), ServiceRefusal> {
    let (number, topic) = inquiry::read_question(payload)?;
    let told = inquiry::own_endpoints(&state.participant.lock(), &topic);
    let answers = inquiry::answers(from, number, &told);
    if answers.is_empty() {
        return Ok(());
    }
    let (now, mut participant) = (clock::now(), state.participant.lock());
    for answer in answers {
        participant.write_service(now, ANSWER_WRITER, answer);
    }
    drop(participant);
    state.alarm.wake();
    Ok(())
}

/// Waits for the turn to ask; none where others still ask at the deadline.
fn turn_to_ask<'a>(diagnosis: &'a Diagnosis, deadline: Deadline) -> Option<MutexGuard<'a, ()>> {
    loop {
        match diagnosis.asking.try_lock() {
            Ok(turn) => return Some(turn),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if deadline.has_passed() => return None,
            Err(TryLockError::WouldBlock) => thread::sleep(LOOK_PERIOD.min(deadline.left())),
        }
    }
}

/// Asks and waits until every Thalweg participant with a writer or reader of the topic has answered.
pub(crate) fn topic(runtime: &Runtime, topic: &str, patience: Duration) -> Result<TopicExplanation, Error> {
    let diagnosis = &runtime.state().diagnosis;
    if !diagnosis.is_inspector {
        let cause = "is for inspectors, and this participant does not announce itself as one";
        let error = Error::new(ErrorKind::PreconditionNotMet, "explain_topic", cause);
        return Err(error.advise("call inspector() on its builder"));
    }
    if on_io_thread() {
        let cause = "cannot wait for answers in a listener that runs inline on the I/O thread, which receives them";
        let error = Error::new(ErrorKind::PreconditionNotMet, "explain_topic", cause);
        return Err(error.advise("use Delivery::Thread for listeners that ask"));
    }
    let deadline = Deadline::after(patience);
    let turn = turn_to_ask(diagnosis, deadline);
    let mut found = TopicExplanation::default();
    while turn.is_some() {
        let question = diagnosis.inquiry().ask(topic);
        if let Some(question) = question {
            runtime.command(|now, participant| participant.write_service(now, QUESTION_WRITER, question));
        }
        let repeat = Deadline::after(REPEAT_PERIOD.min(deadline.left()));
        let mut complete = false;
        while !complete && !repeat.has_passed() {
            thread::sleep(LOOK_PERIOD);
            let asked = runtime.view(|participant| having(participant, topic));
            let inquiry = diagnosis.inquiry();
            complete = asked.into_iter().all(|prefix| inquiry.has_answered(prefix));
        }
        diagnosis.inquiry().add_to(&mut found);
        if complete || deadline.has_passed() {
            break;
        }
    }
    let own = runtime.view(|participant| inquiry::own_endpoints(participant, topic));
    found.writers.extend(own.writers);
    found.readers.extend(own.readers);
    found.participants.extend(own.participants);
    found.writers.sort_by_key(|told| told.guid);
    found.readers.sort_by_key(|told| told.guid);
    found.participants.sort_by_key(|told| told.guid_prefix);
    Ok(found)
}

/// The other Thalweg participants that have a writer or reader of the topic.
fn having(participant: &Participant, topic: &str) -> Vec<GuidPrefix> {
    let writers = participant.publications().map(|known| (&known.data.topic_name, known.data.guid.prefix));
    let readers = participant.subscriptions().map(|known| (&known.data.topic_name, known.data.guid.prefix));
    let of_topic = writers.chain(readers).filter(|(name, _)| *name == topic);
    let prefixes: BTreeSet<GuidPrefix> = of_topic.map(|(_, prefix)| prefix).collect();
    let thalwegs = participant.participants().filter(|known| known.data.vendor == VendorId::THALWEG);
    thalwegs.map(|known| known.data.guid_prefix).filter(|prefix| prefixes.contains(prefix)).collect()
}

/// The part of one answer of `source` that the inspector `own` keeps after its first question; for the fuzzer.
#[doc(hidden)]
pub fn kept_of_answer(own: GuidPrefix, source: GuidPrefix, answer: &[u8]) -> TopicExplanation {
    let (mut inquiry, mut kept) = (Inquiry::default(), TopicExplanation::default());
    inquiry.ask("topic");
    let _ = inquiry.handle_answer(own, source, answer);
    inquiry.add_to(&mut kept);
    kept
}

/// The topic that a question is about, if it can be read; for the fuzzer.
#[doc(hidden)]
pub fn topic_of_question(question: &[u8]) -> Option<String> {
    inquiry::read_question(question).ok().map(|(_, topic)| topic)
}
