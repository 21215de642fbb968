//! Laws of the window.

use super::window::{HELD_BYTES_MAX, NUMBERS_MAX, Placed, Window};
use crate::history::{CachedSample, ChangeKind, PayloadKind};
use crate::payload::Payload;
use crate::time::Instant;
use crate::types::{Guid, KeyHash, SequenceNumber};

pub(super) fn sample(sequence: i64) -> CachedSample {
    CachedSample {
        coherent_set: crate::types::SequenceNumber::ZERO,
        related: None,
        payload: Payload::from(&b"1234"[..]),
        payload_kind: PayloadKind::Data,
        valid: true,
        writer: Guid::UNKNOWN,
        sequence: SequenceNumber(sequence),
        source_timestamp: None,
        received: Instant::ZERO,
        expires: Instant::NEVER,
        instance: KeyHash::default(),
        change: ChangeKind::Write,
    }
}

pub(super) fn drain(window: &mut Window) -> Vec<i64> {
    let mut out = Vec::new();
    while window.ready().is_some() {
        out.extend(window.take_ready().map(|sample| sample.sequence.0));
    }
    out
}

pub(super) fn number(n: i64) -> SequenceNumber {
    SequenceNumber(n)
}

#[test]
fn samples_come_out_in_order_once_the_missing_one_arrives() {
    let mut window = Window::new(number(1));
    assert_eq!(window.place(sample(3)), Placed::Stored);
    assert_eq!(window.place(sample(3)), Placed::Duplicate);
    assert_eq!(window.place(sample(2)), Placed::Stored);
    assert_eq!(drain(&mut window), [] as [i64; 0]);
    let missing: Vec<i64> = window.missing(number(4), |_| false).iter().map(|n| n.0).collect();
    assert_eq!(missing, [1, 4]);
    assert_eq!(window.place(sample(1)), Placed::Stored);
    assert_eq!(drain(&mut window), [1, 2, 3]);
    assert_eq!(window.place(sample(2)), Placed::Duplicate);
    assert_eq!(window.next(), number(4));
}

#[test]
fn gaps_of_any_size_cost_nothing_and_lose_no_held_sample() {
    let mut window = Window::new(number(1));
    window.mark_irrelevant(number(1), number(1 << 40));
    assert_eq!(window.next(), number(1 << 40));
    let mut window = Window::new(number(1));
    window.place(sample(5));
    window.mark_irrelevant(number(1), number(1 << 40));
    assert_eq!(drain(&mut window), [5]);
    assert!(window.load().0 <= NUMBERS_MAX as usize);
    let mut window = Window::new(number(1));
    window.mark_irrelevant(number(2), number(4));
    window.place(sample(4));
    window.place(sample(1));
    assert_eq!(drain(&mut window), [1, 4]);
    window.mark_irrelevant(number(3), number(2));
    window.mark_irrelevant(number(-5), number(i64::MAX));
    assert_eq!(window.next(), number(i64::MAX));
}

#[test]
fn far_jumps_are_refused() {
    let mut window = Window::new(number(1));
    assert_eq!(window.place(sample(1 + NUMBERS_MAX)), Placed::TooFar);
    assert_eq!(window.place(sample(NUMBERS_MAX)), Placed::Stored);
    assert_eq!(window.place(sample(i64::MAX)), Placed::TooFar);
}

/// Each that comes between many others would move half of them.
#[test]
fn what_comes_far_between_others_is_asked_for_again() {
    let mut window = Window::new(number(1));
    (1..=6_000).for_each(|n| assert_eq!(window.place(sample(2 * n)), Placed::Stored));
    for (between, expect) in
        [(6_001, Placed::TooFar), (3, Placed::Stored), (4_001, Placed::Stored), (11_999, Placed::Stored)]
    {
        assert_eq!(window.place(sample(between)), expect, "{between}");
    }
    assert_eq!(window.place(sample(6_000)), Placed::Duplicate);
    let mut delivered = Vec::new();
    for _ in 0..6 {
        (0..6_000).for_each(|n| _ = window.place(sample(2 * n + 1)));
        delivered.extend(drain(&mut window));
    }
    assert_eq!(delivered, (1..=12_000).collect::<Vec<i64>>());
    assert_eq!(window.load(), (0, 0));
}

#[test]
fn what_was_delivered_is_charged_no_longer() {
    let mut window = Window::new(number(1));
    let payload = Payload::from(vec![0; HELD_BYTES_MAX / 2]);
    for round in 0..4 {
        let first = 1 + round * 3;
        for sequence in [first + 1, first + 2] {
            let sample = CachedSample { payload: payload.clone(), ..sample(sequence) };
            assert_eq!(window.place(sample), Placed::Stored, "sample {sequence}");
        }
        assert_eq!(window.load(), (3, HELD_BYTES_MAX));
        assert_eq!(window.place(sample(first + 3)), Placed::TooFar, "the budget is used up");
        assert_eq!(window.place(sample(first)), Placed::Stored);
        assert_eq!(drain(&mut window), [first, first + 1, first + 2]);
        assert_eq!(window.load(), (0, 0));
    }
}

#[test]
fn losses_are_counted_once() {
    let mut window = Window::new(number(1));
    window.place(sample(3));
    assert_eq!(window.lose_below(number(6)), 4, "1, 2, 4 and 5");
    assert_eq!(drain(&mut window), [3]);
    assert_eq!(window.next(), number(6));
    assert_eq!(window.lose_below(number(6)), 0);
}

#[test]
fn samples_match_a_naive_model() {
    let mut rng = crate::rng::Rng::new(7);
    for _ in 0..300 {
        let mut window = Window::new(number(1));
        let mut delivered = Vec::new();
        let mut arrived = std::collections::BTreeSet::new();
        let mut irrelevant = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let n = 1 + rng.below(60) as i64;
            if rng.chance(0.2) {
                let end = n + rng.below(10) as i64;
                window.mark_irrelevant(number(n), number(end));
                irrelevant.extend((n..end).filter(|n| !arrived.contains(n)));
            } else if window.place(sample(n)) == Placed::Stored {
                assert!(!irrelevant.contains(&n) && arrived.insert(n), "{n} twice");
            }
            delivered.extend(drain(&mut window));
        }
        let mut expect = Vec::new();
        let mut n = 1;
        while arrived.contains(&n) || irrelevant.contains(&n) {
            if arrived.contains(&n) {
                expect.push(n);
            }
            n += 1;
        }
        assert_eq!(delivered, expect);
        assert_eq!(window.next(), number(n));
    }
}
