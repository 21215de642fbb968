//! What writers tell about themselves: by what way their samples travel, where to, and why.

use std::thread;
use std::time::{Duration, Instant};

use thalweg_rtps::participant::Participant;
use thalweg_rtps::types::VendorId;

pub use thalweg_rtps::writer::{
    DROP_COST_PER_MILLE, GroupExplanation, LinkExplanation, Medium, RouteExplanation, WriterExplanation,
};

use crate::runtime::Runtime;
use crate::{Error, ErrorKind};

/// How often answers are looked for.
const LOOK_PERIOD: Duration = Duration::from_millis(5);
/// After this time without all answers the question is repeated: some participants may have been discovered since.
const REPEAT_PERIOD: Duration = Duration::from_millis(500);

/// Asks and waits until every Thalweg participant with a writer of the topic has answered.
pub(crate) fn topic(runtime: &Runtime, topic: &str, patience: Duration) -> Result<Vec<WriterExplanation>, Error> {
    if !runtime.view(|participant| participant.config().inspector) {
        let cause = "is for inspectors, and this participant does not announce itself as one";
        let error = Error::new(ErrorKind::PreconditionNotMet, "explain_topic", cause);
        return Err(error.advise("call inspector() on its builder"));
    }
    let deadline = Instant::now() + patience;
    let mut found: Vec<WriterExplanation> = Vec::new();
    loop {
        runtime.command(|now, participant| participant.ask(now, topic));
        let repeat = (Instant::now() + REPEAT_PERIOD).min(deadline);
        let mut complete = false;
        while !complete && Instant::now() < repeat {
            thread::sleep(LOOK_PERIOD);
            complete = runtime.view(|participant| owing(participant, topic) == 0);
        }
        // Answers to a repeated question replace earlier ones; those that did not come again still count.
        let answers: Vec<WriterExplanation> = runtime.view(|participant| participant.answers().cloned().collect());
        found.retain(|earlier| answers.iter().all(|answer| answer.guid != earlier.guid));
        found.extend(answers);
        if complete || Instant::now() >= deadline {
            break;
        }
    }
    found.extend(runtime.view(|participant| participant.explain_writers(topic)));
    found.sort_by_key(|told| told.guid);
    Ok(found)
}

/// Thalweg participants that have a writer of the topic and have not answered.
fn owing(participant: &Participant, topic: &str) -> usize {
    let mut prefixes: Vec<_> = participant
        .publications()
        .filter(|known| known.data.topic_name == topic)
        .map(|known| known.data.guid.prefix)
        .collect();
    prefixes.dedup();
    let thalwegs = participant.participants().filter(|known| known.data.vendor == VendorId::THALWEG);
    thalwegs
        .map(|known| known.data.guid_prefix)
        .filter(|prefix| prefixes.contains(prefix) && !participant.has_answered(*prefix))
        .count()
}
