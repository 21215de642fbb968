//! Writers and readers of a topic that do not match, and why.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;
use thalweg::DomainParticipant;
use thalweg::discovery::{Known, PublicationData, SubscriptionData};

use super::comparison::EndpointComparison;

/// Pairs of others' endpoints that one reason keeps apart.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Apart {
    /// The reason, in a sentence.
    pub why: String,
    /// Number of these pairs.
    pub pairs: usize,
    /// One of them.
    pub writer: String,
    pub reader: String,
}

/// Compares each writer with each reader, and returns those that do not match by the reason, the most frequent first.
pub fn find(
    participant: &DomainParticipant,
    writers: &[Known<PublicationData>],
    readers: &[Known<SubscriptionData>],
) -> Vec<Apart> {
    let comparison = EndpointComparison::new(participant);
    let deadline = Instant::now() + TYPES_PATIENCE;
    let pairs = writers.iter().flat_map(|writer| readers.iter().map(move |reader| (&writer.data, &reader.data)));
    let compared = pairs.take(PAIRS_MAX).filter_map(|(writer, reader)| {
        let patience = deadline.saturating_duration_since(Instant::now());
        let why = comparison.mismatch(writer, reader, patience)?;
        Some((why, writer.guid.to_string(), reader.guid.to_string()))
    });
    by_reason(compared)
}

/// Counts pairs that do not match: why, the writer and the reader.
fn by_reason(pairs: impl Iterator<Item = (String, String, String)>) -> Vec<Apart> {
    let mut reasons: BTreeMap<String, Apart> = BTreeMap::new();
    for (why, writer, reader) in pairs {
        let first = || Apart { why: why.clone(), pairs: 0, writer, reader };
        reasons.entry(why.clone()).or_insert_with(first).pairs += 1;
    }
    let mut apart: Vec<Apart> = reasons.into_values().collect();
    apart.sort_by_key(|one| Reverse(one.pairs));
    apart
}

/// How long all participants together may take to tell their types; the names decide of those that do not.
const TYPES_PATIENCE: Duration = Duration::from_millis(500);
/// Pairs that are compared; chosen so that a topic that a whole fleet uses costs milliseconds.
const PAIRS_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_by_what_keeps_them_apart_and_the_most_frequent_comes_first() {
        let pair = |why: &str, writer: &str, reader: &str| (why.to_owned(), writer.to_owned(), reader.to_owned());
        let pairs = [pair("types", "w1", "r1"), pair("durability", "w1", "r2"), pair("durability", "w2", "r2")];
        let told = by_reason(pairs.into_iter());
        let told: Vec<_> = told.iter().map(|one| (&*one.why, one.pairs, &*one.writer, &*one.reader)).collect();
        assert_eq!(told, [("durability", 2, "w1", "r2"), ("types", 1, "w1", "r1")]);
    }
}
