//! Laws of sequence and fragment sets.

use std::collections::BTreeSet;

use super::*;

#[test]
fn a_set_holds_exactly_what_fits_into_its_window() {
    let mut rng = Rng::new(4);
    for _ in 0..500 {
        let base = rng.below(1_000) as i64;
        let mut set = SequenceSet::new(SequenceNumber(base));
        let mut fragments = FragmentSet::new(base as u32);
        let mut model = BTreeSet::new();
        for _ in 0..rng.below(50) {
            let number = rng.below(1_400) as i64;
            let fits = (base..base + 256).contains(&number);
            assert_eq!(set.insert(SequenceNumber(number)), fits);
            assert_eq!(fragments.insert(number as u32), fits);
            if fits {
                model.insert(number);
            }
        }
        assert!(set.iter().map(|number| number.0).eq(model.iter().copied()));
        assert!(fragments.iter().map(i64::from).eq(model.iter().copied()));
        assert_eq!(set.last().map(|number| number.0), model.last().copied());
        assert_eq!(fragments.last().map(i64::from), model.last().copied());
        assert_eq!(i64::from(set.bits()), model.last().map_or(0, |last| last - base + 1));
        assert_eq!(fragments.bits(), set.bits());
        assert_eq!((set.is_empty(), fragments.is_empty()), (model.is_empty(), model.is_empty()));
        for number in 0..1_400 {
            assert_eq!(set.contains(SequenceNumber(number)), model.contains(&number));
            assert_eq!(fragments.contains(number as u32), model.contains(&number));
        }
    }
}

#[test]
fn windows_at_the_end_of_the_numbers_do_not_overflow() {
    let mut set = SequenceSet::new(SequenceNumber(i64::MAX - 1));
    assert!(set.insert(SequenceNumber(i64::MAX)));
    assert!(set.iter().eq([SequenceNumber(i64::MAX)]));
    assert!(!set.contains(SequenceNumber(i64::MIN)));
    assert!(!set.insert(SequenceNumber(i64::MIN)));
    let mut fragments = FragmentSet::new(u32::MAX);
    assert!(fragments.insert(u32::MAX));
    assert!(!fragments.insert(0));
    assert_eq!(fragments.last(), Some(u32::MAX));
}

#[test]
fn a_received_window_may_be_wider_than_its_members_and_its_stray_bits_say_nothing() {
    // ACKNACK, base 5, numBits 34: the second word has bits set behind the 34th.
    let bytes = message_of("06 01 20 00 00000107 00000202 00000000 05000000 22000000 00000080 ffffffff 01000000");
    let Some(Ok(Submessage::AckNack(acknack))) = Message::parse(&bytes).unwrap().submessages().next() else {
        panic!("{}", told(&bytes))
    };
    assert_eq!(acknack.state.bits(), 34);
    assert!(acknack.state.iter().map(|number| number.0).eq([5, 37, 38]));
    assert_eq!(acknack.state.last(), Some(SequenceNumber(38)));
    assert!(!acknack.state.contains(SequenceNumber(39)));
}
