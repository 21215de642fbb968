//! Endpoints of the same topic that do not match, and why.

use thalweg::DomainParticipant;
use thalweg::qos::match_endpoints;
use thalweg::types::Guid;

/// Why the readers of the topic of `writer`, one of the participant's own, do not match it.
pub fn explain_readers(participant: &DomainParticipant, writer: Guid) -> String {
    let publications = participant.publications();
    let Some(own) = publications.iter().map(|known| &known.data).find(|data| data.guid == writer) else {
        return NOBODY.to_owned();
    };
    let readers = participant.subscriptions();
    let readers = readers.iter().map(|known| &known.data).filter(|reader| reader.topic_name == own.topic_name);
    explain(readers.map(|reader| match_endpoints(&own.offer(), &reader.request()).to_string()), "reader")
}

/// Why the writers of the topic of `reader`, one of the participant's own, do not match it.
pub fn explain_writers(participant: &DomainParticipant, reader: Guid) -> String {
    let subscriptions = participant.subscriptions();
    let Some(own) = subscriptions.iter().map(|known| &known.data).find(|data| data.guid == reader) else {
        return NOBODY.to_owned();
    };
    let writers = participant.publications();
    let writers = writers.iter().map(|known| &known.data).filter(|writer| writer.topic_name == own.topic_name);
    explain(writers.map(|writer| match_endpoints(&writer.offer(), &own.request()).to_string()), "writer")
}

/// Each reason once.
fn explain(reasons: impl Iterator<Item = String>, kind: &str) -> String {
    let mut told: Vec<String> = reasons.collect();
    told.sort();
    told.dedup();
    match told.is_empty() {
        true => NOBODY.to_owned(),
        false => format!("a {kind} of the topic was found: {}", told.join("; ")),
    }
}

const NOBODY: &str = "nobody with this topic was found in the domain";
