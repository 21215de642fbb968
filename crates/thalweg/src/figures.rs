//! What a participant and its endpoints have counted, at one moment and from any thread.

use std::sync::{Arc, Weak};

use thalweg_rtps::participant::{Participant, ParticipantCounters};
use thalweg_rtps::reader::{Losses, ReaderCounters};
use thalweg_rtps::types::Guid;
use thalweg_rtps::writer::WriterCounters;
use thalweg_transport::udp::{ReceiveCounts, SendCounts};

use crate::runtime::RuntimeState;

/// All counts of a participant.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ParticipantFigures {
    /// Other participants that are known.
    pub participants: usize,
    /// Messages that were refused or ignored.
    pub participant: ParticipantCounters,
    /// What the sockets sent.
    pub sent: SendCounts,
    /// What the sockets received.
    pub received: ReceiveCounts,
    /// The application's writers.
    pub writers: Vec<WriterFigures>,
    /// The application's readers.
    pub readers: Vec<ReaderFigures>,
}

/// The counts of a writer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WriterFigures {
    /// Its GUID.
    pub guid: Guid,
    /// Its topic.
    pub topic: String,
    /// What it did.
    pub counters: WriterCounters,
    /// Samples in its history.
    pub held: usize,
    /// Readers that are matched.
    pub matched: usize,
}

/// The counts of a reader.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReaderFigures {
    /// Its GUID.
    pub guid: Guid,
    /// Its topic.
    pub topic: String,
    /// What it did.
    pub counters: ReaderCounters,
    /// Samples that were written and never handed over, by reason.
    pub losses: Losses,
    /// Samples that KEEP_LAST overwrote before they were taken.
    pub overwritten: u64,
    /// Samples that wait for the application.
    pub waiting: usize,
    /// Writers that are matched.
    pub matched: usize,
}

/// Reads the counts of a participant that may end meanwhile. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ParticipantFigureSource(Weak<RuntimeState>);

impl ParticipantFigureSource {
    pub(crate) fn new(state: &Arc<RuntimeState>) -> ParticipantFigureSource {
        ParticipantFigureSource(Arc::downgrade(state))
    }

    /// The counts now; `None` when the participant has ended. Takes the lock of each endpoint once, one after the other.
    pub fn read(&self) -> Option<ParticipantFigures> {
        let state = self.0.upgrade()?;
        let of_participant = |participant: &Participant| (participant.participants().count(), participant.counters());
        let (participants, participant) = state.with_participant(|_, participant| of_participant(participant));
        Some(ParticipantFigures {
            participants,
            participant,
            sent: state.sender.counts(),
            received: state.received(),
            writers: state.endpoints.writers().iter().map(|cell| cell.figures()).collect(),
            readers: state.endpoints.readers().iter().map(|cell| cell.figures()).collect(),
        })
    }
}
