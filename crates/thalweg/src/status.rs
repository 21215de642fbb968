//! Statuses: what endpoints tell about themselves (DDS 1.4 §2.2.4.1).

use thalweg_rtps::qos::{Mismatch, PolicyId};
use thalweg_rtps::status::{StatusCounts, Told};
use thalweg_rtps::types::{Guid, GuidPrefix, KeyHash};

pub use thalweg_rtps::discovery::database::DiscoveryLimit;
pub use thalweg_rtps::history::{DeadlineMissed, RejectReason};
pub use thalweg_rtps::participant::LostReason;
pub use thalweg_rtps::reader::{LossReason, Losses, Rejections};

/// Number of endpoints that an endpoint is matched with: PUBLICATION_MATCHED of a writer,
/// SUBSCRIPTION_MATCHED of a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Matched {
    /// Matches ever made.
    pub total: usize,
    /// Of these, since the status was last read or told.
    pub total_change: usize,
    /// Matches now.
    pub current: usize,
    /// Change since the status was last read or told.
    pub current_change: isize,
    /// The endpoint whose match was made or ended last.
    pub last: Option<Guid>,
}

impl Matched {
    pub(crate) fn add(&mut self, guid: Guid) {
        self.total += 1;
        self.current += 1;
        self.last = Some(guid);
    }

    pub(crate) fn remove(&mut self, guid: Guid) {
        self.current = self.current.saturating_sub(1);
        self.last = Some(guid);
    }
}

impl Told for Matched {
    fn counts(&self) -> StatusCounts {
        StatusCounts { total: self.total as u64, current: self.current as u64 }
    }

    fn since(&self, told: StatusCounts) -> Matched {
        let counts = self.counts();
        let total_change = counts.total_change(told) as usize;
        Matched { total_change, current_change: counts.current_change(told) as isize, ..*self }
    }
}

/// Endpoints of the same topic that do not fit: OFFERED_INCOMPATIBLE_QOS of a writer, REQUESTED_INCOMPATIBLE_QOS of a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IncompatibleQos {
    /// Incompatible endpoints ever found.
    pub total: usize,
    /// Of these, since the status was last read or told.
    pub total_change: usize,
    /// The endpoint that was found last.
    pub last: Option<Guid>,
    /// Every policy that keeps it and this endpoint apart, with both values and the rule; displays as a sentence.
    pub mismatches: Vec<Mismatch>,
}

impl IncompatibleQos {
    /// The first policy that fails, as DDS reports it.
    pub fn last_policy(&self) -> Option<PolicyId> {
        self.mismatches.first().map(|mismatch| mismatch.policy)
    }

    pub(crate) fn add(&mut self, guid: Guid, mismatches: Vec<Mismatch>) {
        self.total += 1;
        self.last = Some(guid);
        self.mismatches = mismatches;
    }
}

impl Told for IncompatibleQos {
    fn counts(&self) -> StatusCounts {
        StatusCounts { total: self.total as u64, current: 0 }
    }

    fn since(&self, told: StatusCounts) -> IncompatibleQos {
        IncompatibleQos { total_change: self.counts().total_change(told) as usize, ..self.clone() }
    }
}

/// Readers that a writer no longer waits for, since they made no progress for as long as its `reader_patience` allows: a status of
/// Thalweg. They count missed samples as lost once they acknowledge again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadersGivenUp {
    /// Number of times that a reader was given up.
    pub total: usize,
    /// Of these, since the status was last read or told.
    pub total_change: usize,
    /// Readers that are given up now: matched, and not waited for.
    pub current: usize,
    /// The reader that was given up last.
    pub last: Option<Guid>,
}

impl ReadersGivenUp {
    pub(crate) fn add(&mut self, guid: Guid) {
        self.total += 1;
        self.last = Some(guid);
    }
}

impl Told for ReadersGivenUp {
    /// Only a reader that is given up is a change.
    fn counts(&self) -> StatusCounts {
        StatusCounts { total: self.total as u64, current: 0 }
    }

    fn since(&self, told: StatusCounts) -> ReadersGivenUp {
        ReadersGivenUp { total_change: self.counts().total_change(told) as usize, ..*self }
    }
}

/// Samples that were written and that this reader will never hand over: SAMPLE_LOST. Each counts once.
///
/// Samples that KEEP_LAST replaced, that the writer declared irrelevant or that expired by LIFESPAN are not lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SampleLost {
    /// Samples ever lost.
    pub total: u64,
    /// Of these, since the status was last read or told.
    pub total_change: u64,
    /// Why the last one was lost; `None` before the first.
    pub last_reason: Option<LossReason>,
    /// The same by reason; displays as a list of counts.
    pub losses: Losses,
}

impl SampleLost {
    /// The status as it is now.
    pub(crate) fn update(&mut self, losses: Losses) {
        // Another thread may have looked later and been here before.
        if losses.total() > self.total {
            (self.total, self.last_reason, self.losses) = (losses.total(), losses.last_reason(), losses);
        }
    }
}

impl Told for SampleLost {
    fn counts(&self) -> StatusCounts {
        StatusCounts { total: self.total, current: 0 }
    }

    fn since(&self, told: StatusCounts) -> SampleLost {
        SampleLost { total_change: self.counts().total_change(told), ..*self }
    }
}

/// Samples that found no room when they came: SAMPLE_REJECTED. Each counts once, however often it is offered again; reliable
/// ones are kept back and handed over when there is room, best-effort ones are dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SampleRejected {
    /// Samples ever rejected.
    pub total: u64,
    /// Of these, since the status was last read or told.
    pub total_change: u64,
    /// Which limit the last one met; `None` before the first.
    pub last_reason: Option<RejectReason>,
    /// The instance of that sample; zero on keyless topics.
    pub last_instance: Option<KeyHash>,
}

impl SampleRejected {
    /// The status as it is now.
    pub(crate) fn update(&mut self, rejections: Rejections) {
        if rejections.total > self.total {
            self.total = rejections.total;
            (self.last_reason, self.last_instance) = (rejections.last_reason, rejections.last_instance);
        }
    }
}

impl Told for SampleRejected {
    fn counts(&self) -> StatusCounts {
        StatusCounts { total: self.total, current: 0 }
    }

    fn since(&self, told: StatusCounts) -> SampleRejected {
        SampleRejected { total_change: self.counts().total_change(told), ..*self }
    }
}

/// Leases that passed without a sign of life of the application, where the writer's liveliness is manual: LIVELINESS_LOST.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LivelinessLost {
    /// Number of times that the writer became one that is not alive.
    pub total: u64,
    /// Of these, since the status was last read or told.
    pub total_change: u64,
}

impl LivelinessLost {
    /// The status as it is now.
    pub(crate) fn update(&mut self, total: u64) {
        self.total = self.total.max(total);
    }
}

impl Told for LivelinessLost {
    fn counts(&self) -> StatusCounts {
        StatusCounts { total: self.total, current: 0 }
    }

    fn since(&self, told: StatusCounts) -> LivelinessLost {
        LivelinessLost { total_change: self.counts().total_change(told), ..*self }
    }
}

/// The matched writers of a reader by their liveliness: LIVELINESS_CHANGED. A writer that is matched is alive at first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LivelinessChanged {
    /// Matched writers that are alive.
    pub alive: usize,
    /// Change since the status was last read or told.
    pub alive_change: isize,
    /// Matched writers that have not given a sign of life for their lease.
    pub not_alive: usize,
    /// Change since the status was last read or told.
    pub not_alive_change: isize,
    /// The writer that changed last.
    pub last: Option<Guid>,
}

impl LivelinessChanged {
    /// The status with these numbers of writers, after a change of `writer`.
    pub(crate) fn update(&mut self, matched: usize, not_alive: usize, writer: Guid) {
        (self.alive, self.not_alive, self.last) = (matched.saturating_sub(not_alive), not_alive, Some(writer));
    }
}

impl Told for LivelinessChanged {
    fn counts(&self) -> StatusCounts {
        StatusCounts { total: self.not_alive as u64, current: self.alive as u64 }
    }

    fn since(&self, told: StatusCounts) -> LivelinessChanged {
        let alive_change = self.counts().current_change(told) as isize;
        LivelinessChanged { alive_change, not_alive_change: self.not_alive as isize - told.total as isize, ..*self }
    }
}

/// Endpoints of other participants that use a topic's name with another type: INCONSISTENT_TOPIC. They match no endpoint of this
/// participant on the topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InconsistentTopic {
    /// Times that such an endpoint was met, by each endpoint of this participant.
    pub total: u64,
    /// Of these, since the status was last read or told.
    pub total_change: u64,
    /// The endpoint that was met last.
    pub last: Option<Guid>,
    /// How its type differs, in a sentence.
    pub why: String,
}

impl InconsistentTopic {
    pub(crate) fn add(&mut self, remote: Guid, why: String) {
        self.total += 1;
        (self.last, self.why) = (Some(remote), why);
    }
}

impl Told for InconsistentTopic {
    fn counts(&self) -> StatusCounts {
        StatusCounts { total: self.total, current: 0 }
    }

    fn since(&self, told: StatusCounts) -> InconsistentTopic {
        InconsistentTopic { total_change: self.counts().total_change(told), ..self.clone() }
    }
}

/// News about a writer, as its status listener gets them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriterStatus {
    /// Readers came or went.
    PublicationMatched(Matched),
    /// A reader requests more than the writer offers.
    OfferedIncompatibleQos(IncompatibleQos),
    /// Some instance was not written for longer than the DEADLINE that the writer offers.
    OfferedDeadlineMissed(DeadlineMissed),
    /// The application has not asserted the writer's liveliness in time.
    LivelinessLost(LivelinessLost),
    /// A reader made no progress for as long as the writer's `reader_patience` allows, and is no longer waited for.
    ReadersGivenUp(ReadersGivenUp),
}

/// News about a participant and its entities, as its status listener gets them; see
/// [`DomainParticipantBuilder::on_status`](crate::DomainParticipantBuilder::on_status).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParticipantStatus {
    /// Another participant was discovered: see
    /// [`DomainParticipant::discovered_participants`](crate::DomainParticipant::discovered_participants).
    Discovered(GuidPrefix),
    /// Another participant is gone, with all its endpoints.
    Lost {
        /// Which.
        participant: GuidPrefix,
        /// Why.
        reason: LostReason,
    },
    /// A limit of discovery keeps out a participant or endpoints of one: see
    /// [`DomainParticipantBuilder::discovery_limits`](crate::DomainParticipantBuilder::discovery_limits). Told at first and
    /// whenever the count has doubled.
    OverLimit {
        /// The participant.
        participant: GuidPrefix,
        /// Which limit.
        limit: DiscoveryLimit,
        /// Number of announcements of this kind that were refused so far.
        refused: u64,
    },
    /// Others use a topic of this participant with another type.
    InconsistentTopic {
        /// Name of the topic.
        topic: String,
        /// The status.
        status: InconsistentTopic,
    },
    /// News about a writer of this participant that has no status listener of its own, of kinds that
    /// [`DomainParticipantBuilder::endpoint_statuses`](crate::DomainParticipantBuilder::endpoint_statuses) names.
    Writer {
        /// The writer.
        writer: Guid,
        /// The news.
        status: WriterStatus,
    },
    /// News about a reader of this participant that has no status listener of its own, of kinds that
    /// [`DomainParticipantBuilder::endpoint_statuses`](crate::DomainParticipantBuilder::endpoint_statuses) names.
    Reader {
        /// The reader.
        reader: Guid,
        /// The news.
        status: ReaderStatus,
    },
}

/// News about a reader, as its status listener gets them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReaderStatus {
    /// Writers came or went.
    SubscriptionMatched(Matched),
    /// A writer offers less than the reader requests.
    RequestedIncompatibleQos(IncompatibleQos),
    /// Some instance got no sample for longer than the DEADLINE that the reader requests.
    RequestedDeadlineMissed(DeadlineMissed),
    /// A writer was matched, has lost its liveliness or is alive again, or is gone.
    LivelinessChanged(LivelinessChanged),
    /// Samples were lost. News that come together are told together.
    SampleLost(SampleLost),
    /// Samples found no room.
    SampleRejected(SampleRejected),
}

#[cfg(test)]
mod tests {
    use thalweg_rtps::status::Status;

    use super::*;

    #[test]
    fn changes_count_from_the_last_time_they_were_told() {
        let mut matched = Status::<Matched>::default();
        matched.change(|matched| matched.add(Guid::UNKNOWN));
        matched.change(|matched| matched.add(Guid::UNKNOWN));
        assert_eq!(matched.tell().total_change, 2);
        matched.change(|matched| matched.remove(Guid::UNKNOWN));
        let told = matched.tell();
        assert_eq!((told.total, told.total_change, told.current, told.current_change), (2, 0, 1, -1));
    }

    #[test]
    fn a_reader_that_is_back_is_no_news_but_told_with_the_next() {
        let mut given_up = Status::<ReadersGivenUp>::default();
        given_up.change(|given_up| given_up.add(Guid::UNKNOWN));
        given_up.change(|given_up| given_up.current = 1);
        assert_eq!(given_up.tell_changed().map(|told| (told.total_change, told.current)), Some((1, 1)));
        given_up.change(|given_up| given_up.current = 0);
        assert!(!given_up.has_changed());
        assert_eq!(given_up.tell().current, 0);
    }

    #[test]
    fn liveliness_tells_both_numbers_and_their_changes() {
        let mut changed = Status::<LivelinessChanged>::default();
        changed.change(|status| status.update(2, 0, Guid::UNKNOWN));
        assert_eq!(
            changed.tell_changed().map(|told| (told.alive, told.alive_change, told.not_alive_change)),
            Some((2, 2, 0))
        );
        changed.change(|status| status.update(2, 1, Guid::UNKNOWN));
        let told = changed.tell();
        assert_eq!((told.alive, told.alive_change, told.not_alive, told.not_alive_change), (1, -1, 1, 1));
        changed.change(|status| status.update(1, 0, Guid::UNKNOWN));
        assert_eq!(
            changed.tell_changed().map(|told| (told.alive, told.alive_change, told.not_alive_change)),
            Some((1, 0, -1))
        );
    }

    #[test]
    fn what_a_slower_thread_saw_before_changes_nothing() {
        let mut rejected = Status::<SampleRejected>::default();
        rejected.change(|status| status.update(Rejections { total: 3, ..Rejections::default() }));
        rejected.change(|status| status.update(Rejections { total: 2, ..Rejections::default() }));
        assert_eq!(rejected.tell().total_change, 3);
        let mut missed = Status::<DeadlineMissed>::default();
        for (total, change) in [(3, 3), (2, 0), (4, 1)] {
            let mut seen = DeadlineMissed::default();
            seen.total = total;
            missed.change(|status| status.update(seen));
            assert_eq!(missed.tell().total_change, change);
        }
        let mut lost = Status::<LivelinessLost>::default();
        for (total, change) in [(3, 3), (2, 0), (4, 1)] {
            lost.change(|status| status.update(total));
            assert_eq!(lost.tell().total_change, change);
        }
    }
}
