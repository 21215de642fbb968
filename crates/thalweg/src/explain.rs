//! Explanations of writers and readers: transmission methods, destinations, their reasons, and the fate of samples.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use thalweg_rtps::participant::Participant;
use thalweg_rtps::types::{GuidPrefix, VendorId};

pub use thalweg_rtps::participant::ParticipantExplanation;
pub use thalweg_rtps::reader::ReaderExplanation;
pub use thalweg_rtps::writer::{
    DROP_COST_PER_MILLE, GroupExplanation, LinkExplanation, Medium, RouteExplanation, WriterExplanation,
};

use crate::runtime::Runtime;
use crate::{Error, ErrorKind};

/// Interval at which answers are polled.
const LOOK_PERIOD: Duration = Duration::from_millis(5);
/// After this time without all answers the question is repeated: some participants may have been discovered since.
const REPEAT_PERIOD: Duration = Duration::from_millis(500);

/// The explanations of Thalweg's endpoints of one topic, and their participants' refusals, each in the order of their GUIDs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicExplanation {
    /// Its writers.
    pub writers: Vec<WriterExplanation>,
    /// Its readers.
    pub readers: Vec<ReaderExplanation>,
    /// The participants that have told of some, and the one that asked.
    pub participants: Vec<ParticipantExplanation>,
}

impl TopicExplanation {
    /// Answers to a repeated question replace earlier ones; those that did not come again still count.
    fn take_over(&mut self, participant: &Participant) {
        let TopicExplanation { writers, readers, participants } = self;
        writers.retain(|earlier| participant.answers().all(|answer| answer.guid != earlier.guid));
        writers.extend(participant.answers().cloned());
        readers.retain(|earlier| participant.reader_answers().all(|answer| answer.guid != earlier.guid));
        readers.extend(participant.reader_answers().cloned());
        participants
            .retain(|earlier| participant.participant_answers().all(|told| told.guid_prefix != earlier.guid_prefix));
        participants.extend(participant.participant_answers());
    }
}

/// Asks and waits until every Thalweg participant with a writer or reader of the topic has answered.
pub(crate) fn topic(runtime: &Runtime, topic: &str, patience: Duration) -> Result<TopicExplanation, Error> {
    if !runtime.view(|participant| participant.config().inspector) {
        let cause = "is for inspectors, and this participant does not announce itself as one";
        let error = Error::new(ErrorKind::PreconditionNotMet, "explain_topic", cause);
        return Err(error.advise("call inspector() on its builder"));
    }
    let deadline = Instant::now() + patience;
    let mut found = TopicExplanation::default();
    loop {
        runtime.command(|now, participant| participant.ask(now, topic));
        let repeat = (Instant::now() + REPEAT_PERIOD).min(deadline);
        let mut complete = false;
        while !complete && Instant::now() < repeat {
            thread::sleep(LOOK_PERIOD);
            complete = runtime.view(|participant| owing(participant, topic) == 0);
        }
        runtime.view(|participant| found.take_over(participant));
        if complete || Instant::now() >= deadline {
            break;
        }
    }
    found.writers.extend(runtime.view(|participant| participant.explain_writers(topic)));
    found.readers.extend(runtime.view(|participant| participant.explain_readers(topic)));
    found.participants.push(runtime.view(Participant::explain));
    found.writers.sort_by_key(|told| told.guid);
    found.readers.sort_by_key(|told| told.guid);
    found.participants.sort_by_key(|told| told.guid_prefix);
    Ok(found)
}

/// Thalweg participants that have a writer or reader of the topic and have not answered.
fn owing(participant: &Participant, topic: &str) -> usize {
    let writers = participant.publications().map(|known| (&known.data.topic_name, known.data.guid.prefix));
    let readers = participant.subscriptions().map(|known| (&known.data.topic_name, known.data.guid.prefix));
    let of_topic = writers.chain(readers).filter(|(name, _)| *name == topic);
    let prefixes: BTreeSet<GuidPrefix> = of_topic.map(|(_, prefix)| prefix).collect();
    let thalwegs = participant.participants().filter(|known| known.data.vendor == VendorId::THALWEG);
    thalwegs
        .map(|known| known.data.guid_prefix)
        .filter(|prefix| prefixes.contains(prefix) && !participant.has_answered(*prefix))
        .count()
}
