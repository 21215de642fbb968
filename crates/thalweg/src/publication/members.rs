//! The writers of one publisher, and the coherent sets that they write together.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use thalweg_rtps::participant::Participant;
use thalweg_rtps::qos::WriterQos;
use thalweg_rtps::types::SequenceNumber;
use thalweg_rtps::writer::PublisherGroup;

use super::WriterCell;
use super::sending::transmit;
use crate::runtime::RuntimeState;

/// What the writers of a publisher have in common.
#[derive(Default)]
pub(super) struct Members {
    /// The numbers of their samples, once one of them needs them.
    group: OnceLock<PublisherGroup>,
    state: Mutex<State>,
    /// Held while a set begins or ends: a new one is not to begin at a writer that has not ended the one before.
    turn: Mutex<()>,
}

#[derive(Default)]
struct State {
    writers: Vec<Weak<WriterCell>>,
    /// How many calls of `begin` have no `end` yet.
    depth: u32,
    /// The set that they began; zero while no writer needs its number.
    set: SequenceNumber,
}

impl State {
    /// The writers that the application has; something else may keep one that it has dropped for a moment.
    fn open(&self) -> impl Iterator<Item = Arc<WriterCell>> {
        self.writers.iter().filter_map(Weak::upgrade).filter(|cell| !cell.is_closed())
    }
}

impl Members {
    /// The group of a writer that is to be created, if its PRESENTATION spans one.
    pub(super) fn group_for(&self, qos: &WriterQos, participant: &mut Participant) -> Option<PublisherGroup> {
        qos.presentation.spans_group().then(|| self.group.get_or_init(|| participant.create_publisher()).clone())
    }

    /// Adds a new writer, with no lock held; it takes part in a set that is open.
    pub(super) fn add(&self, cell: &Arc<WriterCell>) {
        if !cell.offers_coherence() {
            return;
        }
        let mut state = self.state();
        state.writers.retain(|writer| writer.strong_count() > 0);
        state.writers.push(Arc::downgrade(cell));
        if state.depth > 0 {
            if state.set == SequenceNumber::ZERO {
                state.set = self.group.get().map_or(SequenceNumber::ZERO, |group| group.last().next());
            }
            cell.begin_set(state.set);
        }
    }

    /// Begins a set of all writers, unless one is open.
    pub(super) fn begin_set(&self) {
        let _turn = self.turn();
        let mut state = self.state();
        state.depth += 1;
        if state.depth == 1 {
            // A writer that writes before it is told begins its part by itself.
            let set = self.group.get().map_or(SequenceNumber::ZERO, PublisherGroup::open_set);
            state.set = set;
            state.open().for_each(|cell| cell.begin_set(set));
            self.group.get().into_iter().for_each(PublisherGroup::note_opened);
        }
    }

    /// Ends what [`Members::begin_set`] began; false when nothing had begun.
    pub(super) fn end_set(&self, runtime: &RuntimeState) -> bool {
        let _turn = self.turn();
        let writers: Vec<Arc<WriterCell>> = {
            let mut state = self.state();
            let Some(depth) = state.depth.checked_sub(1) else { return false };
            state.depth = depth;
            if depth > 0 {
                return true;
            }
            state.open().collect()
        };
        // One may have been dropped meanwhile: nobody is to hear of it any more.
        for cell in writers.iter().filter(|cell| !cell.is_closed()) {
            // The timers of the writer are set, and an asynchronous one leaves the end to the I/O thread.
            transmit(runtime, cell, false, |writer, now| {
                (writer.end_group_set(now, cell.stamp(runtime, now)), Some(now))
            });
        }
        true
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use thalweg_rtps::qos::{Durability, History, Presentation};
    use thalweg_rtps::types::Keyed;

    use super::*;
    use crate::{DomainParticipant, PublisherQos};

    #[test]
    fn the_end_of_a_set_passes_over_writers_that_were_dropped_within_it() {
        let participant = DomainParticipant::builder(228).loopback_only().create().expect("a participant");
        let presentation = Presentation { coherent: true, ..Presentation::default() };
        let publisher = participant.create_publisher(PublisherQos { presentation, ..PublisherQos::default() });
        let topic = participant.create_raw_topic("set", "Octets", Keyed::No, None);
        let qos =
            WriterQos { durability: Durability::TransientLocal, history: History::KeepAll, ..WriterQos::default() };
        let [dropped, kept] = [(); 2].map(|()| publisher.create_writer(&topic, qos.clone()).expect("a legal QoS"));
        publisher.begin_coherent_changes().expect("coherent access");
        for writer in [&dropped, &kept] {
            writer.write_serialized(&[0, 1, 0, 0, 7]).expect("room");
        }
        // As something may that runs at this moment.
        let cell = Arc::clone(dropped.cell());
        drop(dropped);
        publisher.end_coherent_changes().expect("a set was begun");
        let last = |cell: &WriterCell| cell.writer().lock().last();
        assert_eq!((last(&cell), last(kept.cell())), (SequenceNumber(1), SequenceNumber(2)));
    }
}
