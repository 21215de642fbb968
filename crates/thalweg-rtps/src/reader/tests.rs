//! Laws of the reader, checked message by message.

use super::*;
use crate::history::ReadFilter;
use crate::history::{ChangeKind, PayloadKind};
use crate::outbox::Outbox;
use crate::payload::Payload;
use crate::qos::{History, Reliability, ResourceLimits};
use crate::rng::Rng;
use crate::types::{EntityId, GuidPrefix, KeyHash, Locator, VendorId};
use crate::wire::batch::HeartbeatBatch;
use crate::wire::{Heartbeat, Message, SequenceSet, Submessage};

pub(super) const WRITER: Guid = Guid::new(GuidPrefix([1; 12]), EntityId([0, 0, 1, 3]));
pub(super) const READER: Guid = Guid::new(GuidPrefix([2; 12]), EntityId([0, 0, 1, 4]));

/// A reader with one writer, whose datagrams the test makes up.
pub(super) struct Session {
    pub(super) now: Instant,
    pub(super) reader: Reader,
    pub(super) outbox: Outbox,
    pub(super) count: u32,
    /// Of the last ACKNACK of the reader.
    acknack_count: u32,
    got: Vec<i64>,
}

pub(super) fn matched_writer() -> MatchedWriter {
    MatchedWriter {
        history: None,
        guid: WRITER,
        vendor: VendorId::THALWEG,
        reliable: true,
        qos: Arc::default(),
        greets: false,
        numbers_from: SequenceNumber::FIRST,
        round_trip: crate::round_trip::ASSUMED,
        unicast: vec![Locator::from(std::net::SocketAddr::from(([10, 0, 0, 1], 7411)))],
    }
}

pub(super) fn number(number: i64) -> SequenceNumber {
    SequenceNumber(number)
}

pub(super) fn sample(sequence: i64) -> Arrival {
    Arrival::Sample(Received {
        coherent_set: crate::types::SequenceNumber::ZERO,
        related: None,
        sequence: number(sequence),
        timestamp: None,
        kind: ChangeKind::Write,
        instance: KeyHash::default(),
        content: Payload::from(&b"\0\x01\0\0data"[..]),
        content_kind: PayloadKind::Data,
    })
}

pub(super) fn set(set: &SequenceSet) -> String {
    let members: Vec<String> = set.iter().map(|number| number.to_string()).collect();
    format!("{}:{}", set.base(), members.join(","))
}

impl Session {
    pub(super) fn new(reliability: Reliability, samples_max: Option<u32>) -> Session {
        Session::with_budget(reliability, samples_max, 1 << 20)
    }

    pub(super) fn with_budget(reliability: Reliability, samples_max: Option<u32>, bytes_max: usize) -> Session {
        let resource_limits = ResourceLimits { max_samples: samples_max, ..ResourceLimits::default() };
        let qos = ReaderQos { reliability, history: History::KeepAll, resource_limits, ..ReaderQos::default() };
        let mut reader = Reader::new(READER, qos.into(), Keyed::No, ReassemblyBudget::new(bytes_max));
        let now = Instant::from_nanos(1_000_000_000);
        reader.match_writer(now, matched_writer());
        Session { now, reader, outbox: Outbox::new(), count: 0, acknack_count: 0, got: Vec::new() }
    }

    pub(super) fn reliable() -> Session {
        Session::new(Reliability::Reliable { max_blocking_time: Duration::ZERO }, None)
    }

    pub(super) fn data(&mut self, numbers: &[i64]) -> &mut Session {
        for sequence in numbers {
            self.reader.handle_arrivals(self.now, WRITER, std::iter::once(sample(*sequence)));
        }
        self
    }

    pub(super) fn batch(&mut self, batch: i64, numbers: std::ops::RangeInclusive<i64>) -> &mut Session {
        let range = BatchRange { batch: number(batch), first: number(*numbers.start()), last: number(*numbers.end()) };
        let arrivals = numbers.map(sample).chain([Arrival::BatchEnd(range)]);
        self.reader.handle_arrivals(self.now, WRITER, arrivals);
        self
    }

    pub(super) fn heartbeat(&mut self, first: i64, last: i64) -> &mut Session {
        let heartbeat = self.heartbeat_of(first, last);
        self.reader.handle_heartbeat(self.now, WRITER, &heartbeat);
        self
    }

    /// The same once more, when the reader has asked whether it is true.
    pub(super) fn confirmed_heartbeat(&mut self, first: i64, last: i64) -> &mut Session {
        self.heartbeat(first, last);
        assert_ne!(self.answer_after(LATER), "", "a question");
        self.heartbeat(first, last)
    }

    pub(super) fn heartbeat_batch(&mut self, batches: (i64, i64), first: i64, last: i64) -> &mut Session {
        let heartbeat = self.heartbeat_of(first, last);
        let (first_batch, last_batch) = (number(batches.0), number(batches.1));
        let batch = HeartbeatBatch { first_batch, last_batch, heartbeat };
        self.reader.handle_heartbeat_batch(self.now, WRITER, &batch);
        self
    }

    pub(super) fn heartbeat_of(&mut self, first: i64, last: i64) -> Heartbeat {
        self.count += 1;
        let (reader, writer) = (EntityId::UNKNOWN, WRITER.entity);
        let (first, last, count) = (number(first), number(last), self.count);
        Heartbeat { reader, writer, first, last, count, is_final: false, liveliness: false }
    }

    /// What the reader says now, after `pause`: acknowledgements with base and missing numbers, counted behind `#`.
    pub(super) fn answer_after(&mut self, pause: Duration) -> String {
        self.now += pause;
        self.outbox.clear();
        self.reader.poll_transmit(self.now, &mut self.outbox);
        let mut said = Vec::new();
        for datagram in self.outbox.datagrams() {
            for submessage in Message::parse(&datagram.to_vec()).unwrap().submessages() {
                match submessage.unwrap() {
                    Submessage::AckNack(acknack) => {
                        self.acknack_count = acknack.count;
                        said.push(format!("samples {}", set(&acknack.state)));
                    }
                    Submessage::Lost(lost) => {
                        let numbers: Vec<String> = lost.numbers.iter().map(|number| number.0.to_string()).collect();
                        said.push(format!("lost {}", numbers.join(",")));
                    }
                    Submessage::AckNackBatch(acknack) => {
                        assert_eq!((acknack.reader, acknack.writer), (READER.entity, WRITER.entity));
                        assert_eq!(acknack.is_final, acknack.state.is_empty());
                        said.push(format!("batches {}", set(&acknack.state)));
                    }
                    _ => {}
                }
            }
        }
        said.join("; ")
    }

    pub(super) fn taken(&mut self) -> Vec<i64> {
        let mut taken = Vec::new();
        self.reader.take(|| self.now, usize::MAX, &ReadFilter::ALL, &mut taken);
        taken.iter().map(|sample| sample.info.sequence.0).collect()
    }

    /// The reader asks a writer that it has not heard of.
    #[track_caller]
    pub(super) fn check_asks(&mut self) {
        assert_eq!(self.answer_after(LATER), "samples 1:");
    }

    #[track_caller]
    pub(super) fn check(&mut self, answer: &str, taken: &[i64]) {
        assert_eq!(self.answer_after(Duration::ZERO), answer);
        assert_eq!(self.taken(), taken);
    }
}

/// Any time after which every request is due again.
pub(super) const LATER: Duration = Duration::from_secs(5);

#[test]
fn a_writer_that_was_forgotten_and_comes_back_gets_higher_counts() {
    let mut session = Session::reliable();
    (0..3).for_each(|_| session.check_asks());
    let before = session.acknack_count;
    session.reader.unmatch_writer(session.now, WRITER);
    session.reader.match_writer(session.now, matched_writer());
    session.check_asks();
    assert!(session.acknack_count > before, "the writer may have kept the counts of before");
}

#[test]
fn what_was_just_asked_for_is_not_asked_for_again_with_every_heartbeat() {
    let mut session = Session::reliable();
    session.check_asks();
    session.heartbeat(1, 2).check("samples 1:1,2", &[]);
    session.heartbeat(1, 2).check("", &[]);
    session.heartbeat(1, 3).check("samples 1:1,2,3", &[]);
    session.heartbeat(1, 3).check("", &[]);
    assert_eq!(session.answer_after(LATER), "samples 1:1,2,3", "the request may be lost");
}

/// It ended the wait for the answer, and made the path look short.
#[test]
fn a_number_that_is_used_up_behind_a_missing_one_answers_no_request() {
    let mut session = Session::reliable();
    session.reader.unmatch_writer(session.now, WRITER);
    let round_trip = Duration::from_millis(100);
    session.reader.match_writer(session.now, MatchedWriter { round_trip, ..matched_writer() });
    session.data(&[1, 3]).heartbeat(1, 3).check("samples 2:2", &[1]);
    session.now += Duration::from_millis(1);
    let nothing = Arrival::Irrelevant { start: number(4), end: number(5) };
    session.reader.handle_arrivals(session.now, WRITER, std::iter::once(nothing));
    session.data(&[5]);
    assert_eq!(session.answer_after(Duration::from_millis(6)), "", "the repair is on its way");
    assert_eq!(session.answer_after(LATER), "samples 2:2");
}

#[test]
fn a_slow_answer_makes_a_reader_patient() {
    let mut session = Session::reliable();
    session.check_asks();
    session.heartbeat(1, 1).check("samples 1:1", &[]);
    let asks = (0..200).filter(|_| session.answer_after(Duration::from_millis(10)) == "samples 1:1").count();
    assert!((5..12).contains(&asks), "asked {asks} times in two seconds, ever more rarely");
    session.data(&[1]).check("", &[1]);
    session.heartbeat(1, 2).check("samples 2:2", &[]);
    let early = Duration::from_millis(200);
    assert_eq!(session.answer_after(early), "", "nothing tells which request was answered: it may be slow");
    session.data(&[2]).check("", &[2]);
    session.heartbeat(1, 3).check("samples 3:3", &[]);
    assert_eq!(session.answer_after(early), "", "asked once, answered after 200 ms");
    assert_eq!(session.answer_after(early), "samples 3:3");
}

#[test]
fn batches_are_delivered_in_order_and_acknowledged_by_their_number() {
    let mut session = Session::reliable();
    assert_eq!(session.answer_after(Duration::ZERO), "samples 1:", "the greeting knows no batch");
    session.batch(1, 1..=3).batch(2, 4..=4).heartbeat_batch((1, 2), 1, 4).check("batches 3:", &[1, 2, 3, 4]);
    session.batch(3, 5..=9).heartbeat(1, 9).check("batches 4:", &[5, 6, 7, 8, 9]);
    assert_eq!(session.reader.counters().duplicates, 0);
}

#[test]
fn a_lost_batch_is_asked_for_by_its_number() {
    let mut session = Session::reliable();
    session.batch(1, 1..=3).batch(3, 7..=9).batch(5, 13..=14).heartbeat_batch((1, 6), 1, 20);
    session.check("batches 2:2,4,6", &[1, 2, 3]);
    session.batch(4, 10..=12).batch(2, 4..=6).check("", &(4..=14).collect::<Vec<_>>());
    assert_eq!(session.answer_after(LATER), "batches 6:6");
    session.batch(6, 15..=20).heartbeat_batch((1, 6), 1, 20).check("batches 7:", &[15, 16, 17, 18, 19, 20]);
}

#[test]
fn the_first_batch_can_be_missing_too() {
    let mut session = Session::reliable();
    session.batch(2, 4..=6).heartbeat_batch((1, 2), 1, 6).check("batches 1:1", &[]);
    session.batch(1, 1..=3).heartbeat_batch((1, 2), 1, 6).check("batches 3:", &[1, 2, 3, 4, 5, 6]);
    let mut late = Session::reliable();
    late.heartbeat_batch((8, 9), 50, 60).check("batches 8:8,9", &[]);
}

#[test]
fn a_gap_is_asked_for_in_batches_without_any_heartbeat() {
    let mut session = Session::reliable();
    session.batch(1, 1..=3).answer_after(Duration::ZERO);
    session.batch(3, 7..=9).batch(4, 10..=12);
    assert_eq!(session.answer_after(Duration::ZERO), "", "two datagrams may have overtaken one");
    session.batch(5, 13..=15).check("batches 2:2", &[1, 2, 3]);
}

#[test]
fn what_came_alone_cannot_be_told_in_batches() {
    let mut session = Session::reliable();
    session.batch(1, 1..=3).data(&[4]).heartbeat_batch((1, 2), 1, 4).check("batches 3:", &[1, 2, 3, 4]);
    // The end is known from the heartbeat; without it, the last sample's batch is not.
    session.data(&[5]).heartbeat(1, 5).check("samples 6:", &[5]);
    session.batch(5, 8..=9).heartbeat(1, 9).check("samples 6:6,7", &[]);
    // Batch 4 came as a DATA out of order: it is asked for with batch 3, and dropped as a duplicate.
    let mut session = Session::reliable();
    session.batch(2, 1..=3).data(&[7]).batch(5, 8..=9).heartbeat_batch((1, 5), 1, 9);
    session.check("batches 3:3,4", &[1, 2, 3]);
    session.batch(3, 4..=6).batch(4, 7..=7).heartbeat_batch((1, 5), 1, 9).check("batches 6:", &[4, 5, 6, 7, 8, 9]);
    assert_eq!(session.reader.counters().duplicates, 1);
}

#[test]
fn repairs_as_single_samples_overlap_batches_without_harm() {
    let mut session = Session::reliable();
    session.batch(1, 1..=4).batch(3, 9..=12).data(&[5, 6]).batch(2, 5..=8).batch(2, 5..=8).data(&[7, 12]);
    assert_eq!(session.taken(), (1..=12).collect::<Vec<_>>());
    session.heartbeat_batch((1, 3), 1, 12).check("batches 4:", &[]);
    assert_eq!(session.reader.counters().duplicates, 2 + 4 + 2);
    // A batch of which only the tail was new ends in order all the same.
    let mut session = Session::reliable();
    session.data(&[1, 2]).batch(1, 1..=4).heartbeat(1, 4).check("batches 2:", &[1, 2, 3, 4]);
}

#[test]
fn a_full_cache_is_never_acknowledged_by_batches_it_could_not_deliver() {
    let mut session = Session::new(Reliability::Reliable { max_blocking_time: Duration::ZERO }, Some(5));
    session.batch(1, 1..=3).batch(2, 4..=6).heartbeat_batch((1, 2), 1, 6);
    assert_eq!(session.answer_after(Duration::ZERO), "samples 6:", "the middle of batch 2");
    assert_eq!(session.taken(), [1, 2, 3, 4, 5]);
    assert_eq!(session.answer_after(Duration::ZERO), "batches 3:");
    assert_eq!(session.taken(), [6]);
    session.batch(3, 7..=11).batch(4, 12..=13).heartbeat_batch((1, 4), 1, 13);
    session.check("batches 4:", &[7, 8, 9, 10, 11]);
    session.check("batches 5:", &[12, 13]);
}

#[test]
fn what_waits_for_room_is_not_asked_for_again() {
    let mut session = Session::new(Reliability::Reliable { max_blocking_time: Duration::ZERO }, Some(2));
    // Batches 2 to 4 came as a DATA each, batch 5 is lost.
    session.batch(1, 1..=2).data(&[3, 4, 5]).batch(6, 9..=11).heartbeat_batch((1, 6), 1, 11);
    assert_eq!(session.answer_after(Duration::ZERO), "samples 3:6,7,8");
}

#[test]
fn irrelevant_samples_of_a_batch_are_no_losses() {
    let mut session = Session::reliable();
    let range = BatchRange { batch: number(1), first: number(1), last: number(6) };
    let nothing = |start, end| Arrival::Irrelevant { start: number(start), end: number(end) };
    let arrivals = [nothing(1, 2), sample(2), nothing(3, 5), sample(5), nothing(6, 7), Arrival::BatchEnd(range)];
    session.reader.handle_arrivals(session.now, WRITER, arrivals.into_iter());
    session.heartbeat_batch((1, 1), 1, 6).check("batches 2:", &[2, 5]);
    assert_eq!(session.reader.counters().lost, 0);
}

#[test]
fn best_effort_readers_take_batches_and_count_what_they_miss() {
    let mut session = Session::new(Reliability::BestEffort, None);
    session.batch(1, 1..=3).batch(3, 7..=9).batch(2, 4..=6).data(&[9, 10]);
    session.check("", &[1, 2, 3, 7, 8, 9, 10]);
    let counters = session.reader.counters();
    assert_eq!((counters.lost, counters.duplicates), (3, 4));
    let nothing = Arrival::Irrelevant { start: number(11), end: number(20) };
    session.reader.handle_arrivals(session.now, WRITER, [nothing, sample(20)].into_iter());
    session.check("", &[20]);
    assert_eq!(session.reader.counters().lost, 3);
}

#[test]
fn batches_beyond_the_window_are_asked_for_again() {
    let mut session = Session::reliable();
    session.batch(1, 1..=3);
    let far = window::NUMBERS_MAX;
    session.batch(3, 5..=far).batch(4, far + 1..=far + 100).heartbeat_batch((1, 4), 1, far + 100);
    session.check("batches 2:2,4", &[1, 2, 3]);
    assert!(session.reader.counters().too_far > 0);
    session.batch(2, 4..=4).batch(4, far + 1..=far + 100).heartbeat_batch((1, 4), 1, far + 100);
    session.check("batches 5:", &(4..=far + 100).collect::<Vec<_>>());
}

#[test]
fn impossible_batch_numbers_cost_nothing() {
    let mut session = Session::reliable();
    session.batch(1, 1..=3).batch(i64::MAX, 5..=6).batch(i64::MAX - 1, 7..=8).batch(1 << 40, 2..=9);
    session.heartbeat_batch((1, i64::MAX), 1, i64::MAX);
    let asked = session.answer_after(Duration::ZERO);
    assert!(
        asked.starts_with("samples 10:") || asked.starts_with(&format!("batches {}:", (1i64 << 40) + 1)),
        "{asked}"
    );
    session.heartbeat_batch((i64::MAX, i64::MAX), 1 << 62, 1 << 62);
    assert_eq!(session.answer_after(LATER), "samples 10:", "whether that is true");
    session.heartbeat_batch((i64::MAX, i64::MAX), 1 << 62, 1 << 62);
    let asked = session.answer_after(LATER);
    assert!(asked.starts_with(&format!("samples {0}:{0}", 1i64 << 62)), "no set of batches reaches that far: {asked}");
    let mut session = Session::reliable();
    for batch in 2..5_000 {
        session.batch(batch * 3, batch..=batch);
    }
    assert!(session.answer_after(LATER).starts_with("batches 1:1,2,3,4,5,7,8,10"), "bounded, and still answered");
}

/// A writer that packs, and a network that loses, repeats, reorders and sometimes unpacks.
#[test]
fn every_sample_arrives_once_and_in_order_whatever_becomes_of_batches() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let mut packs = vec![0..=0];
        while packs.len() < 30 {
            let first = packs[packs.len() - 1].end() + 1;
            packs.push(first..=first + rng.below(9) as i64);
        }
        let last = *packs[29].end();
        let mut session = Session::reliable();
        let mut due: Vec<usize> = (1..packs.len()).collect();
        let mut rounds = 0;
        while !due.is_empty() {
            rounds += 1;
            assert!(rounds < 300, "seed {seed}: no progress, misses packs {due:?}");
            for pack in std::mem::take(&mut due) {
                if rng.chance(0.3) {
                    continue;
                }
                let range = packs[pack].clone();
                match rng.below(4) {
                    0 if range.start() == range.end() => session.data(&[*range.start()]),
                    1 => session.data(&range.collect::<Vec<_>>()),
                    2 => session.batch(pack as i64, range.clone()).batch(pack as i64, range),
                    _ => session.batch(pack as i64, range),
                };
            }
            let in_batches = rng.chance(0.7);
            match in_batches {
                true => session.heartbeat_batch((1, 29), 1, last),
                false => session.heartbeat(1, last),
            };
            let said = session.answer_after(LATER);
            let (unit, rest) = said.split_once(' ').expect("a heartbeat is answered");
            let (base, members) = rest.split_once(':').expect("base and members");
            let members: Vec<i64> = members.split(',').filter_map(|number| number.parse().ok()).collect();
            let got = session.taken();
            session.got.extend(got);
            let base: i64 = base.parse().expect("a number");
            let acknowledged = if unit == "batches" { *packs[base as usize - 1].end() } else { base - 1 };
            assert_eq!(acknowledged, session.got.len() as i64, "seed {seed}: {said}");
            let asked = |pack: &usize| match unit {
                "batches" => members.contains(&(*pack as i64)),
                _ => members.iter().any(|number| packs[*pack].contains(number)),
            };
            due = (1..packs.len()).filter(asked).collect();
            assert_eq!(due.is_empty(), acknowledged == last, "seed {seed}: {said}");
            if rng.chance(0.3) {
                due.reverse();
            }
        }
        assert_eq!(session.got, (1..=last).collect::<Vec<_>>(), "seed {seed}");
    }
}

/// Hands over fragment `index` of sample 1 of `sample_size` bytes; true when that completes it.
fn fragment(session: &mut Session, index: u32, sample_size: u32) -> bool {
    fragment_of(session, 1, index, sample_size)
}

pub(super) fn fragment_of(session: &mut Session, sequence: i64, index: u32, sample_size: u32) -> bool {
    let bytes = [index as u8; 1400];
    let len = (sample_size - index * 1400).min(1400) as usize;
    let fragments = DataFrag {
        reader: EntityId::UNKNOWN,
        writer: WRITER.entity,
        sequence: number(sequence),
        first_fragment: index + 1,
        fragments: 1,
        fragment_size: 1400,
        sample_size,
        inline_qos: None,
        key: false,
        bytes: 0..len,
    };
    let head = FragmentedSample {
        coherent_set: crate::types::SequenceNumber::ZERO,
        related: None,
        timestamp: None,
        kind: ChangeKind::Write,
        hint: None,
        content_kind: PayloadKind::Data,
    };
    let (complete, _) = session.reader.handle_data_frag(session.now, WRITER, &fragments, &bytes[..len], head);
    complete.is_some_and(|whole| whole.sample.content.len() == sample_size as usize)
}

#[test]
fn a_sample_of_100_mb_is_repaired_in_few_rounds_of_small_datagrams() {
    let sample_size: u32 = 100_000_001;
    let total = sample_size.div_ceil(1400);
    let reliability = Reliability::Reliable { max_blocking_time: Duration::ZERO };
    let mut session = Session::with_budget(reliability, None, 1 << 30);
    let mut missing: Vec<u32> = (0..total).filter(|index| index % 20 == 7).collect();
    for index in (0..total).filter(|index| index % 20 != 7) {
        assert!(!fragment(&mut session, index, sample_size));
    }
    let mut rounds = 0;
    while !missing.is_empty() {
        rounds += 1;
        session.heartbeat(1, 1);
        session.answer_after(LATER);
        let datagrams: Vec<Vec<u8>> = session.outbox.datagrams().map(|datagram| datagram.to_vec()).collect();
        assert!(datagrams.iter().all(|datagram| datagram.len() <= 1_472));
        let mut asked = Vec::new();
        for submessage in datagrams.iter().flat_map(|datagram| Message::parse(datagram).unwrap().submessages()) {
            if let Ok(Submessage::NackFrag(nack)) = submessage {
                asked.extend(nack.state.iter().map(|fragment| fragment - 1));
            }
        }
        assert_eq!(asked, missing[..asked.len()], "each missing one once, the first ones first");
        missing.drain(..asked.len());
        let mut completes = |index: &u32| fragment(&mut session, *index, sample_size);
        assert_eq!(asked.iter().filter(|index| completes(index)).count(), usize::from(missing.is_empty()));
    }
    assert!(rounds <= 5, "{rounds} rounds");
}
