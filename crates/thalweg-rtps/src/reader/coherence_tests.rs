//! Laws of coherent access at the reader.

use super::tests::{READER, WRITER, matched_writer, number};
use super::*;
use crate::history::ReadFilter;
use crate::history::{ChangeKind, PayloadKind};
use crate::payload::Payload;
use crate::qos::{AccessScope, History, Presentation, Reliability, ResourceLimits};
use crate::wire::SequenceSet;
use crate::wire::parameters::GroupPlace;

struct Stage {
    now: Instant,
    reader: Reader,
}

fn reader_of(reliability: Reliability, keyed: Keyed) -> Stage {
    let presentation = Presentation { access_scope: AccessScope::Topic, coherent: true, ordered: false };
    presented_as(presentation, reliability, keyed)
}

fn presented_as(presentation: Presentation, reliability: Reliability, keyed: Keyed) -> Stage {
    limited(presentation, reliability, keyed, ResourceLimits::default())
}

fn limited(
    presentation: Presentation,
    reliability: Reliability,
    keyed: Keyed,
    resource_limits: ResourceLimits,
) -> Stage {
    let history = History::KeepAll;
    let qos = ReaderQos { reliability, presentation, history, resource_limits, ..ReaderQos::default() };
    qos.check().expect("a legal QoS");
    let mut reader = Reader::new(READER, qos.into(), keyed, ReassemblyBudget::new(1 << 20));
    let now = Instant::from_nanos(1_000_000_000);
    reader.match_writer(now, matched_writer());
    Stage { now, reader }
}

impl Stage {
    /// A sample of a set, which bears the number of its first sample; 0 for none, -1 for the end of one.
    fn put(&mut self, sequence: i64, set: i64) {
        let ends = set == -1;
        let received = Received {
            sequence: number(sequence),
            timestamp: None,
            kind: ChangeKind::Write,
            instance: KeyHash::default(),
            content: if ends { Payload::empty() } else { Payload::from(vec![0, 1, 0, 0, sequence as u8, 0, 0, 0]) },
            content_kind: PayloadKind::Data,
            coherent_set: if ends { SequenceNumber::UNKNOWN } else { number(set) },
            related: None,
        };
        self.reader.handle_arrivals(self.now, WRITER, std::iter::once(Arrival::Sample(received)));
    }

    fn taken(&mut self) -> Vec<i64> {
        let (mut taken, now) = (Vec::new(), self.now);
        self.reader.take(|| now, usize::MAX, &ReadFilter::ALL, &mut taken);
        taken.iter().map(|sample| sample.info.sequence.0).collect()
    }
}

#[test]
fn a_set_appears_as_a_whole_when_it_ends() {
    for ends in [[(4, -1), (5, 0)], [(4, 0), (5, 0)], [(4, 4), (5, -1)]] {
        let mut stage = reader_of(Reliability::RELIABLE, Keyed::No);
        stage.put(1, 1);
        stage.put(2, 1);
        assert_eq!(stage.taken(), [] as [i64; 0]);
        stage.put(3, 1);
        assert_eq!((stage.taken().len(), stage.reader.cache().has_unread()), (0, false));
        let mut seen = Vec::new();
        for (sequence, set) in ends {
            stage.put(sequence, set);
            let taken = stage.taken();
            assert!(seen.len() >= 3 || taken.is_empty() || taken.starts_with(&[1, 2, 3]), "{ends:?}: {taken:?}");
            seen.extend(taken);
        }
        let others = ends.iter().filter(|(_, set)| *set >= 0).map(|(sequence, _)| *sequence);
        assert_eq!(seen, [1, 2, 3].into_iter().chain(others).collect::<Vec<i64>>(), "{ends:?}");
    }
}

#[test]
fn a_set_that_lacks_a_sample_does_not_appear() {
    let mut stage = reader_of(Reliability::BestEffort, Keyed::No);
    for (sequence, set) in [(1, 1), (3, 1), (4, -1), (5, 5), (6, 5), (7, -1)] {
        stage.put(sequence, set);
    }
    assert_eq!(stage.taken(), [5, 6]);
    assert_eq!(stage.reader.losses().of(LossReason::SetIncomplete), 2);
    assert_eq!(stage.reader.losses().of(LossReason::NeverArrived), 1);
}

#[test]
fn a_reader_that_comes_in_the_midst_of_a_set_has_lost_nothing() {
    let mut stage = reader_of(Reliability::BestEffort, Keyed::No);
    for (sequence, set) in [(5, 3), (6, 3), (7, -1), (8, 8), (9, -1)] {
        stage.put(sequence, set);
    }
    assert_eq!((stage.taken(), stage.reader.losses().total()), (vec![8], 0));
}

#[test]
fn samples_that_came_in_disorder_make_the_same_set() {
    let mut stage = reader_of(Reliability::RELIABLE, Keyed::No);
    for (sequence, set) in [(4, -1), (2, 1), (3, 1)] {
        stage.put(sequence, set);
    }
    assert_eq!(stage.taken(), [] as [i64; 0]);
    stage.put(1, 1);
    assert_eq!(stage.taken(), [1, 2, 3]);
}

#[test]
fn a_set_of_a_writer_that_leaves_is_dropped_and_one_without_end_is_bounded() {
    let mut stage = reader_of(Reliability::RELIABLE, Keyed::No);
    stage.put(1, 1);
    stage.reader.unmatch_writer(stage.now, WRITER);
    assert_eq!(stage.taken(), [] as [i64; 0]);
    assert_eq!(stage.reader.losses().of(LossReason::SetIncomplete), 1, "it is told at once");
    let mut coherence = Coherence::new(&stage.reader.qos).expect("it wants sets");
    let received = |sequence| Received {
        sequence: number(sequence),
        timestamp: None,
        kind: ChangeKind::Write,
        instance: KeyHash::default(),
        content: Payload::from(vec![0; 1_000]),
        content_kind: PayloadKind::Data,
        coherent_set: number(1),
        related: None,
    };
    for sequence in 1..=1_000 {
        let sample = received(sequence).into_cached(WRITER, stage.now, Instant::NEVER);
        assert!(coherence.handle(sample, 100_000).is_empty());
        assert!(coherence.bytes() <= 100_000, "{}", coherence.bytes());
    }
    assert_eq!(coherence.take_dropped(), 1_000);
}

/// What follows a set without its end may follow samples of it that were lost.
#[test]
fn a_set_whose_last_samples_were_lost_with_its_end_does_not_appear() {
    let mut stage = reader_of(Reliability::BestEffort, Keyed::No);
    for (sequence, set) in [(1, 1), (2, 1), (5, 5), (6, -1), (7, 0)] {
        stage.put(sequence, set);
    }
    assert_eq!(stage.taken(), [5, 7]);
    assert_eq!(stage.reader.losses().of(LossReason::SetIncomplete), 2);
    let mut stage = reader_of(Reliability::BestEffort, Keyed::No);
    for (sequence, set) in [(1, 1), (2, 1), (4, 0)] {
        stage.put(sequence, set);
    }
    assert_eq!(stage.taken(), [4], "nothing tells that the lost one was the end");
}

/// The order of a message: places within the publisher are noted before the samples are handled.
#[test]
fn a_sample_that_was_passed_over_by_mistake_keeps_its_place_within_its_publisher() {
    let presentation = Presentation { access_scope: AccessScope::Group, coherent: false, ordered: true };
    let mut stage = presented_as(presentation, Reliability::RELIABLE, Keyed::No);
    let mark = |sequence| {
        let place = GroupPlace { number: number(sequence + 10), set: SequenceNumber::ZERO };
        GroupMark { sequence: number(sequence), place, is_empty_part: false }
    };
    let put = |stage: &mut Stage, sequence| {
        stage.reader.note_group_marks(WRITER, &[mark(sequence)]);
        stage.put(sequence, 0);
        stage.reader.take_group_arrivals().iter().map(|arrival| arrival.mark.sequence.0).collect::<Vec<_>>()
    };
    assert_eq!(put(&mut stage, 1), [1]);
    let (reader, writer) = (READER.entity, WRITER.entity);
    let gap = Gap { reader, writer, start: number(2), list: SequenceSet::new(number(5)) };
    stage.reader.handle_gap(stage.now, WRITER, &gap);
    assert_eq!((put(&mut stage, 2), stage.taken()), (vec![2], vec![]), "the writer has denied 2 to 4, and has it");
}

fn of_four_samples(reliability: Reliability) -> Stage {
    let presentation = Presentation { access_scope: AccessScope::Topic, coherent: true, ordered: false };
    let limits = ResourceLimits { max_samples: Some(4), ..ResourceLimits::default() };
    limited(presentation, reliability, Keyed::No, limits)
}

#[test]
fn sets_and_samples_wait_for_room_as_wholes() {
    let mut stage = of_four_samples(Reliability::RELIABLE);
    let (first, second) = ([(1, 1), (2, 1), (3, 1), (4, -1)], [(5, 5), (6, 5), (7, 5), (8, 5)]);
    let others = [(9, 0), (10, 0), (11, 11), (12, 11), (13, -1)];
    first.into_iter().chain(second).chain(others).for_each(|(sequence, set)| stage.put(sequence, set));
    let all: Vec<Vec<i64>> = std::iter::repeat_with(|| stage.taken()).take_while(|taken| !taken.is_empty()).collect();
    assert_eq!(all, [vec![1, 2, 3], vec![5, 6, 7, 8], vec![9, 10, 11, 12]]);
    assert_eq!(stage.reader.losses().total(), 0);
}

#[test]
fn a_set_that_never_has_room_is_rejected_as_a_whole() {
    for reliability in [Reliability::RELIABLE, Reliability::BestEffort] {
        let mut stage = of_four_samples(reliability);
        (1..=5).for_each(|sequence| stage.put(sequence, 1));
        [(6, -1), (7, 7), (8, 7), (9, -1)].into_iter().for_each(|(sequence, set)| stage.put(sequence, set));
        assert_eq!((stage.taken(), stage.reader.rejections().total), (vec![7, 8], 5), "{reliability:?}");
    }
    let mut stage = of_four_samples(Reliability::BestEffort);
    [(1, 1), (2, 1), (3, -1), (4, 4), (5, 4), (6, 4), (7, -1)]
        .into_iter()
        .for_each(|(sequence, set)| stage.put(sequence, set));
    assert_eq!((stage.taken(), stage.reader.rejections().total), (vec![1, 2], 3), "it cannot wait");
}

#[test]
fn a_sample_of_a_group_whose_place_nobody_tells_waits_for_room() {
    let presentation = Presentation { access_scope: AccessScope::Group, coherent: false, ordered: true };
    let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    let mut stage = limited(presentation, Reliability::RELIABLE, Keyed::No, limits);
    (1..=3).for_each(|sequence| stage.put(sequence, 0));
    let all: Vec<Vec<i64>> = std::iter::repeat_with(|| stage.taken()).take_while(|taken| !taken.is_empty()).collect();
    assert_eq!(all, [[1], [2], [3]]);
}
