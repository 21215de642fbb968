//! What a reader goes without although its writer has sent it: it was lost, and overwritten at the writer before it was asked for.
//!
//! An ACKNACK acknowledges everything below its base, what was lost and is gone included. A writer of Thalweg takes from what is asked for
//! how much of what it sends is lost, and would go on filling a link with samples that overwrite each other. It is told of such ones by
//! LOST and LOST_FRAG, ahead of the ACKNACK that passes over them.

use super::reassembly::{Holes, Reassembly};
use super::window::Window;
use super::writer_proxy::WriterProxy;
use crate::outbox::Outbox;
use crate::types::{Guid, SequenceNumber, VendorId};
use crate::wire::{Lost, LostFrag, SequenceSet, write};

/// LOST_FRAGs that are sent at a time.
const PARTS_MAX: usize = 8;

/// What is to be told.
#[derive(Debug, Default)]
pub(super) struct Forgone {
    /// Samples of which nothing came.
    samples: Option<SequenceSet>,
    /// What did not come of samples of which a part did.
    parts: Vec<(SequenceNumber, Holes)>,
    /// Samples up to this one were asked for or told, or are here.
    pub settled: SequenceNumber,
}

impl Forgone {
    /// Numbers below `first` are gone. As many of them are told as a LOST holds.
    fn note_gone(&mut self, window: &Window, parts: &Reassembly, first: SequenceNumber) {
        let unsettled = self.settled.next();
        self.settled = self.settled.max(first.previous());
        let is_missing = |number: &SequenceNumber| window.is_new(*number) && !parts.contains(*number);
        let mut numbers =
            window.numbers_from(unsettled).take_while(|number| *number < first).filter(is_missing).peekable();
        if let Some(start) = numbers.peek() {
            let set = self.samples.get_or_insert(SequenceSet::at(*start));
            let _is_full = !numbers.all(|number| set.insert(number));
        }
    }
}

impl WriterProxy {
    /// The writer has nothing below `first` any more. It knows what it has not sent to this reader. What it tells a stranger are no numbers
    /// of its samples.
    pub(super) fn note_gone(&mut self, first: SequenceNumber) {
        if !self.is_greeted() {
            self.forgone.settled = self.forgone.settled.max(first.previous());
        } else if first > self.window.next() && self.tells_of_losses() {
            let WriterProxy { window, reassembly, forgone, .. } = self;
            forgone.note_gone(window, reassembly, first);
        }
    }

    /// Forgets parts of samples that need none: delivered, irrelevant or lost meanwhile, or here as a whole and waiting for room.
    #[inline]
    pub(super) fn forget_settled_parts(&mut self) {
        if !self.reassembly.is_empty() {
            self.forget_parts_of_settled();
        }
    }

    fn forget_parts_of_settled(&mut self) {
        let tells = self.tells_of_losses();
        let WriterProxy { window, reassembly, forgone, .. } = self;
        let parts: &Reassembly = reassembly;
        let gone = (0..).map_while(|index| parts.sequence(index)).take_while(|sequence| *sequence < window.next());
        let lost = gone.flat_map(|sequence| {
            let next = move |from: u32| parts.holes(sequence, from).map(|holes| (sequence, holes));
            std::iter::successors(next(1), move |(_, holes)| next(holes.state.iter().last()?.checked_add(1)?))
        });
        let room = if tells { PARTS_MAX - forgone.parts.len() } else { 0 };
        forgone.parts.extend(lost.take(room));
        reassembly.retain(|sequence| window.is_new(sequence));
    }

    fn tells_of_losses(&self) -> bool {
        self.matched.reliable && self.matched.vendor == VendorId::THALWEG && self.announced_by_heartbeat.is_some()
    }

    /// Tells what was lost and is gone, before it is acknowledged with the rest. Nothing is, where it `is_doubtful` that it is gone.
    pub(super) fn tell_of_forgone(&mut self, reader: Guid, is_doubtful: bool, outbox: &mut Outbox) {
        let (samples, parts) = (self.forgone.samples.take(), std::mem::take(&mut self.forgone.parts));
        if is_doubtful {
            return;
        }
        let (reader, writer) = (reader.entity, self.matched.guid.entity);
        for (sequence, Holes { state, rest, fragment_size }) in parts {
            write::lost_frag(outbox.buffer(), &LostFrag { reader, writer, sequence, fragment_size, state, rest });
        }
        if let Some(numbers) = samples {
            write::lost(outbox.buffer(), &Lost { reader, writer, numbers });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::{LATER, Session, fragment_of};
    use super::*;
    use crate::wire::{Message, Submessage};

    fn started() -> Session {
        let mut session = Session::reliable();
        session.data(&[1]).heartbeat(1, 1).check("samples 2:", &[1]);
        session
    }

    #[test]
    fn what_was_lost_and_is_gone_is_told_once_and_then_acknowledged() {
        let mut session = started();
        session.data(&[4, 8]).heartbeat(6, 9).check("lost 2,3,5; samples 6:6,7,9", &[4]);
        session.data(&[6, 7, 9]).heartbeat(6, 9).check("samples 10:", &[6, 7, 8, 9]);
    }

    #[test]
    fn what_several_heartbeats_show_to_be_gone_is_told_together() {
        let mut session = started();
        session.data(&[4, 8]).heartbeat(3, 8).heartbeat(6, 9).check("lost 2,3,5; samples 6:6,7,9", &[4]);
    }

    #[test]
    fn what_was_asked_for_is_not_told_again() {
        let mut session = started();
        session.data(&[4]).heartbeat(1, 4).check("samples 2:2,3", &[]);
        session.data(&[8]).heartbeat(7, 8).check("lost 5,6; samples 7:7", &[4]);
    }

    #[test]
    fn a_reader_that_comes_late_tells_nothing_of_what_was_before_it() {
        let mut session = Session::reliable();
        session.check_asks();
        session.heartbeat(5, 9).check("samples 5:5,6,7,8,9", &[]);
    }

    #[test]
    fn what_was_sent_and_lost_between_heartbeats_is_told() {
        let mut session = started();
        session.confirmed_heartbeat(3, 3).check("lost 2; samples 3:3", &[]);
        session.confirmed_heartbeat(6, 6).check("lost 4,5; samples 6:6", &[]);
    }

    #[test]
    fn writers_of_other_vendors_are_told_nothing() {
        let mut session = started();
        session.reader.writers[0].matched.vendor = VendorId::CYCLONE;
        session.data(&[4, 8]).heartbeat(6, 9).check("samples 6:6,7,9", &[4]);
    }

    #[test]
    fn missing_fragments_of_what_is_gone_are_told_and_that_nothing_followed() {
        let mut session = started();
        for fragment in [0, 2, 4] {
            assert!(!fragment_of(&mut session, 2, fragment, 14_000));
        }
        session.data(&[3]).heartbeat(3, 3).answer_after(Duration::ZERO);
        let told = |session: &Session| -> Vec<(i64, Vec<u32>, bool)> {
            let datagrams = session.outbox.datagrams().map(|datagram| datagram.to_vec());
            let told = datagrams.flat_map(|datagram| {
                let submessages = Message::parse(&datagram).unwrap().submessages().map(Result::unwrap);
                let told = submessages.filter_map(|submessage| match submessage {
                    Submessage::LostFrag(lost) => Some((lost.sequence.0, lost.state.iter().collect(), lost.rest)),
                    _ => None,
                });
                told.collect::<Vec<_>>()
            });
            told.collect()
        };
        assert_eq!(told(&session), [(2, vec![2, 4, 6], true)]);
        assert_eq!(session.taken(), [3]);
        session.heartbeat(3, 3).answer_after(LATER);
        assert_eq!(told(&session), []);
        for fragment in [0, 1, 3, 9] {
            assert!(!fragment_of(&mut session, 4, fragment, 14_000));
        }
        session.data(&[5]).heartbeat(5, 5).answer_after(Duration::ZERO);
        assert_eq!(told(&session), [(4, vec![3, 5, 6, 7, 8, 9], false)], "the last one has come");
        for fragment in [0, 500] {
            assert!(!fragment_of(&mut session, 6, fragment, 900_000));
        }
        session.data(&[7]).heartbeat(7, 7).answer_after(Duration::ZERO);
        let expect = [(6, (2..258).collect(), false), (6, (258..501).chain([502]).collect(), true)];
        assert_eq!(told(&session), expect);
    }
}
