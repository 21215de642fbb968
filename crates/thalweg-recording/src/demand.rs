//! What a reader asks for so that it matches some writers of a topic.

use std::ops::RangeInclusive;

use thalweg::discovery::PublicationData;
use thalweg::qos::{Durability, History, Ownership, ReaderQos, ReaderTiming, Reliability, name_matches};
use thalweg::types::INFINITE;

/// What a reader asks for, which is what some writers offer. Writers that offer more match it as well: a topic has one reader for each
/// demand of its writers, and the samples of a writer count at its own reader only. LATENCY_BUDGET makes no difference: a reader that
/// permits any delay matches writers whatever they promise, and those with OWNERSHIP EXCLUSIVE have one owner among all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// RELIABLE.
    pub is_reliable: bool,
    /// TRANSIENT_LOCAL: what writers keep for late readers comes as well.
    pub is_durable: bool,
    /// Whose samples count.
    pub ownership: Ownership,
    /// Names that fit the writers' partitions.
    pub partition: Vec<String>,
}

impl Demand {
    /// What the reader of this writer asks for.
    pub fn of(data: &PublicationData) -> Demand {
        Demand {
            is_reliable: data.qos.reliability.is_reliable(),
            is_durable: data.qos.durability != Durability::Volatile,
            ownership: data.qos.ownership.kind(),
            partition: data.qos.partition.iter().map(|name| fitting(name)).collect(),
        }
    }

    /// The reader's QoS, for one whose samples are taken as they come. It permits any delay: where times of arrival matter, the reader
    /// [hands over on arrival](thalweg::DataReaderBuilder::hand_over_on_arrival).
    pub fn to_reader_qos(&self) -> ReaderQos {
        ReaderQos {
            reliability: if self.is_reliable { Reliability::RELIABLE } else { Reliability::BestEffort },
            durability: if self.is_durable { Durability::TransientLocal } else { Durability::Volatile },
            // Samples leave as they come. KEEP_ALL would let a full reader hold back the robot's writers.
            history: History::KeepLast(DEPTH),
            ownership: self.ownership,
            partition: self.partition.clone(),
            timing: ReaderTiming { latency_budget: INFINITE, ..ReaderTiming::default() },
            ..ReaderQos::default()
        }
    }
}

/// A name that fits a writer's partition, which may be a pattern: two patterns never match, but for equal ones without `*` and `?`.
fn fitting(partition: &str) -> String {
    let (mut name, mut rest) = (String::new(), partition.chars());
    while let Some(character) = rest.next() {
        match character {
            '*' => {}
            '?' => name.push(ANY),
            '\\' => name.extend(rest.next()),
            '[' => match fitting_member(rest.as_str()) {
                Some((member, behind)) => {
                    name.extend(member);
                    rest = behind.chars();
                }
                None => name.push('['),
            },
            literal => name.push(literal),
        }
    }
    if name_matches(partition, &name) { name } else { partition.to_owned() }
}

/// A character that fits a bracket expression whose `[` was taken off, if any does, and the pattern behind the `]`; `None` without `]`: the
/// `[` is then an ordinary character.
fn fitting_member(pattern: &str) -> Option<(Option<char>, &str)> {
    let members = pattern.strip_prefix(['!', '^']);
    let (is_negated, mut rest) = (members.is_some(), members.unwrap_or(pattern).chars());
    let mut ranges = Vec::new();
    loop {
        let low = match rest.next()? {
            // A `]` that comes first is a member.
            ']' if !ranges.is_empty() => break,
            '\\' => rest.next()?,
            low => low,
        };
        let mut high = low;
        if let Some(upper) = rest.as_str().strip_prefix('-').filter(|upper| !upper.starts_with(']')) {
            rest = upper.chars();
            high = match rest.next()? {
                '\\' => rest.next()?,
                high => high,
            };
        }
        ranges.push(low..=high);
    }
    let member = if is_negated {
        let is_outside = |one: &char| !ranges.iter().any(|range| range.contains(one));
        let any = Some(ANY).filter(is_outside);
        ranges.sort_unstable_by_key(|range| *range.start());
        any.or_else(|| beside(&ranges, '0')).or_else(|| beside(&ranges, ' '))
    } else {
        ranges.iter().find_map(|range| usual(range.clone()))
    };
    Some((member, rest.as_str()))
}

/// The first character from `free` on that is outside of all ranges, which are in order, and not special.
fn beside(ranges: &[RangeInclusive<char>], mut free: char) -> Option<char> {
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        let found = usual(free..*range.start());
        if found.is_some() {
            return found;
        }
        if *range.end() >= free {
            free = (*range.end()..=char::MAX).nth(1)?;
        }
    }
    usual(free..=char::MAX)
}

/// The first of some characters in a row that is not special.
fn usual(row: impl Iterator<Item = char>) -> Option<char> {
    row.take(CANDIDATES).find(|one| !is_special(*one))
}

/// Whether a name with this character may be a pattern.
fn is_special(character: char) -> bool {
    matches!(character, '*' | '?' | '[' | ']' | '\\')
}

/// What stands for any character.
const ANY: char = 'x';
/// Characters in a row of which one is not special.
const CANDIDATES: usize = 6;
/// Samples of an instance that wait until the I/O thread hands them over, which it does at once.
const DEPTH: u32 = 1_024;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use thalweg::qos::{MatchResult, Request, WriterOwnership, WriterQos, match_endpoints, partitions_match};
    use thalweg::types::{EntityId, Guid, GuidPrefix};

    use super::*;

    #[test]
    fn a_reader_matches_its_writer_whatever_delay_that_one_promises() {
        let guid = Guid { prefix: GuidPrefix([1; 12]), entity: EntityId([0, 0, 1, 3]) };
        for budget in [Duration::ZERO, Duration::from_millis(20), INFINITE] {
            let data = PublicationData::new(guid, "t", "T", WriterQos::default().latency_budget(budget));
            let offer = data.offer();
            let qos = Demand::of(&data).to_reader_qos();
            let request = Request {
                topic_name: offer.topic_name,
                type_name: offer.type_name,
                keyed: offer.keyed,
                forces_type_validation: false,
                qos: &qos,
            };
            assert_eq!(match_endpoints(&offer, &request), MatchResult::Match, "{budget:?}");
        }
    }

    #[test]
    fn writers_that_promise_different_delays_have_one_reader_and_so_one_owner() {
        let guid = Guid { prefix: GuidPrefix([1; 12]), entity: EntityId([0, 0, 1, 3]) };
        let demand = |budget_ms: u64, strength: i32| {
            let qos = WriterQos::default().latency_budget(Duration::from_millis(budget_ms));
            Demand::of(&PublicationData::new(guid, "t", "T", qos.ownership(WriterOwnership::Exclusive { strength })))
        };
        assert_eq!(demand(0, 9), demand(20, 1));
        assert_eq!(demand(0, 9).ownership, Ownership::Exclusive);
    }

    #[test]
    fn sets_of_many_members_take_no_time() {
        let members: String = ('!'..='~').filter(|one| !is_special(*one)).collect();
        for _ in 0..10_000 {
            let name = fitting(&format!("[^x{members}]"));
            assert!(partitions_match(&[format!("[^x{members}]")], std::slice::from_ref(&name)), "{name:?}");
        }
    }

    #[test]
    fn a_reader_has_a_name_that_fits_the_pattern_of_a_writer() {
        let names =
            ["", "plain", "a[b", "a]b", "r*b?t", "*", "robot[0-9]*", "[!x]y?", "[^a-z]", "a\\-b?", "a\\[b", "\\x"];
        let sets = [
            "[]x]*", "[!]x]", "[*?z]", "[!!-z]", "[a-]", "[+--]", "[\\]-a]", "[a]b]c", "[][]", "[é-ü]?", "a[*", "[b-a]",
        ];
        for pattern in names.into_iter().chain(sets) {
            let name = fitting(pattern);
            assert!(partitions_match(&[pattern], &[&name]), "{pattern:?} and {name:?}");
        }
        assert_eq!(["robot[0-9]*", "a[b", "[!x]y?", "a\\-b"].map(fitting), ["robot0", "a[b", "0yx", "a-b"]);
        // Only a name that would be a pattern fits these.
        assert_eq!(["a\\*b", "[*]"].map(fitting), ["a\\*b", "[*]"]);
    }
}
