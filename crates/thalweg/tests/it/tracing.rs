//! Layer traces of samples between two participants of this process.
//!
//! Tracing is of the whole process, so other tests of this binary are traced as well: what counts here is told apart by its writer.

use std::num::NonZeroU32;

use thalweg::trace::{self, Passage, Point};
use thalweg::types::Guid;

use crate::fixture::*;

/// The passages of a sample.
fn of(all: &[Passage], writer: Guid, sequence: i64) -> Vec<Passage> {
    all.iter().filter(|passage| passage.writer == writer && passage.sequence.0 == sequence).copied().collect()
}

#[track_caller]
fn check_way(passages: &[Passage], expect: &[Point]) {
    let mut points: Vec<Point> = passages.iter().map(|passage| passage.point).collect();
    points.sort_unstable();
    points.dedup();
    assert_eq!(points, expect);
    for side in [Point::WriteEnter..Point::Received, Point::Received..Point::Taken] {
        let mut own: Vec<&Passage> = passages.iter().filter(|passage| side.contains(&passage.point)).collect();
        own.sort_by_key(|passage| passage.at);
        let firsts = |point| own.iter().find(|passage| passage.point == point).map(|passage| passage.at);
        let times: Vec<_> = expect.iter().filter(|point| side.contains(point)).map(|point| firsts(*point)).collect();
        assert!(times.is_sorted(), "{own:?}");
    }
}

#[test]
fn chosen_samples_are_followed_from_write_to_take_and_no_others() {
    let small = pair::<Count>("trace small", reliable_writer(), reliable_reader());
    let large = pair::<Shape>("trace large", reliable_writer(), reliable_reader());
    let sample = Shape { payload: vec![7; 300_000], ..Shape::new("RED", 1) };
    // Nothing is traced before somebody asks for it.
    small.writer.write(&Count { value: 0 }).unwrap();
    take(&small.reader, 1);
    trace::start(NonZeroU32::new(5).unwrap());
    for value in 1..10 {
        small.writer.write(&Count { value }).unwrap();
        take(&small.reader, 1);
        large.writer.write(&sample).unwrap();
        take(&large.reader, 1);
    }
    trace::stop();
    small.writer.write(&Count { value: 10 }).unwrap();
    take(&small.reader, 1);

    let all = trace::take();
    let both = [(small.writer.guid(), small.reader.guid()), (large.writer.guid(), large.reader.guid())];
    for (writer, reader) in both {
        let mut numbers: Vec<i64> =
            all.iter().filter(|passage| passage.writer == writer).map(|passage| passage.sequence.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert!(numbers == [5, 10] || numbers == [5], "every fifth, while it is on: {numbers:?}");
        let told = of(&all, writer, 5);
        assert!(
            told.iter()
                .all(|passage| passage.reader == if passage.point < Point::Received { Guid::UNKNOWN } else { reader })
        );
    }
    let whole: Vec<Point> = Point::ALL.into_iter().filter(|point| *point != Point::Reassembled).collect();
    check_way(&of(&all, small.writer.guid(), 5), &whole);
    check_way(&of(&all, large.writer.guid(), 5), &Point::ALL);
    assert!(of(&trace::take(), small.writer.guid(), 5).is_empty(), "what was taken is gone");
}
