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
    /// The topics of all of its writers and readers so far, in the order in which their first ones were created, with what deleted ones
    /// did. Beyond 256 topics, all further ones are the last, without a name.
    pub topics: Vec<TopicFigures>,
}

/// What the deleted writers and readers of a topic did: together with the counts of living ones, numbers that only grow.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TopicFigures {
    /// Its name; `None` for all topics together that came when there were 256.
    pub topic: Option<String>,
    /// Writers that were deleted.
    pub writers: u64,
    /// What they did.
    pub writer_counters: WriterCounters,
    /// Readers that were deleted.
    pub readers: u64,
    /// What they did.
    pub reader_counters: ReaderCounters,
    /// Samples that they never handed over, by reason.
    pub losses: Losses,
    /// Samples of theirs that KEEP_LAST overwrote before they were taken.
    pub overwritten: u64,
}

/// The counts of a writer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WriterFigures {
    /// Its GUID.
    pub guid: Guid,
    /// Its topic.
    pub topic: String,
    /// What it did; not what earlier writers of the history did that it goes on with.
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
        let (writers, readers, topics) = state.endpoints.account();
        Some(ParticipantFigures {
            participants,
            participant,
            sent: state.sender.counts(),
            received: state.received(),
            writers: writers.iter().map(|cell| cell.figures()).collect(),
            readers: readers.iter().map(|cell| cell.figures()).collect(),
            topics,
        })
    }
}
