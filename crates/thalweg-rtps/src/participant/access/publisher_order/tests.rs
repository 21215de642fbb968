//! Laws of the order and the sets of one publisher.

use std::collections::VecDeque;

use super::*;
use crate::history::{ChangeKind, PayloadKind};
use crate::payload::Payload;
use crate::qos::AccessScope;
use crate::rng::Rng;
use crate::time::Instant;
use crate::types::{GuidPrefix, KeyHash, Keyed};
use crate::wire::parameters::GroupPlace;

const COHERENT: Presentation = Presentation { access_scope: AccessScope::Group, coherent: true, ordered: false };
const ORDERED: Presentation = Presentation { access_scope: AccessScope::Group, coherent: false, ordered: true };
const BOTH: Presentation = Presentation { access_scope: AccessScope::Group, coherent: true, ordered: true };

fn writer(number: usize) -> Guid {
    Guid::new(GuidPrefix([7; 12]), EntityId::user_writer(number as u32, Keyed::No))
}

fn reader(number: usize) -> EntityId {
    EntityId::user_reader(number as u32, Keyed::No)
}

/// Writers that each have one reader, and what they have written for it.
struct Publisher {
    order: PublisherOrder,
    number: i64,
    sequences: Vec<i64>,
    /// First numbers of the writers' parts of the open set; zero for none.
    parts: Vec<i64>,
    set: i64,
}

impl Publisher {
    fn new(presentation: Presentation, writers: usize) -> Publisher {
        let mut order = PublisherOrder::new(presentation, 1 << 20);
        (0..writers).for_each(|at| order.add_pair((writer(at), reader(at)), false));
        Publisher { order, number: 0, sequences: vec![0; writers], parts: vec![0; writers], set: 0 }
    }

    fn begin(&mut self) {
        self.set = self.number + 1;
        self.parts.fill(0);
    }

    /// The next sample of writer `at`, or the end of its part.
    fn next(&mut self, at: usize, ends: bool) -> GroupArrival {
        self.number += 1;
        self.sequences[at] += 1;
        let sequence = SequenceNumber(self.sequences[at]);
        let is_empty_part = ends && self.parts[at] == 0;
        if self.set > 0 && self.parts[at] == 0 {
            self.parts[at] = sequence.0;
        }
        let place = GroupPlace { number: SequenceNumber(self.number), set: SequenceNumber(self.set) };
        let sample = CachedSample {
            related: None,
            payload: Payload::from(vec![0; 100]),
            payload_kind: PayloadKind::Data,
            valid: true,
            writer: writer(at),
            sequence,
            source_timestamp: None,
            received: Instant::ZERO,
            expires: Instant::NEVER,
            instance: KeyHash::default(),
            coherent_set: match ends {
                true => SequenceNumber::UNKNOWN,
                false => SequenceNumber(if self.set > 0 { self.parts[at] } else { 0 }),
            },
            change: ChangeKind::Write,
        };
        GroupArrival { sample, mark: GroupMark { sequence, place, is_empty_part } }
    }

    fn end(&mut self) -> Vec<GroupArrival> {
        let ends = (0..self.sequences.len()).map(|at| self.next(at, true)).collect();
        self.set = 0;
        ends
    }

    fn put(&mut self, arrival: GroupArrival) {
        let at = (0..self.sequences.len()).find(|at| writer(*at) == arrival.sample.writer).expect("a writer");
        self.order.handle(reader(at), arrival);
    }

    /// All whose turn it is.
    fn turns(&mut self) -> Vec<Released> {
        let next = || match self.order.next(|_| Room::Here) {
            Next::Turn(turn) => Some(turn),
            _ => None,
        };
        std::iter::from_fn(next).flatten().collect()
    }

    /// The readers of what is released, and how many samples are lost.
    fn released(&mut self) -> (Vec<EntityId>, u64) {
        let mut lost = 0;
        let mut readers = Vec::new();
        for one in self.turns() {
            match one {
                Released::Sample(reader, _) => readers.push(reader),
                Released::Lost(_, count) => lost += count,
                Released::Rejected(..) => unreachable!("there is room"),
            }
        }
        (readers, lost)
    }
}

#[test]
fn a_sample_waits_for_those_that_its_publisher_wrote_before() {
    let mut publisher = Publisher::new(ORDERED, 2);
    let arrivals: Vec<_> = [0, 1, 0].into_iter().map(|at| publisher.next(at, false)).collect();
    let [first, second, third] = <[_; 3]>::try_from(arrivals).expect("three");
    publisher.put(first);
    assert_eq!(publisher.released().0, [reader(0)]);
    publisher.put(third);
    assert_eq!(publisher.released().0, []);
    assert_eq!(publisher.order.holding_up(), [(writer(1), reader(1))]);
    publisher.put(second);
    assert_eq!(publisher.released().0, [reader(1), reader(0)]);
    assert_eq!(publisher.order.holding_up(), []);
}

#[test]
fn numbers_of_writers_that_no_reader_has_are_passed_over_when_the_others_tell_where_they_are() {
    let mut publisher = Publisher::new(ORDERED, 2);
    publisher.number = 10;
    let sample = publisher.next(0, false);
    publisher.put(sample);
    assert_eq!(publisher.released().0, []);
    publisher.order.note_up_to((writer(1), reader(1)), SequenceNumber(10));
    assert_eq!(publisher.released().0, []);
    publisher.order.note_up_to((writer(1), reader(1)), SequenceNumber(11));
    assert_eq!(publisher.released().0, [reader(0)]);
    // And of one that leaves nobody waits.
    publisher.number = 20;
    let sample = publisher.next(0, false);
    publisher.put(sample);
    assert_eq!(publisher.released().0, []);
    publisher.order.remove_pair((writer(1), reader(1)));
    assert_eq!(publisher.released().0, [reader(0)]);
}

#[test]
fn a_set_of_several_writers_appears_when_all_have_ended_it() {
    for presentation in [COHERENT, BOTH] {
        let mut publisher = Publisher::new(presentation, 3);
        publisher.begin();
        for at in [0, 1, 0] {
            let sample = publisher.next(at, false);
            publisher.put(sample);
        }
        let ends = publisher.end();
        for end in ends {
            assert_eq!(publisher.released().0, []);
            publisher.put(end);
        }
        assert_eq!(publisher.released(), (vec![reader(0), reader(1), reader(0)], 0));
        assert!(publisher.order.sets.is_empty());
    }
}

#[test]
fn a_set_that_lacks_a_sample_of_one_writer_appears_in_no_reader() {
    let mut publisher = Publisher::new(COHERENT, 2);
    publisher.begin();
    for (place, at) in [0, 1, 1, 1].into_iter().enumerate() {
        let sample = publisher.next(at, false);
        if place != 2 {
            publisher.put(sample);
        }
    }
    publisher.end().into_iter().for_each(|end| publisher.put(end));
    assert_eq!(publisher.released(), (vec![], 3));
    // Neither does one of which a writer has but the end left.
    publisher.begin();
    let sample = publisher.next(0, false);
    publisher.put(sample);
    _ = publisher.next(1, false);
    publisher.end().into_iter().for_each(|end| publisher.put(end));
    assert_eq!(publisher.released(), (vec![], 1));
}

#[test]
fn a_reader_that_came_in_the_midst_of_a_set_has_lost_nothing() {
    let mut publisher = Publisher::new(COHERENT, 2);
    publisher.begin();
    let [early, late, other] = [0, 0, 1].map(|at| publisher.next(at, false));
    drop(early);
    publisher.put(late);
    publisher.put(other);
    publisher.end().into_iter().for_each(|end| publisher.put(end));
    assert_eq!(publisher.released(), (vec![], 0));
    // One that was matched after its writer had ended the set hears of it by the next one.
    publisher.begin();
    let sample = publisher.next(0, false);
    publisher.put(sample);
    let mut ends = publisher.end();
    ends.truncate(1);
    ends.into_iter().for_each(|end| publisher.put(end));
    assert_eq!(publisher.released(), (vec![], 0));
    publisher.begin();
    let sample = publisher.next(1, false);
    publisher.put(sample);
    publisher.end().into_iter().for_each(|end| publisher.put(end));
    assert_eq!(publisher.released(), (vec![reader(1)], 0));
}

/// A writer that is created while its publisher has a set open need not take part. What was dropped of the set let later samples pass
/// what it wrote.
#[test]
fn what_is_dropped_of_a_set_keeps_its_place_in_the_order() {
    let mut publisher = Publisher::new(BOTH, 3);
    publisher.begin();
    let _before_its_reader_came = publisher.next(0, false);
    let set = std::mem::take(&mut publisher.set);
    let outside = publisher.next(1, false);
    publisher.set = set;
    let dropped = publisher.next(0, false);
    publisher.set = 0;
    let later = publisher.next(2, false);
    publisher.put(dropped);
    publisher.put(later);
    assert_eq!(publisher.released(), (vec![], 0));
    assert_eq!(publisher.order.holding_up(), [(writer(1), reader(1))]);
    publisher.put(outside);
    assert_eq!(publisher.released(), (vec![reader(1), reader(2)], 0));
}

#[test]
fn a_pair_that_comes_when_the_others_have_got_their_parts_gets_its_own() {
    for presentation in [COHERENT, BOTH] {
        let mut publisher = Publisher::new(presentation, 2);
        publisher.order.remove_pair((writer(1), reader(1)));
        publisher.begin();
        let [first, second] = [0, 1].map(|at| publisher.next(at, false));
        let [end, other_end] = <[_; 2]>::try_from(publisher.end()).expect("two");
        publisher.put(first);
        publisher.put(end);
        assert_eq!(publisher.released(), (vec![reader(0)], 0));
        publisher.order.add_pair((writer(1), reader(1)), false);
        publisher.put(second);
        assert_eq!(publisher.released(), (vec![], 0));
        publisher.put(other_end);
        assert_eq!(publisher.released(), (vec![reader(1)], 0));
        // And goes on with all of the next one.
        publisher.begin();
        let samples = [1, 0].map(|at| publisher.next(at, false));
        samples.into_iter().for_each(|sample| publisher.put(sample));
        publisher.end().into_iter().for_each(|end| publisher.put(end));
        assert_eq!(publisher.released(), (vec![reader(1), reader(0)], 0));
        assert!(publisher.order.sets.is_empty() && publisher.order.waiting.is_empty());
    }
}

#[test]
fn a_set_whose_writer_dies_before_its_end_is_dropped_although_others_have_ended_it() {
    for has_samples in [true, false] {
        let mut publisher = Publisher::new(COHERENT, 2);
        publisher.begin();
        for at in 0..=usize::from(has_samples) {
            let sample = publisher.next(at, false);
            publisher.put(sample);
        }
        let end = publisher.end().swap_remove(0);
        publisher.put(end);
        assert_eq!(publisher.released(), (vec![], 0));
        publisher.order.remove_pair((writer(1), reader(1)));
        assert_eq!(publisher.released(), (vec![], 1 + u64::from(has_samples)));
        // A reader that the application deletes takes nothing from the others.
        let mut publisher = Publisher::new(COHERENT, 2);
        publisher.begin();
        for at in 0..2 {
            let sample = publisher.next(at, false);
            publisher.put(sample);
        }
        publisher.order.remove_reader(reader(1));
        let end = publisher.end().swap_remove(0);
        publisher.put(end);
        assert_eq!(publisher.released(), (vec![reader(0)], 0));
    }
}

#[test]
fn what_is_forged_once_does_not_count_for_long() {
    let mut publisher = Publisher::new(BOTH, 2);
    let far = SequenceNumber(1 << 40);
    // A sample and a HEARTBEAT that claim to be far ahead.
    let mut forged = publisher.next(0, false);
    forged.mark.place.number = far;
    publisher.put(forged);
    publisher.order.note_up_to((writer(1), reader(1)), far);
    publisher.released();
    for _ in 0..3 {
        publisher.begin();
        for at in [0, 1] {
            let sample = publisher.next(at, false);
            publisher.put(sample);
        }
        publisher.end().into_iter().for_each(|end| publisher.put(end));
        assert_eq!(publisher.released(), (vec![reader(0), reader(1)], 0));
    }
    let [first, second] = [0, 1].map(|at| publisher.next(at, false));
    publisher.put(second);
    assert_eq!(publisher.released().0, []);
    publisher.put(first);
    assert_eq!(publisher.released().0, [reader(0), reader(1)]);
}

#[test]
fn what_waits_is_bounded() {
    for presentation in [COHERENT, ORDERED, BOTH] {
        let mut publisher = Publisher::new(presentation, 2);
        publisher.number = 5;
        publisher.begin();
        let mut seen = 0;
        for _ in 0..20_000 {
            let sample = publisher.next(0, false);
            publisher.put(sample);
            let (released, lost) = publisher.released();
            seen += released.len() as u64 + lost;
            assert!(!publisher.order.is_full());
        }
        assert!(seen > 10_000, "{presentation:?}: {seen}");
    }
    // Ends of sets that another writer never ends.
    let mut publisher = Publisher::new(COHERENT, 2);
    for _ in 0..3 * SETS_MAX {
        publisher.begin();
        let end = publisher.end().swap_remove(0);
        publisher.put(end);
        publisher.released();
        assert!(publisher.order.sets.len() <= 2 * SETS_MAX);
    }
}

/// Whatever comes first from whom, but each writer in its order.
#[test]
fn all_is_released_in_order_and_in_whole_sets() {
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let presentation = [COHERENT, ORDERED, BOTH][rng.below(3) as usize];
        let writers = 1 + rng.below(4) as usize;
        let mut publisher = Publisher::new(presentation, writers);
        let mut queues: Vec<VecDeque<GroupArrival>> = (0..writers).map(|_| VecDeque::new()).collect();
        let mut total = 0;
        for _ in 0..rng.below(30) {
            let in_set = rng.chance(0.6);
            if in_set {
                publisher.begin();
            }
            for _ in 0..1 + rng.below(5) {
                let at = rng.below(writers as u64) as usize;
                queues[at].push_back(publisher.next(at, false));
                total += 1;
            }
            if in_set {
                publisher.end().into_iter().enumerate().for_each(|(at, end)| queues[at].push_back(end));
            }
            // Numbers of writers that no reader is matched with.
            publisher.number += rng.below(2) as i64;
        }
        let mut seen: Vec<(Guid, SequenceNumber)> = Vec::new();
        let mut sets: BTreeMap<SequenceNumber, u64> = BTreeMap::new();
        let mut places: BTreeMap<(Guid, SequenceNumber), GroupPlace> = BTreeMap::new();
        for arrival in queues.iter().flatten().filter(|arrival| arrival.sample.coherent_set != SequenceNumber::UNKNOWN)
        {
            places.insert((arrival.sample.writer, arrival.sample.sequence), arrival.mark.place);
            *sets.entry(arrival.mark.place.set).or_default() += 1;
        }
        while queues.iter().any(|queue| !queue.is_empty()) {
            let at = rng.below(writers as u64) as usize;
            let Some(arrival) = queues[at].pop_front() else { continue };
            publisher.put(arrival);
            let released = publisher.turns();
            let mut now: BTreeMap<SequenceNumber, u64> = BTreeMap::new();
            for one in released {
                let Released::Sample(_, sample) = one else { panic!("seed {seed}: {one:?}") };
                *now.entry(places[&(sample.writer, sample.sequence)].set).or_default() += 1;
                seen.push((sample.writer, sample.sequence));
            }
            for (set, count) in now.into_iter().filter(|(set, _)| presentation.coherent && set.0 > 0) {
                assert_eq!(count, sets[&set], "seed {seed}: parts of set {set}");
            }
        }
        for at in 0..writers {
            publisher.order.note_up_to((writer(at), reader(at)), SequenceNumber(publisher.number));
        }
        let released = publisher.turns();
        seen.extend(released.iter().map(|one| match one {
            Released::Sample(_, sample) => (sample.writer, sample.sequence),
            _ => panic!("seed {seed}: {one:?}"),
        }));
        assert_eq!(seen.len(), total, "seed {seed}");
        if presentation.ordered {
            assert!(seen.windows(2).all(|two| places[&two[0]].number < places[&two[1]].number), "seed {seed}");
        }
        for at in 0..writers {
            let own = seen.iter().filter(|(from, _)| *from == writer(at)).map(|(_, sequence)| *sequence);
            assert!(own.is_sorted(), "seed {seed}");
        }
    }
}

#[test]
fn a_set_is_given_up_without_a_look_at_all_that_waits() {
    // Sets that each have one sample in the front half and one in the back half; another writer never ends them. This test is over in
    // a second, or in hours.
    let count = 200_000;
    let mut source = Publisher::new(COHERENT, 2);
    source.order.bytes_max = usize::MAX;
    let payload = Payload::from(Vec::new());
    for number in 0..2 * count {
        let set = SequenceNumber(number % count + 1);
        let mut arrival = source.next(0, false);
        arrival.sample.payload = payload.clone();
        arrival.sample.coherent_set = set;
        arrival.mark.place.set = set;
        source.put(arrival);
    }
    let mut released = Vec::new();
    source.order.release_to(0, &mut released);
    let lost: u64 = released.iter().map(|one| if let Released::Lost(_, lost) = one { *lost } else { 0 }).sum();
    assert_eq!((lost, source.order.bytes()), (2 * count as u64, 0));
}

#[test]
fn a_sample_waits_until_all_readers_of_the_topic_before_it_have_theirs() {
    let mut publisher = Publisher::new(ORDERED, 2);
    let other = (writer(0), reader(5));
    publisher.order.add_pair(other, false);
    let (first, second) = (publisher.next(0, false), publisher.next(1, false));
    publisher.put(first);
    assert_eq!(publisher.released().0, [reader(0)]);
    publisher.put(second);
    assert_eq!(publisher.released().0, [], "the other reader's first sample was lost, and is on its way");
    assert!(publisher.order.holding_up().contains(&other));
    publisher.order.note_up_to(other, SequenceNumber(1));
    assert_eq!(publisher.released().0, [reader(1)]);
}

#[test]
fn what_is_next_waits_for_room_as_a_whole_or_never_has_any() {
    let mut publisher = Publisher::new(BOTH, 2);
    publisher.begin();
    for at in [0, 1, 0] {
        let sample = publisher.next(at, false);
        publisher.put(sample);
    }
    publisher.end().into_iter().for_each(|end| publisher.put(end));
    let alone = publisher.next(1, false);
    publisher.put(alone);
    let mut asked = Vec::new();
    let mut wait = |samples: &[(EntityId, &CachedSample)]| {
        asked.push(samples.iter().map(|(reader, _)| *reader).collect::<Vec<_>>());
        Room::Awaited
    };
    assert!(matches!(publisher.order.next(&mut wait), Next::AwaitsRoom));
    assert!(matches!(publisher.order.next(&mut wait), Next::AwaitsRoom), "nothing passes it");
    assert_eq!(asked, vec![vec![reader(0), reader(1), reader(0)]; 2]);
    let refusals = BTreeMap::from([(reader(0), RejectReason::Samples)]);
    let Next::Turn(turn) = publisher.order.next(|_| Room::Nowhere(refusals.clone())) else { panic!("a set is judged") };
    let count = |fits: fn(&Released) -> bool| turn.iter().filter(|one| fits(one)).count();
    assert_eq!(count(|one| matches!(one, Released::Rejected(_, RejectReason::Samples, _))), 2);
    assert_eq!((count(|one| matches!(one, Released::Lost(_, 1))), turn.len()), (1, 3));
    assert!(matches!(publisher.order.next(|_| Room::Awaited), Next::AwaitsRoom), "one outside of sets waits as well");
    assert_eq!(publisher.released(), (vec![reader(1)], 0));
}

#[test]
fn a_whole_set_that_waits_stays_whole_when_others_join() {
    let mut publisher = Publisher::new(COHERENT, 2);
    publisher.begin();
    for at in [0, 1] {
        let sample = publisher.next(at, false);
        publisher.put(sample);
    }
    publisher.end().into_iter().for_each(|end| publisher.put(end));
    assert!(matches!(publisher.order.next(|_| Room::Awaited), Next::AwaitsRoom));
    publisher.order.add_pair((writer(2), reader(1)), false);
    // And one whose lease has ended comes back.
    publisher.order.remove_pair((writer(1), reader(1)));
    publisher.order.add_pair((writer(1), reader(1)), false);
    assert!(matches!(publisher.order.next(|_| Room::Awaited), Next::AwaitsRoom));
    publisher.sequences.push(0);
    publisher.parts.push(0);
    publisher.begin();
    publisher.end().into_iter().for_each(|end| publisher.order.handle(reader(1), end));
    assert_eq!(publisher.released(), (vec![reader(0), reader(1)], 0));
}

/// A set of writers 0 and 1 that waits for room; writer 2 has joined since, with its reader.
fn joined_while_a_set_waits() -> (Publisher, [GroupArrival; 3]) {
    let mut publisher = Publisher::new(COHERENT, 3);
    publisher.order.remove_pair((writer(2), reader(2)));
    publisher.begin();
    let [first, second, third, fourth] = [0, 1, 2, 2].map(|at| publisher.next(at, false));
    let [end, other_end, last_end] = <[_; 3]>::try_from(publisher.end()).expect("three");
    [first, second, end, other_end].into_iter().for_each(|arrival| publisher.put(arrival));
    assert!(matches!(publisher.order.next(|_| Room::Awaited), Next::AwaitsRoom));
    publisher.order.add_pair((writer(2), reader(2)), false);
    (publisher, [third, fourth, last_end])
}

#[test]
fn who_joins_while_a_set_waits_and_leaves_again_takes_nothing_from_it() {
    for begun in [0, 1] {
        let (mut publisher, late) = joined_while_a_set_waits();
        late.into_iter().take(begun).for_each(|arrival| publisher.put(arrival));
        publisher.order.remove_pair((writer(2), reader(2)));
        assert_eq!(publisher.released(), (vec![reader(0), reader(1)], 0), "{begun}");
        assert!(!publisher.order.holds_any());
    }
}

#[test]
fn who_joins_while_a_set_waits_gets_all_of_it_or_nothing() {
    // All of it came in time.
    let (mut publisher, late) = joined_while_a_set_waits();
    let [third, fourth, end] = late;
    publisher.put(third);
    assert!(matches!(publisher.order.next(|_| Room::Here), Next::Nobody), "the rest is awaited");
    [fourth, end].into_iter().for_each(|arrival| publisher.put(arrival));
    assert_eq!(publisher.released(), (vec![reader(0), reader(1), reader(2), reader(2)], 0));
    // It is not repeated from its beginning.
    for skipped in [1, 2] {
        let (mut publisher, late) = joined_while_a_set_waits();
        late.into_iter().skip(skipped).for_each(|arrival| publisher.put(arrival));
        assert_eq!(publisher.released(), (vec![reader(0), reader(1)], 0), "{skipped}");
        assert!(!publisher.order.holds_any());
    }
}
