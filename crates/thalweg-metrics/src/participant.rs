//! What a participant has counted.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use thalweg::figures::{ParticipantFigures, ReaderFigures, WriterFigures};
use thalweg::status::LossReason;

use crate::exposition::{LabelledValue, counters, gauges, to_open_metrics};

/// The figures of a participant as one exposition; names begin with `thalweg_`.
///
/// Endpoints are summed by topic. Beyond 256 topics, the further ones are summed under the topic `(others)`: names come from
/// applications, and each is a time series.
pub fn participant_metrics(figures: &ParticipantFigures) -> String {
    let figures = figures.clone();
    to_open_metrics("thalweg", move |encoder| {
        participant(encoder, &figures)?;
        writers(encoder, &by_topic(&figures.writers, |writer| &writer.topic))?;
        readers(encoder, &by_topic(&figures.readers, |reader| &reader.topic))
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

fn writers(encoder: &mut DescriptorEncoder<'_>, topics: &[(String, Vec<&WriterFigures>)]) -> fmt::Result {
    let count = |of: fn(&WriterFigures) -> u64| sums(topics, of);
    counters(encoder, "samples_sent", "Samples sent for the first time", &count(|one| one.counters.transmitted))?;
    counters(encoder, "samples_repaired", "Samples sent again", &count(|one| one.counters.repaired))?;
    counters(encoder, "writes_refused", "Writes refused for want of room", &count(|one| one.counters.refused))?;
    let overwritten = count(|one| one.counters.overwritten_unacknowledged);
    counters(encoder, "samples_unacknowledged", "Samples overwritten before all readers had them", &overwritten)?;
    counters(
        encoder,
        "readers_given_up",
        "Readers that a writer gave up",
        &count(|one| one.counters.readers_given_up),
    )?;
    gauges(encoder, "writer_held", "Samples in the histories of writers", &levels(topics, |one| one.held))?;
    gauges(encoder, "writer_readers", "Readers that writers are matched with", &levels(topics, |one| one.matched))
}

fn readers(encoder: &mut DescriptorEncoder<'_>, topics: &[(String, Vec<&ReaderFigures>)]) -> fmt::Result {
    let count = |of: fn(&ReaderFigures) -> u64| sums(topics, of);
    counters(encoder, "samples_received", "Samples that readers got", &count(|one| one.counters.received))?;
    let mut lost: Vec<LabelledValue<'_, u64>> = Vec::new();
    for (topic, readers) in topics {
        for reason in LossReason::ALL {
            let total = readers.iter().map(|reader| reader.losses.of(reason)).sum();
            lost.push((vec![("topic", topic.as_str()), ("reason", word(reason))], total));
        }
    }
    counters(encoder, "samples_lost", "Samples that were written and never handed over", &lost)?;
    counters(encoder, "samples_rejected", "Samples that found no room", &count(|one| one.counters.rejected))?;
    counters(
        encoder,
        "samples_overwritten",
        "Samples overwritten before they were taken",
        &count(|one| one.overwritten),
    )?;
    counters(encoder, "samples_expired", "Samples whose lifespan ended", &count(|one| one.counters.expired))?;
    counters(encoder, "samples_duplicate", "Samples that came again", &count(|one| one.counters.duplicates))?;
    gauges(encoder, "reader_waiting", "Samples that wait for the application", &levels(topics, |one| one.waiting))?;
    gauges(encoder, "reader_writers", "Writers that readers are matched with", &levels(topics, |one| one.matched))
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

/// The endpoints of each topic, and those of topics beyond the bound together.
fn by_topic<T>(endpoints: &[T], topic: fn(&T) -> &String) -> Vec<(String, Vec<&T>)> {
    let mut topics: BTreeMap<&str, Vec<&T>> = BTreeMap::new();
    for endpoint in endpoints {
        topics.entry(topic(endpoint)).or_default().push(endpoint);
    }
    let mut groups: Vec<(String, Vec<&T>)> = Vec::new();
    let mut others = Vec::new();
    for (name, endpoints) in topics {
        if groups.len() < TOPICS_MAX {
            groups.push((name.to_owned(), endpoints));
        } else {
            others.extend(endpoints);
        }
    }
    if !others.is_empty() {
        groups.push((OTHERS.to_owned(), others));
    }
    groups
}

fn sums<'a, T>(topics: &'a [(String, Vec<&T>)], of: fn(&T) -> u64) -> Vec<LabelledValue<'a, u64>> {
    let sum = |endpoints: &[&T]| endpoints.iter().map(|one| of(one)).sum::<u64>();
    topics.iter().map(|(topic, endpoints)| (vec![("topic", topic.as_str())], sum(endpoints))).collect()
}

fn levels<'a, T>(topics: &'a [(String, Vec<&T>)], of: fn(&T) -> usize) -> Vec<LabelledValue<'a, f64>> {
    let sum = |endpoints: &[&T]| endpoints.iter().map(|one| of(one)).sum::<usize>() as f64;
    topics.iter().map(|(topic, endpoints)| (vec![("topic", topic.as_str())], sum(endpoints))).collect()
}

/// Topics with series of their own, chosen by us: what a server of metrics keeps without effort.
const TOPICS_MAX: usize = 256;
const OTHERS: &str = "(others)";
