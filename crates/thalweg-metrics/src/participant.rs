//! What a participant has counted.

use std::collections::HashMap;
use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use thalweg::counters::{ReaderCounters, WriterCounters};
use thalweg::figures::{ParticipantFigures, ReaderFigures, TopicFigures, WriterFigures};
use thalweg::status::LossReason;

use crate::exposition::{LabelledValue, counters, gauges, to_open_metrics};

/// The figures of a participant as one exposition; names begin with `thalweg_`.
///
/// Endpoints are summed by topic, deleted ones included, so that counts never go back. The first 256 topics of the participant have names;
/// the further ones are summed under the topic `(others)`: names come from applications, and each is a time series.
pub fn participant_metrics(figures: &ParticipantFigures) -> String {
    let figures = figures.clone();
    to_open_metrics("thalweg", move |encoder| {
        participant(encoder, &figures)?;
        let topics = TopicAccount::of(&figures);
        writers(encoder, &topics)?;
        readers(encoder, &topics)
    })
}

fn participant(encoder: &mut DescriptorEncoder<'_>, figures: &ParticipantFigures) -> fmt::Result {
    gauges(encoder, "participants", "Other participants that are known", &[(vec![], figures.participants as f64)])?;
    let endpoints = [
        (vec![("kind", "writer")], figures.writers.len() as f64),
        (vec![("kind", "reader")], figures.readers.len() as f64),
    ];
    gauges(encoder, "endpoints", "Writers and readers of the application", &endpoints)?;
    let (sent, received, refused) = (&figures.sent, &figures.received, &figures.participant);
    let datagrams = [(vec![("direction", "in")], received.datagrams), (vec![("direction", "out")], sent.datagrams)];
    counters(encoder, "datagrams", "Datagrams", &datagrams)?;
    counters(encoder, "received_bytes", "Bytes of received datagrams", &[(vec![], received.bytes)])?;
    let lost = [
        (vec![("where", "kernel")], received.kernel_drops),
        (vec![("where", "too_long")], received.truncated),
        (vec![("where", "interface")], received.foreign_interface),
        (vec![("where", "send_buffer")], sent.dropped),
        (vec![("where", "sending")], sent.refused),
        (vec![("where", "no_route")], sent.unroutable),
    ];
    counters(encoder, "datagrams_lost", "Datagrams that were lost or dropped on this host", &lost)?;
    let filtered = "Datagrams of discovery that the kernel kept back: of no use to the participant, or without room";
    counters(encoder, "datagrams_filtered", filtered, &[(vec![], received.filtered)])?;
    let refused = [
        (vec![("reason", "malformed")], refused.malformed),
        (vec![("reason", "unusable")], refused.unusable_announcements),
        (vec![("reason", "limit")], refused.over_limit),
        (vec![("reason", "group")], refused.other_groups),
        (vec![("reason", "foreign_source")], refused.foreign_source),
        (vec![("reason", "no_key")], refused.keyless),
        (vec![("reason", "unproved")], refused.unprovable + refused.wrong_proofs),
    ];
    counters(encoder, "refused", "Messages that were refused or ignored", &refused)
}

fn writers(encoder: &mut DescriptorEncoder<'_>, topics: &[TopicAccount<'_>]) -> fmt::Result {
    let topics: Vec<&TopicAccount<'_>> = topics.iter().filter(|topic| topic.has_writers()).collect();
    let count = |of: fn(&WriterCounters) -> u64| by_topic(&topics, |topic| topic.written(of));
    counters(encoder, "samples_sent", "Samples sent for the first time", &count(|one| one.transmitted))?;
    counters(encoder, "samples_repaired", "Samples sent again", &count(|one| one.repaired))?;
    counters(encoder, "writes_refused", "Writes refused for want of room", &count(|one| one.refused))?;
    let overwritten = count(|one| one.overwritten_unacknowledged);
    counters(encoder, "samples_unacknowledged", "Samples overwritten before all readers had them", &overwritten)?;
    counters(encoder, "readers_given_up", "Readers that a writer gave up", &count(|one| one.readers_given_up))?;
    let level = |of: fn(&WriterFigures) -> usize| {
        by_topic(&topics, |topic| topic.writers.iter().map(|one| of(one)).sum::<usize>() as f64)
    };
    gauges(encoder, "writer_held", "Samples in the histories of writers", &level(|one| one.held))?;
    gauges(encoder, "writer_readers", "Readers that writers are matched with", &level(|one| one.matched))
}

fn readers(encoder: &mut DescriptorEncoder<'_>, topics: &[TopicAccount<'_>]) -> fmt::Result {
    let topics: Vec<&TopicAccount<'_>> = topics.iter().filter(|topic| topic.has_readers()).collect();
    let count = |of: fn(&ReaderCounters) -> u64| by_topic(&topics, |topic| topic.read(of));
    counters(encoder, "samples_received", "Samples that readers got", &count(|one| one.received))?;
    let mut lost: Vec<LabelledValue<'_, u64>> = Vec::new();
    for topic in &topics {
        for reason in LossReason::ALL {
            lost.push((vec![("topic", topic.name), ("reason", word(reason))], topic.lost(reason)));
        }
    }
    counters(encoder, "samples_lost", "Samples that were written and never handed over", &lost)?;
    counters(encoder, "samples_rejected", "Samples that found no room", &count(|one| one.rejected))?;
    let overwritten = by_topic(&topics, TopicAccount::overwritten);
    counters(encoder, "samples_overwritten", "Samples overwritten before they were taken", &overwritten)?;
    counters(encoder, "samples_expired", "Samples whose lifespan ended", &count(|one| one.expired))?;
    counters(encoder, "samples_duplicate", "Samples that came again", &count(|one| one.duplicates))?;
    let level = |of: fn(&ReaderFigures) -> usize| {
        by_topic(&topics, |topic| topic.readers.iter().map(|one| of(one)).sum::<usize>() as f64)
    };
    gauges(encoder, "reader_waiting", "Samples that wait for the application", &level(|one| one.waiting))?;
    gauges(encoder, "reader_writers", "Writers that readers are matched with", &level(|one| one.matched))
}

fn word(reason: LossReason) -> &'static str {
    match reason {
        LossReason::NeverArrived => "never_arrived",
        LossReason::Incomplete => "incomplete",
        LossReason::GoneAtWriter => "gone_at_writer",
        LossReason::KeyUnknown => "key_unknown",
        LossReason::SetIncomplete => "set_incomplete",
        _ => "other",
    }
}

/// The endpoints of one topic, or of all that have no name here, and what deleted ones did.
struct TopicAccount<'a> {
    name: &'a str,
    writers: Vec<&'a WriterFigures>,
    readers: Vec<&'a ReaderFigures>,
    deleted: Vec<&'a TopicFigures>,
}

impl<'a> TopicAccount<'a> {
    /// Those of a participant.
    fn of(figures: &'a ParticipantFigures) -> Vec<TopicAccount<'a>> {
        let mut accounts: Vec<TopicAccount<'a>> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for deleted in &figures.topics {
            let name = deleted.topic.as_deref().unwrap_or(OTHERS);
            let place = *places.entry(name).or_insert_with(|| {
                accounts.push(TopicAccount { name, writers: Vec::new(), readers: Vec::new(), deleted: Vec::new() });
                accounts.len() - 1
            });
            accounts[place].deleted.push(deleted);
        }
        let place = |topic: &str| places.get(topic).or_else(|| places.get(OTHERS)).copied();
        for writer in &figures.writers {
            if let Some(place) = place(&writer.topic) {
                accounts[place].writers.push(writer);
            }
        }
        for reader in &figures.readers {
            if let Some(place) = place(&reader.topic) {
                accounts[place].readers.push(reader);
            }
        }
        accounts
    }

    /// Whether it has or had writers.
    fn has_writers(&self) -> bool {
        !self.writers.is_empty() || self.deleted.iter().any(|topic| topic.writers > 0)
    }

    /// Whether it has or had readers.
    fn has_readers(&self) -> bool {
        !self.readers.is_empty() || self.deleted.iter().any(|topic| topic.readers > 0)
    }

    /// A count of all writers that it ever had.
    fn written(&self, of: fn(&WriterCounters) -> u64) -> u64 {
        let deleted = self.deleted.iter().map(|topic| of(&topic.writer_counters)).sum::<u64>();
        deleted + self.writers.iter().map(|writer| of(&writer.counters)).sum::<u64>()
    }

    /// A count of all readers that it ever had.
    fn read(&self, of: fn(&ReaderCounters) -> u64) -> u64 {
        let deleted = self.deleted.iter().map(|topic| of(&topic.reader_counters)).sum::<u64>();
        deleted + self.readers.iter().map(|reader| of(&reader.counters)).sum::<u64>()
    }

    fn lost(&self, reason: LossReason) -> u64 {
        let deleted = self.deleted.iter().map(|topic| topic.losses.of(reason)).sum::<u64>();
        deleted + self.readers.iter().map(|reader| reader.losses.of(reason)).sum::<u64>()
    }

    fn overwritten(&self) -> u64 {
        let deleted = self.deleted.iter().map(|topic| topic.overwritten).sum::<u64>();
        deleted + self.readers.iter().map(|reader| reader.overwritten).sum::<u64>()
    }
}

fn by_topic<'a, V>(topics: &[&TopicAccount<'a>], of: impl Fn(&TopicAccount<'a>) -> V) -> Vec<LabelledValue<'a, V>> {
    topics.iter().map(|topic| (vec![("topic", topic.name)], of(topic))).collect()
}

/// The name of all topics together that have none of their own.
const OTHERS: &str = "(others)";
