//! What a writer offers, so that the readers of its topic match it.

use std::fmt::Write;
use std::sync::Arc;

use thalweg::DomainParticipant;
use thalweg::discovery::{PublicationData, SubscriptionData};
use thalweg::qos::{
    Durability, History, Liveliness, Ownership, ReaderQos, Representation, WriterOwnership, WriterQos, name_matches,
};
use thalweg::types::INFINITE;

use crate::qos_options::QosOptions;

/// The writers and readers that others have of a topic, in the order of their GUIDs.
#[derive(Default, PartialEq)]
pub struct TopicEnds {
    pub writers: Vec<Arc<PublicationData>>,
    pub readers: Vec<Arc<SubscriptionData>>,
}

impl TopicEnds {
    /// Those that are discovered by now.
    pub fn of(participant: &DomainParticipant, topic: &str) -> TopicEnds {
        let own = participant.guid_prefix();
        let writers = participant.publications().into_iter().map(|known| known.data);
        let readers = participant.subscriptions().into_iter().map(|known| known.data);
        let mut ends = TopicEnds {
            writers: writers.filter(|data| data.topic_name == topic && data.guid.prefix != own).collect(),
            readers: readers.filter(|data| data.topic_name == topic && data.guid.prefix != own).collect(),
        };
        ends.writers.sort_by_key(|data| data.guid);
        ends.readers.sort_by_key(|data| data.guid);
        ends
    }

    /// The QoS that all readers match, where one is possible; `options` come before what they ask. Where there are no readers, a
    /// writer's policies tell what readers of the topic ask.
    pub fn offer(&self, options: &QosOptions) -> WriterQos {
        // Reliable and all kept: readers that ask for less take it, and no sample is lost.
        let mut qos = WriterQos { history: History::KeepAll, autodispose: false, ..WriterQos::default() };
        match (&self.readers[..], self.writers.first()) {
            ([], Some(other)) => {
                qos.durability = other.qos.durability;
                qos.ownership = other.qos.ownership;
                qos.partition.clone_from(&other.qos.partition);
                qos.data_representation.clone_from(&other.qos.data_representation);
            }
            ([], None) => {}
            (readers, _) => {
                readers.iter().for_each(|reader| raise(&mut qos, &reader.qos));
                qos.data_representation = vec![representation(readers)];
                qos.partition = partition(readers);
            }
        }
        options.writer_over(qos)
    }
}

/// Raises what is offered to what a reader asks. Ownership has no order: that of the last reader stays.
fn raise(qos: &mut WriterQos, asked: &ReaderQos) {
    // More than a writer here can offer is left to its readers' refusal, which is told.
    qos.durability = qos.durability.max(asked.durability.min(Durability::TransientLocal));
    qos.timing.deadline = qos.timing.deadline.min(asked.timing.deadline);
    qos.liveliness = Liveliness {
        kind: qos.liveliness.kind.max(asked.liveliness.kind),
        lease: qos.liveliness.lease.min(asked.liveliness.lease),
    };
    qos.ownership = match asked.ownership {
        Ownership::Shared => WriterOwnership::Shared,
        Ownership::Exclusive => WriterOwnership::Exclusive { strength: 0 },
    };
    qos.destination_order = qos.destination_order.max(asked.destination_order);
    qos.presentation.access_scope = qos.presentation.access_scope.max(asked.presentation.access_scope);
    qos.presentation.coherent |= asked.presentation.coherent;
    qos.presentation.ordered |= asked.presentation.ordered;
}

/// The encoding that most readers decode; among equals, the one that the first reader names first.
fn representation(readers: &[Arc<SubscriptionData>]) -> Representation {
    let first = readers.first().and_then(|reader| reader.qos.data_representation.first().copied());
    let mut known = [Representation::Xcdr1, Representation::Xcdr2];
    if first == Some(Representation::Xcdr2) {
        known.reverse();
    }
    let [one, other] = known.map(|known| readers.iter().filter(|reader| reader.qos.accepts(known)).count());
    if other > one { known[1] } else { known[0] }
}

/// A name for each reader that none of the names before fits. No name is the one name "".
fn partition(readers: &[Arc<SubscriptionData>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for reader in readers {
        let asked = &reader.qos.partition;
        let fits = |name: &str| match &asked[..] {
            [] => name_matches(name, ""),
            asked => asked.iter().any(|asked| name_matches(name, asked)),
        };
        if names.iter().any(|name| fits(name)) {
            continue;
        }
        let name = asked.first().map(|asked| name_of_pattern(asked)).unwrap_or_default();
        names.push(name);
    }
    if names.iter().all(String::is_empty) { Vec::new() } else { names }
}

/// A name that fits a pattern, where it is one with `*` and `?` only; a name is its own.
fn name_of_pattern(pattern: &str) -> String {
    pattern.replace('*', "").replace('?', "_")
}

/// The policies that decide about matches, in one line.
pub fn text(qos: &WriterQos) -> String {
    let mut out = format!("{}, {}, {}", qos.reliability, qos.durability, qos.history);
    let representation = qos.data_representation.first().copied().unwrap_or(Representation::Xcdr1);
    let _ = write!(out, ", {representation}");
    let usual = WriterQos::default();
    if qos.timing.deadline != INFINITE {
        let _ = write!(out, ", deadline {} ms", qos.timing.deadline.as_secs_f64() * 1e3);
    }
    if qos.liveliness != usual.liveliness {
        let _ = write!(out, ", liveliness {}", qos.liveliness);
    }
    if qos.ownership != usual.ownership {
        let _ = write!(out, ", ownership {}", qos.ownership.kind());
    }
    if qos.destination_order != usual.destination_order {
        let _ = write!(out, ", {}", qos.destination_order);
    }
    if qos.presentation != usual.presentation {
        let _ = write!(out, ", presentation {}", qos.presentation);
    }
    if !qos.partition.is_empty() {
        let _ = write!(out, ", partition {:?}", qos.partition);
    }
    out
}
